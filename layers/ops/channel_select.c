/* CHANNEL_SELECT: output channel i is input channel map[i], as for slice, split, gather and channel
 * shuffle. Where map[i] is -1 the output channel is zero, as for channel padding. */
#include <string.h>

#include "layers/graph/infer.h"

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    for (int64_t i = 0; i < node->attr.select.count; i++) {
        int64_t from = node->attr.select.map[i];
        if (from < -1 || from >= in->c)
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "Select '%s': channel %lld of an input of %lld", node->name,
                            (long long)from, (long long)in->c);
    }
    return rfx_infer_set_map(node, node->attr.select.count, in->h, in->w, err);
}

/* Returns how many output channels, from i on and at least 1, are consecutive input channels, or
 * are all zero. */
static int64_t run_of(const int64_t *map, int64_t i, int64_t c) {
    int64_t step = map[i] < 0 ? 0 : 1, n = 1;
    while (i + n < c && map[i + n] == map[i] + n * step) n++;
    return n;
}

#define SHORT_RUN 4 /* channels: shorter runs, as in shuffles, are not worth one call each */

static bool has_long_runs(const int64_t *map, int64_t c) {
    int64_t runs = 0;
    for (int64_t i = 0; i < c; i += run_of(map, i, c)) runs++;
    return runs * SHORT_RUN <= c;
}

/* Copies n channels of each pixel; from NULL: writes zeros. */
static void copy_run(const float *from, int64_t c_in, float *to, int64_t c_out, int64_t n,
                     int64_t pixels) {
    size_t bytes = (size_t)n * sizeof *to;
    for (int64_t p = 0; p < pixels; p++, to += c_out) {
        if (from == NULL)
            memset(to, 0, bytes);
        else
            memcpy(to, from + p * c_in, bytes);
    }
}

static void select_row(const struct rfx_run_args *args, int64_t y) {
    struct rfx_rect r = args->rect;
    int64_t c_in = args->graph->nodes[args->node->in[0]].out.c, c_out = args->node->out.c;
    const int64_t *map = args->node->attr.select.map;
    const float *from = rfx_view_f32_at(&args->in[0], y, r.x0);
    float *to = rfx_view_f32_at(&args->out, y, r.x0);
    if (has_long_runs(map, c_out)) {
        for (int64_t i = 0, n; i < c_out; i += n) {
            n = run_of(map, i, c_out);
            copy_run(map[i] < 0 ? NULL : from + map[i], c_in, to + i, c_out, n, rfx_rect_cols(r));
        }
        return;
    }
    for (int64_t x = r.x0; x < r.x1; x++, from += c_in, to += c_out)
        for (int64_t i = 0; i < c_out; i++) to[i] = map[i] < 0 ? 0.0f : from[map[i]];
}

static void run(const struct rfx_run_args *args) {
    rfx_op_share_rows(args, rfx_rect_area(args->rect) * args->node->out.c > 32768, select_row);
}

static int64_t **table(struct rfx_node *node, int64_t *count) {
    *count = node->attr.select.count;
    return &node->attr.select.map;
}

const struct rfx_op_def rfx_op_channel_select = {
    .name = "Select",
    .spatial = true,
    .index_table = table,
    .infer = infer,
    .axis_map = rfx_op_map_identity,
    .run = run,
};
