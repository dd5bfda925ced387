/* Boxes among the outputs of a model that suppresses by itself.
 *
 * Known forms: torchvision's boxes (N x 4, float), scores (N, float) and labels (N, integers), by
 * declared types and shapes, or by these names where the shapes are not declared; the four results
 * of EfficientNMS_TRT; and one output 1 x N x 6 of floats: left, top, right, bottom, score and
 * label. */
#ifndef RFX_RFEXEC_LATE_LATE_BOXES_H
#define RFX_RFEXEC_LATE_LATE_BOXES_H

#include "rfexec/late/late.h"

/* Name of the head (rfexec/answers/box_head.h) that reads rows of left, top, right, bottom, score
 * and label. */
#define RFX_LATE_BOXES_HEAD "end-to-end"

/* Marks an output 1 x N x 6 as boxes. Otherwise, if the model has boxes, scores and labels, adds
 * late nodes that join them to such an output, "detections". Does nothing for other models. Call it
 * once, when the program is complete. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_late_join_boxes(struct rfx_late *late, struct rfx_error *err);

/* Returns whether the model has such an output after rfx_late_join_boxes. */
bool rfx_late_has_boxes(const struct rfx_late *late);
#endif
