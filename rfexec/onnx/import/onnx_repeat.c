/* Constants whose elements repeat (onnx_repeat.h): their patterns and parts, the operations that
 * change only patterns and parts, and the conversion of such constants to numbers, weights and
 * maps.
 */
#include "rfexec/onnx/import/onnx_repeat.h"

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

/* Sets *elems to the number of elements of a shape. Returns false when the product overflows or
 * there are no elements. */
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
        int64_t stride = c->filled ? 0 : rfx_shape_product(&c->shape, i + 1, c->shape.rank);
        (void)append_plain(out, c->shape.dims[i], stride); /* fits: at most one factor per axis */
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
    *repeat = rfx_onnx_alloc(ctx, 1, sizeof **repeat);
    if (*repeat == NULL) return NULL;
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

/* Returns whether a constant has parts along this axis. */
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
    repeat->parts = rfx_onnx_alloc(ctx, (size_t)count, sizeof(struct rfx_onnx_const *));
    if (repeat->parts == NULL) return NULL;
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

/* A factor with cuts that a new shape splits, because an axis of the shape ends inside the factor.
 */
struct halves {
    int factor; /* -1: there is none */
    int64_t inner;
};

/* Splits factors where axes of the new shape end. Sets *halves to a factor with cuts that must be
 * split first. */
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

#define MOST_CLASSES 65536 /* most elements of the new stored constant of a pattern */

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

void rfx_onnx_copy_stored(struct rfx_onnx_import *ctx, struct rfx_onnx_const *to, int64_t i,
                          struct rfx_onnx_const *from, int64_t at) {
    const double *reals;
    const int64_t *ints;
    rfx_onnx_stored_numbers(ctx, from, &reals, &ints);
    if (!rfx_onnx_failed(ctx)) rfx_onnx_copy_elem(to, i, reals, ints, at);
}

/* Sets *out to the pattern with one factor split in two. The new pattern has a new stored constant.
 */
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
        rfx_onnx_copy_stored(ctx, to.stored, i++, p->stored, from);
    } while (!rfx_onnx_failed(ctx) && rfx_onnx_pattern_next_class(&to, class_of));
    *out = to;
    return !rfx_onnx_failed(ctx);
}

/* Sets *out to the pattern in another shape. Returns false when that is not possible. */
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

/* Returns the axis of the new shape that corresponds to axis `axis` of the old shape, or -1. */
static int same_axis(const struct rfx_shape *old, int axis, const struct rfx_shape *shape) {
    int64_t before = rfx_shape_product(old, 0, axis);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == old->dims[axis] && rfx_shape_product(shape, 0, i) == before) return i;
    return -1;
}

/* Returns an array with one entry for each part. The caller releases it. NULL after an error. */
static struct rfx_onnx_const **list_of_parts(struct rfx_onnx_import *ctx,
                                             const struct rfx_onnx_repeat *r) {
    size_t bytes = (size_t)r->n_parts * sizeof(struct rfx_onnx_const *);
    struct rfx_onnx_const **parts = rfx_onnx_failed(ctx) ? NULL : rfx_memory_alloc(ctx->mem, bytes);
    if (parts == NULL) (void)rfx_onnx_out_of_memory(ctx);
    return parts;
}

/* A change of a constant that is applied to each part. The changed parts are then concatenated. */
struct change {
    struct rfx_shape shape; /* new shape of a reshape or an expansion */
    const int *perm;
    int axis; /* axis of a slice */
    int64_t start, step, size;
    struct rfx_onnx_const *(*of_part)(struct rfx_onnx_import *ctx, struct rfx_onnx_const *part,
                                      const struct change *change, int axis);
};

