/* Equations 1 to 4 of paper 003. */
#include "tools/study/formulas.h"

#include <stddef.h>

static bool multiply(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t v;
    if (__builtin_mul_overflow(a, b, &v)) return false;
    *out = v;
    return true;
}

static bool add(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t v;
    if (__builtin_add_overflow(a, b, &v)) return false;
    *out = v;
    return true;
}

/* Computes H W C. Returns false when a size is negative or the product overflows. */
static bool map_elems(const struct rfx_formula_map *map, uint64_t *out) {
    uint64_t v;
    if (map->h < 0 || map->w < 0 || map->c < 0) return false;
    return multiply((uint64_t)map->h, (uint64_t)map->w, &v) && multiply(v, (uint64_t)map->c, out);
}

/* Computes the largest memory of a module of the block: input and result, and, if `residual`, the
 * input of the block. Returns false when the block is not valid or a sum overflows. */
static bool block_peak(const struct rfx_formula_block *block, bool residual, uint64_t *out) {
    uint64_t input, in, result;
    uint64_t peak = 0;
    if (block->m < 1 || !map_elems(&block->maps[0], &input)) return false;
    for (int j = 0; j < block->m; j++) {
        uint64_t kept = residual && j > 0 ? input : 0;
        if (!map_elems(&block->maps[j], &in) || !map_elems(&block->maps[j + 1], &result))
            return false;
        if (!add(in, result, &in) || !add(in, kept, &in)) return false;
        if (in > peak) peak = in;
    }
    *out = peak;
    return true;
}

static bool net_peak(const struct rfx_formula_net *net, bool residual, uint64_t *elems) {
    uint64_t largest = 0;
    for (int i = 0; i < net->n; i++) {
        uint64_t peak;
        if (!block_peak(&net->blocks[i], residual, &peak)) return false;
        if (peak > largest) largest = peak;
    }
    return add(largest, net->params, elems);
}

bool rfx_formula_peak_sequential(const struct rfx_formula_net *net, uint64_t *elems) {
    return net_peak(net, false, elems);
}

bool rfx_formula_peak_residual(const struct rfx_formula_net *net, uint64_t *elems) {
    return net_peak(net, true, elems);
}

/* Computes the sum over the modules of a block of H W C_in (C_out / groups) k k. */
static bool block_macs(const struct rfx_formula_block *block, uint64_t *out) {
    uint64_t sum = 0;
    for (int j = 0; j < block->m; j++) {
        int64_t groups = block->groups != NULL ? block->groups[j] : 1;
        int64_t oc = block->maps[j + 1].c;
        uint64_t v;
        if (groups < 1 || oc % groups != 0 || block->kernels[j] < 1) return false;
        uint64_t k = (uint64_t)block->kernels[j];
        if (!map_elems(&block->maps[j], &v) || !multiply(v, (uint64_t)(oc / groups), &v) ||
            !multiply(v, k, &v) || !multiply(v, k, &v) || !add(sum, v, &sum))
            return false;
    }
    *out = sum;
    return true;
}

static bool sum_macs(const struct rfx_formula_net *net, int first, int end, uint64_t *out) {
    uint64_t sum = 0;
    for (int i = first; i < end; i++) {
        uint64_t macs;
        if (!block_macs(&net->blocks[i], &macs) || !add(sum, macs, &sum)) return false;
    }
    *out = sum;
    return true;
}

bool rfx_formula_macs(const struct rfx_formula_net *whole, const struct rfx_formula_net *tile,
                      int l, uint64_t t, uint64_t *macs) {
    uint64_t head, tail;
    if (l < 0 || l > whole->n || l > tile->n) return false;
    return sum_macs(tile, 0, l, &head) && multiply(head, t, &head) &&
           sum_macs(whole, l, whole->n, &tail) && add(head, tail, macs);
}
