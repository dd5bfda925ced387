/* Kinds of files that have what was found in an output: the regions, the points, the summary or the
 * text of a map as GeoJSON (RFC 7946, with QuPath's properties), CSV and JSON; the boxes of a
 * detector as these and COCO's results. */
#include "rfexec/answers/boxes_file.h"
#include "rfexec/answers/points_file.h"
#include "rfexec/answers/regions_file.h"
#include "rfexec/answers/summary_file.h"
#include "rfexec/answers/text_file.h"

/* Regions of a map, or boxes of any other output: a writer of one of the two. */
struct answer_file {
    struct rfx_memory *mem;
    struct rfx_boxes_file *boxes; /* NULL: the output is a map */
    struct rfx_regions_file *regions;
};

static bool are_boxes(const struct rfx_tensor *tensor) {
    return tensor->layout != RFX_LAYOUT_NHWC;
}

static enum rfx_status check(const struct rfx_output_format *format,
                             const struct rfx_tensor *tensor, const char *path,
                             struct rfx_error *err) {
    return are_boxes(tensor) ? rfx_boxes_file_check(format, tensor, path, err)
                             : rfx_regions_file_check(format, tensor, path, err);
}

static size_t bytes(const struct rfx_output_format *format, const struct rfx_tensor *tensor) {
    return sizeof(struct answer_file) + (are_boxes(tensor)
                                             ? rfx_boxes_file_bytes(format, tensor)
                                             : rfx_regions_file_bytes(format, tensor));
}

static void free_writer(void *writer) {
    struct answer_file *file = writer;
    if (file == NULL) return;
    rfx_regions_file_free(file->regions);
    rfx_boxes_file_free(file->boxes);
    rfx_memory_release(file->mem, file);
}

static enum rfx_status open_file(struct rfx_memory *mem, const char *path,
                                 const struct rfx_output_format *format,
                                 const struct rfx_tensor *tensor, enum rfx_answer_form form,
                                 void **writer, struct rfx_error *err) {
    struct answer_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    enum rfx_status status =
        are_boxes(tensor)
            ? rfx_boxes_file_open(mem, path, format, tensor, form, &file->boxes, err)
            : rfx_regions_file_open(mem, path, format, tensor, form, &file->regions, err);
    if (status != RFX_OK) {
        free_writer(file);
        return status;
    }
    *writer = file;
    return RFX_OK;
}

static enum rfx_status write_row(void *writer, const void *samples, struct rfx_error *err) {
    struct answer_file *file = writer;
    return rfx_regions_file_row(file->regions, samples, err);
}

static enum rfx_status take(void *writer, const struct rfx_end *end, struct rfx_rect rect,
                            const struct rfx_view *view, struct rfx_error *err) {
    struct answer_file *file = writer;
    return rfx_boxes_file_take(file->boxes, end, rect, view, err);
}

static enum rfx_status commit(void *writer, struct rfx_error *err) {
    struct answer_file *file = writer;
    return file->regions != NULL ? rfx_regions_file_commit(file->regions, err)
                                 : rfx_boxes_file_commit(file->boxes, err);
}

static struct rfx_found found(const void *writer) {
    const struct answer_file *file = writer;
    return file->regions != NULL ? rfx_regions_file_found(file->regions)
                                 : rfx_boxes_file_found(file->boxes);
}

/* Points, summaries and text, of maps alone. WRITES defines the functions of a kind as those of its
 * writer. */
#define WRITES(what)                                                                               \
    static enum rfx_status what##_row(void *writer, const void *samples, struct rfx_error *err) {  \
        return rfx_##what##_file_row(writer, samples, err);                                        \
    }                                                                                              \
    static enum rfx_status what##_commit(void *writer, struct rfx_error *err) {                    \
        return rfx_##what##_file_commit(writer, err);                                              \
    }                                                                                              \
    static struct rfx_found what##_found(const void *writer) {                                     \
        return rfx_##what##_file_found(writer);                                                    \
    }                                                                                              \
    static void what##_free(void *writer) {                                                        \
        rfx_##what##_file_free(writer);                                                            \
    }                                                                                              \
    static enum rfx_status what##_open(struct rfx_memory *mem, const char *path,                   \
                                       const struct rfx_output_format *format,                     \
                                       const struct rfx_tensor *map, enum rfx_answer_form form,    \
                                       void **writer, struct rfx_error *err) {                     \
        struct rfx_##what##_file *file = NULL;                                                     \
        enum rfx_status status = rfx_##what##_file_open(mem, path, format, map, form, &file, err); \
        if (status == RFX_OK) *writer = file;                                                      \
        return status;                                                                             \
    }
WRITES(points)
WRITES(summary)
WRITES(text)

