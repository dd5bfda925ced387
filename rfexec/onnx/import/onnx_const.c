/* Constants: their numbers, and weights of the graph made from them. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/import/onnx_repeat.h"

int64_t rfx_onnx_most_stored(void) {
    static const int64_t least = (int64_t)1 << 22;
    int64_t pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE), most;
    if (pages < 1 || bytes < 1 || !rfx_checked_mul_i64(pages, bytes, &most)) return least;
    return rfx_max_i64(most / 4 / (int64_t)sizeof(double), least);
}

struct rfx_onnx_const *rfx_onnx_const_bare(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape, int64_t elems) {
    static const struct rfx_onnx_const_place nowhere = {-1, -1, -1};
    struct rfx_onnx_const *c = rfx_onnx_alloc(ctx, 1, sizeof *c);
    if (c == NULL) return NULL;
    c->type = type;
    c->shape = *shape;
    c->elems = elems;
    c->computed_by = -1;
    c->in_model = c->in_constants = nowhere;
    return c;
}

/* Numbers that are freed when the current node has been converted. */
struct rfx_onnx_scratch {
    struct rfx_onnx_scratch *next;
    struct rfx_onnx_const *of; /* the constant whose ints or reals they are, or NULL */
    max_align_t numbers[];
};

/* Returns memory for the numbers of a constant of `elems` elements. */
static void *scratch(struct rfx_onnx_import *ctx, struct rfx_onnx_const *of, int64_t elems) {
    size_t bytes;
    struct rfx_onnx_scratch *block = NULL;
    if (rfx_onnx_failed(ctx)) return NULL;
    if (elems > rfx_onnx_most_stored()) {
        (void)rfx_onnx_refuse_size(ctx, elems);
        return NULL;
    }
    if (rfx_checked_mul_size((size_t)elems + 1, sizeof(double), &bytes) &&
        rfx_checked_add_size(bytes, sizeof *block, &bytes))
        block = rfx_memory_calloc(ctx->mem, 1, bytes);
    if (block == NULL) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY,
                              "no memory for a constant of %lld elements", (long long)elems);
        return NULL;
    }
    block->next = ctx->scratch;
    block->of = of;
    ctx->scratch = block;
    return block->numbers;
}

/* Returns whether ints or reals are the only copy of a constant's numbers. */
static bool is_only_copy(const struct rfx_onnx_const *c) {
    return c->raw.data == NULL && c->raw.file == NULL && c->floats == NULL && c->repeat == NULL;
}

/* Moves a folded constant's numbers from scratch to the arena. */
static void keep_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    size_t n = (size_t)rfx_onnx_const_stored(c);
    bool narrow = c->reals != NULL && c->type != RFX_ONNX_DOUBLE;
    void *home = rfx_onnx_alloc(ctx, n + 1, narrow ? sizeof *c->floats : sizeof *c->reals);
    if (home == NULL) return;
    float *floats = home;
    for (size_t i = 0; narrow && i < n; i++) floats[i] = (float)c->reals[i];
    if (!narrow) memcpy(home, c->reals != NULL ? (const void *)c->reals : c->ints, n * 8);
    if (narrow)
        c->floats = home;
    else if (c->reals != NULL)
        c->reals = home;
    else
        c->ints = home;
}

void rfx_onnx_const_settle(struct rfx_onnx_import *ctx) {
    for (struct rfx_onnx_scratch *s = ctx->scratch; !rfx_onnx_failed(ctx) && s != NULL;
         s = s->next) {
        struct rfx_onnx_const *c = s->of;
        const void *numbers = s->numbers;
        if (c == NULL || (c->reals != numbers && c->ints != numbers)) continue;
        if (is_only_copy(c)) keep_numbers(ctx, c);
        if (c->reals == numbers) c->reals = NULL;
        if (c->ints == numbers) c->ints = NULL;
    }
    if (!rfx_onnx_failed(ctx)) rfx_onnx_const_forget(ctx);
}

