/* EfficientNMS_TRT, the plugin of TensorRT in which exported detectors end. Its rules are those of
 * its README and kernels (github.com/NVIDIA/TensorRT, plugin/efficientNMSPlugin, version 1):
 *
 * A candidate is a box with one class. Candidates of background_class, and those whose score is
 * below score_threshold or NaN, are left out; with score_activation a score is the sigmoid of the
 * given number. By falling given number, a candidate is kept if no kept one of its class (of any
 * class with class_agnostic) overlaps it by iou_threshold or more, until max_output_boxes are kept.
 * Results are the number of kept candidates, and their corners, scores and classes, with zeros
 * behind them.
 *
 * box_coding 0: two corners; 1: centre and size. With anchors, a box is relative to its anchor:
 * corners are added, after both are put in order; a centre is scaled by the anchor's size and
 * added, and a size is the anchor's times the exponential.
 *
 * Where the plugin leaves a choice: of equal numbers, the first box comes first, of one box the
 * first class; all candidates take part, where the plugin has room for the best 5,000 or fewer.
 * Arithmetic: float32, each operation rounded once; sigmoids and exponentials are computed in
 * float64 (rfx_exp) and rounded once. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/real_math.h"
#include "rfexec/late/late_ops.h"
#include "rfexec/late/late_select.h"

/* Attributes, in the order of the operator's row. */
enum { MOST_KEPT, BACKGROUND, ACTIVATION, CODING, AGNOSTIC };
enum { SCORE_THRESHOLD, IOU_THRESHOLD };
enum { MOST_BOXES = 1000000 }; /* of the results */

void rfx_late_efficient_nms_check(const struct rfx_late_node *node, char why[RFX_LATE_WHY]) {
    static const struct rfx_late_attribute flags[] = {
        {"score_activation", ACTIVATION}, {"box_coding", CODING}, {"class_agnostic", AGNOSTIC}};
    const float score = node->reals[SCORE_THRESHOLD], iou = node->reals[IOU_THRESHOLD];
    for (int i = 0; i < 3; i++) {
        const long long value = (long long)node->ints[flags[i].otherwise];
        if (value != 0 && value != 1)
            (void)snprintf(why, RFX_LATE_WHY, "%s is %lld: 0 or 1 is needed", flags[i].name, value);
    }
    if (node->ints[MOST_KEPT] < 1 || node->ints[MOST_KEPT] > MOST_BOXES)
        (void)snprintf(why, RFX_LATE_WHY, "max_output_boxes is %lld: 1 to %d are possible",
                       (long long)node->ints[MOST_KEPT], MOST_BOXES);
    if (!(score >= 0.0F && score <= 1.0F))
        (void)snprintf(why, RFX_LATE_WHY, "score_threshold is %g: 0 to 1 is needed", (double)score);
    if (!(iou > 0.0F && iou <= 1.0F))
        (void)snprintf(why, RFX_LATE_WHY, "iou_threshold is %g: above 0 to 1 is needed",
                       (double)iou);
}

struct kept {
    float corners[4], score;
    int32_t label;
};

struct suppression {
    const float *boxes, *scores, *anchors; /* anchors NULL: there are none */
    int64_t n_boxes, n_classes, coded;     /* coded: boxes that each anchor has: 1, or n_classes */
    const int64_t *ints;
    const float *reals;
    struct rfx_late_ranked *list; /* candidates; place: index of the score */
    int64_t n, n_kept, room;
    struct kept *kept;
};

static float score_of(const struct suppression *s, int64_t place) {
    const float given = s->scores[place];
    return s->ints[ACTIVATION] == 0 ? given : (float)(1 / (1 + rfx_exp(-(double)given)));
}

static bool is_candidate(const struct suppression *s, int64_t place) {
    return place % s->n_classes != s->ints[BACKGROUND] &&
           score_of(s, place) >= s->reals[SCORE_THRESHOLD];
}

