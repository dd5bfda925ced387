/* Operators on constants whose elements repeat (onnx_repeat.h).
 *
 * What works element by element is evaluated on the elements that are stored: on operands of which
 * each axis along which none of them changes is 1 long. The result repeats as they do. */
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/fold/onnx_fold.h"
#include "rfexec/onnx/import/fold/onnx_repeat.h"

/* Elements from which on a constant may be kept as one that repeats. */
#define REPEAT_FROM 1024
#define INDICES_FROM 64

#define MOST_OPERANDS 4

typedef enum rfx_status evaluate_node(struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op);

/* The evaluation at hand. */
struct job {
    struct rfx_onnx_import *ctx;
    const struct rfx_onnx_op *op;
    evaluate_node *evaluate;
    size_t n;               /* operands; NULL: left out */
    enum rfx_status status; /* of what failed otherwise than for want of a form */
};

/* The product of a shape's sizes; 0: it does not fit. */
static int64_t count_elems(const struct rfx_shape *shape) {
    int64_t elems = 1;
    for (int i = 0; i < shape->rank; i++)
        if (!rfx_checked_mul_i64(elems, shape->dims[i], &elems)) return 0;
    return elems;
}

static bool repeats(const struct rfx_onnx_const *c) {
    return c->repeat != NULL || (c->filled && c->elems >= REPEAT_FROM);
}

/* --- element by element --- */

static bool works_by_elements(const char *op) {
    static const char *const names[] = {
        "Abs",     "Acos",  "Acosh",     "Add",        "And",         "Asin",
        "Asinh",   "Atan",  "Atanh",     "BitShift",   "Cast",        "CastLike",
        "Ceil",    "Clip",  "Cos",       "Cosh",       "Div",         "Equal",
        "Erf",     "Exp",   "Floor",     "Gelu",       "Greater",     "GreaterOrEqual",
        "IsInf",   "IsNaN", "LeakyRelu", "Less",       "LessOrEqual", "Log",
        "Max",     "Mean",  "Min",       "Mod",        "Mul",         "Neg",
        "Not",     "Or",    "Pow",       "Reciprocal", "Relu",        "Round",
        "Sigmoid", "Sign",  "Sin",       "Sinh",       "Softplus",    "Sqrt",
        "Sub",     "Sum",   "Tan",       "Tanh",       "Where",       "Xor"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(op, names[i]) == 0) return true;
    return false;
}

/* Whether operand k is a number or a type beside operand 0, not broadcast with it. */
static bool is_parameter(const struct rfx_onnx_import *ctx, size_t k) {
    return k > 0 && (rfx_onnx_op_is(ctx, "Clip") || rfx_onnx_op_is(ctx, "CastLike"));
}

/* Operands broadcast to one shape, axis by axis, as factors that all have in common; `any`: where
 * an operand changes, of stride 1 or 0. */
struct aligned {
    struct rfx_shape shape;
    int count, end[RFX_MAX_RANK];
    struct rfx_digit any[RFX_DIGITS], own[MOST_OPERANDS][RFX_DIGITS];
    struct rfx_onnx_pattern patterns[MOST_OPERANDS];
};

static int begin_of(const int *end, int axis) {
    return axis == 0 ? 0 : end[axis - 1];
}

/* The factors of operand k along an axis of the shape, broadcast. */
static int factors_along(const struct aligned *a, const struct rfx_onnx_const *c, size_t k,
                         int axis, struct rfx_digit *out) {
    int own = axis - (a->shape.rank - c->shape.rank), n = 0;
    const struct rfx_onnx_pattern *p = &a->patterns[k];
    if (a->shape.dims[axis] == 1) return 0;
    if (own < 0 || c->shape.dims[own] == 1) {
        out[0] = (struct rfx_digit){.size = a->shape.dims[axis]};
        return 1;
    }
    for (int f = begin_of(p->end, own); f < p->end[own]; f++) out[n++] = p->factors[f];
    return n;
}

