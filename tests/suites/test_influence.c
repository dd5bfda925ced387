/* Brute-force proof of the analysis on random networks. RFX_CASES (default 2000) from RFX_SEED.
 *
 * Three independent answers to "which outputs move with this pixel" are held against each other:
 * the definitions of the ops composed tap by tap (tests/support/influence), the kernels themselves
 * with pixels made NaN (tests/support/poison), and what rf_analysis says. Where channels of a
 * concatenation (or space-to-depth) part ways again, pixels cannot tell all: only "covers" is
 * asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/op.h"
#include "rf_analysis/analysis.h"
#include "rf_analysis/regions.h"
#include "tests/support/influence.h"
#include "tests/support/poison.h"
#include "tests/support/random_graph.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan.h"
#include "tiler/splits.h"

struct one_case {
    uint64_t seed;
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct test_rng rng;
    bool *exact; /* per node: influence_is_exact */
};

static struct one_case begin(uint64_t seed, int64_t max_size, int max_nodes) {
    struct random_graph_options options = random_graph_defaults();
    struct one_case c = {.seed = seed, .mem = rfx_memory_create(0), .rng = test_rng_make(~seed)};
    options.spatial_only = seed % 3 == 0;
    options.min_size = max_size < 100 ? 2 : 200;
    options.max_elems = max_size < 100 ? 0 : 10000000;
    options.max_size = max_size;
    options.max_nodes = max_nodes;
    options.max_c = 4;
    options.wide = false;
    options.rough = true;
    c.graph = random_graph_make(c.mem, seed, &options);
    c.exact = calloc((size_t)c.graph->n_nodes, sizeof *c.exact);
    assert_non_null(c.exact);
    influence_is_exact(c.graph, c.exact);
    return c;
}

static void end(struct one_case *c) {
    free(c->exact);
    rfx_graph_free(c->graph);
    assert_int_equal(rfx_memory_current_bytes(c->mem), 0);
    rfx_memory_free(c->mem);
}

static void fail_case(const struct one_case *c, const char *what, int node) {
    fprintf(stderr, "seed %llu: node %d: %s\n", (unsigned long long)c->seed, node, what);
    random_graph_print(c->graph, stderr);
    fail();
}

static int64_t cases(const char *name, int64_t of) {
    int64_t n = test_env_int("RFX_CASES", of);
    fprintf(stderr, "%s: %lld cases from seed %lld (RFX_CASES, RFX_SEED)\n", name, (long long)n,
            (long long)test_env_int("RFX_SEED", 1));
    return n;
}

/* --- pixels against pixels --- */

struct poking {
    struct one_case *c;
    struct poison *poison;
    struct influence_set **sets;
    int source;
    int64_t pokes;
};

static bool meets(const struct influence_set *set, const bool *pixels, int64_t n) {
    for (int64_t p = 0; p < n; p++)
        if (pixels[p] && influence_has(set, p)) return true;
    return false;
}

/* Every pixel of every later node: NaN exactly when the definitions say so. */
static void poke(struct poking *p, const bool *pixels) {
    const struct rfx_graph *graph = p->c->graph;
    const struct rfx_tensor *s = &graph->nodes[p->source].out;
    poison_run(p->poison, p->source, pixels);
    p->pokes++;
    for (int i = p->source + 1; i < graph->n_nodes; i++) {
        const struct rfx_tensor *t = &graph->nodes[i].out;
        for (int64_t pixel = 0; pixel < t->h * t->w; pixel++) {
            bool moved = poison_reached(p->poison, i, pixel);
            bool allowed = meets(&p->sets[i][pixel], pixels, s->h * s->w);
            if (moved == allowed || (allowed && !p->c->exact[i])) continue;
            fail_case(p->c, moved ? "an output moves that should not" : "an output does not move",
                      i);
        }
    }
}

