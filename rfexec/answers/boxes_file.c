/* Takes candidates from pieces and writes boxes; see boxes_file.h. */
#include "rfexec/answers/boxes_file.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/box_extras.h"
#include "rfexec/answers/box_head.h"
#include "rfexec/answers/box_masks.h"
#include "rfexec/answers/detector_boxes.h"
#include "rfexec/answers/mask_text.h"
#include "rfexec/answers/oriented_text.h"
#include "rfexec/output/head_file.h"

struct rfx_boxes_file {
    struct rfx_memory *mem;
    struct rfx_answer_text text;
    struct rfx_box_head head;
    struct rfx_answer_options options; /* without borrowed members */
    enum rfx_answer_form form;
    struct rfx_boxes *boxes;
    struct rfx_oriented_boxes *oriented; /* instead of `boxes`, if the head's boxes have an angle */
    struct rfx_box_extras *extras;       /* points or coefficients; NULL: the file has none */
    struct rfx_box_masks *masks;         /* NULL: the file has none */
    int prototypes;                      /* output of which the masks are made; -1: none */
    float *channels;                     /* of one candidate */
    float least;                         /* of rfx_detector_least, for a described head */
    bool own_pixels;                     /* coordinates are the network's own numbers */
};

/* Distance of a candidate's values in the output, and of the first values of two candidates. */
static void steps_of(const struct rfx_box_head *head, int64_t *channel, int64_t *candidate) {
    bool first = head->channel_axis == 1;
    *channel = first ? head->candidates : 1;
    *candidate = first ? 1 : head->channels;
}

/* Whether each pixel of a piece with so many channels has all values of a candidate or, where these
 * follow each other, of several candidates. */
static bool has_candidates(const struct rfx_box_head *head, int64_t channels,
                           int64_t channel_step) {
    int64_t channel, candidate;
    steps_of(head, &channel, &candidate);
    bool several = channel == 1 && channels > 0 && channels % head->channels == 0;
    return (channels == head->channels || several) && channel_step == channel;
}

/* Whether a piece with so many channels is the whole output. */
static bool is_whole(const struct rfx_box_head *head, int64_t channels) {
    return channels / head->channels == head->candidates && channels % head->channels == 0;
}

/* Name of the head: the one whose outputs were joined, else the user's; NULL: by shape. */
static const char *name_of(const struct rfx_output_format *format) {
    return format->stored.head != NULL ? format->stored.head : format->answer.head;
}

static enum rfx_status find_head(const struct rfx_output_format *format,
                                 const struct rfx_tensor *tensor, struct rfx_box_head *head,
                                 struct rfx_error *err) {
    const struct rfx_stored *stored = &format->stored;
    if (stored->detector != NULL) {
        rfx_box_head_describe(stored->detector, head);
        return RFX_OK;
    }
    const struct rfx_shape *shape = stored->reshaped ? &stored->shape : &tensor->shape;
    const struct rfx_box_output output = {.rank = shape->rank,
                                          .dims = shape->dims,
                                          .image_h = format->cells.image_h,
                                          .image_w = format->cells.image_w,
                                          .classes = format->answer.classes,
                                          .name = name_of(format)};
    return rfx_box_head_find(&output, head, err);
}

static int64_t most_of(const struct rfx_answer_options *options) {
    return options->most_boxes > 0 ? options->most_boxes : RFX_ANSWER_BOXES;
}

/* Whether the file has the masks of boxes: CSV has none. */
static bool has_masks(const struct rfx_output_format *format, const struct rfx_box_head *head) {
    return head->coefficients > 0 && format->kind != &rfx_output_csv &&
           format->kind != &rfx_output_boxes_csv;
}

/* Returns how many numbers of a candidate the file needs besides its box. */
static int64_t extras_of(const struct rfx_output_format *format, const struct rfx_box_head *head) {
    return head->coefficients > 0 && !has_masks(format, head) ? 0 : rfx_box_head_extras(head);
}

