/* ScatterND and ScatterElements on constants whose elements repeat, where the updates fill a box of
 * the data: masks of shifted windows are made so, box by box.
 *
 * Where data and updates are the same between a few cuts of each axis, the result is so, too: a
 * pattern with cuts. Otherwise the data is cut along each axis into what is before the box, the
 * box, and what is behind it; the updates take the box's place, and the parts lie side by side. */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/fold/onnx_fold.h"
#include "rfexec/onnx/import/fold/onnx_repeat.h"

#define MOST_POSITIONS 65536 /* along one axis of a box */

/* Where the updates go. */
struct box {
    int64_t lo[RFX_MAX_RANK];
    struct rfx_shape shape;
};

/* The data with the box filled, from `axis` on. As deep as there are axes. */
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

/* The cuts of an axis of a pattern, from its position 0 at `lo` of an axis of the result on, added
 * to that axis's; false: elements change between cuts, or there are too many cuts. */
static bool add_cuts(const struct rfx_onnx_pattern *p, int axis, int64_t lo,
                     struct rfx_digit *digit) {
    int begin = axis == 0 ? 0 : p->end[axis - 1];
    for (int f = begin; f < p->end[axis]; f++) {
        const struct rfx_digit *factor = &p->factors[f];
        if (factor->stride == 0) continue;
        if (factor->n_cuts == 0 || p->end[axis] - begin > 1) return false;
        for (int64_t i = 0; i < factor->n_cuts; i++)
            if (!rfx_digit_add_cut(digit, lo + factor->cuts[i])) return false;
    }
    return true;
}

/* The element of data or, within the box, of updates for a class of each axis. */
static enum rfx_status put_class(struct rfx_onnx_import *ctx, const struct rfx_onnx_pattern *from,
                                 const struct box *box, const int64_t *at,
                                 struct rfx_onnx_const *to, int64_t i) {
    int64_t within[RFX_MAX_RANK];
    bool inside = true;
    for (int k = 0; k < box->shape.rank; k++) {
        within[k] = at[k] - box->lo[k];
        inside = inside && within[k] >= 0 && within[k] < box->shape.dims[k];
    }
    const struct rfx_onnx_pattern *p = &from[inside];
    int64_t place = rfx_onnx_pattern_at(p, box->shape.rank, inside ? within : at);
    return rfx_onnx_copy_stored(ctx, to, i, p->stored, place);
}

/* The factors of the data with the box filled, one for each axis; false: it has no such form. */
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

/* The data with the box filled, as a pattern with cuts; NULL: it is none. */
static struct rfx_onnx_const *put_with_cuts(struct rfx_onnx_import *ctx,
                                            struct rfx_onnx_const *data,
                                            struct rfx_onnx_const *updates, const struct box *box,
                                            enum rfx_status *status) {
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
        *status = put_class(ctx, from, box, at, to.stored, i++);
        if (*status != RFX_OK) return NULL;
    } while (rfx_onnx_pattern_next_class(&to, class_of));
    return rfx_onnx_repeat_new(ctx, data->type, &data->shape, &to);
}

/* Whether each element is the first one and its position along the axis; -1: the first one. */
static bool counts_along(const struct rfx_shape *shape, const int64_t *ints, int64_t elems,
                         int axis) {
    int64_t inner = axis < 0 ? elems : rfx_onnx_product(shape, axis + 1, shape->rank);
    int64_t extent = axis < 0 ? 1 : shape->dims[axis];
    for (int64_t i = 0; i < elems; i++)
        if (ints[i] != ints[0] + i / inner % extent) return false;
    return true;
}

/* Whether a constant of integers changes along one axis at most (*axis; -1: a single number), where
 * each is the last one plus 1, from *first on. */
static bool is_run(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, int *axis, int64_t *first,
                   enum rfx_status *status) {
    const int64_t *ints;
    struct rfx_shape all = c->shape;
    c = rfx_onnx_repeat_shrink(ctx, c, &all);
    *axis = -1;
    if (c == NULL || c->elems < 1 || rfx_onnx_const_stored(c) > MOST_POSITIONS) return false;
    *status = rfx_onnx_const_stored_ints(ctx, c, &ints);
    if (*status != RFX_OK) return false;
    *first = ints[0];
    if (c->filled || counts_along(&c->shape, ints, c->elems, -1)) return true;
    for (int i = 0; i < c->shape.rank; i++)
        if (c->shape.dims[i] > 1 && counts_along(&c->shape, ints, c->elems, i)) {
            *axis = i;
            return true;
        }
    return false;
}

