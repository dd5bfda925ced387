/* See ring_text.h. */
#include "rfexec/answers/ring_text.h"

void rfx_answer_ring(struct rfx_answer_text *text, const struct rfx_region_ring *ring, double unit,
                     int64_t x0, int64_t y0) {
    rfx_answer_put(text, "[");
    for (int64_t i = 0; i <= ring->n; i++) { /* the first point again at the end */
        int64_t k = i % ring->n;
        const int32_t *p = ring->points[text->mirrored && k > 0 ? ring->n - k : k];
        rfx_answer_put(text, i > 0 ? ",[" : "[");
        rfx_answer_point(text, (double)x0 + (double)p[0] * unit, (double)y0 + (double)p[1] * unit);
        rfx_answer_put(text, "]");
    }
    rfx_answer_put(text, "]");
}