static enum rfx_status check_prototypes(const struct rfx_output_format *format,
                                        const struct rfx_box_head *head, const char *path,
                                        struct rfx_error *err) {
    const struct rfx_answer_prototypes *of = &format->prototypes;
    if (!of->known)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: boxes: masks are made of the prototypes of a second output, a map of "
                        "a pixel for each %d x %d of the image: there is none, or it does not come "
                        "to this file (parts, merge, -o); .csv files have boxes without masks",
                        path, RFX_ANSWER_PROTOTYPE_STRIDE, RFX_ANSWER_PROTOTYPE_STRIDE);
    if (of->map.c == head->coefficients) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "%s: boxes: the head has %d coefficients of masks, and output %d has %" PRId64
                    " prototypes: give the number of classes (--class-count)",
                    path, head->coefficients, of->output + 1, of->map.c);
}

enum rfx_status rfx_boxes_file_check(const struct rfx_output_format *format,
                                     const struct rfx_tensor *tensor, const char *path,
                                     struct rfx_error *err) {
    struct rfx_box_head head;
    double overlap = format->answer.overlap;
    if (!(overlap >= 0.0 && overlap <= 1.0))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: boxes may overlap by a share of 0 to 1, not %g", path, overlap);
    const char *joined = format->stored.head, *asked = format->answer.head;
    if (asked != NULL && rfx_head_is_file(asked) && format->stored.detector == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: boxes: no head file has joined this output; '%.100s' must be given "
                        "when the network is loaded",
                        path, asked);
    if (joined != NULL && asked != NULL && !rfx_head_is_file(asked) &&
        strcasecmp(joined, asked) != 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: boxes: the outputs are those of a head '%s', not '%.60s'", path,
                        joined, asked);
    enum rfx_status status = find_head(format, tensor, &head, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "%s", path);
    if (head.oriented && format->answer.soft)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: boxes with an angle are dropped, their scores are not lowered "
                        "(--soft-nms)",
                        path);
    if (has_masks(format, &head)) status = check_prototypes(format, &head, path, err);
    if (status != RFX_OK) return status;
    const struct rfx_answer_cells *cells = &format->cells;
    if (is_whole(&head, cells->channels) ||
        has_candidates(&head, cells->channels, cells->channel_step))
        return RFX_OK;
    return rfx_fail(
        err, RFX_STATUS_UNSUPPORTED,
        "%s: boxes: the %" PRId64
        " values of a candidate, on axis %d of the output, must come from one map; each "
        "map has %" PRId64,
        path, head.channels, head.channel_axis, cells->channels);
}

size_t rfx_boxes_file_bytes(const struct rfx_output_format *format,
                            const struct rfx_tensor *tensor) {
    int64_t most = most_of(&format->answer);
    struct rfx_box_head head;
    if (find_head(format, tensor, &head, NULL) != RFX_OK) return 0; /* opening the file will fail */
    int64_t extras = extras_of(format, &head);
    size_t bytes = extras > 0 ? rfx_box_extras_bytes(most, extras) : 0;
    if (has_masks(format, &head)) {
        bytes += rfx_box_masks_bytes(&format->prototypes);
        if (format->kind == &rfx_output_geojson || format->kind == &rfx_output_boxes_geojson)
            bytes += rfx_mask_polygon_bytes(&format->prototypes, format->answer.most_bytes);
    }
    return bytes + sizeof(struct rfx_boxes_file) + rfx_answer_text_bytes(&format->answer) +
           (size_t)head.channels * sizeof(float) +
           (head.oriented ? rfx_oriented_boxes_bytes(most) : rfx_boxes_bytes(most));
}

