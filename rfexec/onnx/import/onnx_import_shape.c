/* Converters that change the shape of a tensor or move its elements by constant amounts: reshapes,
 * transposes, Concat, Expand, DepthToSpace, SpaceToDepth, Slice, Split, Gather by constant indices,
 * Pad, CenterCropPad. */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

static const int to_last[4] = {0, 2, 3, 1}, to_first[4] = {0, 3, 1, 2};

/* --- reshapes --- */

int rfx_onnx_shaped_before(const struct rfx_onnx_import *ctx, int node,
                           const struct rfx_shape *shape) {
    const struct rfx_node *nodes = ctx->graph->nodes;
    while (!rfx_onnx_same_shape(&nodes[node].out.shape, shape)) {
        if (nodes[node].op != RFX_OP_RESHAPE) return -1;
        node = nodes[node].in[0];
    }
    return ctx->map_of[node] >= 0 ? ctx->map_of[node] : node;
}

/* Returns a node that is input 0 with another shape. If input 0 is a constant, binds output 0 to
 * the constant with that shape instead and returns -1. */
static int give_shape(struct rfx_onnx_import *ctx, const struct rfx_shape *shape) {
    struct rfx_onnx_operand x = rfx_onnx_need(ctx, 0);
    struct rfx_node node = {.op = RFX_OP_RESHAPE, .attr.reshape.shape = *shape};
    if (rfx_onnx_failed(ctx)) return -1;
    if (x.constant != NULL)
        return rfx_onnx_set_const(ctx, 0, rfx_onnx_const_view(ctx, x.constant, shape));
    int before = rfx_onnx_shaped_before(ctx, x.node, shape);
    if (before >= 0) return before;
    int out = rfx_onnx_emit1(ctx, &node, "", rfx_onnx_plain(ctx, x));
    return shape->rank == 4 ? rfx_onnx_map_itself(ctx, out) : out;
}

int rfx_onnx_flatten(struct rfx_onnx_import *ctx) {
    const struct rfx_shape in = *rfx_onnx_shape(ctx, rfx_onnx_need(ctx, 0));
    int64_t axis = rfx_onnx_attr_int(ctx, "axis", 1);
    if (axis < 0) axis += in.rank;
    if (axis < 0 || axis > in.rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "axis %lld of rank %d", (long long)axis,
                               in.rank);
    struct rfx_shape shape = {
        2, {rfx_shape_product(&in, 0, (int)axis), rfx_shape_product(&in, (int)axis, in.rank)}};
    return give_shape(ctx, &shape);
}

/* Returns the shape that a Reshape of shape `in` to `target` gives. Entries 0 and -1 of the target
 * are replaced by sizes. */
static struct rfx_shape resolve(struct rfx_onnx_import *ctx, const struct rfx_shape *in,
                                const int64_t *target, int64_t count) {
    struct rfx_shape out = {.rank = (int)count};
    int wild = -1;
    int64_t known = 1, elems = rfx_shape_product(in, 0, in->rank);
    bool allow_zero = rfx_onnx_attr_flag(ctx, "allowzero", false);
    if (count > RFX_MAX_RANK) {
        out.rank = 0;
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a shape of rank %lld",
                              (long long)count);
    }
    for (int i = 0; i < out.rank; i++) {
        int64_t d = target[i] == 0 && !allow_zero && i < in->rank ? in->dims[i] : target[i];
        out.dims[i] = d;
        if (d == -1 && wild < 0)
            wild = i;
        else if (d < 0 || !rfx_checked_mul_i64(known, d, &known))
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "dimension %lld in the shape",
                                  (long long)d);
    }
    if (wild >= 0 && known > 0 && elems % known == 0) {
        out.dims[wild] = elems / known;
        known *= out.dims[wild];
    }
    if (known == elems && (wild < 0 || out.dims[wild] >= 0)) return out;
    if (ctx->is_of_constants)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                              "%lld elements in the shape of a constant of %lld", (long long)known,
                              (long long)elems);
    const struct rfx_tensor *image = rfx_onnx_tensor_of(ctx, ctx->graph->input);
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                          "the network is fixed to another image size by this shape (%lld "
                          "elements, %lld given at %lldx%lld)",
                          (long long)known, (long long)elems, (long long)image->h,
                          (long long)image->w);
    return out;
}

static bool perm_is(const struct rfx_node *node, const int *perm, int rank) {
    return node->out.shape.rank == rank &&
           memcmp(node->attr.transpose.perm, perm, (size_t)rank * sizeof *perm) == 0;
}

/* Returns whether a transpose is a pixel unshuffle of map m: it reads a tensor of the dims d = (1,
 * c, h/b, b, w/b, b) and moves the two axes b in front of the channels (DCR) or after them (CRD).
 * Sets *node to the operator. */
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

/* Returns whether a transpose is a pixel shuffle of map m, the inverse of a pixel unshuffle. Sets
 * *node to the operator. */
static bool is_shuffle(const struct rfx_node *transpose, const int64_t *d,
                       const struct rfx_tensor *m, const struct rfx_shape *shape,
                       struct rfx_node *node) {
    static const int crd[6] = {0, 1, 4, 2, 5, 3}, dcr[6] = {0, 3, 4, 1, 5, 2};
    bool column_major = perm_is(transpose, crd, 6);
    if (!column_major && !perm_is(transpose, dcr, 6)) return false;
    int64_t block = column_major ? d[2] : d[1], c = column_major ? d[1] : d[3];
    node->op = RFX_OP_DEPTH_TO_SPACE;
    node->attr.depth.block = block;
    node->attr.depth.column_major = column_major;
    return block == (column_major ? d[3] : d[2]) && d[0] == 1 && d[4] == m->h && d[5] == m->w &&
           shape->dims[1] == c && shape->dims[2] == m->h * block;
}

/* Finds channel shuffles and pixel (un)shuffles, which exporters write as Reshape, Transpose,
 * Reshape. Returns one node for them, or -1 when there is no such pattern. The first two nodes stay
 * in the graph, but no output needs them. */
