/* On small networks the planner's answer is the best of all plans that it may use.
 *
 * The search here is written out as loops over stages by hand (rfx_plan_request.stages): whole,
 * tiled up to a cut, streamed to the end, streamed up to a cut, two streams, each with all bands,
 * strips, grids and ways of squeezing; it shares no code with the planner's. RFX_CASES (default 60)
 * random graphs of local ops, several budgets each: the least predicted time of the plans that fit
 * must be what the planner finds, or more than it finds where streams have their own rows a step or
 * go around a waist, which the loops leave out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/random_graph.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/splits.h"
#include "tiler/plan/tiling.h"

enum { MAX_NODES = 64, LAST_CUTS = 3, SPREAD_CUTS = 4, BANDS = 7, STRIPS = 11, BUDGETS = 8 };
static const int64_t bands[BANDS] = {2, 4, 8, 16, 32, 64, 128};
static const int64_t strips[STRIPS] = {2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48};

struct known_plan {
    size_t peak;
    uint64_t cost;
};

struct exhaustive {
    struct rfx_graph *graph;
    struct rfx_plan_request request;
    int outputs[MAX_NODES], n_outputs;         /* nodes, each once */
    int cuts[MAX_NODES], n_cuts;               /* all */
    int ends[LAST_CUTS + SPREAD_CUTS], n_ends; /* where streams may end */
    struct known_plan *plans;
    size_t n, capacity;
    int recomputing; /* answers that compute something twice */
    int better;      /* than the loops have any */
};

