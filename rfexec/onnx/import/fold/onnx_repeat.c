/* Constants whose elements repeat: their forms, and what changes a form alone. */
#include "rfexec/onnx/import/fold/onnx_repeat.h"

#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"

static int begin_of(const struct rfx_onnx_pattern *p, int axis) {
    return axis == 0 ? 0 : p->end[axis - 1];
}

static bool append(struct rfx_onnx_pattern *p, struct rfx_digit factor) {
    if (factor.size == 1) return true;
    if (p->count == RFX_DIGITS) return false;
    p->factors[p->count++] = factor;
    return true;
}

static bool append_plain(struct rfx_onnx_pattern *p, int64_t size, int64_t stride) {
    return append(p, (struct rfx_digit){.size = size, .stride = stride});
}

int64_t rfx_onnx_pattern_at(const struct rfx_onnx_pattern *p, int rank, const int64_t *index) {
    int64_t at = p->first;
    for (int i = 0; i < rank; i++)
        at += rfx_digits_move(p->factors + begin_of(p, i), p->end[i] - begin_of(p, i), index[i]);
    return at;
}

/* The product of a shape's sizes; false: it does not fit, or there are no elements. */
static bool count_elems(const struct rfx_shape *shape, int64_t *elems) {
    *elems = 1;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 1 || !rfx_checked_mul_i64(*elems, shape->dims[i], elems)) return false;
    return *elems <= INT64_MAX / 16;
}

bool rfx_onnx_pattern_of(struct rfx_onnx_const *c, struct rfx_onnx_pattern *out) {
    if (c->repeat != NULL && c->repeat->n_parts > 0) return false;
    if (c->repeat != NULL) {
        *out = c->repeat->pattern;
        return true;
    }
    if (c->elems < 1) return false;
    *out = (struct rfx_onnx_pattern){.stored = c};
    for (int i = 0; i < c->shape.rank; i++) {
        int64_t stride = c->filled ? 0 : rfx_onnx_product(&c->shape, i + 1, c->shape.rank);
        (void)append_plain(out, c->shape.dims[i], stride); /* at most as many as axes */
        out->end[i] = out->count;
    }
    return true;
}

static struct rfx_onnx_const *new_repeat(struct rfx_onnx_import *ctx, int32_t type,
                                         const struct rfx_shape *shape,
                                         struct rfx_onnx_repeat **repeat) {
    int64_t elems;
    if (!count_elems(shape, &elems)) return NULL;
    struct rfx_onnx_const *c = rfx_onnx_const_bare(ctx, type, shape, elems);
    *repeat = c == NULL ? NULL : rfx_arena_alloc(ctx->arena, 1, sizeof **repeat);
    if (*repeat == NULL) {
        ctx->out_of_memory = true;
        return NULL;
    }
    c->repeat = *repeat;
    return c;
}

struct rfx_onnx_const *rfx_onnx_repeat_new(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape,
                                           const struct rfx_onnx_pattern *pattern) {
    struct rfx_onnx_repeat *repeat;
    struct rfx_onnx_const *c = new_repeat(ctx, type, shape, &repeat);
    if (c != NULL) repeat->pattern = *pattern;
    return c;
}

static int depth_of(const struct rfx_onnx_const *c) {
    return c->repeat == NULL ? 0 : c->repeat->depth;
}

/* Whether a constant has parts along that axis. */
static bool has_parts(const struct rfx_onnx_const *c, int axis) {
    return c->repeat != NULL && c->repeat->n_parts > 0 && c->repeat->axis == axis;
}

static int count_parts(struct rfx_onnx_const *const *parts, int n, int axis) {
    int count = 0;
    for (int i = 0; i < n; i++) count += has_parts(parts[i], axis) ? parts[i]->repeat->n_parts : 1;
    return count;
}

