/* Private: one block from which a picture decoder takes all its memory, given back at once.
 *
 * Decoders of files free in no useful order and by amounts that a hostile file chooses. Here the
 * amount is fixed before the decoder starts, and a file that wants more is refused. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_IMAGE_POOL_H
#define RFX_RFEXEC_IMAGE_DECODE_IMAGE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "layers/core/memory.h"

struct rfx_image_pool {
    unsigned char *block; /* NULL: not allocated */
    size_t bytes, used;
    bool exhausted; /* somebody asked for more than there was */
};

/* Allocates the pool anew with `bytes`; OUT_OF_MEMORY with `what`, the pool is then empty. */
RFX_NODISCARD enum rfx_status rfx_image_pool_reserve(struct rfx_memory *mem,
                                                     struct rfx_image_pool *pool, size_t bytes,
                                                     const char *what, struct rfx_error *err);

/* A block of `bytes`, aligned to RFX_ALIGNMENT_BYTES and rounded up to it; NULL marks exhausted. */
void *rfx_image_pool_take(struct rfx_image_pool *pool, size_t bytes);

/* Takes everything back; the memory stays. */
void rfx_image_pool_restart(struct rfx_image_pool *pool);

/* Frees the memory; a pool without any is fine. */
void rfx_image_pool_release(struct rfx_memory *mem, struct rfx_image_pool *pool);
#endif
