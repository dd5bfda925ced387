/* Legal aggregation points of a hand-made residual network, and their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tiler/plan/splits.h"

/* After "b" both a and b are alive; after the global pool nothing is local any more. */
static void residual_splits(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 12, 12);
    int splits[6];
    assert_int_equal(rfx_splits_list(graph, splits), 3);
    assert_string_equal(rfx_split_label(graph, splits[0]), "a");
    assert_string_equal(rfx_split_label(graph, splits[1]), "sum");
    assert_string_equal(rfx_split_label(graph, splits[2]), "c");
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void names_and_refusals(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 12, 12);
    struct rfx_error err;
    int split = -1;
    assert_int_equal(rfx_split_find(graph, "sum", &split, &err), RFX_OK);
    assert_int_equal(split, 3);
    assert_int_equal(rfx_split_find(graph, "b", &split, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "before 'a', after 'sum'"));
    assert_int_equal(rfx_split_find(graph, "nowhere", &split, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "no such layer"));
    assert_int_equal(split, 3); /* written only on success */
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residual_splits),
        cmocka_unit_test(names_and_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
