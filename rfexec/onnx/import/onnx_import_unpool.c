/* Indices of MaxPool: for MaxUnpool by comparing the pooled map with its maxima again, so that none
 * are there which count over a whole map; for others such numbers. */
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

enum rfx_status rfx_onnx_keep_indices(struct rfx_onnx_import *ctx, int in, int out,
                                      const struct rfx_pool_attr *attr) {
    struct rfx_onnx_indices *kept = rfx_arena_alloc(ctx->arena, 1, sizeof *kept);
    if (kept == NULL) return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory");
    *kept = (struct rfx_onnx_indices){.name = ctx->node->out[1],
                                      .pool = ctx->node_name,
                                      .in = in,
                                      .out = out,
                                      .rank = rfx_onnx_shape(ctx, rfx_onnx_in(ctx, 0))->rank,
                                      .attr = *attr,
                                      .next = ctx->indices};
    kept->attr.column_major = rfx_onnx_attr_flag(ctx, "storage_order", false);
    ctx->indices = kept;
    return RFX_OK;
}

const struct rfx_onnx_indices *rfx_onnx_indices_of(const struct rfx_onnx_import *ctx,
                                                   const char *name) {
    const struct rfx_onnx_indices *i = ctx->indices;
    while (i != NULL && strcmp(i->name, name) != 0) i = i->next;
    return i;
}

enum rfx_status rfx_onnx_make_indices(struct rfx_onnx_import *ctx,
                                      const struct rfx_onnx_indices *indices) {
    static const struct rfx_onnx_node pool = {.op = "MaxPool"};
    const struct rfx_onnx_node *node = ctx->node;
    const char *node_name = ctx->node_name;
    struct rfx_node place = {.op = RFX_OP_POOL_PLACE, .attr.pool = indices->attr};
    struct rfx_onnx_operand made = {-1, NULL};
    if (rfx_onnx_names_find(ctx->values, indices->name) != NULL) return RFX_OK;
    ctx->node = &pool;
    ctx->node_name = indices->pool;
    if (indices->rank != 4 || ctx->batch > 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "its indices '%.60s' are supported of images (1, c, h, w) alone, "
                               "and for MaxUnpool",
                               indices->name);
    enum rfx_status status = rfx_onnx_emit(ctx, &place, "/indices", &indices->in, 1, &made.node);
    ctx->node = node;
    ctx->node_name = node_name;
    if (status != RFX_OK || rfx_onnx_names_put(ctx->values, indices->name, made)) return status;
    return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for the conversion");
}

#define MOST_GIVEN ((int64_t)1 << 24) /* of kernels, strides, pads: no real network has more */

/* Rows and columns that a MaxUnpool makes of h x w. */
static enum rfx_status unpooled_size(struct rfx_onnx_import *ctx, int64_t h, int64_t w,
                                     int64_t *size) {
    int64_t kernel[2] = {0, 0}, strides[2] = {1, 1}, pads[4] = {0}, count = 0;
    const int64_t *told = NULL;
    bool found = false;
    enum rfx_status status = rfx_onnx_attr_ints(ctx, "kernel_shape", 2, kernel);
    if (status == RFX_OK) status = rfx_onnx_attr_ints(ctx, "strides", 2, strides);
    if (status == RFX_OK) status = rfx_onnx_attr_ints(ctx, "pads", 4, pads);
    if (status == RFX_OK) status = rfx_onnx_list_ints(ctx, "", 2, &told, &count, &found);
    if (status != RFX_OK) return status;
    if (found && count != 4)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an output shape of rank %lld, not 4",
                               (long long)count);
    for (int i = 0; i < 2; i++) {
        const int64_t given[4] = {kernel[i], strides[i], pads[i], pads[i + 2]};
        for (int k = 0; k < 4; k++)
            if (given[k] < 0 || given[k] > MOST_GIVEN)
                return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "kernel, stride or pad of %lld",
                                       (long long)given[k]);
        int64_t end = ((i == 0 ? h : w) - 1) * given[1] + given[0] - given[2] - given[3];
        size[i] = found ? told[i + 2] : end;
    }
    return RFX_OK;
}

/* Where the values of window position t go: to where the map is its window's largest value, unless
 * a position before it was. A value is less than a largest one of NaN nowhere, so that this
 * window's value goes to its first position. *less: whether all positions before are less; -1 for t
 * = 0. */
static enum rfx_status placed_at(struct rfx_onnx_import *ctx, const struct rfx_onnx_indices *pool,
                                 int deep, int64_t t, int values, int *less, int *out) {
    int64_t c = rfx_onnx_tensor_of(ctx, values)->c;
    struct rfx_node select = {.op = RFX_OP_CHANNEL_SELECT};
    struct rfx_onnx_operand at = {-1, NULL}, x = {values, NULL}, before = {*less, NULL};
    const struct rfx_onnx_operand largest = {pool->out, NULL};
    select.attr.select.count = c;
    select.attr.select.map = rfx_arena_alloc(ctx->arena, (size_t)c, sizeof(int64_t));
    if (select.attr.select.map == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for %lld channels",
                               (long long)c);
    for (int64_t i = 0; i < c; i++) select.attr.select.map[i] = t * c + i;
    enum rfx_status status = rfx_onnx_emit(ctx, &select, "/position", &deep, 1, &at.node);
    if (status == RFX_OK)
        status = rfx_onnx_combine(ctx, RFX_BINARY_LESS, "/less", at, largest, &at.node);
    *less = at.node;
    if (status == RFX_OK && before.node >= 0)
        status = rfx_onnx_combine(ctx, RFX_BINARY_IF, "/left", before, x, &x.node);
    if (status == RFX_OK) status = rfx_onnx_combine(ctx, RFX_BINARY_UNLESS, "/placed", at, x, out);
    if (status == RFX_OK && before.node >= 0)
        status = rfx_onnx_combine(ctx, RFX_BINARY_AND, "/all_less", before, at, less);
    return status;
}

