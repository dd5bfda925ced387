/* TIFF and BigTIFF pictures through libtiff, read in one of three ways:
 *
 * - uncompressed data are read directly from the file: any rectangle, without libtiff;
 * - compressed tiles are decoded when a rectangle needs them: any rectangle, with one row of tiles
 * kept in memory;
 * - compressed strips are decoded row by row into a window, like PNG.
 *
 * rfexec/image/tiff/tiff_layout.h describes the samples. One picture of a file is read.
 * base.orientation is set from the tag, colour profiles are not applied, and alpha is dropped.
 * Samples that are delivered as float32 are used unchanged, without scale and mean. Invariants: 1.
 * fixed_bytes also bounds the memory that libtiff allocates by itself: its tables, the largest
 * compressed strip or tile, and the codec's state; 2. rows: row y lies in slot y mod window_rows;
 * 3. tiles: column x of row y lies in cache row y mod tile_h, valid if tile_row_of of its column of
 * tiles is that row of tiles. Strict: a warning of libtiff while decoding is an error. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/decode/decoding.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"
#include "rfexec/image/tiff/tiff_directories.h"
#include "rfexec/image/tiff/tiff_layout.h"
#include "rfexec/image/tiff/tiff_library.h"

/* The quantities that determine the memory of libtiff and the caches while a TIFF is read. */
struct reading {
    size_t decoders;     /* number of open handles of the picture */
    int64_t n_striles;   /* number of strips or tiles in all planes */
    size_t strile_bytes; /* bytes of a decoded strip or tile; 0: nothing is decoded */
    size_t raw_bytes;    /* bytes that one call decodes */
    int64_t cache_rows;  /* rows of the cached row of tiles; 0: no cache */
    size_t row_bytes;    /* bytes of a delivered row */
    int64_t n_across;    /* tiles in a row */
};

#define HANDLE_BYTES ((size_t)1 << 18) /* directory, buffers and small tables of the codec */
#define TABLE_BYTES ((size_t)3 << 18)  /* memory of a codec with larger tables */
#define STRILE_BYTES 32 /* bytes for each strip or tile: offset and count, twice while loading */

/* Returns how many copies of a decoded strip or tile a codec may hold besides its output:
 * dictionaries (LZMA, Zstandard), coefficients of all scans (JPEG), whole pictures (the others). */
static size_t codec_copies(int compression) {
    switch (compression) {
        case COMPRESSION_LZMA:
        case COMPRESSION_ZSTD:
            return 1;
        case COMPRESSION_JPEG:
        case COMPRESSION_JBIG:
            return 3;
        case COMPRESSION_WEBP:
        case COMPRESSION_LERC:
        case COMPRESSION_PIXARLOG:
            return 4;
        default:
            return 0;
    }
}

/* Returns the bytes of the largest compressed strip or tile, at most the file's size. */
static size_t largest_raw_bytes(const struct rfx_tiff_library *lib, TIFF *tif, int64_t n_striles,
                                int64_t file_bytes) {
    uint64_t largest = 0;
    for (int64_t i = 0; i < n_striles; i++) {
        int bad = 0;
        uint64_t bytes = lib->TIFFGetStrileByteCountWithErr(tif, (uint32_t)i, &bad);
        if (!bad && bytes > largest) largest = bytes;
    }
    uint64_t all = (uint64_t)file_bytes;
    return (size_t)(largest < all ? largest : all);
}

/* Returns the resident memory of a codec's library: none without compression, little for zlib
 * (libdeflate) and libtiff's own codecs. *has_tables: the codec has large tables. */
static size_t codec_bytes(int compression, bool *has_tables) {
    *has_tables = false;
    switch (compression) {
        case COMPRESSION_NONE:
            return 0;
        case COMPRESSION_LZW:
        case COMPRESSION_PACKBITS:
        case COMPRESSION_DEFLATE:
        case COMPRESSION_ADOBE_DEFLATE:
            return (size_t)1 << 18;
        default:
            *has_tables = true;
            return (size_t)3 << 19;
    }
}

/* Adds times * bytes to the sum. Returns false on overflow. */
static bool count(size_t *sum, size_t times, size_t bytes) {
    size_t product;
    return rfx_checked_mul_size(times, bytes, &product) && rfx_checked_add_size(*sum, product, sum);
}

