/* Makes one walk per band height, which serves all stages that stream from the image; see
 * stream_cache.h. */
#include "tiler/modes/stream_cache.h"

#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "tiler/modes/streaming.h"

enum { HEIGHTS = 8 }; /* band heights in the cache; the planner tries fewer */

/* A reader of a node's rows. */
struct reader {
    int node, k;   /* reads through its input k */
    int64_t first; /* first row that it still needs, during a walk */
    bool same;     /* it reads the same rows that it computes */
};

/* Row counts of a node that one reader needs: struct rfx_node_rows, `most` and `kept`. */
struct asked {
    int32_t most, kept;
};

struct moved {
    int64_t end;      /* step in which the last row is computed; NEVER: none */
    int64_t per_step; /* most rows per step */
};

#define NEVER INT64_MAX

/* The head of the cache's memory block. The tables of struct cache follow in their order, apart
 * from alignment. */
struct header {
    bool begun;
    int n_heights;
    int64_t heights[HEIGHTS];
};

struct cache {
    const struct rfx_graph *graph;
    struct header *header;
    struct moved *moved;         /* [height][node] */
    struct reader *readers;      /* of node i: [first_reader[i] .. first_reader[i + 1]) */
    struct asked *asked;         /* [height][reader] */
    int *first_reader;           /* n_nodes + 1 */
    enum rfx_node_place *places; /* n_nodes: of everything that can be streamed, as one stage */
};

static size_t count_edges(const struct rfx_graph *graph) {
    size_t n = 0;
    for (int i = 0; i < graph->n_nodes; i++) n += (size_t)graph->nodes[i].n_in;
    return n;
}

size_t rfx_stream_cache_bytes(const struct rfx_graph *graph) {
    size_t n = (size_t)graph->n_nodes, edges = count_edges(graph);
    return sizeof(struct header) + HEIGHTS * n * sizeof(struct moved) +
           edges * sizeof(struct reader) + HEIGHTS * edges * sizeof(struct asked) +
           (n + 1) * sizeof(int) + n * sizeof(enum rfx_node_place);
}

static struct cache open_cache(void *block, const struct rfx_graph *graph) {
    size_t n = (size_t)graph->n_nodes, edges = count_edges(graph);
    struct cache cache = {.graph = graph, .header = block};
    cache.moved = (struct moved *)(void *)(cache.header + 1);
    cache.readers = (struct reader *)(void *)(cache.moved + HEIGHTS * n);
    cache.asked = (struct asked *)(void *)(cache.readers + edges);
    cache.first_reader = (int *)(void *)(cache.asked + HEIGHTS * edges);
    cache.places = (enum rfx_node_place *)(void *)(cache.first_reader + n + 1);
    return cache;
}

static bool is_streamed(const struct cache *cache, int i) {
    return rfx_place_is_computed(cache->places[i]);
}

/* Makes one stage of everything that is local in space; all other nodes are given. Its targets are
 * the nodes that no other node of the stage reads. */
static void find_places(const struct cache *cache) {
    const struct rfx_graph *graph = cache->graph;
    enum rfx_node_place *places = cache->places;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        places[i] = rfx_node_is_local(node) ? RFX_PLACE_STORED : RFX_PLACE_READ;
        if (rfx_node_is_constant(node) || node->op == RFX_OP_INNER) places[i] = RFX_PLACE_NONE;
    }
    for (int i = 0; i < graph->n_nodes; i++)
        for (int k = 0; is_streamed(cache, i) && k < graph->nodes[i].n_in; k++)
            if (is_streamed(cache, graph->nodes[i].in[k]))
                places[graph->nodes[i].in[k]] = RFX_PLACE_LOCAL;
}

static void list_readers(const struct cache *cache) {
    const struct rfx_graph *graph = cache->graph;
    int *first = cache->first_reader; /* while counting, the entry of node i lies at i + 1 */
    memset(first, 0, ((size_t)graph->n_nodes + 1) * sizeof *first);
    for (int c = 0; c < graph->n_nodes; c++)
        for (int k = 0; is_streamed(cache, c) && k < graph->nodes[c].n_in; k++)
            if (graph->nodes[c].in[k] + 2 <= graph->n_nodes) first[graph->nodes[c].in[k] + 2]++;
    for (int i = 1; i <= graph->n_nodes; i++) first[i] += first[i - 1];
    for (int c = 0; c < graph->n_nodes; c++) {
        if (!is_streamed(cache, c)) continue;
        bool same = rfx_op_needs_same(&graph->nodes[c]);
        for (int k = 0; k < graph->nodes[c].n_in; k++) {
            int at = first[graph->nodes[c].in[k] + 1]++;
            cache->readers[at] = (struct reader){c, k, 0, same};
        }
    }
}

