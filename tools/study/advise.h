/* What a trade-off curve shows about a network: the cases and guidelines of paper 003, section 3.3.
 *
 * Every verdict is stored with the figures that it is based on. The case of a point follows from
 * comparing its peak with the untiled peak and with the peak of the previous aggregation point. */
#ifndef RFX_TOOLS_STUDY_ADVISE_H
#define RFX_TOOLS_STUDY_ADVISE_H

#include "tools/study/curve.h"

/* How the memory ratio changes at an aggregation point (numbered as in section 3.3). */
enum rfx_case {
    RFX_CASE_NONE = 1, /* the ratio is 1: the split lies before the peak of the untiled run */
    RFX_CASE_SAME =
        2, /* as at the previous point: the same layer of the tail determines the peak */
    RFX_CASE_RISES = 3, /* larger: the split lies after the layer that determined the peak before */
    RFX_CASE_FALLS = 4, /* smaller: the tiles of the head need more memory than the tail */
};

/* Returns one line that explains a case. */
const char *rfx_case_text(enum rfx_case kind);

/* Limits for the three guidelines. The paper gives directions but no figures. Tiling beyond the
 * peak layer should not multiply the MACs by more than EARLY_MACS_RATIO; a block of BLOCK_CONVS
 * convolutions without an aggregation point between them is too long. */
#define RFX_ADVICE_EARLY_MACS_RATIO 1.25
#define RFX_ADVICE_BLOCK_CONVS 3

struct rfx_advice {
    struct rfx_memory *mem;
    const struct rfx_curve *curve; /* borrowed */
    enum rfx_case *cases;          /* per point of the curve */
    bool late_peak;          /* guideline 1 does not hold: the peak is not in the first layers */
    int crossing;            /* first point after the peak of the untiled run; -1: none */
    double macs_share;       /* share of the untiled MACs up to and including the peak layer */
    bool weights_dominate;   /* guideline 2 does not hold: parameters need more memory than
                                activations */
    size_t activation_bytes; /* activations at the untiled peak */
    bool long_blocks; /* guideline 3 does not hold: too many convolutions without a point between
                         them */
    int block_convs;  /* longest path of convolutions between two points */
    int block_first,
        block_last; /* the points (nodes) at its ends; block_first -1: it starts at the image */
    int barrier;    /* operator that needs its whole input, with convolutions after it; -1: none */
    int barrier_convs; /* number of convolutions after it, which cannot be tiled */
};

/* Applies the guidelines to a curve. The curve and the graph must outlive the result. Free with
 * rfx_advice_free. Takes O(nodes). */
RFX_NODISCARD enum rfx_status rfx_advice_create(const struct rfx_curve *curve,
                                                struct rfx_advice **out, struct rfx_error *err);

void rfx_advice_free(struct rfx_advice *advice);

/* Returns the point of the Pareto front with the fewest MACs whose weights and activations fit into
 * `bytes`; NULL: none. The curve must have been created with `pareto`. */
const struct rfx_curve_point *rfx_advice_within(const struct rfx_curve *curve, size_t bytes);
#endif
