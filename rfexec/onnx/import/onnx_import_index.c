/* Conversion of what picks elements by their numbers. Tile with constant repeats: channels of a map
 * are picked again, other axes are gathered from the whole tensor. TopK, and what reads and writes
 * where indices say that may be computed: whole tensors. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"
#include "rfexec/onnx/import/onnx_import.h"

static enum rfx_status finish(struct rfx_onnx_import *ctx, enum rfx_status status, int out) {
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* 0 .. n - 1, `repeats` times over. */
static enum rfx_status repeated(struct rfx_onnx_import *ctx, int64_t n, int64_t repeats,
                                int64_t **out, int64_t *count) {
    if (!rfx_checked_mul_i64(n, repeats, count) || *count > RFX_FLOAT_COUNT_MAX)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "%lld repeats of %lld elements: more than %lld are not supported",
                               (long long)repeats, (long long)n, (long long)RFX_FLOAT_COUNT_MAX);
    *out = rfx_arena_alloc(ctx->arena, (size_t)*count, sizeof **out);
    if (*out == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for %lld indices",
                               (long long)*count);
    for (int64_t i = 0; i < *count; i++) (*out)[i] = i % n;
    return RFX_OK;
}

static enum rfx_status repeat_axis(struct rfx_onnx_import *ctx, int *at, int axis,
                                   int64_t repeats) {
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, *at);
    bool map = t.layout == RFX_LAYOUT_NHWC;
    struct rfx_node node = {.op = map ? RFX_OP_CHANNEL_SELECT : RFX_OP_PLAIN_GATHER};
    int64_t *indices = NULL, count = 0;
    enum rfx_status status = repeated(ctx, t.shape.dims[axis], repeats, &indices, &count);
    if (status != RFX_OK) return status;
    if (map) {
        node.attr.select.count = count;
        node.attr.select.map = indices;
    } else {
        node.attr.gather.axis = axis;
        node.attr.gather.count = count;
        node.attr.gather.map = indices;
    }
    return rfx_onnx_emit(ctx, &node, "/tiled", at, 1, at);
}

enum rfx_status rfx_onnx_tile(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *c;
    const int64_t *repeats;
    int at;
    bool channels_only = true;
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &at);
    if (status == RFX_OK) status = rfx_onnx_in_const(ctx, 1, &c);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, c, &repeats);
    if (status != RFX_OK) return status;
    int rank = rfx_onnx_tensor_of(ctx, at)->shape.rank;
    if (c->elems != rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld repeats for rank %d",
                               (long long)c->elems, rank);
    for (int axis = 0; axis < rank; axis++) {
        if (repeats[axis] < 1)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%lld repeats of axis %d",
                                   (long long)repeats[axis], axis);
        channels_only = channels_only && (axis == 1 || repeats[axis] == 1);
    }
    struct rfx_onnx_operand x = {at, NULL};
    if (!channels_only) status = rfx_onnx_plain(ctx, x, &at);
    for (int axis = 0; status == RFX_OK && axis < rank; axis++)
        if (repeats[axis] > 1) status = repeat_axis(ctx, &at, axis, repeats[axis]);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, at) : status;
}

/* --- TopK --- */

/* Since opset 10 the number is an input. */
static enum rfx_status read_k(struct rfx_onnx_import *ctx, int64_t *k) {
    const int64_t *values = NULL;
    int64_t count = 0;
    bool found;
    *k = rfx_onnx_attr_int(ctx, "k", 0);
    if (ctx->opset < 10) return RFX_OK;
    enum rfx_status status = rfx_onnx_list_ints(ctx, "", 1, &values, &count, &found);
    if (status == RFX_OK && count != 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld numbers k", (long long)count);
    if (status == RFX_OK) *k = values[0];
    return status;
}

/* The map among whose channels operand 0 is searched, *last: as its last axis; or -1. */
static int map_to_search(struct rfx_onnx_import *ctx, int axis, bool *last) {
    int node = rfx_onnx_in(ctx, 0).node;
    int behind = node < 0 ? -1 : rfx_onnx_tokens_behind(ctx, node);
    *last = behind >= 0;
    if (node < 0) return -1;
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, node);
    if (*last) return axis == t->shape.rank - 1 ? behind : -1;
    return t->layout == RFX_LAYOUT_NHWC && axis == 1 ? node : -1;
}

