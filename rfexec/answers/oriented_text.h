/* Oriented boxes as text: JSON, COCO's results, CSV and GeoJSON. */
#ifndef RFX_RFEXEC_ANSWERS_ORIENTED_TEXT_H
#define RFX_RFEXEC_ANSWERS_ORIENTED_TEXT_H

#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/oriented_boxes.h"

/* Appends what stands before all boxes, as rfx_answer_boxes_begin, and the names of the columns of
 * CSV. rfx_answer_boxes_end appends what stands behind them. */
void rfx_oriented_begin(struct rfx_answer_text *text, enum rfx_answer_form form, const char *head);

/* Appends box number `count` of the file, counted from 0. Coordinates, sides and angle are those of
 * the file: the box's own if those are the output's own pixels, else those of the quadrilateral of
 * its four corners, whose sides and angle are those of its upper and left edge. */
void rfx_oriented_put(struct rfx_answer_text *text, enum rfx_answer_form form,
                      const struct rfx_oriented_box *box, int64_t count);
#endif
