/* The cost model: what is counted by hand, what grows with what, and that a plan's time is the sum
 * of its counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/run/model.h"
#include "tests/support/random/small_nets.h"
#include "tiler/cost/cost.h"
#include "tiler/cost/cost_constants.h"
#include "tiler/modes/modes.h"

#define MIB ((size_t)1 << 20)

static const struct rfx_caches roomy = {64 * MIB, 512 * MIB}, tiny = {4096, 32768};

static struct rfx_cost_counts count_untiled(const struct rfx_graph *graph,
                                            const struct rfx_caches *caches, int threads,
                                            uint64_t *time) {
    struct rfx_cost_model model = {0};
    struct rfx_cost_counts counts = {{0}};
    struct rfx_error err;
    assert_int_equal(rfx_cost_init(&model, graph, caches, threads, &err), RFX_OK);
    rfx_cost_count_untiled(&model, &counts);
    if (time != NULL) *time = rfx_cost_picoseconds(&model, &counts);
    rfx_cost_release(&model);
    return counts;
}

/* 20 x 12 positions of a and b (of 4 channels), 10 x 6 of c, b's sum, the mean; the image has 2
 * channels. Constants are read once, by each thread. */
static void by_hand(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(20, 12);
    struct rfx_cost_counts c = count_untiled(f.graph, &roomy, 1, NULL);
    bool direct = rfx_kernels()->conv != NULL;
    double filled = direct ? 16.0 : 4.0, filled_c = direct ? 16.0 : 3.0;
    double macs = 240.0 * 9 * (2 + 4) * filled + 60.0 * 9 * 4 * filled_c;
    double constants = 0.0;
    for (int i = 0; i < f.graph->n_nodes; i++)
        constants += (double)rfx_op_packed_bytes(f.graph, &f.graph->nodes[i]);
    double dense = c.n[RFX_COST_DIRECT_MAC] + c.n[RFX_COST_OPENBLAS_MAC];
    if (c.n[RFX_COST_FEW_MAC] == 0.0) assert_true(dense == macs);
    assert_true(c.n[RFX_COST_IMAGE_ELEMENT] == 480.0);
    assert_true(c.n[RFX_COST_SUM_ELEMENT] == 180.0);
    assert_true(c.n[RFX_COST_STEP] == 6.0);
    assert_true(c.n[RFX_COST_ELEMENT] == 960.0 + 3.0);
    assert_true(c.n[RFX_COST_COLD_BYTE] == constants && c.n[RFX_COST_DRAM_BYTE] == 0.0);
    assert_true(c.n[RFX_COST_SHARED_BYTE] == 0.0 && c.n[RFX_COST_PLAIN_BYTE] == 0.0);
    assert_true(c.n[RFX_COST_MEETING] == 0.0 && c.n[RFX_COST_LOAD_BYTE] == 0.0);
    struct rfx_cost_counts two = count_untiled(f.graph, &roomy, 2, NULL);
    assert_true(two.n[RFX_COST_MEETING] == 6.0);
    assert_true(two.n[RFX_COST_COLD_BYTE] == 2.0 * constants);
    small_plan_case_end(&f);
}

/* Where no cache holds anything, a dense convolution reads and writes its maps once, beside its
 * products; any other node's output is read before it is written. */
static void bytes_by_hand(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(20, 12);
    struct rfx_caches none = {1, 1};
    struct rfx_cost_counts c = count_untiled(f.graph, &none, 1, NULL);
    double map = 240.0 * 4 * sizeof(float), image = map / 2, half = 60.0 * 3 * sizeof(float);
    assert_true(c.n[RFX_COST_AHEAD_BYTE] == (image + map) + (map + map) + (map + half));
    double mean = half + 2.0 * 3 * sizeof(float);
    assert_true(c.n[RFX_COST_DRAM_BYTE] == 2.0 * image + (2.0 + 2.0) * map + mean);
    small_plan_case_end(&f);
}

