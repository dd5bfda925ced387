/* The row stream. It finds which rows of which node can be computed next by inverting the region
 * maps, which are monotone. It also measures the ring buffers that a stream needs, by a walk that
 * examines all readers between two steps. */
#include "tiler/modes/streaming.h"

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/graph/group.h"
#include "layers/graph/op.h"
#include "rf_analysis/regions.h"

struct rfx_range rfx_stream_rows(const struct rfx_graph *graph, const enum rfx_node_place *places,
                                 int node) {
    return rfx_node_stage_range(&graph->nodes[node], places[node] == RFX_PLACE_REDUCED,
                                RFX_AXIS_ROWS);
}

static bool is_target(enum rfx_node_place place) {
    return place > RFX_PLACE_LOCAL;
}

void rfx_stream_begin(struct rfx_stream *stream, const struct rfx_graph *graph,
                      const enum rfx_node_place *places, int64_t band_rows, int64_t *done) {
    stream->graph = graph;
    stream->places = places;
    stream->first = graph->n_nodes;
    stream->last = -1;
    stream->open = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct rfx_range rows = rfx_stream_rows(graph, places, i);
        bool there = places[i] == RFX_PLACE_READ || rfx_node_is_constant(&graph->nodes[i]);
        done[i] = there ? rows.hi : rows.lo;
        if (!rfx_place_is_computed(places[i])) continue;
        if (stream->last < 0) stream->first = i;
        stream->last = i;
        if (is_target(places[i]) && rows.lo < rows.hi) stream->open++;
    }
    stream->band_rows = band_rows;
    stream->done = done;
    stream->waits = NULL;
    stream->node = stream->first;
    stream->step = 0;
}

/* Returns the rows of input k, inside its map, that rows [lo, hi) of the node read. */
static struct rfx_range rows_read(const struct rfx_graph *graph, int node, int k, int64_t lo,
                                  int64_t hi) {
    struct rfx_range out = {lo, hi};
    struct rfx_range in = rfx_input_range(graph, &graph->nodes[node], k, RFX_AXIS_ROWS, out);
    int64_t extent = graph->nodes[graph->nodes[node].in[k]].out.h;
    in.lo = rfx_max_i64(in.lo, 0);
    in.hi = rfx_min_i64(in.hi, extent);
    return in;
}

/* Returns whether the available input rows are enough to compute the node's rows up to `hi`. If
 * not, *wait receives one input and the rows that it must have first. */
static bool can_reach(const struct rfx_stream *stream, int node, int64_t hi,
                      struct rfx_stream_wait *wait) {
    const struct rfx_node *n = &stream->graph->nodes[node];
    bool same = rfx_op_needs_same(n);
    for (int k = 0; k < rfx_place_inputs(stream->places[node], n); k++) {
        if (same && stream->done[n->in[k]] >= hi) continue;
        if (rfx_node_is_constant(&stream->graph->nodes[n->in[k]])) continue;
        struct rfx_range in = rows_read(stream->graph, node, k, stream->done[node], hi);
        if (in.lo >= in.hi || in.hi <= stream->done[n->in[k]]) continue;
        *wait = (struct rfx_stream_wait){stream->done[node], in.hi, n->in[k]};
        return false;
    }
    return true;
}

/* Returns whether the node is known to wait for an input before it can compute a single row. */
static bool is_waiting(const struct rfx_stream *stream, int node) {
    if (stream->waits == NULL) return false;
    const struct rfx_stream_wait *wait = &stream->waits[node];
    return stream->done[node] == wait->from && stream->done[wait->input] < wait->rows;
}

static int64_t image_rows(const struct rfx_stream *stream, const struct rfx_node *node) {
    const struct rfx_graph *graph = stream->graph;
    return graph->input < 0 ? node->out.h : graph->nodes[graph->input].out.h;
}

/* Returns the most rows that a node computes in a step: its share of a band. Without this limit,
 * padding would let every node finish at once at the end of the image, and ring buffers would have
 * to hold all those rows. */