static int try_shuffle(struct rfx_onnx_import *ctx, int last, const struct rfx_shape *shape) {
    static const int shuffle[5] = {0, 2, 1, 3, 4};
    if (rfx_onnx_failed(ctx) || last < 0) return -1;
    const struct rfx_node *nodes = ctx->graph->nodes;
    if (shape->rank != 4 || nodes[last].op != RFX_OP_TRANSPOSE) return -1;
    const struct rfx_node *split = &nodes[nodes[last].in[0]];
    if (split->op != RFX_OP_RESHAPE || ctx->map_of[split->in[0]] < 0) return -1;
    int map = ctx->map_of[split->in[0]];
    const struct rfx_tensor m = nodes[map].out;
    const int64_t *d = split->out.shape.dims;
    struct rfx_node node = {.op = RFX_OP_INPUT};
    if (perm_is(&nodes[last], shuffle, 5) && d[0] == 1 && d[3] == m.h && d[4] == m.w &&
        shape->dims[1] == m.c && shape->dims[2] == m.h && shape->dims[3] == m.w) {
        int64_t groups = d[1], each = d[2],
                *select = rfx_onnx_alloc(ctx, (size_t)m.c, sizeof *select);
        for (int64_t i = 0; select != NULL && i < m.c; i++)
            select[i] = i % groups * each + i / groups;
        return rfx_onnx_select(ctx, "", map, select, m.c);
    }
    bool found = is_unshuffle(&nodes[last], d, &m, shape, &node) ||
                 is_shuffle(&nodes[last], d, &m, shape, &node);
    return found ? rfx_onnx_emit1(ctx, &node, "", map) : -1;
}

int rfx_onnx_reshape_op(struct rfx_onnx_import *ctx) {
    const int64_t *target;
    int64_t count;
    struct rfx_onnx_operand x = rfx_onnx_need(ctx, 0);
    const struct rfx_shape in = *rfx_onnx_shape(ctx, x);
    if (!rfx_onnx_list_ints(ctx, "shape", 1, &target, &count))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "no shape is given");
    struct rfx_shape shape = resolve(ctx, &in, target, count);
    int out = try_shuffle(ctx, x.node, &shape);
    return out >= 0 ? out : give_shape(ctx, &shape);
}

int rfx_onnx_squeeze(struct rfx_onnx_import *ctx) {
    const int64_t *axes;
    int64_t count;
    bool drop[RFX_MAX_RANK] = {false};
    const struct rfx_shape in = *rfx_onnx_shape(ctx, rfx_onnx_need(ctx, 0));
    bool found = rfx_onnx_list_ints(ctx, "axes", 1, &axes, &count);
    for (int i = 0; i < in.rank; i++) drop[i] = !found && in.dims[i] == 1;
    for (int64_t i = 0; i < count; i++) {
        int axis = rfx_onnx_axis(ctx, axes[i], in.rank);
        if (in.dims[axis] != 1)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "dimension %d is %lld, not 1", axis,
                                   (long long)in.dims[axis]);
        drop[axis] = true;
    }
    struct rfx_shape shape = {0, {0}};
    for (int i = 0; i < in.rank; i++)
        if (!drop[i]) shape.dims[shape.rank++] = in.dims[i];
    return give_shape(ctx, &shape);
}

int rfx_onnx_unsqueeze(struct rfx_onnx_import *ctx) {
    const int64_t *axes;
    int64_t count;
    bool added[RFX_MAX_RANK] = {false};
    const struct rfx_shape in = *rfx_onnx_shape(ctx, rfx_onnx_need(ctx, 0));
    bool found = rfx_onnx_list_ints(ctx, "axes", 1, &axes, &count);
    if (!found || count > RFX_MAX_RANK - in.rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%lld axes on rank %d",
                               (long long)count, in.rank);
    struct rfx_shape shape = {in.rank + (int)count, {0}};
    for (int64_t i = 0; i < count; i++) {
        int axis = rfx_onnx_axis(ctx, axes[i], shape.rank);
        if (added[axis]) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "axis %d twice", axis);
        added[axis] = true;
    }
    int from = 0;
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = added[i] ? 1 : in.dims[from++];
    return give_shape(ctx, &shape);
}

/* --- transposes --- */

static int emit_transpose(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x, const int *perm,
                          int rank) {
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, x.node);
    struct rfx_node node = {.op = RFX_OP_TRANSPOSE};
    int behind = rfx_onnx_map_behind(ctx, x.node);
    bool last = rank == 4 && memcmp(perm, to_last, sizeof to_last) == 0;
    bool first = rank == 4 && memcmp(perm, to_first, sizeof to_first) == 0;
    if (behind >= 0 && first) return behind;
    struct rfx_pixels p;
    bool described = first && x.node >= 0 && rfx_pixels_of(ctx->graph, x.node, &p);
    if (described) { /* if it is no map, it may become one again */
        rfx_pixels_transpose(&p, perm);
        int channels = rfx_onnx_channels(ctx, &p);
        if (channels >= 0 || rfx_onnx_failed(ctx)) return channels;
    }
    if (last && t.layout == RFX_LAYOUT_NHWC)
        node.op = RFX_OP_NHWC_AS_PLAIN;
    else if (first && !described && t.layout == RFX_LAYOUT_PLAIN && t.shape.dims[0] == 1)
        node.op = RFX_OP_PLAIN_AS_NHWC;
    else
        x.node = rfx_onnx_plain(ctx, x);
    for (int i = 0; node.op == RFX_OP_TRANSPOSE && i < rank; i++)
        node.attr.transpose.perm[i] = perm[i];
    return rfx_onnx_emit1(ctx, &node, "", x.node);
}

struct rfx_onnx_operand rfx_onnx_permute(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                                         const int *perm) {
    int rank = rfx_onnx_shape(ctx, x)->rank;
    bool identity = true;
    for (int i = 0; i < rank; i++) identity = identity && perm[i] == i;
    if (identity || rfx_onnx_failed(ctx)) return x;
    x = rfx_onnx_of(rfx_onnx_any(ctx, x));
    return rfx_onnx_of(emit_transpose(ctx, x, perm, rank));
}

int rfx_onnx_transpose(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_need(ctx, 0);
    int perm[RFX_MAX_RANK];
    rfx_onnx_perm(ctx, rfx_onnx_shape(ctx, x)->rank, perm);
    return rfx_onnx_set(ctx, 0, rfx_onnx_permute(ctx, x, perm));
}

/* --- Concat --- */

/* Returns whether an operand of Concat is a constant without elements. */
static bool is_empty(struct rfx_onnx_operand x) {
    return x.constant != NULL && x.constant->elems == 0;
}

