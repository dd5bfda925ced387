/* JPEG 2000 through OpenJPEG, in cells of a fixed grid: tiles, or strips of STRIP rows if the
 * picture is one tile.
 *
 * Samples of up to 8 bits are scaled to 8 bits. Samples of 9 to 16 bits are delivered as they are
 * stored. Signed samples and samples of more bits are delivered as floats. All bands are delivered
 * except alpha, or all bands. Invariants: 1. a cell is always decoded as a whole, so a value does
 * not depend on the rectangle that is read; 2. the cache has one row of cells, and `cached` says
 * which one for each column; 3. OpenJPEG's own memory is bounded by decoder_bytes, computed from
 * the header. */
#include <inttypes.h>
#include <openjpeg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/library.h"
#include "layers/core/status.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"

/* Memory that a budget counts for the library and its tables. */
#define LIBRARY_BYTES ((size_t)3 << 19)

/* OpenJPEG, loaded by its file name when the first picture is decoded: libopenjp2.so.7 is version
 * 2.1 or later. */
struct jp2_library {
    __typeof__(opj_create_decompress) *opj_create_decompress;
    __typeof__(opj_decode) *opj_decode;
    __typeof__(opj_destroy_codec) *opj_destroy_codec;
    __typeof__(opj_get_decoded_tile) *opj_get_decoded_tile;
    __typeof__(opj_image_destroy) *opj_image_destroy;
    __typeof__(opj_read_header) *opj_read_header;
    __typeof__(opj_set_decode_area) *opj_set_decode_area;
    __typeof__(opj_set_default_decoder_parameters) *opj_set_default_decoder_parameters;
    __typeof__(opj_set_error_handler) *opj_set_error_handler;
    __typeof__(opj_setup_decoder) *opj_setup_decoder;
    __typeof__(opj_stream_create) *opj_stream_create;
    __typeof__(opj_stream_destroy) *opj_stream_destroy;
    __typeof__(opj_stream_set_read_function) *opj_stream_set_read_function;
    __typeof__(opj_stream_set_seek_function) *opj_stream_set_seek_function;
    __typeof__(opj_stream_set_skip_function) *opj_stream_set_skip_function;
    __typeof__(opj_stream_set_user_data) *opj_stream_set_user_data;
    __typeof__(opj_stream_set_user_data_length) *opj_stream_set_user_data_length;
};

