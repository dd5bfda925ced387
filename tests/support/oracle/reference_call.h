/* Between the files of the naive evaluator (reference.h): one node while it is evaluated. Maps are
 * NCHW. */
#ifndef RFX_TESTS_SUPPORT_ORACLE_REFERENCE_CALL_H
#define RFX_TESTS_SUPPORT_ORACLE_REFERENCE_CALL_H

#include "tests/support/oracle/reference.h"

/* One node while it is evaluated. */
struct rfx_ref_call {
    const struct rfx_graph *g;
    const struct rfx_node *node;
    float *const *in;
    float *out;
    const struct rfx_tensor *it; /* of input 0 */
    const struct rfx_tensor *ot;
};

static inline float rfx_ref_in_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    return k->in[0][(c * k->it->h + y) * k->it->w + x];
}

static inline bool rfx_ref_inside(const struct rfx_tensor *t, int64_t y, int64_t x) {
    return y >= 0 && y < t->h && x >= 0 && x < t->w;
}

/* Whether the inferred shape is c x h x w; says so on stderr when not. */
bool rfx_ref_shape_is(const struct rfx_ref_call *k, int64_t c, int64_t h, int64_t w);

/* Calls `value` for every output element. */
void rfx_ref_each(const struct rfx_ref_call *k,
                  double (*value)(const struct rfx_ref_call *, int64_t, int64_t, int64_t));

/* Ops with a window (reference_window.c); false: a wrong shape. */
bool rfx_ref_conv(const struct rfx_ref_call *k);
bool rfx_ref_conv_shape(const struct rfx_ref_call *k); /* whether the inferred shape is right */
bool rfx_ref_conv_transpose(const struct rfx_ref_call *k);
bool rfx_ref_pool(const struct rfx_ref_call *k);

/* Conversions, and ops on one-byte integers (reference_bytes.c); false: a wrong shape or type.
 * Integers are whole numbers in float32 here. */
bool rfx_ref_convert(const struct rfx_ref_call *k);
bool rfx_ref_int_conv(const struct rfx_ref_call *k);
bool rfx_ref_int_pair(const struct rfx_ref_call *k);
bool rfx_ref_int_mean(const struct rfx_ref_call *k);

/* One element of a Resize (reference_resize.c). */
double rfx_ref_resize_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x);

/* One element of a GridSample (reference_grid.c). */
double rfx_ref_grid_sample_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x);

/* Channels of all values of a WindowAttention, and one element of it (reference_attention.c). */
int64_t rfx_ref_window_values(const struct rfx_ref_call *k);
double rfx_ref_window_attention_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x);

/* Places, and what lies there (reference_index.c). */
bool rfx_ref_top_k(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                   float *out);
bool rfx_ref_pick(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                  float *out);
bool rfx_ref_scatter(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                     float *out);

/* What a reduction makes of n values, in double (reference_reduce.c). */
double rfx_ref_reduce(enum rfx_reduce_kind kind, const double *v, int64_t n);

/* One element of a reduction or a norm over channels. */
double rfx_ref_channel_reduce_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x);
double rfx_ref_channel_norm_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x);

/* One element of MOMENTS and of NORMALISE. */
double rfx_ref_moments_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x);
double rfx_ref_normalise_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x);

/* One element of an adaptive or global pool. */
double rfx_ref_adaptive_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x);
double rfx_ref_global_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x);
#endif