static struct rfx_onnx_const *change_parts(struct rfx_onnx_import *ctx,
                                           const struct rfx_onnx_const *c, int axis,
                                           const struct change *change) {
    const struct rfx_onnx_repeat *r = c->repeat;
    struct rfx_onnx_const **parts = list_of_parts(ctx, r);
    bool all = parts != NULL;
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

/* Reshapes a constant with parts when the axis of the parts is merged with the axis before it. The
 * parts are then interleaved: for each position of the axis before, one piece of each part. */
static struct rfx_onnx_const *interleave(struct rfx_onnx_import *ctx,
                                         const struct rfx_onnx_const *c,
                                         const struct rfx_shape *shape) {
    struct rfx_onnx_const *pieces[MOST_INTERLEAVED];
    const struct rfx_onnx_repeat *r = c->repeat;
    int axis = r->axis, to = 0, count = 0;
    int64_t n = axis == 0 ? 0 : c->shape.dims[axis - 1];
    if (n < 2 || n > MOST_INTERLEAVED / r->n_parts) return NULL;
    int64_t before = rfx_shape_product(&c->shape, 0, axis - 1), both = n * c->shape.dims[axis];
    while (to < shape->rank &&
           (shape->dims[to] != both || rfx_shape_product(shape, 0, to) != before))
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

/* Replaces the factors of an axis by the single factor `factor`, or by none if its size is 1. */
static void set_axis(struct rfx_onnx_pattern *p, int rank, int axis, struct rfx_digit factor) {
    int begin = begin_of(p, axis), old = p->end[axis] - begin, kept = factor.size > 1 ? 1 : 0;
    memmove(p->factors + begin + kept, p->factors + begin + old,
            (size_t)(p->count - begin - old) * sizeof *p->factors);
    if (kept == 1) p->factors[begin] = factor;
    for (int i = axis; i < rank; i++) p->end[i] += kept - old;
    p->count += kept - old;
}

/* Merges consecutive factors that together are one factor. Returns the number of factors in `out`.
 */
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

/* Restricts an axis of several factors to the positions start, start + step, ... Works only for a
 * single position, or for whole blocks of all factors except the outermost. Returns false
 * otherwise.
 */
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

/* Returns the positions [start, start + size) along the axis of the constant's parts. */
static struct rfx_onnx_const *slice_parts(struct rfx_onnx_import *ctx,
                                          const struct rfx_onnx_const *c, int64_t start,
                                          int64_t size) {
    const struct rfx_onnx_repeat *r = c->repeat;
    struct rfx_onnx_const **parts = list_of_parts(ctx, r);
    int64_t first = 0, end = start + size;
    int n = 0;
    bool all = parts != NULL;
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

/* Splits the innermost `size` positions off a factor into *out; *factor keeps the rest. Returns
 * false when the factor cannot be split so. */
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
    while (x.size > 1 || y.size > 1 || n_a > 0 ||
           n_b > 0) { /* from the innermost factor outwards */
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

/* The array that elements are written to. */
struct target {
    double *reals;
    int64_t *ints;
    int64_t strides[RFX_MAX_RANK];
};

/* Writes the elements of a pattern. The first element goes to index `at`. */
static void fill_pattern(struct rfx_onnx_import *ctx, const struct rfx_onnx_pattern *p, int rank,
                         const struct target *to, int64_t at) {
    const double *reals = NULL;
    const int64_t *ints = NULL;
    int64_t step[RFX_DIGITS], index[RFX_DIGITS] = {0}, from = p->first;
    if (to->reals != NULL)
        reals = rfx_onnx_const_stored_reals(ctx, p->stored);
    else
        ints = rfx_onnx_const_stored_ints(ctx, p->stored);
    if (rfx_onnx_failed(ctx)) return;
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
}

/* Writes the elements of a constant. The recursion is at most RFX_ONNX_MOST_DEPTH deep. */
static void fill(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, const struct target *to,
                 int64_t at) {
    struct rfx_onnx_pattern pattern;
    if (rfx_onnx_pattern_of(c, &pattern)) fill_pattern(ctx, &pattern, c->shape.rank, to, at);
    for (int i = 0; c->repeat != NULL && i < c->repeat->n_parts; i++) {
        struct rfx_onnx_const *part = c->repeat->parts[i];
        fill(ctx, part, to, at);
        at += part->shape.dims[c->repeat->axis] * to->strides[c->repeat->axis];
    }
}

void rfx_onnx_repeat_fill(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                          double *reals, int64_t *ints) {
    struct target to = {.reals = reals, .ints = ints};
    struct rfx_onnx_const copy = *c;
    rfx_shape_strides(&c->shape, to.strides);
    fill(ctx, &copy, &to, 0);
}

struct rfx_onnx_const *rfx_onnx_repeat_stored(struct rfx_onnx_import *ctx,
                                              const struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape) {
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, c->type, shape);
    if (out != NULL)
        rfx_onnx_repeat_fill(ctx, c, rfx_onnx_const_reals_rw(out), rfx_onnx_const_ints_rw(out));
    return rfx_onnx_failed(ctx) ? NULL : out;
}

/* --- as weights whose elements are computed when they are read (RFX_WEIGHT_REPEATED) --- */

#define MOST_BOXES 64

/* The boxes of a constant: one box for each part that has no parts itself. */
struct boxes {
    struct rfx_onnx_import *ctx;
    int rank, count;
    int64_t stored;
    struct rfx_onnx_const *parts[MOST_BOXES];
    int64_t lo[MOST_BOXES][RFX_MAX_RANK];
};

static bool add_part(struct boxes *b, struct rfx_onnx_const *c, int64_t *lo);

/* Adds the boxes of concatenated parts, of which the first begins at index `lo`. Recurses to the
 * depth of the parts. */
static bool add_parts(struct boxes *b, const struct rfx_onnx_repeat *r, int64_t *lo) {
    int64_t start = lo[r->axis];
    bool fits = true;
    for (int i = 0; i < r->n_parts && fits; i++) {
        fits = add_part(b, r->parts[i], lo);
        lo[r->axis] += r->parts[i]->shape.dims[r->axis];
    }
    lo[r->axis] = start;
    return fits;
}

/* Adds the boxes of a constant that begins at index `lo`. Returns false when the constant cannot be
 * expressed by boxes. */
static bool add_part(struct boxes *b, struct rfx_onnx_const *c, int64_t *lo) {
    struct rfx_onnx_pattern p;
    if (!rfx_onnx_pattern_of(c, &p)) return c->repeat != NULL && add_parts(b, c->repeat, lo);
    if (b->count == MOST_BOXES) return false;
    b->parts[b->count] = c;
    memcpy(b->lo[b->count++], lo, (size_t)b->rank * sizeof *lo);
    return rfx_checked_add_i64(b->stored, rfx_onnx_const_stored(p.stored), &b->stored);
}

/* Sets *places to the places from which box i reads its elements, and copies the stored values of
 * the box to values[first] and on. Returns the number of values copied. */
static int64_t give_places(const struct boxes *b, int i, int64_t first,
                           struct rfx_weight_places *places, float *values) {
    struct rfx_onnx_pattern p;
    if (rfx_onnx_failed(b->ctx) || !rfx_onnx_pattern_of(b->parts[i], &p)) return 0;
    rfx_onnx_const_check_exact(b->ctx, p.stored);
    const double *reals = rfx_onnx_const_stored_reals(b->ctx, p.stored);
    int64_t stored = rfx_onnx_const_stored(p.stored);
    *places = (struct rfx_weight_places){.first = first + p.first, .n = p.count};
    memcpy(places->lo, b->lo[i], sizeof places->lo);
    memcpy(places->dims, b->parts[i]->shape.dims, sizeof places->dims);
    memcpy(places->digits, p.factors, sizeof places->digits);
    for (int64_t k = 0; reals != NULL && k < stored; k++) values[first + k] = (float)reals[k];
    return stored;
}

static int add_weight(const struct boxes *b, const struct rfx_onnx_const *c) {
    struct rfx_onnx_import *ctx = b->ctx;
    size_t bytes = (size_t)b->count * sizeof(struct rfx_weight_places);
    struct rfx_weight_places *places = rfx_memory_alloc(ctx->mem, bytes);
    float *values = rfx_memory_alloc(ctx->mem, (size_t)b->stored * sizeof *values);
    int64_t first = 0;
    int weight = -1;
    if (places == NULL || values == NULL) (void)rfx_onnx_out_of_memory(ctx);
    for (int i = 0; !rfx_onnx_failed(ctx) && i < b->count; i++)
        first += give_places(b, i, first, &places[i], values);
    struct rfx_weight w = {.source = RFX_WEIGHT_REPEATED,
                           .data = values,
                           .places = places,
                           .n_places = b->count,
                           .stored = b->stored,
                           .shape = c->shape,
                           .elems = c->elems};
    if (!rfx_onnx_failed(ctx))
        ctx->status = rfx_graph_add_weight(ctx->graph, &w, &weight, ctx->err);
    rfx_memory_release(ctx->mem, places);
    rfx_memory_release(ctx->mem, values);
    return weight;
}

static bool find_boxes(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, struct boxes *b) {
    int64_t lo[RFX_MAX_RANK] = {0};
    *b = (struct boxes){.ctx = ctx, .rank = c->shape.rank};
    return c->repeat != NULL && c->elems > RFX_ONNX_STORED_UP_TO && add_part(b, c, lo) &&
           b->stored <= c->elems / 4;
}

/* Returns whether a large constant can be a weight whose elements are computed when they are read.
 */
static bool has_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    struct boxes b;
    return find_boxes(ctx, c, &b);
}

int rfx_onnx_repeat_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    struct boxes b;
    return !rfx_onnx_failed(ctx) && find_boxes(ctx, c, &b) ? add_weight(&b, c) : -1;
}

/* --- as maps whose rows are computed when they are read (RFX_OP_REPEAT) --- */

/* A constant of up to this many elements becomes a weight whose elements are computed when they are
 * read, if neither the constant nor the tensor it is combined with is a map. The coordinates of the
 * cells in the heads of detectors are such constants. The heads are later divided into maps
 * (layers/fuse/heads.h). */
#define STORED_PLAIN_UP_TO ((int64_t)1 << 22)

/* How the axes of a tensor correspond to a map: one axis is the channels, the others are rows and
 * columns. */
struct order {
    int rank, channels; /* channels: the axis of the channels; -1: the map has a single channel */
    int end[RFX_MAX_RANK];
    struct rfx_pixels_factor factors[RFX_DIGITS]; /* of rows and columns */
    int64_t extent[2], roll[2];
};

/* A factor of the rows or columns. `step` rows or columns are one position of the digit `stored`,
 * which has a stride in the stored constant. */
struct piece {
    int64_t step;
    struct rfx_digit stored;
};

/* The elements of one channel along rows and along columns. */
struct line {
    struct rfx_onnx_const *stored;
    int64_t first;
    int n[2];
    struct piece pieces[2][RFX_DIGITS];
};

static int begins(const int *end, int axis) {
    return axis == 0 ? 0 : end[axis - 1];
}

static int64_t channels_of(const struct order *order, const struct rfx_onnx_const *c) {
    int axis = order->channels < 0 ? -1 : order->channels - (order->rank - c->shape.rank);
    return axis < 0 ? 1 : c->shape.dims[axis];
}

/* Returns channel `ch` of a constant whose axes are in this order; NULL when the channel is neither
 * a pattern nor stored. */
static struct rfx_onnx_const *take_channel(struct rfx_onnx_import *ctx, const struct order *order,
                                           struct rfx_onnx_const *c, int64_t ch) {
    int axis = order->channels - (order->rank - c->shape.rank);
    if (channels_of(order, c) == 1) return c;
    return rfx_onnx_repeat_slice(ctx, c, axis, ch, 1, 1);
}

/* Adds the pieces of an axis of the tensor to the line. `own`: the same axis in the pattern. */
static bool add_pieces(const struct order *order, const struct rfx_onnx_pattern *p, int axis,
                       int own, struct line *line) {
    int lo = begins(order->end, axis), n = order->end[axis] - lo, from = begins(p->end, own);
    for (int role = 0; role < 2; role++) {
        struct rfx_digit map[RFX_DIGITS], made[RFX_DIGITS], stored[RFX_DIGITS];
        for (int f = 0; f < n; f++) {
            const struct rfx_pixels_factor *factor = &order->factors[lo + f];
            map[f] = (struct rfx_digit){.size = factor->size,
                                        .stride = factor->axis == role ? factor->stride : 0};
        }
        int count =
            rfx_onnx_factors_align(map, n, p->factors + from, p->end[own] - from, made, stored);
        if (count < 0) return false;
        for (int f = 0; f < count; f++) {
            if (made[f].stride == 0 || stored[f].stride == 0) continue;
            if (line->n[role] == RFX_DIGITS) return false;
            line->pieces[role][line->n[role]++] = (struct piece){made[f].stride, stored[f]};
        }
    }
    return true;
}

/* Sets *line to a channel's elements along rows and columns. Returns false when the channel has
 * parts or its elements depend on row and column at once. */
static bool find_line(const struct order *order, struct rfx_onnx_const *c, struct line *line) {
    struct rfx_onnx_pattern p;
    if (!rfx_onnx_pattern_of(c, &p)) return false;
    memset(line, 0, sizeof *line);
    line->stored = p.stored;
    line->first = p.first;
    for (int i = 0; i < order->rank; i++) {
        int own = i - (order->rank - c->shape.rank);
        if (i == order->channels || own < 0 || c->shape.dims[own] == 1) continue;
        if (!add_pieces(order, &p, i, own, line)) return false;
    }
    return line->n[0] == 0 || line->n[1] == 0;
}

/* The lines of all channels. */
struct lines {
    int64_t count; /* channels */
    int64_t *map;  /* map of the node; until the end, lines of rows have the numbers -1, -2, ... */
    float *values[2]; /* rows, columns */
    size_t capacity[2];
    int64_t made[2];
};

static int axis_of(const struct order *order, const struct line *line) {
    if (line->n[0] > 0 || line->n[1] > 0) return line->n[0] > 0 ? 0 : 1;
    return order->extent[0] < order->extent[1] ? 0 : 1; /* one number: use the shorter line */
}

static void append_line(struct rfx_onnx_import *ctx, const struct order *order,
                        const struct line *line, struct lines *lines) {
    int axis = axis_of(order, line);
    int64_t extent = order->extent[axis], old = lines->made[axis] * extent;
    const double *reals = rfx_onnx_const_stored_reals(ctx, line->stored);
    if (reals == NULL) return;
    float *values = rfx_memory_reserve(ctx->mem, lines->values[axis], &lines->capacity[axis],
                                       (size_t)(old + extent), sizeof *values);
    if (values == NULL) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY,
                              "no memory for %lld lines of a constant of %lld values",
                              (long long)lines->made[axis] + 1, (long long)extent);
        return;
    }
    lines->values[axis] = values;
    for (int64_t i = 0; i < extent; i++) {
        int64_t at = line->first, from = (i - order->roll[axis] + extent) % extent;
        for (int f = 0; f < line->n[axis]; f++) {
            const struct piece *piece = &line->pieces[axis][f];
            at += rfx_digit_moves(&piece->stored, from / piece->step % piece->stored.size);
        }
        values[old + i] = (float)reals[at];
    }
    lines->made[axis]++;
}