static int64_t rows_per_step(const struct rfx_stream *stream, const struct rfx_node *node) {
    return rfx_max_i64(1, rfx_ceil_div(stream->band_rows * node->out.h, image_rows(stream, node)));
}

/* Returns whether the node reads row y of input k for its own row y. */
static bool reads_same_row(const struct rfx_graph *graph, const struct rfx_node *n, int k) {
    struct rfx_axis_map map = rfx_op_axis_map(graph, n, k, 0);
    return rfx_op_def(n->op)->spatial && map.rule == RFX_AXIS_EVEN && !map.broadcast &&
           map.taps == 1 && map.down == 1 && map.up == 1 && map.pad == 0;
}

/* Returns the map that sets the pace of a map of constants; -1: none. It exists if the first reader
 * of the constants reads both maps row by row and this stage computes the other map. The constants'
 * rows are then computed when the rows of that map exist. */
static int pace_of(const struct rfx_stream *stream, int node) {
    const struct rfx_graph *graph = stream->graph;
    for (int c = node + 1; c <= stream->last; c++) {
        const struct rfx_node *reader = &graph->nodes[c];
        int own = -1, other = -1;
        if (!rfx_place_is_computed(stream->places[c])) continue;
        for (int k = 0; k < rfx_place_inputs(stream->places[c], reader); k++) {
            int in = reader->in[k];
            bool paces = !rfx_node_is_source(&graph->nodes[in]) &&
                         rfx_place_is_computed(stream->places[in]) && in < node;
            if (in == node) own = k;
            if (paces && reads_same_row(graph, reader, k)) other = in;
        }
        if (own >= 0) return reads_same_row(graph, reader, own) ? other : -1;
    }
    return -1;
}

/* Returns whether the node brings rows into the stream that are available from its start. */
static bool is_source(const struct rfx_stream *stream, int node) {
    const struct rfx_node *n = &stream->graph->nodes[node];
    enum rfx_node_place place = stream->places[node];
    if (place == RFX_PLACE_REDUCED || rfx_node_is_input(n)) return false;
    if (rfx_node_is_source(n)) return pace_of(stream, node) < 0;
    for (int k = 0; k < rfx_place_inputs(place, n); k++) {
        const struct rfx_node *in = &stream->graph->nodes[n->in[k]];
        if (stream->places[n->in[k]] == RFX_PLACE_READ && in->out.h > 1) return true;
    }
    return place == RFX_PLACE_FETCHED;
}

/* Returns the row up to which a source may be computed by the end of a step: the same share of its
 * map as of the image. Without this limit, its rows would be computed long before their readers
 * need them, and would wait for rows that come from the image or from a smaller map. */
static int64_t source_share(const struct rfx_stream *stream, int node, int64_t step) {
    const struct rfx_node *n = &stream->graph->nodes[node];
    int64_t first = rfx_stream_rows(stream->graph, stream->places, node).lo;
    return first + rfx_ceil_div(step * stream->band_rows * n->out.h, image_rows(stream, n));
}

/* Returns the first step from `from` on in which some source may continue; INT64_MAX: none. */
static int64_t next_source_step(const struct rfx_stream *stream, int64_t from) {
    int64_t next = INT64_MAX;
    for (int i = stream->first; i <= stream->last; i++) {
        if (!rfx_place_is_computed(stream->places[i]) || !is_source(stream, i)) continue;
        const struct rfx_node *n = &stream->graph->nodes[i];
        struct rfx_range rows = rfx_stream_rows(stream->graph, stream->places, i);
        if (stream->done[i] >= rows.hi) continue;
        int64_t made = stream->done[i] - rows.lo;
        int64_t step = made * image_rows(stream, n) / (stream->band_rows * n->out.h) + 1;
        if (step >= from) next = rfx_min_i64(next, step);
    }
    return next;
}

