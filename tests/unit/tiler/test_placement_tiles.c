/* Paper 004: its step-by-step examples (section III-C), and random strided tiles against a map of
 * bytes that is filled element by element, moment by moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/test_util.h"
#include "tiler/placement_tiles.h"

#define PLANE 16384 /* 128 x 128 bytes */

/* The top half of each plane of a 4 x 128 x 128 tensor of bytes. */
static const struct rfx_tile halves = {0, 0, 0, 3, {4, 64, 128}, {PLANE, 128, 1}};

static struct rfx_chunk_list render(const struct rfx_tile *tile, size_t element_bytes,
                                    struct rfx_chunk *chunks, int capacity) {
    struct rfx_chunk_list list = {chunks, rfx_tile_render_chunks(tile, element_bytes, NULL)};
    assert_in_range(list.n, 1, capacity);
    assert_int_equal(rfx_tile_render_chunks(tile, element_bytes, chunks), list.n);
    return list;
}

static void chunks_of_the_papers_example(void **state) {
    (void)state;
    struct rfx_chunk chunks[4];
    assert_int_equal(render(&halves, 1, chunks, 4).n, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(chunks[i].offset, i * 16384);
        assert_int_equal(chunks[i].bytes, 8192);
    }
}

/* Figure 1: tiles of a 128 x 128 tensor; floats; the whole tensor; runs that merge. */
static void chunks_of_other_tiles(void **state) {
    (void)state;
    static const struct {
        struct rfx_tile tile;
        size_t element_bytes;
        int n;
        struct rfx_chunk first, last;
    } cases[] = {
        {{0, 0, 0, 2, {128, 32}, {128, 1}}, 1, 128, {0, 32}, {127 * 128, 32}},
        {{0, 0, 0, 2, {128, 64}, {128, 1}}, 1, 128, {0, 64}, {127 * 128, 64}},
        {{0, 0, 0, 2, {64, 128}, {128, 1}}, 1, 1, {0, 8192}, {0, 8192}},
        {{0, 0, 0, 2, {128, 128}, {128, 1}}, 1, 1, {0, PLANE}, {0, PLANE}},
        {{0, 0, 0, 3, {5, 7, 3}, {28 * 3, 12, 4}}, 4, 1, {0, 420}, {0, 420}},
        {{0, 0, 0, 3, {5, 6, 3}, {28 * 3, 12, 4}}, 4, 5, {0, 72}, {4 * 84, 72}},
        {{0, 0, 0, 1, {5}, {8}}, 4, 5, {0, 4}, {32, 4}},             /* every other float */
        {{0, 0, 0, 3, {2, 1, 4}, {4, 50, 1}}, 1, 2, {0, 4}, {4, 4}}, /* line 3 as it is written */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_chunk chunks[128];
        struct rfx_chunk_list list = render(&cases[i].tile, cases[i].element_bytes, chunks, 128);
        assert_int_equal(list.n, cases[i].n);
        assert_memory_equal(&chunks[0], &cases[i].first, sizeof chunks[0]);
        assert_memory_equal(&chunks[list.n - 1], &cases[i].last, sizeof chunks[0]);
    }
}

static void collision_of_the_papers_example(void **state) {
    (void)state;
    struct rfx_chunk chunks[4];
    struct rfx_chunk_list list = render(&halves, 1, chunks, 4);
    assert_int_equal(rfx_tile_collision_size(&list, 0, &list, 128), 8064);
    assert_int_equal(rfx_tile_collision_size(&list, 0, &list, 8192), 0); /* into the gaps */
    assert_int_equal(rfx_tile_collision_size(&list, 8192, &list, 0), 0);
    assert_int_equal(rfx_tile_collision_size(&list, 0, &list, 57344), 0);        /* to the left */
    assert_int_equal(rfx_tile_collision_size(&list, 0, &list, 57343), 1);        /* last byte */
    assert_int_equal(rfx_tile_collision_size(&list, 57344, &list, 0), 0);        /* to the right */
    assert_int_equal(rfx_tile_collision_size(&list, 0, &list, 3 * PLANE), 8192); /* last chunk */
}

/* As the paper has it: the end of t1 less the start of t2, whichever begins first. */
static void collision_is_not_always_the_overlap(void **state) {
    (void)state;
    struct rfx_chunk large = {0, 100};
    struct rfx_chunk small = {0, 10};
    struct rfx_chunk_list t1 = {&large, 1};
    struct rfx_chunk_list t2 = {&small, 1};
    assert_int_equal(rfx_tile_collision_size(&t1, 0, &t2, 50), 50);
    assert_int_equal(rfx_tile_collision_size(&t2, 50, &t1, 0), 60);
}

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