static void note(struct exhaustive *e, const struct rfx_stage_spec *stages, int n_stages,
                 bool weights) {
    struct rfx_plan_request request = e->request;
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    request.stages = stages;
    request.n_stages = n_stages;
    request.asked.weights_by_stage = weights;
    if (rfx_plan_create(e->graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    if (e->n == e->capacity) {
        e->capacity = e->capacity == 0 ? 1024 : 2 * e->capacity;
        e->plans = realloc(e->plans, e->capacity * sizeof *e->plans);
        assert_non_null(e->plans);
    }
    e->plans[e->n++] = (struct known_plan){plan->peak_bytes, plan->cost};
    rfx_plan_free(plan);
}

static struct rfx_stage_spec stage(const struct rfx_mode *mode, const int *targets, int n) {
    struct rfx_stage_spec spec = {
        .mode = mode, .tiles_y = 1, .tiles_x = 1, .n_targets = n, .targets = targets};
    return spec;
}

/* The outputs that the first stages do not make. */
static int rest_of(const struct exhaustive *e, const struct rfx_stage_spec *stages, int n_stages,
                   int *rest) {
    int n = 0;
    for (int k = 0; k < e->n_outputs; k++) {
        bool made = false;
        for (int s = 0; s < n_stages; s++)
            for (int t = 0; t < stages[s].n_targets; t++)
                made |= stages[s].targets[t] == e->outputs[k];
        if (!made) rest[n++] = e->outputs[k];
    }
    return n;
}

/* Notes the stages, followed by what is left run whole, in all ways; few: only the ways that the
 * planner uses where there are many plans (tiles and strips). */
static void note_ways(struct exhaustive *e, struct rfx_stage_spec *stages, int n_stages, bool few) {
    int rest[MAX_NODES];
    int n_rest = rest_of(e, stages, n_stages, rest);
    for (int way = 0; way < 8; way++) {
        bool tight = (way & 1) != 0, rows = (way & 2) != 0, weights = (way & 4) != 0;
        if (few && rows != weights) continue;
        if (tight && (n_stages == 0 || stages[0].mode != &rfx_mode_streamed)) continue;
        for (int s = 0; s < n_stages; s++) {
            stages[s].staging = tight;
            stages[s].row_by_row = rows && stages[s].mode == &rfx_mode_streamed;
        }
        stages[n_stages] = stage(&rfx_mode_whole, rest, n_rest);
        stages[n_stages].row_by_row = rows;
        note(e, stages, n_stages + (n_rest > 0), weights);
    }
}

static void note_streams(struct exhaustive *e, const int *targets, int n_targets, int64_t width) {
    int64_t h = e->request.source.h;
    for (int b = 0; b < BANDS; b++) {
        if (b > 0 && bands[b - 1] >= h) break; /* the same as the band before */
        struct rfx_stage_spec stages[2] = {stage(&rfx_mode_streamed, targets, n_targets)};
        stages[0].band_rows = bands[b];
        note_ways(e, stages, 1, false);
        for (int i = 0; i < STRIPS && (i == 0 || strips[i - 1] < width); i++) {
            stages[0] = stage(&rfx_mode_streamed, targets, n_targets);
            stages[0].band_rows = bands[b];
            stages[0].tiles_x = strips[i];
            note_ways(e, stages, 1, true);
        }
    }
}

/* Rows with which two streams are tried; then each is given its own number. */
static bool is_pair_band(int64_t rows) {
    for (int b = 1; b < BANDS; b += 2)
        if (bands[b] == rows) return true;
    return false;
}

static void note_two_streams(struct exhaustive *e, const int *first, const int *second) {
    for (int b = 1; b < BANDS; b += 2) { /* 4, 16, 64 rows */
        struct rfx_stage_spec stages[3] = {stage(&rfx_mode_streamed, first, 1),
                                           stage(&rfx_mode_streamed, second, 1)};
        stages[0].band_rows = stages[1].band_rows = bands[b];
        note_ways(e, stages, 2, false);
    }
}

static void note_tiles(struct exhaustive *e, const int *cut) {
    int64_t ys[RFX_TILING_MAX_COUNTS], xs[RFX_TILING_MAX_COUNTS];
    const struct rfx_tensor *map = &e->graph->nodes[*cut].out;
    int n_y = rfx_tiling_counts(map->h, ys);
    int n_x = rfx_tiling_counts(map->w, xs);
    for (int y = 0; y < n_y; y++)
        for (int x = 0; x < n_x; x++) {
            struct rfx_stage_spec stages[2] = {stage(&rfx_mode_tiled, cut, 1)};
            stages[0].tiles_y = ys[y];
            stages[0].tiles_x = xs[x];
            note_ways(e, stages, 1, true);
        }
}

static void note_all(struct exhaustive *e) {
    struct rfx_stage_spec whole[1];
    int64_t width = 1;
    for (int k = 0; k < e->n_outputs; k++)
        if (e->graph->nodes[e->outputs[k]].out.w > width)
            width = e->graph->nodes[e->outputs[k]].out.w;
    note_ways(e, whole, 0, false);
    note_streams(e, e->outputs, e->n_outputs, width);
    for (int i = 0; i < e->n_cuts; i++) note_tiles(e, &e->cuts[i]);
    for (int i = 0; i < e->n_ends; i++) {
        note_streams(e, &e->ends[i], 1, e->graph->nodes[e->ends[i]].out.w);
        for (int j = i + 1; j < e->n_ends; j++) note_two_streams(e, &e->ends[i], &e->ends[j]);
    }
}

static int compare_peaks(const void *pa, const void *pb) {
    const struct known_plan *a = pa;
    const struct known_plan *b = pb;
    return (a->peak > b->peak) - (a->peak < b->peak);
}

/* Whether a plan that takes less time than all known ones is of a kind that they leave out, and
 * takes that time made by hand. */
static bool may_be_better(const struct exhaustive *e, const struct rfx_plan *plan) {
    struct rfx_plan_request request = e->request;
    struct rfx_stage_spec stages[MAX_NODES];
    struct rfx_plan *again = NULL;
    struct rfx_error err = {{0}};
    int streams = 0;
    bool differ = false;
    for (int s = 0; s < plan->n_stages; s++) {
        stages[s] = plan->stages[s].spec;
        streams += stages[s].mode == &rfx_mode_streamed;
        differ |=
            streams > 1 && stages[s].mode == &rfx_mode_streamed &&
            (stages[s].band_rows != stages[0].band_rows || !is_pair_band(stages[0].band_rows));
    }
    request.stages = stages;
    request.n_stages = plan->n_stages;
    if (rfx_plan_create(e->graph, &request, &again, &err) != RFX_OK) fail_msg("%s", err.text);
    bool same = again->cost == plan->cost;
    rfx_plan_free(again);
    return same && (differ || streams > 2);
}

/* Budgets at peaks of known plans, from the smallest to the untiled one; returns mismatches. */
static int compare(struct exhaustive *e, uint64_t seed) {
    size_t untiled = e->plans[0].peak;
    int wrong = 0;
    qsort(e->plans, e->n, sizeof *e->plans, compare_peaks);
    size_t least = e->plans[0].peak;
    for (int i = 0; i < BUDGETS; i++) {
        size_t budget = least + (untiled - least) * (size_t)i / BUDGETS;
        uint64_t best = UINT64_MAX;
        for (size_t p = 0; p < e->n && e->plans[p].peak <= budget; p++)
            if (e->plans[p].cost < best) best = e->plans[p].cost;
        struct rfx_plan_request request = e->request;
        struct rfx_plan *plan = NULL;
        struct rfx_error err = {{0}};
        request.memory_bytes = budget;
        bool made = rfx_plan_create(e->graph, &request, &plan, &err) == RFX_OK;
        if (made) assert_true(plan->peak_bytes <= budget);
        if (made) e->recomputing += plan->macs > plan->macs_untiled;
        bool better = made && plan->cost < best && may_be_better(e, plan);
        e->better += better;
        if (!better && (!made || plan->cost != best)) {
            char text[RFX_PLAN_TEXT] = "none";
            if (made) rfx_plan_describe(plan, text, sizeof text);
            fprintf(stderr,
                    "seed %llu, budget %zu (least %zu, untiled %zu): best %llu, planner "
                    "%llu %s\n",
                    (unsigned long long)seed, budget, least, untiled, (unsigned long long)best,
                    (unsigned long long)(made ? plan->cost : 0), text);
            wrong++;
        }
        rfx_plan_free(plan);
    }
    return wrong;
}

/* Of many cuts streams use the last three, and four in the middle of equal shares of the others. */
static void choose_ends(struct exhaustive *e) {
    int others = e->n_cuts - LAST_CUTS;
    for (int i = 0; i < e->n_cuts; i++) {
        bool chosen = i >= others || others <= SPREAD_CUTS;
        for (int k = 0; k < SPREAD_CUTS; k++)
            chosen |= i == (int)((k + 0.5) * others / SPREAD_CUTS);
        if (chosen) e->ends[e->n_ends++] = e->cuts[i];
    }
}

/* false: the graph is not one for this test. Every second seed asks for a deep one, which has more
 * cuts than the planner looks at. */
static bool try_graph(uint64_t seed, int *wrong, int *recomputing, int *better, int *deep,
                      size_t *plans) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct random_graph_options options = random_graph_defaults();
    options.spatial_only = true;
    options.min_size = 6;
    options.max_size = 40;
    options.min_nodes = 3;
    options.max_nodes = 7;
    if (seed % 2 == 0) {
        options.min_nodes = 12;
        options.max_nodes = 20;
        options.max_size = 24;
    }
    struct exhaustive e = {.graph = random_graph_make(mem, seed, &options)};
    const struct rfx_tensor *input = &e.graph->nodes[e.graph->input].out;
    e.request.source = (struct rfx_source_traits){
        .h = input->h, .w = input->w, .c = input->c, .random_access = true};
    e.request.threads = 1;
    bool fit = e.graph->n_nodes <= MAX_NODES;
    for (int k = 0; fit && k < e.graph->n_outputs; k++) {
        int node = e.graph->outputs[k].node;
        fit = e.graph->nodes[node].out.layout == RFX_LAYOUT_NHWC &&
              !rfx_node_is_constant(&e.graph->nodes[node]) && node != e.graph->input;
        bool there = false;
        for (int i = 0; i < e.n_outputs; i++) there |= e.outputs[i] == node;
        if (!there) e.outputs[e.n_outputs++] = node;
    }
    if (fit) e.n_cuts = rfx_splits_list(e.graph, e.cuts);
    bool is_deep = e.n_cuts > LAST_CUTS + SPREAD_CUTS;
    fit = fit && e.n_cuts > 0 && is_deep == (seed % 2 == 0);
    if (fit) {
        choose_ends(&e);
        *deep += is_deep;
        note_all(&e);
        *wrong += compare(&e, seed);
        *recomputing += e.recomputing;
        *better += e.better;
        *plans += e.n;
    }
    free(e.plans);
    rfx_graph_free(e.graph);
    rfx_memory_free(mem);
    return fit;
}

static void best_of_all(void **state) {
    (void)state;
    int64_t cases = test_env_int("RFX_CASES", 60);
    uint64_t seed = (uint64_t)test_env_int("RFX_SEED", 1);
    int wrong = 0;
    int recomputing = 0;
    int better = 0;
    int deep = 0;
    size_t plans = 0;
    int64_t done = 0;
    for (int64_t i = 0; done < cases && i < 20 * cases; i++)
        done += try_graph(seed + (uint64_t)i, &wrong, &recomputing, &better, &deep, &plans);
    fprintf(
        stderr,
        "test_planner_exhaustive: %lld graphs, %d with more cuts than are looked at, %zu plans, "
        "%d answers that recompute, %d better, %d differ\n",
        (long long)done, deep, plans, recomputing, better, wrong);
    assert_int_equal(done, cases);
    assert_true(recomputing > cases / 4);
    assert_true(deep > cases / 10);
    assert_int_equal(wrong, 0);
    assert_true(better < cases / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(best_of_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
