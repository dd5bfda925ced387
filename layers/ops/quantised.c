/* INT_ADD, INT_MUL and INT_MEAN: sums and products of two maps, and means over space, of one-byte
 * integers, with the bytes of ONNX Runtime (com.microsoft QLinearAdd, QLinearMul and
 * QLinearGlobalAveragePool). */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"
#include "layers/graph/reduction.h"
#include "layers/graph/units.h"
#include "layers/kernels/kernels.h"

#define PIECE_ELEMS 16384 /* elements of a PLAIN tensor per work item */

/* --- INT_ADD, INT_MUL --- */

static enum rfx_status infer_pair(const struct rfx_graph *graph, struct rfx_node *node,
                                  struct rfx_error *err) {
    enum rfx_layout layout =
        node->n_in > 0 ? rfx_infer_in(graph, node, 0)->layout : RFX_LAYOUT_NHWC;
    enum rfx_status status = rfx_infer_inputs(graph, node, 2, layout, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *a = rfx_infer_in(graph, node, 0);
    const struct rfx_tensor *b = rfx_infer_in(graph, node, 1);
    enum rfx_type to = node->op == RFX_OP_INT_ADD ? node->attr.int_add.to : node->attr.int_mul.to;
    bool fits = a->shape.rank == b->shape.rank, map = a->layout == RFX_LAYOUT_NHWC;
    for (int i = 0; i < a->shape.rank && fits; i++)
        fits = a->shape.dims[i] == b->shape.dims[i] || (map && b->shape.dims[i] == 1);
    if (!fits || to != a->type)
        return rfx_infer_refuse(node, err,
                                "input 1 has another type, or cannot be broadcast to "
                                "input 0");
    node->out = *a;
    return RFX_OK;
}

static void combine(const struct rfx_run_args *args, const void *a, const void *b, void *out,
                    int64_t n) {
    const struct rfx_byte_kernels *kernels = rfx_kernels_of_bytes(args->out.type);
    const union rfx_attr *attr = &args->node->attr;
    if (args->node->op == RFX_OP_INT_ADD)
        kernels->add(a, attr->int_add.a_scale, b, attr->int_add.b_scale, attr->int_add.shift, out,
                     n);
    else
        kernels->mul(a, attr->int_mul.a_zero, b, attr->int_mul.b_zero, attr->int_mul.factor,
                     attr->int_mul.out_zero, out, n);
}

/* Combines each of c channels with one number. */
static void combine_number(const struct rfx_run_args *args, const char *a, const void *number,
                           char *out, int64_t c) {
    char same[256];
    memset(same, *(const unsigned char *)number, sizeof same);
    for (int64_t i = 0; i < c; i += (int64_t)sizeof same)
        combine(args, a + i, same, out + i, rfx_min_i64((int64_t)sizeof same, c - i));
}

static void pair_unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct rfx_run_args *args = user;
    const struct rfx_view *a = &args->in[0], *b = &args->in[1], *out = &args->out;
    const struct rfx_tensor *tb = rfx_infer_in(args->graph, args->node, 1);
    int64_t c = args->node->out.c;
    bool dense = a->c == c && b->c == c && out->c == c && tb->w == args->node->out.w;
    int64_t step = dense ? rfx_rect_cols(u) : 1;
    (void)scratch;
    for (int64_t y = u.y0; y < u.y1; y++)
        for (int64_t x = u.x0; x < u.x1; x += step) {
            const void *more = rfx_view_at(b, tb->h == 1 ? 0 : y, tb->w == 1 ? 0 : x);
            if (tb->c == c)
                combine(args, rfx_view_at(a, y, x), more, rfx_view_at(out, y, x), step * c);
            else
                combine_number(args, rfx_view_at(a, y, x), more, rfx_view_at(out, y, x), c);
        }
}

static void pair_piece(const struct rfx_run_args *args, int64_t index) {
    int64_t first = index * PIECE_ELEMS;
    combine(args, (const char *)args->in[0].data + first, (const char *)args->in[1].data + first,
            (char *)args->out.data + first,
            rfx_min_i64(PIECE_ELEMS, args->node->out.elems - first));
}

