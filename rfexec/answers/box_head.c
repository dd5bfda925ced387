/* The table of forms, the recognition of a form by shape, and the decoding of candidates. */
#include "rfexec/answers/box_head.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "layers/core/checked.h"
#include "layers/core/real_math.h"

enum { BOX = 4, OBJECTNESS = 4 /* channel, of forms that have it */ };

/* Channels of YuNet and of the RFB detector, as rfexec/run/join_heads.c orders them. */
enum { YUNET_CLASS, YUNET_OBJECT, YUNET_BOX, YUNET_POINTS = 6, YUNET_CHANNELS = 16 };
enum { RFB_FACE = 1, RFB_BOX, RFB_CHANNELS = 6 };

/* Sets score and label of a candidate and returns whether it passes; *score is not NaN then. */
typedef bool score_fn(const struct rfx_box_head *head, const float *channels, float threshold,
                      float *score, int32_t *label);

/* Sets the corners of a candidate. */
typedef void corners_fn(const struct rfx_box_head *head, const float *channels, int64_t index,
                        float corner[4]);

struct form {
    const char *title; /* for messages */
    const char *names; /* of the option, the usual one first */
    const char *shape;
    int fixed;        /* channels before those of the classes */
    int per_cell;     /* candidates of a cell of each level; 0: the network has chosen */
    bool either_axis; /* channels may be axis 1 or 2; else they are axis 2 */
    int points;       /* landmarks of a box */
    bool named;       /* the output has the `fixed` channels alone, those of one class included */
    score_fn *score;
    corners_fn *corners;
    int behind; /* numbers of what is behind the classes: 2 or 3 of a point, 1 of a coefficient; 0:
                   nothing that is used */
    int angles; /* channels behind those of the classes: 1 for the angle, or 0 */
};

/* Returns the first of the largest values, or a NaN if there is one. */
static int64_t largest(const float *values, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(values[i])) return i;
        if (values[i] > values[best]) best = i;
    }
    return best;
}

static bool score_by_class(const struct rfx_box_head *head, const float *channels, float threshold,
                           float *score, int32_t *label) {
    int64_t best = largest(channels + BOX, head->classes);
    *score = channels[BOX + best];
    *label = (int32_t)best;
    return *score > threshold;
}

/* The label is that of the largest product: rounding may make products equal whose classes' scores
 * are not. */
static bool score_by_product(const struct rfx_box_head *head, const float *channels,
                             float threshold, float *score, int32_t *label) {
    float objectness = channels[OBJECTNESS];
    if (!(objectness > threshold)) return false;
    *score = -INFINITY;
    *label = 0;
    for (int64_t i = 0; i < head->classes; i++) {
        float product = objectness * channels[OBJECTNESS + 1 + i];
        if (isnan(product)) return false;
        if (product > *score) {
            *score = product;
            *label = (int32_t)i;
        }
    }
    return *score > threshold;
}

/* A network with one class was trained without its score. */
static bool score_of_yolov7(const struct rfx_box_head *head, const float *channels, float threshold,
                            float *score, int32_t *label) {
    if (head->classes > 1) return score_by_product(head, channels, threshold, score, label);
    *score = channels[OBJECTNESS];
    *label = 0;
    return *score > threshold;
}

static bool score_of_yolox(const struct rfx_box_head *head, const float *channels, float threshold,
                           float *score, int32_t *label) {
    int64_t best = largest(channels + OBJECTNESS + 1, head->classes);
    *score = channels[OBJECTNESS] * channels[OBJECTNESS + 1 + best];
    *label = (int32_t)best;
    return *score >= threshold;
}

static bool score_in_row(const struct rfx_box_head *head, const float *channels, float threshold,
                         float *score, int32_t *label) {
    (void)head;
    float written = channels[BOX + 1];
    *score = channels[BOX];
    *label =
        written >= 0 && written < 0x1p31f && floorf(written) == written ? (int32_t)written : -1;
    return *score > threshold;
}

