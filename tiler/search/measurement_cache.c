/* Hash tables of measured rows and columns; see measurement_cache.h. */
#include "tiler/search/measurement_cache.h"

#include "layers/core/checked.h"
#include "tiler/search/candidates.h"

#define SLOTS 256

/* Row counts of one node in 32 bits. Measurements with larger counts are not cached. */
struct packed_rows {
    int32_t most, kept, per_step, computed;
    bool lasting;
};

struct rfx_cached_rows {
    struct rfx_cached_rows *next; /* of the same hash slot */
    uint64_t hash;
    const struct rfx_mode *mode;
    int64_t band_rows, parts, overlap_rows;
    int first, end;             /* computed nodes lie in [first, end) */
    unsigned char *places;      /* of these nodes; stored after the rows */
    struct packed_rows rows[1]; /* of the computed nodes */
};

/* Entries lie in a few large blocks, which are returned to the system as a whole when planning
 * ends. Small blocks would stay in the process during the run. */
#define CHUNK_BYTES ((size_t)1 << 20) /* memory.c maps blocks of this size separately */

struct rfx_cache_chunk {
    struct rfx_cache_chunk *next;
    size_t bytes, used;
};

static void init_cache(struct rfx_measurement_cache *cache, const struct rfx_graph *graph,
                       size_t limit) {
    *cache = (struct rfx_measurement_cache){
        .mem = graph->mem, .n_nodes = graph->n_nodes, .limit = limit};
}

void rfx_measurements_release(struct rfx_measurement_cache *cache) {
    for (struct rfx_cache_chunk *c = cache->chunks, *next; c != NULL; c = next) {
        next = c->next;
        rfx_memory_release(cache->mem, c);
    }
    rfx_memory_release(cache->mem, cache->rows);
    rfx_memory_release(cache->mem, cache->mode_block);
    cache->mode_block = NULL;
    cache->block_mode = NULL;
    cache->chunks = NULL;
    cache->rows = NULL;
    cache->bytes = cache->cols_bytes = 0;
}

/* Returns aligned memory for some bytes, which stays free until it is committed; NULL: none is
 * left. */
static void *find_room(struct rfx_measurement_cache *cache, size_t bytes) {
    struct rfx_cache_chunk *c = cache->chunks;
    if (c == NULL || c->bytes - c->used < bytes) {
        size_t size = rfx_align_up(sizeof *c) + bytes;
        if (size < CHUNK_BYTES) size = CHUNK_BYTES;
        if (cache->bytes + size > cache->limit) return NULL;
        c = rfx_memory_alloc(cache->mem, size);
        if (c == NULL) return NULL;
        *c = (struct rfx_cache_chunk){cache->chunks, size, rfx_align_up(sizeof *c)};
        cache->chunks = c;
        cache->bytes += size;
    }
    return (char *)c + c->used;
}

/* Only one mode can have a block. It is allocated on the first call. */
void *rfx_measurements_of_mode(struct rfx_measurement_cache *cache, const struct rfx_mode *mode,
                               const struct rfx_graph *graph) {
    if (mode->cache_bytes == NULL || (cache->block_mode != NULL && cache->block_mode != mode))
        return NULL;
    size_t bytes = cache->block_mode == NULL ? mode->cache_bytes(graph) : 0;
    if (bytes > 0 && bytes <= cache->limit / 2)
        cache->mode_block =
            rfx_memory_calloc(cache->mem, bytes < CHUNK_BYTES ? CHUNK_BYTES : bytes, 1);
    cache->block_mode = mode;
    return cache->mode_block;
}

/* The key of a measurement: everything it depends on. Columns depend on neither mode nor bands. */
struct key {
    const struct rfx_stage_shape *shape; /* only its places, first and end count */
    const struct rfx_mode *mode;
    int64_t band_rows, parts;
};

static struct key key_of_rows(const struct rfx_stage_shape *shape) {
    const struct rfx_stage_spec *spec = &shape->spec;
    return (struct key){shape, spec->mode, spec->band_rows, spec->tiles_y};
}

static struct key key_of_cols(const struct rfx_stage_shape *shape) {
    return (struct key){shape, NULL, 0, shape->spec.tiles_x};
}

