/* Kept tensors are outputs of their own and stay out of fusing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/run/model.h"

static enum rfx_status load(struct rfx_memory *mem, const char *const *names, int n,
                            struct rfx_graph **graph, struct rfx_error *err) {
    struct rfx_load_options options = {.h = 64, .w = 64, .keep = names, .n_keep = n};
    return rfx_model_load(mem, "mobilenet_v2", &options, graph, err);
}

/* features.0 is conv, batch norm, ReLU6: kept in the middle, they cannot become one node. */
static void stays_apart(void **state) {
    static const char *const names[] = {"features.0.1", "features.3", "features.0.1"};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *plain = NULL;
    struct rfx_graph *kept = NULL;
    struct rfx_error err = {{0}};
    (void)state;
    assert_int_equal(load(mem, NULL, 0, &plain, &err), RFX_OK);
    if (load(mem, names, 3, &kept, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_int_equal(kept->n_nodes, plain->n_nodes + 1); /* the ReLU6 after features.0.1 */
    assert_int_equal(kept->n_outputs, plain->n_outputs + 2);
    const struct rfx_output *first = &kept->outputs[plain->n_outputs];
    assert_string_equal(first[0].name, "features.0.1");
    assert_int_equal(kept->nodes[first[0].node].act.kind, RFX_ACT_NONE);
    assert_string_equal(first[1].name, "features.3");
    assert_int_equal(kept->nodes[first[1].node].out.c, 24);
    assert_int_equal(kept->nodes[first[1].node].out.h, 16);
    rfx_graph_free(plain);
    rfx_graph_free(kept);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void refusals(void **state) {
    static const struct {
        const char *name, *words;
    } cases[] = {{"featurse.0.0", "near names: features.0.0"},
                 {"classifier.1", "is output 'output' already"},
                 {"", "no such tensor"}};
    struct rfx_memory *mem = rfx_memory_create(0);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_graph *graph = NULL;
        struct rfx_error err = {{0}};
        assert_int_equal(load(mem, &cases[i].name, 1, &graph, &err), RFX_STATUS_INVALID_ARGUMENT);
        if (strstr(err.text, cases[i].words) == NULL) fail_msg("%s", err.text);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
    }
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stays_apart), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
