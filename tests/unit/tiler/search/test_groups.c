/* Which nodes are grouped: whatever is chosen may be a group, overlaps nothing and fits the cache;
 * outputs and cuts asked for are never inside; plans with groups, by hand and chosen, are sound,
 * the same when they are asked for again, and never a reason to refuse a budget. Groups are given
 * up where short steps would compute their halos too often. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/run/plan_spoil.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_check.h"
#include "tiler/plan/plan_file.h"
#include "tiler/search/graph_variants.h"
#include "tiler/search/plan_counts.h"

#define KIB ((size_t)1024)

enum { INPUT, A, B, SUM, C, POOL };

static int choose(const struct rfx_graph *graph, struct rfx_caches caches, int threads, int kept,
                  struct rfx_group_attr *groups) {
    struct rfx_error err;
    int n = -1;
    assert_int_equal(rfx_groups_choose(graph, &caches, threads, kept, groups, &n, &err), RFX_OK);
    for (int g = 0; g < n; g++) {
        const struct rfx_group_attr *a = &groups[g];
        const char *why = rfx_group_refusal(graph, a->first, a->last);
        if (why != NULL) fail_msg("group %d..%d: %s", a->first, a->last, why);
        assert_true(g == 0 || a->first > a[-1].last);
        assert_true(a->strip_cols >= 1 && a->strips >= 1 && a->step_rows >= 1);
        assert_true(a->strip_cols <= graph->nodes[a->last].out.w);
        assert_true(rfx_group_ring_bytes(a) <= caches.second_bytes);
        assert_false(kept >= a->first && kept < a->last);
        for (int i = a->first; i < a->last; i++)
            assert_int_equal(rfx_graph_count_outputs(graph, i), 0);
    }
    return n;
}

static void networks(void **state) {
    static const struct {
        const char *name;
        int64_t size;
        int least; /* groups in 1 MiB */
    } cases[] = {{"mobilenet_v2", 512, 8}, {"resnet18", 448, 1}, {"unet", 256, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph =
            test_builtin(mem, cases[i].name, cases[i].size, cases[i].size, 1, NULL);
        struct rfx_group_attr *groups = calloc((size_t)graph->n_nodes, sizeof *groups);
        assert_non_null(groups);
        for (size_t cache = 256 * KIB; cache <= 4096 * KIB; cache *= 2)
            for (int threads = 1; threads <= 4; threads *= 2) {
                struct rfx_caches caches = {cache, 8 * cache};
                int n = choose(graph, caches, threads, -1, groups);
                fprintf(stderr, "%s, %zu KiB, %d threads: %d groups\n", cases[i].name, cache / KIB,
                        threads, n);
                if (cache == 1024 * KIB && threads == 1) assert_true(n >= cases[i].least);
            }
        free(groups);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
}

/* A strip of a group is computed by one thread. Maps that are too narrow for two strips are grouped
 * for one thread, but not for two, of which one would wait. */
static void every_thread_has_work(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = test_builtin(mem, "mobilenet_v2", 224, 224, 1, NULL);
    struct rfx_group_attr *groups = calloc((size_t)graph->n_nodes, sizeof *groups);
    struct rfx_caches caches = {512 * KIB, 16384 * KIB};
    int narrow[3] = {0};
    (void)state;
    assert_non_null(groups);
    for (int threads = 1; threads <= 2; threads++) {
        int n = choose(graph, caches, threads, -1, groups);
        for (int g = 0; g < n; g++) {
            const struct rfx_tensor *out = &graph->nodes[groups[g].last].out;
            int64_t strips = rfx_group_strips(&groups[g], out->w);
            narrow[threads] += strips * rfx_group_row_parts(&groups[g], out->h, strips) < 2;
        }
    }
    assert_true(narrow[1] > 0);
    assert_int_equal(narrow[2], 0);
    free(groups);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Nothing is gained where all maps stay in a cache anyhow. */
static void small_maps_stay(void **state) {
    struct small_plan_case f = small_plan_case_begin(24, 20);
    struct rfx_group_attr groups[POOL + 1];
    struct rfx_caches large = {4096 * KIB, 16384 * KIB}, small = {64 * KIB, 128 * KIB};
    (void)state;
    assert_int_equal(choose(f.graph, large, 1, -1, groups), 0);
    small_plan_case_end(&f);
    f = small_plan_case_begin(400, 400);
    assert_true(choose(f.graph, small, 1, -1, groups) > 0);
    assert_true(groups[0].first >= A && groups[0].last <= C);
    (void)choose(f.graph, small, 1, SUM, groups); /* a cut is asked for there */
    (void)choose(f.graph, small, 1, B, groups);
    small_plan_case_end(&f);
}

static void kept_nodes(void **state) {
    int grouped = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct random_graph_options options = random_graph_defaults();
        options.min_size = 90;
        options.max_size = 140;
        options.max_elems = 400000;
        options.quantised = 25;
        struct rfx_graph *graph = random_graph_make(mem, seed, &options);
        struct rfx_group_attr *groups = calloc((size_t)graph->n_nodes, sizeof *groups);
        struct rfx_caches caches = {16 * KIB, 24 * KIB};
        assert_non_null(groups);
        for (int kept = -1; kept < graph->n_nodes; kept++)
            grouped += choose(graph, caches, 1 + (int)(seed % 3), kept, groups);
        free(groups);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    assert_true(grouped > 200);
}

static enum rfx_status choose_and_free(struct rfx_memory *mem, void *context,
                                       struct rfx_error *err) {
    struct rfx_graph *graph = context;
    struct rfx_memory *own = graph->mem;
    struct rfx_plan_request request = {.threads = 1, .caches = {64 * KIB, 128 * KIB}};
    struct rfx_graph *grouped = NULL;
    graph->mem = mem;
    enum rfx_status status = rfx_groups_apply(graph, &request, &grouped, err);
    if (status == RFX_OK) assert_non_null(grouped);
    rfx_graph_free(grouped);
    graph->mem = own;
    return status;
}

static void assert_same_groups(const struct rfx_plan *a, const struct rfx_plan *b) {
    assert_int_equal(a->macs, b->macs);
    for (int i = 0; i < a->graph->n_nodes; i++) {
        assert_int_equal(a->graph->nodes[i].op, b->graph->nodes[i].op);
        if (a->graph->nodes[i].op != RFX_OP_GROUP) continue;
        const struct rfx_group_attr *x = &a->graph->nodes[i].attr.group;
        const struct rfx_group_attr *y = &b->graph->nodes[i].attr.group;
        assert_int_equal(x->first, y->first);
        assert_int_equal(x->strip_cols, y->strip_cols);
        assert_int_equal(x->strips, y->strips);
        assert_int_equal(x->step_rows, y->step_rows);
    }
}

static void assert_same_plan(const struct rfx_plan *a, const struct rfx_plan *b) {
    assert_int_equal(a->peak_bytes, b->peak_bytes);
    assert_int_equal(a->bytes.arena, b->bytes.arena);
    assert_int_equal(a->n_stages, b->n_stages);
    assert_same_groups(a, b);
}

/* A plan for each of some budgets is written, read back, and the same. Maps are so wide that groups
 * pay for three threads too, whose strips are narrower. */
static void written_and_read(void **state) {
    int with_groups = 0;
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct small_plan_case f = small_plan_case_begin(400, 1500 + 7 * i);
        struct rfx_plan_file *file = NULL;
        struct rfx_error err = {{0}};
        char *text = NULL;
        f.request.caches = (struct rfx_caches){128 * KIB, 128 * KIB};
        f.request.threads = 1 + i % 3;
        struct rfx_plan *plan = small_plan_case_make(&f);
        f.request.memory_bytes = plan->peak_bytes - (size_t)i * 100 * KIB;
        rfx_plan_free(plan);
        plan = small_plan_case_make(&f);
        if (plan->grouped != NULL) with_groups++;
        assert_int_equal(rfx_plan_file_text(plan, "net", &text, &err), RFX_OK);
        assert_int_equal(strstr(text, "\"groups\"") != NULL, plan->grouped != NULL);
        if (rfx_plan_file_parse(f.graph, text, strlen(text), "p", &file, &err) != RFX_OK)
            fail_msg("%s", err.text);
        rfx_plan_file_apply(file, &f.request);
        struct rfx_plan *again = small_plan_case_make(&f);
        assert_same_plan(plan, again);
        rfx_plan_free(plan);
        rfx_plan_free(again);
        rfx_plan_file_free(file);
        rfx_memory_release(f.mem, text);
        small_plan_case_end(&f);
    }
    print_message("%d plans with groups\n", with_groups);
    assert_true(with_groups > 6);
}

/* Exactly what is named as the smallest budget is enough, groups or not. */
static void smallest_budgets(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct small_plan_case f = small_plan_case_begin(200 + 40 * i, 500 - 30 * i);
        struct rfx_plan *plan = NULL, *with = NULL, *without = NULL;
        struct rfx_error err = {{0}};
        f.request.memory_bytes = 1;
        assert_int_equal(rfx_plan_create_or_smallest(f.graph, &f.request, &plan, &without, &err),
                         RFX_STATUS_BUDGET_IMPOSSIBLE);
        f.request.caches = (struct rfx_caches){(size_t)(8 + 8 * i) * KIB, 64 * KIB};
        assert_int_equal(rfx_plan_create_or_smallest(f.graph, &f.request, &plan, &with, &err),
                         RFX_STATUS_BUDGET_IMPOSSIBLE);
        assert_true(with->peak_bytes <= without->peak_bytes);
        char named[64];
        (void)snprintf(named, sizeof named, "at least %zu bytes", with->peak_bytes);
        if (strstr(err.text, named) == NULL) fail_msg("no \"%s\" in: %s", named, err.text);
        f.request.memory_bytes = with->peak_bytes;
        plan = small_plan_case_make(&f);
        assert_true(plan->peak_bytes <= f.request.memory_bytes);
        rfx_plan_free(plan);
        rfx_plan_free(with);
        rfx_plan_free(without);
        small_plan_case_end(&f);
    }
}

