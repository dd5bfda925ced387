/* Places of a candidate's values, formulas of boxes and scores; see detector_boxes.h. */
#include "rfexec/answers/detector_boxes.h"

#include <math.h>

#include "layers/core/real_math.h"

/* A candidate: an anchor of a cell. */
struct candidate {
    const struct rfx_detector *detector;
    const struct rfx_detector_level *level;
    const float *cell; /* values of all candidates of its cell */
    int anchor;
    int64_t at[2]; /* column and row of the cell */
};

/* Returns the level of a cell. *cell becomes its number in the level, *index the number of its
 * first candidate. */
static const struct rfx_detector_level *find_level(const struct rfx_detector *detector,
                                                   int64_t *cell, int64_t *index) {
    const struct rfx_detector_level *level = detector->levels;
    *index = 0;
    for (; *cell >= level->h * level->w; level++) {
        *cell -= level->h * level->w;
        *index += level->h * level->w * level->anchors;
    }
    *index += *cell * level->anchors;
    return level;
}

/* Returns value k of a kind that the head has. */
static float value_of(const struct candidate *c, enum rfx_detector_value kind, int64_t k) {
    const struct rfx_detector_place *place = &c->detector->places[kind];
    const struct rfx_detector_output *out = &c->detector->outputs[place->output];
    int64_t anchors = c->level->anchors, at = place->at + k;
    return c->cell[out->first * anchors +
                   (out->values_first ? at * anchors + c->anchor : c->anchor * out->channels + at)];
}

/* ---- scores ---- */

static float sigmoid(float x) {
    return (float)(1 / (1 + rfx_exp(-(double)x)));
}

float rfx_detector_least(const struct rfx_detector *detector, float threshold) {
    /* The margins cover the roundings of sigmoid, product and root. */
    double t = (double)threshold;
    if (detector->activation != RFX_DETECTOR_SIGMOID || !(t > 0)) return -INFINITY;
    t = (detector->root ? t * t : t) * (1 - 1e-6);
    if (t >= 1) return INFINITY;
    double least = rfx_log(t / (1 - t));
    return (float)(least - 1e-5 * (1 + fabs(least)));
}

/* What a softmax of a candidate's classes needs of all of them. */
struct softmax {
    float largest;
    double sum;
};

static struct softmax softmax_of(const struct candidate *c) {
    struct softmax all = {-INFINITY, 0};
    int64_t n = c->detector->places[RFX_DETECTOR_SCORES].n;
    for (int64_t k = 0; k < n; k++) {
        float x = value_of(c, RFX_DETECTOR_SCORES, k);
        if (x > all.largest) all.largest = x;
    }
    for (int64_t k = 0; k < n; k++)
        all.sum += rfx_exp((double)value_of(c, RFX_DETECTOR_SCORES, k) - (double)all.largest);
    return all;
}

static float objectness_of(const struct candidate *c) {
    const struct rfx_detector *detector = c->detector;
    if (detector->places[RFX_DETECTOR_OBJECTNESS].output < 0) return 1;
    float x = value_of(c, RFX_DETECTOR_OBJECTNESS, 0);
    return detector->activation == RFX_DETECTOR_SIGMOID ? sigmoid(x) : x;
}

static float score_of(const struct candidate *c, float x, const struct softmax *all,
                      float objectness) {
    const struct rfx_detector *detector = c->detector;
    float score = x;
    if (detector->activation == RFX_DETECTOR_SIGMOID) score = sigmoid(x);
    if (detector->activation == RFX_DETECTOR_SOFTMAX)
        score = (float)(rfx_exp((double)x - (double)all->largest) / all->sum);
    if (detector->places[RFX_DETECTOR_OBJECTNESS].output >= 0) score *= objectness;
    return detector->root ? sqrtf(score) : score;
}

/* Whether no cell around the candidate's has a larger score of class k. A NaN among them is larger.
 * Scores are compared, not values before the sigmoid: different values may have equal scores. */
static bool is_peak(const struct candidate *c, int64_t k, float score) {
    const struct rfx_detector *detector = c->detector;
    if (detector->decode != RFX_DETECTOR_CENTERNET) return true;
    float largest = c->cell[detector->peaks + k];
    if (detector->activation == RFX_DETECTOR_SIGMOID) largest = sigmoid(largest);
    return score == largest;
}

/* ---- boxes ---- */