/* Adds the lines of all channels. Returns false when a channel has no line, and after an error. */
static bool list_lines(struct rfx_onnx_import *ctx, const struct order *order,
                       struct rfx_onnx_const *c, struct lines *lines) {
    struct line line, before = {.stored = NULL};
    for (int64_t ch = 0; ch < lines->count; ch++) {
        struct rfx_onnx_const *channel = take_channel(ctx, order, c, ch);
        if (channel == NULL || !find_line(order, channel, &line)) return false;
        if (ch > 0 && memcmp(&line, &before, sizeof line) == 0) {
            lines->map[ch] = lines->map[ch - 1];
            continue;
        }
        append_line(ctx, order, &line, lines);
        if (rfx_onnx_failed(ctx)) return false;
        lines->map[ch] = axis_of(order, &line) == 0 ? -lines->made[0] : lines->made[1] - 1;
        before = line;
    }
    for (int64_t ch = 0; ch < lines->count; ch++)
        if (lines->map[ch] < 0) lines->map[ch] = lines->made[1] - lines->map[ch] - 1;
    return true;
}

static int own_lines(struct rfx_onnx_import *ctx, const struct lines *lines, int axis,
                     int64_t extent) {
    if (lines->made[axis] == 0) return -1;
    return rfx_onnx_own_weight(ctx, lines->values[axis], lines->made[axis] * extent);
}

