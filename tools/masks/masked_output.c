/* Blocks of one row at least, so that what computed a map keeps it as it is. */
#include "tools/masks/masked_output.h"

#include "layers/core/checked.h"
#include "rfexec/output/output_sink.h"

#define BLOCK_BYTES ((size_t)1 << 20)

size_t rfx_masked_output_bytes(const struct rfx_tensor *map) {
    size_t row = rfx_tensor_pixel_bytes(map, map->w);
    return row > BLOCK_BYTES ? row : BLOCK_BYTES;
}

enum rfx_status rfx_masked_output_open(struct rfx_masked_output *output, struct rfx_error *err) {
    size_t bytes = rfx_masked_output_bytes(&output->map);
    output->block = rfx_memory_alloc(output->mem, bytes);
    return output->block != NULL ? RFX_OK : rfx_memory_fail(output->mem, "mask", bytes, err);
}

void rfx_masked_output_release(struct rfx_masked_output *output) {
    if (output->mem != NULL) rfx_memory_release(output->mem, output->block);
    output->block = NULL;
}

/* Writes the block, which has `rect`. */
static enum rfx_status put(struct rfx_masked_output *o, struct rfx_rect rect,
                           struct rfx_error *err) {
    struct rfx_view view = rfx_view_dense(o->block, rect, o->map.c);
    rfx_fingerprint_add_end(&o->fingerprint, &o->end, rect, &view);
    return o->stream == NULL ? RFX_OK : rfx_output_stream_write(o->stream, rect, &view, err);
}

static int64_t block_rows(const struct rfx_masked_output *o, struct rfx_rect rect) {
    size_t row = rfx_tensor_pixel_bytes(&o->map, rfx_rect_cols(rect));
    return rfx_max_i64(1, (int64_t)(rfx_masked_output_bytes(&o->map) / row));
}

/* A row of the view into `to`, what nobody wants as `fill`. */
static void copy_row(const struct rfx_masked_output *o, const struct rfx_view *view, int64_t y,
                     int64_t x0, int64_t x1, float *to) {
    for (int64_t x = x0; x < x1; x++, to += o->map.c) {
        bool wanted = rfx_mask_any(o->mask, o->map.h, o->map.w, rfx_rect_make(y, y + 1, x, x + 1));
        const float *from = rfx_view_f32_at(view, y, x);
        for (int64_t c = 0; c < o->map.c; c++) to[c] = wanted ? from[c] : o->fill;
    }
}

enum rfx_status rfx_masked_output_take(struct rfx_masked_output *output, struct rfx_rect rect,
                                       const struct rfx_view *view, struct rfx_error *err) {
    int64_t rows = block_rows(output, rect);
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y += rows) {
        struct rfx_rect block = rfx_rect_make(y, rfx_min_i64(y + rows, rect.y1), rect.x0, rect.x1);
        for (int64_t k = block.y0; k < block.y1; k++)
            copy_row(output, view, k, rect.x0, rect.x1,
                     output->block + (k - block.y0) * rfx_rect_cols(rect) * output->map.c);
        status = put(output, block, err);
    }
    return status;
}

static enum rfx_status fill_rect(struct rfx_masked_output *o, struct rfx_rect rect,
                                 struct rfx_error *err) {
    int64_t rows = rfx_min_i64(block_rows(o, rect), rfx_rect_rows(rect));
    int64_t elems = rows * rfx_rect_cols(rect) * o->map.c;
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < elems; i++) o->block[i] = o->fill;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y += rows) {
        status = rfx_memory_check_stop(o->mem, err);
        struct rfx_rect block = rfx_rect_make(y, rfx_min_i64(y + rows, rect.y1), rect.x0, rect.x1);
        if (status == RFX_OK) status = put(o, block, err);
    }
    return status;
}

/* The rows from y on in which the same rectangles lie. */
static int64_t next_change(const struct rfx_mask_rects *rects, int64_t y, int64_t h) {
    int64_t next = h;
    for (int i = 0; i < rects->n; i++) {
        if (rects->rects[i].y0 > y) next = rfx_min_i64(next, rects->rects[i].y0);
        if (rects->rects[i].y1 > y) next = rfx_min_i64(next, rects->rects[i].y1);
    }
    return next;
}

/* The first column from x on, in row y, where a rectangle begins; *end: where that one ends. */
static int64_t next_rect(const struct rfx_mask_rects *rects, int64_t y, int64_t x, int64_t w,
                         int64_t *end) {
    int64_t next = w;
    *end = w;
    for (int i = 0; i < rects->n; i++) {
        const struct rfx_rect *r = &rects->rects[i];
        if (y < r->y0 || y >= r->y1 || r->x0 < x || r->x0 >= next) continue;
        next = r->x0;
        *end = r->x1;
    }
    return next;
}

enum rfx_status rfx_masked_output_fill(struct rfx_masked_output *output,
                                       const struct rfx_mask_rects *rects, struct rfx_error *err) {
    int64_t h = output->map.h, w = output->map.w;
    enum rfx_status status = RFX_OK;
    for (int64_t y = 0, next; y < h && status == RFX_OK; y = next) {
        next = next_change(rects, y, h);
        for (int64_t x = 0, end; x < w && status == RFX_OK; x = end) {
            int64_t to = next_rect(rects, y, x, w, &end);
            if (to > x) status = fill_rect(output, rfx_rect_make(y, next, x, to), err);
        }
    }
    return status;
}
