/* Conversion of reshapes, transposes, concatenation and whatever changes a tensor's form. */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

static enum rfx_status finish(struct rfx_onnx_import *ctx, enum rfx_status status, int out) {
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

static bool same_dims(const struct rfx_shape *a, const struct rfx_shape *b) {
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = a->dims[i] == b->dims[i];
    return same;
}

int rfx_onnx_shaped_before(const struct rfx_onnx_import *ctx, int node,
                           const struct rfx_shape *shape) {
    const struct rfx_node *nodes = ctx->graph->nodes;
    while (!same_dims(&nodes[node].out.shape, shape)) {
        if (nodes[node].op != RFX_OP_RESHAPE) return -1;
        node = nodes[node].in[0];
    }
    return ctx->map_of[node] >= 0 ? ctx->map_of[node] : node;
}

/* Binds output 0 to input 0 under another shape. */
static enum rfx_status give_shape(struct rfx_onnx_import *ctx, const struct rfx_shape *shape) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    int out = -1;
    if (x.constant != NULL) {
        ctx->out_of_memory = false;
        struct rfx_onnx_operand view = {-1, rfx_onnx_const_view(ctx, x.constant, shape)};
        bool large = view.constant == NULL && x.constant->repeat != NULL && !ctx->out_of_memory;
        if (large) return rfx_onnx_refuse_size(ctx, x.constant->elems);
        return rfx_onnx_set(ctx, 0, view);
    }
    struct rfx_onnx_operand before = {rfx_onnx_shaped_before(ctx, x.node, shape), NULL};
    if (before.node >= 0) return rfx_onnx_set(ctx, 0, before);
    enum rfx_status status = rfx_onnx_plain(ctx, x, &out);
    struct rfx_node node = {.op = RFX_OP_RESHAPE};
    node.attr.reshape.shape = *shape;
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &out, 1, &out);
    if (status == RFX_OK && shape->rank == 4) out = rfx_onnx_map_itself(ctx, out);
    return finish(ctx, status, out);
}

static enum rfx_status need_input(struct rfx_onnx_import *ctx, const struct rfx_shape **shape) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    *shape = NULL;
    if (x.node < 0 && x.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input 0 is missing");
    *shape = rfx_onnx_shape(ctx, x);
    return RFX_OK;
}

enum rfx_status rfx_onnx_flatten(struct rfx_onnx_import *ctx) {
    const struct rfx_shape *in;
    enum rfx_status status = need_input(ctx, &in);
    if (status != RFX_OK) return status;
    int64_t axis = rfx_onnx_attr_int(ctx, "axis", 1);
    if (axis < 0) axis += in->rank;
    if (axis < 0 || axis > in->rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "axis %lld of rank %d", (long long)axis,
                               in->rank);
    struct rfx_shape shape = {
        2, {rfx_onnx_product(in, 0, (int)axis), rfx_onnx_product(in, (int)axis, in->rank)}};
    return give_shape(ctx, &shape);
}

/* Resolves 0 and -1 of a Reshape's target. */
static enum rfx_status resolve(struct rfx_onnx_import *ctx, const struct rfx_shape *in,
                               const int64_t *target, int64_t count, struct rfx_shape *out) {
    int wild = -1;
    int64_t known = 1, elems = rfx_onnx_product(in, 0, in->rank);
    bool allow_zero = rfx_onnx_attr_flag(ctx, "allowzero", false);
    if (count > RFX_MAX_RANK)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a shape of rank %lld",
                               (long long)count);
    out->rank = (int)count;
    for (int i = 0; i < out->rank; i++) {
        int64_t d = target[i];
        if (d == 0 && !allow_zero && i < in->rank) d = in->dims[i];
        out->dims[i] = d;
        if (d == -1 && wild < 0)
            wild = i;
        else if (d < 0 || !rfx_checked_mul_i64(known, d, &known))
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "dimension %lld in the shape",
                                   (long long)d);
    }
    if (wild >= 0 && known > 0 && elems % known == 0) {
        out->dims[wild] = elems / known;
        known *= out->dims[wild];
    }
    bool fits = known == elems && (wild < 0 || out->dims[wild] >= 0);
    if (!fits && ctx->is_of_constants)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                               "%lld elements in the shape of a constant of %lld", (long long)known,
                               (long long)elems);
    if (!fits) {
        const struct rfx_node *image = &ctx->graph->nodes[ctx->graph->input];
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "the network is fixed to another image size by this shape (%lld "
                               "elements, %lld given at %lldx%lld)",
                               (long long)known, (long long)elems, (long long)image->out.h,
                               (long long)image->out.w);
    }
    return RFX_OK;
}