/* Returns a node for the map of all channels of the constant in this order, or -1 when there is
 * none.
 */
static int make_map(struct rfx_onnx_import *ctx, const struct order *order,
                    struct rfx_onnx_const *c) {
    struct lines lines = {.count = channels_of(order, c)};
    struct rfx_node node = {.op = RFX_OP_REPEAT};
    int out = -1;
    lines.map = rfx_memory_alloc(ctx->mem, (size_t)lines.count * sizeof *lines.map);
    if (lines.map == NULL) (void)rfx_onnx_out_of_memory(ctx);
    if (!rfx_onnx_failed(ctx) && list_lines(ctx, order, c, &lines)) {
        node.attr.repeat.h = order->extent[0];
        node.attr.repeat.w = order->extent[1];
        node.attr.repeat.count = lines.count;
        node.attr.repeat.map = lines.map;
        node.attr.repeat.down = own_lines(ctx, &lines, 0, order->extent[0]);
        node.attr.repeat.across = own_lines(ctx, &lines, 1, order->extent[1]);
        out = rfx_onnx_emit(ctx, &node, "/repeat", NULL, 0);
    }
    rfx_memory_release(ctx->mem, lines.map);
    rfx_memory_release(ctx->mem, lines.values[0]);
    rfx_memory_release(ctx->mem, lines.values[1]);
    return out;
}

