/* Converters of Tile, TopK and OneHot, and of gathers and scatters whose indices may be computed.
 */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

/* Returns the node of a tensor repeated along one axis: the channels of a map, or any axis of a
 * PLAIN tensor. */
static int repeat_axis(struct rfx_onnx_import *ctx, int in, int axis, int64_t repeats) {
    int64_t n = rfx_onnx_tensor_of(ctx, in)->shape.dims[axis], count;
    if (!rfx_checked_mul_i64(n, repeats, &count) || count > RFX_FLOAT_COUNT_MAX)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "%lld repeats of %lld elements: more than %lld are not supported",
                               (long long)repeats, (long long)n, (long long)RFX_FLOAT_COUNT_MAX);
    int64_t *indices = rfx_onnx_alloc(ctx, (size_t)count, sizeof *indices);
    for (int64_t i = 0; indices != NULL && i < count; i++) indices[i] = i % n;
    return rfx_onnx_is_map(ctx, in)
               ? rfx_onnx_select(ctx, "/tiled", in, indices, count)
               : rfx_onnx_gather_along(ctx, "/tiled", in, axis, indices, count);
}

/* Tile with constant repeats. If only channels of a map are repeated, the result is a map, else a
 * PLAIN tensor. */
int rfx_onnx_tile(struct rfx_onnx_import *ctx) {
    int64_t count;
    bool channels_only = true;
    int at = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0));
    const int64_t *repeats = rfx_onnx_in_ints(ctx, 1, &count);
    int rank = rfx_onnx_tensor_of(ctx, at)->shape.rank;
    if (count != rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld repeats for rank %d",
                               (long long)count, rank);
    for (int axis = 0; axis < rank; axis++) {
        if (repeats[axis] < 1)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%lld repeats of axis %d",
                                   (long long)repeats[axis], axis);
        channels_only = channels_only && (axis == 1 || repeats[axis] == 1);
    }
    if (!channels_only) at = rfx_onnx_plain(ctx, rfx_onnx_of(at));
    for (int axis = 0; at >= 0 && axis < rank; axis++)
        if (repeats[axis] > 1) at = repeat_axis(ctx, at, axis, repeats[axis]);
    return at;
}

/* --- TopK --- */

/* Returns the number k: an attribute before opset 10, input 1 since then. */
static int64_t read_k(struct rfx_onnx_import *ctx) {
    const int64_t *values;
    int64_t count, k = rfx_onnx_attr_int(ctx, "k", 0);
    if (ctx->opset < 10) return k;
    (void)rfx_onnx_list_ints(ctx, "", 1, &values, &count);
    if (count == 1) return values[0];
    return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld numbers k", (long long)count);
}

/* TopK: a node finds the indices of the elements, and a second node reads the values there. Along
 * the channels of a map both work pixel by pixel; along other axes they need whole tensors. */
int rfx_onnx_top_k(struct rfx_onnx_import *ctx) {
    struct rfx_node find = {.op = RFX_OP_TOP_K}, take = {.op = RFX_OP_PICK};
    struct rfx_onnx_operand x = rfx_onnx_need(ctx, 0);
    bool last = false;
    int axis = rfx_onnx_axis_attr(ctx, -1, rfx_onnx_shape(ctx, x)->rank);
    find.attr.top_k.k = read_k(ctx);
    int in = rfx_onnx_map_of_channels(ctx, x.node, axis, &last);
    bool map = in >= 0;
    if (!map) in = rfx_onnx_plain(ctx, x);
    take.attr.index.kind = RFX_INDEX_ELEMENTS;
    take.attr.index.axis = find.attr.top_k.axis = map ? 1 : axis;
    find.attr.top_k.largest = rfx_onnx_attr_flag(ctx, "largest", true);
    int where = rfx_onnx_emit1(ctx, &find, "/indices", in);
    int values = rfx_onnx_emit2(ctx, &take, "", in, where);
    values = rfx_onnx_ordered(ctx, values, map && last);
    (void)rfx_onnx_set(ctx, 0, rfx_onnx_of(values));
    where = rfx_onnx_ordered(ctx, where, map && last);
    return rfx_onnx_set(ctx, 1, rfx_onnx_of(where));
}

