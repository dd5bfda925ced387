/* Plans spoilt at one place at a time, which the checker must find. */
#ifndef RFX_TESTS_SUPPORT_RUN_PLAN_SPOIL_H
#define RFX_TESTS_SUPPORT_RUN_PLAN_SPOIL_H

#include "tiler/plan/plan.h"

/* What can be spoilt: of a node in stage 0, or (MACS) of the plan. */
enum field {
    OFFSET,
    BYTES,
    RING_ROWS,
    FRESH_OFFSET,
    FRESH_BYTES,
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

/* The field of the node in stage 0 becomes that field of node `from` (ITSELF: its own value; ZERO)
 * plus `add`; the checker must say no, with `words` about the right node. */
struct spoiling {
    int node;
    enum field field;
    int from;
    enum field from_field;
    int64_t add;
    const char *words;
};

/* Fails unless the plan is sound, not with any one of the spoilings, and in the end again. `kind`
 * is for messages. */
void spoil_each(struct rfx_plan *plan, const char *kind, const struct spoiling *table, size_t n);

#define SPOIL_EACH(plan, kind, table) spoil_each(plan, kind, table, sizeof table / sizeof table[0])
#endif