enum rfx_status rfx_boxes_file_open(struct rfx_memory *mem, const char *path,
                                    const struct rfx_output_format *format,
                                    const struct rfx_tensor *tensor, enum rfx_answer_form form,
                                    struct rfx_boxes_file **out, struct rfx_error *err) {
    struct rfx_boxes_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    file->prototypes = format->prototypes.known ? format->prototypes.output : -1;
    file->options = format->answer;
    file->options.head = file->options.names = NULL;
    file->options.thresholds = NULL;
    file->form = form;
    enum rfx_status status = find_head(format, tensor, &file->head, err);
    size_t bytes = (size_t)file->head.channels * sizeof *file->channels;
    if (status == RFX_OK)
        status = rfx_answer_text_open(&file->text, mem, path, &format->answer, &format->place,
                                      format->geo, err);
    if (status == RFX_OK && file->head.detector != NULL)
        file->least = rfx_detector_least(file->head.detector, file->options.score);
    file->own_pixels = rfx_answer_own_pixels(&file->text);
    if (status == RFX_OK && file->head.oriented)
        status = rfx_oriented_boxes_create(mem, most_of(&format->answer), &file->oriented, err);
    if (status == RFX_OK && !file->head.oriented)
        status = rfx_boxes_create(mem, most_of(&format->answer), &file->boxes, err);
    int64_t extras = extras_of(format, &file->head);
    if (status == RFX_OK && extras > 0)
        status = rfx_box_extras_create(mem, most_of(&format->answer), extras, &file->extras, err);
    if (status == RFX_OK && has_masks(format, &file->head))
        status = rfx_box_masks_create(mem, path, &format->prototypes, &file->masks, err);
    if (status == RFX_OK) {
        file->channels = rfx_memory_alloc(mem, bytes);
        if (file->channels == NULL) status = rfx_memory_fail(mem, "a candidate", bytes, err);
    }
    if (status != RFX_OK) {
        rfx_boxes_file_free(file);
        return status;
    }
    *out = file;
    return RFX_OK;
}

static enum rfx_status add_box(void *context, const struct rfx_box *box, const float *numbers,
                               struct rfx_error *err) {
    struct rfx_boxes_file *file = context;
    enum rfx_status status = rfx_boxes_add(file->boxes, box, err);
    if (status == RFX_OK && numbers != NULL) rfx_box_extras_add(file->extras, box->index, numbers);
    return status;
}

/* Takes the candidate or, of a described head, the cell with this number. */
static enum rfx_status take_one(struct rfx_boxes_file *file, const float *channels, int64_t index,
                                struct rfx_error *err) {
    float points[2 * RFX_BOX_POINTS];
    const struct rfx_box_head *head = &file->head;
    struct rfx_box box;
    if (head->detector != NULL)
        return rfx_detector_cell(head->detector, index, channels, file->options.score, file->least,
                                 add_box, file, err);
    if (!rfx_box_head_take(head, channels, index, file->options.score, &box)) return RFX_OK;
    if (head->oriented) {
        const struct rfx_oriented_box oriented = rfx_box_head_orient(head, channels, &box);
        return rfx_oriented_boxes_add(file->oriented, &oriented, err);
    }
    if (file->extras == NULL) return add_box(file, &box, NULL, err);
    return add_box(file, &box, rfx_box_head_numbers(head, channels, index, points), err);
}

/* Takes the candidates of a whole output in ONNX order. */
static enum rfx_status take_whole(struct rfx_boxes_file *file, const struct rfx_view *view,
                                  struct rfx_error *err) {
    const struct rfx_box_head *head = &file->head;
    const unsigned char *all = rfx_view_at(view, view->rect.y0, view->rect.x0);
    int64_t channel, candidate;
    enum rfx_status status = RFX_OK;
    steps_of(head, &channel, &candidate);
    for (int64_t i = 0; i < head->candidates && status == RFX_OK; i++) {
        const void *from = all + (size_t)(i * candidate) * rfx_type_bytes(view->type);
        rfx_type_gather(view->type, from, channel, head->channels, RFX_TYPE_FLOAT32,
                        file->channels);
        status = take_one(file, file->channels, i, err);
    }
    return status;
}

