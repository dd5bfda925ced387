/* Computes the time and memory of a chain by walking back from the targets of every level; see
 * chain_stores.h. */
#include "tiler/search/chain_stores.h"

#include <limits.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rf_analysis/regions.h"

/* A map that may be stored. */
struct offer {
    int node, until; /* how to store it, as last computed: last level; INT_MAX: for all readers */
    double gain;     /* time saved per byte; below 0: it does not fit, or saves nothing */
};

/* The largest maps that are first or last stored at a level, in falling order; 0: no more maps. */
enum { LARGEST = 4 };

struct largest {
    size_t bytes[LARGEST];
};

struct rfx_chain_stores {
    const struct rfx_levels *levels;
    const double *times;
    struct offer *offers;
    int n_offers;
    int *by_level;         /* n_nodes: level by level */
    int *first_at;         /* levels + 1: first index of each level */
    int *seen;             /* n_nodes: the last level (from 1) whose walk has visited the node */
    int *stack;            /* n_nodes */
    int *last;             /* n_nodes: last level that reads a stored map */
    int watched;           /* a node whose reading levels are recorded in `reads` */
    bool *reads;           /* per level */
    size_t *held, *beside; /* per level */
    struct largest *dying, *made; /* per level */
};

/* Returns whether a chain must store a node's map: a node that is not local reads it, or it is an
 * output that local nodes read too, so that it cannot be handed out as it is computed. */
static bool has_to_be(const struct rfx_levels *levels, int i) {
    unsigned read = RFX_USE_OUTPUT | RFX_USE_LOCAL;
    bool output = (levels->uses[i] & read) == read;
    return levels->local[i] && (output || (levels->uses[i] & RFX_USE_REST) != 0);
}

static bool may_be(const struct rfx_levels *levels, int i) {
    return levels->local[i] && !rfx_node_is_constant(&levels->graph->nodes[i]) &&
           !has_to_be(levels, i) && (levels->uses[i] & RFX_USE_ONWARD) != 0 &&
           !rfx_node_is_input(&levels->graph->nodes[i]);
}

static void sort_by_level(struct rfx_chain_stores *s) {
    const struct rfx_levels *levels = s->levels;
    int n = 0;
    for (int level = 0; level < levels->n; level++) {
        s->first_at[level] = n;
        for (int i = 0; i < levels->graph->n_nodes; i++)
            if (levels->level[i] == level && !rfx_node_is_constant(&levels->graph->nodes[i]))
                s->by_level[n++] = i;
    }
    s->first_at[levels->n] = n;
}

enum rfx_status rfx_chain_stores_create(const struct rfx_levels *levels, const double *times,
                                        struct rfx_chain_stores **out, struct rfx_error *err) {
    struct rfx_memory *mem = levels->graph->mem;
    size_t n = (size_t)levels->graph->n_nodes, n_levels = (size_t)levels->n;
    struct rfx_chain_stores *s = rfx_memory_calloc(mem, 1, sizeof *s);
    if (s == NULL) return rfx_memory_fail(mem, "stored maps", sizeof *s, err);
    s->levels = levels;
    s->times = times;
    s->watched = -1;
    s->offers = rfx_memory_calloc(mem, n, sizeof *s->offers);
    s->seen = rfx_memory_calloc(mem, 4 * n + n_levels + 1, sizeof *s->seen);
    s->held = rfx_memory_calloc(mem, 2 * n_levels + 1, sizeof *s->held);
    s->dying = rfx_memory_calloc(mem, 2 * n_levels + 1, sizeof *s->dying);
    s->reads = rfx_memory_calloc(mem, n_levels + 1, sizeof *s->reads);
    *out = s;
    if (s->offers == NULL || s->seen == NULL || s->held == NULL || s->dying == NULL ||
        s->reads == NULL) {
        rfx_chain_stores_free(s);
        *out = NULL;
        return rfx_memory_fail(mem, "stored maps", n * sizeof *s->offers, err);
    }
    s->stack = s->seen + n;
    s->last = s->stack + n;
    s->by_level = s->last + n;
    s->first_at = s->by_level + n;
    s->made = s->dying + n_levels;
    s->beside = s->held + n_levels;
    for (int i = 0; i < levels->graph->n_nodes; i++)
        if (may_be(levels, i)) s->offers[s->n_offers++].node = i;
    sort_by_level(s);
    return RFX_OK;
}

