/* Counted blocks and pools in chunks; see region_store.h. */
#include "rfexec/answers/region_store.h"

#include <inttypes.h>
#include <string.h>

#include "layers/core/checked.h"

enum rfx_status rfx_region_allocate(struct rfx_region_memory *memory, size_t bytes, void **out,
                                    struct rfx_error *err) {
    size_t used;
    if (!rfx_checked_add_size(memory->used_bytes, bytes, &used)) used = SIZE_MAX;
    if (memory->most_bytes != 0 && used > memory->most_bytes)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "regions: %zu bytes are needed at row %" PRId64 ", %zu are allowed", used,
                        memory->row, memory->most_bytes);
    void *block = rfx_memory_alloc(memory->mem, bytes);
    if (block == NULL) return rfx_memory_fail(memory->mem, "regions", bytes, err);
    memory->used_bytes = used;
    if (used > memory->high_water_bytes) memory->high_water_bytes = used;
    *out = block;
    return RFX_OK;
}

void rfx_region_release(struct rfx_region_memory *memory, void *block, size_t bytes) {
    if (block == NULL) return;
    memory->used_bytes -= bytes;
    rfx_memory_release(memory->mem, block);
}

void rfx_region_pool_init(struct rfx_region_pool *pool, size_t entry_bytes) {
    *pool = (struct rfx_region_pool){.entry_bytes = entry_bytes, .first_free = RFX_REGION_NONE};
}

void rfx_region_pool_release(struct rfx_region_memory *memory, struct rfx_region_pool *pool) {
    for (size_t i = 0; i < pool->n_chunks; i++)
        rfx_region_release(memory, pool->chunks[i], RFX_REGION_CHUNK * pool->entry_bytes);
    rfx_region_release(memory, pool->chunks, pool->capacity * sizeof *pool->chunks);
    rfx_region_pool_init(pool, pool->entry_bytes);
}

static enum rfx_status grow_table(struct rfx_region_memory *memory, struct rfx_region_pool *pool,
                                  struct rfx_error *err) {
    size_t capacity = pool->capacity == 0 ? 16 : 2 * pool->capacity;
    void *grown;
    enum rfx_status status =
        rfx_region_allocate(memory, capacity * sizeof *pool->chunks, &grown, err);
    if (status != RFX_OK) return status;
    if (pool->n_chunks > 0) memcpy(grown, pool->chunks, pool->n_chunks * sizeof *pool->chunks);
    rfx_region_release(memory, pool->chunks, pool->capacity * sizeof *pool->chunks);
    pool->chunks = grown;
    pool->capacity = capacity;
    return RFX_OK;
}

static enum rfx_status add_chunk(struct rfx_region_memory *memory, struct rfx_region_pool *pool,
                                 struct rfx_error *err) {
    if (pool->n_chunks == RFX_REGION_MOST_ENTRIES / RFX_REGION_CHUNK)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "regions: more than %zu rectangles are needed at row %" PRId64,
                        RFX_REGION_MOST_ENTRIES, memory->row);
    enum rfx_status status =
        pool->n_chunks == pool->capacity ? grow_table(memory, pool, err) : RFX_OK;
    void *chunk;
    if (status == RFX_OK)
        status = rfx_region_allocate(memory, RFX_REGION_CHUNK * pool->entry_bytes, &chunk, err);
    if (status != RFX_OK) return status;
    int32_t first = (int32_t)(pool->n_chunks * RFX_REGION_CHUNK);
    pool->chunks[pool->n_chunks++] = chunk;
    for (int32_t i = first; i < first + RFX_REGION_CHUNK; i++)
        *rfx_region_pool_link(pool, i) = i + 1;
    rfx_region_pool_give(pool, first, first + RFX_REGION_CHUNK - 1);
    return RFX_OK;
}

enum rfx_status rfx_region_pool_take(struct rfx_region_memory *memory, struct rfx_region_pool *pool,
                                     int32_t *out, struct rfx_error *err) {
    if (pool->first_free == RFX_REGION_NONE) {
        enum rfx_status status = add_chunk(memory, pool, err);
        if (status != RFX_OK) return status;
    }
    *out = pool->first_free;
    pool->first_free = *rfx_region_pool_link(pool, *out);
    return RFX_OK;
}

void rfx_region_pool_give(struct rfx_region_pool *pool, int32_t first, int32_t last) {
    *rfx_region_pool_link(pool, last) = pool->first_free;
    pool->first_free = first;
}
