/* Runs of contiguous rows of a view, for code that processes several rows at a time. */
#ifndef RFX_LAYERS_GRAPH_VIEW_ROWS_H
#define RFX_LAYERS_GRAPH_VIEW_ROWS_H

#include "layers/graph/tensor.h"

/* Returns the end, at most `last`, of the rows from y on whose distance in memory is row_stride. */
static inline int64_t rfx_view_rows_end(const struct rfx_view *v, int64_t y, int64_t last) {
    int64_t end = last;
    if (v->staging != NULL && y >= v->staging_y0) return end;
    if (v->staging != NULL && v->staging_y0 < end) end = v->staging_y0;
    if (v->ring_rows != 0 && y - y % v->ring_rows + v->ring_rows < end)
        end = y - y % v->ring_rows + v->ring_rows;
    return end;
}

/* Whether two views of whole rows, of which one is written over the other (op.h, in_place), have
 * any row of `rect` at the same address. Comparing the last row is enough: if views of ring buffers
 * have some rows at different addresses, the rows at equal addresses are the last ones. */
static inline bool rfx_views_meet(const struct rfx_view *a, const struct rfx_view *b,
                                  struct rfx_rect rect) {
    int64_t y = rect.y1 - 1, x = rect.x0;
    return rfx_view_at(a, y, x) == rfx_view_at(b, y, x);
}
#endif
