/* The turns of a portfolio (packer_portfolio.h): which search comes when, and at which capacity. */
#ifndef RFX_TILER_PORTFOLIO_PORTFOLIO_TURNS_H
#define RFX_TILER_PORTFOLIO_PORTFOLIO_TURNS_H

#include "tiler/portfolio/packer_portfolio.h"

/* At which capacity a turn searches: at the goal (the target, or else the bound), at the bound when
 * that is another one, halfway between the goal and the best answer, just below that answer, or at
 * the goal if it leaves no byte free at any time: what is not made for that hardly ends then;
 * or only if it leaves some. */
enum rfx_where {
    RFX_AT_GOAL,
    RFX_AT_BOUND,
    RFX_HALFWAY,
    RFX_BELOW_BEST,
    RFX_WHERE_FULL,
    RFX_WHERE_FREE
};

struct rfx_turn {
    enum rfx_packer_member member;
    int variant; /* tight, loose: backwards (1), by chance (2), both (3); trees: the order;
                  * skyline: rough (1); clauses: backwards (1), fillers split (2); overlaps: its
                  * own, even ones from the best; fronts: its own, and as many more by chance */
    enum rfx_where where;
};

enum { RFX_N_TURNS = 45 };
extern const struct rfx_turn rfx_turns[RFX_N_TURNS];

/* Whether a capacity leaves no byte free at any time. */
bool rfx_turns_is_full(const struct rfx_place_problem *problem, size_t capacity);

/* Whether clauses may have to guess what is free: there are more units of it than they can count.
 */
bool rfx_turns_must_guess(const struct rfx_place_problem *problem, size_t capacity, size_t unit);

/* How much smaller than the room it was meant for an item may be, of RFX_GROUPS_WHOLE: twice what
 * is free in the mean, as of items made smaller by evenly many bytes; 0: nothing is free, or so
 * much that any sums are alike. */
size_t rfx_turns_tolerance(const struct rfx_place_problem *problem, size_t capacity);
#endif
