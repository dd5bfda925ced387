/* .npy pictures in planes (C, H, W), (1, C, H, W) or, for a batch, (N, C, H, W). Floats, signed and
 * 32-bit integers are delivered as floats without preprocessing. Unsigned integers of 8 and 16 bits
 * are delivered as samples.
 *
 * Arrays in Fortran order are pictures of pixels whose rows are columns. They are transposed in a
 * temporary file without a name, like a rotated photograph (orientation.h).
 *
 * The file is read by pread through a small buffer, not mapped. The pages of a mapped file would
 * count in the resident set, and a file that shrinks during a run would kill the process instead of
 * giving an error. A mapping is not faster either: 8192 x 8192 x 3 in bands of 16 rows took
 * 0.29-0.34 s and 0.1 MiB by pread, 0.31-0.48 s and 1.5 MiB mapped with the pages released after
 * use. Random access; NaN and infinities are delivered as they are. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/kernels/kernels.h"
#include "rfexec/image/decode/array_type.h"
#include "rfexec/image/decode/npy_format.h"
#include "rfexec/image/decode/orientation.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "npy data are read as they are");

#define CHUNK_COLS 4096 /* floats of a channel that are read at a time */
#define TOGETHER 3      /* channels whose rows are read before they are put into pixels */

struct npy_source {
    struct rfx_image_backend base;
    struct rfx_image_file file;
    int64_t data_offset;
    int64_t file_channels;          /* channels of an image in the file */
    int64_t image;                  /* image of the batch that is read */
    struct rfx_image_bands *chosen; /* chosen bands, from 1; NULL: all */
    const struct rfx_zarr_type *type;
    bool big;    /* elements are big-endian */
    bool last;   /* the shape is (rows, columns, channels) */
    bool pixels; /* channels of a pixel are contiguous: `last`, or Fortran order, in which base.h
                    counts the columns */
};

static struct npy_source *self_of(struct rfx_image_backend *b) {
    return (struct npy_source *)(void *)b;
}

static enum rfx_status read_bytes(struct npy_source *s, int64_t y, int64_t offset, void *to,
                                  size_t bytes, struct rfx_error *err) {
    if (rfx_image_file_pread(&s->file, to, bytes, s->data_offset + offset) == bytes) return RFX_OK;
    if (s->file.error_number != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: row %" PRId64 " of %" PRId64 ": %s", s->base.name,
                        y, s->base.h, strerror(s->file.error_number));
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "%s: row %" PRId64 " of %" PRId64 ": the file became shorter while being read",
                    s->base.name, y, s->base.h);
}

#define RAW_BYTES 8192 /* bytes of stored elements that are read at a time */

/* Returns the band of channel k. */
static int64_t band_of(const struct npy_source *s, int64_t k) {
    return s->chosen != NULL ? s->chosen->numbers[k] - 1 : k;
}

/* Reads `cols` elements of each channel from planes, and stores them as pixels at `to`. */
static enum rfx_status fetch_planes(struct npy_source *s, int64_t y, int64_t x, int64_t cols,
                                    unsigned char *to, struct rfx_error *err) {
    const size_t bytes = (size_t)s->type->bytes, sample = (size_t)s->base.sample_bits / 8;
    unsigned char raw[RAW_BYTES];
    for (int64_t k = 0; k < s->base.c; k++) {
        int64_t plane = s->image * s->file_channels + band_of(s, k);
        int64_t elem = (plane * s->base.h + y) * s->base.w + x; /* [n, c, h, w]; checked at open */
        enum rfx_status status =
            read_bytes(s, y, elem * (int64_t)bytes, raw, (size_t)cols * bytes, err);
        if (status != RFX_OK) return status;
        rfx_zarr_type_convert(s->type, s->big, raw, bytes, (size_t)cols, to + (size_t)k * sample,
                              (size_t)s->base.c * sample);
    }
    return RFX_OK;
}

