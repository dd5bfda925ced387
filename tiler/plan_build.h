/* Building one plan from stages, and measuring candidates without building them.
 *
 * The planner's search and the final plan share these functions, so that what was compared is what
 * is allocated. Private to tiler/. */
#ifndef RFX_TILER_PLAN_BUILD_H
#define RFX_TILER_PLAN_BUILD_H

#include "tiler/placement.h"
#include "tiler/plan.h"
#include "tiler/stage.h"
#include "tiler/streaming.h"

/* One stage of a candidate: its specification and its geometry. Tables of n_nodes, borrowed. */
struct rfx_stage_choice {
    struct rfx_stage_spec spec;
    const enum rfx_node_place *places;
    const struct rfx_tile_extent *rows;  /* TILED */
    const struct rfx_tile_extent *cols;  /* TILED; STREAMED in more than one strip; else NULL */
    const struct rfx_stream_ring *rings; /* STREAMED */
    int64_t overlap_rows;                /* TILED: image rows shared by consecutive tiles */
};

/* What does not depend on the candidate, and scratch tables. */
struct rfx_plan_context {
    const struct rfx_graph *graph;
    const struct rfx_plan_request *request;
    size_t *packed_bytes; /* per node, aligned */
    size_t weights_bytes, scratch_bytes;
    uint64_t macs_untiled;
    struct rfx_record *records; /* of the candidate at hand */
    struct rfx_slide *slides;
    bool *upwards; /* per slide */
    int n_records, n_slides, record_capacity, slide_capacity;
    size_t *live;                     /* per step of the candidate, max_stages stages */
    int *stored_record, *stored_last; /* per node: its full map's record, and last step */
    int *local_records;               /* per stage and node: of what the stage has at hand */
    bool *by_caller;                  /* per node: as in the plan */
    int *last_reader, *n_readers;     /* per node, of the stage at hand */
    int max_stages;
    bool quick; /* place with little effort */
};

RFX_NODISCARD enum rfx_status rfx_plan_context_init(struct rfx_plan_context *context,
                                                    const struct rfx_graph *graph,
                                                    const struct rfx_plan_request *request,
                                                    int max_stages, struct rfx_error *err);
void rfx_plan_context_release(struct rfx_plan_context *context);

/* A candidate: stages, and whether packed constants are loaded when their stage begins. */
struct rfx_plan_candidate {
    const struct rfx_stage_choice *stages;
    int n_stages;
    bool weights_by_stage;
};

uint64_t rfx_plan_count_macs(const struct rfx_plan_context *context,
                             const struct rfx_plan_candidate *candidate);

/* Fills context->records and slides with what the candidate keeps in its arena (plan_records.c). */
void rfx_plan_list_records(struct rfx_plan_context *context,
                           const struct rfx_plan_candidate *candidate);

/* Steps of the records' time: every stage has one per node and one at its end. */
int rfx_plan_count_steps(const struct rfx_graph *graph, int n_stages);

/* Lower bound of the process peak; fills the records. Row by row stages: what no slide can save. */
size_t rfx_plan_bound(struct rfx_plan_context *context, const struct rfx_plan_candidate *candidate);

/* Image rows that a row source has to keep. */
int64_t rfx_plan_window_rows(const struct rfx_plan_context *context,
                             const struct rfx_plan_candidate *candidate);

/* Everything but the arena. */
size_t rfx_plan_fixed_bytes(const struct rfx_plan_context *context,
                            const struct rfx_plan_candidate *candidate);

/* Rows per step of a node in a stage that runs row by row. */
int64_t rfx_plan_step_rows(const struct rfx_graph *graph, int node);

/* Places the buffers and makes the plan. */
RFX_NODISCARD enum rfx_status rfx_plan_build(struct rfx_plan_context *context,
                                             const struct rfx_plan_candidate *candidate,
                                             struct rfx_plan **out, struct rfx_error *err);
#endif
