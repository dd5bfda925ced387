/* TODO */
#ifndef RFX_RF_ANALYSIS_PART_ENDS_H
#define RFX_RF_ANALYSIS_PART_ENDS_H

#include "layers/graph/graph.h"

/* Instead of an output's number: all outputs of the network together, the ends of each. */
#define RFX_PART_ALL (-1)

/* How many ends output k has, or RFX_PART_ALL, and number i of them. O(ends). */
int rfx_part_ends(const struct rfx_graph *base, int k);
struct rfx_end rfx_part_end(const struct rfx_graph *base, int k, int i);

/* Share `index` of `count` of the rows of a node's map, all of its columns: as equal as they can
 * be, the first ones longer. May be empty. */
struct rfx_rect rfx_part_map_rows(const struct rfx_graph *base, int map, int64_t index,
                                  int64_t count);

/* What share `index` of `count` of a result has of an end: of a map of rows some, as above; what is
 * no map belongs to share 0. May be empty, that of share 0 never. */
struct rfx_rect rfx_part_end_rows(const struct rfx_graph *base, const struct rfx_end *end,
                                  int64_t index, int64_t count);

/* The same of end e of RFX_PART_ALL. */
struct rfx_rect rfx_part_end_share(const struct rfx_graph *base, int e, int64_t index,
                                   int64_t count);

/* Number i of those ends of which the share has some: output i of the share's graph. */
struct rfx_end rfx_part_share_end(const struct rfx_graph *base, int k, int64_t index, int64_t count,
                                  int i);

/* Writes the nodes of a finished graph, or of a part, that make such maps into cuts[n_nodes], from
 * the image to the outputs, and returns their number. Neither the image nor an output is one; what
 * comes from constants alone does not count. O(edges). Pinned by test_sections. */
int rfx_part_cuts_list(const struct rfx_graph *graph, int *cuts);
#endif
