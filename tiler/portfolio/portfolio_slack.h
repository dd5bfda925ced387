/* What the bytes that are free in a packing look like: which searches have a chance hangs on it. */
#ifndef RFX_TILER_PORTFOLIO_PORTFOLIO_SLACK_H
#define RFX_TILER_PORTFOLIO_PORTFOLIO_SLACK_H

#include "tiler/strategies/placement_problem.h"

/* Whether an arena of `capacity` bytes has none free at any time. O(sections). */
bool rfx_slack_is_none(const struct rfx_place_problem *problem, size_t capacity);

enum rfx_slack_kind {
    RFX_SLACK_LITTLE,     /* at most a sixth of all bytes, in the mean of all times; or none */
    RFX_SLACK_MUCH,       /* more */
    RFX_SLACK_EVERYWHERE, /* what begins at a time is hardly ever as many bytes as what ends then,
                             as where all items were made smaller; else it mostly is */
};

/* O(sections). */
enum rfx_slack_kind rfx_slack_kind(const struct rfx_place_problem *problem, size_t capacity);

/* Whether more units of `unit` bytes are free at some time than clauses can count, so that they
 * have to guess what is free. O(sections). */
bool rfx_slack_is_beyond_counting(const struct rfx_place_problem *problem, size_t capacity,
                                  size_t unit);

/* How much smaller than the room it was meant for an item may be, of RFX_GROUPS_WHOLE: twice what
 * is free in the mean, as of items made smaller by evenly many bytes; 0: nothing is free, or so
 * much that any sums are alike. O(sections). */
size_t rfx_slack_tolerance(const struct rfx_place_problem *problem, size_t capacity);
#endif
