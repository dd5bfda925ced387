/* WebP pictures through libwebp, decoded whole: no rows of the format can be read alone.
 *
 * Opening reads the chunks' headers only; set_window or the first read decodes. Delivers 8-bit RGB.
 * Alpha is the fourth band; it is dropped, and the colour kept as stored, unless all bands are
 * chosen. base.orientation is set from an EXIF chunk. Invariants: 1. file and picture are in the
 * tracked allocator; libwebp's own memory is bounded by library_bytes; 2. the file's bytes are
 * freed once the picture is decoded. Source: RFC 9649. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/library.h"
#include "rfexec/image/decode/orientation.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"

#define MOST_FILE_BYTES ((int64_t)1 << 31)
enum { MOST_CHUNKS = 1000, FLAG_ANIMATION = 2, FLAG_ALPHA = 16 };

/* Memory that a budget counts for the library and its tables. */
#define LIBRARY_BYTES ((size_t)3 << 19)

/* libwebp, loaded when the first WebP picture is decoded. Only two functions of its simple
 * interface are used; they are the same since 0.1, so no header of libwebp is needed. */
struct webp_library {
    int (*WebPGetInfo)(const uint8_t *data, size_t bytes, int *w, int *h);
    uint8_t *(*WebPDecodeRGBInto)(const uint8_t *data, size_t bytes, uint8_t *to, size_t to_bytes,
                                  int stride);
    uint8_t *(*WebPDecodeRGBAInto)(const uint8_t *data, size_t bytes, uint8_t *to, size_t to_bytes,
                                   int stride);
};

#define FUNCTION(name) \
    { #name, offsetof(struct webp_library, name), false }
static const struct rfx_library_function functions[] = {
    FUNCTION(WebPGetInfo),
    FUNCTION(WebPDecodeRGBInto),
    FUNCTION(WebPDecodeRGBAInto),
};
_Static_assert(sizeof functions / sizeof functions[0] ==
                   sizeof(struct webp_library) / sizeof(void (*)(void)),
               "every member has a row");

/* Fills `lib`. IO, with the package to install: this system has no such library or cannot load it.
 */
static enum rfx_status load_library(struct webp_library *lib, struct rfx_error *err) {
    enum rfx_status status = rfx_library_load("libwebp.so.7", functions,
                                              sizeof functions / sizeof functions[0], lib, err);
    return status == RFX_OK ? status
                            : rfx_fail_within(err, status,
                                              "WebP pictures are read by libwebp (Debian's package "
                                              "libwebp7)");
}

struct webp_source {
    struct rfx_image_backend base;
    struct rfx_image_file file;
    struct webp_library lib;
    bool has_alpha, lossless, extended;
    unsigned char *pixels; /* [h, w, c], NULL before decoding */
};

static struct webp_source *self_of(struct rfx_image_backend *b) {
    return (struct webp_source *)(void *)b;
}

static int64_t number(const unsigned char *from, int bytes) {
    int64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | from[i];
    return value;
}

static enum rfx_status decode_bytes(struct webp_source *s, unsigned char *bytes,
                                    struct rfx_error *err) {
    struct rfx_image_backend *b = &s->base;
    const size_t size = (size_t)s->file.bytes, pixels = (size_t)(b->h * b->w * b->c);
    int w = 0, h = 0;
    if (rfx_image_file_pread(&s->file, bytes, size, 0) != size)
        return rfx_fail(err, s->file.error_number != 0 ? RFX_STATUS_IO : RFX_STATUS_MALFORMED,
                        "%s: %s", b->name,
                        s->file.error_number != 0 ? strerror(s->file.error_number)
                                                  : "the file became shorter while being read");
    if (!s->lib.WebPGetInfo(bytes, size, &w, &h) || w != b->w || h != b->h)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: header says %" PRId64 " x %" PRId64 ", the picture is %d x %d",
                        b->name, b->h, b->w, h, w);
    const int stride = (int)(b->w * b->c);
    const uint8_t *done = b->c == 4
                              ? s->lib.WebPDecodeRGBAInto(bytes, size, s->pixels, pixels, stride)
                              : s->lib.WebPDecodeRGBInto(bytes, size, s->pixels, pixels, stride);
    if (done != NULL) return rfx_memory_check_stop(b->mem, err);
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "%s: libwebp cannot decode it: the file is broken or breaks off", b->name);
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct webp_source *s = self_of(b);
    (void)rows;
    if (s->pixels != NULL) return RFX_OK;
    const size_t size = (size_t)s->file.bytes, pixels = (size_t)(b->h * b->w * b->c);
    enum rfx_status status = rfx_memory_check_stop(b->mem, err);
    if (status != RFX_OK) return status;
    unsigned char *bytes = rfx_memory_alloc(b->mem, size);
    s->pixels = rfx_memory_alloc(b->mem, pixels);
    if (bytes == NULL || s->pixels == NULL)
        status = rfx_memory_fail(b->mem, b->name, size + pixels, err);
    else
        status = decode_bytes(s, bytes, err);
    rfx_memory_release(b->mem, bytes);
    if (status == RFX_OK) return status;
    rfx_memory_release(b->mem, s->pixels);
    s->pixels = NULL;
    return status;
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    struct webp_source *s = self_of(b);
    (void)room;
    enum rfx_status status = source_set_window(b, 1, err);
    if (status != RFX_OK) return status;
    *samples = s->pixels + (y * b->w + x0) * b->c;
    *end = x1;
    return RFX_OK;
}

