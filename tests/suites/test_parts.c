/* Parts of outputs on random networks: every element of a part has the bits of the whole run.
 *
 * RFX_CASES (default 520) random graphs x parts x plans (untiled, row by row, grids, bands and
 * strips, budgets; with groups and without), x 1, 2, 3 threads. Every plan passes the independent
 * checker; MACs and arena are held against what was executed. What is needed is held against what
 * is: no plan of a part streams more MACs than the whole does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/image/image_source.h"
#include "rfexec/run/session.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/random/random_groups.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_check.h"

struct part_case {
    uint64_t seed;
    struct rfx_graph *whole, *graph; /* graph: of the part */
    struct rfx_tensor map;           /* of the output */
    struct rfx_rect part;
    const float *image;  /* c x h x w */
    const float *wanted; /* the whole output, as stored, as float32 */
    struct rfx_plan_request request;
    struct rfx_group_attr groups[8];
};

static struct random_graph_kinds kinds;
static int64_t compared, emitted, grouped, smaller, shared;

static void fail_case(const struct part_case *c, const struct rfx_plan *plan, const char *why) {
    char text[RFX_PLAN_TEXT] = "no plan";
    if (plan != NULL) rfx_plan_describe(plan, text, sizeof text);
    fprintf(stderr, "seed %llu, part {%lld, %lld, %lld, %lld}, %s, %d threads: %s\n",
            (unsigned long long)c->seed, (long long)c->part.y0, (long long)c->part.y1,
            (long long)c->part.x0, (long long)c->part.x1, text, c->request.threads, why);
    random_graph_print(c->whole, stderr);
    fail();
}

/* Puts a rectangle that is handed out into an array of the part, c x rows x columns. */
struct catcher {
    const struct part_case *c;
    float *values;
};

static enum rfx_status catch_rect(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                  const struct rfx_view *view, struct rfx_error *err) {
    const struct catcher *catcher = user;
    struct rfx_rect part = catcher->c->part;
    int64_t rows = rfx_rect_rows(part), cols = rfx_rect_cols(part);
    (void)end;
    if (!rfx_rect_contains(part, rect))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "handed out outside of the part");
    assert_int_equal(view->type, catcher->c->map.type);
    float *pixel = test_floats(catcher->c->map.c);
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++) {
            rfx_type_load(view->type, rfx_view_at(view, y, x), catcher->c->map.c, pixel);
            for (int64_t i = 0; i < catcher->c->map.c; i++)
                catcher->values[(i * rows + y - part.y0) * cols + x - part.x0] = pixel[i];
        }
    free(pixel);
    return RFX_OK;
}

static void compare(const struct part_case *c, const struct rfx_plan *plan, float *got) {
    int64_t n = rfx_rect_area(c->part) * c->map.c, e = 0;
    float *want = test_floats(n);
    struct test_diff diff;
    for (int64_t i = 0; i < c->map.c; i++)
        for (int64_t y = c->part.y0; y < c->part.y1; y++)
            for (int64_t x = c->part.x0; x < c->part.x1; x++)
                want[e++] = c->wanted[(y * c->map.w + x) * c->map.c + i];
    test_quiet_nans(want, n);
    test_quiet_nans(got, n);
    if (!test_same_bits(got, want, n, &diff)) {
        test_print_diff("part", got, want, n, &diff);
        fail_case(c, plan, "the part differs from the whole");
    }
    free(want);
    compared++;
}

static void execute(const struct part_case *c, const struct rfx_plan *plan,
                    struct rfx_image *image) {
    struct rfx_session *session = NULL;
    struct rfx_error err = {{0}};
    struct rfx_run_report report;
    int64_t n = rfx_rect_area(c->part) * c->map.c;
    struct catcher catcher = {c, test_floats(n)};
    struct rfx_output_sink sink = {.write = catch_rect, .user = &catcher};
    if (rfx_session_create(plan, NULL, c->graph->mem, &session, &err) != RFX_OK)
        fail_case(c, plan, err.text);
    rfx_session_set_sink(session, &sink);
    rfx_session_set_spill_folder(session, ".");
    if (rfx_session_run(session, image, NULL, NULL, &report, &err) != RFX_OK)
        fail_case(c, plan, err.text);
    if (report.macs != plan->macs) fail_case(c, plan, "executed MACs are not the planned ones");
    if (report.arena_high_water_bytes != plan->bytes.arena)
        fail_case(c, plan, "the arena's high water is not the planned size");
    emitted += plan->stored[c->graph->outputs[0].node].bytes == 0;
    compare(c, plan, catcher.values);
    free(catcher.values);
    rfx_session_free(session);
}

