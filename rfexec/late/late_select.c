/* Late operators that choose elements by their values: NonZero, TopK and NonMaxSuppression. */
#include "rfexec/late/late_select.h"

#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/heap_sort.h"
#include "rfexec/late/late_ops.h"

static bool is_zero(const struct rfx_late_tensor *x, int64_t i) {
    if (x->type == RFX_TYPE_FLOAT32) return ((const float *)x->data)[i] == 0.0F;
    if (x->type == RFX_TYPE_INT64) return ((const int64_t *)x->data)[i] == 0;
    if (x->type == RFX_TYPE_INT32) return ((const int32_t *)x->data)[i] == 0;
    return ((const unsigned char *)x->data)[i] == 0;
}

/* The result has a row of indices for each axis, and a column for each element, in their order. */
void rfx_late_non_zero(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    int64_t count = 0, column = 0;
    if (x == NULL) return;
    const int rank = x->shape.rank;
    if (rank == 0)
        rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED, "an operand of rank 0 is not supported");
    for (int64_t i = 0; i < x->elems; i++) count += !is_zero(x, i);
    const struct rfx_shape shape = {2, {rank, count}};
    int64_t *out = rfx_late_make(call, 0, RFX_TYPE_INT64, &shape);
    for (int64_t i = 0; out != NULL && i < x->elems; i++) {
        int64_t rest = i;
        if (is_zero(x, i)) continue;
        for (int axis = rank - 1; axis >= 0; axis--) {
            out[axis * count + column] = rest % x->shape.dims[axis];
            rest /= x->shape.dims[axis];
        }
        column++;
    }
}

/* --- sorting --- */

int64_t rfx_late_key_of_float(float value) {
    int32_t bits;
    if (isnan(value)) return INT64_MAX;
    value += 0.0F; /* -0 is 0 */
    memcpy(&bits, &value, sizeof bits);
    return bits >= 0 ? bits : -(int64_t)(bits & INT32_MAX);
}

static bool comes_before(const void *context, const void *a, const void *b) {
    const struct rfx_late_ranked *x = a, *y = b;
    (void)context;
    return x->key != y->key ? x->key > y->key : x->place < y->place;
}

void rfx_late_sort(struct rfx_late_ranked *list, int64_t n) {
    rfx_heap_sort(list, n, sizeof *list, comes_before, NULL);
}

/* --- TopK --- */

static int64_t key_of(const struct rfx_late_tensor *x, int64_t i) {
    if (x->type == RFX_TYPE_INT64) return ((const int64_t *)x->data)[i];
    if (x->type == RFX_TYPE_INT32) return ((const int32_t *)x->data)[i];
    return rfx_late_key_of_float(((const float *)x->data)[i]);
}

/* Returns the only element of operand k, an integer; `otherwise` if the operand is absent. */
static int64_t one_integer(struct rfx_late_call *call, int k, int64_t otherwise) {
    const struct rfx_late_tensor *x = rfx_late_in(call, k);
    if (x == NULL) return otherwise;
    if (x->elems == 1) return rfx_late_int(call, x, 0);
    rfx_late_refuse(call, RFX_STATUS_MALFORMED, "operand %d has %lld elements: one is needed", k,
                    (long long)x->elems);
    return otherwise;
}

