/* The table of turns; see portfolio_turns.h. */
#include "tiler/portfolio/portfolio_turns.h"

#include "tiler/packer/packer_search.h"

const struct rfx_turn rfx_turns[RFX_N_TURNS] = {
    {RFX_MEMBER_TIGHT, 0, RFX_AT_GOAL},
    {RFX_MEMBER_CLAUSES, 0, RFX_AT_GOAL},
    {RFX_MEMBER_FRONTS, 0, RFX_AT_GOAL},
    {RFX_MEMBER_LOOSE, 0, RFX_AT_GOAL},
    {RFX_MEMBER_CANONICAL, RFX_SEARCH_WAT, RFX_AT_GOAL},
    {RFX_MEMBER_LOOSE, 1, RFX_AT_GOAL},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_AREA, RFX_AT_GOAL},
    {RFX_MEMBER_CANONICAL, RFX_SEARCH_TAW, RFX_AT_GOAL},
    {RFX_MEMBER_TIGHT, 1, RFX_AT_GOAL},
    {RFX_MEMBER_CANONICAL, RFX_SEARCH_TWA, RFX_AT_GOAL},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_LENGTH, RFX_AT_GOAL},
    {RFX_MEMBER_CLAUSES, 2, RFX_WHERE_FREE},
    {RFX_MEMBER_FRONTS, 1, RFX_AT_GOAL},
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

int rfx_turn_width(enum rfx_packer_member member, int round) {
    if (member == RFX_MEMBER_FRONTS)
        return fronts_widths[round < N_FRONTS_WIDTHS ? round : N_FRONTS_WIDTHS - 1];
    if (round >= 16) return RFX_TURN_MAX_WIDTH;
    int width = RFX_TURN_FIRST_WIDTH << round;
    return width < RFX_TURN_MAX_WIDTH ? width : RFX_TURN_MAX_WIDTH;
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
