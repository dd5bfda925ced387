/* What an output is made of when shares of it are computed: maps, of which a share is some rows.
 *
 * These are the ends of the graph, and more: an output that only moves the pixels of maps
 * (reshaped, concatenated) is made of those maps for shares, though a run of the whole computes it
 * as one tensor. Also here: the maps through which everything passes that the outputs read of the
 * image. Between two of them a section of the network can run by itself, from rows that somebody
 * has. */
#ifndef RFX_RF_ANALYSIS_PART_ENDS_H
#define RFX_RF_ANALYSIS_PART_ENDS_H

#include "layers/graph/graph.h"

/* In place of an output's number: all outputs of the network, with the ends of each. */
#define RFX_PART_ALL (-1)

/* Return the number of ends of output k (or of RFX_PART_ALL), and the i-th of them. O(ends). */
int rfx_part_ends(const struct rfx_graph *base, int k);
struct rfx_end rfx_part_end(const struct rfx_graph *base, int k, int i);

/* Returns share `index` of `count` of the rows of a node's map, with all its columns. Shares are as
 * equal as possible, the first ones longer. May be empty. */
struct rfx_rect rfx_part_map_rows(const struct rfx_graph *base, int map, int64_t index,
                                  int64_t count);

/* Returns what share `index` of `count` of a result has of an end: some rows of a map, as above;
 * anything else belongs to share 0. May be empty, but never for share 0. */
struct rfx_rect rfx_part_end_rows(const struct rfx_graph *base, const struct rfx_end *end,
                                  int64_t index, int64_t count);

/* The same for end e of RFX_PART_ALL. */
struct rfx_rect rfx_part_end_share(const struct rfx_graph *base, int e, int64_t index,
                                   int64_t count);

/* Returns the i-th of those ends of which the share has some: output i of the share's graph. */
struct rfx_end rfx_part_share_end(const struct rfx_graph *base, int k, int64_t index, int64_t count,
                                  int i);

/* Lists the nodes of a finished graph, or of a shard, that make such maps: fills cuts[n_nodes],
 * from the image to the outputs, and returns their number. Neither the image nor an output is a
 * cut; what depends on constants alone does not count. O(edges). Test: test_sections. */
int rfx_part_cuts_list(const struct rfx_graph *graph, int *cuts);
#endif
