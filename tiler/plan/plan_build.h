/* Building one plan from stages, and measuring candidates without building them.
 *
 * The planner's search and the final plan use the same functions, so that the sizes that were
 * compared are the sizes that are allocated. Private to tiler/. */
#ifndef RFX_TILER_PLAN_PLAN_BUILD_H
#define RFX_TILER_PLAN_PLAN_BUILD_H

#include "tiler/arena/placement.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/stage.h"

/* Inputs per node whose slide distances are computed once and kept, as many candidates ask for
 * them. */
#define RFX_PLAN_MEASURED 8

/* Lags that a mode's `slide` has computed for pairs of nodes, kept because many candidates ask for
 * them. When the table is full, a new entry replaces an old one. */
#define RFX_PLAN_LAGS 2048
struct rfx_plan_lag {
    int before, after; /* after 0: empty entry */
    int64_t lag;
};

struct rfx_plan_sliding {
    struct rfx_plan_lag *lags; /* [RFX_PLAN_LAGS] */
    int64_t *scratch;          /* 2 * n_nodes */
};

/* The staging rows of a node in a stage. */
struct rfx_plan_staging {
    int record; /* -1: none */
    int over;   /* node whose staging rows they overwrite; -1: none */
    int last_reader;
};

/* Data that all candidates share, and scratch tables for the current candidate. */
struct rfx_plan_context {
    const struct rfx_graph *graph;
    const struct rfx_plan_request *request;
    size_t *packed_bytes; /* per node, aligned */
    size_t weights_bytes, scratch_bytes;
    size_t process_bytes;
    uint64_t macs_untiled;
    struct rfx_record *records; /* of the current candidate */
    struct rfx_slide *slides;
    bool *upwards; /* per slide */
    int n_records, n_slides;
    struct rfx_place_span
        *spans; /* steps at which records of the current candidate begin or have ended */
    int n_spans;
    struct rfx_slide *measured; /* RFX_PLAN_MEASURED per node, of its first inputs; not computed yet
                                   where `node` differs */
    struct rfx_plan_sliding sliding;
    size_t rest_bytes; /* bytes that the last stage alone needs, of the last computed bound */
    struct rfx_place_memo *memo, *own_memo; /* own_memo: used where the request brings none */
    struct rfx_place_saved
        kept;     /* the placement with the smallest peak so far, which may be built later */
    size_t *live; /* per step, for max_stages stages */
    int *stored_record, *stored_last; /* per node: record and last step of its full map */
    int *local_records;               /* per stage and node: record of the resident region */
    struct rfx_plan_staging *staging; /* per stage and node, for computed nodes */
    bool *resident;                   /* per node, as in the plan */
    int *last_reader, *n_readers;     /* per node, in the current stage */
    int max_stages;
    bool quick; /* place with little effort where there are many records */
};

RFX_NODISCARD enum rfx_status rfx_plan_context_init(struct rfx_plan_context *context,
                                                    const struct rfx_graph *graph,
                                                    const struct rfx_plan_request *request,
                                                    int max_stages, struct rfx_error *err);
void rfx_plan_context_release(struct rfx_plan_context *context);

/* Returns the MACs of a candidate whose stage shapes are filled. */
uint64_t rfx_plan_count_macs(const struct rfx_plan_context *context,
                             const struct rfx_stage_shape *shapes, int n_stages);

/* Fills context->resident: the packed weights that stay in memory, because a stage that does not
 * load weights itself computes the node. */
void rfx_plan_find_resident(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                            int n_stages);

/* Fills context->records and context->slides with the contents of the candidate's arena
 * (plan_records.c). */
void rfx_plan_list_records(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                           int n_stages);

/* Copies the directions of slides into the plan. A stage that slides as a whole is marked row by
 * row only where something slides. */
void rfx_plan_take_slides(const struct rfx_plan_context *context, struct rfx_plan *plan);

/* Allocates tables from graph->mem; returns false when there is no memory. Release in any case. */
bool rfx_plan_sliding_init(struct rfx_plan_sliding *sliding, const struct rfx_graph *graph);
void rfx_plan_sliding_release(struct rfx_plan_sliding *sliding, struct rfx_memory *mem);

/* Returns the number of time steps: every stage has one step per node and one at its end. */
int rfx_plan_count_steps(const struct rfx_graph *graph, int n_stages);

/* Returns the number of rows of a local node's buffer. */
int64_t rfx_stage_buffer_rows(const struct rfx_stage_shape *shape, int node);
/* rfx_stage_step_rows returns the rows per step of a node that is computed row by row; 0: all rows
 * at once. rfx_stage_has_staging returns whether a node has staging rows. */
int64_t rfx_stage_step_rows(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                            int node);
bool rfx_stage_has_staging(const struct rfx_stage_shape *shape, int node);

/* Returns a lower bound of the peak of the process, and fills the records. In row-by-row stages it
 * deducts the most that slides can save. */
size_t rfx_plan_bound(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                      int n_stages);

/* Fills beside[n_stages] with the largest number of arena bytes that are not stored maps, stage by
 * stage; also fills the records. */
void rfx_plan_list_beside(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                          int n_stages, size_t *beside);

/* Returns the number of image rows that a row source has to keep. */
int64_t rfx_plan_window_rows(const struct rfx_plan_context *context,
                             const struct rfx_stage_shape *shapes, int n_stages);

/* Returns all bytes of the process except the arena. */
size_t rfx_plan_fixed_bytes(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                            int n_stages);

/* Computes the peak of the plan that rfx_plan_build would make, with the effort that `quick` asks
 * for. */
RFX_NODISCARD enum rfx_status rfx_plan_peak(struct rfx_plan_context *context,
                                            const struct rfx_stage_shape *shapes, int n_stages,
                                            size_t *peak_bytes, struct rfx_error *err);

/* Places the buffers and makes the plan; `cost` is stored in the plan. */
RFX_NODISCARD enum rfx_status rfx_plan_build(struct rfx_plan_context *context,
                                             const struct rfx_stage_shape *shapes, int n_stages,
                                             uint64_t cost, struct rfx_plan **out,
                                             struct rfx_error *err);
#endif
