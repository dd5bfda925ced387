/* TensorAllocate of paper 004: its step-by-step examples (section III-C), and random strided tiles
 * against a map of bytes that is filled element by element, moment by moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/random_tiles.h"
#include "tools/study/tile_placement.h"

#define PLANE 16384 /* 128 x 128 bytes */

/* Places two tensors of four planes; i_k dies at k, o_k is made at k + delay. */
static void place_elementwise(int delay, size_t expected_offset) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_tile in[4];
    struct rfx_tile out[4];
    for (int k = 0; k < 4; k++) {
        struct rfx_tile plane = {0, k + 1, (size_t)k * PLANE, 3, {1, 128, 128}, {PLANE, 128, 1}};
        in[k] = plane;
        plane.first = k + 1 + delay;
        plane.last = 4 + delay;
        out[k] = plane;
    }
    struct rfx_tiled_tensor tensors[] = {{0, 0, 4 * (size_t)PLANE, 1, in, 4},
                                         {4 + delay, 4 + delay, 4 * (size_t)PLANE, 1, out, 4}};
    struct rfx_tiles_problem *problem = NULL;
    assert_int_equal(rfx_tiles_problem_create(mem, tensors, 2, 64, &problem, NULL), RFX_OK);
    for (int order = 0; order < RFX_TILES_COUNT; order++) {
        size_t offsets[2];
        size_t arena = 0;
        assert_int_equal(
            rfx_tiles_place(problem, (enum rfx_tiles_order)order, offsets, &arena, NULL), RFX_OK);
        assert_int_equal(offsets[0], 0);
        assert_int_equal(offsets[1], expected_offset);
        assert_int_equal(arena, expected_offset + 4 * PLANE);
        assert_true(rfx_tiles_are_valid(problem, offsets, arena));
        assert_false(rfx_tiles_are_valid(problem, offsets, arena - 1));
    }
    rfx_tiles_problem_free(problem);
    rfx_memory_free(mem);
}

/* Section III-C-3: I at 0, tiles i1 .. i4 alive in [0, k], the first tile of O from 2 on, O whole
 * at 5. (The paper speaks of four tiles of 4 x 64 x 128 and of offset 16384 for the second one;
 * four planes are what both the number and the offset fit.) */
static void elementwise_output_takes_the_inputs_place(void **state) {
    (void)state;
    place_elementwise(1, 0);
}

/* Where o_k is made while i_k is still alive nothing can be shared by moving O up: o_k on i_(k+m)
 * meets it for every m >= 0. */
static void output_made_a_moment_earlier_cannot(void **state) {
    (void)state;
    place_elementwise(0, 4 * (size_t)PLANE);
}

/* Tensor B, alive when rows 2 and 3 of A still are, is moved past the row that it meets: by the
 * overlap that the paper's algorithm returns, rounded up to the alignment. */
static void collision_moves_the_address(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_tile rows[] = {{0, 1, 0, 1, {128}, {1}}, {0, 5, 128, 1, {72}, {1}}};
    struct rfx_tiled_tensor tensors[] = {{0, 0, 1000, 1, rows, 2}, {3, 4, 180, 1, NULL, 0}};
    struct rfx_tiles_problem *problem = NULL;
    size_t offsets[2];
    size_t arena = 0;
    assert_int_equal(rfx_tiles_problem_create(mem, tensors, 2, 64, &problem, NULL), RFX_OK);
    assert_int_equal(rfx_tiles_place(problem, RFX_TILES_BY_SIZE, offsets, &arena, NULL), RFX_OK);
    assert_int_equal(offsets[0], 0);
    /* at 0: 180 - 128 = 52, so 64; at 64: 244 - 128 = 116, 180, so 192; at 192: 372 - 128 = 244,
     * 436, so 448 (the lowest valid one is 256: the paper's step goes past it) */
    assert_int_equal(offsets[1], 448);
    assert_int_equal(arena, 1000);
    offsets[1] = 256;
    assert_true(rfx_tiles_are_valid(problem, offsets, 1000));
    offsets[1] = 192;
    assert_false(rfx_tiles_are_valid(problem, offsets, 1000));
    offsets[1] = 257;
    assert_false(rfx_tiles_are_valid(problem, offsets, 1000)); /* not aligned */
    rfx_tiles_problem_free(problem);
    rfx_memory_free(mem);
}