void rfx_onnx_const_forget(struct rfx_onnx_import *ctx) {
    while (ctx->scratch != NULL) {
        struct rfx_onnx_scratch *next = ctx->scratch->next;
        rfx_memory_release(ctx->mem, ctx->scratch);
        ctx->scratch = next;
    }
}

struct rfx_onnx_const *rfx_onnx_const_new_filled(struct rfx_onnx_import *ctx, int32_t type,
                                                 const struct rfx_shape *shape, bool filled) {
    int64_t elems = 1;
    bool counted = true;
    for (int i = 0; i < shape->rank; i++)
        counted =
            counted && shape->dims[i] >= 0 && rfx_checked_mul_i64(elems, shape->dims[i], &elems);
    filled = filled && elems > 0;
    int64_t stored = filled ? 1 : elems;
    if (!counted || elems > INT64_MAX / 16 || stored > rfx_onnx_most_stored() - ctx->folded_elems) {
        (void)rfx_onnx_refuse_size(ctx, counted ? elems : INT64_MAX);
        return NULL;
    }
    ctx->folded_elems += stored;
    struct rfx_onnx_const *c = rfx_onnx_const_bare(ctx, type, shape, elems);
    void *values = scratch(ctx, c, stored);
    if (values == NULL) return NULL;
    c->filled = filled;
    if (rfx_onnx_type_is_real(type))
        c->reals = values;
    else
        c->ints = values;
    return c;
}

struct rfx_onnx_const *rfx_onnx_const_new(struct rfx_onnx_import *ctx, int32_t type,
                                          const struct rfx_shape *shape) {
    return rfx_onnx_const_new_filled(ctx, type, shape, false);
}

struct rfx_onnx_const *rfx_onnx_const_number(struct rfx_onnx_import *ctx, double value) {
    static const struct rfx_shape scalar = {0, {0}};
    struct rfx_onnx_const *c = rfx_onnx_const_new(ctx, RFX_ONNX_FLOAT, &scalar);
    if (c != NULL) rfx_onnx_const_reals_rw(c)[0] = value;
    return c;
}

int64_t *rfx_onnx_const_ints_rw(struct rfx_onnx_const *constant) {
    union {
        const int64_t *in;
        int64_t *out;
    } unconst = {constant->ints};
    return unconst.out;
}

double *rfx_onnx_const_reals_rw(struct rfx_onnx_const *constant) {
    union {
        const double *in;
        double *out;
    } unconst = {constant->reals};
    return unconst.out;
}

static double round_to(int32_t type, double value) {
    return type == RFX_ONNX_DOUBLE ? value : (double)(float)value;
}

int64_t rfx_onnx_to_int(double value) {
    if (!(value == value)) return 0;
    if (value >= 9223372036854775807.0) return INT64_MAX;
    if (value <= -9223372036854775808.0) return INT64_MIN;
    return (int64_t)value;
}

void rfx_onnx_const_put(struct rfx_onnx_const *out, int64_t i, double value) {
    if (out->reals != NULL)
        rfx_onnx_const_reals_rw(out)[i] = round_to(out->type, value);
    else
        rfx_onnx_const_ints_rw(out)[i] = rfx_onnx_to_int(value);
}

void rfx_onnx_copy_elem(struct rfx_onnx_const *out, int64_t i, const double *reals,
                        const int64_t *ints, int64_t at) {
    if (out->reals != NULL)
        rfx_onnx_const_reals_rw(out)[i] = reals[at];
    else
        rfx_onnx_const_ints_rw(out)[i] = ints[at];
}

struct rfx_onnx_const *rfx_onnx_const_of(struct rfx_onnx_import *ctx,
                                         const struct rfx_onnx_tensor *tensor) {
    struct rfx_onnx_const *c =
        rfx_onnx_const_bare(ctx, tensor->type, &tensor->shape, tensor->elems);
    if (c == NULL) return NULL;
    c->raw = tensor->raw;
    c->ints = tensor->ints;
    return c;
}

