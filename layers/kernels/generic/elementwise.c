/* Kernels that process each element on its own. Loops have no dependency between iterations even if
 * y == x. The pragma tells this to the compiler, which vectorises them. The operations on an
 * element are the same in vector body and remainder. */
#include <string.h>

#include "layers/kernels/generic/variant.h"
#include "layers/kernels/generic/vector_math.h"

#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

typedef void act_kernel(const struct rfx_act *act, const float *slope, const float *x, float *y,
                        int64_t pixels, int64_t c);

/* Defines the kernel of an activation. `expression` computes y from v, the value of an element, and
 * from alpha and beta. */
#define ACT(kind, expression)                                                             \
    static void act_##kind(const struct rfx_act *act, const float *slope, const float *x, \
                           float *y, int64_t pixels, int64_t c) {                         \
        const float alpha = act->alpha, beta = act->beta;                                 \
        const int64_t n = pixels * c;                                                     \
        (void)slope, (void)alpha, (void)beta;                                             \
        INDEPENDENT for (int64_t i = 0; i < n; i++) {                                     \
            float v = x[i];                                                               \
            y[i] = (expression);                                                          \
        }                                                                                 \
    }

static void act_RFX_ACT_NONE(const struct rfx_act *act, const float *slope, const float *x,
                             float *y, int64_t pixels, int64_t c) {
    (void)act, (void)slope;
    if (x != y) memmove(y, x, (size_t)(pixels * c) * sizeof *y);
}

static void act_RFX_ACT_PRELU(const struct rfx_act *act, const float *slope, const float *x,
                              float *y, int64_t pixels, int64_t c) {
    (void)act;
    for (int64_t p = 0; p < pixels; p++) {
        const float *xp = x + p * c;
        float *yp = y + p * c;
        INDEPENDENT
        for (int64_t i = 0; i < c; i++) yp[i] = xp[i] < 0.0f ? slope[i] * xp[i] : xp[i];
    }
}

ACT(RFX_ACT_RELU, v < 0.0f ? 0.0f : v)
ACT(RFX_ACT_CLIP, math_clamp(v, alpha, beta))
ACT(RFX_ACT_LEAKY_RELU, v < 0.0f ? alpha * v : v)
ACT(RFX_ACT_SIGMOID, math_sigmoid(v))
ACT(RFX_ACT_HARD_SIGMOID, math_clamp(alpha *v + beta, 0.0f, 1.0f))
ACT(RFX_ACT_HARD_SWISH, v *math_clamp(v *(1.0f / 6.0f) + 0.5f, 0.0f, 1.0f))
ACT(RFX_ACT_SILU, v *math_sigmoid(v))
ACT(RFX_ACT_TANH, math_tanh(v))
ACT(RFX_ACT_EXP, math_exp(v))
ACT(RFX_ACT_LOG, math_log(v))
ACT(RFX_ACT_SQRT, __builtin_sqrtf(v))
ACT(RFX_ACT_NEG, -v)
ACT(RFX_ACT_ABS, math_abs(v))
ACT(RFX_ACT_ELU, v < 0.0f ? alpha * math_expm1(v) : v)
ACT(RFX_ACT_SOFTPLUS, math_softplus(v))
ACT(RFX_ACT_ERF, math_erf(v))
ACT(RFX_ACT_FLOOR, __builtin_floorf(v))
ACT(RFX_ACT_CEIL, __builtin_ceilf(v))
ACT(RFX_ACT_RECIPROCAL, 1.0f / v)
ACT(RFX_ACT_POW, math_pow(v, alpha))
ACT(RFX_ACT_SIGN, v > 0.0f ? 1.0f : (v < 0.0f ? -1.0f : (v == 0.0f ? 0.0f : v)))
ACT(RFX_ACT_ROUND, __builtin_rintf(v))
ACT(RFX_ACT_SIN, math_sin(v))
ACT(RFX_ACT_COS, math_cos(v))
ACT(RFX_ACT_SELU, beta *(v < 0.0f ? alpha * math_expm1(v) : v))
ACT(RFX_ACT_CELU, v < 0.0f ? alpha * math_expm1(v / alpha) : v)
ACT(RFX_ACT_THRESHOLDED_RELU, v <= alpha ? 0.0f : v)
ACT(RFX_ACT_SHRINK, math_shrink(v, alpha, beta))
ACT(RFX_ACT_SOFTSIGN, v / (1.0f + math_abs(v)))
ACT(RFX_ACT_TAN, math_tan(v))
ACT(RFX_ACT_SINH, math_sinh(v))
ACT(RFX_ACT_COSH, math_cosh(v))
ACT(RFX_ACT_ASIN, math_asin(v))
ACT(RFX_ACT_ACOS, math_acos(v))
ACT(RFX_ACT_ATAN, math_atan(v))
ACT(RFX_ACT_ASINH, math_asinh(v))
ACT(RFX_ACT_ACOSH, math_acosh(v))
ACT(RFX_ACT_ATANH, math_atanh(v))
ACT(RFX_ACT_NOT, v == 0.0f ? 1.0f : 0.0f)

static act_kernel *const act_kernels[] = {
#define ACT_ENTRY(kind, onnx, traits, alpha, beta) [kind] = act_##kind,
    RFX_ACT_LIST(ACT_ENTRY)
#undef ACT_ENTRY
};

void VARIANT_NAME(act)(const struct rfx_act *act, const float *slope, const float *x, float *y,
                       int64_t pixels, int64_t c) {
    act_kernels[act->kind](act, slope, x, y, pixels, c);
}

