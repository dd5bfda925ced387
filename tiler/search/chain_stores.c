/* Counting a chain by a walk back from the targets of every level; see chain_stores.h. */
#include "tiler/search/chain_stores.h"

#include <string.h>

#include "layers/graph/op.h"
#include "rf_analysis/regions.h"

/* A map that may be stored. */
struct offer {
    int node;
    double gain; /* when last counted: time saved per byte; below 0: it has no room */
};

struct rfx_chain_stores {
    const struct rfx_levels *levels;
    const double *times;
    struct offer *offers;
    int n_offers;
    int *by_level;               /* n_nodes: level by level */
    int *first_at;               /* levels + 1: where each begins there */
    int *seen;                   /* n_nodes: the level, from 1, whose walk has been here last */
    int *stack;                  /* n_nodes */
    int *last;                   /* n_nodes: of a stored map, the last level that reads it */
    size_t *held, *dying, *made; /* per level */
};

static bool is_there(const struct rfx_levels *levels, int i) {
    const struct rfx_node *node = &levels->graph->nodes[i];
    return rfx_node_is_constant(node) || (levels->image_is_there && rfx_node_is_input(node));
}

/* Whether a node is a map that a chain stores in any case: what is not local reads it, or it is an
 * output that cannot be handed out as it is made. */
static bool has_to_be(const struct rfx_levels *levels, int i) {
    unsigned read = RFX_USE_OUTPUT | RFX_USE_LOCAL;
    bool output = (levels->uses[i] & read) == read;
    return levels->local[i] && (output || (levels->uses[i] & RFX_USE_REST) != 0);
}

static bool may_be(const struct rfx_levels *levels, int i) {
    return levels->local[i] && !is_there(levels, i) && !has_to_be(levels, i) &&
           (levels->uses[i] & RFX_USE_ONWARD) != 0 && !rfx_node_is_input(&levels->graph->nodes[i]);
}

static void sort_by_level(struct rfx_chain_stores *s) {
    const struct rfx_levels *levels = s->levels;
    int n = 0;
    for (int level = 0; level < levels->n; level++) {
        s->first_at[level] = n;
        for (int i = 0; i < levels->graph->n_nodes; i++)
            if (levels->level[i] == level && !is_there(levels, i)) s->by_level[n++] = i;
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
    s->offers = rfx_memory_calloc(mem, n, sizeof *s->offers);
    s->seen = rfx_memory_calloc(mem, 4 * n + n_levels + 1, sizeof *s->seen);
    s->held = rfx_memory_calloc(mem, 3 * n_levels + 1, sizeof *s->held);
    *out = s;
    if (s->offers == NULL || s->seen == NULL || s->held == NULL) {
        rfx_chain_stores_free(s);
        *out = NULL;
        return rfx_memory_fail(mem, "stored maps", n * sizeof *s->offers, err);
    }
    s->stack = s->seen + n;
    s->last = s->stack + n;
    s->by_level = s->last + n;
    s->first_at = s->by_level + n;
    s->dying = s->held + n_levels;
    s->made = s->dying + n_levels;
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
    rfx_memory_release(mem, s);
}

int64_t rfx_chain_stores_looks(const struct rfx_chain_stores *s) {
    return (int64_t)s->levels->n * s->levels->graph->n_nodes * (s->n_offers + 1);
}

/* Whether the stage of a level makes the node in any case, for its own sake. */
static bool is_target(const struct rfx_levels *levels, const bool *chosen, int i) {
    unsigned kept = RFX_USE_OUTPUT | RFX_USE_REST;
    if (levels->local[i]) return chosen[i] || (levels->uses[i] & kept) != 0;
    return rfx_node_reduction(&levels->graph->nodes[i]) != NULL;
}

/* The time of a level's stage, from its targets in stack[n] back to what is stored. */
static double walk_back(struct rfx_chain_stores *s, const bool *chosen, int level, int n) {
    const struct rfx_levels *levels = s->levels;
    double time = 0.0;
    while (n > 0) {
        int i = s->stack[--n];
        const struct rfx_node *node = &levels->graph->nodes[i];
        if (levels->local[i]) time += s->times[i];
        for (int k = 0; k < node->n_in; k++) {
            int in = node->in[k];
            if (!levels->local[in] || is_there(levels, in)) continue;
            bool stored = (chosen[in] || has_to_be(levels, in)) && levels->level[in] < level;
            if (stored) s->last[in] = level;
            if (stored || s->seen[in] == level + 1) continue;
            s->seen[in] = level + 1;
            s->stack[n++] = in;
        }
    }
    return time;
}

/* What is stored at once, level by level. */
static size_t count_bytes(struct rfx_chain_stores *s, const bool *chosen) {
    const struct rfx_levels *levels = s->levels;
    size_t most = 0;
    memset(s->held, 0, 3 * (size_t)levels->n * sizeof *s->held);
    for (int i = 0; i < levels->graph->n_nodes; i++) {
        if (!chosen[i] && !has_to_be(levels, i)) continue;
        size_t bytes = rfx_node_wanted_bytes(&levels->graph->nodes[i]);
        int first = levels->level[i], last = s->last[i];
        for (int l = first; l <= last; l++) s->held[l] += bytes;
        s->made[first] += bytes;
        if (last > first) s->dying[last] += bytes;
    }
    for (int l = 0; l < levels->n; l++) {
        size_t shared = s->made[l] < s->dying[l] ? s->made[l] : s->dying[l];
        if (s->held[l] - shared > most) most = s->held[l] - shared;
    }
    return most;
}

void rfx_chain_stores_count(struct rfx_chain_stores *s, const bool *chosen,
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
            if (!is_target(levels, chosen, i)) continue;
            s->seen[i] = level + 1;
            s->stack[n++] = i;
        }
        count->time += walk_back(s, chosen, level, n);
    }
    count->bytes = count_bytes(s, chosen);
}

