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
#ifndef RFX_TILER_STRATEGIES_PLACEMENT_CHUNKS_H
#define RFX_TILER_STRATEGIES_PLACEMENT_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

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
#endif
