/* PNG pictures by rows, through libpng.
 *
 * Delivers 8-bit samples, or 16-bit samples in host order if the file has 16 bits; grey (1 sample)
 * or RGB (3 samples). Palettes are expanded, and 1, 2 and 4 bit grey is scaled to 8 bits. Alpha,
 * also from a tRNS chunk, is the last band. It is dropped, and the colour kept as stored, unless
 * all bands are chosen. Gamma and colour profiles are not applied; base.orientation is set from an
 * eXIf chunk. Invariants: 1. all memory of libpng and zlib comes from one pool, which is allocated
 * at open and emptied by rewind; 2. row y lies in slot y mod window_rows; 3. all passes of an
 * interlaced file are decoded into a temporary file without a name by set_window or the first read;
 * the source then has random access. Strict: reading the last row of a file that ends before IEND
 * fails. */
#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/decode/decoding.h"
#include "rfexec/image/decode/image_pool.h"
#include "rfexec/image/decode/interlaced_png.h"
#include "rfexec/image/decode/orientation.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"

/* Memory of libpng's structs, chunk list, palette and IDAT buffer, zlib's state and 32 KiB window.
 * They take 49 KiB with libpng 1.6.39 and zlib 1.2.13; the rest is for versions with larger
 * structs. */
#define POOL_BASE_BYTES ((size_t)88 * 1024)

struct png_source {
    struct rfx_image_backend base;
    struct rfx_image_file file;
    png_structp png;
    png_infop info;
    int bit_depth, color_type;
    bool interlaced, decoded; /* decoded: all passes are complete */
    bool transparent;         /* there is a tRNS chunk */
    bool with_alpha;          /* alpha is delivered */
    bool broken;              /* after an error; only start() may follow */
    int64_t next_row;         /* first row that is not decoded yet */
    int64_t window_rows;
    size_t row_bytes; /* bytes of a delivered row */
    struct rfx_image_pool pool;
    struct rfx_passes passes;
    unsigned char *window;
    char words[200]; /* libpng's last error */
};

static struct png_source *self_of(struct rfx_image_backend *b) {
    return (struct png_source *)(void *)b;
}

static png_voidp pool_take(png_structp png, png_alloc_size_t bytes) {
    struct png_source *s = png_get_mem_ptr(png);
    return rfx_image_pool_take(&s->pool, bytes);
}

static void pool_return(png_structp png, png_voidp block) {
    (void)png;
    (void)block; /* rewind releases everything at once */
}

static void on_read(png_structp png, png_bytep to, size_t bytes) {
    struct png_source *s = png_get_io_ptr(png);
    if (rfx_image_file_read(&s->file, to, bytes) != bytes) png_error(png, "the file ends here");
}

_Noreturn static void on_error(png_structp png, png_const_charp words) {
    struct png_source *s = png_get_error_ptr(png);
    (void)snprintf(s->words, sizeof s->words, "%s", words);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp words) {
    (void)png;
    (void)words;
}

/* Returns the status and writes the text for an error that libpng raised; `place` is "header" or
 * "row 7 of 9". */
static enum rfx_status failed(struct png_source *s, const char *place, struct rfx_error *err) {
    const char *name = s->base.name;
    s->broken = true;
    if (s->file.error_number != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: %s: %s", name, place,
                        strerror(s->file.error_number));
    if (s->pool.exhausted)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY,
                        "%s: %s: the PNG decoder needs more than the %zu bytes set aside for it",
                        name, place, s->pool.bytes);
    return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: %s: %s", name, place, s->words);
}

static enum rfx_status failed_in_row(struct png_source *s, struct rfx_error *err) {
    char place[64];
    (void)snprintf(place, sizeof place, "row %" PRId64 " of %" PRId64, s->next_row, s->base.h);
    return failed(s, place, err);
}