static void run_pair(const struct rfx_run_args *args) {
    if (args->node->out.layout == RFX_LAYOUT_PLAIN)
        rfx_op_share(args, rfx_ceil_div(args->node->out.elems, PIECE_ELEMS), pair_piece);
    else
        rfx_units_share(args, rfx_units_of_rows(args), 0, pair_unit, args);
}

#define PAIR(onnx_name)                                                                            \
    {                                                                                              \
        .name = (onnx_name), .spatial = true, .kind = RFX_CLASS_JOIN, .types = RFX_TYPES_OF_BYTES, \
        .keeps_type = true, .infer = infer_pair, .axis_map = rfx_op_map_broadcast,                 \
        .in_place = rfx_op_in_place_elementwise, .run = run_pair                                   \
    }

const struct rfx_op_def rfx_op_int_add = PAIR("QLinearAdd");
const struct rfx_op_def rfx_op_int_mul = PAIR("QLinearMul");

/* --- INT_MEAN: the state is a sum per channel --- */

#define MOST_SUM ((int64_t)1 << 46) /* of a sound state, so that merging cannot overflow */

static enum rfx_status infer_mean(const struct rfx_graph *graph, struct rfx_node *node,
                                  struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    if (!rfx_type_is_byte(node->attr.int_mean.to))
        return rfx_infer_refuse(node, err, "to %s", rfx_type_name(node->attr.int_mean.to));
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    status = rfx_infer_zero_point(node, in->type, node->attr.int_mean.in_zero, err);
    if (status == RFX_OK)
        status =
            rfx_infer_zero_point(node, node->attr.int_mean.to, node->attr.int_mean.out_zero, err);
    if (status == RFX_OK) status = rfx_infer_set_map(node, in->c, 1, 1, err);
    node->out.type = node->attr.int_mean.to;
    return status;
}

static size_t state_bytes(const struct rfx_node *node) {
    return rfx_align_up((size_t)node->out.c * sizeof(int64_t));
}

static void begin(const struct rfx_node *node, void *state) {
    memset(state, 0, state_bytes(node));
}

static void add_pixels(const struct rfx_node *node, void *state, const struct rfx_view *in,
                       struct rfx_rect rect) {
    int64_t *sums = state, c = node->out.c;
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++) {
            const void *pixel = rfx_view_at(in, y, x);
            if (in->type == RFX_TYPE_UINT8)
                for (int64_t i = 0; i < c; i++) sums[i] += ((const uint8_t *)pixel)[i];
            else
                for (int64_t i = 0; i < c; i++) sums[i] += ((const int8_t *)pixel)[i];
        }
}

static void merge(const struct rfx_node *node, void *state, void *other) {
    int64_t *sums = state;
    const int64_t *more = other;
    for (int64_t i = 0; i < node->out.c; i++) sums[i] += more[i];
}

/* QuantizeLinear of float(sum - pixels * zero point) * (in_scale / (out_scale * pixels)), a float32
 * after each operation. */
static void finish(const struct rfx_node *node, void *state, int64_t h, int64_t w,
                   const struct rfx_view *out) {
    const int64_t *sums = state;
    int64_t n = h * w;
    float factor = node->attr.int_mean.in_scale / (node->attr.int_mean.out_scale * (float)n);
    for (int64_t i = 0; i < node->out.c; i++) {
        float mean = (float)(sums[i] - n * node->attr.int_mean.in_zero) * factor;
        rfx_kernels_of_bytes(out->type)->quantise(&mean, 1.0f, node->attr.int_mean.out_zero,
                                                  (char *)rfx_view_at(out, 0, 0) + i, 1);
    }
}

static bool is_sound(const struct rfx_node *node, const void *state) {
    const int64_t *sums = state;
    for (int64_t i = 0; i < node->out.c; i++)
        if (sums[i] > MOST_SUM || sums[i] < -MOST_SUM) return false;
    return true;
}

static const struct rfx_reduction mean_reduction = {state_bytes, begin,  add_pixels,
                                                    merge,       finish, is_sound};

const struct rfx_op_def rfx_op_int_mean = {
    .name = "QLinearGlobalAveragePool",
    .spatial = false,
    .kind = RFX_CLASS_POOLING,
    .types = RFX_TYPES_OF_BYTES,
    .infer = infer_mean,
    .reduction = &mean_reduction,
    .scratch_bytes = rfx_reduction_scratch_bytes,
    .run = rfx_reduction_run,
};