/* Both factors lie between 0 and 1, but for rounding. */
static float share(float value) {
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

static bool score_of_yunet(const struct rfx_box_head *head, const float *channels, float threshold,
                           float *score, int32_t *label) {
    (void)head;
    *score = sqrtf(share(channels[YUNET_CLASS]) * share(channels[YUNET_OBJECT]));
    *label = 0;
    return *score >= threshold;
}

static bool score_of_rfb(const struct rfx_box_head *head, const float *channels, float threshold,
                         float *score, int32_t *label) {
    (void)head;
    *score = channels[RFB_FACE];
    *label = 0;
    return *score > threshold;
}

/* Corners of a box whose centre and sides are given. */
static void corners_around(const float *centre, const float *side, float corner[4]) {
    for (int i = 0; i < 2; i++) {
        float half = side[i] / 2;
        corner[i] = centre[i] - half;
        corner[2 + i] = centre[i] + half;
    }
}

static void corners_of_centre(const struct rfx_box_head *head, const float *channels, int64_t index,
                              float corner[4]) {
    (void)head, (void)index;
    corners_around(channels, channels + 2, corner);
}

static void corners_as_written(const struct rfx_box_head *head, const float *channels,
                               int64_t index, float corner[4]) {
    (void)head, (void)index;
    memcpy(corner, channels, BOX * sizeof *corner);
}

/* The cell of a candidate: column, row and stride, all exact in float32. */
struct cell {
    float at[2], stride;
};

/* Levels of YuNet: strides 8, 16 and 32. */
enum { YUNET_STRIDE = 8, YUNET_LEVELS = 3 };

static struct cell yunet_cell(const struct rfx_box_head *head, int64_t index) {
    int64_t stride = YUNET_STRIDE, columns = rfx_ceil_div(head->image_w, stride);
    for (int level = 1; level < YUNET_LEVELS; level++) {
        int64_t cells = rfx_ceil_div(head->image_h, stride) * columns;
        if (index < cells) break;
        index -= cells;
        stride *= 2;
        columns = rfx_ceil_div(head->image_w, stride);
    }
    return (struct cell){{(float)(index % columns), (float)(index / columns)}, (float)stride};
}

static void corners_of_yunet(const struct rfx_box_head *head, const float *channels, int64_t index,
                             float corner[4]) {
    struct cell cell = yunet_cell(head, index);
    const float *box = channels + YUNET_BOX;
    float centre[2], side[2];
    for (int i = 0; i < 2; i++) {
        centre[i] = (cell.at[i] + box[i]) * cell.stride;
        side[i] = (float)rfx_exp((double)box[2 + i]) * cell.stride;
    }
    corners_around(centre, side, corner);
}

static void corners_of_rfb(const struct rfx_box_head *head, const float *channels, int64_t index,
                           float corner[4]) {
    const float size[2] = {(float)head->image_w, (float)head->image_h};
    (void)index;
    for (int i = 0; i < BOX; i++) corner[i] = channels[RFB_BOX + i] * size[i % 2];
}

static const struct form forms[RFX_BOX_FORM_COUNT] = {
    [RFX_BOX_FORM_YOLOV8] = {"YOLOv8", "yolov8 yolov9 yolov11 yolo11 yolov12 yolo12",
                             "1 x (4 + classes) x candidates", 4, 1, true, 0, false, score_by_class,
                             corners_of_centre, 0, 0},
    [RFX_BOX_FORM_YOLOV5] = {"YOLOv5", "yolov5", "1 x candidates x (5 + classes)", 5, 3, false, 0,
                             false, score_by_product, corners_of_centre, 0, 0},
    [RFX_BOX_FORM_YOLOV7] = {"YOLOv7", "yolov7", "1 x candidates x (5 + classes)", 5, 3, false, 0,
                             false, score_of_yolov7, corners_of_centre, 0, 0},
    [RFX_BOX_FORM_YOLOX] = {"YOLOX", "yolox", "1 x candidates x (5 + classes)", 5, 1, false, 0,
                            false, score_of_yolox, corners_of_centre, 0, 0},
    [RFX_BOX_FORM_YOLOV10] = {"end-to-end", "yolov10 yolo26 end-to-end", "1 x boxes x 6", 6, 0,
                              false, 0, false, score_in_row, corners_as_written, 0, 0},
    [RFX_BOX_FORM_YUNET] = {"YuNet", "yunet", "1 x cells of strides 8, 16 and 32 x 16",
                            YUNET_CHANNELS, 1, false, RFX_BOX_POINTS, true, score_of_yunet,
                            corners_of_yunet, 0, 0},
    [RFX_BOX_FORM_RFB] = {"RFB", "rfb", "1 x candidates x 6, of an image of known size",
                          RFB_CHANNELS, 1, false, 0, true, score_of_rfb, corners_of_rfb, 0, 0},
    [RFX_BOX_FORM_POSE] = {"YOLOv8", "yolov8-pose yolov11-pose yolo11-pose",
                           "1 x (4 + classes + 3 points) x candidates", 4, 1, true, 0, false,
                           score_by_class, corners_of_centre, 3, 0},
    [RFX_BOX_FORM_POSE_XY] = {"YOLOv8", "yolov8-pose-xy yolov11-pose-xy yolo11-pose-xy",
                              "1 x (4 + classes + 2 points) x candidates", 4, 1, true, 0, false,
                              score_by_class, corners_of_centre, 2, 0},
    [RFX_BOX_FORM_SEG] = {"YOLOv8", "yolov8-seg yolov9-seg yolov11-seg yolo11-seg",
                          "1 x (4 + classes + coefficients) x candidates", 4, 1, true, 0, false,
                          score_by_class, corners_of_centre, 1, 0},
    [RFX_BOX_FORM_YOLOV8_OBB] = {"YOLOv8 OBB",
                                 "yolov8-obb yolov9-obb yolov11-obb yolo11-obb yolov12-obb "
                                 "yolo12-obb",
                                 "1 x (4 + classes + 1) x candidates", 4, 1, true, 0, false,
                                 score_by_class, corners_of_centre, 0, 1},
    [RFX_BOX_FORM_YOLO26_POSE] = {"end-to-end", "yolo26-pose", "1 x boxes x (6 + 3 points)", 6, 0,
                                  false, 0, false, score_in_row, corners_as_written, 3, 0},
    [RFX_BOX_FORM_YOLO26_POSE_XY] = {"end-to-end", "yolo26-pose-xy", "1 x boxes x (6 + 2 points)",
                                     6, 0, false, 0, false, score_in_row, corners_as_written, 2, 0},
    [RFX_BOX_FORM_YOLO26_SEG] = {"end-to-end", "yolo26-seg", "1 x boxes x (6 + coefficients)", 6, 0,
                                 false, 0, false, score_in_row, corners_as_written, 1, 0},
    [RFX_BOX_FORM_YOLO26_OBB] = {"end-to-end OBB", "yolo26-obb", "1 x boxes x 7", 6, 0, false, 0,
                                 false, score_in_row, corners_of_centre, 0, 1},
};
_Static_assert(sizeof forms / sizeof *forms == 15, "a row for each form");

/* ---- candidates ---- */

bool rfx_box_head_take(const struct rfx_box_head *head, const float *channels, int64_t index,
                       float threshold, struct rfx_box *box) {
    struct rfx_box found = {.index = index};
    if (!forms[head->form].score(head, channels, threshold, &found.score, &found.label))
        return false;
    forms[head->form].corners(head, channels, index, found.corner);
    *box = found;
    return true;
}

const float *rfx_box_head_numbers(const struct rfx_box_head *head, const float *channels,
                                  int64_t index, float points[2 * RFX_BOX_POINTS]) {
    if (head->form != RFX_BOX_FORM_YUNET) return channels + forms[head->form].fixed + head->classes;
    struct cell cell = yunet_cell(head, index);
    for (int i = 0; i < 2 * head->points; i++)
        points[i] = (channels[YUNET_POINTS + i] + cell.at[i % 2]) * cell.stride;
    return points;
}

struct rfx_oriented_box rfx_box_head_orient(const struct rfx_box_head *head, const float *channels,
                                            const struct rfx_box *box) {
    return (struct rfx_oriented_box){.centre = {channels[0], channels[1]},
                                     .side = {channels[2], channels[3]},
                                     .angle = channels[head->channels - 1],
                                     .score = box->score,
                                     .label = box->label,
                                     .index = box->index};
}

void rfx_box_head_describe(const struct rfx_detector *detector, struct rfx_box_head *head) {
    bool points = detector->places[RFX_DETECTOR_POINTS].output >= 0;
    long long classes = (long long)detector->places[RFX_DETECTOR_SCORES].n;
    *head = (struct rfx_box_head){.form = RFX_BOX_FORM_COUNT,
                                  .channel_axis = 2,
                                  .channels = detector->most_anchors * detector->channels,
                                  .classes = classes,
                                  .suppress = detector->decode != RFX_DETECTOR_CENTERNET,
                                  .points = points ? RFX_BOX_POINTS : 0,
                                  .point_values = 2,
                                  .image_h = detector->image_h,
                                  .image_w = detector->image_w,
                                  .detector = detector};
    for (int l = 0; l < detector->n_levels; l++)
        head->candidates += detector->levels[l].h * detector->levels[l].w;
    (void)snprintf(head->words, sizeof head->words, "head %s, %lld class%s, %d level%s%s",
                   detector->name, classes, classes == 1 ? "" : "es", detector->n_levels,
                   detector->n_levels == 1 ? "" : "s", points ? ", 5 points" : "");
}

/* ---- recognition ---- */

static bool is_one_of(const char *names, const char *name) {
    size_t length = strcspn(name, " ");
    if (name[length] != '\0') return false;
    for (const char *at = names; length > 0 && at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncasecmp(at, name, length) == 0 && (at[length] == ' ' || at[length] == '\0'))
            return true;
    }
    return false;
}