/* Returns whether a map is map `base` itself, or consecutive rows (axis 2) or columns (axis 3) of
 * it with the other axis whole. *part is set to these rows or columns. */
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

/* Returns whether n maps are consecutive parts of map `base`, where its first row (or column)
 * follows its last one. A Concat of such parts is circular padding or a roll. Sets *pad to the PAD
 * node of mode "wrap" that gives the same map. */
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
    int64_t before = first == 0 ? 0 : total > extent ? extent - first : -first;
    int64_t after = total - extent - before;
    *pad = (struct rfx_node){.op = RFX_OP_PAD, .attr.pad.mode = RFX_PAD_WRAP};
    pad->attr.pad.pads =
        axis == 2 ? (struct rfx_pads){before, 0, after, 0} : (struct rfx_pads){0, before, 0, after};
    return true;
}

#define MOST_WRAPPED 16 /* most operands of a Concat that try_wrap handles */

/* Sets in[] to the maps of all operands. Sets *last to true if the operands are these maps with
 * their channels last, (1, h, w, c), and to false if they are the maps themselves. Returns false if
 * some operands are neither, or if both kinds occur. */
static bool maps_of_operands(struct rfx_onnx_import *ctx, int *in, bool *last) {
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        int node = rfx_onnx_in(ctx, k).node, behind = rfx_onnx_map_behind(ctx, node);
        if (k == 0) *last = behind >= 0;
        if (*last ? behind < 0 : !rfx_onnx_is_map(ctx, node)) return false;
        in[k] = *last ? behind : node;
    }
    return true;
}

/* Returns the node of a Concat along rows or columns that is circular padding or a roll of one map,
 * or -1. */
static int try_wrap(struct rfx_onnx_import *ctx, int axis) {
    size_t n = ctx->node->n_in;
    int in[MOST_WRAPPED];
    bool last = false;
    if (n < 2 || n > MOST_WRAPPED || !maps_of_operands(ctx, in, &last)) return -1;
    if (last) axis++;
    if (axis != 2 && axis != 3) return -1;
    for (size_t k = 0; k < 2; k++) { /* operand k itself, or the map that it is cut from */
        const struct rfx_node *node = &ctx->graph->nodes[in[k]];
        int bases[2] = {in[k], node->op == RFX_OP_CROP ? node->in[0] : in[k]};
        for (int b = 0; b < 2; b++) {
            struct rfx_node pad;
            if (!wraps(ctx, in, n, bases[b], axis, &pad)) continue;
            int out = rfx_onnx_emit1(ctx, &pad, "", bases[b]);
            ctx->order = -1;
            return rfx_onnx_ordered(ctx, out, last);
        }
    }
    return -1;
}

/* Converts a Concat along the channels of tokens that are in the same order: concatenates their
 * maps, and returns the result as tokens in that order. Returns -1 for any other Concat. in: memory
 * for as many nodes as operands. */
static int try_tokens(struct rfx_onnx_import *ctx, int axis, int *in) {
    struct rfx_node node = {.op = RFX_OP_CONCAT, .attr.concat.axis = 1};
    int first = rfx_onnx_in(ctx, 0).node;
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        int own = rfx_onnx_in(ctx, k).node;
        if (own < 0 || axis != rfx_onnx_tensor_of(ctx, own)->shape.rank - 1) return -1;
        in[k] = rfx_onnx_tokens_behind(ctx, own);
        if (in[k] < 0 || !rfx_onnx_same_order(ctx, first, own)) return -1;
    }
    (void)rfx_onnx_tokens_behind(ctx, first); /* sets ctx->order, the order of the result */
    return rfx_onnx_channels_last(ctx, rfx_onnx_emit(ctx, &node, "", in, (int)ctx->node->n_in));
}

int rfx_onnx_concat(struct rfx_onnx_import *ctx) {
    bool any_map = false, all_fit = true;
    int axis = rfx_onnx_axis_attr(ctx, 1, rfx_onnx_shape(ctx, rfx_onnx_need(ctx, 0))->rank);
    int *in = rfx_onnx_alloc(ctx, ctx->node->n_in, sizeof *in), n = 0;
    struct rfx_onnx_operand only = {.node = -1};
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        struct rfx_onnx_operand x = rfx_onnx_need(ctx, k);
        if (is_empty(x)) continue;
        only = x;
        n++;
        const struct rfx_shape *shape = rfx_onnx_shape(ctx, x);
        all_fit = all_fit && shape->rank == 4 && shape->dims[0] == 1;
        any_map = any_map || rfx_onnx_is_map(ctx, x.node);
    }
    if (rfx_onnx_failed(ctx)) return -1;
    if (n == 1) return rfx_onnx_set(ctx, 0, only);
    n = 0;
    int out = all_fit ? try_wrap(ctx, axis) : -1;
    if (out < 0) out = try_tokens(ctx, axis, in);
    if (out >= 0) return out;
    bool maps = any_map && all_fit && axis == 1;
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        struct rfx_onnx_operand x = rfx_onnx_in(ctx, k);
        if (!is_empty(x)) in[n++] = maps ? rfx_onnx_map(ctx, x) : rfx_onnx_plain(ctx, x);
    }
    struct rfx_node node = {.op = maps ? RFX_OP_CONCAT : RFX_OP_PLAIN_CONCAT};
    node.attr.concat.axis = axis;
    return rfx_onnx_emit(ctx, &node, "", in, n);
}

/* Expand of a computed tensor: multiplies it by ones of the target shape. */
int rfx_onnx_expand(struct rfx_onnx_import *ctx) {
    const int64_t *target;
    int64_t count;
    struct rfx_onnx_operand x = rfx_onnx_need(ctx, 0);
    const struct rfx_shape in = *rfx_onnx_shape(ctx, x);
    bool found = rfx_onnx_list_ints(ctx, "", 1, &target, &count);
    if (!found || count > RFX_MAX_RANK)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a shape of rank %lld",
                               (long long)count);
    struct rfx_shape ones = {(int)count, {0}};
    bool same = count <= in.rank;
    for (int i = 0; i < ones.rank; i++) {
        int k = in.rank - ones.rank + i;
        ones.dims[i] = target[i];
        same = same && (target[i] == 1 || (k >= 0 && target[i] == in.dims[k]));
    }
    if (same) return rfx_onnx_set(ctx, 0, x);
    struct rfx_onnx_const *c = rfx_onnx_const_new_filled(ctx, RFX_ONNX_FLOAT, &ones, true);
    if (c == NULL) return -1;
    for (int64_t i = 0; i < rfx_onnx_const_stored(c); i++) rfx_onnx_const_put(c, i, 1.0);
    struct rfx_onnx_operand b = rfx_onnx_of_const(c);
    bool maps = rfx_onnx_is_map(ctx, x.node) && ones.rank == 4 && ones.dims[0] == 1;
    int left = maps ? rfx_onnx_map(ctx, x) : rfx_onnx_plain(ctx, x);
    int right = maps ? rfx_onnx_map(ctx, b) : rfx_onnx_plain(ctx, b);
    return rfx_onnx_binary_of(ctx, RFX_BINARY_MUL, "", left, right);
}

