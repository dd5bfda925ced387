/* The schedule: an iterator of steps over a plan, shared by planner checks and executor.
 *
 * A step computes the rectangle `rect` of node `node`. Inputs' views are the current regions of the
 * producers. No allocation after rfx_schedule_create. */
#ifndef RFX_TILER_PLAN_SCHEDULE_H
#define RFX_TILER_PLAN_SCHEDULE_H

#include "tiler/plan/plan.h"
#include "tiler/plan/step.h"

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
