/* PLAIN_SOFTMAX, PLAIN_BINARY (numpy broadcasting, then node.act) and REDUCE on PLAIN tensors.
 *
 * Each operator computes the whole tensor in one fixed order. Softmax and reductions sum in double.
 * NaN propagates through maxima and minima. */
#include <math.h>

#include "layers/core/real_math.h"
#include "layers/graph/infer.h"
#include "layers/kernels/kernels.h"
#include "layers/ops/softmax.h"

static enum rfx_status infer_softmax(const struct rfx_graph *graph, struct rfx_node *node,
                                     struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    const struct rfx_shape *in = &rfx_infer_in(graph, node, 0)->shape;
    if (node->attr.softmax.axis < 0 || node->attr.softmax.axis >= in->rank)
        return rfx_infer_refuse(node, err, "axis %d of rank %d", node->attr.softmax.axis, in->rank);
    return rfx_infer_set_plain(node, in, err);
}

/* Computes the softmax of n elements that lie `step` apart. */
static void softmax_line(const float *x, float *out, int64_t n, int64_t step, bool logarithm) {
    if (step == 1) {
        rfx_softmax_values(x, out, n, logarithm);
        return;
    }
    float max = x[0];
    double sum = 0.0;
    for (int64_t i = 1; i < n; i++) max = x[i * step] > max ? x[i * step] : max;
    for (int64_t i = 0; i < n; i++) {
        rfx_kernels()->exp(x + i * step, max, out + i * step, 1);
        sum += (double)out[i * step];
    }
    float total = (float)(logarithm ? rfx_log(sum) : sum);
    for (int64_t i = 0; i < n; i++)
        out[i * step] = logarithm ? x[i * step] - max - total : out[i * step] / total;
}

struct softmax_loop {
    const struct rfx_run_args *args;
    int64_t n, inner;                      /* elements of a line, and their distance */
    const struct rfx_softmax_table *table; /* NULL: none */
};

static void one_line(void *user, int64_t line, int thread) {
    const struct softmax_loop *loop = user;
    int64_t first = line / loop->inner * loop->n * loop->inner + line % loop->inner;
    const float *x = rfx_view_f32(&loop->args->in[0]) + first;
    float *out = rfx_view_f32(&loop->args->out) + first;
    (void)thread;
    if (loop->table != NULL)
        rfx_softmax_by_table(loop->table, x, out, loop->inner);
    else
        softmax_line(x, out, loop->n, loop->inner, loop->args->node->attr.softmax.logarithm);
}

static void run_softmax(const struct rfx_run_args *args) {
    const struct rfx_tensor *out = &args->node->out;
    int axis = args->node->attr.softmax.axis;
    struct softmax_loop loop = {args, out->shape.dims[axis], 1, NULL};
    struct rfx_softmax_table room;
    loop.table = rfx_softmax_table_of(&room, args->node->attr.softmax.steps, loop.n);
    for (int i = axis + 1; i < out->shape.rank; i++) loop.inner *= out->shape.dims[i];
    rfx_team_for(out->elems > 4096 ? args->team : NULL, out->elems / loop.n, one_line, &loop);
}

/* Returns dimension `axis` (of `rank`) of a shape aligned at its last axis; 1 if the shape lacks
 * it. */
static int64_t aligned_dim(const struct rfx_shape *shape, int axis, int rank) {
    int own = axis - (rank - shape->rank);
    return own < 0 ? 1 : shape->dims[own];
}

static enum rfx_status infer_binary(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 2, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    const struct rfx_shape *a = &rfx_infer_in(graph, node, 0)->shape;
    const struct rfx_shape *b = &rfx_infer_in(graph, node, 1)->shape;
    struct rfx_shape shape = {a->rank > b->rank ? a->rank : b->rank, {0}};
    for (int i = 0; i < shape.rank; i++) {
        int64_t da = aligned_dim(a, i, shape.rank), db = aligned_dim(b, i, shape.rank);
        if (da != db && da != 1 && db != 1)
            return rfx_infer_refuse(node, err, "dimensions %lld and %lld do not broadcast",
                                    (long long)da, (long long)db);
        shape.dims[i] = da == 1 ? db : da;
    }
    if (node->act.kind == RFX_ACT_PRELU && graph->weights[node->act.slope].elems != 1)
        return rfx_infer_refuse(node, err, "PRelu with %lld slopes on a plain tensor",
                                (long long)graph->weights[node->act.slope].elems);
    return rfx_infer_set_plain(node, &shape, err);
}

