/* The table of operators: no row leaves out what others rely on. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "layers/op.h"

#define FOR_EACH_OP(op, def)                  \
    for (int op = 0; op < RFX_OP_COUNT; op++) \
        for (const struct rfx_op_def *def = rfx_op_def((enum rfx_op)op); def != NULL; def = NULL)

/* The image and constants have no inputs, so nothing that maps to them. */
static bool has_inputs(int op) {
    return op != RFX_OP_INPUT && op != RFX_OP_CONST_MAP && op != RFX_OP_CONST_PLAIN;
}

static void every_row_is_complete(void **state) {
    (void)state;
    FOR_EACH_OP(op, def) {
        if (def->name == NULL || def->infer == NULL) fail_msg("op %d: no name or infer", op);
        if ((def->run == NULL) != (op == RFX_OP_INPUT)) fail_msg("%s: run", def->name);
        if ((def->pack == NULL) != (def->packed_bytes == NULL)) fail_msg("%s: pack", def->name);
        if (def->reduction != NULL && def->spatial) fail_msg("%s: reduction", def->name);
    }
}

/* No op is one to one by omission. */
static void every_spatial_row_says_how_it_maps(void **state) {
    (void)state;
    FOR_EACH_OP(op, def) {
        bool maps = def->spatial && has_inputs(op);
        if ((def->axis_map != NULL) != maps) fail_msg("%s: axis_map", def->name);
        if (!maps && (def->in_range != NULL || def->endless_range != NULL))
            fail_msg("%s: a range without a map", def->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(every_spatial_row_says_how_it_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
