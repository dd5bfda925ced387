/* INT_ADD and INT_MEAN: sums of two maps, and means over space, of one-byte integers, with the
 * bytes of ONNX Runtime (com.microsoft QLinearAdd and QLinearGlobalAveragePool). */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"
#include "layers/graph/reduction.h"
#include "layers/graph/units.h"
#include "layers/kernels/kernels.h"

#define PIECE_ELEMS 16384 /* elements of a PLAIN tensor per work item */
#define BYTES (RFX_TYPE_BIT(RFX_TYPE_UINT8) | RFX_TYPE_BIT(RFX_TYPE_INT8))

static bool is_byte(enum rfx_type type) {
    return type < RFX_TYPE_COUNT && (BYTES >> type & 1U) != 0;
}

/* --- INT_ADD --- */

static enum rfx_status infer_add(const struct rfx_graph *graph, struct rfx_node *node,
                                 struct rfx_error *err) {
    enum rfx_layout layout =
        node->n_in > 0 ? rfx_infer_in(graph, node, 0)->layout : RFX_LAYOUT_NHWC;
    enum rfx_status status = rfx_infer_inputs(graph, node, 2, layout, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *a = rfx_infer_in(graph, node, 0);
    const struct rfx_tensor *b = rfx_infer_in(graph, node, 1);
    bool same = a->shape.rank == b->shape.rank;
    for (int i = 0; i < a->shape.rank && same; i++) same = a->shape.dims[i] == b->shape.dims[i];
    if (!same || node->attr.int_add.to != a->type)
        return rfx_infer_refuse(node, err, "the two inputs or types differ");
    node->out = *a;
    return RFX_OK;
}

static void add(const struct rfx_run_args *args, const void *a, const void *b, void *out,
                int64_t n) {
    rfx_kernels_of_bytes(args->out.type)
        ->add(a, args->node->attr.int_add.a_scale, b, args->node->attr.int_add.b_scale,
              args->node->attr.int_add.shift, out, n);
}

static void add_unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct rfx_run_args *args = user;
    const struct rfx_view *a = &args->in[0], *b = &args->in[1], *out = &args->out;
    int64_t c = args->node->out.c;
    bool dense = a->c == c && b->c == c && out->c == c;
    int64_t step = dense ? rfx_rect_cols(u) : 1;
    (void)scratch;
    for (int64_t y = u.y0; y < u.y1; y++)
        for (int64_t x = u.x0; x < u.x1; x += step)
            add(args, rfx_view_at(a, y, x), rfx_view_at(b, y, x), rfx_view_at(out, y, x), step * c);
}

static void add_piece(const struct rfx_run_args *args, int64_t index) {
    int64_t first = index * PIECE_ELEMS;
    add(args, (const char *)args->in[0].data + first, (const char *)args->in[1].data + first,
        (char *)args->out.data + first, rfx_min_i64(PIECE_ELEMS, args->node->out.elems - first));
}

static void run_add(const struct rfx_run_args *args) {
    if (args->node->out.layout == RFX_LAYOUT_PLAIN)
        rfx_op_share(args, rfx_ceil_div(args->node->out.elems, PIECE_ELEMS), add_piece);
    else
        rfx_units_share(args, rfx_units_of_rows(args), 0, add_unit, args);
}

static bool either(const struct rfx_graph *graph, const struct rfx_node *node, int k) {
    (void)graph;
    (void)node;
    (void)k;
    return true;
}

const struct rfx_op_def rfx_op_int_add = {
    .name = "QLinearAdd",
    .spatial = true,
    .kind = RFX_CLASS_JOIN,
    .types = BYTES,
    .keeps_type = true,
    .infer = infer_add,
    .axis_map = rfx_op_map_identity,
    .in_place = either,
    .run = run_add,
};

/* --- INT_MEAN: the state is a sum per channel --- */

#define MOST_SUM ((int64_t)1 << 46) /* of a sound state, so that merging cannot overflow */

static enum rfx_status infer_mean(const struct rfx_graph *graph, struct rfx_node *node,
                                  struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    if (!is_byte(node->attr.int_mean.to))
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
    .types = BYTES,
    .infer = infer_mean,
    .reduction = &mean_reduction,
    .scratch_bytes = rfx_reduction_scratch_bytes,
    .run = rfx_reduction_run,
};
