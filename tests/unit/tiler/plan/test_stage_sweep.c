/* Regions of all tiles of an axis: a sweep, which takes alike tiles together, gives what one tile
 * after the other gives. RFX_CASES and RFX_SEED in the environment ask for other networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/checked.h"
#include "rfexec/run/model.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/splits.h"
#include "tiler/plan/stage.h"
#include "tiler/search/graph_variants.h"

struct sums {
    const struct rfx_graph *graph;
    int64_t *most, *all; /* n_nodes */
    int64_t tiles, calls;
    struct rfx_tile_overlap overlap;
};

static void add(void *user, const struct rfx_axis_region *regions, int64_t tiles) {
    struct sums *s = user;
    s->tiles += tiles;
    s->calls++;
    rfx_tile_overlap_add(regions, s->graph->input, &s->overlap);
    for (int i = 0; i < s->graph->n_nodes; i++) {
        int64_t size = rfx_range_size(regions[i].clamped);
        s->most[i] = rfx_max_i64(s->most[i], size);
        s->all[i] += size * tiles;
    }
}

static struct sums begin(const struct rfx_graph *graph) {
    size_t n = (size_t)graph->n_nodes;
    struct sums s = {.graph = graph};
    s.most = test_calloc(2 * n, sizeof *s.most);
    s.all = s.most + n;
    return s;
}

/* Returns the calls that the sweep needed. */
static int64_t compare(const struct rfx_graph *graph, int split, enum rfx_axis axis, int64_t n,
                       const char *what) {
    size_t count = (size_t)graph->n_nodes;
    struct rfx_error err = {{0}};
    enum rfx_node_place *places = test_calloc(count, sizeof *places);
    bool *stored = test_calloc(2 * count, sizeof *stored), *in_file = stored + count;
    struct rfx_axis_region *regions = test_calloc(RFX_SWEEP_REGIONS * count, sizeof *regions);
    struct rfx_stage_spec spec = rfx_ask_tiles(2, 2);
    struct sums swept = begin(graph), each = begin(graph);
    spec.n_targets = 1;
    spec.targets = &split;
    if (split % 2 != 0)
        stored[split / 2] = in_file[split / 2] = true; /* fetched, if it is needed */
    if (rfx_stage_places(graph, &spec, false, stored, in_file, places, &err) != RFX_OK)
        fail_msg("%s", err.text);
    rfx_stage_sweep(graph, places, axis, n, regions, add, &swept);
    for (int64_t t = 0; t < n; t++) {
        rfx_stage_regions(graph, places, axis, n, t, regions);
        add(&each, regions, 1);
    }
    assert_int_equal(swept.tiles, n);
    if (swept.overlap.max_overlap != each.overlap.max_overlap)
        fail_msg("%s, split %d, axis %d, %d tiles: overlap %lld, one by one %lld", what, split,
                 (int)axis, (int)n, (long long)swept.overlap.max_overlap,
                 (long long)each.overlap.max_overlap);
    for (int i = 0; i < graph->n_nodes; i++)
        if (swept.most[i] != each.most[i] || swept.all[i] != each.all[i])
            fail_msg(
                "%s, split %d, axis %d, %d tiles, node %d: %lld and %lld in all, one by one "
                "%lld and %lld",
                what, split, (int)axis, (int)n, i, (long long)swept.most[i],
                (long long)swept.all[i], (long long)each.most[i], (long long)each.all[i]);
    int64_t calls = swept.calls;
    test_free(swept.most);
    test_free(each.most);
    test_free(places);
    test_free(stored);
    test_free(regions);
    return calls;
}

/* All legal splits, some numbers of tiles; returns the most tiles that were saved at once. */
static int64_t compare_all(const struct rfx_graph *graph, const char *what) {
    int *splits = test_calloc((size_t)graph->n_nodes, sizeof *splits);
    int64_t counts[RFX_TILING_MAX_COUNTS], saved = 0;
    int n_splits = rfx_splits_list(graph, splits);
    for (int s = 0; s < n_splits; s++)
        for (int axis = 0; axis < 2; axis++) {
            int64_t extent = rfx_node_extent(&graph->nodes[splits[s]], (enum rfx_axis)axis);
            int n = rfx_tiling_counts(extent, counts);
            for (int c = 0; c < n; c++)
                saved = rfx_max_i64(
                    saved,
                    counts[c] - compare(graph, splits[s], (enum rfx_axis)axis, counts[c], what));
        }
    test_free(splits);
    return saved;
}

