/* TODO */
#ifndef RFX_TILER_PLAN_PLAN_CHECK_H
#define RFX_TILER_PLAN_PLAN_CHECK_H

#include "tiler/plan/plan.h"

#define RFX_PLAN_CHECK_NO_MEMORY "no memory" /* is in the words when there was none to look */

/* True when the plan is sound; else `why` (at least 200 bytes) says what is wrong, or that there
 * was no memory to look (plan->mem). O(steps * nodes), memory in proportion to nodes and tiles. */
bool rfx_plan_check(const struct rfx_plan *plan, char *why, size_t size);
#endif
