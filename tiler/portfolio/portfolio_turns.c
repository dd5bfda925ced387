/* The table of turns; see portfolio_turns.h. */
#include "tiler/portfolio/portfolio_turns.h"

#include "tiler/clauses/clauses_packing.h"
#include "tiler/packer/packer_groups.h"
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
    {RFX_MEMBER_SKYLINE, 0, RFX_AT_GOAL},
    {RFX_MEMBER_TIGHT, 2, RFX_WHERE_FULL},
    {RFX_MEMBER_TIGHT, 3, RFX_WHERE_FULL},
    {RFX_MEMBER_TIGHT, 0, RFX_AT_BOUND},
    {RFX_MEMBER_TIGHT, 1, RFX_AT_BOUND},
    {RFX_MEMBER_CLAUSES, 1, RFX_WHERE_FREE},
    {RFX_MEMBER_LOOSE, 2, RFX_AT_GOAL},
    {RFX_MEMBER_LOOSE, 3, RFX_AT_GOAL},
    {RFX_MEMBER_FRONTS, 2, RFX_AT_GOAL},
    {RFX_MEMBER_FRONTS, 3, RFX_AT_GOAL},
    {RFX_MEMBER_OVERLAPS, 2, RFX_AT_GOAL},
    {RFX_MEMBER_OVERLAPS, 3, RFX_AT_GOAL},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_SIZE, RFX_AT_GOAL},
    {RFX_MEMBER_SKYLINE, 1, RFX_AT_GOAL},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_SHUFFLED, RFX_AT_GOAL},
    {RFX_MEMBER_TIGHT, 2, RFX_WHERE_FULL},
    {RFX_MEMBER_TIGHT, 3, RFX_WHERE_FULL},
    {RFX_MEMBER_TIGHT, 2, RFX_WHERE_FULL},
    {RFX_MEMBER_TIGHT, 3, RFX_WHERE_FULL},
    {RFX_MEMBER_LOOSE, 2, RFX_AT_GOAL},
    {RFX_MEMBER_LOOSE, 3, RFX_AT_GOAL},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_AREA, RFX_HALFWAY},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_LENGTH, RFX_HALFWAY},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_SIZE, RFX_HALFWAY},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_SHUFFLED, RFX_HALFWAY},
    {RFX_MEMBER_CANONICAL, RFX_SEARCH_TAW, RFX_HALFWAY},
    {RFX_MEMBER_SKYLINE, 0, RFX_HALFWAY},
    {RFX_MEMBER_SKYLINE, 1, RFX_BELOW_BEST},
    {RFX_MEMBER_SECTIONS, RFX_SEARCH_AREA, RFX_BELOW_BEST},
};

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

bool rfx_turns_is_full(const struct rfx_place_problem *problem, size_t capacity) {
    for (int s = 0; s < problem->n_sections; s++)
        if (problem->breadth[s] < capacity) return false;
    return true;
}

bool rfx_turns_must_guess(const struct rfx_place_problem *problem, size_t capacity, size_t unit) {
    for (int s = 0; s < problem->n_sections; s++)
        if ((capacity - problem->breadth[s]) / unit > RFX_CLAUSES_MAX_UNITS) return true;
    return false;
}

size_t rfx_turns_tolerance(const struct rfx_place_problem *problem, size_t capacity) {
    size_t shares = 0;
    size_t n = (size_t)problem->n_sections;
    for (size_t s = 0; s < n; s++)
        shares += (capacity - problem->breadth[s]) / (capacity / RFX_GROUPS_WHOLE + 1);
    size_t tolerance = (5 * shares / 2 + n - 1) / n;
    return tolerance < RFX_GROUPS_WHOLE / 2 ? tolerance : 0;
}