static void run_plan(const struct part_case *c, const struct rfx_plan *plan) {
    const struct rfx_source_traits *s = &c->request.source;
    struct rfx_memory *mem = c->graph->mem;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    char why[300];
    if (!rfx_plan_check(plan, why, sizeof why)) fail_case(c, plan, why);
    enum rfx_status status = rfx_image_from_array(mem, c->image, s->c, s->h, s->w, &image, &err);
    if (status != RFX_OK) fail_case(c, plan, err.text);
    execute(c, plan, image);
    rfx_image_free(image);
    grouped += plan->grouped != NULL;
    smaller += plan->macs < plan->macs_untiled;
}

static void choose(struct part_case *c, struct test_rng *rng, const struct rfx_plan_request *plain,
                   struct rfx_stage_spec way) {
    c->request = *plain;
    c->request.asked = way;
    c->request.asked.row_by_row = test_rng_chance(rng, 40);
    c->request.asked.weights_by_stage = test_rng_chance(rng, 30);
    c->request.asked.staging = way.band_rows > 0 && test_rng_chance(rng, 50);
    c->request.emit_outputs = test_rng_chance(rng, 60);
    c->request.no_inplace = test_rng_chance(rng, 20);
    c->request.threads = (int)test_rng_int(rng, 1, 3);
    if (test_rng_chance(rng, 40)) c->request.caches = random_small_caches(rng);
    if (!test_rng_chance(rng, 40)) return;
    c->request.groups = c->groups;
    c->request.n_groups = random_groups_draw(c->graph, rng, c->groups, 8);
}

/* Plans and runs; a way that the network does not allow is no failure. Returns the peak. */
static size_t try_request(const struct part_case *c, bool must) {
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_plan_create(c->graph, &c->request, &plan, &err);
    if (status != RFX_OK && must) fail_case(c, NULL, err.text);
    if (status != RFX_OK) return 0;
    run_plan(c, plan);
    size_t peak = plan->peak_bytes;
    rfx_plan_free(plan);
    return peak;
}

static void run_all(struct part_case *c, struct test_rng *rng) {
    const struct rfx_tensor *in = &c->graph->nodes[c->graph->input].out;
    struct rfx_plan_request plain = {
        .source = {.h = in->h, .w = in->w, .c = in->c, .random_access = true}, .threads = 1};
    struct rfx_stage_spec any = {.tiles_y = 1, .tiles_x = 1};
    struct rfx_error err = {{0}};
    choose(c, rng, &plain, rfx_ask_whole());
    size_t untiled = try_request(c, true);
    int64_t down = test_rng_int(rng, 1, 5), across = test_rng_int(rng, 1, 5);
    choose(c, rng, &plain, rfx_ask_tiles(down, across));
    (void)try_request(c, false);
    int64_t bands = test_rng_int(rng, 1, 12);
    for (int i = 0; i < 2; i++) {
        choose(c, rng, &plain, rfx_ask_bands(bands, i == 0 ? 1 : across));
        (void)try_request(c, false);
    }
    choose(c, rng, &plain, any);
    c->request.may_spill = test_rng_chance(rng, 50);
    c->request.memory_bytes = 1; /* the smallest of all ways */
    struct rfx_plan *plan = NULL, *smallest = NULL;
    (void)!rfx_plan_create_or_smallest(c->graph, &c->request, &plan, &smallest, &err);
    assert_null(plan);
    if (smallest == NULL) fail_case(c, NULL, err.text);
    run_plan(c, smallest);
    c->request.memory_bytes = (smallest->peak_bytes + untiled) / 2;
    if (c->request.memory_bytes < smallest->peak_bytes)
        c->request.memory_bytes = smallest->peak_bytes;
    rfx_plan_free(smallest);
    (void)try_request(c, true);
}