/* A part of a round sums its own rows: of c's 10 x 6 positions of 3 channels some. */
static void sums_of_a_part(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(20, 12);
    struct rfx_graph *part;
    assert_int_equal(rfx_part_graph_states(f.graph, 0, NULL, 0, RFX_PART_OUTER, 1, 3, &part, NULL),
                     RFX_OK);
    struct rfx_cost_counts c = count_untiled(part, &roomy, 1, NULL);
    int64_t rows = rfx_rect_rows(part->nodes[rfx_graph_find(part, "pool")].taken);
    assert_true(rows == 3 || rows == 4);
    assert_true(c.n[RFX_COST_SUM_ELEMENT] == (double)rows * 6 * 3);
    rfx_graph_free(part);
    small_plan_case_end(&f);
}

/* Smaller caches take nothing from the counts, and add bytes. */
static void rises_as_caches_shrink(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(200, 160);
    uint64_t last = 0;
    for (size_t bytes = 1 << 24; bytes >= 1 << 12; bytes /= 2) {
        struct rfx_caches caches = {bytes, 8 * bytes};
        uint64_t time;
        (void)count_untiled(f.graph, &caches, 1, &time);
        assert_true(time >= last);
        last = time;
    }
    uint64_t least, most;
    struct rfx_cost_counts a = count_untiled(f.graph, &roomy, 1, &least);
    struct rfx_cost_counts b = count_untiled(f.graph, &tiny, 1, &most);
    assert_true(most > least);
    for (int u = 0; u < RFX_COST_WEIGHT_BYTE; u++) assert_true(a.n[u] == b.n[u]);
    small_plan_case_end(&f);
}

static struct rfx_plan *plan_of(const struct small_plan_case *f, struct rfx_stage_spec asked,
                                const struct rfx_caches *caches) {
    struct rfx_plan_request request = f->request;
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    request.asked = asked;
    request.caches = *caches;
    request.no_groups = true;
    if (rfx_plan_create(f->graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    return plan;
}

static uint64_t time_of(const struct small_plan_case *f, struct rfx_stage_spec asked) {
    struct rfx_plan *plan = plan_of(f, asked, &roomy);
    uint64_t time = plan->cost;
    rfx_plan_free(plan);
    return time;
}

/* Short bands, many strips and grids, copies of rows and constants packed again: all take longer in
 * caches that hold everything. */
static void rises_with_steps(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(200, 160);
    uint64_t last = 0;
    for (int64_t rows = 128; rows >= 1; rows /= 2) {
        uint64_t time = time_of(&f, rfx_ask_bands(rows, 1));
        assert_true(time > last);
        last = time;
    }
    assert_true(time_of(&f, rfx_ask_bands(1, 1)) > time_of(&f, rfx_ask_bands(64, 1)));
    assert_true(time_of(&f, rfx_ask_bands(16, 8)) > time_of(&f, rfx_ask_bands(16, 2)));
    assert_true(time_of(&f, rfx_ask_tiles(8, 8)) > time_of(&f, rfx_ask_tiles(2, 2)));
    struct rfx_stage_spec plain = rfx_ask_bands(16, 1), staged = plain, loads = plain;
    staged.staging = loads.weights_by_stage = true;
    assert_true(time_of(&f, staged) > time_of(&f, plain));
    assert_true(time_of(&f, loads) > time_of(&f, plain));
    small_plan_case_end(&f);
}

/* A plan's time is what its counts come to, and the untiled plan's that of the graph. */
static void is_the_sum_of_counts(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(200, 160);
    struct rfx_stage_spec ways[] = {rfx_ask_whole(), rfx_ask_bands(8, 3), rfx_ask_tiles(3, 5)};
    struct rfx_cost_counts counts[16];
    assert_true(f.graph->n_nodes <= 16);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct rfx_plan *plan = plan_of(&f, ways[w], &tiny), *again = plan_of(&f, ways[w], &tiny);
        struct rfx_cost_model model = {0};
        struct rfx_cost_counts sum = {{0}};
        struct rfx_error err;
        assert_int_equal(plan->cost, again->cost);
        assert_int_equal(rfx_cost_count_plan(plan, &tiny, counts, &err), RFX_OK);
        assert_int_equal(rfx_cost_init(&model, f.graph, &tiny, 1, &err), RFX_OK);
        for (int i = 0; i < f.graph->n_nodes; i++)
            for (int u = 0; u < RFX_COST_UNITS; u++) sum.n[u] += counts[i].n[u];
        double time = (double)rfx_cost_picoseconds(&model, &sum);
        assert_true(time > 0.999999 * (double)plan->cost && time < 1.000001 * (double)plan->cost);
        if (w == 0) assert_int_equal(plan->cost, plan->cost_untiled);
        rfx_cost_release(&model);
        rfx_plan_free(plan);
        rfx_plan_free(again);
    }
    small_plan_case_end(&f);
}

static uint64_t time_of_network(int64_t size, bool no_groups) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    struct rfx_load_options options = {.h = size, .w = size};
    if (rfx_builtin_build(mem, "mobilenet_v2", &options, &graph, &err) != RFX_OK)
        fail_msg("%s", err.text);
    struct rfx_plan_request request = {
        .threads = 1, .caches = {1 * MIB, 16 * MIB}, .no_groups = no_groups};
    request.source =
        (struct rfx_source_traits){.h = size, .w = size, .c = 3, .random_access = true};
    if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_true((plan->grouped == NULL) == no_groups);
    uint64_t time = plan->cost;
    rfx_plan_free(plan);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return time;
}

