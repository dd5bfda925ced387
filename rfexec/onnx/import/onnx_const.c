/* Constants: initialisers and folded values, as numbers and as weights of the graph. */
#include <assert.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/fold/onnx_repeat.h"
#include "rfexec/onnx/import/onnx_import.h"

int64_t rfx_onnx_most_stored(void) {
    static const int64_t least = (int64_t)1 << 22;
    int64_t pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE), most;
    if (pages < 1 || bytes < 1 || !rfx_checked_mul_i64(pages, bytes, &most)) return least;
    return rfx_max_i64(most / 4 / (int64_t)sizeof(double), least);
}

bool rfx_onnx_type_is_real(int32_t type) {
    return type == RFX_ONNX_FLOAT || type == RFX_ONNX_DOUBLE || type == RFX_ONNX_FLOAT16 ||
           type == RFX_ONNX_BFLOAT16;
}

struct rfx_onnx_const *rfx_onnx_const_bare(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape, int64_t elems) {
    static const struct rfx_onnx_const_place nowhere = {-1, -1, -1};
    struct rfx_onnx_const *c = rfx_arena_alloc(ctx->arena, 1, sizeof *c);
    if (c == NULL) return NULL;
    c->type = type;
    c->shape = *shape;
    c->elems = elems;
    c->computed_by = -1;
    c->in_model = c->in_constants = nowhere;
    return c;
}

/* Numbers that last until a node is converted. */
struct rfx_onnx_scratch {
    struct rfx_onnx_scratch *next;
    struct rfx_onnx_const *of; /* whose ints or reals they are; NULL: of nobody */
    max_align_t numbers[];
};

static void *scratch(struct rfx_onnx_import *ctx, struct rfx_onnx_const *of, int64_t elems) {
    size_t bytes;
    if (!rfx_checked_mul_size((size_t)elems + 1, sizeof(double), &bytes) ||
        !rfx_checked_add_size(bytes, sizeof(struct rfx_onnx_scratch), &bytes))
        return NULL;
    struct rfx_onnx_scratch *block = rfx_memory_calloc(ctx->mem, 1, bytes);
    if (block == NULL) return NULL;
    block->next = ctx->scratch;
    block->of = of;
    ctx->scratch = block;
    return block->numbers;
}

/* Whether what a constant has in scratch is all that there is of it. */
static bool is_homeless(const struct rfx_onnx_const *c) {
    return c->raw.data == NULL && c->raw.file == NULL && c->floats == NULL && c->repeat == NULL;
}

/* Moves a folded constant's numbers from scratch to the arena. */
static bool give_home(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    size_t n = (size_t)rfx_onnx_const_stored(c);
    bool narrow = c->reals != NULL && c->type != RFX_ONNX_DOUBLE;
    void *home = rfx_arena_alloc(ctx->arena, n + 1, narrow ? sizeof *c->floats : sizeof *c->reals);
    if (home == NULL) return false;
    float *floats = home;
    for (size_t i = 0; narrow && i < n; i++) floats[i] = (float)c->reals[i];
    if (!narrow) memcpy(home, c->reals != NULL ? (const void *)c->reals : c->ints, n * 8);
    if (narrow)
        c->floats = home;
    else if (c->reals != NULL)
        c->reals = home;
    else
        c->ints = home;
    return true;
}

bool rfx_onnx_const_settle(struct rfx_onnx_import *ctx) {
    for (struct rfx_onnx_scratch *s = ctx->scratch; s != NULL; s = s->next) {
        struct rfx_onnx_const *c = s->of;
        const void *numbers = s->numbers;
        if (c == NULL || (c->reals != numbers && c->ints != numbers)) continue;
        if (is_homeless(c) && !give_home(ctx, c)) return false;
        if (c->reals == numbers) c->reals = NULL;
        if (c->ints == numbers) c->ints = NULL;
    }
    rfx_onnx_const_forget(ctx);
    return true;
}

void rfx_onnx_const_forget(struct rfx_onnx_import *ctx) {
    while (ctx->scratch != NULL) {
        struct rfx_onnx_scratch *next = ctx->scratch->next;
        rfx_memory_release(ctx->mem, ctx->scratch);
        ctx->scratch = next;
    }
}

