/* Shared by the files of random_graph.h: draws one node and adds it to the graph. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_RANDOM_NODES_H
#define RFX_TESTS_SUPPORT_RANDOM_RANDOM_NODES_H

#include "tests/support/random/random_graph.h"
#include "tests/support/test_util.h"

struct random_maker {
    struct rfx_graph *graph;
    struct test_rng rng;
    const struct random_graph_options *options;
};

static inline int64_t random_draw(struct random_maker *m, int64_t lo, int64_t hi) {
    return test_rng_int(&m->rng, lo, hi);
}

static inline bool random_chance(struct random_maker *m, int percent) {
    return test_rng_chance(&m->rng, percent);
}

static inline const struct rfx_tensor *random_tensor(const struct random_maker *m, int node) {
    return &m->graph->nodes[node].out;
}

/* Adds a node to the graph and returns its index. Returns -1 if the options exclude its op or the
 * graph refuses it. Aborts if there is no memory. */
int random_add(struct random_maker *m, struct rfx_node node);

/* Adds a weight of random values in [-bound, bound) and returns its index. */
int random_weight(struct random_maker *m, struct rfx_shape shape, float bound);

/* Each draws the attributes of one or a few nodes that read node `in`, adds them, and returns the
 * index of the last one, or -1 if it is refused. */
int random_add_conv(struct random_maker *m, int in, bool transposed);
int random_add_pool(struct random_maker *m, int in, enum rfx_op op);
/* Converts float32 to uint8, int8 or int32, and other types to float32. */
int random_add_convert(struct random_maker *m, int in);
/* Adds a block of one-byte integers: quantises the map `in` if it is float32, adds up to four
 * convolutions, max pools, crops, sums and concatenations of bytes, and in most cases converts back
 * to float32; sometimes multiplies the map by its mean over space. */
int random_add_quantised(struct random_maker *m, int in);
/* Makes a network of one-byte integers: quantises the image, then tries so many steps, and in most
 * cases converts the last map to float32. What runs in float32 between two conversions has the same
 * bits with every instruction set, also without fused multiply-add. */
void random_add_only_bytes(struct random_maker *m, int64_t steps);
int random_add_adaptive(struct random_maker *m, int in);
int random_add_join(struct random_maker *m, int in, enum rfx_op op);
int random_add_resize(struct random_maker *m, int in);
int random_add_grid_sample(struct random_maker *m, int in);
int random_add_select(struct random_maker *m, int in);
int random_add_geometry(struct random_maker *m, int in, enum rfx_op op);
int random_add_pointwise(struct random_maker *m, int in, enum rfx_op op);

/* Adds a 1x1 convolution to queries, keys and values, and attention in windows that fit the map,
 * shifted in half of the cases, with one or several heads. */
int random_add_window_attention(struct random_maker *m, int in);

/* Adds the same convolution, and attention of all pixels to all pixels; small maps only. */
int random_add_attention(struct random_maker *m, int in);

/* Adds one or two convolutions that keep the size, and the sum of their result and their input: the
 * residual that fusing looks for. */
int random_add_residual(struct random_maker *m, int in);

/* Adds a norm by statistics over space, in groups of channels. */
int random_add_space_norm(struct random_maker *m, int in);

/* Adds squeeze and excite: x * sigmoid(conv1x1(mean(x))). */
int random_add_squeeze_excite(struct random_maker *m, int in);
#endif
