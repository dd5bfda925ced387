/* The table of operators, and what they share; see late_ops.h. */
#include "rfexec/late/late_ops.h"

#include <string.h>

#include "layers/core/checked.h"

/* Of Pad and ScatterND other modes are not supported. */
static const struct rfx_late_attributes constant_mode = {"mode", "constant", {0}},
                                        no_reduction = {"reduction", "none", {0}},
                                        thresholds = {"plugin_version",
                                                      "1",
                                                      {"score_threshold", "iou_threshold"}};

/* clang-format off */
static const struct rfx_late_op ops[] = {
    {"Add", rfx_late_binary, RFX_LATE_ADD, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"And", rfx_late_logic, RFX_LATE_AND, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"Cast", rfx_late_cast, 0, 1, 1, 1, {{"to", 0}}, 0, 0, 0, 0},
    {"Clip", rfx_late_clip, 0, 1, 3, 1, {{0}}, 0, 0, 0, 0},
    {"Concat", rfx_late_concat, 0, 1, 0, 1, {{"axis", 0}}, 0, 0, 0, 0},
    {"ConstantOfShape", rfx_late_constant_of_shape, 0, 1, 1, 1, {{0}}, 0, "value", 0, 0},
    {"Div", rfx_late_binary, RFX_LATE_DIV, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"EfficientNMS_TRT", rfx_late_efficient_nms, 0, 2, 3, 4,
     {{"max_output_boxes", 0}, {"background_class", -1}, {"score_activation", 0},
      {"box_coding", 0}, {"class_agnostic", 0}},
     0, 0, &thresholds, rfx_late_efficient_nms_check},
    {"Equal", rfx_late_compare, RFX_LATE_EQUAL, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"Exp", rfx_late_unary, RFX_LATE_EXP, 1, 1, 1, {{0}}, 0, 0, 0, 0},
    {"Expand", rfx_late_expand, 0, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"Flatten", rfx_late_flatten, 0, 1, 1, 1, {{"axis", 1}}, 0, 0, 0, 0},
    {"Gather", rfx_late_gather, 0, 2, 2, 1, {{"axis", 0}}, 0, 0, 0, 0},
    {"GatherND", rfx_late_gather_nd, 0, 2, 2, 1, {{"batch_dims", 0}}, 0, 0, 0, 0},
    {"Greater", rfx_late_compare, RFX_LATE_GREATER, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"GreaterOrEqual", rfx_late_compare, RFX_LATE_GREATER_OR_EQUAL, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"Identity", rfx_late_identity, 0, 1, 1, 1, {{0}}, 0, 0, 0, 0},
    {"If", NULL, 0, 1, 1, 0, {{0}}, 0, 0, 0, 0},
    {"Less", rfx_late_compare, RFX_LATE_LESS, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"LessOrEqual", rfx_late_compare, RFX_LATE_LESS_OR_EQUAL, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"Max", rfx_late_binary, RFX_LATE_MAX, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"Min", rfx_late_binary, RFX_LATE_MIN, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"Mod", rfx_late_binary, RFX_LATE_MOD, 2, 2, 1, {{"fmod", 0}}, 0, 0, 0, 0},
    {"Mul", rfx_late_binary, RFX_LATE_MUL, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"NonMaxSuppression", rfx_late_non_max_suppression, 0, 2, 5, 1, {{"center_point_box", 0}},
     0, 0, 0, 0},
    {"NonZero", rfx_late_non_zero, 0, 1, 1, 1, {{0}}, 0, 0, 0, 0},
    {"Not", rfx_late_not, 0, 1, 1, 1, {{0}}, 0, 0, 0, 0},
    {"Or", rfx_late_logic, RFX_LATE_OR, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"Pad", rfx_late_pad, 0, 2, 3, 1, {{0}}, 0, 0, &constant_mode, 0},
    {"ReduceMax", rfx_late_reduce, RFX_LATE_MAX, 1, 2, 1,
     {{"keepdims", 1}, {"noop_with_empty_axes", 0}}, "axes", 0, 0, 0},
    {"ReduceMin", rfx_late_reduce, RFX_LATE_MIN, 1, 2, 1,
     {{"keepdims", 1}, {"noop_with_empty_axes", 0}}, "axes", 0, 0, 0},
    {"ReduceProd", rfx_late_reduce, RFX_LATE_PROD, 1, 2, 1,
     {{"keepdims", 1}, {"noop_with_empty_axes", 0}}, "axes", 0, 0, 0},
    {"Reshape", rfx_late_reshape_op, 0, 2, 2, 1, {{"allowzero", 0}}, 0, 0, 0, 0},
    {"ScatterND", rfx_late_scatter_nd, 0, 3, 3, 1, {{0}}, 0, 0, &no_reduction, 0},
    {"Shape", rfx_late_shape, 0, 1, 1, 1, {{"start", 0}, {"end", INT64_MAX}}, 0, 0, 0, 0},
    {"Slice", rfx_late_slice, 0, 3, 5, 1, {{0}}, 0, 0, 0, 0},
    {"Split", rfx_late_split, 0, 1, 2, 0, {{"axis", 0}, {"num_outputs", 0}}, "split", 0, 0, 0},
    {"Sqrt", rfx_late_unary, RFX_LATE_SQRT, 1, 1, 1, {{0}}, 0, 0, 0, 0},
    {"Squeeze", rfx_late_squeeze, 0, 1, 2, 1, {{0}}, "axes", 0, 0, 0},
    {"Sub", rfx_late_binary, RFX_LATE_SUB, 2, 2, 1, {{0}}, 0, 0, 0, 0},
    {"TopK", rfx_late_top_k, 0, 2, 2, 2, {{"axis", -1}, {"largest", 1}, {"sorted", 1}},
     0, 0, 0, 0},
    {"Transpose", rfx_late_transpose, 0, 1, 1, 1, {{0}}, "perm", 0, 0, 0},
    {"Unsqueeze", rfx_late_unsqueeze, 0, 1, 2, 1, {{0}}, "axes", 0, 0, 0},
    {"Where", rfx_late_where, 0, 3, 3, 1, {{0}}, 0, 0, 0, 0},
    {"Xor", rfx_late_logic, RFX_LATE_XOR, 2, 2, 1, {{0}}, 0, 0, 0, 0},
};
/* clang-format on */
enum { N_OPS = sizeof ops / sizeof ops[0] };

