/* Takes candidates from pieces and writes boxes; see boxes_file.h. */
#include "rfexec/answers/boxes_file.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/box_head.h"
#include "rfexec/answers/box_points.h"
#include "rfexec/answers/detector_boxes.h"
#include "rfexec/output/head_file.h"

struct rfx_boxes_file {
    struct rfx_memory *mem;
    struct rfx_answer_text text;
    struct rfx_box_head head;
    struct rfx_answer_options options; /* without borrowed members */
    enum rfx_answer_form form;
    struct rfx_boxes *boxes;
    struct rfx_box_points *points; /* NULL: the head has no landmarks */
    float *channels;               /* of one candidate */
    float least;                   /* of rfx_detector_least, for a described head */
    bool own_pixels;               /* coordinates are the network's own numbers */
};

/* Distance of a candidate's values in the output, and of the first values of two candidates. */
static void steps_of(const struct rfx_box_head *head, int64_t *channel, int64_t *candidate) {
    bool first = head->channel_axis == 1;
    *channel = first ? head->candidates : 1;
    *candidate = first ? 1 : head->channels;
}

/* Whether each pixel of a piece with so many channels has all values of a candidate. */
static bool has_candidates(const struct rfx_box_head *head, int64_t channels,
                           int64_t channel_step) {
    int64_t channel, candidate;
    steps_of(head, &channel, &candidate);
    return channels == head->channels && channel_step == channel;
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
    if (joined != NULL && asked != NULL && format->stored.detector == NULL &&
        strcasecmp(joined, asked) != 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: boxes: the outputs are those of a head '%s', not '%.60s'", path,
                        joined, asked);
    enum rfx_status status = find_head(format, tensor, &head, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "%s", path);
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
    return (head.points > 0 ? rfx_box_points_bytes(most) : 0) + sizeof(struct rfx_boxes_file) +
           rfx_answer_text_bytes(&format->answer) + (size_t)head.channels * sizeof(float) +
           rfx_boxes_bytes(most);
}

enum rfx_status rfx_boxes_file_open(struct rfx_memory *mem, const char *path,
                                    const struct rfx_output_format *format,
                                    const struct rfx_tensor *tensor, enum rfx_answer_form form,
                                    struct rfx_boxes_file **out, struct rfx_error *err) {
    struct rfx_boxes_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    file->options = format->answer;
    file->options.head = file->options.names = NULL;
    file->options.thresholds = NULL;
    file->form = form;
    enum rfx_status status = find_head(format, tensor, &file->head, err);
    size_t bytes = (size_t)file->head.channels * sizeof *file->channels;
    if (status == RFX_OK)
        status = rfx_answer_text_open(&file->text, mem, path, &format->answer, &format->place,
                                      format->geo, err);
    const struct rfx_geo_affine *a = &file->text.affine;
    if (status == RFX_OK && file->head.detector != NULL)
        file->least = rfx_detector_least(file->head.detector, file->options.score);
    file->own_pixels = a->x[0] == 1.0 && a->x[1] == 0.0 && a->x[2] == 0.0 && a->y[0] == 0.0 &&
                       a->y[1] == 1.0 && a->y[2] == 0.0;
    if (status == RFX_OK)
        status = rfx_boxes_create(mem, most_of(&format->answer), &file->boxes, err);
    if (status == RFX_OK && file->head.points > 0)
        status = rfx_box_points_create(mem, most_of(&format->answer), &file->points, err);
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

static enum rfx_status add_box(void *context, const struct rfx_box *box, const float *points,
                               struct rfx_error *err) {
    struct rfx_boxes_file *file = context;
    enum rfx_status status = rfx_boxes_add(file->boxes, box, err);
    if (status == RFX_OK && points != NULL) rfx_box_points_add(file->points, box->index, points);
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
    if (head->points > 0) rfx_box_head_points(head, channels, index, points);
    return add_box(file, &box, head->points > 0 ? points : NULL, err);
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

enum rfx_status rfx_boxes_file_take(struct rfx_boxes_file *file, const struct rfx_end *end,
                                    struct rfx_rect rect, const struct rfx_view *view,
                                    struct rfx_error *err) {
    const struct rfx_box_head *head = &file->head;
    int64_t channel, candidate;
    enum rfx_status status = RFX_OK;
    if (!has_candidates(head, end->channels, end->at.channel_step)) {
        if (is_whole(head, end->channels)) return take_whole(file, view, err);
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "boxes: a piece of %" PRId64 " channels, where a candidate has %" PRId64,
                        end->channels, head->channels);
    }
    steps_of(head, &channel, &candidate);
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y++)
        for (int64_t x = rect.x0; x < rect.x1 && status == RFX_OK; x++) {
            int64_t at = end->at.first + y * end->at.row_step + x * end->at.column_step;
            rfx_type_gather(view->type, rfx_view_at(view, y, x), 1, head->channels,
                            RFX_TYPE_FLOAT32, file->channels);
            status = take_one(file, file->channels, at / candidate, err);
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

/* Appends the landmarks of a box, each between `begin` and `end`, with `between` between them. */
static void put_points(struct rfx_boxes_file *file, const struct rfx_box *box, const char *begin,
                       const char *between, const char *end) {
    const float *points = rfx_box_points_find(file->points, box->index);
    for (int i = 0; points != NULL && i < RFX_BOX_POINTS; i++) {
        rfx_answer_put(&file->text, "%s%s", i > 0 ? between : "", begin);
        put_corner(file, points[2 * i], points[2 * i + 1]);
        rfx_answer_put(&file->text, "%s", end);
    }
}

static void put_json(struct rfx_boxes_file *file, const struct rfx_box *box, const char *name) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text, "{\"box\":[");
    put_corners(file, box);
    rfx_answer_put(text, "],\"score\":");
    rfx_answer_float(text, box->score);
    rfx_answer_put(text, ",\"label\":%" PRId32, box->label);
    if (name != NULL) {
        rfx_answer_put(text, ",\"name\":");
        rfx_answer_json_string(text, name);
    }
    if (file->points != NULL) {
        rfx_answer_put(text, ",\"points\":[");
        put_points(file, box, "[", ",", "]");
        rfx_answer_put(text, "]");
    }
    rfx_answer_put(text, ",\"index\":%" PRId64 "}", box->index);
}

