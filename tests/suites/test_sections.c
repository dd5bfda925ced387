/* Random networks in sections: maps that all goes through are made in shares, and what is behind
 * them from rows of theirs, for any cuts and any number of shares with the bits of the whole run.
 *
 * RFX_CASES (default 400) random graphs x cuts drawn from the listed ones x shares x plans
 * (untiled, grids, bands, budgets; with groups and without). Of a cut's map a share is given the
 * rows that its graph says it reads, the others are NaN. What is listed as a cut is held against a
 * search of all ways from the image to the outputs. */
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
#include "rf_analysis/part_ends.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/image/image_source.h"
#include "rfexec/run/session.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/random/random_groups.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_check.h"

enum { MOST_CUTS = 3 };

static struct random_graph_kinds kinds;
static int64_t chains, cuts_run, read_less, with_groups;

struct section_case {
    uint64_t seed;
    struct rfx_graph *whole;
    float *const *want; /* of every node, as stored */
    const float *pixels;
    struct test_rng rng;
    int cuts[MOST_CUTS + 2]; /* RFX_PART_OUTER at both ends */
    int n_cuts;
    int64_t count;
};

/* Takes what a section's session hands out: all of it has the bits of the whole. */
struct catcher {
    const struct section_case *c;
    int64_t *elems; /* per node */
};

static void fail_case(const struct section_case *c, const char *why) {
    fprintf(stderr, "seed %llu, %lld shares, cuts %d %d %d: %s\n", (unsigned long long)c->seed,
            (long long)c->count, c->cuts[1], c->n_cuts > 1 ? c->cuts[2] : -1,
            c->n_cuts > 2 ? c->cuts[3] : -1, why);
    random_graph_print(c->whole, stderr);
    fail();
}

static enum rfx_status catch_rect(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                  const struct rfx_view *view, struct rfx_error *err) {
    struct catcher *catcher = user;
    const struct rfx_tensor *map = &catcher->c->whole->nodes[end->node].out;
    (void)err;
    if (!test_same_pixels(view, rect, map, catcher->c->want[end->node]))
        fail_case(catcher->c, "a section's map differs from the whole");
    catcher->elems[end->node] += rfx_rect_area(rect) * map->c;
    return RFX_OK;
}

/* The rows of the input that the graph reads, NaN around them; (h, w, c), to be freed. */
static float *input_of(const struct section_case *c, const struct rfx_graph *graph) {
    const struct rfx_tensor *map = &graph->nodes[graph->input].out;
    const float *from = graph->input == c->whole->input ? c->pixels : c->want[graph->input];
    struct rfx_rect read = rfx_part_graph_image(graph);
    float *values = test_floats(map->elems);
    for (int64_t i = 0; i < map->elems; i++) values[i] = NAN;
    for (int64_t y = read.y0; y < read.y1; y++)
        memcpy(values + y * map->w * map->c, from + y * map->w * map->c,
               (size_t)(map->w * map->c) * sizeof *values);
    read_less += rfx_rect_rows(read) < map->h;
    return values;
}

static struct rfx_plan *plan_any(struct section_case *c, const struct rfx_graph *graph,
                                 struct rfx_group_attr groups[8]) {
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    struct rfx_stage_spec ways[] = {rfx_ask_whole(), rfx_ask_tiles(2, 3), rfx_ask_bands(3, 1),
                                    rfx_ask_bands(2, 2)};
    struct rfx_plan_request request = {
        .source = {.h = in->h, .w = in->w, .c = in->c, .random_access = true},
        .threads = (int)test_rng_int(&c->rng, 1, 2),
        .asked = ways[test_rng_int(&c->rng, 0, 3)],
        .emit_outputs = test_rng_chance(&c->rng, 60)};
    struct rfx_plan *plan = NULL;
    char why[300];
    if (test_rng_chance(&c->rng, 40)) {
        request.groups = groups;
        request.n_groups = random_groups_draw(graph, &c->rng, groups, 8);
    }
    if (rfx_plan_create(graph, &request, &plan, NULL) != RFX_OK) {
        request.asked = rfx_ask_whole();
        assert_int_equal(rfx_plan_create(graph, &request, &plan, NULL), RFX_OK);
    }
    if (!rfx_plan_check(plan, why, sizeof why)) fail_case(c, why);
    with_groups += plan->grouped != NULL;
    return plan;
}

