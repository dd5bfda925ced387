/* Kinds of files that have what was found in an output: the regions, the points or the summary of a
 * map as GeoJSON (RFC 7946, with QuPath's properties), CSV and JSON; the boxes of a detector as
 * these and COCO's results. */
#include "rfexec/answers/boxes_file.h"
#include "rfexec/answers/points_file.h"
#include "rfexec/answers/regions_file.h"
#include "rfexec/answers/summary_file.h"

/* A writer of one of the four. */
struct answer_file {
    struct rfx_memory *mem;
    struct rfx_boxes_file *boxes; /* NULL: the output is a map */
    struct rfx_regions_file *regions;
    struct rfx_points_file *points;
    struct rfx_summary_file *summary;
};

enum found_kind { BOXES, REGIONS, POINTS, SUMMARY };

static enum found_kind found_in(const struct rfx_output_format *format,
                                const struct rfx_tensor *tensor) {
    if (tensor->layout != RFX_LAYOUT_NHWC) return BOXES;
    switch (format->answer.wanted) {
        case RFX_ANSWER_POINTS:
            return POINTS;
        case RFX_ANSWER_SUMMARY:
            return SUMMARY;
        case RFX_ANSWER_REGIONS:
            break;
    }
    return REGIONS;
}

/* Checks an output for a kind of file that may have anything but a summary. */
static enum rfx_status check(const struct rfx_output_format *format,
                             const struct rfx_tensor *tensor, const char *path,
                             struct rfx_error *err) {
    switch (found_in(format, tensor)) {
        case BOXES:
            return rfx_boxes_file_check(format, tensor, path, err);
        case REGIONS:
            return rfx_regions_file_check(format, tensor, path, err);
        case POINTS:
            return rfx_points_file_check(format, tensor, path, err);
        case SUMMARY:
            break;
    }
    return rfx_summary_file_check(format, tensor, path, err);
}

/* GeoJSON has places. */
static enum rfx_status check_places(const struct rfx_output_format *format,
                                    const struct rfx_tensor *tensor, const char *path,
                                    struct rfx_error *err) {
    if (found_in(format, tensor) != SUMMARY) return check(format, tensor, path, err);
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: a summary has no places; use .json or .csv", path);
}

/* JSON has boxes and summaries. */
static enum rfx_status check_json(const struct rfx_output_format *format,
                                  const struct rfx_tensor *tensor, const char *path,
                                  struct rfx_error *err) {
    if (found_in(format, tensor) == SUMMARY) return check(format, tensor, path, err);
    return rfx_boxes_file_check(format, tensor, path, err);
}

static enum rfx_status check_boxes(const struct rfx_output_format *format,
                                   const struct rfx_tensor *tensor, const char *path,
                                   struct rfx_error *err) {
    if (found_in(format, tensor) != SUMMARY) return rfx_boxes_file_check(format, tensor, path, err);
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: COCO's results are boxes; use .json or .csv", path);
}

static size_t bytes(const struct rfx_output_format *format, const struct rfx_tensor *tensor) {
    size_t own = sizeof(struct answer_file);
    switch (found_in(format, tensor)) {
        case BOXES:
            return own + rfx_boxes_file_bytes(format, tensor);
        case REGIONS:
            return own + rfx_regions_file_bytes(format, tensor);
        case POINTS:
            return own + rfx_points_file_bytes(format, tensor);
        case SUMMARY:
            break;
    }
    return own + rfx_summary_file_bytes(format, tensor);
}

static void free_writer(void *writer) {
    struct answer_file *file = writer;
    if (file == NULL) return;
    rfx_regions_file_free(file->regions);
    rfx_points_file_free(file->points);
    rfx_summary_file_free(file->summary);
    rfx_boxes_file_free(file->boxes);
    rfx_memory_release(file->mem, file);
}

static enum rfx_status open_writer(struct answer_file *file, const char *path,
                                   const struct rfx_output_format *format,
                                   const struct rfx_tensor *tensor, enum rfx_answer_form form,
                                   struct rfx_error *err) {
    struct rfx_memory *mem = file->mem;
    switch (found_in(format, tensor)) {
        case BOXES:
            return rfx_boxes_file_open(mem, path, format, tensor, form, &file->boxes, err);
        case REGIONS:
            return rfx_regions_file_open(mem, path, format, tensor, form, &file->regions, err);
        case POINTS:
            return rfx_points_file_open(mem, path, format, tensor, form, &file->points, err);
        case SUMMARY:
            break;
    }
    return rfx_summary_file_open(mem, path, format, tensor, form, &file->summary, err);
}