/* Whatever the budget: a plan wherever one without groups fits, and none that is much slower than
 * that by the planner's own prediction. On the way down groups are left out somewhere. */
static void never_much_slower(void **state) {
    int grouped = 0, left_out = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct small_plan_case f = small_plan_case_begin(400, 300 + 50 * i);
        struct rfx_plan *none = NULL, *least = NULL;
        struct rfx_error err;
        f.request.memory_bytes = 1;
        assert_int_equal(rfx_plan_create_or_smallest(f.graph, &f.request, &none, &least, &err),
                         RFX_STATUS_BUDGET_IMPOSSIBLE);
        for (size_t more = 0; more < 4000 * KIB; more = 2 * more + 3 * KIB) {
            f.request.memory_bytes = least->peak_bytes + more;
            f.request.caches = (struct rfx_caches){64 * KIB, 128 * KIB};
            f.request.no_groups = true;
            struct rfx_plan *plain = small_plan_case_make(&f);
            f.request.no_groups = false;
            struct rfx_plan *plan = small_plan_case_make(&f);
            assert_null(plain->grouped);
            assert_true(plan->peak_bytes <= f.request.memory_bytes);
            if (plan->cost / 100 * 75 > plain->cost)
                fail_msg("%zu bytes more: %llu against %llu", more, (unsigned long long)plan->cost,
                         (unsigned long long)plain->cost);
            if (plan->grouped != NULL)
                grouped++;
            else
                left_out++;
            rfx_plan_free(plain);
            rfx_plan_free(plan);
        }
        rfx_plan_free(least);
        small_plan_case_end(&f);
    }
    fprintf(stderr, "%d plans with groups, %d without\n", grouped, left_out);
    assert_true(grouped > 5 && left_out > 2);
}

