/* Tiled equals untiled, bit by bit: random graphs x sizes x grids x 1, 2, 3 threads, node by node
 * and in random groups, with tiles cut by tests/support/run/run_tiles.c. RFX_CASES (300) and
 * RFX_SEED (1) set what is run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/oracle/reference.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/random/random_groups.h"
#include "tests/support/run/run_tiles.h"
#include "tests/support/test_util.h"

struct tile_case {
    uint64_t seed;
    int split;
    int64_t rows, cols;
    int threads;
};

static struct random_graph_kinds kinds;

static void print_case(const struct rfx_graph *graph, const struct tile_case *t) {
    fprintf(stderr,
            "struct tile_case t = {.seed = %lluu, .split = %d, .rows = %lld, .cols = %lld, "
            ".threads = %d};\n",
            (unsigned long long)t->seed, t->split, (long long)t->rows, (long long)t->cols,
            t->threads);
    random_graph_print(graph, stderr);
}

/* `threads` threads and tiles against one thread and whole maps. */
static bool check_tiles(const struct rfx_graph *graph, const struct tile_case *t,
                        const float *input, float *const *whole) {
    struct test_prepared prepared;
    if (!test_prepare(graph, t->threads, &prepared)) return false;
    const struct rfx_tensor *map = &graph->nodes[t->split].out;
    float *tiled = test_floats(map->elems); /* of the map's type, which is no larger */
    test_run_tiles(&prepared, input, t->split, t->rows, t->cols, tiled);
    bool same = test_same_tensors("tiled against untiled", map, tiled, whole[t->split]);
    if (!same) print_case(graph, t);
    free(tiled);
    test_prepared_free(&prepared);
    return same;
}

/* The same with nodes in groups: tiles of the grouped graph against whole maps node by node. */
static bool check_grouped(const struct rfx_graph *graph, struct tile_case t, struct test_rng *rng,
                          const float *input, float *const *whole) {
    struct rfx_group_attr groups[8];
    struct rfx_graph *grouped = NULL;
    int n = random_groups_draw(graph, rng, groups, 8);
    if (n == 0) return true;
    if (rfx_graph_group(graph, groups, n, &grouped, NULL) != RFX_OK) return false;
    while (grouped->nodes[t.split].op == RFX_OP_INNER) t.split++;
    bool same = check_tiles(grouped, &t, input, whole);
    for (int g = 0; !same && g < n; g++)
        fprintf(stderr, "group %d..%d, strip_cols %lld, strips %lld, step_rows %lld\n",
                groups[g].first, groups[g].last, (long long)groups[g].strip_cols,
                (long long)groups[g].strips, (long long)groups[g].step_rows);
    rfx_graph_free(grouped);
    return same;
}

/* One random graph; returns the number of comparisons made, -1 after a difference. */
static int run_seed(uint64_t seed) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct random_graph_options options = random_graph_defaults();
    options.spatial_only = seed % 4 != 0;
    options.rough = true;
    options.quantised = 15;
    options.max_size = seed % 8 == 0 ? 97 : 40;
    struct rfx_graph *graph = random_graph_make(mem, seed, &options);
    random_graph_count(graph, &kinds);
    struct test_rng rng = test_rng_make(seed ^ 0x5eed);
    const struct rfx_node *image = &graph->nodes[graph->input < 0 ? 0 : graph->input];
    float *input = test_floats(image->out.elems);
    test_rng_fill(&rng, input, image->out.elems, -1.0f, 1.0f);
    if (seed % 5 == 0) test_rng_specials(&rng, input, image->out.elems);
    float **whole = calloc((size_t)graph->n_nodes, sizeof *whole);
    struct test_prepared prepared;
    int done = 0;
    if (graph->input >= 0 && whole != NULL && test_prepare(graph, 1, &prepared)) {
        test_run_whole(&prepared, input, whole);
        for (int threads = 1; threads <= 3 && done >= 0; threads++) {
            int split =
                threads == 1 ? graph->n_nodes - 1 : (int)test_rng_int(&rng, 0, graph->n_nodes - 1);
            struct tile_case t = {seed, split, test_rng_int(&rng, 1, 5), test_rng_int(&rng, 1, 5),
                                  threads};
            done = check_tiles(graph, &t, input, whole) ? done + 1 : -1;
            if (done >= 0 && !check_grouped(graph, t, &rng, input, whole)) done = -1;
        }
        test_run_whole_free(graph, whole);
        test_prepared_free(&prepared);
    } else if (graph->input >= 0) {
        done = -1;
    }
    free(whole);
    free(input);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return done;
}

static void test_tiled_is_untiled(void **state) {
    (void)state;
    int64_t cases = test_env_int("RFX_CASES", 300), first = test_env_int("RFX_SEED", 1);
    int64_t compared = 0, failed = 0;
    printf("seeds %lld to %lld\n", (long long)first, (long long)(first + cases - 1));
    for (int64_t i = 0; i < cases && failed < 5; i++) {
        int done = run_seed((uint64_t)(first + i));
        if (done < 0)
            failed++;
        else
            compared += done;
    }
    printf("%lld tilings compared, %lld graphs differ\n", (long long)compared, (long long)failed);
    random_graph_print_kinds(&kinds, stdout);
    assert_int_equal(failed, 0);
    assert_true(compared >= cases && (cases < 300 || kinds.quantised >= cases / 20));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiled_is_untiled)};
    if (test_skip()) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
