/* Functions with which the built-in networks are built, layer by layer.
 *
 * Invariants: 1. the first error sticks: after it every call does nothing and returns -1, so a
 * network is a plain list of layers and the status is checked once at the end; 2. every weight is
 * computed from (seed, layer name) and never stored; 3. the statistics of a batch norm match the
 * expected mean and second moment of its input. Therefore the values neither vanish nor explode
 * with depth, and outputs depend on the image. */
#ifndef RFX_RFEXEC_BUILTIN_BUILTIN_BUILDER_H
#define RFX_RFEXEC_BUILTIN_BUILTIN_BUILDER_H

#include "layers/graph/graph.h"
#include "rfexec/run/fit_size.h"

/* The expected mean of a tensor's elements, and the expected mean of their squares. */
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

/* A layer's name, passed by value so that it can be formatted in the argument list of a call. */
struct rfx_name {
    char text[96];
};

/* Returns a name formatted as by printf. A name of more than 95 characters is cut. */
struct rfx_name rfx_name(const char *format, ...) RFX_PRINTF(1, 2);

/* A convolution. Defaults of members that are 0: kw is kh, pad_h and pad_w are `pad`, and stride,
 * groups and dilation are 1. */
struct rfx_conv_spec {
    int64_t oc, kh, kw;
    int64_t stride, groups, dilation;
    int64_t pad, pad_h, pad_w; /* pad: all four sides; or pad_h top and bottom, pad_w the others */
    bool bias;
    bool same; /* TensorFlow's SAME instead of pads: see rfx_builder_same_pads */
};

/* Return square convolutions. Their padding keeps the size of the map, or divides the size by the
 * stride. rfx_spec_depthwise has one filter for each channel. */
struct rfx_conv_spec rfx_spec(int64_t oc, int64_t k);
struct rfx_conv_spec rfx_spec_biased(int64_t oc, int64_t k);
struct rfx_conv_spec rfx_spec_strided(int64_t oc, int64_t k, int64_t stride);
struct rfx_conv_spec rfx_spec_depthwise(int64_t c, int64_t k, int64_t stride);

/* A square transposed convolution. `pad` rows and columns are cut off at all four sides; cut_bottom
 * and cut_right more are cut off at those two sides. */
struct rfx_upsample_spec {
    int64_t k, stride, pad, out_pad_h, out_pad_w, cut_bottom, cut_right;
};

void rfx_builder_init(struct rfx_builder *b, struct rfx_graph *graph, uint64_t seed,
                      struct rfx_error *err);

/* Frees the builder's memory. The graph is not freed. */
void rfx_builder_free(struct rfx_builder *b);

/* Returns the expected mean and mean square of a node's elements; 0 and 1 after an error. */
struct rfx_signal rfx_builder_signal(const struct rfx_builder *b, int node);

float rfx_builder_variance(const struct rfx_builder *b, int node);

/* Records a failure, unless there is one already. Returns -1. */
int rfx_builder_fail(struct rfx_builder *b, enum rfx_status status);

/* Returns the number of channels of a node's output; 1 after an error. */
int64_t rfx_builder_channels(const struct rfx_builder *b, int node);

/* Adds any node. mean, square: expected mean and mean square of the node's output elements. */
int rfx_builder_add_node(struct rfx_builder *b, const struct rfx_node *node, float mean,
                         float square);

/* Adds a weight with values in [lo, hi), named `part` of the layer, and returns its index. */
int rfx_builder_uniform(struct rfx_builder *b, const char *layer, const char *part,
                        struct rfx_shape shape, float lo, float hi);

/* Each adds one node and returns its index, or -1. `in` is a node of this builder. */
int rfx_builder_input(struct rfx_builder *b, int64_t c, int64_t h, int64_t w,
                      const struct rfx_fit_size *fit);
int rfx_builder_conv(struct rfx_builder *b, const char *name, int in, struct rfx_conv_spec spec);
int rfx_builder_batch_norm(struct rfx_builder *b, const char *name, int in, float gain);
/* torch.nn.InstanceNorm2d(affine=True): two nodes, the first called "NAME.moments". */
int rfx_builder_instance_norm(struct rfx_builder *b, const char *name, int in);
/* torch.nn.GroupNorm: two nodes, the first called "NAME.moments". */
int rfx_builder_group_norm(struct rfx_builder *b, const char *name, int in, int64_t groups,
                           float eps);
/* A layer norm over the channels of each pixel, with scale and shift. */
int rfx_builder_layer_norm(struct rfx_builder *b, const char *name, int in, float eps);
/* Multiplies each channel by a factor from [lo, hi). */
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

/* Returns a pooling window of k x k with the same padding on all sides. */
struct rfx_pool_attr rfx_square_pool(int64_t k, int64_t stride, int64_t pad);

/* Average pool as torch.nn.AvgPool2d: padding counts as zeros. */
int rfx_builder_avg_pool(struct rfx_builder *b, const char *name, int in,
                         struct rfx_pool_attr pool);
int rfx_builder_max_pool(struct rfx_builder *b, const char *name, int in,
                         struct rfx_pool_attr pool);
