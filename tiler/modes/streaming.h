/* Streams rows through a stage: every node computes its next rows as soon as its inputs have the
 * rows that it needs.
 *
 * Invariants: 1. A node's rows are computed once per strip, in order. 2. A row is kept until the
 * slowest reader of the node has read it for the last time. 3. The planner measures ring buffers
 * with the same iterator that the schedule walks. 4. Full maps of earlier stages are complete from
 * the start, and a reduction takes its input's rows as they are computed. 5. Rows that are fetched
 * from a file need no input, like rows of the image. A stream does not know where rows are stored,
 * and knows nothing about columns. */
#ifndef RFX_TILER_MODES_STREAMING_H
#define RFX_TILER_MODES_STREAMING_H

#include "layers/core/rect.h"
#include "layers/graph/graph.h"
#include "tiler/plan/mode.h"

/* What a node waits for, after it has computed its rows up to `from`. */
struct rfx_stream_wait {
    int64_t from; /* the node's rows when it began to wait; -1: not known */
    int64_t rows; /* rows of the input that the node needs before it can continue */
    int input;
};

struct rfx_stream {
    const struct rfx_graph *graph;
    const enum rfx_node_place *places;
    int first, last;   /* computed nodes lie in [first, last] */
    int64_t band_rows; /* image rows per step */
    int64_t *done;     /* per node: rows [0, done) are computed (for a reduction: taken) */
    struct rfx_stream_wait
        *waits; /* per node; NULL: not recorded, every node is checked each time */
    int open;   /* targets that are not complete */
    int node;   /* next node to check */
    int64_t
        step; /* of the last committed turn; starts at 1 and grows with each pass over the nodes */
};

/* A turn: the next rows of a node to compute (for a reduction: rows of its input to take), and the
 * step to which they belong. */
struct rfx_stream_turn {
    int node;
    int64_t step;
    struct rfx_range rows;
};

/* Returns all rows of a node that the stage computes (for a reduction: all rows that it takes). */
struct rfx_range rfx_stream_rows(const struct rfx_graph *graph, const enum rfx_node_place *places,
                                 int node);

/* Starts a stream; `done` has n_nodes elements and belongs to the caller. */
void rfx_stream_begin(struct rfx_stream *stream, const struct rfx_graph *graph,
                      const enum rfx_node_place *places, int64_t band_rows, int64_t *done);

/* Finds the next node that can continue, without moving the stream; returns false at the end. */
bool rfx_stream_peek(const struct rfx_stream *stream, struct rfx_stream_turn *turn);

/* Commits the peeked turn: its rows count as computed from now on. */
void rfx_stream_commit(struct rfx_stream *stream, const struct rfx_stream_turn *turn);

/* Returns the first row of input k that the reader still needs, now or later. */
int64_t rfx_stream_first_needed(const struct rfx_stream *stream, int consumer, int k);

/* Returns the first row of a node that the stage still needs, or the map's height if it needs none.
 * last_reader: the last node of the stage that may read it. */
int64_t rfx_stream_keep_from(const struct rfx_stream *stream, int node, int last_reader);

/* Callbacks of a walk through a stream. */
struct rfx_stream_watcher {
    void (*on_step)(
        void *user,
        const struct rfx_stream *stream); /* before the first step, and between two steps */
    void (*on_turn)(void *user,
                    const struct rfx_stream_turn *turn); /* before the turn is committed */
    void *user;
};

/* Walks through a stream. In a tall image it skips the middle rows where the stream repeats itself.
 * `done` has 6 * n_nodes elements: the first n_nodes end as the stream's rows, the others are
 * scratch. */
void rfx_stream_watch(const struct rfx_graph *graph, const enum rfx_node_place *places,
                      int64_t band_rows, int64_t *done, const struct rfx_stream_watcher *watcher);

/* Fills rings[n_nodes] with the row counts that a walk through the whole stream needs. `computed`
 * is less than the map's height if no node needs the last rows. In a tall image the walk skips the
 * middle rows where the stream repeats itself. `done`: scratch of RFX_MODE_SCRATCH * n_nodes
 * elements. O(steps * edges * log rows). */
void rfx_stream_measure(const struct rfx_graph *graph, const enum rfx_node_place *places,
                        int64_t band_rows, int64_t *done, struct rfx_node_rows *rings);
/* Passes the rows of every turn, except those of reductions, to `add`. Turns of the repeating
 * middle are passed once, with the number of repetitions (sweep_rows of struct rfx_mode). Scratch
 * and cost as rfx_stream_measure. */
void rfx_stream_sweep(const struct rfx_graph *graph, const enum rfx_node_place *places,
                      int64_t band_rows, int64_t *done, rfx_rows_adder *add, void *user);
#endif
