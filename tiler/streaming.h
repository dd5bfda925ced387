/* Rows streamed through a stage: every node computes its next rows as soon as its inputs have them.
 *
 * Invariants: 1. a node's rows are computed once per strip, in order; 2. a row is kept until the
 * slowest consumer of the node will not read it again; 3. the iterator that the planner measures
 * rings with is the one that the schedule walks; 4. full maps of earlier stages are there from the
 * start; a reduction takes its input's rows as they come.
 * It does not know where rows are stored, nor about columns. */
#ifndef RFX_TILER_STREAMING_H
#define RFX_TILER_STREAMING_H

#include "layers/graph.h"
#include "layers/rect.h"
#include "tiler/stage.h"

struct rfx_stream {
    const struct rfx_graph *graph;
    const enum rfx_node_place *places;
    int first, last;   /* computed nodes lie in [first, last] */
    int64_t band_rows; /* image rows per step */
    int64_t *done;     /* per node: rows [0, done) have been computed (reductions: taken) */
    int open;          /* targets that are not complete */
    int node;          /* next node to look at */
    int64_t step;      /* counts from 1 */
};

/* Sets the stream to its first step; `done` is the caller's, n_nodes elements. */
void rfx_stream_begin(struct rfx_stream *stream, const struct rfx_graph *graph,
                      const enum rfx_node_place *places, int64_t band_rows, int64_t *done);

/* The next node that can go on and its new rows (reductions: of its input); false at the end. The
 * rows count as computed from the return on. */
bool rfx_stream_next(struct rfx_stream *stream, int *node, struct rfx_range *rows);

/* First row of a node that the stage still reads after what has been done; its height when none. */
int64_t rfx_stream_keep_from(const struct rfx_stream *stream, int node);

/* What a node's rows need while they wait. */
struct rfx_stream_ring {
    int64_t rows;      /* most rows that are alive at a time */
    int64_t kept;      /* most rows that outlive a step */
    int64_t fresh;     /* most rows that a step makes */
    bool transient;    /* no row outlives the step that made it */
    int64_t computed;  /* rows in all: fewer than the map's where nobody needs the last ones */
    int64_t keep_from; /* scratch of the measurement */
};

/* Fills rings[n_nodes] with what a walk through the whole stream needs. Where the stream repeats
 * itself the middle of a tall image is not walked. `done` is scratch of 3 * n_nodes elements.
 * O(steps * edges * log rows). */
void rfx_stream_measure(const struct rfx_graph *graph, const enum rfx_node_place *places,
                        int64_t band_rows, int64_t *done, struct rfx_stream_ring *rings);
/* The same, every step walked; for tests that hold the two equal. `done`: n_nodes elements. */
void rfx_stream_measure_fully(const struct rfx_graph *graph, const enum rfx_node_place *places,
                              int64_t band_rows, int64_t *done, struct rfx_stream_ring *rings);
#endif