/* small_net_two_scales, streamed so many rows at a time within a roomy budget, by one thread. */
static struct small_plan_case begin_two_scales(int64_t rows) {
    struct small_plan_case f = {.mem = rfx_memory_create(0)};
    f.graph = small_net_two_scales(f.mem, 64, 64);
    f.request.source = (struct rfx_source_traits){.h = 64, .w = 64, .c = 8, .random_access = true};
    f.request.threads = 1;
    f.request.caches = (struct rfx_caches){256 * KIB, 512 * KIB};
    f.request.memory_bytes = 1024 * 1024 * KIB;
    f.request.asked = rfx_ask_bands(rows, 1);
    return f;
}

static enum rfx_status plan_and_free(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct small_plan_case *f = context;
    struct rfx_memory *own = f->graph->mem;
    struct rfx_plan *plan = NULL;
    f->graph->mem = mem;
    enum rfx_status status = rfx_plan_create(f->graph, &f->request, &plan, err);
    rfx_plan_free(plan);
    f->graph->mem = own;
    return status;
}

static void failing_allocations(void **state) {
    struct small_plan_case f = small_plan_case_begin(400, 400);
    (void)state;
    assert_true(test_fail_each_allocation(choose_and_free, f.graph) > 10);
    small_plan_case_end(&f);
    if (rfx_kernels()->conv == NULL) return; /* blocks of canonical panels are not grouped */
    f = begin_two_scales(8);
    assert_true(test_fail_each_allocation(plan_and_free, &f) > 100);
    small_plan_case_end(&f);
}

