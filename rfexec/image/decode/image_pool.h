/* Private: one block from which a picture decoder takes all its memory. It is released at once.
 *
 * Decoders free blocks in no useful order, and a hostile file chooses the amounts. With a pool the
 * amount is fixed before the decoder starts, and a file that needs more is refused. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_IMAGE_POOL_H
#define RFX_RFEXEC_IMAGE_DECODE_IMAGE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "layers/core/memory.h"

struct rfx_image_pool {
    unsigned char *block; /* NULL: not allocated */
    size_t bytes, used;
    bool exhausted; /* more was requested than the pool had */
};

/* Releases the pool and allocates a new one of `bytes`. OUT_OF_MEMORY: the text names `what`, and
 * the pool is then empty. */
RFX_NODISCARD enum rfx_status rfx_image_pool_reserve(struct rfx_memory *mem,
                                                     struct rfx_image_pool *pool, size_t bytes,
                                                     const char *what, struct rfx_error *err);

/* Returns a block of `bytes`, aligned to RFX_ALIGNMENT_BYTES and rounded up to it. Returns NULL and
 * sets `exhausted` if the pool has too little left. */
void *rfx_image_pool_take(struct rfx_image_pool *pool, size_t bytes);

/* Makes the whole pool free again; the memory stays allocated. */
void rfx_image_pool_restart(struct rfx_image_pool *pool);

/* Frees the memory; an empty pool is fine. */
void rfx_image_pool_release(struct rfx_memory *mem, struct rfx_image_pool *pool);
#endif