int rfx_onnx_depth(struct rfx_onnx_import *ctx) {
    static const char *const modes[] = {"DCR", "CRD"};
    bool to_space = rfx_onnx_op_is(ctx, "DepthToSpace");
    struct rfx_node node = {.op = to_space ? RFX_OP_DEPTH_TO_SPACE : RFX_OP_SPACE_TO_DEPTH};
    int in = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0));
    node.attr.depth.block = rfx_onnx_attr_int(ctx, "blocksize", 0);
    if (node.attr.depth.block < 1 || node.attr.depth.block > 4096)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "blocksize %lld",
                               (long long)node.attr.depth.block);
    node.attr.depth.column_major = rfx_onnx_attr_choice(ctx, "mode", "DCR", modes, 2) == 1;
    return rfx_onnx_emit1(ctx, &node, "", in);
}

/* --- Slice and Split --- */

/* Returns the slice that takes a whole tensor. */
static struct rfx_slice_attr whole_cut(const struct rfx_shape *shape) {
    struct rfx_slice_attr cut = {.shape = *shape};
    for (int i = 0; i < shape->rank; i++) cut.steps[i] = 1;
    return cut;
}

static bool axis_is_whole(const struct rfx_slice_attr *cut, const struct rfx_shape *in, int i) {
    return cut->starts[i] == 0 && cut->steps[i] == 1 && cut->shape.dims[i] == in->dims[i];
}

/* Sets the slice of one axis, with start and end clamped as ONNX defines. The result may be empty.
 * MALFORMED: the step is 0. */
static void cut_axis(struct rfx_onnx_import *ctx, struct rfx_slice_attr *cut, int axis,
                     int64_t start, int64_t end, int64_t step) {
    int64_t dim = cut->shape.dims[axis];
    if (step == 0 || step == INT64_MIN) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "step %lld", (long long)step);
        return;
    }
    if (start < 0) start = start < -dim ? -1 : start + dim;
    if (end < 0) end = end < -dim ? -1 : end + dim;
    bool forward = step > 0;
    start = rfx_min_i64(rfx_max_i64(start, 0), forward ? dim : dim - 1);
    end = rfx_min_i64(rfx_max_i64(end, forward ? 0 : -1), dim);
    int64_t count = forward ? rfx_ceil_div(end - start, step) : rfx_ceil_div(start - end, -step);
    cut->starts[axis] = start;
    cut->steps[axis] = step;
    cut->shape.dims[axis] = rfx_max_i64(count, 0);
}

/* Returns the node of `count` channels of a map: start, start + step, ... */
static int select_channels(struct rfx_onnx_import *ctx, const char *suffix, int in, int64_t start,
                           int64_t step, int64_t count) {
    int64_t *map = rfx_onnx_alloc(ctx, (size_t)count, sizeof *map);
    for (int64_t i = 0; map != NULL && i < count; i++) map[i] = start + i * step;
    return rfx_onnx_select(ctx, suffix, in, map, count);
}

/* Returns the node of a slice of a computed tensor. A slice of a map stays a map if it does not
 * slice the batch. */
static int emit_cut(struct rfx_onnx_import *ctx, const char *suffix, struct rfx_onnx_operand x,
                    const struct rfx_slice_attr *cut) {
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, x.node);
    bool whole = true;
    int out = x.node;
    for (int i = 0; i < t.shape.rank; i++) whole = whole && axis_is_whole(cut, &t.shape, i);
    if (whole) return out;
    if (t.layout != RFX_LAYOUT_NHWC || !axis_is_whole(cut, &t.shape, 0)) {
        struct rfx_node node = {.op = RFX_OP_PLAIN_SLICE, .attr.slice = *cut};
        return rfx_onnx_emit1(ctx, &node, suffix, rfx_onnx_plain(ctx, x));
    }
    bool space = !axis_is_whole(cut, &t.shape, 2) || !axis_is_whole(cut, &t.shape, 3);
    if (!axis_is_whole(cut, &t.shape, 1))
        out = select_channels(ctx, space ? "/channels" : suffix, out, cut->starts[1], cut->steps[1],
                              cut->shape.dims[1]);
    if (!space) return out;
    struct rfx_node crop = {.op = RFX_OP_CROP};
    crop.attr.crop.y0 = cut->starts[2];
    crop.attr.crop.x0 = cut->starts[3];
    crop.attr.crop.sy = cut->steps[2];
    crop.attr.crop.sx = cut->steps[3];
    crop.attr.crop.oh = cut->shape.dims[2];
    crop.attr.crop.ow = cut->shape.dims[3];
    return rfx_onnx_emit1(ctx, &crop, suffix, out);
}

static bool only_last_is_cut(const struct rfx_slice_attr *cut, const struct rfx_shape *in) {
    bool others = false;
    for (int i = 0; i < in->rank - 1; i++) others = others || !axis_is_whole(cut, in, i);
    return !others && !axis_is_whole(cut, in, in->rank - 1);
}

/* Returns the node of a slice of a tensor. For a map with its channels last, and for the channels
 * of tokens, the map itself is sliced, so that later operators still work row by row. */