/* The current walk. */
struct walk {
    const struct cache *cache;
    struct moved *moved; /* tables of the walk's band height */
    struct asked *asked;
    int64_t *looked; /* n_nodes: rows done at the last look; -1: none yet */
};

static int64_t first_of(const struct rfx_stream *stream, const struct reader *reader) {
    struct rfx_range rows = rfx_stream_rows(stream->graph, stream->places, reader->node);
    int64_t done = stream->done[reader->node];
    if (reader->same && done < rows.hi) return done;
    return rfx_stream_first_needed(stream, reader->node, reader->k);
}

static void look_at_step(void *user, const struct rfx_stream *stream) {
    const struct walk *walk = user;
    const struct cache *cache = walk->cache;
    for (int i = stream->first; i <= stream->last; i++) {
        if (!is_streamed(cache, i)) continue;
        for (int r = cache->first_reader[i]; r < cache->first_reader[i + 1]; r++) {
            struct reader *reader = &cache->readers[r];
            if (stream->done[reader->node] != walk->looked[reader->node])
                reader->first = first_of(stream, reader);
            int64_t kept = stream->done[i] - reader->first;
            if (kept > walk->asked[r].kept) walk->asked[r].kept = (int32_t)kept;
        }
    }
    for (int i = stream->first; i <= stream->last; i++) walk->looked[i] = stream->done[i];
}

static void take_turn(void *user, const struct rfx_stream_turn *turn) {
    const struct walk *walk = user;
    const struct cache *cache = walk->cache;
    struct moved *moved = &walk->moved[turn->node];
    struct rfx_range rows = rfx_stream_rows(cache->graph, cache->places, turn->node);
    moved->per_step = rfx_max_i64(moved->per_step, rfx_range_size(turn->rows));
    if (turn->rows.hi == rows.hi) moved->end = turn->step;
    for (int r = cache->first_reader[turn->node]; r < cache->first_reader[turn->node + 1]; r++) {
        int64_t most = turn->rows.hi - rfx_min_i64(cache->readers[r].first, turn->rows.lo);
        if (most > walk->asked[r].most) walk->asked[r].most = (int32_t)most;
    }
}

/* Returns the index of the tables of a band height. If they do not exist, fills them by a walk,
 * provided that an entry is free and the row counts fit; -1: none. */
static int find_height(const struct cache *cache, const struct rfx_mode_measure *m) {
    struct header *header = cache->header;
    const struct rfx_graph *graph = cache->graph;
    size_t n = (size_t)graph->n_nodes;
    int h = 0;
    while (h < header->n_heights && header->heights[h] != m->spec->band_rows) h++;
    if (h < header->n_heights) return h;
    if (h == HEIGHTS) return -1;
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].out.h > INT32_MAX) return -1;
    struct walk walk = {.cache = cache,
                        .moved = cache->moved + (size_t)h * n,
                        .asked = cache->asked + (size_t)h * (size_t)cache->first_reader[n],
                        .looked = m->done + 6 * n};
    for (size_t i = 0; i < n; i++) {
        struct rfx_range rows = rfx_stream_rows(graph, cache->places, (int)i);
        walk.moved[i] = (struct moved){rows.lo < rows.hi ? NEVER : 0, 0};
        walk.looked[i] = -1;
    }
    struct rfx_stream_watcher watcher = {look_at_step, take_turn, &walk};
    rfx_stream_watch(graph, cache->places, m->spec->band_rows, m->done, &watcher);
    if (rfx_memory_is_stopped(graph->mem)) return -1;
    header->heights[header->n_heights++] = m->spec->band_rows;
    return h;
}

/* Returns whether the stage computes a node from the same inputs as the walk did. A reduction takes
 * its input's rows as they come and keeps none. */