static float side_of_image(const struct candidate *c, int i) {
    return (float)(i == 0 ? c->detector->image_w : c->detector->image_h);
}

/* Pixels between cells. A level without a stride has the whole pixels of the image's side over its
 * cells, as torchvision's AnchorGenerator. */
static float stride_of(const struct candidate *c, int i) {
    const struct rfx_detector *d = c->detector;
    if (c->level->stride > 0) return c->level->stride;
    return (float)(i == 0 ? d->image_w / c->level->w : d->image_h / c->level->h);
}

/* Centre of the cell in pixels. */
static float cell_centre(const struct candidate *c, int i) {
    return ((float)c->at[i] + c->detector->offset) * stride_of(c, i);
}

/* Left and right, or top and bottom, of the anchor around the cell's centre. */
static void anchor_sides(const struct candidate *c, int i, float side[2]) {
    float half = 0.5F * c->level->anchor[c->anchor][i], image = side_of_image(c, i);
    if (!c->detector->shares) {
        side[0] = cell_centre(c, i) - half;
        side[1] = cell_centre(c, i) + half;
        return;
    }
    float cells = c->level->stride > 0 ? (float)((double)image / (double)c->level->stride)
                                       : (float)(i == 0 ? c->level->w : c->level->h);
    float centre = ((float)c->at[i] + c->detector->offset) / cells;
    side[0] = (centre - half) * image;
    side[1] = (centre + half) * image;
}

/* exp of a logarithm of a side, which is limited. NaN stays NaN. */
static float exp_of(const struct candidate *c, float x) {
    return (float)rfx_exp((double)(x > c->detector->limit ? c->detector->limit : x));
}

/* Unit of distances. */
static float distance_of(const struct candidate *c, int i) {
    return c->detector->has_anchors ? c->level->anchor[c->anchor][i] : stride_of(c, i);
}

/* Decodes coordinate i (0: x, 1: y) of a point, such as a centre. */
static float point_of(const struct candidate *c, int i, float v) {
    const struct rfx_detector *d = c->detector;
    float side[2];
    switch (d->decode) {
        case RFX_DETECTOR_DISTANCES:
            return cell_centre(c, i) + v * distance_of(c, i);
        case RFX_DETECTOR_DELTAS:
            anchor_sides(c, i, side);
            side[1] -= side[0];
            return v / d->weights[i] * side[1] + (side[0] + 0.5F * side[1]);
        case RFX_DETECTOR_CELLS:
        case RFX_DETECTOR_CENTERNET:
            return ((float)c->at[i] + v) * stride_of(c, i);
        case RFX_DETECTOR_YOLOV3:
            return (sigmoid(v) + (float)c->at[i]) * stride_of(c, i);
        case RFX_DETECTOR_YOLOV5:
            return (sigmoid(v) * 2 + ((float)c->at[i] - 0.5F)) * stride_of(c, i);
        case RFX_DETECTOR_CORNERS:
        case RFX_DETECTOR_CENTRE:
        case RFX_DETECTOR_DECODES:
            break;
    }
    return d->shares ? v * side_of_image(c, i) : v;
}

/* Decodes width (i = 0) or height of a box. */
static float side_of(const struct candidate *c, int i, float v) {
    const struct rfx_detector *d = c->detector;
    float side[2], twice;
    switch (d->decode) {
        case RFX_DETECTOR_DELTAS:
            anchor_sides(c, i, side);
            return exp_of(c, v / d->weights[2 + i]) * (side[1] - side[0]);
        case RFX_DETECTOR_CELLS:
            return exp_of(c, v) * stride_of(c, i);
        case RFX_DETECTOR_CENTERNET:
            return v * stride_of(c, i);
        case RFX_DETECTOR_YOLOV3:
            return exp_of(c, v) * c->level->anchor[c->anchor][i];
        case RFX_DETECTOR_YOLOV5:
            twice = sigmoid(v) * 2;
            return twice * twice * c->level->anchor[c->anchor][i];
        case RFX_DETECTOR_CORNERS:
        case RFX_DETECTOR_CENTRE:
        case RFX_DETECTOR_DISTANCES:
        case RFX_DETECTOR_DECODES:
            break;
    }
    return d->shares ? v * side_of_image(c, i) : v;
}

static float into_image(float x, float side) {
    return x < 0 ? 0 : x > side ? side : x;
}