/* The network with groups for a small cache, too. */
static int64_t compare_grouped(const struct rfx_graph *graph, const char *what) {
    struct rfx_error err = {{0}};
    struct rfx_graph *grouped = NULL;
    struct rfx_plan_request request = {
        .threads = 2, .caches = {.second_bytes = (size_t)1 << 20, .shared_bytes = (size_t)4 << 20}};
    if (rfx_groups_apply(graph, &request, &grouped, &err) != RFX_OK) fail_msg("%s", err.text);
    if (grouped == NULL) return 0;
    int64_t saved = compare_all(grouped, what);
    rfx_graph_free(grouped);
    return saved;
}

static void random_networks(void **state) {
    (void)state;
    int64_t seed = test_env_int("RFX_SEED", 1), cases = test_env_int("RFX_CASES", 150);
    struct random_graph_options options = random_graph_defaults();
    options.spatial_only = true;
    options.min_size = 8;
    options.max_size = 96;
    options.quantised = 25;
    int saved = 0;
    for (int64_t i = 0; i < cases; i++) {
        char what[64];
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph = random_graph_make(mem, (uint64_t)(seed + i), &options);
        (void)snprintf(what, sizeof what, "RFX_SEED=%lld RFX_CASES=1", (long long)(seed + i));
        saved += compare_all(graph, what) > 0;
        saved += compare_grouped(graph, what) > 0;
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    print_message("tiles were taken together in %d of %d networks\n", saved, (int)(2 * cases));
    assert_true(saved > 0);
}

static void built_in_networks(void **state) {
    (void)state;
    static const char *const names[] = {"mobilenet_v2", "resnet50", "densenet121", "inception_v3",
                                        "unet",         "fsrcnn",   "deeplab_v3"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        struct rfx_error err = {{0}};
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph = NULL;
        struct rfx_load_options load = {.h = 416, .w = 363};
        if (rfx_builtin_build(mem, names[k], &load, &graph, &err) != RFX_OK)
            fail_msg("%s", err.text);
        assert_true(compare_all(graph, names[k]) + compare_grouped(graph, names[k]) >= 0);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
}

/* An image of 4,096 rows, a row a tile: nearly all are alike. */
static void work_hangs_on_borders(void **state) {
    (void)state;
    struct rfx_error err = {{0}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_load_options load = {.h = 4096, .w = 64};
    if (rfx_builtin_build(mem, "mobilenet_v1", &load, &graph, &err) != RFX_OK)
        fail_msg("%s", err.text);
    int splits[200];
    assert_true(graph->n_nodes <= 200 && rfx_splits_list(graph, splits) > 2);
    const struct rfx_node *split = &graph->nodes[splits[2]];
    int64_t calls = compare(graph, splits[2], RFX_AXIS_ROWS, split->out.h, "mobilenet_v1");
    assert_true(split->out.h >= 1024);
    assert_true(calls <= 24);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* A map enlarged to 4,096 rows, a row a tile: rows are alike four apart. */
static void enlarged_maps_repeat_in_periods(void **state) {
    (void)state;
    struct rfx_error err = {{0}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_load_options load = {.h = 1024, .w = 32};
    if (rfx_builtin_build(mem, "real_esrgan_compact", &load, &graph, &err) != RFX_OK)
        fail_msg("%s", err.text);
    int splits[200];
    int n_splits = rfx_splits_list(graph, splits);
    assert_true(graph->n_nodes <= 200 && n_splits > 0);
    const struct rfx_node *last = &graph->nodes[splits[n_splits - 1]];
    assert_int_equal(last->out.h, 4096);
    int64_t calls =
        compare(graph, splits[n_splits - 1], RFX_AXIS_ROWS, last->out.h, "real_esrgan_compact");
    assert_true(calls <= 400);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_networks),
        cmocka_unit_test(built_in_networks),
        cmocka_unit_test(work_hangs_on_borders),
        cmocka_unit_test(enlarged_maps_repeat_in_periods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
