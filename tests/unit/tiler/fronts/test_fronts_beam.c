/* Beams: one that takes over where another one is goes on as that one does, whatever it had before;
 * steps lead from every state back to the beginning; no slot is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/packing_cases.h"
#include "tests/support/random/placement_cases.h"
#include "tiler/fronts/fronts_beam.h"

enum { WIDTH = 64 };

struct setup {
    struct packing_case made;
    struct rfx_place_problem *problem;
    struct rfx_fronts_request request;
    struct rfx_front_maker maker;
    struct rfx_front_search search;
};

/* *s stays where it is. */
static void set_up(struct setup *s, const char *family, uint64_t seed, int records) {
    s->made = packing_make(packing_find(family), seed, records, records);
    s->problem = placement_problem(s->made.items, s->made.n);
    s->request = (struct rfx_fronts_request){
        .capacity_bytes = s->made.capacity, .width = WIDTH, .variant = 1, .nodes = UINT64_MAX};
    s->search = (struct rfx_front_search){.mem = s->problem->mem,
                                          .problem = s->problem,
                                          .request = &s->request,
                                          .makers = &s->maker,
                                          .n_makers = 1,
                                          .complete = true};
    assert_int_equal(rfx_front_times_create(s->problem, &s->search.times, NULL), RFX_OK);
    assert_true(s->search.times->possible);
    assert_int_equal(
        rfx_front_maker_init(&s->maker, s->problem, &s->request, s->search.times, NULL), RFX_OK);
}

static void tear_down(struct setup *s) {
    rfx_front_maker_release(&s->maker);
    rfx_front_times_free(s->search.times);
    rfx_memory_release(s->search.mem, s->search.steps);
    rfx_place_problem_free(s->problem);
    free(s->made.items);
}

static struct rfx_front_beam make_beam(struct setup *s, int width) {
    struct rfx_front_beam beam;
    assert_int_equal(rfx_front_beam_init(&beam, &s->search, width, NULL), RFX_OK);
    return beam;
}

static int compare_scores(const void *pa, const void *pb) {
    float a = *(const float *)pa;
    float b = *(const float *)pb;
    return (a > b) - (a < b);
}

/* The scores of the next bucket, sorted; their number. */
static int list_scores(const struct rfx_front_beam *beam, float *scores) {
    const struct rfx_front_bucket *b = &beam->buckets.at[beam->ended % beam->buckets.n];
    for (int i = 0; i < b->n; i++) scores[i] = b->scores[i];
    qsort(scores, (size_t)b->n, sizeof *scores, compare_scores);
    return b->n;
}

static void assert_same_bucket(const struct rfx_front_beam *a, const struct rfx_front_beam *b) {
    float scores[2][WIDTH];
    int n = list_scores(a, scores[0]);
    assert_int_equal(list_scores(b, scores[1]), n);
    assert_int_equal(a->ended, b->ended);
    assert_int_equal(a->waiting, b->waiting);
    assert_memory_equal(scores[0], scores[1], (size_t)n * sizeof(float));
}

/* Every way from a state leads back over boundaries whose numbers fall, but within one. */
static void check_ways(const struct rfx_front_beam *beam) {
    const struct rfx_front_bucket *b = &beam->buckets.at[beam->ended % beam->buckets.n];
    for (int i = 0; i < b->n; i++) {
        const struct rfx_front_state *state =
            rfx_front_beam_state(beam, beam->ended % beam->buckets.n, i);
        int boundary = state->from;
        int ends = __builtin_popcountll(state->group.ends);
        for (int k = state->previous; k > 0; k = beam->search->steps[k].previous) {
            const struct rfx_front_why *why = &beam->search->steps[k];
            assert_in_range(why->boundary, 0, boundary);
            boundary = why->boundary;
            ends += __builtin_popcountll(why->group.ends);
        }
        assert_int_equal(ends, beam->ended);
    }
}

static void one_goes_on_as_the_other(void **state) {
    (void)state;
    struct setup s;
    set_up(&s, "spirals-slack-5", 13, 150);
    struct rfx_front_beam beam = make_beam(&s, WIDTH);
    struct rfx_front_beam other = make_beam(&s, WIDTH);
    assert_true(rfx_front_beam_begin(&beam));
    int compared = 0;
    int most = 0;
    while (beam.waiting > 0) {
        if (beam.ended % 20 == 10) assert_true(rfx_front_beam_take_over(&other, &beam));
        if (beam.ended % 20 == 15) { /* not where the other one is */
            struct rfx_front_beam third = make_beam(&s, WIDTH);
            assert_true(rfx_front_beam_take_over(&third, &beam));
            assert_same_bucket(&beam, &third);
            rfx_front_beam_release(&third);
        }
        bool follows = other.ended == beam.ended && other.waiting > 0;
        if (follows) assert_same_bucket(&beam, &other);
        compared += follows;
        if (beam.waiting > most) most = beam.waiting;
        check_ways(&beam);
        assert_int_equal(beam.trees.n_slots - beam.trees.n_free, beam.waiting);
        assert_true(rfx_front_beam_pass(&beam));
        if (follows) assert_true(rfx_front_beam_pass(&other));
    }
    print_message("%d buckets are the same, at most %d states, %d of %d items ended\n", compared,
                  most, beam.ended, s.made.n);
    assert_true(compared > 50 && most > WIDTH);
    rfx_front_beam_release(&beam);
    rfx_front_beam_release(&other);
    tear_down(&s);
}

/* A narrower one keeps the best. */
static void a_narrow_one_takes_the_best(void **state) {
    (void)state;
    struct setup s;
    set_up(&s, "chains-slack-10", 2, 150);
    struct rfx_front_beam beam = make_beam(&s, WIDTH);
    struct rfx_front_beam narrow = make_beam(&s, 3);
    assert_true(rfx_front_beam_begin(&beam));
    int compared = 0;
    while (beam.waiting > 0) {
        float scores[2][WIDTH];
        assert_true(rfx_front_beam_take_over(&narrow, &beam));
        int n = list_scores(&beam, scores[0]);
        int kept = list_scores(&narrow, scores[1]);
        assert_int_equal(kept, n < 3 ? n : 3);
        assert_memory_equal(scores[1], &scores[0][n - kept], (size_t)kept * sizeof(float));
        compared += n > 3;
        assert_true(rfx_front_beam_pass(&beam));
    }
    assert_true(compared > 20);
    rfx_front_beam_release(&beam);
    rfx_front_beam_release(&narrow);
    tear_down(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_goes_on_as_the_other),
                                       cmocka_unit_test(a_narrow_one_takes_the_best)};
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
