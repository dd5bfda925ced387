/* Edit distances by hand, and which names of a graph are offered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/near_names.h"
#include "tests/support/random/small_nets.h"

static void distances(void **state) {
    static const struct {
        const char *a, *b;
        int edits;
    } cases[] = {{"", "", 0},
                 {"abc", "", 3},
                 {"", "ab", 2},
                 {"same", "SAME", 0},
                 {"kitten", "sitting", 3},
                 {"flaw", "lawn", 2},
                 {"memroy", "memory", 2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(rfx_edit_distance(cases[i].a, cases[i].b), cases[i].edits);
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(rfx_edit_distance(longer, ""), 48);
}

static void nearest(void **state) {
    static const char *const list[] = {"plan", "run", "mobilenet_v1", "mobilenet_v2"};
    static const struct {
        const char *word, *name;
    } cases[] = {{"plna", "plan"},
                 {"pl", "plan"},
                 {"mobilnet_v2", "mobilenet_v2"},
                 {"mobile", "mobilenet_v1"},
                 {"xyz", NULL},
                 {"x", NULL},
                 {"", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_nearest near = {.word = cases[i].word};
        for (size_t k = 0; k < sizeof list / sizeof list[0]; k++)
            rfx_nearest_consider(&near, list[k]);
        if (cases[i].name == NULL)
            assert_null(near.name);
        else
            assert_string_equal(near.name, cases[i].name);
    }
}

static void names(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 8, 8);
    char text[RFX_NEAR_NAMES_TEXT];
    (void)state;
    rfx_graph_near_names(graph, "pol", text);
    assert_non_null(strstr(text, "; near names: pool"));
    rfx_graph_near_names(graph, "something else", text);
    assert_string_equal(text, "");
    rfx_graph_near_names(graph, "", text);
    assert_string_equal(text, "");
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(distances), cmocka_unit_test(nearest),
                                       cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