/* Sets *order to that of a tensor (1, c, h, w). Returns false for another shape. */
static bool order_of_map(const struct rfx_shape *shape, struct order *order) {
    *order = (struct order){.rank = 4, .channels = 1};
    if (shape->rank != 4 || shape->dims[0] != 1) return false;
    for (int axis = 0; axis < 2; axis++) {
        int64_t n = order->extent[axis] = shape->dims[2 + axis];
        if (n > 1) order->factors[order->end[1 + axis]] = (struct rfx_pixels_factor){axis, n, 1};
        order->end[2 + axis] = order->end[1 + axis] + (n > 1 ? 1 : 0);
    }
    return true;
}

/* Sets *order to that of the tensor `like`, whose last axis is a map's channels. */
static bool order_like(const struct rfx_pixels *like, const struct rfx_shape *shape,
                       struct order *order) {
    *order = (struct order){.rank = like->rank, .channels = like->rank - 1};
    if (shape->rank > like->rank || like->first != 0) return false;
    for (int axis = 0; axis < 2; axis++) {
        order->extent[axis] = like->extent[axis];
        order->roll[axis] = like->roll[axis];
    }
    for (int i = 0; i < like->rank - 1; i++) order->end[i] = like->end[i];
    for (int f = 0; like->rank > 1 && f < like->end[like->rank - 2]; f++)
        order->factors[f] = like->factors[f];
    struct rfx_shape dims = rfx_pixels_shape(like);
    for (int i = 0; i < shape->rank - 1; i++) { /* no axis may be longer than the map's */
        int64_t n = dims.dims[i + like->rank - shape->rank];
        if (shape->dims[i] != 1 && shape->dims[i] != n) return false;
    }
    return true;
}