#define FUNCTION(name) \
    { #name, offsetof(struct jp2_library, name), false }
static const struct rfx_library_function functions[] = {
    FUNCTION(opj_create_decompress),
    FUNCTION(opj_decode),
    FUNCTION(opj_destroy_codec),
    FUNCTION(opj_get_decoded_tile),
    FUNCTION(opj_image_destroy),
    FUNCTION(opj_read_header),
    FUNCTION(opj_set_decode_area),
    FUNCTION(opj_set_default_decoder_parameters),
    FUNCTION(opj_set_error_handler),
    FUNCTION(opj_setup_decoder),
    FUNCTION(opj_stream_create),
    FUNCTION(opj_stream_destroy),
    FUNCTION(opj_stream_set_read_function),
    FUNCTION(opj_stream_set_seek_function),
    FUNCTION(opj_stream_set_skip_function),
    FUNCTION(opj_stream_set_user_data),
    FUNCTION(opj_stream_set_user_data_length),
};
_Static_assert(sizeof functions / sizeof functions[0] ==
                   sizeof(struct jp2_library) / sizeof(void (*)(void)),
               "every member has a row");

/* Fills `lib`. IO, with the package to install: this system has no such library or cannot load it.
 */
static enum rfx_status load_library(struct jp2_library *lib, struct rfx_error *err) {
    enum rfx_status status = rfx_library_load("libopenjp2.so.7", functions,
                                              sizeof functions / sizeof functions[0], lib, err);
    return status == RFX_OK ? status
                            : rfx_fail_within(err, status,
                                              "JPEG 2000 pictures are read by OpenJPEG (Debian's "
                                              "package libopenjp2-7)");
}

enum { MOST_TILES = 65535, MOST_BANDS = 512 };

/* Header of a file: its boxes and SIZ marker. It is read without the library, so that the memory
 * for decoding is known before it begins. Source: ISO/IEC 15444-1, annexes A and I. */
struct jp2_header {
    bool boxes;                               /* a JP2 file; else only a codestream */
    int64_t x0, y0, x1, y1;                   /* the picture on the reference grid */
    int64_t tile_x0, tile_y0, tile_w, tile_h; /* place of the first tile, and size of each tile */
    int64_t n_across, n_down;                 /* number of tiles across and down */
    int bands, bits;                          /* number of bands; bits of a sample */
    bool is_signed;
    int alpha;          /* the band that is alpha; -1: none */
    bool premultiplied; /* colours are multiplied by alpha */
    int colours;        /* number of colours in the colr box; 0: not known */
};

enum { MOST_BOXES = 1000, SRGB = 16, GREY = 17, SYCC = 18, CMYK = 12 };

/* Returns a big-endian number of up to 8 bytes; -1: beyond any file's length. */
static int64_t number(const unsigned char *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | from[i];
    return value > INT64_MAX ? -1 : (int64_t)value;
}

static bool get(struct rfx_image_file *file, int64_t at, void *to, size_t bytes) {
    return rfx_image_file_pread(file, to, bytes, at) == bytes;
}

/* A box; its content is [at, end). */
struct box {
    char name[4];
    int64_t at, end;
};

static bool read_box(struct rfx_image_file *file, int64_t at, int64_t limit, struct box *out) {
    unsigned char head[16];
    if (limit - at < 8 || !get(file, at, head, 8)) return false;
    int64_t length = number(head, 4), before = 8;
    memcpy(out->name, head + 4, 4);
    if (length == 1) {
        if (!get(file, at, head, 16)) return false;
        length = number(head + 8, 8);
        before = 16;
    }
    if (length == 0) length = limit - at;
    if (length < before || length > limit - at) return false;
    out->at = at + before;
    out->end = at + length;
    return true;
}

static bool is_named(const struct box *box, const char *name) {
    return memcmp(box->name, name, 4) == 0;
}

static enum rfx_status read_colour(struct rfx_image_file *file, const struct box *box,
                                   struct jp2_header *h, struct rfx_error *err) {
    unsigned char bytes[7];
    if (box->end - box->at < 7 || !get(file, box->at, bytes, 7) || bytes[0] != 1) return RFX_OK;
    int64_t kind = number(bytes + 3, 4);
    if (kind != SRGB && kind != GREY)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "colours of kind %" PRId64 "%s; sRGB, grey and profiles are read", kind,
                        kind == SYCC   ? " (YCC)"
                        : kind == CMYK ? " (CMYK)"
                                       : "");
    h->colours = kind == SRGB ? 3 : 1;
    return RFX_OK;
}

/* Finds the bands that are alpha. Colours must come in their order. */
static enum rfx_status read_channels(struct rfx_image_file *file, const struct box *box,
                                     struct jp2_header *h, struct rfx_error *err) {
    unsigned char bytes[6];
    if (!get(file, box->at, bytes, 2)) return RFX_OK;
    int64_t n = number(bytes, 2);
    for (int64_t i = 0; i < n && i < MOST_BANDS; i++) {
        if (box->at + 8 + 6 * i > box->end || !get(file, box->at + 2 + 6 * i, bytes, 6)) break;
        int64_t band = number(bytes, 2), kind = number(bytes + 2, 2), colour = number(bytes + 4, 2);
        if (kind == 0 && colour > 0 && colour < 65535 && colour != band + 1)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                            "band %" PRId64 " is colour %" PRId64
                            ": colours in another order than their bands",
                            band + 1, colour);
        if (kind != 1 && kind != 2) continue;
        h->alpha = (int)band;
        h->premultiplied = kind == 2;
    }
    return RFX_OK;
}