static void source_free(struct rfx_image_backend *b) {
    struct webp_source *s = self_of(b);
    rfx_memory_release(b->mem, s->pixels);
    rfx_image_file_close(&s->file);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops source_ops = {
    .set_window = source_set_window, .fetch = source_fetch, .free = source_free};

/* Reads size and alpha from the picture's own chunk, "VP8 " or "VP8L", unless a VP8X chunk came
 * before. Returns false for invalid data. */
static bool take_picture(struct webp_source *s, const unsigned char head[10], bool lossless) {
    s->lossless = lossless;
    if (lossless && head[0] != 0x2f) return false;
    if (!lossless && memcmp(head + 3, "\x9d\x01\x2a", 3) != 0) return false;
    if (s->extended) return true;
    int64_t bits = lossless ? number(head + 1, 4) : 0;
    s->base.w = lossless ? (bits & 0x3fff) + 1 : number(head + 6, 2) & 0x3fff;
    s->base.h = lossless ? (bits >> 14 & 0x3fff) + 1 : number(head + 8, 2) & 0x3fff;
    s->has_alpha = lossless && (bits >> 28 & 1) != 0;
    return true;
}

/* Reads the chunks. Returns false if they are no valid WebP picture. */
static bool read_chunks(struct webp_source *s, bool *animated) {
    unsigned char head[18]; /* header of a chunk, and the first bytes of its content */
    bool found = false;
    int64_t at = 12;
    for (int i = 0; i < MOST_CHUNKS && !*animated; i++) {
        memset(head, 0, sizeof head);
        if (rfx_image_file_pread(&s->file, head, sizeof head, at) < 8) return found;
        int64_t length = number(head + 4, 4);
        if (memcmp(head, "VP8X", 4) == 0 && i == 0) {
            s->extended = true;
            s->has_alpha = (head[8] & FLAG_ALPHA) != 0;
            *animated = (head[8] & FLAG_ANIMATION) != 0;
            s->base.w = number(head + 12, 3) + 1;
            s->base.h = number(head + 15, 3) + 1;
        } else if (memcmp(head, "VP8 ", 4) == 0 || memcmp(head, "VP8L", 4) == 0) {
            if (!found && !take_picture(s, head + 8, head[3] == 'L')) return false;
            found = true;
        } else if (memcmp(head, "EXIF", 4) == 0) {
            s->base.orientation = rfx_exif_orientation_in(&s->file, at + 8, at + 8 + length);
        }
        at += 8 + length + length % 2;
    }
    return found;
}

/* Bounds on the groups of prefix codes in a lossless picture: their number and their bytes. */
#define MOST_CODE_GROUPS                                                                           \
    2600                       /* that libwebp's encoder makes, in squares of 4 x 4 pixels or more \
                                */
#define LEAST_GROUP_BYTES 24   /* least bytes of the file that describe a group */
#define CODE_GROUP_BYTES 20480 /* memory of the tables of a group */
#define ROW_BYTES 768          /* for each column: the rows that are decoded together */

/* Returns an upper bound of libwebp's own memory. A lossless picture takes 4 bytes a pixel, and up
 * to one more for data of its transforms. Lossless alpha takes the same, and its plane. */
static size_t library_bytes(const struct webp_source *s) {
    const int64_t w = s->base.w, h = s->base.h;
    int64_t bytes = (int64_t)LIBRARY_BYTES + w * ROW_BYTES;
    if (!s->lossless && !s->has_alpha) return (size_t)bytes;
    int64_t groups = rfx_min_i64(rfx_ceil_div(w, 4) * rfx_ceil_div(h, 4), MOST_CODE_GROUPS);
    groups = rfx_min_i64(groups, s->file.bytes / LEAST_GROUP_BYTES + 1);
    return (size_t)(bytes + w * h * (s->lossless ? 5 : 6) + groups * CODE_GROUP_BYTES);
}

static enum rfx_status read_header(struct webp_source *s, const struct rfx_image_options *options,
                                   struct rfx_error *err) {
    struct rfx_image_backend *b = &s->base;
    bool animated = false;
    if (s->file.bytes > MOST_FILE_BYTES)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: a WebP file of more than 2 GiB", b->name);
    bool known = read_chunks(s, &animated);
    if (s->file.error_number != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: %s", b->name, strerror(s->file.error_number));
    if (animated)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: an animated WebP; single pictures are read", b->name);
    if (!known || b->h < 1 || b->w < 1 || b->h > 16384 || b->w > 16384)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: the WebP header is broken or cut off (%" PRId64 " x %" PRId64
                        " pixels)",
                        b->name, b->h, b->w);
    b->bands = s->has_alpha ? 4 : 3;
    b->c = s->has_alpha && (options->bands != NULL || options->channels == 4) ? 4 : 3;
    b->n_alpha = s->has_alpha && b->c == 3;
    b->is_colour = b->c == 3;
    b->sample_bits = 8;
    b->random_access = true;
    b->shared_bytes = LIBRARY_BYTES;
    b->fixed_bytes =
        sizeof *s + (size_t)(b->h * b->w * b->c) + (size_t)s->file.bytes + library_bytes(s);
    return load_library(&s->lib, err) == RFX_OK
               ? RFX_OK
               : rfx_fail_within(err, RFX_STATUS_IO, "%s", b->name);
}

enum rfx_status rfx_image_webp_open(struct rfx_memory *mem, const char *name,
                                    const struct rfx_image_options *options,
                                    struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_image_backend *b;
    enum rfx_status status = rfx_image_backend_create(mem, sizeof(struct webp_source), &source_ops,
                                                      name, "WebP", &b, err);
    if (status != RFX_OK) return status;
    struct webp_source *s = self_of(b);
    status = rfx_image_file_open(&s->file, name, err);
    if (status == RFX_OK) status = read_header(s, options, err);
    return rfx_image_backend_finish(b, status, out);
}