struct rfx_onnx_const *rfx_onnx_repeat_join(struct rfx_onnx_import *ctx,
                                            struct rfx_onnx_const *const *parts, int n, int axis) {
    if (n == 1) return parts[0];
    struct rfx_shape shape = parts[0]->shape;
    int count = count_parts(parts, n, axis), depth = 0;
    shape.dims[axis] = 0;
    for (int i = 0; i < n; i++)
        if (!rfx_checked_add_i64(shape.dims[axis], parts[i]->shape.dims[axis], &shape.dims[axis]))
            return NULL;
    struct rfx_onnx_repeat *repeat;
    struct rfx_onnx_const *c = new_repeat(ctx, parts[0]->type, &shape, &repeat);
    if (c == NULL) return NULL;
    repeat->parts = rfx_arena_alloc(ctx->arena, (size_t)count, sizeof(struct rfx_onnx_const *));
    if (repeat->parts == NULL) {
        ctx->out_of_memory = true;
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        bool several = has_parts(parts[i], axis);
        int more = several ? parts[i]->repeat->n_parts : 1;
        for (int k = 0; k < more; k++) {
            struct rfx_onnx_const *part = several ? parts[i]->repeat->parts[k] : parts[i];
            repeat->parts[repeat->n_parts++] = part;
            if (depth_of(part) > depth) depth = depth_of(part);
        }
    }
    repeat->axis = axis;
    repeat->depth = depth + 1;
    return repeat->depth <= RFX_ONNX_MOST_DEPTH ? c : NULL;
}

/* A factor with cuts that an axis of a new shape ends in: it has to become two. */
struct halves {
    int factor; /* -1: there is none */
    int64_t inner;
};

/* Cuts factors where axes of the new shape end. */
static bool cut_factors(const struct rfx_onnx_pattern *p, const struct rfx_shape *shape,
                        struct rfx_onnx_pattern *out, struct halves *halves) {
    struct rfx_digit rest = {.size = 1};
    int next = 0;
    halves->factor = -1;
    *out = (struct rfx_onnx_pattern){.stored = p->stored, .first = p->first};
    for (int i = 0; i < shape->rank; i++) {
        for (int64_t left = shape->dims[i]; left > 1;) {
            if (rest.size == 1) {
                if (next == p->count) return false;
                rest = p->factors[next++];
            }
            int64_t taken = rfx_min_i64(rest.size, left);
            if (left % taken != 0 || rest.size % taken != 0) return false;
            rest.size /= taken;
            if (rest.n_cuts > 0 && rest.size > 1) {
                *halves = (struct halves){next - 1, rest.size};
                return false;
            }
            struct rfx_digit one = rest;
            one.size = taken;
            one.stride *= rest.size;
            if (!append(out, one)) return false;
            left /= taken;
        }
        out->end[i] = out->count;
    }
    return rest.size == 1 && next == p->count;
}

#define MOST_CLASSES 65536 /* stored elements of a pattern that is stored anew */

bool rfx_onnx_pattern_next_class(const struct rfx_onnx_pattern *pattern, int64_t *class_of) {
    for (int f = pattern->count - 1; f >= 0; f--) {
        if (++class_of[f] < rfx_digit_classes(&pattern->factors[f])) return true;
        class_of[f] = 0;
    }
    return false;
}

struct rfx_onnx_const *rfx_onnx_pattern_store(struct rfx_onnx_import *ctx, int32_t type,
                                              struct rfx_onnx_pattern *pattern) {
    struct rfx_shape list = {1, {1}};
    for (int f = pattern->count - 1; f >= 0; f--) {
        int64_t classes = rfx_digit_classes(&pattern->factors[f]);
        if (classes == 1) continue;
        pattern->factors[f].stride = list.dims[0];
        if (classes > MOST_CLASSES / list.dims[0]) return NULL;
        list.dims[0] *= classes;
    }
    pattern->first = 0;
    pattern->stored = rfx_onnx_const_new(ctx, type, &list);
    return pattern->stored;
}

enum rfx_status rfx_onnx_copy_stored(struct rfx_onnx_import *ctx, struct rfx_onnx_const *to,
                                     int64_t i, struct rfx_onnx_const *from, int64_t at) {
    const double *reals = NULL;
    const int64_t *ints = NULL;
    bool real = rfx_onnx_type_is_real(to->type);
    enum rfx_status status = real ? rfx_onnx_const_stored_reals(ctx, from, &reals)
                                  : rfx_onnx_const_stored_ints(ctx, from, &ints);
    if (status != RFX_OK) return status;
    if (real)
        rfx_onnx_const_reals_rw(to)[i] = reals[at];
    else
        rfx_onnx_const_ints_rw(to)[i] = ints[at];
    return RFX_OK;
}