/* --- indices that may be computed --- */

/* Returns operand k as a PLAIN tensor. UNSUPPORTED: a constant integer is not exact in float32. */
static int tensor_in(struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, k);
    if (x.constant != NULL && !rfx_onnx_type_is_real(x.constant->type)) {
        const int64_t *ints = rfx_onnx_const_stored_ints(ctx, x.constant);
        for (int64_t i = 0; ints != NULL && i < rfx_onnx_const_stored(x.constant); i++)
            if (ints[i] < -RFX_FLOAT_COUNT_MAX || ints[i] > RFX_FLOAT_COUNT_MAX)
                return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                       "%lld in input %zu, which float32 cannot count",
                                       (long long)ints[i], k);
    }
    return rfx_onnx_plain(ctx, x);
}

/* Refuses constant indices outside of the data. Where a computed index is outside, a run gives NaN.
 */
static void check_indices(struct rfx_onnx_import *ctx, struct rfx_onnx_const *indices,
                          const struct rfx_shape *data, enum rfx_index_kind kind, int axis) {
    int rank = indices->shape.rank;
    int64_t width = kind == RFX_INDEX_TUPLES && rank > 0 ? indices->shape.dims[rank - 1] : 1;
    const int64_t *ints = rfx_onnx_const_stored_ints(ctx, indices);
    if (ints == NULL || width < 1 || axis + width > data->rank) return; /* the graph refuses it */
    for (int64_t i = 0; i < indices->elems; i++) {
        int64_t n = data->dims[axis + i % width];
        int64_t at = ints[rfx_onnx_const_at(indices, i)];
        if (at < -n || at >= n)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "index %lld of %lld", (long long)at,
                                  (long long)n);
    }
}

/* Sets the attributes of PICK and SCATTER, and in[0] and in[1] to the data and the indices. */
static void data_and_indices(struct rfx_onnx_import *ctx, enum rfx_index_kind kind, int64_t axis,
                             struct rfx_node *node, int *in) {
    struct rfx_onnx_const *indices = rfx_onnx_in(ctx, 1).constant;
    in[0] = tensor_in(ctx, 0);
    in[1] = tensor_in(ctx, 1);
    const struct rfx_shape data = rfx_onnx_tensor_of(ctx, in[0])->shape;
    node->attr.index.kind = kind;
    node->attr.index.axis = rfx_onnx_axis(ctx, axis, data.rank);
    if (indices != NULL && !rfx_onnx_failed(ctx))
        check_indices(ctx, indices, &data, kind, node->attr.index.axis);
}

static int pick(struct rfx_onnx_import *ctx, enum rfx_index_kind kind, int64_t axis) {
    struct rfx_node node = {.op = RFX_OP_PICK};
    int in[2];
    data_and_indices(ctx, kind, axis, &node, in);
    return rfx_onnx_emit(ctx, &node, "", in, 2);
}

int rfx_onnx_gather_elements(struct rfx_onnx_import *ctx) {
    return pick(ctx, RFX_INDEX_ELEMENTS, rfx_onnx_attr_int(ctx, "axis", 0));
}

int rfx_onnx_gather_nd(struct rfx_onnx_import *ctx) {
    int64_t before = rfx_onnx_attr_int(ctx, "batch_dims", 0);
    if (before < 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "batch_dims = %lld", (long long)before);
    return pick(ctx, RFX_INDEX_TUPLES, before);
}

int rfx_onnx_gather_computed(struct rfx_onnx_import *ctx) {
    return pick(ctx, RFX_INDEX_SLICES, rfx_onnx_attr_int(ctx, "axis", 0));
}

static int scatter(struct rfx_onnx_import *ctx, enum rfx_index_kind kind, int64_t axis) {
    static const char *const kinds[] = {"none", "add", "mul", "max", "min"};
    struct rfx_node node = {.op = RFX_OP_SCATTER};
    int in[3], k = rfx_onnx_attr_choice(ctx, "reduction", "none", kinds, 5);
    data_and_indices(ctx, kind, axis, &node, in);
    in[2] = tensor_in(ctx, 2);
    node.attr.index.scatter = (enum rfx_scatter_kind)k;
    return rfx_onnx_emit(ctx, &node, "", in, 3);
}

