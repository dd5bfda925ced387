/* The executor on random networks: planner and session against the untiled oracle, bit by bit.
 *
 * RFX_CASES (default 1500) random graphs x sizes x plans (grids and bands by hand, budgets,
 * untiled), with nodes in groups and without, with maps between stages in memory and in files,
 * x 1, 2, 3 threads. Every plan also passes the independent checker, and what was executed is held
 * against what was planned: MACs, arena, no allocation in a second run. With RFX_NETWORKS=quantised
 * the networks are of one-byte integers; RFX_FINGERPRINT is then the fingerprint of all outputs. */
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
#include "layers/graph/op.h"
#include "rfexec/image/image_source.h"
#include "rfexec/run/session.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/random/random_groups.h"
#include "tests/support/run/catch_outputs.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_check.h"
#include "tiler/plan/splits.h"

struct one_case {
    uint64_t seed;
    struct rfx_graph *graph;
    const float *image; /* c x h x w */
    float **wanted;     /* per node, as run_whole lays it out */
    struct rfx_plan_request request;
    struct rfx_group_attr groups[8];
};

static struct random_graph_kinds kinds;
static int64_t grouped_plans, spilled_plans, fetching_tiles, joined_plans, sliding_streams;
static int64_t overwriting_streams, lagging_streams, narrow_maps, plans_run;
static uint64_t outputs_hash = 0xcbf29ce484222325; /* FNV-1a of the bits of all outputs */

static void fail_case(const struct one_case *c, const struct rfx_plan *plan, const char *why) {
    char text[200] = "no plan";
    if (plan != NULL) rfx_plan_describe(plan, text, sizeof text);
    for (int i = 0; plan != NULL && i < plan->graph->n_nodes; i++) {
        const struct rfx_group_attr *g = &plan->graph->nodes[i].attr.group;
        if (plan->graph->nodes[i].op == RFX_OP_GROUP)
            fprintf(stderr, "group %d..%d, strip_cols %lld, strips %lld, step_rows %lld\n",
                    g->first, g->last, (long long)g->strip_cols, (long long)g->strips,
                    (long long)g->step_rows);
    }
    fprintf(stderr, "seed %llu, %s, %d threads: %s\n", (unsigned long long)c->seed, text,
            c->request.threads, why);
    random_graph_print(c->graph, stderr);
    fail();
}

/* Compares output k, which came in ONNX order, with the oracle's tensor. */
static void compare_output(const struct one_case *c, const struct rfx_plan *plan, float *got,
                           int k) {
    const struct rfx_tensor *t = &c->graph->nodes[c->graph->outputs[k].node].out;
    float *wanted = test_floats(t->elems), *ordered = test_floats(t->elems);
    struct test_diff diff;
    rfx_type_load(t->type, c->wanted[c->graph->outputs[k].node], t->elems, wanted);
    test_quiet_nans(got, t->elems);
    if (t->layout == RFX_LAYOUT_NHWC)
        test_nhwc_to_nchw(wanted, ordered, t->c, t->h, t->w);
    else
        memcpy(ordered, wanted, (size_t)t->elems * sizeof *ordered);
    test_quiet_nans(ordered, t->elems);
    if (!test_same_bits(got, ordered, t->elems, &diff)) {
        test_print_diff(c->graph->outputs[k].name, got, ordered, t->elems, &diff);
        fail_case(c, plan, "output differs from the untiled oracle");
    }
    free(ordered);
    free(wanted);
}

static void count_spilled(const struct rfx_plan *plan) {
    bool tiled = false;
    for (int s = 0; s < plan->n_stages; s++)
        for (int i = 0; plan->stages[s].spec.tiles_x > 1 && i < plan->graph->n_nodes; i++)
            tiled |= plan->stages[s].places[i] == RFX_PLACE_FETCHED;
    spilled_plans += plan->spill.read > 0;
    fetching_tiles += tiled;
}