static void set_transforms(struct png_source *s) {
    if (s->color_type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(s->png);
    else if (s->bit_depth < 8)
        png_set_expand_gray_1_2_4_to_8(s->png);
    if (s->with_alpha && s->transparent) png_set_tRNS_to_alpha(s->png);
    if (!s->with_alpha) png_set_strip_alpha(s->png);
    if (s->bit_depth == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) png_set_swap(s->png);
}

/* Starts the decoder at the beginning of the file and stops before the first row. */
static enum rfx_status start(struct png_source *s, struct rfx_error *err) {
    if (s->png != NULL) png_destroy_read_struct(&s->png, &s->info, NULL);
    rfx_image_file_rewind(&s->file);
    rfx_image_pool_restart(&s->pool);
    s->broken = false;
    s->next_row = 0;
    (void)snprintf(s->words, sizeof s->words, "the PNG decoder cannot start");
    s->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, s, on_error, on_warning, s, pool_take,
                                      pool_return);
    if (s->png == NULL) return failed(s, "header", err);
    s->info = png_create_info_struct(s->png);
    if (s->info == NULL) return failed(s, "header", err);
    if (setjmp(png_jmpbuf(s->png)) != 0) return failed(s, "header", err);
    png_set_read_fn(s->png, s, on_read);
    png_set_user_limits(s->png, RFX_IMAGE_MAX_SIDE, RFX_IMAGE_MAX_SIDE);
    /* Only IHDR, PLTE, tRNS, IDAT, IEND: no text, profile or private chunk is ever stored. */
    png_set_keep_unknown_chunks(s->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_chunk_malloc_max(s->png, 65536);
    png_read_info(s->png, s->info);
    set_transforms(s);
    png_read_update_info(s->png, s->info);
    if (png_get_rowbytes(s->png, s->info) != s->row_bytes)
        png_error(s->png, "unexpected row length");
    return RFX_OK;
}

static enum rfx_status decode_row(struct png_source *s, struct rfx_error *err) {
    enum rfx_status status = rfx_memory_check_stop(s->base.mem, err);
    if (status != RFX_OK) return status;
    if (s->broken) return failed_in_row(s, err);
    if (setjmp(png_jmpbuf(s->png)) != 0) return failed_in_row(s, err);
    png_read_row(s->png, s->window + (size_t)(s->next_row % s->window_rows) * s->row_bytes, NULL);
    if (s->next_row + 1 == s->base.h) png_read_end(s->png, NULL); /* checks the last CRC */
    s->next_row++;
    return RFX_OK;
}

/* Decodes one row of a pass. libpng's handling of interlacing is off, so the pass's pixels are
 * contiguous. */
static enum rfx_status decode_pass_row(struct png_source *s, bool last, struct rfx_error *err) {
    enum rfx_status status = rfx_memory_check_stop(s->base.mem, err);
    if (status != RFX_OK) return status;
    if (setjmp(png_jmpbuf(s->png)) != 0) return failed_in_row(s, err);
    png_read_row(s->png, rfx_passes_room(&s->passes), NULL);
    if (last) png_read_end(s->png, NULL);
    return RFX_OK;
}

static enum rfx_status decode_passes(struct png_source *s, struct rfx_error *err) {
    int64_t left = 0;
    enum rfx_status status = rfx_passes_open(s->base.mem, &s->passes, s->base.name, err);
    if (status == RFX_OK) status = start(s, err);
    if (status != RFX_OK) return status;
    for (int pass = 0; pass < RFX_PASSES; pass++)
        if (rfx_passes_columns(&s->passes, pass) > 0) left += rfx_passes_rows(&s->passes, pass);
    for (int pass = 0; pass < RFX_PASSES; pass++) {
        bool empty = rfx_passes_columns(&s->passes, pass) == 0;
        int64_t rows = empty ? 0 : rfx_passes_rows(&s->passes, pass);
        for (int64_t row = 0; row < rows; row++) {
            s->next_row = rfx_passes_row_of(pass, row);
            status = decode_pass_row(s, --left == 0, err);
            if (status == RFX_OK) status = rfx_passes_put(&s->passes, pass, row, s->base.name, err);
            if (status != RFX_OK) return status;
        }
    }
    s->decoded = true;
    return RFX_OK;
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct png_source *s = self_of(b);
    if (s->interlaced) return s->decoded ? RFX_OK : decode_passes(s, err);
    rows = rfx_min_i64(rows, b->h);
    rfx_memory_release(b->mem, s->window);
    s->window = NULL;
    s->window_rows = 0;
    size_t bytes;
    if (!rfx_checked_mul_size((size_t)rows, s->row_bytes, &bytes)) bytes = SIZE_MAX;
    s->window = rfx_memory_alloc(b->mem, bytes);
    if (s->window == NULL) return rfx_memory_fail(b->mem, b->name, bytes, err);
    s->window_rows = rows;
    return start(s, err); /* also after a failed decoding, whose rest must not be read */
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    (void)room;
    struct png_source *s = self_of(b);
    const unsigned char *row = NULL;
    enum rfx_status status = RFX_OK;
    if (s->interlaced && !s->decoded) status = decode_passes(s, err);
    if (s->interlaced && status == RFX_OK)
        status = rfx_passes_row(&s->passes, y, &row, b->name, err);
    while (!s->interlaced && status == RFX_OK && s->next_row <= y) status = decode_row(s, err);
    if (status != RFX_OK) return status;
    if (!s->interlaced) row = s->window + (size_t)(y % s->window_rows) * s->row_bytes;
    *samples = row + (size_t)x0 * (size_t)b->c * (size_t)(b->sample_bits / 8);
    *end = x1;
    return RFX_OK;
}

static enum rfx_status source_rewind(struct rfx_image_backend *b, struct rfx_error *err) {
    struct png_source *s = self_of(b);
    return s->interlaced ? RFX_OK : start(s, err);
}

static void source_free(struct rfx_image_backend *b) {
    struct png_source *s = self_of(b);
    if (s->png != NULL) png_destroy_read_struct(&s->png, &s->info, NULL);
    rfx_passes_close(b->mem, &s->passes);
    rfx_memory_release(b->mem, s->window);
    rfx_image_pool_release(b->mem, &s->pool);
    rfx_image_file_close(&s->file);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops source_ops = {.set_window = source_set_window,
                                                        .fetch = source_fetch,
                                                        .rewind = source_rewind,
                                                        .free = source_free};

static int64_t be32(const unsigned char *p) {
    return (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | (int64_t)p[3];
}

/* Returns the bytes of libpng's two row buffers. libpng rounds the width up to 8, and expands
 * pixels in them (palette: RGBA, 1 to 4 bit grey: with alpha). */
static size_t row_buffers_bytes(const struct png_source *s, int stored_samples) {
    int bits = stored_samples * s->bit_depth;
    if (s->color_type == PNG_COLOR_TYPE_PALETTE)
        bits = 32;
    else if (s->bit_depth < 8)
        bits = 16;
    if (s->with_alpha && s->transparent) bits = (s->base.bands) * (s->bit_depth == 16 ? 16 : 8);
    size_t row = ((size_t)s->base.w + 16) * (size_t)bits / 8 + 128;
    return 2 * rfx_align_up(row);
}

#define MOST_CHUNKS 1048576

/* Looks for the chunks that describe the picture besides its header. IDAT may come before them. */
static void scan_chunks(struct png_source *s) {
    int64_t at = 33;
    for (int i = 0; i < MOST_CHUNKS; i++) {
        unsigned char head[8];
        if (rfx_image_file_pread(&s->file, head, sizeof head, at) != sizeof head) return;
        int64_t length = be32(head);
        if (memcmp(head + 4, "IEND", 4) == 0) return;
        if (memcmp(head + 4, "tRNS", 4) == 0 && length > 0)
            s->transparent = (s->color_type & PNG_COLOR_MASK_ALPHA) == 0;
        if (memcmp(head + 4, "eXIf", 4) == 0)
            s->base.orientation = rfx_exif_orientation_in(&s->file, at + 8, at + 8 + length);
        at += 12 + length;
    }
}

/* Sets which bands the file has, and which of them are delivered. */
static void take_bands(struct png_source *s, const struct rfx_image_options *options) {
    struct rfx_image_backend *b = &s->base;
    const int colours = (s->color_type & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
    const bool alpha = (s->color_type & PNG_COLOR_MASK_ALPHA) != 0 || s->transparent;
    b->bands = colours + (alpha ? 1 : 0);
    s->with_alpha = alpha && (options->bands != NULL || options->channels == b->bands);
    b->n_alpha = alpha && !s->with_alpha ? 1 : 0;
    b->c = colours + (s->with_alpha ? 1 : 0);
    b->is_colour = b->c == 3;
}

/* Reads signature and IHDR without libpng, so that all sizes are known before libpng starts. */
static enum rfx_status read_header(struct png_source *s, const struct rfx_image_options *options,
                                   size_t *pool_bytes, struct rfx_error *err) {
    const char *name = s->base.name;
    unsigned char head[33];
    size_t got = rfx_image_file_read(&s->file, head, sizeof head);
    if (s->file.error_number != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: %s", name, strerror(s->file.error_number));
    if (got < sizeof head || memcmp(head + 8, "\0\0\0\rIHDR", 8) != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: the PNG header is broken or cut off (%zu of %zu bytes)", name, got,
                        sizeof head);
    static const int samples_of[7] = {1, 0, 3, 1,
                                      2, 0, 4}; /* stored samples for each colour type */
    int64_t w = be32(head + 16), h = be32(head + 20);
    s->bit_depth = head[24];
    s->color_type = head[25];
    bool depth_ok = s->bit_depth == 1 || s->bit_depth == 2 || s->bit_depth == 4 ||
                    s->bit_depth == 8 || s->bit_depth == 16;
    if (!depth_ok || s->color_type > 6 || samples_of[s->color_type] == 0 || head[28] > 1)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: PNG header with bit depth %d, colour type %d, interlace method %d",
                        name, s->bit_depth, s->color_type, head[28]);
    if (h < 1 || w < 1 || h > RFX_IMAGE_MAX_SIDE || w > RFX_IMAGE_MAX_SIDE)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: PNG of %" PRId64 " x %" PRId64 " pixels; 1 to %d of each are read",
                        name, h, w, RFX_IMAGE_MAX_SIDE);
    s->interlaced = head[28] == 1;
    s->base.h = h;
    s->base.w = w;
    scan_chunks(s);
    take_bands(s, options);
    s->base.sample_bits = s->bit_depth == 16 ? 16 : 8;
    s->row_bytes = (size_t)w * (size_t)s->base.c * (size_t)(s->base.sample_bits / 8);
    *pool_bytes = POOL_BASE_BYTES + row_buffers_bytes(s, samples_of[s->color_type]);
    s->base.random_access = s->interlaced;
    s->base.window_row_bytes = s->interlaced ? 0 : s->row_bytes;
    s->base.pass_picoseconds = rfx_decode_picoseconds(RFX_DECODE_PNG, h, w, s->base.c);
    s->base.fixed_bytes = sizeof *s + *pool_bytes; /* no overflow */
    rfx_passes_init(&s->passes, h, w, s->row_bytes / (size_t)w, options->folder);
    if (!s->interlaced) return RFX_OK;
    s->base.fixed_bytes += rfx_passes_bytes(&s->passes);
    s->base.file_bytes = (size_t)h * s->row_bytes;
    return RFX_OK;
}

enum rfx_status rfx_image_png_open(struct rfx_memory *mem, const char *name,
                                   const struct rfx_image_options *options,
                                   struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_image_backend *b;
    enum rfx_status status =
        rfx_image_backend_create(mem, sizeof(struct png_source), &source_ops, name, "PNG", &b, err);
    if (status != RFX_OK) return status;
    struct png_source *s = self_of(b);
    rfx_passes_init(&s->passes, 1, 1, 1, options->folder); /* without a file */
    status = rfx_image_file_open(&s->file, name, err);
    size_t pool_bytes = 0;
    if (status == RFX_OK) status = read_header(s, options, &pool_bytes, err);
    if (status == RFX_OK) status = rfx_image_pool_reserve(mem, &s->pool, pool_bytes, name, err);
    if (status == RFX_OK) status = start(s, err); /* fails now for a broken header or palette */
    return rfx_image_backend_finish(b, status, out);
}
