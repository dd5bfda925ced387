/* Kinds of files that have what was found in an output: the regions of a map as GeoJSON (RFC 7946,
 * with QuPath's properties) and CSV; the boxes of a detector as these, JSON, and COCO's results. */
#include "rfexec/answers/boxes_file.h"
#include "rfexec/answers/regions_file.h"

/* A writer of one of the two. */
struct answer_file {
    struct rfx_memory *mem;
    struct rfx_regions_file *regions; /* NULL: boxes are found */
    struct rfx_boxes_file *boxes;     /* NULL: regions are found */
};

static bool has_regions(const struct rfx_tensor *tensor) {
    return tensor->layout == RFX_LAYOUT_NHWC;
}

static enum rfx_status check(const struct rfx_output_format *format,
                             const struct rfx_tensor *tensor, const char *path,
                             struct rfx_error *err) {
    return has_regions(tensor) ? rfx_regions_file_check(format, tensor, path, err)
                               : rfx_boxes_file_check(format, tensor, path, err);
}

static enum rfx_status check_boxes(const struct rfx_output_format *format,
                                   const struct rfx_tensor *tensor, const char *path,
                                   struct rfx_error *err) {
    return rfx_boxes_file_check(format, tensor, path, err);
}

static size_t bytes(const struct rfx_output_format *format, const struct rfx_tensor *tensor) {
    size_t own = sizeof(struct answer_file);
    return own + (has_regions(tensor) ? rfx_regions_file_bytes(format, tensor)
                                      : rfx_boxes_file_bytes(format));
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
                                 const struct rfx_tensor *tensor, enum rfx_regions_form regions,
                                 enum rfx_boxes_form boxes, void **writer, struct rfx_error *err) {
    struct answer_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    enum rfx_status status =
        has_regions(tensor)
            ? rfx_regions_file_open(mem, path, format, tensor, regions, &file->regions, err)
            : rfx_boxes_file_open(mem, path, format, tensor, boxes, &file->boxes, err);
    if (status != RFX_OK) {
        free_writer(file);
        return status;
    }
    *writer = file;
    return RFX_OK;
}

/* Defines the function that opens a file of a kind. */
#define OPEN(name, regions, boxes)                                                        \
    static enum rfx_status name(                                                          \
        struct rfx_memory *mem, const char *path, const struct rfx_output_format *format, \
        const struct rfx_tensor *tensor, void **writer, struct rfx_error *err) {          \
        return open_file(mem, path, format, tensor, regions, boxes, writer, err);         \
    }
OPEN(open_geojson, RFX_REGIONS_GEOJSON, RFX_BOXES_GEOJSON)
OPEN(open_csv, RFX_REGIONS_CSV, RFX_BOXES_CSV)
OPEN(open_json, RFX_REGIONS_GEOJSON, RFX_BOXES_JSON) /* boxes only: check_boxes */
OPEN(open_coco, RFX_REGIONS_GEOJSON, RFX_BOXES_COCO)

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

enum { MOST_CHANNELS = 4096 };

/* Members that all kinds share. */
#define ANSWERS                                                                                \
    .samples = RFX_OUTPUT_ALL_SAMPLES, .most_channels = MOST_CHANNELS, .most_side = INT32_MAX, \
    .takes = RFX_OUTPUT_TAKES_ANSWERS, .placed = true, .bytes = bytes, .write_row = write_row, \
    .commit = commit, .free = free_writer, .take = take, .found = found

const struct rfx_output_kind rfx_output_geojson = {
    .name = "GeoJSON", .ends = {".geojson"}, .open = open_geojson, .check_map = check, ANSWERS};

const struct rfx_output_kind rfx_output_csv = {
    .name = "CSV", .ends = {".csv"}, .open = open_csv, .check_map = check, ANSWERS};

const struct rfx_output_kind rfx_output_json = {.name = "JSON of boxes",
                                                .ends = {".json"},
                                                .open = open_json,
                                                .check_map = check_boxes,
                                                ANSWERS};

const struct rfx_output_kind rfx_output_coco = {.name = "JSON of COCO",
                                                .ends = {".coco.json"},
                                                .open = open_coco,
                                                .check_map = check_boxes,
                                                ANSWERS};