/* Like fetch_planes, from a file of pixels. */
static enum rfx_status fetch_pixels(struct npy_source *s, int64_t y, int64_t x, int64_t cols,
                                    unsigned char *to, struct rfx_error *err) {
    const size_t bytes = (size_t)s->type->bytes, sample = (size_t)s->base.sample_bits / 8;
    const size_t pixel = (size_t)s->file_channels * bytes;
    unsigned char raw[RAW_BYTES];
    int64_t first = ((s->image * s->base.h + y) * s->base.w + x) * (int64_t)pixel;
    enum rfx_status status = read_bytes(s, y, first, raw, (size_t)cols * pixel, err);
    for (int64_t k = 0; k < s->base.c && status == RFX_OK; k++)
        rfx_zarr_type_convert(s->type, s->big, raw + (size_t)band_of(s, k) * bytes, pixel,
                              (size_t)cols, to + (size_t)k * sample, (size_t)s->base.c * sample);
    return status;
}

/* Returns the most columns that a call of fetch delivers; less than 1: pixels are too large. */
static int64_t most_cols(const struct npy_source *s) {
    int64_t delivered = s->base.c * (s->base.sample_bits / 8);
    int64_t stored = (s->pixels ? s->file_channels : 1) * s->type->bytes;
    return rfx_min_i64(RFX_IMAGE_ROOM_BYTES / delivered, RAW_BYTES / stored);
}

static enum rfx_status npy_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                 void *room, const void **samples, int64_t *end,
                                 struct rfx_error *err) {
    struct npy_source *s = self_of(b);
    *end = rfx_min_i64(x1, x0 + most_cols(s));
    *samples = room;
    return s->pixels ? fetch_pixels(s, y, x0, *end - x0, room, err)
                     : fetch_planes(s, y, x0, *end - x0, room, err);
}

/* Reads `n` floats of a channel from column x of row y on; they may be several whole rows. */
static enum rfx_status read_chunk(struct npy_source *s, int64_t channel, int64_t y, int64_t x,
                                  int64_t n, float *chunk, struct rfx_error *err) {
    int64_t plane = s->image * s->file_channels + channel;
    int64_t elem = (plane * s->base.h + y) * s->base.w + x; /* [n, c, h, w]; checked at open */
    size_t bytes = rfx_floats_bytes(n);
    size_t got = rfx_image_file_pread(&s->file, chunk, bytes,
                                      s->data_offset + (int64_t)rfx_floats_bytes(elem));
    if (got == bytes) return RFX_OK;
    y += (int64_t)(got / sizeof(float)) / s->base.w;
    if (s->file.error_number != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: row %" PRId64 " of %" PRId64 ": %s", s->base.name,
                        y, s->base.h, strerror(s->file.error_number));
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "%s: row %" PRId64 " of %" PRId64 ": the file became shorter while being read",
                    s->base.name, y, s->base.h);
}

/* Copies `cols` floats from each of n planes, `plane` floats apart, to n channels at dst, in pixels
 * of c channels. */
static void interleave(const float *planes, int64_t plane, int64_t n, int64_t cols, float *dst,
                       int64_t c) {
    if (n == c)
        rfx_kernels()->interleave(planes, plane, c, cols, dst);
    else
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < cols; k++) dst[k * c + i] = planes[i * plane + k];
}

/* Reads a rectangle of at most a chunk, of n channels from `first` on. It must be whole rows, or a
 * part of one row. */
static enum rfx_status read_channels(struct npy_source *s, int64_t first, int64_t n,
                                     struct rfx_rect rect, const struct rfx_view *out,
                                     struct rfx_error *err) {
    float chunk[TOGETHER * CHUNK_COLS];
    int64_t cols = rfx_rect_cols(rect), plane = rfx_rect_area(rect);
    for (int64_t i = 0; i < n; i++) {
        enum rfx_status status =
            read_chunk(s, band_of(s, first + i), rect.y0, rect.x0, plane, chunk + i * plane, err);
        if (status != RFX_OK) return status;
    }
    for (int64_t y = rect.y0; y < rect.y1; y++)
        interleave(chunk + (y - rect.y0) * cols, plane, n, cols,
                   rfx_view_f32_at(out, y, rect.x0) + first, out->c);
    return RFX_OK;
}