/* Where maps exceed the caches, blocks whose maps stay in a core's take less time. */
static void groups_save_memory_traffic(void **state) {
    (void)state;
    if (rfx_kernels()->conv == NULL) skip(); /* blocks of canonical panels are not grouped */
    assert_true(time_of_network(1024, false) < time_of_network(1024, true));
}

/* What a node counts when it is made whole, at once. */
static struct rfx_cost_counts count_node(const struct rfx_graph *graph, const char *name) {
    struct rfx_cost_model model = {0};
    struct rfx_cost_counts counts = {{0}};
    struct rfx_error err;
    assert_int_equal(rfx_cost_init(&model, graph, &roomy, 1, &err), RFX_OK);
    rfx_cost_count_whole(&model, rfx_graph_find(graph, name), &counts);
    rfx_cost_release(&model);
    return counts;
}

/* Winograd: of 64 channels 64 x 64 tiles of 4x4 pixels with 36 products, whose factors are kept; of
 * 1024 at 16 x 16 pixels 64 tiles of 2x2 with 16, whose windows are transformed for each 128 of the
 * outputs and whose factors are made once, or in bands for each step. */
static void tiles_by_hand(void **state) {
    (void)state;
    struct rfx_load_options load = {.h = 256, .w = 256, .conv = RFX_CONV_WINOGRAD};
    struct small_plan_case f = small_plan_case_load("unet", &load);
    struct rfx_error err;
    if (rfx_kernels()->conv != NULL) {
        struct rfx_cost_counts kept = count_node(f.graph, "inc.double_conv.3");
        assert_true(kept.n[RFX_COST_WINOGRAD_MAC] == 4096.0 * 36 * 64 * 64);
        assert_true(kept.n[RFX_COST_TILE_ELEMENT] == 4096.0 * 36 * (64 + 64));
        assert_true(kept.n[RFX_COST_TILE_FACTOR] == 0.0 && kept.n[RFX_COST_DIRECT_MAC] == 0.0);
        const char *deep = "down4.maxpool_conv.1.double_conv.3";
        struct rfx_cost_counts made = count_node(f.graph, deep);
        assert_true(made.n[RFX_COST_WINOGRAD_MAC] == 64.0 * 16 * 1024 * 1024);
        assert_true(made.n[RFX_COST_TILE_ELEMENT] == 64.0 * 16 * (8 * 1024 + 1024));
        assert_true(made.n[RFX_COST_TILE_FACTOR] == 16.0 * 1024 * 1024);
        struct rfx_cost_counts *counts = test_calloc((size_t)f.graph->n_nodes, sizeof *counts);
        struct rfx_plan *plan = plan_of(&f, rfx_ask_bands(32, 1), &roomy);
        assert_int_equal(rfx_cost_count_plan(plan, &roomy, counts, &err), RFX_OK);
        double factors = counts[rfx_graph_find(f.graph, deep)].n[RFX_COST_TILE_FACTOR];
        assert_true(factors == 8 * 16.0 * 1024 * 1024); /* 2 of 16 rows a step */
        rfx_plan_free(plan);
        test_free(counts);
    }
    small_plan_case_end(&f);
}