static void poke_lines(struct poking *p, bool *pixels) {
    const struct rfx_tensor *s = &p->c->graph->nodes[p->source].out;
    int64_t n = s->h * s->w;
    for (int64_t line = 0; line < s->h + s->w; line++) {
        for (int64_t i = 0; i < n; i++)
            pixels[i] = line < s->h ? i / s->w == line : i % s->w == line - s->h;
        poke(p, pixels);
    }
}

static void poke_pixels(struct poking *p, bool *pixels) {
    const struct rfx_tensor *s = &p->c->graph->nodes[p->source].out;
    int64_t n = s->h * s->w, count = n <= 25 ? n : 6;
    for (int64_t i = 0; i < count; i++) {
        memset(pixels, 0, (size_t)n * sizeof *pixels);
        pixels[count == n ? i : test_rng_int(&p->c->rng, 0, n - 1)] = true;
        poke(p, pixels);
    }
}

/* Pokes the image and one other node; false when the values are not finite without poking. */
static bool poke_case(struct one_case *c, int64_t *pokes) {
    struct test_prepared prepared;
    struct poison poison;
    poison_tame(c->graph);
    assert_true(test_prepare(c->graph, 1, &prepared));
    const struct rfx_tensor *image = &c->graph->nodes[c->graph->input].out;
    float *input = test_floats(image->elems);
    test_rng_fill(&c->rng, input, image->elems, -1.0f, 1.0f);
    bool clean = poison_begin(&prepared, input, &poison);
    struct influence_set **sets = calloc((size_t)c->graph->n_nodes, sizeof *sets);
    bool pixels[INFLUENCE_MAX_PIXELS];
    int sources[2] = {c->graph->input, (int)test_rng_int(&c->rng, 0, c->graph->n_nodes - 1)};
    assert_non_null(sets);
    for (int k = 0; clean && k < 2; k++) {
        if (!influence_sets(c->graph, sources[k], sets)) continue;
        struct poking p = {c, &poison, sets, sources[k], 0};
        poke_lines(&p, pixels);
        poke_pixels(&p, pixels);
        influence_sets_free(c->graph, sets);
        *pokes += p.pokes;
    }
    free(sets);
    free(input);
    poison_end(&poison);
    test_prepared_free(&prepared);
    return clean;
}

static void pixels_move_what_the_definitions_say(void **state) {
    (void)state;
    int64_t n = cases("pixels", 2000), first = test_env_int("RFX_SEED", 1), pokes = 0, dirty = 0;
    for (int64_t i = 0; i < n; i++) {
        struct one_case c = begin((uint64_t)(first + i), 14, 10);
        if (!poke_case(&c, &pokes)) dirty++;
        end(&c);
    }
    fprintf(stderr, "%lld pokes, %lld networks left out\n", (long long)pokes, (long long)dirty);
    assert_true(dirty * 20 <= n);
}

/* --- regions --- */

struct wanted {
    int target;
    struct rfx_range out[2];
    struct rfx_axis_region *got[2];
    struct rfx_range *boxes[2], *sets[2]; /* influence_need: of rectangles, of positions */
};

static bool is_empty(struct rfx_range r) {
    return r.lo >= r.hi;
}

static bool equal(struct rfx_range a, struct rfx_range b) {
    return (is_empty(a) && is_empty(b)) || (a.lo == b.lo && a.hi == b.hi);
}

