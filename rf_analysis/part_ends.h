/* The ends of an output: the maps whose rows are divided among the shares of the output.
 *
 * An output has the ends of the graph. An output that only moves the pixels of maps (reshaped,
 * concatenated) has those maps as its ends, so that shares can be cut from their rows; a run of the
 * whole network computes such an output as one tensor. Also here: cuts, which are maps through
 * which everything passes that the outputs read of the image. The section of the network between
 * two cuts can run by itself, from rows of the first cut. */
#ifndef RFX_RF_ANALYSIS_PART_ENDS_H
#define RFX_RF_ANALYSIS_PART_ENDS_H

#include "layers/graph/graph.h"

/* In place of an output's number: the ends of all outputs, one output after the other. */
#define RFX_PART_ALL (-1)

/* Return the number of ends of output k (or of RFX_PART_ALL), and the i-th of them. O(ends). */
int rfx_part_ends(const struct rfx_graph *base, int k);
struct rfx_end rfx_part_end(const struct rfx_graph *base, int k, int i);

/* Returns share `index` of `count` of the rows of a node's map, with all its columns. Shares are as
 * equal as possible, the first ones longer. May be empty. */
struct rfx_rect rfx_part_map_rows(const struct rfx_graph *base, int map, int64_t index,
                                  int64_t count);

/* Returns the rectangle of an end that belongs to share `index` of `count`: rows of a map, as
 * above. An end that is not a map belongs to share 0 as a whole. May be empty, but never for share
 * 0. */
struct rfx_rect rfx_part_end_rows(const struct rfx_graph *base, const struct rfx_end *end,
                                  int64_t index, int64_t count);

/* Returns the rectangle of end e of RFX_PART_ALL that belongs to a share. */
struct rfx_rect rfx_part_end_share(const struct rfx_graph *base, int e, int64_t index,
                                   int64_t count);

/* Returns the i-th of the ends of which the share has a rectangle: output i of the share's graph.
 */
struct rfx_end rfx_part_share_end(const struct rfx_graph *base, int k, int64_t index, int64_t count,
                                  int i);

/* Lists the nodes whose maps are cuts of a finished graph or of a shard: fills cuts[n_nodes], from
 * the image to the outputs, and returns their number. Neither the image nor an output is a cut, nor
 * a map of another type than float32: the next section could not read it as its image. What depends
 * on constants alone does not count. O(edges). Test: test_sections. */
int rfx_part_cuts_list(const struct rfx_graph *graph, int *cuts);
#endif