/* Average pool as in TensorFlow: padding does not count. */
int rfx_builder_avg_pool_inside(struct rfx_builder *b, const char *name, int in,
                                struct rfx_pool_attr pool);
int rfx_builder_adaptive_avg(struct rfx_builder *b, const char *name, int in, int64_t oh,
                             int64_t ow);
int rfx_builder_global_mean(struct rfx_builder *b, const char *name, int in);

/* (1, c, h, w) -> (1, c * h * w) in that order: two nodes, the second called `name`. */
int rfx_builder_flatten(struct rfx_builder *b, const char *name, int in);

/* Returns TensorFlow's SAME padding for a window on node `in`. The output has ceil(size / stride)
 * rows and columns. An odd row or column of padding is at the end. The padding depends on the size
 * of the map. */
struct rfx_pads rfx_builder_same_pads(const struct rfx_builder *b, int in, int64_t kh, int64_t kw,
                                      int64_t stride, int64_t dilation);

/* Resizes a map to oh x ow by bilinear interpolation with aligned corners. */
int rfx_builder_resize(struct rfx_builder *b, const char *name, int in, int64_t oh, int64_t ow);

/* Enlarges a map: every pixel becomes times x times equal pixels. */
int rfx_builder_enlarge(struct rfx_builder *b, const char *name, int in, int64_t times);

/* torch.nn.PixelShuffle. */
int rfx_builder_pixel_shuffle(struct rfx_builder *b, const char *name, int in, int64_t block);

/* Appends channels of zeros to those of `in`, so that the result has c channels. */
int rfx_builder_pad_channels(struct rfx_builder *b, const char *name, int in, int64_t c);

/* Selects the channels [first, first + count) of `in`. */
int rfx_builder_pick_channels(struct rfx_builder *b, const char *name, int in, int64_t first,
                              int64_t count);

/* rfx_builder_pad_to adds rows of zeros at the bottom and columns of zeros at the right, up to
 * multiples of `multiple`; it returns `in` when nothing is to be added. rfx_builder_crop_like cuts
 * such rows and columns off again, down to the size of the node `like`. */
int rfx_builder_pad_to(struct rfx_builder *b, const char *name, int in, int64_t multiple);
int rfx_builder_crop_like(struct rfx_builder *b, const char *name, int in, int like);

/* Rearranges a map to rows of k numbers, in the order rows, columns, channels:
 * (1, c, h, w) -> (1, h * w * c / k, k). c is a multiple of k. Two nodes, the second called `name`.
 */
int rfx_builder_rows(struct rfx_builder *b, const char *name, int in, int64_t k);

/* Concatenates two tensors of rows: (1, n, k) and (1, m, k) -> (1, n + m, k). */
int rfx_builder_join_rows(struct rfx_builder *b, const char *name, int left, int right);

/* torch.nn.Linear with bias on (1, k). */
int rfx_builder_linear(struct rfx_builder *b, const char *name, int in, int64_t m);

/* A convolution without bias named `conv`, a batch norm named `bn`, and an activation named
 * `act_name` (no activation when act.kind is NONE). */
int rfx_builder_conv_bn_act(struct rfx_builder *b, int in, const char *conv, const char *bn,
                            const char *act_name, struct rfx_act act, struct rfx_conv_spec spec);

/* Name suffixes of a convolution, its batch norm and its activation: numbers as in torchvision
 * (".0"), or words (".conv"). */
extern const char *const rfx_suffixes_numbers[3], *const rfx_suffixes_words[3];

/* Adds the nodes of rfx_builder_conv_bn_act, each named `name` plus its suffix. */
int rfx_builder_conv_bn_act_named(struct rfx_builder *b, int in, const char *name,
                                  const char *const suffixes[3], struct rfx_act act,
                                  struct rfx_conv_spec spec);

/* Squeeze and excitation with torchvision's names. Two convolutions compute a factor for each
 * channel from the means of all channels; each channel is multiplied by its factor. */
int rfx_builder_squeeze_excite(struct rfx_builder *b, int x, const char *name, int64_t squeeze,
                               struct rfx_act inner, struct rfx_act outer);

/* Adds the end of a classifier: the mean of each channel, a linear layer to 1000 classes, and the
 * output. */
void rfx_builder_classify(struct rfx_builder *b, int x, const char *mean, const char *flatten,
                          const char *linear);

void rfx_builder_alias(struct rfx_builder *b, int node, const char *alias);
void rfx_builder_output(struct rfx_builder *b, int node, const char *name);

/* Return activations by value. */
struct rfx_act rfx_act_relu(void);
struct rfx_act rfx_act_relu6(void);
struct rfx_act rfx_act_silu(void);
struct rfx_act rfx_act_sigmoid(void);
struct rfx_act rfx_act_leaky_relu(float slope);
struct rfx_act rfx_act_tanh(void);
struct rfx_act rfx_act_hard_sigmoid(void); /* relu6(x + 3) / 6 */
struct rfx_act rfx_act_hard_swish(void);
#endif