/* Computes an upper bound of the memory. Returns false if it exceeds any memory. file_bytes: no
 * strip or tile is larger. */
static bool bound_memory(const struct rfx_tiff_library *lib, TIFF *tif,
                         const struct reading *reading, int64_t file_bytes, size_t *out) {
    const struct reading *r = reading;
    uint16_t compression = COMPRESSION_NONE;
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_COMPRESSION, &compression);
    bool has_tables;
    size_t sum = RFX_TIFF_LIBRARY_BYTES + codec_bytes(compression, &has_tables);
    bool fits = count(&sum, r->decoders, HANDLE_BYTES + (has_tables ? TABLE_BYTES : 0)) &&
                count(&sum, r->decoders * (size_t)r->n_striles, STRILE_BYTES);
    if (r->strile_bytes > 0)
        fits = fits &&
               count(&sum, r->decoders, largest_raw_bytes(lib, tif, r->n_striles, file_bytes)) &&
               count(&sum, r->decoders * codec_copies(compression), r->strile_bytes) &&
               count(&sum, 1, r->raw_bytes);
    if (r->cache_rows > 0)
        fits = fits && count(&sum, (size_t)r->cache_rows, r->row_bytes) &&
               count(&sum, (size_t)r->n_across, sizeof(int64_t));
    *out = sum;
    return fits;
}

/* Columns of uncompressed data that are read at a time, unless pixels are too large. */
#define CHUNK_COLS 2048
#define CHUNK_BYTES (CHUNK_COLS * 4 * 4) /* for pixels of up to four 4-byte samples */
#define MAX_SAMPLE_BYTES 8               /* float64 */
_Static_assert(CHUNK_BYTES >= 8 * RFX_IMAGE_MAX_BANDS * MAX_SAMPLE_BYTES, "holds some pixels");

enum way { WAY_PLAIN, WAY_TILES, WAY_ROWS };

struct tiff_source {
    struct rfx_image_backend base;
    struct rfx_image_file file;
    struct rfx_tiff_library lib;
    struct rfx_tiff_log log;
    struct rfx_tiff_layout layout;
    enum way way;
    const struct rfx_image_bands *chosen; /* used while the file is opened */
    int64_t wanted;                       /* channels of the network */
    int64_t page, plane;
    struct rfx_tiff_handle handle;
    /* separate planes in strips need a decoder each, because each decoder has one position; these
     * are the decoders of all planes but the first */
    struct rfx_tiff_handle *others;
    struct rfx_image_bands planes; /* planes that are read; n 1 unless separate */
    int64_t n_striles;             /* number of strips or tiles in all planes */
    int64_t n_across;              /* strips or tiles from left to right */
    bool broken;                   /* rows: there was an error */
    int64_t next_row;              /* rows: first row that is not decoded yet */
    int64_t chunk_cols;            /* columns of uncompressed data that are read at a time */
    int64_t cache_rows;            /* rows of the window or of a tile; 0: nothing is allocated */
    size_t row_bytes;              /* bytes of a delivered row */
    size_t raw_bytes;              /* bytes of one row or tile of one plane */
    unsigned char *raw, *cache;
    /* for each column of tiles: the row of tiles that the cache has; -1: none */
    int64_t *tile_row_of;
    unsigned char chunk[2][CHUNK_BYTES];
};

static struct tiff_source *self_of(struct rfx_image_backend *b) {
    return (struct tiff_source *)(void *)b;
}

/* Returns the status and writes the text for a failure of libtiff; `place` is "header" or "row 7 of
 * 9". */
static enum rfx_status failed(struct tiff_source *s, const char *place, struct rfx_error *err) {
    if (s->file.error_number != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: %s: %s", s->base.name, place,
                        strerror(s->file.error_number));
    bool no_memory = rfx_tiff_log_has_no_memory(&s->log);
    if (no_memory && s->log.words[0] == '\0')
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "%s: %s: libtiff has no memory",
                        s->base.name, place);
    return rfx_fail(err, no_memory ? RFX_STATUS_OUT_OF_MEMORY : RFX_STATUS_MALFORMED, "%s: %s: %s",
                    s->base.name, place,
                    s->log.words[0] != '\0' ? s->log.words : "the file ends here");
}

static enum rfx_status failed_in_row(struct tiff_source *s, int64_t y, struct rfx_error *err) {
    char place[64];
    (void)snprintf(place, sizeof place, "row %" PRId64 " of %" PRId64, y, s->base.h);
    return failed(s, place, err);
}

