/* Boxes with an angle: a list of candidates, and the exact suppression of all of them.
 *
 * Suppression has the results of Ultralytics 8.4 (TorchNMS.fast_nms with batch_probiou): candidates
 * by falling score, of equal scores the smaller index first; a candidate is dropped if any
 * candidate before it, dropped or not, is more similar to it than the threshold. The similarity is
 * the probabilistic intersection over union of two Gaussians (Murrugarra-Llerena, Kirsten and Jung,
 * "Can we trust bounding box annotations for object detection?", 2021; arXiv 2106.06072), in
 * float32 in Ultralytics' order of operations, and so is the comparison. sin and cos are those of
 * the kernels (vector_math.h), exp and log are rfx_exp and rfx_log (real_math.h) rounded to
 * float32. Labels are kept apart by comparison, where Ultralytics adds 7680 pixels a class to the
 * centres, which rounds them. Pinned by test_oriented_boxes.c (all pairs) and
 * tests/oracle/oriented_cases.py.
 *
 * Invariants: 1. what is kept is a function of the set of candidates, not of the order of adding;
 * 2. at most `most` candidates are held; 3. only rfx_oriented_boxes_create allocates.
 *
 * Cost: 100,000 candidates that are spread over a large image take about a second, all on one spot
 * of 200 x 200 pixels ten seconds. A box that is thinner than 1:64, shorter than half a pixel,
 * longer than 65,536 or not finite is compared with all others of its label; 20,000 of these take
 * four seconds, and twice as many four times as long. */
#ifndef RFX_RFEXEC_ANSWERS_ORIENTED_BOXES_H
#define RFX_RFEXEC_ANSWERS_ORIENTED_BOXES_H

#include <stdbool.h>
#include <stdint.h>

#include "rfexec/answers/boxes.h"

struct rfx_oriented_box {
    float centre[2]; /* x, y in pixels */
    float side[2];   /* width and height, before the box is turned */
    float angle;     /* radians by which it is turned from the x axis towards the y axis, so
                        clockwise in the picture */
    float score;
    int32_t label; /* class, counted from 0 */
    int64_t index; /* of the candidate in the network's output; unique */
};

/* Sets the corners, x and y of each: top left, top right, bottom right and bottom left of the box
 * before it is turned. Each operation rounds to float32: the halves of the sides times cos and sin,
 * then taken from or added to the centre, the width's first. */
void rfx_oriented_corners(const struct rfx_oriented_box *box, float corner[4][2]);

/* Returns the similarity of two boxes, 0 to 1, or NaN for boxes that are not finite. */
float rfx_oriented_similarity(const struct rfx_oriented_box *a, const struct rfx_oriented_box *b);

struct rfx_oriented_boxes;

/* Returns the bytes of a list of `most` candidates, suppression included: at most 76 bytes for each
 * candidate and 1 KiB. SIZE_MAX: `most` is not in [0, RFX_BOXES_MOST] or the bytes do not fit
 * size_t. */
size_t rfx_oriented_boxes_bytes(int64_t most);

/* Creates an empty list and allocates all its memory. INVALID_ARGUMENT: `most` is out of range.
 * OUT_OF_MEMORY. The caller frees the list with rfx_oriented_boxes_free. */
RFX_NODISCARD enum rfx_status rfx_oriented_boxes_create(struct rfx_memory *mem, int64_t most,
                                                        struct rfx_oriented_boxes **out,
                                                        struct rfx_error *err);

/* Adds a candidate whose score is not NaN. BUDGET_IMPOSSIBLE, with the number: the list is full. */
RFX_NODISCARD enum rfx_status rfx_oriented_boxes_add(struct rfx_oriented_boxes *boxes,
                                                     const struct rfx_oriented_box *box,
                                                     struct rfx_error *err);

/* Sorts by falling score, then index. */
void rfx_oriented_boxes_sort(struct rfx_oriented_boxes *boxes);

/* Suppresses and sorts by falling score, then index. threshold: similarity above which a box is
 * dropped, 0 or more (asserted). by_label: only boxes of one label suppress each other. */
void rfx_oriented_boxes_suppress(struct rfx_oriented_boxes *boxes, float threshold, bool by_label);

/* Returns the boxes that are held. Valid until the next call that changes the list. */
const struct rfx_oriented_box *rfx_oriented_boxes_list(const struct rfx_oriented_boxes *boxes,
                                                       int64_t *count);

/* NULL is fine. */
void rfx_oriented_boxes_free(struct rfx_oriented_boxes *boxes);
#endif
