/* Which Winograd convolutions keep their factors: as many as a budget has room for, of large maps
 * first; all without a budget; none that would break it. The bits do not hang on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"
#include "rfexec/image/image_source.h"
#include "rfexec/run/session.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/run/catch_outputs.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_file.h"
#include "tiler/search/graph_variants.h"

/* resnet18 at 672x672 has seven layers with many factors: three of 256 channels on maps of 42x42,
 * then one with stride 2 and three of 512 channels on maps of 21x21. */
enum { SIDE = 672, MAKERS = 7 };
/* Factors of one of the last three, of the one before, of one of the first, less weights. */
#define MORE_BYTES ((size_t)27 * 512 * 512 * sizeof(float))
#define MORE_STRIDE_2 ((size_t)16 * 256 * 512 * sizeof(float))
#define MORE_FIRST ((size_t)27 * 256 * 256 * sizeof(float))
#define ALL_MORE (3 * MORE_FIRST + MORE_STRIDE_2 + 3 * MORE_BYTES)

static struct small_plan_case load(enum rfx_conv_choice conv) {
    struct rfx_load_options options = {.h = SIDE, .w = SIDE, .conv = conv};
    struct small_plan_case c = small_plan_case_load("resnet18", &options);
    c.request.threads = 2;
    return c;
}

static int without_kernels(void **state) {
    (void)state;
    if (rfx_kernels()->conv == NULL) skip();
    return 0;
}

static struct rfx_plan *plan_within(struct small_plan_case *c, size_t budget) {
    c->request.memory_bytes = budget;
    return small_plan_case_make(c);
}

/* Stages by hand, none of which keeps factors unless that is said. */
static struct rfx_plan *plan_by_hand(struct small_plan_case *c, const int *keepers, int n) {
    struct small_plan_case by_hand = *c;
    const int target = c->graph->n_nodes - 1;
    const struct rfx_stage_spec whole = {
        .mode = &rfx_mode_whole, .tiles_y = 1, .tiles_x = 1, .n_targets = 1, .targets = &target};
    by_hand.request.stages = &whole;
    by_hand.request.n_stages = 1;
    by_hand.request.keepers = keepers;
    by_hand.request.n_keepers = n;
    return small_plan_case_make(&by_hand);
}

static int makers_of(const struct rfx_graph *graph, int *makers) {
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct rfx_node keeper = graph->nodes[i];
        if (keeper.op != RFX_OP_CONV) continue;
        keeper.attr.conv.keeps_factors = true;
        if (rfx_op_packed_bytes(graph, &keeper) > rfx_op_packed_bytes(graph, &graph->nodes[i]))
            makers[n++] = i;
    }
    return n;
}

static void as_many_as_fit(void **state) {
    struct small_plan_case c = load(RFX_CONV_WINOGRAD);
    int makers[64];
    (void)state;
    assert_int_equal(makers_of(c.graph, makers), MAKERS);
    struct rfx_plan *none = plan_by_hand(&c, NULL, 0), *all = plan_within(&c, 0);
    assert_int_equal(rfx_factors_count(none), 0);
    assert_int_equal(rfx_factors_count(all), MAKERS);
    assert_int_equal(all->bytes.weights - none->bytes.weights, ALL_MORE);
    int before = -1, seen = 0;
    for (size_t slack = 0; slack < ALL_MORE + MORE_BYTES; slack += MORE_FIRST / 2) {
        size_t budget = none->peak_bytes - 4 * MORE_FIRST + slack; /* streams need less */
        struct rfx_plan *plan = plan_within(&c, budget);
        int kept = rfx_factors_count(plan);
        assert_true(plan->peak_bytes <= budget);
        assert_true(kept >= before);
        seen |= 1 << kept;
        before = kept;
        rfx_plan_free(plan);
    }
    assert_int_equal(seen, (2 << MAKERS) - 1); /* none, one, two and so on */
    rfx_plan_free(none);
    rfx_plan_free(all);
    small_plan_case_end(&c);
}

