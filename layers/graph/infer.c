/* Helpers of shape inference: input checks, output sizes, refusals. See infer.h. */
#include "layers/graph/infer.h"

#include <stdarg.h>
#include <stdio.h>

#include "layers/core/checked.h"

enum rfx_status rfx_infer_inputs(const struct rfx_graph *graph, const struct rfx_node *node,
                                 int n_in, enum rfx_layout layout, struct rfx_error *err) {
    const char *op = rfx_op_def(node->op)->name;
    if (node->n_in != n_in)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s '%s': has %d inputs, needs %d", op,
                        node->name, node->n_in, n_in);
    for (int k = 0; k < n_in; k++) {
        if (rfx_infer_in(graph, node, k)->layout != layout)
            return rfx_fail(err, RFX_STATUS_MALFORMED, "%s '%s': input %d is not a %s", op,
                            node->name, k,
                            layout == RFX_LAYOUT_NHWC ? "feature map" : "plain tensor");
    }
    return RFX_OK;
}

/* Whether all inputs of the node can be read without conversion: they have one type, and the op
 * takes it. */
static bool takes_inputs(const struct rfx_graph *graph, const struct rfx_node *node) {
    enum rfx_type first = rfx_infer_in(graph, node, 0)->type;
    for (int k = 1; k < node->n_in; k++)
        if (rfx_infer_in(graph, node, k)->type != first) return false;
    return rfx_op_takes(node->op, first);
}

enum rfx_type rfx_infer_type(const struct rfx_graph *graph, const struct rfx_node *node) {
    if (node->n_in == 0) return RFX_TYPE_FLOAT32;
    if (takes_inputs(graph, node)) return rfx_infer_in(graph, node, 0)->type;
    int type = RFX_TYPE_FLOAT32;
    while (!rfx_op_takes(node->op, (enum rfx_type)type)) type++;
    return (enum rfx_type)type;
}

enum rfx_status rfx_infer_refuse(const struct rfx_node *node, struct rfx_error *err,
                                 const char *format, ...) {
    char why[320];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s '%s': %s", rfx_op_def(node->op)->name,
                    node->name, why);
}

enum rfx_status rfx_infer_zero_point(const struct rfx_node *node, enum rfx_type type, int32_t zero,
                                     struct rfx_error *err) {
    float lo, hi;
    rfx_type_limits(type, &lo, &hi);
    if ((float)zero >= lo && (float)zero <= hi) return RFX_OK;
    return rfx_infer_refuse(node, err, "zero point %d of %s", (int)zero, rfx_type_name(type));
}

enum rfx_status rfx_infer_scale_shift(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int scale, int shift, int64_t c, struct rfx_error *err) {
    int weights[2] = {scale, shift};
    for (int i = 0; i < 2; i++) {
        if (weights[i] < 0) continue;
        int64_t elems = graph->weights[weights[i]].elems;
        if (elems != 1 && elems != c)
            return rfx_infer_refuse(node, err, "%s has %lld elements for %lld channels",
                                    i == 0 ? "scale" : "shift", (long long)elems, (long long)c);
    }
    return RFX_OK;
}

/* Computes the product of the dims; returns false if one is below 1 or the bytes would not fit. */
static bool count_elems(const struct rfx_shape *shape, int64_t *elems) {
    int64_t product = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 1) return false;
        if (!rfx_checked_mul_i64(product, shape->dims[i], &product)) return false;
    }
    if (product > INT64_MAX / 8) return false;
    *elems = product;
    return true;
}

enum rfx_status rfx_infer_set_map(struct rfx_node *node, int64_t c, int64_t h, int64_t w,
                                  struct rfx_error *err) {
    const struct rfx_shape shape = {4, {1, c, h, w}};
    int64_t elems;
    if (!count_elems(&shape, &elems))
        return rfx_infer_refuse(node, err,
                                "output of %lld channels, %lld rows, %lld columns is empty or "
                                "too large",
                                (long long)c, (long long)h, (long long)w);
    node->out = rfx_tensor_nhwc(c, h, w);
    return RFX_OK;
}

enum rfx_status rfx_infer_set_plain(struct rfx_node *node, const struct rfx_shape *shape,
                                    struct rfx_error *err) {
    int64_t elems;
    if (shape->rank < 0 || shape->rank > RFX_MAX_RANK)
        return rfx_infer_refuse(node, err, "rank %d is not in 0 to %d", shape->rank, RFX_MAX_RANK);
    if (!count_elems(shape, &elems)) {
        for (int i = 0; i < shape->rank; i++)
            if (shape->dims[i] < 1)
                return rfx_infer_refuse(node, err, "output dimension %d is %lld", i,
                                        (long long)shape->dims[i]);
        return rfx_infer_refuse(node, err, "the output's size overflows");
    }
    node->out = rfx_tensor_plain(shape, elems);
    return RFX_OK;
}