static void put_in_order(float *corners) {
    for (int i = 0; i < 2; i++) {
        const float low = corners[i];
        if (!(low > corners[2 + i])) continue;
        corners[i] = corners[2 + i];
        corners[2 + i] = low;
    }
}

/* Makes a box that is relative to its anchor one of the same coding. */
static void place_at_anchor(const struct suppression *s, const float *anchor, float *box) {
    float a[4];
    memcpy(a, anchor, sizeof a);
    if (s->ints[CODING] == 0) {
        put_in_order(a);
        put_in_order(box);
        for (int i = 0; i < 4; i++) box[i] += a[i];
        return;
    }
    for (int i = 0; i < 2; i++) {
        box[i] = box[i] * a[2 + i] + a[i];
        box[2 + i] = a[2 + i] * (float)rfx_exp((double)box[2 + i]);
    }
}

static void corners_of(const struct suppression *s, int64_t place, float *box) {
    const int64_t i = place / s->n_classes, label = place % s->n_classes;
    memcpy(box, s->boxes + 4 * (i * s->coded + (s->coded > 1 ? label : 0)), 4 * sizeof *box);
    if (s->anchors != NULL) place_at_anchor(s, s->anchors + 4 * i, box);
    for (int axis = 0; s->ints[CODING] == 1 && axis < 2; axis++) {
        const float half = box[2 + axis] * 0.5F, centre = box[axis];
        box[axis] = centre - half;
        box[2 + axis] = centre + half;
    }
}

/* Whether a tensor of floats has the shape 1 x boxes x classes x last. Of axes of 1, the last one
 * and that of the classes may be missing. */
static bool is_shape(const struct rfx_late_tensor *x, int64_t boxes, int64_t classes,
                     int64_t last) {
    const struct rfx_shape *shape = &x->shape;
    const int64_t *dims = shape->dims;
    if (x->type != RFX_TYPE_FLOAT32 || shape->rank < 3 || shape->rank > 4) return false;
    if (dims[0] != 1 || dims[1] != boxes) return false;
    if (shape->rank == 4) return dims[2] == classes && dims[3] == last;
    return last == 1 ? dims[2] == classes : classes == 1 && dims[2] == last;
}

/* Sets the operands. Records an error if their shapes do not match. */
static void read_operands(struct rfx_late_call *call, struct suppression *s) {
    const struct rfx_late_tensor *boxes = rfx_late_need(call, 0), *scores = rfx_late_need(call, 1),
                                 *anchors = rfx_late_in(call, 2);
    char a[RFX_SHAPE_TEXT], b[RFX_SHAPE_TEXT], c[RFX_SHAPE_TEXT] = "none";
    if (boxes == NULL || scores == NULL) return;
    const int rank = scores->shape.rank;
    s->n_boxes = rank > 1 ? scores->shape.dims[1] : 0;
    s->n_classes = rank > 2 ? scores->shape.dims[2] : 0;
    s->coded = boxes->shape.rank == 4 ? boxes->shape.dims[2] : 1;
    bool fits =
        is_shape(scores, s->n_boxes, s->n_classes, 1) && s->n_classes <= INT32_MAX &&
        is_shape(boxes, s->n_boxes, s->coded, 4) && (s->coded == 1 || s->coded == s->n_classes) &&
        (anchors == NULL || (anchors->shape.rank == 3 && is_shape(anchors, s->n_boxes, 1, 4)));
    if (anchors != NULL) (void)rfx_shape_text(&anchors->shape, "x", c);
    if (!fits)
        rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                        "boxes %s, scores %s and anchors %s; (1, boxes, 4) or (1, boxes, classes, "
                        "4), (1, boxes, classes) and (1, boxes, 4) of float32 are needed",
                        rfx_shape_text(&boxes->shape, "x", a),
                        rfx_shape_text(&scores->shape, "x", b), c);
    s->boxes = boxes->data;
    s->scores = scores->data;
    s->anchors = anchors != NULL ? anchors->data : NULL;
}