static int form_of_name(const char *name) {
    int which = 0;
    while (which < RFX_BOX_FORM_COUNT && !is_one_of(forms[which].names, name)) which++;
    return which;
}

/* Levels of usual detectors: strides first, 2 first, ... */
static const struct { int first, n; } pyramids[] = {{8, 3}, {8, 4}, {4, 4}, {16, 2}};

/* Returns the cells of all levels of an image, or -1 if its size is not known or they do not fit.
 */
static int64_t cells_of(const struct rfx_box_output *output, int first_stride, int n_levels) {
    int64_t sum = 0, cells = 0;
    if (output->image_h <= 0 || output->image_w <= 0) return -1;
    for (int level = 0; level < n_levels; level++) {
        int64_t stride = (int64_t)first_stride << level;
        if (!rfx_checked_mul_i64(rfx_ceil_div(output->image_h, stride),
                                 rfx_ceil_div(output->image_w, stride), &cells) ||
            !rfx_checked_add_i64(sum, cells, &sum))
            return -1;
    }
    return sum;
}

/* Returns the number of levels if `n` candidates are `per_cell` for each cell of a usual detector
 * on the image, else 0. */
static int levels_of(const struct rfx_box_output *output, int64_t n, int per_cell) {
    if (per_cell == 0 || n % per_cell != 0) return 0;
    for (size_t p = 0; p < sizeof pyramids / sizeof *pyramids; p++)
        if (n / per_cell == cells_of(output, pyramids[p].first, pyramids[p].n))
            return pyramids[p].n;
    return 0;
}