/* What a map saves if it is stored too, per byte; below 0: there is no room. */
static double gain_of(struct rfx_chain_stores *s, bool *chosen, int i, size_t room, bool by_span,
                      const struct rfx_chain_count *now, struct rfx_chain_count *then) {
    if (rfx_node_wanted_bytes(&s->levels->graph->nodes[i]) > room) return -1.0;
    chosen[i] = true;
    rfx_chain_stores_count(s, chosen, then);
    chosen[i] = false;
    int span = by_span ? s->last[i] - s->levels->level[i] + 1 : 1;
    if (then->bytes > room || then->time >= now->time) return -1.0;
    return (now->time - then->time) / span /
           (double)rfx_node_wanted_bytes(&s->levels->graph->nodes[i]);
}

/* The offer that saves most, by what is known of it; NULL: none saves anything. */
static struct offer *best_offer(struct rfx_chain_stores *s, const bool *chosen) {
    struct offer *best = NULL;
    for (int k = 0; k < s->n_offers; k++) {
        struct offer *o = &s->offers[k];
        if (!chosen[o->node] && o->gain > 0.0 && (best == NULL || o->gain > best->gain)) best = o;
    }
    return best;
}

/* Gains fall as more is stored: of the one that seemed best it is counted again, and it is taken if
 * it still is. What had no room is asked again at the end, as others may end earlier by then. */
void rfx_chain_stores_choose(struct rfx_chain_stores *s, size_t room, bool by_span, bool *chosen,
                             struct rfx_chain_count *count) {
    memset(chosen, 0, (size_t)s->levels->graph->n_nodes * sizeof *chosen);
    rfx_chain_stores_count(s, chosen, count);
    for (bool more = true; more;) {
        more = false;
        for (int k = 0; k < s->n_offers; k++) {
            struct rfx_chain_count then;
            struct offer *o = &s->offers[k];
            if (!chosen[o->node])
                o->gain = gain_of(s, chosen, o->node, room, by_span, count, &then);
        }
        for (struct offer *o; (o = best_offer(s, chosen)) != NULL;) {
            struct rfx_chain_count then;
            o->gain = gain_of(s, chosen, o->node, room, by_span, count, &then);
            if (o->gain <= 0.0 || best_offer(s, chosen) != o) continue;
            chosen[o->node] = true;
            *count = then;
            more = true;
        }
    }
}
