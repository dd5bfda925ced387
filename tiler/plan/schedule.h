/* TODO */
#ifndef RFX_TILER_PLAN_SCHEDULE_H
#define RFX_TILER_PLAN_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/rect.h"
#include "tiler/plan/plan.h"

enum rfx_step_kind {
    RFX_STEP_RUN,           /* compute `rect` of the node (the input: read it) */
    RFX_STEP_LOAD,          /* pack the node's constants into its stage's buffer */
    RFX_STEP_REDUCE_BEGIN,  /* make the reduction's state that of no pixels */
    RFX_STEP_REDUCE_ADD,    /* add `rect` of the node's input to its state */
    RFX_STEP_REDUCE_FINISH, /* write the result from the state */
    RFX_STEP_KEEP,          /* copy `rect` of the node from its fresh rows to its ring */
    RFX_STEP_EMIT,          /* hand out `rect` of the node, just computed */
    RFX_STEP_SPILL,         /* write `rect` of the node, just computed, to its file */
    RFX_STEP_FETCH,         /* read `rect` of the node from its file */
};

struct rfx_step {
    enum rfx_step_kind kind;
    int stage, node;
    struct rfx_rect rect;  /* in the node's full map (of a reduction: in its input's) */
    bool restart;          /* of the input node: the image is read from its first row again */
    int64_t unit, n_units; /* progress: unit of n_units (parts or image rows, then nodes) */
};

/* What of a node is in memory. */
struct rfx_part {
    struct rfx_rect rect; /* in the node's full map */
    size_t offset;        /* in the arena, of the first row, or of the ring */
    int64_t ring_rows;    /* 0: linear */
    bool has_fresh;       /* rows from fresh_y0 on lie at fresh_offset */
    int64_t fresh_y0;
    size_t fresh_offset;
};

struct rfx_schedule;

/* A schedule at its first step. The plan must outlive it. */
RFX_NODISCARD enum rfx_status rfx_schedule_create(const struct rfx_plan *plan,
                                                  struct rfx_schedule **out, struct rfx_error *err);

void rfx_schedule_free(struct rfx_schedule *schedule);

/* Back to the first step. */
void rfx_schedule_rewind(struct rfx_schedule *schedule);

/* The next step, or false at the end. Steps with empty rectangles are skipped. */
bool rfx_schedule_next(struct rfx_schedule *schedule, struct rfx_step *step);

/* What of a node is in memory while the last step runs (after the end: in the last stage). */
struct rfx_part rfx_schedule_part(const struct rfx_schedule *schedule, int node);
#endif