/* Computes the steps of an operand per output axis; 0 for a broadcast axis. */
static void broadcast_steps(const struct rfx_shape *in, int rank, int64_t *step) {
    int64_t strides[RFX_MAX_RANK];
    rfx_shape_strides(in, strides);
    for (int i = 0; i < rank; i++) {
        int own = i - (rank - in->rank);
        step[i] = own < 0 || in->dims[own] == 1 ? 0 : strides[own];
    }
}

static void run_binary(const struct rfx_run_args *args) {
    const struct rfx_shape *shape = &args->node->out.shape;
    int last = shape->rank - 1;
    int64_t step[2][RFX_MAX_RANK] = {{0}}, at[2] = {0, 0}, index[RFX_MAX_RANK] = {0};
    for (int k = 0; k < 2; k++)
        broadcast_steps(&args->graph->nodes[args->node->in[k]].out.shape, shape->rank, step[k]);
    int64_t n = last >= 0 ? shape->dims[last] : 1;
    float *out = rfx_view_f32(&args->out);
    int64_t inner[2] = {last >= 0 ? step[0][last] : 1, last >= 0 ? step[1][last] : 1};
    if (n == 1) inner[0] = inner[1] = 1; /* the kernel takes at most one step of 0 */
    for (int64_t done = 0; done < args->node->out.elems; done += n) {
        rfx_kernels()->binary(args->node->attr.binary.kind, rfx_view_f32(&args->in[0]) + at[0],
                              inner[0], rfx_view_f32(&args->in[1]) + at[1], inner[1], out + done,
                              n);
        for (int axis = last - 1; axis >= 0; axis--) {
            bool wrapped = ++index[axis] == shape->dims[axis];
            if (wrapped) index[axis] = 0;
            for (int k = 0; k < 2; k++)
                at[k] += wrapped ? -(shape->dims[axis] - 1) * step[k][axis] : step[k][axis];
            if (!wrapped) break;
        }
    }
    if (args->node->act.kind != RFX_ACT_NONE)
        rfx_act_apply(&args->node->act, args->packed, out, out, args->node->out.elems, 1);
}

static size_t binary_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    return rfx_act_packed_bytes(&node->act, 1);
}

static enum rfx_status binary_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                   void *packed, const struct rfx_pack_part *part,
                                   struct rfx_error *err) {
    if (part->index > 0) return RFX_OK;
    return rfx_act_pack(graph, &node->act, 1, packed, err);
}

static enum rfx_status infer_reduce(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    const struct rfx_shape *in = &rfx_infer_in(graph, node, 0)->shape;
    struct rfx_shape shape = {0, {0}};
    int64_t n = 1;
    for (int i = 0; i < in->rank; i++) {
        bool gone = node->attr.reduce.axes[i];
        if (gone) n *= in->dims[i];
        if (gone && !node->attr.reduce.keep_dims) continue;
        shape.dims[shape.rank++] = gone ? 1 : in->dims[i];
    }
    if (rfx_reduce_is_arg(node->attr.reduce.kind) && n > RFX_FLOAT_COUNT_MAX)
        return rfx_infer_refuse(node, err, "%lld elements, more than float32 can count",
                                (long long)n);
    return rfx_infer_set_plain(node, &shape, err);
}

static double combine(enum rfx_reduce_kind kind, double sum, double x) {
    switch (kind) {
        case RFX_REDUCE_MEAN:
        case RFX_REDUCE_SUM:
            return sum + x;
        case RFX_REDUCE_MAX:
            return x > sum || x != x ? x : sum;
        case RFX_REDUCE_MIN:
            return x < sum || x != x ? x : sum;
        case RFX_REDUCE_L1:
            return sum + fabs(x);
        case RFX_REDUCE_L2:
        case RFX_REDUCE_SUM_SQUARE:
            return sum + x * x;
        case RFX_REDUCE_PROD:
            return sum * x;
        case RFX_REDUCE_ARG_MAX:
        case RFX_REDUCE_ARG_MAX_LAST:
        case RFX_REDUCE_ARG_MIN:
        case RFX_REDUCE_ARG_MIN_LAST:
        case RFX_REDUCE_COUNT:
            break;
    }
    return sum;
}

/* Finds the axes of `in` that are reduced (or, if !reduced, the others) and their strides. Returns
 * the product of their dimensions. */