static void run_share(struct section_case *c, const struct rfx_graph *graph, int64_t *elems) {
    struct catcher catcher = {c, elems};
    struct rfx_output_sink sink = {.write = catch_rect, .user = &catcher};
    struct rfx_group_attr groups[8];
    struct rfx_plan *plan = plan_any(c, graph, groups);
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    float *values = input_of(c, graph);
    struct rfx_image *image = NULL;
    struct rfx_session *session = NULL;
    struct rfx_error err = {{0}};
    const struct rfx_image_steps steps = {in->w * in->c, in->c, 1};
    assert_int_equal(
        rfx_image_from_steps(graph->mem, values, steps, in->c, in->h, in->w, &image, &err), RFX_OK);
    if (rfx_session_create(plan, NULL, graph->mem, &session, &err) != RFX_OK)
        fail_case(c, err.text);
    rfx_session_set_sink(session, &sink);
    if (rfx_session_run(session, image, NULL, NULL, NULL, &err) != RFX_OK) fail_case(c, err.text);
    rfx_session_free(session);
    rfx_image_free(image);
    rfx_plan_free(plan);
    free(values);
}

/* All shares of all sections. */
static void run_chain(struct section_case *c) {
    int64_t *elems = calloc((size_t)c->whole->n_nodes, sizeof *elems);
    assert_non_null(elems);
    for (int s = 0; s <= c->n_cuts; s++) {
        struct rfx_part_section ends = {c->cuts[s], c->cuts[s + 1]};
        for (int64_t r = 0; r < c->count; r++) {
            struct rfx_graph *graph = NULL;
            assert_int_equal(
                rfx_part_graph_section(c->whole, ends, NULL, 0, r, c->count, &graph, NULL), RFX_OK);
            if (graph != NULL) run_share(c, graph, elems);
            rfx_graph_free(graph);
        }
    }
    for (int s = 1; s <= c->n_cuts; s++)
        if (elems[c->cuts[s]] != c->whole->nodes[c->cuts[s]].out.elems)
            fail_case(c, "the shares are not all of a cut's map");
    for (int e = 0; e < c->whole->n_ends; e++)
        if (elems[c->whole->ends[e].node] < c->whole->nodes[c->whole->ends[e].node].out.elems)
            fail_case(c, "the shares are not all of an end");
    free(elems);
    chains++;
    cuts_run += c->n_cuts;
}

/* Whether an end is reached from the image without this node. */
static bool is_passed_by(const struct rfx_graph *graph, int cut, bool *reached) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        reached[i] = i == graph->input;
        for (int k = 0; k < node->n_in; k++) reached[i] |= reached[node->in[k]];
        if (i == cut) reached[i] = false;
    }
    for (int e = 0; e < graph->n_ends; e++)
        if (reached[graph->ends[e].node]) return true;
    return false;
}

static int list_cuts(const struct rfx_graph *graph, int *cuts) {
    bool *reached = calloc((size_t)graph->n_nodes, sizeof *reached),
         *reads = calloc((size_t)graph->n_nodes, sizeof *reads);
    int n = rfx_part_cuts_list(graph, cuts), found = 0;
    assert_true(reached != NULL && reads != NULL);
    (void)is_passed_by(graph, -1, reads);
    for (int i = 0; i < graph->n_nodes; i++) {
        bool end = rfx_graph_count_outputs(graph, i) > 0;
        bool cut = reads[i] && i != graph->input && !end &&
                   graph->nodes[i].out.layout == RFX_LAYOUT_NHWC &&
                   graph->nodes[i].out.type == RFX_TYPE_FLOAT32 && !is_passed_by(graph, i, reached);
        assert_true(cut == (found < n && cuts[found] == i));
        found += cut;
    }
    free(reached);
    free(reads);
    return n;
}