static struct rfx_onnx_const *new_folded(struct rfx_onnx_import *ctx, int32_t type,
                                         const struct rfx_shape *shape, bool filled) {
    int64_t elems = 1;
    ctx->refused_elems = INT64_MAX;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0 || !rfx_checked_mul_i64(elems, shape->dims[i], &elems)) return NULL;
    filled = filled && elems > 0;
    int64_t stored = filled ? 1 : elems;
    ctx->refused_elems = elems;
    if (elems > INT64_MAX / 16 || stored > rfx_onnx_most_stored() - ctx->folded_elems) return NULL;
    ctx->folded_elems += stored;
    ctx->out_of_memory = true;
    struct rfx_onnx_const *c = rfx_onnx_const_bare(ctx, type, shape, elems);
    if (c == NULL) return NULL;
    c->filled = filled;
    void *values = scratch(ctx, c, stored);
    if (values == NULL) return NULL;
    ctx->out_of_memory = false;
    if (rfx_onnx_type_is_real(type))
        c->reals = values;
    else
        c->ints = values;
    return c;
}

struct rfx_onnx_const *rfx_onnx_const_new(struct rfx_onnx_import *ctx, int32_t type,
                                          const struct rfx_shape *shape) {
    return new_folded(ctx, type, shape, false);
}

struct rfx_onnx_const *rfx_onnx_const_new_filled(struct rfx_onnx_import *ctx, int32_t type,
                                                 const struct rfx_shape *shape) {
    return new_folded(ctx, type, shape, true);
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
    if (is_homeless(constant)) { /* not of what is in scratch of a constant with a home */
        c->ints = constant->ints;
        c->reals = constant->reals;
    }
    return c;
}

/* Element i of raw integer values. */
static int64_t raw_int(int32_t type, const uint8_t *data, int64_t i) {
    size_t width = rfx_onnx_type_bytes(type);
    uint64_t v = 0;
    memcpy(&v, data + (size_t)i * width, width);
    if (type == RFX_ONNX_INT8) return (int8_t)v;
    if (type == RFX_ONNX_INT16) return (int16_t)v;
    if (type == RFX_ONNX_INT32) return (int32_t)v;
    return (int64_t)v;
}

/* The type of a weight whose values stay where they lie; RFX_TYPE_COUNT: they are read at once. */
static enum rfx_type file_type(int32_t number) {
    static const unsigned stay = 1U << RFX_TYPE_FLOAT32 | 1U << RFX_TYPE_FLOAT64 |
                                 1U << RFX_TYPE_FLOAT16 | 1U << RFX_TYPE_BFLOAT16 |
                                 1U << RFX_TYPE_INT8 | 1U << RFX_TYPE_UINT8 | 1U << RFX_TYPE_INT32 |
                                 1U << RFX_TYPE_INT64;
    enum rfx_type type = rfx_type_of_onnx(number);
    return (stay >> type & 1U) != 0 ? type : RFX_TYPE_COUNT;
}

/* Bytes [at, at + count) of what a constant's file or memory holds. */
static enum rfx_status read_raw(struct rfx_onnx_import *ctx, const struct rfx_onnx_bytes *raw,
                                size_t at, size_t count, void *out) {
    if (raw->data == NULL)
        return rfx_weight_file_read(raw->file, raw->offset + at, out, count, ctx->err);
    memcpy(out, raw->data + at, count);
    return RFX_OK;
}

enum { PIECE_ELEMS = 1024 }; /* converted at a time */

enum rfx_status rfx_onnx_refuse_size(struct rfx_onnx_import *ctx, int64_t elems) {
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

static enum rfx_status too_large(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c) {
    if (c->elems > rfx_onnx_most_stored()) return rfx_onnx_refuse_size(ctx, c->elems);
    return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY,
                           "no memory for a constant of %lld elements", (long long)c->elems);
}

static enum rfx_status raw_ints(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                                int64_t *out) {
    uint8_t piece[PIECE_ELEMS * sizeof(int64_t)];
    size_t width = rfx_onnx_type_bytes(c->type);
    for (int64_t first = 0; first < c->elems; first += PIECE_ELEMS) {
        int64_t n = rfx_min_i64(PIECE_ELEMS, c->elems - first);
        enum rfx_status status =
            read_raw(ctx, &c->raw, (size_t)first * width, (size_t)n * width, piece);
        if (status != RFX_OK) return status;
        for (int64_t i = 0; i < n; i++) out[first + i] = raw_int(c->type, piece, i);
    }
    return RFX_OK;
}

