/* Code that all convolution backends (conv_backend.h) and the transposed convolutions share: the
 * geometry of an axis, the job of one call, and the work that follows the sums (bias, residual,
 * activation). */
#ifndef RFX_LAYERS_CONV_CONV_H
#define RFX_LAYERS_CONV_CONV_H

#include "layers/graph/op.h"
#include "layers/graph/units.h"
#include "layers/kernels/kernels.h"

/* The geometry of a convolution along one axis. */
struct rfx_conv_axis {
    int64_t k, s, d, pad; /* kernel, stride, dilation, padding before */
    int64_t in, out;      /* extents of the full maps */
};

struct rfx_conv_job {
    const struct rfx_run_args *args;
    const struct rfx_conv_attr *a;
    struct rfx_conv_axis rows, cols;
    const struct rfx_kernels *kernels;
    const float *weights; /* packed weights; bias and slopes lie in front of them */
    struct rfx_epilogue epilogue;
    bool clamps; /* the result of rfx_conv_clamp: the activation is a clamp to [lo, hi], or none */
    float lo, hi;
    size_t scratch_bytes; /* of one thread */
};

/* Returns the job for one call of an operator's `run`. The caller sets scratch_bytes, which is 0
 * here. */
struct rfx_conv_job rfx_conv_job_make(const struct rfx_run_args *args);

/* Returns the scratch memory of one thread of the team: job->scratch_bytes bytes, aligned. */
void *rfx_conv_thread_scratch(const struct rfx_conv_job *job, int thread);

/* Returns the range [lo, hi) of taps of output position o that lie inside the input map. O(1). */
static inline struct rfx_range rfx_conv_taps(const struct rfx_conv_axis *x, int64_t o) {
    int64_t first = o * x->s - x->pad;
    int64_t lo = first >= 0 ? 0 : (-first + x->d - 1) / x->d;
    int64_t hi = first >= x->in ? 0 : (x->in - 1 - first) / x->d + 1;
    struct rfx_range r = {lo < x->k ? lo : x->k, hi < x->k ? hi : x->k};
    if (r.hi < r.lo) r.hi = r.lo;
    return r;
}

/* Returns the output positions of [lo, hi) whose taps all lie inside the map. For the positions
 * before and after, call rfx_conv_taps for each position. */
struct rfx_range rfx_conv_interior(const struct rfx_conv_axis *x, int64_t lo, int64_t hi);

/* Adds bias and residual and applies the activation to pixels [x0, x1) of output row y. Works in
 * place on `data`, whose pixels are `stride` floats apart. */
void rfx_conv_finish(const struct rfx_conv_job *job, int64_t y, int64_t x0, int64_t x1, float *data,
                     int64_t stride);

/* Returns true if the activation is a clamp or none: then the kernels clamp to [*lo, *hi] in
 * registers. Otherwise returns false and sets *lo and *hi to infinities: the caller must apply the
 * activation after the kernel. */
bool rfx_conv_clamp(const struct rfx_act *act, float *lo, float *hi);

/* Applies the activation, in place, to channels [c0, c1) of the rectangle's output pixels. Does
 * nothing if the kernels' clamp has already applied it (job->clamps). */
void rfx_conv_activate(const struct rfx_conv_job *job, struct rfx_rect rect, int64_t c0,
                       int64_t c1);

/* The weight slots of convolutions and transposed convolutions; the rfx_op_def of both operators
 * refers to them. */
extern const struct rfx_weight_slot rfx_conv_weight_slots[];

/* The functions of a convolution's row in which float32 and integer convolutions are alike; see
 * rfx_op_def. rfx_conv_infer sets a map of float32, of a node that has n_in inputs. */
RFX_NODISCARD enum rfx_status rfx_conv_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                             int n_in, struct rfx_error *err);
void rfx_conv_window(const struct rfx_node *node, struct rfx_window *window);

uint64_t rfx_conv_macs(const struct rfx_graph *graph, const struct rfx_node *node, uint64_t area);

/* For shape inference: checks that the number of groups divides the numbers of input and output
 * channels. Fails with UNSUPPORTED and the numbers otherwise. */
RFX_NODISCARD enum rfx_status rfx_conv_check_groups(const struct rfx_node *node,
                                                    struct rfx_error *err);

/* For shape inference: checks that the weight has the dims `want`, and that bias and scale are
 * absent or have oc elements. Fails with UNSUPPORTED and the numbers otherwise. */
RFX_NODISCARD enum rfx_status rfx_conv_check_weights(const struct rfx_graph *graph,
                                                     const struct rfx_node *node,
                                                     const int64_t want[4], struct rfx_error *err);
#endif
