/* Regions of a probability map as boxes of text; see text_file.h. */
#include "rfexec/answers/text_file.h"

#include <inttypes.h>
#include <math.h>

#include "layers/kernels/generic/vector_math.h"
#include "rfexec/answers/label_regions.h"
#include "rfexec/answers/label_rows.h"
#include "rfexec/answers/oriented_text.h"
#include "rfexec/answers/region_rectangle.h"

/* Shortest sides in pixels of the map, before and after growing. */
#define LEAST_SIDE 3.0
#define LEAST_GROWN 5.0

struct rfx_text_file {
    struct rfx_memory *mem;
    struct rfx_answer_text text;
    enum rfx_answer_form form;
    float least_score;
    double growth;
    size_t most_bytes;
    const struct rfx_answer_watch *watch; /* NULL: nobody watches */
    int64_t count;
    struct rfx_label_rows rows;
    struct rfx_regions *regions;
    struct rfx_region_hull *hull;
};

enum rfx_status rfx_text_file_check(const struct rfx_output_format *format,
                                    const struct rfx_tensor *map, const char *path,
                                    struct rfx_error *err) {
    const struct rfx_answer_options *options = &format->answer;
    if (!(options->growth >= 0.0 && options->growth < (double)INFINITY))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: text boxes grow by a ratio of 0 or more (--unclip), not %g", path,
                        options->growth);
    if (map->c != 1 || rfx_output_sample(format) != RFX_TYPE_FLOAT32)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: text is found in a map of probabilities, one channel of floats; this "
                        "one has %" PRId64 " channel%s of %s",
                        path, map->c, map->c == 1 ? "" : "s",
                        rfx_output_sample(format) == RFX_TYPE_FLOAT32 ? "floats" : "integers");
    return rfx_label_thresholds_check(options, map, path, err);
}

/* The format with the threshold of binarisation. */
static struct rfx_output_format with_threshold(const struct rfx_output_format *format) {
    static const float usual = RFX_ANSWER_TEXT_THRESHOLD;
    struct rfx_output_format with = *format;
    if (with.answer.n_thresholds > 0) return with;
    with.answer.thresholds = &usual;
    with.answer.n_thresholds = 1;
    return with;
}

size_t rfx_text_file_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    const struct rfx_output_format with = with_threshold(format);
    size_t regions = format->answer.most_bytes;
    return sizeof(struct rfx_text_file) + rfx_answer_text_bytes(&format->answer) +
           rfx_label_rows_bytes(&with, map) + rfx_region_hull_bytes(map->h) +
           (regions > 0 ? regions : RFX_ANSWER_BYTES);
}

/* Returns the rectangle with sides that are longer by 2 `by`, as a box whose first corner is the
 * upper one of the two leftmost: the side that reaches farther along x is its upper one. */
static struct rfx_oriented_box box_of(const struct rfx_rectangle *rectangle, double by) {
    double x = (double)rectangle->edge[0], y = (double)rectangle->edge[1];
    double side[2] = {rectangle->side[0] + 2.0 * by, rectangle->side[1] + 2.0 * by};
    bool first = side[0] * fabs(x) >= side[1] * fabs(y);
    double slope = first ? y / x : -x / y;
    return (struct rfx_oriented_box){
        .centre = {(float)rectangle->centre[0], (float)rectangle->centre[1]},
        .side = {(float)side[first ? 0 : 1], (float)side[first ? 1 : 0]},
        .angle = (float)copysign(math_atan_of(fabs(slope)), slope)};
}

static enum rfx_status show(const struct rfx_answer_watch *watch,
                            const struct rfx_oriented_box *box, struct rfx_error *err) {
    float corner[4][2];
    double corners[8];
    if (watch == NULL || watch->take == NULL) return RFX_OK;
    rfx_oriented_corners(box, corner);
    for (int i = 0; i < 8; ++i) corners[i] = (double)corner[i / 2][i % 2];
    return watch->take(watch->user, corners, 4, box->label, err);
}

