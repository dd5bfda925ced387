/* BINARY: combines two maps element by element. A dimension (c, h or w) of 1 is broadcast. */
#include "layers/graph/infer.h"
#include "layers/graph/units.h"
#include "layers/kernels/packing.h"

static bool broadcast(int64_t a, int64_t b, int64_t *out) {
    *out = a == 1 ? b : a;
    return a == b || a == 1 || b == 1;
}

static enum rfx_status binary_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 2, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *a = rfx_infer_in(graph, node, 0), *b = rfx_infer_in(graph, node, 1);
    int64_t c, h, w;
    if (!broadcast(a->c, b->c, &c) || !broadcast(a->h, b->h, &h) || !broadcast(a->w, b->w, &w))
        return rfx_infer_refuse(node, err, "maps %lldx%lldx%lld and %lldx%lldx%lld do not combine",
                                (long long)a->c, (long long)a->h, (long long)a->w, (long long)b->c,
                                (long long)b->h, (long long)b->w);
    return rfx_infer_set_map(node, c, h, w, err);
}

static size_t binary_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    return rfx_act_packed_bytes(&node->act, node->out.c);
}

static enum rfx_status binary_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                   void *packed, const struct rfx_pack_part *part,
                                   struct rfx_error *err) {
    if (part->index > 0) return RFX_OK;
    return rfx_act_pack(graph, &node->act, node->out.c, packed, err);
}

/* Returns the operand's values for output pixel (y, x). */
static const float *operand_at(const struct rfx_view *v, const struct rfx_tensor *t, int64_t y,
                               int64_t x) {
    return rfx_view_f32_at(v, t->h == 1 ? 0 : y, t->w == 1 ? 0 : x);
}

struct binary_loop {
    const struct rfx_run_args *args;
    int64_t step; /* pixels per call */
};

static void binary_unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct binary_loop *loop = user;
    const struct rfx_run_args *args = loop->args;
    const struct rfx_node *node = args->node;
    const struct rfx_kernels *kernels = rfx_kernels();
    const struct rfx_tensor *ta = rfx_infer_in(args->graph, node, 0);
    const struct rfx_tensor *tb = rfx_infer_in(args->graph, node, 1);
    const float *slope = node->act.kind == RFX_ACT_PRELU ? args->packed : NULL;
    int64_t c = node->out.c;
    (void)scratch;
    for (int64_t y = u.y0; y < u.y1; y++) {
        for (int64_t x = u.x0; x < u.x1; x += loop->step) {
            int64_t n = rfx_min_i64(loop->step, u.x1 - x);
            float *to = rfx_view_f32_at(&args->out, y, x);
            kernels->binary(node->attr.binary.kind, operand_at(&args->in[0], ta, y, x),
                            ta->c == c ? 1 : 0, operand_at(&args->in[1], tb, y, x),
                            tb->c == c ? 1 : 0, to, n * c);
            kernels->act(&node->act, slope, to, to, n, c);
        }
    }
}

static void binary_run(const struct rfx_run_args *args) {
    const struct rfx_node *node = args->node;
    const struct rfx_tensor *ta = rfx_infer_in(args->graph, node, 0);
    const struct rfx_tensor *tb = rfx_infer_in(args->graph, node, 1);
    int64_t c = node->out.c;
    bool dense = ta->c == c && tb->c == c && ta->w == tb->w && args->in[0].c == c &&
                 args->in[1].c == c && args->out.c == c;
    struct binary_loop loop = {args, dense ? 64 : 1};
    rfx_units_share(args, rfx_units_of_rows(args), 0, binary_unit, &loop);
}

const struct rfx_op_def rfx_op_binary = {
    .name = "Binary",
    .spatial = true,
    .kind = RFX_CLASS_JOIN,
    .fuses_as = RFX_FUSE_SUM | RFX_FUSE_GATE,
    .takes_in = RFX_FUSE_ACTIVATION,
    .infer = binary_infer,
    .axis_map = rfx_op_map_broadcast,
    .in_place = rfx_op_in_place_elementwise,
    .packed_bytes = binary_packed_bytes,
    .pack = binary_pack,
    .run = binary_run,
};