int rfx_onnx_repeat_map(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                        const struct rfx_pixels *like) {
    struct order order;
    if (rfx_onnx_failed(ctx) || c->repeat == NULL || c->elems <= RFX_ONNX_STORED_UP_TO) return -1;
    bool fits =
        like == NULL ? order_of_map(&c->shape, &order) : order_like(like, &c->shape, &order);
    return fits ? make_map(ctx, &order, c) : -1;
}

/* --- as a tensor of any shape --- */

/* Sets common[] to factors of an axis that fit the patterns of all channels. */
static bool align_axis(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                       const struct order *order, int axis, struct rfx_digit *common, int *count) {
    int64_t channels = channels_of(order, c);
    *count = 0;
    for (int64_t ch = 0; ch < channels; ch++) {
        struct rfx_onnx_const *channel = take_channel(ctx, order, c, ch);
        struct rfx_onnx_pattern p;
        struct rfx_digit own[RFX_DIGITS];
        if (channel == NULL || !rfx_onnx_pattern_of(channel, &p)) return false;
        int from = begins(p.end, axis), n = p.end[axis] - from;
        if (ch == 0) {
            memcpy(common, p.factors + from, (size_t)n * sizeof *common);
            *count = n;
            continue;
        }
        *count = rfx_onnx_factors_align(common, *count, p.factors + from, n, common, own);
        if (*count < 0) return false;
    }
    return true;
}

