/* TODO */
#ifndef RFX_TOOLS_STUDY_TILE_PLACEMENT_H
#define RFX_TOOLS_STUDY_TILE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

/* The contiguous pieces of a strided tile, and whether two tiles that are laid somewhere meet.
 *
 * RenderChunks and CollisionSize are algorithms 3 and 2 of paper 004. Read literally they leave two
 * things open, which are decided so:
 * 1. Strides are in bytes: line 5 of RenderChunks (size times stride) and line 11 (an element's
 *    bytes) then agree for elements of any size.
 * 2. "Dimension `axis` and further are contiguous": every stride from `axis` on is the product of
 *    the sizes after it and the element's bytes, not the stride of `axis` alone.
 *
 * What is made of them: placement_tiles.h. */

/* Dimensions of a tile: the four of a map (n, c, h, w) and one to spare. */
#define RFX_TILE_MAX_RANK 5

/* A box of a tensor (equation 1), alive in the closed range of times [first, last]. Strides fall:
 * each reaches over all that the dimensions after it span, so that chunks come in rising order. */
struct rfx_tile {
    int64_t first, last;
    size_t offset; /* of its first element in the tensor, bytes: off(t, T) */
    int rank;
    size_t sizes[RFX_TILE_MAX_RANK];   /* elements */
    size_t strides[RFX_TILE_MAX_RANK]; /* bytes */
};

/* A contiguous piece of a tile; the offset is from the tile's first element. */
struct rfx_chunk {
    size_t offset, bytes;
};

struct rfx_chunk_list {
    const struct rfx_chunk *chunks; /* in rising order, apart */
    int n;
};

/* RenderChunks: the contiguous pieces of a tile into chunks (NULL: only counted); their number.
 * O(chunks * rank). */
int rfx_tile_render_chunks(const struct rfx_tile *tile, size_t element_bytes,
                           struct rfx_chunk *chunks);

/* CollisionSize of two tiles whose first elements lie at `at1` and `at2`: 0 when they are apart,
 * else, of the first two chunks that meet, the end of t1's less the start of t2's. That is the size
 * of the overlap when t1's starts and ends first, and in any case positive. O(chunks). */
size_t rfx_tile_collision_size(const struct rfx_chunk_list *t1, size_t at1,
                               const struct rfx_chunk_list *t2, size_t at2);

/* Tile-aware placement as in paper 004: tensors are made and used tile by tile, every tile has a
 * lifetime of its own, and two tensors may share bytes as long as no two of their tiles do at one
 * time. Tiles are arbitrary strided boxes.
 *
 * TensorAllocate is the paper's algorithm 1; 2 and 3 are in placement_chunks.h. Read literally it
 * leaves a few things open, which are decided so:
 * 1. The listing of TensorAllocate does not move the address; the text does, by the overlap found.
 *    The moved address is rounded up to the problem's alignment.
 * 2. The tensor as a whole is an item like its tiles (the paper's definition of a peer), looked at
 *    after them, so that an address that was moved keeps clear of tensors that are needed whole.
 * 3. A lifetime to sort by is that from the first to the last use of any part. Ties go by position.
 *
 * Row by row runs of a network: placement_rows.h; the same for the executor: placement_slides.h. */

/* A tensor: its bytes, its lifetime as a whole [first, last] (first > last: never whole), its
 * tiles, which may overlap each other. */
struct rfx_tiled_tensor {
    int64_t first, last;
    size_t bytes, element_bytes;
    const struct rfx_tile *tiles;
    int n_tiles;
};

/* A tile or a whole tensor, its chunks rendered. */
struct rfx_tile_item {
    int64_t first, last;
    size_t offset; /* in the tensor */
    struct rfx_chunk_list list;
};

/* Tensors with their items; const once created. */
struct rfx_tiles_problem {
    struct rfx_memory *mem;
    int n; /* tensors */
    size_t alignment;
    size_t *bytes;               /* [n] */
    int *first_item;             /* [n + 1]: items of tensor i; the last one is the whole */
    struct rfx_tile_item *items; /* [first_item[n]] */
    int64_t *first, *last;       /* [n] from the first to the last use of any part */
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

/* Copies n tensors and renders their tiles. INVALID_ARGUMENT: an empty tensor or tile, a tile that
 * leaves its tensor, strides that do not fall, bytes that do not fit, an alignment that is no power
 * of two. Free with rfx_tiles_problem_free. */
RFX_NODISCARD enum rfx_status rfx_tiles_problem_create(struct rfx_memory *mem,
                                                       const struct rfx_tiled_tensor *tensors,
                                                       int n, size_t alignment,
                                                       struct rfx_tiles_problem **out,
                                                       struct rfx_error *err);
void rfx_tiles_problem_free(struct rfx_tiles_problem *problem);

/* TensorAllocate for all tensors in one of the paper's three orders: fills offsets[n] and the
 * arena's size. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_tiles_place(const struct rfx_tiles_problem *problem,
                                              enum rfx_tiles_order order, size_t *offsets,
                                              size_t *arena_bytes, struct rfx_error *err);

/* Whether no two items of different tensors that live at one time share a byte, and all tensors
 * are aligned and within the arena. Knows nothing of the algorithms above. */
bool rfx_tiles_are_valid(const struct rfx_tiles_problem *problem, const size_t *offsets,
                         size_t arena_bytes);
#endif