/* Where they are is found; the values are what lies there. Among a map's channels pixel by pixel, of
 * other axes in whole tensors. */
enum rfx_status rfx_onnx_top_k(struct rfx_onnx_import *ctx) {
    struct rfx_node find = {.op = RFX_OP_TOP_K}, take = {.op = RFX_OP_PICK};
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0), results[2] = {{-1, NULL}, {-1, NULL}};
    int in, axis = 0;
    bool last = false;
    if (x.node < 0 && x.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input 0 is missing");
    enum rfx_status status =
        rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", -1), rfx_onnx_shape(ctx, x)->rank, &axis);
    if (status == RFX_OK) status = read_k(ctx, &find.attr.top_k.k);
    if (status != RFX_OK) return status;
    in = map_to_search(ctx, axis, &last);
    bool map = in >= 0;
    if (!map) status = rfx_onnx_plain(ctx, x, &in);
    take.attr.index.kind = RFX_INDEX_ELEMENTS;
    take.attr.index.axis = find.attr.top_k.axis = map ? 1 : axis;
    find.attr.top_k.largest = rfx_onnx_attr_flag(ctx, "largest", true);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &find, "/indices", &in, 1, &results[1].node);
    int both[2] = {in, results[1].node};
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &take, "", both, 2, &results[0].node);
    for (size_t k = 0; status == RFX_OK && k < 2; k++) {
        if (map && last) status = rfx_onnx_channels_last(ctx, results[k].node, &results[k].node);
        if (status == RFX_OK) status = rfx_onnx_set(ctx, k, results[k]);
    }
    return status;
}

/* --- indices that may be computed --- */

/* Operand k as a tensor. Integers of a constant must be numbers that float32 has. */
static enum rfx_status tensor_in(struct rfx_onnx_import *ctx, size_t k, int *out) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, k);
    const int64_t *ints = NULL;
    if (x.constant != NULL && !rfx_onnx_type_is_real(x.constant->type)) {
        enum rfx_status status = rfx_onnx_const_stored_ints(ctx, x.constant, &ints);
        if (status != RFX_OK) return status;
        for (int64_t i = 0; i < rfx_onnx_const_stored(x.constant); i++)
            if (ints[i] < -RFX_FLOAT_COUNT_MAX || ints[i] > RFX_FLOAT_COUNT_MAX)
                return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                       "%lld in input %zu, which float32 cannot count",
                                       (long long)ints[i], k);
    }
    return rfx_onnx_plain(ctx, x, out);
}

/* Constant indices are looked at here; of computed ones a run makes NaN where they are outside. */
static enum rfx_status check_indices(struct rfx_onnx_import *ctx, struct rfx_onnx_const *indices,
                                     const struct rfx_shape *data, enum rfx_index_kind kind,
                                     int axis) {
    const int64_t *ints = NULL;
    int rank = indices->shape.rank;
    bool tuples = kind == RFX_INDEX_TUPLES;
    int64_t width = tuples && rank > 0 ? indices->shape.dims[rank - 1] : 1;
    enum rfx_status status = rfx_onnx_const_stored_ints(ctx, indices, &ints);
    if (status != RFX_OK || width < 1 || axis + width > data->rank) return status; /* infer says */
    for (int64_t i = 0; i < indices->elems; i++) {
        int64_t n = data->dims[axis + i % width];
        int64_t at = ints[rfx_onnx_const_at(indices, i)];
        if (at < -n || at >= n)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "index %lld of %lld", (long long)at,
                                   (long long)n);
    }
    return RFX_OK;
}

