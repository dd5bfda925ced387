/* Copies pieces of outputs to arrays in memory. */
#include "rfexec/output/output_sink.h"

#include <string.h>

#include "layers/core/checked.h"

/* Writes `count` elements of a channel, to_step elements apart in the output. */
static void scatter_floats(const float *from, int64_t from_step, float *to, int64_t to_step,
                           int64_t count) {
    for (int64_t x = 0; x < count; x++) to[x * to_step] = rfx_one_nan(from[x * from_step]);
}

static void scatter_run(const struct rfx_view *view, const unsigned char *from, enum rfx_type type,
                        unsigned char *to, int64_t to_step, int64_t count) {
    enum { PIECE = 256 };
    unsigned char piece[PIECE * sizeof(int64_t)];
    size_t bytes = rfx_type_bytes(type), from_bytes = rfx_type_bytes(view->type);
    for (int64_t x = 0; x < count; x += PIECE) {
        int64_t n = rfx_min_i64(PIECE, count - x);
        rfx_type_gather(view->type, from + (size_t)(x * view->c) * from_bytes, view->c, n, type,
                        piece);
        for (int64_t i = 0; i < n; i++)
            memcpy(to + (size_t)((x + i) * to_step) * bytes, piece + (size_t)i * bytes, bytes);
    }
}

void rfx_end_scatter(const struct rfx_end *end, enum rfx_type type, void *output,
                     struct rfx_rect rect, const struct rfx_view *view) {
    const struct rfx_spread *at = &end->at;
    int64_t cols = rfx_rect_cols(rect), bytes = (int64_t)rfx_type_bytes(type);
    int64_t from_bytes = (int64_t)rfx_type_bytes(view->type);
    bool floats = type == RFX_TYPE_FLOAT32 && view->type == RFX_TYPE_FLOAT32;
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t c = 0; c < end->channels; c++) {
            int64_t first =
                at->first + y * at->row_step + c * at->channel_step + rect.x0 * at->column_step;
            if (floats)
                scatter_floats(rfx_view_f32_at(view, y, rect.x0) + c, view->c,
                               (float *)output + first, at->column_step, cols);
            else
                scatter_run(view,
                            (const unsigned char *)rfx_view_at(view, y, rect.x0) + c * from_bytes,
                            type, (unsigned char *)output + first * bytes, at->column_step, cols);
        }
}