/* Plans of which some stream writes over maps that it reads. */
static void count_sliding(const struct rfx_plan *plan) {
    bool slides = false;
    for (int s = 0; s < plan->n_stages; s++) {
        const struct rfx_stage_spec *spec = &plan->stages[s].spec;
        slides |= spec->mode == &rfx_mode_streamed && spec->row_by_row;
    }
    sliding_streams += slides;
}

/* Plans of which some node of a tight stream is written over another one's rows, and those of which
 * one does that lags behind. */
static void count_overwriting(const struct rfx_plan *plan) {
    bool over = false, lags = false;
    for (int s = 0; s < plan->n_stages; s++)
        for (int i = 0; i < plan->graph->n_nodes; i++) {
            over |= plan->stages[s].nodes[i].over >= 0;
            lags |= plan->stages[s].nodes[i].lead > 0;
        }
    overwriting_streams += over;
    lagging_streams += lags;
}

static void run_plan(const struct one_case *c, const struct rfx_plan *plan) {
    struct rfx_memory *mem = c->graph->mem;
    struct rfx_session *session = NULL;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    struct rfx_run_report report;
    char why[300];
    const struct rfx_source_traits *s = &c->request.source;
    if (!rfx_plan_check(plan, why, sizeof why)) fail_case(c, plan, why);
    plans_run++;
    grouped_plans += plan->grouped != NULL;
    count_spilled(plan);
    count_sliding(plan);
    count_overwriting(plan);
    enum rfx_status opened = rfx_image_from_array(mem, c->image, s->c, s->h, s->w, &image, &err);
    if (opened != RFX_OK || rfx_session_create(plan, NULL, c->graph->mem, &session, &err) != RFX_OK)
        fail_case(c, plan, err.text);
    struct caught_outputs caught;
    catch_outputs(&caught, c->graph);
    rfx_session_set_sink(session, &caught.sink);
    rfx_session_set_spill_folder(session, ".");
    for (int e = 0; e < c->graph->n_ends; e++) {
        int k = c->graph->ends[e].output;
        joined_plans += rfx_node_is_joined(&c->graph->nodes[c->graph->outputs[k].node]);
    }
    uint64_t allocations = 0;
    for (int run = 0; run < 2; run++) {
        if (run == 1) allocations = rfx_memory_allocation_count(mem);
        if (run == 1 && c->seed % 2 == 0) rfx_session_give_back(session);
        if (rfx_session_run(session, image, NULL, NULL, &report, &err) != RFX_OK)
            fail_case(c, plan, err.text);
    }
    assert_int_equal(rfx_memory_allocation_count(mem), allocations);
    if (report.macs != plan->macs) fail_case(c, plan, "executed MACs are not the planned ones");
    if (report.arena_high_water_bytes != plan->bytes.arena)
        fail_case(c, plan, "the arena's high water is not the planned size");
    if (report.spill_written != plan->spill.written || report.spill_read != plan->spill.read)
        fail_case(c, plan, "bytes of files are not the planned ones");
    for (int k = 0; k < c->graph->n_outputs; k++) {
        if (caught.received[k] != 2 * caught.elems[k])
            fail_case(c, plan, "elements did not come once a run");
        compare_output(c, plan, caught.values[k], k);
    }
    caught_outputs_free(&caught);
    rfx_session_free(session);
    rfx_image_free(image);
}

/* Groups that the planner chooses, for caches so small that small maps do not fit. */
static void choose_caches(struct one_case *c, struct test_rng *rng) {
    if (test_rng_chance(rng, 40)) c->request.caches = random_small_caches(rng);
}

/* Groups by hand, also where none would pay, that leave a split (or -1) as it is. */
static void give_groups(struct one_case *c, struct test_rng *rng, int split) {
    int kept = 0;
    if (!test_rng_chance(rng, 40)) return;
    int n = random_groups_draw(c->graph, rng, c->groups, 8);
    for (int g = 0; g < n; g++)
        if (split < c->groups[g].first || split >= c->groups[g].last)
            c->groups[kept++] = c->groups[g];
    c->request.groups = c->groups;
    c->request.n_groups = kept;
}