static enum rfx_status read_header_boxes(struct rfx_image_file *file, const struct box *in,
                                         struct jp2_header *h, struct rfx_error *err) {
    struct box box;
    enum rfx_status status = RFX_OK;
    int64_t at = in->at;
    for (int i = 0; i < MOST_BOXES && status == RFX_OK && read_box(file, at, in->end, &box); i++) {
        at = box.end;
        if (is_named(&box, "pclr"))
            status = rfx_fail(err, RFX_STATUS_UNSUPPORTED, "colours by a palette");
        else if (is_named(&box, "colr") && h->colours == 0)
            status = read_colour(file, &box, h, err);
        else if (is_named(&box, "cdef"))
            status = read_channels(file, &box, h, err);
    }
    return status;
}

/* Sets *found to the offset of the codestream; -1: there is none. */
static enum rfx_status find_codestream(struct rfx_image_file *file, struct jp2_header *h,
                                       int64_t *found, struct rfx_error *err) {
    struct box box;
    enum rfx_status status = RFX_OK;
    int64_t at = 0;
    *found = -1;
    for (int i = 0; i < MOST_BOXES && read_box(file, at, file->bytes, &box); i++) {
        at = box.end;
        if (is_named(&box, "jp2h")) status = read_header_boxes(file, &box, h, err);
        if (status != RFX_OK) return status;
        if (!is_named(&box, "jp2c")) continue;
        *found = box.at;
        return RFX_OK;
    }
    return rfx_fail(err, RFX_STATUS_MALFORMED, "the file has no codestream, or is cut off");
}

static enum rfx_status read_size(struct rfx_image_file *file, int64_t at, struct jp2_header *h,
                                 struct rfx_error *err) {
    unsigned char siz[42], band[3];
    if (!get(file, at, siz, sizeof siz) || memcmp(siz, "\xff\x4f\xff\x51", 4) != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "the codestream's header is broken or cut off");
    h->x1 = number(siz + 8, 4);
    h->y1 = number(siz + 12, 4);
    h->x0 = number(siz + 16, 4);
    h->y0 = number(siz + 20, 4);
    h->tile_w = number(siz + 24, 4);
    h->tile_h = number(siz + 28, 4);
    h->tile_x0 = number(siz + 32, 4);
    h->tile_y0 = number(siz + 36, 4);
    h->bands = (int)number(siz + 40, 2);
    bool fits = h->x0 < h->x1 && h->y0 < h->y1 && h->tile_w > 0 && h->tile_h > 0 &&
                h->tile_x0 <= h->x0 && h->tile_y0 <= h->y0 && h->tile_x0 + h->tile_w > h->x0 &&
                h->tile_y0 + h->tile_h > h->y0 && h->bands > 0;
    if (!fits) return rfx_fail(err, RFX_STATUS_MALFORMED, "the codestream has impossible sizes");
    h->n_across = rfx_ceil_div(h->x1 - h->tile_x0, h->tile_w);
    h->n_down = rfx_ceil_div(h->y1 - h->tile_y0, h->tile_h);
    if (h->bands > MOST_BANDS || h->n_across * h->n_down > MOST_TILES)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%d bands in %" PRId64 " x %" PRId64
                        " tiles; %d bands and %d tiles are read",
                        h->bands, h->n_down, h->n_across, MOST_BANDS, MOST_TILES);
    for (int i = 0; i < h->bands; i++) {
        if (!get(file, at + 42 + 3 * i, band, 3))
            return rfx_fail(err, RFX_STATUS_MALFORMED, "the codestream's header is cut off");
        int bits = (band[0] & 127) + 1;
        bool is_signed = (band[0] & 128) != 0;
        if (i == 0) {
            h->bits = bits;
            h->is_signed = is_signed;
        }
        if (bits != h->bits || is_signed != h->is_signed || band[1] != 1 || band[2] != 1)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                            "band %d of %d bits, a sample for each %d x %d pixels: bands have one "
                            "type and a sample for each pixel",
                            i + 1, bits, band[2], band[1]);
    }
    if (h->bits > 31)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "samples of %d bits; up to 31 are read",
                        h->bits);
    return RFX_OK;
}

/* Reads the header. UNSUPPORTED: palettes, YCC and CMYK, bands of different sizes or types;
 * MALFORMED. The text does not have the file's name. */
