/* Who depends on whom, by brute force from the definitions of the ops; it knows nothing of
 * rf_analysis or of any op's code.
 *
 * One primitive lists the positions of an input that one output position reads along one axis, tap
 * by tap; taps outside the map are not listed. Everything else composes these lists: hulls (first
 * and last source position per axis, cheap enough for whole networks on large images) and exact
 * pixel sets (small maps). Values play no part: a tap counts even if its weight is zero. */
#ifndef RFX_TESTS_SUPPORT_ORACLE_INFLUENCE_H
#define RFX_TESTS_SUPPORT_ORACLE_INFLUENCE_H

#include <stdbool.h>

#include "layers/core/rect.h"
#include "layers/graph/graph.h"

/* Positions of input k that output position `o` reads along `axis` (0 rows, 1 columns), unsorted;
 * `out` holds influence_max_taps(graph) elements. Returns how many; a reader of the whole input
 * lists all of it. */
int64_t influence_taps(const struct rfx_graph *graph, const struct rfx_node *node, int k, int axis,
                       int64_t o, int64_t *out);
int64_t influence_max_taps(const struct rfx_graph *graph);

/* The same for a Resize of a map of n positions (influence_resize.c). */
int64_t influence_resize_taps(const struct rfx_node *node, int axis, int64_t o, int64_t n,
                              int64_t *out);

/* Whether the op reads its inputs whole. */
bool influence_reads_all(const struct rfx_node *node);

/* hulls[i][o]: the range of `source` positions that output position o of node i depends on along
 * `axis`, empty (0, 0) when none. n_nodes malloc'ed arrays, free with influence_hulls_free. */
void influence_hulls(const struct rfx_graph *graph, int source, int axis, struct rfx_range **hulls);
void influence_hulls_free(const struct rfx_graph *graph, struct rfx_range **hulls);

/* The range of positions of every node that `target` needs along one axis to give `out`, from the
 * target back; empty (0, 0) when none. boxes: as executed in rectangles, where a node computes the
 * gaps between the positions it is asked for as well, and what a window needs is cut off at the
 * border (of a dilated one the first position inside may be a gap); else the hull of exactly the
 * positions that matter. need: n_nodes. */
void influence_need(const struct rfx_graph *graph, int target, int axis, struct rfx_range out,
                    bool boxes, struct rfx_range *need);

/* A set of pixels of a map of at most INFLUENCE_MAX_PIXELS. */
#define INFLUENCE_MAX_PIXELS 256
struct influence_set {
    uint64_t words[INFLUENCE_MAX_PIXELS / 64];
};

/* sets[i][y * w + x]: the pixels of `source` (row-major) that pixel (y, x) of node i depends on.
 * False when the source has too many pixels. Free with influence_sets_free. */
bool influence_sets(const struct rfx_graph *graph, int source, struct influence_set **sets);
void influence_sets_free(const struct rfx_graph *graph, struct influence_set **sets);

static inline bool influence_has(const struct influence_set *set, int64_t pixel) {
    return (set->words[pixel / 64] >> (pixel % 64) & 1) != 0;
}

/* Whether pixels tell all: false for a node after an op that drops or spreads channels of a map
 * whose channels depend on different pixels (a concatenation or space-to-depth before it). exact:
 * n_nodes. */
void influence_is_exact(const struct rfx_graph *graph, bool *exact);

/* Multiply-accumulates of computing `rect` of a node, counted one by one (convolutions: every tap,
 * padding included; products: every term). */
uint64_t influence_count_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                              struct rfx_rect rect);

/* The same for nodes [0, split] in rows x cols tiles of the split's map, and all later nodes whole;
 * split -1: everything whole. Tiles have equal sizes, the first ones one longer. */
uint64_t influence_count_tiled(const struct rfx_graph *graph, int split, int64_t rows,
                               int64_t cols);

/* Forwards: reached[i][o] says whether position o of node i depends on `position` of `source` along
 * `axis`. n_nodes malloc'ed arrays, free with influence_spread_free. */
void influence_spread(const struct rfx_graph *graph, int source, int axis, int64_t position,
                      bool **reached);
void influence_spread_free(const struct rfx_graph *graph, bool **reached);
#endif
