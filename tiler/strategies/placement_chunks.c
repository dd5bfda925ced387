/* RenderChunks and CollisionSize of paper 004. */
#include "tiler/strategies/placement_chunks.h"

#include <stdbool.h>

/* --- RenderChunks (algorithm 3) --- */

struct renderer {
    const struct rfx_tile *tile;
    size_t element_bytes;
    bool contiguous[RFX_TILE_MAX_RANK]; /* this dimension and all after it */
    struct rfx_chunk *chunks;           /* NULL: counting */
    struct rfx_chunk last;              /* the last chunk, also when counting */
    int n;
};

static void append(struct renderer *r, size_t offset, size_t bytes) {
    r->last = (struct rfx_chunk){offset, bytes};
    if (r->chunks != NULL) r->chunks[r->n] = r->last;
    r->n++;
}

/* Lines 14 and 15: a chunk that begins where the last one ends makes it longer. */
static void append_or_merge(struct renderer *r, size_t offset, size_t bytes, int begin) {
    if (r->n == begin || r->last.offset + r->last.bytes != offset) {
        append(r, offset, bytes);
        return;
    }
    r->last.bytes += bytes;
    if (r->chunks != NULL) r->chunks[r->n - 1] = r->last;
}

static size_t extent(const struct renderer *r, int axis) {
    return r->tile->sizes[axis] * r->tile->strides[axis];
}

/* Depth is bounded by the rank. */
static void render(struct renderer *r, size_t offset, int axis) {
    if (r->contiguous[axis]) {
        append(r, offset, extent(r, axis));
        return;
    }
    int begin = r->n;
    for (size_t i = 0; i < r->tile->sizes[axis]; i++) {
        if (axis == r->tile->rank - 1)
            append(r, offset, r->element_bytes);
        else if (r->contiguous[axis + 1])
            append_or_merge(r, offset, extent(r, axis + 1), begin);
        else
            render(r, offset, axis + 1);
        offset += r->tile->strides[axis];
    }
}

int rfx_tile_render_chunks(const struct rfx_tile *tile, size_t element_bytes,
                           struct rfx_chunk *chunks) {
    struct renderer r = {.tile = tile, .element_bytes = element_bytes, .chunks = chunks};
    size_t product = element_bytes;
    bool contiguous = true;
    for (int axis = tile->rank - 1; axis >= 0; axis--) {
        contiguous = contiguous && tile->strides[axis] == product;
        r.contiguous[axis] = contiguous;
        product *= tile->sizes[axis];
    }
    render(&r, 0, 0);
    return r.n;
}

/* --- CollisionSize (algorithm 2) --- */

/* Distance from the first to behind the last byte. */
static size_t span(const struct rfx_chunk_list *list) {
    const struct rfx_chunk *last = &list->chunks[list->n - 1];
    return last->offset + last->bytes;
}

size_t rfx_tile_collision_size(const struct rfx_chunk_list *t1, size_t at1,
                               const struct rfx_chunk_list *t2, size_t at2) {
    if (at1 + span(t1) <= at2) return 0;
    if (at2 + span(t2) <= at1) return 0;
    int i1 = 0;
    int i2 = 0;
    while (i1 < t1->n && i2 < t2->n) {
        size_t start1 = at1 + t1->chunks[i1].offset;
        size_t end1 = start1 + t1->chunks[i1].bytes;
        size_t start2 = at2 + t2->chunks[i2].offset;
        size_t end2 = start2 + t2->chunks[i2].bytes;
        if (end1 <= start2)
            i1++;
        else if (end2 <= start1)
            i2++;
        else
            return end1 - start2;
    }
    return 0;
}
