/* Every request is passed on, moved by the rectangle's corner: what is random access stays so, and
 * rows above the rectangle are decoded and passed over where it is not. Nothing is held besides. */
#include "rfexec/image/turn/cropped.h"

#include <inttypes.h>

#include "layers/core/checked.h"

struct cropped_source {
    struct rfx_image_backend base;
    struct rfx_image_backend *whole;
    int64_t y0, x0;
};

static struct cropped_source *self_of(struct rfx_image_backend *b) {
    return (struct cropped_source *)(void *)b;
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct rfx_image_backend *whole = self_of(b)->whole;
    return whole->ops->set_window != NULL ? whole->ops->set_window(whole, rows, err) : RFX_OK;
}

static enum rfx_status source_rewind(struct rfx_image_backend *b, struct rfx_error *err) {
    struct rfx_image_backend *whole = self_of(b)->whole;
    return whole->ops->rewind != NULL ? whole->ops->rewind(whole, err) : RFX_OK;
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    const struct cropped_source *s = self_of(b);
    enum rfx_status status =
        s->whole->ops->fetch(s->whole, y + s->y0, x0 + s->x0, x1 + s->x0, room, samples, end, err);
    *end -= s->x0;
    return status;
}

/* Row by row: those of a ring lie where their own numbers say. */
static enum rfx_status source_read_floats(struct rfx_image_backend *b, struct rfx_rect rect,
                                          const struct rfx_view *out, struct rfx_error *err) {
    const struct cropped_source *s = self_of(b);
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y++) {
        const int64_t from = y + s->y0;
        struct rfx_rect row = rfx_rect_make(from, from + 1, rect.x0 + s->x0, rect.x1 + s->x0);
        struct rfx_view view = {.data = rfx_view_f32_at(out, y, rect.x0),
                                .rect = row,
                                .c = out->c,
                                .row_stride = out->row_stride,
                                .type = out->type};
        status = s->whole->ops->read_floats(s->whole, row, &view, err);
    }
    return status;
}

static void source_select(struct rfx_image_backend *b, int64_t n) {
    struct rfx_image_backend *whole = self_of(b)->whole;
    if (whole->ops->select != NULL) whole->ops->select(whole, n);
}

static void source_free(struct rfx_image_backend *b) {
    struct rfx_image_backend *whole = self_of(b)->whole;
    whole->ops->free(whole);
    rfx_memory_release(b->mem, b);
}

static const struct rfx_image_backend_ops sample_ops = {.set_window = source_set_window,
                                                        .fetch = source_fetch,
                                                        .rewind = source_rewind,
                                                        .select = source_select,
                                                        .free = source_free};
static const struct rfx_image_backend_ops float_ops = {.set_window = source_set_window,
                                                       .read_floats = source_read_floats,
                                                       .rewind = source_rewind,
                                                       .select = source_select,
                                                       .free = source_free};

enum rfx_status rfx_image_cropped_open(struct rfx_image_backend *whole, struct rfx_rect region,
                                       struct rfx_image_backend **out, struct rfx_error *err) {
    if (region.y0 < 0 || region.x0 < 0 || region.y1 > whole->h || region.x1 > whole->w ||
        rfx_rect_is_empty(region))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: --region %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                        " is no rectangle of %" PRId64 " x %" PRId64 " pixels",
                        whole->name, region.y0, region.x0, region.y1, region.x1, whole->h,
                        whole->w);
    struct cropped_source *s = rfx_memory_calloc(whole->mem, 1, sizeof *s);
    if (s == NULL) return rfx_memory_fail(whole->mem, whole->name, sizeof *s, err);
    s->base = *whole;
    s->base.ops = whole->ops->read_floats != NULL ? &float_ops : &sample_ops;
    s->base.h = rfx_rect_rows(region);
    s->base.w = rfx_rect_cols(region);
    s->base.pass_picoseconds *= (double)region.y1 / (double)whole->h; /* none below it are read */
    s->base.fixed_bytes += sizeof *s;                                 /* beside a file's tables */
    s->whole = whole;
    s->y0 = region.y0;
    s->x0 = region.x0;
    int64_t pixels;
    s->base.whole_pixels = rfx_checked_mul_i64(whole->h, whole->w, &pixels) ? pixels : INT64_MAX;
    *out = &s->base;
    return RFX_OK;
}
