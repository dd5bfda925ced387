/* What operators that choose elements by their values share: order and overlap (late_select.c). */
#ifndef RFX_RFEXEC_LATE_LATE_SELECT_H
#define RFX_RFEXEC_LATE_LATE_SELECT_H

#include <stdbool.h>
#include <stdint.h>

/* An element of a vector: a number whose order is that of the elements, and its place. */
struct rfx_late_ranked {
    int64_t key, place;
};

/* Returns a number whose order is that of floats, with NaN above all numbers. */
int64_t rfx_late_key_of_float(float value);

/* Sorts n elements by falling key, equal ones by rising place. */
void rfx_late_sort(struct rfx_late_ranked *list, int64_t n);

/* Returns the overlap of two boxes: their common area over the area that at least one of them
 * covers, in float32; 0 if they have none, NaN if a coordinate is NaN. A box is two opposite
 * corners (x, y, x, y or y, x, y, x) or, centred, centre x, centre y, width and height. */
float rfx_late_overlap(const float *a, const float *b, bool centred);
#endif
