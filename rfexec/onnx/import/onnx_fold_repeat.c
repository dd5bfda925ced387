/* Operators on constants whose elements repeat (onnx_repeat.h).
 *
 * An operator that works element by element is evaluated on small operands. In these every axis
 * along which no operand changes has size 1. The small result is then repeated along the axes that
 * were left out. */
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/import/onnx_repeat.h"

/* Constants with fewer elements are stored, not kept as patterns. INDICES_FROM is for int64. */
#define REPEAT_FROM 1024
#define INDICES_FROM 64

#define MOST_OPERANDS 4

typedef void evaluate_node(struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op);

/* The evaluation of the current node. */
struct job {
    struct rfx_onnx_import *ctx;
    const struct rfx_onnx_op *op;
    evaluate_node *evaluate;
    size_t n; /* number of operands; an operand that is absent is NULL */
};

/* Returns the product of a shape's sizes, or 0 when it overflows. */
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
    return rfx_onnx_index_of(op, names, (int)(sizeof names / sizeof names[0])) >= 0;
}

/* Returns whether operand k is a parameter (limit of Clip, type of CastLike) that is not broadcast.
 */
static bool is_parameter(const struct rfx_onnx_import *ctx, size_t k) {
    return k > 0 && (rfx_onnx_op_is(ctx, "Clip") || rfx_onnx_op_is(ctx, "CastLike"));
}

/* Operands broadcast to one shape. Each axis is split into factors of the same sizes for all
 * operands. own[k] are the factors of operand k. `any` has stride 1 where some operand changes,
 * else stride 0. */
struct aligned {
    struct rfx_shape shape;
    int count, end[RFX_MAX_RANK];
    struct rfx_digit any[RFX_DIGITS], own[MOST_OPERANDS][RFX_DIGITS];
    struct rfx_onnx_pattern patterns[MOST_OPERANDS];
};

static int begin_of(const int *end, int axis) {
    return axis == 0 ? 0 : end[axis - 1];
}

/* Sets out[] to the factors of operand k along an axis of the broadcast shape, and returns their
 * number. */
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

/* Adds the factors of an axis for operands 0 to n - 1. Returns false when there are none of the
 * same sizes. */
static bool align_axis(struct aligned *a, struct rfx_onnx_const *const *in, size_t n, int axis) {
    struct rfx_digit common[RFX_DIGITS], own[RFX_DIGITS], none[RFX_DIGITS];
    int count = 0;
    for (int pass = 0; pass < 2; pass++) /* pass 1 splits all as finely as the finest */
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

/* The shape of the small operands: one axis for each factor along which an operand changes, with
 * neighbouring factors merged. at[f]: the axis of factor f, or -1 when no operand changes along it.
 */
struct compact {
    struct rfx_shape shape;
    int at[RFX_DIGITS];
    int64_t inner[RFX_DIGITS]; /* how far a step along factor f moves along its axis */
};

/* Returns whether factor f continues factor f - 1 in all operands, so that both can be one axis. */
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

/* Returns an operand's factor with one position for each class of `any`. */
static struct rfx_digit by_classes(const struct rfx_digit *own, const struct rfx_digit *any) {
    struct rfx_digit out = {.size = rfx_digit_classes(any), .stride = own->stride};
    if (any->n_cuts == 0) return *own;
    for (int64_t i = 0; i < own->n_cuts; i++)
        for (int64_t k = 0; k < any->n_cuts; k++)
            if (own->cuts[i] == any->cuts[k]) (void)rfx_digit_add_cut(&out, k + 1);
    return out;
}

/* Returns operand k with the compact axes. An axis along which operand k does not change has
 * size 1.
 */
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
    return view == NULL ? NULL : rfx_onnx_repeat_stored(job->ctx, view, &shape);
}