/* Adds the factors of an axis that operands 0 to n - 1 have in common. */
static bool align_axis(struct aligned *a, struct rfx_onnx_const *const *in, size_t n, int axis) {
    struct rfx_digit common[RFX_DIGITS], own[RFX_DIGITS], none[RFX_DIGITS];
    int count = 0;
    for (int pass = 0; pass < 2; pass++) /* the second time all are cut as finely as any */
        for (size_t k = 0; k < n; k++) {
            if (in[k] == NULL) continue;
            int made = factors_along(a, in[k], k, axis, own);
            if (pass > 0 || count > 0)
                made = rfx_onnx_factors_align(common, count, own, made, none, own);
            if (made < 0 || a->count + made > RFX_DIGITS) return false;
            count = made;
            for (int f = 0; f < made; f++) {
                common[f] = (struct rfx_digit){.size = own[f].size};
                a->own[k][a->count + f] = own[f];
            }
        }
    for (int f = 0; f < count; f++) {
        struct rfx_digit *any = &a->any[a->count + f];
        *any = common[f];
        for (size_t k = 0; k < n; k++)
            if (in[k] != NULL) *any = rfx_digit_join(any, &a->own[k][a->count + f]);
    }
    a->count += count;
    a->end[axis] = a->count;
    return true;
}

static bool align(struct aligned *a, struct rfx_onnx_const *const *in, size_t n) {
    memset(a, 0, sizeof *a);
    for (size_t k = 0; k < n; k++) {
        if (in[k] == NULL) continue;
        if (!rfx_onnx_pattern_of(in[k], &a->patterns[k])) return false;
        struct rfx_shape both;
        if (!rfx_onnx_broadcast(&a->shape, &in[k]->shape, &both)) return false;
        a->shape = both;
    }
    for (int axis = 0; axis < a->shape.rank; axis++)
        if (!align_axis(a, in, n, axis)) return false;
    return true;
}

/* The part of the factors along which something changes: their classes as axes, neighbours put
 * together. at[f]: the axis of factor f, -1: nothing changes. */
struct compact {
    struct rfx_shape shape;
    int at[RFX_DIGITS];
    int64_t inner[RFX_DIGITS]; /* elements of its axis that factor f moves on by 1 */
};

/* Whether factor f follows the one before in all operands: both may be one axis. */
static bool follows(const struct aligned *a, size_t n, int f) {
    if (a->any[f].n_cuts > 0 || a->any[f - 1].n_cuts > 0) return false;
    for (size_t k = 0; k < n; k++) {
        const struct rfx_digit *own = &a->own[k][f], *before = &a->own[k][f - 1];
        if (own->n_cuts > 0 || before->n_cuts > 0 || before->stride != own->size * own->stride)
            return false;
    }
    return true;
}

static bool make_compact(const struct aligned *a, size_t n, struct compact *out) {
    *out = (struct compact){.shape = {0, {0}}};
    for (int f = 0; f < a->count; f++) {
        out->at[f] = -1;
        if (a->any[f].stride == 0) continue;
        bool joined = f > 0 && out->at[f - 1] >= 0 && follows(a, n, f);
        if (!joined && out->shape.rank == RFX_MAX_RANK) return false;
        if (!joined) out->shape.dims[out->shape.rank++] = 1;
        out->at[f] = out->shape.rank - 1;
        out->shape.dims[out->at[f]] *= rfx_digit_classes(&a->any[f]);
    }
    for (int f = a->count - 1; f >= 0; f--) {
        out->inner[f] = 1;
        if (f + 1 < a->count && out->at[f] >= 0 && out->at[f + 1] == out->at[f])
            out->inner[f] = out->inner[f + 1] * a->any[f + 1].size;
    }
    return true;
}

/* A factor of an operand with a position for each class of all operands. */
static struct rfx_digit by_classes(const struct rfx_digit *own, const struct rfx_digit *any) {
    struct rfx_digit out = {.size = rfx_digit_classes(any), .stride = own->stride};
    if (any->n_cuts == 0) return *own;
    for (int64_t i = 0; i < own->n_cuts; i++)
        for (int64_t k = 0; k < any->n_cuts; k++)
            if (own->cuts[i] == any->cuts[k]) (void)rfx_digit_add_cut(&out, k + 1);
    return out;
}

