/* The table of turns; see portfolio_turns.h. */
#include "tiler/portfolio/portfolio_turns.h"

#include "tiler/fronts/fronts.h"
#include "tiler/packer/packer_search.h"
#include "tiler/portfolio/portfolio_slack.h"

const struct rfx_turn rfx_turns[RFX_N_TURNS] = {
    {RFX_MEMBER_TIGHT, 0, RFX_AT_GOAL},
    {RFX_MEMBER_CLAUSES, 0, RFX_AT_GOAL},
    {RFX_MEMBER_FRONTS, 1, RFX_AT_GOAL},
    {RFX_MEMBER_LOOSE, 0, RFX_AT_GOAL},
    {RFX_MEMBER_CANONICAL, RFX_SEARCH_WAT, RFX_AT_GOAL},
    {RFX_MEMBER_LOOSE, 1, RFX_AT_GOAL},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_AREA, RFX_AT_GOAL},
    {RFX_MEMBER_CANONICAL, RFX_SEARCH_TAW, RFX_AT_GOAL},
    {RFX_MEMBER_TIGHT, 1, RFX_AT_GOAL},
    {RFX_MEMBER_CANONICAL, RFX_SEARCH_TWA, RFX_AT_GOAL},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_LENGTH, RFX_AT_GOAL},
    {RFX_MEMBER_CLAUSES, 2, RFX_WHERE_FREE},
    {RFX_MEMBER_FRONTS, 0, RFX_AT_GOAL},
    {RFX_MEMBER_OVERLAPS, 0, RFX_AT_GOAL},
    {RFX_MEMBER_OVERLAPS, 1, RFX_AT_GOAL},
    {RFX_MEMBER_CLAUSES, 3, RFX_AT_GOAL},
    {RFX_MEMBER_FRONTS, 2, RFX_AT_GOAL},
    {RFX_MEMBER_SKYLINE, 0, RFX_AT_GOAL},
    {RFX_MEMBER_TIGHT, 2, RFX_WHERE_FULL},
    {RFX_MEMBER_TIGHT, 3, RFX_WHERE_FULL},
    {RFX_MEMBER_TIGHT, 0, RFX_AT_BOUND},
    {RFX_MEMBER_TIGHT, 1, RFX_AT_BOUND},
    {RFX_MEMBER_CLAUSES, 1, RFX_WHERE_FREE},
    {RFX_MEMBER_LOOSE, 2, RFX_AT_GOAL},
    {RFX_MEMBER_LOOSE, 3, RFX_AT_GOAL},
    {RFX_MEMBER_FRONTS, 3, RFX_AT_GOAL},
    {RFX_MEMBER_FRONTS, 4, RFX_AT_GOAL},
    {RFX_MEMBER_OVERLAPS, 2, RFX_AT_GOAL},
    {RFX_MEMBER_OVERLAPS, 3, RFX_AT_GOAL},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_SIZE, RFX_AT_GOAL},
    {RFX_MEMBER_SKYLINE, 1, RFX_AT_GOAL},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_SHUFFLED, RFX_AT_GOAL},
    {RFX_MEMBER_TIGHT, 2, RFX_WHERE_FULL},
    {RFX_MEMBER_TIGHT, 3, RFX_WHERE_FULL},
    {RFX_MEMBER_TIGHT, 2, RFX_WHERE_FULL},
    {RFX_MEMBER_TIGHT, 3, RFX_WHERE_FULL},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_AREA, RFX_HALFWAY},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_LENGTH, RFX_HALFWAY},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_SIZE, RFX_HALFWAY},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_SHUFFLED, RFX_HALFWAY},
    {RFX_MEMBER_CANONICAL, RFX_SEARCH_TAW, RFX_HALFWAY},
    {RFX_MEMBER_SKYLINE, 0, RFX_HALFWAY},
    {RFX_MEMBER_SKYLINE, 1, RFX_BELOW_BEST},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_AREA, RFX_BELOW_BEST},
};

/* Few enough that the last is reached within seconds; narrower ones hardly ever find anything. */
static const int fronts_widths[] = {64, 512, 2048, RFX_FRONTS_MAX_WIDTH};
enum { N_FRONTS_WIDTHS = sizeof fronts_widths / sizeof *fronts_widths };

int rfx_turn_width(const struct rfx_turn *turn, int round) {
    if (turn->member == RFX_MEMBER_FRONTS) { /* what chance finds narrow ones find as often */
        int k = turn->variant >= RFX_FRONTS_VARIANTS && round > 1 ? round - 1 : round;
        return fronts_widths[k < N_FRONTS_WIDTHS ? k : N_FRONTS_WIDTHS - 1];
    }
    if (round >= 16) return RFX_TURN_MAX_WIDTH;
    int width = RFX_TURN_FIRST_WIDTH << round;
    return width < RFX_TURN_MAX_WIDTH ? width : RFX_TURN_MAX_WIDTH;
}

/* No clauses in the first rounds, in which much else is solved while they would only be made; and
 * in still more where more than a little is free, of which a search for no spare byte can make
 * little. Skylines and moves find nothing after the first rounds where little is free. Where bytes
 * are free everywhere skylines find nothing after the very first one, and trees wait while fronts
 * take the rounds in which most is found. */
enum {
    FIRST_CLAUSES_ROUND = 2,
    FIRST_ELSEWHERE = 4,
    LAST_ROUND = 1,
    FIRST_WIDE = 2,
    LAST_WIDE = 3
};

bool rfx_turn_is_of_use(const struct rfx_place_problem *problem, size_t goal,
                        enum rfx_packer_member member, int round) {
    enum rfx_slack_kind kind = rfx_slack_kind(problem, goal);
    bool is_first = round <= LAST_ROUND;
    if (member == RFX_MEMBER_FRONTS || member == RFX_MEMBER_LOOSE)
        return kind == RFX_SLACK_EVERYWHERE;
    if (member == RFX_MEMBER_SKYLINE && kind == RFX_SLACK_EVERYWHERE) return round == 0;
    if (member == RFX_MEMBER_SKYLINE) return kind == RFX_SLACK_MUCH || is_first;
    if (member == RFX_MEMBER_SECTIONS || member == RFX_MEMBER_CANONICAL)
        return kind != RFX_SLACK_EVERYWHERE || round < FIRST_WIDE || round > LAST_WIDE;
    if (member == RFX_MEMBER_OVERLAPS)
        return !rfx_slack_is_none(problem, goal) && (kind != RFX_SLACK_LITTLE || is_first);
    if (member == RFX_MEMBER_CLAUSES)
        return round >= (kind == RFX_SLACK_LITTLE ? FIRST_CLAUSES_ROUND : FIRST_ELSEWHERE);
    return true;
}

static const char *const names[] = {
    [RFX_MEMBER_TIGHT] = "tight",         [RFX_MEMBER_SECTIONS] = "sections",
    [RFX_MEMBER_CANONICAL] = "canonical", [RFX_MEMBER_SKYLINE] = "skyline",
    [RFX_MEMBER_LOOSE] = "loose",         [RFX_MEMBER_OVERLAPS] = "overlaps",
    [RFX_MEMBER_CLAUSES] = "clauses",     [RFX_MEMBER_FRONTS] = "fronts",
};
_Static_assert(sizeof names / sizeof *names == RFX_MEMBER_COUNT, "one name per member");

const char *rfx_packer_member_name(enum rfx_packer_member member) {
    return names[member];
}