/* The same pattern with a factor as two, over a stored constant of its own. */
static bool split_factor(struct rfx_onnx_import *ctx, const struct rfx_onnx_pattern *p, int rank,
                         const struct halves *halves, struct rfx_onnx_pattern *out) {
    int at = halves->factor;
    int64_t class_of[RFX_DIGITS + 1] = {0}, i = 0;
    struct rfx_onnx_pattern to = *p;
    if (p->count == RFX_DIGITS) return false;
    memmove(to.factors + at + 2, p->factors + at + 1,
            (size_t)(p->count - at - 1) * sizeof *p->factors);
    if (!rfx_digit_split(&p->factors[at], halves->inner, &to.factors[at], &to.factors[at + 1]))
        return false;
    to.count++;
    for (int k = 0; k < rank; k++) to.end[k] += to.end[k] > at ? 1 : 0;
    if (rfx_onnx_pattern_store(ctx, p->stored->type, &to) == NULL) return false;
    do {
        int64_t from = p->first;
        for (int f = 0; f < to.count; f++) {
            int64_t begins = rfx_digit_class_begins(&to.factors[f], class_of[f]);
            if (f == at)
                begins = begins * halves->inner +
                         rfx_digit_class_begins(&to.factors[f + 1], class_of[f + 1]);
            if (f != at + 1) from += rfx_digit_moves(&p->factors[f > at ? f - 1 : f], begins);
        }
        if (rfx_onnx_copy_stored(ctx, to.stored, i++, p->stored, from) != RFX_OK) return false;
    } while (rfx_onnx_pattern_next_class(&to, class_of));
    *out = to;
    return true;
}

/* The pattern in another shape. */
static bool reshape_pattern(struct rfx_onnx_import *ctx, const struct rfx_onnx_pattern *p, int rank,
                            const struct rfx_shape *shape, struct rfx_onnx_pattern *out) {
    struct rfx_onnx_pattern from = *p;
    struct halves halves;
    while (!cut_factors(&from, shape, out, &halves)) {
        struct rfx_onnx_pattern old = from;
        if (halves.factor < 0 || !split_factor(ctx, &old, rank, &halves, &from)) return false;
    }
    return true;
}

/* The axis of a new shape that is axis `axis` of the old one; -1: none is. */
static int same_axis(const struct rfx_shape *old, int axis, const struct rfx_shape *shape) {
    int64_t before = rfx_onnx_product(old, 0, axis);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == old->dims[axis] && rfx_onnx_product(shape, 0, i) == before) return i;
    return -1;
}

/* What `change` makes of each part, joined along `axis`. */
struct change {
    struct rfx_shape shape; /* of a reshape, of an expansion */
    const int *perm;
    int axis; /* of a slice */
    int64_t start, step, size;
    struct rfx_onnx_const *(*of_part)(struct rfx_onnx_import *ctx, struct rfx_onnx_const *part,
                                      const struct change *change, int axis);
};

static struct rfx_onnx_const *change_parts(struct rfx_onnx_import *ctx,
                                           const struct rfx_onnx_const *c, int axis,
                                           const struct change *change) {
    const struct rfx_onnx_repeat *r = c->repeat;
    size_t bytes = (size_t)r->n_parts * sizeof(struct rfx_onnx_const *);
    struct rfx_onnx_const **parts = rfx_memory_alloc(ctx->mem, bytes);
    bool all = parts != NULL;
    ctx->out_of_memory = ctx->out_of_memory || !all;
    for (int i = 0; all && i < r->n_parts; i++) {
        parts[i] = change->of_part(ctx, r->parts[i], change, axis);
        all = parts[i] != NULL;
    }
    struct rfx_onnx_const *out = all ? rfx_onnx_repeat_join(ctx, parts, r->n_parts, axis) : NULL;
    rfx_memory_release(ctx->mem, parts);
    return out;
}

