/* Parts of outputs in memory. */
#include "rfexec/output/output_sink.h"

void rfx_end_scatter(const struct rfx_end *end, float *output, struct rfx_rect rect,
                     const struct rfx_view *view) {
    const struct rfx_spread *at = &end->at;
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t c = 0; c < end->channels; c++) {
            float *to = output + at->first + y * at->row_step + c * at->channel_step;
            for (int64_t x = rect.x0; x < rect.x1; x++)
                to[x * at->column_step] = rfx_one_nan(rfx_view_at(view, y, x)[c]);
        }
}