/* The data and the indices of PICK and SCATTER. */
static enum rfx_status data_and_indices(struct rfx_onnx_import *ctx, enum rfx_index_kind kind,
                                        int64_t axis, struct rfx_node *node, int *in) {
    struct rfx_onnx_const *indices = rfx_onnx_in(ctx, 1).constant;
    int at = 0;
    enum rfx_status status = tensor_in(ctx, 0, &in[0]);
    if (status == RFX_OK) status = tensor_in(ctx, 1, &in[1]);
    if (status != RFX_OK) return status;
    const struct rfx_shape data = rfx_onnx_tensor_of(ctx, in[0])->shape;
    status = rfx_onnx_axis(ctx, axis, data.rank, &at);
    node->attr.index.kind = kind;
    node->attr.index.axis = at;
    if (status != RFX_OK || indices == NULL) return status;
    return check_indices(ctx, indices, &data, kind, at);
}

static enum rfx_status pick(struct rfx_onnx_import *ctx, enum rfx_index_kind kind, int64_t axis) {
    struct rfx_node node = {.op = RFX_OP_PICK};
    int in[2], out = -1;
    enum rfx_status status = data_and_indices(ctx, kind, axis, &node, in);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", in, 2, &out);
    return finish(ctx, status, out);
}

enum rfx_status rfx_onnx_gather_elements(struct rfx_onnx_import *ctx) {
    return pick(ctx, RFX_INDEX_ELEMENTS, rfx_onnx_attr_int(ctx, "axis", 0));
}

enum rfx_status rfx_onnx_gather_nd(struct rfx_onnx_import *ctx) {
    int64_t before = rfx_onnx_attr_int(ctx, "batch_dims", 0);
    if (before < 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "batch_dims = %lld", (long long)before);
    return pick(ctx, RFX_INDEX_TUPLES, before);
}

enum rfx_status rfx_onnx_gather_computed(struct rfx_onnx_import *ctx) {
    return pick(ctx, RFX_INDEX_SLICES, rfx_onnx_attr_int(ctx, "axis", 0));
}

static enum rfx_status scatter(struct rfx_onnx_import *ctx, enum rfx_index_kind kind,
                               int64_t axis) {
    static const char *const kinds[] = {"none", "add", "mul", "max", "min"};
    const char *reduction = rfx_onnx_attr_string(ctx, "reduction", "none");
    struct rfx_node node = {.op = RFX_OP_SCATTER};
    int in[3], out = -1, k = 0;
    while (k < 5 && strcmp(reduction, kinds[k]) != 0) k++;
    if (k == 5) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "reduction %.40s", reduction);
    enum rfx_status status = data_and_indices(ctx, kind, axis, &node, in);
    if (status == RFX_OK) status = tensor_in(ctx, 2, &in[2]);
    node.attr.index.scatter = (enum rfx_scatter_kind)k;
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", in, 3, &out);
    return finish(ctx, status, out);
}

enum rfx_status rfx_onnx_scatter_elements(struct rfx_onnx_import *ctx) {
    return scatter(ctx, RFX_INDEX_ELEMENTS, rfx_onnx_attr_int(ctx, "axis", 0));
}

enum rfx_status rfx_onnx_scatter_nd(struct rfx_onnx_import *ctx) {
    return scatter(ctx, RFX_INDEX_TUPLES, 0);
}

/* --- OneHot --- */

