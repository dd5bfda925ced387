/* The attributes of the current node. A node is refused when it has an attribute that the converter
 * did not read, unless the table below says why the attribute may be ignored. So a converter must
 * read an attribute only where it obeys the value or refuses it.
 *
 * tests/oracle/attribute_cases.py tests every attribute of ONNX's schemas. */
#include <stdio.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

#define MOST_ATTRS 64 /* of a node: bits of *attrs_read */
#define ANY INT64_MIN

/* Returns the index of an attribute, or n_attrs when the node does not have it. */
static size_t index_of(const struct rfx_onnx_import *ctx, const char *name) {
    size_t i = 0;
    while (i < ctx->node->n_attrs && strcmp(ctx->node->attrs[i].name, name) != 0) i++;
    return i;
}

const struct rfx_onnx_attr *rfx_onnx_attr_find(const struct rfx_onnx_import *ctx,
                                               const char *name) {
    size_t i = index_of(ctx, name);
    if (i < MOST_ATTRS) *ctx->attrs_read |= (uint64_t)1 << i;
    return i < ctx->node->n_attrs ? &ctx->node->attrs[i] : NULL;
}

/* Returns the attribute if it has this kind, else NULL. An attribute of another kind counts as
 * unread and is refused later. */
static const struct rfx_onnx_attr *find_kind(const struct rfx_onnx_import *ctx, const char *name,
                                             enum rfx_onnx_attr_kind kind) {
    size_t i = index_of(ctx, name);
    if (i == ctx->node->n_attrs || ctx->node->attrs[i].kind != kind) return NULL;
    return rfx_onnx_attr_find(ctx, name);
}

int64_t rfx_onnx_attr_int(const struct rfx_onnx_import *ctx, const char *name, int64_t otherwise) {
    const struct rfx_onnx_attr *a = find_kind(ctx, name, RFX_ONNX_ATTR_INT);
    return a != NULL ? a->i : otherwise;
}

bool rfx_onnx_attr_flag(const struct rfx_onnx_import *ctx, const char *name, bool otherwise) {
    size_t i = index_of(ctx, name);
    if (i == ctx->node->n_attrs || ctx->node->attrs[i].kind != RFX_ONNX_ATTR_INT) return otherwise;
    int64_t value = ctx->node->attrs[i].i;
    return value == 0 || value == 1 ? rfx_onnx_attr_int(ctx, name, 0) != 0 : otherwise;
}

float rfx_onnx_attr_float(const struct rfx_onnx_import *ctx, const char *name, float otherwise) {
    const struct rfx_onnx_attr *a = find_kind(ctx, name, RFX_ONNX_ATTR_FLOAT);
    return a != NULL ? a->f : otherwise;
}

const char *rfx_onnx_attr_string(const struct rfx_onnx_import *ctx, const char *name,
                                 const char *otherwise) {
    const struct rfx_onnx_attr *a = find_kind(ctx, name, RFX_ONNX_ATTR_STRING);
    return a != NULL ? a->s : otherwise;
}

int rfx_onnx_attr_choice(struct rfx_onnx_import *ctx, const char *name, const char *otherwise,
                         const char *const *texts, int count) {
    const char *text = rfx_onnx_attr_string(ctx, name, otherwise);
    int found = rfx_onnx_index_of(text, texts, count);
    if (found < 0) (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%s '%.60s'", name, text);
    return found < 0 ? 0 : found;
}

void rfx_onnx_attr_ints(struct rfx_onnx_import *ctx, const char *name, size_t count, int64_t *out) {
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, name);
    if (a == NULL) return;
    if (a->kind == RFX_ONNX_ATTR_INTS && a->count == count)
        memcpy(out, a->ints, count * sizeof *out);
    else
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "attribute %s has %zu values, %zu expected", name, a->count, count);
}

void rfx_onnx_perm(struct rfx_onnx_import *ctx, int rank, int *perm) {
    int64_t given[RFX_MAX_RANK];
    unsigned seen = 0;
    for (int i = 0; i < rank; i++) given[i] = rank - 1 - i;
    rfx_onnx_attr_ints(ctx, "perm", (size_t)rank, given);
    for (int i = 0; i < rank; i++) {
        perm[i] = i;
        if (given[i] < 0 || given[i] >= rank || (seen & (1u << given[i])) != 0)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "perm is no permutation");
        else
            perm[i] = (int)given[i];
        seen |= 1u << perm[i];
    }
}

