/* Shared objects (paper 000, section 4): items take turns in whole buffers, an object being as
 * large as its largest item. What a device needs that cannot address into a buffer, and a
 * comparison for offsets, which are never worse at their best.
 *
 * Ties are broken by the items' positions in the problem, then by the objects' age: the paper
 * states no order (docs/memory_placement.md has what the orders give). */
#ifndef RFX_TOOLS_STUDY_SHARED_OBJECTS_H
#define RFX_TOOLS_STUDY_SHARED_OBJECTS_H

#include "tiler/arena/arena_problem.h"

enum rfx_object_strategy {
    RFX_OBJECTS_BY_SIZE,          /* algorithm 2 */
    RFX_OBJECTS_BY_SIZE_OLDEST,   /* the same order, but each item into the oldest suitable object,
                                     which is the largest: what the paper's own figures have */
    RFX_OBJECTS_BY_SIZE_IMPROVED, /* section 4.4 */
    RFX_OBJECTS_BY_BREADTH,       /* algorithm 1 */
    RFX_OBJECTS_IN_ORDER,         /* Lee et al. 2019, greedy: in order of time, the free object
                                     nearest in size */
    RFX_OBJECTS_COUNT
};

/* "by-size", ... */
const char *rfx_object_strategy_name(enum rfx_object_strategy strategy);

/* Fills objects[n] with each item's object (0, 1, ...) and the sum of the objects' sizes.
 * RFX_STATUS_OUT_OF_MEMORY. O(n * objects * log n), improved up to n times
 * that. */
RFX_NODISCARD enum rfx_status rfx_objects_place(const struct rfx_place_problem *problem,
                                                enum rfx_object_strategy strategy, int *objects,
                                                size_t *total_bytes, struct rfx_error *err);

/* Sum of the positional maximums (section 4.1). O(n * sections). */
RFX_NODISCARD enum rfx_status rfx_objects_lower_bound(const struct rfx_place_problem *problem,
                                                      size_t *bound_bytes, struct rfx_error *err);

/* Whether no two live items are in one object; the objects' sizes added up. O(n^2). */
bool rfx_objects_are_valid(const struct rfx_place_item *items, int n, const int *objects,
                           size_t *total_bytes);
#endif