static struct rfx_onnx_const *reshape_part(struct rfx_onnx_import *ctx, struct rfx_onnx_const *part,
                                           const struct change *change, int axis) {
    struct rfx_shape shape = change->shape;
    int64_t others = 1;
    for (int i = 0; i < shape.rank; i++)
        if (i != axis) others *= shape.dims[i];
    shape.dims[axis] = part->elems / others;
    return rfx_onnx_repeat_reshape(ctx, part, &shape);
}

#define MOST_INTERLEAVED 128 /* pieces */

/* Parts whose axis becomes one with the axis before it: they are interleaved, position by position
 * of that. */
static struct rfx_onnx_const *interleave(struct rfx_onnx_import *ctx,
                                         const struct rfx_onnx_const *c,
                                         const struct rfx_shape *shape) {
    struct rfx_onnx_const *pieces[MOST_INTERLEAVED];
    const struct rfx_onnx_repeat *r = c->repeat;
    int axis = r->axis, to = 0, count = 0;
    int64_t n = axis == 0 ? 0 : c->shape.dims[axis - 1];
    if (n < 2 || n > MOST_INTERLEAVED / r->n_parts) return NULL;
    int64_t before = rfx_onnx_product(&c->shape, 0, axis - 1), both = n * c->shape.dims[axis];
    while (to < shape->rank &&
           (shape->dims[to] != both || rfx_onnx_product(shape, 0, to) != before))
        to++;
    if (to == shape->rank) return NULL;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < r->n_parts; k++) {
            struct rfx_shape piece = *shape;
            piece.dims[to] = r->parts[k]->shape.dims[axis];
            struct rfx_onnx_const *one = rfx_onnx_repeat_slice(ctx, r->parts[k], axis - 1, i, 1, 1);
            pieces[count] = one == NULL ? NULL : rfx_onnx_repeat_reshape(ctx, one, &piece);
            if (pieces[count++] == NULL) return NULL;
        }
    return rfx_onnx_repeat_join(ctx, pieces, count, to);
}

struct rfx_onnx_const *rfx_onnx_repeat_reshape(struct rfx_onnx_import *ctx,
                                               const struct rfx_onnx_const *c,
                                               const struct rfx_shape *shape) {
    struct rfx_onnx_pattern to;
    if (c->repeat == NULL) return rfx_onnx_const_view(ctx, c, shape);
    if (c->repeat->n_parts > 0) {
        struct change change = {.shape = *shape, .of_part = reshape_part};
        int axis = same_axis(&c->shape, c->repeat->axis, shape);
        return axis < 0 ? interleave(ctx, c, shape) : change_parts(ctx, c, axis, &change);
    }
    if (!reshape_pattern(ctx, &c->repeat->pattern, c->shape.rank, shape, &to)) return NULL;
    return rfx_onnx_repeat_new(ctx, c->type, shape, &to);
}

static struct rfx_onnx_const *transpose_part(struct rfx_onnx_import *ctx,
                                             struct rfx_onnx_const *part,
                                             const struct change *change, int axis) {
    (void)axis;
    return rfx_onnx_repeat_transpose(ctx, part, change->perm);
}

struct rfx_onnx_const *rfx_onnx_repeat_transpose(struct rfx_onnx_import *ctx,
                                                 struct rfx_onnx_const *c, const int *perm) {
    int rank = c->shape.rank, axis = 0;
    if (c->repeat != NULL && c->repeat->n_parts > 0) {
        struct change change = {.perm = perm, .of_part = transpose_part};
        while (perm[axis] != c->repeat->axis) axis++;
        return change_parts(ctx, c, axis, &change);
    }
    struct rfx_onnx_pattern from, to;
    struct rfx_shape shape = {rank, {0}};
    if (!rfx_onnx_pattern_of(c, &from)) return NULL;
    to = from;
    to.count = 0;
    for (int i = 0; i < rank; i++) {
        for (int f = begin_of(&from, perm[i]); f < from.end[perm[i]]; f++)
            to.factors[to.count++] = from.factors[f];
        to.end[i] = to.count;
        shape.dims[i] = c->shape.dims[perm[i]];
    }
    return rfx_onnx_repeat_new(ctx, c->type, &shape, &to);
}