bool rfx_onnx_list_ints(struct rfx_onnx_import *ctx, const char *name, size_t k,
                        const int64_t **out, int64_t *count) {
    const struct rfx_onnx_attr *a = find_kind(ctx, name, RFX_ONNX_ATTR_INTS);
    *count = 0;
    *out = NULL;
    if (rfx_onnx_failed(ctx)) return false;
    if (a != NULL) {
        *out = a->ints;
        *count = (int64_t)a->count;
        return true;
    }
    if (!rfx_onnx_has(ctx, k)) return false;
    *out = rfx_onnx_in_ints(ctx, k, count);
    return !rfx_onnx_failed(ctx);
}

/* Attributes that may be ignored. op NULL: of any operator. value: the only integer that may be
 * ignored, or ANY value. */
struct ignored {
    const char *op, *name;
    int64_t value;
};

static const struct ignored ignored[] = {
    {NULL, "consumed_inputs", ANY}, /* before opset 6: which inputs may be written over */
    /* before opset 7: the converter reads `axis`. Without `axis`, the last axes of the operands are
     * matched, as in later opsets. */
    {"Add", "broadcast", ANY},
    {"And", "broadcast", ANY},
    {"Div", "broadcast", ANY},
    {"Equal", "broadcast", ANY},
    {"Gemm", "broadcast", ANY},
    {"Greater", "broadcast", ANY},
    {"Less", "broadcast", ANY},
    {"Mul", "broadcast", ANY},
    {"Or", "broadcast", ANY},
    {"Pow", "broadcast", ANY},
    {"Sub", "broadcast", ANY},
    {"Xor", "broadcast", ANY},
    {"Attention", "qk_matmul_output_mode", ANY}, /* of an output that the import refuses */
    {"Attention", "softmax_precision", ANY},     /* a softmax is computed in float32 at least */
    {"AveragePool", "count_include_pad", 0},
    {"BatchNormalization", "momentum", ANY}, /* of training, which the import refuses */
    {"BatchNormalization", "is_test", 1}, /* from opset 7 on a model is always run for inference */
    {"BatchNormalization", "spatial", 1},
    {"Cast", "round_mode", ANY}, /* of casts to float 8, which the import refuses */
    {"Cast", "saturate", ANY},
    {"CastLike", "round_mode", ANY},
    {"CastLike", "saturate", ANY},
    {"Dropout", "is_test", ANY}, /* inference: nothing is dropped */
    {"Dropout", "ratio", ANY},
    {"Dropout", "seed", ANY},
    {"GroupNormalization", "stash_type", 1}, /* float32 */
    {"LayerNormalization", "stash_type", 1},
    {"MaxPool", "storage_order", 0}, /* of indices, which no node reads here */
    {"MaxPool", "storage_order", 1},
    {"QuantizeLinear", "axis", ANY},     /* there is one scale */
    {"QuantizeLinear", "saturate", ANY}, /* of casts to float 8, which the import refuses */
    {"RMSNormalization", "stash_type", 1},
    {"Range", "stash_type", ANY},           /* of half precision; Range is computed in double */
    {"Resize", "extrapolation_value", ANY}, /* of tf_crop_and_resize, which the import refuses */
    {"TopK", "sorted", 0},                  /* any order is right; the result is sorted */
    {"TopK", "sorted", 1},
};

static bool may_be_ignored(const struct rfx_onnx_import *ctx, const struct rfx_onnx_attr *a) {
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        const struct ignored *p = &ignored[i];
        if (strcmp(p->name, a->name) != 0) continue;
        if (p->op != NULL && strcmp(p->op, ctx->node->op) != 0) continue;
        if (p->value == ANY || (a->kind == RFX_ONNX_ATTR_INT && a->i == p->value)) return true;
    }
    return false;
}

static void refuse_attr(struct rfx_onnx_import *ctx, const struct rfx_onnx_attr *a) {
    char value[96] = "";
    if (a->kind == RFX_ONNX_ATTR_INT)
        (void)snprintf(value, sizeof value, " = %lld", (long long)a->i);
    if (a->kind == RFX_ONNX_ATTR_FLOAT) (void)snprintf(value, sizeof value, " = %g", (double)a->f);
    if (a->kind == RFX_ONNX_ATTR_STRING) (void)snprintf(value, sizeof value, " = '%.60s'", a->s);
    if (a->kind == RFX_ONNX_ATTR_INTS)
        (void)snprintf(value, sizeof value, ", %zu integers from %lld on,", a->count,
                       a->count > 0 ? (long long)a->ints[0] : 0LL);
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "attribute %.60s%s is not supported here",
                          a->name, value);
}

void rfx_onnx_attrs_are_read(struct rfx_onnx_import *ctx) {
    for (size_t i = 0; i < ctx->node->n_attrs; i++) {
        const struct rfx_onnx_attr *a = &ctx->node->attrs[i];
        bool read = i < MOST_ATTRS && (*ctx->attrs_read >> i & 1) != 0;
        if (!read && !may_be_ignored(ctx, a)) refuse_attr(ctx, a);
    }
}