/* Operand k with the compact axes, of which those along which it does not change are 1 long. */
static struct rfx_onnx_const *compact_operand(struct job *job, const struct aligned *a,
                                              const struct compact *compact, size_t k,
                                              struct rfx_onnx_const *c) {
    struct rfx_onnx_pattern p = {.stored = a->patterns[k].stored, .first = a->patterns[k].first};
    struct rfx_shape shape = {compact->shape.rank, {0}};
    bool single = true;
    for (int i = 0; i < shape.rank; i++) {
        shape.dims[i] = 1;
        for (int f = 0; f < a->count; f++) {
            if (compact->at[f] != i || a->own[k][f].stride == 0) continue;
            p.factors[p.count] = by_classes(&a->own[k][f], &a->any[f]);
            shape.dims[i] *= p.factors[p.count++].size;
            single = false;
        }
        p.end[i] = p.count;
    }
    if (single && c->elems == 1) return c;
    struct rfx_onnx_const *view = rfx_onnx_repeat_new(job->ctx, c->type, &shape, &p);
    struct rfx_onnx_const *out =
        view == NULL ? NULL : rfx_onnx_const_new(job->ctx, c->type, &shape);
    if (out == NULL) return NULL;
    bool real = rfx_onnx_type_is_real(c->type);
    job->status = rfx_onnx_repeat_fill(job->ctx, view, real ? rfx_onnx_const_reals_rw(out) : NULL,
                                       real ? NULL : rfx_onnx_const_ints_rw(out));
    return job->status == RFX_OK ? out : NULL;
}

/* Evaluates the current node with other operands; NULL: it fails. */
static struct rfx_onnx_const *evaluate_on(struct job *job, struct rfx_onnx_const *const *in) {
    struct rfx_onnx_import *ctx = job->ctx;
    const struct rfx_onnx_node *node = ctx->node;
    struct rfx_onnx_node copy = *node;
    const char *names[MOST_OPERANDS], *result;
    char *text = rfx_arena_alloc(ctx->arena, job->n + 1, 32);
    bool done = text != NULL;
    for (size_t k = 0; done && k <= job->n; k++, text += 32) {
        (void)snprintf(text, 32, "\1repeat %d", ctx->repeat_names++); /* no name of a file */
        if (k == job->n) break;
        struct rfx_onnx_operand value = {-1, in[k]};
        names[k] = in[k] == NULL ? "" : text;
        done = in[k] == NULL || rfx_onnx_names_put(ctx->values, text, value);
    }
    if (!done) {
        ctx->out_of_memory = true;
        return NULL;
    }
    result = text;
    copy.in = names;
    copy.out = &result;
    copy.n_out = 1;
    ctx->node = &copy;
    job->status = job->evaluate(ctx, job->op);
    ctx->node = node;
    const struct rfx_onnx_operand *value =
        job->status == RFX_OK ? rfx_onnx_names_find(ctx->values, result) : NULL;
    return value == NULL ? NULL : value->constant;
}

/* A result on the compact axes, repeated over the shape. */
static struct rfx_onnx_const *repeat_result(struct job *job, const struct aligned *a,
                                            const struct compact *compact,
                                            struct rfx_onnx_const *result) {
    struct rfx_onnx_pattern from, p;
    if (!rfx_onnx_pattern_of(result, &from)) return NULL;
    p = (struct rfx_onnx_pattern){.stored = from.stored, .first = from.first};
    if (from.count > 0 && from.stored != result) return NULL;
    for (int i = 0; i < a->shape.rank; i++) {
        for (int f = begin_of(a->end, i); f < a->end[i]; f++) {
            int axis = compact->at[f];
            int64_t step = axis < 0 || result->filled
                               ? 0
                               : rfx_onnx_product(&compact->shape, axis + 1, compact->shape.rank) *
                                     compact->inner[f];
            struct rfx_digit *factor = &p.factors[p.count++];
            *factor = (struct rfx_digit){.size = a->any[f].size};
            if (step != 0) *factor = a->any[f];
            factor->stride = step;
        }
        p.end[i] = p.count;
    }
    return rfx_onnx_repeat_new(job->ctx, result->type, &a->shape, &p);
}

/* Stored integers each of which is the one before and *step: *first is number 0. */
static bool is_run(struct job *job, struct rfx_onnx_const *stored, int64_t *first, int64_t *step) {
    const int64_t *ints;
    int64_t n = rfx_onnx_const_stored(stored);
    job->status = rfx_onnx_const_stored_ints(job->ctx, stored, &ints);
    if (job->status != RFX_OK) return false;
    *first = ints[0];
    *step = n < 2 ? 0 : (int64_t)((uint64_t)ints[1] - (uint64_t)ints[0]);
    for (int64_t i = 0; i < n; i++)
        if ((uint64_t)ints[i] != (uint64_t)*first + (uint64_t)i * (uint64_t)*step) return false;
    return true;
}

