/* Rows that windows need beyond a share, map by map; see part_exchange.h. */
#include "rf_analysis/part_exchange.h"

#include "layers/graph/op.h"
#include "rf_analysis/regions.h"

struct share {
    const struct rfx_graph *base;
    int64_t index, count;
};

/* The need of a share for one map. */
struct need {
    bool made; /* the output depends on it */
    struct rfx_range rows;
};

static struct rfx_range rows_of(const struct share *share, int node, int64_t index) {
    struct rfx_end end = {.node = node};
    return rfx_rect_row_range(rfx_part_end_rows(share->base, &end, index, share->count));
}

/* Returns whether shares own rows of the node's map. They own no rows of the image, and a map of
 * one pixel, as a global pool computes it, has no rows to share. */
static bool has_rows(const struct rfx_node *node) {
    return node->out.layout == RFX_LAYOUT_NHWC && !rfx_node_is_constant(node) &&
           !rfx_node_is_input(node) && node->out.h * node->out.w > 1;
}

/* Marks the inputs of node i, and the rows of them that the share's rows of node i need. */
static void add_inputs(const struct share *share, int i, struct need *needs) {
    const struct rfx_node *node = &share->base->nodes[i];
    struct rfx_range own = rows_of(share, i, share->index);
    bool local = node->out.layout == RFX_LAYOUT_NHWC && rfx_node_is_local(node);
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_node *in = &share->base->nodes[node->in[k]];
        struct need *need = &needs[node->in[k]];
        need->made = true;
        if (!local || !has_rows(in) || own.lo >= own.hi) continue;
        struct rfx_range rows = rfx_input_range(share->base, node, k, RFX_AXIS_ROWS, own);
        rows.lo = rfx_max_i64(rows.lo, 0);
        rows.hi = rfx_min_i64(rows.hi, in->out.h);
        if (rows.lo < rows.hi) need->rows = rfx_range_union(need->rows, rows);
    }
}

/* Counts the shares that own some of the rows. The last shares are empty where a map has fewer rows
 * than there are shares. */
static int count_owners(const struct share *share, int node, struct rfx_range rows) {
    int owners = 0;
    for (int64_t s = share->index - 1; s >= 0; s--) {
        struct rfx_range own = rows_of(share, node, s);
        if (own.lo >= own.hi) continue;
        if (own.hi <= rows.lo) break;
        owners += own.lo < rows.hi;
    }
    for (int64_t s = share->index + 1; s < share->count; s++) {
        struct rfx_range own = rows_of(share, node, s);
        if (own.lo >= own.hi || own.lo >= rows.hi) break;
        owners += own.hi > rows.lo;
    }
    return owners;
}

static struct rfx_part_halo halo_of(const struct share *share, int i, struct rfx_range need) {
    const struct rfx_node *node = &share->base->nodes[i];
    struct rfx_range own = rows_of(share, i, share->index);
    struct rfx_part_halo halo = {.rows = 0};
    int64_t both = rfx_min_i64(own.hi, need.hi) - rfx_max_i64(own.lo, need.lo);
    halo.rows = rfx_range_size(need) - rfx_max_i64(both, 0);
    if (halo.rows == 0) return halo;
    halo.bytes = rfx_tensor_pixel_bytes(&node->out, halo.rows * node->out.w);
    halo.shares = count_owners(share, i, need);
    return halo;
}

enum rfx_status rfx_part_exchange_of(const struct rfx_graph *base, int k, int64_t index,
                                     int64_t count, struct rfx_part_halo *halos,
                                     struct rfx_part_exchange *out, struct rfx_error *err) {
    struct share share = {base, index, count};
    struct rfx_part_exchange sum = {.macs = 0};
    size_t n = (size_t)base->n_nodes;
    struct need *needs = rfx_memory_calloc(base->mem, n, sizeof *needs);
    if (needs == NULL) return rfx_memory_fail(base->mem, "exchange", n * sizeof *needs, err);
    for (int e = 0; e < rfx_part_ends(base, k); e++)
        needs[rfx_part_end(base, k, e).node].made = true;
    for (int i = base->n_nodes - 1; i >= 0; i--) {
        struct rfx_end end = {.node = i};
        struct rfx_part_halo halo = {.rows = 0};
        if (needs[i].made) {
            add_inputs(&share, i, needs);
            if (has_rows(&base->nodes[i])) halo = halo_of(&share, i, needs[i].rows);
            struct rfx_rect own = rfx_part_end_rows(base, &end, index, count);
            if (!rfx_rect_is_empty(own)) sum.macs += rfx_op_macs(base, &base->nodes[i], own);
        }
        sum.bytes += halo.bytes;
        sum.maps += halo.rows > 0;
        sum.messages += halo.shares;
        if (halos != NULL) halos[i] = halo;
    }
    rfx_memory_release(base->mem, needs);
    *out = sum;
    return RFX_OK;
}
