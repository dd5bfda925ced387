/* A plan: how to run one graph on one image size, and where every buffer lives.
 *
 * Invariants: 1. a plan is const once created; 2. stages cover the nodes in order, each node is in
 * one stage and has one buffer; 3. peak_bytes is the sum of the breakdown; 4. the schedule over the
 * plan (schedule.h) is what the executor runs and what the sizes were computed from. */
#ifndef RFX_TILER_PLAN_H
#define RFX_TILER_PLAN_H

#include "layers/graph.h"
#include "tiler/source_traits.h"

enum rfx_stage_mode {
    RFX_STAGE_WHOLE,    /* node by node, full maps */
    RFX_STAGE_TILED,    /* tile by tile; the last node's tiles are stitched into its full map */
    RFX_STAGE_STREAMED, /* band by band of rows; a row lives in a ring until its last reader is done
                         */
};

struct rfx_stage {
    enum rfx_stage_mode mode;
    int first, last;          /* nodes [first, last) */
    int64_t tiles_y, tiles_x; /* grid over the map of node last - 1; 1 x 1 unless TILED */
    int64_t band_rows;        /* image rows per step; STREAMED only */
};

struct rfx_buffer {
    size_t offset, bytes; /* in the arena; bytes 0: no buffer (packed constants) */
    int first, last;      /* lifetime in node order, inclusive */
    int64_t ring_rows;    /* rows of a ring; 0: the rows of the view, linear */
};

struct rfx_plan_bytes { /* breakdown of the process peak */
    size_t arena;       /* activations */
    size_t weights;     /* packed constants */
    size_t scratch;     /* im2col panels and the like */
    size_t source;      /* image decoder and row window */
    size_t reserve;     /* code, libraries, stacks, BLAS buffers, tables: measured, see docs */
};

struct rfx_plan {
    struct rfx_memory *mem;
    const struct rfx_graph *graph; /* borrowed */
    int threads;
    int n_stages;
    struct rfx_stage stages[2];
    int split;                  /* node, or -1 when untiled */
    struct rfx_buffer *buffers; /* n_nodes */
    struct rfx_buffer
        *pool_states;    /* n_nodes: sums of global pools that a stream feeds; 0 bytes: none */
    int64_t window_rows; /* for rfx_image_set_window */
    struct rfx_plan_bytes bytes;
    size_t peak_bytes;
    size_t lower_bound_bytes; /* of the arena: the largest sum of live buffers */
    uint64_t macs, macs_untiled;
};

struct rfx_plan_request {
    struct rfx_source_traits source;
    int threads;         /* >= 1 */
    size_t memory_bytes; /* 0: no budget */
    bool untiled;
    int64_t tiles_y, tiles_x; /* 0: the planner chooses */
    const char *split;        /* NULL: the planner chooses */
    int64_t band_rows;        /* > 0: stream, this many image rows a step */
};

/* Makes a plan. With memory_bytes: the fewest MACs whose peak fits (split, tiles given are kept);
 * BUDGET_IMPOSSIBLE names the smallest possible budget and its breakdown. Without: untiled unless
 * tiles or bands are given; tiles without a split take the split with the smallest peak.
 * Free with rfx_plan_free; the graph must outlive the plan. */
RFX_NODISCARD enum rfx_status rfx_plan_create(const struct rfx_graph *graph,
                                              const struct rfx_plan_request *request,
                                              struct rfx_plan **out, struct rfx_error *err);

/* As rfx_plan_create; when it returns BUDGET_IMPOSSIBLE, *smallest receives the plan with the
 * smallest possible peak, to be freed by the caller. */
RFX_NODISCARD enum rfx_status rfx_plan_create_or_smallest(const struct rfx_graph *graph,
                                                          const struct rfx_plan_request *request,
                                                          struct rfx_plan **out,
                                                          struct rfx_plan **smallest,
                                                          struct rfx_error *err);

void rfx_plan_free(struct rfx_plan *plan);

/* Reserve for a process with this many threads (docs/memory.md says how it was measured). */
size_t rfx_plan_reserve_bytes(int threads);

/* "features.6, tiles 4x4" or "untiled" into text. */
void rfx_plan_describe(const struct rfx_plan *plan, char *text, size_t size);
#endif