/* Returns whether all axes except the channel axis have at most two factors in channel 0. This is a
 * quick test, as all channels together have at least as many factors as channel 0. */
static bool may_be_map(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                       const struct order *order) {
    struct rfx_onnx_const *channel = take_channel(ctx, order, c, 0);
    struct rfx_onnx_pattern p;
    int n = 0;
    if (channel == NULL || !rfx_onnx_pattern_of(channel, &p)) return false;
    for (int i = 0; i < order->rank; i++)
        if (i != order->channels) n += p.end[i] - begins(p.end, i);
    return n <= 2;
}

/* Sets *order. Returns whether all axes except the channel axis consist of one factor of rows and
 * one factor of columns. */
static bool find_order(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, int channels,
                       struct order *order) {
    *order = (struct order){.rank = c->shape.rank, .channels = channels, .extent = {1, 1}};
    int n = 0;
    if (!may_be_map(ctx, c, order)) return false;
    for (int i = 0; i < order->rank; i++) {
        struct rfx_digit common[RFX_DIGITS];
        int count = 0;
        if (i != channels && !align_axis(ctx, c, order, i, common, &count)) return false;
        for (int f = 0; f < count; f++) {
            if (n == 2) return false;
            order->extent[n] = common[f].size;
            order->factors[n] = (struct rfx_pixels_factor){n, common[f].size, 1};
            n++;
        }
        order->end[i] = n;
    }
    return n == 2;
}

/* Returns the node that rearranges a map to the order of the tensor. */
static int emit_in_order(struct rfx_onnx_import *ctx, const struct order *order,
                         const struct rfx_onnx_const *c, int map) {
    if (order->rank == 4 && order->channels == 1 && order->end[1] == 0)
        return rfx_onnx_plain(ctx, rfx_onnx_of(map));
    int64_t channels = channels_of(order, c);
    struct rfx_pixels p = {
        .map = map, .extent = {order->extent[0], order->extent[1], channels}, .rank = order->rank};
    for (int i = 0; i < order->rank; i++) {
        for (int f = begins(order->end, i); f < order->end[i]; f++)
            p.factors[p.count++] = order->factors[f];
        if (i == order->channels && channels > 1)
            p.factors[p.count++] = (struct rfx_pixels_factor){RFX_PIXELS_CHANNEL, channels, 1};
        p.end[i] = p.count;
    }
    return rfx_onnx_emit_pixels(ctx, &p);
}

