/* What the equations of paper 003 (rf_analysis/formulas.h) say of a network and of the points of
 * its curve, to be held against the exact model of curve.h.
 *
 * The equations speak of networks of convolutions with square kernels, one after the other, with
 * pooling between them and Adds around runs of them. A module is such a convolution; a run that an
 * Add joins with its own input is a residual block, every other convolution a block of its own
 * (which changes no maximum and no sum). Other layers count nothing. As the paper has it, memory is
 * that of equation 1, or 3 where there are residual blocks, for the head with the sizes of a tile
 * and for the tail with whole maps, both with all parameters; MACs are those of equations 2 and 4,
 * every tile an inner one: its whole halo is counted, also outside of the image. */
#ifndef RFX_TOOLS_STUDY_CURVE_FORMULAS_H
#define RFX_TOOLS_STUDY_CURVE_FORMULAS_H

#include "tools/study/curve.h"
#include "tools/study/formulas.h"

struct rfx_curve_formulas {
    struct rfx_memory *mem;
    const struct rfx_curve *curve; /* borrowed */
    bool fit;                      /* the equations speak of this network */
    bool residual;                 /* equations 3 and 4, else 1 and 2 */
    struct rfx_formula_net whole,
        tile;  /* the same blocks; tile: sizes of the point asked for last */
    int *last; /* per block: the node after which it is complete; rising */

    /* tables behind the nets: per module, blocks one after the other */
    int n_modules;
    int *module;   /* its node */
    int *block_of; /* per node: its block, or -1 */
    int64_t *kernels, *groups;
    struct rfx_formula_block *blocks; /* of whole, then of tile */
    struct rfx_formula_map *maps; /* of whole, then of tile: a block has one more than modules */
    struct rfx_range *need;       /* 2 axes x nodes: what a tile needs */
};

/* What the equations give for one point; bytes of float32. */
struct rfx_curve_figures {
    uint64_t macs, macs_untiled;
    size_t peak_bytes; /* the larger of the next two */
    size_t head_bytes, tail_bytes;
};

/* Finds the blocks of a curve's network. The curve must outlive it. RFX_STATUS_OUT_OF_MEMORY. Free
 * with rfx_curve_formulas_free. O(nodes^2). Pinned by
 * tests/unit/tools/study/test_curve_formulas.c. */
RFX_NODISCARD enum rfx_status rfx_curve_formulas_create(const struct rfx_curve *curve,
                                                        struct rfx_curve_formulas **out,
                                                        struct rfx_error *err);
void rfx_curve_formulas_free(struct rfx_curve_formulas *formulas);

/* The figures of a point of the curve (split -1: untiled). false: the equations do not speak of the
 * network, or a figure does not fit. */
bool rfx_curve_formulas_point(struct rfx_curve_formulas *formulas,
                              const struct rfx_curve_point *point,
                              struct rfx_curve_figures *figures);
#endif
