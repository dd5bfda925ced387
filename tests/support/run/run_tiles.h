/* Runs the part of a graph before a split node tile by tile and stitches: regions are walked
 * backwards here, without the planner's help, and every buffer has exactly the size asked for. */
#ifndef RFX_TESTS_SUPPORT_RUN_RUN_TILES_H
#define RFX_TESTS_SUPPORT_RUN_RUN_TILES_H

#include "tests/support/run/run_whole.h"

/* Clamped rectangle of every node needed for rectangle `tile` of node `split`; need: n_nodes. Nodes
 * that are not spatial are needed whole. */
void test_back_regions(const struct rfx_graph *graph, int split, struct rfx_rect tile,
                       struct rfx_rect *need);

/* The whole output of `split` (NHWC, out.elems floats) computed in rows x cols tiles. */
void test_run_tiles(const struct test_prepared *prepared, const float *input_nhwc, int split,
                    int64_t rows, int64_t cols, float *out);
#endif
