/* A way of running that only this file knows: column tiles, each from the image's top to its
 * bottom.
 *
 * It is one table of functions (tiler/plan/mode.h). Planner, schedule, checker and executor take
 * it as they take their own: by hand, asked for, and as something that the planner may choose. */
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
#include "tiler/modes/candidate_template.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_check.h"
#include "tiler/plan/stage.h"

struct state {
    int node;
    int64_t column;
    struct rfx_axis_region *cols; /* n_nodes */
};

static void measure(const struct rfx_mode_measure *m, struct rfx_node_rows *rows,
                    int64_t *overlap_rows) {
    for (int i = 0; i < m->graph->n_nodes; i++) {
        int64_t h = m->graph->nodes[i].out.h;
        rows[i] = (struct rfx_node_rows){.most = h, .per_step = h, .computed = h};
    }
    *overlap_rows = 0;
}

static int64_t window_rows(const struct rfx_stage_shape *shape, int input) {
    return shape->rows[input].most; /* a column tile sees every row of the image */
}

static int64_t units(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    (void)plan;
    return stage->spec.tiles_x;
}

static size_t walk_bytes(const struct rfx_graph *graph) {
    return sizeof(struct state) + (size_t)graph->n_nodes * sizeof(struct rfx_axis_region);
}

static void enter_column(struct rfx_walk *walk) {
    struct state *s = walk->state;
    s->node = walk->stage->first;
    rfx_stage_regions(walk->plan->graph, walk->stage->places, RFX_AXIS_COLS,
                      walk->stage->spec.tiles_x, s->column, s->cols);
}

static void enter(struct rfx_walk *walk) {
    struct state *s = walk->state;
    *s = (struct state){.cols = (struct rfx_axis_region *)(void *)(s + 1)};
    enter_column(walk);
}

static struct rfx_rect rect_of(const struct rfx_walk *walk, int node) {
    const struct state *s = walk->state;
    struct rfx_range rows = {0, walk->plan->graph->nodes[node].out.h};
    return rfx_rect_from_ranges(rows, s->cols[node].clamped);
}

static bool next(struct rfx_walk *walk, struct rfx_step *step) {
    struct state *s = walk->state;
    const struct rfx_stage *stage = walk->stage;
    for (;;) {
        if (s->node > stage->last) {
            if (s->column + 1 >= stage->spec.tiles_x) return false;
            s->column++;
            walk->unit++;
            enter_column(walk);
        }
        int node = s->node++;
        if (!rfx_place_is_computed(stage->places[node])) continue;
        struct rfx_rect rect = stage->places[node] == RFX_PLACE_REDUCED
                                   ? rfx_walk_own_rect(walk, node, 0, s->column)
                                   : rect_of(walk, node);
        rfx_walk_compute(walk, node, rect, step);
        return true;
    }
}

static void resident_region(const struct rfx_walk *walk, int node,
                            struct rfx_resident_region *region) {
    region->rect = rect_of(walk, node);
}

static int describe(const struct rfx_stage_spec *spec, const char *to, bool alone, char *text,
                    size_t size) {
    (void)alone;
    return snprintf(text, size, "to %s in %lld columns", to, (long long)spec->tiles_x);
}

static const int64_t columns[] = {2, 3, 4, 6, 8};
static const struct rfx_candidate_template templates[] = {
    {.phase = RFX_PHASE_TILES,
     .kind = RFX_PLAN_UNTILED,
     .kind_in_tiles = RFX_PLAN_TILES,
     .cuts = RFX_CUTS_EVERY,
     .tiles = RFX_TILES_ACROSS,
     .when_asked = true,
     .across = columns,
     .n_across = 5},
};

static const struct rfx_mode columns_mode = {
    .name = "columns",
    .a_mode = "a stage in columns",
    .local = true,
    .trims = true,
    .knows = RFX_KNOWS_TILES_X,
    .take_over = RFX_TAKE_SAME_TILE,
    .templates = templates,
    .n_templates = 1,
    .measure = measure,
    .window_rows = window_rows,
    .units = units,
    .walk_bytes = walk_bytes,
    .enter = enter,
    .next = next,
    .resident_region = resident_region,
    .describe = describe,
};

enum { H = 211, W = 523, CLASSES = 1000 };

struct fixture {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_image *image;
    struct rfx_plan_request request;
    float untiled[CLASSES];
};