const struct rfx_late_op *rfx_late_op_at(int i) {
    return i >= 0 && i < N_OPS ? &ops[i] : NULL;
}

const struct rfx_late_op *rfx_late_op_find(const char *name) {
    for (int i = 0; i < N_OPS; i++)
        if (strcmp(ops[i].name, name) == 0) return &ops[i];
    return NULL;
}

int64_t rfx_late_int(struct rfx_late_call *call, const struct rfx_late_tensor *tensor, int64_t i) {
    if (tensor == NULL || call->status != RFX_OK) return 0;
    if (tensor->type == RFX_TYPE_INT64) return ((const int64_t *)tensor->data)[i];
    if (tensor->type == RFX_TYPE_INT32) return ((const int32_t *)tensor->data)[i];
    rfx_late_refuse(call, RFX_STATUS_MALFORMED, "%s where integers are needed",
                    rfx_type_name(tensor->type));
    return 0;
}

int rfx_late_ints(struct rfx_late_call *call, int k, int64_t *out) {
    const struct rfx_late_tensor *list = rfx_late_need(call, k);
    if (list == NULL) return 0;
    if (list->shape.rank > 1 || list->elems > RFX_MAX_RANK) {
        rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                        "operand %d has %lld elements and rank %d; a list of at most %d is needed",
                        k, (long long)list->elems, list->shape.rank, RFX_MAX_RANK);
        return 0;
    }
    for (int i = 0; i < (int)list->elems; i++) out[i] = rfx_late_int(call, list, i);
    return call->status == RFX_OK ? (int)list->elems : 0;
}

int rfx_late_axis(struct rfx_late_call *call, int64_t axis, int rank) {
    if (axis >= -rank && axis < rank) return (int)(axis < 0 ? axis + rank : axis);
    rfx_late_refuse(call, RFX_STATUS_MALFORMED, "there is no axis %lld in a tensor of rank %d",
                    (long long)axis, rank);
    return 0;
}

