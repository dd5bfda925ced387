/* Writes rows as chunks; see zarr_write.h. */
#include "rfexec/output/zarr/zarr_write.h"

#include <inttypes.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/printable.h"
#include "rfexec/image/zarr/zstd_library.h"
#include "rfexec/output/output_folder.h"
#include "rfexec/output/output_format.h"

#define METADATA_BYTES ((size_t)16384)
#define MOST_CHUNK_SAMPLES ((int64_t)1 << 26)

struct rfx_zarr_writer {
    struct rfx_memory *mem;
    char *path;
    struct rfx_zarr_array array; /* the array, or the overview that is written now */
    struct rfx_output_folder *folder;
    struct rfx_zstd_library zstd;
    void *context; /* context of zstd */
    int64_t next_row;
    unsigned char *band;             /* [chunk of the row][channel][chunk_rows][chunk_cols] */
    unsigned char *packed;           /* a compressed chunk */
    struct rfx_overviews *overviews; /* NULL: none */
    unsigned char *overview_row;
    bool failed;
};

static size_t sample_bytes(const struct rfx_zarr_array *a) {
    return (size_t)(a->bits / 8);
}

static size_t chunk_bytes(const struct rfx_zarr_array *a) {
    return (size_t)(a->chunk_rows * a->chunk_cols) * sample_bytes(a);
}

static size_t row_bytes(const struct rfx_zarr_array *a) {
    return (size_t)(a->w * a->channels) * sample_bytes(a);
}

static int64_t chunks_across(const struct rfx_zarr_array *a) {
    return rfx_ceil_div(a->w, a->chunk_cols);
}

static size_t band_bytes(const struct rfx_zarr_array *a) {
    return (size_t)(chunks_across(a) * a->channels) * chunk_bytes(a);
}

size_t rfx_zarr_write_bytes(const struct rfx_zarr_array *a) {
    size_t packed = a->zstd ? rfx_zstd_bound(chunk_bytes(a)) + RFX_ZSTD_CONTEXT_BYTES : 0;
    const struct rfx_overview_map map = rfx_zarr_overviews(a);
    if (rfx_overviews_count(&map) > 0) packed += rfx_overviews_bytes(&map) + row_bytes(a);
    return band_bytes(a) + packed + METADATA_BYTES;
}

static enum rfx_status check_array(const struct rfx_zarr_array *a, const char *path,
                                   struct rfx_error *err) {
    bool sizes = a->h >= 1 && a->w >= 1 && a->channels >= 1 && a->h <= INT32_MAX &&
                 a->w <= INT32_MAX && a->channels <= RFX_ZARR_MOST_CHANNELS;
    bool samples = a->bits == 8 || a->bits == 16 || a->bits == 32;
    if (!sizes || !samples || (a->format != 2 && a->format != 3))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a Zarr array, format %d, of %" PRId64 " x %" PRId64
                        " pixels and %" PRId64 " channels of %d bits",
                        path, a->format, a->h, a->w, a->channels, a->bits);
    if (a->chunk_rows >= 1 && a->chunk_cols >= 1 && a->chunk_rows <= RFX_ZARR_MOST_CHUNK &&
        a->chunk_cols <= MOST_CHUNK_SAMPLES / a->chunk_rows && !(a->ome && a->batch))
        return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: chunks of %" PRId64 " x %" PRId64
                    " pixels: they have 1 to %d rows and at most %" PRId64 " pixels",
                    path, a->chunk_rows, a->chunk_cols, (int)RFX_ZARR_MOST_CHUNK,
                    MOST_CHUNK_SAMPLES);
}

static enum rfx_status make_room(struct rfx_zarr_writer *writer, struct rfx_error *err) {
    const struct rfx_zarr_array *a = &writer->array;
    size_t packed = a->zstd ? rfx_zstd_bound(chunk_bytes(a)) : 0;
    writer->band = rfx_memory_calloc(writer->mem, 1, band_bytes(a));
    if (writer->band == NULL) return rfx_memory_fail(writer->mem, writer->path, band_bytes(a), err);
    if (!a->zstd) return RFX_OK;
    writer->packed = rfx_memory_alloc(writer->mem, packed);
    if (writer->packed == NULL) return rfx_memory_fail(writer->mem, writer->path, packed, err);
    enum rfx_status status = rfx_zstd_library_load(&writer->zstd, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "%s", writer->path);
    writer->context = writer->zstd.ZSTD_createCCtx();
    return writer->context != NULL
               ? RFX_OK
               : rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "%s: no memory for zstd", writer->path);
}

