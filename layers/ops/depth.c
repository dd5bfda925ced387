/* DEPTH_TO_SPACE (DCR and CRD) and SPACE_TO_DEPTH, its inverse, for square blocks of b x b. The
 * deep side has b * b times the channels of the wide side. Let C be the number of channels of the
 * wide side, and co one of them. Pixel (i, j) of a block is deep channel (i b + j) C + co or, with
 * column_major (CRD), deep channel (co b + i) b + j. */
#include "layers/core/checked.h"
#include "layers/graph/infer.h"

static enum rfx_status infer_to_space(const struct rfx_graph *graph, struct rfx_node *node,
                                      struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    int64_t b = node->attr.depth.block, h, w;
    if (b < 1 || b > 65536 || in->c % (b * b) != 0)
        return rfx_infer_refuse(node, err, "%lld channels do not divide by the block %lld squared",
                                (long long)in->c, (long long)b);
    if (!rfx_checked_mul_i64(in->h, b, &h) || !rfx_checked_mul_i64(in->w, b, &w))
        return rfx_infer_refuse(node, err, "the output's size overflows");
    return rfx_infer_set_map(node, in->c / (b * b), h, w, err);
}

static enum rfx_status infer_to_depth(const struct rfx_graph *graph, struct rfx_node *node,
                                      struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    int64_t b = node->attr.depth.block, c;
    if (b < 1 || b > 65536 || in->h % b != 0 || in->w % b != 0 ||
        !rfx_checked_mul_i64(in->c, b * b, &c))
        return rfx_infer_refuse(node, err, "%lldx%lld does not divide by the block %lld",
                                (long long)in->h, (long long)in->w, (long long)b);
    return rfx_infer_set_map(node, c, in->h / b, in->w / b, err);
}

static struct rfx_axis_map to_space_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis) {
    (void)graph;
    (void)k;
    (void)axis;
    int64_t b = node->attr.depth.block;
    return rfx_axis_map_transposed(b, 1, b, 0);
}

static struct rfx_axis_map to_depth_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis) {
    (void)graph;
    (void)k;
    (void)axis;
    int64_t b = node->attr.depth.block;
    return rfx_axis_map_window(b, 1, b, 0);
}

/* Returns the deep channel of wide channel 0 at place (i, j). *step receives the distance to the
 * deep channel of the next wide channel. */
static int64_t deep_channel(const struct rfx_node *node, int64_t i, int64_t j, int64_t wide_c,
                            int64_t *step) {
    int64_t b = node->attr.depth.block, place = i * b + j;
    *step = node->attr.depth.column_major ? b * b : 1;
    return node->attr.depth.column_major ? place : place * wide_c;
}

static void to_space_row(const struct rfx_run_args *args, int64_t y) {
    int64_t b = args->node->attr.depth.block, c = args->node->out.c;
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++) {
        int64_t step, first = deep_channel(args->node, y % b, x % b, c, &step);
        const float *from = rfx_view_f32_at(&args->in[0], y / b, x / b) + first;
        float *to = rfx_view_f32_at(&args->out, y, x);
        for (int64_t i = 0; i < c; i++) to[i] = from[i * step];
    }
}

static void share_rows(const struct rfx_run_args *args,
                       void (*row)(const struct rfx_run_args *args, int64_t y)) {
    rfx_op_share_rows(args, rfx_rect_area(args->rect) * args->node->out.c > 32768, row);
}

static void run_to_space(const struct rfx_run_args *args) {
    share_rows(args, to_space_row);
}

static void gather_block(const struct rfx_run_args *args, int64_t y, int64_t x, int64_t c) {
    int64_t b = args->node->attr.depth.block;
    for (int64_t i = 0; i < b; i++) {
        for (int64_t j = 0; j < b; j++) {
            int64_t step, first = deep_channel(args->node, i, j, c, &step);
            const float *from = rfx_view_f32_at(&args->in[0], y * b + i, x * b + j);
            float *to = rfx_view_f32_at(&args->out, y, x) + first;
            for (int64_t k = 0; k < c; k++) to[k * step] = from[k];
        }
    }
}

static void to_depth_row(const struct rfx_run_args *args, int64_t y) {
    int64_t c = args->graph->nodes[args->node->in[0]].out.c;
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++) gather_block(args, y, x, c);
}

static void run_to_depth(const struct rfx_run_args *args) {
    share_rows(args, to_depth_row);
}

const struct rfx_op_def rfx_op_depth_to_space = {.name = "DepthToSpace",
                                                 .spatial = true,
                                                 .infer = infer_to_space,
                                                 .axis_map = to_space_map,
                                                 .run = run_to_space};
const struct rfx_op_def rfx_op_space_to_depth = {.name = "SpaceToDepth",
                                                 .spatial = true,
                                                 .infer = infer_to_depth,
                                                 .axis_map = to_depth_map,
                                                 .run = run_to_depth};
