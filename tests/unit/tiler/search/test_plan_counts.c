/* Counts of a plan's steps: sums of products, alike ranges once, give what every step walked gives,
 * node by node. RFX_CASES and RFX_SEED in the environment ask for other networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/random/random_groups.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/schedule.h"
#include "tiler/plan/splits.h"
#include "tiler/plan/stage.h"
#include "tiler/search/graph_variants.h"
#include "tiler/search/plan_counts.h"

enum { MOST_GROUPS = 40 };

/* Of plans with groups that begin with a stream, or with tiles, in one part across: steps, and
 * ranges of rows that stand for them. */
static int64_t streamed_steps, streamed_ranges, tiled_steps, tiled_ranges;

static void add_range(void *user, int node, struct rfx_range rows, int64_t times) {
    int64_t *ranges = user;
    (void)node;
    (void)rows;
    (void)times;
    ++*ranges;
}

/* How many ranges of rows a mode gives for a stage. */
static int64_t count_ranges(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    size_t n = (size_t)plan->graph->n_nodes;
    int64_t ranges = 0;
    struct rfx_mode_sweep sweep = {plan->graph, stage,
                                   test_calloc(RFX_MODE_SCRATCH * n, sizeof *sweep.done),
                                   test_calloc(RFX_SWEEP_REGIONS * n, sizeof *sweep.regions)};
    stage->spec.mode->sweep_rows(&sweep, add_range, &ranges);
    test_free(sweep.done);
    test_free(sweep.regions);
    return ranges;
}

/* The MACs of each stage, against those of the steps of the schedule. */
static void compare_stage_macs(const struct rfx_plan *plan, const uint64_t *stages,
                               const char *what) {
    uint64_t *walked = test_calloc((size_t)plan->n_stages, sizeof *walked);
    struct rfx_schedule *schedule;
    struct rfx_step step;
    struct rfx_error err = {{0}};
    if (rfx_schedule_create(plan, &schedule, &err) != RFX_OK) fail_msg("%s", err.text);
    while (rfx_schedule_next(schedule, &step))
        if (step.kind == RFX_STEP_RUN)
            walked[step.stage] +=
                rfx_op_macs(plan->graph, &plan->graph->nodes[step.node], step.rect);
    rfx_schedule_free(schedule);
    for (int s = 0; s < plan->n_stages; s++)
        if (stages[s] != walked[s])
            fail_msg("%s, stage %d: %llu MACs; walked: %llu", what, s,
                     (unsigned long long)stages[s], (unsigned long long)walked[s]);
    test_free(walked);
}

static void compare(const struct rfx_plan *plan, const char *what) {
    size_t n = (size_t)plan->graph->n_nodes;
    struct rfx_error err = {{0}};
    struct rfx_node_counts *quick = test_calloc(n, sizeof *quick);
    struct rfx_node_counts *walked = test_calloc(n, sizeof *walked);
    uint64_t *stages = test_calloc((size_t)plan->n_stages, sizeof *stages);
    char text[RFX_PLAN_TEXT];
    uint64_t macs = 0, sum = 0;
    int64_t steps = 0;
    rfx_plan_describe(plan, text, sizeof text);
    if (rfx_plan_count_nodes(plan, quick, &err) != RFX_OK ||
        rfx_plan_count_by_steps(plan, walked, &err) != RFX_OK ||
        rfx_plan_count_step_macs(plan, &macs, stages, &err) != RFX_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++) {
        const struct rfx_node_counts *a = &quick[i], *b = &walked[i];
        if (a->macs != b->macs || a->steps != b->steps || a->pieces != b->pieces)
            fail_msg(
                "%s, %s, node %zu: %llu MACs in %lld steps, %lld pieces; walked: %llu, %lld, "
                "%lld",
                what, text, i, (unsigned long long)a->macs, (long long)a->steps,
                (long long)a->pieces, (unsigned long long)b->macs, (long long)b->steps,
                (long long)b->pieces);
        sum += b->macs;
        steps += b->steps;
    }
    assert_true(macs == sum);
    compare_stage_macs(plan, stages, what);
    const struct rfx_stage *head = &plan->stages[0];
    if (plan->grouped != NULL && head->spec.mode->local && head->spec.tiles_x == 1) {
        bool streamed = head->spec.mode == &rfx_mode_streamed;
        int64_t *ranges = streamed ? &streamed_ranges : &tiled_ranges;
        *(streamed ? &streamed_steps : &tiled_steps) += steps;
        for (int s = 0; s < plan->n_stages; s++) *ranges += count_ranges(plan, &plan->stages[s]);
    }
    test_free(quick);
    test_free(walked);
    test_free(stages);
}

struct one_case {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_plan_request request;
    struct rfx_group_attr groups[MOST_GROUPS];
    struct test_rng rng;
    char what[64];
};