static int cut_tensor(struct rfx_onnx_import *ctx, const char *suffix, struct rfx_onnx_operand x,
                      const struct rfx_slice_attr *cut) {
    if (rfx_onnx_failed(ctx)) return -1;
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    int map = rfx_onnx_map_behind(ctx, x.node), last = shape.rank - 1;
    if (map >= 0) {
        struct rfx_slice_attr first = *cut;
        for (int i = 0; i < 4; i++) {
            first.starts[i] = cut->starts[to_first[i]];
            first.steps[i] = cut->steps[to_first[i]];
            first.shape.dims[i] = cut->shape.dims[to_first[i]];
        }
        int out = emit_cut(ctx, suffix, rfx_onnx_of(map), &first);
        return out == map ? x.node : rfx_onnx_channels_last(ctx, out);
    }
    if (only_last_is_cut(cut, &shape)) map = rfx_onnx_tokens_behind(ctx, x.node);
    if (map < 0) return emit_cut(ctx, suffix, x, cut);
    return rfx_onnx_channels_last(ctx, select_channels(ctx, suffix, map, cut->starts[last],
                                                       cut->steps[last], cut->shape.dims[last]));
}

/* Reads starts, ends, axes and steps: attributes up to opset 9, inputs from opset 10 on. */
struct rfx_slice_attr rfx_onnx_read_cut(struct rfx_onnx_import *ctx, const struct rfx_shape *in) {
    static const char *const names[4] = {"starts", "ends", "axes", "steps"};
    struct rfx_slice_attr cut = whole_cut(in);
    const int64_t *v[4];
    int64_t count[4];
    bool found[4], seen[RFX_MAX_RANK] = {false};
    for (size_t k = 0; k < 4; k++)
        found[k] = rfx_onnx_list_ints(ctx, names[k], k + 1, &v[k], &count[k]);
    if (!found[0] || !found[1] || count[0] != count[1] || (found[2] && count[2] != count[0]) ||
        (found[3] && count[3] != count[0]) || count[0] > in->rank)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "starts, ends, axes, steps do not match");
    for (int64_t i = 0; !rfx_onnx_failed(ctx) && i < count[0]; i++) {
        int axis = rfx_onnx_axis(ctx, found[2] ? v[2][i] : i, in->rank);
        if (seen[axis]) (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "axis %d twice", axis);
        seen[axis] = true;
        cut_axis(ctx, &cut, axis, v[0][i], v[1][i], found[3] ? v[3][i] : 1);
    }
    return cut;
}

/* Whether the current node has a result without elements, in a model that may have late nodes. Such
 * a tensor is a constant. Elsewhere the import refuses it. */
static bool is_late_constant(const struct rfx_onnx_import *ctx, const struct rfx_shape *shape) {
    bool empty = false;
    for (int i = 0; i < shape->rank; i++) empty = empty || shape->dims[i] == 0;
    return empty && ctx->late != NULL && !rfx_onnx_failed(ctx);
}

static int set_empty(struct rfx_onnx_import *ctx, const struct rfx_shape *shape) {
    struct rfx_onnx_const *c = rfx_onnx_const_new(ctx, rfx_onnx_in_type(ctx, 0), shape);
    return c != NULL ? rfx_onnx_set_const(ctx, 0, c) : -1;
}

int rfx_onnx_slice(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_need_computed(ctx);
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    struct rfx_slice_attr cut = rfx_onnx_read_cut(ctx, &shape);
    return is_late_constant(ctx, &cut.shape) ? set_empty(ctx, &cut.shape)
                                             : cut_tensor(ctx, "", x, &cut);
}

int64_t rfx_onnx_split_size(const int64_t *sizes, size_t n, int64_t extent, size_t k, int64_t at) {
    int64_t size =
        sizes != NULL ? sizes[k] : rfx_min_i64(rfx_ceil_div(extent, (int64_t)n), extent - at);
    return size < 1 || size > extent - at ? 0 : size;
}

int rfx_onnx_split(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_need_computed(ctx);
    const int64_t *sizes;
    int64_t count, at = 0;
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    size_t n = ctx->node->n_out;
    int axis = rfx_onnx_axis_attr(ctx, 0, shape.rank);
    bool found = rfx_onnx_list_ints(ctx, "split", 1, &sizes, &count);
    if (n == 0 || (found && count != (int64_t)n))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld parts for %zu outputs",
                               (long long)count, n);
    if (rfx_onnx_attr_int(ctx, "num_outputs", (int64_t)n) != (int64_t)n)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "num_outputs is not %zu", n);
    for (size_t k = 0; !rfx_onnx_failed(ctx) && k < n; k++) {
        struct rfx_slice_attr cut = whole_cut(&shape);
        int64_t left = shape.dims[axis] - at;
        int64_t size = rfx_onnx_split_size(found ? sizes : NULL, n, shape.dims[axis], k, at);
        if (size == 0 || (k + 1 == n && size != left))
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "part %zu of %lld, %lld are left",
                                   k, (long long)(found ? sizes[k] : size), (long long)left);
        cut.starts[axis] = at;
        cut.shape.dims[axis] = size;
        at += size;
        (void)rfx_onnx_set(ctx, k, rfx_onnx_of(cut_tensor(ctx, "", x, &cut)));
    }
    return -1;
}

/* --- Gather by constant indices --- */

#define MOST_TAPS 32 /* most elements of a window */

/* The windows of an unfolding along rows or columns; exporters write it as a Gather. indices[tap *
 * count + i] is the position of element `tap` of window i. Each window begins `step` positions
 * after the window before. */
struct windows {
    int axis; /* of the map */
    int64_t taps, count, step;
    const int64_t *indices;
};

/* p describes the tensor that the Gather reads. Returns whether axis `axis` of this tensor consists
 * of all rows or all columns of its map, and the Gather's indices, of this shape, are windows along
 * the axis. Sets *w to the windows. */
static bool find_axis_windows(const struct rfx_pixels *p, int axis, const struct rfx_shape *shape,
                              const int64_t *indices, struct windows *w) {
    int begin = axis == 0 ? 0 : p->end[axis - 1];
    if (shape->rank != 2 || p->end[axis] != begin + 1 || p->rank == RFX_MAX_RANK) return false;
    const struct rfx_pixels_factor *f = &p->factors[begin];
    *w = (struct windows){f->axis, shape->dims[0], shape->dims[1], 0, indices};
    if (f->axis == RFX_PIXELS_CHANNEL || f->stride != 1 || f->size != p->extent[f->axis] ||
        p->roll[f->axis] != 0 || w->taps < 2 || w->taps > MOST_TAPS || w->count < 2)
        return false;
    w->step = indices[1] - indices[0];
    for (int64_t t = 0; t < w->taps; t++)
        for (int64_t i = 0; i < w->count; i++)
            if (indices[t * w->count + i] != indices[t * w->count] + i * w->step) return false;
    int64_t channels = 1;
    for (int i = 0; i < p->count; i++)
        if (p->factors[i].axis == RFX_PIXELS_CHANNEL) channels *= p->factors[i].size;
    return w->step > 0 && p->first == 0 && channels == p->extent[RFX_PIXELS_CHANNEL] &&
           p->count < RFX_PIXELS_FACTORS;
}

