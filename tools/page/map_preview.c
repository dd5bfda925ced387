/* See map_preview.h. */
#include "tools/page/map_preview.h"

#include <math.h>

#include "layers/core/checked.h"

bool rfx_map_preview_suits(const struct rfx_tensor *tensor) {
    return tensor->layout == RFX_LAYOUT_NHWC && tensor->h * tensor->w > 1;
}

/* Sides in the map's proportions, none longer than RFX_PREVIEW_SIDE. */
static struct rfx_map_preview shape_of(const struct rfx_tensor *tensor) {
    int64_t longer = rfx_max_i64(tensor->h, tensor->w);
    int64_t side = rfx_min_i64(longer, RFX_PREVIEW_SIDE);
    return (struct rfx_map_preview){
        .h = tensor->h,
        .w = tensor->w,
        .c = tensor->c,
        .rows = rfx_max_i64(1, tensor->h * side / longer),
        .cols = rfx_max_i64(1, tensor->w * side / longer),
        .channels = rfx_min_i64(tensor->c, RFX_PREVIEW_CHANNELS),
    };
}

static size_t cells_of(const struct rfx_map_preview *preview) {
    return (size_t)(preview->channels * preview->rows * preview->cols);
}

size_t rfx_map_preview_bytes(const struct rfx_tensor *tensor) {
    struct rfx_map_preview shape = shape_of(tensor);
    return cells_of(&shape) * (sizeof *shape.sum + sizeof *shape.count);
}

enum rfx_status rfx_map_preview_create(struct rfx_memory *mem, const struct rfx_tensor *tensor,
                                       struct rfx_map_preview *preview, struct rfx_error *err) {
    *preview = shape_of(tensor);
    preview->mem = mem;
    preview->sum = rfx_memory_calloc(mem, cells_of(preview), sizeof *preview->sum);
    preview->count = rfx_memory_calloc(mem, cells_of(preview), sizeof *preview->count);
    if (preview->sum != NULL && preview->count != NULL) return RFX_OK;
    rfx_map_preview_free(preview);
    return rfx_memory_fail(mem, "preview of an output", rfx_map_preview_bytes(tensor), err);
}

void rfx_map_preview_free(struct rfx_map_preview *preview) {
    if (preview->mem == NULL) return;
    rfx_memory_release(preview->mem, preview->sum);
    rfx_memory_release(preview->mem, preview->count);
    *preview = (struct rfx_map_preview){0};
}

static size_t cell_at(const struct rfx_map_preview *p, int64_t c, int64_t row, int64_t col) {
    return (size_t)((c * p->rows + row) * p->cols + col);
}

static void add_value(struct rfx_map_preview *p, size_t cell, float value) {
    if (!isfinite(value)) return;
    p->sum[cell] += (double)value;
    ++p->count[cell];
}

void rfx_map_preview_add(struct rfx_map_preview *p, struct rfx_rect rect,
                         const struct rfx_view *view) {
    for (int64_t y = rect.y0; y < rect.y1; ++y) {
        int64_t row = y * p->rows / p->h;
        for (int64_t x = rect.x0; x < rect.x1; ++x) {
            const float *pixel = rfx_view_f32_at(view, y, x);
            int64_t col = x * p->cols / p->w;
            for (int64_t c = 0; c < p->channels; ++c)
                add_value(p, cell_at(p, c, row, col), pixel[c]);
        }
    }
}

double rfx_map_preview_mean(const struct rfx_map_preview *p, int64_t channel, int64_t row,
                            int64_t col) {
    size_t cell = cell_at(p, channel, row, col);
    return p->count[cell] > 0 ? p->sum[cell] / p->count[cell] : NAN;
}
