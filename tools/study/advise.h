/* What a trade-off curve says about a network: the cases and guidelines of paper 003, section 3.3.
 *
 * Invariants: 1. every verdict is kept with the figures that it was made from; 2. a point's case
 * compares its peak with the untiled one and with the aggregation point before it. */
#ifndef RFX_TOOLS_STUDY_ADVISE_H
#define RFX_TOOLS_STUDY_ADVISE_H

#include "tools/study/curve.h"

/* What happens to the memory ratio at an aggregation point (section 3.3, numbered as there). */
enum rfx_case {
    RFX_CASE_NONE = 1,  /* the ratio is 1: the cut lies before the peak of the untiled run */
    RFX_CASE_SAME = 2,  /* unchanged from the point before: the same layer of the tail decides */
    RFX_CASE_RISES = 3, /* up: the cut crosses the layer that decided before */
    RFX_CASE_FALLS = 4, /* down: the tiles of the head need more than the tail */
};

/* One line about a case. */
const char *rfx_case_text(enum rfx_case kind);

/* Limits of the three guidelines; the paper names directions, not figures. */
#define RFX_ADVICE_EARLY_MACS_RATIO                                                      \
    1.25                         /* crossing the peak should cost no more MACs than this \
                                  */
#define RFX_ADVICE_BLOCK_CONVS 3 /* convolutions in a row between two points: bottleneck */

struct rfx_advice {
    struct rfx_memory *mem;
    const struct rfx_curve *curve; /* borrowed */
    enum rfx_case *cases;          /* per point of the curve */
    bool late_peak;                /* guideline 1 broken: the peak is not in the low layers */
    int crossing;                  /* first point past the untiled peak; -1: none */
    double macs_share;             /* of the untiled MACs, up to and with the peak layer */
    bool weights_dominate;         /* guideline 2 broken: parameters outweigh activations */
    size_t activation_bytes;       /* of the untiled peak */
    bool long_blocks;              /* guideline 3 broken: too many convolutions without a point */
    int block_convs;               /* longest path of convolutions between two points */
    int block_first, block_last;   /* the points (nodes) around it; first -1: from the image */
    int barrier;       /* op that needs its whole input, with convolutions after it; -1: none */
    int barrier_convs; /* how many convolutions no tile can reach */
};

/* Judges a curve. Free with rfx_advice_free; curve and graph must outlive it. O(nodes). Pinned by
 * tests/unit/tools/study/test_advise.c. */
RFX_NODISCARD enum rfx_status rfx_advice_create(const struct rfx_curve *curve,
                                                struct rfx_advice **out, struct rfx_error *err);

void rfx_advice_free(struct rfx_advice *advice);

/* The cheapest point of the Pareto front (to be calculated) within a number of bytes for weights
 * and activations; NULL: none. */
const struct rfx_curve_point *rfx_advice_within(const struct rfx_curve *curve, size_t bytes);
#endif