enum { MAX_TENSORS = 7, MAX_TILES = 6, MAX_BYTES = 4096, MAX_ARENA = 1 << 17, TIMES = 10 };

struct random_problem {
    int n;
    size_t alignment;
    struct rfx_tiled_tensor tensors[MAX_TENSORS];
    struct rfx_tile tiles[MAX_TENSORS][MAX_TILES];
};

/* A random box of a random dense tensor. */
static void random_tensor(struct test_rng *rng, struct rfx_tiled_tensor *tensor,
                          struct rfx_tile *tiles) {
    size_t dims[4];
    size_t strides[4];
    int rank = (int)test_rng_int(rng, 1, 4);
    size_t element = (size_t)1 << test_rng_int(rng, 0, 2);
    size_t bytes = element;
    for (int d = rank - 1; d >= 0; d--) {
        dims[d] = (size_t)test_rng_int(rng, 1, 5);
        strides[d] = bytes;
        bytes *= dims[d];
    }
    int64_t first = test_rng_int(rng, 0, TIMES - 1);
    bool whole = test_rng_chance(rng, 60);
    *tensor = (struct rfx_tiled_tensor){
        first, whole ? test_rng_int(rng, first, TIMES - 1) : -1, bytes, element, tiles, 0};
    tensor->n_tiles = (int)test_rng_int(rng, whole ? 0 : 1, MAX_TILES);
    for (int k = 0; k < tensor->n_tiles; k++) {
        struct rfx_tile tile = {.rank = rank};
        tile.first = test_rng_int(rng, 0, TIMES - 1);
        tile.last = test_rng_int(rng, tile.first, TIMES - 1);
        for (int d = 0; d < rank; d++) {
            size_t lo = (size_t)test_rng_int(rng, 0, (int64_t)dims[d] - 1);
            size_t every = (size_t)test_rng_int(rng, 1, 2); /* every other element */
            tile.sizes[d] = 1 + (size_t)test_rng_int(rng, 0, (int64_t)((dims[d] - 1 - lo) / every));
            tile.strides[d] = every * strides[d];
            tile.offset += lo * strides[d];
        }
        tiles[k] = tile;
    }
}

static void random_problem(struct test_rng *rng, struct random_problem *p) {
    p->n = (int)test_rng_int(rng, 1, MAX_TENSORS);
    p->alignment = (size_t)1 << test_rng_int(rng, 0, 4);
    for (int i = 0; i < p->n; i++) random_tensor(rng, &p->tensors[i], p->tiles[i]);
}

/* Calls every byte of a tile's elements, one by one, in the order of its dimensions. Returns false
 * when a byte already belongs to somebody else. */
static bool mark_tile(const struct rfx_tile *tile, size_t element_bytes, size_t base, int owner,
                      signed char *map) {
    size_t index[RFX_TILE_MAX_RANK] = {0};
    for (;;) {
        size_t at = base + tile->offset;
        for (int d = 0; d < tile->rank; d++) at += index[d] * tile->strides[d];
        for (size_t b = at; b < at + element_bytes; b++) {
            if (map[b] >= 0 && map[b] != owner) return false;
            map[b] = (signed char)owner;
        }
        int d = tile->rank - 1;
        while (d >= 0 && ++index[d] == tile->sizes[d]) index[d--] = 0;
        if (d < 0) return true;
    }
}

static bool mark_tensor(const struct rfx_tiled_tensor *tensor, int64_t now, size_t base, int owner,
                        signed char *map) {
    struct rfx_tile whole = {0, 0, 0, 1, {tensor->bytes}, {1}};
    if (tensor->first <= now && now <= tensor->last && !mark_tile(&whole, 1, base, owner, map))
        return false;
    for (int k = 0; k < tensor->n_tiles; k++) {
        const struct rfx_tile *tile = &tensor->tiles[k];
        if (tile->first <= now && now <= tile->last &&
            !mark_tile(tile, tensor->element_bytes, base, owner, map))
            return false;
    }
    return true;
}

/* Lives through the problem moment by moment. */
static bool simulate(const struct random_problem *p, const size_t *offsets, size_t arena) {
    static signed char map[MAX_ARENA];
    assert_true(arena <= MAX_ARENA);
    for (int i = 0; i < p->n; i++)
        if (offsets[i] % p->alignment != 0 || offsets[i] + p->tensors[i].bytes > arena)
            return false;
    for (int64_t now = 0; now < TIMES; now++) {
        memset(map, -1, arena);
        for (int i = 0; i < p->n; i++)
            if (!mark_tensor(&p->tensors[i], now, offsets[i], i, map)) return false;
    }
    return true;
}

