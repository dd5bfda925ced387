/* Parts of the convolution that its backends share (conv_backend.h), and transposed convolutions
 * with them: geometry of an axis, the job of one call, what follows the sums. */
#ifndef RFX_LAYERS_CONV_CONV_H
#define RFX_LAYERS_CONV_CONV_H

#include "layers/graph/op.h"
#include "layers/graph/units.h"
#include "layers/kernels/kernels.h"

/* Positions of one axis. */
struct rfx_conv_axis {
    int64_t k, s, d, pad; /* kernel, stride, dilation, padding before */
    int64_t in, out;      /* extents of the full maps */
};

struct rfx_conv_job {
    const struct rfx_run_args *args;
    const struct rfx_conv_attr *a;
    struct rfx_conv_axis rows, cols;
    const struct rfx_kernels *kernels;
    const float *weights; /* packed, behind bias and slopes */
    struct rfx_epilogue epilogue;
    bool clamps; /* what rfx_conv_clamp says of the activation */
    float lo, hi;
    size_t scratch_bytes; /* of one thread */
};

/* The job of one call of run; scratch_bytes is 0. */
struct rfx_conv_job rfx_conv_job_make(const struct rfx_run_args *args);

/* Scratch of that thread of the team: job->scratch_bytes, aligned. */
void *rfx_conv_thread_scratch(const struct rfx_conv_job *job, int thread);

/* Which taps [lo, hi) of output position o lie inside the input map. O(1). */
static inline struct rfx_range rfx_conv_taps(const struct rfx_conv_axis *x, int64_t o) {
    int64_t first = o * x->s - x->pad;
    int64_t lo = first >= 0 ? 0 : (-first + x->d - 1) / x->d;
    int64_t hi = first >= x->in ? 0 : (x->in - 1 - first) / x->d + 1;
    struct rfx_range r = {lo < x->k ? lo : x->k, hi < x->k ? hi : x->k};
    if (r.hi < r.lo) r.hi = r.lo;
    return r;
}

/* The output positions of [lo, hi) all of whose taps lie inside the map; the positions before and
 * after need rfx_conv_taps one by one. */
struct rfx_range rfx_conv_interior(const struct rfx_conv_axis *x, int64_t lo, int64_t hi);

/* Bias, residual and activation on pixels [x0, x1) of output row y, in place at `data`, `stride`
 * floats apart. */
void rfx_conv_finish(const struct rfx_conv_job *job, int64_t y, int64_t x0, int64_t x1, float *data,
                     int64_t stride);

/* Activations that are a clamp, or none: the kernels clamp to [*lo, *hi] in registers. false: *lo,
 * *hi are infinite, and the activation is still to be applied. */
bool rfx_conv_clamp(const struct rfx_act *act, float *lo, float *hi);

/* The activation alone, in place on channels [c0, c1) of a rectangle's pixels: nothing where the
 * clamp is all of it. */
void rfx_conv_activate(const struct rfx_conv_job *job, struct rfx_rect rect, int64_t c0,
                       int64_t c1);

/* Inference: the groups divide input and output channels. UNSUPPORTED, with the numbers. */
RFX_NODISCARD enum rfx_status rfx_conv_check_groups(const struct rfx_node *node,
                                                    struct rfx_error *err);

/* Inference: the weight has the dims `want`, bias and scale are absent or have oc elements.
 * UNSUPPORTED, with the numbers. */
RFX_NODISCARD enum rfx_status rfx_conv_check_weights(const struct rfx_graph *graph,
                                                     const struct rfx_node *node,
                                                     const int64_t want[4], struct rfx_error *err);
#endif
