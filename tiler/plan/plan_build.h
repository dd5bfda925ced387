/* Building one plan from stages, and measuring candidates without building them.
 *
 * The planner's search and the final plan share these functions, so that what was compared is what
 * is allocated. Private to tiler/. */
#ifndef RFX_TILER_PLAN_PLAN_BUILD_H
#define RFX_TILER_PLAN_PLAN_BUILD_H

#include "tiler/placement/placement.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/stage.h"

/* Inputs of a node whose slides are measured once: candidates ask for them again and again. */
#define RFX_PLAN_MEASURED 8

/* What a mode's `slide` has found of two nodes, which candidates ask for again and again. Of more
 * than so many, one takes another's place. */
#define RFX_PLAN_LAGS 2048
struct rfx_plan_lag {
    int before, after; /* after 0: no entry */
    int64_t lag;
};

struct rfx_plan_sliding {
    struct rfx_plan_lag *lags; /* [RFX_PLAN_LAGS] */
    int64_t *scratch;          /* 2 * n_nodes */
};

/* Where a stage makes the rows of a node's step, if it is tight. */
struct rfx_plan_fresh {
    int record; /* -1: none */
    int over;   /* node over whose rows they are written; -1: none */
    int last_reader;
};

/* What does not depend on the candidate, and scratch tables. */
struct rfx_plan_context {
    const struct rfx_graph *graph;
    const struct rfx_plan_request *request;
    size_t *packed_bytes; /* per node, aligned */
    size_t weights_bytes, scratch_bytes;
    size_t process_bytes;
    uint64_t macs_untiled;
    struct rfx_record *records; /* of the candidate at hand */
    struct rfx_slide *slides;
    bool *upwards; /* per slide */
    int n_records, n_slides;
    struct rfx_place_span *spans; /* of the candidate's steps, those at which records may change */
    int n_spans;
    struct rfx_slide *measured; /* per node RFX_PLAN_MEASURED, of its first inputs; where `node` is
                                   another one: not measured yet */
    struct rfx_plan_sliding sliding;
    size_t rest_bytes; /* of the last candidate's bound: what its last stage alone asks for */
    struct rfx_place_memo *memo, *own_memo; /* own: where none was given */
    struct rfx_place_kept kept;             /* of the least peak so far, which may be built */
    size_t *live;                           /* per step of the candidate, max_stages stages */
    int *stored_record, *stored_last;       /* per node: its full map's record, and last step */
    int *local_records;                     /* per stage and node: of what the stage has at hand */
    struct rfx_plan_fresh *fresh;           /* per stage and node, of those that are computed */
    bool *resident;                         /* per node: as in the plan */
    int *last_reader, *n_readers;           /* per node, of the stage at hand */
    int max_stages;
    bool quick; /* place with little effort, where there are many records */
};

RFX_NODISCARD enum rfx_status rfx_plan_context_init(struct rfx_plan_context *context,
                                                    const struct rfx_graph *graph,
                                                    const struct rfx_plan_request *request,
                                                    int max_stages, struct rfx_error *err);
void rfx_plan_context_release(struct rfx_plan_context *context);

/* What follows from the stages of a candidate, whose shapes are laid out. */
uint64_t rfx_plan_count_macs(const struct rfx_plan_context *context,
                             const struct rfx_stage_shape *shapes, int n_stages);

/* Fills context->resident: whose packed constants stay, because a stage that does not load them
 * computes the node. */
void rfx_plan_find_resident(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                            int n_stages);

/* Fills context->records and slides with what the candidate keeps in its arena (plan_records.c). */
void rfx_plan_list_records(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                           int n_stages);

/* Takes the directions of slides over into the plan, where stages that slide as a whole are row by
 * row if they do. */
void rfx_plan_take_slides(const struct rfx_plan_context *context, struct rfx_plan *plan);

/* Tables from graph->mem; false: there is no memory. To be released in any case. */
bool rfx_plan_sliding_init(struct rfx_plan_sliding *sliding, const struct rfx_graph *graph);
void rfx_plan_sliding_release(struct rfx_plan_sliding *sliding, struct rfx_memory *mem);

/* Steps of the records' time: every stage has one per node and one at its end. */
int rfx_plan_count_steps(const struct rfx_graph *graph, int n_stages);

/* Rows of a local node's buffer, and whether the rows of a step lie in another one (tight). */
int64_t rfx_stage_buffer_rows(const struct rfx_stage_shape *shape, int node);
/* Rows per step of a node that is made row by row; 0: it is not. */
int64_t rfx_stage_step_rows(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                            int node);
bool rfx_stage_has_fresh(const struct rfx_stage_shape *shape, int node);

/* Lower bound of the process peak; fills the records. Row by row stages: what no slide can save. */
size_t rfx_plan_bound(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                      int n_stages);

/* Fills beside[n_stages]: what the arena has at most beside stored maps, stage by stage; fills the
 * records. */
void rfx_plan_list_beside(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                          int n_stages, size_t *beside);

/* Image rows that a row source has to keep. */
int64_t rfx_plan_window_rows(const struct rfx_plan_context *context,
                             const struct rfx_stage_shape *shapes, int n_stages);

/* Everything but the arena. */
size_t rfx_plan_fixed_bytes(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                            int n_stages);

/* Peak of the plan that rfx_plan_build would make, as `quick` has it. */
RFX_NODISCARD enum rfx_status rfx_plan_peak(struct rfx_plan_context *context,
                                            const struct rfx_stage_shape *shapes, int n_stages,
                                            size_t *peak_bytes, struct rfx_error *err);

/* Places the buffers and makes the plan; `cost` is taken over. */
RFX_NODISCARD enum rfx_status rfx_plan_build(struct rfx_plan_context *context,
                                             const struct rfx_stage_shape *shapes, int n_stages,
                                             uint64_t cost, struct rfx_plan **out,
                                             struct rfx_error *err);
#endif