static struct wanted want_something(struct one_case *c) {
    int n = c->graph->n_nodes;
    struct wanted w = {.target = (int)test_rng_int(&c->rng, 0, n - 1)};
    if (test_rng_chance(&c->rng, 50)) w.target = n - 1;
    for (int axis = 0; axis < 2; axis++) {
        int64_t extent = rfx_node_extent(&c->graph->nodes[w.target], (enum rfx_axis)axis);
        w.out[axis].lo = test_rng_int(&c->rng, 0, extent - 1);
        w.out[axis].hi = test_rng_int(&c->rng, w.out[axis].lo + 1, extent);
        if (test_rng_chance(&c->rng, 30)) w.out[axis].hi = w.out[axis].lo + 1;
        w.got[axis] = calloc((size_t)n, sizeof **w.got);
        w.boxes[axis] = calloc((size_t)n, sizeof **w.boxes);
        w.sets[axis] = calloc((size_t)n, sizeof **w.sets);
        assert_true(w.got[axis] != NULL && w.boxes[axis] != NULL && w.sets[axis] != NULL);
        rfx_regions_backprop(c->graph, 0, w.target, (enum rfx_axis)axis, w.out[axis], w.got[axis]);
        influence_need(c->graph, w.target, axis, w.out[axis], true, w.boxes[axis]);
        influence_need(c->graph, w.target, axis, w.out[axis], false, w.sets[axis]);
    }
    return w;
}

static void free_wanted(struct wanted *w) {
    for (int axis = 0; axis < 2; axis++) {
        free(w->got[axis]);
        free(w->boxes[axis]);
        free(w->sets[axis]);
    }
}

static void check_ranges(const struct one_case *c, const struct wanted *w, int axis) {
    for (int i = 0; i <= w->target; i++) {
        struct rfx_range got = w->got[axis][i].clamped, want = w->boxes[axis][i];
        if (equal(got, want)) continue;
        fprintf(stderr,
                "axis %d: [%lld, %lld) of node %d needs [%lld, %lld), rf_analysis says [%lld, "
                "%lld)\n",
                axis, (long long)w->out[axis].lo, (long long)w->out[axis].hi, w->target,
                (long long)want.lo, (long long)want.hi, (long long)got.lo, (long long)got.hi);
        fail_case(c, "region differs from the brute force", i);
    }
}

/* Whether the wanted rectangle of the target holds a NaN after poisoning `box` of node `source`,
 * or everything but the box. */
static bool reaches(const struct one_case *c, struct poison *poison, const struct wanted *w,
                    int source, struct rfx_rect box, bool inside) {
    const struct rfx_tensor *s = &c->graph->nodes[source].out, *t = &c->graph->nodes[w->target].out;
    bool *pixels = calloc((size_t)(s->h * s->w), sizeof *pixels), found = false;
    assert_non_null(pixels);
    for (int64_t p = 0; p < s->h * s->w; p++) {
        struct rfx_rect at = {p / s->w, p / s->w + 1, p % s->w, p % s->w + 1};
        pixels[p] = rfx_rect_contains(box, at) == inside;
    }
    poison_run(poison, source, pixels);
    for (int64_t y = w->out[0].lo; y < w->out[0].hi; y++)
        for (int64_t x = w->out[1].lo; x < w->out[1].hi; x++)
            found = found || poison_reached(poison, w->target, y * t->w + x);
    free(pixels);
    return found;
}

/* The box around all pixels of `source` that the wanted rectangle depends on; false when the source
 * is too large to tell. */
static bool true_box(const struct one_case *c, const struct wanted *w, int source,
                     struct rfx_rect *box) {
    const struct rfx_tensor *s = &c->graph->nodes[source].out, *t = &c->graph->nodes[w->target].out;
    struct influence_set **sets = calloc((size_t)c->graph->n_nodes, sizeof *sets);
    assert_non_null(sets);
    bool known = influence_sets(c->graph, source, sets);
    *box = rfx_rect_make(0, 0, 0, 0);
    for (int64_t i = 0; known && i < t->h * t->w * s->h * s->w; i++) {
        int64_t from = i % (s->h * s->w), to = i / (s->h * s->w), y = to / t->w, x = to % t->w;
        if (y < w->out[0].lo || y >= w->out[0].hi || x < w->out[1].lo || x >= w->out[1].hi)
            continue;
        struct rfx_rect at = {from / s->w, from / s->w + 1, from % s->w, from % s->w + 1};
        if (influence_has(&sets[w->target][to], from)) *box = rfx_rect_union(*box, at);
    }
    if (known) influence_sets_free(c->graph, sets);
    free(sets);
    return known;
}