bool rfx_late_axes(struct rfx_late_call *call, int k, int rank, bool axes[RFX_MAX_RANK]) {
    int64_t list[RFX_MAX_RANK];
    const struct rfx_late_node *node = call->node;
    bool given = node->list != NULL;
    int n = given ? node->n_list : 0;
    if (!given && rfx_late_in(call, k) != NULL) {
        n = rfx_late_ints(call, k, list);
        given = true;
    } else if (n > RFX_MAX_RANK) {
        rfx_late_refuse(call, RFX_STATUS_MALFORMED, "%d axes: at most %d are possible", n,
                        RFX_MAX_RANK);
        n = 0;
    } else if (n > 0) {
        memcpy(list, node->list, (size_t)n * sizeof *list);
    }
    memset(axes, 0, RFX_MAX_RANK * sizeof *axes);
    for (int i = 0; i < n; i++) {
        int axis = rfx_late_axis(call, list[i], rank);
        if (call->status != RFX_OK) break;
        if (axes[axis]) rfx_late_refuse(call, RFX_STATUS_MALFORMED, "axis %d is named twice", axis);
        axes[axis] = true;
    }
    return given;
}

/* Sets axis `axis` of the result's shape from an operand, whose axes are counted from the last one.
 * Returns false if they do not match. */
static bool join_axis(struct rfx_late_rows *rows, int axis, const struct rfx_shape *shape, int k) {
    int own = axis - (rows->shape.rank - shape->rank);
    int64_t *dim = &rows->shape.dims[axis];
    if (own < 0) return true;
    if (shape->dims[own] != 1 && *dim != 1 && *dim != shape->dims[own]) return false;
    if (shape->dims[own] != 1) {
        *dim = shape->dims[own];
        rows->strides[k][axis] = rfx_shape_product(shape, own + 1, shape->rank);
    }
    return true;
}

void rfx_late_rows_begin(struct rfx_late_rows *rows) {
    const int last = rows->shape.rank - 1;
    rows->rows = rfx_shape_product(&rows->shape, 0, last);
    rows->columns = last >= 0 ? rows->shape.dims[last] : 1;
    for (int k = 0; last >= 0 && k < rows->n; k++) rows->step[k] = rows->strides[k][last];
}

void rfx_late_rows_broadcast(struct rfx_late_call *call, const struct rfx_shape *const *shapes,
                             int n, struct rfx_late_rows *rows) {
    char a[RFX_SHAPE_TEXT], b[RFX_SHAPE_TEXT];
    int64_t elems;
    *rows = (struct rfx_late_rows){.n = n};
    if (call->status != RFX_OK) return;
    for (int k = 0; k < n; k++)
        if (shapes[k]->rank > rows->shape.rank) rows->shape.rank = shapes[k]->rank;
    for (int axis = 0; axis < rows->shape.rank; axis++) {
        rows->shape.dims[axis] = 1;
        for (int k = 0; k < n; k++)
            if (!join_axis(rows, axis, shapes[k], k)) {
                rfx_late_refuse(call, RFX_STATUS_MALFORMED, "shapes %s and %s do not match",
                                rfx_shape_text(shapes[0], "x", a),
                                rfx_shape_text(shapes[k], "x", b));
                return;
            }
    }
    if (rfx_late_elems(&rows->shape, &elems))
        rfx_late_rows_begin(rows);
    else
        rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED, "a result of shape %s is too large",
                        rfx_shape_text(&rows->shape, "x", a));
}

void rfx_late_rows_next(struct rfx_late_rows *rows) {
    for (int axis = rows->shape.rank - 2; axis >= 0; axis--) {
        for (int k = 0; k < rows->n; k++) rows->at[k] += rows->strides[k][axis];
        if (++rows->index[axis] < rows->shape.dims[axis]) return;
        for (int k = 0; k < rows->n; k++)
            rows->at[k] -= rows->strides[k][axis] * rows->shape.dims[axis];
        rows->index[axis] = 0;
    }
}
