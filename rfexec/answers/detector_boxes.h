/* Decodes the candidates of a described head (rfexec/output/detector.h).
 *
 * Every operation below is in float32, rounded once, in the order that is written; exp and log are
 * those of real_math.h, computed in float64 and rounded to float32. With a cell in column and row p
 * (x or y), stride s, values v, an anchor of side a, a side i of the image, weights g:
 *
 *   corners    corner = v; with shares v * i
 *   centre     centre = v, side = v; with shares v * i
 *   distances  corner = (p + offset) * s - v * d, ... + v * d; d = a if there are anchors, else s
 *   deltas     lo = (p + offset) * s - 0.5 * a, hi = ... + 0.5 * a; with shares, of the cell
 *              (p + offset) / (i / s), each times i. side' = hi - lo;
 *              centre = (v / g) * side' + (lo + 0.5 * side'); side = exp(min(v / g, limit)) * side'
 *              (torchvision's DefaultBoxGenerator, AnchorGenerator and BoxCoder)
 *   cells      centre = (p + v) * s, side = exp(min(v, limit)) * s
 *   centernet  centre = (p + v) * s, side = v * s
 *   yolov3     centre = (sigmoid(v) + p) * s, side = exp(min(v, limit)) * a
 *   yolov5     centre = (sigmoid(v) * 2 + (p - 0.5)) * s, side = (sigmoid(v) * 2)^2 * a
 *
 * Corners of a centre: centre - 0.5 * side and centre + 0.5 * side. clip moves corners into
 * [0, i]. A point is decoded as a centre; with distances (p + offset) * s + v * d.
 *
 * sigmoid = 1 / (1 + exp(-v)) and softmax = exp(v - largest) / sum in float64, summed in the order
 * of the classes, then rounded to float32. The score is that of the class, times the objectness if
 * there is one, and with root the square root of this product.
 *
 * centernet: a class gives a box where no score of it among the 3 x 3 cells around, as far as they
 * are in the map, is larger or NaN. Of equal neighbours each gives one, as in the published code
 * (Zhou et al., "Objects as Points", 2019).
 *
 * Pinned by test_detector_boxes.c and tests/acceptance/anchor_heads.py. */
#ifndef RFX_RFEXEC_ANSWERS_DETECTOR_BOXES_H
#define RFX_RFEXEC_ANSWERS_DETECTOR_BOXES_H

#include "layers/core/status.h"
#include "rfexec/answers/box_head.h"

/* Takes a box that passes; points: its landmarks, x and y of each, or NULL. */
typedef enum rfx_status rfx_detector_take(void *context, const struct rfx_box *box,
                                          const float *points, struct rfx_error *err);

/* Returns the value before the activation up to which no score of a class passes the threshold. It
 * spares the exact score of most candidates. */
float rfx_detector_least(const struct rfx_detector *detector, float threshold);

/* Hands each box of a cell to `take`: the score is larger than the threshold and not NaN. values:
 * those of the cell, as rfexec/output/detector.h orders them; least: of rfx_detector_least. Returns
 * the first status of `take` that is not OK. */
RFX_NODISCARD enum rfx_status rfx_detector_cell(const struct rfx_detector *detector, int64_t cell,
                                                const float *values, float threshold, float least,
                                                rfx_detector_take *take, void *context,
                                                struct rfx_error *err);
#endif
