/* Between the files of random_graph.h: drawing one node and offering it to the graph. */
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

/* Offers a node to the graph; its index, or -1 when it may not be used or the graph refuses it.
 * Aborts when there is no memory. */
int random_add(struct random_maker *m, struct rfx_node node);

/* Adds a weight of values in [-bound, bound); its index. */
int random_weight(struct random_maker *m, struct rfx_shape shape, float bound);

/* Each draws the attributes of a node (or a few nodes) that read node `in` and returns the index of
 * the last one, -1 when refused. */
int random_add_conv(struct random_maker *m, int in, bool transposed);
int random_add_pool(struct random_maker *m, int in, enum rfx_op op);
int random_add_convert(struct random_maker *m, int in);
int random_add_adaptive(struct random_maker *m, int in);
int random_add_join(struct random_maker *m, int in, enum rfx_op op);
int random_add_resize(struct random_maker *m, int in);
int random_add_grid_sample(struct random_maker *m, int in);
int random_add_select(struct random_maker *m, int in);
int random_add_geometry(struct random_maker *m, int in, enum rfx_op op);
int random_add_pointwise(struct random_maker *m, int in, enum rfx_op op);

/* Queries, keys and values by a 1x1 convolution, and attention in windows that fit the map, of
 * which every other one is shifted; some heads. */
int random_add_window_attention(struct random_maker *m, int in);

/* Queries, keys and values likewise, and attention of all pixels to all; of small maps. */
int random_add_attention(struct random_maker *m, int in);

/* A convolution that keeps the size, or two of them, and the sum with what went in: what fusing
 * looks for. */
int random_add_residual(struct random_maker *m, int in);

/* A norm by statistics over space, in groups of channels. */
int random_add_space_norm(struct random_maker *m, int in);

/* Squeeze and excite: x * sigmoid(conv1x1(mean(x))). */
int random_add_squeeze_excite(struct random_maker *m, int in);
#endif