static enum rfx_status read_header(struct rfx_image_file *file, struct jp2_header *out,
                                   struct rfx_error *err) {
    unsigned char head[4];
    int64_t at = 0;
    *out = (struct jp2_header){.alpha = -1};
    out->boxes = get(file, 0, head, 4) && memcmp(head, "\xff\x4f\xff\x51", 4) != 0;
    enum rfx_status status = out->boxes ? find_codestream(file, out, &at, err) : RFX_OK;
    if (status == RFX_OK) status = read_size(file, at, out, err);
    if (status == RFX_OK && out->alpha >= out->bands) out->alpha = -1;
    return status;
}

enum { STRIP = 256, STREAM_BYTES = 65536 };

struct jp2_source {
    struct rfx_image_backend base;
    struct rfx_image_file file;
    struct jp2_library lib;
    struct jp2_header header;
    bool strips; /* one tile, decoded by strips */
    int64_t at;  /* reading position of the stream in the file */
    opj_stream_t *stream;
    opj_codec_t *codec;
    opj_image_t *image;
    int64_t cache_rows; /* rows of the largest row of cells; 0: no cache yet */
    size_t row_bytes;
    unsigned char *cache;
    int64_t *cached; /* for each column of cells: the row of cells that the cache has; -1: none */
    char words[160]; /* OpenJPEG's first message */
};

static struct jp2_source *self_of(struct rfx_image_backend *b) {
    return (struct jp2_source *)(void *)b;
}

static OPJ_SIZE_T on_read(void *to, OPJ_SIZE_T bytes, void *user) {
    struct jp2_source *s = user;
    size_t got = rfx_image_file_pread(&s->file, to, bytes, s->at);
    s->at += (int64_t)got;
    return got == 0 ? (OPJ_SIZE_T)-1 : got;
}

static OPJ_OFF_T on_skip(OPJ_OFF_T bytes, void *user) {
    struct jp2_source *s = user;
    if (bytes < 0 || bytes > s->file.bytes - s->at) return -1;
    s->at += bytes;
    return bytes;
}

static OPJ_BOOL on_seek(OPJ_OFF_T to, void *user) {
    struct jp2_source *s = user;
    if (to < 0 || to > s->file.bytes) return OPJ_FALSE;
    s->at = to;
    return OPJ_TRUE;
}

static void on_error(const char *words, void *user) {
    struct jp2_source *s = user;
    if (s->words[0] != '\0') return;
    (void)snprintf(s->words, sizeof s->words, "%s", words);
    s->words[strcspn(s->words, "\n")] = '\0';
}

static enum rfx_status failed(struct jp2_source *s, int64_t y, struct rfx_error *err) {
    if (s->file.error_number != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: row %" PRId64 " of %" PRId64 ": %s", s->base.name,
                        y, s->base.h, strerror(s->file.error_number));
    return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: row %" PRId64 " of %" PRId64 ": %s",
                    s->base.name, y, s->base.h,
                    s->words[0] != '\0' ? s->words : "OpenJPEG cannot decode it");
}

static void close_decoder(struct jp2_source *s) {
    if (s->image != NULL) s->lib.opj_image_destroy(s->image);
    if (s->codec != NULL) s->lib.opj_destroy_codec(s->codec);
    if (s->stream != NULL) s->lib.opj_stream_destroy(s->stream);
    s->image = NULL;
    s->codec = NULL;
    s->stream = NULL;
}