/* The plan does not depend on the memory that is left: one allocation that fails, whichever it is,
 * is an error or changes nothing. */
static void one_failing_allocation(void **state) {
    (void)state;
    if (rfx_kernels()->conv == NULL) return;
    struct small_plan_case f = begin_two_scales(8);
    f.request.memory_bytes = 0; /* groups are kept or left out as a whole: here they are left out */
    struct rfx_plan *wanted = small_plan_case_make(&f);
    int64_t failed = 0;
    assert_null(wanted->grouped);
    for (int64_t k = 0;; k++) {
        struct rfx_plan *plan = NULL;
        struct rfx_error err = {{0}};
        uint64_t before = rfx_memory_allocation_count(f.mem);
        rfx_memory_fail_once(f.mem, k);
        enum rfx_status status = rfx_plan_create(f.graph, &f.request, &plan, &err);
        rfx_memory_fail_after(f.mem, -1);
        bool all = rfx_memory_allocation_count(f.mem) - before <= (uint64_t)k;
        failed += status == RFX_STATUS_OUT_OF_MEMORY;
        if (status == RFX_OK)
            assert_same_plan(plan, wanted);
        else
            assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        rfx_plan_free(plan);
        if (status == RFX_OK && all) break;
    }
    assert_true(failed > 100);
    rfx_plan_free(wanted);
    small_plan_case_end(&f);
}

/* For whole maps, "a", "b" and "less" are one group. In steps of few rows it does not pay: of its
 * 64 rows, "a" computes more again the shorter the steps are. Row y of "less" needs rows 8y - 1 to
 * 8y + 8 of "a", and row 8y + 9 of the image. So the 8 rows of "less" come one by one in bands of 8
 * image rows; 1, 2, 2, 2, 1 of them in bands of 16; 3, 4, 1 in bands of 32. The shorter group of
 * "b" and "less" computes nothing again: windows of "less" do not overlap. What pays in bands of 16
 * and of 32 depends on the processor, for which the kernels have their constants. */
