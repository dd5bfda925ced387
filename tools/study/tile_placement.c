/* The paper's algorithms on strided tiles: they list chunks, find collisions and place tensors in
 * one of three orders. */
#include "tools/study/tile_placement.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/arena/arena_problem.h"

/* --- RenderChunks (algorithm 3) --- */

struct renderer {
    const struct rfx_tile *tile;
    size_t element_bytes;
    bool contiguous[RFX_TILE_MAX_RANK]; /* of this dimension and all following ones together */
    struct rfx_chunk *chunks;           /* NULL: chunks are only counted */
    struct rfx_chunk last;              /* the last chunk, also when chunks are only counted */
    int n;
};

static void append(struct renderer *r, size_t offset, size_t bytes) {
    r->last = (struct rfx_chunk){offset, bytes};
    if (r->chunks != NULL) r->chunks[r->n] = r->last;
    r->n++;
}

/* Lines 14 and 15: adds a chunk. A chunk that begins where the last chunk ends is joined with it.
 * begin: number of the first chunk that may be joined. */
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

/* Lists the chunks of the dimensions from `axis` on. The depth of the recursion is at most the rank
 * of the tile. */
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

/* Returns the distance from the first byte to the end of the last chunk. */
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

/* Limit for all tensors together. Overlaps and alignment may move an address by a few times this
 * size, which does not overflow. */
static const size_t max_total_bytes = INT64_MAX / 8;

const char *rfx_tiles_order_name(enum rfx_tiles_order order) {
    static const char *const names[] = {"by-size", "by-lifetime", "by-peers"};
    _Static_assert(sizeof names / sizeof names[0] == RFX_TILES_COUNT, "one name per order");
    return names[order];
}

/* --- the problem --- */

/* Computes the distance from the first byte of a tile to its end. Returns false if the tile is
 * empty, its strides do not decrease or a size overflows. */
static bool tile_span(const struct rfx_tile *tile, size_t element_bytes, size_t *bytes) {
    size_t reach = element_bytes;
    if (tile->rank < 1 || tile->rank > RFX_TILE_MAX_RANK || tile->first > tile->last) return false;
    for (int axis = tile->rank - 1; axis >= 0; axis--) {
        size_t steps;
        if (tile->sizes[axis] == 0 || tile->strides[axis] < reach) return false;
        if (!rfx_checked_mul_size(tile->sizes[axis] - 1, tile->strides[axis], &steps)) return false;
        if (!rfx_checked_add_size(reach, steps, &reach)) return false;
    }
    *bytes = reach;
    return true;
}

static bool tile_is_good(const struct rfx_tile *tile, const struct rfx_tiled_tensor *tensor) {
    size_t bytes;
    return tile_span(tile, tensor->element_bytes, &bytes) && bytes <= tensor->bytes &&
           tile->offset <= tensor->bytes - bytes;
}

static enum rfx_status check_tensors(const struct rfx_tiled_tensor *tensors, int n,
                                     size_t alignment, struct rfx_error *err) {
    size_t total = 0;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > INT32_MAX)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "tiles: alignment %zu is no power of two",
                        alignment);
    for (int i = 0; i < n; i++) {
        const struct rfx_tiled_tensor *t = &tensors[i];
        if (t->bytes == 0 || t->element_bytes == 0 || t->bytes > max_total_bytes ||
            !rfx_checked_add_size(total, t->bytes + alignment, &total) || total > max_total_bytes)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "tensor %d: %zu bytes of elements of %zu: none, or too many", i,
                            t->bytes, t->element_bytes);
        if (t->first > t->last && t->n_tiles == 0)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "tensor %d never lives", i);
        for (int k = 0; k < t->n_tiles; k++)
            if (!tile_is_good(&t->tiles[k], t))
                return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                                "tensor %d, tile %d: empty, strides that do not fall, or outside "
                                "of the tensor's %zu bytes",
                                i, k, t->bytes);
    }
    return RFX_OK;
}

