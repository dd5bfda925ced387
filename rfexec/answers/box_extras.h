/* Numbers of candidates besides box, score and label: landmarks of faces, key points, coefficients
 * of masks. They are kept beside the list of candidates (boxes.h) until suppression has chosen the
 * boxes. Every candidate has the same count of numbers. */
#ifndef RFX_RFEXEC_ANSWERS_BOX_EXTRAS_H
#define RFX_RFEXEC_ANSWERS_BOX_EXTRAS_H

#include "rfexec/answers/boxes.h"

struct rfx_box_extras;

/* Memory for `most` candidates of `n` numbers each; SIZE_MAX: they are out of range. */
size_t rfx_box_extras_bytes(int64_t most, int64_t n);

/* Creates an empty store and allocates all its memory. OUT_OF_MEMORY; INVALID_ARGUMENT: `most` is
 * not in [0, RFX_BOXES_MOST], or n is not in [1, INT32_MAX]. The caller frees it with
 * rfx_box_extras_free. */
RFX_NODISCARD enum rfx_status rfx_box_extras_create(struct rfx_memory *mem, int64_t most, int64_t n,
                                                    struct rfx_box_extras **out,
                                                    struct rfx_error *err);

/* Adds the n numbers of a candidate, each of which is added once. At most `most` are added. */
void rfx_box_extras_add(struct rfx_box_extras *store, int64_t index, const float *numbers);

/* Sorts the store, once all are added, so that they can be found. */
void rfx_box_extras_sort(struct rfx_box_extras *store);

/* Returns the n numbers of a candidate, or NULL. O(log count), after rfx_box_extras_sort. */
const float *rfx_box_extras_find(const struct rfx_box_extras *store, int64_t index);

/* NULL is fine. */
void rfx_box_extras_free(struct rfx_box_extras *store);
#endif
