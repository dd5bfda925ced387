/* Zarr and OME-Zarr as kinds of output folders: converts a format to the writer's options. */
#include "rfexec/output/output_format.h"
#include "rfexec/output/zarr/zarr_write.h"

static struct rfx_zarr_array zarr_array(const struct rfx_output_format *format,
                                        const struct rfx_tensor *t) {
    bool ome = format->kind == &rfx_output_ome_zarr;
    struct rfx_zarr_array array = {.h = t->h,
                                   .w = t->w,
                                   .channels = t->c,
                                   .batch = t->shape.rank == 4 && !ome,
                                   .bits = rfx_output_bits(format),
                                   .is_signed = rfx_output_is_signed(format),
                                   .format = format->zarr_format != 0 ? format->zarr_format : 3,
                                   .zstd = format->zstd,
                                   .ome = ome,
                                   .overviews = format->overviews};
    rfx_zarr_choose_chunks(&array, format->chunk);
    return array;
}

static size_t kind_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    const struct rfx_zarr_array array = zarr_array(format, map);
    return rfx_zarr_write_bytes(&array);
}

static enum rfx_status kind_open(struct rfx_memory *mem, const char *path,
                                 const struct rfx_output_format *format,
                                 const struct rfx_tensor *map, void **writer,
                                 struct rfx_error *err) {
    const struct rfx_zarr_array array = zarr_array(format, map);
    struct rfx_zarr_writer *zarr = NULL;
    enum rfx_status status = rfx_zarr_write_open(mem, path, &array, &zarr, err);
    *writer = zarr;
    return status;
}

static enum rfx_status kind_write_row(void *writer, const void *samples, struct rfx_error *err) {
    return rfx_zarr_write_row(writer, samples, err);
}

static enum rfx_status kind_commit(void *writer, struct rfx_error *err) {
    return rfx_zarr_write_commit(writer, err);
}

static void kind_free(void *writer) {
    rfx_zarr_write_free(writer);
}

/* A folder with one array. */
const struct rfx_output_kind rfx_output_zarr = {
    .name = "Zarr array",
    .ends = {".zarr"},
    .samples = RFX_OUTPUT_ALL_SAMPLES,
    .most_channels = RFX_ZARR_MOST_CHANNELS,
    .most_side = INT32_MAX,
    .takes = RFX_OUTPUT_TAKES_CHUNKS,
    .folder = true,
    .bytes = kind_bytes,
    .open = kind_open,
    .write_row = kind_write_row,
    .commit = kind_commit,
    .free = kind_free,
};

/* A folder with a group, its OME-Zarr metadata and the array. */
const struct rfx_output_kind rfx_output_ome_zarr = {
    .name = "Zarr array",
    .ends = {".ome.zarr"},
    .samples = RFX_OUTPUT_ALL_SAMPLES,
    .most_channels = RFX_ZARR_MOST_CHANNELS,
    .most_side = INT32_MAX,
    .takes = RFX_OUTPUT_TAKES_CHUNKS | RFX_OUTPUT_TAKES_OVERVIEWS,
    .folder = true,
    .bytes = kind_bytes,
    .open = kind_open,
    .write_row = kind_write_row,
    .commit = kind_commit,
    .free = kind_free,
};
