/* Sources and what is made of them alone; see stream_sources.h. */
#include "tiler/modes/stream_sources.h"

#include "layers/core/checked.h"
#include "layers/graph/op.h"

/* What `beside` says of a node that is made of sources alone: the node of the flow whose rows its
 * own are joined with, which comes before it; or the node that reads it, which comes behind it and
 * is made of sources alone, too; or one of these. */
enum {
    NOT_READ = -3,
    FLOW = -2,  /* the node is made of the image, too */
    ALONE = -1, /* waits for nothing */
};

enum { LONGEST = 8 }; /* nodes from a source to where it joins the flow */

bool rfx_stream_is_source(const struct rfx_stream *stream, int node) {
    const struct rfx_node *n = &stream->graph->nodes[node];
    enum rfx_node_place place = stream->places[node];
    if (place == RFX_PLACE_REDUCED || rfx_node_is_input(n)) return false;
    for (int k = 0; k < rfx_place_inputs(place, n); k++) {
        const struct rfx_node *in = &stream->graph->nodes[n->in[k]];
        if (stream->places[n->in[k]] == RFX_PLACE_READ && in->out.h > 1) return true;
    }
    return place == RFX_PLACE_FETCHED;
}

/* Whether a node is made of sources alone, by what `beside` says of its inputs. */
static bool is_beside(const struct rfx_stream *stream, int node) {
    const struct rfx_node *n = &stream->graph->nodes[node];
    enum rfx_node_place place = stream->places[node];
    bool any = rfx_stream_is_source(stream, node);
    if (place == RFX_PLACE_REDUCED) return false;
    for (int k = 0; k < rfx_place_inputs(place, n); k++) {
        if (!rfx_place_is_computed(stream->places[n->in[k]])) continue;
        if (stream->beside[n->in[k]] == FLOW) return false;
        any = true;
    }
    return any;
}

/* Whether row after row of a node is made of the same row of its input k. */
static bool reads_same(const struct rfx_stream *stream, int node, int k) {
    const struct rfx_graph *graph = stream->graph;
    int64_t row = graph->nodes[node].out.h / 2;
    if (graph->nodes[graph->nodes[node].in[k]].out.h != graph->nodes[node].out.h) return false;
    struct rfx_range read = rfx_stream_rows_read(graph, node, k, row, row + 1);
    return read.lo == row && read.hi == row + 1;
}

/* The first input of the flow that a node is made of row by row; ALONE: none. */
static int find_flow(const struct rfx_stream *stream, int node) {
    const struct rfx_node *n = &stream->graph->nodes[node];
    if (stream->beside[node] != FLOW || stream->places[node] == RFX_PLACE_REDUCED) return ALONE;
    for (int k = 0; k < rfx_place_inputs(stream->places[node], n); k++) {
        int in = n->in[k];
        if (rfx_place_is_computed(stream->places[in]) && stream->beside[in] == FLOW &&
            reads_same(stream, node, k))
            return in;
    }
    return ALONE;
}

/* What the inputs of a node that are made of sources alone wait for. */
static void tell_inputs(const struct rfx_stream *stream, int node) {
    const struct rfx_node *n = &stream->graph->nodes[node];
    int flow = ALONE; /* looked for when there is such an input */
    bool looked = false;
    for (int k = 0; k < rfx_place_inputs(stream->places[node], n); k++) {
        int in = n->in[k];
        if (!rfx_place_is_computed(stream->places[in]) || stream->beside[in] == FLOW) continue;
        if (!looked) flow = find_flow(stream, node);
        looked = true;
        bool joins = flow < in && reads_same(stream, node, k);
        int beside = stream->beside[node] != FLOW ? node : joins ? flow : ALONE;
        bool first = stream->beside[in] == NOT_READ && stream->places[in] <= RFX_PLACE_LOCAL;
        stream->beside[in] = first ? beside : ALONE;
    }
}

void rfx_stream_find_beside(const struct rfx_stream *stream) {
    for (int i = 0; i < stream->graph->n_nodes; i++) {
        if (!rfx_place_is_computed(stream->places[i])) continue;
        stream->beside[i] = is_beside(stream, i) ? NOT_READ : FLOW;
        tell_inputs(stream, i);
    }
}

/* Rows of a node, up to which its reader, and the readers of that, can go on as far as the flow
 * with which they are joined; INT64_MAX: any. Of a node before that of the flow any, too: it would
 * be a step behind. */
static int64_t joined_end(const struct rfx_stream *stream, int node) {
    int path[LONGEST], n = 0, first = node;
    while (stream->beside[node] > node && n < LONGEST) {
        path[n++] = node;
        node = (int)stream->beside[node];
    }
    if (stream->beside[node] < 0 || stream->beside[node] > first) return INT64_MAX;
    int64_t end = stream->done[stream->beside[node]];
    while (n-- > 0) {
        int64_t begun = stream->done[node];
        end = rfx_stream_whole_blocks(stream, node, end);
        if (end <= begun) return 0;
        int64_t rows = 0;
        for (int k = 0; k < stream->graph->nodes[node].n_in; k++)
            if (stream->graph->nodes[node].in[k] == path[n])
                rows = rfx_stream_rows_read(stream->graph, node, k, begun, end).hi;
        node = path[n];
        end = rows;
    }
    return end;
}

/* So much of a source's map as of the image, or all that it makes would wait for what comes from
 * the image, or from a smaller map. */
static int64_t share_end(const struct rfx_stream *stream, int node, int64_t step) {
    const struct rfx_node *n = &stream->graph->nodes[node];
    int64_t first = rfx_stream_rows(stream->graph, stream->places, node).lo;
    return first +
           rfx_ceil_div(step * stream->band_rows * n->out.h, rfx_stream_image_rows(stream, n));
}

int64_t rfx_stream_source_end(const struct rfx_stream *stream, int node, int64_t step) {
    int64_t end = stream->beside[node] == FLOW ? INT64_MAX : joined_end(stream, node);
    if (!rfx_stream_is_source(stream, node)) return end;
    return rfx_min_i64(end, share_end(stream, node, step));
}

int64_t rfx_stream_next_source_step(const struct rfx_stream *stream, int64_t from) {
    int64_t next = INT64_MAX;
    for (int i = stream->first; i <= stream->last; i++) {
        if (!rfx_place_is_computed(stream->places[i]) || !rfx_stream_is_source(stream, i)) continue;
        const struct rfx_node *n = &stream->graph->nodes[i];
        struct rfx_range rows = rfx_stream_rows(stream->graph, stream->places, i);
        if (stream->done[i] >= rows.hi) continue;
        int64_t made = stream->done[i] - rows.lo;
        int64_t step = made * rfx_stream_image_rows(stream, n) / (stream->band_rows * n->out.h) + 1;
        if (step >= from) next = rfx_min_i64(next, step);
    }
    return next;
}