/* Returns the node of a map with one row (or column) per window. Each channel of `map` becomes one
 * channel per element of a window. */
static int emit_windows(struct rfx_onnx_import *ctx, int map, const struct windows *w) {
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, map);
    struct rfx_node concat = {.op = RFX_OP_CONCAT, .attr.concat.axis = 1};
    int parts[MOST_TAPS];
    bool rows = w->axis == RFX_PIXELS_ROW;
    for (int64_t k = 0; k < w->taps; k++) {
        struct rfx_node crop = {.op = RFX_OP_CROP, .attr.crop = {0, 0, 1, 1, t.h, t.w}};
        *(rows ? &crop.attr.crop.y0 : &crop.attr.crop.x0) = w->indices[k * w->count];
        *(rows ? &crop.attr.crop.sy : &crop.attr.crop.sx) = w->step;
        *(rows ? &crop.attr.crop.oh : &crop.attr.crop.ow) = w->count;
        parts[k] = rfx_onnx_emit1(ctx, &crop, "/tap", map);
    }
    int joined = rfx_onnx_emit(ctx, &concat, "/taps", parts, (int)w->taps);
    int64_t n = t.c * w->taps, *select = rfx_onnx_alloc(ctx, (size_t)n, sizeof *select);
    for (int64_t i = 0; select != NULL && i < n; i++) select[i] = i % w->taps * t.c + i / w->taps;
    return rfx_onnx_select(ctx, "", joined, select, n);
}

/* Converts a Gather whose indices are windows along the rows or columns of a map, and returns its
 * node. The input of the Gather may hold the pixels of the map in any order that rfx_pixels
 * describes. Returns -1 for any other Gather. */
static int gather_windows(struct rfx_onnx_import *ctx, int node, int axis,
                          const struct rfx_shape *shape, const int64_t *indices) {
    struct rfx_pixels p;
    struct windows w;
    node = rfx_onnx_plain(ctx, rfx_onnx_of(node)); /* only PLAIN tensors have a description */
    if (node < 0 || !rfx_pixels_of(ctx->graph, node, &p) ||
        !find_axis_windows(&p, axis, shape, indices, &w))
        return -1;
    int at = p.end[axis] - 1;
    p.map = emit_windows(ctx, p.map, &w);
    for (int i = 0; i < p.count; i++)
        if (p.factors[i].axis == RFX_PIXELS_CHANNEL) p.factors[i].stride *= w.taps;
    p.factors[at].size = w.count;
    memmove(p.factors + at + 1, p.factors + at, (size_t)(p.count - at) * sizeof *p.factors);
    p.factors[at] = (struct rfx_pixels_factor){RFX_PIXELS_CHANNEL, w.taps, 1};
    for (int i = p.rank; i > axis; i--) p.end[i] = p.end[i - 1] + 1;
    p.end[axis] = at + 1;
    p.count++;
    p.rank++;
    p.extent[w.axis] = w.count;
    p.extent[RFX_PIXELS_CHANNEL] *= w.taps;
    return rfx_onnx_emit_pixels(ctx, &p);
}

int rfx_onnx_gather(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    if (rfx_onnx_in(ctx, 1).node >= 0) return rfx_onnx_gather_computed(ctx);
    x = rfx_onnx_need_computed(ctx);
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    struct rfx_onnx_const *index = rfx_onnx_in_const(ctx, 1);
    const int64_t *given = index == NULL ? NULL : rfx_onnx_const_ints(ctx, index);
    int axis = rfx_onnx_axis_attr(ctx, 0, shape.rank);
    if (rfx_onnx_failed(ctx)) return -1;
    int64_t *indices = rfx_onnx_alloc(ctx, (size_t)index->elems + 1, sizeof *indices);
    for (int64_t i = 0; indices != NULL && i < index->elems; i++) {
        indices[i] = given[i] < 0 ? given[i] + shape.dims[axis] : given[i];
        if (indices[i] < 0 || indices[i] >= shape.dims[axis])
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "index %lld of %lld",
                                   (long long)given[i], (long long)shape.dims[axis]);
    }
    struct rfx_shape result = {0, {0}};
    if (shape.rank - 1 + index->shape.rank > RFX_MAX_RANK || index->elems == 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a result without elements or of rank %d",
                               shape.rank - 1 + index->shape.rank);
    for (int i = 0; i < axis; i++) result.dims[result.rank++] = shape.dims[i];
    for (int i = 0; i < index->shape.rank; i++) result.dims[result.rank++] = index->shape.dims[i];
    for (int i = axis + 1; i < shape.rank; i++) result.dims[result.rank++] = shape.dims[i];
    if (index->elems == 1 && shape.dims[axis] == 1) return give_shape(ctx, &result);
    int out = gather_windows(ctx, x.node, axis, &index->shape, indices);
    if (out >= 0) return out;
    if (rfx_onnx_is_map(ctx, x.node) && axis == 1)
        out = rfx_onnx_select(ctx, "", x.node, indices, index->elems);
    else
        out = rfx_onnx_gather_along(ctx, "", rfx_onnx_plain(ctx, x), axis, indices, index->elems);
    return index->shape.rank == 1 ? out : rfx_onnx_plain_as(ctx, out, &result);
}

/* --- Pad ---
 *
 * A map is padded by PAD, which works row by row. If a tensor is a reordered map and its channels
 * are padded with zeros, the map is padded instead of the tensor. Any other tensor is concatenated
 * with constants (mode "constant"), or its elements are gathered by index (other modes). */

struct pad {
    enum rfx_pad_mode mode;
    double value;
    int64_t before[RFX_MAX_RANK], after[RFX_MAX_RANK];
};

/* Reads the pads of each axis: an attribute up to opset 10, input 1 from opset 11 on. From opset 18
 * on input 3 may list the axes. */