struct rfx_onnx_const *rfx_onnx_const_view(struct rfx_onnx_import *ctx,
                                           const struct rfx_onnx_const *constant,
                                           const struct rfx_shape *shape) {
    if (rfx_onnx_failed(ctx)) return NULL;
    if (constant->computed_by >= 0) return rfx_onnx_computed_view(ctx, constant, shape);
    if (constant->repeat != NULL) {
        struct rfx_onnx_const *view = rfx_onnx_repeat_reshape(ctx, constant, shape);
        return view != NULL ? view : rfx_onnx_repeat_stored(ctx, constant, shape);
    }
    struct rfx_onnx_const *c = rfx_onnx_const_bare(ctx, constant->type, shape, constant->elems);
    if (c == NULL) return NULL;
    c->raw = constant->raw;
    c->floats = constant->floats;
    c->filled = constant->filled;
    if (is_only_copy(constant)) { /* otherwise they may be temporary numbers of `constant` */
        c->ints = constant->ints;
        c->reals = constant->reals;
    }
    return c;
}

/* --- numbers --- */

/* Returns element i of raw integers. */
static int64_t raw_int(int32_t type, const uint8_t *data, int64_t i) {
    size_t width = rfx_onnx_type_bytes(type);
    uint64_t v = 0;
    memcpy(&v, data + (size_t)i * width, width);
    if (type == RFX_ONNX_INT8) return (int8_t)v;
    if (type == RFX_ONNX_INT16) return (int16_t)v;
    if (type == RFX_ONNX_INT32) return (int32_t)v;
    return (int64_t)v;
}

/* Returns the type of a weight whose values can stay in the file, or RFX_TYPE_COUNT when values of
 * this type must be converted when the model is loaded. */
static enum rfx_type file_type(int32_t number) {
    static const unsigned stay = 1U << RFX_TYPE_FLOAT32 | 1U << RFX_TYPE_FLOAT64 |
                                 1U << RFX_TYPE_FLOAT16 | 1U << RFX_TYPE_BFLOAT16 |
                                 1U << RFX_TYPE_INT8 | 1U << RFX_TYPE_UINT8 | 1U << RFX_TYPE_INT32 |
                                 1U << RFX_TYPE_INT64;
    enum rfx_type type = rfx_type_of_onnx(number);
    return (stay >> type & 1U) != 0 ? type : RFX_TYPE_COUNT;
}

enum { PIECE_ELEMS = 1024 }; /* elements that are read at a time */

/* Reads elements [first, first + n) of a constant's file or memory. */
static void read_raw(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c, int64_t first,
                     int64_t n, uint8_t *out) {
    const struct rfx_onnx_bytes *raw = &c->raw;
    size_t width = rfx_onnx_type_bytes(c->type), at = (size_t)first * width;
    if (rfx_onnx_failed(ctx)) return;
    if (raw->data == NULL)
        ctx->status =
            rfx_weight_file_read(raw->file, raw->offset + at, out, (size_t)n * width, ctx->err);
    else
        memcpy(out, raw->data + at, (size_t)n * width);
}

/* Reads all elements of a constant's file or memory as integers or, if out_ints is NULL, as reals.
 */
static void raw_numbers(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                        int64_t *out_ints, double *out_reals) {
    uint8_t piece[PIECE_ELEMS * sizeof(double)];
    float floats[PIECE_ELEMS];
    for (int64_t first = 0; first < c->elems; first += PIECE_ELEMS) {
        int64_t n = rfx_min_i64(PIECE_ELEMS, c->elems - first);
        read_raw(ctx, c, first, n, piece);
        if (rfx_onnx_failed(ctx)) return;
        for (int64_t i = 0; out_ints != NULL && i < n; i++)
            out_ints[first + i] = raw_int(c->type, piece, i);
        if (out_ints != NULL) continue;
        if (c->type == RFX_ONNX_DOUBLE) {
            memcpy(out_reals + first, piece, (size_t)n * sizeof *out_reals);
            continue;
        }
        rfx_type_load(file_type(c->type), piece, n, floats);
        for (int64_t i = 0; i < n; i++) out_reals[first + i] = (double)floats[i];
    }
}