int rfx_onnx_scatter_elements(struct rfx_onnx_import *ctx) {
    return scatter(ctx, RFX_INDEX_ELEMENTS, rfx_onnx_attr_int(ctx, "axis", 0));
}

int rfx_onnx_scatter_nd(struct rfx_onnx_import *ctx) {
    return scatter(ctx, RFX_INDEX_TUPLES, 0);
}

/* --- OneHot --- */

/* Returns a constant of the numbers first, first + 1, ... (`depth` numbers) along axis 0, with
 * `behind` axes of size 1 after it. */
static struct rfx_onnx_operand count_along(struct rfx_onnx_import *ctx, int64_t first,
                                           int64_t depth, int behind) {
    struct rfx_shape shape = {behind + 1, {depth, 1, 1, 1, 1, 1, 1, 1}};
    struct rfx_onnx_const *c = rfx_onnx_const_new(ctx, RFX_ONNX_FLOAT, &shape);
    for (int64_t i = 0; c != NULL && i < depth; i++) rfx_onnx_const_put(c, i, (double)(first + i));
    return rfx_onnx_of_const(c);
}

/* Returns element k of the two values of OneHot: 0 off, 1 on. */
static struct rfx_onnx_operand value_of(struct rfx_onnx_import *ctx, int values, int64_t k) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_SLICE};
    node.attr.slice = (struct rfx_slice_attr){{k}, {1}, {1, {1}}};
    return rfx_onnx_of(rfx_onnx_emit1(ctx, &node, k == 0 ? "/off" : "/on", values));
}

/* Returns the indices as whole numbers, with an axis of size 1 at the place of the new axis.
 * *behind is the number of axes after it. */
static int spread_indices(struct rfx_onnx_import *ctx, int *behind) {
    const struct rfx_onnx_const *given = rfx_onnx_in(ctx, 0).constant;
    int in = tensor_in(ctx, 0);
    struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    if (shape.rank == RFX_MAX_RANK)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "indices of rank %d", shape.rank);
    int axis = rfx_onnx_axis_attr(ctx, -1, shape.rank + 1);
    if (rfx_onnx_failed(ctx)) return -1;
    bool whole = given != NULL ? !rfx_onnx_type_is_real(given->type) : rfx_onnx_is_whole(ctx, in);
    *behind = shape.rank - axis;
    memmove(shape.dims + axis + 1, shape.dims + axis, (size_t)*behind * sizeof *shape.dims);
    shape.dims[axis] = 1;
    shape.rank++;
    if (!whole) in = rfx_onnx_towards_zero(ctx, "/whole", in);
    return rfx_onnx_reshape(ctx, in, &shape);
}

/* OneHot: the value is `on` where the position equals the index, or the index plus depth, as
 * negative indices count from the end. For an index out of range all values are `off`. */
int rfx_onnx_one_hot(struct rfx_onnx_import *ctx) {
    double depth = rfx_onnx_in_number(ctx, 1);
    int behind = 0;
    if (!(depth >= 1.0 && depth <= (double)RFX_FLOAT_COUNT_MAX))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a depth of %.10g", depth);
    struct rfx_onnx_operand index = rfx_onnx_of(spread_indices(ctx, &behind)), hit[2];
    int values = tensor_in(ctx, 2);
    const struct rfx_shape *pair = &rfx_onnx_tensor_of(ctx, values)->shape;
    if (pair->rank != 1 || pair->dims[0] != 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "values that are not off and on");
    for (int k = 0; k < 2; k++) {
        struct rfx_onnx_operand place =
            count_along(ctx, k == 0 ? 0 : -(int64_t)depth, (int64_t)depth, behind);
        hit[k] = rfx_onnx_of(
            rfx_onnx_combine(ctx, RFX_BINARY_EQUAL, k == 0 ? "/place" : "/from_end", index, place));
    }
    index.node = rfx_onnx_combine(ctx, RFX_BINARY_OR, "/hit", hit[0], hit[1]);
    struct rfx_onnx_operand off = value_of(ctx, values, 0), on = value_of(ctx, values, 1);
    return rfx_onnx_choose(ctx, index, on, off);
}
