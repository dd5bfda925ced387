/* Pictures that stb_image reads (BMP, TGA, PSD, PNM, GIF's first frame, PIC), decoded whole.
 *
 * Opening reads the header only; set_window or the first read decodes. fixed_bytes is the largest
 * memory that stb_image may hold at any moment of the decoding. It is computed for each format and
 * enforced: a file that needs more than its header implies is refused. Alpha is dropped. A
 * truncated file is refused, even where stb_image would fill the rest with zeros. In a GIF, the
 * first frame and one byte after it must exist. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"

/* State of the decoding in progress on this thread. It is a thread-local variable, because
 * stb_image passes no pointer to its caller's allocator. */
struct stb_heap {
    struct rfx_memory *mem;
    size_t used_bytes, limit_bytes;
    bool over_limit, out_of_memory;
};
static _Thread_local struct stb_heap *heap;

#define BLOCK_HEAD_BYTES RFX_ALIGNMENT_BYTES /* header before each block, with its size */

static void *stb_alloc(size_t bytes) {
    size_t total;
    if (!rfx_checked_add_size(bytes, BLOCK_HEAD_BYTES, &total)) return NULL;
    if (total > heap->limit_bytes - heap->used_bytes) {
        heap->over_limit = true;
        return NULL;
    }
    size_t *block = rfx_memory_alloc(heap->mem, total);
    if (block == NULL) {
        heap->out_of_memory = true;
        return NULL;
    }
    heap->used_bytes += total;
    block[0] = total;
    return (char *)block + BLOCK_HEAD_BYTES;
}

static void stb_release(void *p) {
    if (p == NULL) return;
    size_t *block = (size_t *)(void *)((char *)p - BLOCK_HEAD_BYTES);
    heap->used_bytes -= block[0];
    rfx_memory_release(heap->mem, block);
}

static void *stb_realloc(void *p, size_t old_bytes, size_t bytes) {
    void *next = stb_alloc(bytes);
    if (next == NULL || p == NULL) return next;
    memcpy(next, p, old_bytes < bytes ? old_bytes : bytes);
    stb_release(p);
    return next;
}

/* This warning is reported at the end of the file, so push and pop cannot enclose it. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wswitch-enum"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_NO_PNG /* PNG and JPEG are read by libpng and libjpeg, by rows */
#define STBI_NO_JPEG
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_FAILURE_USERMSG
#define STBI_ASSERT(x) ((void)0) /* a broken file must not abort */
#define STBI_MAX_DIMENSIONS RFX_IMAGE_MAX_SIDE
#define STBI_MALLOC(bytes) stb_alloc(bytes)
#define STBI_REALLOC_SIZED(p, old_bytes, bytes) stb_realloc(p, old_bytes, bytes)
#define STBI_FREE(p) stb_release(p)
#include <stb_image.h>
#pragma GCC diagnostic pop

struct stb_source {
    struct rfx_image_backend base;
    struct rfx_image_file file;
    struct stb_heap heap;
    bool is_pnm, is_gif;
    const stbi__context *decoder; /* decoder in progress, or NULL */
    int64_t missing;              /* bytes that were missing in the last short read; 0: unknown */
    void *pixels;                 /* [h, w, c], NULL before decoding */
};

static struct stb_source *self_of(struct rfx_image_backend *b) {
    return (struct stb_source *)(void *)b;
}

static int on_read(void *user, char *to, int bytes) {
    struct stb_source *s = user;
    size_t got = rfx_image_file_read(&s->file, to, (size_t)bytes);
    /* stb_image fills its own buffer with the bytes that are there. For other buffers it needs all
     * bytes, and does not always check that it got them. */
    bool own = s->decoder == NULL || (const void *)to == (const void *)s->decoder->buffer_start;
    if (!own && got < (size_t)bytes) {
        s->file.past_end = true;
        s->missing = (int64_t)bytes - (int64_t)got;
    }
    return (int)got;
}

static void on_skip(void *user, int bytes) {
    struct stb_source *s = user;
    rfx_image_file_skip(&s->file, bytes);
}

static int on_eof(void *user) {
    const struct stb_source *s = user;
    return s->file.past_end ? 1 : 0;
}

static const stbi_io_callbacks callbacks = {on_read, on_skip, on_eof};

/* Decodes like stbi_load_from_callbacks and stbi_load_16_from_callbacks, but with s->decoder set
 * for on_read. After the first frame of a GIF it reads one more byte: the trailer, or the start of
 * the next block. */
static void *decode(struct stb_source *s, int *w, int *h) {
    stbi__context context;
    int n = 0, wanted = (int)s->base.c;
    s->decoder = &context;
    stbi__start_callbacks(&context, (stbi_io_callbacks *)(uintptr_t)&callbacks, s);
    void *pixels = s->base.sample_bits == 16
                       ? (void *)stbi__load_and_postprocess_16bit(&context, w, h, &n, wanted)
                       : (void *)stbi__load_and_postprocess_8bit(&context, w, h, &n, wanted);
    if (pixels != NULL && s->is_gif) (void)stbi__get8(&context);
    s->decoder = NULL;
    return pixels;
}

