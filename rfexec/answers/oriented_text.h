/* Oriented boxes as text: JSON, COCO's results, CSV and GeoJSON. */
#ifndef RFX_RFEXEC_ANSWERS_ORIENTED_TEXT_H
#define RFX_RFEXEC_ANSWERS_ORIENTED_TEXT_H

#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/oriented_boxes.h"

/* Whether coordinates are the output's own numbers. */
bool rfx_answer_own_pixels(const struct rfx_answer_text *text);

/* Appends what stands before all boxes. head: describes what they come from (JSON). */
void rfx_oriented_begin(struct rfx_answer_text *text, enum rfx_answer_form form, const char *head);

/* Appends box number `count` of the file, counted from 0. Coordinates, sides and angle are those of
 * the file: the box's own if they are the output's own numbers, else those of the quadrilateral of
 * its four corners, whose sides and angle are those of its upper and left edge. */
void rfx_oriented_put(struct rfx_answer_text *text, enum rfx_answer_form form,
                      const struct rfx_oriented_box *box, int64_t count);

/* Appends what stands behind all boxes. */
void rfx_oriented_end(struct rfx_answer_text *text, enum rfx_answer_form form);
#endif