/* Plans, checks and runs the request; the plan is the caller's. */
static struct rfx_plan *run(struct fixture *f, const struct rfx_plan_request *request,
                            float *values) {
    struct rfx_plan *plan = NULL;
    struct rfx_session *session = NULL;
    struct rfx_run_report report;
    struct caught_outputs caught;
    struct rfx_error err = {{0}};
    char why[200];
    if (rfx_plan_create(f->graph, request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    if (!rfx_plan_check(plan, why, sizeof why)) fail_msg("%s", why);
    if (rfx_session_create(plan, NULL, f->graph->mem, &session, &err) != RFX_OK)
        fail_msg("%s", err.text);
    catch_outputs(&caught, f->graph);
    rfx_session_set_sink(session, &caught.sink);
    if (rfx_session_run(session, f->image, NULL, NULL, &report, &err) != RFX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(report.macs, plan->macs);
    assert_int_equal(report.arena_high_water_bytes, plan->bytes.arena);
    assert_int_equal(caught.received[0], CLASSES);
    memcpy(values, caught.values[0], CLASSES * sizeof *values);
    caught_outputs_free(&caught);
    rfx_session_free(session);
    return plan;
}

static void begin(struct fixture *f) {
    struct rfx_load_options load = {.h = H, .w = W};
    struct rfx_error err = {{0}};
    f->mem = rfx_memory_create(0);
    assert_int_equal(rfx_model_load(f->mem, "mobilenet_v2:0.25", &load, &f->graph, &err), RFX_OK);
    assert_int_equal(rfx_image_open(f->mem, "synthetic:211x523", NULL, &f->image, &err), RFX_OK);
    f->request = (struct rfx_plan_request){
        .source = rfx_image_traits(f->image), .threads = 2, .asked = rfx_ask_whole()};
    rfx_plan_free(run(f, &f->request, f->untiled));
}

static void end(struct fixture *f) {
    rfx_image_free(f->image);
    rfx_graph_free(f->graph);
    assert_int_equal(rfx_memory_current_bytes(f->mem), 0);
    rfx_memory_free(f->mem);
}

static void asked_for_by_hand_and_by_name(void **state) {
    struct fixture f;
    float values[CLASSES];
    char text[RFX_PLAN_TEXT];
    (void)state;
    begin(&f);
    for (int64_t n = 1; n <= 7; n++) {
        f.request.asked =
            (struct rfx_stage_spec){.mode = &columns_mode, .tiles_y = 1, .tiles_x = n};
        f.request.split = "features.6";
        struct rfx_plan *plan = run(&f, &f.request, values);
        assert_memory_equal(values, f.untiled, sizeof values);
        assert_ptr_equal(plan->stages[0].spec.mode, &columns_mode);
        assert_int_equal(plan->stages[0].spec.tiles_x, n);
        rfx_plan_describe(plan, text, sizeof text);
        assert_non_null(strstr(text, " columns; rest whole"));
        struct rfx_stage_spec stages[2] = {plan->stages[0].spec, plan->stages[1].spec};
        struct rfx_plan_request by_hand = f.request;
        by_hand.split = NULL;
        by_hand.asked = (struct rfx_stage_spec){.mode = NULL};
        by_hand.stages = stages;
        by_hand.n_stages = 2;
        struct rfx_plan *same = run(&f, &by_hand, values);
        assert_memory_equal(values, f.untiled, sizeof values);
        assert_int_equal(same->peak_bytes, plan->peak_bytes);
        rfx_plan_free(same);
        rfx_plan_free(plan);
    }
    end(&f);
}

/* With nothing but whole stages and columns to choose from, the planner takes columns where whole
 * maps do not fit. */
static void chosen_by_the_planner(void **state) {
    static const struct rfx_mode *const modes[] = {&rfx_mode_whole, &columns_mode};
    struct fixture f;
    float values[CLASSES];
    (void)state;
    begin(&f);
    struct rfx_plan_request request = {
        .source = f.request.source, .threads = 2, .modes = modes, .n_modes = 2, .memory_bytes = 1};
    struct rfx_plan *plan = NULL, *smallest = NULL;
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_plan_create_or_smallest(f.graph, &request, &plan, &smallest, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_ptr_equal(smallest->stages[0].spec.mode, &columns_mode);
    assert_true(smallest->stages[0].spec.tiles_x > 1);
    request.memory_bytes = smallest->peak_bytes;
    rfx_plan_free(smallest);
    plan = run(&f, &request, values);
    assert_memory_equal(values, f.untiled, sizeof values);
    assert_ptr_equal(plan->stages[0].spec.mode, &columns_mode);
    rfx_plan_free(plan);
    end(&f);
}

static void what_it_does_not_know_is_refused(void **state) {
    struct fixture f;
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    (void)state;
    begin(&f);
    f.request.asked =
        (struct rfx_stage_spec){.mode = &columns_mode, .tiles_y = 1, .tiles_x = 2, .band_rows = 4};
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "a stage in columns has no bands"));
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked_for_by_hand_and_by_name),
        cmocka_unit_test(chosen_by_the_planner),
        cmocka_unit_test(what_it_does_not_know_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
