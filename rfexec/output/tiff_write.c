/* libtiff's writer on top of an output file (tiff/tiff_client.h).
 *
 * Rows are gathered until they make a row of tiles. Overviews are directories after the picture's:
 * overviews.h stores their rows until the whole picture is written. With planes it stores all rows,
 * because libtiff writes one directory after the other. */
#include "rfexec/output/tiff_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/output/output_file.h"
#include "rfexec/output/overviews/overviews.h"
#include "rfexec/output/tiff/cog_layout.h"
#include "rfexec/output/tiff/tiff_client.h"
#include "rfexec/output/tiff/tiff_fields.h"

#define STRIP_BYTES ((size_t)256 * 1024)
#define DIRECTORY_BYTES 65536 /* header and tags, generously */
#define PLANE_BYTES 1024      /* for each further directory: tags, and libtiff's data about it */
#define ORDERED_BYTES ((size_t)48 * 1024) /* memory for writing a second file */
#define DEFLATE_BYTES ((size_t)384 * 1024)
#define ZSTD_BYTES ((size_t)6 * 1024 * 1024)
enum { MOST_TILE = 4096, MOST_LEVELS = 32 };

struct rfx_tiff_writer {
    struct rfx_memory *mem;
    struct rfx_tiff_client client;
    /* COG only: the file into which client.file is copied; else NULL */
    struct rfx_output_file *ordered;
    char *path;
    struct rfx_tiff_library lib;
    TIFF *tiff;
    struct rfx_tiff_picture whole;   /* the whole picture */
    struct rfx_tiff_picture picture; /* the picture of the present directory */
    struct rfx_overviews *overviews; /* NULL: none */
    unsigned char *overview_row;
    int64_t given_rows, next_row; /* rows received, and next row of the present directory */
    unsigned char *band, *tile;   /* tiles only: a row of tiles, and one tile */
};

static size_t pixel_bytes(const struct rfx_tiff_picture *p) {
    return (size_t)p->channels * (size_t)(p->bits / 8);
}

static size_t row_bytes(const struct rfx_tiff_picture *p) {
    return (size_t)p->w * pixel_bytes(p); /* below 2^50 */
}

static size_t tile_bytes(const struct rfx_tiff_picture *p) {
    return (size_t)p->tile * (size_t)p->tile * pixel_bytes(p);
}

static int64_t strip_rows(const struct rfx_tiff_picture *p) {
    size_t bytes = row_bytes(p);
    return rfx_min_i64(bytes < STRIP_BYTES ? (int64_t)(STRIP_BYTES / bytes) : 1, p->h);
}

/* Returns the number of strips or tiles. */
static int64_t strile_count(const struct rfx_tiff_picture *p) {
    if (p->tile == 0) return rfx_ceil_div(p->h, strip_rows(p));
    return rfx_ceil_div(p->h, p->tile) * rfx_ceil_div(p->w, p->tile);
}

static struct rfx_overview_map overview_map(const struct rfx_tiff_picture *p) {
    struct rfx_overview_map map = {.h = p->h,
                                   .w = p->w,
                                   .channels = p->channels,
                                   .bits = p->bits,
                                   .is_signed = p->is_signed,
                                   .side = p->tile,
                                   .planes = p->planes,
                                   .kind = p->tile > 0 ? p->overviews : RFX_OVERVIEW_NONE};
    const char *text = p->geo != NULL ? p->geo->no_data : NULL;
    char *end = NULL;
    if (text != NULL) map.no_data = strtod(text, &end);
    map.has_no_data = end != NULL && end != text;
    return map;
}

/* Returns the picture of level k. */
static struct rfx_tiff_picture level_of(const struct rfx_tiff_picture *p, int k) {
    struct rfx_tiff_picture level = *p;
    level.h = rfx_overviews_length(p->h, k);
    level.w = rfx_overviews_length(p->w, k);
    return level;
}

/* Returns the picture that one directory holds. */
static struct rfx_tiff_picture plane_of(const struct rfx_tiff_picture *p) {
    struct rfx_tiff_picture plane = *p;
    if (p->planes) plane.channels = 1;
    return plane;
}