static bool perm_is(const struct rfx_node *node, const int *perm, int rank) {
    if (node->out.shape.rank != rank) return false;
    for (int i = 0; i < rank; i++)
        if (node->attr.transpose.perm[i] != perm[i]) return false;
    return true;
}

/* Pixel unshuffle: (c, h/b, b, w/b, b) transposed to blocks before (DCR) or after (CRD) channels.
 */
static bool is_unshuffle(const struct rfx_node *transpose, const int64_t *d,
                         const struct rfx_tensor *m, const struct rfx_shape *shape,
                         struct rfx_node *node) {
    static const int crd[6] = {0, 1, 3, 5, 2, 4}, dcr[6] = {0, 3, 5, 1, 2, 4};
    bool column_major = perm_is(transpose, crd, 6);
    if (!column_major && !perm_is(transpose, dcr, 6)) return false;
    int64_t block = d[3];
    if (d[0] != 1 || d[1] != m->c || d[5] != block || d[2] * block != m->h ||
        d[4] * block != m->w || shape->dims[2] != d[2] || shape->dims[3] != d[4])
        return false;
    node->op = RFX_OP_SPACE_TO_DEPTH;
    node->attr.depth.block = block;
    node->attr.depth.column_major = column_major;
    return true;
}

/* Channel shuffle and pixel (un)shuffle as exporters write them: Reshape, Transpose, Reshape. *done
 * says whether the pattern was there; the nodes it replaces reach no output any more. */
static enum rfx_status try_shuffle(struct rfx_onnx_import *ctx, int last,
                                   const struct rfx_shape *shape, int *out, bool *done) {
    static const int shuffle[5] = {0, 2, 1, 3, 4}, crd[6] = {0, 1, 4, 2, 5, 3},
                     dcr[6] = {0, 3, 4, 1, 5, 2};
    const struct rfx_node *nodes = ctx->graph->nodes;
    *done = false;
    if (shape->rank != 4 || nodes[last].op != RFX_OP_TRANSPOSE) return RFX_OK;
    const struct rfx_node *split = &nodes[nodes[last].in[0]];
    if (split->op != RFX_OP_RESHAPE || ctx->map_of[split->in[0]] < 0) return RFX_OK;
    int map = ctx->map_of[split->in[0]];
    const struct rfx_tensor m = nodes[map].out;
    const int64_t *d = split->out.shape.dims;
    struct rfx_node node = {.op = RFX_OP_CHANNEL_SELECT};
    if (perm_is(&nodes[last], shuffle, 5) && d[0] == 1 && d[3] == m.h && d[4] == m.w &&
        shape->dims[1] == m.c && shape->dims[2] == m.h && shape->dims[3] == m.w) {
        int64_t *select = rfx_arena_alloc(ctx->arena, (size_t)m.c, sizeof *select);
        if (select == NULL)
            return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a channel map");
        for (int64_t i = 0; i < m.c; i++) select[i] = i % d[1] * d[2] + i / d[1];
        node.attr.select.count = m.c;
        node.attr.select.map = select;
        *done = true;
    }
    if (is_unshuffle(&nodes[last], d, &m, shape, &node)) *done = true;
    bool column_major = perm_is(&nodes[last], crd, 6);
    if (column_major || perm_is(&nodes[last], dcr, 6)) {
        int64_t block = column_major ? d[2] : d[1];
        int64_t block2 = column_major ? d[3] : d[2];
        int64_t c = column_major ? d[1] : d[3];
        *done = block == block2 && d[0] == 1 && d[4] == m.h && d[5] == m.w && shape->dims[1] == c &&
                shape->dims[2] == m.h * block;
        node.op = RFX_OP_DEPTH_TO_SPACE;
        node.attr.depth.block = block;
        node.attr.depth.column_major = column_major;
    }
    return *done ? rfx_onnx_emit(ctx, &node, "", &map, 1, out) : RFX_OK;
}