/* Whole numbers `first` and on, along the axis in front of `behind` axes of 1. */
static enum rfx_status count_along(struct rfx_onnx_import *ctx, int64_t first, int64_t depth,
                                   int behind, struct rfx_onnx_operand *out) {
    struct rfx_shape shape = {behind + 1, {depth}};
    for (int i = 1; i <= behind; i++) shape.dims[i] = 1;
    *out = (struct rfx_onnx_operand){-1, rfx_onnx_const_new(ctx, RFX_ONNX_FLOAT, &shape)};
    if (out->constant == NULL && ctx->out_of_memory)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for %lld numbers",
                               (long long)depth);
    if (out->constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a depth of %lld, which is too much for a constant",
                               (long long)depth);
    for (int64_t i = 0; i < depth; i++)
        rfx_onnx_const_reals_rw(out->constant)[i] = (double)(first + i);
    return RFX_OK;
}

/* Element k of operand 2, the values for off and on. */
static enum rfx_status value_of(struct rfx_onnx_import *ctx, int values, int64_t k,
                                struct rfx_onnx_operand *out) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_SLICE};
    node.attr.slice = (struct rfx_slice_attr){{k}, {1}, {1, {1}}};
    out->constant = NULL;
    return rfx_onnx_emit(ctx, &node, k == 0 ? "/off" : "/on", &values, 1, &out->node);
}

/* The indices as whole numbers, with an axis of 1 where the new one is to be; how many are behind
 * it. */
static enum rfx_status spread_indices(struct rfx_onnx_import *ctx, int *in, int *behind) {
    const struct rfx_onnx_const *given = rfx_onnx_in(ctx, 0).constant;
    int axis;
    enum rfx_status status = tensor_in(ctx, 0, in);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = rfx_onnx_tensor_of(ctx, *in)->shape;
    bool whole = given != NULL ? !rfx_onnx_type_is_real(given->type) : rfx_onnx_is_whole(ctx, *in);
    if (shape.rank == RFX_MAX_RANK)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "indices of rank %d", shape.rank);
    status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", -1), shape.rank + 1, &axis);
    if (status != RFX_OK) return status;
    *behind = shape.rank - axis;
    memmove(shape.dims + axis + 1, shape.dims + axis, (size_t)*behind * sizeof *shape.dims);
    shape.dims[axis] = 1;
    shape.rank++;
    if (!whole) status = rfx_onnx_towards_zero(ctx, "/whole", *in, in);
    return status == RFX_OK ? rfx_onnx_reshape(ctx, *in, &shape, in) : status;
}

/* On where an index is the place's number, or that less the depth: so negative ones count from the
 * end; all others are off everywhere. */
enum rfx_status rfx_onnx_one_hot(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand index = {-1, NULL}, place, hit[2], on, off;
    double depth = 0.0;
    int behind = 0, values;
    enum rfx_status status = rfx_onnx_in_number(ctx, 1, &depth);
    if (status == RFX_OK && !(depth >= 1.0 && depth <= (double)RFX_FLOAT_COUNT_MAX))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a depth of %.10g", depth);
    if (status == RFX_OK) status = spread_indices(ctx, &index.node, &behind);
    if (status == RFX_OK) status = tensor_in(ctx, 2, &values);
    if (status != RFX_OK) return status;
    const struct rfx_shape *pair = &rfx_onnx_tensor_of(ctx, values)->shape;
    if (pair->rank != 1 || pair->dims[0] != 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "values that are not off and on");
    for (int k = 0; status == RFX_OK && k < 2; k++) {
        hit[k] = index;
        status = count_along(ctx, k == 0 ? 0 : -(int64_t)depth, (int64_t)depth, behind, &place);
        if (status == RFX_OK)
            status = rfx_onnx_combine(ctx, RFX_BINARY_EQUAL, k == 0 ? "/place" : "/from_end", index,
                                      place, &hit[k].node);
    }
    if (status == RFX_OK)
        status = rfx_onnx_combine(ctx, RFX_BINARY_OR, "/hit", hit[0], hit[1], &index.node);
    if (status == RFX_OK) status = value_of(ctx, values, 0, &off);
    if (status == RFX_OK) status = value_of(ctx, values, 1, &on);
    return status == RFX_OK ? rfx_onnx_choose(ctx, index, on, off) : status;
}