static enum rfx_status open_file(struct rfx_memory *mem, const char *path,
                                 const struct rfx_output_format *format,
                                 const struct rfx_tensor *tensor, enum rfx_answer_form form,
                                 void **writer, struct rfx_error *err) {
    struct answer_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    enum rfx_status status = open_writer(file, path, format, tensor, form, err);
    if (status != RFX_OK) {
        free_writer(file);
        return status;
    }
    *writer = file;
    return RFX_OK;
}

/* Defines the function that opens a file of a kind. */
#define OPEN(name, form)                                                                  \
    static enum rfx_status name(                                                          \
        struct rfx_memory *mem, const char *path, const struct rfx_output_format *format, \
        const struct rfx_tensor *tensor, void **writer, struct rfx_error *err) {          \
        return open_file(mem, path, format, tensor, form, writer, err);                   \
    }
OPEN(open_geojson, RFX_ANSWER_GEOJSON)
OPEN(open_csv, RFX_ANSWER_CSV)
OPEN(open_json, RFX_ANSWER_JSON)
OPEN(open_coco, RFX_ANSWER_COCO)

static enum rfx_status write_row(void *writer, const void *samples, struct rfx_error *err) {
    struct answer_file *file = writer;
    if (file->points != NULL) return rfx_points_file_row(file->points, samples, err);
    if (file->summary != NULL) return rfx_summary_file_row(file->summary, samples, err);
    return rfx_regions_file_row(file->regions, samples, err);
}

static enum rfx_status take(void *writer, const struct rfx_end *end, struct rfx_rect rect,
                            const struct rfx_view *view, struct rfx_error *err) {
    struct answer_file *file = writer;
    return rfx_boxes_file_take(file->boxes, end, rect, view, err);
}

static enum rfx_status commit(void *writer, struct rfx_error *err) {
    struct answer_file *file = writer;
    if (file->points != NULL) return rfx_points_file_commit(file->points, err);
    if (file->summary != NULL) return rfx_summary_file_commit(file->summary, err);
    return file->regions != NULL ? rfx_regions_file_commit(file->regions, err)
                                 : rfx_boxes_file_commit(file->boxes, err);
}

static struct rfx_found found(const void *writer) {
    const struct answer_file *file = writer;
    if (file->points != NULL) return rfx_points_file_found(file->points);
    if (file->summary != NULL) return rfx_summary_file_found(file->summary);
    return file->regions != NULL ? rfx_regions_file_found(file->regions)
                                 : rfx_boxes_file_found(file->boxes);
}

enum { MOST_CHANNELS = 4096 };

/* Members that all kinds share. */
#define ANSWERS                                                                                \
    .samples = RFX_OUTPUT_ALL_SAMPLES, .most_channels = MOST_CHANNELS, .most_side = INT32_MAX, \
    .takes = RFX_OUTPUT_TAKES_ANSWERS, .placed = true, .bytes = bytes, .write_row = write_row, \
    .commit = commit, .free = free_writer, .take = take, .found = found

const struct rfx_output_kind rfx_output_geojson = {.name = "GeoJSON",
                                                   .ends = {".geojson"},
                                                   .open = open_geojson,
                                                   .check_map = check_places,
                                                   ANSWERS};

const struct rfx_output_kind rfx_output_csv = {
    .name = "CSV", .ends = {".csv"}, .open = open_csv, .check_map = check, ANSWERS};

const struct rfx_output_kind rfx_output_json = {.name = "JSON of boxes or a summary",
                                                .ends = {".json"},
                                                .open = open_json,
                                                .check_map = check_json,
                                                ANSWERS};

const struct rfx_output_kind rfx_output_coco = {.name = "JSON of COCO",
                                                .ends = {".coco.json"},
                                                .open = open_coco,
                                                .check_map = check_boxes,
                                                ANSWERS};
