/* Rings and fresh rows taken apart. */
#include "tools/parts/part_rows.h"

#include <stddef.h>

enum rfx_status rfx_part_put_rows(struct rfx_rect part, struct rfx_rect rect,
                                  const struct rfx_view *view, rfx_part_put_fn *put, void *user,
                                  struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0, next; y < rect.y1 && status == RFX_OK; y = next) {
        float *at = rfx_view_f32_at(view, y, rect.x0);
        for (next = y + 1; next < rect.y1; next++)
            if (rfx_view_f32_at(view, next, rect.x0) != at + (next - y) * view->row_stride) break;
        struct rfx_view rows = *view;
        rows.data = at;
        rows.fresh = NULL;
        rows.ring_rows = 0;
        rows.rect =
            rfx_rect_make(y - part.y0, next - part.y0, rect.x0 - part.x0, rect.x1 - part.x0);
        status = put(user, rows.rect, &rows, err);
    }
    return status;
}