/* Returns the row up to which the available inputs allow the node to be computed in this step. */
static int64_t reachable(const struct rfx_stream *stream, int node, int64_t step) {
    const struct rfx_node *n = &stream->graph->nodes[node];
    int64_t begun = stream->done[node], lo = begun,
            end = rfx_stream_rows(stream->graph, stream->places, node).hi;
    if (stream->places[node] == RFX_PLACE_REDUCED)
        return rfx_max_i64(begun, rfx_min_i64(stream->done[n->in[0]], end));
    /* only whole blocks, as the rest of a block would be computed twice */
    bool fetched = stream->places[node] == RFX_PLACE_FETCHED;
    struct rfx_conv_block block = {1, 1, 0};
    if (!fetched) block = rfx_conv_rows_together(stream->graph, n);
    int64_t hi = lo + rows_per_step(stream, n);
    int pace = rfx_node_is_source(n) ? pace_of(stream, node) : -1;
    if (pace >= 0 && stream->done[pace] < rfx_stream_rows(stream->graph, stream->places, pace).hi)
        hi = rfx_min_i64(hi, stream->done[pace]);
    if (is_source(stream, node)) hi = rfx_min_i64(hi, source_share(stream, node, step));
    if (hi <= lo) return begun;
    hi = rfx_ceil_div(hi - block.from, block.h) * block.h + block.from;
    hi = rfx_min_i64(hi, end);
    struct rfx_stream_wait wait;
    if (rfx_node_is_input(n) || can_reach(stream, node, hi, &wait)) return hi; /* the usual case */
    hi--;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo + 1) / 2;
        if (can_reach(stream, node, middle, &wait))
            lo = middle;
        else
            hi = middle - 1;
    }
    if (stream->waits != NULL && lo == begun)
        stream->waits[node] = wait; /* the node cannot compute even one row */
    return rfx_max_i64(begun, rfx_floor_div(lo - block.from, block.h) * block.h + block.from);
}

/* Finds the first node, from `node` on, that can continue in this step or the next one; returns
 * false when none can. */
static bool find_turn(const struct rfx_stream *stream, int node, int64_t step,
                      struct rfx_stream_turn *turn) {
    int nodes = stream->last - stream->first + 1; /* one pass over all nodes */
    for (int looked = 0; looked < nodes; looked++) {
        int i = node;
        if (i == stream->first) step++;
        node = i == stream->last ? stream->first : i + 1;
        if (!rfx_place_is_computed(stream->places[i])) continue;
        if (is_waiting(stream, i)) continue;
        int64_t hi = reachable(stream, i, step);
        if (hi == stream->done[i]) continue;
        *turn = (struct rfx_stream_turn){i, step, {stream->done[i], hi}};
        return true;
    }
    return false;
}

/* Skips steps in which nothing can be computed because it is too early for every source. */
bool rfx_stream_peek(const struct rfx_stream *stream, struct rfx_stream_turn *turn) {
    if (stream->open <= 0) return false;
    if (find_turn(stream, stream->node, stream->step, turn)) return true;
    int64_t step = stream->step;
    while ((step = next_source_step(stream, step + 1)) != INT64_MAX)
        if (find_turn(stream, stream->first, step - 1, turn)) return true;
    return false;
}

void rfx_stream_commit(struct rfx_stream *stream, const struct rfx_stream_turn *turn) {
    int i = turn->node;
    stream->step = turn->step;
    stream->node = i == stream->last ? stream->first : i + 1;
    stream->done[i] = turn->rows.hi;
    if (is_target(stream->places[i]) &&
        turn->rows.hi == rfx_stream_rows(stream->graph, stream->places, i).hi)
        stream->open--;
}

int64_t rfx_stream_first_needed(const struct rfx_stream *stream, int consumer, int k) {
    const struct rfx_graph *graph = stream->graph;
    const struct rfx_node *n = &graph->nodes[consumer];
    int64_t extent = graph->nodes[n->in[k]].out.h;
    int64_t end = rfx_stream_rows(graph, stream->places, consumer).hi;
    if (stream->done[consumer] >= end) return extent;
    if (stream->places[consumer] == RFX_PLACE_REDUCED) return stream->done[consumer];
    struct rfx_range in = rows_read(graph, consumer, k, stream->done[consumer], end);
    return in.lo < in.hi ? in.lo : extent;
}