static void read_pads(struct rfx_onnx_import *ctx, int rank, struct pad *pad) {
    const int64_t *pads, *axes = NULL;
    int64_t n_pads, n_axes = 0, most = RFX_ONNX_MOST_GIVEN;
    bool found = rfx_onnx_list_ints(ctx, "pads", 1, &pads, &n_pads);
    bool has_axes = ctx->opset >= 18 && rfx_onnx_list_ints(ctx, "", 3, &axes, &n_axes);
    if (!found || n_pads != 2 * (has_axes ? n_axes : rank) || n_axes > rank)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld pads for rank %d", (long long)n_pads,
                              rank);
    for (int64_t i = 0; !rfx_onnx_failed(ctx) && i < n_pads / 2; i++) {
        int axis = rfx_onnx_axis(ctx, has_axes ? axes[i] : i, rank);
        int64_t before = pad->before[axis] = pads[i];
        int64_t after = pad->after[axis] = pads[i + n_pads / 2];
        if (before < -most || before > most || after < -most || after > most)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a pad of %lld, %lld",
                                  (long long)before, (long long)after);
    }
}

/* Returns the node of a map with zeros before and after its channels. Negative pads remove
 * channels. */
static int pad_channels(struct rfx_onnx_import *ctx, int64_t before, int64_t after, int in) {
    int64_t c = rfx_onnx_tensor_of(ctx, in)->c, count;
    if (before == 0 && after == 0) return in;
    if (!rfx_checked_add_i64(c, before + after, &count) || count < 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "channel pads of %lld, %lld leave no channel of %lld",
                               (long long)before, (long long)after, (long long)c);
    int64_t *map = rfx_onnx_alloc(ctx, (size_t)count, sizeof *map);
    for (int64_t i = 0; map != NULL && i < count; i++)
        map[i] = i >= before && i - before < c ? i - before : -1;
    return rfx_onnx_select(ctx, "", in, map, count);
}

/* Returns the node of a map without the rows and columns that negative pads remove. Sets these pads
 * to 0.
 */
static int cut_map(struct rfx_onnx_import *ctx, struct rfx_pads *p, int in) {
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, in);
    int64_t top = rfx_max_i64(-p->top, 0), left = rfx_max_i64(-p->left, 0);
    int64_t h = t->h - top + rfx_min_i64(p->bottom, 0), w = t->w - left + rfx_min_i64(p->right, 0);
    struct rfx_node crop = {.op = RFX_OP_CROP, .attr.crop = {top, left, 1, 1, h, w}};
    if (h == t->h && w == t->w) return in;
    if (h < 1 || w < 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "negative pads remove all of %lldx%lld",
                               (long long)t->h, (long long)t->w);
    *p = (struct rfx_pads){rfx_max_i64(p->top, 0), rfx_max_i64(p->left, 0),
                           rfx_max_i64(p->bottom, 0), rfx_max_i64(p->right, 0)};
    return rfx_onnx_emit1(ctx, &crop, "/cut", in);
}

/* Returns the node of a padded map. If `last`, x is the map behind a tensor (1, h, w, c), and the
 * result has the order of that tensor. */
static int pad_map(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x, const struct pad *pad,
                   bool last) {
    struct rfx_node node = {.op = RFX_OP_PAD};
    struct rfx_pads pads = {pad->before[2], pad->before[3], pad->after[2], pad->after[3]};
    int in = rfx_onnx_map(ctx, x);
    ctx->order = -1;
    in = pad_channels(ctx, pad->before[1], pad->after[1], in);
    if (pads.top == 0 && pads.left == 0 && pads.bottom == 0 && pads.right == 0)
        return rfx_onnx_ordered(ctx, in, last);
    if (pad->mode == RFX_PAD_WRAP) in = cut_map(ctx, &pads, in);
    node.attr.pad.mode = pad->mode;
    node.attr.pad.pads = pads;
    node.attr.pad.value = (float)pad->value;
    return rfx_onnx_ordered(ctx, rfx_onnx_emit1(ctx, &node, "", in), last);
}

/* Returns whether a map with these pads can be padded as a map: its batch is not padded, and its
 * channels are padded with zeros only. */
static bool keeps_map(const struct pad *pad) {
    bool channels = pad->before[1] != 0 || pad->after[1] != 0;
    bool zeros = pad->mode == RFX_PAD_CONSTANT && pad->value == 0.0;
    return pad->before[0] == 0 && pad->after[0] == 0 && (!channels || zeros);
}

/* Returns the node of a reordered map whose channels are padded with zeros, or -1 for any other
 * Pad. */
static int pad_pixels(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                      const struct pad *pad) {
    struct rfx_pixels p;
    int axis = -1;
    if (pad->mode != RFX_PAD_CONSTANT || pad->value != 0.0 || x.node < 0 ||
        !rfx_pixels_of(ctx->graph, x.node, &p))
        return -1;
    for (int i = 0; i < p.rank; i++) {
        if (pad->before[i] == 0 && pad->after[i] == 0) continue;
        if (axis >= 0) return -1;
        axis = i;
    }
    if (axis < 0 || !rfx_pixels_axis_is_channels(&p, axis)) return -1;
    int out = pad_channels(ctx, pad->before[axis], pad->after[axis], p.map);
    if (out < 0) return -1;
    p = rfx_pixels_with_channels(&p, axis, out, rfx_onnx_tensor_of(ctx, out)->c);
    return rfx_onnx_emit_pixels(ctx, &p);
}

/* Returns which element of an axis of n elements mode `mode` copies to index i, which lies outside
 * of the axis. */
static int64_t source_of(enum rfx_pad_mode mode, int64_t i, int64_t n) {
    if (mode == RFX_PAD_WRAP) return i - rfx_floor_div(i, n) * n;
    if (mode == RFX_PAD_EDGE || n == 1) return i < 0 ? 0 : n - 1;
    int64_t period = 2 * (n - 1), at = i - rfx_floor_div(i, period) * period;
    return at < n ? at : period - at;
}

/* Returns the node of a tensor with one axis padded by gathering elements. */
static int pick_axis(struct rfx_onnx_import *ctx, const struct pad *pad, int axis, int in) {
    int64_t n = rfx_onnx_tensor_of(ctx, in)->shape.dims[axis];
    int64_t before = rfx_max_i64(pad->before[axis], 0), after = rfx_max_i64(pad->after[axis], 0);
    int64_t *map = rfx_onnx_alloc(ctx, (size_t)(n + before + after), sizeof *map);
    for (int64_t i = 0; map != NULL && i < n + before + after; i++)
        map[i] = i >= before && i < before + n ? i - before : source_of(pad->mode, i - before, n);
    return rfx_onnx_gather_along(ctx, "/axis", in, axis, map, n + before + after);
}