/* Returns the decoder of the i-th plane. */
static struct rfx_tiff_handle *handle_of(struct tiff_source *s, int i) {
    return i == 0 || s->others == NULL ? &s->handle : &s->others[i - 1];
}

/* Returns the number of decoders. */
static int count_handles(const struct tiff_source *s) {
    return s->others != NULL ? s->planes.n : 1;
}

static void close_handles(struct tiff_source *s) {
    for (int i = 0; i < count_handles(s); i++) rfx_tiff_handle_close(handle_of(s, i), &s->lib);
}

/* Opens the handles that are not open. */
static enum rfx_status open_handles(struct tiff_source *s, struct rfx_error *err) {
    for (int i = 0; i < count_handles(s); i++) {
        struct rfx_tiff_handle *h = handle_of(s, i);
        if (h->tif != NULL) continue;
        if (!rfx_tiff_handle_open(h, &s->lib, &s->file, s->page > 0, &s->log))
            return failed(s, "header", err);
        if (s->page > 0) {
            enum rfx_status status =
                rfx_tiff_directory_select(s->base.mem, h, &s->lib, &s->log, s->page, err);
            if (status != RFX_OK) return rfx_fail_within(err, status, "%s", s->base.name);
        }
        /* libtiff converts JPEG's YCbCr if this is set on the handle */
        if (s->layout.is_ycbcr)
            (void)s->lib.TIFFSetField(h->tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    }
    return RFX_OK;
}

/* Returns the number of the strip or tile of plane `plane` that contains (y, x). */
static uint32_t strile_at(const struct tiff_source *s, int64_t y, int64_t x, int plane) {
    const struct rfx_tiff_layout *l = &s->layout;
    int64_t per_plane = s->n_across * rfx_ceil_div(l->h, l->tile_h);
    return (uint32_t)(plane * per_plane + y / l->tile_h * s->n_across + x / l->tile_w);
}

/* Reads `bytes` of an uncompressed strip or tile, from `offset` in it, into chunk 0. */
static bool read_plain(struct tiff_source *s, uint32_t strile, int64_t offset, int64_t bytes) {
    TIFF *tif = s->handle.tif;
    int bad_offset = 0, bad_count = 0;
    uint64_t start = s->lib.TIFFGetStrileOffsetWithErr(tif, strile, &bad_offset);
    uint64_t count = s->lib.TIFFGetStrileByteCountWithErr(tif, strile, &bad_count);
    if (bad_offset || bad_count || start == 0 || start > (uint64_t)s->file.bytes ||
        (s->plane == 0 && count < (uint64_t)(offset + bytes)))
        return false;
    if (rfx_image_file_pread(&s->file, s->chunk[0], (size_t)bytes, (int64_t)start + offset) !=
        (size_t)bytes)
        return false;
    if (s->layout.lsb_first) s->lib.TIFFReverseBits(s->chunk[0], bytes);
    if (!s->lib.TIFFIsByteSwapped(tif)) return true;
    if (s->layout.bits == 16)
        s->lib.TIFFSwabArrayOfShort((uint16_t *)(void *)s->chunk[0], bytes / 2);
    else if (s->layout.bits == 32)
        s->lib.TIFFSwabArrayOfLong((uint32_t *)(void *)s->chunk[0], bytes / 4);
    else if (s->layout.bits == 64)
        s->lib.TIFFSwabArrayOfLong8((uint64_t *)(void *)s->chunk[0], bytes / 8);
    return true;
}

static enum rfx_status fetch_plain(struct tiff_source *s, int64_t y, int64_t x0, int64_t x1,
                                   const void **samples, int64_t *end, struct rfx_error *err) {
    const struct rfx_tiff_layout *l = &s->layout;
    int64_t tile_x0 = x0 - x0 % l->tile_w;
    int64_t from =
        (x0 - tile_x0) & ~(int64_t)7; /* starts at a whole byte for samples of 1, 2 and 4 bits */
    int64_t to = rfx_min_i64(rfx_min_i64(x1 - tile_x0, l->tile_w), from + s->chunk_cols);
    int64_t offset = y % l->tile_h * rfx_tiff_layout_row_bytes(l, l->tile_w) +
                     rfx_tiff_layout_row_bytes(l, from);
    rfx_tiff_log_clear(&s->log);
    for (int i = 0; i < s->planes.n; i++) {
        int plane = s->planes.numbers[i];
        uint32_t strile = strile_at(s, y, x0, plane);
        if (s->plane > 0) { /* all rows follow each other from the first strip on */
            strile = 0;
            offset = (s->plane * l->h + y) * rfx_tiff_layout_row_bytes(l, l->w) +
                     rfx_tiff_layout_row_bytes(l, from);
        }
        if (!read_plain(s, strile, offset, rfx_tiff_layout_row_bytes(l, to - from)))
            return failed_in_row(s, y, err);
        rfx_tiff_layout_convert(l, s->chunk[0], plane, to - from, s->chunk[1]);
    }
    *samples = s->chunk[1] + (x0 - tile_x0 - from) * rfx_tiff_layout_pixel_bytes(l);
    *end = tile_x0 + to;
    return RFX_OK;
}

/* Decodes the tile that contains (y, x) into the cache. */
static enum rfx_status decode_tile(struct tiff_source *s, int64_t y, int64_t x,
                                   struct rfx_error *err) {
    const struct rfx_tiff_layout *l = &s->layout;
    int64_t column = x / l->tile_w, x0 = column * l->tile_w, y0 = y - y % l->tile_h;
    int64_t rows = rfx_min_i64(l->tile_h, l->h - y0), cols = rfx_min_i64(l->tile_w, l->w - x0);
    size_t raw_row = (size_t)rfx_tiff_layout_row_bytes(l, l->tile_w);
    s->tile_row_of[column] = -1;
    for (int i = 0; i < s->planes.n; i++) {
        int plane = s->planes.numbers[i];
        rfx_tiff_log_clear(&s->log);
        memset(s->raw, 0,
               s->raw_bytes); /* libtiff may fill only a part from broken data without an error */
        tmsize_t got = s->lib.TIFFReadEncodedTile(s->handle.tif, strile_at(s, y, x, plane), s->raw,
                                                  (tmsize_t)s->raw_bytes);
        if (got != (tmsize_t)s->raw_bytes || s->log.complained) return failed_in_row(s, y, err);
        for (int64_t row = 0; row < rows; row++)
            rfx_tiff_layout_convert(
                l, s->raw + (size_t)row * raw_row, plane, cols,
                s->cache + (size_t)row * s->row_bytes + x0 * rfx_tiff_layout_pixel_bytes(l));
    }
    s->tile_row_of[column] = y / l->tile_h;
    return RFX_OK;
}

static enum rfx_status decode_row(struct tiff_source *s, struct rfx_error *err) {
    enum rfx_status status = rfx_memory_check_stop(s->base.mem, err);
    if (status != RFX_OK) return status;
    unsigned char *to = s->cache + (size_t)(s->next_row % s->cache_rows) * s->row_bytes;
    for (int i = 0; i < s->planes.n && !s->broken; i++) {
        int plane = s->planes.numbers[i];
        rfx_tiff_log_clear(&s->log);
        memset(s->raw, 0, s->raw_bytes);
        int result = s->lib.TIFFReadScanline(handle_of(s, i)->tif, s->raw, (uint32_t)s->next_row,
                                             (uint16_t)plane);
        s->broken = result < 0 || s->log.complained;
        if (!s->broken) rfx_tiff_layout_convert(&s->layout, s->raw, plane, s->layout.w, to);
    }
    if (s->broken) return failed_in_row(s, s->next_row, err);
    s->next_row++;
    return RFX_OK;
}

static enum rfx_status source_rewind(struct rfx_image_backend *b, struct rfx_error *err) {
    struct tiff_source *s = self_of(b);
    s->next_row = 0;
    if (s->broken) close_handles(s); /* after an error the decoder starts anew */
    s->broken = false;
    return open_handles(s, err);
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct tiff_source *s = self_of(b);
    if (s->way == WAY_PLAIN || (s->way == WAY_TILES && s->cache_rows > 0)) return RFX_OK;
    rows = rfx_min_i64(s->way == WAY_TILES ? s->layout.tile_h : rows, b->h);
    rfx_memory_release(b->mem, s->cache);
    rfx_memory_release(b->mem, s->raw);
    rfx_memory_release(b->mem, s->tile_row_of);
    s->tile_row_of = NULL;
    s->cache_rows = 0;
    size_t bytes;
    if (!rfx_checked_mul_size((size_t)rows, s->row_bytes, &bytes)) bytes = SIZE_MAX;
    s->raw = rfx_memory_alloc(b->mem, s->raw_bytes);
    s->cache = rfx_memory_alloc(b->mem, bytes);
    if (s->way == WAY_TILES)
        s->tile_row_of = rfx_memory_alloc(b->mem, (size_t)s->n_across * sizeof *s->tile_row_of);
    if (s->raw == NULL || s->cache == NULL || (s->way == WAY_TILES && s->tile_row_of == NULL))
        return rfx_memory_fail(b->mem, b->name, bytes, err);
    for (int64_t i = 0; s->way == WAY_TILES && i < s->n_across; i++) s->tile_row_of[i] = -1;
    s->cache_rows = rows;
    return source_rewind(b, err);
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    (void)room;
    struct tiff_source *s = self_of(b);
    if (s->way == WAY_PLAIN) return fetch_plain(s, y, x0, x1, samples, end, err);
    enum rfx_status status = RFX_OK;
    if (s->way == WAY_TILES && s->cache_rows == 0) status = source_set_window(b, 1, err);
    while (status == RFX_OK && s->way == WAY_ROWS && s->next_row <= y) status = decode_row(s, err);
    if (status != RFX_OK) return status;
    int64_t slot = y % s->cache_rows;
    *end = x1;
    if (s->way == WAY_TILES) {
        int64_t column = x0 / s->layout.tile_w;
        slot = y % s->layout.tile_h;
        *end = rfx_min_i64(x1, (column + 1) * s->layout.tile_w);
        if (s->tile_row_of[column] != y / s->layout.tile_h) status = decode_tile(s, y, x0, err);
    }
    *samples =
        s->cache + (size_t)slot * s->row_bytes + x0 * rfx_tiff_layout_pixel_bytes(&s->layout);
    return status;
}

static void source_free(struct rfx_image_backend *b) {
    struct tiff_source *s = self_of(b);
    close_handles(s);
    rfx_memory_release(b->mem, s->others);
    rfx_memory_release(b->mem, s->raw);
    rfx_memory_release(b->mem, s->cache);
    rfx_memory_release(b->mem, s->tile_row_of);
    rfx_image_file_close(&s->file);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops source_ops = {.set_window = source_set_window,
                                                        .fetch = source_fetch,
                                                        .rewind = source_rewind,
                                                        .free = source_free};

/* Returns the decoding time of a sample with this compression (decoding.h). */
static int decode_of(int compression) {
    switch (compression) {
        case COMPRESSION_LZW:
            return RFX_DECODE_LZW;
        case COMPRESSION_PACKBITS:
            return RFX_DECODE_PACKBITS;
        default:
            return RFX_DECODE_DEFLATE;
    }
}

static enum rfx_status settle(struct tiff_source *s, struct rfx_error *err) {
    const struct rfx_tiff_layout *l = &s->layout;
    TIFF *tif = s->handle.tif;
    s->base.h = l->h;
    s->base.w = l->w;
    s->base.c = l->c;
    s->base.sample_bits = l->sample_bits;
    s->base.bands = l->stored;
    s->base.n_alpha = l->n_alpha;
    s->base.chosen = s->chosen != NULL;
    s->base.is_colour = l->is_colour;
    s->base.orientation = l->orientation;
    s->planes = l->separate ? rfx_tiff_layout_samples(l) : (struct rfx_image_bands){.n = 1};
    int64_t pixel_bytes = rfx_max_i64(l->separate ? l->bits / 8 : l->stored * l->bits / 8,
                                      rfx_tiff_layout_pixel_bytes(l));
    s->chunk_cols = rfx_min_i64(CHUNK_COLS, CHUNK_BYTES / pixel_bytes);
    s->n_striles = l->tiled ? s->lib.TIFFNumberOfTiles(tif) : s->lib.TIFFNumberOfStrips(tif);
    s->n_across = rfx_ceil_div(l->w, l->tile_w);
    int64_t per_plane = s->n_across * rfx_ceil_div(l->h, l->tile_h);
    bool plain = l->compression == COMPRESSION_NONE;
    s->way = plain ? WAY_PLAIN : l->tiled ? WAY_TILES : WAY_ROWS;
    s->row_bytes = (size_t)(l->w * rfx_tiff_layout_pixel_bytes(l));
    s->raw_bytes = (size_t)rfx_tiff_layout_row_bytes(l, l->tile_w);
    uint64_t stated = l->tiled ? s->lib.TIFFTileSize64(tif) : s->lib.TIFFScanlineSize64(tif);
    size_t strile = s->raw_bytes * (size_t)l->tile_h; /* see RFX_IMAGE_MAX_SIDE */
    if (s->way == WAY_TILES) s->raw_bytes = strile;
    if (stated != (l->tiled ? strile : s->raw_bytes) ||
        s->n_striles != per_plane * rfx_tiff_layout_planes(l))
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: %s of %" PRIu64 " bytes do not fit the sizes in the header",
                        s->base.name, l->tiled ? "TIFF tiles" : "TIFF rows", stated);
    if (s->plane > 0 && (s->way != WAY_PLAIN || l->tiled || l->separate))
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: plane %" PRId64 " of a page that is compressed, tiled or in planes",
                        s->base.name, s->plane);
    s->base.shared_bytes = RFX_TIFF_LIBRARY_BYTES;
    s->base.random_access = s->way != WAY_ROWS;
    s->base.window_row_bytes = s->way == WAY_ROWS ? s->row_bytes : 0;
    s->base.pass_picoseconds =
        rfx_decode_picoseconds(decode_of(l->compression), l->h, l->w, l->stored);
    const struct reading reading = {
        .decoders = s->way == WAY_ROWS ? (size_t)s->planes.n : 1,
        .n_striles = s->n_striles,
        .strile_bytes = plain ? 0 : strile,
        .raw_bytes = plain ? 0 : s->raw_bytes,
        .cache_rows = s->way == WAY_TILES ? rfx_min_i64(l->tile_h, l->h) : 0,
        .row_bytes = s->row_bytes,
        .n_across = s->n_across};
    size_t own = sizeof *s + (reading.decoders - 1) * sizeof *s->others;
    if (!bound_memory(&s->lib, tif, &reading, s->file.bytes, &s->base.fixed_bytes) ||
        !rfx_checked_add_size(s->base.fixed_bytes, own, &s->base.fixed_bytes))
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: %" PRId64 " x %" PRId64 " pixels do not fit any memory", s->base.name,
                        l->h, l->w);
    return RFX_OK;
}

