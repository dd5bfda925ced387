/* Random strided tiles; see random_tiles.h. */
#include "tests/support/random/random_tiles.h"

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
    int64_t first = test_rng_int(rng, 0, TEST_TILE_TIMES - 1);
    bool whole = test_rng_chance(rng, 60);
    *tensor = (struct rfx_tiled_tensor){
        first, whole ? test_rng_int(rng, first, TEST_TILE_TIMES - 1) : -1, bytes, element, tiles,
        0};
    tensor->n_tiles = (int)test_rng_int(rng, whole ? 0 : 1, TEST_TILE_MAX_TILES);
    for (int k = 0; k < tensor->n_tiles; k++) {
        struct rfx_tile tile = {.rank = rank};
        tile.first = test_rng_int(rng, 0, TEST_TILE_TIMES - 1);
        tile.last = test_rng_int(rng, tile.first, TEST_TILE_TIMES - 1);
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

void test_tiles_make(struct test_rng *rng, struct test_tiles *p) {
    p->n = (int)test_rng_int(rng, 1, TEST_TILE_MAX_TENSORS);
    p->alignment = (size_t)1 << test_rng_int(rng, 0, 4);
    for (int i = 0; i < p->n; i++) random_tensor(rng, &p->tensors[i], p->tiles[i]);
}

bool test_tile_mark(const struct rfx_tile *tile, size_t element_bytes, size_t base, int owner,
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
