/* Maps that slide over each other: what is placed keeps all distances, and rows of slides side by
 * side find room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/checked.h"
#include "tests/support/test_util.h"
#include "tiler/arena/placement_slides.h"

enum { MOST = 64, MAP = 64 * 1000, LAG = 64 * 10 };

struct problem {
    struct rfx_record records[MOST];
    struct rfx_slide slides[MOST];
    int n, n_slides;
    bool upwards[MOST];
};

static int add_map(struct problem *p, int first, int last, size_t bytes) {
    p->records[p->n] = (struct rfx_record){
        .kind = RFX_RECORD_STORED, .node = p->n, .first = first, .last = last, .bytes = bytes};
    return p->n++;
}

/* As streams slide: downwards alone. */
static void add_slide(struct problem *p, int before, int after, int stage, size_t down) {
    p->slides[p->n_slides++] = (struct rfx_slide){.before = before,
                                                  .after = after,
                                                  .stage = stage,
                                                  .node = after,
                                                  .down = down,
                                                  .up = p->records[before].bytes};
}

static size_t place(struct problem *p, bool greedily) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err;
    size_t arena = 0;
    assert_int_equal(greedily
                         ? rfx_slides_place_greedily(mem, p->records, p->n, p->slides, p->n_slides,
                                                     true, 0, p->upwards, &arena, &err)
                         : rfx_slides_place(mem, p->records, p->n, p->slides, p->n_slides, true, 0,
                                            p->upwards, &arena, &err),
                     RFX_OK);
    assert_true(rfx_place_is_valid(p->records, p->n, p->slides, p->n_slides, p->upwards, arena));
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return arena;
}

/* So many rows of slides side by side, each of so many maps, one a stage. */
static struct problem rows_of_slides(int rows, int stages) {
    struct problem p = {.n = 0};
    int before[MOST];
    for (int s = 0; s < stages; s++)
        for (int r = 0; r < rows; r++) {
            int map = add_map(&p, s, s + 1, MAP);
            if (s > 0) add_slide(&p, before[r], map, s, LAG);
            before[r] = map;
        }
    return p;
}

/* Each row of slides takes a map; all of them, the lags between the maps of one, and one more for
 * each row beside it, whose maps lie above what those of the next stage have begun. */
static void rows_of_slides_find_room(void **state) {
    (void)state;
    for (int rows = 1; rows <= 3; rows++)
        for (int stages = 2; stages <= 12; stages += 5) {
            struct problem p = rows_of_slides(rows, stages);
            size_t least = (size_t)(rows * MAP + (stages + rows - 2) * LAG);
            assert_int_equal(place(&p, false), least);
        }
}

/* Nothing that a greedy placement finds is given up, and often it is not enough. */
static void random_slides(void **state) {
    (void)state;
    int cases = (int)test_env_int("RFX_CASES", 200), better = 0;
    for (int c = 0; c < cases; c++) {
        struct test_rng rng = test_rng_make((uint64_t)c + 1);
        struct problem p = {.n = 0};
        for (int s = 0; s < 9; s++) {
            int n = (int)test_rng_int(&rng, 1, 3);
            for (int k = 0; k < n; k++) {
                int last = s + (int)test_rng_int(&rng, 1, test_rng_chance(&rng, 30) ? 4 : 1);
                int map = add_map(&p, s, last, (size_t)test_rng_int(&rng, 100, 2000) * 64);
                int before = -1; /* that dies here, and nothing slides over yet */
                for (int i = 0; i < map && before < 0; i++) {
                    bool taken = p.records[i].last != s || p.records[i].first == s;
                    for (int l = 0; l < p.n_slides; l++) taken |= p.slides[l].before == i;
                    if (!taken && test_rng_chance(&rng, 70)) before = i;
                }
                if (before < 0) continue;
                size_t a = p.records[before].bytes, b = p.records[map].bytes;
                add_slide(&p, before, map, s,
                          (b > a ? b - a : 0) + (size_t)test_rng_int(&rng, 0, 20) * 64);
            }
        }
        size_t greedy = place(&p, true), spread = place(&p, false);
        assert_true(spread <= greedy);
        better += spread < greedy;
    }
    print_message("%d of %d are better than greedy ones\n", better, cases);
    assert_true(better > cases / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_slides_find_room),
        cmocka_unit_test(random_slides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