/* Takes the candidates of a pixel, which has so many channels; `index`: number of the first one. */
static enum rfx_status take_pixel(struct rfx_boxes_file *file, const struct rfx_view *view,
                                  int64_t y, int64_t x, int64_t channels, int64_t index,
                                  struct rfx_error *err) {
    const unsigned char *pixel = rfx_view_at(view, y, x);
    int64_t n = file->head.channels;
    enum rfx_status status = RFX_OK;
    for (int64_t c = 0; c < channels && status == RFX_OK; c += n) {
        rfx_type_gather(view->type, pixel + (size_t)c * rfx_type_bytes(view->type), 1, n,
                        RFX_TYPE_FLOAT32, file->channels);
        status = take_one(file, file->channels, index++, err);
    }
    return status;
}

enum rfx_status rfx_boxes_file_take(struct rfx_boxes_file *file, const struct rfx_end *end,
                                    struct rfx_rect rect, const struct rfx_view *view,
                                    struct rfx_error *err) {
    const struct rfx_box_head *head = &file->head;
    int64_t channel, candidate;
    enum rfx_status status = RFX_OK;
    if (end->output == file->prototypes)
        return file->masks != NULL ? rfx_box_masks_take(file->masks, rect, view, err) : RFX_OK;
    if (is_whole(head, end->channels)) return take_whole(file, view, err);
    if (!has_candidates(head, end->channels, end->at.channel_step))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "boxes: a piece of %" PRId64 " channels, where a candidate has %" PRId64,
                        end->channels, head->channels);
    steps_of(head, &channel, &candidate);
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y++)
        for (int64_t x = rect.x0; x < rect.x1 && status == RFX_OK; x++) {
            int64_t at = end->at.first + y * end->at.row_step + x * end->at.column_step;
            status = take_pixel(file, view, y, x, end->channels, at / candidate, err);
        }
    return status;
}

/* Appends the two coordinates of a corner of a box. */
static void put_corner(struct rfx_boxes_file *file, float x, float y) {
    if (!file->own_pixels) {
        rfx_answer_point(&file->text, (double)x, (double)y);
        return;
    }
    rfx_answer_float(&file->text, x);
    rfx_answer_put(&file->text, ",");
    rfx_answer_float(&file->text, y);
}

static void put_corners(struct rfx_boxes_file *file, const struct rfx_box *box) {
    put_corner(file, box->corner[0], box->corner[1]);
    rfx_answer_put(&file->text, ",");
    put_corner(file, box->corner[2], box->corner[3]);
}

/* Returns the points of a box, or the coefficients of its mask. */
static const float *numbers_of(const struct rfx_boxes_file *file, const struct rfx_box *box) {
    return rfx_box_extras_find(file->extras, box->index);
}

/* Appends the points of a box, each between `begin` and `end`, with `between` between them. */
static void put_points(struct rfx_boxes_file *file, const struct rfx_box *box, const char *begin,
                       const char *between, const char *end) {
    const float *point = numbers_of(file, box);
    for (int i = 0; i < file->head.points; i++, point += file->head.point_values) {
        rfx_answer_put(&file->text, "%s%s", i > 0 ? between : "", begin);
        put_corner(file, point[0], point[1]);
        if (file->head.point_values == 3) {
            rfx_answer_put(&file->text, ",");
            rfx_answer_float(&file->text, point[2]);
        }
        rfx_answer_put(&file->text, "%s", end);
    }
}

/* Appends the points of a box as COCO's results: x, y and the point's score, or 1, of each. */
static void put_keypoints(struct rfx_boxes_file *file, const struct rfx_box *box) {
    rfx_answer_put(&file->text, ",\"keypoints\":[");
    put_points(file, box, "", ",", file->head.point_values == 3 ? "" : ",1");
    rfx_answer_put(&file->text, "]");
}