/* Reads a rectangle. Rows of a channel are contiguous in the file, so as many whole rows as a chunk
 * holds are read at a time. */
static enum rfx_status npy_read(struct rfx_image_backend *b, struct rfx_rect rect,
                                const struct rfx_view *out, struct rfx_error *err) {
    bool whole = rfx_rect_cols(rect) == b->w;
    int64_t rows = whole ? rfx_max_i64(1, CHUNK_COLS / b->w) : 1;
    for (int64_t y = rect.y0; y < rect.y1; y += rows)
        for (int64_t first = 0; first < b->c; first += TOGETHER)
            for (int64_t x = rect.x0; x < rect.x1; x += CHUNK_COLS) {
                struct rfx_rect part =
                    rfx_rect_intersect(rect, rfx_rect_make(y, y + rows, x, x + CHUNK_COLS));
                int64_t n = rfx_min_i64(TOGETHER, b->c - first);
                enum rfx_status status = read_channels(self_of(b), first, n, part, out, err);
                if (status != RFX_OK) return status;
            }
    return RFX_OK;
}

static void npy_free(struct rfx_image_backend *b) {
    rfx_image_file_close(&self_of(b)->file);
    rfx_memory_release(b->mem, self_of(b)->chosen);
    rfx_memory_release(b->mem, b);
}

static void npy_select(struct rfx_image_backend *b, int64_t n) {
    self_of(b)->image = n;
}

static const struct rfx_image_backend_ops npy_ops = {
    .read_floats = npy_read, .select = npy_select, .free = npy_free};

static const struct rfx_image_backend_ops sample_ops = {
    .fetch = npy_fetch, .select = npy_select, .free = npy_free};

/* Sets how elements are delivered that are not planes of little-endian float32. */
static enum rfx_status settle_samples(struct npy_source *s, bool fortran, struct rfx_error *err) {
    struct rfx_image_backend *b = &s->base;
    const bool plain = strcmp(s->type->name, "float32") == 0 && !s->big && !fortran && !s->last;
    if (plain) return RFX_OK;
    b->ops = &sample_ops;
    b->sample_bits = rfx_zarr_type_sample_bits(s->type);
    b->chosen = s->chosen != NULL;
    if (b->sample_bits < 32) b->bands = (int)rfx_min_i64(s->file_channels, INT32_MAX);
    s->pixels = fortran || s->last;
    if (fortran &&
        (s->last || b->images > 1 || b->h > RFX_IMAGE_MAX_SIDE || b->w > RFX_IMAGE_MAX_SIDE))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: npy in Fortran order of several images, with channels last, or with a "
                        "side above %d; save "
                        "numpy.ascontiguousarray(a)",
                        b->name, RFX_IMAGE_MAX_SIDE);
    if (fortran) {
        int64_t rows = b->w;
        b->w = b->h;
        b->h = rows;
        b->orientation = 5;
    }
    if (most_cols(s) < 1)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: npy of %s with %" PRId64
                        " channels, too many; float32 of shape (C, H, W) may have so many",
                        b->name, s->type->name, s->file_channels);
    return RFX_OK;
}