/* How a case's request differs from the plain one. */
static void choose_manner(struct one_case *c, struct test_rng *rng) {
    c->request.asked.row_by_row = test_rng_chance(rng, 40);
    c->request.asked.weights_by_stage = test_rng_chance(rng, 30);
    c->request.emit_outputs = test_rng_chance(rng, 40);
    c->request.no_inplace = test_rng_chance(rng, 20);
    choose_caches(c, rng);
}

/* Asks for a way of running, with the flags that were chosen before. */
static void ask(struct one_case *c, struct rfx_stage_spec way) {
    way.row_by_row = c->request.asked.row_by_row;
    way.weights_by_stage = c->request.asked.weights_by_stage;
    c->request.asked = way;
}

/* Plans and runs what the request says; returns the plan's peak. */
static size_t run_request(const struct one_case *c) {
    struct rfx_error err = {{0}};
    struct rfx_plan *plan = NULL;
    if (rfx_plan_create(c->graph, &c->request, &plan, &err) != RFX_OK) fail_case(c, NULL, err.text);
    run_plan(c, plan);
    size_t peak = plan->peak_bytes;
    rfx_plan_free(plan);
    return peak;
}

#define MAX_STAGES 4

/* Puts targets of a stage into files, where that is allowed. */
static const bool *choose_spilled(const struct one_case *c, struct test_rng *rng,
                                  const struct rfx_stage_spec *spec, bool *spilled) {
    for (int t = 0; t < spec->n_targets; t++) {
        const struct rfx_node *node = &c->graph->nodes[spec->targets[t]];
        spilled[t] = spec->mode->emits && rfx_node_reduction(node) == NULL &&
                     rfx_graph_count_outputs(c->graph, spec->targets[t]) == 0 &&
                     test_rng_chance(rng, 75);
    }
    return spilled;
}

/* Lets a stage forget some of what it or stages before it store, which later ones make again. */
static void choose_forgotten(const struct one_case *c, struct test_rng *rng,
                             struct rfx_stage_spec *specs, int s, int *forgotten) {
    specs[s].forgotten = forgotten;
    for (int before = 0; before <= s; before++)
        for (int t = 0; t < specs[before].n_targets; t++) {
            int node = specs[before].targets[t];
            bool gone = rfx_graph_count_outputs(c->graph, node) > 0;
            for (int f = 0; f < s; f++)
                for (int k = 0; k < specs[f].n_forgotten; k++)
                    gone = gone || specs[f].forgotten[k] == node;
            if (!gone && test_rng_chance(rng, 25)) forgotten[specs[s].n_forgotten++] = node;
        }
}

/* Stages at random: targets anywhere, modes, bands, strips and grids; in files or not. Stages that
 * cannot be (a target that is not local in space) are refused by the planner and not counted. */