static enum rfx_status open_overviews(struct rfx_zarr_writer *writer, struct rfx_error *err) {
    const struct rfx_overview_map map = rfx_zarr_overviews(&writer->array);
    if (rfx_overviews_count(&map) == 0) return RFX_OK;
    writer->overview_row = rfx_memory_alloc(writer->mem, row_bytes(&writer->array));
    if (writer->overview_row == NULL)
        return rfx_memory_fail(writer->mem, writer->path, row_bytes(&writer->array), err);
    return rfx_overviews_open(writer->mem, writer->path, &map, &writer->overviews, err);
}

/* Checks the free disk space before the work. Skipped with compression, because the size is not
 * known then. */
static enum rfx_status check_disk(struct rfx_zarr_writer *writer, struct rfx_error *err) {
    const struct rfx_zarr_array *a = &writer->array;
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)rfx_ceil_div(a->h, a->chunk_rows), band_bytes(a), &bytes))
        bytes = INT64_MAX;
    return a->zstd ? RFX_OK : rfx_output_folder_room(writer->folder, bytes, err);
}

enum rfx_status rfx_zarr_write_open(struct rfx_memory *mem, const char *path,
                                    const struct rfx_zarr_array *array,
                                    struct rfx_zarr_writer **out, struct rfx_error *err) {
    enum rfx_status status = check_array(array, path, err);
    if (status != RFX_OK) return status;
    struct rfx_zarr_writer *writer = rfx_memory_calloc(mem, 1, sizeof *writer);
    if (writer == NULL) return rfx_memory_fail(mem, path, sizeof *writer, err);
    writer->mem = mem;
    writer->array = *array;
    writer->path = rfx_memory_strdup(mem, path);
    if (writer->path == NULL) status = rfx_memory_fail(mem, path, strlen(path) + 1, err);
    if (status == RFX_OK) status = rfx_output_folder_open(mem, path, &writer->folder, err);
    if (status == RFX_OK) status = check_disk(writer, err);
    if (status == RFX_OK) status = make_room(writer, err);
    if (status == RFX_OK) status = open_overviews(writer, err);
    if (status != RFX_OK) {
        rfx_zarr_write_free(writer);
        return status;
    }
    *out = writer;
    return RFX_OK;
}

static enum rfx_status write_chunk(struct rfx_zarr_writer *writer, const unsigned char *chunk,
                                   const char *name, struct rfx_error *err) {
    const struct rfx_zstd_library *zstd = &writer->zstd;
    size_t bytes = chunk_bytes(&writer->array);
    if (!writer->array.zstd) return rfx_output_folder_put(writer->folder, name, chunk, bytes, err);
    size_t packed = zstd->ZSTD_compressCCtx(writer->context, writer->packed, rfx_zstd_bound(bytes),
                                            chunk, bytes, RFX_ZARR_LEVEL);
    if (zstd->ZSTD_isError(packed))
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "%s/%s: zstd: %s", writer->path, name,
                        zstd->ZSTD_getErrorName(packed));
    return rfx_output_folder_put(writer->folder, name, writer->packed, packed, err);
}