static void bad_problems_are_refused(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    static const struct rfx_tile bad[] = {
        {0, 1, 0, 1, {101}, {1}},          /* too long */
        {0, 1, 60, 1, {41}, {1}},          /* leaves the tensor */
        {0, 1, 0, 1, {0}, {1}},            /* empty */
        {2, 1, 0, 1, {1}, {1}},            /* never alive */
        {0, 1, 0, 2, {2, 4}, {3, 1}},      /* strides do not fall */
        {0, 1, 0, 1, {5}, {SIZE_MAX / 2}}, /* overflows */
        {0, 1, 0, 0, {1}, {1}},            /* no dimension */
        {0, 1, 0, RFX_TILE_MAX_RANK + 1, {1}, {1}},
    };
    struct rfx_tiles_problem *problem = NULL;
    struct rfx_error err;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rfx_tiled_tensor tensor = {0, 0, 100, 1, &bad[i], 1};
        err.text[0] = 0;
        assert_int_equal(rfx_tiles_problem_create(mem, &tensor, 1, 1, &problem, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, "tensor 0, tile 0"));
    }
    struct rfx_tiled_tensor good = {0, 0, 100, 1, NULL, 0};
    struct rfx_tiled_tensor never = {1, 0, 100, 1, NULL, 0};
    struct rfx_tiled_tensor empty = {0, 0, 0, 1, NULL, 0};
    assert_int_equal(rfx_tiles_problem_create(mem, &never, 1, 1, &problem, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_tiles_problem_create(mem, &empty, 1, 1, &problem, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_tiles_problem_create(mem, &good, 1, 48, &problem, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_tiles_problem_create(mem, &good, 1, 0, &problem, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_null(problem);
    rfx_memory_free(mem);
}

/* --- random problems --- */

enum { MAX_ARENA = 1 << 17 };

static bool mark_tensor(const struct rfx_tiled_tensor *tensor, int64_t now, size_t base, int owner,
                        signed char *map) {
    struct rfx_tile whole = {0, 0, 0, 1, {tensor->bytes}, {1}};
    if (tensor->first <= now && now <= tensor->last && !test_tile_mark(&whole, 1, base, owner, map))
        return false;
    for (int k = 0; k < tensor->n_tiles; k++) {
        const struct rfx_tile *tile = &tensor->tiles[k];
        if (tile->first <= now && now <= tile->last &&
            !test_tile_mark(tile, tensor->element_bytes, base, owner, map))
            return false;
    }
    return true;
}

/* Lives through the problem moment by moment. */
static bool simulate(const struct test_tiles *p, const size_t *offsets, size_t arena) {
    static signed char map[MAX_ARENA];
    assert_true(arena <= MAX_ARENA);
    for (int i = 0; i < p->n; i++)
        if (offsets[i] % p->alignment != 0 || offsets[i] + p->tensors[i].bytes > arena)
            return false;
    for (int64_t now = 0; now < TEST_TILE_TIMES; now++) {
        memset(map, -1, arena);
        for (int i = 0; i < p->n; i++)
            if (!mark_tensor(&p->tensors[i], now, offsets[i], i, map)) return false;
    }
    return true;
}

static void random_problems(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    uint64_t seed = (uint64_t)test_env_int("RFX_SEED", 1);
    int64_t cases = test_env_int("RFX_CASES", 3000);
    int shared = 0;
    int sound = 0;
    for (int64_t c = 0; c < cases; c++) {
        struct test_rng rng = test_rng_make(seed + (uint64_t)c);
        struct test_tiles p;
        struct rfx_tiles_problem *problem = NULL;
        test_tiles_make(&rng, &p);
        assert_int_equal(rfx_tiles_problem_create(mem, p.tensors, p.n, p.alignment, &problem, NULL),
                         RFX_OK);
        for (int order = 0; order < RFX_TILES_COUNT; order++) {
            size_t offsets[TEST_TILE_MAX_TENSORS];
            size_t arena = 0;
            assert_int_equal(
                rfx_tiles_place(problem, (enum rfx_tiles_order)order, offsets, &arena, NULL),
                RFX_OK);
            if (!simulate(&p, offsets, arena) || !rfx_tiles_are_valid(problem, offsets, arena))
                fail_msg("seed %llu, %s: tiles overlap", (unsigned long long)(seed + (uint64_t)c),
                         rfx_tiles_order_name((enum rfx_tiles_order)order));
            for (int i = 1; i < p.n; i++) shared += offsets[i] == offsets[i - 1];
            for (int i = 0; i < p.n; i++)
                offsets[i] = (size_t)test_rng_int(&rng, 0, 20) * p.alignment;
            bool fits = simulate(&p, offsets, MAX_ARENA);
            assert_int_equal(rfx_tiles_are_valid(problem, offsets, MAX_ARENA), fits);
            sound += fits;
        }
        rfx_tiles_problem_free(problem);
    }
    assert_true(shared > cases / 4 && sound > cases / 20);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct test_tiles *p = context;
    struct rfx_tiles_problem *problem = NULL;
    size_t offsets[TEST_TILE_MAX_TENSORS];
    size_t arena;
    enum rfx_status status =
        rfx_tiles_problem_create(mem, p->tensors, p->n, p->alignment, &problem, err);
    if (status == RFX_OK)
        status = rfx_tiles_place(problem, RFX_TILES_BY_PEERS, offsets, &arena, err);
    rfx_tiles_problem_free(problem);
    return status;
}

static void allocations_may_fail(void **state) {
    (void)state;
    struct test_tiles p;
    struct test_rng rng = test_rng_make(3);
    test_tiles_make(&rng, &p);
    assert_true(test_fail_each_allocation(build, &p) >= 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise_output_takes_the_inputs_place),
        cmocka_unit_test(output_made_a_moment_earlier_cannot),
        cmocka_unit_test(collision_moves_the_address),
        cmocka_unit_test(bad_problems_are_refused),
        cmocka_unit_test(random_problems),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