/* Replaces the factors of an axis by one, or by none where its size is 1. */
static void set_axis(struct rfx_onnx_pattern *p, int rank, int axis, struct rfx_digit factor) {
    int begin = begin_of(p, axis), old = p->end[axis] - begin, kept = factor.size > 1 ? 1 : 0;
    memmove(p->factors + begin + kept, p->factors + begin + old,
            (size_t)(p->count - begin - old) * sizeof *p->factors);
    if (kept == 1) p->factors[begin] = factor;
    for (int i = axis; i < rank; i++) p->end[i] += kept - old;
    p->count += kept - old;
}

/* Factors that follow each other and are one put together. */
static int merge(const struct rfx_digit *in, int n, struct rfx_digit *out) {
    int count = 0;
    for (int i = 0; i < n; i++) {
        struct rfx_digit *last = count == 0 ? NULL : &out[count - 1];
        if (last != NULL && last->n_cuts == 0 && in[i].n_cuts == 0 &&
            last->stride == in[i].size * in[i].stride) {
            last->size *= in[i].size;
            last->stride = in[i].stride;
        } else {
            out[count++] = in[i];
        }
    }
    return count;
}

/* Positions start, start + step, ... of an axis of several factors: one, or whole blocks of all but
 * the outermost. */
static bool slice_axis(struct rfx_onnx_pattern *p, int rank, int axis, int64_t start, int64_t step,
                       int64_t size) {
    struct rfx_digit all[RFX_DIGITS];
    int begin = begin_of(p, axis), n = merge(p->factors + begin, p->end[axis] - begin, all);
    int64_t block = 1;
    if (size == 1 || n <= 1) {
        struct rfx_digit one = {.size = size};
        if (size > 1 && n == 1 && !rfx_digit_slice(&all[0], start, step, size, &one)) return false;
        p->first += rfx_digits_move(all, n, start);
        set_axis(p, rank, axis, one);
        return true;
    }
    for (int i = 1; i < n; i++) block *= all[i].size;
    if (step != 1 || start % block != 0 || size % block != 0) return false;
    struct rfx_digit outer = all[0];
    (void)rfx_digit_slice(&outer, start / block, 1, size / block, &all[0]);
    p->first += rfx_digit_moves(&outer, start / block);
    int kept = all[0].size > 1 ? n : n - 1;
    if (p->count - (p->end[axis] - begin) + kept > RFX_DIGITS) return false;
    struct rfx_onnx_pattern old = *p;
    memcpy(p->factors + begin, all + n - kept, (size_t)kept * sizeof *all);
    memcpy(p->factors + begin + kept, old.factors + old.end[axis],
           (size_t)(old.count - old.end[axis]) * sizeof *all);
    int less = old.end[axis] - begin - kept;
    for (int i = axis; i < rank; i++) p->end[i] -= less;
    p->count -= less;
    return true;
}

static struct rfx_onnx_const *slice_part(struct rfx_onnx_import *ctx, struct rfx_onnx_const *part,
                                         const struct change *change, int axis) {
    (void)axis;
    return rfx_onnx_repeat_slice(ctx, part, change->axis, change->start, change->step,
                                 change->size);
}

/* Some positions of the axis along which a constant has parts. */
static struct rfx_onnx_const *slice_parts(struct rfx_onnx_import *ctx,
                                          const struct rfx_onnx_const *c, int64_t start,
                                          int64_t size) {
    const struct rfx_onnx_repeat *r = c->repeat;
    size_t bytes = (size_t)r->n_parts * sizeof(struct rfx_onnx_const *);
    struct rfx_onnx_const **parts = rfx_memory_alloc(ctx->mem, bytes);
    int64_t first = 0, end = start + size;
    int n = 0;
    bool all = parts != NULL;
    ctx->out_of_memory = ctx->out_of_memory || !all;
    for (int i = 0; all && i < r->n_parts; i++) {
        int64_t lo = rfx_max_i64(start, first), n_here = r->parts[i]->shape.dims[r->axis],
                hi = rfx_min_i64(end, first + n_here);
        if (lo < hi) {
            parts[n] = rfx_onnx_repeat_slice(ctx, r->parts[i], r->axis, lo - first, 1, hi - lo);
            all = parts[n++] != NULL;
        }
        first += n_here;
    }
    struct rfx_onnx_const *out = all && n > 0 ? rfx_onnx_repeat_join(ctx, parts, n, r->axis) : NULL;
    rfx_memory_release(ctx->mem, parts);
    return out;
}