/* Returns whether all elements have the same bytes as the first one. */
static bool raw_is_filled(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c) {
    uint8_t piece[PIECE_ELEMS * sizeof(double)], first[sizeof(double)] = {0};
    size_t width = rfx_onnx_type_bytes(c->type);
    bool same = true;
    read_raw(ctx, c, 0, 1, first);
    for (int64_t at = 0; same && at < c->elems; at += PIECE_ELEMS) {
        int64_t n = rfx_min_i64(PIECE_ELEMS, c->elems - at);
        read_raw(ctx, c, at, n, piece);
        if (rfx_onnx_failed(ctx)) return false;
        for (int64_t i = 0; same && i < n; i++)
            same = memcmp(piece + (size_t)i * width, first, width) == 0;
    }
    return same;
}

struct rfx_onnx_const *rfx_onnx_const_as_filled(struct rfx_onnx_import *ctx,
                                                struct rfx_onnx_const *c) {
    if (rfx_onnx_failed(ctx) || c->elems < 2 || c->filled || c->repeat != NULL ||
        c->computed_by >= 0)
        return c;
    bool raw = c->raw.data != NULL || c->raw.file != NULL;
    bool same = raw ? raw_is_filled(ctx, c) : c->ints != NULL;
    for (int64_t i = 1; !raw && same && i < c->elems; i++) same = c->ints[i] == c->ints[0];
    if (!same) return c;
    struct rfx_onnx_const one = *c,
                          *made = rfx_onnx_const_new_filled(ctx, c->type, &c->shape, true);
    if (made == NULL) return c;
    one.elems = 1;
    if (raw)
        raw_numbers(ctx, &one, rfx_onnx_const_ints_rw(made), rfx_onnx_const_reals_rw(made));
    else
        rfx_onnx_const_ints_rw(made)[0] = c->ints[0];
    return made;
}

int rfx_onnx_refuse_size(struct rfx_onnx_import *ctx, int64_t elems) {
    const double mib = 1 << 20;
    double most = (double)rfx_onnx_most_stored() * sizeof(double) / mib;
    if (elems > INT64_MAX / 16)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a constant has more elements than can be counted");
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                           "a constant of %lld elements, %.1f MiB while the model is loaded: all "
                           "constants that are computed there may take %.1f MiB, a quarter of the "
                           "machine's memory",
                           (long long)elems, (double)elems * sizeof(double) / mib, most);
}

/* Converts integers that operators have computed as float32. */
static void computed_ints(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                          int64_t *out) {
    for (int64_t i = 0; i < rfx_onnx_const_stored(c); i++) {
        if (fabsf(c->floats[i]) <= (float)RFX_FLOAT_COUNT_MAX)
            out[i] = (int64_t)c->floats[i];
        else
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                  "a computed integer constant has a value of %g, beyond %lld",
                                  (double)c->floats[i], (long long)RFX_FLOAT_COUNT_MAX);
    }
}

const int64_t *rfx_onnx_const_stored_ints(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    if (rfx_onnx_failed(ctx)) return NULL;
    if (rfx_onnx_type_is_real(c->type)) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                              "needs integers, but a constant has floats");
        return NULL;
    }
    if (c->computed_by >= 0) rfx_onnx_computed_numbers(ctx, c);
    if (c->ints == NULL) {
        int64_t *ints = scratch(ctx, c, c->elems);
        if (ints == NULL) return NULL;
        if (c->repeat != NULL)
            rfx_onnx_repeat_fill(ctx, c, NULL, ints);
        else if (c->floats != NULL)
            computed_ints(ctx, c, ints);
        else
            raw_numbers(ctx, c, ints, NULL);
        if (!rfx_onnx_failed(ctx)) c->ints = ints;
    }
    return rfx_onnx_failed(ctx) ? NULL : c->ints;
}

