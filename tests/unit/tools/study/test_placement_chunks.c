/* RenderChunks and CollisionSize: the examples of paper 004 (section III-C), and random strided
 * tiles against a map of bytes that is filled element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/random_tiles.h"
#include "tools/study/tile_placement.h"

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

/* The chunks are the elements' bytes, in rising order. */
static void check_chunks(const struct rfx_tile *tile, size_t element_bytes) {
    static signed char elements[TEST_TILE_MAX_BYTES];
    static signed char chunked[TEST_TILE_MAX_BYTES];
    struct rfx_chunk chunks[TEST_TILE_MAX_BYTES];
    struct rfx_chunk_list list = render(tile, element_bytes, chunks, TEST_TILE_MAX_BYTES);
    memset(elements, -1, sizeof elements);
    memset(chunked, -1, sizeof chunked);
    assert_true(test_tile_mark(tile, element_bytes, 0, 1, elements));
    for (int i = 0; i < list.n; i++) {
        if (i > 0) assert_true(chunks[i].offset >= chunks[i - 1].offset + chunks[i - 1].bytes);
        memset(chunked + tile->offset + chunks[i].offset, 1, chunks[i].bytes);
    }
    assert_memory_equal(elements, chunked, sizeof elements);
}

/* A collision is found exactly where two tiles share a byte. */
static void check_collision(struct test_rng *rng, const struct rfx_tile *a, size_t element_a,
                            const struct rfx_tile *b, size_t element_b, int *hits) {
    static signed char map[3 * TEST_TILE_MAX_BYTES];
    struct rfx_chunk ca[TEST_TILE_MAX_BYTES];
    struct rfx_chunk cb[TEST_TILE_MAX_BYTES];
    struct rfx_chunk_list la = render(a, element_a, ca, TEST_TILE_MAX_BYTES);
    struct rfx_chunk_list lb = render(b, element_b, cb, TEST_TILE_MAX_BYTES);
    size_t at = (size_t)test_rng_int(rng, 0, 200);
    size_t bt = (size_t)test_rng_int(rng, 0, 200);
    memset(map, -1, sizeof map);
    assert_true(test_tile_mark(a, element_a, at, 0, map));
    bool apart = test_tile_mark(b, element_b, bt, 1, map);
    size_t found = rfx_tile_collision_size(&la, at + a->offset, &lb, bt + b->offset);
    assert_int_equal(found == 0, apart);
    *hits += !apart;
}

static void random_tiles(void **state) {
    (void)state;
    uint64_t seed = (uint64_t)test_env_int("RFX_SEED", 1);
    int64_t cases = test_env_int("RFX_CASES", 3000);
    int hits = 0;
    for (int64_t c = 0; c < cases; c++) {
        struct test_rng rng = test_rng_make(seed + (uint64_t)c);
        struct test_tiles p;
        test_tiles_make(&rng, &p);
        for (int i = 0; i < p.n; i++) {
            if (p.tensors[i].n_tiles == 0) continue;
            check_chunks(&p.tiles[i][0], p.tensors[i].element_bytes);
            if (i > 0 && p.tensors[i - 1].n_tiles > 0)
                check_collision(&rng, &p.tiles[i][0], p.tensors[i].element_bytes,
                                &p.tiles[i - 1][0], p.tensors[i - 1].element_bytes, &hits);
        }
    }
    assert_true(hits > cases / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_of_the_papers_example),
        cmocka_unit_test(chunks_of_other_tiles),
        cmocka_unit_test(collision_of_the_papers_example),
        cmocka_unit_test(collision_is_not_always_the_overlap),
        cmocka_unit_test(random_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
