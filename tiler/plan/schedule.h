/* The schedule: an iterator over the steps of a plan, used by the planner's checks and by the
 * executor.
 *
 * Every mode is a schedule of the same kinds of step: a step computes the rectangle `rect` of node
 * `node` from the resident regions of its inputs. Nothing is allocated after rfx_schedule_create.
 */
#ifndef RFX_TILER_PLAN_SCHEDULE_H
#define RFX_TILER_PLAN_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/rect.h"
#include "tiler/plan/plan.h"

enum rfx_step_kind {
    RFX_STEP_RUN,           /* compute `rect` of the node (of the input: read it from the image) */
    RFX_STEP_LOAD,          /* pack the node's weights into its stage's buffer */
    RFX_STEP_REDUCE_BEGIN,  /* reset the reduction's state to that of no pixels */
    RFX_STEP_REDUCE_ADD,    /* add `rect` of the node's input to its state */
    RFX_STEP_REDUCE_FINISH, /* write the result of the reduction from its state */
    RFX_STEP_KEEP,          /* copy `rect` of the node from its staging rows to its ring */
    RFX_STEP_EMIT,          /* hand out `rect` of the node, which was just computed */
    RFX_STEP_SPILL,         /* write `rect` of the node, which was just computed, to its file */
    RFX_STEP_FETCH,         /* read `rect` of the node from its file */
};

struct rfx_step {
    enum rfx_step_kind kind;
    int stage, node;
    struct rfx_rect rect;  /* in the node's full map (of a reduction: in its input's map) */
    bool restart;          /* input node only: the image is read from its first row again */
    int64_t unit, n_units; /* progress: unit of n_units (tiles or image rows, then nodes) */
};

/* The part of a node's map that is in memory. */
struct rfx_resident_region {
    struct rfx_rect rect; /* in the node's full map */
    size_t offset;        /* of the first row, or of the ring, in the arena */
    int64_t ring_rows;    /* 0: no ring, rows are contiguous */
    bool has_staging;     /* rows from staging_y0 on lie at staging_offset */
    int64_t staging_y0;
    size_t staging_offset;
};

struct rfx_schedule;

/* Creates a schedule at its first step. The plan must outlive it. */
RFX_NODISCARD enum rfx_status rfx_schedule_create(const struct rfx_plan *plan,
                                                  struct rfx_schedule **out, struct rfx_error *err);

void rfx_schedule_free(struct rfx_schedule *schedule);

/* Returns to the first step. */
void rfx_schedule_rewind(struct rfx_schedule *schedule);

/* Fills the next step; returns false at the end. Steps with empty rectangles are skipped. */
bool rfx_schedule_next(struct rfx_schedule *schedule, struct rfx_step *step);

/* Returns the part of a node's map that is in memory while the step that rfx_schedule_next last
 * returned runs. After the last step: in the last stage. */
struct rfx_resident_region rfx_schedule_resident_region(const struct rfx_schedule *schedule,
                                                        int node);
#endif