static int64_t pick_axes(const struct rfx_node *node, const struct rfx_shape *in, bool reduced,
                         struct rfx_shape *shape, int64_t *step) {
    int64_t strides[RFX_MAX_RANK], product = 1;
    rfx_shape_strides(in, strides);
    shape->rank = 0;
    for (int i = 0; i < in->rank; i++) {
        if (node->attr.reduce.axes[i] != reduced) continue;
        step[shape->rank] = strides[i];
        shape->dims[shape->rank++] = in->dims[i];
        product *= in->dims[i];
    }
    return product;
}

/* Returns the offset of element `i` (row-major) of a strided shape. */
static int64_t offset_of(const struct rfx_shape *shape, const int64_t *step, int64_t i) {
    int64_t offset = 0;
    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        offset += i % shape->dims[axis] * step[axis];
        i /= shape->dims[axis];
    }
    return offset;
}

struct reduce_loop {
    const struct rfx_run_args *args;
    struct rfx_shape kept, gone;
    int64_t kept_step[RFX_MAX_RANK], gone_step[RFX_MAX_RANK], n_gone;
};

/* Returns the index of the largest or smallest element. A NaN wins over all numbers. */
static int64_t find(const struct reduce_loop *loop, const float *x, enum rfx_reduce_kind kind) {
    bool largest = kind == RFX_REDUCE_ARG_MAX || kind == RFX_REDUCE_ARG_MAX_LAST;
    bool last = kind == RFX_REDUCE_ARG_MAX_LAST || kind == RFX_REDUCE_ARG_MIN_LAST;
    float best = x[0];
    int64_t at = 0;
    for (int64_t k = 1; k < loop->n_gone; k++) {
        float v = x[offset_of(&loop->gone, loop->gone_step, k)];
        bool had_nan = best != best, better = largest ? v > best : v < best;
        bool equal = had_nan ? v != v : v == best;
        if (!((better || v != v) && !had_nan) && !(equal && last)) continue;
        best = v;
        at = k;
    }
    return at;
}

static void one_value(void *user, int64_t i, int thread) {
    const struct reduce_loop *loop = user;
    enum rfx_reduce_kind kind = loop->args->node->attr.reduce.kind;
    const float *x = rfx_view_f32(&loop->args->in[0]) + offset_of(&loop->kept, loop->kept_step, i);
    bool sum = kind != RFX_REDUCE_MAX && kind != RFX_REDUCE_MIN;
    double value = !sum ? (double)x[0] : kind == RFX_REDUCE_PROD ? 1.0 : 0.0;
    (void)thread;
    if (rfx_reduce_is_arg(kind)) {
        rfx_view_f32(&loop->args->out)[i] = (float)find(loop, x, kind);
        return;
    }
    for (int64_t k = 0; k < loop->n_gone; k++)
        value = combine(kind, value, (double)x[offset_of(&loop->gone, loop->gone_step, k)]);
    if (kind == RFX_REDUCE_MEAN) value /= (double)loop->n_gone;
    if (kind == RFX_REDUCE_L2) value = sqrt(value);
    rfx_view_f32(&loop->args->out)[i] = (float)value;
}

static void run_reduce(const struct rfx_run_args *args) {
    const struct rfx_node *node = args->node;
    const struct rfx_shape *in = &args->graph->nodes[node->in[0]].out.shape;
    struct reduce_loop loop = {.args = args};
    int64_t n_kept = pick_axes(node, in, false, &loop.kept, loop.kept_step);
    loop.n_gone = pick_axes(node, in, true, &loop.gone, loop.gone_step);
    rfx_team_for(n_kept * loop.n_gone > 16384 ? args->team : NULL, n_kept, one_value, &loop);
}

const struct rfx_op_def rfx_op_plain_softmax = {
    .name = "Softmax", .spatial = false, .infer = infer_softmax, .run = run_softmax};
const struct rfx_op_def rfx_op_plain_binary = {
    .name = "Binary",
    .spatial = false,
    .kind = RFX_CLASS_JOIN,
    .fuses_as = RFX_FUSE_GATE,
    .takes_in = RFX_FUSE_ACTIVATION,
    .infer = infer_binary,
    .packed_bytes = binary_packed_bytes,
    .pack = binary_pack,
    .run = run_binary,
};
const struct rfx_op_def rfx_op_reduce = {
    .name = "Reduce",
    .spatial = false,
    .kind = RFX_CLASS_POOLING,
    .infer = infer_reduce,
    .run = run_reduce,
};
