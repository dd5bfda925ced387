/* BMP pictures whose rows are run-length encoded (RLE4 and RLE8), decoded whole.
 *
 * Other BMP files are read by stb_image (image_stb.c). One byte per pixel is held: the index of its
 * colour. Pixels that the file skips have colour 0, and so have pixels after an early end of the
 * bitmap. Delivers RGB. Source: Microsoft's BITMAPINFOHEADER and "Bitmap Compression". Strict: runs
 * that leave the picture, and a file without an end of bitmap, are refused. */
#include <inttypes.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"

enum { FILE_HEAD = 14, INFO_HEAD = 40, RLE8 = 1, RLE4 = 2 };

struct bmp_source {
    struct rfx_image_backend base;
    struct rfx_image_file file;
    int bits; /* bits of an index: 4 or 8 */
    int64_t data_offset;
    unsigned char palette[256][4]; /* blue, green, red, unused */
    unsigned char *indices;        /* [h, w] from the top, NULL before decoding */
};

static struct bmp_source *self_of(struct rfx_image_backend *b) {
    return (struct bmp_source *)(void *)b;
}

static int64_t number(const unsigned char *from, int bytes) {
    int64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | from[i];
    return value;
}

static enum rfx_status fail_broken(struct bmp_source *s, int64_t row, const char *how,
                                   struct rfx_error *err) {
    if (s->file.error_number != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: row %" PRId64 " of %" PRId64 " from the last: %s",
                        s->base.name, row, s->base.h, strerror(s->file.error_number));
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "%s: row %" PRId64 " of %" PRId64 " from the last: %s", s->base.name, row,
                    s->base.h, how);
}

/* Returns the i-th index in packed bytes. `one`: the bytes are a run, whose byte is repeated. */
static unsigned char index_at(const struct bmp_source *s, const unsigned char *from, int i,
                              bool one) {
    if (s->bits == 8) return from[one ? 0 : i];
    unsigned char both = from[one ? 0 : i / 2];
    return i % 2 == 0 ? both >> 4 : both & 15;
}

/* Position of the decoder: row y from the last, column x. */
struct place {
    int64_t y, x;
};

static bool put(struct bmp_source *s, struct place *at, const unsigned char *from, int n,
                bool one) {
    if (at->y >= s->base.h || n > s->base.w - at->x) return false;
    unsigned char *row = s->indices + (s->base.h - 1 - at->y) * s->base.w + at->x;
    for (int i = 0; i < n; i++) row[i] = index_at(s, from, i, one);
    at->x += n;
    return true;
}

/* Handles the code after a zero byte: the end of a row or of the bitmap, a move, or n literal
 * indices. */
static bool take_escape(struct bmp_source *s, int code, struct place *at) {
    unsigned char bytes[256];
    if (code == 0) {
        at->y++;
        at->x = 0;
        return at->y <= s->base.h;
    }
    if (code == 2) {
        if (rfx_image_file_read(&s->file, bytes, 2) != 2) return false;
        at->x += bytes[0];
        at->y += bytes[1];
        return at->x <= s->base.w && at->y <= s->base.h;
    }
    size_t n = s->bits == 8 ? (size_t)code : ((size_t)code + 1) / 2;
    n += n % 2; /* padded to whole words */
    return rfx_image_file_read(&s->file, bytes, n) == n && put(s, at, bytes, code, false);
}

