/* A small vocabulary in which the built-in networks are written down, layer by layer.
 *
 * Invariants: 1. the first error sticks: after it every call does nothing and returns -1, so a
 * network reads as a list of layers and the status is looked at once; 2. every weight is a formula
 * of (seed, layer name), never stored; 3. batch norms are given statistics that fit the expected
 * mean and second moment of what they normalise, so that signals neither die nor explode with depth
 * and depend on the image. */
#ifndef RFX_RFEXEC_BUILTIN_BUILTIN_BUILDER_H
#define RFX_RFEXEC_BUILTIN_BUILTIN_BUILDER_H

#include "layers/graph/graph.h"
#include "rfexec/run/fit_size.h"

/* What is expected of a tensor's elements: their mean and the mean of their squares. */
struct rfx_signal {
    float mean, square;
};

struct rfx_builder {
    struct rfx_graph *graph;
    struct rfx_error *err;
    enum rfx_status status;
    uint64_t seed;
    struct rfx_signal *signal; /* per node */
    size_t signal_capacity;
};

/* A layer's name by value, so that it can be composed within a call. */
struct rfx_name {
    char text[96];
};

/* printf into a name; longer ones are cut. */
struct rfx_name rfx_name(const char *format, ...) RFX_PRINTF(1, 2);

/* A convolution; zero members mean: kw and pads as kh's, stride, groups and dilation 1. */
struct rfx_conv_spec {
    int64_t oc, kh, kw;
    int64_t stride, groups, dilation;
    int64_t pad, pad_h, pad_w; /* pad: all four sides; or pad_h top and bottom, pad_w the others */
    bool bias;
    bool same; /* TensorFlow's SAME instead of pads: see rfx_builder_same_pads */
};

/* Square convolutions that are padded so that the size of the map stays, or is divided by the
 * stride; depthwise: one filter per channel. */
struct rfx_conv_spec rfx_spec(int64_t oc, int64_t k);
struct rfx_conv_spec rfx_spec_biased(int64_t oc, int64_t k);
struct rfx_conv_spec rfx_spec_strided(int64_t oc, int64_t k, int64_t stride);
struct rfx_conv_spec rfx_spec_depthwise(int64_t c, int64_t k, int64_t stride);

/* A square transposed convolution: pad is cut from all four sides, and more from two. */
struct rfx_upsample_spec {
    int64_t k, stride, pad, out_pad_h, out_pad_w, cut_bottom, cut_right;
};

void rfx_builder_init(struct rfx_builder *b, struct rfx_graph *graph, uint64_t seed,
                      struct rfx_error *err);

/* Frees what the builder holds, not the graph. */
void rfx_builder_free(struct rfx_builder *b);

/* What is expected of a node's elements; mean 0 and square 1 after an error. */
struct rfx_signal rfx_builder_signal(const struct rfx_builder *b, int node);

float rfx_builder_variance(const struct rfx_builder *b, int node);

/* Records a failure unless there is one already; returns -1. */
int rfx_builder_fail(struct rfx_builder *b, enum rfx_status status);

/* Channels of a node's output; 1 after an error. */
int64_t rfx_builder_channels(const struct rfx_builder *b, int node);

/* Adds any node; mean and square are those expected of its output. */
int rfx_builder_add_node(struct rfx_builder *b, const struct rfx_node *node, float mean,
                         float square);

/* A weight of values in [lo, hi), the part `part` of that layer; its index. */
int rfx_builder_uniform(struct rfx_builder *b, const char *layer, const char *part,
                        struct rfx_shape shape, float lo, float hi);

/* Each adds one node and returns its index, or -1. `in` is a node of this builder. */
int rfx_builder_input(struct rfx_builder *b, int64_t c, int64_t h, int64_t w,
                      const struct rfx_fit_size *fit);
int rfx_builder_conv(struct rfx_builder *b, const char *name, int in, struct rfx_conv_spec spec);
int rfx_builder_batch_norm(struct rfx_builder *b, const char *name, int in, float gain);
/* torch.nn.InstanceNorm2d(affine=True): two nodes, the first called "NAME.moments". */
int rfx_builder_instance_norm(struct rfx_builder *b, const char *name, int in);
/* torch.nn.GroupNorm, likewise. */
int rfx_builder_group_norm(struct rfx_builder *b, const char *name, int in, int64_t groups,
                           float eps);
/* A norm over the channels of each pixel, with scale and shift. */
int rfx_builder_layer_norm(struct rfx_builder *b, const char *name, int in, float eps);
/* A factor per channel, from lo to hi. */
int rfx_builder_channel_scale(struct rfx_builder *b, const char *name, int in, float lo, float hi);
int rfx_builder_scale(struct rfx_builder *b, const char *name, int in, float scale);
int rfx_builder_number(struct rfx_builder *b, const char *name, float value); /* a tensor of one */
int rfx_builder_act(struct rfx_builder *b, const char *name, int in, struct rfx_act act);
/* torch.nn.GELU(): three nodes and the product, called `name`. */
int rfx_builder_gelu(struct rfx_builder *b, const char *name, int in);
int rfx_builder_relu(struct rfx_builder *b, const char *name, int in);
int rfx_builder_add(struct rfx_builder *b, const char *name, int left, int right);
int rfx_builder_mul(struct rfx_builder *b, const char *name, int left, int right);
int rfx_builder_concat(struct rfx_builder *b, const char *name, const int *in, int n_in);
int rfx_builder_prelu(struct rfx_builder *b, const char *name, int in); /* a slope per channel */
int rfx_builder_conv_transpose(struct rfx_builder *b, const char *name, int in, int64_t oc,
                               struct rfx_upsample_spec spec); /* with bias */

