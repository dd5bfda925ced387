/* Computes the part of a graph before a split node tile by tile. The required regions are found
 * backwards here, without the planner, and every buffer has exactly the required size. */
#ifndef RFX_TESTS_SUPPORT_RUN_RUN_TILES_H
#define RFX_TESTS_SUPPORT_RUN_RUN_TILES_H

#include "tests/support/run/run_whole.h"

/* Sets need[n_nodes] to the rectangle of every node's map that rectangle `tile` of node `split`
 * needs, clipped to the map. Nodes that are not spatial are needed whole. */
void test_back_regions(const struct rfx_graph *graph, int split, struct rfx_rect tile,
                       struct rfx_rect *need);

/* Computes the whole output of `split` (NHWC, out.elems elements of its type) in rows x cols tiles.
 */
void test_run_tiles(const struct test_prepared *prepared, const float *input_nhwc, int split,
                    int64_t rows, int64_t cols, void *out);
#endif
