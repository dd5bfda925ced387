/* Shared objects (paper 000, section 4): several items use the same buffer one after the other. A
 * buffer ("object") is as large as its largest item. This is needed on devices that cannot address
 * into a buffer, and serves as a comparison: the best placement by offsets is never larger.
 *
 * The paper does not say how ties are broken. Here the position of the items in the problem
 * decides, then the age of the objects (results: docs/memory_placement.md). */
#ifndef RFX_TOOLS_STUDY_SHARED_OBJECTS_H
#define RFX_TOOLS_STUDY_SHARED_OBJECTS_H

#include "tiler/arena/arena_problem.h"

enum rfx_object_strategy {
    RFX_OBJECTS_BY_SIZE,          /* algorithm 2 */
    RFX_OBJECTS_BY_SIZE_OLDEST,   /* the same order, but each item goes into the oldest suitable
                                     object, which is the largest: this gives the figures in the paper
                                   */
    RFX_OBJECTS_BY_SIZE_IMPROVED, /* section 4.4 */
    RFX_OBJECTS_BY_BREADTH,       /* algorithm 1 */
    RFX_OBJECTS_IN_ORDER, /* Lee et al. 2019, greedy: in order of time, the free object with the
                             nearest size */
    RFX_OBJECTS_COUNT
};

/* "by-size", ... */
const char *rfx_object_strategy_name(enum rfx_object_strategy strategy);

/* Writes the object of each item (0, 1, ...) to objects[n], and the sum of the object sizes.
 * OUT_OF_MEMORY. Takes O(n * objects * log n), IMPROVED up to n times as long. */
RFX_NODISCARD enum rfx_status rfx_objects_place(const struct rfx_place_problem *problem,
                                                enum rfx_object_strategy strategy, int *objects,
                                                size_t *total_bytes, struct rfx_error *err);

/* Computes the sum of the positional maximums (section 4.1). Takes O(n * sections). */
RFX_NODISCARD enum rfx_status rfx_objects_lower_bound(const struct rfx_place_problem *problem,
                                                      size_t *bound_bytes, struct rfx_error *err);

/* Returns whether no two items in the same object are live at the same time, and adds up the sizes
 * of the objects. Takes O(n^2). */
bool rfx_objects_are_valid(const struct rfx_place_item *items, int n, const int *objects,
                           size_t *total_bytes);
#endif