/* Without `sorted` the order is open, and is the sorted one too. */
void rfx_late_top_k(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    const int64_t *ints = call->node->ints;
    if (x == NULL || rfx_late_need(call, 1) == NULL) return;
    const int axis = rfx_late_axis(call, ints[0], x->shape.rank);
    const int64_t k = one_integer(call, 1, 0), dim = x->shape.dims[axis];
    if (x->type == RFX_TYPE_BOOL || k < 0 || k > dim)
        rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                        "the first %lld of %lld elements of %s are not possible", (long long)k,
                        (long long)dim, rfx_type_name(x->type));
    if (call->status != RFX_OK) return;
    struct rfx_shape shape = x->shape;
    const int64_t inner = rfx_shape_product(&shape, axis + 1, shape.rank);
    const int64_t outer = rfx_shape_product(&shape, 0, axis);
    const size_t bytes = rfx_type_bytes(x->type);
    shape.dims[axis] = k;
    bool values_read = rfx_late_gives(call, 0), places_read = rfx_late_gives(call, 1);
    unsigned char *values = values_read ? rfx_late_make(call, 0, x->type, &shape) : NULL;
    int64_t *places = places_read ? rfx_late_make(call, 1, RFX_TYPE_INT64, &shape) : NULL;
    struct rfx_late_ranked *list = rfx_late_alloc(call, dim, sizeof *list);
    for (int64_t v = 0; call->status == RFX_OK && k > 0 && v < outer * inner; v++) {
        const int64_t first = v / inner * dim * inner + v % inner;
        const int64_t to = v / inner * k * inner + v % inner;
        for (int64_t i = 0; i < dim; i++) {
            int64_t key = key_of(x, first + i * inner);
            list[i] = (struct rfx_late_ranked){ints[1] != 0 ? key : ~key,
                                               i}; /* ~ turns the order around */
        }
        rfx_late_sort(list, dim);
        for (int64_t i = 0; i < k; i++) {
            size_t from = (size_t)(first + list[i].place * inner) * bytes;
            if (values != NULL)
                memcpy(values + (size_t)(to + i * inner) * bytes,
                       (const unsigned char *)x->data + from, bytes);
            if (places != NULL) places[to + i * inner] = list[i].place;
        }
    }
    rfx_late_release(call, list, dim, sizeof *list);
}

/* --- NonMaxSuppression ---
 *
 * The rule of ONNX Runtime (core/providers/cpu/object_detection/non_max_suppression.cc): for each
 * batch and class, boxes by falling score, of equal scores the first; a box is selected if no box
 * that was selected before in its class overlaps it by more than the threshold. The overlap is
 * computed in float32 in ONNX Runtime's order of operations. A NaN score passes no score threshold;
 * without one, it comes after all numbers (ONNX Runtime's order is undefined there). */

/* Limits of a box along an axis, in order. */
static void limits_of(const float *box, bool centred, int axis, float *low, float *high) {
    if (centred) { /* centre x, centre y, width, height */
        float half = box[2 + axis] / 2;
        *low = box[axis] - half;
        *high = box[axis] + half;
        return;
    }
    float a = box[1 - axis], b = box[3 - axis]; /* y, x, y, x */
    *low = a >= b ? b : a;
    *high = a >= b ? a : b;
}

float rfx_late_overlap(const float *a, const float *b, bool centred) {
    float low[2][2], high[2][2], shared[2];
    for (int axis = 0; axis < 2; axis++) {
        limits_of(a, centred, axis, &low[0][axis], &high[0][axis]);
        limits_of(b, centred, axis, &low[1][axis], &high[1][axis]);
        float from = low[0][axis] < low[1][axis] ? low[1][axis] : low[0][axis];
        float to = high[1][axis] < high[0][axis] ? high[1][axis] : high[0][axis];
        if (to <= from) return 0.0F;
        shared[axis] = to - from;
    }
    const float common = shared[0] * shared[1];
    if (common <= 0.0F) return 0.0F;
    const float area_a = (high[0][0] - low[0][0]) * (high[0][1] - low[0][1]);
    const float area_b = (high[1][0] - low[1][0]) * (high[1][1] - low[1][1]);
    const float both = area_a + area_b - common;
    if (area_a <= 0.0F || area_b <= 0.0F || both <= 0.0F) return 0.0F;
    return common / both;
}

struct suppression {
    const struct rfx_late_tensor *boxes, *scores;
    int64_t most;
    float threshold, least;
    bool has_least, centred;
    struct rfx_late_ranked *list; /* boxes of a class by their scores */
    int64_t *found, n, room;      /* selected boxes: batch, class and box of each */
};

/* As one_integer, of a float. */
static float one_float(struct rfx_late_call *call, int k, float otherwise) {
    const struct rfx_late_tensor *x = rfx_late_in(call, k);
    if (x == NULL) return otherwise;
    if (x->type == RFX_TYPE_FLOAT32 && x->elems == 1) return *(const float *)x->data;
    rfx_late_refuse(call, RFX_STATUS_MALFORMED, "operand %d is not one float32", k);
    return otherwise;
}

