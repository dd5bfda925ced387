/* What the shares of a result would have to tell each other if nothing were made again: every share
 * makes its rows of every map and fetches the rows that windows reach beyond them.
 *
 * Nothing runs that way here, where shares make their halos themselves (part_graph.h): these are
 * the numbers that it is to be held against. Rows of the image are read, not fetched; what global
 * operations find is in their states, which are merged as they are between rounds. */
#ifndef RFX_RF_ANALYSIS_PART_EXCHANGE_H
#define RFX_RF_ANALYSIS_PART_EXCHANGE_H

#include "rf_analysis/part_ends.h"

/* Of one map. */
struct rfx_part_halo {
    int64_t rows; /* that the share fetches */
    size_t bytes; /* of them */
    int shares;   /* that have some of them */
};

struct rfx_part_exchange {
    uint64_t macs; /* of the share's rows of all maps, each made once */
    size_t bytes;  /* of all halos */
    int maps;      /* of which the share fetches rows, one after the other */
    int messages;  /* one from each share that has rows of such a map */
};

/* Share `index` of `count` of output k of a finished graph without groups, or of RFX_PART_ALL;
 * halos[n_nodes] (NULL: not asked for) gets those of the maps. O(edges + messages + empty shares).
 * Pinned by test_part_exchange. */
RFX_NODISCARD enum rfx_status rfx_part_exchange_of(const struct rfx_graph *base, int k,
                                                   int64_t index, int64_t count,
                                                   struct rfx_part_halo *halos,
                                                   struct rfx_part_exchange *out,
                                                   struct rfx_error *err);
#endif