enum rfx_status rfx_onnx_reshape_op(struct rfx_onnx_import *ctx) {
    const struct rfx_shape *in;
    const int64_t *target = NULL;
    int64_t count;
    bool found, done = false;
    struct rfx_shape shape;
    int out = -1;
    enum rfx_status status = need_input(ctx, &in);
    if (status == RFX_OK) status = rfx_onnx_list_ints(ctx, "shape", 1, &target, &count, &found);
    if (status == RFX_OK && !found)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "no shape is given");
    if (status == RFX_OK) status = resolve(ctx, in, target, count, &shape);
    if (status != RFX_OK) return status;
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    if (x.node >= 0) status = try_shuffle(ctx, x.node, &shape, &out, &done);
    if (status != RFX_OK || done) return finish(ctx, status, out);
    return give_shape(ctx, &shape);
}

enum rfx_status rfx_onnx_squeeze(struct rfx_onnx_import *ctx) {
    const struct rfx_shape *in;
    const int64_t *axes = NULL;
    int64_t count;
    bool found, drop[RFX_MAX_RANK] = {false};
    enum rfx_status status = need_input(ctx, &in);
    if (status == RFX_OK) status = rfx_onnx_list_ints(ctx, "axes", 1, &axes, &count, &found);
    if (status != RFX_OK) return status;
    for (int i = 0; i < in->rank; i++) drop[i] = !found && in->dims[i] == 1;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        status = rfx_onnx_axis(ctx, axes[i], in->rank, &axis);
        if (status != RFX_OK) return status;
        if (in->dims[axis] != 1)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "dimension %d is %lld, not 1", axis,
                                   (long long)in->dims[axis]);
        drop[axis] = true;
    }
    struct rfx_shape shape = {0, {0}};
    for (int i = 0; i < in->rank; i++)
        if (!drop[i]) shape.dims[shape.rank++] = in->dims[i];
    return give_shape(ctx, &shape);
}

enum rfx_status rfx_onnx_unsqueeze(struct rfx_onnx_import *ctx) {
    const struct rfx_shape *in;
    const int64_t *axes = NULL;
    int64_t count;
    bool found, fresh[RFX_MAX_RANK] = {false};
    enum rfx_status status = need_input(ctx, &in);
    if (status == RFX_OK) status = rfx_onnx_list_ints(ctx, "axes", 1, &axes, &count, &found);
    if (status != RFX_OK) return status;
    if (!found || count > RFX_MAX_RANK - in->rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%lld axes on rank %d",
                               (long long)count, in->rank);
    struct rfx_shape shape = {in->rank + (int)count, {0}};
    for (int64_t i = 0; i < count; i++) {
        int axis;
        status = rfx_onnx_axis(ctx, axes[i], shape.rank, &axis);
        if (status != RFX_OK) return status;
        if (fresh[axis]) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "axis %d twice", axis);
        fresh[axis] = true;
    }
    int from = 0;
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = fresh[i] ? 1 : in->dims[from++];
    return give_shape(ctx, &shape);
}

static enum rfx_status emit_transpose(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                                      const int *perm, int rank, int *out) {
    static const int to_last[4] = {0, 2, 3, 1}, to_first[4] = {0, 3, 1, 2};
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, x.node);
    struct rfx_node node = {.op = RFX_OP_TRANSPOSE};
    int in = x.node, behind = rfx_onnx_map_behind(ctx, x.node);
    if (behind >= 0 && rank == 4 && memcmp(perm, to_first, sizeof to_first) == 0) {
        *out = behind;
        return RFX_OK;
    }
    if (rank == 4 && t.layout == RFX_LAYOUT_NHWC && memcmp(perm, to_last, sizeof to_last) == 0) {
        node.op = RFX_OP_NHWC_AS_PLAIN;
    } else if (rank == 4 && t.layout == RFX_LAYOUT_PLAIN && t.shape.dims[0] == 1 &&
               memcmp(perm, to_first, sizeof to_first) == 0) {
        node.op = RFX_OP_PLAIN_AS_NHWC;
    } else {
        enum rfx_status status = rfx_onnx_plain(ctx, x, &in);
        if (status != RFX_OK) return status;
        for (int i = 0; i < rank; i++) node.attr.transpose.perm[i] = perm[i];
    }
    return rfx_onnx_emit(ctx, &node, "", &in, 1, out);
}

