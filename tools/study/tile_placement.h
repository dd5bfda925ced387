/* Tile-aware memory placement as in paper 004. Tensors are computed and used tile by tile, each
 * tile has a lifetime of its own, and two tensors may share bytes as long as no two of their tiles
 * use the same bytes at the same time. A tile is a box of a tensor, in general not contiguous in
 * memory.
 *
 * TensorAllocate, CollisionSize and RenderChunks are the paper's algorithms 1 to 3. The paper
 * leaves some points open; this code decides them as follows:
 * 1. The listing of TensorAllocate does not move the address after a collision. The text does, by
 *    the overlap found, so this code does too, and rounds the address up to the alignment.
 * 2. The tensor as a whole is an item like its tiles (the paper's definition of a peer). It is
 *    checked after the tiles, so that a moved address also avoids tensors that are needed whole.
 * 3. The lifetime to sort by is from the first to the last use of any tile. Equal lifetimes are
 *    sorted by position in the list.
 * 4. Strides are in bytes. Then line 5 of RenderChunks (size times stride) and line 11 (bytes of an
 *    element) agree for elements of any size.
 * 5. "Dimension `axis` and further are contiguous" means: each stride from `axis` on is the product
 *    of the sizes after it and the bytes of an element. It is not enough that the stride of `axis`
 *    is. */
#ifndef RFX_TOOLS_STUDY_TILE_PLACEMENT_H
#define RFX_TOOLS_STUDY_TILE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

/* Dimensions of a tile: the four of a map (n, c, h, w) and one to spare. */
#define RFX_TILE_MAX_RANK 5

/* A box of a tensor (equation 1), alive in the closed range of times [first, last]. Each stride is
 * at least the span of the dimensions after it, so that chunks are found in order of their offsets.
 */
struct rfx_tile {
    int64_t first, last;
    size_t offset; /* byte offset of its first element in the tensor, off(t, T) in the paper */
    int rank;
    size_t sizes[RFX_TILE_MAX_RANK];   /* elements */
    size_t strides[RFX_TILE_MAX_RANK]; /* bytes */
};

/* A contiguous range of bytes of a tile. The offset is relative to the first element of the tile.
 */
struct rfx_chunk {
    size_t offset, bytes;
};

struct rfx_chunk_list {
    const struct rfx_chunk *chunks; /* sorted by offset, not touching each other */
    int n;
};

/* RenderChunks: writes the contiguous pieces of a tile to chunks (NULL: only counts them) and
 * returns their number. Takes O(chunks * rank). */
int rfx_tile_render_chunks(const struct rfx_tile *tile, size_t element_bytes,
                           struct rfx_chunk *chunks);

/* CollisionSize: compares two tiles whose first elements are at the addresses at1 and at2. Returns
 * 0 if they share no byte. Otherwise it takes the first two chunks that overlap and returns the end
 * of t1's chunk minus the start of t2's. This is positive, and the size of the overlap if t1's
 * chunk starts and ends first. Takes O(chunks). */
size_t rfx_tile_collision_size(const struct rfx_chunk_list *t1, size_t at1,
                               const struct rfx_chunk_list *t2, size_t at2);

/* A tensor. It is needed as a whole in the times [first, last] (first > last: never). Its tiles may
 * overlap each other. */
struct rfx_tiled_tensor {
    int64_t first, last;
    size_t bytes, element_bytes;
    const struct rfx_tile *tiles;
    int n_tiles;
};

/* A tile or a whole tensor, with its chunks. */
struct rfx_tile_item {
    int64_t first, last;
    size_t offset; /* in the tensor */
    struct rfx_chunk_list list;
};

/* Tensors with their items. Not changed after it was created. */
struct rfx_tiles_problem {
    struct rfx_memory *mem;
    int n; /* tensors */
    size_t alignment;
    size_t *bytes;   /* [n] */
    int *first_item; /* [n + 1]: tensor i has the items [first_item[i], first_item[i + 1]); the last
                        of them is the whole tensor */
    struct rfx_tile_item *items; /* [first_item[n]] */
    int64_t *first, *last;       /* [n]: first and last use of any item */
    struct rfx_chunk *chunks;
};

enum rfx_tiles_order {
    RFX_TILES_BY_SIZE,
    RFX_TILES_BY_LIFETIME,
    RFX_TILES_BY_PEERS,
    RFX_TILES_COUNT
};

/* "by-size", "by-lifetime", "by-peers" */
const char *rfx_tiles_order_name(enum rfx_tiles_order order);

/* Copies n tensors and computes the chunks of their tiles. INVALID_ARGUMENT: an empty tensor or
 * tile, a tile that exceeds its tensor, strides that do not decrease, sizes that overflow, an
 * alignment that is no power of two. Free with rfx_tiles_problem_free. */
RFX_NODISCARD enum rfx_status rfx_tiles_problem_create(struct rfx_memory *mem,
                                                       const struct rfx_tiled_tensor *tensors,
                                                       int n, size_t alignment,
                                                       struct rfx_tiles_problem **out,
                                                       struct rfx_error *err);
void rfx_tiles_problem_free(struct rfx_tiles_problem *problem);

/* TensorAllocate: places all tensors in one of the paper's three orders and writes offsets[n] and
 * the size of the arena. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_tiles_place(const struct rfx_tiles_problem *problem,
                                              enum rfx_tiles_order order, size_t *offsets,
                                              size_t *arena_bytes, struct rfx_error *err);

/* Returns whether all tensors are aligned and inside the arena, and no two items of different
 * tensors use the same byte at the same time. Independent of the algorithms above. */
bool rfx_tiles_are_valid(const struct rfx_tiles_problem *problem, const size_t *offsets,
                         size_t arena_bytes);
#endif