/* COCO's boxes are left, top, width and height. */
static void put_coco(struct rfx_boxes_file *file, const struct rfx_box *box) {
    struct rfx_answer_text *text = &file->text;
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
    rfx_answer_put(text, "}");
}

static void put_feature(struct rfx_boxes_file *file, const struct rfx_box *box, const char *name) {
    static const int around[5][2] = {{0, 1}, {2, 1}, {2, 3}, {0, 3}, {0, 1}};
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text,
                   "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[");
    for (int i = 0; i < 5; i++) {
        const int *corner = around[text->mirrored ? 4 - i : i];
        rfx_answer_put(text, i > 0 ? ",[" : "[");
        put_corner(file, box->corner[corner[0]], box->corner[corner[1]]);
        rfx_answer_put(text, "]");
    }
    rfx_answer_put(text, "]]},\"properties\":{\"objectType\":\"detection\",\"label\":%" PRId32,
                   box->label);
    if (name != NULL) {
        rfx_answer_put(text, ",\"classification\":{\"name\":");
        rfx_answer_json_string(text, name);
        rfx_answer_put(text, "}");
    }
    rfx_answer_put(text, ",\"score\":");
    rfx_answer_float(text, box->score);
    rfx_answer_put(text, "}}");
}

static void put_line(struct rfx_boxes_file *file, const struct rfx_box *box, const char *name) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text, "%" PRId32 ",", box->label);
    if (name != NULL) rfx_answer_csv_field(text, name);
    rfx_answer_put(text, ",");
    rfx_answer_float(text, box->score);
    rfx_answer_put(text, ",");
    put_corners(file, box);
    if (file->points != NULL) put_points(file, box, ",", "", "");
    rfx_answer_put(text, "\n");
}

static void put_header(struct rfx_boxes_file *file) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text, "label,name,score,left,top,right,bottom");
    for (int i = 1; file->points != NULL && i <= RFX_BOX_POINTS; i++)
        rfx_answer_put(text, ",x%d,y%d", i, i);
    rfx_answer_put(text, "\n");
}

static void put_all(struct rfx_boxes_file *file) {
    struct rfx_answer_text *text = &file->text;
    int64_t n;
    const struct rfx_box *list = rfx_boxes_list(file->boxes, &n);
    if (file->form == RFX_ANSWER_CSV) put_header(file);
    if (file->form == RFX_ANSWER_COCO) rfx_answer_put(text, "[");
    if (file->form == RFX_ANSWER_GEOJSON) rfx_answer_collection(text);
    if (file->form == RFX_ANSWER_JSON)
        rfx_answer_put(text, "{\"head\":\"%s\",\"boxes\":[", file->head.words);
    for (int64_t i = 0; i < n && text->status == RFX_OK; i++) {
        const char *name = rfx_answer_name(text, list[i].label);
        if (file->form != RFX_ANSWER_CSV) rfx_answer_put(text, i > 0 ? ",\n" : "\n");
        if (file->form == RFX_ANSWER_CSV) put_line(file, &list[i], name);
        if (file->form == RFX_ANSWER_COCO) put_coco(file, &list[i]);
        if (file->form == RFX_ANSWER_GEOJSON) put_feature(file, &list[i], name);
        if (file->form == RFX_ANSWER_JSON) put_json(file, &list[i], name);
    }
    if (file->form == RFX_ANSWER_COCO) rfx_answer_put(text, "\n]\n");
    if (file->form == RFX_ANSWER_GEOJSON || file->form == RFX_ANSWER_JSON)
        rfx_answer_put(text, "\n]}\n");
}

enum rfx_status rfx_boxes_file_commit(struct rfx_boxes_file *file, struct rfx_error *err) {
    if (file->head.suppress && file->options.soft)
        rfx_boxes_decay(file->boxes, file->options.score, !file->options.agnostic);
    else if (file->head.suppress)
        rfx_boxes_suppress(file->boxes, file->options.overlap, !file->options.agnostic);
    else
        rfx_boxes_sort(file->boxes);
    if (file->points != NULL) rfx_box_points_sort(file->points);
    put_all(file);
    enum rfx_status status = rfx_answer_text_status(&file->text, err);
    return status == RFX_OK ? rfx_output_file_commit(file->text.file, err) : status;
}

struct rfx_found rfx_boxes_file_found(const struct rfx_boxes_file *file) {
    struct rfx_found found = {.what = "boxes",
                              .head = file->head.words,
                              .names = file->text.names,
                              .n_names = file->text.n_names};
    found.boxes = rfx_boxes_list(file->boxes, &found.count);
    return found;
}

void rfx_boxes_file_free(struct rfx_boxes_file *file) {
    if (file == NULL) return;
    rfx_boxes_free(file->boxes);
    rfx_box_points_free(file->points);
    rfx_memory_release(file->mem, file->channels);
    rfx_answer_text_close(&file->text);
    rfx_memory_release(file->mem, file);
}