static enum rfx_status fail_cut(const struct stb_source *s, int64_t missing,
                                struct rfx_error *err) {
    if (missing == 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: the file breaks off after %" PRId64 " bytes", s->base.name,
                        s->file.bytes);
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "%s: the file breaks off after %" PRId64 " bytes; %" PRId64 " are missing",
                    s->base.name, s->file.bytes, missing);
}

/* Returns whether stb_image leaves the samples of a 16-bit PNM in the file's big-endian order.
 * Version 2.27 does; later versions may not. It is found by decoding one known pixel. */
static bool pnm_bytes_are_swapped(void) {
    static const unsigned char file[] = "P5 1 1 65535\n\x12\x34";
    int w = 0, h = 0, n = 0;
    uint16_t *pixel = stbi_load_16_from_memory(file, (int)sizeof file - 1, &w, &h, &n, 1);
    bool swapped = pixel != NULL && pixel[0] == 0x3412;
    stb_release(pixel);
    return swapped;
}

static void swap_bytes(uint16_t *samples, int64_t count) {
    for (int64_t i = 0; i < count; i++) samples[i] = (uint16_t)(samples[i] << 8 | samples[i] >> 8);
}

static enum rfx_status stb_decode(struct stb_source *s, struct rfx_error *err) {
    const char *name = s->base.name;
    int w = 0, h = 0;
    rfx_image_file_rewind(&s->file);
    s->heap.over_limit = s->heap.out_of_memory = false;
    heap = &s->heap;
    s->missing = 0;
    void *pixels = decode(s, &w, &h);
    enum rfx_status status = RFX_OK;
    if (s->file.error_number != 0)
        status = rfx_fail(err, RFX_STATUS_IO, "%s: %s", name, strerror(s->file.error_number));
    else if (pixels == NULL && s->heap.out_of_memory)
        status = rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY,
                          "%s: decoding %" PRId64 " x %" PRId64 " pixels takes up to %zu bytes",
                          name, s->base.h, s->base.w, s->heap.limit_bytes);
    else if (pixels == NULL && s->heap.over_limit)
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "%s: wants more memory than a picture of %" PRId64 " x %" PRId64
                          " needs (%zu bytes)",
                          name, s->base.h, s->base.w, s->heap.limit_bytes);
    else if (s->file.past_end)
        status = fail_cut(s, s->is_pnm ? s->missing : 0,
                          err); /* a PNM is read in one piece, so `missing` is exact */
    else if (pixels == NULL)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "%s: %s", name, stbi_failure_reason());
    else if (h != s->base.h || w != s->base.w)
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "%s: header says %" PRId64 " x %" PRId64 ", the picture is %d x %d", name,
                          s->base.h, s->base.w, h, w);
    if (status == RFX_OK && s->is_pnm && s->base.sample_bits == 16 && pnm_bytes_are_swapped())
        swap_bytes(pixels, s->base.h * s->base.w * s->base.c);
    if (status == RFX_OK)
        s->pixels = pixels;
    else
        stb_release(pixels);
    heap = NULL;
    return status;
}

static enum rfx_status stb_set_window(struct rfx_image_backend *b, int64_t rows,
                                      struct rfx_error *err) {
    (void)rows;
    struct stb_source *s = self_of(b);
    return s->pixels != NULL ? RFX_OK : stb_decode(s, err);
}

static enum rfx_status stb_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                 void *room, const void **samples, int64_t *end,
                                 struct rfx_error *err) {
    (void)room;
    struct stb_source *s = self_of(b);
    if (s->pixels == NULL) {
        enum rfx_status status = stb_decode(s, err);
        if (status != RFX_OK) return status;
    }
    int64_t sample = (y * b->w + x0) * b->c;
    *samples = (const char *)s->pixels + sample * (b->sample_bits / 8);
    *end = x1;
    return RFX_OK;
}