/* Whether the length of an axis is a number of candidates, of any form. */
static bool is_counted(const struct rfx_box_output *output, int axis) {
    return levels_of(output, output->dims[axis], 1) > 0 ||
           levels_of(output, output->dims[axis], 3) > 0;
}

static int64_t fewest_channels(const struct form *form, int64_t classes) {
    if (form->per_cell == 0 || form->named) return form->fixed + form->behind + form->angles;
    return form->fixed + rfx_max_i64(classes, 1) + form->behind + form->angles;
}

/* Returns the classes of so many channels, of a form with numbers behind the classes. A box that
 * the network has chosen has its label instead. */
static int64_t classes_before(const struct form *form, int64_t channels, int64_t known) {
    if (form->per_cell == 0) return 0;
    if (known > 0 || form->behind > 1) return rfx_max_i64(known, 1);
    return channels - form->fixed - RFX_BOX_USUAL_COEFFICIENTS;
}

/* Whether what is behind the classes are whole points, or coefficients, and not too many. */
static bool holds_numbers(const struct form *form, int64_t channels, int64_t known) {
    int64_t classes = classes_before(form, channels, known);
    int64_t numbers = channels - form->fixed - classes;
    return (classes > 0 || form->per_cell == 0) && numbers > 0 && numbers <= RFX_BOX_MOST_EXTRAS &&
           numbers % form->behind == 0;
}

/* Whether the channels of the form can be those of `axis`, whatever their number of candidates. */
static bool holds_channels(const struct form *form, const struct rfx_box_output *output, int axis) {
    if (form->named && output->dims[axis] != form->fixed) return false;
    if (form->behind > 0 && !holds_numbers(form, output->dims[axis], output->classes)) return false;
    return (axis == 2 || form->either_axis) && output->dims[axis] <= INT32_MAX &&
           output->dims[axis] >= fewest_channels(form, output->classes);
}