enum rfx_status rfx_onnx_permute(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                                 const int *perm, struct rfx_onnx_operand *out) {
    int rank = rfx_onnx_shape(ctx, x)->rank;
    bool identity = true;
    *out = x;
    for (int i = 0; i < rank; i++) identity = identity && perm[i] == i;
    if (identity) return RFX_OK;
    enum rfx_status status = rfx_onnx_any(ctx, x, &x.node);
    out->constant = x.constant = NULL;
    return status == RFX_OK ? emit_transpose(ctx, x, perm, rank, &out->node) : status;
}

enum rfx_status rfx_onnx_transpose(struct rfx_onnx_import *ctx) {
    const struct rfx_shape *in;
    enum rfx_status status = need_input(ctx, &in);
    if (status != RFX_OK) return status;
    int rank = in->rank, perm[RFX_MAX_RANK], out = -1;
    int64_t given[RFX_MAX_RANK];
    unsigned seen = 0;
    bool identity = true;
    for (int i = 0; i < rank; i++) given[i] = rank - 1 - i;
    status = rfx_onnx_attr_ints(ctx, "perm", (size_t)rank, given);
    if (status != RFX_OK) return status;
    for (int i = 0; i < rank; i++) {
        if (given[i] < 0 || given[i] >= rank || (seen & (1u << given[i])) != 0)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "perm is no permutation");
        seen |= 1u << given[i];
        perm[i] = (int)given[i];
        identity = identity && perm[i] == i;
    }
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    if (identity) return rfx_onnx_set(ctx, 0, x);
    status = emit_transpose(ctx, x, perm, rank, &out);
    return finish(ctx, status, out);
}

/* A constant that has no elements adds nothing to what it is joined with. */
static bool is_empty(struct rfx_onnx_operand x) {
    return x.constant != NULL && x.constant->elems == 0;
}

/* Which rows (axis 2) or columns (axis 3) of map `base` a map is, as they are and all of the other
 * axis; false: it is no such part. */
static bool is_part_of(const struct rfx_onnx_import *ctx, int map, int base, int axis,
                       struct rfx_range *part) {
    const struct rfx_node *node = &ctx->graph->nodes[map];
    const struct rfx_tensor *all = rfx_onnx_tensor_of(ctx, base);
    int64_t n = axis == 2 ? node->out.h : node->out.w, start = 0;
    if (map != base) {
        if (node->op != RFX_OP_CROP || node->in[0] != base) return false;
        bool rows = axis == 2;
        bool steps = node->attr.crop.sy == 1 && node->attr.crop.sx == 1;
        bool whole = rows ? node->out.w == all->w : node->out.h == all->h;
        if (!steps || !whole) return false;
        start = rows ? node->attr.crop.y0 : node->attr.crop.x0;
    }
    *part = (struct rfx_range){start, start + n};
    return true;
}

/* Parts of one map one behind the other, each of which begins where the one before it ends, around
 * the map's end: circular padding and rolls, as a PAD that wraps. */
static bool wraps(const struct rfx_onnx_import *ctx, const int *in, size_t n, int base, int axis,
                  struct rfx_node *pad) {
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, base);
    int64_t extent = axis == 2 ? t->h : t->w, first = 0, at = 0, total = 0;
    struct rfx_range part;
    for (size_t k = 0; k < n; k++) {
        if (!is_part_of(ctx, in[k], base, axis, &part)) return false;
        if (k == 0) first = at = part.lo;
        if (part.lo != at % extent) return false;
        at = part.hi;
        total += part.hi - part.lo;
    }
    int64_t before = total > extent ? extent - first : -first;
    if (first == 0) before = 0;
    *pad = (struct rfx_node){.op = RFX_OP_PAD};
    pad->attr.pad.mode = RFX_PAD_WRAP;
    if (axis == 2)
        pad->attr.pad.pads = (struct rfx_pads){before, 0, total - extent - before, 0};
    else
        pad->attr.pad.pads = (struct rfx_pads){0, before, 0, total - extent - before};
    return true;
}

