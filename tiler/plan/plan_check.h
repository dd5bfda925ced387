/* Checks a plan by walking its schedule, without knowing how plans are made.
 *
 * What is checked: every step reads only values that an earlier step has written and that nothing
 * has overwritten since; nothing lies outside the arena; every output is complete at the end; tiles
 * cover the stitched map exactly once; MACs and the highest arena byte are those of the plan. The
 * file uses nothing of the planner except the plan and its schedule, which the executor walks too.
 */
#ifndef RFX_TILER_PLAN_PLAN_CHECK_H
#define RFX_TILER_PLAN_PLAN_CHECK_H

#include "tiler/plan/plan.h"

#define RFX_PLAN_CHECK_NO_MEMORY \
    "no memory" /* part of the message when memory for the check was lacking */

/* Returns true when the plan is sound. Otherwise `why` (at least 200 bytes) says what is wrong, or
 * that memory (plan->mem) was lacking. O(steps * nodes) time; memory proportional to nodes and
 * tiles. */
bool rfx_plan_check(const struct rfx_plan *plan, char *why, size_t size);
#endif
