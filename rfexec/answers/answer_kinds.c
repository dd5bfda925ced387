/* Kinds of files that have what was found in a map: regions as GeoJSON (RFC 7946, with QuPath's
 * properties) and as CSV. */
#include "rfexec/answers/regions_file.h"

static enum rfx_status open_geojson(struct rfx_memory *mem, const char *path,
                                    const struct rfx_output_format *format,
                                    const struct rfx_tensor *map, void **writer,
                                    struct rfx_error *err) {
    struct rfx_regions_file *file = NULL;
    enum rfx_status status =
        rfx_regions_file_open(mem, path, format, map, RFX_REGIONS_GEOJSON, &file, err);
    *writer = file;
    return status;
}

static enum rfx_status open_csv(struct rfx_memory *mem, const char *path,
                                const struct rfx_output_format *format,
                                const struct rfx_tensor *map, void **writer,
                                struct rfx_error *err) {
    struct rfx_regions_file *file = NULL;
    enum rfx_status status =
        rfx_regions_file_open(mem, path, format, map, RFX_REGIONS_CSV, &file, err);
    *writer = file;
    return status;
}

static enum rfx_status write_row(void *writer, const void *samples, struct rfx_error *err) {
    return rfx_regions_file_row(writer, samples, err);
}

static enum rfx_status commit(void *writer, struct rfx_error *err) {
    return rfx_regions_file_commit(writer, err);
}

static int64_t count(const void *writer) {
    return rfx_regions_file_count(writer);
}

static void free_writer(void *writer) {
    rfx_regions_file_free(writer);
}

enum { MOST_CHANNELS = 4096 };

/* Members that both kinds share. */
#define REGIONS                                                                                \
    .samples = RFX_OUTPUT_ALL_SAMPLES, .most_channels = MOST_CHANNELS, .most_side = INT32_MAX, \
    .takes = RFX_OUTPUT_TAKES_ANSWERS, .placed = true, .bytes = rfx_regions_file_bytes,        \
    .write_row = write_row, .commit = commit, .free = free_writer,                             \
    .check_map = rfx_regions_file_check, .count = count

const struct rfx_output_kind rfx_output_geojson = {
    .name = "GeoJSON", .ends = {".geojson"}, .open = open_geojson, REGIONS};

const struct rfx_output_kind rfx_output_csv = {
    .name = "CSV", .ends = {".csv"}, .open = open_csv, REGIONS};
