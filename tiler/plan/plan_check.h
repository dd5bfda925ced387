/* Checks a plan by walking its schedule; knows nothing of how plans are made.
 *
 * What it holds: every step reads only what a step before it has written and nobody has written
 * over since; nothing lies outside the arena; every output is complete at the end; tiles cover the
 * stitched map exactly once; MACs and the highest arena byte are what the plan says.
 * It includes nothing of the planner but the plan and its schedule, which the executor walks too.
 */
#ifndef RFX_TILER_PLAN_PLAN_CHECK_H
#define RFX_TILER_PLAN_PLAN_CHECK_H

#include "tiler/plan/plan.h"

#define RFX_PLAN_CHECK_NO_MEMORY "no memory" /* is in the words when there was none to look */

/* True when the plan is sound; else `why` (at least 200 bytes) says what is wrong, or that there
 * was no memory to look (plan->mem). O(steps * nodes), memory in proportion to nodes and tiles. */
bool rfx_plan_check(const struct rfx_plan *plan, char *why, size_t size);
#endif
