/* Maps through which all goes that the outputs read of the image: between two of them a part of the
 * network can be run by itself, from rows that somebody has. */
#ifndef RFX_RF_ANALYSIS_PART_CUTS_H
#define RFX_RF_ANALYSIS_PART_CUTS_H

#include "layers/graph/graph.h"

/* Writes the nodes of a finished graph, or of a part, that make such maps into cuts[n_nodes], from
 * the image to the outputs, and returns their number. Neither the image nor an output is one; what
 * comes from constants alone does not count. O(edges). Pinned by test_sections. */
int rfx_part_cuts_list(const struct rfx_graph *graph, int *cuts);
#endif