static int64_t count_planes(const struct rfx_tiff_picture *p) {
    return p->planes ? p->channels : 1;
}

/* Returns the bytes of the first directory's description. */
static size_t words_bytes(const struct rfx_tiff_picture *p) {
    return p->description == NULL ? 0 : strlen(p->description) + 1;
}

static size_t geo_bytes(const struct rfx_tiff_picture *p) {
    return p->geo == NULL ? 0 : rfx_georeference_bytes(p->geo);
}

/* Computes the bytes of samples and tables of one picture. Returns false if they exceed 63 bits. */
static bool picture_bytes(const struct rfx_tiff_picture *p, int64_t *bytes) {
    int64_t rows = p->tile == 0 ? p->h : rfx_ceil_div(p->h, p->tile) * p->tile;
    int64_t cols = p->tile == 0 ? p->w : rfx_ceil_div(p->w, p->tile) * p->tile;
    int64_t words = DIRECTORY_BYTES + (int64_t)(geo_bytes(p) + words_bytes(p)), tables;
    if (!rfx_checked_mul_i64(rows, cols * (int64_t)pixel_bytes(p), bytes)) return false;
    if (p->packing != RFX_TIFF_PLAIN)
        *bytes += *bytes / 64; /* data that cannot be compressed grow */
    return rfx_checked_mul_i64(strile_count(p) * 16 + PLANE_BYTES, count_planes(p), &tables) &&
           rfx_checked_add_i64(*bytes, tables, bytes) && rfx_checked_add_i64(*bytes, words, bytes);
}

bool rfx_tiff_write_is_big(const struct rfx_tiff_picture *p) {
    const struct rfx_overview_map map = overview_map(p);
    int64_t all = 0, bytes;
    for (int k = 0; k <= rfx_overviews_count(&map); k++) {
        const struct rfx_tiff_picture level = level_of(p, k);
        if (!picture_bytes(&level, &bytes) || !rfx_checked_add_i64(all, bytes, &all)) return true;
    }
    return all > UINT32_MAX;
}

/* Returns whether rows must be stored until other directories are written. */
static bool has_overviews(const struct rfx_tiff_picture *p) {
    const struct rfx_overview_map map = overview_map(p);
    return p->planes || rfx_overviews_count(&map) > 0;
}

size_t rfx_tiff_write_bytes(const struct rfx_tiff_picture *p) {
    static const size_t encoders[] = {0, DEFLATE_BYTES, ZSTD_BYTES};
    const struct rfx_tiff_picture plane = plane_of(p);
    size_t strip = (size_t)strip_rows(p) * row_bytes(p), tile = tile_bytes(&plane);
    size_t tables =
        (size_t)strile_count(p) * 32 + DIRECTORY_BYTES + 2 * geo_bytes(p) + 2 * words_bytes(p);
    const struct rfx_overview_map map = overview_map(p);
    int levels = rfx_overviews_count(&map);
    if (p->tile == 0) return strip + strip / 8 + tables;
    if (has_overviews(p)) tables += rfx_overviews_bytes(&map) + row_bytes(&plane);
    if (p->cog) tables += ORDERED_BYTES + rfx_cog_bytes(2 * strile_count(p) + MOST_LEVELS);
    if (p->planes) tables += (size_t)p->channels * (size_t)(levels + 1) * PLANE_BYTES;
    /* our tile, libtiff's for the encoded data, and the predictor's */
    return (size_t)p->tile * row_bytes(&plane) + 3 * tile + tile / 8 + encoders[p->packing] +
           tables;
}

static enum rfx_status failed(const struct rfx_tiff_writer *writer, struct rfx_error *err) {
    return rfx_tiff_client_failed(&writer->client, writer->path, writer->next_row,
                                  writer->picture.h, err);
}

/* Sets the tags of level k of a plane, which is written next. Borrowed data belong to the first
 * directory only. */