static uint64_t hash_of(const struct key *key) {
    const struct rfx_stage_shape *shape = key->shape;
    uint64_t hash = (uint64_t)key->band_rows * 31 + (uint64_t)key->parts;
    hash = ((hash * 2 + (key->mode == NULL)) * 31 + (uint64_t)shape->first) * 31 +
           (uint64_t)shape->end;
    for (int i = shape->first; i < shape->end; i++)
        hash = (hash ^ (uint64_t)shape->places[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

static bool is_same(const struct rfx_cached_rows *k, const struct key *key) {
    const struct rfx_stage_shape *shape = key->shape;
    if (k->mode != key->mode || k->band_rows != key->band_rows || k->parts != key->parts ||
        k->first != shape->first || k->end != shape->end)
        return false;
    for (int i = k->first; i < k->end; i++)
        if (k->places[i - k->first] != (unsigned char)shape->places[i]) return false;
    return true;
}

static const struct rfx_cached_rows *find(const struct rfx_measurement_cache *cache,
                                          const struct key *key) {
    if (cache->rows == NULL) return NULL;
    uint64_t hash = hash_of(key);
    const struct rfx_cached_rows *k = cache->rows[hash % SLOTS];
    while (k != NULL && (k->hash != hash || !is_same(k, key))) k = k->next;
    return k;
}

bool rfx_measurements_find(const struct rfx_measurement_cache *cache,
                           const struct rfx_stage_shape *shape, struct rfx_node_rows *rows,
                           int64_t *overlap_rows) {
    struct key key = key_of_rows(shape);
    const struct rfx_cached_rows *k = find(cache, &key);
    if (k == NULL) return false;
    const struct packed_rows *from = k->rows;
    for (int i = k->first; i < k->end; i++) {
        rows[i] = (struct rfx_node_rows){0};
        if (!rfx_place_is_computed(shape->places[i])) continue;
        rows[i] = (struct rfx_node_rows){from->most, from->kept, from->per_step, from->computed,
                                         from->lasting};
        from++;
    }
    *overlap_rows = k->overlap_rows;
    return true;
}

bool rfx_measurements_find_cols(const struct rfx_measurement_cache *cache,
                                const struct rfx_stage_shape *shape, struct rfx_tile_extent *cols) {
    struct key key = key_of_cols(shape);
    const struct rfx_cached_rows *k = find(cache, &key);
    if (k == NULL) return false;
    const struct packed_rows *from = k->rows;
    for (int i = 0; i < cache->n_nodes; i++) {
        cols[i] = (struct rfx_tile_extent){0};
        if (!rfx_place_is_computed(shape->places[i])) continue;
        cols[i].max = from->most;
        cols[i].sum = from->computed;
        from++;
    }
    return true;
}

static bool pack(const struct rfx_node_rows *rows, struct packed_rows *packed) {
    /* the other counts are not larger than these two */
    if (rows->computed > INT32_MAX || rows->most > INT32_MAX) return false;
    *packed = (struct packed_rows){(int32_t)rows->most, (int32_t)rows->kept,
                                   (int32_t)rows->per_step, (int32_t)rows->computed, rows->lasting};
    return true;
}

/* Prepares an entry for a key, without its measurement; NULL: no memory is left. The entry is not
 * in the cache until it is committed. */
static struct rfx_cached_rows *prepare(struct rfx_measurement_cache *cache, const struct key *key,
                                       size_t *bytes) {
    const struct rfx_stage_shape *shape = key->shape;
    size_t n = (size_t)(shape->end - shape->first), computed = 0;
    for (int i = shape->first; i < shape->end; i++)
        computed += rfx_place_is_computed(shape->places[i]);
    *bytes =
        rfx_align_up(sizeof(struct rfx_cached_rows) + computed * sizeof(struct packed_rows) + n);
    if (cache->rows == NULL)
        cache->rows = rfx_memory_calloc(cache->mem, SLOTS, sizeof(struct rfx_cached_rows *));
    struct rfx_cached_rows *k = cache->rows == NULL ? NULL : find_room(cache, *bytes);
    if (k == NULL) return NULL; /* the stage will be measured again */
    *k = (struct rfx_cached_rows){.hash = hash_of(key),
                                  .mode = key->mode,
                                  .band_rows = key->band_rows,
                                  .parts = key->parts,
                                  .first = shape->first,
                                  .end = shape->end};
    k->places = (unsigned char *)(k->rows + computed);
    for (size_t i = 0; i < n; i++)
        k->places[i] = (unsigned char)shape->places[(size_t)shape->first + i];
    return k;
}

static void commit(struct rfx_measurement_cache *cache, struct rfx_cached_rows *k, size_t bytes) {
    k->next = cache->rows[k->hash % SLOTS];
    cache->rows[k->hash % SLOTS] = k;
    cache->chunks->used += bytes;
}

void rfx_measurements_add(struct rfx_measurement_cache *cache,
                          const struct rfx_stage_shape *shape) {
    size_t bytes;
    struct key key = key_of_rows(shape);
    struct rfx_cached_rows *k = prepare(cache, &key, &bytes);
    if (k == NULL) return;
    struct packed_rows *to = k->rows;
    for (int i = shape->first; i < shape->end; i++)
        if (rfx_place_is_computed(shape->places[i]) && !pack(&shape->rows[i], to++)) return;
    k->overlap_rows = shape->overlap_rows;
    commit(cache, k, bytes);
}

void rfx_measurements_add_cols(struct rfx_measurement_cache *cache,
                               const struct rfx_stage_shape *shape) {
    size_t bytes;
    struct key key = key_of_cols(shape);
    if (cache->cols_bytes > cache->limit / 4) return; /* grids would fill the cache with columns */
    struct rfx_cached_rows *k = prepare(cache, &key, &bytes);
    if (k == NULL) return;
    struct packed_rows *to = k->rows;
    for (int i = shape->first; i < shape->end; i++) {
        struct rfx_node_rows as_rows = {.most = shape->cols[i].max, .computed = shape->cols[i].sum};
        if (rfx_place_is_computed(shape->places[i]) && !pack(&as_rows, to++)) return;
    }
    cache->cols_bytes += bytes;
    commit(cache, k, bytes);
}

/* One entry for the graph with groups, one for the plain graph. */
enum { ENTRIES = 2 };

/* The part of the key that belongs to a node: row counts depend on it besides the base graph.
 * group: first node of the group that this node stands for (-1: none). wanted and taken: the node's
 * ROI. */
struct node_key {
    int group;
    enum rfx_op op;
    struct rfx_rect wanted, taken;
};

struct entry {
    const struct rfx_graph *base;
    struct node_key *nodes; /* n_nodes */
    struct rfx_measurement_cache measurements;
};

struct rfx_plan_cache {
    struct rfx_memory *mem;
    struct entry entries[ENTRIES];
    struct rfx_place_memo *arenas; /* RFX_PLACE_MEMO_ENTRIES; NULL: not allocated */
    int oldest;
};

enum rfx_status rfx_plan_cache_create(struct rfx_memory *mem, struct rfx_plan_cache **out,
                                      struct rfx_error *err) {
    *out = rfx_memory_calloc(mem, 1, sizeof **out);
    if (*out == NULL) return rfx_memory_fail(mem, "measurement cache", sizeof **out, err);
    (*out)->mem = mem;
    return RFX_OK;
}

static void clear_entry(struct entry *entry, struct rfx_memory *mem) {
    if (entry->base == NULL) return;
    rfx_measurements_release(&entry->measurements);
    rfx_memory_release(mem, entry->nodes);
    entry->base = NULL;
}

void rfx_plan_cache_free(struct rfx_plan_cache *plans) {
    if (plans == NULL) return;
    for (int b = 0; b < ENTRIES; b++) clear_entry(&plans->entries[b], plans->mem);
    rfx_memory_release(plans->mem, plans->arenas);
    rfx_memory_release(plans->mem, plans);
}

static struct node_key node_key_of(const struct rfx_node *node) {
    int group = node->op == RFX_OP_GROUP ? node->attr.group.first : -1;
    return (struct node_key){group, node->op, node->wanted, node->taken};
}

static bool are_equal(const struct node_key *a, const struct node_key *b) {
    return a->group == b->group && a->op == b->op && rfx_rect_equal(a->wanted, b->wanted) &&
           rfx_rect_equal(a->taken, b->taken);
}

static bool is_about(const struct entry *entry, const struct rfx_graph *base,
                     const struct rfx_graph *graph) {
    if (entry->base != base || entry->measurements.n_nodes != graph->n_nodes) return false;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct node_key key = node_key_of(&graph->nodes[i]);
        if (!are_equal(&entry->nodes[i], &key)) return false;
    }
    return true;
}

struct rfx_place_memo *rfx_plan_cache_arenas(struct rfx_plan_cache *plans) {
    if (plans == NULL) return NULL;
    if (plans->arenas == NULL)
        plans->arenas =
            rfx_memory_calloc(plans->mem, RFX_PLACE_MEMO_ENTRIES, sizeof *plans->arenas);
    return plans->arenas;
}

struct rfx_measurement_cache *rfx_plan_cache_of(struct rfx_plan_cache *plans,
                                                const struct rfx_graph *graph, size_t limit,
                                                struct rfx_measurement_cache *own) {
    const struct rfx_graph *base = graph;
    while (base->base != NULL) base = base->base;
    init_cache(own, graph, limit);
    for (int b = 0; plans != NULL && b < ENTRIES; b++)
        if (is_about(&plans->entries[b], base, graph)) return &plans->entries[b].measurements;
    if (plans == NULL) return own;
    struct entry *entry = &plans->entries[plans->oldest];
    clear_entry(entry, plans->mem);
    entry->nodes = rfx_memory_alloc(plans->mem, (size_t)graph->n_nodes * sizeof *entry->nodes);
    if (entry->nodes == NULL) return own;
    for (int i = 0; i < graph->n_nodes; i++) entry->nodes[i] = node_key_of(&graph->nodes[i]);
    entry->base = base;
    init_cache(&entry->measurements, graph, limit);
    plans->oldest = (plans->oldest + 1) % ENTRIES;
    return &entry->measurements;
}