/* Writes the present row of chunks, of which `rows` rows are filled. */
static enum rfx_status write_band(struct rfx_zarr_writer *writer, int64_t rows,
                                  struct rfx_error *err) {
    const struct rfx_zarr_array *a = &writer->array;
    size_t bytes = chunk_bytes(a);
    size_t filled = (size_t)(rows * a->chunk_cols) * sample_bytes(a);
    int64_t y = (writer->next_row - 1) / a->chunk_rows;
    for (int64_t i = 0; i < chunks_across(a) * a->channels; i++) {
        char name[RFX_ZARR_NAME];
        unsigned char *chunk = writer->band + (size_t)i * bytes;
        memset(chunk + filled, 0, bytes - filled);
        rfx_zarr_chunk_name(a, i % a->channels, y, i / a->channels, name);
        enum rfx_status status = write_chunk(writer, chunk, name, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

/* Copies `count` samples of one channel of the row to contiguous places. */
static void gather(unsigned char *to, const unsigned char *from, int64_t count, int64_t channels,
                   size_t bytes) {
    size_t step = (size_t)channels * bytes;
    if (bytes == 4) /* a copy of a known length is one instruction */
        for (int64_t x = 0; x < count; x++, to += 4, from += step) memcpy(to, from, 4);
    else
        for (int64_t x = 0; x < count; x++, to += bytes, from += step) memcpy(to, from, bytes);
}

static void put_row(struct rfx_zarr_writer *writer, const unsigned char *row) {
    const struct rfx_zarr_array *a = &writer->array;
    size_t sample = sample_bytes(a), pixel = (size_t)a->channels * sample;
    size_t down = (size_t)(writer->next_row % a->chunk_rows * a->chunk_cols) * sample;
    for (int64_t i = 0; i < chunks_across(a); i++) {
        int64_t x = i * a->chunk_cols, count = rfx_min_i64(a->chunk_cols, a->w - x);
        for (int64_t c = 0; c < a->channels; c++)
            gather(writer->band + (size_t)(i * a->channels + c) * chunk_bytes(a) + down,
                   row + (size_t)x * pixel + (size_t)c * sample, count, a->channels, sample);
    }
}

static enum rfx_status write_row(struct rfx_zarr_writer *writer, const void *samples,
                                 struct rfx_error *err) {
    const struct rfx_zarr_array *a = &writer->array;
    if (writer->failed || writer->next_row >= a->h)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: row %" PRId64 " of %" PRId64 " %s",
                        writer->path, writer->next_row, a->h,
                        writer->failed ? "could not be written" : "");
    put_row(writer, samples);
    writer->next_row++;
    int64_t rows = (writer->next_row - 1) % a->chunk_rows + 1;
    if (rows < a->chunk_rows && writer->next_row < a->h) return RFX_OK;
    enum rfx_status status = write_band(writer, rows, err);
    writer->failed = status != RFX_OK;
    return status;
}

enum rfx_status rfx_zarr_write_row(struct rfx_zarr_writer *writer, const void *samples,
                                   struct rfx_error *err) {
    enum rfx_status status = write_row(writer, samples, err);
    if (status != RFX_OK || writer->overviews == NULL) return status;
    return rfx_overviews_put(writer->overviews, samples, err);
}

/* Writes the arrays of smaller copies one after the other, with the same buffer. */
static enum rfx_status write_overviews(struct rfx_zarr_writer *writer, struct rfx_error *err) {
    const struct rfx_zarr_array whole = writer->array;
    const struct rfx_overview_map map = rfx_zarr_overviews(&whole);
    enum rfx_status status = RFX_OK;
    for (int k = 1; k <= rfx_overviews_count(&map) && status == RFX_OK; k++) {
        writer->array = rfx_zarr_level(&whole, k);
        writer->next_row = 0;
        memset(writer->band, 0, band_bytes(&writer->array));
        for (int64_t y = 0; y < writer->array.h && status == RFX_OK; y++) {
            status = rfx_memory_check_stop(writer->mem, err);
            if (status == RFX_OK)
                status = rfx_overviews_read(writer->overviews, k, y, writer->overview_row, err);
            if (status == RFX_OK) status = write_row(writer, writer->overview_row, err);
        }
    }
    writer->array = whole;
    writer->next_row = whole.h;
    return status;
}

/* Writes the metadata files. The picture's name is the last part of the path without its ending. */
static enum rfx_status write_metadata(struct rfx_zarr_writer *writer, struct rfx_error *err) {
    char title[256];
    const char *slash = strrchr(writer->path, '/');
    rfx_printable(slash != NULL ? slash + 1 : writer->path, title, sizeof title);
    const char *end = rfx_output_end(title);
    if (end != NULL) title[end - title] = '\0';
    for (int k = 0;; k++) {
        char name[RFX_ZARR_NAME];
        char *text;
        enum rfx_status status =
            rfx_zarr_metadata(writer->mem, &writer->array, title, k, name, &text, err);
        if (status != RFX_OK || text == NULL) return status;
        status = rfx_output_folder_put(writer->folder, name, text, strlen(text), err);
        rfx_memory_release(writer->mem, text);
        if (status != RFX_OK) return status;
    }
}

enum rfx_status rfx_zarr_write_commit(struct rfx_zarr_writer *writer, struct rfx_error *err) {
    if (writer->failed || writer->next_row != writer->array.h)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: %" PRId64 " of %" PRId64 " rows written", writer->path,
                        writer->next_row, writer->array.h);
    enum rfx_status status = writer->overviews != NULL ? write_overviews(writer, err) : RFX_OK;
    if (status == RFX_OK) status = write_metadata(writer, err);
    return status == RFX_OK ? rfx_output_folder_commit(writer->folder, err) : status;
}

void rfx_zarr_write_free(struct rfx_zarr_writer *writer) {
    if (writer == NULL) return;
    if (writer->context != NULL) (void)writer->zstd.ZSTD_freeCCtx(writer->context);
    rfx_output_folder_free(writer->folder);
    rfx_overviews_free(writer->overviews);
    rfx_memory_release(writer->mem, writer->overview_row);
    rfx_memory_release(writer->mem, writer->packed);
    rfx_memory_release(writer->mem, writer->band);
    rfx_memory_release(writer->mem, writer->path);
    rfx_memory_release(writer->mem, writer);
}