static bool is_alike(const struct cache *cache, const enum rfx_node_place *places, int i) {
    const struct rfx_node *node = &cache->graph->nodes[i];
    if (places[i] == RFX_PLACE_FETCHED) return false;
    if (places[i] == RFX_PLACE_REDUCED) {
        int in = node->in[0];
        struct rfx_rect whole = cache->graph->nodes[in].wanted;
        return is_streamed(cache, in) && rfx_place_is_computed(places[in]) &&
               node->taken.y0 == whole.y0 && node->taken.y1 == whole.y1;
    }
    if (!is_streamed(cache, i)) return false;
    for (int k = 0; k < node->n_in; k++) {
        int in = node->in[k];
        if (!rfx_node_is_constant(&cache->graph->nodes[in]) &&
            rfx_place_is_computed(places[in]) != is_streamed(cache, in))
            return false;
    }
    return true;
}

/* The moment when all targets of a stage are complete: its last step and, within it, the last node
 * whose turn comes. */
struct end {
    int64_t step;
    int node;
};

static struct end end_of(const struct cache *cache, const struct moved *moved,
                         const enum rfx_node_place *places, int i) {
    int made = places[i] == RFX_PLACE_REDUCED ? cache->graph->nodes[i].in[0] : i;
    return (struct end){moved[made].end, i};
}

static bool is_before(struct end a, struct end b) {
    return a.step != b.step ? a.step < b.step : a.node < b.node;
}

static struct rfx_node_rows rows_of(const struct cache *cache, int height,
                                    const enum rfx_node_place *places, int i) {
    const struct rfx_graph *graph = cache->graph;
    size_t n = (size_t)graph->n_nodes;
    const struct moved *moved = cache->moved + (size_t)height * n;
    const struct asked *asked = cache->asked + (size_t)height * (size_t)cache->first_reader[n];
    struct rfx_node_rows rows = {.computed = rfx_range_size(rfx_stream_rows(graph, places, i))};
    if (places[i] == RFX_PLACE_REDUCED) {
        rows.per_step = moved[graph->nodes[i].in[0]].per_step;
        return rows;
    }
    rows.most = rows.per_step = moved[i].per_step;
    for (int r = cache->first_reader[i]; r < cache->first_reader[i + 1]; r++) {
        if (!rfx_place_is_computed(places[cache->readers[r].node])) continue;
        rows.most = rfx_max_i64(rows.most, asked[r].most);
        rows.kept = rfx_max_i64(rows.kept, asked[r].kept);
    }
    rows.lasting = rows.kept > 0;
    return rows;
}

bool rfx_stream_cache_rows(void *block, const struct rfx_mode_measure *m,
                           struct rfx_node_rows *rows) {
    struct cache cache = open_cache(block, m->graph);
    const struct rfx_graph *graph = m->graph;
    struct end last = {-1, -1};
    if (!cache.header->begun) {
        find_places(&cache);
        list_readers(&cache);
        cache.header->begun = true;
    }
    int first = graph->n_nodes, n = 0; /* nodes of the stage lie in first .. n - 1 */
    for (int i = 0; i < graph->n_nodes; i++) {
        if (!rfx_place_is_computed(m->places[i])) continue;
        if (!is_alike(&cache, m->places, i)) return false;
        /* maps of constants are not covered: they follow the pace of the stage's own reader */
        if (rfx_node_is_source(&graph->nodes[i])) return false;
        if (n == 0) first = i;
        n = i + 1;
    }
    int height = find_height(&cache, m);
    if (height < 0) return false;
    const struct moved *moved = cache.moved + (size_t)height * (size_t)graph->n_nodes;
    for (int i = first; i < n; i++) {
        struct end end = end_of(&cache, moved, m->places, i);
        if (m->places[i] > RFX_PLACE_LOCAL && is_before(last, end)) last = end;
    }
    for (int i = first; i < n; i++) {
        rows[i] = (struct rfx_node_rows){0};
        if (!rfx_place_is_computed(m->places[i])) continue;
        /* the stage would end before all rows of the node are computed */
        if (is_before(last, end_of(&cache, moved, m->places, i))) return false;
        rows[i] = rows_of(&cache, height, m->places, i);
    }
    return last.step != NEVER;
}