static enum rfx_status begin_directory(struct rfx_tiff_writer *writer, int k,
                                       struct rfx_error *err) {
    const struct rfx_overview_map map = overview_map(&writer->whole);
    const struct rfx_tiff_picture plane = plane_of(&writer->whole);
    writer->picture = level_of(&plane, k);
    writer->next_row = 0;
    const struct rfx_tiff_directory directory = {
        .picture = &writer->picture,
        .strip_rows = strip_rows(&plane),
        .reduced = k > 0,
        .n_below = k == 0 && plane.ome ? rfx_overviews_count(&map) : 0};
    enum rfx_status status = rfx_tiff_fields_set(writer->mem, writer->path, &writer->client,
                                                 &writer->lib, writer->tiff, &directory, err);
    writer->whole.geo = NULL;
    writer->whole.description = NULL;
    return status;
}

static enum rfx_status check_picture(const struct rfx_tiff_picture *p, const char *path,
                                     struct rfx_error *err) {
    if (p->h < 1 || p->w < 1 || p->h > INT32_MAX || p->w > INT32_MAX || p->channels < 1 ||
        p->channels > RFX_TIFF_MAX_CHANNELS || (p->bits != 8 && p->bits != 16 && p->bits != 32))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: cannot write a TIFF of %" PRId64 " x %" PRId64 " pixels and %" PRId64
                        " channels of %d bits",
                        path, p->h, p->w, p->channels, p->bits);
    if ((p->overviews != RFX_OVERVIEW_NONE || p->planes) && p->tile == 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: overviews and planes need tiles",
                        path);
    if (p->cog && (p->tile == 0 || p->ome || !rfx_output_file_is_regular(path)))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a COG needs tiles and a file (no pipe or device), without OME-XML",
                        path);
    if (p->tile < 0 || p->tile > MOST_TILE || p->tile % 16 != 0 ||
        (p->tile == 0 && p->packing != RFX_TIFF_PLAIN))
        return rfx_fail(
            err, RFX_STATUS_INVALID_ARGUMENT,
            "%s: tiles of %d pixels: the side must be a multiple of 16 from 16 to %d, or "
            "0 (no tiles) without compression",
            path, p->tile, MOST_TILE);
    return RFX_OK;
}

/* Opens the files, and reserves disk space for uncompressed data. The first file of a COG gets no
 * name. */
static enum rfx_status open_files(struct rfx_tiff_writer *writer, struct rfx_error *err) {
    const struct rfx_tiff_picture *p = &writer->whole;
    struct rfx_output_file **files[] = {&writer->client.file, &writer->ordered};
    enum rfx_status status = RFX_OK;
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)p->h, row_bytes(p), &bytes)) bytes = INT64_MAX;
    for (int i = 0; i < 1 + p->cog && status == RFX_OK; i++) {
        status = rfx_output_file_open(writer->mem, writer->path, files[i], err);
        if (status == RFX_OK && p->packing == RFX_TIFF_PLAIN)
            status = rfx_output_file_reserve(*files[i], bytes, err);
    }
    return status;
}

static enum rfx_status make_room(struct rfx_tiff_writer *writer, struct rfx_error *err) {
    const struct rfx_tiff_picture plane = plane_of(&writer->whole), *p = &plane;
    size_t band = (size_t)p->tile * row_bytes(p);
    if (p->tile == 0) return RFX_OK;
    writer->band = rfx_memory_alloc(writer->mem, band);
    writer->tile = rfx_memory_alloc(writer->mem, tile_bytes(p));
    if (writer->band == NULL || writer->tile == NULL)
        return rfx_memory_fail(writer->mem, writer->path, band + tile_bytes(p), err);
    const struct rfx_overview_map map = overview_map(&writer->whole);
    if (!has_overviews(&writer->whole)) return RFX_OK;
    writer->overview_row = rfx_memory_alloc(writer->mem, row_bytes(p));
    if (writer->overview_row == NULL)
        return rfx_memory_fail(writer->mem, writer->path, row_bytes(p), err);
    return rfx_overviews_open(writer->mem, writer->path, &map, &writer->overviews, err);
}

