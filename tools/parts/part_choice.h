/* Which part of which output is asked for: --part I/N, --part-rect Y0,X0,Y1,X1, --part-output. */
#ifndef RFX_TOOLS_PARTS_PART_CHOICE_H
#define RFX_TOOLS_PARTS_PART_CHOICE_H

#include "layers/graph/graph.h"
#include "tools/cli/options.h"
#include "tools/parts/files/part_cells.h"

/* "I/N" with 1 <= I <= N. */
bool rfx_part_parse_share(const char *text, int64_t *index, int64_t *count);

/* The rows of share `index` (from 1) of `count`: as equal as they can be, the first ones longer. */
struct rfx_rect rfx_part_share(const struct rfx_tensor *map, int64_t index, int64_t count);

/* The output that parts are of: the one that --part-output names, or the only one. Prints why not
 * and returns an exit code: it is no map, or a global operation comes before it. */
RFX_NODISCARD int rfx_part_choose_output(const struct rfx_graph *graph,
                                         const struct rfx_cli_run_options *options, int *k);

/* And the rectangle that the options ask for. */
RFX_NODISCARD int rfx_part_choose_rect(const struct rfx_graph *graph,
                                       const struct rfx_cli_run_options *options, int k,
                                       struct rfx_rect *rect);

/* The cells that share `index` (from 0) of `count` has of an output that is joined of maps: rows of
 * each of them. false: it is none, or has too many maps. */
bool rfx_part_share_cells(const struct rfx_graph *graph, int k, int64_t index, int64_t count,
                          struct rfx_part_cells *cells);

/* The most parts that such an output has: the rows of its tallest map. */
int64_t rfx_part_most_shares(const struct rfx_graph *graph, int k);

/* And the share of it that the options ask for, which has cells. Prints why not. */
RFX_NODISCARD int rfx_part_choose_cells(const struct rfx_graph *graph,
                                        const struct rfx_cli_run_options *options, int k,
                                        int64_t *index, int64_t *count,
                                        struct rfx_part_cells *cells);
#endif