enum { MOST_UNPOOLED = 4 }; /* rows and columns of a window: as many times as many positions */

/* What this way of unpooling cannot do; h x w: the size that is asked for. */
static enum rfx_status refuse_unpool(struct rfx_onnx_import *ctx,
                                     const struct rfx_onnx_indices *pool, int values,
                                     const int64_t *size) {
    const struct rfx_pool_attr *a = &pool->attr;
    const struct rfx_tensor *in = rfx_onnx_tensor_of(ctx, pool->in), *x;
    const struct rfx_tensor *largest = rfx_onnx_tensor_of(ctx, pool->out);
    bool tiles = a->kh == a->kw && a->sh == a->kh && a->sw == a->kw && a->dh == 1 && a->dw == 1 &&
                 a->kh >= 1 && a->kh <= MOST_UNPOOLED;
    bool pads = a->pads.top != 0 || a->pads.left != 0 || a->pads.bottom != 0 || a->pads.right != 0;
    x = rfx_onnx_tensor_of(ctx, values);
    if (a->column_major) /* MaxUnpool takes all indices as by rows */
        return rfx_onnx_refuse(
            ctx, RFX_STATUS_UNSUPPORTED,
            "MaxPool '%.80s' has storage_order = 1: its indices count by columns", pool->pool);
    if (!tiles || pads || largest->h * a->kh > in->h || largest->w * a->kw > in->w)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "MaxPool '%.80s' is %lldx%lld, stride %lldx%lld: only windows side "
                               "by side, square, of 1 to %d, without pads are supported",
                               pool->pool, (long long)a->kh, (long long)a->kw, (long long)a->sh,
                               (long long)a->sw, MOST_UNPOOLED);
    if (x->c != largest->c || x->h != largest->h || x->w != largest->w)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                               "%lldx%lldx%lld values for %lldx%lldx%lld indices", (long long)x->c,
                               (long long)x->h, (long long)x->w, (long long)largest->c,
                               (long long)largest->h, (long long)largest->w);
    if (size[0] != in->h || size[1] != in->w)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "%lldx%lld pixels, but the indices count over the %lldx%lld of "
                               "MaxPool '%.80s'",
                               (long long)size[0], (long long)size[1], (long long)in->h,
                               (long long)in->w, pool->pool);
    return RFX_OK;
}

/* The positions of every window as channels, of each position the values that go there, and these
 * as pixels again. A row or column that no window has gets zeros. */
enum rfx_status rfx_onnx_max_unpool(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_indices *pool =
        ctx->node->n_in > 1 ? rfx_onnx_indices_of(ctx, ctx->node->in[1]) : NULL;
    int values, deep, less = -1, placed[MOST_UNPOOLED * MOST_UNPOOLED], out = -1;
    int64_t size[2] = {0, 0};
    if (pool == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "indices that are no MaxPool's");
    enum rfx_status status = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0), &values);
    if (status != RFX_OK) return status;
    const struct rfx_tensor in = *rfx_onnx_tensor_of(ctx, pool->in);
    const struct rfx_tensor largest = *rfx_onnx_tensor_of(ctx, pool->out);
    status = unpooled_size(ctx, largest.h, largest.w, size);
    if (status == RFX_OK) status = refuse_unpool(ctx, pool, values, size);
    if (status != RFX_OK) return status;
    int64_t k = pool->attr.kh, h = largest.h * k, w = largest.w * k;
    struct rfx_node crop = {.op = RFX_OP_CROP, .attr.crop = {0, 0, 1, 1, h, w}};
    struct rfx_node apart = {.op = RFX_OP_SPACE_TO_DEPTH, .attr.depth.block = k};
    struct rfx_node join = {.op = RFX_OP_CONCAT};
    struct rfx_node together = {.op = RFX_OP_DEPTH_TO_SPACE, .attr.depth.block = k};
    struct rfx_node pad = {.op = RFX_OP_PAD};
    bool rest = h != in.h || w != in.w;
    pad.attr.pad.pads = (struct rfx_pads){0, 0, in.h - h, in.w - w};
    deep = pool->in;
    if (rest) status = rfx_onnx_emit(ctx, &crop, "/windows", &deep, 1, &deep);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &apart, "/positions", &deep, 1, &deep);
    for (int64_t t = 0; status == RFX_OK && t < k * k; t++)
        status = placed_at(ctx, pool, deep, t, values, &less, &placed[t]);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &join, "/joined", placed, (int)(k * k), &out);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &together, "/pixels", &out, 1, &out);
    if (status == RFX_OK) /* what is chosen from adds -0 */
        status = rfx_onnx_scale_shift(ctx, rest ? "/zeros" : "", out, 1.0f, 0.0f, &out);
    if (status == RFX_OK && rest) status = rfx_onnx_emit(ctx, &pad, "", &out, 1, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}