/* Groups by hand that leave two nodes as they are, or chosen ones, or none. */
static void give_groups(struct one_case *c, int split, int other) {
    int kept = 0;
    c->request.groups = NULL;
    c->request.n_groups = 0;
    c->request.caches = (struct rfx_caches){0, 0};
    if (test_rng_chance(&c->rng, 30)) {
        c->request.caches = random_small_caches(&c->rng);
        return;
    }
    int n = random_groups_draw(c->graph, &c->rng, c->groups, MOST_GROUPS);
    for (int g = 0; g < n; g++) {
        const struct rfx_group_attr *group = &c->groups[g];
        bool hides = (split >= group->first && split < group->last) ||
                     (other >= group->first && other < group->last);
        if (!hides) c->groups[kept++] = *group;
    }
    c->request.groups = kept > 0 ? c->groups : NULL;
    c->request.n_groups = kept;
}

/* Returns whether there is such a plan. */
static bool plan_and_compare(struct one_case *c) {
    struct rfx_error err = {{0}};
    struct rfx_plan *plan = NULL;
    if (rfx_plan_create(c->graph, &c->request, &plan, &err) != RFX_OK) return false;
    compare(plan, c->what);
    rfx_plan_free(plan);
    return true;
}

/* Tiles or bands at random: few, or as many as there are positions. */
static struct rfx_stage_spec draw_way(struct one_case *c) {
    int64_t most = test_rng_chance(&c->rng, 30) ? 2000 : 6;
    if (test_rng_chance(&c->rng, 20)) /* tall ones of unlike widths */
        return rfx_ask_tiles(test_rng_int(&c->rng, 1, 2), test_rng_int(&c->rng, 1, 60));
    if (test_rng_chance(&c->rng, 50))
        return rfx_ask_tiles(test_rng_int(&c->rng, 1, most), test_rng_int(&c->rng, 1, 9));
    return rfx_ask_bands(test_rng_int(&c->rng, 1, 24), test_rng_int(&c->rng, 1, most / 3));
}

/* Two local stages, the second of which reads what the first stored, and the rest. */
static bool compare_stages(struct one_case *c, int first, int second) {
    struct rfx_stage_spec specs[3] = {draw_way(c), draw_way(c), rfx_ask_whole()};
    int targets[] = {first, second}, outputs[64];
    specs[0].targets = &targets[0];
    specs[1].targets = &targets[1];
    specs[2].targets = outputs;
    specs[0].n_targets = specs[1].n_targets = 1;
    for (int k = 0; k < c->graph->n_outputs && k < 64; k++)
        outputs[specs[2].n_targets++] = c->graph->outputs[k].node;
    specs[2].row_by_row = test_rng_chance(&c->rng, 50);
    c->request.asked = (struct rfx_stage_spec){.mode = NULL};
    c->request.stages = specs;
    c->request.n_stages = 3;
    bool made = plan_and_compare(c);
    c->request.stages = NULL;
    c->request.n_stages = 0;
    return made;
}

static int run_case(struct one_case *c) {
    int *splits = test_calloc((size_t)c->graph->n_nodes, sizeof *splits);
    int n = rfx_splits_list(c->graph, splits), made = 0;
    const struct rfx_tensor *t = &c->graph->nodes[c->graph->input].out;
    c->request = (struct rfx_plan_request){
        .source = {.h = t->h, .w = t->w, .c = t->c, .random_access = true},
        .threads = (int)test_rng_int(&c->rng, 1, 9)};
    give_groups(c, -1, -1);
    c->request.asked = rfx_ask_whole();
    c->request.asked.row_by_row = test_rng_chance(&c->rng, 50);
    made += plan_and_compare(c);
    for (int k = 0; n > 0 && k < 4; k++) {
        int a = (int)test_rng_int(&c->rng, 0, n - 1), b = (int)test_rng_int(&c->rng, 0, n - 1);
        give_groups(c, splits[a], splits[b]);
        if (a < b) made += compare_stages(c, splits[a], splits[b]);
        c->request.split = c->graph->nodes[splits[a]].name;
        c->request.asked = draw_way(c);
        made += plan_and_compare(c);
        c->request.split = NULL;
    }
    test_free(splits);
    return made;
}

