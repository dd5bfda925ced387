/* Activations: functions of one element. An activation is a layer of its own or is fused into the
 * layer before it.
 *
 * To add one, add its row here, its kernel (ACT in kernels/generic/elementwise.c) and its test. The
 * ONNX importer and exporter read the row. */
#ifndef RFX_LAYERS_GRAPH_ACT_H
#define RFX_LAYERS_GRAPH_ACT_H

enum rfx_act_traits { /* bits */
                      RFX_ACT_HAS_ALPHA = 1,
                      RFX_ACT_HAS_BETA = 2,
                      RFX_ACT_HAS_SLOPE = 4, /* a weight of c or 1 elements */
                      RFX_ACT_HAS_OWN_FORM =
                          8, /* its ONNX form is not a single operator with alpha and beta as
                                attributes; functions of its own read and write that form */
};

/* Per row: kind, ONNX operator, traits, ONNX's default values of alpha and beta. */
#define RFX_ACT_LIST(X)                                                                            \
    X(RFX_ACT_NONE, "Identity", 0, 0.0f, 0.0f)                                                     \
    X(RFX_ACT_RELU, "Relu", 0, 0.0f, 0.0f)                                                         \
    /* min(max(x, alpha), beta) */                                                                 \
    X(RFX_ACT_CLIP, "Clip", RFX_ACT_HAS_ALPHA | RFX_ACT_HAS_BETA | RFX_ACT_HAS_OWN_FORM, 0.0f,     \
      0.0f)                                                                                        \
    /* x < 0 ? alpha * x : x */                                                                    \
    X(RFX_ACT_LEAKY_RELU, "LeakyRelu", RFX_ACT_HAS_ALPHA, 0.01f, 0.0f)                             \
    /* x < 0 ? slope[c] * x : x */                                                                 \
    X(RFX_ACT_PRELU, "PRelu", RFX_ACT_HAS_SLOPE | RFX_ACT_HAS_OWN_FORM, 0.0f, 0.0f)                \
    X(RFX_ACT_SIGMOID, "Sigmoid", 0, 0.0f, 0.0f)                                                   \
    /* min(max(alpha * x + beta, 0), 1) */                                                         \
    X(RFX_ACT_HARD_SIGMOID, "HardSigmoid", RFX_ACT_HAS_ALPHA | RFX_ACT_HAS_BETA, 0.2f, 0.5f)       \
    /* x * min(max(x / 6 + 0.5, 0), 1) */                                                          \
    X(RFX_ACT_HARD_SWISH, "HardSwish", 0, 0.0f, 0.0f)                                              \
    /* x * sigmoid(x) */                                                                           \
    X(RFX_ACT_SILU, "Swish", RFX_ACT_HAS_OWN_FORM, 0.0f, 0.0f)                                     \
    X(RFX_ACT_TANH, "Tanh", 0, 0.0f, 0.0f)                                                         \
    X(RFX_ACT_EXP, "Exp", 0, 0.0f, 0.0f)                                                           \
    X(RFX_ACT_LOG, "Log", 0, 0.0f, 0.0f)                                                           \
    X(RFX_ACT_SQRT, "Sqrt", 0, 0.0f, 0.0f)                                                         \
    X(RFX_ACT_NEG, "Neg", 0, 0.0f, 0.0f)                                                           \
    X(RFX_ACT_ABS, "Abs", 0, 0.0f, 0.0f)                                                           \
    /* x < 0 ? alpha * (exp(x) - 1) : x */                                                         \
    X(RFX_ACT_ELU, "Elu", RFX_ACT_HAS_ALPHA, 1.0f, 0.0f)                                           \
    /* log(1 + exp(x)) */                                                                          \
    X(RFX_ACT_SOFTPLUS, "Softplus", 0, 0.0f, 0.0f)                                                 \
    X(RFX_ACT_ERF, "Erf", 0, 0.0f, 0.0f)                                                           \
    X(RFX_ACT_FLOOR, "Floor", 0, 0.0f, 0.0f)                                                       \
    X(RFX_ACT_CEIL, "Ceil", 0, 0.0f, 0.0f)                                                         \
    X(RFX_ACT_RECIPROCAL, "Reciprocal", 0, 0.0f, 0.0f)                                             \
    /* x ^ alpha */                                                                                \
    X(RFX_ACT_POW, "Pow", RFX_ACT_HAS_ALPHA | RFX_ACT_HAS_OWN_FORM, 0.0f, 0.0f)                    \
    /* -1, 0 or 1; NaN for NaN */                                                                  \
    X(RFX_ACT_SIGN, "Sign", 0, 0.0f, 0.0f)                                                         \
    /* to the nearest integer, halves to the even one */                                           \
    X(RFX_ACT_ROUND, "Round", 0, 0.0f, 0.0f)                                                       \
    X(RFX_ACT_SIN, "Sin", 0, 0.0f, 0.0f)                                                           \
    X(RFX_ACT_COS, "Cos", 0, 0.0f, 0.0f)                                                           \
    /* beta * (x < 0 ? alpha * (exp(x) - 1) : x); beta is gamma in ONNX */                         \
    X(RFX_ACT_SELU, "Selu", RFX_ACT_HAS_ALPHA | RFX_ACT_HAS_BETA | RFX_ACT_HAS_OWN_FORM,           \
      1.67326319217681884765625f, 1.05070102214813232421875f)                                      \
    /* x < 0 ? alpha * (exp(x / alpha) - 1) : x */                                                 \
    X(RFX_ACT_CELU, "Celu", RFX_ACT_HAS_ALPHA, 1.0f, 0.0f)                                         \
    /* x <= alpha ? 0 : x */                                                                       \
    X(RFX_ACT_THRESHOLDED_RELU, "ThresholdedRelu", RFX_ACT_HAS_ALPHA, 1.0f, 0.0f)                  \
    /* x < -alpha ? x + beta : x > alpha ? x - beta : 0; NaN for NaN; in ONNX lambd, bias */       \
    X(RFX_ACT_SHRINK, "Shrink", RFX_ACT_HAS_ALPHA | RFX_ACT_HAS_BETA | RFX_ACT_HAS_OWN_FORM, 0.5f, \
      0.0f)                                                                                        \
    /* x / (1 + |x|) */                                                                            \
    X(RFX_ACT_SOFTSIGN, "Softsign", 0, 0.0f, 0.0f)                                                 \
    /* x == 0 ? 1 : 0 */                                                                           \
    X(RFX_ACT_NOT, "Not", RFX_ACT_HAS_OWN_FORM, 0.0f, 0.0f)                                        \
    X(RFX_ACT_TAN, "Tan", 0, 0.0f, 0.0f)                                                           \
    X(RFX_ACT_SINH, "Sinh", 0, 0.0f, 0.0f)                                                         \
    X(RFX_ACT_COSH, "Cosh", 0, 0.0f, 0.0f)                                                         \
    X(RFX_ACT_ASIN, "Asin", 0, 0.0f, 0.0f)                                                         \
    X(RFX_ACT_ACOS, "Acos", 0, 0.0f, 0.0f)                                                         \
    X(RFX_ACT_ATAN, "Atan", 0, 0.0f, 0.0f)                                                         \
    X(RFX_ACT_ASINH, "Asinh", 0, 0.0f, 0.0f)                                                       \
    X(RFX_ACT_ACOSH, "Acosh", 0, 0.0f, 0.0f)                                                       \
    X(RFX_ACT_ATANH, "Atanh", 0, 0.0f, 0.0f)

enum rfx_act_kind {
#define RFX_ACT_ENUMERATOR(kind, onnx, traits, alpha, beta) kind,
    RFX_ACT_LIST(RFX_ACT_ENUMERATOR)
#undef RFX_ACT_ENUMERATOR
        RFX_ACT_COUNT
};

struct rfx_act {
    enum rfx_act_kind kind;
    float alpha, beta;
    int slope; /* index of the weight, for kinds with a slope; else -1 */
};

struct rfx_act_def {
    const char *onnx;  /* ONNX operator */
    unsigned traits;   /* enum rfx_act_traits */
    float alpha, beta; /* ONNX's defaults */
};

/* Returns the row of a kind; never NULL. */
const struct rfx_act_def *rfx_act_def(enum rfx_act_kind kind);

/* Returns the kind whose ONNX form is the operator `onnx` with alpha and beta as attributes.
 * Returns RFX_ACT_COUNT if there is none; kinds with RFX_ACT_HAS_OWN_FORM are not found. */
enum rfx_act_kind rfx_act_find(const char *onnx);
#endif