void rfx_chain_stores_free(struct rfx_chain_stores *s) {
    if (s == NULL) return;
    struct rfx_memory *mem = s->levels->graph->mem;
    rfx_memory_release(mem, s->offers);
    rfx_memory_release(mem, s->seen);
    rfx_memory_release(mem, s->held);
    rfx_memory_release(mem, s->dying);
    rfx_memory_release(mem, s->reads);
    rfx_memory_release(mem, s);
}

size_t *rfx_chain_stores_beside(struct rfx_chain_stores *stores) {
    return stores->beside;
}

int64_t rfx_chain_stores_looks(const struct rfx_chain_stores *s) {
    return (int64_t)s->levels->n * s->levels->graph->n_nodes * (s->n_offers + 1);
}

/* Returns whether the stage of a level computes the node as a target. */
static bool is_target(const struct rfx_levels *levels, const int *until, int i) {
    unsigned kept = RFX_USE_OUTPUT | RFX_USE_REST;
    if (levels->local[i]) return until[i] >= 0 || (levels->uses[i] & kept) != 0;
    return rfx_node_reduction(&levels->graph->nodes[i]) != NULL;
}

/* Returns the time of a level's stage. Walks from its targets in stack[n] back to stored maps. */
static double walk_back(struct rfx_chain_stores *s, const int *until, int level, int n) {
    const struct rfx_levels *levels = s->levels;
    double time = 0.0;
    while (n > 0) {
        int i = s->stack[--n];
        const struct rfx_node *node = &levels->graph->nodes[i];
        if (levels->local[i]) time += s->times[i];
        for (int k = 0; k < node->n_in; k++) {
            int in = node->in[k];
            if (!levels->local[in] || rfx_node_is_constant(&levels->graph->nodes[in])) continue;
            bool stored =
                (until[in] >= level || has_to_be(levels, in)) && levels->level[in] < level;
            if (stored) s->last[in] = level;
            if (stored && in == s->watched) s->reads[level] = true;
            if (stored || s->seen[in] == level + 1) continue;
            s->seen[in] = level + 1;
            s->stack[n++] = in;
        }
    }
    return time;
}

static void add_largest(struct largest *l, size_t bytes) {
    for (int k = 0; k < LARGEST; k++) {
        size_t smaller = l->bytes[k];
        if (bytes <= smaller) continue;
        l->bytes[k] = bytes;
        bytes = smaller;
    }
}

/* Returns the bytes that are shared at a level: each new map may be written over a map that is last
 * read there. */
static size_t shared_at(const struct rfx_chain_stores *s, int level) {
    size_t shared = 0;
    for (int k = 0; k < LARGEST; k++) {
        size_t made = s->made[level].bytes[k], dying = s->dying[level].bytes[k];
        shared += made < dying ? made : dying;
    }
    return shared;
}

/* Returns the most bytes that are in use at any level. */
static size_t count_bytes(struct rfx_chain_stores *s, const int *until) {
    const struct rfx_levels *levels = s->levels;
    size_t most = 0;
    memset(s->held, 0, (size_t)levels->n * sizeof *s->held);
    memset(s->dying, 0, 2 * (size_t)levels->n * sizeof *s->dying);
    for (int i = 0; i < levels->graph->n_nodes; i++) {
        if (until[i] < 0 && !has_to_be(levels, i)) continue;
        size_t bytes = rfx_node_roi_bytes(&levels->graph->nodes[i]);
        int first = levels->level[i], last = s->last[i];
        for (int l = first; l <= last; l++) s->held[l] += bytes;
        add_largest(&s->made[first], bytes);
        if (last > first) add_largest(&s->dying[last], bytes);
    }
    for (int l = 0; l < levels->n; l++) {
        size_t bytes = s->held[l] - shared_at(s, l) + s->beside[l];
        if (bytes > most) most = bytes;
    }
    return most;
}

void rfx_chain_stores_count(struct rfx_chain_stores *s, const int *until,
                            struct rfx_chain_count *count) {
    const struct rfx_levels *levels = s->levels;
    int n_nodes = levels->graph->n_nodes;
    *count = (struct rfx_chain_count){0};
    for (int i = 0; i < n_nodes; i++) {
        s->seen[i] = 0;
        s->last[i] = levels->level[i];
    }
    for (int level = 0; level < levels->n; level++) {
        int n = 0;
        for (int at = s->first_at[level]; at < s->first_at[level + 1]; at++) {
            int i = s->by_level[at];
            if (!is_target(levels, until, i)) continue;
            s->seen[i] = level + 1;
            s->stack[n++] = i;
        }
        count->time += walk_back(s, until, level, n);
    }
    count->bytes = count_bytes(s, until);
}