/* Evaluates the current node with other operands. Returns NULL after an error. */
static struct rfx_onnx_const *evaluate_on(struct job *job, struct rfx_onnx_const *const *in) {
    struct rfx_onnx_import *ctx = job->ctx;
    const struct rfx_onnx_node *node = ctx->node;
    struct rfx_onnx_node copy = *node;
    const char *names[MOST_OPERANDS], *result;
    char *text = rfx_onnx_alloc(ctx, job->n + 1, 32);
    if (text == NULL) return NULL;
    for (size_t k = 0; k <= job->n; k++, text += 32) {
        (void)snprintf(text, 32, "\1repeat %d", ctx->repeat_names++); /* no file has such a name */
        if (k == job->n) break;
        names[k] = in[k] == NULL ? "" : text;
        if (in[k] != NULL && !rfx_onnx_names_put(ctx->values, text, rfx_onnx_of_const(in[k])))
            (void)rfx_onnx_out_of_memory(ctx);
    }
    if (rfx_onnx_failed(ctx)) return NULL;
    result = text;
    copy.in = names;
    copy.out = &result;
    copy.n_out = 1;
    ctx->node = &copy;
    job->evaluate(ctx, job->op);
    ctx->node = node;
    const struct rfx_onnx_operand *value =
        rfx_onnx_failed(ctx) ? NULL : rfx_onnx_names_find(ctx->values, result);
    return value == NULL ? NULL : value->constant;
}

/* Returns a result on the compact axes, repeated over the broadcast shape. */
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
                               : rfx_shape_product(&compact->shape, axis + 1, compact->shape.rank) *
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

/* Returns whether the stored integers are *first + i * *step, and sets both numbers. */
static bool is_run(struct job *job, struct rfx_onnx_const *stored, int64_t *first, int64_t *step) {
    const int64_t *ints = rfx_onnx_const_stored_ints(job->ctx, stored);
    int64_t n = rfx_onnx_const_stored(stored);
    if (ints == NULL) return false;
    *first = ints[0];
    *step = n < 2 ? 0 : (int64_t)((uint64_t)ints[1] - (uint64_t)ints[0]);
    for (int64_t i = 0; i < n; i++)
        if ((uint64_t)ints[i] != (uint64_t)*first + (uint64_t)i * (uint64_t)*step) return false;
    return true;
}

/* Adds `times` times a digit to a digit of the same size. Returns false when the sum is no digit:
 * both move, with different cuts, or the stride overflows. */
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

#define MOST_RUN 65536 /* limit on the length of a list of sums */

/* Sets a pattern's stored constant to the list of all integers from the smallest to the largest
 * that its digits reach. */
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

/* Returns the sum or difference of two constants of integers that count along their axes. Exporters
 * compute indices over several axes like this. The result is a pattern over a list of integers. */
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

/* Evaluates the current node on operands without parts. Returns NULL when the result is no pattern.
 */
