/* What rings a stream needs: a walk through it that looks at all readers between two steps. */
#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rf_analysis/regions.h"
#include "tiler/modes/streaming.h"

/* What is known between two steps: the first row of each node that is still read, and how far each
 * was when that was found (-1: not yet). Tables of n_nodes. */
struct look {
    int64_t *keep_from, *looked, *stale;
};

/* The first rows that are read change where a reader has gone on since the last look. */
static void find_kept(const struct rfx_stream *stream, const struct look *look) {
    const struct rfx_graph *graph = stream->graph;
    for (int i = stream->first; i <= stream->last; i++) look->stale[i] = look->looked[i] < 0;
    for (int c = stream->first; c <= stream->last; c++) {
        if (stream->done[c] == look->looked[c]) continue;
        look->looked[c] = stream->done[c];
        if (!rfx_place_is_computed(stream->places[c])) continue;
        for (int k = 0; k < graph->nodes[c].n_in; k++) look->stale[graph->nodes[c].in[k]] = true;
    }
    for (int i = stream->first; i <= stream->last; i++)
        if (look->stale[i]) look->keep_from[i] = graph->nodes[i].out.h;
    for (int c = stream->first; c <= stream->last; c++) {
        if (!rfx_place_is_computed(stream->places[c])) continue;
        bool same = rfx_op_needs_same(&graph->nodes[c]);
        bool ended = stream->done[c] >= rfx_stream_rows(graph, stream->places, c).hi;
        int64_t first = stream->done[c];
        for (int k = 0; k < rfx_place_inputs(stream->places[c], &graph->nodes[c]); k++) {
            int in = graph->nodes[c].in[k];
            if (!look->stale[in] || !rfx_place_is_computed(stream->places[in])) continue;
            if (!same || ended) first = rfx_stream_first_needed(stream, c, k);
            look->keep_from[in] = rfx_min_i64(look->keep_from[in], first);
        }
    }
}

/* Between two steps: notes which rows outlive the one before. */
static void look_at_step(const struct rfx_stream *stream, const struct look *look,
                         struct rfx_node_rows *rings) {
    find_kept(stream, look);
    for (int i = stream->first; i <= stream->last; i++) {
        int64_t kept = stream->done[i] - look->keep_from[i];
        if (kept <= 0) continue;
        rings[i].lasting = true;
        rings[i].kept = rfx_max_i64(rings[i].kept, kept);
    }
}

struct measuring {
    struct look look;
    struct rfx_node_rows *rings;
    bool fully; /* nothing is taken over from the look before */
};

static void measure_step(void *user, const struct rfx_stream *stream) {
    const struct measuring *m = user;
    for (int i = 0; m->fully && i < stream->graph->n_nodes; i++) m->look.looked[i] = -1;
    look_at_step(stream, &m->look, m->rings);
}

static void measure_turn(void *user, const struct rfx_stream_turn *turn) {
    const struct measuring *m = user;
    struct rfx_node_rows *ring = &m->rings[turn->node];
    int64_t first = rfx_min_i64(m->look.keep_from[turn->node], turn->rows.lo);
    ring->most = rfx_max_i64(ring->most, turn->rows.hi - first);
    ring->fresh = rfx_max_i64(ring->fresh, rfx_range_size(turn->rows));
}

/* What a stage has of a reduction is its state: none of its rows. */
static void end_ring(struct rfx_node_rows *ring, enum rfx_node_place place, int64_t computed) {
    ring->computed = computed;
    if (place != RFX_PLACE_REDUCED) return;
    ring->most = ring->kept = 0;
    ring->lasting = false;
}

static void measure(const struct rfx_graph *graph, const enum rfx_node_place *places,
                    int64_t band_rows, int64_t *done, bool fully, struct rfx_node_rows *rings) {
    int n = graph->n_nodes;
    struct look look = {.keep_from = done + 6 * n, .looked = done + 7 * n, .stale = done + 8 * n};
    struct measuring m = {look, rings, fully};
    struct rfx_stream_watcher watcher = {measure_step, measure_turn, &m};
    for (int i = 0; i < n; i++) {
        rings[i] = (struct rfx_node_rows){0};
        look.looked[i] = -1;
    }
    rfx_stream_watch(graph, places, band_rows, done, fully, &watcher);
    for (int i = 0; i < n; i++)
        if (rfx_place_is_computed(places[i]))
            end_ring(&rings[i], places[i], done[i] - rfx_stream_rows(graph, places, i).lo);
}

void rfx_stream_measure_fully(const struct rfx_graph *graph, const enum rfx_node_place *places,
                              int64_t band_rows, int64_t *done, struct rfx_node_rows *rings) {
    measure(graph, places, band_rows, done, true, rings);
}

void rfx_stream_measure(const struct rfx_graph *graph, const enum rfx_node_place *places,
                        int64_t band_rows, int64_t *done, struct rfx_node_rows *rings) {
    measure(graph, places, band_rows, done, false, rings);
}