/* Adds a digit times `times` to one of the same size, which moves along the same cuts or not. */
static bool add_digit(struct rfx_digit *sum, struct rfx_digit digit, int64_t times) {
    if (!rfx_checked_mul_i64(digit.stride, times, &digit.stride)) return false;
    if (digit.stride == 0) return true;
    bool alike = sum->n_cuts == digit.n_cuts;
    for (int64_t i = 0; alike && i < digit.n_cuts; i++) alike = sum->cuts[i] == digit.cuts[i];
    if (sum->stride == 0)
        *sum = digit;
    else if (!alike || !rfx_checked_add_i64(sum->stride, digit.stride, &sum->stride))
        return false;
    if (sum->stride == 0) sum->n_cuts = 0;
    return true;
}

#define MOST_RUN 65536 /* integers of a list that a sum is found in */

/* A list of the integers from the least to the most that a pattern's digits come to. */
static struct rfx_onnx_const *list_of_sums(struct job *job, int32_t type, int64_t at_zero,
                                           struct rfx_onnx_pattern *p) {
    int64_t least = 0, most = 0;
    for (int f = 0; f < p->count; f++) {
        int64_t *end = p->factors[f].stride < 0 ? &least : &most, moves;
        int64_t steps = rfx_digit_classes(&p->factors[f]) - 1;
        if (!rfx_checked_mul_i64(steps, p->factors[f].stride, &moves) ||
            !rfx_checked_add_i64(*end, moves, end) || *end <= -MOST_RUN || *end >= MOST_RUN)
            return NULL;
    }
    struct rfx_shape list = {1, {most - least + 1}};
    p->stored = rfx_onnx_const_new(job->ctx, type, &list);
    p->first = -least;
    for (int64_t i = 0; p->stored != NULL && i < list.dims[0]; i++)
        rfx_onnx_const_ints_rw(p->stored)[i] = (int64_t)((uint64_t)at_zero + (uint64_t)(least + i));
    return p->stored;
}

/* The sum or difference of integers that count along their axes, as indices of several axes do:
 * exporters add them for the shape of the result alone. They are found in a list of integers. */
static struct rfx_onnx_const *sum_of_runs(struct job *job, const struct aligned *a,
                                          struct rfx_onnx_const *const *in) {
    struct rfx_onnx_pattern p = {.count = a->count};
    int64_t at_zero = 0;
    bool minus = rfx_onnx_op_is(job->ctx, "Sub");
    if (job->n != 2 || !(minus || rfx_onnx_op_is(job->ctx, "Add")) || in[0]->type != in[1]->type ||
        rfx_onnx_type_is_real(in[0]->type))
        return NULL;
    memcpy(p.end, a->end, sizeof p.end);
    for (int f = 0; f < p.count; f++) p.factors[f] = (struct rfx_digit){.size = a->any[f].size};
    for (size_t k = 0; k < 2; k++) {
        int64_t first, step, sign = minus && k == 1 ? -1 : 1;
        if (!is_run(job, a->patterns[k].stored, &first, &step)) return NULL;
        if (step > MOST_RUN || step < -MOST_RUN) return NULL;
        uint64_t value = (uint64_t)first + (uint64_t)step * (uint64_t)a->patterns[k].first;
        at_zero = (int64_t)((uint64_t)at_zero + (uint64_t)sign * value);
        for (int f = 0; f < p.count; f++)
            if (!add_digit(&p.factors[f], a->own[k][f], sign * step)) return NULL;
    }
    struct rfx_onnx_const *list = list_of_sums(job, in[0]->type, at_zero, &p);
    if (list == NULL || list->elems > count_elems(&a->shape) / 2) return NULL;
    return rfx_onnx_repeat_new(job->ctx, in[0]->type, &a->shape, &p);
}

/* Operands without parts. */
static struct rfx_onnx_const *by_pattern(struct job *job, struct rfx_onnx_const *const *in) {
    struct rfx_onnx_const *small[MOST_OPERANDS], *aligned_in[MOST_OPERANDS];
    struct aligned a;
    struct compact compact;
    for (size_t k = 0; k < job->n; k++) aligned_in[k] = is_parameter(job->ctx, k) ? NULL : in[k];
    if (!align(&a, aligned_in, job->n) || !make_compact(&a, job->n, &compact)) return NULL;
    int64_t all = count_elems(&a.shape);
    if (all == 0) return NULL;
    if (rfx_onnx_product(&compact.shape, 0, compact.shape.rank) > all / 2)
        return sum_of_runs(job, &a, in);
    for (size_t k = 0; k < job->n; k++) {
        small[k] = in[k];
        if (aligned_in[k] == NULL) continue;
        small[k] = compact_operand(job, &a, &compact, k, in[k]);
        if (small[k] == NULL) return NULL;
    }
    struct rfx_onnx_const *result = evaluate_on(job, small);
    return result == NULL ? NULL : repeat_result(job, &a, &compact, result);
}

