/* Random tensors with strided tiles (paper 004), and a map of bytes to fill with them, element by
 * element: the oracle of chunks, collisions and placements. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_RANDOM_TILES_H
#define RFX_TESTS_SUPPORT_RANDOM_RANDOM_TILES_H

#include "tests/support/test_util.h"
#include "tools/study/tile_placement.h"

enum {
    TEST_TILE_MAX_TENSORS = 7,
    TEST_TILE_MAX_TILES = 6,
    TEST_TILE_MAX_BYTES = 4096, /* of a tensor: 5^4 elements of 4 bytes are fewer */
    TEST_TILE_TIMES = 10        /* lifetimes are within [0, TEST_TILE_TIMES) */
};

struct test_tiles {
    int n;
    size_t alignment;
    struct rfx_tiled_tensor tensors[TEST_TILE_MAX_TENSORS]; /* point into tiles */
    struct rfx_tile tiles[TEST_TILE_MAX_TENSORS][TEST_TILE_MAX_TILES];
};

/* Boxes of dense tensors, some of every other element; tensors may never live whole. */
void test_tiles_make(struct test_rng *rng, struct test_tiles *p);

/* Gives `owner` every byte of a tile's elements, one by one, in the order of its dimensions; free
 * bytes of the map are negative. false: a byte already belongs to somebody else. */
bool test_tile_mark(const struct rfx_tile *tile, size_t element_bytes, size_t base, int owner,
                    signed char *map);
#endif
