/* Rows streamed through a stage: every node computes its next rows as soon as its inputs have them.
 *
 * Invariants: 1. a node's rows are computed once per strip, in order; 2. a row is kept until the
 * slowest consumer of the node will not read it again; 3. the iterator that the planner measures
 * rings with is the one that the schedule walks; 4. full maps of earlier stages are there from the
 * start; a reduction takes its input's rows as they come; 5. rows that are fetched from a file need
 * no input, as those of the image.
 * It does not know where rows are stored, nor about columns. */
#ifndef RFX_TILER_MODES_STREAMING_H
#define RFX_TILER_MODES_STREAMING_H

#include "layers/core/rect.h"
#include "layers/graph/graph.h"
#include "tiler/plan/mode.h"

/* What a node has been found to wait for, that has made rows [0, from). */
struct rfx_stream_wait {
    int64_t from; /* -1: nothing is known */
    int64_t rows; /* of the input, before the node can go on at all */
    int input;
};

struct rfx_stream {
    const struct rfx_graph *graph;
    const enum rfx_node_place *places;
    int first, last;   /* computed nodes lie in [first, last] */
    int64_t band_rows; /* image rows per step */
    int64_t *done;     /* per node: rows [0, done) have been computed (reductions: taken) */
    struct rfx_stream_wait *waits; /* per node; NULL: not noted, each node is looked at each time */
    int open;                      /* targets that are not complete */
    int node;                      /* next node to look at */
    int64_t step; /* of the turn last committed; counts from 1, one each time through the nodes */
};

/* What comes next: these rows of this node (reductions: of its input), in this step. */
struct rfx_stream_turn {
    int node;
    int64_t step;
    struct rfx_range rows;
};

/* Rows that are made of a node in all: of a reduction, those that it takes. */
struct rfx_range rfx_stream_rows(const struct rfx_graph *graph, const enum rfx_node_place *places,
                                 int node);

/* Sets the stream to its first step; `done` is the caller's, n_nodes elements. */
void rfx_stream_begin(struct rfx_stream *stream, const struct rfx_graph *graph,
                      const enum rfx_node_place *places, int64_t band_rows, int64_t *done);

/* The next node that can go on, without moving the stream; false at the end. */
bool rfx_stream_peek(const struct rfx_stream *stream, struct rfx_stream_turn *turn);

/* Takes the turn that was peeked: its rows count as computed from here on. */
void rfx_stream_commit(struct rfx_stream *stream, const struct rfx_stream_turn *turn);

/* First row of input k that the consumer still reads, now or later. */
int64_t rfx_stream_first_needed(const struct rfx_stream *stream, int consumer, int k);

/* First row of a node that the stage still reads after what has been done; its height when none.
 * last_reader: of the stage's nodes, no later one reads it. */
int64_t rfx_stream_keep_from(const struct rfx_stream *stream, int node, int last_reader);

/* What is told of a walk through a stream. */
struct rfx_stream_watcher {
    void (*on_step)(void *user,
                    const struct rfx_stream *stream); /* before the first, between two */
    void (*on_turn)(void *user, const struct rfx_stream_turn *turn); /* before it is taken */
    void *user;
};

/* Walks through a stream; unless `fully`, not through the middle of a tall image where the stream
 * repeats itself. done[n_nodes] ends as the stream does; behind it, scratch up to 6 * n_nodes. */
void rfx_stream_watch(const struct rfx_graph *graph, const enum rfx_node_place *places,
                      int64_t band_rows, int64_t *done, bool fully,
                      const struct rfx_stream_watcher *watcher);

/* Fills rings[n_nodes] with what a walk through the whole stream needs; `computed` is less than the
 * map's height where nobody needs the last rows. Where the stream repeats itself the middle of a
 * tall image is not walked. `done` is scratch of RFX_MODE_SCRATCH * n_nodes elements.
 * O(steps * edges * log rows). */
void rfx_stream_measure(const struct rfx_graph *graph, const enum rfx_node_place *places,
                        int64_t band_rows, int64_t *done, struct rfx_node_rows *rings);
/* Gives `add` the rows of every turn but of reductions, those of the middle of a tall image once
 * for all (struct rfx_mode's sweep_rows). Scratch and cost as above. */
void rfx_stream_sweep(const struct rfx_graph *graph, const enum rfx_node_place *places,
                      int64_t band_rows, int64_t *done, rfx_rows_adder *add, void *user);
/* rfx_stream_measure, every step walked; for tests that hold the two equal. */
void rfx_stream_measure_fully(const struct rfx_graph *graph, const enum rfx_node_place *places,
                              int64_t band_rows, int64_t *done, struct rfx_node_rows *rings);
#endif