static bool looks_chosen(const struct rfx_box_output *output) {
    return output->dims[2] == 6 && (output->dims[1] == 100 || output->dims[1] == 300);
}

/* Whether an output without a name can be of the form, with its channels on `axis`. */
static bool fits(enum rfx_box_form which, const struct rfx_box_output *output, int axis) {
    const struct form *form = &forms[which];
    int64_t channels = output->dims[axis], n = output->dims[3 - axis];
    bool counted = is_counted(output, 1) || is_counted(output, 2);
    if (form->named || form->behind > 0 || form->angles > 0) return false; /* asked for by name */
    if (!holds_channels(form, output, axis)) return false;
    if (which == RFX_BOX_FORM_YOLOV10)
        return channels == form->fixed && (looks_chosen(output) || (!counted && n > channels));
    if (counted ? levels_of(output, n, form->per_cell) == 0 : n <= channels || looks_chosen(output))
        return false;
    /* YOLOv7 differs from YOLOv5 with one class only. */
    if (which == RFX_BOX_FORM_YOLOV7)
        return output->classes == 1 || channels == fewest_channels(form, 1);
    /* Further channels behind the classes would make it fit together with another form. */
    bool exact = which == RFX_BOX_FORM_YOLOX || (which == RFX_BOX_FORM_YOLOV8 && axis == 2);
    return !exact || output->classes <= 0 || channels == form->fixed + output->classes;
}

static void write_words(const struct form *form, const struct rfx_box_output *output,
                        struct rfx_box_head *head) {
    char levels[32] = "", others[48] = "";
    int n_levels = levels_of(output, head->candidates, form->per_cell);
    int64_t further = form->named ? 0 : head->channels - form->fixed - head->classes - form->angles;
    if (form->behind > 0) further = 0;
    if (head->points > 0)
        (void)snprintf(others, sizeof others, ", %d point%s%s", head->points,
                       head->points == 1 ? "" : "s", head->point_values == 3 ? " with scores" : "");
    if (head->coefficients > 0)
        (void)snprintf(others, sizeof others, ", masks of %d prototype%s", head->coefficients,
                       head->coefficients == 1 ? "" : "s");
    if (n_levels > 0) (void)snprintf(levels, sizeof levels, ", %d levels", n_levels);
    if (further > 0)
        (void)snprintf(others, sizeof others, ", %lld further channel%s not used",
                       (long long)further, further == 1 ? "" : "s");
    if (form->per_cell == 0)
        (void)snprintf(head->words, sizeof head->words, "%s head, %lld boxes%s", form->title,
                       (long long)head->candidates, others);
    else
        (void)snprintf(head->words, sizeof head->words, "%s head, %lld class%s%s%s", form->title,
                       (long long)head->classes, head->classes == 1 ? "" : "es", levels, others);
}

/* Sets the classes and what is behind them. */
static void set_numbers(const struct form *form, int64_t known, struct rfx_box_head *head) {
    head->classes = classes_before(form, head->channels, known);
    int numbers = (int)(head->channels - form->fixed - head->classes);
    if (form->behind == 1) {
        head->coefficients = numbers;
    } else {
        head->points = numbers / form->behind;
        head->point_values = form->behind;
    }
}

static void set_head(enum rfx_box_form which, const struct rfx_box_output *output, int axis,
                     struct rfx_box_head *head) {
    const struct form *form = &forms[which];
    struct rfx_box_head found = {.form = which,
                                 .channel_axis = axis,
                                 .channels = output->dims[axis],
                                 .candidates = output->dims[3 - axis],
                                 .suppress = form->per_cell != 0,
                                 .oriented = form->angles > 0,
                                 .points = form->points,
                                 .point_values = 2,
                                 .image_h = output->image_h,
                                 .image_w = output->image_w};
    if (form->named)
        found.classes = 1;
    else if (form->behind > 0)
        set_numbers(form, output->classes, &found);
    else if (form->per_cell != 0)
        found.classes =
            output->classes > 0 ? output->classes : found.channels - form->fixed - form->angles;
    write_words(form, output, &found);
    *head = found;
}

enum { LIST = 240 };

/* Appends "name" or ", name" with the first name of a form. */
static void append_name(char list[LIST], enum rfx_box_form which) {
    size_t used = strlen(list);
    int length = (int)strcspn(forms[which].names, " ");
    (void)snprintf(list + used, LIST - used, "%s%.*s", used > 0 ? ", " : "", length,
                   forms[which].names);
}

