/* TODO */
#include "tiler/search/measurement_cache.h"

#include "layers/core/checked.h"
#include "tiler/search/candidates.h"

#define SLOTS 256

/* Rows of a node that fit; taller maps are measured again. */
struct packed_rows {
    int32_t most, kept, fresh, computed;
    bool lasting;
};

struct rfx_known_rows {
    struct rfx_known_rows *next; /* of the same slot */
    uint64_t hash;
    const struct rfx_mode *mode;
    int64_t band_rows, parts, overlap_rows;
    int first, end;             /* nodes that are computed lie in [first, end) */
    unsigned char *places;      /* of those; behind the rows */
    struct packed_rows rows[1]; /* of the nodes that are computed */
};

/* Rows are kept in few large blocks, which go back to the system as a whole: a run comes after
 * planning, and small blocks would stay in the process. */
#define CHUNK_BYTES ((size_t)1 << 20) /* what memory.c maps by itself */

struct rfx_known_chunk {
    struct rfx_known_chunk *next;
    size_t bytes, used;
};

static void init_cache(struct rfx_known *known, const struct rfx_graph *graph, size_t limit) {
    *known = (struct rfx_known){.mem = graph->mem, .n_nodes = graph->n_nodes, .limit = limit};
}

void rfx_known_release(struct rfx_known *known) {
    for (struct rfx_known_chunk *c = known->chunks, *next; c != NULL; c = next) {
        next = c->next;
        rfx_memory_release(known->mem, c);
    }
    rfx_memory_release(known->mem, known->rows);
    rfx_memory_release(known->mem, known->notes);
    known->notes = NULL;
    known->noting = NULL;
    known->chunks = NULL;
    known->rows = NULL;
    known->bytes = known->cols_bytes = 0;
}

/* Room for so many bytes, which are aligned and not taken until they are committed; NULL: none. */
static void *find_room(struct rfx_known *known, size_t bytes) {
    struct rfx_known_chunk *c = known->chunks;
    if (c == NULL || c->bytes - c->used < bytes) {
        size_t size = rfx_align_up(sizeof *c) + bytes;
        if (size < CHUNK_BYTES) size = CHUNK_BYTES;
        if (known->bytes + size > known->limit) return NULL;
        c = rfx_memory_alloc(known->mem, size);
        if (c == NULL) return NULL;
        *c = (struct rfx_known_chunk){known->chunks, size, rfx_align_up(sizeof *c)};
        known->chunks = c;
        known->bytes += size;
    }
    return (char *)c + c->used;
}

/* One mode has notes, which come beside the rows; they are asked for once. */
void *rfx_known_notes(struct rfx_known *known, const struct rfx_mode *mode,
                      const struct rfx_graph *graph) {
    if (mode->notes_bytes == NULL || (known->noting != NULL && known->noting != mode)) return NULL;
    size_t bytes = known->noting == NULL ? mode->notes_bytes(graph) : 0;
    if (bytes > 0 && bytes <= known->limit / 2)
        known->notes = rfx_memory_calloc(known->mem, bytes < CHUNK_BYTES ? CHUNK_BYTES : bytes, 1);
    known->noting = mode;
    return known->notes;
}

/* What measures hang on; of columns, without a mode and bands. */
struct key {
    const struct rfx_stage_shape *shape; /* whose places they are */
    const struct rfx_mode *mode;
    int64_t band_rows, parts;
};

static struct key key_of_rows(const struct rfx_stage_shape *shape) {
    const struct rfx_stage_spec *spec = &shape->spec;
    return (struct key){shape, spec->mode, spec->band_rows, spec->parts_y};
}

