/* Targets that stages cannot have, in words; those that they must have instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_check.h"

/* A join of maps is no target; the maps are, and all of them have to be. */
static void joined_outputs_are_made_by_their_maps(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = test_builtin(mem, "yolov8n", 96, 64, 1, NULL);
    int join = graph->outputs[0].node, maps[3];
    struct rfx_stage_spec spec = {.mode = &rfx_mode_whole, .tiles_y = 1, .tiles_x = 1};
    struct rfx_plan_request request = {
        .stages = &spec, .n_stages = 1, .threads = 1, .emit_outputs = true};
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {""};
    char why[300];
    (void)state;
    request.source = (struct rfx_source_traits){.h = 96, .w = 64, .c = 3, .random_access = true};
    spec.targets = &join;
    spec.n_targets = 1;
    assert_int_equal(rfx_plan_create(graph, &request, &plan, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "'model.22' is joined of maps, which are targets instead"));
    assert_int_equal(graph->n_ends, 3);
    for (int e = 0; e < 3; e++) maps[e] = graph->ends[e].node;
    spec.targets = maps;
    spec.n_targets = 2;
    assert_int_equal(rfx_plan_create(graph, &request, &plan, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "is no target of any stage"));
    spec.n_targets = 3;
    for (int streamed = 0; streamed < 2; streamed++) {
        spec.mode = streamed ? &rfx_mode_streamed : &rfx_mode_whole;
        spec.band_rows = streamed ? 32 : 0;
        if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
        assert_true(rfx_plan_check(plan, why, sizeof why));
        for (int e = 0; e < 3; e++)
            assert_int_equal(plan->stages[0].places[maps[e]],
                             streamed ? RFX_PLACE_EMITTED : RFX_PLACE_STORED);
        assert_int_equal(plan->stages[0].places[join], RFX_PLACE_NONE);
        assert_int_equal(plan->stored[join].bytes, 0);
        rfx_plan_free(plan);
    }
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* A network in four stages, of which one forgets a map. */
struct forgetting {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_plan_request request;
    struct rfx_stage_spec stages[4];
    int targets[4], forgotten[2];
};

static int node_of(const struct rfx_graph *graph, const char *name) {
    int node = rfx_graph_find(graph, name);
    assert_true(node >= 0);
    return node;
}

static struct forgetting begin(void) {
    struct forgetting f = {.mem = rfx_memory_create(0)};
    static const char *const names[] = {"features.0", "features.2", "features.5", "classifier.6"};
    f.graph = test_builtin(f.mem, "vgg16", 32, 32, 1, NULL);
    for (int s = 0; s < 4; s++) {
        f.targets[s] = node_of(f.graph, names[s]);
        f.stages[s] = (struct rfx_stage_spec){
            .mode = s < 3 ? &rfx_mode_streamed : &rfx_mode_whole,
            .tiles_y = 1,
            .tiles_x = 1,
            .band_rows = s < 3 ? 4 : 0,
            .n_targets = 1,
        };
    }
    f.forgotten[0] = f.targets[0];
    f.request = (struct rfx_plan_request){
        .n_stages = 4,
        .threads = 1,
        .source = {.h = 32, .w = 32, .c = 3, .random_access = true},
    };
    return f;
}

static struct rfx_plan *plan_of(struct forgetting *f, int stage, enum rfx_status want,
                                const char *words) {
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {""};
    for (int s = 0; s < 4; s++) {
        f->stages[s].targets = &f->targets[s];
        f->stages[s].forgotten = f->forgotten;
        f->stages[s].n_forgotten = s == stage;
    }
    f->request.stages = f->stages;
    assert_int_equal(rfx_plan_create(f->graph, &f->request, &plan, &err), want);
    if (words != NULL && strstr(err.text, words) == NULL) fail_msg("%s", err.text);
    return plan;
}

static void end(struct forgetting *f) {
    rfx_graph_free(f->graph);
    assert_int_equal(rfx_memory_current_bytes(f->mem), 0);
    rfx_memory_free(f->mem);
}

/* A map that is forgotten is read up to there and made again behind it; its bytes end there. */
static void forgotten_maps_are_made_again(void **state) {
    (void)state;
    struct forgetting f = begin();
    char why[300];
    f.targets[0] = f.forgotten[0] = node_of(f.graph, "features.2");
    f.targets[1] = node_of(f.graph, "features.5");
    f.targets[2] = node_of(f.graph, "features.7");
    struct rfx_plan *kept = plan_of(&f, -1, RFX_OK, NULL);
    struct rfx_plan *plan = plan_of(&f, 0, RFX_OK, NULL); /* before anything has read it */
    int node = f.forgotten[0];
    assert_true(rfx_plan_check(plan, why, sizeof why));
    assert_int_equal(kept->stages[1].places[node], RFX_PLACE_READ);
    assert_int_equal(plan->stages[0].places[node], RFX_PLACE_STORED);
    assert_int_equal(plan->stages[1].places[node], RFX_PLACE_LOCAL);
    assert_true(plan->macs > kept->macs);
    rfx_plan_free(plan);
    plan = plan_of(&f, 1, RFX_OK, NULL); /* nothing reads it any more */
    assert_true(rfx_plan_check(plan, why, sizeof why));
    assert_int_equal(plan->stages[1].places[node], RFX_PLACE_READ);
    assert_int_equal(plan->macs, kept->macs);
    rfx_plan_free(plan);
    rfx_plan_free(kept);
    end(&f);
}

static void what_cannot_be_forgotten(void **state) {
    (void)state;
    struct forgetting f = begin();
    f.forgotten[0] = f.targets[1];
    (void)plan_of(&f, 0, RFX_STATUS_INVALID_ARGUMENT, "it is not stored");
    f.forgotten[0] = f.targets[3];
    (void)plan_of(&f, 3, RFX_STATUS_INVALID_ARGUMENT, "it is an output of the network");
    f.forgotten[0] = f.graph->n_nodes;
    (void)plan_of(&f, 1, RFX_STATUS_INVALID_ARGUMENT, "cannot be forgotten");
    f.forgotten[0] = f.targets[2] = f.targets[0];
    (void)plan_of(&f, 1, RFX_STATUS_INVALID_ARGUMENT, "stored twice, and forgotten in between");
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined_outputs_are_made_by_their_maps),
        cmocka_unit_test(forgotten_maps_are_made_again),
        cmocka_unit_test(what_cannot_be_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