static enum rfx_status take(void *user, const struct rfx_region *region, struct rfx_error *err) {
    struct rfx_text_file *file = user;
    struct rfx_rectangle rectangle;
    float score = (float)region->mean_score;
    if (!(score >= file->least_score)) return RFX_OK;
    if (!rfx_region_rectangle(file->hull, region, &rectangle)) return RFX_OK;
    double w = rectangle.side[0], h = rectangle.side[1];
    double by = w * h * file->growth / (2.0 * (w + h)), least = fmin(w, h);
    if (least < LEAST_SIDE || least + 2.0 * by < LEAST_GROWN) return RFX_OK;
    struct rfx_oriented_box box = box_of(&rectangle, by);
    box.score = score;
    box.index = file->count;
    rfx_oriented_put(&file->text, file->form, &box, file->count++);
    enum rfx_status status = rfx_answer_text_status(&file->text, err);
    return status == RFX_OK ? show(file->watch, &box, err) : status;
}

static enum rfx_status open_parts(struct rfx_text_file *file,
                                  const struct rfx_output_format *format,
                                  const struct rfx_tensor *map, const char *path,
                                  struct rfx_error *err) {
    const struct rfx_output_format with = with_threshold(format);
    const struct rfx_regions_options wanted = {.width = map->w,
                                               .connectivity = 8,
                                               .has_background = true,
                                               .background = RFX_NO_LABEL,
                                               .scored = true,
                                               .most_bytes = file->most_bytes};
    enum rfx_status status = rfx_answer_text_open(&file->text, file->mem, path, &format->answer,
                                                  &format->place, format->geo, err);
    if (status == RFX_OK) status = rfx_label_rows_open(&file->rows, file->mem, &with, map, err);
    if (status == RFX_OK) status = rfx_region_hull_create(file->mem, map->h, &file->hull, err);
    if (status == RFX_OK)
        status = rfx_regions_create(file->mem, &wanted, take, file, &file->regions, err);
    return status;
}

enum rfx_status rfx_text_file_open(struct rfx_memory *mem, const char *path,
                                   const struct rfx_output_format *format,
                                   const struct rfx_tensor *map, enum rfx_answer_form form,
                                   struct rfx_text_file **out, struct rfx_error *err) {
    struct rfx_text_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    file->form = form;
    file->least_score = format->answer.text_score;
    file->growth = format->answer.growth;
    file->most_bytes = format->answer.most_bytes;
    file->watch = format->answer.watch;
    enum rfx_status status = open_parts(file, format, map, path, err);
    if (status != RFX_OK) {
        rfx_text_file_free(file);
        return status;
    }
    rfx_oriented_begin(&file->text, form, "DB text map");
    *out = file;
    return RFX_OK;
}

/* Names the option that a failure is about. Returns the status. */
static enum rfx_status tell_option(const struct rfx_text_file *file, enum rfx_status status,
                                   struct rfx_error *err) {
    if (status != RFX_STATUS_BUDGET_IMPOSSIBLE) return status;
    return rfx_fail_within(err, status, "--answer-memory %zu", file->most_bytes);
}

enum rfx_status rfx_text_file_row(struct rfx_text_file *file, const void *samples,
                                  struct rfx_error *err) {
    struct rfx_label_rows *rows = &file->rows;
    rfx_label_rows_load(rows, samples);
    rfx_label_rows_find(rows, 0);
    enum rfx_status status = rfx_regions_row(file->regions, rows->labels, rows->scores, err);
    return tell_option(file, status, err);
}

enum rfx_status rfx_text_file_commit(struct rfx_text_file *file, struct rfx_error *err) {
    enum rfx_status status = rfx_regions_end(file->regions, err);
    if (status != RFX_OK) return tell_option(file, status, err);
    rfx_answer_boxes_end(&file->text, file->form);
    status = rfx_answer_text_status(&file->text, err);
    return status == RFX_OK ? rfx_output_file_commit(file->text.file, err) : status;
}

struct rfx_found rfx_text_file_found(const struct rfx_text_file *file) {
    return (struct rfx_found){.what = "text", .count = file->count};
}

void rfx_text_file_free(struct rfx_text_file *file) {
    if (file == NULL) return;
    rfx_regions_free(file->regions);
    rfx_region_hull_free(file->hull);
    rfx_label_rows_close(&file->rows);
    rfx_answer_text_close(&file->text);
    rfx_memory_release(file->mem, file);
}