/* Draws cuts of those that there are, in their order. */
static void choose_cuts(struct section_case *c, const int *cuts, int n) {
    c->n_cuts = 0;
    c->cuts[0] = RFX_PART_OUTER;
    int64_t left = test_rng_int(&c->rng, 1, n < MOST_CUTS ? n : MOST_CUTS);
    for (int i = 0; i < n && left > 0; i++) {
        if (test_rng_int(&c->rng, 0, n - 1 - i) >= left) continue;
        c->cuts[++c->n_cuts] = cuts[i];
        left--;
    }
    c->cuts[c->n_cuts + 1] = RFX_PART_OUTER;
    c->count = test_rng_int(&c->rng, 1, 5);
}

static bool is_of_maps(const struct rfx_graph *graph) {
    for (int e = 0; e < graph->n_ends; e++) {
        const struct rfx_node *node = &graph->nodes[graph->ends[e].node];
        if (node->out.layout != RFX_LAYOUT_NHWC || rfx_node_is_constant(node)) return false;
    }
    return graph->input >= 0;
}

static void run_cuts(struct section_case *c, const int *cuts, int n) {
    const struct rfx_tensor *in = &c->whole->nodes[c->whole->input].out;
    float *pixels = test_floats(in->elems);
    float **want = calloc((size_t)c->whole->n_nodes, sizeof *want);
    struct test_prepared prepared;
    assert_non_null(want);
    test_rng_fill(&c->rng, pixels, in->elems, -1.0f, 1.0f);
    assert_true(test_prepare(c->whole, 1, &prepared));
    test_run_whole(&prepared, pixels, want);
    c->pixels = pixels;
    c->want = want;
    for (int i = 0; i < 2; i++) {
        choose_cuts(c, cuts, n);
        run_chain(c);
    }
    test_run_whole_free(c->whole, want);
    test_prepared_free(&prepared);
    free(want);
    free(pixels);
}

static void run_seed(uint64_t seed) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct random_graph_options options = random_graph_defaults();
    options.spatial_only = true;
    options.rough = true;
    options.quantised = 15;
    options.max_size = seed % 8 == 0 ? 97 : 40;
    struct section_case c = {.seed = seed, .whole = random_graph_make(mem, seed, &options)};
    struct rfx_graph *all = NULL;
    struct rfx_part_rounds rounds;
    c.rng = test_rng_make(seed ^ 0x5ec7);
    random_graph_count(c.whole, &kinds);
    assert_int_equal(rfx_part_graph_rounds(c.whole, RFX_PART_ALL, NULL, 0, &rounds, NULL), RFX_OK);
    if (is_of_maps(c.whole) && rounds.rounds == 0 && rounds.blocking < 0) {
        const struct rfx_part_section whole = {RFX_PART_OUTER, RFX_PART_OUTER};
        assert_int_equal(rfx_part_graph_section(c.whole, whole, NULL, 0, 0, 1, &all, NULL), RFX_OK);
        int *cuts = calloc((size_t)all->n_nodes, sizeof *cuts);
        assert_non_null(cuts);
        int n = list_cuts(all, cuts);
        rfx_graph_free(all);
        if (n > 0) run_cuts(&c, cuts, n);
        free(cuts);
    }
    rfx_graph_free(c.whole);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void test_sections_have_the_bits_of_the_whole(void **state) {
    int64_t cases = test_env_int("RFX_CASES", 400), first = test_env_int("RFX_SEED", 1);
    (void)state;
    printf("seeds %lld to %lld\n", (long long)first, (long long)(first + cases - 1));
    for (int64_t i = 0; i < cases; i++) run_seed((uint64_t)(first + i));
    printf(
        "%lld chains of %lld cuts; %lld shares read fewer rows than there are, %lld with groups\n",
        (long long)chains, (long long)cuts_run, (long long)read_less, (long long)with_groups);
    random_graph_print_kinds(&kinds, stdout);
    assert_true(cases < 300 || kinds.quantised >= cases / 20);
    assert_true(cases < 100 || (chains > cases && cuts_run > 3 * chains / 2 &&
                                read_less > 2 * chains && 2 * with_groups > chains));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sections_have_the_bits_of_the_whole)};
    if (test_skip()) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