/* Takes a share's outputs, each end by itself, and counts their elements. */
struct share_catcher {
    const struct part_case *c;
    float *const *whole; /* of every node, as stored */
    int64_t *elems;      /* per end of the base */
    int ends[64];        /* of the base, per output of the share */
};

static enum rfx_status catch_share(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                   const struct rfx_view *view, struct rfx_error *err) {
    struct share_catcher *s = user;
    int e = s->ends[end->output], node = s->c->whole->ends[e].node;
    const struct rfx_tensor *map = &s->c->whole->nodes[node].out;
    (void)err;
    assert_int_equal(end->node, node);
    if (!test_same_pixels(view, rect, map, s->whole[node]))
        fail_case(s->c, NULL, "a share of all outputs differs from the whole");
    s->elems[e] += rfx_rect_area(rect) * map->c;
    return RFX_OK;
}

/* One share of all that the network hands out, in any plan. */
static void run_share(struct part_case *c, struct test_rng *rng, struct share_catcher *s,
                      int64_t index, int64_t count) {
    struct rfx_output_sink sink = {.write = catch_share, .user = s};
    struct rfx_image *image = NULL;
    struct rfx_session *session = NULL;
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    assert_int_equal(
        rfx_part_graph_share(c->whole, RFX_PART_ALL, NULL, 0, index, count, &c->graph, &err),
        RFX_OK);
    if (c->graph == NULL) return;
    for (int e = 0, k = 0; e < c->whole->n_ends; e++)
        if (!rfx_rect_is_empty(rfx_part_end_share(c->whole, e, index, count))) s->ends[k++] = e;
    const struct rfx_tensor *in = &c->graph->nodes[c->graph->input].out;
    struct rfx_plan_request plain = {
        .source = {.h = in->h, .w = in->w, .c = in->c, .random_access = true}, .threads = 1};
    struct rfx_stage_spec ways[] = {rfx_ask_whole(), rfx_ask_tiles(2, 3), rfx_ask_bands(3, 1)};
    choose(c, rng, &plain, ways[test_rng_int(rng, 0, 2)]);
    if (rfx_plan_create(c->graph, &c->request, &plan, &err) != RFX_OK) {
        c->request.asked = rfx_ask_whole();
        assert_int_equal(rfx_plan_create(c->graph, &c->request, &plan, &err), RFX_OK);
    }
    assert_int_equal(
        rfx_image_from_array(c->graph->mem, c->image, in->c, in->h, in->w, &image, &err), RFX_OK);
    assert_int_equal(rfx_session_create(plan, NULL, c->graph->mem, &session, &err), RFX_OK);
    rfx_session_set_sink(session, &sink);
    rfx_session_set_spill_folder(session, ".");
    if (rfx_session_run(session, image, NULL, NULL, NULL, &err) != RFX_OK)
        fail_case(c, plan, err.text);
    rfx_session_free(session);
    rfx_image_free(image);
    rfx_plan_free(plan);
    rfx_graph_free(c->graph);
}

/* All shares of a network without global operations: every element of every end once. */
static void run_shares(struct part_case *c, struct test_rng *rng, float *const *whole) {
    struct rfx_part_rounds rounds;
    const struct rfx_graph *base = c->whole;
    int64_t elems[64] = {0}, count = test_rng_int(rng, 1, 5);
    struct share_catcher s = {.c = c, .whole = whole, .elems = elems};
    assert_int_equal(rfx_part_graph_rounds(base, RFX_PART_ALL, NULL, 0, &rounds, NULL), RFX_OK);
    if (rounds.rounds > 0 || base->n_ends > 64) return;
    for (int e = 0; e < base->n_ends; e++) {
        const struct rfx_node *node = &base->nodes[base->ends[e].node];
        if (node->out.layout != RFX_LAYOUT_NHWC || rfx_node_is_constant(node)) return;
    }
    for (int64_t i = 0; i < count; i++) run_share(c, rng, &s, i, count);
    for (int e = 0; e < base->n_ends; e++)
        if (elems[e] != base->nodes[base->ends[e].node].out.elems)
            fail_case(c, NULL, "the shares are not all of an end");
    shared++;
}