enum { A = 1, SUM = 3, C, POOL };

/* Streams 4 rows at a time up to "c", with "a", "b" and "sum" as a group or one by one. */
static struct rfx_plan *plan_of_bands(struct small_plan_case *f, int n_groups) {
    static const struct rfx_group_attr group = {
        .first = A, .last = SUM, .strip_cols = 8, .strips = 1, .step_rows = 2};
    static const int c = C, pool = POOL;
    const struct rfx_stage_spec stages[2] = {
        {.mode = &rfx_mode_streamed,
         .tiles_y = 1,
         .tiles_x = 1,
         .band_rows = 4,
         .n_targets = 1,
         .targets = &c},
        {.mode = &rfx_mode_whole, .tiles_y = 1, .tiles_x = 1, .n_targets = 1, .targets = &pool}};
    f->request.stages = stages;
    f->request.n_stages = 2;
    f->request.groups = &group;
    f->request.n_groups = n_groups;
    return small_plan_case_make(f);
}

static double time_of_nodes(const struct rfx_plan *plan, const struct rfx_caches *caches, int first,
                            int last) {
    struct rfx_cost_counts counts[16], all = {{0}};
    struct rfx_cost_model model = {0};
    struct rfx_error err;
    assert_int_equal(rfx_cost_count_plan(plan, caches, counts, &err), RFX_OK);
    assert_int_equal(rfx_cost_init(&model, plan->graph, caches, 1, &err), RFX_OK);
    for (int i = first; i <= last; i++)
        for (int u = 0; u < RFX_COST_UNITS; u++) all.n[u] += counts[i].n[u];
    double time = (double)rfx_cost_picoseconds(&model, &all);
    rfx_cost_release(&model);
    return time;
}

/* A group takes the time that the plan counts for it; apart, its nodes take what they take in the
 * same stages without groups, where caches hold everything. Where they do not, that is more: a
 * stream without any group touches more bytes in a step. The 4 rows of a step read 6 of the group's
 * first map. A stage that does not run the group adds nothing but its rounding. */
static void times_of_groups(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(24, 24);
    struct rfx_cost_times times[16];
    struct rfx_error err;
    struct rfx_plan *with = plan_of_bands(&f, 1), *without = plan_of_bands(&f, 0);
    assert_non_null(with->grouped);
    assert_null(without->grouped);
    for (int k = 0; k < 2; k++) {
        static const struct rfx_caches between = {12288, 49152};
        const struct rfx_caches *caches = k == 0 ? &roomy : &between;
        memset(times, 0xff, sizeof times);
        assert_int_equal(rfx_cost_time_groups(with, caches, times, &err), RFX_OK);
        double grouped = time_of_nodes(with, caches, SUM, SUM);
        double apart = time_of_nodes(without, caches, A, SUM);
        assert_true(times[SUM].grouped - grouped <= 2.0 && grouped <= times[SUM].grouped);
        if (k == 0) assert_true(times[SUM].apart - apart <= 2.0 && apart <= times[SUM].apart);
        if (k == 0) assert_true(times[SUM].grouped > 1.1 * times[SUM].apart);
        if (k == 1) assert_true(times[SUM].apart < apart);
        for (int i = 0; i < f.graph->n_nodes; i++)
            assert_true(i == SUM || (times[i].grouped == 0.0 && times[i].apart == 0.0));
    }
    for (int64_t k = 0;; k++) {
        size_t before = rfx_memory_current_bytes(f.mem);
        rfx_memory_fail_after(f.mem, k);
        enum rfx_status status = rfx_cost_time_groups(with, &roomy, times, &err);
        rfx_memory_fail_after(f.mem, -1);
        assert_int_equal(rfx_memory_current_bytes(f.mem), before);
        if (status == RFX_OK) break;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_true(k < 40);
    }
    rfx_plan_free(with);
    rfx_plan_free(without);
    small_plan_case_end(&f);
}