/* The axis, of the broadcast shape, along which an operand has parts; -1: none has. */
static int parts_axis(const struct job *job, struct rfx_onnx_const *const *in, int rank,
                      size_t *which) {
    for (size_t k = 0; k < job->n; k++) {
        if (in[k] == NULL || is_parameter(job->ctx, k)) continue;
        *which = k;
        if (in[k]->repeat != NULL && in[k]->repeat->n_parts > 0)
            return in[k]->repeat->axis + rank - in[k]->shape.rank;
    }
    return -1;
}

/* Positions of an axis of the broadcast shape of all operands. */
static bool slice_operands(const struct job *job, struct rfx_onnx_const *const *in, int rank,
                           int axis, int64_t start, int64_t size, struct rfx_onnx_const **out) {
    for (size_t k = 0; k < job->n; k++) {
        int own = in[k] == NULL ? -1 : axis - (rank - in[k]->shape.rank);
        out[k] = in[k];
        if (own < 0 || is_parameter(job->ctx, k) || in[k]->shape.dims[own] == 1) continue;
        out[k] = rfx_onnx_repeat_slice(job->ctx, in[k], own, start, 1, size);
        if (out[k] == NULL) return false;
    }
    return true;
}

/* How many positions from `at` on lie in one part of every operand that has parts along an axis. */
static int64_t positions_together(const struct job *job, struct rfx_onnx_const *const *in, int rank,
                                  int axis, int64_t at) {
    int64_t most = INT64_MAX;
    for (size_t k = 0; k < job->n; k++) {
        if (in[k] == NULL || in[k]->repeat == NULL || in[k]->repeat->n_parts == 0) continue;
        const struct rfx_onnx_repeat *r = in[k]->repeat;
        if (r->axis + rank - in[k]->shape.rank != axis) continue;
        int64_t end = 0;
        for (int i = 0; i < r->n_parts && end <= at; i++) end += r->parts[i]->shape.dims[r->axis];
        most = rfx_min_i64(most, end - at);
    }
    return most;
}

#define MOST_PIECES 128

static bool shape_of_all(const struct job *job, struct rfx_onnx_const *const *in,
                         struct rfx_shape *shape) {
    struct rfx_shape both;
    shape->rank = 0;
    for (size_t k = 0; k < job->n; k++) {
        if (in[k] == NULL || is_parameter(job->ctx, k)) continue;
        if (!rfx_onnx_broadcast(shape, &in[k]->shape, &both)) return false;
        *shape = both;
    }
    return true;
}

/* Any operands: piece by piece where they have parts. As deep as parts are. */
static struct rfx_onnx_const *by_elements(struct job *job, struct rfx_onnx_const *const *in,
                                          int depth) {
    struct rfx_shape shape;
    size_t which = 0;
    if (!shape_of_all(job, in, &shape)) return NULL;
    int axis = parts_axis(job, in, shape.rank, &which), n = 0;
    if (axis < 0) return by_pattern(job, in);
    struct rfx_onnx_const *pieces[MOST_PIECES], *sliced[MOST_OPERANDS];
    if (depth > RFX_ONNX_MOST_DEPTH) return NULL;
    for (int64_t at = 0; at < shape.dims[axis];) {
        int64_t size = positions_together(job, in, shape.rank, axis, at);
        if (n == MOST_PIECES || !slice_operands(job, in, shape.rank, axis, at, size, sliced))
            return NULL;
        pieces[n] = by_elements(job, sliced, depth + 1);
        if (pieces[n] == NULL) return NULL;
        at += size;
        n++;
    }
    return rfx_onnx_repeat_join(job->ctx, pieces, n, axis);
}

/* --- forms --- */

