/* What a chain's stages have beside stored maps, against records counted step by step, and against
 * the bound of the whole: what is stored and what is beside it are never less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/random_graph.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/search/candidates.h"

/* Bytes of records that are alive at a step: of stored maps, or of all else. */
static size_t alive_at(const struct rfx_plan_context *context, int step, bool stored) {
    size_t bytes = 0;
    for (int r = 0; r < context->n_records; r++) {
        const struct rfx_record *record = &context->records[r];
        bool is_stored = record->kind == RFX_RECORD_STORED;
        if (is_stored == stored && record->first <= step && step <= record->last)
            bytes += record->bytes;
    }
    return bytes;
}

/* Looks at one way to run a chain; returns in how many stages something is beside stored maps. */
static int check_way(struct rfx_search *search, const struct rfx_candidate *c, size_t *beside) {
    struct rfx_plan_context *context = &search->context;
    struct rfx_error err = {{0}};
    int n_stages, some = 0;
    size_t most = 0;
    if (rfx_search_lay_out(search, c, &n_stages, &err) != RFX_OK) fail_msg("%s", err.text);
    for (int s = 0; s < n_stages; s++) rfx_search_set_flags(&search->shapes[s].spec, &c->spec);
    rfx_plan_list_beside(context, search->shapes, n_stages, beside);
    for (int s = 0; s < n_stages; s++) {
        size_t found = 0, stored = 0;
        for (int t = rfx_plan_count_steps(context->graph, s);
             t < rfx_plan_count_steps(context->graph, s + 1); t++) {
            size_t other = alive_at(context, t, false), maps = alive_at(context, t, true);
            if (other > found) found = other;
            if (maps > stored) stored = maps;
        }
        assert_int_equal(beside[s], found);
        if (stored + found > most) most = stored + found;
        some += found > 0;
    }
    size_t fixed = rfx_plan_fixed_bytes(context, search->shapes, n_stages);
    assert_true(rfx_plan_bound(context, search->shapes, n_stages) <= fixed + most);
    return some;
}

static void stages_are_counted_step_by_step(void **state) {
    (void)state;
    int64_t cases = test_env_int("RFX_CASES", 300), seed = test_env_int("RFX_SEED", 1);
    int64_t chains = 0, some = 0;
    for (int64_t i = 0; i < cases; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct test_rng rng = test_rng_make((uint64_t)(seed + i));
        struct random_graph_options options = random_graph_defaults();
        options.modern = 100; /* with norms or attention */
        options.max_size = 40;
        struct rfx_graph *graph = random_graph_make(mem, (uint64_t)(seed + i), &options);
        const struct rfx_tensor *input = &graph->nodes[graph->input].out;
        struct rfx_plan_request request = {
            .source = {.h = input->h, .w = input->w, .c = input->c, .random_access = true},
            .threads = 2,
            .memory_bytes = SIZE_MAX};
        struct rfx_search search;
        struct rfx_error err = {{0}};
        if (rfx_search_init(&search, graph, &request, &err) != RFX_OK) fail_msg("%s", err.text);
        size_t *beside = test_calloc((size_t)search.max_stages, sizeof *beside);
        for (int way = 0; way < 4 && search.levels.n > 1; way++) {
            bool squeezed = way % 2 == 1;
            struct rfx_candidate c = {
                .partition = {.kind = RFX_PARTITION_CHAIN,
                              .passes = (int)test_rng_int(&rng, 0, search.levels.n - 1)},
                .spec = {.mode = &rfx_mode_streamed,
                         .tiles_y = 1,
                         .tiles_x = way < 2 ? 1 : 2,
                         .band_rows = test_rng_int(&rng, 1, 16),
                         .staging = squeezed,
                         .row_by_row = squeezed,
                         .weights_by_stage = squeezed}};
            some += check_way(&search, &c, beside);
            chains++;
        }
        test_free(beside);
        rfx_search_release(&search);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    print_message("%d stages of %d chains\n", (int)some, (int)chains);
    assert_true(chains > cases && some > chains);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_are_counted_step_by_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