static bool run_random_stages(struct one_case *c, struct test_rng *rng, bool spill) {
    static const struct rfx_mode *const modes[] = {&rfx_mode_whole, &rfx_mode_tiled,
                                                   &rfx_mode_streamed};
    struct rfx_stage_spec specs[MAX_STAGES];
    int targets[MAX_STAGES][8];
    bool forget = test_rng_chance(rng, 50);
    bool spilled[MAX_STAGES][8];
    int forgotten[MAX_STAGES][8 * MAX_STAGES];
    int n = (int)test_rng_int(rng, 1, MAX_STAGES - 1);
    int from = 0;
    struct rfx_error err = {{0}};
    for (int s = 0; s < n; s++) {
        struct rfx_stage_spec *spec = &specs[s];
        *spec = (struct rfx_stage_spec){.tiles_y = 1, .tiles_x = 1, .targets = targets[s]};
        spec->mode = modes[test_rng_int(rng, 0, 2)];
        if (spec->mode == &rfx_mode_tiled) spec->tiles_y = test_rng_int(rng, 1, 5);
        if (spec->mode != &rfx_mode_whole) spec->tiles_x = test_rng_int(rng, 1, 5);
        if (spec->mode == &rfx_mode_streamed && test_rng_chance(rng, 50)) spec->tiles_x = 1;
        if (spec->mode == &rfx_mode_streamed) spec->band_rows = test_rng_int(rng, 1, 9);
        spec->staging = spec->mode == &rfx_mode_streamed && test_rng_chance(rng, 50);
        spec->row_by_row = spec->mode != &rfx_mode_tiled && test_rng_chance(rng, 50);
        spec->weights_by_stage = test_rng_chance(rng, 20); /* in some stages only */
        int wanted = (int)test_rng_int(rng, 1, 3);
        for (int t = 0; t < wanted && from < c->graph->n_nodes; t++) {
            int target = (int)test_rng_int(rng, from, c->graph->n_nodes - 1);
            if (rfx_node_is_constant(&c->graph->nodes[target])) continue;
            targets[s][spec->n_targets++] = target;
            from = target + 1;
        }
        if (spec->n_targets == 0) return false;
        if (spill) spec->spilled = choose_spilled(c, rng, spec, spilled[s]);
        if (forget) choose_forgotten(c, rng, specs, s, forgotten[s]);
    }
    struct rfx_stage_spec *last = &specs[n];
    *last = (struct rfx_stage_spec){
        .mode = &rfx_mode_whole, .tiles_y = 1, .tiles_x = 1, .targets = targets[n]};
    for (int k = 0; k < c->graph->n_outputs && last->n_targets < 8; k++) {
        bool there = rfx_node_is_constant(&c->graph->nodes[c->graph->outputs[k].node]);
        for (int s = 0; s <= n; s++)
            for (int t = 0; t < specs[s].n_targets; t++)
                there |= targets[s][t] == c->graph->outputs[k].node;
        if (!there) targets[n][last->n_targets++] = c->graph->outputs[k].node;
    }
    c->request.stages = specs;
    c->request.n_stages = last->n_targets > 0 ? n + 1 : n;
    struct rfx_plan *plan = NULL;
    bool made = rfx_plan_create(c->graph, &c->request, &plan, &err) == RFX_OK;
    if (made) run_plan(c, plan);
    rfx_plan_free(plan);
    c->request.stages = NULL;
    return made;
}

/* Maps in files: stages at random, and what the planner makes of bands and of a budget. */
static void run_spilled(struct one_case *c, struct rfx_plan_request plain) {
    struct test_rng rng = test_rng_make(c->seed ^ 0xf11e5);
    struct rfx_plan *plan = NULL, *smallest = NULL;
    struct rfx_error err;
    for (int i = 0; i < 4; i++) {
        c->request = plain;
        choose_manner(c, &rng);
        (void)run_random_stages(c, &rng, true);
    }
    c->request = plain;
    choose_manner(c, &rng);
    c->request.may_spill = true;
    int64_t bands = test_rng_int(&rng, 1, 12);
    ask(c, rfx_ask_bands(bands, test_rng_chance(&rng, 50) ? test_rng_int(&rng, 1, 6) : 1));
    c->request.memory_bytes = test_rng_chance(&rng, 50) ? 1 : 0; /* 1: the smallest of all ways */
    (void)!rfx_plan_create_or_smallest(c->graph, &c->request, &plan, &smallest, &err);
    if (plan != NULL || smallest != NULL) run_plan(c, plan != NULL ? plan : smallest);
    rfx_plan_free(plan);
    rfx_plan_free(smallest);
}

/* A tight stream of whole rows up to the last cut: what lags is written over rows of a step where
 * steps have more rows than it lags. */
static void run_tight(struct one_case *c, struct rfx_plan_request plain, const int *splits, int n) {
    struct test_rng rng = test_rng_make(c->seed ^ 0x71647);
    bool residual = false;
    for (int i = 0; i < c->graph->n_nodes; i++) residual |= c->graph->nodes[i].residual;
    if (!residual) return;
    c->request = plain;
    choose_manner(c, &rng);
    c->request.no_inplace = false;
    c->request.split = c->graph->nodes[splits[n - 1]].name;
    ask(c, rfx_ask_bands(test_rng_int(&rng, 4, 40), 1));
    c->request.asked.staging = true;
    (void)run_request(c);
}