struct rfx_onnx_const *rfx_onnx_repeat_slice(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                             int axis, int64_t start, int64_t step, int64_t size) {
    if (start == 0 && step == 1 && size == c->shape.dims[axis]) return c;
    if (has_parts(c, axis)) return step == 1 || size == 1 ? slice_parts(ctx, c, start, size) : NULL;
    if (c->repeat != NULL && c->repeat->n_parts > 0) {
        struct change change = {
            .axis = axis, .start = start, .step = step, .size = size, .of_part = slice_part};
        return change_parts(ctx, c, c->repeat->axis, &change);
    }
    struct rfx_onnx_pattern p;
    struct rfx_shape shape = c->shape;
    shape.dims[axis] = size;
    if (!rfx_onnx_pattern_of(c, &p) || !slice_axis(&p, shape.rank, axis, start, step, size))
        return NULL;
    return rfx_onnx_repeat_new(ctx, c->type, &shape, &p);
}

static struct rfx_onnx_const *expand_part(struct rfx_onnx_import *ctx, struct rfx_onnx_const *part,
                                          const struct change *change, int axis) {
    struct rfx_shape shape = change->shape;
    shape.dims[axis] = part->shape.dims[axis - (shape.rank - part->shape.rank)];
    return rfx_onnx_repeat_expand(ctx, part, &shape);
}

struct rfx_onnx_const *rfx_onnx_repeat_expand(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape) {
    int more = shape->rank - c->shape.rank;
    if (c->repeat != NULL && c->repeat->n_parts > 0) {
        struct change change = {.shape = *shape, .of_part = expand_part};
        return change_parts(ctx, c, c->repeat->axis + more, &change);
    }
    struct rfx_onnx_pattern from, to;
    if (!rfx_onnx_pattern_of(c, &from)) return NULL;
    to = (struct rfx_onnx_pattern){.stored = from.stored, .first = from.first};
    for (int i = 0; i < shape->rank; i++) {
        bool wider = i < more || c->shape.dims[i - more] != shape->dims[i];
        if (wider && !append_plain(&to, shape->dims[i], 0)) return NULL;
        for (int f = wider ? 0 : begin_of(&from, i - more); !wider && f < from.end[i - more]; f++)
            if (!append(&to, from.factors[f])) return NULL;
        to.end[i] = to.count;
    }
    return rfx_onnx_repeat_new(ctx, c->type, shape, &to);
}

/* The innermost `size` positions of a factor, which keeps the rest; false: it would be cut. */
static bool take_inner(struct rfx_digit *factor, int64_t size, struct rfx_digit *out) {
    *out = *factor;
    if (size == 1 || factor->size % size != 0 || (factor->size != size && factor->n_cuts > 0))
        return false;
    out->size = size;
    *factor = (struct rfx_digit){.size = factor->size / size, .stride = factor->stride * size};
    return true;
}

int rfx_onnx_factors_align(const struct rfx_digit *a, int n_a, const struct rfx_digit *b, int n_b,
                           struct rfx_digit *out_a, struct rfx_digit *out_b) {
    struct rfx_digit x = {.size = 1}, y = {.size = 1}, made_a[2 * RFX_DIGITS],
                     made_b[2 * RFX_DIGITS];
    int n = 0;
    while (x.size > 1 || y.size > 1 || n_a > 0 || n_b > 0) { /* from the innermost */
        if (x.size == 1 && n_a > 0) x = a[--n_a];
        if (y.size == 1 && n_b > 0) y = b[--n_b];
        int64_t size = rfx_min_i64(x.size, y.size);
        if (n == 2 * RFX_DIGITS || !take_inner(&x, size, &made_a[n]) ||
            !take_inner(&y, size, &made_b[n]))
            return -1;
        n++;
    }
    if (n > RFX_DIGITS) return -1;
    for (int i = 0; i < n; i++) {
        out_a[i] = made_a[n - 1 - i];
        out_b[i] = made_b[n - 1 - i];
    }
    return n;
}

