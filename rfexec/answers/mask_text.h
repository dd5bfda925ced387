/* Text of masks: run lengths as COCO has them, and polygons along the edges of pixels.
 *
 * Run lengths count the pixels of the image column by column from the upper left corner, 0 and 1 in
 * turn, beginning with 0: pycocotools' RLE. Its compressed form is the string of rleToString in
 * cocoapi's maskApi.c. */
#ifndef RFX_RFEXEC_ANSWERS_MASK_TEXT_H
#define RFX_RFEXEC_ANSWERS_MASK_TEXT_H

#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/box_masks.h"

/* Appends {"size":[rows,columns],"counts":...} with the mask of a box: a list of numbers or, if
 * `compressed`, a string. Statuses of box_masks.h. */
RFX_NODISCARD enum rfx_status rfx_mask_put_runs(struct rfx_answer_text *text,
                                                struct rfx_box_masks *masks,
                                                const struct rfx_box *box,
                                                const float *coefficients, bool compressed,
                                                struct rfx_error *err);

/* Returns the memory of rfx_mask_put_polygons; `most_bytes` as there, where 0 stands for
 * RFX_ANSWER_BYTES. */
size_t rfx_mask_polygon_bytes(const struct rfx_answer_prototypes *prototypes, size_t most_bytes);

/* Appends the mask of a box as a GeoJSON geometry: a MultiPolygon with a polygon for each set of
 * pixels that sides join, in the order of their last rows; without polygons if no pixel belongs to
 * the mask. most_bytes: for the corners of a mask; 0: no limit. Statuses of box_masks.h and
 * label_regions.h. */
RFX_NODISCARD enum rfx_status rfx_mask_put_polygons(struct rfx_answer_text *text,
                                                    struct rfx_box_masks *masks,
                                                    const struct rfx_box *box,
                                                    const float *coefficients, size_t most_bytes,
                                                    struct rfx_error *err);
#endif