/* Makes the list of candidates, by falling score. */
static void list_candidates(struct rfx_late_call *call, struct suppression *s) {
    const int64_t n = s->n_boxes * s->n_classes;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += is_candidate(s, i);
    s->list = rfx_late_alloc(call, count, sizeof *s->list);
    s->n = s->list != NULL ? count : 0;
    for (int64_t i = 0, k = 0; k < s->n; i++)
        if (is_candidate(s, i))
            s->list[k++] = (struct rfx_late_ranked){rfx_late_key_of_float(s->scores[i]), i};
    rfx_late_sort(s->list, s->n);
}

static bool is_dropped(const struct suppression *s, const struct kept *box) {
    for (int64_t i = 0; i < s->n_kept; i++) {
        if (s->ints[AGNOSTIC] == 0 && s->kept[i].label != box->label) continue;
        if (rfx_late_overlap(s->kept[i].corners, box->corners, false) >= s->reals[IOU_THRESHOLD])
            return true;
    }
    return false;
}

static void suppress(struct rfx_late_call *call, struct suppression *s) {
    s->room = rfx_min_i64(s->n, s->ints[MOST_KEPT]);
    s->kept = rfx_late_alloc(call, s->room, sizeof *s->kept);
    for (int64_t i = 0; i < s->n && s->n_kept < s->room && call->status == RFX_OK; i++) {
        const int64_t place = s->list[i].place;
        struct kept box = {.label = (int32_t)(place % s->n_classes)};
        if (i % 64 == 0) rfx_late_check_stop(call);
        corners_of(s, place, box.corners);
        if (is_dropped(s, &box)) continue;
        box.score = score_of(s, place);
        s->kept[s->n_kept++] = box;
    }
}

/* Makes result k, a tensor of the type with these dims, of zeros; NULL: it is not read, or there
 * was an error. */
static void *zeros(struct rfx_late_call *call, int k, enum rfx_type type, struct rfx_shape shape) {
    void *out = rfx_late_gives(call, k) ? rfx_late_make(call, k, type, &shape) : NULL;
    int64_t elems = rfx_shape_product(&shape, 0, shape.rank);
    if (out != NULL) memset(out, 0, (size_t)elems * rfx_type_bytes(type));
    return out;
}

static void make_results(struct rfx_late_call *call, const struct suppression *s) {
    const int64_t most = s->ints[MOST_KEPT];
    int32_t *count = zeros(call, 0, RFX_TYPE_INT32, (struct rfx_shape){2, {1, 1}});
    float *boxes = zeros(call, 1, RFX_TYPE_FLOAT32, (struct rfx_shape){3, {1, most, 4}});
    float *scores = zeros(call, 2, RFX_TYPE_FLOAT32, (struct rfx_shape){2, {1, most}});
    int32_t *labels = zeros(call, 3, RFX_TYPE_INT32, (struct rfx_shape){2, {1, most}});
    if (call->status != RFX_OK) return;
    if (count != NULL) *count = (int32_t)s->n_kept;
    for (int64_t i = 0; i < s->n_kept; i++) {
        if (boxes != NULL) memcpy(boxes + 4 * i, s->kept[i].corners, 4 * sizeof *boxes);
        if (scores != NULL) scores[i] = s->kept[i].score;
        if (labels != NULL) labels[i] = s->kept[i].label;
    }
}

void rfx_late_efficient_nms(struct rfx_late_call *call) {
    struct suppression s = {.ints = call->node->ints, .reals = call->node->reals};
    read_operands(call, &s);
    if (call->status != RFX_OK) return;
    list_candidates(call, &s);
    suppress(call, &s);
    rfx_late_release(call, s.list, s.n, sizeof *s.list);
    make_results(call, &s);
    rfx_late_release(call, s.kept, s.room, sizeof *s.kept);
}