struct tally {
    int64_t regions, gaps, boxes, minimal;
};

/* Nothing outside the region matters, and each of its four sides does. Rectangles cannot follow
 * the shape of every set of pixels (joins, dilations at a border): those are counted. */
static void check_box(const struct one_case *c, struct poison *poison, const struct wanted *w,
                      int source, struct tally *tally) {
    struct rfx_rect box =
        rfx_rect_from_ranges(w->got[0][source].clamped, w->got[1][source].clamped);
    struct rfx_rect truth;
    if (source >= w->target) return;
    if (reaches(c, poison, w, source, box, false))
        fail_case(c, "a pixel outside the region moves the output", source);
    if (rfx_rect_is_empty(box) || !true_box(c, w, source, &truth)) return;
    if (!rfx_rect_contains(box, truth)) fail_case(c, "the region is too small", source);
    tally->boxes++;
    if (!rfx_rect_equal(box, truth)) return;
    tally->minimal++;
    struct rfx_rect sides[4] = {box, box, box, box};
    sides[0].y1 = box.y0 + 1;
    sides[1].y0 = box.y1 - 1;
    sides[2].x1 = box.x0 + 1;
    sides[3].x0 = box.x1 - 1;
    for (int k = 0; c->exact[w->target] && k < 4; k++)
        if (!reaches(c, poison, w, source, sides[k], true))
            fail_case(c, "a side of the region moves nothing", source);
}

/* Counts the regions wider than the positions that matter because rectangles have no gaps. */
static int64_t count_gaps(const struct wanted *w) {
    int64_t gaps = 0;
    for (int i = 0; i <= w->target; i++)
        for (int axis = 0; axis < 2; axis++)
            if (!equal(w->sets[axis][i], w->boxes[axis][i])) gaps++;
    return gaps;
}

static void region_case(struct one_case *c, struct tally *tally) {
    struct test_prepared prepared;
    struct poison poison;
    poison_tame(c->graph);
    assert_true(test_prepare(c->graph, 1, &prepared));
    const struct rfx_tensor *image = &c->graph->nodes[c->graph->input].out;
    float *input = test_floats(image->elems);
    test_rng_fill(&c->rng, input, image->elems, -1.0f, 1.0f);
    bool clean = poison_begin(&prepared, input, &poison);
    for (int k = 0; k < 3; k++) {
        struct wanted w = want_something(c);
        check_ranges(c, &w, 0);
        check_ranges(c, &w, 1);
        tally->regions += 2 * (w.target + 1);
        tally->gaps += count_gaps(&w);
        int source = k == 0 ? c->graph->input : (int)test_rng_int(&c->rng, 0, w.target);
        if (clean && k < 2) check_box(c, &poison, &w, source, tally);
        free_wanted(&w);
    }
    free(input);
    poison_end(&poison);
    test_prepared_free(&prepared);
}

static void regions_are_minimal(void **state) {
    (void)state;
    int64_t n = cases("regions", 2000), first = test_env_int("RFX_SEED", 1);
    struct tally t = {0, 0, 0, 0};
    for (int64_t i = 0; i < n; i++) {
        struct one_case c = begin((uint64_t)(first + i) + 500000, 16, 12);
        region_case(&c, &t);
        end(&c);
    }
    fprintf(stderr, "%lld regions, %lld with gaps; %lld boxes poked, %lld of them minimal\n",
            (long long)t.regions, (long long)t.gaps, (long long)t.boxes, (long long)t.minimal);
    assert_true(t.gaps * 10 <= t.regions && t.boxes > n / 2 && t.minimal * 10 >= t.boxes * 9);
}

/* --- receptive fields on images so large that the middle sees no border --- */