static void halos_of_short_steps(void **state) {
    enum { IMAGE, FIRST, SECOND, LESS };
    static const struct {
        int64_t bands, rows_of_a;
        bool pays;
    } cases[] = {{8, 9 + 6 * 10 + 9, false}, {16, 9 + 3 * 18 + 9, true}, {32, 25 + 34 + 9, true}};
    const bool known = strcmp(rfx_kernels()->like, "avx512") == 0;
    const uint64_t of_a = 64 * 9 * 8 * 16; /* MACs of a row */
    const uint64_t once = 64 * of_a + 64 * 64 * 9 * 16 * 16 + 64 * 9 * (16 + 64) * 64;
    (void)state;
    if (rfx_kernels()->conv == NULL) skip(); /* blocks of canonical panels are not grouped */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct small_plan_case f = begin_two_scales(cases[i].bands);
        struct rfx_group_attr groups[8];
        int n = choose(f.graph, f.request.caches, 1, -1, groups);
        assert_int_equal(groups[0].first, FIRST);
        assert_int_equal(groups[0].last, LESS);
        struct rfx_plan *plan = small_plan_case_make(&f);
        f.request.groups = groups;
        f.request.n_groups = n;
        struct rfx_plan *all = small_plan_case_make(&f);
        groups[0].first = SECOND;
        struct rfx_plan *less = small_plan_case_make(&f);
        assert_int_equal(all->macs, once + (uint64_t)(cases[i].rows_of_a - 64) * of_a);
        assert_int_equal(less->macs, once);
        assert_true(plan->cost <= all->cost);
        if (known) assert_same_groups(plan, cases[i].pays ? all : less);
        assert_true(plan->macs == once || (cases[i].pays && plan->macs == all->macs));
        rfx_plan_free(plan);
        rfx_plan_free(all);
        rfx_plan_free(less);
        small_plan_case_end(&f);
    }
}

/* Of 130 MACs, 25 are computed again: 10 by a group that loses time, then 4, 5 and 6 by groups that
 * save 0.5, 1 and 2 picoseconds for each. The second entry is no group. */
static void few_macs(void **state) {
    static const double gains[] = {-3.0, HUGE_VAL, 0.5, 2.0, 1.0}, again[] = {10, 0, 4, 6, 5};
    static const struct {
        double few, gain;
    } cases[] = {{140, 0}, {120, 0}, {119, 0.5}, {116, 0.5},
                 {111, 1}, {110, 2}, {105, 2},   {104, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(rfx_groups_least_gain(gains, again, 5, 130.0, cases[i].few) == cases[i].gain);
    assert_true(rfx_groups_least_gain(gains, again, 0, 130.0, 1.0) == 0.0);
}

/* Groups of very narrow strips, which make much twice and so take longer than none, are kept where
 * they are given. */
static void given_groups(void **state) {
    static const struct {
        struct rfx_group_attr groups[2];
        int n;
        const char *words; /* NULL: fine */
    } cases[] = {
        {{{.first = A, .last = SUM, .strip_cols = 2, .strips = 1, .step_rows = 1}}, 1, NULL},
        {{{.first = A, .last = B, .strip_cols = 2, .strips = 1, .step_rows = 1}},
         1,
         "groups[0]: a map inside is read outside"},
        {{{.first = A, .last = SUM, .strip_cols = 2, .strips = 1, .step_rows = 1},
          {.first = SUM, .last = C, .strip_cols = 2, .strips = 1, .step_rows = 1}},
         2,
         "groups[1]: it overlaps"},
        {{{.first = A, .last = SUM, .strip_cols = 0, .strips = 1, .step_rows = 1}},
         1,
         "groups[0]: strip_cols"},
    };
    struct small_plan_case f = small_plan_case_begin(60, 60);
    struct rfx_plan *plain = small_plan_case_make(&f);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_plan *plan = NULL;
        struct rfx_error err = {{0}};
        f.request.groups = cases[i].groups;
        f.request.n_groups = cases[i].n;
        if (cases[i].words == NULL) {
            plan = small_plan_case_make(&f);
            assert_non_null(plan->grouped);
            assert_true(plan->macs > plan->macs_untiled * 5 / 4);
            assert_int_equal(plan->cost, plan->cost_untiled); /* a whole run of the same groups */
            assert_true(plan->cost > plain->cost * 5 / 4);
            struct rfx_plan_group_counts counts = rfx_plan_count_groups(plan);
            assert_int_equal(counts.layers, 5);
            assert_int_equal(counts.grouped, 3);
            assert_int_equal(counts.groups, 1);
            assert_int_equal(counts.most_cols, 2);
            struct rfx_plan_group group;
            assert_int_equal(rfx_plan_list_groups(plan, &group, &err), RFX_OK);
            assert_int_equal(group.steps, 1);
            assert_int_equal(group.items, 30);
            rfx_plan_free(plan);
            continue;
        }
        assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        if (strstr(err.text, cases[i].words) == NULL) fail_msg("%s", err.text);
    }
    rfx_plan_free(plain);
    small_plan_case_end(&f);
}

/* Stages cannot store what a group keeps to itself; a cut there is refused in words. */
static void inner_nodes(void **state) {
    static const struct rfx_group_attr group = {
        .first = A, .last = SUM, .strip_cols = 8, .strips = 1, .step_rows = 2};
    static const int b = B, pool = POOL;
    struct rfx_stage_spec stages[2] = {{.mode = &rfx_mode_whole, .tiles_y = 1, .tiles_x = 1},
                                       {.mode = &rfx_mode_whole, .tiles_y = 1, .tiles_x = 1}};
    struct small_plan_case f = small_plan_case_begin(60, 60);
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    (void)state;
    stages[0].targets = &b;
    stages[1].targets = &pool;
    stages[0].n_targets = stages[1].n_targets = 1;
    f.request.groups = &group;
    f.request.n_groups = 1;
    f.request.stages = stages;
    f.request.n_stages = 2;
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "'b' lies inside a group"));
    f.request.stages = NULL;
    f.request.n_stages = 0;
    f.request.split = "a";
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "'a': it lies inside a group"));
    small_plan_case_end(&f);
}