static enum rfx_status decode(struct bmp_source *s, struct rfx_error *err) {
    struct place at = {0, 0};
    unsigned char code[2];
    rfx_image_file_rewind(&s->file);
    rfx_image_file_skip(&s->file, s->data_offset);
    memset(s->indices, 0, (size_t)(s->base.h * s->base.w));
    for (int64_t i = 0;; i++) {
        enum rfx_status status = i % 65536 == 0 ? rfx_memory_check_stop(s->base.mem, err) : RFX_OK;
        if (status != RFX_OK) return status;
        if (rfx_image_file_read(&s->file, code, 2) != 2)
            return fail_broken(s, at.y, "the file ends here", err);
        if (code[0] == 0 && code[1] == 1) return RFX_OK; /* the end of the bitmap */
        bool done =
            code[0] == 0 ? take_escape(s, code[1], &at) : put(s, &at, code + 1, code[0], true);
        if (!done) return fail_broken(s, at.y, "a run leaves the picture, or the file ends", err);
    }
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct bmp_source *s = self_of(b);
    (void)rows;
    if (s->indices != NULL) return RFX_OK;
    size_t bytes = (size_t)(b->h * b->w); /* checked at open */
    s->indices = rfx_memory_alloc(b->mem, bytes);
    if (s->indices == NULL) return rfx_memory_fail(b->mem, b->name, bytes, err);
    enum rfx_status status = decode(s, err);
    if (status == RFX_OK) return status;
    rfx_memory_release(b->mem, s->indices);
    s->indices = NULL;
    return status;
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    struct bmp_source *s = self_of(b);
    enum rfx_status status = source_set_window(b, 1, err);
    if (status != RFX_OK) return status;
    unsigned char *to = room;
    *end = rfx_min_i64(x1, x0 + RFX_IMAGE_ROOM_BYTES / 3);
    *samples = room;
    for (int64_t x = x0; x < *end; x++)
        for (int c = 0; c < 3; c++) *to++ = s->palette[s->indices[y * b->w + x]][2 - c];
    return RFX_OK;
}

static void source_free(struct rfx_image_backend *b) {
    struct bmp_source *s = self_of(b);
    rfx_memory_release(b->mem, s->indices);
    rfx_image_file_close(&s->file);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops source_ops = {
    .set_window = source_set_window, .fetch = source_fetch, .free = source_free};

static enum rfx_status read_header(struct bmp_source *s, struct rfx_error *err) {
    const char *name = s->base.name;
    unsigned char head[FILE_HEAD + INFO_HEAD];
    if (rfx_image_file_pread(&s->file, head, sizeof head, 0) != sizeof head)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: the BMP header is cut off", name);
    int64_t info = number(head + 14, 4), colours = number(head + 46, 4);
    s->data_offset = number(head + 10, 4);
    s->base.w = number(head + 18, 4);
    s->base.h = number(head + 22, 4);
    s->bits = (int)number(head + 28, 2);
    if (s->bits != (number(head + 30, 4) == RLE8 ? 8 : 4))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: run-length encoded BMP of %d bits", name,
                        s->bits);
    if (s->base.h < 1 || s->base.w < 1 || s->base.h > RFX_IMAGE_MAX_SIDE ||
        s->base.w > RFX_IMAGE_MAX_SIDE)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: run-length encoded BMP of %" PRId64 " x %" PRId64
                        " pixels; 1 to %d a side are read, from the last row on",
                        name, s->base.h, s->base.w, RFX_IMAGE_MAX_SIDE);
    if (colours == 0) colours = INT64_C(1) << s->bits;
    int64_t end = FILE_HEAD + info + 4 * colours;
    if (colours > 256 || info < INFO_HEAD || info > 4096 || end > s->data_offset)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: a header of %" PRId64 " bytes and %" PRId64
                        " colours do not fit before the pixels at %" PRId64,
                        name, info, colours, s->data_offset);
    size_t bytes = 4 * (size_t)colours;
    if (rfx_image_file_pread(&s->file, s->palette, bytes, FILE_HEAD + info) != bytes)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: the palette is cut off", name);
    s->base.c = 3;
    s->base.sample_bits = 8;
    s->base.fixed_bytes = sizeof *s + (size_t)(s->base.h * s->base.w); /* below 2^48 */
    return RFX_OK;
}

enum rfx_status rfx_image_bmp_rle_open(struct rfx_memory *mem, const char *name,
                                       const struct rfx_image_options *options,
                                       struct rfx_image_backend **out, struct rfx_error *err) {
    (void)options; /* the format has no alpha */
    struct rfx_image_backend *b;
    enum rfx_status status =
        rfx_image_backend_create(mem, sizeof(struct bmp_source), &source_ops, name, "BMP", &b, err);
    if (status != RFX_OK) return status;
    struct bmp_source *s = self_of(b);
    s->base.random_access = true;
    status = rfx_image_file_open(&s->file, name, err);
    if (status == RFX_OK) status = read_header(s, err);
    return rfx_image_backend_finish(b, status, out);
}
