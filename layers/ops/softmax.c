/* SOFTMAX over the channels of each pixel, or over each group of neighbouring channels: exp(x -
 * max) / sum, where the sum runs in channel order in double. With `logarithm`: x - max - log(sum).
 * A NaN among the channels makes all of them NaN. With `steps`: see softmax.h. */
#include "layers/ops/softmax.h"

#include <float.h>
#include <math.h>

#include "layers/core/real_math.h"
#include "layers/graph/infer.h"
#include "layers/kernels/kernels.h"

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    int64_t group = node->attr.softmax.group;
    if (group < 0 || (group > 0 && in->c % group != 0))
        return rfx_infer_refuse(node, err, "groups of %lld of %lld channels", (long long)group,
                                (long long)in->c);
    return rfx_infer_set_map(node, in->c, in->h, in->w, err);
}

void rfx_softmax_values(const float *x, float *out, int64_t n, bool logarithm) {
    float max = x[0];
    for (int64_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    rfx_kernels()->exp(x, max, out, n);
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += (double)out[i];
    float total = (float)(logarithm ? rfx_log(sum) : sum);
    for (int64_t i = 0; i < n; i++) out[i] = logarithm ? x[i] - max - total : out[i] / total;
}

#define SIDE_BY_SIDE 8 /* rows at a time: their sums do not wait for each other */

void rfx_softmax_rows(float *x, int64_t rows, int64_t n) {
    int64_t row = 0;
    for (; row + SIDE_BY_SIDE <= rows; row += SIDE_BY_SIDE) {
        float *from = x + row * n, max[SIDE_BY_SIDE];
        double sum[SIDE_BY_SIDE] = {0.0};
        for (int r = 0; r < SIDE_BY_SIDE; r++) max[r] = from[r * n];
        for (int64_t i = 1; i < n; i++)
            for (int r = 0; r < SIDE_BY_SIDE; r++)
                max[r] = from[r * n + i] > max[r] ? from[r * n + i] : max[r];
        for (int r = 0; r < SIDE_BY_SIDE; r++)
            rfx_kernels()->exp(from + r * n, max[r], from + r * n, n);
        for (int64_t i = 0; i < n; i++)
            for (int r = 0; r < SIDE_BY_SIDE; r++) sum[r] += (double)from[r * n + i];
        for (int r = 0; r < SIDE_BY_SIDE; r++) {
            float total = (float)sum[r];
            for (int64_t i = 0; i < n; i++) from[r * n + i] = from[r * n + i] / total;
        }
    }
    for (; row < rows; row++) rfx_softmax_values(x + row * n, x + row * n, n, false);
}

const struct rfx_softmax_table *rfx_softmax_table_of(struct rfx_softmax_table *room,
                                                     struct rfx_softmax_steps steps, int64_t n) {
    const double scale = (double)steps.in_scale;
    if (steps.out_scale == 0.0f) return NULL;
    double most = rfx_log((double)(FLT_MAX / (float)n)) - 5; /* exponent of the largest value */
    double shift = (most > 0 ? most : 0) / scale;            /* in steps */
    room->steps = steps;
    room->n = n;
    for (int k = 0; k < 256; k++) room->e[k] = (float)rfx_exp((k - 255 + shift) * scale);
    return room;
}

void rfx_softmax_by_table(const struct rfx_softmax_table *table, const float *x, float *out,
                          int64_t step) {
    const int64_t end = table->n * step;
    const float scale = table->steps.in_scale, factor = floorf(1 / table->steps.out_scale);
    float max = x[0], sum = 0.0f;
    for (int64_t i = 0; i < end; i += step) max = x[i] > max ? x[i] : max;
    for (int64_t i = 0; i < end; i += step) {
        float below = rintf((max - x[i]) / scale); /* no integer if x[i] is not finite */
        out[i] = table->e[below >= 0.0f && below <= 255.0f ? 255 - (int)below : 0];
        sum += out[i];
    }
    for (int64_t i = 0; i < end; i += step)
        out[i] = rintf(out[i] * factor / sum) * table->steps.out_scale;
}

static void softmax_row(const struct rfx_run_args *args, int64_t y) {
    bool logarithm = args->node->attr.softmax.logarithm;
    int64_t c = args->node->out.c, group = args->node->attr.softmax.group;
    int64_t together = group > 0 ? group : c;
    struct rfx_softmax_table room;
    const struct rfx_softmax_table *table =
        rfx_softmax_table_of(&room, args->node->attr.softmax.steps, together);
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++)
        for (int64_t first = 0; first < c; first += together) {
            const float *from = rfx_view_f32_at(&args->in[0], y, x) + first;
            float *to = rfx_view_f32_at(&args->out, y, x) + first;
            if (table != NULL)
                rfx_softmax_by_table(table, from, to, 1);
            else
                rfx_softmax_values(from, to, together, logarithm);
        }
}

int64_t rfx_softmax_rows_at_a_time(int64_t rows, int64_t n) {
    enum { LEAST = 12, MOST = 96 };
    const int64_t scores = (int64_t)1 << 20; /* most of them, unless LEAST rows have more */
    int64_t held = rfx_min_i64(rfx_max_i64(scores / n, LEAST), MOST);
    return rfx_min_i64(held / LEAST * LEAST, rows);
}

static void run(const struct rfx_run_args *args) {
    rfx_op_share_rows(args, rfx_rect_area(args->rect) * args->node->out.c > 4096, softmax_row);
}

const struct rfx_op_def rfx_op_softmax = {
    .name = "Softmax",
    .spatial = true,
    .kind = RFX_CLASS_ELEMENTWISE,
    .infer = infer,
    .axis_map = rfx_op_map_identity,
    .run = run,
};
