/* Changes one field of a plan at a time; the plan checker must refuse each changed plan. */
#ifndef RFX_TESTS_SUPPORT_RUN_PLAN_SPOIL_H
#define RFX_TESTS_SUPPORT_RUN_PLAN_SPOIL_H

#include "tiler/plan/plan.h"

/* The fields: of a node in stage 0, or (MACS) of the plan. */
enum field {
    OFFSET,
    BYTES,
    RING_ROWS,
    STAGING_OFFSET,
    STAGING_BYTES,
    LAST_READER,
    OVER,
    LEAD,
    STEP_ROWS,
    UPWARDS,
    PACKED_OFFSET,
    PACKED_BYTES,
    STORED_OFFSET,
    STORED_BYTES,
    PLACE,
    MACS,
};

enum { ITSELF = -1, ZERO = -2 };

/* Sets `field` of the node in stage 0 to `from_field` of node `from`, plus `add`. `from` may be
 * ITSELF (the node's own value) or ZERO. The checker's text must contain `words`. */
struct spoiling {
    int node;
    enum field field;
    int from;
    enum field from_field;
    int64_t add;
    const char *words;
};

/* Fails unless the checker accepts the plan, refuses it with each of the n changes, and accepts it
 * again at the end. `kind` is for messages. */
void spoil_each(struct rfx_plan *plan, const char *kind, const struct spoiling *table, size_t n);

#define SPOIL_EACH(plan, kind, table) spoil_each(plan, kind, table, sizeof table / sizeof table[0])
#endif
