/* Rows streamed through a stage: every node computes its next rows as soon as its inputs have the
 * rows it needs.
 *
 * Invariants: 1. a node's rows are computed once per strip, in order; 2. a row is kept until the
 * slowest reader of the node has read it for the last time; 3. the planner measures rings with the
 * same iterator that the schedule walks; 4. full maps of earlier stages are complete from the
 * start, and a reduction takes its input's rows as they come; 5. rows that are fetched from a file
 * need no input, like those of the image. Streams know neither where rows are stored nor anything
 * about columns. */
#ifndef RFX_TILER_MODES_STREAMING_H
#define RFX_TILER_MODES_STREAMING_H

#include "layers/core/rect.h"
#include "layers/graph/graph.h"
#include "tiler/plan/mode.h"

/* The rows of an input that a node waits for, after it has computed its rows up to `from`. */
struct rfx_stream_wait {
    int64_t from; /* -1: not known */
    int64_t rows; /* rows of the input that the node needs before it can continue */
    int input;
};

struct rfx_stream {
    const struct rfx_graph *graph;
    const enum rfx_node_place *places;
    int first, last;   /* computed nodes lie in [first, last] */
    int64_t band_rows; /* image rows per step */
    int64_t *done;     /* per node: rows [0, done) have been computed (of a reduction: taken) */
    struct rfx_stream_wait
        *waits; /* per node; NULL: not recorded, every node is checked each time */
    int open;   /* targets that are not complete */
    int node;   /* next node to check */
    int64_t
        step; /* of the last committed turn; starts at 1 and grows with each pass over the nodes */
};

/* The next thing to compute: rows of a node (of a reduction: of its input), and the step they
 * belong to. */
struct rfx_stream_turn {
    int node;
    int64_t step;
    struct rfx_range rows;
};

/* Returns the rows that are computed of a node in total (of a reduction: that it takes). */
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

/* Returns the first row of a node that the stage still needs; the map's height when none.
 * last_reader: no later node of the stage reads it. */
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

/* Walks through a stream. It skips the middle of a tall image where the stream repeats itself.
 * done[n_nodes] ends as the stream does; scratch of 6 * n_nodes lies behind it. */
void rfx_stream_watch(const struct rfx_graph *graph, const enum rfx_node_place *places,
                      int64_t band_rows, int64_t *done, const struct rfx_stream_watcher *watcher);

/* Fills rings[n_nodes] with the row counts that a walk through the whole stream needs. `computed`
 * is less than the map's height where no node needs the last rows. The middle of a tall image is
 * skipped where the stream repeats itself. `done`: scratch of RFX_MODE_SCRATCH * n_nodes elements.
 * O(steps * edges * log rows). */
void rfx_stream_measure(const struct rfx_graph *graph, const enum rfx_node_place *places,
                        int64_t band_rows, int64_t *done, struct rfx_node_rows *rings);
/* Passes the rows of every turn, except those of reductions, to `add`; turns of the repeating
 * middle are passed once with their number (sweep_rows of struct rfx_mode). Scratch and cost as
 * above. */
void rfx_stream_sweep(const struct rfx_graph *graph, const enum rfx_node_place *places,
                      int64_t band_rows, int64_t *done, rfx_rows_adder *add, void *user);
#endif