static void stb_free(struct rfx_image_backend *b) {
    struct stb_source *s = self_of(b);
    heap = &s->heap;
    stb_release(s->pixels);
    heap = NULL;
    rfx_image_file_close(&s->file);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops stb_ops = {
    .set_window = stb_set_window, .fetch = stb_fetch, .free = stb_free};

/* Computes the most memory that stb_image holds at once, from each format's loader in stb_image.
 * Returns false on overflow. */
static bool peak_bytes(struct stb_source *s, const unsigned char *head, size_t *out) {
    size_t sample_bytes = (size_t)s->base.sample_bits / 8;
    size_t per_pixel = 7 * sample_bytes;              /* RGBA, and RGB converted from it */
    if (memcmp(head, "GIF8", 4) == 0) per_pixel = 12; /* two RGBA frames, a mask, RGB */
    return rfx_checked_mul_size((size_t)s->base.h, (size_t)s->base.w, out) &&
           rfx_checked_mul_size(*out, per_pixel, out) &&
           rfx_checked_add_size(*out, 131072, out); /* decoder state, block heads, line buffers */
}

static int64_t little_endian(const unsigned char *bytes, int n) {
    int64_t value = 0;
    for (int i = n - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

/* Returns by how many bytes a BMP is shorter than its header implies: rows are padded to multiples
 * of 4 bytes and begin at the offset of the pixels. stb_image reads no compressed BMP. */
static int64_t bmp_missing_bytes(struct stb_source *s) {
    unsigned char head[30] = {0};
    if (rfx_image_file_pread(&s->file, head, sizeof head, 0) < sizeof head) return 1;
    bool old = little_endian(head + 14, 4) == 12; /* OS/2's header */
    int64_t row_bits = s->base.w * little_endian(head + (old ? 24 : 28), 2);
    int64_t bytes = little_endian(head + 10, 4) + (row_bits + 31) / 32 * 4 * s->base.h;
    return bytes - s->file.bytes;
}

/* Returns whether the pixels of a BMP begin before its header ends: the palette would have a
 * negative number of colours. */
static bool bmp_overlaps(struct stb_source *s) {
    unsigned char head[18];
    if (rfx_image_file_pread(&s->file, head, sizeof head, 0) < sizeof head) return true;
    return little_endian(head + 10, 4) < 14 + little_endian(head + 14, 4);
}

static enum rfx_status read_header(struct stb_source *s, struct rfx_error *err) {
    const char *name = s->base.name;
    unsigned char head[4] = {0, 0, 0, 0};
    (void)rfx_image_file_pread(&s->file, head, sizeof head, 0);
    int w = 0, h = 0, n = 0;
    s->heap = (struct stb_heap){.mem = s->base.mem, .limit_bytes = 131072};
    heap = &s->heap;
    int known = stbi_info_from_callbacks(&callbacks, s, &w, &h, &n);
    rfx_image_file_rewind(&s->file);
    bool wide = known != 0 && stbi_is_16_bit_from_callbacks(&callbacks, s) != 0;
    heap = NULL;
    if (s->file.error_number != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: %s", name, strerror(s->file.error_number));
    if (known == 0 && s->heap.out_of_memory)
        return rfx_memory_fail(s->base.mem, name, s->heap.limit_bytes, err);
    if (known == 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: not a picture that rfexec reads (PNG, JPEG, TIFF, npy, WebP, JPEG "
                        "2000, BMP, TGA, PSD, "
                        "PNM, GIF, PIC), or a broken one: %s; other kinds: convert to PNG or TIFF",
                        name, stbi_failure_reason());
    bool is_bmp = memcmp(head, "BM", 2) == 0;
    if (is_bmp && h < 0 && h >= -RFX_IMAGE_MAX_SIDE)
        h = -h; /* negative: rows go from top to bottom */
    if (h < 1 || w < 1 || h > RFX_IMAGE_MAX_SIDE || w > RFX_IMAGE_MAX_SIDE || n < 1 || n > 4)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: picture of %d x %d pixels and %d channels; 1 to %d pixels a side are "
                        "read",
                        name, h, w, n, RFX_IMAGE_MAX_SIDE);
    s->base.h = h;
    s->base.w = w;
    s->base.c = n >= 3 ? 3 : 1;
    s->base.sample_bits = wide ? 16 : 8;
    s->is_pnm = head[0] == 'P' && (head[1] == '5' || head[1] == '6');
    s->is_gif = memcmp(head, "GIF8", 4) == 0;
    if (is_bmp && bmp_overlaps(s))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: its pixels begin inside its header", name);
    int64_t missing = is_bmp ? bmp_missing_bytes(s) : 0;
    if (missing > 0) return fail_cut(s, missing, err);
    /* stb_image counts bytes in int; pixels may pass through RGBA */
    int64_t decoded = s->base.h * s->base.w * 4 * (wide ? 2 : 1);
    if (decoded > INT32_MAX - 64)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: %d x %d pixels are more than this format is decoded to (2 GiB); "
                        "convert it to PNG",
                        name, h, w);
    if (!peak_bytes(s, head, &s->heap.limit_bytes))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: %d x %d pixels do not fit any memory", name,
                        h, w);
    s->base.fixed_bytes = sizeof *s + s->heap.limit_bytes;
    return RFX_OK;
}

enum rfx_status rfx_image_stb_open(struct rfx_memory *mem, const char *name,
                                   const struct rfx_image_options *options,
                                   struct rfx_image_backend **out, struct rfx_error *err) {
    (void)options; /* alpha is always dropped */
    struct rfx_image_backend *b;
    enum rfx_status status = rfx_image_backend_create(mem, sizeof(struct stb_source), &stb_ops,
                                                      name, "picture", &b, err);
    if (status != RFX_OK) return status;
    struct stb_source *s = self_of(b);
    s->base.random_access = true;
    status = rfx_image_file_open(&s->file, name, err);
    if (status == RFX_OK) status = read_header(s, err);
    return rfx_image_backend_finish(b, status, out);
}
