/* Whole stages row by row: on real networks the arena is smaller than any placement of whole
 * tensors can be, and the output bits are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"
#include "rfexec/run/model.h"
#include "rfexec/run/session.h"
#include "tests/support/run/catch_outputs.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_check.h"

static struct rfx_graph *build(struct rfx_memory *mem, const char *name, int64_t h, int64_t w) {
    struct rfx_load_options options = {.h = h, .w = w, .conv = test_conv_choice()};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    if (rfx_builtin_build(mem, name, &options, &graph, &err) != RFX_OK)
        fail_msg("%s: %s", name, err.text);
    return graph;
}

static struct rfx_plan *make_plan(const struct rfx_graph *graph, bool row_by_row) {
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    struct rfx_plan_request request = {.asked = rfx_ask_whole(), .threads = 2};
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    request.asked.row_by_row = row_by_row;
    request.source =
        (struct rfx_source_traits){.h = in->h, .w = in->w, .c = in->c, .random_access = true};
    if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    return plan;
}

/* Runs a plan on the image; the first output in ONNX order, to be freed. */
static float *run(const struct rfx_graph *graph, const struct rfx_plan *plan, const float *image,
                  int64_t *n) {
    struct rfx_memory *mem = graph->mem;
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    struct rfx_session *session = NULL;
    struct rfx_image *source = NULL;
    struct rfx_run_report report;
    struct caught_outputs caught;
    struct rfx_error err = {{0}};
    if (rfx_image_from_array(mem, image, in->c, in->h, in->w, &source, &err) != RFX_OK ||
        rfx_session_create(plan, NULL, graph->mem, &session, &err) != RFX_OK)
        fail_msg("%s", err.text);
    catch_outputs(&caught, graph);
    rfx_session_set_sink(session, &caught.sink);
    if (rfx_session_run(session, source, NULL, NULL, &report, &err) != RFX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(report.arena_high_water_bytes, plan->bytes.arena);
    assert_int_equal(report.macs, plan->macs_untiled);
    *n = caught.elems[0];
    assert_int_equal(caught.received[0], *n);
    float *output = caught.values[0];
    caught.values[0] = NULL;
    caught_outputs_free(&caught);
    rfx_session_free(session);
    rfx_image_free(source);
    return output;
}

static void check_network(const char *name, int64_t h, int64_t w, bool runs) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = build(mem, name, h, w);
    struct rfx_plan *whole = make_plan(graph, false);
    struct rfx_plan *rows = make_plan(graph, true);
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    char why[300];
    fprintf(stderr, "%s, %lldx%lld: %zu bytes row by row, whole tensors need %zu\n", name,
            (long long)h, (long long)w, rows->bytes.arena, whole->lower_bound_bytes);
    assert_true(rows->bytes.arena < whole->lower_bound_bytes);
    assert_true(whole->lower_bound_bytes <= whole->bytes.arena);
    if (!rfx_plan_check(rows, why, sizeof why)) fail_msg("%s: %s", name, why);
    if (runs) {
        struct test_rng rng = test_rng_make(7);
        float *image = test_floats(in->elems);
        int64_t n;
        struct test_diff diff;
        test_rng_fill(&rng, image, in->elems, -2.0f, 2.0f);
        float *want = run(graph, whole, image, &n);
        float *got = run(graph, rows, image, &n);
        if (!test_same_bits(got, want, n, &diff)) {
            test_print_diff(name, got, want, n, &diff);
            fail();
        }
        free(got);
        free(want);
        free(image);
    }
    rfx_plan_free(rows);
    rfx_plan_free(whole);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* The lower bound holds for every placement of whole tensors, in place ones included. */
static void smaller_than_whole_tensors_can_be(void **state) {
    (void)state;
    static const char *const names[] = {"fsrcnn", "squeezenet1_1", "resnet50"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_network(names[i], 224, 224, true);
        check_network(names[i], 90, 122, true);
        check_network(names[i], 512, 640, false);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(smaller_than_whole_tensors_can_be)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