/* A choice in progress. */
struct choice {
    size_t room;
    struct rfx_chain_preference preference;
    int *until;
    struct rfx_chain_count count;
};

/* Returns the time saved per byte if a map is stored up to a level; below 0: it does not fit, or
 * saves nothing. */
static double gain_until(struct rfx_chain_stores *s, const struct choice *c, int i, int until,
                         struct rfx_chain_count *then) {
    size_t bytes = rfx_node_roi_bytes(&s->levels->graph->nodes[i]);
    int before = c->until[i];
    if (bytes > c->room) return -1.0;
    c->until[i] = until;
    rfx_chain_stores_count(s, c->until, then);
    c->until[i] = before;
    int64_t span =
        c->preference.by_span ? s->last[i] - rfx_max_i64(before, s->levels->level[i] - 1) : 1;
    if (then->bytes > c->room || then->time >= c->count.time) return -1.0;
    return (c->count.time - then->time) / (double)rfx_max_i64(span, 1) / (double)bytes;
}

/* Returns the level at which the longest gap between two reads of the watched map begins; -1: there
 * is no gap. */
static int gap_of(const struct rfx_chain_stores *s, int i) {
    int last = s->levels->level[i], at = -1, most = 1;
    for (int level = last + 1; level < s->levels->n; level++) {
        if (!s->reads[level]) continue;
        if (level - last > most && last > s->levels->level[i]) {
            most = level - last;
            at = last;
        }
        last = level;
    }
    return at;
}

/* Evaluates an offer in two ways: the map is stored for all its readers, or only up to its longest
 * gap. Keeps the better one. */
static void count_offer(struct rfx_chain_stores *s, const struct choice *c, struct offer *o) {
    struct rfx_chain_count then;
    memset(s->reads, 0, (size_t)s->levels->n * sizeof *s->reads);
    s->watched = o->node;
    o->until = INT_MAX;
    o->gain = gain_until(s, c, o->node, INT_MAX, &then);
    s->watched = -1;
    int gap = c->preference.forgets && c->until[o->node] < 0 ? gap_of(s, o->node) : -1;
    double gain = gap < 0 ? -1.0 : gain_until(s, c, o->node, gap, &then);
    if (gain <= o->gain) return;
    o->gain = gain;
    o->until = gap;
}

/* Returns the offer with the largest known gain; NULL: no offer saves time. */
static struct offer *best_offer(struct rfx_chain_stores *s, const int *until) {
    struct offer *best = NULL;
    for (int k = 0; k < s->n_offers; k++) {
        struct offer *o = &s->offers[k];
        if (until[o->node] == INT_MAX || o->gain <= 0.0) continue;
        if (best == NULL || o->gain > best->gain) best = o;
    }
    return best;
}

/* Chooses maps greedily. Gains fall as more maps are stored, so the offer that seems best is
 * evaluated again and taken if it is still best. Maps that did not fit are tried again at the end,
 * because other maps may end earlier by then. */
void rfx_chain_stores_choose(struct rfx_chain_stores *s, size_t room,
                             struct rfx_chain_preference preference, int *until,
                             struct rfx_chain_count *count) {
    struct choice c = {.room = room, .preference = preference, .until = until};
    for (int i = 0; i < s->levels->graph->n_nodes; i++) until[i] = -1;
    rfx_chain_stores_count(s, until, &c.count);
    for (bool more = true; more;) {
        more = false;
        for (int k = 0; k < s->n_offers; k++)
            if (until[s->offers[k].node] < INT_MAX) count_offer(s, &c, &s->offers[k]);
        for (struct offer *o; (o = best_offer(s, until)) != NULL;) {
            count_offer(s, &c, o);
            if (o->gain <= 0.0 || best_offer(s, until) != o) continue;
            until[o->node] = o->until;
            rfx_chain_stores_count(s, until, &c.count);
            if (o->until < INT_MAX)
                count_offer(s, &c, o); /* storing it longer may be better still */
            more = true;
        }
    }
    *count = c.count;
}