enum rfx_status rfx_tiff_write_open(struct rfx_memory *mem, const char *path,
                                    const struct rfx_tiff_picture *picture,
                                    struct rfx_tiff_writer **out, struct rfx_error *err) {
    enum rfx_status status = check_picture(picture, path, err);
    if (status != RFX_OK) return status;
    struct rfx_tiff_writer *writer = rfx_memory_calloc(mem, 1, sizeof *writer);
    if (writer == NULL) return rfx_memory_fail(mem, path, sizeof *writer, err);
    writer->mem = mem;
    writer->whole = *picture;
    writer->path = rfx_memory_strdup(mem, path);
    if (writer->path == NULL) status = rfx_memory_fail(mem, path, strlen(path) + 1, err);
    if (status == RFX_OK) {
        status = rfx_tiff_library_load(&writer->lib, err);
        if (status != RFX_OK) (void)rfx_fail_within(err, status, "%s", path);
    }
    if (status == RFX_OK) status = open_files(writer, err);
    if (status == RFX_OK) status = make_room(writer, err);
    if (status == RFX_OK) {
        writer->tiff = rfx_tiff_client_open(&writer->client, &writer->lib, writer->path,
                                            rfx_tiff_write_is_big(picture));
        if (writer->tiff == NULL) status = failed(writer, err);
    }
    if (status == RFX_OK) status = begin_directory(writer, 0, err);
    if (status != RFX_OK) {
        rfx_tiff_write_free(writer);
        return status;
    }
    *out = writer;
    return RFX_OK;
}

/* Writes the gathered rows as a row of tiles. Parts of a tile outside the picture are 0. */
static enum rfx_status write_tiles(struct rfx_tiff_writer *writer, int64_t rows,
                                   struct rfx_error *err) {
    const struct rfx_tiff_picture *p = &writer->picture;
    int64_t across = rfx_ceil_div(p->w, p->tile), first = (writer->next_row - 1) / p->tile * across;
    size_t tile_row = (size_t)p->tile * pixel_bytes(p);
    for (int64_t i = 0; i < across; i++) {
        size_t from = (size_t)i * tile_row, width = row_bytes(p) - from;
        width = width < tile_row ? width : tile_row;
        if (width < tile_row || rows < p->tile) memset(writer->tile, 0, tile_bytes(p));
        for (int64_t y = 0; y < rows; y++)
            memcpy(writer->tile + (size_t)y * tile_row,
                   writer->band + (size_t)y * row_bytes(p) + from, width);
        if (writer->lib.TIFFWriteEncodedTile(writer->tiff, (uint32_t)(first + i), writer->tile,
                                             (tmsize_t)tile_bytes(p)) < 0)
            return failed(writer, err);
    }
    return RFX_OK;
}

/* Adds a row to the present row of tiles. */
static enum rfx_status gather(struct rfx_tiff_writer *writer, const void *samples,
                              struct rfx_error *err) {
    const struct rfx_tiff_picture *p = &writer->picture;
    int64_t rows = writer->next_row % p->tile + 1;
    memcpy(writer->band + (size_t)(rows - 1) * row_bytes(p), samples, row_bytes(p));
    writer->next_row++;
    bool full = rows == p->tile || writer->next_row == p->h;
    return full ? write_tiles(writer, rows, err) : RFX_OK;
}

static enum rfx_status write_row(struct rfx_tiff_writer *writer, const void *samples,
                                 struct rfx_error *err) {
    if (writer->client.io_status != RFX_OK) return failed(writer, err);
    if (writer->picture.tile != 0) return gather(writer, samples, err);
    /* libtiff's parameter is not const, but libtiff only reads if no bytes are swapped */
    union {
        const void *given;
        void *taken;
    } row = {.given = samples};
    if (writer->lib.TIFFWriteScanline(writer->tiff, row.taken, (uint32_t)writer->next_row, 0) != 1)
        return failed(writer, err);
    writer->next_row++;
    return RFX_OK;
}