const double *rfx_onnx_const_stored_reals(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    if (rfx_onnx_failed(ctx)) return NULL;
    if (c->reals != NULL) return c->reals;
    if (c->computed_by >= 0) rfx_onnx_computed_numbers(ctx, c);
    bool real = rfx_onnx_type_is_real(c->type);
    int64_t stored = rfx_onnx_const_stored(c);
    double *reals = scratch(ctx, real ? c : NULL, stored);
    if (reals == NULL) return NULL;
    if (!real) {
        const int64_t *ints = rfx_onnx_const_stored_ints(ctx, c);
        for (int64_t i = 0; ints != NULL && i < stored; i++) reals[i] = (double)ints[i];
    } else if (c->repeat != NULL) {
        rfx_onnx_repeat_fill(ctx, c, reals, NULL);
    } else if (c->floats != NULL) {
        for (int64_t i = 0; i < stored; i++) reals[i] = (double)c->floats[i];
    } else {
        raw_numbers(ctx, c, NULL, reals);
    }
    if (rfx_onnx_failed(ctx)) return NULL;
    if (real) c->reals = reals;
    return reals;
}

/* Returns the numbers of all elements, 8 bytes each: of a filled constant copies of the stored
 * number, else `stored` itself. */
static const void *for_all(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                           const void *stored) {
    if (stored == NULL || !c->filled) return stored;
    char *all = scratch(ctx, NULL, c->elems);
    for (int64_t i = 0; all != NULL && i < c->elems; i++) memcpy(all + 8 * i, stored, 8);
    return all;
}

const int64_t *rfx_onnx_const_ints(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    return for_all(ctx, c, rfx_onnx_const_stored_ints(ctx, c));
}

const double *rfx_onnx_const_reals(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    return for_all(ctx, c, rfx_onnx_const_stored_reals(ctx, c));
}

void rfx_onnx_stored_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                             const double **reals, const int64_t **ints) {
    *reals = NULL;
    *ints = NULL;
    if (rfx_onnx_failed(ctx)) return;
    if (rfx_onnx_type_is_real(c->type))
        *reals = rfx_onnx_const_stored_reals(ctx, c);
    else
        *ints = rfx_onnx_const_stored_ints(ctx, c);
}

void rfx_onnx_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, const double **reals,
                      const int64_t **ints) {
    rfx_onnx_stored_numbers(ctx, c, reals, ints);
    if (*reals != NULL) *reals = for_all(ctx, c, *reals);
    if (*ints != NULL) *ints = for_all(ctx, c, *ints);
}

void rfx_onnx_const_check_exact(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    if (!ctx->is_of_constants || rfx_onnx_type_is_real(c->type)) return;
    if (rfx_onnx_type_bytes(c->type) <= 2) return; /* integers of up to 16 bits are exact */
    const int64_t *ints = rfx_onnx_const_stored_ints(ctx, c);
    for (int64_t i = 0; ints != NULL && i < rfx_onnx_const_stored(c); i++)
        if (ints[i] > RFX_FLOAT_COUNT_MAX || ints[i] < -RFX_FLOAT_COUNT_MAX)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                  "an integer constant has a value of %lld, beyond %lld",
                                  (long long)ints[i], (long long)RFX_FLOAT_COUNT_MAX);
}

/* --- weights --- */

/* Adds a weight for a constant that is neither a pattern nor computed. */
static int add_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    const struct rfx_onnx_bytes *raw = &c->raw;
    enum rfx_type type = file_type(c->type);
    bool in_file = raw->file != NULL && type != RFX_TYPE_COUNT;
    bool in_memory = raw->data != NULL && type != RFX_TYPE_COUNT;
    struct rfx_weight w = {.source = in_file ? RFX_WEIGHT_FILE : RFX_WEIGHT_OWNED,
                           .type = in_file ? type : RFX_TYPE_FLOAT32,
                           .file = raw->file,
                           .offset = raw->offset,
                           .shape = c->shape,
                           .elems = c->elems};
    const double *reals = NULL;
    int weight = -1;
    if (!in_file && !in_memory && c->floats == NULL) reals = rfx_onnx_const_stored_reals(ctx, c);
    if (rfx_onnx_failed(ctx)) return -1;
    if (c->filled) {
        w.source = RFX_WEIGHT_FILLED;
        w.lo = reals != NULL ? (float)reals[0] : c->floats[0];
    } else {
        w.data = c->floats;
    }
    ctx->status = rfx_graph_add_weight(ctx->graph, &w, &weight, ctx->err);
    if (rfx_onnx_failed(ctx)) return -1;
    if (w.source == RFX_WEIGHT_OWNED && w.data == NULL) {
        float *values = rfx_graph_owned_weight(ctx->graph, weight);
        if (in_memory) rfx_type_load(type, raw->data, c->elems, values);
        for (int64_t i = 0; !in_memory && i < c->elems; i++) values[i] = (float)reals[i];
    }
    return weight;
}