/* Returns the item of tensor i as a whole. */
static const struct rfx_tile_item *whole_of(const struct rfx_tiles_problem *p, int i) {
    return &p->items[p->first_item[i + 1] - 1];
}

/* Fills the items of tensor i. Writes their chunks to *chunk and moves *chunk past them. */
static void add_items(struct rfx_tiles_problem *p, const struct rfx_tiled_tensor *t, int i,
                      struct rfx_chunk **chunk) {
    struct rfx_tile_item *item = &p->items[p->first_item[i]];
    p->bytes[i] = t->bytes;
    p->first[i] = t->first <= t->last ? t->first : INT64_MAX;
    p->last[i] = t->first <= t->last ? t->last : INT64_MIN;
    for (int k = 0; k < t->n_tiles; k++) {
        const struct rfx_tile *tile = &t->tiles[k];
        int n = rfx_tile_render_chunks(tile, t->element_bytes, *chunk);
        *item++ = (struct rfx_tile_item){tile->first, tile->last, tile->offset, {*chunk, n}};
        *chunk += n;
        p->first[i] = rfx_min_i64(p->first[i], tile->first);
        p->last[i] = rfx_max_i64(p->last[i], tile->last);
    }
    **chunk = (struct rfx_chunk){0, t->bytes};
    *item = (struct rfx_tile_item){t->first, t->last, 0, {(*chunk)++, 1}};
}

enum rfx_status rfx_tiles_problem_create(struct rfx_memory *mem,
                                         const struct rfx_tiled_tensor *tensors, int n,
                                         size_t alignment, struct rfx_tiles_problem **out,
                                         struct rfx_error *err) {
    enum rfx_status status = check_tensors(tensors, n, alignment, err);
    if (status != RFX_OK) return status;
    size_t count = (size_t)n;
    size_t n_items = 0;
    size_t n_chunks = 0;
    struct rfx_tiles_problem *p = rfx_memory_calloc(mem, 1, sizeof *p);
    if (p == NULL) return rfx_memory_fail(mem, "tiles", sizeof *p, err);
    p->mem = mem;
    p->n = n;
    p->alignment = alignment;
    p->first_item = rfx_memory_calloc(mem, count + 1, sizeof *p->first_item);
    p->bytes = rfx_memory_calloc(mem, count, sizeof *p->bytes);
    p->first = rfx_memory_calloc(mem, 2 * count, sizeof *p->first);
    if (p->first_item == NULL || p->bytes == NULL || p->first == NULL) goto fail;
    p->last = p->first + count;
    for (int i = 0; i < n; i++) {
        p->first_item[i] = (int)n_items;
        n_items += (size_t)tensors[i].n_tiles + 1;
        n_chunks++;
        for (int k = 0; k < tensors[i].n_tiles; k++)
            n_chunks += (size_t)rfx_tile_render_chunks(&tensors[i].tiles[k],
                                                       tensors[i].element_bytes, NULL);
    }
    p->first_item[n] = (int)n_items;
    p->items = rfx_memory_calloc(mem, n_items, sizeof *p->items);
    p->chunks = rfx_memory_calloc(mem, n_chunks, sizeof *p->chunks);
    if (p->items == NULL || p->chunks == NULL) goto fail;
    struct rfx_chunk *chunk = p->chunks;
    for (int i = 0; i < n; i++) add_items(p, &tensors[i], i, &chunk);
    *out = p;
    return RFX_OK;
fail:
    rfx_tiles_problem_free(p);
    return rfx_memory_fail(mem, "tiles", n_items * sizeof *p->items + n_chunks * sizeof *p->chunks,
                           err);
}

