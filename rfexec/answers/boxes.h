/* Boxes of a detector: a list of candidates, and the exact non-maximum suppression of all of them.
 *
 * Suppression is the greedy one (Neubeck and Van Gool, "Efficient Non-Maximum Suppression", 2006),
 * with the results of torchvision.ops.nms: candidates by falling score, of equal scores the smaller
 * index first; a candidate is dropped if a kept one before it overlaps it by more than the
 * threshold. The overlap is computed in float32 in torchvision's order of operations and compared
 * with the threshold in float64, as torchvision does. Pinned by test_boxes.c (a plain loop over all
 * pairs) and tests/oracle/box_cases.py (torchvision itself).
 *
 * Boxes without area never drop a box and are never dropped, as in torchvision. The same holds
 * for boxes with a negative width or height, with an infinite or NaN corner, and with an area that
 * overflows or underflows float32. Scores that are NaN come first, as in torchvision. The list
 * never drops such a candidate on its own: a caller that does not want it must not add it, and
 * `score > threshold` is false for a NaN score.
 *
 * Invariants: 1. what is kept is a function of the set of candidates, not of the order of adding;
 * 2. at most `most` candidates are held; 3. only rfx_boxes_create allocates.
 *
 * Cost: suppression sorts the candidates, builds a tree over their corners (a k-d tree) and asks
 * the tree once for each candidate. 100,000 candidates that are spread over a large image take some
 * tenths of a second. */
#ifndef RFX_RFEXEC_ANSWERS_BOXES_H
#define RFX_RFEXEC_ANSWERS_BOXES_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"

struct rfx_box {
    float corner[4]; /* left, top, right, bottom, in pixels of the network's input */
    float score;
    int32_t label; /* class, counted from 0 */
    int64_t index; /* of the candidate in the network's output; unique together with label */
};

struct rfx_boxes;

#define RFX_BOXES_MOST INT32_MAX /* largest `most` */

/* Returns the bytes of a list of `most` candidates, suppression included: at most 48 bytes for each
 * candidate and 1 KiB. SIZE_MAX: `most` is out of range or the bytes do not fit size_t. */
size_t rfx_boxes_bytes(int64_t most);

/* Creates an empty list and allocates all its memory. INVALID_ARGUMENT: `most` is not in [0,
 * RFX_BOXES_MOST]. OUT_OF_MEMORY. The caller frees the list with rfx_boxes_free. */
RFX_NODISCARD enum rfx_status rfx_boxes_create(struct rfx_memory *mem, int64_t most,
                                               struct rfx_boxes **out, struct rfx_error *err);

/* Return the errors of lists of candidates, also of oriented_boxes.h: INVALID_ARGUMENT, `most` is
 * out of range; BUDGET_IMPOSSIBLE, the list is full. */
enum rfx_status rfx_boxes_refuse_most(int64_t most, struct rfx_error *err);
enum rfx_status rfx_boxes_refuse_more(int64_t most, struct rfx_error *err);

/* Adds a candidate. BUDGET_IMPOSSIBLE, with the number: the list is full. */
RFX_NODISCARD enum rfx_status rfx_boxes_add(struct rfx_boxes *boxes, const struct rfx_box *box,
                                            struct rfx_error *err);

/* Sorts by falling score (then index, then label). */
void rfx_boxes_sort(struct rfx_boxes *boxes);

/* Sorts and suppresses. threshold: overlap above which a box is dropped, 0 or more (asserted).
 * by_label: only boxes of one label suppress each other. The comparison is exact: no offset is
 * added to the corners, as other programs do to keep labels apart. */
void rfx_boxes_suppress(struct rfx_boxes *boxes, double threshold, bool by_label);

/* Sorts, and lowers scores instead of dropping boxes (Bodla et al., "Soft-NMS", 2017, the Gaussian
 * of sigma 0.5): the box of the largest score, of equal ones that of the smaller index, is chosen;
 * every other box that overlaps it, and is not chosen yet, gets the score s exp(-o o / 0.5), o
 * being the overlap; and so on with the largest score that is left, while it is above `score`. The
 * rest is dropped. o is in float32, the product in float64 with rfx_exp, rounded to float32.
 * by_label: only boxes of one label lower each other's scores. Boxes without area are kept as they
 * are. Cost: O(log n) for every pair that overlaps, so nearly quadratic where boxes pile up. */
void rfx_boxes_decay(struct rfx_boxes *boxes, float score, bool by_label);

/* Returns the boxes that are held; after sort and suppress by falling score. Valid until the next
 * call that changes the list. */
const struct rfx_box *rfx_boxes_list(const struct rfx_boxes *boxes, int64_t *count);

/* NULL is fine. */
void rfx_boxes_free(struct rfx_boxes *boxes);
#endif