static void write_shape(const struct rfx_box_output *output, char text[LIST]) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < output->rank && used < LIST; i++)
        used += (size_t)snprintf(text + used, LIST - used, "%s%lld", i > 0 ? "x" : "",
                                 (long long)output->dims[i]);
}

/* Whether an output can be of the form that its name says, with its channels on `axis`. */
static bool fits_named(const struct form *form, const struct rfx_box_output *output, int axis) {
    int64_t channels = output->dims[axis], n = output->dims[3 - axis];
    if (!holds_channels(form, output, axis)) return false;
    if (form->points > 0) return n == cells_of(output, YUNET_STRIDE, YUNET_LEVELS);
    if (form->named) return output->image_h > 0 && output->image_w > 0;
    if (form->per_cell == 0) return form->angles == 0 || channels == form->fixed + form->angles;
    if (levels_of(output, n, form->per_cell) > 0) return true;
    if (!form->either_axis) return !is_counted(output, axis); /* those are candidates too */
    if (levels_of(output, channels, form->per_cell) > 0) return false; /* those are candidates */
    return n >= channels || channels == form->fixed + output->classes + form->angles;
}

static enum rfx_status find_named(const struct rfx_box_output *output, const char *shape,
                                  struct rfx_box_head *head, struct rfx_error *err) {
    int which = form_of_name(output->name);
    char list[LIST] = "";
    if (which == RFX_BOX_FORM_COUNT) {
        for (int i = 0; i < RFX_BOX_FORM_COUNT; i++) append_name(list, (enum rfx_box_form)i);
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "boxes: head '%.60s' is not known; there are %s, " RFX_BOX_CENTERNET,
                        output->name, list);
    }
    for (int axis = 1; axis <= 2; axis++) {
        if (!fits_named(&forms[which], output, axis)) continue;
        set_head((enum rfx_box_form)which, output, axis, head);
        return RFX_OK;
    }
    if (output->classes > 0)
        (void)snprintf(list, sizeof list, " and %lld classes", (long long)output->classes);
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "boxes: a head '%.60s' has the shape %s; the output has %s%s", output->name,
                    forms[which].shape, shape, list);
}

static enum rfx_status find_by_shape(const struct rfx_box_output *output, const char *shape,
                                     struct rfx_box_head *head, struct rfx_error *err) {
    char names[LIST] = "";
    int n = 0, form = 0, channel_axis = 0;
    for (int which = 0; which < RFX_BOX_FORM_COUNT; which++) {
        bool first = fits((enum rfx_box_form)which, output, 1);
        bool last = fits((enum rfx_box_form)which, output, 2);
        if (!first && !last) continue;
        append_name(names, (enum rfx_box_form)which);
        form = which;
        channel_axis = first ? 1 : 2;
        n += first + last;
    }
    if (n > 1)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "boxes: an output of shape %s can have several heads or orders (%s): give "
                        "the name of the head",
                        shape, names);
    if (n == 0) {
        for (int i = 0; i < RFX_BOX_FORM_COUNT; i++) append_name(names, (enum rfx_box_form)i);
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "boxes: an output of shape %s has no known head; known are %s", shape,
                        names);
    }
    set_head((enum rfx_box_form)form, output, channel_axis, head);
    return RFX_OK;
}

enum rfx_status rfx_box_head_find(const struct rfx_box_output *output, struct rfx_box_head *head,
                                  struct rfx_error *err) {
    char shape[LIST];
    write_shape(output, shape);
    if (output->name != NULL && strcasecmp(output->name, RFX_BOX_CENTERNET) == 0)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "boxes: " RFX_BOX_NO_CENTERNET "; the output has the shape %s", shape);
    bool empty = output->name != NULL && output->rank == 3 && output->dims[1] == 0; /* no boxes */
    if (output->rank != 3 || output->dims[0] != 1 || (output->dims[1] < 1 && !empty) ||
        output->dims[2] < 1)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "boxes: the output has the shape %s; heads of detectors have three "
                        "dimensions, the first of which is 1",
                        output->rank > 0 ? shape : "of a single number");
    return output->name != NULL ? find_named(output, shape, head, err)
                                : find_by_shape(output, shape, head, err);
}