/* Opens the first decoder and reads the directory. */
static enum rfx_status read_directory(struct tiff_source *s, struct rfx_error *err) {
    enum rfx_status status = rfx_tiff_library_load(&s->lib, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "%s", s->base.name);
    status = open_handles(s, err);
    if (status != RFX_OK) return status;
    status = rfx_tiff_layout_read(&s->lib, s->handle.tif, s->chosen, s->wanted, &s->layout, err);
    return status == RFX_OK ? settle(s, err) : rfx_fail_within(err, status, "%s", s->base.name);
}

/* Allocates and opens the decoders of separate planes in strips. */
static enum rfx_status open_planes(struct tiff_source *s, struct rfx_error *err) {
    if (s->way != WAY_ROWS || s->planes.n == 1) return RFX_OK;
    size_t n = (size_t)s->planes.n - 1;
    s->others = rfx_memory_calloc(s->base.mem, n, sizeof *s->others);
    if (s->others == NULL)
        return rfx_memory_fail(s->base.mem, s->base.name, n * sizeof *s->others, err);
    return open_handles(s, err);
}

enum rfx_status rfx_image_tiff_open(struct rfx_memory *mem, const char *name,
                                    const struct rfx_image_options *options, int64_t plane,
                                    struct rfx_image_backend **out, struct rfx_error *err) {
    const char *kind = plane == 0 ? "TIFF" : "ImageJ stack"; /* which has no georeference */
    struct rfx_image_backend *b;
    enum rfx_status status =
        rfx_image_backend_create(mem, sizeof(struct tiff_source), &source_ops, name, kind, &b, err);
    if (status != RFX_OK) return status;
    struct tiff_source *s = self_of(b);
    s->chosen = options->bands;
    s->wanted = options->channels;
    s->page = options->page;
    s->plane = plane;
    status = rfx_image_file_open(&s->file, name, err);
    if (status == RFX_OK) status = read_directory(s, err);
    if (status == RFX_OK) status = open_planes(s, err);
    s->chosen = NULL;
    return rfx_image_backend_finish(b, status, out);
}