/* Returns number k of a box, which is one value of four numbers or two of two. */
static float box_value(const struct candidate *c, int k) {
    if (c->detector->places[RFX_DETECTOR_BOX].output >= 0) return value_of(c, RFX_DETECTOR_BOX, k);
    return value_of(c, k < 2 ? RFX_DETECTOR_BOX_CENTRE : RFX_DETECTOR_BOX_SIDES, k % 2);
}

static void corners_of(const struct candidate *c, float corner[4]) {
    const struct rfx_detector *d = c->detector;
    for (int i = 0; i < 2; i++) {
        float first = box_value(c, i), second = box_value(c, 2 + i);
        if (d->decode == RFX_DETECTOR_CORNERS) {
            corner[i] = point_of(c, i, first);
            corner[2 + i] = point_of(c, i, second);
        } else if (d->decode == RFX_DETECTOR_DISTANCES) {
            corner[i] = cell_centre(c, i) - first * distance_of(c, i);
            corner[2 + i] = cell_centre(c, i) + second * distance_of(c, i);
        } else {
            float centre = point_of(c, i, first), half = 0.5F * side_of(c, i, second);
            corner[i] = centre - half;
            corner[2 + i] = centre + half;
        }
        for (int k = i; d->clip && k < 4; k += 2)
            corner[k] = into_image(corner[k], side_of_image(c, i));
    }
}

/* Landmarks of a candidate; NULL: the head has none. */
static const float *points_of(const struct candidate *c, float points[2 * RFX_BOX_POINTS]) {
    if (c->detector->places[RFX_DETECTOR_POINTS].output < 0) return NULL;
    for (int k = 0; k < 2 * RFX_BOX_POINTS; k++)
        points[k] = point_of(c, k % 2, value_of(c, RFX_DETECTOR_POINTS, k));
    return points;
}

/* ---- candidates ---- */

/* What is taken of a candidate, and by whom. */
struct taking {
    float threshold, least;
    rfx_detector_take *take;
    void *context;
    struct rfx_error *err;
};

static enum rfx_status take_box(const struct candidate *c, const struct taking *t,
                                struct rfx_box *box) {
    float points[2 * RFX_BOX_POINTS];
    corners_of(c, box->corner);
    return t->take(t->context, box, points_of(c, points), t->err);
}

/* Hands over the boxes of a candidate: the best class, the first of equals, or every class above
 * the threshold. A candidate with a NaN among its classes has no best one. */
static enum rfx_status take_candidate(const struct candidate *c, const struct taking *t,
                                      int64_t index) {
    const struct rfx_detector *d = c->detector;
    struct softmax all = {0, 1};
    struct rfx_box box = {.score = -INFINITY, .index = index};
    float objectness = objectness_of(c);
    enum rfx_status status = RFX_OK;
    if (d->activation == RFX_DETECTOR_SOFTMAX) all = softmax_of(c);
    for (int64_t k = 0; k < d->places[RFX_DETECTOR_SCORES].n && status == RFX_OK; k++) {
        float x = value_of(c, RFX_DETECTOR_SCORES, k);
        if (isnan(x) && !d->every_class) return RFX_OK;
        if (x < t->least || k == d->background) continue;
        float score = score_of(c, x, &all, objectness);
        if (!(score > t->threshold) || (!d->every_class && score <= box.score)) continue;
        if (!is_peak(c, k, score)) continue;
        box.score = score;
        box.label = (int32_t)k;
        if (d->every_class) status = take_box(c, t, &box);
    }
    return d->every_class || box.score == -INFINITY ? status : take_box(c, t, &box);
}

enum rfx_status rfx_detector_cell(const struct rfx_detector *detector, int64_t cell,
                                  const float *values, float threshold, float least,
                                  rfx_detector_take *take, void *context, struct rfx_error *err) {
    const struct taking taking = {threshold, least, take, context, err};
    struct candidate c = {.detector = detector, .cell = values};
    int64_t index;
    enum rfx_status status = RFX_OK;
    c.level = find_level(detector, &cell, &index);
    c.at[0] = cell % c.level->w;
    c.at[1] = cell / c.level->w;
    for (c.anchor = 0; c.anchor < c.level->anchors && status == RFX_OK; c.anchor++)
        status = take_candidate(&c, &taking, index + c.anchor);
    return status;
}
