/* MOMENTS and NORMALISE: norms by statistics over space (instance, group and layer norms) in two
 * steps. So the statistics are an ordinary reduction, and the normalisation is elementwise.
 *
 * MOMENTS turns a map into one pixel of 2 c values: the mean of every channel, then the inverse of
 * the standard deviation of every channel. All channels of a group have the same values. Let S and
 * Q be the sums of a group's values and of their squares. Each channel's sums are exact and rounded
 * once to double; they are then added in double, channels ascending. Let n be the number of values.
 * Then, all in double:
 *
 *     mean = S / n, variance = max(Q / n - mean * mean, 0), inverse = 1 / sqrt(variance + eps)
 *
 * mean and inverse are rounded once to float. The bits do not depend on the order of pixels, rows,
 * tiles or threads. NORMALISE is act((x - mean) * (inverse * scale) + shift); each step is rounded
 * once to float. */
#include <math.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"
#include "layers/graph/units.h"
#include "layers/kernels/exact_sum.h"
#include "layers/kernels/packing.h"

#define TOGETHER 64 /* pixels per kernel call */

static enum rfx_status moments_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                     struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    int64_t c = rfx_infer_in(graph, node, 0)->c, groups = node->attr.moments.groups, twice;
    if (groups < 1 || groups > c || c % groups != 0)
        return rfx_infer_refuse(node, err, "%lld channels in %lld groups", (long long)c,
                                (long long)groups);
    if (!rfx_checked_mul_i64(c, 2, &twice))
        return rfx_infer_refuse(node, err, "%lld channels", (long long)c);
    return rfx_infer_set_map(node, twice, 1, 1, err);
}

static size_t state_bytes(const struct rfx_node *node) {
    return 2 * rfx_exact_sum_bytes(node->out.c / 2);
}

/* Returns the sums of squares, which follow the sums of values in the state. */
static struct rfx_exact_sum *squares_of(const struct rfx_node *node, void *state) {
    return (struct rfx_exact_sum *)(void *)((char *)state + rfx_exact_sum_bytes(node->out.c / 2));
}

static void begin(const struct rfx_node *node, void *state) {
    (void)rfx_exact_sum_reset(state, node->out.c / 2);
    (void)rfx_exact_sum_reset(squares_of(node, state), node->out.c / 2);
}

static void add(const struct rfx_node *node, void *state, const struct rfx_view *in,
                struct rfx_rect rect) {
    for (int64_t y = rect.y0; y < rect.y1; y++) {
        const float *row = rfx_view_f32_at(in, y, rect.x0);
        rfx_exact_sum_add(state, row, rfx_rect_cols(rect));
        rfx_exact_sum_add_squares(squares_of(node, state), row, rfx_rect_cols(rect));
    }
}

static void merge(const struct rfx_node *node, void *state, void *other) {
    rfx_exact_sum_merge(state, other);
    rfx_exact_sum_merge(squares_of(node, state), squares_of(node, other));
}

static void finish(const struct rfx_node *node, void *state, int64_t h, int64_t w,
                   const struct rfx_view *out) {
    int64_t c = node->out.c / 2, per_group = c / node->attr.moments.groups;
    double n = (double)h * (double)w * (double)per_group;
    float *mean = rfx_view_f32_at(out, 0, 0), *inverse = mean + c;
    for (int64_t first = 0; first < c; first += per_group) {
        double sum = 0.0, squares = 0.0;
        for (int64_t i = first; i < first + per_group; i++) {
            sum += rfx_exact_sum_total(state, i);
            squares += rfx_exact_sum_total(squares_of(node, state), i);
        }
        double centre = sum / n, variance = squares / n - centre * centre;
        if (variance < 0.0) variance = 0.0; /* only rounding can make it negative */
        double factor = 1.0 / sqrt(variance + (double)node->attr.moments.eps);
        for (int64_t i = first; i < first + per_group; i++) {
            mean[i] = (float)centre;
            inverse[i] = (float)factor;
        }
    }
}