#define MOST_WRAPPED 16

/* The maps that operands are, or are with their channels last (*last); false: not all are. */
static bool maps_of_operands(struct rfx_onnx_import *ctx, int *in, bool *last) {
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        int node = rfx_onnx_in(ctx, k).node;
        if (node < 0) return false;
        int behind = rfx_onnx_map_behind(ctx, node);
        if (k == 0) *last = behind >= 0;
        bool map = rfx_onnx_tensor_of(ctx, node)->layout == RFX_LAYOUT_NHWC;
        if (*last ? behind < 0 : !map) return false;
        in[k] = *last ? behind : node;
    }
    return true;
}

/* A Concat along rows or columns that wraps one map; *out stays -1 where it is none. */
static enum rfx_status try_wrap(struct rfx_onnx_import *ctx, int axis, int *out) {
    size_t n = ctx->node->n_in;
    int in[MOST_WRAPPED];
    bool last;
    *out = -1;
    if (n < 2 || n > MOST_WRAPPED || !maps_of_operands(ctx, in, &last)) return RFX_OK;
    if (last) axis++;
    if (axis != 2 && axis != 3) return RFX_OK;
    for (size_t k = 0; k < 2; k++) { /* the map itself, or what the first part is cut from */
        const struct rfx_node *node = &ctx->graph->nodes[in[k]];
        int bases[2] = {in[k], node->op == RFX_OP_CROP ? node->in[0] : in[k]};
        for (int b = 0; b < 2; b++) {
            struct rfx_node pad;
            if (!wraps(ctx, in, n, bases[b], axis, &pad)) continue;
            enum rfx_status status = rfx_onnx_emit(ctx, &pad, "", &bases[b], 1, out);
            ctx->order = -1;
            return status == RFX_OK && last ? rfx_onnx_channels_last(ctx, *out, out) : status;
        }
    }
    return RFX_OK;
}

/* A Concat along the channels of tokens that are all in one order: of their maps. *out stays -1
 * where it is none. */
static enum rfx_status try_tokens(struct rfx_onnx_import *ctx, int axis, int *in, int *out) {
    struct rfx_node node = {.op = RFX_OP_CONCAT, .attr.concat.axis = 1};
    int first = rfx_onnx_in(ctx, 0).node;
    *out = -1;
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        int own = rfx_onnx_in(ctx, k).node;
        if (own < 0 || axis != rfx_onnx_tensor_of(ctx, own)->shape.rank - 1) return RFX_OK;
        in[k] = rfx_onnx_tokens_behind(ctx, own);
        if (in[k] < 0 || !rfx_onnx_same_order(ctx, first, own)) return RFX_OK;
    }
    (void)rfx_onnx_tokens_behind(ctx, first); /* whose order the result has */
    enum rfx_status status = rfx_onnx_emit(ctx, &node, "", in, (int)ctx->node->n_in, out);
    return status == RFX_OK ? rfx_onnx_channels_last(ctx, *out, out) : status;
}

enum rfx_status rfx_onnx_concat(struct rfx_onnx_import *ctx) {
    const struct rfx_shape *first;
    int axis, out = -1, n = 0;
    bool any_map = false, all_fit = true;
    enum rfx_status status = need_input(ctx, &first);
    if (status == RFX_OK)
        status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", 1), first->rank, &axis);
    if (status != RFX_OK) return status;
    int *in = rfx_arena_alloc(ctx->arena, ctx->node->n_in, sizeof *in);
    if (in == NULL) return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory");
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        struct rfx_onnx_operand x = rfx_onnx_in(ctx, k);
        if (x.node < 0 && x.constant == NULL)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu is missing", k);
        if (is_empty(x)) continue;
        const struct rfx_shape *shape = rfx_onnx_shape(ctx, x);
        all_fit = all_fit && shape->rank == 4 && shape->dims[0] == 1;
        any_map =
            any_map || (x.node >= 0 && rfx_onnx_tensor_of(ctx, x.node)->layout == RFX_LAYOUT_NHWC);
    }
    if (all_fit) status = try_wrap(ctx, axis, &out);
    if (status == RFX_OK && out < 0) status = try_tokens(ctx, axis, in, &out);
    if (status != RFX_OK || out >= 0) return finish(ctx, status, out);
    bool maps = any_map && all_fit && axis == 1;
    for (size_t k = 0; status == RFX_OK && k < ctx->node->n_in; k++) {
        struct rfx_onnx_operand x = rfx_onnx_in(ctx, k);
        if (is_empty(x)) continue;
        status = maps ? rfx_onnx_map(ctx, x, &in[n]) : rfx_onnx_plain(ctx, x, &in[n]);
        n++;
    }
    struct rfx_node node = {.op = maps ? RFX_OP_CONCAT : RFX_OP_PLAIN_CONCAT};
    node.attr.concat.axis = axis;
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", in, n, &out);
    return finish(ctx, status, out);
}