/* Sets h, w, c and the number of images, and checks them against the size of the file. */
static enum rfx_status accept_header(struct npy_source *s, const struct rfx_npy_header *header,
                                     int64_t max_images, struct rfx_error *err) {
    const char *name = s->base.name;
    s->type = rfx_zarr_type_parse(header->descr, &s->big);
    if (s->type == NULL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: npy elements of type '%s'; integers of 8, 16 and 32 bits, float16, "
                        "float32 and float64 are read",
                        name, header->descr);
    char text[RFX_SHAPE_TEXT];
    (void)rfx_shape_text(&header->shape, ", ", text);
    int skip = header->shape.rank - 3;
    int64_t images = skip == 1 ? header->shape.dims[0] : 1;
    if (skip != 0 && skip != 1)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: npy of shape (%s); (C, H, W) or (1, C, H, W) is read, by run (N, C, "
                        "H, W) too",
                        name, text);
    if (images > rfx_max_i64(max_images, 1))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: npy of shape (%s), a batch of %" PRId64
                        " images, of which one is taken here: 'rfexec run' takes a batch, but not "
                        "with --list, --mask or parts",
                        name, text, images);
    const int64_t *given = header->shape.dims + skip;
    const int64_t dims[3] = {given[s->last ? 2 : 0], given[s->last ? 0 : 1],
                             given[s->last ? 1 : 2]};
    int64_t bytes;
    if (images < 1 || dims[0] < 1 || dims[1] < 1 || dims[2] < 1 ||
        !rfx_checked_mul_i64(images, dims[0], &bytes) ||
        !rfx_checked_mul_i64(bytes, dims[1], &bytes) ||
        !rfx_checked_mul_i64(bytes, dims[2], &bytes) ||
        !rfx_checked_mul_i64(bytes, s->type->bytes, &bytes) ||
        !rfx_checked_add_i64(bytes, (int64_t)header->data_offset, &bytes))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: npy of impossible shape (%s)", name, text);
    if (bytes != s->file.bytes)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: npy of shape (%s) needs a file of %" PRId64 " bytes, it has %" PRId64,
                        name, text, bytes, s->file.bytes);
    s->base.h = dims[1];
    s->base.w = dims[2];
    s->base.images = images;
    s->file_channels = dims[0];
    s->data_offset = (int64_t)header->data_offset;
    for (int k = 0; s->chosen != NULL && k < s->chosen->n; k++)
        if (s->chosen->numbers[k] > dims[0])
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: --channels: band %d of %" PRId64,
                            name, s->chosen->numbers[k], dims[0]);
    s->base.c = s->chosen != NULL ? s->chosen->n : dims[0];
    return settle_samples(s, header->fortran_order, err);
}

static enum rfx_status copy_bands(struct npy_source *s, const struct rfx_image_bands *bands,
                                  struct rfx_error *err) {
    if (bands == NULL) return RFX_OK;
    s->chosen = rfx_memory_alloc(s->base.mem, sizeof *bands);
    if (s->chosen == NULL) return rfx_memory_fail(s->base.mem, s->base.name, sizeof *bands, err);
    *s->chosen = *bands;
    s->base.fixed_bytes += sizeof *bands;
    return RFX_OK;
}

size_t rfx_image_npy_source_bytes(void) {
    return sizeof(struct npy_source);
}

enum rfx_status rfx_image_npy_open(struct rfx_memory *mem, const char *name,
                                   const struct rfx_image_options *options,
                                   struct rfx_image_backend **out, struct rfx_error *err) {
    unsigned char bytes[RFX_NPY_MAX_HEADER_BYTES];
    struct rfx_image_backend *b;
    enum rfx_status status =
        rfx_image_backend_create(mem, sizeof(struct npy_source), &npy_ops, name, "npy", &b, err);
    if (status != RFX_OK) return status;
    struct npy_source *s = self_of(b);
    b->sample_bits = 32;
    b->random_access = b->concurrent = true;
    b->fixed_bytes = sizeof *s;
    s->last = options->channels_last;
    status = rfx_image_file_open(&s->file, name, err);
    if (status == RFX_OK) status = copy_bands(s, options->bands, err);
    if (status != RFX_OK) goto fail;
    size_t count = rfx_image_file_pread(&s->file, bytes, RFX_NPY_MAX_HEADER_BYTES, 0);
    if (s->file.error_number != 0) {
        status = rfx_fail(err, RFX_STATUS_IO, "%s: %s", name, strerror(s->file.error_number));
        goto fail;
    }
    struct rfx_npy_header header;
    status = rfx_npy_parse(bytes, count, &header, err);
    if (status != RFX_OK)
        (void)rfx_fail_within(err, status, "%s", name);
    else
        status = accept_header(s, &header, options->max_images, err);
    if (status != RFX_OK) goto fail;
    if (s->pixels && !s->last)
        status = rfx_image_orient(b, options->folder, out, err);
    else
        *out = b;
    if (status == RFX_OK) return RFX_OK;
fail:
    npy_free(b);
    return status;
}