static enum rfx_status put_json(struct rfx_boxes_file *file, const struct rfx_box *box,
                                struct rfx_error *err) {
    struct rfx_answer_text *text = &file->text;
    enum rfx_status status = RFX_OK;
    rfx_answer_put(text, "{\"box\":[");
    put_corners(file, box);
    rfx_answer_put(text, "],\"score\":");
    rfx_answer_float(text, box->score);
    rfx_answer_put(text, ",");
    rfx_answer_class_json(text, box->label);
    if (file->head.points > 0) {
        rfx_answer_put(text, ",\"points\":[");
        put_points(file, box, "[", ",", "]");
        rfx_answer_put(text, "]");
    }
    if (file->masks != NULL) {
        rfx_answer_put(text, ",\"mask\":");
        status = rfx_mask_put_runs(text, file->masks, box, numbers_of(file, box), false, err);
    }
    rfx_answer_put(text, ",\"index\":%" PRId64 "}", box->index);
    return status;
}

/* COCO's boxes are left, top, width and height. */
static enum rfx_status put_coco(struct rfx_boxes_file *file, const struct rfx_box *box,
                                struct rfx_error *err) {
    struct rfx_answer_text *text = &file->text;
    enum rfx_status status = RFX_OK;
    const double w = (double)box->corner[2] - (double)box->corner[0],
                 h = (double)box->corner[3] - (double)box->corner[1];
    rfx_answer_put(text, "{\"image_id\":0,\"category_id\":%" PRId32 ",\"bbox\":[", box->label);
    put_corner(file, box->corner[0], box->corner[1]);
    rfx_answer_put(text, ",");
    rfx_answer_number(text, w);
    rfx_answer_put(text, ",");
    rfx_answer_number(text, h);
    rfx_answer_put(text, "],\"score\":");
    rfx_answer_float(text, box->score);
    if (file->head.points > 0) put_keypoints(file, box);
    if (file->masks != NULL) {
        rfx_answer_put(text, ",\"segmentation\":");
        status = rfx_mask_put_runs(text, file->masks, box, numbers_of(file, box), true, err);
    }
    rfx_answer_put(text, "}");
    return status;
}

static void put_rectangle(struct rfx_boxes_file *file, const struct rfx_box *box) {
    static const int around[5][2] = {{0, 1}, {2, 1}, {2, 3}, {0, 3}, {0, 1}};
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text, "{\"type\":\"Polygon\",\"coordinates\":[[");
    for (int i = 0; i < 5; i++) {
        const int *corner = around[text->mirrored ? 4 - i : i];
        rfx_answer_put(text, i > 0 ? ",[" : "[");
        put_corner(file, box->corner[corner[0]], box->corner[corner[1]]);
        rfx_answer_put(text, "]");
    }
    rfx_answer_put(text, "]]}");
}

static enum rfx_status put_feature(struct rfx_boxes_file *file, const struct rfx_box *box,
                                   struct rfx_error *err) {
    struct rfx_answer_text *text = &file->text;
    enum rfx_status status = RFX_OK;
    rfx_answer_put(text, "{\"type\":\"Feature\",\"geometry\":");
    if (file->masks == NULL)
        put_rectangle(file, box);
    else
        status = rfx_mask_put_polygons(text, file->masks, box, numbers_of(file, box),
                                       file->options.most_bytes, err);
    rfx_answer_properties(text, "detection", box->label);
    rfx_answer_put(text, ",\"score\":");
    rfx_answer_float(text, box->score);
    rfx_answer_put(text, "}}");
    return status;
}

static void put_line(struct rfx_boxes_file *file, const struct rfx_box *box) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_class_csv(text, box->label);
    rfx_answer_float(text, box->score);
    rfx_answer_put(text, ",");
    put_corners(file, box);
    if (file->head.points > 0) put_points(file, box, ",", "", "");
    rfx_answer_put(text, "\n");
}

static void put_header(struct rfx_boxes_file *file) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text, "label,name,score,left,top,right,bottom");
    for (int i = 1; i <= file->head.points; i++) {
        rfx_answer_put(text, ",x%d,y%d", i, i);
        if (file->head.point_values == 3) rfx_answer_put(text, ",score%d", i);
    }
    rfx_answer_put(text, "\n");
}