/* Expand: a computed tensor times ones of the target's shape; x * 1 is x. */
enum rfx_status rfx_onnx_expand(struct rfx_onnx_import *ctx) {
    const struct rfx_shape *in;
    const int64_t *target = NULL;
    int64_t count;
    bool found;
    enum rfx_status status = need_input(ctx, &in);
    if (status == RFX_OK) status = rfx_onnx_list_ints(ctx, "", 1, &target, &count, &found);
    if (status != RFX_OK) return status;
    if (!found || count > RFX_MAX_RANK)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a shape of rank %lld",
                               (long long)count);
    struct rfx_shape ones = {(int)count, {0}};
    bool same = count <= in->rank;
    for (int i = 0; i < ones.rank; i++) {
        int k = in->rank - ones.rank + i;
        ones.dims[i] = target[i];
        same = same && (target[i] == 1 || (k >= 0 && target[i] == in->dims[k]));
    }
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    if (same) return rfx_onnx_set(ctx, 0, x);
    struct rfx_onnx_const *c = rfx_onnx_const_new_filled(ctx, RFX_ONNX_FLOAT, &ones);
    if (c == NULL)
        return rfx_onnx_refuse(
            ctx, ctx->out_of_memory ? RFX_STATUS_OUT_OF_MEMORY : RFX_STATUS_UNSUPPORTED,
            "no room for a constant of the target's shape");
    for (int64_t i = 0; i < rfx_onnx_const_stored(c); i++) rfx_onnx_const_reals_rw(c)[i] = 1.0;
    bool maps = rfx_onnx_tensor_of(ctx, x.node)->layout == RFX_LAYOUT_NHWC && ones.rank == 4 &&
                ones.dims[0] == 1;
    struct rfx_onnx_operand b = {-1, c};
    struct rfx_node node = {.op = maps ? RFX_OP_BINARY : RFX_OP_PLAIN_BINARY};
    node.attr.binary.kind = RFX_BINARY_MUL;
    int operands[2], out = -1;
    status = maps ? rfx_onnx_map(ctx, x, &operands[0]) : rfx_onnx_plain(ctx, x, &operands[0]);
    if (status == RFX_OK)
        status = maps ? rfx_onnx_map(ctx, b, &operands[1]) : rfx_onnx_plain(ctx, b, &operands[1]);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", operands, 2, &out);
    return finish(ctx, status, out);
}

enum rfx_status rfx_onnx_depth(struct rfx_onnx_import *ctx) {
    bool to_space = strcmp(ctx->node->op, "DepthToSpace") == 0;
    struct rfx_node node = {.op = to_space ? RFX_OP_DEPTH_TO_SPACE : RFX_OP_SPACE_TO_DEPTH};
    int in, out = -1;
    enum rfx_status status = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status != RFX_OK) return status;
    node.attr.depth.block = rfx_onnx_attr_int(ctx, "blocksize", 0);
    if (node.attr.depth.block < 1 || node.attr.depth.block > 4096)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "blocksize %lld",
                               (long long)node.attr.depth.block);
    const char *mode = rfx_onnx_attr_string(ctx, "mode", "DCR");
    node.attr.depth.column_major = strcmp(mode, "CRD") == 0;
    if (!node.attr.depth.column_major && strcmp(mode, "DCR") != 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "mode '%.20s'", mode);
    status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return finish(ctx, status, out);
}