/* Lists the axes that may be the channels, the likeliest first. With parts, this is only the axis
 * of the parts. Otherwise it is no axis (-1), then the axes longer than 1 by rising length. Returns
 * their number. */
static int list_channel_axes(const struct rfx_onnx_const *c, int *axes) {
    bool parts = c->repeat != NULL && c->repeat->n_parts > 0;
    int n = 0;
    axes[n++] = parts ? c->repeat->axis : -1;
    for (int i = 0; !parts && i < c->shape.rank; i++) {
        int at = n;
        if (c->shape.dims[i] == 1) continue;
        for (; at > 1 && c->shape.dims[axes[at - 1]] > c->shape.dims[i]; at--)
            axes[at] = axes[at - 1];
        axes[at] = i;
        n++;
    }
    return n;
}

/* Returns the constant as one map, rearranged to the order of the tensor; -1 when it is not one. */
static int plain_of_map(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    struct order order;
    int axes[RFX_MAX_RANK + 1], n = list_channel_axes(c, axes);
    for (int i = 0; !rfx_onnx_failed(ctx) && i < n; i++) {
        bool few = axes[i] < 0 || c->shape.dims[axes[i]] <= RFX_ONNX_MOST_CHANNELS;
        int map = few && find_order(ctx, c, axes[i], &order) ? make_map(ctx, &order, c) : -1;
        if (map >= 0) return emit_in_order(ctx, &order, c, map);
    }
    return -1;
}

/* Returns the concatenation of the parts, each made from a map if it has such a form. Recurses to
 * the depth of the parts. */
static int plain_of_parts(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    const struct rfx_onnx_repeat *r = c->repeat;
    struct rfx_node node = {.op = RFX_OP_PLAIN_CONCAT, .attr.concat.axis = r->axis};
    int *in = rfx_memory_alloc(ctx->mem, (size_t)r->n_parts * sizeof *in), out = -1;
    if (in == NULL) return rfx_onnx_out_of_memory(ctx);
    for (int i = 0; i < r->n_parts; i++) {
        in[i] = plain_of_map(ctx, r->parts[i]);
        if (in[i] < 0) in[i] = rfx_onnx_plain(ctx, rfx_onnx_of_const(r->parts[i]));
    }
    out = rfx_onnx_emit(ctx, &node, "/parts", in, r->n_parts);
    rfx_memory_release(ctx->mem, in);
    return out;
}

int rfx_onnx_repeat_plain(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    if (rfx_onnx_failed(ctx) || c->repeat == NULL || c->elems <= STORED_PLAIN_UP_TO) return -1;
    int out = plain_of_map(ctx, c);
    bool parts = out < 0 && !rfx_onnx_failed(ctx) && c->repeat->n_parts > 0 && !has_weight(ctx, c);
    return parts ? plain_of_parts(ctx, c) : out;
}

/* Returns whether the elements are the same at all positions of an axis. */
bool rfx_onnx_repeat_is_same(struct rfx_onnx_const *c, int axis) {
    struct rfx_onnx_pattern p;
    bool same = true;
    if (!rfx_onnx_pattern_of(c, &p)) {
        same = c->repeat != NULL && c->repeat->axis != axis;
        for (int i = 0; same && i < c->repeat->n_parts; i++)
            same = rfx_onnx_repeat_is_same(c->repeat->parts[i], axis);
        return same;
    }
    for (int f = begins(p.end, axis); f < p.end[axis]; f++) same = same && p.factors[f].stride == 0;
    return same;
}

struct rfx_onnx_const *rfx_onnx_repeat_shrink(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                              const struct rfx_shape *beside) {
    if (c->repeat == NULL) return c;
    for (int i = 0; c != NULL && i < c->shape.rank; i++) {
        int own = i + beside->rank - c->shape.rank;
        if (own < 0 || beside->dims[own] != c->shape.dims[i] || !rfx_onnx_repeat_is_same(c, i))
            continue;
        c = rfx_onnx_repeat_slice(ctx, c, i, 0, 1, 1);
    }
    return c;
}
