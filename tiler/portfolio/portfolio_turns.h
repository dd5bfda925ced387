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

enum { RFX_N_TURNS = 44 };
extern const struct rfx_turn rfx_turns[RFX_N_TURNS];

/* States of a beam: of the first round, and the most: beyond it only the other searches go on. */
enum { RFX_TURN_FIRST_WIDTH = 4, RFX_TURN_MAX_WIDTH = 1024, RFX_FRONTS_MAX_WIDTH = 8192 };

/* Whether a member has a chance in a round (0, 1, ...) at what it was made for. O(sections). */
bool rfx_turn_is_of_use(const struct rfx_place_problem *problem, size_t goal,
                        enum rfx_packer_member member, int round);

/* How wide a beam of a turn is in a round (0, 1, ...). */
int rfx_turn_width(const struct rfx_turn *turn, int round);
#endif
