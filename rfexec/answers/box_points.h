/* Landmarks of candidates, such as eyes and corners of the mouth of a face. They are kept beside
 * the list of candidates (boxes.h) until suppression has chosen the boxes. */
#ifndef RFX_RFEXEC_ANSWERS_BOX_POINTS_H
#define RFX_RFEXEC_ANSWERS_BOX_POINTS_H

#include "rfexec/answers/box_head.h"

struct rfx_box_points;

/* Memory of the landmarks of `most` candidates; SIZE_MAX: `most` is out of range. */
size_t rfx_box_points_bytes(int64_t most);

/* Creates an empty store and allocates all its memory. OUT_OF_MEMORY; INVALID_ARGUMENT: `most` is
 * not in [0, RFX_BOXES_MOST]. The caller frees it with rfx_box_points_free. */
RFX_NODISCARD enum rfx_status rfx_box_points_create(struct rfx_memory *mem, int64_t most,
                                                    struct rfx_box_points **out,
                                                    struct rfx_error *err);

/* Adds the landmarks of a candidate, each of which is added once. At most `most` are added. */
void rfx_box_points_add(struct rfx_box_points *store, int64_t index,
                        const float points[2 * RFX_BOX_POINTS]);

/* Sorts the store, once all are added, so that they can be found. */
void rfx_box_points_sort(struct rfx_box_points *store);

/* Returns the landmarks of a candidate, or NULL. O(log n), after rfx_box_points_sort. */
const float *rfx_box_points_find(const struct rfx_box_points *store, int64_t index);

/* NULL is fine. */
void rfx_box_points_free(struct rfx_box_points *store);
#endif