/* Applies bias, residual and clamp to one pixel in one pass. */
static inline __attribute__((always_inline)) void epilogue_pixel(float *x, const float *bias,
                                                                 const float *residual, float lo,
                                                                 float hi, int64_t c) {
    if (residual != NULL) {
        INDEPENDENT
        for (int64_t i = 0; i < c; i++) x[i] = math_clamp(x[i] + bias[i] + residual[i], lo, hi);
    } else {
        INDEPENDENT
        for (int64_t i = 0; i < c; i++) x[i] = math_clamp(x[i] + bias[i], lo, hi);
    }
}

void VARIANT_NAME(epilogue)(const struct rfx_epilogue *e, float *x, int64_t stride,
                            const float *residual, int64_t residual_stride, int64_t pixels) {
    int kind = (int)e->act->kind;
    float lo = -INFINITY, hi = INFINITY;
    if (kind == RFX_ACT_RELU || kind == RFX_ACT_CLIP) {
        lo = kind == RFX_ACT_RELU ? 0.0f : e->act->alpha;
        hi = kind == RFX_ACT_RELU ? INFINITY : e->act->beta;
    }
    for (int64_t p = 0; p < pixels; p++)
        epilogue_pixel(x + p * stride, e->bias,
                       residual == NULL ? NULL : residual + p * residual_stride, lo, hi, e->c);
    if (kind == RFX_ACT_NONE || kind == RFX_ACT_RELU || kind == RFX_ACT_CLIP) return;
    if (stride == e->c) {
        VARIANT_NAME(act)(e->act, e->slope, x, x, pixels, e->c);
        return;
    }
    for (int64_t p = 0; p < pixels; p++)
        VARIANT_NAME(act)(e->act, e->slope, x + p * stride, x + p * stride, 1, e->c);
}

#define ZIP(expression)                               \
    if (a_step == 0) {                                \
        const float s = *a;                           \
        INDEPENDENT for (int64_t i = 0; i < n; i++) { \
            float u = s, v = b[i];                    \
            y[i] = (expression);                      \
        }                                             \
    } else if (b_step == 0) {                         \
        const float v = *b;                           \
        INDEPENDENT for (int64_t i = 0; i < n; i++) { \
            float u = a[i];                           \
            y[i] = (expression);                      \
        }                                             \
    } else {                                          \
        INDEPENDENT for (int64_t i = 0; i < n; i++) { \
            float u = a[i], v = b[i];                 \
            y[i] = (expression);                      \
        }                                             \
    }                                                 \
    break

void VARIANT_NAME(binary)(enum rfx_binary_kind kind, const float *a, int64_t a_step, const float *b,
                          int64_t b_step, float *y, int64_t n) {
    const float b0 = *b;
    if (a_step == 0 && b_step == 0) { /* ZIP requires an operand with step 1 */
        for (int64_t i = 0; i < n; i++) VARIANT_NAME(binary)(kind, a, 0, &b0, 1, y + i, 1);
        return;
    }
    switch (kind) {
        case RFX_BINARY_ADD:
            ZIP(u + v);
        case RFX_BINARY_SUB:
            ZIP(u - v);
        case RFX_BINARY_MUL:
            ZIP(u * v);
        case RFX_BINARY_DIV:
            ZIP(u / v);
        case RFX_BINARY_MAX: /* the result is NaN if either operand is */
            ZIP(u != u ? u : (v <= u ? u : v));
        case RFX_BINARY_MIN:
            ZIP(u != u ? u : (v >= u ? u : v));
        case RFX_BINARY_POW:
            ZIP(math_pow(u, v));
        case RFX_BINARY_MOD: /* exact, so every C library gives the same result */
            ZIP(fmodf(u, v));
        case RFX_BINARY_GREATER:
            ZIP(u > v ? 1.0f : 0.0f);
        case RFX_BINARY_GREATER_OR_EQUAL:
            ZIP(u >= v ? 1.0f : 0.0f);
        case RFX_BINARY_LESS:
            ZIP(u < v ? 1.0f : 0.0f);
        case RFX_BINARY_LESS_OR_EQUAL:
            ZIP(u <= v ? 1.0f : 0.0f);
        case RFX_BINARY_EQUAL:
            ZIP(u == v ? 1.0f : 0.0f);
        case RFX_BINARY_AND:
            ZIP(((u != 0.0f) & (v != 0.0f)) ? 1.0f : 0.0f);
        case RFX_BINARY_OR:
            ZIP(((u != 0.0f) | (v != 0.0f)) ? 1.0f : 0.0f);
        case RFX_BINARY_XOR:
            ZIP(((u != 0.0f) ^ (v != 0.0f)) ? 1.0f : 0.0f);
        case RFX_BINARY_IF:
            ZIP(u != 0.0f ? v : -0.0f);
        case RFX_BINARY_UNLESS:
            ZIP(u != 0.0f ? -0.0f : v);
    }
}

void VARIANT_NAME(affine)(const float *x, const float *scale, const float *shift, float *y,
                          int64_t pixels, int64_t c) {
    for (int64_t p = 0; p < pixels; p++) {
        const float *xp = x + p * c;
        float *yp = y + p * c;
        INDEPENDENT
        for (int64_t i = 0; i < c; i++) yp[i] = xp[i] * scale[i] + shift[i];
    }
}

void VARIANT_NAME(normalise)(const struct rfx_normalise_args *r) {
    for (int64_t p = 0; p < r->pixels; p++) {
        const float *x = r->x + p * r->c;
        float *y = r->y + p * r->c;
        INDEPENDENT
        for (int64_t i = 0; i < r->c; i++)
            y[i] = (x[i] - r->mean[i]) * (r->inverse[i] * r->scale[i]) + r->shift[i];
    }
}

void VARIANT_NAME(exp)(const float *x, float bias, float *y, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = math_exp(x[i] - bias);
}
