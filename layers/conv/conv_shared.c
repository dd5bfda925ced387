/* Code that convolutions and transposed convolutions share: see conv.h. */
#include <math.h>
#include <string.h>

#include "layers/conv/conv.h"
#include "layers/core/checked.h"
#include "layers/graph/infer.h"
#include "layers/kernels/packing.h"

const struct rfx_weight_slot rfx_conv_weight_slots[] = {
    {"weight", RFX_WEIGHT_FACTOR, offsetof(struct rfx_node, attr.conv.weight)},
    {"bias", RFX_WEIGHT_BIAS, offsetof(struct rfx_node, attr.conv.bias)},
    {"scale", RFX_WEIGHT_SCALE, offsetof(struct rfx_node, attr.conv.scale)},
    {NULL, RFX_WEIGHT_FACTOR, 0},
};

struct rfx_conv_job rfx_conv_job_make(const struct rfx_run_args *args) {
    const struct rfx_node *node = args->node;
    const struct rfx_conv_attr *a = &node->attr.conv;
    const struct rfx_tensor *in = &args->graph->nodes[node->in[0]].out;
    struct rfx_conv_job job = {
        .args = args,
        .a = a,
        .rows = {a->kh, a->sh, a->dh, a->pads.top, in->h, node->out.h},
        .cols = {a->kw, a->sw, a->dw, a->pads.left, in->w, node->out.w},
        .kernels = rfx_kernels(),
        .weights = rfx_packed_weights(&node->act, a->oc, args->packed),
        .epilogue = {args->packed, rfx_packed_slope(&node->act, a->oc, args->packed), &node->act,
                     a->oc},
    };
    job.clamps = rfx_conv_clamp(&node->act, &job.lo, &job.hi);
    return job;
}

void *rfx_conv_thread_scratch(const struct rfx_conv_job *job, int thread) {
    return (char *)job->args->scratch + (size_t)thread * job->scratch_bytes;
}

struct rfx_range rfx_conv_interior(const struct rfx_conv_axis *x, int64_t lo, int64_t hi) {
    struct rfx_range r = {rfx_max_i64(lo, rfx_ceil_div(x->pad, x->s)),
                          rfx_floor_div(x->in - 1 - x->d * (x->k - 1) + x->pad, x->s) + 1};
    r.lo = rfx_min_i64(r.lo, hi);
    r.hi = rfx_max_i64(rfx_min_i64(r.hi, hi), r.lo);
    return r;
}

void rfx_conv_finish(const struct rfx_conv_job *job, int64_t y, int64_t x0, int64_t x1, float *data,
                     int64_t stride) {
    const struct rfx_view *residual = job->args->node->residual ? &job->args->in[1] : NULL;
    job->kernels->epilogue(&job->epilogue, data, stride,
                           residual == NULL ? NULL : rfx_view_f32_at(residual, y, x0),
                           residual == NULL ? 0 : residual->c, x1 - x0);
}

bool rfx_conv_clamp(const struct rfx_act *act, float *lo, float *hi) {
    *lo = -INFINITY;
    *hi = INFINITY;
    if (act->kind == RFX_ACT_RELU) *lo = 0.0f;
    if (act->kind == RFX_ACT_CLIP) {
        *lo = act->alpha;
        *hi = act->beta;
    }
    return act->kind == RFX_ACT_NONE || act->kind == RFX_ACT_RELU || act->kind == RFX_ACT_CLIP;
}

void rfx_conv_activate(const struct rfx_conv_job *job, struct rfx_rect rect, int64_t c0,
                       int64_t c1) {
    const struct rfx_view *out = &job->args->out;
    const float *slope = job->epilogue.slope == NULL ? NULL : job->epilogue.slope + c0;
    int64_t step = c1 - c0 == out->c ? rfx_rect_cols(rect) : 1;
    if (job->clamps) return;
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x += step) {
            float *at = rfx_view_f32_at(out, y, x) + c0;
            job->kernels->act(job->epilogue.act, slope, at, at, step, c1 - c0);
        }
}

enum rfx_status rfx_conv_check_weights(const struct rfx_graph *graph, const struct rfx_node *node,
                                       const int64_t want[4], struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    const struct rfx_weight *w = &graph->weights[a->weight];
    const int64_t *dims = w->shape.dims;
    if (w->shape.rank != 4 || memcmp(dims, want, 4 * sizeof *want) != 0)
        return rfx_infer_refuse(
            node, err, "weight of rank %d, %lldx%lldx%lldx%lld, is not %lldx%lldx%lldx%lld",
            w->shape.rank, (long long)dims[0], (long long)dims[1], (long long)dims[2],
            (long long)dims[3], (long long)want[0], (long long)want[1], (long long)want[2],
            (long long)want[3]);
    int extra[2] = {a->bias, a->scale};
    for (int i = 0; i < 2; i++)
        if (extra[i] >= 0 && graph->weights[extra[i]].elems != a->oc)
            return rfx_infer_refuse(node, err, "%s has %lld elements for %lld output channels",
                                    i == 0 ? "bias" : "scale",
                                    (long long)graph->weights[extra[i]].elems, (long long)a->oc);
    return RFX_OK;
}

enum rfx_status rfx_conv_check_groups(const struct rfx_node *node, struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (a->groups >= 1 && a->oc >= 1 && a->ic % a->groups == 0 && a->oc % a->groups == 0)
        return RFX_OK;
    return rfx_infer_refuse(node, err,
                            "%lld groups do not divide %lld input and %lld output "
                            "channels",
                            (long long)a->groups, (long long)a->ic, (long long)a->oc);
}