static bool read_ints(struct job *job, const char *name, size_t k, const int64_t **ints,
                      int64_t *count) {
    bool found;
    job->status = rfx_onnx_list_ints(job->ctx, name, k, ints, count, &found);
    return job->status == RFX_OK && found && *count <= RFX_MAX_RANK;
}

static struct rfx_onnx_const *expand(struct job *job, struct rfx_onnx_const *c) {
    const int64_t *dims;
    int64_t count, elems = 1;
    struct rfx_shape target = {0, {0}}, shape;
    if (c->filled || !read_ints(job, "", 1, &dims, &count)) return NULL;
    target.rank = (int)count;
    for (int i = 0; i < target.rank; i++) target.dims[i] = dims[i];
    if (!rfx_onnx_broadcast(&c->shape, &target, &shape)) return NULL;
    for (int i = 0; i < shape.rank; i++)
        if (!rfx_checked_mul_i64(elems, shape.dims[i], &elems)) return NULL;
    if (c->repeat == NULL && (elems < REPEAT_FROM || elems == c->elems || c->elems == 1))
        return NULL;
    return rfx_onnx_repeat_expand(job->ctx, c, &shape);
}

/* Sums along an axis, which are the same along others where the terms are. */
static struct rfx_onnx_const *sums(struct job *job, struct rfx_onnx_const *c) {
    struct rfx_onnx_const *in[2] = {c, rfx_onnx_in(job->ctx, 1).constant};
    int axis;
    if (!repeats(c) || in[1] == NULL) return NULL;
    job->status = rfx_onnx_sum_axis(job->ctx, c->shape.rank, &axis);
    if (job->status != RFX_OK) return NULL;
    for (int i = 0; in[0] != NULL && i < c->shape.rank; i++)
        if (i != axis && rfx_onnx_repeat_is_same(c, i))
            in[0] = rfx_onnx_repeat_slice(job->ctx, in[0], i, 0, 1, 1);
    if (in[0] == NULL || in[0]->elems > c->elems / 2) return NULL;
    job->n = 2;
    struct rfx_onnx_const *small = evaluate_on(job, in);
    return small == NULL ? NULL : rfx_onnx_repeat_expand(job->ctx, small, &c->shape);
}

/* Whether a constant changes along one axis at most. */
static bool is_line(const struct rfx_onnx_const *c) {
    int axes = 0;
    for (int i = 0; i < c->shape.rank; i++) axes += c->shape.dims[i] > 1 ? 1 : 0;
    return axes <= 1;
}

/* Each axis so many times over: copies are an axis before it, which is then made one with it. */
static struct rfx_onnx_const *tile(struct job *job, struct rfx_onnx_const *c) {
    const int64_t *times;
    int64_t count;
    struct rfx_shape shape = c->shape;
    struct rfx_onnx_pattern from, to;
    if (!(repeats(c) || is_line(c)) || !read_ints(job, "", 1, &times, &count) ||
        count != c->shape.rank || !rfx_onnx_pattern_of(c, &from))
        return NULL;
    to = (struct rfx_onnx_pattern){.stored = from.stored, .first = from.first};
    for (int i = 0; i < shape.rank; i++) {
        int n = from.end[i] - begin_of(from.end, i);
        if (times[i] < 1 || !rfx_checked_mul_i64(shape.dims[i], times[i], &shape.dims[i]) ||
            to.count + n + 1 > RFX_DIGITS)
            return NULL;
        if (times[i] > 1) to.factors[to.count++] = (struct rfx_digit){.size = times[i]};
        for (int f = begin_of(from.end, i); f < from.end[i]; f++)
            to.factors[to.count++] = from.factors[f];
        to.end[i] = to.count;
    }
    return count_elems(&shape) >= REPEAT_FROM ? rfx_onnx_repeat_new(job->ctx, c->type, &shape, &to)
                                              : NULL;
}

static struct rfx_onnx_const *transpose(struct job *job, struct rfx_onnx_const *c) {
    int rank = c->shape.rank, perm[RFX_MAX_RANK];
    int64_t given[RFX_MAX_RANK];
    unsigned seen = 0;
    if (!repeats(c)) return NULL;
    for (int i = 0; i < rank; i++) given[i] = rank - 1 - i;
    job->status = rfx_onnx_attr_ints(job->ctx, "perm", (size_t)rank, given);
    if (job->status != RFX_OK) return NULL;
    for (int i = 0; i < rank; i++) {
        if (given[i] < 0 || given[i] >= rank || (seen & (1u << given[i])) != 0) return NULL;
        seen |= 1u << given[i];
        perm[i] = (int)given[i];
    }
    return rfx_onnx_repeat_transpose(job->ctx, c, perm);
}