/* A transposed convolution that leaves inputs out between its taps: the field is the hull of the
 * undilated window there. */
static bool has_holes(const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    return node->op == RFX_OP_CONV_TRANSPOSE &&
           (a->dh > 1 || a->dw > 1 || a->kh < a->sh || a->kw < a->sw);
}

/* Whether one number says what the node sees: not after joins of maps that move at different
 * rates, broadcasts along the axis, or resizes whose rate is not the ratio of the sizes. */
static void mark_uniform(const struct rfx_graph *graph, const struct rfx_analysis *analysis,
                         int axis, bool *uniform) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        const struct rfx_ratio *jump = NULL;
        uniform[i] = !analysis->layers[i].global && node->op != RFX_OP_RESIZE && !has_holes(node);
        for (int k = 0; k < node->n_in; k++) {
            const struct rfx_node *in = &graph->nodes[node->in[k]];
            if (in->op == RFX_OP_CONST_MAP) continue;
            const struct rfx_ratio *r = &analysis->layers[node->in[k]].field[axis].jump;
            bool same = jump == NULL || (jump->num == r->num && jump->den == r->den);
            uniform[i] = uniform[i] && uniform[node->in[k]] && same &&
                         rfx_node_extent(in, (enum rfx_axis)axis) > 1;
            jump = r;
        }
    }
}

/* Whether positions `out` of a node are computed without touching the border of any map. */
static bool sees_no_border(const struct rfx_graph *graph, int node, int axis,
                           struct rfx_range out) {
    struct rfx_range *need = calloc((size_t)graph->n_nodes, sizeof *need);
    bool inside = true;
    assert_non_null(need);
    influence_need(graph, node, axis, out, true, need);
    for (int i = 0; i <= node; i++) {
        int64_t n = rfx_node_extent(&graph->nodes[i], (enum rfx_axis)axis);
        bool constant = graph->nodes[i].op == RFX_OP_CONST_MAP;
        if (need[i].lo < need[i].hi && !constant) inside &= need[i].lo > 0 && need[i].hi < n;
    }
    free(need);
    return inside;
}

/* Returns whether the node has a middle that sees no border. */
static bool check_field(const struct one_case *c, int i, int axis,
                        const struct rfx_axis_field *field, const struct rfx_range *hulls) {
    int64_t n = rfx_node_extent(&c->graph->nodes[i], (enum rfx_axis)axis), period = field->period;
    int64_t o = n / 2 / period * period, step = period * field->jump.num / field->jump.den;
    struct rfx_range middle = {o, o + 2 * period};
    if (middle.hi > n || !sees_no_border(c->graph, i, axis, middle)) return false;
    int64_t largest = 0;
    for (int64_t p = middle.lo; p < middle.hi; p++)
        largest = hulls[p].hi - hulls[p].lo > largest ? hulls[p].hi - hulls[p].lo : largest;
    if (largest == 0 && field->size_px == 0) return false; /* made of constants */
    int64_t padding = o / period * step - hulls[o].lo, moved = hulls[o + period].lo - hulls[o].lo;
    if (largest == field->size_px && padding == field->padding_px && moved == step) return true;
    fprintf(stderr,
            "axis %d: brute force says field %lld, padding %lld, %lld pixels per %lld outputs; the "
            "analysis %lld, %lld, %lld\n",
            axis, (long long)largest, (long long)padding, (long long)moved, (long long)period,
            (long long)field->size_px, (long long)field->padding_px, (long long)step);
    fail_case(c, "the receptive field differs", i);
    return false;
}