static enum rfx_status normalise_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                       struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 2, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    const struct rfx_tensor *moments = rfx_infer_in(graph, node, 1);
    if (moments->c != 2 * in->c || moments->h != 1 || moments->w != 1)
        return rfx_infer_refuse(node, err, "moments of %lldx%lldx%lld for %lld channels",
                                (long long)moments->c, (long long)moments->h, (long long)moments->w,
                                (long long)in->c);
    status = rfx_infer_scale_shift(graph, node, node->attr.affine.scale, node->attr.affine.shift,
                                   in->c, err);
    return status == RFX_OK ? rfx_infer_set_map(node, in->c, in->h, in->w, err) : status;
}

/* Every position reads the single pixel of moments, so input 1 is broadcast. */
static struct rfx_axis_map normalise_axis_map(const struct rfx_graph *graph,
                                              const struct rfx_node *node, int k, int axis) {
    struct rfx_axis_map map = rfx_axis_map_identity();
    (void)graph;
    map.broadcast = k == 1 && (axis == 0 ? node->out.h : node->out.w) != 1;
    return map;
}

static bool normalise_in_place(const struct rfx_graph *graph, const struct rfx_node *node, int k) {
    return k == 0 && rfx_op_in_place_elementwise(graph, node, k);
}

static size_t normalise_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    return rfx_packing_scale_shift_bytes(&node->act, node->out.c);
}

static enum rfx_status normalise_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                      void *packed, const struct rfx_pack_part *part,
                                      struct rfx_error *err) {
    return rfx_packing_scale_shift(graph, node, node->attr.affine.scale, node->attr.affine.shift,
                                   packed, part, err);
}

static void normalise_unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct rfx_run_args *args = user;
    const struct rfx_node *node = args->node;
    const struct rfx_view *in = &args->in[0], *out = &args->out;
    const struct rfx_kernels *kernels = rfx_kernels();
    int64_t c = node->out.c, pixels = in->c == c && out->c == c ? TOGETHER : 1;
    const float *slope = rfx_packed_slope(&node->act, c, args->packed);
    struct rfx_normalise_args run = {.mean = rfx_view_f32_at(&args->in[1], 0, 0),
                                     .scale = rfx_packed_weights(&node->act, c, args->packed),
                                     .shift = args->packed,
                                     .c = c};
    run.inverse = run.mean + c;
    (void)scratch;
    for (int64_t y = u.y0; y < u.y1; y++)
        for (int64_t x = u.x0; x < u.x1; x += pixels) {
            run.x = rfx_view_f32_at(in, y, x);
            run.y = rfx_view_f32_at(out, y, x);
            run.pixels = rfx_min_i64(pixels, u.x1 - x);
            kernels->normalise(&run);
            kernels->act(&node->act, slope, run.y, run.y, run.pixels, c);
        }
}

static void normalise_run(const struct rfx_run_args *args) {
    rfx_units_share(args, rfx_units_of_rows(args), 0, normalise_unit, args);
}

static bool is_sound(const struct rfx_node *node, const void *state) {
    int64_t c = node->out.c / 2;
    return rfx_exact_sum_is_sound(state, c) &&
           rfx_exact_sum_is_sound((const char *)state + rfx_exact_sum_bytes(c), c);
}

static const struct rfx_reduction moments_reduction = {state_bytes, begin,  add,
                                                       merge,       finish, is_sound};

static const struct rfx_weight_slot normalise_weights[] = {
    {"scale", RFX_WEIGHT_SCALE, offsetof(struct rfx_node, attr.affine.scale)},
    {"shift", RFX_WEIGHT_BIAS, offsetof(struct rfx_node, attr.affine.shift)},
    {NULL, RFX_WEIGHT_FACTOR, 0},
};

const struct rfx_op_def rfx_op_moments = {
    .name = "Moments",
    .spatial = false,
    .kind = RFX_CLASS_POOLING,
    .infer = moments_infer,
    .reduction = &moments_reduction,
    .scratch_bytes = rfx_reduction_scratch_bytes,
    .run = rfx_reduction_run,
};
const struct rfx_op_def rfx_op_normalise = {
    .name = "Normalise",
    .spatial = true,
    .kind = RFX_CLASS_ELEMENTWISE,
    .takes_in = RFX_FUSE_BATCH_NORM | RFX_FUSE_ACTIVATION,
    .weights = normalise_weights,
    .infer = normalise_infer,
    .axis_map = normalise_axis_map,
    .in_place = normalise_in_place,
    .packed_bytes = normalise_packed_bytes,
    .pack = normalise_pack,
    .run = normalise_run,
};
