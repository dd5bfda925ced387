/* Text of rings of pixels' edges (label_regions.h). */
#ifndef RFX_RFEXEC_ANSWERS_RING_TEXT_H
#define RFX_RFEXEC_ANSWERS_RING_TEXT_H

#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/label_regions.h"

/* Appends a ring as a list of positions whose last one is the first again. unit: pixels that 1 in
 * the ring's points is; x0, y0: column and row of the map that they count from. */
void rfx_answer_ring(struct rfx_answer_text *text, const struct rfx_region_ring *ring, double unit,
                     int64_t x0, int64_t y0);
#endif
