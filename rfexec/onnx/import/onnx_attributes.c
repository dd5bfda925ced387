/* The attributes of the node that is converted, and what is done with those that its conversion has
 * not asked for: they are refused, but for the ones of which the table below says why they may be
 * passed over. A conversion so asks for an attribute only where it obeys it, or refuses it.
 *
 * tests/oracle/attribute_cases.py walks the attributes of ONNX's schemas. */
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

#define MOST_ATTRS 64 /* of a node: the bits of *attrs_read */
#define ANY INT64_MIN

/* The index of an attribute, n_attrs: there is none. */
static size_t index_of(const struct rfx_onnx_import *ctx, const char *name) {
    size_t i = 0;
    while (i < ctx->node->n_attrs && strcmp(ctx->node->attrs[i].name, name) != 0) i++;
    return i;
}

static bool is_read(const struct rfx_onnx_import *ctx, size_t i) {
    return i < MOST_ATTRS && (*ctx->attrs_read >> i & 1) != 0;
}

const struct rfx_onnx_attr *rfx_onnx_attr_find(const struct rfx_onnx_import *ctx,
                                               const char *name) {
    size_t i = index_of(ctx, name);
    if (i < MOST_ATTRS) *ctx->attrs_read |= (uint64_t)1 << i;
    return i < ctx->node->n_attrs ? &ctx->node->attrs[i] : NULL;
}

/* The attribute where it has that kind: another one stays unread, and is refused as such. */
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

enum rfx_status rfx_onnx_attr_ints(struct rfx_onnx_import *ctx, const char *name, size_t count,
                                   int64_t *out) {
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, name);
    if (a == NULL) return RFX_OK;
    if (a->kind != RFX_ONNX_ATTR_INTS || a->count != count)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "attribute %s has %zu values, %zu expected", name, a->count, count);
    memcpy(out, a->ints, count * sizeof *out);
    return RFX_OK;
}

enum rfx_status rfx_onnx_list_ints(struct rfx_onnx_import *ctx, const char *name, size_t k,
                                   const int64_t **out, int64_t *count, bool *found) {
    const struct rfx_onnx_attr *a = find_kind(ctx, name, RFX_ONNX_ATTR_INTS);
    *found = true;
    if (a != NULL) {
        *out = a->ints;
        *count = (int64_t)a->count;
        return RFX_OK;
    }
    *found = rfx_onnx_has(ctx, k);
    *count = 0;
    if (!*found) return RFX_OK;
    struct rfx_onnx_const *c;
    enum rfx_status status = rfx_onnx_in_const(ctx, k, &c);
    if (status != RFX_OK) return status;
    *count = c->elems;
    return rfx_onnx_const_ints(ctx, c, out);
}

/* Attributes that change nothing where the conversion does not ask for them. op NULL: of any
 * operator; value: the only integer for which that holds, or ANY. */
struct passed_over {
    const char *op, *name;
    int64_t value;
};

static const struct passed_over passed_over[] = {
    {NULL, "consumed_inputs", ANY}, /* before opset 6: which inputs may be written over */
    /* before opset 7: operands whose last axes are alike broadcast as they do today; `axis`, which
     * says otherwise, is asked for */
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
    {"Attention", "qk_matmul_output_mode", ANY}, /* of an output that is refused */
    {"Attention", "softmax_precision", ANY},     /* all is computed in float32 at least */
    {"AveragePool", "count_include_pad", 0},
    {"BatchNormalization", "momentum", ANY}, /* of training, which is refused */
    {"BatchNormalization", "is_test", 1},    /* from opset 7 on all is inference */
    {"BatchNormalization", "spatial", 1},
    {"Cast", "round_mode", ANY}, /* of casts to float 8, which are refused */
    {"Cast", "saturate", ANY},
    {"CastLike", "round_mode", ANY},
    {"CastLike", "saturate", ANY},
    {"Dropout", "is_test", ANY}, /* inference: nothing is dropped */
    {"Dropout", "ratio", ANY},
    {"Dropout", "seed", ANY},
    {"GroupNormalization", "stash_type", 1}, /* float32 */
    {"LayerNormalization", "stash_type", 1},
    {"MaxPool", "storage_order", 0}, /* of indices that nobody asks for */
    {"MaxPool", "storage_order", 1},
    {"RMSNormalization", "stash_type", 1},
    {"Range", "stash_type", ANY},           /* of half precision: these are computed in double */
    {"Resize", "extrapolation_value", ANY}, /* of tf_crop_and_resize, which is refused */
    {"TopK", "sorted", 0},                  /* any order will do: the one of 1 */
    {"TopK", "sorted", 1},
};

static bool may_be_passed_over(const struct rfx_onnx_import *ctx, const struct rfx_onnx_attr *a) {
    for (size_t i = 0; i < sizeof passed_over / sizeof *passed_over; i++) {
        const struct passed_over *p = &passed_over[i];
        if (strcmp(p->name, a->name) != 0) continue;
        if (p->op != NULL && strcmp(p->op, ctx->node->op) != 0) continue;
        if (p->value == ANY || (a->kind == RFX_ONNX_ATTR_INT && a->i == p->value)) return true;
    }
    return false;
}

static enum rfx_status refuse_attr(struct rfx_onnx_import *ctx, const struct rfx_onnx_attr *a) {
    switch (a->kind) {
        case RFX_ONNX_ATTR_INT:
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                   "attribute %.60s = %lld is not "
                                   "supported here",
                                   a->name, (long long)a->i);
        case RFX_ONNX_ATTR_FLOAT:
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                   "attribute %.60s = %g is not "
                                   "supported here",
                                   a->name, (double)a->f);
        case RFX_ONNX_ATTR_STRING:
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                   "attribute %.60s = '%.60s' is not "
                                   "supported here",
                                   a->name, a->s);
        case RFX_ONNX_ATTR_INTS:
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                   "attribute %.60s, %zu integers "
                                   "from %lld on, is not supported here",
                                   a->name, a->count, a->count > 0 ? (long long)a->ints[0] : 0LL);
        case RFX_ONNX_ATTR_TENSOR:
        case RFX_ONNX_ATTR_GRAPH:
        case RFX_ONNX_ATTR_FLOATS:
        case RFX_ONNX_ATTR_STRINGS:
        case RFX_ONNX_ATTR_OTHER:
            break;
    }
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "attribute %.60s is not supported here",
                           a->name);
}

enum rfx_status rfx_onnx_attrs_are_read(struct rfx_onnx_import *ctx) {
    for (size_t i = 0; i < ctx->node->n_attrs; i++) {
        const struct rfx_onnx_attr *a = &ctx->node->attrs[i];
        if (!is_read(ctx, i) && !may_be_passed_over(ctx, a)) return refuse_attr(ctx, a);
    }
    return RFX_OK;
}