static struct rfx_onnx_const *by_pattern(struct job *job, struct rfx_onnx_const *const *in) {
    struct rfx_onnx_const *small[MOST_OPERANDS], *aligned_in[MOST_OPERANDS];
    struct aligned a;
    struct compact compact;
    for (size_t k = 0; k < job->n; k++) aligned_in[k] = is_parameter(job->ctx, k) ? NULL : in[k];
    if (!align(&a, aligned_in, job->n) || !make_compact(&a, job->n, &compact)) return NULL;
    int64_t all = count_elems(&a.shape);
    if (all == 0) return NULL;
    if (rfx_shape_product(&compact.shape, 0, compact.shape.rank) > all / 2)
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

/* Returns the axis of the broadcast shape along which an operand has parts, or -1. */
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

/* Sets out[] to positions [start, start + size) of all operands along an axis of the broadcast
 * shape.
 */
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

/* Returns how many positions, beginning with `at`, lie in one part of every operand that has parts
 * along the axis. */
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

/* Evaluates the current node on any operands. Operands with parts are evaluated piece by piece; the
 * recursion is as deep as parts are nested. */
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

/* --- operators that move elements --- */

static bool read_ints(struct job *job, const char *name, size_t k, const int64_t **ints,
                      int64_t *count) {
    return rfx_onnx_list_ints(job->ctx, name, k, ints, count) && *count <= RFX_MAX_RANK;
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

/* CumSum of a constant that repeats. Along other axes on which the constant is the same, only one
 * position is computed. */
static struct rfx_onnx_const *sums(struct job *job, struct rfx_onnx_const *c) {
    struct rfx_onnx_const *in[2] = {c, rfx_onnx_in(job->ctx, 1).constant};
    if (!repeats(c) || in[1] == NULL) return NULL;
    int axis = rfx_onnx_sum_axis(job->ctx, c->shape.rank);
    for (int i = 0; in[0] != NULL && i < c->shape.rank; i++)
        if (i != axis && rfx_onnx_repeat_is_same(c, i))
            in[0] = rfx_onnx_repeat_slice(job->ctx, in[0], i, 0, 1, 1);
    if (in[0] == NULL || in[0]->elems > c->elems / 2) return NULL;
    job->n = 2;
    struct rfx_onnx_const *small = evaluate_on(job, in);
    return small == NULL ? NULL : rfx_onnx_repeat_expand(job->ctx, small, &c->shape);
}

/* Returns whether at most one axis of a constant is longer than 1. */
static bool is_vector(const struct rfx_onnx_const *c) {
    int axes = 0;
    for (int i = 0; i < c->shape.rank; i++) axes += c->shape.dims[i] > 1 ? 1 : 0;
    return axes <= 1;
}

/* Tile. The copies of an axis are one factor in front of the axis's own factors. */
static struct rfx_onnx_const *tile(struct job *job, struct rfx_onnx_const *c) {
    const int64_t *times;
    int64_t count;
    struct rfx_shape shape = c->shape;
    struct rfx_onnx_pattern from, to;
    if (!(repeats(c) || is_vector(c)) || !read_ints(job, "", 1, &times, &count) ||
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
    int perm[RFX_MAX_RANK];
    if (!repeats(c)) return NULL;
    rfx_onnx_perm(job->ctx, c->shape.rank, perm);
    return rfx_onnx_repeat_transpose(job->ctx, c, perm);
}

static struct rfx_onnx_const *slice(struct job *job, struct rfx_onnx_const *c) {
    if (!repeats(c)) return NULL;
    struct rfx_slice_attr cut = rfx_onnx_read_cut(job->ctx, &c->shape);
    for (int i = 0; c != NULL && i < cut.shape.rank; i++) {
        if (cut.shape.dims[i] < 1) return NULL;
        c = rfx_onnx_repeat_slice(job->ctx, c, i, cut.starts[i], cut.steps[i], cut.shape.dims[i]);
    }
    return c;
}

#define MOST_GATHERED 64

/* Gather with one index or a short list of indices. */
static struct rfx_onnx_const *gather(struct job *job, struct rfx_onnx_const *c) {
    struct rfx_onnx_import *ctx = job->ctx;
    struct rfx_onnx_const *index = rfx_onnx_in(ctx, 1).constant, *parts[MOST_GATHERED];
    struct rfx_shape shape = {0, {0}};
    if (!repeats(c) || index == NULL || index->shape.rank > 1 || index->elems < 1 ||
        index->elems > MOST_GATHERED || rfx_onnx_type_is_real(index->type))
        return NULL;
    const int64_t *at = rfx_onnx_const_ints(ctx, index);
    int axis = rfx_onnx_axis_attr(ctx, 0, c->shape.rank);
    if (rfx_onnx_failed(ctx)) return NULL;
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

/* Concat. Returns NULL when no operand repeats. */
static struct rfx_onnx_const *concat(struct job *job, struct rfx_onnx_const *first) {
    struct rfx_onnx_import *ctx = job->ctx;
    size_t n = ctx->node->n_in;
    bool any = false;
    int axis = rfx_onnx_axis_attr(ctx, 0, first->shape.rank);
    if (rfx_onnx_failed(ctx) || n > INT32_MAX) return NULL;
    size_t bytes = n * sizeof(struct rfx_onnx_const *);
    struct rfx_onnx_const **parts = rfx_memory_alloc(ctx->mem, bytes), *out = NULL;
    bool fits = parts != NULL;
    if (!fits) (void)rfx_onnx_out_of_memory(ctx);
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

/* Split of a constant that repeats. Binds all outputs. */
static bool split(struct job *job, struct rfx_onnx_const *c) {
    struct rfx_onnx_import *ctx = job->ctx;
    const int64_t *sizes;
    int64_t count, at = 0;
    size_t n = ctx->node->n_out;
    if (!repeats(c) || n == 0) return false;
    int axis = rfx_onnx_axis_attr(ctx, 0, c->shape.rank);
    bool found = rfx_onnx_list_ints(ctx, "split", 1, &sizes, &count);
    if (rfx_onnx_failed(ctx) || (found && count != (int64_t)n)) return false;
    int64_t extent = c->shape.dims[axis];
    for (int pass = 0; pass < 2; pass++, at = 0) /* pass 0 checks that all parts can be made */
        for (size_t k = 0; k < n; k++) {
            int64_t size = rfx_onnx_split_size(found ? sizes : NULL, n, extent, k, at);
            if (size == 0) return false;
            struct rfx_onnx_const *part = rfx_onnx_repeat_slice(ctx, c, axis, at, 1, size);
            if (part == NULL) return false;
            if (pass == 1) (void)rfx_onnx_set_const(ctx, k, part);
            at += size;
        }
    return !rfx_onnx_failed(ctx);
}

/* --- ScatterND and ScatterElements whose updates fill a box of the data ---
 *
 * Files make masks of shifted windows like this, box by box. If data and updates change only at a
 * few cuts of each axis, so does the result, which is then a pattern with cuts. Otherwise the data
 * is split along each axis into the part before the box, the box, and the part after it. The
 * updates replace the box, and the parts are joined. */

#define MOST_POSITIONS 65536 /* along one axis of a box */

/* The elements of the data that the updates replace: indices [lo, lo + shape). */
struct box {
    int64_t lo[RFX_MAX_RANK];
    struct rfx_shape shape;
};

/* Returns the data with the box replaced by the updates, for axes from `axis` on. The recursion is
 * as deep as there are axes. */
static struct rfx_onnx_const *put(struct rfx_onnx_import *ctx, struct rfx_onnx_const *data,
                                  struct rfx_onnx_const *updates, const struct box *box, int axis) {
    struct rfx_onnx_const *parts[3];
    int n = 0;
    if (axis == box->shape.rank) return updates;
    int64_t extent = data->shape.dims[axis], lo = box->lo[axis], hi = lo + box->shape.dims[axis];
    const int64_t cuts[4] = {0, lo, hi, extent};
    for (int i = 0; i < 3; i++) {
        int64_t size = cuts[i + 1] - cuts[i];
        if (size == 0) continue;
        struct rfx_onnx_const *part =
            size == extent ? data : rfx_onnx_repeat_slice(ctx, data, axis, cuts[i], 1, size);
        if (part != NULL && i == 1) part = put(ctx, part, updates, box, axis + 1);
        if (part == NULL) return NULL;
        parts[n++] = part;
    }
    return n == 1 ? parts[0] : rfx_onnx_repeat_join(ctx, parts, n, axis);
}

/* Adds the cuts of an axis of a pattern to `digit`, an axis of the result. Position 0 of the
 * pattern is position `lo` of the result. Returns false when elements change between cuts, or when
 * there are too many cuts. */
static bool add_cuts(const struct rfx_onnx_pattern *p, int axis, int64_t lo,
                     struct rfx_digit *digit) {
    int begin = begin_of(p->end, axis);
    for (int f = begin; f < p->end[axis]; f++) {
        const struct rfx_digit *factor = &p->factors[f];
        if (factor->stride == 0) continue;
        if (factor->n_cuts == 0 || p->end[axis] - begin > 1) return false;
        for (int64_t i = 0; i < factor->n_cuts; i++)
            if (!rfx_digit_add_cut(digit, lo + factor->cuts[i])) return false;
    }
    return true;
}

/* Sets element i of `to` to the element at indices `at`: of the updates inside the box, else of the
 * data. */
static void put_class(struct rfx_onnx_import *ctx, const struct rfx_onnx_pattern *from,
                      const struct box *box, const int64_t *at, struct rfx_onnx_const *to,
                      int64_t i) {
    int64_t within[RFX_MAX_RANK];
    bool inside = true;
    for (int k = 0; k < box->shape.rank; k++) {
        within[k] = at[k] - box->lo[k];
        inside = inside && within[k] >= 0 && within[k] < box->shape.dims[k];
    }
    const struct rfx_onnx_pattern *p = &from[inside];
    int64_t place = rfx_onnx_pattern_at(p, box->shape.rank, inside ? within : at);
    rfx_onnx_copy_stored(ctx, to, i, p->stored, place);
}

/* Sets `to` to the factors of the data with the box filled, one for each axis. Returns false when
 * there are none. */
static bool list_cuts(const struct rfx_onnx_pattern *from, const struct rfx_shape *data,
                      const struct box *box, struct rfx_onnx_pattern *to) {
    for (int k = 0; k < data->rank; k++) {
        struct rfx_digit *digit = &to->factors[to->count];
        *digit = (struct rfx_digit){.size = data->dims[k]};
        if (!rfx_digit_add_cut(digit, box->lo[k]) ||
            !rfx_digit_add_cut(digit, box->lo[k] + box->shape.dims[k]) ||
            !add_cuts(&from[0], k, 0, digit) || !add_cuts(&from[1], k, box->lo[k], digit))
            return false;
        digit->stride = digit->n_cuts > 0 ? 1 : 0;
        to->count += digit->size > 1 ? 1 : 0;
        to->end[k] = to->count;
    }
    return true;
}

/* Returns the data with the box filled as a pattern with cuts, or NULL when there is none. */
static struct rfx_onnx_const *put_with_cuts(struct rfx_onnx_import *ctx,
                                            struct rfx_onnx_const *data,
                                            struct rfx_onnx_const *updates, const struct box *box) {
    struct rfx_onnx_pattern from[2], to = {.count = 0};
    int64_t class_of[RFX_DIGITS] = {0}, at[RFX_MAX_RANK] = {0}, i = 0;
    if (!rfx_onnx_pattern_of(data, &from[0]) || !rfx_onnx_pattern_of(updates, &from[1]) ||
        !list_cuts(from, &data->shape, box, &to) ||
        rfx_onnx_pattern_store(ctx, data->type, &to) == NULL)
        return NULL;
    do {
        for (int k = 0, f = 0; k < data->shape.rank; k++)
            if (to.end[k] > f) {
                at[k] = rfx_digit_class_begins(&to.factors[f], class_of[f]);
                f++;
            }
        put_class(ctx, from, box, at, to.stored, i++);
    } while (!rfx_onnx_failed(ctx) && rfx_onnx_pattern_next_class(&to, class_of));
    return rfx_onnx_repeat_new(ctx, data->type, &data->shape, &to);
}

/* Returns whether each element is the first one plus its position along the axis. Axis -1: whether
 * all elements are equal. */
static bool counts_along(const struct rfx_shape *shape, const int64_t *ints, int64_t elems,
                         int axis) {
    int64_t inner = axis < 0 ? elems : rfx_shape_product(shape, axis + 1, shape->rank);
    int64_t extent = axis < 0 ? 1 : shape->dims[axis];
    for (int64_t i = 0; i < elems; i++)
        if (ints[i] != ints[0] + i / inner % extent) return false;
    return true;
}

/* Returns whether integers count *first, *first + 1, ... along one axis and are the same along all
 * others. *axis is that axis, or -1 when all integers are equal. */
static bool is_line(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, int *axis,
                    int64_t *first) {
    struct rfx_shape all = c->shape;
    c = rfx_onnx_repeat_shrink(ctx, c, &all);
    *axis = -1;
    if (c == NULL || c->elems < 1 || rfx_onnx_const_stored(c) > MOST_POSITIONS) return false;
    const int64_t *ints = rfx_onnx_const_stored_ints(ctx, c);
    if (ints == NULL) return false;
    *first = ints[0];
    if (c->filled || counts_along(&c->shape, ints, c->elems, -1)) return true;
    for (int i = 0; i < c->shape.rank; i++)
        if (c->shape.dims[i] > 1 && counts_along(&c->shape, ints, c->elems, i)) {
            *axis = i;
            return true;
        }
    return false;
}

/* Sets *box to the box that a ScatterND fills. Returns false unless each number of the index tuples
 * counts along one axis of the indices, in the order of the axes, or is the same in all tuples. */
static bool box_of_tuples(struct rfx_onnx_import *ctx, const struct rfx_shape *data,
                          struct rfx_onnx_const *indices, struct box *box) {
    int q = indices->shape.rank - 1, used = -1;
    int64_t width = q < 0 ? 0 : indices->shape.dims[q], elems = 1;
    if (width < 1 || width > data->rank) return false;
    box->shape = *data;
    for (int d = 0; d < (int)width; d++) {
        int axis;
        struct rfx_onnx_const *number = rfx_onnx_repeat_slice(ctx, indices, q, d, 1, 1);
        if (number == NULL || !is_line(ctx, number, &axis, &box->lo[d])) return false;
        if (axis >= 0 && axis <= used) return false;
        if (axis >= 0) used = axis;
        box->shape.dims[d] = axis < 0 ? 1 : indices->shape.dims[axis];
        if (box->lo[d] < 0) box->lo[d] += data->dims[d];
        if (box->lo[d] < 0 || box->lo[d] + box->shape.dims[d] > data->dims[d]) return false;
        elems *= box->shape.dims[d];
    }
    return elems == rfx_shape_product(&indices->shape, 0, q);
}

/* Sets *box to the box that a ScatterElements fills: one position of its axis, and the first
 * positions of all other axes. Returns false when the indices are no box. */
static bool box_of_elements(struct rfx_onnx_import *ctx, const struct rfx_shape *data,
                            struct rfx_onnx_const *indices, struct box *box) {
    int none;
    if (indices->shape.rank != data->rank) return false;
    int axis = rfx_onnx_axis_attr(ctx, 0, data->rank);
    if (indices->shape.dims[axis] != 1 || !is_line(ctx, indices, &none, &box->lo[axis]) ||
        none >= 0)
        return false;
    box->shape = indices->shape;
    if (box->lo[axis] < 0) box->lo[axis] += data->dims[axis];
    for (int i = 0; i < data->rank; i++)
        if (box->lo[i] < 0 || box->lo[i] + box->shape.dims[i] > data->dims[i]) return false;
    return true;
}

static struct rfx_onnx_const *put_box(struct rfx_onnx_import *ctx, struct rfx_onnx_const *data) {
    struct rfx_onnx_const *indices = rfx_onnx_in(ctx, 1).constant;
    struct rfx_onnx_const *updates = rfx_onnx_in(ctx, 2).constant;
    struct box box = {.shape = {0, {0}}};
    if (indices != NULL && updates != NULL && indices->elems == 0 && updates->elems == 0)
        return data;
    if (indices == NULL || updates == NULL || updates->type != data->type ||
        rfx_onnx_type_is_real(indices->type) || indices->elems < 1 ||
        strcmp(rfx_onnx_attr_string(ctx, "reduction", "none"), "none") != 0)
        return NULL;
    indices = rfx_onnx_const_as_filled(ctx, indices);
    updates = rfx_onnx_const_as_filled(ctx, updates);
    if (rfx_onnx_failed(ctx)) return NULL;
    bool fits = rfx_onnx_op_is(ctx, "ScatterND")
                    ? box_of_tuples(ctx, &data->shape, indices, &box)
                    : box_of_elements(ctx, &data->shape, indices, &box);
    if (!fits || rfx_shape_product(&box.shape, 0, box.shape.rank) != updates->elems) return NULL;
    updates = rfx_onnx_const_view(ctx, updates, &box.shape);
    if (updates == NULL) return NULL;
    struct rfx_onnx_const *made = put_with_cuts(ctx, data, updates, &box);
    return made != NULL || rfx_onnx_failed(ctx) ? made : put(ctx, data, updates, &box, 0);
}

static struct rfx_onnx_const *scatter(struct job *job, struct rfx_onnx_const *c) {
    return repeats(c) ? put_box(job->ctx, c) : NULL;
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

/* Lists the operands of an operator that works element by element. Returns whether one repeats. */
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

/* Returns whether the broadcast result is at least twice as large as each operand, as of a row and
 * a column. For int64 a smaller result is enough, because later sums of indices become large. */
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

bool rfx_onnx_fold_repeat(struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op,
                          evaluate_node *evaluate) {
    struct job job = {.ctx = ctx, .op = op, .evaluate = evaluate};
    struct rfx_onnx_const *in[MOST_OPERANDS], *first = rfx_onnx_in(ctx, 0).constant, *out = NULL;
    bool done = false;
    if (first == NULL || first->elems < 1) return false;
    if (works_by_elements(op->name[0] != '\0' ? op->name : ctx->node->op)) {
        if (list_operands(&job, in) || (job.n <= MOST_OPERANDS && is_outer(&job, in)))
            out = by_elements(&job, in, 0);
    } else {
        if (first->elems >= REPEAT_FROM) first = rfx_onnx_const_as_filled(ctx, first);
        if (rfx_onnx_failed(ctx)) return false;
        if (rfx_onnx_op_is(ctx, "Split"))
            done = split(&job, first);
        else
            out = changed_form(&job, first);
    }
    if (out != NULL && !rfx_onnx_failed(ctx)) (void)rfx_onnx_set_const(ctx, 0, out);
    done = done || (out != NULL && !rfx_onnx_failed(ctx));
    /* what is unsupported on a pattern may be supported on stored elements */
    if (!done && ctx->status == RFX_STATUS_UNSUPPORTED) ctx->status = RFX_OK;
    return done;
}