static bool open_decoder(struct jp2_source *s) {
    const struct jp2_library *lib = &s->lib;
    opj_dparameters_t parameters;
    s->at = 0;
    s->words[0] = '\0';
    s->stream = lib->opj_stream_create(STREAM_BYTES, OPJ_TRUE);
    s->codec = lib->opj_create_decompress(s->header.boxes ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
    if (s->stream == NULL || s->codec == NULL) return false;
    lib->opj_stream_set_user_data(s->stream, s, NULL);
    lib->opj_stream_set_user_data_length(s->stream, (OPJ_UINT64)s->file.bytes);
    lib->opj_stream_set_read_function(s->stream, on_read);
    lib->opj_stream_set_skip_function(s->stream, on_skip);
    lib->opj_stream_set_seek_function(s->stream, on_seek);
    (void)lib->opj_set_error_handler(s->codec, on_error, s);
    lib->opj_set_default_decoder_parameters(&parameters);
    return lib->opj_setup_decoder(s->codec, &parameters) &&
           lib->opj_read_header(s->stream, s->codec, &s->image);
}

/* Returns the rectangle of cell (row, column) in the picture. */
static struct rfx_rect cell_rect(const struct jp2_source *s, int64_t row, int64_t column) {
    const struct jp2_header *h = &s->header;
    if (s->strips) {
        int64_t y = row * STRIP;
        return rfx_rect_make(y, rfx_min_i64(y + STRIP, s->base.h), 0, s->base.w);
    }
    int64_t y = h->tile_y0 - h->y0 + row * h->tile_h, x = h->tile_x0 - h->x0 + column * h->tile_w;
    return rfx_rect_make(rfx_max_i64(y, 0), rfx_min_i64(y + h->tile_h, s->base.h),
                         rfx_max_i64(x, 0), rfx_min_i64(x + h->tile_w, s->base.w));
}

static int64_t cell_row_of(const struct jp2_source *s, int64_t y) {
    return s->strips ? y / STRIP : (y + s->header.y0 - s->header.tile_y0) / s->header.tile_h;
}

static int64_t cell_column_of(const struct jp2_source *s, int64_t x) {
    return s->strips ? 0 : (x + s->header.x0 - s->header.tile_x0) / s->header.tile_w;
}

/* Returns the band of channel k. */
static int band_of(const struct jp2_source *s, int k) {
    const struct jp2_header *h = &s->header;
    return h->alpha >= 0 && s->base.c < h->bands && k >= h->alpha ? k + 1 : k;
}

/* Copies the decoded samples of a band to channel k of the cell in the cache. */
static void put_band(struct jp2_source *s, const OPJ_INT32 *from, int k, struct rfx_rect rect) {
    const int64_t c = s->base.c, cols = rfx_rect_cols(rect);
    const int bits = s->base.sample_bits;
    const int32_t top = s->header.bits < 8 ? (1 << s->header.bits) - 1 : 255;
    for (int64_t y = 0; y < rfx_rect_rows(rect); y++, from += cols) {
        unsigned char *row = s->cache + (size_t)y * s->row_bytes;
        unsigned char *to8 = row + rect.x0 * c + k;
        uint16_t *to16 = (uint16_t *)(void *)row + rect.x0 * c + k;
        float *to32 = (float *)(void *)row + rect.x0 * c + k;
        for (int64_t x = 0; x < cols; x++) {
            if (bits == 8)
                to8[x * c] = (unsigned char)(top == 255 ? from[x] : from[x] * 255 / top);
            else if (bits == 16)
                to16[x * c] = (uint16_t)from[x];
            else
                to32[x * c] = (float)from[x];
        }
    }
}

static bool decode_area(struct jp2_source *s, int64_t row, int64_t column, struct rfx_rect rect) {
    const struct jp2_header *h = &s->header;
    if (s->image == NULL && !open_decoder(s)) return false;
    if (!s->strips)
        return s->lib.opj_get_decoded_tile(s->codec, s->stream, s->image,
                                           (OPJ_UINT32)(row * h->n_across + column));
    return s->lib.opj_set_decode_area(s->codec, s->image, (OPJ_INT32)(h->x0 + rect.x0),
                                      (OPJ_INT32)(h->y0 + rect.y0), (OPJ_INT32)(h->x0 + rect.x1),
                                      (OPJ_INT32)(h->y0 + rect.y1)) &&
           s->lib.opj_decode(s->codec, s->stream, s->image);
}

static enum rfx_status decode_cell(struct jp2_source *s, int64_t y, int64_t x,
                                   struct rfx_error *err) {
    const int64_t row = cell_row_of(s, y), column = cell_column_of(s, x);
    const struct rfx_rect rect = cell_rect(s, row, column);
    enum rfx_status status = rfx_memory_check_stop(s->base.mem, err);
    if (status != RFX_OK) return status;
    s->cached[column] = -1;
    s->words[0] = '\0';
    bool done =
        decode_area(s, row, column, rect) && s->image->numcomps >= (OPJ_UINT32)s->header.bands;
    for (int k = 0; k < s->base.c && done; k++) {
        const opj_image_comp_t *band = &s->image->comps[band_of(s, k)];
        done =
            band->data != NULL && band->w == rfx_rect_cols(rect) && band->h == rfx_rect_rows(rect);
        if (done) put_band(s, band->data, k, rect);
    }
    if (done) {
        s->cached[column] = row;
        return RFX_OK;
    }
    status = failed(s, y, err);
    close_decoder(s); /* after an error the next decoder starts anew */
    return status;
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct jp2_source *s = self_of(b);
    (void)rows;
    if (s->cache_rows > 0) return RFX_OK;
    int64_t tallest = rfx_min_i64(s->strips ? STRIP : s->header.tile_h, b->h);
    int64_t columns = s->strips ? 1 : s->header.n_across;
    size_t bytes = (size_t)tallest * s->row_bytes; /* checked at open */
    if (s->cache == NULL) s->cache = rfx_memory_alloc(b->mem, bytes);
    if (s->cached == NULL)
        s->cached = rfx_memory_alloc(b->mem, (size_t)columns * sizeof *s->cached);
    if (s->cache == NULL || s->cached == NULL) return rfx_memory_fail(b->mem, b->name, bytes, err);
    for (int64_t i = 0; i < columns; i++) s->cached[i] = -1;
    s->cache_rows = tallest;
    return RFX_OK;
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    struct jp2_source *s = self_of(b);
    (void)room;
    enum rfx_status status = source_set_window(b, 1, err);
    if (status != RFX_OK) return status;
    const int64_t row = cell_row_of(s, y), column = cell_column_of(s, x0);
    const struct rfx_rect rect = cell_rect(s, row, column);
    if (s->cached[column] != row) status = decode_cell(s, y, x0, err);
    *end = rfx_min_i64(x1, rect.x1);
    *samples = s->cache + (size_t)(y - rect.y0) * s->row_bytes +
               (size_t)(x0 * b->c * (b->sample_bits / 8));
    return status;
}

static void source_free(struct rfx_image_backend *b) {
    struct jp2_source *s = self_of(b);
    close_decoder(s);
    rfx_memory_release(b->mem, s->cache);
    rfx_memory_release(b->mem, s->cached);
    rfx_image_file_close(&s->file);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops source_ops = {
    .set_window = source_set_window, .fetch = source_fetch, .free = source_free};

/* Bytes of each tile of the file, even if it is not decoded, and of each band of a tile. */
#define TILE_BYTES 8192
#define TILE_BAND_BYTES 1536
/* Bytes of a code block of 64 x 64 samples, with its place in all levels. */
#define BLOCK_BYTES 1024
/* Bytes of a decoded sample: in the tile, the picture and the transform. */
#define DECODED_BYTES 20
#define MORE_ROWS 160 /* rows that a strip's transform needs besides its own */

/* Computes an upper bound of OpenJPEG's own memory, without the library: tables of tiles, code
 * blocks and samples of one cell, and the compressed bytes of its tile. Returns false if it exceeds
 * any memory. */
static bool decoder_bytes(const struct jp2_source *s, int64_t *out) {
    const struct jp2_header *h = &s->header;
    const int64_t tile_w = rfx_min_i64(h->tile_w, s->base.w);
    const int64_t tile_h = rfx_min_i64(h->tile_h, s->base.h);
    const int64_t rows = s->strips ? rfx_min_i64(STRIP + MORE_ROWS, tile_h) : tile_h;
    int64_t tables = h->n_across * h->n_down * (TILE_BYTES + h->bands * TILE_BAND_BYTES);
    int64_t blocks = (rfx_ceil_div(tile_w, 64) + 8) * (rfx_ceil_div(tile_h, 64) + 8);
    int64_t samples, packed = s->file.bytes;
    if (!rfx_checked_mul_i64(blocks, 2 * (int64_t)h->bands * BLOCK_BYTES, &blocks) ||
        !rfx_checked_mul_i64(tile_w * rows, (int64_t)h->bands * DECODED_BYTES, &samples))
        return false;
    if (!s->strips) packed = rfx_min_i64(packed, samples);
    *out = tables;
    return rfx_checked_add_i64(*out, blocks, out) && rfx_checked_add_i64(*out, samples, out) &&
           rfx_checked_add_i64(*out, 2 * packed + 2 * STREAM_BYTES, out);
}

static enum rfx_status settle(struct jp2_source *s, const struct rfx_image_options *options,
                              struct rfx_error *err) {
    const struct jp2_header *h = &s->header;
    struct rfx_image_backend *b = &s->base;
    b->h = h->y1 - h->y0;
    b->w = h->x1 - h->x0;
    if (b->h > RFX_IMAGE_MAX_SIDE || b->w > RFX_IMAGE_MAX_SIDE || h->x1 > INT32_MAX ||
        h->y1 > INT32_MAX)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: JPEG 2000 of %" PRId64 " x %" PRId64
                        " pixels; 1 to %d of each are read",
                        b->name, b->h, b->w, RFX_IMAGE_MAX_SIDE);
    bool all =
        h->alpha < 0 || options->bands != NULL || options->channels == h->bands || h->bands == 1;
    if (!all && h->premultiplied)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: its colours are multiplied with alpha; --channels reads them as they "
                        "are stored",
                        b->name);
    b->bands = h->bands;
    b->c = all ? h->bands : h->bands - 1;
    b->n_alpha = all ? 0 : 1;
    b->is_colour = b->c == 3 && h->colours != 1;
    b->sample_bits = h->is_signed || h->bits > 16 ? 32 : h->bits > 8 ? 16 : 8;
    b->random_access = true;
    b->shared_bytes = LIBRARY_BYTES;
    s->strips = h->n_across * h->n_down == 1;
    s->row_bytes = (size_t)(b->w * b->c * (b->sample_bits / 8));
    int64_t own, cache = rfx_min_i64(s->strips ? STRIP : h->tile_h, b->h);
    if (!decoder_bytes(s, &own) || !rfx_checked_mul_i64(cache, (int64_t)s->row_bytes, &cache) ||
        !rfx_checked_add_i64(own, cache, &own))
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: %" PRId64 " x %" PRId64 " pixels do not fit any memory", b->name, b->h,
                        b->w);
    if (options->max_pixels != 0 && own / 16 > options->max_pixels)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: a tile of %" PRId64 " x %" PRId64 " pixels takes %" PRId64
                        " bytes to decode; without a memory budget 16 for each of %" PRId64
                        " pixels are used (--max-pixels, max_pixels)",
                        b->name, h->tile_h, h->tile_w, own, options->max_pixels);
    b->fixed_bytes = sizeof *s + LIBRARY_BYTES + (size_t)own +
                     (size_t)(s->strips ? 1 : h->n_across) * sizeof *s->cached;
    return RFX_OK;
}

enum rfx_status rfx_image_jp2_open(struct rfx_memory *mem, const char *name,
                                   const struct rfx_image_options *options,
                                   struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_image_backend *b;
    enum rfx_status status = rfx_image_backend_create(mem, sizeof(struct jp2_source), &source_ops,
                                                      name, "JPEG 2000", &b, err);
    if (status != RFX_OK) return status;
    struct jp2_source *s = self_of(b);
    status = rfx_image_file_open(&s->file, name, err);
    if (status == RFX_OK) {
        status = read_header(&s->file, &s->header, err);
        if (status != RFX_OK) status = rfx_fail_within(err, status, "%s: JPEG 2000", name);
    }
    if (status == RFX_OK) status = settle(s, options, err);
    if (status == RFX_OK) {
        status = load_library(&s->lib, err);
        if (status != RFX_OK) status = rfx_fail_within(err, status, "%s", name);
    }
    return rfx_image_backend_finish(b, status, out);
}