int rfx_onnx_const_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *constant) {
    if (rfx_onnx_failed(ctx)) return -1;
    int *weight = &rfx_onnx_const_place(ctx, constant)->weight;
    if (*weight < 0 && constant->computed_by >= 0) rfx_onnx_computed_weight(ctx, constant);
    if (*weight < 0) *weight = rfx_onnx_repeat_weight(ctx, constant);
    if (*weight >= 0 || rfx_onnx_failed(ctx)) return *weight;
    if (constant->elems == 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a constant has no elements");
    rfx_onnx_const_check_exact(ctx, constant);
    *weight = add_weight(ctx, constant);
    return *weight;
}

int rfx_onnx_const_weight_transposed(struct rfx_onnx_import *ctx, struct rfx_onnx_const *constant) {
    int weight = rfx_onnx_const_weight(ctx, constant);
    if (weight < 0) return -1;
    int64_t k = constant->shape.dims[0], m = constant->shape.dims[1];
    struct rfx_weight turned = ctx->graph->weights[weight];
    turned.transposed = k;
    turned.shape = (struct rfx_shape){4, {m, k, 1, 1}};
    ctx->status = rfx_graph_add_weight(ctx->graph, &turned, &weight, ctx->err);
    return weight;
}

int rfx_onnx_own_weight(struct rfx_onnx_import *ctx, const float *values, int64_t count) {
    struct rfx_weight w = {.source = RFX_WEIGHT_OWNED,
                           .type = RFX_TYPE_FLOAT32,
                           .data = values,
                           .shape = {1, {count}},
                           .elems = count};
    int weight = -1;
    if (rfx_onnx_failed(ctx)) return -1;
    ctx->status = rfx_graph_add_weight(ctx->graph, &w, &weight, ctx->err);
    return rfx_onnx_failed(ctx) ? -1 : weight;
}

/* --- constant inputs --- */

struct rfx_onnx_const *rfx_onnx_in_const(struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_operand value = rfx_onnx_in_as_named(ctx, k);
    if (!rfx_onnx_is_there(value))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu is missing", k);
    else if (value.constant == NULL)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "input %zu ('%s') is computed from the image; only a constant is "
                              "supported there",
                              k, ctx->node->in[k]);
    return rfx_onnx_failed(ctx) ? NULL : value.constant;
}

const int64_t *rfx_onnx_in_ints(struct rfx_onnx_import *ctx, size_t k, int64_t *count) {
    struct rfx_onnx_const *c = rfx_onnx_in_const(ctx, k);
    const int64_t *ints = c == NULL ? NULL : rfx_onnx_const_ints(ctx, c);
    *count = ints == NULL ? 0 : c->elems;
    return ints;
}

double rfx_onnx_in_number(struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_const *c = rfx_onnx_in_const(ctx, k);
    if (c == NULL) return 0.0;
    if (c->elems != 1) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu has %lld elements, not one", k,
                              (long long)c->elems);
        return 0.0;
    }
    const double *reals = rfx_onnx_const_reals(ctx, c);
    return reals == NULL ? 0.0 : reals[0];
}

double rfx_onnx_in_number_or(struct rfx_onnx_import *ctx, size_t k, double otherwise) {
    return rfx_onnx_has(ctx, k) ? rfx_onnx_in_number(ctx, k) : otherwise;
}