static void random_networks(void **state) {
    int64_t seed = test_env_int("RFX_SEED", 1), cases = test_env_int("RFX_CASES", 800);
    struct random_graph_options options = random_graph_defaults();
    int made = 0;
    (void)state;
    options.spatial_only = true;
    options.min_size = 20;
    options.max_elems = 20000000;
    options.quantised = 25;
    for (int64_t i = 0; i < cases; i++) {
        struct one_case c = {.rng = test_rng_make((uint64_t)(seed + i))};
        c.mem = rfx_memory_create(0);
        options.max_size = i % 3 == 0 ? 1100 : 200;
        c.graph = random_graph_make(c.mem, (uint64_t)(seed + i), &options);
        (void)snprintf(c.what, sizeof c.what, "RFX_SEED=%lld RFX_CASES=1", (long long)(seed + i));
        made += run_case(&c);
        rfx_graph_free(c.graph);
        assert_int_equal(rfx_memory_current_bytes(c.mem), 0);
        rfx_memory_free(c.mem);
    }
    print_message("%d plans; streams: %lld steps, %lld ranges; tiles: %lld, %lld\n", made,
                  (long long)streamed_steps, (long long)streamed_ranges, (long long)tiled_steps,
                  (long long)tiled_ranges);
    assert_true(made > cases);
}

/* Networks as they are, with the groups that whole maps would have here, even where small steps are
 * predicted to do better without: the middle of a tall image is given once, and so are tiles away
 * from borders. */
static void alike_steps_count_once(void **state) {
    static const char *const names[] = {"mobilenet_v2", "resnet18", "toy", "unet"};
    (void)state;
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        struct one_case c = {.mem = rfx_memory_create(0)};
        c.graph = test_builtin(c.mem, names[k], 3072, 512, 1, NULL);
        int *splits = test_calloc((size_t)c.graph->n_nodes, sizeof *splits);
        int n = rfx_splits_list(c.graph, splits);
        assert_true(n > 2);
        c.request = (struct rfx_plan_request){
            .source = {.h = 3072, .w = 512, .c = 3, .random_access = true},
            .threads = 2,
            .caches = {.second_bytes = (size_t)1 << 20, .shared_bytes = (size_t)4 << 20},
            .split = c.graph->nodes[splits[n / 2]].name};
        struct rfx_group_attr *groups = test_calloc((size_t)c.graph->n_nodes, sizeof *groups);
        assert_int_equal(rfx_groups_choose(c.graph, &c.request.caches, c.request.threads,
                                           splits[n / 2], groups, &c.request.n_groups, NULL),
                         RFX_OK);
        c.request.groups = c.request.n_groups > 0 ? groups : NULL;
        streamed_steps = streamed_ranges = tiled_steps = tiled_ranges = 0;
        (void)snprintf(c.what, sizeof c.what, "%s", names[k]);
        c.request.asked = rfx_ask_bands(4, 1);
        assert_true(plan_and_compare(&c));
        c.request.asked = rfx_ask_tiles(96, 1);
        assert_true(plan_and_compare(&c));
        print_message("%s: streams: %lld steps, %lld ranges; tiles: %lld, %lld\n", names[k],
                      (long long)streamed_steps, (long long)streamed_ranges, (long long)tiled_steps,
                      (long long)tiled_ranges);
        if (k == 0) assert_true(streamed_ranges > 0 && streamed_ranges * 4 < streamed_steps);
        if (k == 0) assert_true(tiled_ranges > 0 && tiled_ranges * 8 < tiled_steps);
        c.request.asked = rfx_ask_bands(16, 5);
        assert_true(plan_and_compare(&c));
        c.request.asked = rfx_ask_tiles(7, 24);
        assert_true(plan_and_compare(&c));
        test_free(groups);
        test_free(splits);
        rfx_graph_free(c.graph);
        rfx_memory_free(c.mem);
    }
}

/* Dilated windows reach over a border by more than a period of the stream, while rows come evenly
 * already: what a group makes inside is not alike yet. */
static void far_windows_in_groups(void **state) {
    static const int64_t dilations[] = {3, 60, 200, 700};
    enum { ROWS = 3000, COLS = 20 };
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct one_case c = {.mem = rfx_memory_create(0)};
        c.graph = small_net_dilated(c.mem, ROWS, COLS, dilations[i]);
        int last = c.graph->outputs[0].node;
        c.groups[0] = (struct rfx_group_attr){
            .first = last - 1, .last = last, .strip_cols = COLS, .strips = 1, .step_rows = 4};
        c.request = (struct rfx_plan_request){
            .source = {.h = ROWS, .w = COLS, .c = 2, .random_access = true},
            .threads = 1,
            .groups = c.groups,
            .n_groups = 1};
        for (int64_t band = 1; band < 40; band += 7) {
            (void)snprintf(c.what, sizeof c.what, "dilation %d, bands of %d", (int)dilations[i],
                           (int)band);
            c.request.asked = rfx_ask_bands(band, 1);
            assert_true(plan_and_compare(&c));
        }
        rfx_graph_free(c.graph);
        rfx_memory_free(c.mem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_networks),
        cmocka_unit_test(alike_steps_count_once),
        cmocka_unit_test(far_windows_in_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