/* The box of a ScatterND: each number of an index counts along one axis of the indices, in the
 * order of those, or is the same in all. */
static bool box_of_tuples(struct rfx_onnx_import *ctx, const struct rfx_shape *data,
                          struct rfx_onnx_const *indices, struct box *box,
                          enum rfx_status *status) {
    int q = indices->shape.rank - 1, used = -1;
    int64_t width = q < 0 ? 0 : indices->shape.dims[q], elems = 1;
    if (width < 1 || width > data->rank) return false;
    box->shape = *data;
    for (int d = 0; d < (int)width; d++) {
        int axis;
        struct rfx_onnx_const *number = rfx_onnx_repeat_slice(ctx, indices, q, d, 1, 1);
        if (number == NULL || !is_run(ctx, number, &axis, &box->lo[d], status)) return false;
        if (axis >= 0 && axis <= used) return false;
        if (axis >= 0) used = axis;
        box->shape.dims[d] = axis < 0 ? 1 : indices->shape.dims[axis];
        if (box->lo[d] < 0) box->lo[d] += data->dims[d];
        if (box->lo[d] < 0 || box->lo[d] + box->shape.dims[d] > data->dims[d]) return false;
        elems *= box->shape.dims[d];
    }
    return elems == rfx_onnx_product(&indices->shape, 0, q);
}

/* The box of a ScatterElements: one position of its axis, from the first ones of all others on. */
static bool box_of_elements(struct rfx_onnx_import *ctx, const struct rfx_shape *data,
                            struct rfx_onnx_const *indices, struct box *box,
                            enum rfx_status *status) {
    int axis, none;
    if (indices->shape.rank != data->rank) return false;
    *status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", 0), data->rank, &axis);
    if (*status != RFX_OK || indices->shape.dims[axis] != 1 ||
        !is_run(ctx, indices, &none, &box->lo[axis], status) || none >= 0)
        return false;
    box->shape = indices->shape;
    if (box->lo[axis] < 0) box->lo[axis] += data->dims[axis];
    for (int i = 0; i < data->rank; i++)
        if (box->lo[i] < 0 || box->lo[i] + box->shape.dims[i] > data->dims[i]) return false;
    return true;
}

struct rfx_onnx_const *rfx_onnx_repeat_put(struct rfx_onnx_import *ctx, struct rfx_onnx_const *data,
                                           enum rfx_status *status) {
    struct rfx_onnx_const *indices = rfx_onnx_in(ctx, 1).constant;
    struct rfx_onnx_const *updates = rfx_onnx_in(ctx, 2).constant;
    struct box box = {.shape = {0, {0}}};
    bool tuples = rfx_onnx_op_is(ctx, "ScatterND");
    if (indices != NULL && updates != NULL && indices->elems == 0 && updates->elems == 0)
        return data;
    if (indices == NULL || updates == NULL || updates->type != data->type ||
        rfx_onnx_type_is_real(indices->type) || indices->elems < 1 ||
        strcmp(rfx_onnx_attr_string(ctx, "reduction", "none"), "none") != 0)
        return NULL;
    *status = rfx_onnx_const_filled(ctx, indices, &indices);
    if (*status == RFX_OK) *status = rfx_onnx_const_filled(ctx, updates, &updates);
    if (*status != RFX_OK) return NULL;
    bool fits = tuples ? box_of_tuples(ctx, &data->shape, indices, &box, status)
                       : box_of_elements(ctx, &data->shape, indices, &box, status);
    if (!fits || rfx_onnx_product(&box.shape, 0, box.shape.rank) != updates->elems) return NULL;
    updates = rfx_onnx_const_view(ctx, updates, &box.shape);
    if (updates == NULL) return NULL;
    struct rfx_onnx_const *made = put_with_cuts(ctx, data, updates, &box, status);
    return made != NULL || *status != RFX_OK ? made : put(ctx, data, updates, &box, 0);
}
