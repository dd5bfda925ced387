/* Brute-force proof of the regions on random networks. RFX_CASES (default 2000) from RFX_SEED.
 *
 * Three independent answers to "which outputs move with this pixel" are held against each other:
 * the definitions of the ops composed tap by tap (tests/support/influence), the kernels themselves
 * with pixels made NaN (tests/support/poison), and what rf_analysis says. Where channels of a
 * concatenation (or space-to-depth) part ways again, pixels cannot tell all: only "covers" is
 * asked. Receptive fields and MACs: test_influence_counts.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rf_analysis/regions.h"
#include "tests/support/oracle/influence.h"
#include "tests/support/oracle/influence_case.h"

/* --- pixels against pixels --- */

struct poking {
    struct influence_case *c;
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
            influence_case_fail(
                p->c, moved ? "an output moves that should not" : "an output does not move", i);
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
static bool poke_case(struct influence_case *c, int64_t *pokes) {
    struct influence_poking ready;
    influence_poking_begin(c, &ready);
    struct influence_set **sets = calloc((size_t)c->graph->n_nodes, sizeof *sets);
    bool pixels[INFLUENCE_MAX_PIXELS];
    int sources[2] = {c->graph->input, (int)test_rng_int(&c->rng, 0, c->graph->n_nodes - 1)};
    assert_non_null(sets);
    for (int k = 0; ready.clean && k < 2; k++) {
        if (!influence_sets(c->graph, sources[k], sets)) continue;
        struct poking p = {c, &ready.poison, sets, sources[k], 0};
        poke_lines(&p, pixels);
        poke_pixels(&p, pixels);
        influence_sets_free(c->graph, sets);
        *pokes += p.pokes;
    }
    free(sets);
    influence_poking_end(&ready);
    return ready.clean;
}

static void pixels_move_what_the_definitions_say(void **state) {
    (void)state;
    int64_t n = influence_case_count("pixels", 2000), first = test_env_int("RFX_SEED", 1),
            pokes = 0, dirty = 0;
    for (int64_t i = 0; i < n; i++) {
        struct influence_case c = influence_case_begin((uint64_t)(first + i), 14, 10);
        if (!poke_case(&c, &pokes)) dirty++;
        influence_case_end(&c);
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

static struct wanted want_something(struct influence_case *c) {
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
        rfx_regions_backprop(c->graph, w.target, (enum rfx_axis)axis, w.out[axis], w.got[axis]);
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

static void check_ranges(const struct influence_case *c, const struct wanted *w, int axis) {
    for (int i = 0; i <= w->target; i++) {
        struct rfx_range got = w->got[axis][i].clamped, want = w->boxes[axis][i];
        if (equal(got, want)) continue;
        fprintf(stderr,
                "axis %d: [%lld, %lld) of node %d needs [%lld, %lld), rf_analysis says [%lld, "
                "%lld)\n",
                axis, (long long)w->out[axis].lo, (long long)w->out[axis].hi, w->target,
                (long long)want.lo, (long long)want.hi, (long long)got.lo, (long long)got.hi);
        influence_case_fail(c, "region differs from the brute force", i);
    }
}

/* Whether the wanted rectangle of the target holds a NaN after poisoning `box` of node `source`,
 * or everything but the box. */
static bool reaches(const struct influence_case *c, struct poison *poison, const struct wanted *w,
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
static bool true_box(const struct influence_case *c, const struct wanted *w, int source,
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
static void check_box(const struct influence_case *c, struct poison *poison, const struct wanted *w,
                      int source, struct tally *tally) {
    struct rfx_rect box =
        rfx_rect_from_ranges(w->got[0][source].clamped, w->got[1][source].clamped);
    struct rfx_rect truth;
    if (source >= w->target) return;
    if (reaches(c, poison, w, source, box, false))
        influence_case_fail(c, "a pixel outside the region moves the output", source);
    if (rfx_rect_is_empty(box) || !true_box(c, w, source, &truth)) return;
    if (!rfx_rect_contains(box, truth)) influence_case_fail(c, "the region is too small", source);
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
            influence_case_fail(c, "a side of the region moves nothing", source);
}

/* Counts the regions wider than the positions that matter because rectangles have no gaps. */
static int64_t count_gaps(const struct wanted *w) {
    int64_t gaps = 0;
    for (int i = 0; i <= w->target; i++)
        for (int axis = 0; axis < 2; axis++)
            if (!equal(w->sets[axis][i], w->boxes[axis][i])) gaps++;
    return gaps;
}

static void region_case(struct influence_case *c, struct tally *tally) {
    struct influence_poking ready;
    influence_poking_begin(c, &ready);
    for (int k = 0; k < 3; k++) {
        struct wanted w = want_something(c);
        check_ranges(c, &w, 0);
        check_ranges(c, &w, 1);
        tally->regions += 2 * (w.target + 1);
        tally->gaps += count_gaps(&w);
        int source = k == 0 ? c->graph->input : (int)test_rng_int(&c->rng, 0, w.target);
        if (ready.clean && k < 2) check_box(c, &ready.poison, &w, source, tally);
        free_wanted(&w);
    }
    influence_poking_end(&ready);
}

static void regions_are_minimal(void **state) {
    (void)state;
    int64_t n = influence_case_count("regions", 2000), first = test_env_int("RFX_SEED", 1);
    struct tally t = {0, 0, 0, 0};
    for (int64_t i = 0; i < n; i++) {
        struct influence_case c = influence_case_begin((uint64_t)(first + i) + 500000, 16, 12);
        region_case(&c, &t);
        influence_case_end(&c);
    }
    fprintf(stderr, "%lld regions, %lld with gaps; %lld boxes poked, %lld of them minimal\n",
            (long long)t.regions, (long long)t.gaps, (long long)t.boxes, (long long)t.minimal);
    assert_true(t.gaps * 10 <= t.regions && t.boxes > n / 2 && t.minimal * 10 >= t.boxes * 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_move_what_the_definitions_say),
        cmocka_unit_test(regions_are_minimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