static enum rfx_status raw_reals(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                                 double *out) {
    uint8_t piece[PIECE_ELEMS * sizeof(double)];
    float floats[PIECE_ELEMS];
    size_t width = rfx_onnx_type_bytes(c->type);
    for (int64_t first = 0; first < c->elems; first += PIECE_ELEMS) {
        int64_t n = rfx_min_i64(PIECE_ELEMS, c->elems - first);
        enum rfx_status status =
            read_raw(ctx, &c->raw, (size_t)first * width, (size_t)n * width, piece);
        if (status != RFX_OK) return status;
        if (c->type == RFX_ONNX_DOUBLE) {
            memcpy(out + first, piece, (size_t)n * sizeof *out);
            continue;
        }
        rfx_type_load(file_type(c->type), piece, n, floats);
        for (int64_t i = 0; i < n; i++) out[first + i] = (double)floats[i];
    }
    return RFX_OK;
}

/* Whether all elements have the bytes of the first one. */
static enum rfx_status raw_is_filled(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                                     bool *same) {
    uint8_t piece[PIECE_ELEMS * sizeof(double)], first[sizeof(double)];
    size_t width = rfx_onnx_type_bytes(c->type);
    enum rfx_status status = read_raw(ctx, &c->raw, 0, width, first);
    *same = true;
    for (int64_t at = 0; status == RFX_OK && *same && at < c->elems; at += PIECE_ELEMS) {
        int64_t n = rfx_min_i64(PIECE_ELEMS, c->elems - at);
        status = read_raw(ctx, &c->raw, (size_t)at * width, (size_t)n * width, piece);
        for (int64_t i = 0; status == RFX_OK && *same && i < n; i++)
            *same = memcmp(piece + (size_t)i * width, first, width) == 0;
    }
    return status;
}

enum rfx_status rfx_onnx_const_filled(struct rfx_onnx_import *ctx, struct rfx_onnx_const *constant,
                                      struct rfx_onnx_const **out) {
    const struct rfx_onnx_const *c = constant;
    bool raw = c->raw.data != NULL || c->raw.file != NULL, same = c->ints != NULL;
    enum rfx_status status = RFX_OK;
    *out = constant;
    if (c->elems < 2 || c->filled || c->repeat != NULL || c->computed_by >= 0) return RFX_OK;
    if (raw) status = raw_is_filled(ctx, c, &same);
    for (int64_t i = 1; !raw && same && i < c->elems; i++) same = c->ints[i] == c->ints[0];
    if (status != RFX_OK || !same) return status;
    struct rfx_onnx_const one = *constant,
                          *made = rfx_onnx_const_new_filled(ctx, c->type, &c->shape);
    if (made == NULL) return too_large(ctx, constant);
    one.elems = 1;
    if (rfx_onnx_type_is_real(c->type))
        status = raw_reals(ctx, &one, rfx_onnx_const_reals_rw(made));
    else if (raw)
        status = raw_ints(ctx, &one, rfx_onnx_const_ints_rw(made));
    else
        rfx_onnx_const_ints_rw(made)[0] = c->ints[0];
    *out = made;
    return status;
}

/* Integers that operators have computed, as float32. */
static enum rfx_status computed_ints(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                                     int64_t *out) {
    for (int64_t i = 0; i < rfx_onnx_const_stored(c); i++) {
        if (!(fabsf(c->floats[i]) <= (float)RFX_ONNX_MOST_EXACT))
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                   "a computed integer constant has a value of %g, beyond %lld",
                                   (double)c->floats[i], (long long)RFX_ONNX_MOST_EXACT);
        out[i] = (int64_t)c->floats[i];
    }
    return RFX_OK;
}