/* Defines the function that opens a file of a kind. */
#define OPEN(name, open, form)                                                            \
    static enum rfx_status name(                                                          \
        struct rfx_memory *mem, const char *path, const struct rfx_output_format *format, \
        const struct rfx_tensor *tensor, void **writer, struct rfx_error *err) {          \
        return open(mem, path, format, tensor, form, writer, err);                        \
    }
OPEN(open_geojson, open_file, RFX_ANSWER_GEOJSON)
OPEN(open_csv, open_file, RFX_ANSWER_CSV)
OPEN(open_json, open_file, RFX_ANSWER_JSON)
OPEN(open_coco, open_file, RFX_ANSWER_COCO)
OPEN(open_points_geojson, points_open, RFX_ANSWER_GEOJSON)
OPEN(open_points_csv, points_open, RFX_ANSWER_CSV)
OPEN(open_summary_json, summary_open, RFX_ANSWER_JSON)
OPEN(open_summary_csv, summary_open, RFX_ANSWER_CSV)
OPEN(open_text_json, text_open, RFX_ANSWER_JSON)
OPEN(open_text_csv, text_open, RFX_ANSWER_CSV)
OPEN(open_text_geojson, text_open, RFX_ANSWER_GEOJSON)

enum { MOST_CHANNELS = 4096 };

/* Members that all kinds share. */
#define ANSWERS                                                                                \
    .samples = RFX_OUTPUT_ALL_SAMPLES, .most_channels = MOST_CHANNELS, .most_side = INT32_MAX, \
    .placed = true

#define REGIONS_OR_BOXES                                                                         \
    .bytes = bytes, .write_row = write_row, .commit = commit, .free = free_writer, .take = take, \
    .found = found, .takes = RFX_OUTPUT_TAKES_ANSWERS, ANSWERS

const struct rfx_output_kind rfx_output_geojson = {.name = "GeoJSON",
                                                   .ends = {".geojson"},
                                                   .open = open_geojson,
                                                   .check_map = check,
                                                   REGIONS_OR_BOXES};

const struct rfx_output_kind rfx_output_csv = {
    .name = "CSV", .ends = {".csv"}, .open = open_csv, .check_map = check, REGIONS_OR_BOXES};

const struct rfx_output_kind rfx_output_json = {.name = "JSON of boxes",
                                                .ends = {".json"},
                                                .open = open_json,
                                                .check_map = rfx_boxes_file_check,
                                                REGIONS_OR_BOXES};

const struct rfx_output_kind rfx_output_coco = {.name = "JSON of COCO",
                                                .ends = {".coco.json"},
                                                .open = open_coco,
                                                .check_map = rfx_boxes_file_check,
                                                REGIONS_OR_BOXES};

/* Boxes alone, so that the outputs of a head can be joined before the file is opened. */
const struct rfx_output_kind rfx_output_boxes_geojson = {.name = "GeoJSON of boxes",
                                                         .ends = {".boxes.geojson"},
                                                         .open = open_geojson,
                                                         .check_map = rfx_boxes_file_check,
                                                         REGIONS_OR_BOXES};

const struct rfx_output_kind rfx_output_boxes_csv = {.name = "CSV of boxes",
                                                     .ends = {".boxes.csv"},
                                                     .open = open_csv,
                                                     .check_map = rfx_boxes_file_check,
                                                     REGIONS_OR_BOXES};

/* A kind of points, summaries or text. */
#define KIND(what, form, says, end, more)                       \
    const struct rfx_output_kind rfx_output_##what##_##form = { \
        .name = says,                                           \
        .ends = {end},                                          \
        .open = open_##what##_##form,                           \
        .check_map = rfx_##what##_file_check,                   \
        .bytes = rfx_##what##_file_bytes,                       \
        .write_row = what##_row,                                \
        .commit = what##_commit,                                \
        .free = what##_free,                                    \
        .found = what##_found,                                  \
        .takes = RFX_OUTPUT_TAKES_ANSWERS | (more),             \
        ANSWERS}
KIND(points, geojson, "GeoJSON of points", ".points.geojson", RFX_OUTPUT_TAKES_DISTANCE);
KIND(points, csv, "CSV of points", ".points.csv", RFX_OUTPUT_TAKES_DISTANCE);
KIND(summary, json, "summary in JSON", ".summary.json", RFX_OUTPUT_TAKES_AREAS);
KIND(summary, csv, "summary in CSV", ".summary.csv", RFX_OUTPUT_TAKES_AREAS);
KIND(text, json, "JSON of text boxes", ".text.json", RFX_OUTPUT_TAKES_GROWTH);
KIND(text, csv, "CSV of text boxes", ".text.csv", RFX_OUTPUT_TAKES_GROWTH);
KIND(text, geojson, "GeoJSON of text boxes", ".text.geojson", RFX_OUTPUT_TAKES_GROWTH);