static struct rfx_onnx_const *slice(struct job *job, struct rfx_onnx_const *c) {
    struct rfx_slice_attr cut;
    if (!repeats(c)) return NULL;
    job->status = rfx_onnx_read_cut(job->ctx, &c->shape, &cut);
    for (int i = 0; job->status == RFX_OK && c != NULL && i < cut.shape.rank; i++) {
        if (cut.shape.dims[i] < 1) return NULL;
        c = rfx_onnx_repeat_slice(job->ctx, c, i, cut.starts[i], cut.steps[i], cut.shape.dims[i]);
    }
    return job->status == RFX_OK ? c : NULL;
}

#define MOST_GATHERED 64

/* A few positions of an axis, by an index or a list of such. */
static struct rfx_onnx_const *gather(struct job *job, struct rfx_onnx_const *c) {
    struct rfx_onnx_import *ctx = job->ctx;
    struct rfx_onnx_const *index = rfx_onnx_in(ctx, 1).constant, *parts[MOST_GATHERED];
    struct rfx_shape shape = {0, {0}};
    const int64_t *at;
    int axis;
    if (!repeats(c) || index == NULL || index->shape.rank > 1 || index->elems < 1 ||
        index->elems > MOST_GATHERED || rfx_onnx_type_is_real(index->type))
        return NULL;
    job->status = rfx_onnx_const_ints(ctx, index, &at);
    if (job->status == RFX_OK)
        job->status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", 0), c->shape.rank, &axis);
    if (job->status != RFX_OK) return NULL;
    int64_t extent = c->shape.dims[axis];
    for (int64_t i = 0; i < index->elems; i++) {
        if (at[i] < -extent || at[i] >= extent) return NULL;
        parts[i] = rfx_onnx_repeat_slice(ctx, c, axis, at[i] < 0 ? at[i] + extent : at[i], 1, 1);
        if (parts[i] == NULL) return NULL;
    }
    struct rfx_onnx_const *all = rfx_onnx_repeat_join(ctx, parts, (int)index->elems, axis);
    if (all == NULL || index->shape.rank == 1) return all;
    for (int i = 0; i < all->shape.rank; i++)
        if (i != axis) shape.dims[shape.rank++] = all->shape.dims[i];
    return rfx_onnx_repeat_reshape(ctx, all, &shape);
}

/* A Concat of which an operand repeats. */
static struct rfx_onnx_const *concat(struct job *job, struct rfx_onnx_const *first) {
    struct rfx_onnx_import *ctx = job->ctx;
    size_t n = ctx->node->n_in;
    bool any = false;
    int axis;
    job->status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", 0), first->shape.rank, &axis);
    if (job->status != RFX_OK || n > INT32_MAX) return NULL;
    size_t bytes = n * sizeof(struct rfx_onnx_const *);
    struct rfx_onnx_const **parts = rfx_memory_alloc(ctx->mem, bytes), *out = NULL;
    bool fits = parts != NULL;
    ctx->out_of_memory = ctx->out_of_memory || !fits;
    for (size_t k = 0; fits && k < n; k++) {
        parts[k] = rfx_onnx_in(ctx, k).constant;
        fits = parts[k] != NULL && parts[k]->shape.rank == first->shape.rank &&
               parts[k]->type == first->type && parts[k]->elems > 0;
        for (int i = 0; fits && i < first->shape.rank; i++)
            fits = i == axis || parts[k]->shape.dims[i] == first->shape.dims[i];
        any = any || (fits && repeats(parts[k]));
    }
    if (fits && any) out = rfx_onnx_repeat_join(ctx, parts, (int)n, axis);
    rfx_memory_release(ctx->mem, parts);
    return out;
}