/* A stream through a group, spoilt at one place at a time. */
static void spoilt(void **state) {
    static const struct rfx_group_attr group = {
        .first = A, .last = SUM, .strip_cols = 8, .strips = 1, .step_rows = 2};
    static const int c = C, pool = POOL;
    struct rfx_stage_spec stages[2] = {
        {.mode = &rfx_mode_streamed, .tiles_y = 1, .tiles_x = 1, .band_rows = 4, .n_targets = 1},
        {.mode = &rfx_mode_whole, .tiles_y = 1, .tiles_x = 1, .n_targets = 1}};
    struct small_plan_case f = small_plan_case_begin(24, 24);
    (void)state;
    stages[0].targets = &c;
    stages[1].targets = &pool;
    f.request.groups = &group;
    f.request.n_groups = 1;
    f.request.stages = stages;
    f.request.n_stages = 2;
    struct rfx_plan *plan = small_plan_case_make(&f);
    assert_int_equal(plan->stages[0].places[A], RFX_PLACE_NONE);
    assert_int_equal(plan->stages[0].nodes[B].buffer.bytes, 0);
    static const struct spoiling table[] = {
        {INPUT, RING_ROWS, ITSELF, BYTES, -1, "'sum': reads outside a view"},
        {INPUT, OFFSET, SUM, OFFSET, 0, "': reads a row that is not there"},
        {INPUT, BYTES, ITSELF, BYTES, -64, "'input': more bytes than its buffer"},
        {SUM, RING_ROWS, ITSELF, BYTES, -1, "'c': reads outside a view"},
        {SUM, BYTES, ITSELF, BYTES, -64, "'sum': more bytes than its buffer"},
        {INPUT, PLACE, ZERO, PLACE, RFX_PLACE_NONE, "'sum': an input is neither made nor kept"},
        {SUM, PLACE, ZERO, PLACE, RFX_PLACE_NONE, "'c': an input is neither made nor kept"},
        {A, MACS, ITSELF, MACS, -1, "MACs"},
    };
    SPOIL_EACH(plan, "grouped stream", table);
    rfx_plan_free(plan);
    small_plan_case_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks),
        cmocka_unit_test(every_thread_has_work),
        cmocka_unit_test(small_maps_stay),
        cmocka_unit_test(kept_nodes),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(one_failing_allocation),
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(smallest_budgets),
        cmocka_unit_test(halos_of_short_steps),
        cmocka_unit_test(few_macs),
        cmocka_unit_test(given_groups),
        cmocka_unit_test(inner_nodes),
        cmocka_unit_test(never_much_slower),
        cmocka_unit_test(spoilt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
