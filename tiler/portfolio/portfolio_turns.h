/* Which search of a portfolio takes its turn when, and where. */
#ifndef RFX_TILER_PORTFOLIO_PORTFOLIO_TURNS_H
#define RFX_TILER_PORTFOLIO_PORTFOLIO_TURNS_H

#include "tiler/packer/packer_portfolio.h"

/* At which capacity a turn searches: at the goal (the target, or else the bound), at the bound when
 * that is another one, halfway between the goal and the best answer, just below that answer, or at
 * the goal if it leaves no byte free at any time: what is not made for that hardly ends then. */
enum rfx_portfolio_where { RFX_AT_GOAL, RFX_AT_BOUND, RFX_HALFWAY, RFX_BELOW_BEST, RFX_WHERE_FULL };

struct rfx_portfolio_turn {
    enum rfx_packer_member member;
    int variant; /* tight, loose: backwards (1), by chance (2), both (3); trees: the order;
                  * skyline: rough (1); overlaps: its own, even ones from the best; fronts: its
                  * own, and as many more by chance */
    enum rfx_portfolio_where where;
};

enum { RFX_PORTFOLIO_TURNS = 41 };

extern const struct rfx_portfolio_turn rfx_portfolio_turns[RFX_PORTFOLIO_TURNS];
#endif
