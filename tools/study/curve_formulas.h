/* The equations of paper 003 (tools/study/formulas.h) for a network and the points of its curve, to
 * compare with the exact model of curve.h.
 *
 * The equations describe a chain of convolutions with square kernels, with pooling between them and
 * residual Adds around some of them. A module is such a convolution. Modules whose result is added
 * to their input are a residual block; every other convolution is a block by itself (which changes
 * no maximum and no sum). Other layers are not counted.
 *
 * As in the paper, memory is equation 1, or 3 if there are residual blocks: for the head with the
 * sizes of a tile, for the tail with whole maps, both with all parameters. MACs are equations 2
 * and 4. Every tile counts as an inner one, with its full halo even where that lies outside the
 * image. */
#ifndef RFX_TOOLS_STUDY_CURVE_FORMULAS_H
#define RFX_TOOLS_STUDY_CURVE_FORMULAS_H

#include "tools/study/curve.h"
#include "tools/study/formulas.h"

struct rfx_curve_formulas {
    struct rfx_memory *mem;
    const struct rfx_curve *curve; /* borrowed */
    bool fit;                      /* the equations describe this network */
    bool residual;                 /* use equations 3 and 4, otherwise 1 and 2 */
    struct rfx_formula_net whole,
        tile;  /* the same blocks; tile: with the sizes of the last point */
    int *last; /* per block: its last node; increasing */

    /* tables of the nets: per module, in the order of blocks */
    int n_modules;
    int *module;   /* its node */
    int *block_of; /* per node: its block, or -1 */
    int64_t *kernels, *groups;
    struct rfx_formula_block *blocks; /* of `whole`, then of `tile` */
    struct rfx_formula_map
        *maps;              /* of `whole`, then of `tile`: a block has one more map than modules */
    struct rfx_range *need; /* 2 axes x nodes: the range that a tile needs */
};

/* Results of the equations for one point; bytes of float32. */
struct rfx_curve_figures {
    uint64_t macs, macs_untiled;
    size_t peak_bytes; /* the larger of head_bytes and tail_bytes */
    size_t head_bytes, tail_bytes;
};

/* Finds the blocks of a curve's network. The curve must outlive the result. OUT_OF_MEMORY. Free
 * with rfx_curve_formulas_free. Takes O(nodes^2). */
RFX_NODISCARD enum rfx_status rfx_curve_formulas_create(const struct rfx_curve *curve,
                                                        struct rfx_curve_formulas **out,
                                                        struct rfx_error *err);
void rfx_curve_formulas_free(struct rfx_curve_formulas *formulas);

/* Evaluates the equations for a point of the curve (split -1: untiled). false: they do not describe
 * the network, or a figure overflows. */
bool rfx_curve_formulas_point(struct rfx_curve_formulas *formulas,
                              const struct rfx_curve_point *point,
                              struct rfx_curve_figures *figures);
#endif