enum rfx_status rfx_tiff_write_row(struct rfx_tiff_writer *writer, const void *samples,
                                   struct rfx_error *err) {
    if (writer->given_rows >= writer->whole.h)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: all %" PRId64 " rows are written",
                        writer->path, writer->whole.h);
    enum rfx_status status = writer->whole.planes ? RFX_OK : write_row(writer, samples, err);
    if (status == RFX_OK) writer->given_rows++;
    if (status != RFX_OK || writer->overviews == NULL) return status;
    return rfx_overviews_put(writer->overviews, samples, err);
}

static enum rfx_status read_row(struct rfx_tiff_writer *writer, int64_t channel, int k, int64_t y,
                                struct rfx_error *err) {
    return writer->whole.planes
               ? rfx_overviews_read_plane(writer->overviews, k, channel, y, writer->overview_row,
                                          err)
               : rfx_overviews_read(writer->overviews, k, y, writer->overview_row, err);
}

/* Writes level k of a plane. Its tags are set already. */
static enum rfx_status write_level(struct rfx_tiff_writer *writer, int64_t channel, int k,
                                   struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t y = 0; y < writer->picture.h && status == RFX_OK; y++) {
        status = rfx_memory_check_stop(writer->mem, err);
        if (status == RFX_OK) status = read_row(writer, channel, k, y, err);
        if (status == RFX_OK) status = write_row(writer, writer->overview_row, err);
    }
    return status;
}

/* Writes the stored rows: with planes everything, else the overviews after the picture. The first
 * directory's tags are set already. TIFFFlush writes the last directory. */
static enum rfx_status write_waiting(struct rfx_tiff_writer *writer, struct rfx_error *err) {
    const struct rfx_tiff_picture *whole = &writer->whole;
    const struct rfx_overview_map map = overview_map(whole);
    int levels = rfx_overviews_count(&map);
    for (int64_t channel = 0; channel < count_planes(whole); channel++)
        for (int k = whole->planes ? 0 : 1; k <= levels; k++) {
            enum rfx_status status = RFX_OK;
            if (channel > 0 || k > 0) {
                if (writer->lib.TIFFWriteDirectory(writer->tiff) != 1) return failed(writer, err);
                status = begin_directory(writer, k, err);
            }
            if (status == RFX_OK) status = write_level(writer, channel, k, err);
            if (status != RFX_OK) return status;
        }
    return RFX_OK;
}

enum rfx_status rfx_tiff_write_commit(struct rfx_tiff_writer *writer, struct rfx_error *err) {
    if (writer->given_rows != writer->whole.h)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: %" PRId64 " of %" PRId64 " rows written", writer->path,
                        writer->given_rows, writer->whole.h);
    if (writer->client.io_status == RFX_OK && writer->overviews != NULL) {
        enum rfx_status status = write_waiting(writer, err);
        if (status != RFX_OK) return status;
    }
    if (writer->client.io_status != RFX_OK || writer->lib.TIFFFlush(writer->tiff) != 1 ||
        writer->client.io_status != RFX_OK)
        return failed(writer, err);
    if (!writer->whole.cog) return rfx_output_file_commit(writer->client.file, err);
    enum rfx_status status =
        rfx_cog_copy(writer->mem, writer->client.file, rfx_tiff_write_is_big(&writer->whole),
                     writer->ordered, err);
    return status == RFX_OK ? rfx_output_file_commit(writer->ordered, err) : status;
}

void rfx_tiff_write_free(struct rfx_tiff_writer *writer) {
    if (writer == NULL) return;
    /* TIFFClose would write pending data; with this status nothing is written */
    if (writer->client.io_status == RFX_OK) writer->client.io_status = RFX_STATUS_CANCELLED;
    if (writer->tiff != NULL) writer->lib.TIFFClose(writer->tiff);
    rfx_output_file_free(writer->ordered);
    rfx_output_file_free(writer->client.file);
    rfx_overviews_free(writer->overviews);
    rfx_memory_release(writer->mem, writer->overview_row);
    rfx_memory_release(writer->mem, writer->band);
    rfx_memory_release(writer->mem, writer->tile);
    rfx_memory_release(writer->mem, writer->path);
    rfx_memory_release(writer->mem, writer);
}
