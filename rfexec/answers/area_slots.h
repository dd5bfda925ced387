/* Numbered places for what is kept of an area while its rows come. An area that is over leaves its
 * slot to others, so memory grows with the areas that are open at a row. Test: test_area_slots.c.
 */
#ifndef RFX_RFEXEC_ANSWERS_AREA_SLOTS_H
#define RFX_RFEXEC_ANSWERS_AREA_SLOTS_H

#include "rfexec/answers/areas.h"

struct rfx_area_slots;

/* Returns the memory of so many slots for so many areas. */
size_t rfx_area_slots_bytes(int64_t areas, int64_t slots);

/* Makes as many slots as areas are open at a row at most. `areas` must live longer. OUT_OF_MEMORY.
 * Free with rfx_area_slots_free. */
RFX_NODISCARD enum rfx_status rfx_area_slots_create(struct rfx_memory *mem,
                                                    const struct rfx_areas *areas,
                                                    struct rfx_area_slots **out,
                                                    struct rfx_error *err);

/* Returns the slot of an area of the row. *is_new: it did not have one before. */
int64_t rfx_area_slots_take(struct rfx_area_slots *slots, int32_t area, bool *is_new);

/* Frees the slot of an area that is over after the row, and returns the area; -1: there is none
 * left. *slot: where to look first, 0 for the first call of a row; the slot that was freed. Its
 * contents may be read until the next call of rfx_area_slots_take. */
int32_t rfx_area_slots_leave(struct rfx_area_slots *slots, int64_t *slot);

/* NULL is fine. */
void rfx_area_slots_free(struct rfx_area_slots *slots);
#endif