/* The smallest budget is that without them, and they are nobody's but Winograd's. */
static void nothing_else_changes(void **state) {
    struct small_plan_case c = load(RFX_CONV_WINOGRAD), direct = load(RFX_CONV_DIRECT);
    struct rfx_plan *plan = NULL, *smallest = NULL;
    struct rfx_error err;
    (void)state;
    c.request.memory_bytes = 1;
    assert_int_equal(rfx_plan_create_or_smallest(c.graph, &c.request, &plan, &smallest, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_int_equal(rfx_factors_count(smallest), 0);
    plan = plan_within(&c, smallest->peak_bytes);
    assert_int_equal(rfx_factors_count(plan), 0);
    rfx_plan_free(plan);
    rfx_plan_free(smallest);
    plan = plan_within(&direct, 0);
    assert_int_equal(rfx_factors_count(plan), 0);
    rfx_plan_free(plan);
    small_plan_case_end(&c);
    small_plan_case_end(&direct);
}

static void refusals(void **state) {
    struct small_plan_case c = load(RFX_CONV_WINOGRAD);
    const int wrong[] = {-1, c.graph->n_nodes, c.graph->n_nodes - 1};
    struct rfx_plan *plan = NULL;
    struct rfx_error err;
    (void)state;
    for (int i = 0; i < 3; i++) {
        c.request.keepers = &wrong[i];
        c.request.n_keepers = 1;
        assert_int_equal(rfx_plan_create(c.graph, &c.request, &plan, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, "keepers[0] is no convolution"));
    }
    small_plan_case_end(&c);
}

/* Those given by hand, and no others, whoever chooses the stages. */
static void given_by_hand(void **state) {
    struct small_plan_case c = load(RFX_CONV_WINOGRAD);
    int makers[64];
    (void)state;
    assert_int_equal(makers_of(c.graph, makers), MAKERS);
    c.request.keepers = &makers[1];
    c.request.n_keepers = 1;
    struct rfx_plan *plan = small_plan_case_make(&c);
    assert_int_equal(rfx_factors_count(plan), 1);
    assert_true(plan->graph->nodes[makers[1]].attr.conv.keeps_factors);
    rfx_plan_free(plan);
    small_plan_case_end(&c);
}

/* A plan that keeps some is written, read and the same again. */
static void written_and_read(void **state) {
    struct small_plan_case c = load(RFX_CONV_WINOGRAD);
    struct rfx_plan *none = plan_by_hand(&c, NULL, 0), *again = NULL;
    struct rfx_error err;
    char *text = NULL;
    (void)state;
    struct rfx_plan *plan = plan_within(&c, none->peak_bytes + 3 * MORE_BYTES / 2);
    c.request.memory_bytes = 0;
    assert_in_range(rfx_factors_count(plan), 1, MAKERS - 1);
    assert_int_equal(rfx_plan_file_text(plan, "net", &text, &err), RFX_OK);
    if (small_plan_case_plan(&c, text, strlen(text), &again, &err) != RFX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(rfx_factors_count(again), rfx_factors_count(plan));
    assert_int_equal(again->bytes.weights, plan->bytes.weights);
    assert_int_equal(again->cost, plan->cost);
    for (int i = 0; i < c.graph->n_nodes; i++)
        assert_int_equal(again->graph->nodes[i].attr.conv.keeps_factors,
                         plan->graph->nodes[i].attr.conv.keeps_factors);
    rfx_memory_release(c.mem, text);
    rfx_plan_free(plan);
    rfx_plan_free(again);
    rfx_plan_free(none);
    small_plan_case_end(&c);
}

static enum rfx_status plan_and_free(struct rfx_memory *mem, void *user, struct rfx_error *err) {
    struct rfx_load_options options = {.h = SIDE, .w = SIDE, .conv = RFX_CONV_WINOGRAD};
    const struct rfx_plan_request *request = user;
    struct rfx_graph *graph = NULL;
    struct rfx_plan *plan = NULL;
    enum rfx_status status = rfx_model_load(mem, "resnet18", &options, &graph, err);
    if (status == RFX_OK) status = rfx_plan_create(graph, request, &plan, err);
    rfx_plan_free(plan);
    rfx_graph_free(graph);
    return status;
}

static void failing_allocations(void **state) {
    struct small_plan_case c = load(RFX_CONV_WINOGRAD);
    (void)state;
    assert_true(test_fail_each_allocation(plan_and_free, &c.request) > 10);
    small_plan_case_end(&c);
}

static float *run(struct small_plan_case *c, const struct rfx_plan *plan, const float *pixels) {
    struct rfx_session *session = NULL;
    struct rfx_image *image = NULL;
    struct caught_outputs caught;
    struct rfx_error err;
    assert_int_equal(rfx_image_from_array(c->mem, pixels, 3, SIDE, SIDE, &image, &err), RFX_OK);
    assert_int_equal(rfx_session_create(plan, NULL, c->graph->mem, &session, &err), RFX_OK);
    catch_outputs(&caught, c->graph);
    rfx_session_set_sink(session, &caught.sink);
    assert_int_equal(rfx_session_run(session, image, NULL, NULL, NULL, &err), RFX_OK);
    assert_int_equal(caught.received[0], caught.elems[0]);
    float *values = caught.values[0];
    caught.values[0] = NULL;
    caught_outputs_free(&caught);
    rfx_session_free(session);
    rfx_image_free(image);
    return values;
}

static void same_bits(void **state) {
    struct small_plan_case c = load(RFX_CONV_WINOGRAD);
    struct test_rng rng = test_rng_make(3);
    float *pixels = test_floats((int64_t)3 * SIDE * SIDE);
    int makers[64];
    (void)state;
    test_rng_fill(&rng, pixels, (int64_t)3 * SIDE * SIDE, -1.0f, 1.0f);
    assert_int_equal(makers_of(c.graph, makers), MAKERS);
    struct rfx_plan *none = plan_by_hand(&c, NULL, 0);
    float *want = run(&c, none, pixels);
    for (int n = 1; n <= MAKERS; n++) {
        struct rfx_plan *plan = plan_by_hand(&c, makers, n);
        assert_int_equal(rfx_factors_count(plan), n);
        float *got = run(&c, plan, pixels);
        assert_memory_equal(got, want, 1000 * sizeof *got);
        free(got);
        rfx_plan_free(plan);
    }
    free(want);
    free(pixels);
    rfx_plan_free(none);
    small_plan_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(as_many_as_fit, without_kernels),
        cmocka_unit_test_setup(nothing_else_changes, without_kernels),
        cmocka_unit_test_setup(refusals, without_kernels),
        cmocka_unit_test_setup(given_by_hand, without_kernels),
        cmocka_unit_test_setup(written_and_read, without_kernels),
        cmocka_unit_test_setup(failing_allocations, without_kernels),
        cmocka_unit_test_setup(same_bits, without_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
