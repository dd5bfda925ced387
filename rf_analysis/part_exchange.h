/* How many bytes the shares of a result would exchange if nothing were computed twice: every share
 * would compute its rows of every map and fetch the rows that windows reach beyond them.
 *
 * No run works that way: shares compute their halos themselves (part_graph.h). These numbers are
 * for comparison. Rows of the image are read, not fetched; the results of global operations are in
 * states, which are merged between rounds in both cases. */
#ifndef RFX_RF_ANALYSIS_PART_EXCHANGE_H
#define RFX_RF_ANALYSIS_PART_EXCHANGE_H

#include "rf_analysis/part_ends.h"

/* The halo of one map. */
struct rfx_part_halo {
    int64_t rows; /* rows that the share fetches */
    size_t bytes; /* bytes of those rows */
    int shares;   /* number of shares that own some of those rows */
};

struct rfx_part_exchange {
    uint64_t macs; /* of the share's rows of all maps, each computed once */
    size_t bytes;  /* bytes of all halos */
    int maps;      /* maps of which the share fetches rows, one after the other */
    int messages;  /* one per share that owns rows of such a map */
};

/* Computes the exchange of share `index` of `count` of output k (or RFX_PART_ALL) of a finished
 * graph without groups. halos[n_nodes] (may be NULL) receives the halos of the maps. O(edges +
 * messages + empty shares). Test: test_part_exchange. */
RFX_NODISCARD enum rfx_status rfx_part_exchange_of(const struct rfx_graph *base, int k,
                                                   int64_t index, int64_t count,
                                                   struct rfx_part_halo *halos,
                                                   struct rfx_part_exchange *out,
                                                   struct rfx_error *err);
#endif