/* A rectangle that often touches a border, and sometimes is the whole. */
static struct rfx_range random_range(struct test_rng *rng, int64_t extent) {
    int64_t lo = test_rng_int(rng, 0, extent - 1);
    struct rfx_range r = {lo, test_rng_int(rng, lo + 1, extent)};
    if (test_rng_chance(rng, 25)) r.lo = 0;
    if (test_rng_chance(rng, 25)) r.hi = extent;
    return r;
}

static bool run_seed(uint64_t seed) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct random_graph_options options = random_graph_defaults();
    options.spatial_only = seed % 3 != 0;
    options.rough = true;
    options.quantised = 15;
    options.max_size = seed % 8 == 0 ? 97 : 40;
    struct part_case c = {.seed = seed, .whole = random_graph_make(mem, seed, &options)};
    struct test_rng rng = test_rng_make(seed ^ 0x9a57);
    random_graph_count(c.whole, &kinds);
    int k = (int)test_rng_int(&rng, 0, c.whole->n_outputs - 1), node = c.whole->outputs[k].node;
    struct test_prepared prepared;
    c.map = c.whole->nodes[node].out;
    bool runs = c.whole->input >= 0 && c.map.layout == RFX_LAYOUT_NHWC &&
                !rfx_node_is_constant(&c.whole->nodes[node]);
    if (runs) {
        const struct rfx_tensor *in = &c.whole->nodes[c.whole->input].out;
        float *pixels = test_floats(in->elems), *image = test_floats(in->elems);
        float **whole = calloc((size_t)c.whole->n_nodes, sizeof *whole);
        assert_non_null(whole);
        test_rng_fill(&rng, pixels, in->elems, -1.0f, 1.0f);
        test_nhwc_to_nchw(pixels, image, in->c, in->h, in->w);
        assert_true(test_prepare(c.whole, 1, &prepared));
        test_run_whole(&prepared, pixels, whole);
        c.image = image;
        float *wanted = test_floats(c.map.elems);
        rfx_type_load(c.map.type, whole[node], c.map.elems, wanted);
        c.wanted = wanted;
        for (int p = 0; p < 2; p++) {
            struct rfx_range rows = random_range(&rng, c.map.h);
            c.part = rfx_rect_from_ranges(rows, random_range(&rng, c.map.w));
            assert_int_equal(rfx_part_graph_create(c.whole, k, c.part, &c.graph, NULL), RFX_OK);
            run_all(&c, &rng);
            rfx_graph_free(c.graph);
        }
        run_shares(&c, &rng, whole);
        test_run_whole_free(c.whole, whole);
        test_prepared_free(&prepared);
        free(whole);
        free(pixels);
        free(image);
        free(wanted);
    }
    rfx_graph_free(c.whole);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return runs;
}

static void test_parts_have_the_bits_of_the_whole(void **state) {
    int64_t cases = test_env_int("RFX_CASES", 520), first = test_env_int("RFX_SEED", 1), ran = 0;
    (void)state;
    printf("seeds %lld to %lld\n", (long long)first, (long long)(first + cases - 1));
    for (int64_t i = 0; i < cases; i++) ran += run_seed((uint64_t)(first + i));
    printf(
        "%lld networks, %lld parts compared, %lld handed out while made, %lld with groups, "
        "%lld with fewer MACs than the whole; %lld in shares of all outputs\n",
        (long long)ran, (long long)compared, (long long)emitted, (long long)grouped,
        (long long)smaller, (long long)shared);
    random_graph_print_kinds(&kinds, stdout);
    assert_true(cases < 300 || kinds.quantised >= cases / 20);
    assert_true(cases < 100 || (shared > cases / 4 && compared > 5 * cases && emitted > cases / 4 &&
                                grouped > cases / 4 && smaller > cases));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts_have_the_bits_of_the_whole)};
    if (test_skip()) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