/* Returns the node of a tensor with one axis padded by constants. */
static int join_axis(struct rfx_onnx_import *ctx, const struct pad *pad, int axis, int in) {
    struct rfx_node join = {.op = RFX_OP_PLAIN_CONCAT, .attr.concat.axis = axis};
    struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    int parts[3], n = 0;
    for (int side = 0; side < 3; side++) {
        int64_t size = side == 0 ? pad->before[axis] : pad->after[axis];
        if (side == 1) parts[n++] = in;
        if (side == 1 || size <= 0) continue;
        shape.dims[axis] = size;
        struct rfx_onnx_const *c = rfx_onnx_const_new_filled(ctx, RFX_ONNX_FLOAT, &shape, true);
        if (c == NULL) return -1;
        for (int64_t i = 0; i < rfx_onnx_const_stored(c); i++)
            rfx_onnx_const_reals_rw(c)[i] = pad->value;
        parts[n++] = rfx_onnx_plain(ctx, rfx_onnx_of_const(c));
    }
    return rfx_onnx_emit(ctx, &join, "/axis", parts, n);
}

/* Returns the node of a padded tensor of any rank. Each axis is padded by a node of its own. */
static int pad_tensor(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                      const struct pad *pad) {
    int in = rfx_onnx_plain(ctx, x);
    struct rfx_node cut = {.op = RFX_OP_PLAIN_SLICE,
                           .attr.slice = whole_cut(&rfx_onnx_tensor_of(ctx, in)->shape)};
    struct rfx_shape *shape = &cut.attr.slice.shape;
    bool cuts = false;
    if (in < 0) return -1;
    for (int i = 0; i < shape->rank; i++) {
        cut.attr.slice.starts[i] = rfx_max_i64(-pad->before[i], 0);
        int64_t gone = cut.attr.slice.starts[i] + rfx_max_i64(-pad->after[i], 0);
        cuts = cuts || gone > 0;
        shape->dims[i] -= gone;
        int64_t most = rfx_max_i64(pad->before[i], pad->after[i]);
        if (shape->dims[i] < 1 || (pad->mode == RFX_PAD_REFLECT && most >= shape->dims[i]))
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "axis %d: pads %lld, %lld of %lld",
                                   i, (long long)pad->before[i], (long long)pad->after[i],
                                   (long long)(shape->dims[i] + gone));
    }
    if (cuts) in = rfx_onnx_emit1(ctx, &cut, "/cut", in);
    for (int i = 0; in >= 0 && i < cut.attr.slice.shape.rank; i++)
        if (pad->before[i] > 0 || pad->after[i] > 0)
            in = pad->mode == RFX_PAD_CONSTANT ? join_axis(ctx, pad, i, in)
                                               : pick_axis(ctx, pad, i, in);
    return in;
}

static int emit_pad(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x, const struct pad *pad) {
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    bool none = true;
    if (rfx_onnx_failed(ctx)) return -1;
    for (int i = 0; i < shape.rank; i++) none = none && pad->before[i] == 0 && pad->after[i] == 0;
    if (none) return rfx_onnx_set(ctx, 0, x);
    int behind = rfx_onnx_map_behind(ctx, x.node);
    struct pad first = *pad;
    for (int i = 0; behind >= 0 && i < 4; i++) {
        first.before[i] = pad->before[to_first[i]];
        first.after[i] = pad->after[to_first[i]];
    }
    if (behind >= 0 && keeps_map(&first)) return pad_map(ctx, rfx_onnx_of(behind), &first, true);
    if (shape.rank == 4 && shape.dims[0] == 1 && keeps_map(pad)) return pad_map(ctx, x, pad, false);
    int out = pad_pixels(ctx, x, pad);
    return out >= 0 || rfx_onnx_failed(ctx) ? out : pad_tensor(ctx, x, pad);
}

int rfx_onnx_pad(struct rfx_onnx_import *ctx) {
    static const char *const modes[] = {[RFX_PAD_CONSTANT] = "constant",
                                        [RFX_PAD_REFLECT] = "reflect",
                                        [RFX_PAD_EDGE] = "edge",
                                        [RFX_PAD_WRAP] = "wrap"};
    struct rfx_onnx_operand x = rfx_onnx_need_computed(ctx);
    struct pad pad = {.mode = RFX_PAD_CONSTANT};
    read_pads(ctx, rfx_onnx_shape(ctx, x)->rank, &pad);
    pad.mode = (enum rfx_pad_mode)rfx_onnx_attr_choice(ctx, "mode", "constant", modes, 4);
    pad.value = (double)rfx_onnx_attr_float(ctx, "value", 0.0f);
    if (ctx->opset >= 11 && pad.mode == RFX_PAD_CONSTANT)
        pad.value = rfx_onnx_in_number_or(ctx, 2, pad.value);
    return emit_pad(ctx, x, &pad);
}

/* CenterCropPad. An axis that is too long is cropped to its middle, an axis that is too short gets
 * zeros on both sides. An odd element is removed or added at the end. */
int rfx_onnx_center_crop_pad(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_need_computed(ctx);
    const int64_t *axes;
    struct pad pad = {.mode = RFX_PAD_CONSTANT};
    int64_t n_axes, count;
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    const int64_t *sizes = rfx_onnx_in_ints(ctx, 1, &count);
    bool some = rfx_onnx_list_ints(ctx, "axes", 2, &axes, &n_axes);
    if (count != (some ? n_axes : shape.rank))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld sizes for %lld axes",
                               (long long)count, (long long)(some ? n_axes : shape.rank));
    for (int64_t i = 0; i < count; i++) {
        int axis = rfx_onnx_axis(ctx, some ? axes[i] : i, shape.rank);
        if (sizes[i] < 1 || sizes[i] > RFX_ONNX_MOST_GIVEN)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "size %lld of axis %d",
                                   (long long)sizes[i], axis);
        int64_t more = sizes[i] - shape.dims[axis];
        pad.before[axis] = more / 2; /* towards 0 */
        pad.after[axis] = more - more / 2;
    }
    return emit_pad(ctx, x, &pad);
}