/* Where elements go. */
struct target {
    double *reals;
    int64_t *ints;
    int64_t strides[RFX_MAX_RANK];
};

/* Writes the elements of a pattern, the first one to index `at`. */
static enum rfx_status fill_pattern(struct rfx_onnx_import *ctx, const struct rfx_onnx_pattern *p,
                                    int rank, const struct target *to, int64_t at) {
    const double *reals = NULL;
    const int64_t *ints = NULL;
    int64_t step[RFX_DIGITS], index[RFX_DIGITS] = {0}, from = p->first;
    enum rfx_status status = to->reals != NULL ? rfx_onnx_const_stored_reals(ctx, p->stored, &reals)
                                               : rfx_onnx_const_stored_ints(ctx, p->stored, &ints);
    if (status != RFX_OK) return status;
    for (int i = 0; i < rank; i++) {
        int64_t inner = to->strides[i];
        for (int f = p->end[i] - 1; f >= begin_of(p, i); f--) {
            step[f] = inner;
            inner *= p->factors[f].size;
        }
    }
    for (int f = 0; f >= 0;) {
        if (to->reals != NULL)
            to->reals[at] = reals[from];
        else
            to->ints[at] = ints[from];
        for (f = p->count - 1; f >= 0; f--) {
            const struct rfx_digit *factor = &p->factors[f];
            at += step[f];
            from -= rfx_digit_moves(factor, index[f]++);
            if (index[f] < factor->size) {
                from += rfx_digit_moves(factor, index[f]);
                break;
            }
            at -= step[f] * factor->size;
            index[f] = 0;
        }
    }
    return RFX_OK;
}

/* No deeper than RFX_ONNX_MOST_DEPTH. */
static enum rfx_status fill(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                            const struct target *to, int64_t at) {
    struct rfx_onnx_pattern pattern;
    if (rfx_onnx_pattern_of(c, &pattern)) return fill_pattern(ctx, &pattern, c->shape.rank, to, at);
    enum rfx_status status = RFX_OK;
    for (int i = 0; status == RFX_OK && c->repeat != NULL && i < c->repeat->n_parts; i++) {
        struct rfx_onnx_const *part = c->repeat->parts[i];
        status = fill(ctx, part, to, at);
        at += part->shape.dims[c->repeat->axis] * to->strides[c->repeat->axis];
    }
    return status;
}

enum rfx_status rfx_onnx_repeat_fill(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                                     double *reals, int64_t *ints) {
    struct target to = {.reals = reals, .ints = ints};
    struct rfx_onnx_pattern pattern;
    const struct rfx_onnx_repeat *r = c->repeat;
    enum rfx_status status = RFX_OK;
    int64_t at = 0;
    rfx_shape_strides(&c->shape, to.strides);
    if (r->n_parts == 0) {
        pattern = r->pattern;
        return fill_pattern(ctx, &pattern, c->shape.rank, &to, 0);
    }
    for (int i = 0; status == RFX_OK && i < r->n_parts; i++) {
        status = fill(ctx, r->parts[i], &to, at);
        at += r->parts[i]->shape.dims[r->axis] * to.strides[r->axis];
    }
    return status;
}

struct rfx_onnx_const *rfx_onnx_repeat_stored(struct rfx_onnx_import *ctx,
                                              const struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape) {
    bool real = rfx_onnx_type_is_real(c->type);
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, c->type, shape);
    if (out == NULL) return NULL;
    enum rfx_status status =
        rfx_onnx_repeat_fill(ctx, c, real ? rfx_onnx_const_reals_rw(out) : NULL,
                             real ? NULL : rfx_onnx_const_ints_rw(out));
    return status == RFX_OK ? out : NULL;
}
