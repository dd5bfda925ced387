/* The closed formulas of paper 003 for networks of blocks, as the paper states them.
 *
 * Block i has m modules (convolution, batch norm, ReLU). maps[j] is the input of module j + 1 and
 * maps[m] the output of the block. Between blocks there may be max pooling, which the formulas do
 * not count.
 *
 * The exact model (tools/study/curve.h) counts more: the halo (here only if the caller's tile sizes
 * include it), smaller tiles at the border, the stitched map while the head runs, and Adds other
 * than the block's own. tools/study/curve_formulas.h applies the formulas to a graph. */
#ifndef RFX_TOOLS_STUDY_FORMULAS_H
#define RFX_TOOLS_STUDY_FORMULAS_H

#include <stdbool.h>
#include <stdint.h>

struct rfx_formula_map { /* H, W, C of one activation tensor */
    int64_t h, w, c;
};

struct rfx_formula_block {
    int m;                              /* modules, >= 1 */
    const struct rfx_formula_map *maps; /* m + 1 */
    const int64_t *kernels;             /* m: k of each module */
    const int64_t *groups;              /* m; NULL: 1 everywhere */
};

struct rfx_formula_net {
    int n; /* blocks */
    const struct rfx_formula_block *blocks;
    uint64_t params; /* R, elements */
};

/* Equation 1, peak memory of a sequential network in elements: M = max over i, j of (H_i^j W_i^j
 * C_i^j + H_i^{j+1} W_i^{j+1} C_i^{j+1}) + R. false: the result overflows. */
bool rfx_formula_peak_sequential(const struct rfx_formula_net *net, uint64_t *elems);

/* Equation 3, peak memory of a residual network in elements: as equation 1, with the input of the
 * block live until its Add: M_r = max over i of (H_i^1 W_i^1 C_i^1 + max over j of the other maps
 * of module j) + R. In the first module that input is the module's own input and counts once.
 * false: the result overflows. */
bool rfx_formula_peak_residual(const struct rfx_formula_net *net, uint64_t *elems);

/* Equations 2 and 4 (the same for sequential and residual networks), MACs with t tiles and
 * aggregation after block l: Q = t * sum over i = 1 .. l and j of H W C^2 k^2 of the tile + sum
 * over i = l + 1 .. n of the same of the whole map, with C_in C_out / groups for C^2. `tile` has
 * the first l blocks with the sizes of a tile (with halo), `whole` has all n blocks. false: l is
 * not in 0 .. n, or the result overflows. */
bool rfx_formula_macs(const struct rfx_formula_net *whole, const struct rfx_formula_net *tile,
                      int l, uint64_t t, uint64_t *macs);
#endif