enum rfx_status rfx_onnx_const_stored_ints(struct rfx_onnx_import *ctx,
                                           struct rfx_onnx_const *constant, const int64_t **out) {
    if (rfx_onnx_type_is_real(constant->type))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                               "needs integers, but a constant has floats");
    if (constant->computed_by >= 0) {
        enum rfx_status status = rfx_onnx_computed_numbers(ctx, constant);
        if (status != RFX_OK) return status;
    }
    if (constant->ints == NULL) {
        int64_t *ints = NULL;
        if (constant->elems <= rfx_onnx_most_stored())
            ints = scratch(ctx, constant, constant->elems);
        if (ints == NULL) return too_large(ctx, constant);
        enum rfx_status status = constant->repeat != NULL
                                     ? rfx_onnx_repeat_fill(ctx, constant, NULL, ints)
                                 : constant->floats != NULL ? computed_ints(ctx, constant, ints)
                                                            : raw_ints(ctx, constant, ints);
        if (status != RFX_OK) return status;
        constant->ints = ints;
    }
    *out = constant->ints;
    return RFX_OK;
}

enum rfx_status rfx_onnx_const_stored_reals(struct rfx_onnx_import *ctx,
                                            struct rfx_onnx_const *constant, const double **out) {
    if (constant->reals != NULL) {
        *out = constant->reals;
        return RFX_OK;
    }
    if (constant->computed_by >= 0) {
        enum rfx_status computed = rfx_onnx_computed_numbers(ctx, constant);
        if (computed != RFX_OK) return computed;
    }
    bool real = rfx_onnx_type_is_real(constant->type);
    int64_t stored = rfx_onnx_const_stored(constant);
    double *reals = NULL;
    if (stored <= rfx_onnx_most_stored()) reals = scratch(ctx, real ? constant : NULL, stored);
    if (reals == NULL) return too_large(ctx, constant);
    enum rfx_status status = RFX_OK;
    if (!real) {
        const int64_t *ints;
        status = rfx_onnx_const_stored_ints(ctx, constant, &ints);
        for (int64_t i = 0; status == RFX_OK && i < stored; i++) reals[i] = (double)ints[i];
    } else if (constant->repeat != NULL) {
        status = rfx_onnx_repeat_fill(ctx, constant, reals, NULL);
    } else if (constant->floats != NULL) {
        for (int64_t i = 0; i < stored; i++) reals[i] = (double)constant->floats[i];
    } else {
        status = raw_reals(ctx, constant, reals);
    }
    if (status != RFX_OK) return status;
    if (real) constant->reals = reals;
    *out = reals;
    return RFX_OK;
}

/* `elems` copies of the 8 bytes at `one`. */
static enum rfx_status repeat(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                              const void *one, void **out) {
    char *all = c->elems <= rfx_onnx_most_stored() ? scratch(ctx, NULL, c->elems) : NULL;
    if (all == NULL) return too_large(ctx, c);
    for (int64_t i = 0; i < c->elems; i++) memcpy(all + 8 * i, one, 8);
    *out = all;
    return RFX_OK;
}

enum rfx_status rfx_onnx_const_ints(struct rfx_onnx_import *ctx, struct rfx_onnx_const *constant,
                                    const int64_t **out) {
    const int64_t *ints = NULL;
    void *all = NULL;
    enum rfx_status status = rfx_onnx_const_stored_ints(ctx, constant, &ints);
    if (status == RFX_OK && constant->filled) status = repeat(ctx, constant, ints, &all);
    if (status == RFX_OK) *out = all != NULL ? (const int64_t *)all : ints;
    return status;
}

enum rfx_status rfx_onnx_const_reals(struct rfx_onnx_import *ctx, struct rfx_onnx_const *constant,
                                     const double **out) {
    const double *reals = NULL;
    void *all = NULL;
    enum rfx_status status = rfx_onnx_const_stored_reals(ctx, constant, &reals);
    if (status == RFX_OK && constant->filled) status = repeat(ctx, constant, reals, &all);
    if (status == RFX_OK) *out = all != NULL ? (const double *)all : reals;
    return status;
}