/* A square window with the same padding on all sides. */
struct rfx_pool_attr rfx_square_pool(int64_t k, int64_t stride, int64_t pad);

/* As torch.nn.AvgPool2d: padding counts as zeros. */
int rfx_builder_avg_pool(struct rfx_builder *b, const char *name, int in,
                         struct rfx_pool_attr pool);
int rfx_builder_max_pool(struct rfx_builder *b, const char *name, int in,
                         struct rfx_pool_attr pool);
/* As TensorFlow's: padding does not count. */
int rfx_builder_avg_pool_inside(struct rfx_builder *b, const char *name, int in,
                                struct rfx_pool_attr pool);
int rfx_builder_adaptive_avg(struct rfx_builder *b, const char *name, int in, int64_t oh,
                             int64_t ow);
int rfx_builder_global_mean(struct rfx_builder *b, const char *name, int in);

/* (1, c, h, w) -> (1, c * h * w) in that order: two nodes, the second called `name`. */
int rfx_builder_flatten(struct rfx_builder *b, const char *name, int in);

/* TensorFlow's SAME padding of a window on node `in`: ceil(size / stride) outputs, the odd row or
 * column of padding at the end, so pads depend on the map's size. */
struct rfx_pads rfx_builder_same_pads(const struct rfx_builder *b, int in, int64_t kh, int64_t kw,
                                      int64_t stride, int64_t dilation);

/* Bilinear, corners aligned, to oh x ow. */
int rfx_builder_resize(struct rfx_builder *b, const char *name, int in, int64_t oh, int64_t ow);

/* Every pixel `times` by `times` times. */
int rfx_builder_enlarge(struct rfx_builder *b, const char *name, int in, int64_t times);

/* torch.nn.PixelShuffle. */
int rfx_builder_pixel_shuffle(struct rfx_builder *b, const char *name, int in, int64_t block);

/* Channels of zeros behind those of `in`, until there are c. */
int rfx_builder_pad_channels(struct rfx_builder *b, const char *name, int in, int64_t c);

/* `count` channels of `in` from `first` on. */
int rfx_builder_pick_channels(struct rfx_builder *b, const char *name, int in, int64_t first,
                              int64_t count);

/* Rows and columns of zeros below and to the right, up to multiples of `multiple`; `in` itself
 * where there is nothing to add. And away again, to the size of `like`. */
int rfx_builder_pad_to(struct rfx_builder *b, const char *name, int in, int64_t multiple);
int rfx_builder_crop_like(struct rfx_builder *b, const char *name, int in, int like);

/* Maps of per_row * k channels as rows of k numbers, in the order of rows, columns and channels:
 * (1, c, h, w) -> (1, h * w * c / k, k). Two nodes, the second called `name`. */
int rfx_builder_rows(struct rfx_builder *b, const char *name, int in, int64_t k);

/* Tensors of rows, one behind the other: (1, n, k) and (1, m, k) -> (1, n + m, k). */
int rfx_builder_join_rows(struct rfx_builder *b, const char *name, int left, int right);

/* torch.nn.Linear with bias on (1, k). */
int rfx_builder_linear(struct rfx_builder *b, const char *name, int in, int64_t m);

/* Convolution without bias `conv`, batch norm `bn`, and unless NONE the activation `act_name`. */
int rfx_builder_conv_bn_act(struct rfx_builder *b, int in, const char *conv, const char *bn,
                            const char *act_name, struct rfx_act act, struct rfx_conv_spec spec);

/* Suffixes of the names of a convolution, its batch norm and its activation: torchvision's, and
 * those of modules that name them. */
extern const char *const rfx_suffixes_numbers[3], *const rfx_suffixes_words[3];

/* The same, each called by `name` and its suffix. */
int rfx_builder_conv_bn_act_named(struct rfx_builder *b, int in, const char *name,
                                  const char *const suffixes[3], struct rfx_act act,
                                  struct rfx_conv_spec spec);

/* Squeeze and excitation under torchvision's names: every channel times a factor that two
 * convolutions make of all channels' means. */
int rfx_builder_squeeze_excite(struct rfx_builder *b, int x, const char *name, int64_t squeeze,
                               struct rfx_act inner, struct rfx_act outer);

/* The end of a classifier: the mean of each channel, 1000 classes, the output. */
void rfx_builder_classify(struct rfx_builder *b, int x, const char *mean, const char *flatten,
                          const char *linear);

void rfx_builder_alias(struct rfx_builder *b, int node, const char *alias);
void rfx_builder_output(struct rfx_builder *b, int node, const char *name);

/* Activations by value. */
struct rfx_act rfx_act_relu(void);
struct rfx_act rfx_act_relu6(void);
struct rfx_act rfx_act_silu(void);
struct rfx_act rfx_act_sigmoid(void);
struct rfx_act rfx_act_leaky_relu(float slope);
struct rfx_act rfx_act_tanh(void);
struct rfx_act rfx_act_hard_sigmoid(void); /* relu6(x + 3) / 6 */
struct rfx_act rfx_act_hard_swish(void);
#endif
