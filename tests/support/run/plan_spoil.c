#include "tests/support/run/plan_spoil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tiler/plan/plan_check.h"

static int64_t get(const struct rfx_plan *plan, int node, enum field field) {
    const struct rfx_stage_node *n = &plan->stages[0].nodes[node];
    switch (field) {
        case OFFSET:
            return (int64_t)n->buffer.offset;
        case BYTES:
            return (int64_t)n->buffer.bytes;
        case RING_ROWS:
            return n->ring_rows;
        case STAGING_OFFSET:
            return (int64_t)n->staging.offset;
        case STAGING_BYTES:
            return (int64_t)n->staging.bytes;
        case LAST_READER:
            return n->last_reader;
        case OVER:
            return n->over;
        case LEAD:
            return n->lead;
        case STEP_ROWS:
            return n->step_rows;
        case UPWARDS:
            return n->upwards;
        case PACKED_OFFSET:
            return (int64_t)n->packed.offset;
        case PACKED_BYTES:
            return (int64_t)n->packed.bytes;
        case STORED_OFFSET:
            return (int64_t)plan->stored[node].offset;
        case STORED_BYTES:
            return (int64_t)plan->stored[node].bytes;
        case PLACE:
            return (int64_t)plan->stages[0].places[node];
        case MACS:
            break;
    }
    return (int64_t)plan->macs;
}

static void set(struct rfx_plan *plan, int node, enum field field, int64_t value) {
    struct rfx_stage_node *n = &plan->stages[0].nodes[node];
    switch (field) {
        case OFFSET:
            n->buffer.offset = (size_t)value;
            return;
        case BYTES:
            n->buffer.bytes = (size_t)value;
            return;
        case RING_ROWS:
            n->ring_rows = value;
            return;
        case STAGING_OFFSET:
            n->staging.offset = (size_t)value;
            return;
        case STAGING_BYTES:
            n->staging.bytes = (size_t)value;
            return;
        case LAST_READER:
            n->last_reader = (int)value;
            return;
        case OVER:
            n->over = (int)value;
            return;
        case LEAD:
            n->lead = value;
            return;
        case STEP_ROWS:
            n->step_rows = value;
            return;
        case UPWARDS:
            n->upwards = value != 0;
            return;
        case PACKED_OFFSET:
            n->packed.offset = (size_t)value;
            return;
        case PACKED_BYTES:
            n->packed.bytes = (size_t)value;
            return;
        case STORED_OFFSET:
            plan->stored[node].offset = (size_t)value;
            return;
        case STORED_BYTES:
            plan->stored[node].bytes = (size_t)value;
            return;
        case PLACE:
            plan->stages[0].places[node] = (enum rfx_node_place)value;
            return;
        case MACS:
            break;
    }
    plan->macs = (uint64_t)value;
}

void spoil_each(struct rfx_plan *plan, const char *kind, const struct spoiling *table, size_t n) {
    char why[200];
    int wrong = 0;
    if (!rfx_plan_check(plan, why, sizeof why)) fail_msg("%s: %s", kind, why);
    for (size_t i = 0; i < n; i++) {
        const struct spoiling *s = &table[i];
        int64_t old = get(plan, s->node, s->field);
        int64_t base = s->from == ZERO     ? 0
                       : s->from == ITSELF ? old
                                           : get(plan, s->from, s->from_field);
        if (base + s->add == old) fail_msg("%s, case %zu: nothing is spoilt", kind, i);
        set(plan, s->node, s->field, base + s->add);
        bool sound = rfx_plan_check(plan, why, sizeof why);
        if (sound || strstr(why, s->words) == NULL) {
            print_error("%s, case %zu: wanted \"%s\": %s\n", kind, i, s->words,
                        sound ? "not found" : why);
            wrong++;
        }
        set(plan, s->node, s->field, old);
    }
    if (!rfx_plan_check(plan, why, sizeof why)) fail_msg("%s afterwards: %s", kind, why);
    assert_int_equal(wrong, 0);
}