static void failing_allocations(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(20, 20);
    struct rfx_plan *plan = plan_of(&f, rfx_ask_bands(4, 2), &roomy);
    struct rfx_cost_counts counts[16];
    for (int64_t k = 0;; k++) {
        struct rfx_error err = {{0}};
        size_t before = rfx_memory_current_bytes(f.mem);
        rfx_memory_fail_after(f.mem, k);
        enum rfx_status status = rfx_cost_count_plan(plan, &roomy, counts, &err);
        rfx_memory_fail_after(f.mem, -1);
        assert_int_equal(rfx_memory_current_bytes(f.mem), before);
        if (status == RFX_OK) break;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_true(k < 20);
    }
    rfx_plan_free(plan);
    small_plan_case_end(&f);
}

/* The kernels in use have constants of their own, or else the first ones. */
static void constants_are_of_the_kernels(void **state) {
    (void)state;
    enum { SETS = sizeof cost_sets / sizeof *cost_sets };
    struct small_plan_case f = small_plan_case_begin(20, 12);
    const struct rfx_cost_set *set = &cost_sets[0];
    struct rfx_error err;
    for (int i = 0; i < SETS; i++)
        if (strcmp(cost_sets[i].kernels, rfx_kernels()->like) == 0) set = &cost_sets[i];
    for (int threads = 1; threads <= 2; threads++) {
        struct rfx_cost_model model = {0};
        assert_int_equal(rfx_cost_init(&model, f.graph, &roomy, threads, &err), RFX_OK);
        for (int u = 0; u < RFX_COST_UNITS; u++)
            assert_true(model.picoseconds[u] == set->picoseconds[u]);
        assert_true(model.dram_speed == (threads == 1 ? 1.0 : set->dram_speed));
        rfx_cost_release(&model);
    }
    small_plan_case_end(&f);
}

/* An image that is decoded from the top: once for all tiles, for each strip of a stream; one that
 * is read anywhere, never. */
static void passes_over_the_image(void **state) {
    const struct {
        struct rfx_stage_spec way;
        double passes;
    } cases[] = {{rfx_ask_whole(), 1.0},
                 {rfx_ask_tiles(2, 3), 1.0},
                 {rfx_ask_bands(4, 1), 1.0},
                 {rfx_ask_bands(4, 3), 3.0}};
    (void)state;
    struct small_plan_case f = small_plan_case_begin(24, 24);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int anywhere = 0; anywhere < 2; ++anywhere) {
            uint64_t times[2];
            for (int k = 0; k < 2; ++k) {
                f.request.source.random_access = anywhere == 1;
                f.request.source.pass_picoseconds = k == 0 ? 0.0 : 1e12;
                struct rfx_plan *plan = plan_of(&f, cases[i].way, &roomy);
                times[k] = plan->cost;
                rfx_plan_free(plan);
            }
            double passes = (double)(times[1] - times[0]) * 1e-12;
            double wanted = anywhere == 1 ? 0.0 : cases[i].passes;
            assert_true(passes > wanted - 1e-6 && passes < wanted + 1e-6);
        }
    small_plan_case_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(bytes_by_hand),
        cmocka_unit_test(sums_of_a_part),
        cmocka_unit_test(rises_as_caches_shrink),
        cmocka_unit_test(rises_with_steps),
        cmocka_unit_test(is_the_sum_of_counts),
        cmocka_unit_test(groups_save_memory_traffic),
        cmocka_unit_test(tiles_by_hand),
        cmocka_unit_test(constants_are_of_the_kernels),
        cmocka_unit_test(passes_over_the_image),
        cmocka_unit_test(times_of_groups),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