void rfx_tiles_problem_free(struct rfx_tiles_problem *problem) {
    if (problem == NULL) return;
    struct rfx_memory *mem = problem->mem;
    rfx_memory_release(mem, problem->chunks);
    rfx_memory_release(mem, problem->items);
    rfx_memory_release(mem, problem->first);
    rfx_memory_release(mem, problem->bytes);
    rfx_memory_release(mem, problem->first_item);
    rfx_memory_release(mem, problem);
}

/* --- TensorAllocate (algorithm 1) --- */

static bool items_meet(const struct rfx_tile_item *a, const struct rfx_tile_item *b) {
    return a->first <= a->last && b->first <= b->last && a->first <= b->last && b->first <= a->last;
}

static bool tensors_meet(const struct rfx_tiles_problem *p, int i, int j) {
    return p->first[i] <= p->last[j] && p->first[j] <= p->last[i];
}

struct allocator {
    const struct rfx_tiles_problem *problem;
    size_t *offsets;
    bool *placed;
    struct placed_range *ranges; /* scratch: the ranges of whole tensors */
};

struct placed_range {
    size_t begin, end;
};

static int compare_ranges(const void *pa, const void *pb) {
    const struct placed_range *a = pa;
    const struct placed_range *b = pb;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Line 2: returns the lowest gap that holds tensor i between the tensors that are live as a whole
 * at the same time. */
static size_t first_region(const struct allocator *a, int i) {
    const struct rfx_tiles_problem *p = a->problem;
    int n = 0;
    for (int j = 0; j < p->n; j++) {
        bool whole = items_meet(whole_of(p, i), whole_of(p, j));
        if (!a->placed[j] || !whole) continue;
        a->ranges[n++] = (struct placed_range){a->offsets[j], a->offsets[j] + p->bytes[j]};
    }
    if (n > 0) qsort(a->ranges, (size_t)n, sizeof *a->ranges, compare_ranges);
    size_t at = 0;
    for (int k = 0; k < n; k++) {
        if (at + p->bytes[i] <= a->ranges[k].begin) break;
        size_t end = rfx_place_align(a->ranges[k].end, p->alignment);
        if (end > at) at = end;
    }
    return at;
}

/* Lines 5 to 20: finds the first collision of a tile of tensor i, placed at `at`, with a placed
 * peer. */
static size_t find_collision(const struct allocator *a, int i, size_t at) {
    const struct rfx_tiles_problem *p = a->problem;
    for (int k = p->first_item[i]; k < p->first_item[i + 1]; k++) {
        const struct rfx_tile_item *tile = &p->items[k];
        for (int j = 0; j < p->n; j++) {
            if (!a->placed[j] || !tensors_meet(p, i, j)) continue;
            for (int m = p->first_item[j]; m < p->first_item[j + 1]; m++) {
                const struct rfx_tile_item *peer = &p->items[m];
                if (!items_meet(tile, peer)) continue;
                size_t overlap = rfx_tile_collision_size(&tile->list, at + tile->offset,
                                                         &peer->list, a->offsets[j] + peer->offset);
                if (overlap != 0) return overlap;
            }
        }
    }
    return 0;
}

static size_t allocate_tensor(const struct allocator *a, int i) {
    size_t at = first_region(a, i);
    size_t overlap;
    while ((overlap = find_collision(a, i, at)) != 0)
        at = rfx_place_align(at + overlap, a->problem->alignment);
    return at;
}

/* Counts the items of other tensors that are live at the same time as an item of tensor i. */
static uint64_t count_peers(const struct rfx_tiles_problem *p, int i) {
    uint64_t peers = 0;
    for (int j = 0; j < p->n; j++) {
        if (j == i || !tensors_meet(p, i, j)) continue;
        for (int m = p->first_item[j]; m < p->first_item[j + 1]; m++) {
            bool meets = false;
            for (int k = p->first_item[i]; k < p->first_item[i + 1] && !meets; k++)
                meets = items_meet(&p->items[k], &p->items[m]);
            peers += meets;
        }
    }
    return peers;
}

static uint64_t sort_key(const struct rfx_tiles_problem *p, enum rfx_tiles_order order, int i) {
    if (order == RFX_TILES_BY_SIZE) return p->bytes[i];
    if (order == RFX_TILES_BY_LIFETIME) return (uint64_t)(p->last[i] - p->first[i]);
    return count_peers(p, i);
}

enum rfx_status rfx_tiles_place(const struct rfx_tiles_problem *problem, enum rfx_tiles_order order,
                                size_t *offsets, size_t *arena_bytes, struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    size_t n = (size_t)problem->n;
    struct allocator a = {.problem = problem, .offsets = offsets};
    struct rfx_place_ranked *sorted = rfx_memory_calloc(mem, n, sizeof *sorted);
    a.placed = rfx_memory_calloc(mem, n, sizeof *a.placed);
    a.ranges = rfx_memory_calloc(mem, n, sizeof *a.ranges);
    enum rfx_status status = RFX_OK;
    size_t arena = 0;
    if (sorted == NULL || a.placed == NULL || a.ranges == NULL) {
        status = rfx_memory_fail(mem, "tile placement", n * sizeof *sorted, err);
        goto done;
    }
    for (int i = 0; i < problem->n && !rfx_memory_is_stopped(mem); i++)
        sorted[i] = (struct rfx_place_ranked){sort_key(problem, order, i), i};
    if (n > 0) qsort(sorted, n, sizeof *sorted, rfx_place_compare_ranked);
    for (size_t k = 0; k < n; k++) {
        int i = sorted[k].index;
        status = rfx_memory_check_stop(mem, err);
        if (status != RFX_OK) goto done;
        offsets[i] = allocate_tensor(&a, i);
        a.placed[i] = true;
        if (offsets[i] + problem->bytes[i] > arena) arena = offsets[i] + problem->bytes[i];
    }
    *arena_bytes = arena;
    if (!rfx_tiles_are_valid(problem, offsets, arena))
        status = rfx_place_fail_check(rfx_tiles_order_name(order), problem->n, err);
done:
    rfx_memory_release(mem, a.ranges);
    rfx_memory_release(mem, a.placed);
    rfx_memory_release(mem, sorted);
    return status;
}

/* --- the validator --- */

static bool share_a_byte(const struct rfx_tile_item *a, size_t base_a,
                         const struct rfx_tile_item *b, size_t base_b) {
    for (int i = 0; i < a->list.n; i++) {
        size_t begin = base_a + a->offset + a->list.chunks[i].offset;
        size_t end = begin + a->list.chunks[i].bytes;
        for (int j = 0; j < b->list.n; j++) {
            size_t other = base_b + b->offset + b->list.chunks[j].offset;
            if (begin < other + b->list.chunks[j].bytes && other < end) return true;
        }
    }
    return false;
}

static bool tensors_collide(const struct rfx_tiles_problem *p, int i, int j,
                            const size_t *offsets) {
    if (offsets[i] + p->bytes[i] <= offsets[j] || offsets[j] + p->bytes[j] <= offsets[i])
        return false;
    for (int k = p->first_item[i]; k < p->first_item[i + 1]; k++)
        for (int m = p->first_item[j]; m < p->first_item[j + 1]; m++)
            if (items_meet(&p->items[k], &p->items[m]) &&
                share_a_byte(&p->items[k], offsets[i], &p->items[m], offsets[j]))
                return true;
    return false;
}

bool rfx_tiles_are_valid(const struct rfx_tiles_problem *problem, const size_t *offsets,
                         size_t arena_bytes) {
    for (int i = 0; i < problem->n; i++) {
        if (offsets[i] % problem->alignment != 0 || offsets[i] > arena_bytes ||
            problem->bytes[i] > arena_bytes - offsets[i])
            return false;
        for (int j = 0; j < i; j++)
            if (tensors_meet(problem, i, j) && tensors_collide(problem, i, j, offsets))
                return false;
    }
    return true;
}