static struct key key_of_cols(const struct rfx_stage_shape *shape) {
    return (struct key){shape, NULL, 0, shape->spec.parts_x};
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

static bool is_same(const struct rfx_known_rows *k, const struct key *key) {
    const struct rfx_stage_shape *shape = key->shape;
    if (k->mode != key->mode || k->band_rows != key->band_rows || k->parts != key->parts ||
        k->first != shape->first || k->end != shape->end)
        return false;
    for (int i = k->first; i < k->end; i++)
        if (k->places[i - k->first] != (unsigned char)shape->places[i]) return false;
    return true;
}

static const struct rfx_known_rows *find(const struct rfx_known *known, const struct key *key) {
    if (known->rows == NULL) return NULL;
    uint64_t hash = hash_of(key);
    const struct rfx_known_rows *k = known->rows[hash % SLOTS];
    while (k != NULL && (k->hash != hash || !is_same(k, key))) k = k->next;
    return k;
}

bool rfx_known_find(const struct rfx_known *known, const struct rfx_stage_shape *shape,
                    struct rfx_node_rows *rows, int64_t *overlap_rows) {
    struct key key = key_of_rows(shape);
    const struct rfx_known_rows *k = find(known, &key);
    if (k == NULL) return false;
    const struct packed_rows *from = k->rows;
    for (int i = k->first; i < k->end; i++) {
        rows[i] = (struct rfx_node_rows){0};
        if (!rfx_place_is_computed(shape->places[i])) continue;
        rows[i] = (struct rfx_node_rows){from->most, from->kept, from->fresh, from->computed,
                                         from->lasting};
        from++;
    }
    *overlap_rows = k->overlap_rows;
    return true;
}

bool rfx_known_find_cols(const struct rfx_known *known, const struct rfx_stage_shape *shape,
                         struct rfx_tile_extent *cols) {
    struct key key = key_of_cols(shape);
    const struct rfx_known_rows *k = find(known, &key);
    if (k == NULL) return false;
    const struct packed_rows *from = k->rows;
    for (int i = 0; i < known->n_nodes; i++) {
        cols[i] = (struct rfx_tile_extent){0};
        if (!rfx_place_is_computed(shape->places[i])) continue;
        cols[i].max = from->most;
        cols[i].sum = from->computed;
        from++;
    }
    return true;
}

static bool pack(const struct rfx_node_rows *rows, struct packed_rows *packed) {
    /* the others are no more than these two */
    if (rows->computed > INT32_MAX || rows->most > INT32_MAX) return false;
    *packed = (struct packed_rows){(int32_t)rows->most, (int32_t)rows->kept, (int32_t)rows->fresh,
                                   (int32_t)rows->computed, rows->lasting};
    return true;
}

/* Room for the measures of a key, filled in but for them; NULL: none. Not there until it is
 * committed. */
static struct rfx_known_rows *prepare(struct rfx_known *known, const struct key *key,
                                      size_t *bytes) {
    const struct rfx_stage_shape *shape = key->shape;
    size_t n = (size_t)(shape->end - shape->first), computed = 0;
    for (int i = shape->first; i < shape->end; i++)
        computed += rfx_place_is_computed(shape->places[i]);
    *bytes =
        rfx_align_up(sizeof(struct rfx_known_rows) + computed * sizeof(struct packed_rows) + n);
    if (known->rows == NULL)
        known->rows = rfx_memory_calloc(known->mem, SLOTS, sizeof(struct rfx_known_rows *));
    struct rfx_known_rows *k = known->rows == NULL ? NULL : find_room(known, *bytes);
    if (k == NULL) return NULL; /* measured again then */
    *k = (struct rfx_known_rows){.hash = hash_of(key),
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

static void commit(struct rfx_known *known, struct rfx_known_rows *k, size_t bytes) {
    k->next = known->rows[k->hash % SLOTS];
    known->rows[k->hash % SLOTS] = k;
    known->chunks->used += bytes;
}

void rfx_known_keep(struct rfx_known *known, const struct rfx_stage_shape *shape) {
    size_t bytes;
    struct key key = key_of_rows(shape);
    struct rfx_known_rows *k = prepare(known, &key, &bytes);
    if (k == NULL) return;
    struct packed_rows *to = k->rows;
    for (int i = shape->first; i < shape->end; i++)
        if (rfx_place_is_computed(shape->places[i]) && !pack(&shape->rows[i], to++)) return;
    k->overlap_rows = shape->overlap_rows;
    commit(known, k, bytes);
}

void rfx_known_keep_cols(struct rfx_known *known, const struct rfx_stage_shape *shape) {
    size_t bytes;
    struct key key = key_of_cols(shape);
    if (known->cols_bytes > known->limit / 4) return; /* of grids there are very many */
    struct rfx_known_rows *k = prepare(known, &key, &bytes);
    if (k == NULL) return;
    struct packed_rows *to = k->rows;
    for (int i = shape->first; i < shape->end; i++) {
        struct rfx_node_rows as_rows = {.most = shape->cols[i].max, .computed = shape->cols[i].sum};
        if (rfx_place_is_computed(shape->places[i]) && !pack(&as_rows, to++)) return;
    }
    known->cols_bytes += bytes;
    commit(known, k, bytes);
}

/* One store for the graph with groups, one for that without. */
enum { BOOKS = 2 };

/* What rows hang on beside what a graph's base is: the group that ends with a node (-1: none), and
 * how much of its map is wanted. */
struct page {
    int group;
    enum rfx_op op;
    struct rfx_rect wanted, taken;
};

struct book {
    const struct rfx_graph *base;
    struct page *pages; /* n_nodes */
    struct rfx_known known;
};

struct rfx_plan_notes {
    struct rfx_memory *mem;
    struct book books[BOOKS];
    struct rfx_place_memo *arenas; /* RFX_PLACE_MEMO_ENTRIES; NULL: not yet, or no room */
    int oldest;
};

enum rfx_status rfx_plan_notes_create(struct rfx_memory *mem, struct rfx_plan_notes **out,
                                      struct rfx_error *err) {
    *out = rfx_memory_calloc(mem, 1, sizeof **out);
    if (*out == NULL) return rfx_memory_fail(mem, "notes of planning", sizeof **out, err);
    (*out)->mem = mem;
    return RFX_OK;
}

static void close_book(struct book *book, struct rfx_memory *mem) {
    if (book->base == NULL) return;
    rfx_known_release(&book->known);
    rfx_memory_release(mem, book->pages);
    book->base = NULL;
}

void rfx_plan_notes_free(struct rfx_plan_notes *notes) {
    if (notes == NULL) return;
    for (int b = 0; b < BOOKS; b++) close_book(&notes->books[b], notes->mem);
    rfx_memory_release(notes->mem, notes->arenas);
    rfx_memory_release(notes->mem, notes);
}

static struct page page_of(const struct rfx_node *node) {
    int group = node->op == RFX_OP_GROUP ? node->attr.group.first : -1;
    return (struct page){group, node->op, node->wanted, node->taken};
}

static bool are_equal(const struct page *a, const struct page *b) {
    return a->group == b->group && a->op == b->op && rfx_rect_equal(a->wanted, b->wanted) &&
           rfx_rect_equal(a->taken, b->taken);
}

static bool is_about(const struct book *book, const struct rfx_graph *base,
                     const struct rfx_graph *graph) {
    if (book->base != base || book->known.n_nodes != graph->n_nodes) return false;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct page page = page_of(&graph->nodes[i]);
        if (!are_equal(&book->pages[i], &page)) return false;
    }
    return true;
}

struct rfx_place_memo *rfx_plan_notes_arenas(struct rfx_plan_notes *notes) {
    if (notes == NULL) return NULL;
    if (notes->arenas == NULL)
        notes->arenas =
            rfx_memory_calloc(notes->mem, RFX_PLACE_MEMO_ENTRIES, sizeof *notes->arenas);
    return notes->arenas;
}

struct rfx_known *rfx_plan_notes_of(struct rfx_plan_notes *notes, const struct rfx_graph *graph,
                                    size_t limit, struct rfx_known *own) {
    const struct rfx_graph *base = graph;
    while (base->base != NULL) base = base->base;
    init_cache(own, graph, limit);
    for (int b = 0; notes != NULL && b < BOOKS; b++)
        if (is_about(&notes->books[b], base, graph)) return &notes->books[b].known;
    if (notes == NULL) return own;
    struct book *book = &notes->books[notes->oldest];
    close_book(book, notes->mem);
    book->pages = rfx_memory_alloc(notes->mem, (size_t)graph->n_nodes * sizeof *book->pages);
    if (book->pages == NULL) return own;
    for (int i = 0; i < graph->n_nodes; i++) book->pages[i] = page_of(&graph->nodes[i]);
    book->base = base;
    init_cache(&book->known, graph, limit);
    notes->oldest = (notes->oldest + 1) % BOOKS;
    return &book->known;
}