int64_t rfx_stream_keep_from(const struct rfx_stream *stream, int node, int last_reader) {
    const struct rfx_graph *graph = stream->graph;
    int64_t keep_from = graph->nodes[node].out.h;
    int last = last_reader < stream->last ? last_reader : stream->last;
    for (int c = node + 1; c <= last; c++) {
        if (!rfx_place_is_computed(stream->places[c])) continue;
        for (int k = 0; k < rfx_place_inputs(stream->places[c], &graph->nodes[c]); k++)
            if (graph->nodes[c].in[k] == node)
                keep_from = rfx_min_i64(keep_from, rfx_stream_first_needed(stream, c, k));
    }
    return keep_from;
}

#define PERIOD_ROWS 64 /* image rows after which the strides of most networks align again */

/* Detects whether the stream repeats itself: whether every node advances by as many rows in this
 * period of steps as in the period before. */
struct period {
    bool possible;     /* every region map of the stage only shifts when its output is shifted */
    int64_t steps;     /* steps of a period */
    int64_t looked;    /* step at the last look */
    int64_t next_look; /* step */
    int64_t *before, *moved; /* per node: rows done at the last look, and rows advanced since the
                                look before it */
    int equal;               /* consecutive looks with the same advance */
};

/* Returns whether every region map of the stage only shifts when its output is shifted. Resizing by
 * a factor that is not an integer does not; such streams are walked in full. */
static bool has_shifting_maps(const struct rfx_stream *stream) {
    for (int i = stream->first; i <= stream->last; i++) {
        if (stream->places[i] <= RFX_PLACE_FETCHED) continue;
        if (!rfx_op_shifts(stream->graph, &stream->graph->nodes[i])) return false;
    }
    return stream->graph->input >= 0;
}

/* Returns whether reader c and its input k advance in step: when reader c advances by its rows per
 * period, the rows that it reads of input k shift by the input's rows per period. *reach receives
 * how many rows of the input one row of c reads. */
static bool edge_shifts(const struct rfx_stream *stream, const struct period *period, int c, int k,
                        int64_t *reach) {
    const struct rfx_graph *graph = stream->graph;
    const struct rfx_node *n = &graph->nodes[c];
    int in = n->in[k];
    *reach = 1;
    if (stream->places[c] == RFX_PLACE_REDUCED) return period->moved[c] == period->moved[in];
    if (n->out.h == 1 || graph->nodes[in].out.h == 1)
        return true; /* maps of a single row do not advance */
    struct rfx_range row = {stream->done[c], stream->done[c] + 1};
    struct rfx_range shifted = {row.lo + period->moved[c], row.hi + period->moved[c]};
    struct rfx_range now = rfx_input_range(graph, n, k, RFX_AXIS_ROWS, row);
    struct rfx_range then = rfx_input_range(graph, n, k, RFX_AXIS_ROWS, shifted);
    *reach = rfx_range_size(now);
    return then.lo - now.lo == period->moved[in] && then.hi - now.hi == period->moved[in];
}

/* Returns true unless the node is a source that advanced by more or fewer rows than its exact share
 * of a period. */
static bool source_is_even(const struct rfx_stream *stream, const struct period *period, int i) {
    const struct rfx_node *n = &stream->graph->nodes[i];
    return !is_source(stream, i) ||
           period->moved[i] * image_rows(stream, n) == period->steps * stream->band_rows * n->out.h;
}

/* Returns how many periods can be skipped without coming near the end of any map; 0: none, or the
 * stream does not repeat itself. */