/* A Split of a constant that repeats, bound to all outputs. */
static bool split(struct job *job, struct rfx_onnx_const *c) {
    struct rfx_onnx_import *ctx = job->ctx;
    const int64_t *sizes = NULL;
    int64_t count = 0, at = 0;
    size_t n = ctx->node->n_out;
    bool found;
    int axis;
    if (!repeats(c) || n == 0) return false;
    job->status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", 0), c->shape.rank, &axis);
    if (job->status == RFX_OK)
        job->status = rfx_onnx_list_ints(ctx, "split", 1, &sizes, &count, &found);
    if (job->status != RFX_OK || (found && count != (int64_t)n)) return false;
    int64_t extent = c->shape.dims[axis], even = rfx_ceil_div(extent, (int64_t)n);
    for (int pass = 0; pass < 2; pass++, at = 0) /* first whether all can be */
        for (size_t k = 0; k < n; k++) {
            int64_t size = found ? sizes[k] : rfx_min_i64(even, extent - at);
            if (size < 1 || size > extent - at) return false;
            struct rfx_onnx_const *part = rfx_onnx_repeat_slice(ctx, c, axis, at, 1, size);
            if (part == NULL) return false;
            if (pass == 1) job->status = rfx_onnx_set_const(ctx, k, part);
            if (job->status != RFX_OK) return false;
            at += size;
        }
    return true;
}

static struct rfx_onnx_const *scatter(struct job *job, struct rfx_onnx_const *c) {
    return repeats(c) ? rfx_onnx_repeat_put(job->ctx, c, &job->status) : NULL;
}

static struct rfx_onnx_const *changed_form(struct job *job, struct rfx_onnx_const *c) {
    static const struct {
        const char *op;
        struct rfx_onnx_const *(*change)(struct job *job, struct rfx_onnx_const *c);
    } rows[] = {{"Expand", expand},       {"Tile", tile},
                {"Transpose", transpose}, {"Slice", slice},
                {"Gather", gather},       {"Concat", concat},
                {"ScatterND", scatter},   {"ScatterElements", scatter},
                {"CumSum", sums}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rfx_onnx_op_is(job->ctx, rows[i].op)) return rows[i].change(job, c);
    return NULL;
}

/* The operands of what works element by element; false: none repeats. */
static bool list_operands(struct job *job, struct rfx_onnx_const **in) {
    bool any = false;
    job->n = job->ctx->node->n_in;
    if (job->n > MOST_OPERANDS) return false;
    for (size_t k = 0; k < job->n; k++) {
        in[k] = rfx_onnx_in(job->ctx, k).constant;
        if (in[k] != NULL && in[k]->elems < 1) return false;
        any = any || (in[k] != NULL && in[k]->repeat != NULL);
    }
    return any;
}

/* Rows beside columns: operands none of which repeats, but whose product does. Indices do from
 * fewer elements on: what is added to those soon has many. */
static bool is_outer(const struct job *job, struct rfx_onnx_const *const *in) {
    struct rfx_shape shape;
    int64_t most = 0;
    if (!shape_of_all(job, in, &shape)) return false;
    for (size_t k = 0; k < job->n; k++)
        if (in[k] != NULL && !in[k]->filled) most = rfx_max_i64(most, in[k]->elems);
    int64_t all = count_elems(&shape);
    bool indices = in[0] != NULL && in[0]->type == RFX_ONNX_INT64;
    return all >= (indices ? INDICES_FROM : REPEAT_FROM) && most > 1 && most <= all / 2;
}

enum rfx_status rfx_onnx_fold_repeat(struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op,
                                     evaluate_node *evaluate, bool *done) {
    struct job job = {.ctx = ctx, .op = op, .evaluate = evaluate, .status = RFX_OK};
    struct rfx_onnx_const *in[MOST_OPERANDS], *first = rfx_onnx_in(ctx, 0).constant, *out = NULL;
    *done = false;
    if (first == NULL || first->elems < 1) return RFX_OK;
    ctx->out_of_memory = false;
    if (works_by_elements(op->name[0] != '\0' ? op->name : ctx->node->op)) {
        if (list_operands(&job, in) || (job.n <= MOST_OPERANDS && is_outer(&job, in)))
            out = by_elements(&job, in, 0);
    } else {
        if (first->elems >= REPEAT_FROM) job.status = rfx_onnx_const_filled(ctx, first, &first);
        if (job.status != RFX_OK) return job.status;
        if (rfx_onnx_op_is(ctx, "Split"))
            *done = split(&job, first);
        else
            out = changed_form(&job, first);
    }
    if (out == NULL && ctx->out_of_memory)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    if (job.status != RFX_OK && job.status != RFX_STATUS_UNSUPPORTED) return job.status;
    if (out == NULL) return RFX_OK;
    *done = true;
    return rfx_onnx_set_const(ctx, 0, out);
}