static int64_t field_case(struct one_case *c) {
    struct rfx_analysis *analysis = NULL;
    struct rfx_range **hulls = calloc((size_t)c->graph->n_nodes, sizeof *hulls);
    bool *uniform = calloc((size_t)c->graph->n_nodes, sizeof *uniform);
    int64_t checked = 0;
    assert_true(hulls != NULL && uniform != NULL);
    assert_int_equal(rfx_analysis_create(c->graph, &analysis, NULL), RFX_OK);
    for (int axis = 0; axis < 2; axis++) {
        influence_hulls(c->graph, c->graph->input, axis, hulls);
        mark_uniform(c->graph, analysis, axis, uniform);
        for (int i = 0; i < c->graph->n_nodes; i++)
            if (uniform[i] && c->graph->nodes[i].op != RFX_OP_CONST_MAP &&
                check_field(c, i, axis, &analysis->layers[i].field[axis], hulls[i]))
                checked++;
        influence_hulls_free(c->graph, hulls);
    }
    rfx_analysis_free(analysis);
    free(uniform);
    free(hulls);
    return checked;
}

static void fields_are_what_the_taps_reach(void **state) {
    (void)state;
    int64_t n = cases("fields", 2000), first = test_env_int("RFX_SEED", 1), checked = 0;
    for (int64_t i = 0; i < n; i++) {
        struct one_case c = begin((uint64_t)(first + i) + 2000000, 700, 10);
        checked += field_case(&c);
        end(&c);
    }
    fprintf(stderr, "%lld fields\n", (long long)checked);
    assert_true(checked >= 4 * n);
}

/* --- MACs --- */

static uint64_t planned_macs(const struct one_case *c, struct rfx_plan_request request) {
    struct rfx_error err = {{0}};
    struct rfx_plan *plan = NULL;
    const struct rfx_tensor *t = &c->graph->nodes[c->graph->input].out;
    request.source =
        (struct rfx_source_traits){.h = t->h, .w = t->w, .c = t->c, .random_access = true};
    request.threads = 1;
    if (rfx_plan_create(c->graph, &request, &plan, &err) != RFX_OK) fail_case(c, err.text, -1);
    uint64_t macs = plan->macs;
    rfx_plan_free(plan);
    return macs;
}

static bool has_op(const struct rfx_graph *graph, enum rfx_op op) {
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op == op) return true;
    return false;
}

static void mac_case(struct one_case *c) {
    const struct rfx_graph *graph = c->graph;
    uint64_t whole = influence_count_tiled(graph, -1, 0, 0);
    if (planned_macs(c, (struct rfx_plan_request){.asked = rfx_ask_whole()}) != whole)
        fail_case(c, "planned MACs are not the counted ones", -1);
    int *splits = calloc((size_t)graph->n_nodes, sizeof *splits);
    assert_non_null(splits);
    int n = rfx_splits_list(graph, splits);
    if (n > 0) {
        int split = splits[test_rng_int(&c->rng, 0, n - 1)];
        struct rfx_plan_request request = {.split = graph->nodes[split].name};
        int64_t down = test_rng_int(&c->rng, 1, 5), across = test_rng_int(&c->rng, 1, 5);
        request.asked = rfx_ask_tiles(down, across);
        uint64_t tiled = influence_count_tiled(graph, split, down, across);
        if (planned_macs(c, request) != tiled)
            fail_case(c, "planned MACs of tiles are not the counted ones", split);
    }
    free(splits);
}

/* Transposed convolutions are left out: their formula counts an average (op_conv_transpose.c). */
static void macs_are_counted(void **state) {
    (void)state;
    int64_t n = cases("MACs", 2000), first = test_env_int("RFX_SEED", 1), done = 0;
    for (int64_t i = 0; i < n; i++) {
        struct one_case c = begin((uint64_t)(first + i) + 1000000, 30, 12);
        if (!has_op(c.graph, RFX_OP_CONV_TRANSPOSE)) {
            mac_case(&c);
            done++;
        }
        end(&c);
    }
    assert_true(done * 2 > n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_move_what_the_definitions_say),
        cmocka_unit_test(regions_are_minimal),
        cmocka_unit_test(fields_are_what_the_taps_reach),
        cmocka_unit_test(macs_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