/* Untiled, stages at random, a random grid, random bands and strips at a random split, and a budget
 * between smallest and untiled. */
static void run_all_plans(struct one_case *c, struct test_rng *rng, int *random_stages) {
    struct rfx_error err = {{0}};
    struct rfx_plan_request plain = c->request;
    choose_manner(c, rng);
    give_groups(c, rng, -1);
    size_t untiled = run_request(c);
    /* Most stages at random cannot be put together: a few are tried. */
    for (int i = 0; i < 4; i++) *random_stages += run_random_stages(c, rng, false);
    run_spilled(c, plain);
    int *splits = malloc((size_t)c->graph->n_nodes * sizeof *splits);
    int n = rfx_splits_list(c->graph, splits);
    if (n > 0) {
        int split = splits[test_rng_int(rng, 0, n - 1)];
        c->request = plain;
        choose_manner(c, rng);
        c->request.split = c->graph->nodes[split].name;
        give_groups(c, rng, split);
        int64_t down = test_rng_int(rng, 1, 9);
        ask(c, rfx_ask_tiles(down, test_rng_int(rng, 1, 9)));
        (void)run_request(c);
        c->request = plain;
        choose_manner(c, rng);
        c->request.split = c->graph->nodes[split].name;
        give_groups(c, rng, split);
        int64_t bands = test_rng_int(rng, 1, 12);
        ask(c, rfx_ask_bands(bands, test_rng_chance(rng, 50) ? test_rng_int(rng, 1, 6) : 1));
        c->request.asked.staging = test_rng_chance(rng, 50);
        (void)run_request(c);
        c->request = plain;
        choose_caches(c, rng);
        give_groups(c, rng, -1);
        c->request.memory_bytes = untiled - (size_t)test_rng_int(rng, 1, 64) * 1024;
        struct rfx_plan *smallest = NULL;
        struct rfx_plan *plan = NULL;
        (void)!rfx_plan_create_or_smallest(c->graph, &c->request, &plan, &smallest, &err);
        run_plan(c, plan != NULL ? plan : smallest);
        rfx_plan_free(plan);
        rfx_plan_free(smallest);
        run_tight(c, plain, splits, n);
    }
    free(splits);
}

/* Adds the outputs of a network to outputs_hash. */
static void hash_outputs(const struct one_case *c) {
    for (int k = 0; k < c->graph->n_outputs; k++) {
        int node = c->graph->outputs[k].node;
        const struct rfx_tensor *t = &c->graph->nodes[node].out;
        float *values = test_floats(t->elems);
        rfx_type_load(t->type, c->wanted[node], t->elems, values);
        for (int64_t i = 0; i < t->elems; i++) {
            uint32_t bits;
            memcpy(&bits, &values[i], sizeof bits);
            outputs_hash = (outputs_hash ^ bits) * 0x100000001b3;
        }
        free(values);
    }
}

