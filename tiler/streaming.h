/* Rows streamed through a head: every node computes its next rows as soon as its inputs have them.
 *
 * Invariants: 1. a node's rows are computed once, in order, whole rows; 2. a row is kept until the
 * slowest consumer of the node will not read it again; 3. the iterator that the planner measures
 * rings with is the one that the schedule walks.
 * It does not know where rows are stored. */
#ifndef RFX_TILER_STREAMING_H
#define RFX_TILER_STREAMING_H

#include "layers/graph.h"
#include "layers/rect.h"

struct rfx_stream {
    const struct rfx_graph *graph;
    int last;          /* nodes 0 .. last are streamed */
    int64_t band_rows; /* image rows per step */
    int64_t *done;     /* per node: rows [0, done) have been computed */
    int node;          /* next node to look at */
    int64_t step;      /* counts from 1 */
};

/* Sets the stream to its first step; `done` is the caller's, last + 1 elements. */
void rfx_stream_begin(struct rfx_stream *stream, const struct rfx_graph *graph, int last,
                      int64_t band_rows, int64_t *done);

/* The next node that can go on and its new rows; false at the end. The rows count as computed from
 * the return on. */
bool rfx_stream_next(struct rfx_stream *stream, int *node, struct rfx_range *rows);

/* What a node's rows need while they wait. */
struct rfx_stream_ring {
    int64_t rows;      /* most rows that are alive at a time */
    bool transient;    /* no row outlives the step that made it */
    int64_t computed;  /* rows in all: fewer than the map's where nobody needs the last ones */
    int64_t keep_from; /* scratch of the measurement */
};

/* Walks the whole stream and fills rings[0 .. last]. `done` is scratch of last + 1 elements.
 * O(steps * edges * log rows). */
void rfx_stream_measure(const struct rfx_graph *graph, int last, int64_t band_rows, int64_t *done,
                        struct rfx_stream_ring *rings);

/* Whether all that reads the split's map is global pools, so that it need not be stored. */
bool rfx_stream_ends_in_pools(const struct rfx_graph *graph, int split);
#endif
