/* Sources that are no files: arrays of the caller with any steps, and functions of the caller that
 * compute rectangles.
 *
 * Invariant: both are one kind of backend of one size, so that a plan for one fits the other. */
#include <inttypes.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/view_rows.h"
#include "layers/kernels/kernels.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_source.h"

struct memory_source {
    struct rfx_image_backend base;
    const float *values;
    struct rfx_image_steps steps;
    struct rfx_image_reader reader;
    struct rfx_image_samples samples;
};

static const struct memory_source *source_of(const struct rfx_image_backend *b) {
    return (const struct memory_source *)(const void *)b;
}

static enum rfx_status array_read(struct rfx_image_backend *b, struct rfx_rect rect,
                                  const struct rfx_view *out, struct rfx_error *err) {
    const struct memory_source *s = source_of(b);
    (void)err;
    for (int64_t y = rect.y0; y < rect.y1; y++) {
        const float *from = s->values + y * s->steps.row + rect.x0 * s->steps.column;
        float *to = rfx_view_f32_at(out, y, rect.x0);
        if (s->steps.column == 1) {
            rfx_kernels()->interleave(from, s->steps.channel, b->c, rfx_rect_cols(rect), to);
            continue;
        }
        for (int64_t x = 0; x < rfx_rect_cols(rect); x++)
            for (int64_t c = 0; c < b->c; c++)
                *to++ = from[x * s->steps.column + c * s->steps.channel];
    }
    return RFX_OK;
}

/* Reads a rectangle. Rows may lie in a ring buffer: each call reads as many rows as are contiguous.
 */
static enum rfx_status reader_read(struct rfx_image_backend *b, struct rfx_rect rect,
                                   const struct rfx_view *out, struct rfx_error *err) {
    const struct rfx_image_reader *reader = &source_of(b)->reader;
    const struct rfx_image_steps steps = {.row = out->row_stride, .column = out->c, .channel = 1};
    for (int64_t y = rect.y0; y < rect.y1;) {
        struct rfx_rect rows = rect;
        rows.y0 = y;
        rows.y1 = rfx_view_rows_end(out, y, rect.y1);
        int result = reader->read(reader->user, rows, steps, rfx_view_f32_at(out, y, rect.x0));
        if (result != 0)
            return rfx_fail(err, RFX_STATUS_IO,
                            "the caller's source returned %d for rows %" PRId64 "..%" PRId64
                            ", columns %" PRId64 "..%" PRId64 " of %" PRId64 "x%" PRId64,
                            result, rows.y0, rows.y1, rows.x0, rows.x1, b->h, b->w);
        y = rows.y1;
    }
    return RFX_OK;
}

/* Points to the samples where all channels of a row's pixels follow each other; else copies as many
 * pixels as fit into `to`. */
static enum rfx_status samples_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                     void *to, const void **samples, int64_t *end,
                                     struct rfx_error *err) {
    const struct rfx_image_samples *s = &source_of(b)->samples;
    const unsigned char *from = s->samples;
    const int64_t bytes = s->bits / 8, c = b->c;
    (void)err;
    from += (y * s->steps.row + x0 * s->steps.column) * bytes;
    *end = x1;
    *samples = from;
    if (s->steps.channel == 1 && s->steps.column == c) return RFX_OK;
    *end = rfx_min_i64(x1, x0 + RFX_IMAGE_ROOM_BYTES / (c * bytes));
    *samples = to;
    unsigned char *at = to;
    for (int64_t x = 0; x < *end - x0; x++)
        for (int64_t k = 0; k < c; k++, at += bytes)
            memcpy(at, from + (x * s->steps.column + k * s->steps.channel) * bytes, (size_t)bytes);
    return RFX_OK;
}

static void memory_free(struct rfx_image_backend *b) {
    rfx_memory_release(b->mem, b);
}

static const struct rfx_image_backend_ops array_ops = {.read_floats = array_read,
                                                       .free = memory_free};
static const struct rfx_image_backend_ops reader_ops = {.read_floats = reader_read,
                                                        .free = memory_free};

static const struct rfx_image_backend_ops samples_ops = {.fetch = samples_fetch,
                                                         .free = memory_free};

/* Makes an image of c x h x w from a copy of `like`. options: of samples; NULL: the source gives
 * floats. */
static enum rfx_status open_source(struct rfx_memory *mem, const struct memory_source *like,
                                   const struct rfx_image_options *options, int64_t c, int64_t h,
                                   int64_t w, struct rfx_image **out, struct rfx_error *err) {
    int64_t elems = 0;
    if (c < 1 || h < 1 || w < 1 || !rfx_checked_mul_i64(c, h, &elems) ||
        !rfx_checked_mul_i64(elems, w, &elems))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "array: %" PRId64 " channels of %" PRId64 "x%" PRId64, c, h, w);
    struct memory_source *s = rfx_memory_calloc(mem, 1, sizeof *s);
    if (s == NULL) return rfx_memory_fail(mem, "array", sizeof *s, err);
    *s = *like;
    s->base.mem = mem;
    s->base.name = "array";
    s->base.h = h;
    s->base.w = w;
    s->base.c = c;
    s->base.sample_bits = options != NULL ? like->samples.bits : 32;
    s->base.random_access = true;
    s->base.fixed_bytes = sizeof *s;
    enum rfx_status status = options != NULL ? rfx_image_of_samples(&s->base, options, out, err)
                                             : rfx_image_of_backend(&s->base, out, err);
    if (status != RFX_OK) memory_free(&s->base);
    return status;
}

enum rfx_status rfx_image_from_steps(struct rfx_memory *mem, const float *values,
                                     struct rfx_image_steps steps, int64_t c, int64_t h, int64_t w,
                                     struct rfx_image **out, struct rfx_error *err) {
    const struct memory_source like = {
        .base = {.ops = &array_ops, .concurrent = true}, .values = values, .steps = steps};
    return open_source(mem, &like, NULL, c, h, w, out, err);
}

enum rfx_status rfx_image_from_array(struct rfx_memory *mem, const float *values, int64_t c,
                                     int64_t h, int64_t w, struct rfx_image **out,
                                     struct rfx_error *err) {
    int64_t plane = 0; /* an overflow is refused below */
    (void)rfx_checked_mul_i64(h, w, &plane);
    const struct rfx_image_steps steps = {.row = w, .column = 1, .channel = plane};
    return rfx_image_from_steps(mem, values, steps, c, h, w, out, err);
}

enum rfx_status rfx_image_from_reader(struct rfx_memory *mem, const struct rfx_image_reader *reader,
                                      int64_t c, int64_t h, int64_t w, struct rfx_image **out,
                                      struct rfx_error *err) {
    const struct memory_source like = {
        .base = {.ops = &reader_ops, .concurrent = reader->concurrent}, .reader = *reader};
    return open_source(mem, &like, NULL, c, h, w, out, err);
}

enum rfx_status rfx_image_from_samples(struct rfx_memory *mem,
                                       const struct rfx_image_samples *samples,
                                       const struct rfx_image_options *options, int64_t c,
                                       int64_t h, int64_t w, struct rfx_image **out,
                                       struct rfx_error *err) {
    if (c > RFX_IMAGE_MAX_BANDS)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "array of samples: %" PRId64 " channels, at most %d are possible", c,
                        RFX_IMAGE_MAX_BANDS);
    const struct memory_source like = {.base = {.ops = &samples_ops, .concurrent = true},
                                       .samples = *samples};
    return open_source(mem, &like, options, c, h, w, out, err);
}