static int64_t periods_to_skip(const struct rfx_stream *stream, const struct period *period) {
    const struct rfx_graph *graph = stream->graph;
    int64_t skip = INT64_MAX;
    for (int c = stream->first; c <= stream->last; c++) {
        if (!rfx_place_is_computed(stream->places[c])) continue;
        struct rfx_range all = rfx_stream_rows(graph, stream->places, c);
        int64_t moved = period->moved[c];
        int64_t margin = 3 * moved;
        if (rfx_range_size(all) > 1 && (moved == 0 || stream->done[c] == all.lo)) return 0;
        if (!source_is_even(stream, period, c)) return 0;
        for (int k = 0; k < rfx_place_inputs(stream->places[c], &graph->nodes[c]); k++) {
            int64_t reach;
            if (!rfx_place_is_computed(stream->places[graph->nodes[c].in[k]])) continue;
            if (!edge_shifts(stream, period, c, k, &reach)) return 0;
            margin = rfx_max_i64(margin, 3 * moved + reach);
        }
        if (moved > 0) skip = rfx_min_i64(skip, (all.hi - margin - stream->done[c]) / moved);
    }
    return skip == INT64_MAX ? 0 : skip - 1;
}

/* Examines the stream once per period, before `step` begins. Returns how many periods can be
 * skipped. */
static int64_t look_for_period(const struct rfx_stream *stream, int64_t step,
                               struct period *period) {
    if (!period->possible || step < period->next_look) return 0;
    bool equal = step == period->looked + period->steps;
    for (int i = stream->first; i <= stream->last; i++) {
        int64_t moved = stream->done[i] - period->before[i];
        equal = equal && moved == period->moved[i];
        period->moved[i] = moved;
        period->before[i] = stream->done[i];
    }
    period->looked = step;
    period->next_look = step + period->steps;
    period->equal = equal ? period->equal + 1 : 0;
    return period->equal < 2 ? 0 : rfx_max_i64(0, periods_to_skip(stream, period));
}

/* Moves the stream and the next turn forward by some periods. Afterwards no further period is
 * skipped: the end is walked in full. */
static void skip_periods(struct rfx_stream *stream, int64_t periods, struct period *period,
                         struct rfx_stream_turn *turn) {
    for (int i = stream->first; i <= stream->last; i++)
        if (rfx_place_is_computed(stream->places[i])) stream->done[i] += periods * period->moved[i];
    stream->step += periods * period->steps;
    turn->step += periods * period->steps;
    turn->rows.lo += periods * period->moved[turn->node];
    turn->rows.hi += periods * period->moved[turn->node];
    period->possible = false;
    for (int i = stream->first; i <= stream->last; i++) stream->waits[i].from = -1;
}

/* Prepares to detect repetition in a stream that has begun; `scratch`: 2 * n_nodes elements. */
static struct period begin_period(const struct rfx_stream *stream, int64_t *scratch) {
    int n = stream->graph->n_nodes;
    struct period period = {.possible = has_shifting_maps(stream),
                            .steps = rfx_max_i64(1, PERIOD_ROWS / stream->band_rows),
                            .before = scratch,
                            .moved = scratch + n};
    for (int i = 0; i < 2 * n; i++) scratch[i] = 0;
    return period;
}

/* Starts recording what nodes wait for, for a stream that is walked in one go; `scratch`: 3 *
 * n_nodes elements. */
static void begin_waits(struct rfx_stream *stream, int64_t *scratch) {
    _Static_assert(sizeof *stream->waits <= 3 * sizeof *scratch, "room for what nodes wait for");
    stream->waits = (struct rfx_stream_wait *)(void *)scratch;
    for (int i = 0; i < stream->graph->n_nodes; i++)
        stream->waits[i] = (struct rfx_stream_wait){.from = -1};
}

void rfx_stream_watch(const struct rfx_graph *graph, const enum rfx_node_place *places,
                      int64_t band_rows, int64_t *done, const struct rfx_stream_watcher *watcher) {
    struct rfx_stream stream;
    struct rfx_stream_turn turn;
    rfx_stream_begin(&stream, graph, places, band_rows, done);
    struct period period = begin_period(&stream, done + graph->n_nodes);
    begin_waits(&stream, done + 3 * graph->n_nodes);
    watcher->on_step(watcher->user, &stream);
    while (rfx_stream_peek(&stream, &turn)) {
        if (turn.step != stream.step) {
            if (rfx_memory_is_stopped(graph->mem)) break; /* the result is not used then */
            int64_t skip = look_for_period(&stream, turn.step, &period);
            if (skip > 0) skip_periods(&stream, skip, &period, &turn);
            watcher->on_step(watcher->user, &stream);
        }
        watcher->on_turn(watcher->user, &turn);
        rfx_stream_commit(&stream, &turn);
    }
}