static void run_case(uint64_t seed, int bytes, int *random_stages) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct test_rng rng = test_rng_make(seed);
    struct random_graph_options options = random_graph_defaults();
    options.spatial_only = test_rng_chance(&rng, 50);
    options.rough = true;
    options.heads = 25;
    options.modern = 90;
    options.bottlenecks = 70;
    options.bytes = bytes;
    options.quantised = 10;
    if (seed % 8 == 0) options.max_size = 257;
    struct one_case c = {.seed = seed, .graph = random_graph_make(mem, seed, &options)};
    random_graph_count(c.graph, &kinds);
    for (int i = 0; i < c.graph->n_nodes; i++)
        narrow_maps += rfx_type_bytes(c.graph->nodes[i].out.type) == 1;
    const struct rfx_tensor *input = &c.graph->nodes[c.graph->input].out;
    float *nchw = test_floats(input->elems);
    float *nhwc = test_floats(input->elems);
    test_rng_fill(&rng, nchw, input->elems, -2.0f, 2.0f);
    if (test_rng_chance(&rng, 25)) test_rng_specials(&rng, nchw, input->elems);
    test_nchw_to_nhwc(nchw, nhwc, input->c, input->h, input->w);
    c.image = nchw;
    c.wanted = calloc((size_t)c.graph->n_nodes, sizeof *c.wanted);
    assert_non_null(c.wanted);
    struct test_prepared prepared;
    assert_true(test_prepare(c.graph, 1, &prepared));
    test_run_whole(&prepared, nhwc, c.wanted);
    test_prepared_free(&prepared);
    hash_outputs(&c);
    c.request.source = (struct rfx_source_traits){
        .h = input->h, .w = input->w, .c = input->c, .random_access = true};
    c.request.threads = (int)test_rng_int(&rng, 1, 3);
    run_all_plans(&c, &rng, random_stages);
    test_run_whole_free(c.graph, c.wanted);
    free(c.wanted);
    free(nchw);
    free(nhwc);
    rfx_graph_free(c.graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void random_networks(void **state) {
    (void)state;
    int64_t cases = test_env_int("RFX_CASES", 1500);
    uint64_t seed = (uint64_t)test_env_int("RFX_SEED", 1);
    fprintf(stderr, "%lld cases, RFX_SEED=%llu\n", (long long)cases, (unsigned long long)seed);
    int random_stages = 0;
    for (int64_t i = 0; i < cases; i++) run_case(seed + (uint64_t)i, 0, &random_stages);
    random_graph_print_kinds(&kinds, stderr);
    fprintf(
        stderr,
        "plans of random stages %d, with groups %lld, with files %lld, of streams over what they "
        "read %lld, with rows over rows of a step %lld, of which some lag %lld\n",
        random_stages, (long long)grouped_plans, (long long)spilled_plans,
        (long long)sliding_streams, (long long)overwriting_streams, (long long)lagging_streams);
    char print[17];
    const char *wanted = getenv("RFX_FINGERPRINT");
    (void)snprintf(print, sizeof print, "%016llx", (unsigned long long)outputs_hash);
    fprintf(stderr, "%lld plans ran; fingerprint of all outputs %s\n", (long long)plans_run, print);
    if (wanted != NULL) assert_string_equal(print, wanted);
    if (random_graph_only_bytes()) {
        assert_true(kinds.quantised > cases * 8 / 10 && kinds.any == 0);
        return;
    }
    assert_true(kinds.any > cases * 65 / 100 && kinds.quantised >= cases / 30);
    assert_true(grouped_plans > cases / 2 && random_stages > cases / 2);
    assert_true(sliding_streams > cases / 40);
    assert_true(overwriting_streams > cases / 10 && lagging_streams >= cases / 300);
    assert_true(spilled_plans > cases / 6 && fetching_tiles > cases / 50);
    assert_true(test_conv_choice() == RFX_CONV_OPENBLAS || joined_plans > cases / 50);
}

/* The same of networks in which four of ten steps make elements of another type. */
static void random_networks_of_bytes(void **state) {
    (void)state;
    int64_t cases = test_env_int("RFX_CASES", 1500) / 5;
    uint64_t seed = (uint64_t)test_env_int("RFX_SEED", 1) + 1000000;
    int random_stages = 0;
    if (random_graph_only_bytes()) return; /* the first test has run such networks only */
    narrow_maps = 0;
    for (int64_t i = 0; i < cases; i++) run_case(seed + (uint64_t)i, 40, &random_stages);
    fprintf(stderr, "%lld maps of bytes in %lld networks\n", (long long)narrow_maps,
            (long long)cases);
    assert_true(narrow_maps > cases / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_networks),
                                       cmocka_unit_test(random_networks_of_bytes)};
    if (test_skip()) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