enum rfx_status rfx_onnx_const_check_exact(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    const int64_t *ints;
    if (!ctx->is_of_constants || rfx_onnx_type_is_real(c->type)) return RFX_OK;
    enum rfx_status status = rfx_onnx_const_stored_ints(ctx, c, &ints);
    for (int64_t i = 0; status == RFX_OK && i < rfx_onnx_const_stored(c); i++)
        if (ints[i] > RFX_ONNX_MOST_EXACT || ints[i] < -RFX_ONNX_MOST_EXACT)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                   "an integer constant has a value of %lld, beyond %lld",
                                   (long long)ints[i], (long long)RFX_ONNX_MOST_EXACT);
    return status;
}

enum rfx_status rfx_onnx_const_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *constant,
                                      int *out) {
    int *weight = &rfx_onnx_const_place(ctx, constant)->weight;
    enum rfx_status status = RFX_OK;
    if (*weight < 0 && constant->computed_by >= 0) status = rfx_onnx_computed_weight(ctx, constant);
    if (status == RFX_OK && *weight < 0) status = rfx_onnx_repeat_weight(ctx, constant, weight);
    if (status != RFX_OK) return status;
    if (*weight >= 0) {
        *out = *weight;
        return RFX_OK;
    }
    if (constant->elems == 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a constant has no elements");
    status = rfx_onnx_const_check_exact(ctx, constant);
    if (status != RFX_OK) return status;
    const struct rfx_onnx_bytes *raw = &constant->raw;
    enum rfx_type type = file_type(constant->type);
    bool in_file = raw->file != NULL && type != RFX_TYPE_COUNT;
    bool in_memory = raw->data != NULL && type != RFX_TYPE_COUNT;
    struct rfx_weight w = {.source = in_file ? RFX_WEIGHT_FILE : RFX_WEIGHT_OWNED,
                           .type = in_file ? type : RFX_TYPE_FLOAT32,
                           .file = raw->file,
                           .offset = raw->offset,
                           .shape = constant->shape,
                           .elems = constant->elems};
    const double *reals = NULL;
    if (!in_file && !in_memory && constant->floats == NULL)
        status = rfx_onnx_const_stored_reals(ctx, constant, &reals);
    if (status != RFX_OK) return status;
    if (constant->filled) {
        w.source = RFX_WEIGHT_FILLED;
        w.lo = reals != NULL ? (float)reals[0] : constant->floats[0];
    } else if (constant->floats != NULL) {
        w.data = constant->floats;
    }
    if (status == RFX_OK) status = rfx_graph_add_weight(ctx->graph, &w, weight, ctx->err);
    if (status != RFX_OK) return status;
    if (w.source == RFX_WEIGHT_OWNED && w.data == NULL) {
        float *values = rfx_graph_owned_weight(ctx->graph, *weight);
        if (in_memory) rfx_type_load(type, raw->data, constant->elems, values);
        for (int64_t i = 0; !in_memory && i < constant->elems; i++) values[i] = (float)reals[i];
    }
    *out = *weight;
    return RFX_OK;
}

enum rfx_status rfx_onnx_in_const(struct rfx_onnx_import *ctx, size_t k,
                                  struct rfx_onnx_const **out) {
    struct rfx_onnx_operand value = rfx_onnx_in_as_named(ctx, k);
    if (value.constant == NULL && value.node < 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu is missing", k);
    if (value.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "input %zu ('%s') is computed from the image; only a constant is "
                               "supported there",
                               k, ctx->node->in[k]);
    *out = value.constant;
    return RFX_OK;
}

enum rfx_status rfx_onnx_in_number(struct rfx_onnx_import *ctx, size_t k, double *out) {
    struct rfx_onnx_const *c = NULL;
    const double *reals;
    enum rfx_status status = rfx_onnx_in_const(ctx, k, &c);
    if (status == RFX_OK && c->elems != 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu has %lld elements, not one", k,
                               (long long)c->elems);
    if (status == RFX_OK) status = rfx_onnx_const_reals(ctx, c, &reals);
    if (status == RFX_OK) *out = reals[0];
    return status;
}

enum rfx_status rfx_onnx_own_weight(struct rfx_onnx_import *ctx, const float *values, int64_t count,
                                    int *out) {
    struct rfx_weight w = {.source = RFX_WEIGHT_OWNED,
                           .type = RFX_TYPE_FLOAT32,
                           .data = values,
                           .shape = {1, {count}},
                           .elems = count};
    return rfx_graph_add_weight(ctx->graph, &w, out, ctx->err);
}
