/* Rows of stages from the image, of one walk for all of them: those of a walk through each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/modes/stream_cache.h"
#include "tiler/modes/streaming.h"
#include "tiler/plan/stage.h"

struct tables {
    int64_t *done;
    struct rfx_node_rows *noted, *walked;
    enum rfx_node_place *places;
    bool *stored, *in_file;
    void *notes;
};

static struct tables tables_of(const struct rfx_graph *graph) {
    size_t n = (size_t)graph->n_nodes;
    struct tables t = {.done = test_calloc(RFX_MODE_SCRATCH * n, sizeof *t.done),
                       .noted = test_calloc(2 * n, sizeof *t.noted),
                       .places = test_calloc(n, sizeof *t.places),
                       .stored = test_calloc(2 * n, sizeof *t.stored),
                       .notes = test_calloc(rfx_stream_cache_bytes(graph), 1)};
    t.walked = t.noted + n;
    t.in_file = t.stored + n;
    return t;
}

static void release(struct tables *t) {
    test_free(t->done);
    test_free(t->noted);
    test_free(t->places);
    test_free(t->stored);
    test_free(t->notes);
}

/* One or two targets, some maps of earlier stages; false: no such stage. */
static bool choose_stage(const struct rfx_graph *graph, struct test_rng *rng, struct tables *t,
                         struct rfx_stage_spec *spec, int *targets) {
    static const int64_t bands[] = {1, 2, 5, 16, 64};
    struct rfx_error err;
    *spec = (struct rfx_stage_spec){.mode = &rfx_mode_streamed,
                                    .tiles_y = 1,
                                    .tiles_x = 1,
                                    .band_rows = bands[test_rng_int(rng, 0, 4)],
                                    .n_targets = (int)test_rng_int(rng, 1, 2),
                                    .targets = targets};
    for (int k = 0; k < 2; k++) targets[k] = (int)test_rng_int(rng, 0, graph->n_nodes - 1);
    for (int i = 0; i < graph->n_nodes; i++) /* reductions are few */
        if (rfx_node_reduction(&graph->nodes[i]) != NULL && test_rng_chance(rng, 40))
            targets[0] = i;
    int maps = (int)test_rng_int(rng, 0, 3); /* most often none */
    for (int i = 0; i < graph->n_nodes; i++) {
        t->stored[i] = maps == 0 && test_rng_chance(rng, 10);
        t->in_file[i] = t->stored[i] && test_rng_chance(rng, 50);
    }
    for (int i = 0; i < graph->n_nodes; i++) /* what no stream makes is there */
        t->stored[i] |= !rfx_node_is_local(&graph->nodes[i]) && i != targets[0] && i != targets[1];
    return rfx_stage_places(graph, spec, false, t->stored, t->in_file, t->places, &err) == RFX_OK;
}

/* Whether the stage was told from notes. */
static bool compare(const struct rfx_graph *graph, const struct tables *t,
                    const struct rfx_stage_spec *spec, uint64_t seed) {
    struct rfx_mode_measure measure = {graph, t->places, spec, t->done, NULL};
    if (!rfx_stream_cache_rows(t->notes, &measure, t->noted)) return false;
    rfx_stream_measure(graph, t->places, spec->band_rows, t->done, t->walked);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node_rows *a = &t->noted[i], *b = &t->walked[i];
        if (!rfx_place_is_computed(t->places[i])) continue;
        if (a->most != b->most || a->kept != b->kept || a->per_step != b->per_step ||
            a->computed != b->computed || a->lasting != b->lasting)
            fail_msg(
                "seed %llu, node %d of %d in bands of %lld: noted %lld %lld %lld %lld, walked "
                "%lld %lld %lld %lld",
                (unsigned long long)seed, i, graph->n_nodes, (long long)spec->band_rows,
                (long long)a->most, (long long)a->kept, (long long)a->per_step,
                (long long)a->computed, (long long)b->most, (long long)b->kept,
                (long long)b->per_step, (long long)b->computed);
    }
    return true;
}

static void one_walk_tells_of_all(void **state) {
    (void)state;
    int64_t first = test_env_int("RFX_SEED", 1), cases = test_env_int("RFX_CASES", 600);
    int stages = 0, noted = 0, reduced = 0;
    for (int64_t c = 0; c < cases; c++) {
        uint64_t seed = (uint64_t)(first + c);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct test_rng rng = test_rng_make(seed);
        struct random_graph_options options = random_graph_defaults();
        options.spatial_only = seed % 2 == 0;
        options.min_size = 40;
        options.max_size = 400;
        options.max_elems = 20000000;
        options.quantised = 25;
        struct rfx_graph *graph = random_graph_make(mem, seed, &options);
        struct tables t = tables_of(graph);
        for (int k = 0; k < 20; k++) {
            struct rfx_stage_spec spec;
            int targets[2];
            if (!choose_stage(graph, &rng, &t, &spec, targets)) continue;
            bool told = compare(graph, &t, &spec, seed);
            stages++;
            noted += told;
            reduced += told && t.places[targets[0]] == RFX_PLACE_REDUCED;
        }
        release(&t);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    print_message("%d of %d stages were told of, %d of them feed reductions\n", noted, stages,
                  reduced);
    if (cases >= 600) assert_true(noted > stages / 2 && noted < stages && reduced > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_walk_tells_of_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