static void put_oriented(struct rfx_boxes_file *file) {
    int64_t n;
    const struct rfx_oriented_box *list = rfx_oriented_boxes_list(file->oriented, &n);
    rfx_oriented_begin(&file->text, file->form, file->head.words);
    for (int64_t i = 0; i < n && file->text.status == RFX_OK; i++)
        rfx_oriented_put(&file->text, file->form, &list[i], i);
    rfx_answer_boxes_end(&file->text, file->form);
}

static enum rfx_status put_box(struct rfx_boxes_file *file, const struct rfx_box *box,
                               struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    if (file->form == RFX_ANSWER_CSV) put_line(file, box);
    if (file->form == RFX_ANSWER_COCO) status = put_coco(file, box, err);
    if (file->form == RFX_ANSWER_GEOJSON) status = put_feature(file, box, err);
    if (file->form == RFX_ANSWER_JSON) status = put_json(file, box, err);
    if (status == RFX_OK) return rfx_answer_text_status(&file->text, err);
    if (status == RFX_STATUS_BUDGET_IMPOSSIBLE) /* of the polygons of label_regions.h */
        return rfx_fail_within(err, status, "--answer-memory %zu, mask of candidate %" PRId64,
                               file->options.most_bytes, box->index);
    return rfx_fail_within(err, status, "mask of candidate %" PRId64, box->index);
}

static enum rfx_status put_all(struct rfx_boxes_file *file, struct rfx_error *err) {
    struct rfx_answer_text *text = &file->text;
    int64_t n;
    enum rfx_status status = RFX_OK;
    const struct rfx_box *list = rfx_boxes_list(file->boxes, &n);
    if (file->form == RFX_ANSWER_CSV) put_header(file);
    rfx_answer_boxes_begin(text, file->form, file->head.words);
    for (int64_t i = 0; i < n && status == RFX_OK; i++) {
        if (file->form != RFX_ANSWER_CSV) rfx_answer_put(text, i > 0 ? ",\n" : "\n");
        status = put_box(file, &list[i], err);
    }
    rfx_answer_boxes_end(text, file->form);
    return status == RFX_OK ? rfx_answer_text_status(text, err) : status;
}

enum rfx_status rfx_boxes_file_commit(struct rfx_boxes_file *file, struct rfx_error *err) {
    const struct rfx_answer_options *options = &file->options;
    if (file->head.oriented && file->head.suppress)
        rfx_oriented_boxes_suppress(file->oriented, (float)options->overlap, !options->agnostic);
    else if (file->head.oriented)
        rfx_oriented_boxes_sort(file->oriented);
    else if (file->head.suppress && options->soft)
        rfx_boxes_decay(file->boxes, options->score, !options->agnostic);
    else if (file->head.suppress)
        rfx_boxes_suppress(file->boxes, options->overlap, !options->agnostic);
    else
        rfx_boxes_sort(file->boxes);
    if (file->extras != NULL) rfx_box_extras_sort(file->extras);
    enum rfx_status status = RFX_OK;
    if (file->head.oriented)
        put_oriented(file);
    else
        status = put_all(file, err);
    return status == RFX_OK ? rfx_output_file_commit(file->text.file, err) : status;
}

struct rfx_found rfx_boxes_file_found(const struct rfx_boxes_file *file) {
    struct rfx_found found = {.what = "boxes",
                              .head = file->head.words,
                              .names = file->text.names,
                              .n_names = file->text.n_names};
    if (file->head.oriented)
        found.oriented = rfx_oriented_boxes_list(file->oriented, &found.count);
    else
        found.boxes = rfx_boxes_list(file->boxes, &found.count);
    return found;
}

void rfx_boxes_file_free(struct rfx_boxes_file *file) {
    if (file == NULL) return;
    rfx_boxes_free(file->boxes);
    rfx_oriented_boxes_free(file->oriented);
    rfx_box_extras_free(file->extras);
    rfx_box_masks_free(file->masks);
    rfx_memory_release(file->mem, file->channels);
    rfx_answer_text_close(&file->text);
    rfx_memory_release(file->mem, file);
}