static void read_suppression(struct rfx_late_call *call, struct suppression *s) {
    char a[RFX_SHAPE_TEXT], b[RFX_SHAPE_TEXT];
    s->boxes = rfx_late_need(call, 0);
    s->scores = rfx_late_need(call, 1);
    if (s->boxes == NULL || s->scores == NULL) return;
    const int64_t *box = s->boxes->shape.dims, *score = s->scores->shape.dims;
    bool fits = s->boxes->shape.rank == 3 && s->scores->shape.rank == 3 && box[2] == 4 &&
                box[0] == score[0] && box[1] == score[2] && s->boxes->type == RFX_TYPE_FLOAT32 &&
                s->scores->type == RFX_TYPE_FLOAT32;
    if (!fits)
        rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                        "boxes %s and scores %s; (batches, boxes, 4) and (batches, classes, boxes) "
                        "of float32 are needed",
                        rfx_shape_text(&s->boxes->shape, "x", a),
                        rfx_shape_text(&s->scores->shape, "x", b));
    s->most = one_integer(call, 2, 0);
    s->threshold = one_float(call, 3, 0.0F);
    s->least = one_float(call, 4, 0.0F);
    s->has_least = rfx_late_in(call, 4) != NULL;
    s->centred = call->node->ints[0] == 1;
    if (call->node->ints[0] != 0 && !s->centred)
        rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED, "center_point_box %lld is not supported",
                        (long long)call->node->ints[0]);
    if (!(s->threshold >= 0.0F && s->threshold <= 1.0F))
        rfx_late_refuse(call, RFX_STATUS_MALFORMED, "an iou_threshold of %g, outside of 0 to 1",
                        (double)s->threshold);
}

/* Makes room for one more selected box. */
static bool reserve(struct rfx_late_call *call, struct suppression *s) {
    if (s->n < s->room) return true;
    const size_t size = 3 * sizeof *s->found;
    const int64_t room = s->room == 0 ? 64 : 2 * s->room;
    int64_t *found = rfx_late_alloc(call, room, size);
    if (found == NULL) return false;
    if (s->n > 0) memcpy(found, s->found, (size_t)s->n * size);
    rfx_late_release(call, s->found, s->room, size);
    s->found = found;
    s->room = room;
    return true;
}

static bool is_dropped(const struct suppression *s, const float *boxes, int64_t begun,
                       int64_t box) {
    for (int64_t i = begun; i < s->n; i++)
        if (rfx_late_overlap(boxes + 4 * box, boxes + 4 * s->found[3 * i + 2], s->centred) >
            s->threshold)
            return true;
    return false;
}

static void suppress_class(struct rfx_late_call *call, struct suppression *s, int64_t batch,
                           int64_t label) {
    const int64_t n_boxes = s->boxes->shape.dims[1], begun = s->n;
    const float *boxes = (const float *)s->boxes->data + batch * n_boxes * 4;
    const float *scores =
        (const float *)s->scores->data + (batch * s->scores->shape.dims[1] + label) * n_boxes;
    int64_t n = 0;
    for (int64_t i = 0; i < n_boxes; i++)
        if (!s->has_least || scores[i] > s->least) {
            int64_t key = isnan(scores[i]) ? INT64_MIN : rfx_late_key_of_float(scores[i]);
            s->list[n++] = (struct rfx_late_ranked){key, i};
        }
    rfx_late_sort(s->list, n);
    for (int64_t i = 0; i < n && s->n - begun < s->most && call->status == RFX_OK; i++) {
        if (i % 64 == 0) rfx_late_check_stop(call);
        if (is_dropped(s, boxes, begun, s->list[i].place) || !reserve(call, s)) continue;
        const int64_t chosen[3] = {batch, label, s->list[i].place};
        memcpy(s->found + 3 * s->n++, chosen, sizeof chosen);
    }
}

void rfx_late_non_max_suppression(struct rfx_late_call *call) {
    struct suppression s = {.most = 0};
    read_suppression(call, &s);
    if (call->status != RFX_OK) return;
    const int64_t n_boxes = s.boxes->shape.dims[1];
    s.list = rfx_late_alloc(call, n_boxes, sizeof *s.list);
    for (int64_t batch = 0; batch < s.scores->shape.dims[0]; batch++)
        for (int64_t label = 0; call->status == RFX_OK && label < s.scores->shape.dims[1]; label++)
            suppress_class(call, &s, batch, label);
    rfx_late_release(call, s.list, n_boxes, sizeof *s.list);
    const struct rfx_shape shape = {2, {s.n, 3}};
    int64_t *out = rfx_late_make(call, 0, RFX_TYPE_INT64, &shape);
    if (out != NULL && s.n > 0) memcpy(out, s.found, (size_t)s.n * 3 * sizeof *out);
    rfx_late_release(call, s.found, s.room, 3 * sizeof *s.found);
}