void rfx_stream_sweep(const struct rfx_graph *graph, const enum rfx_node_place *places,
                      int64_t band_rows, int64_t *done, rfx_rows_adder *add, void *user) {
    struct rfx_stream stream;
    struct rfx_stream_turn turn;
    int64_t times = 1, period_end = INT64_MAX; /* the current period stands for `times` periods */
    rfx_stream_begin(&stream, graph, places, band_rows, done);
    struct period period = begin_period(&stream, done + graph->n_nodes);
    begin_waits(&stream, done + 3 * graph->n_nodes);
    while (rfx_stream_peek(&stream, &turn)) {
        if (turn.step == period_end) {
            skip_periods(&stream, times - 1, &period, &turn);
            times = 1;
            period_end = INT64_MAX;
        } else if (turn.step != stream.step) {
            if (rfx_memory_is_stopped(graph->mem)) break;
            int64_t periods = times > 1 ? 0 : look_for_period(&stream, turn.step, &period);
            if (periods > 1) {
                times = periods;
                period_end = turn.step + period.steps;
            }
        }
        if (places[turn.node] != RFX_PLACE_REDUCED) add(user, turn.node, turn.rows, times);
        rfx_stream_commit(&stream, &turn);
    }
}

/* State between two steps, tables of n_nodes. keep_from: the first row of each node that is still
 * needed. looked: the rows done when keep_from was computed (-1: never). stale: keep_from must be
 * recomputed. */
struct look {
    int64_t *keep_from, *looked, *stale;
};

/* Recomputes the first needed row of each map that is read by a node which has advanced since the
 * last look. */
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

struct measuring {
    struct look look;
    struct rfx_node_rows *rings;
};

/* Between two steps, records how many rows of each node must outlive their step. */
static void measure_step(void *user, const struct rfx_stream *stream) {
    const struct measuring *m = user;
    find_kept(stream, &m->look);
    for (int i = stream->first; i <= stream->last; i++) {
        int64_t kept = stream->done[i] - m->look.keep_from[i];
        if (kept <= 0) continue;
        m->rings[i].lasting = true;
        m->rings[i].kept = rfx_max_i64(m->rings[i].kept, kept);
    }
}

static void measure_turn(void *user, const struct rfx_stream_turn *turn) {
    const struct measuring *m = user;
    struct rfx_node_rows *ring = &m->rings[turn->node];
    int64_t first = rfx_min_i64(m->look.keep_from[turn->node], turn->rows.lo);
    ring->most = rfx_max_i64(ring->most, turn->rows.hi - first);
    ring->per_step = rfx_max_i64(ring->per_step, rfx_range_size(turn->rows));
}

/* Completes the row counts of a node. A reduction keeps a state and none of its rows. */
static void end_ring(struct rfx_node_rows *ring, enum rfx_node_place place, int64_t computed) {
    ring->computed = computed;
    if (place != RFX_PLACE_REDUCED) return;
    ring->most = ring->kept = 0;
    ring->lasting = false;
}

void rfx_stream_measure(const struct rfx_graph *graph, const enum rfx_node_place *places,
                        int64_t band_rows, int64_t *done, struct rfx_node_rows *rings) {
    int n = graph->n_nodes;
    struct look look = {.keep_from = done + 6 * n, .looked = done + 7 * n, .stale = done + 8 * n};
    struct measuring m = {look, rings};
    struct rfx_stream_watcher watcher = {measure_step, measure_turn, &m};
    for (int i = 0; i < n; i++) {
        rings[i] = (struct rfx_node_rows){0};
        look.looked[i] = -1;
    }
    rfx_stream_watch(graph, places, band_rows, done, &watcher);
    for (int i = 0; i < n; i++)
        if (rfx_place_is_computed(places[i]))
            end_ring(&rings[i], places[i], done[i] - rfx_stream_rows(graph, places, i).lo);
}