/* The chunks are the elements' bytes, in rising order. */
static void check_chunks(const struct rfx_tile *tile, size_t element_bytes) {
    static signed char elements[MAX_BYTES];
    static signed char chunked[MAX_BYTES];
    struct rfx_chunk chunks[MAX_BYTES];
    struct rfx_chunk_list list = render(tile, element_bytes, chunks, MAX_BYTES);
    memset(elements, -1, sizeof elements);
    memset(chunked, -1, sizeof chunked);
    assert_true(mark_tile(tile, element_bytes, 0, 1, elements));
    for (int i = 0; i < list.n; i++) {
        if (i > 0) assert_true(chunks[i].offset >= chunks[i - 1].offset + chunks[i - 1].bytes);
        memset(chunked + tile->offset + chunks[i].offset, 1, chunks[i].bytes);
    }
    assert_memory_equal(elements, chunked, sizeof elements);
}

/* A collision is found exactly where two tiles share a byte. */
static void check_collision(struct test_rng *rng, const struct rfx_tile *a, size_t element_a,
                            const struct rfx_tile *b, size_t element_b, int *hits) {
    static signed char map[3 * MAX_BYTES];
    struct rfx_chunk ca[MAX_BYTES];
    struct rfx_chunk cb[MAX_BYTES];
    struct rfx_chunk_list la = render(a, element_a, ca, MAX_BYTES);
    struct rfx_chunk_list lb = render(b, element_b, cb, MAX_BYTES);
    size_t at = (size_t)test_rng_int(rng, 0, 200);
    size_t bt = (size_t)test_rng_int(rng, 0, 200);
    memset(map, -1, sizeof map);
    assert_true(mark_tile(a, element_a, at, 0, map));
    bool apart = mark_tile(b, element_b, bt, 1, map);
    size_t found = rfx_tile_collision_size(&la, at + a->offset, &lb, bt + b->offset);
    assert_int_equal(found == 0, apart);
    *hits += !apart;
}

static void random_problems(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    uint64_t seed = (uint64_t)test_env_int("RFX_SEED", 1);
    int64_t cases = test_env_int("RFX_CASES", 3000);
    int shared = 0;
    int hits = 0;
    int sound = 0;
    for (int64_t c = 0; c < cases; c++) {
        struct test_rng rng = test_rng_make(seed + (uint64_t)c);
        struct random_problem p;
        struct rfx_tiles_problem *problem = NULL;
        random_problem(&rng, &p);
        assert_int_equal(rfx_tiles_problem_create(mem, p.tensors, p.n, p.alignment, &problem, NULL),
                         RFX_OK);
        for (int order = 0; order < RFX_TILES_COUNT; order++) {
            size_t offsets[MAX_TENSORS];
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
        for (int i = 0; i < p.n; i++) {
            if (p.tensors[i].n_tiles == 0) continue;
            check_chunks(&p.tiles[i][0], p.tensors[i].element_bytes);
            if (i > 0 && p.tensors[i - 1].n_tiles > 0)
                check_collision(&rng, &p.tiles[i][0], p.tensors[i].element_bytes,
                                &p.tiles[i - 1][0], p.tensors[i - 1].element_bytes, &hits);
        }
        rfx_tiles_problem_free(problem);
    }
    assert_true(shared > cases / 4 && hits > cases / 20 && sound > cases / 20);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct random_problem *p = context;
    struct rfx_tiles_problem *problem = NULL;
    size_t offsets[MAX_TENSORS];
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
    struct random_problem p;
    struct test_rng rng = test_rng_make(3);
    random_problem(&rng, &p);
    assert_true(test_fail_each_allocation(build, &p) >= 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_of_the_papers_example),
        cmocka_unit_test(chunks_of_other_tiles),
        cmocka_unit_test(collision_of_the_papers_example),
        cmocka_unit_test(collision_is_not_always_the_overlap),
        cmocka_unit_test(elementwise_output_takes_the_inputs_place),
        cmocka_unit_test(output_made_a_moment_earlier_cannot),
        cmocka_unit_test(collision_moves_the_address),
        cmocka_unit_test(bad_problems_are_refused),
        cmocka_unit_test(random_problems),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
