/* Counts over sections; see portfolio_slack.h. */
#include "tiler/portfolio/portfolio_slack.h"

#include "tiler/clauses/clauses_packing.h"
#include "tiler/packer/packer_groups.h"

/* One boundary in so many may leave as many bytes alive as before: made smaller by up to 1 %, items
 * of a spiral do at up to 5 %. */
enum { UNCHANGED_ONE_IN = 10, LITTLE_ONE_IN = 6 };

bool rfx_slack_is_none(const struct rfx_place_problem *problem, size_t capacity) {
    for (int s = 0; s < problem->n_sections; s++)
        if (problem->breadth[s] < capacity) return false;
    return true;
}

static bool is_little(const struct rfx_place_problem *problem, size_t capacity) {
    double free_bytes = 0;
    for (int s = 0; s < problem->n_sections; s++)
        free_bytes += (double)(capacity - problem->breadth[s]);
    return free_bytes * LITTLE_ONE_IN <= (double)capacity * (double)problem->n_sections;
}

static bool is_everywhere(const struct rfx_place_problem *problem) {
    int unchanged = 0;
    for (int s = 1; s < problem->n_sections; s++)
        unchanged += problem->breadth[s] == problem->breadth[s - 1];
    return unchanged < (problem->n_sections + UNCHANGED_ONE_IN - 1) / UNCHANGED_ONE_IN;
}

enum rfx_slack_kind rfx_slack_kind(const struct rfx_place_problem *problem, size_t capacity) {
    if (is_everywhere(problem)) return RFX_SLACK_EVERYWHERE;
    return is_little(problem, capacity) ? RFX_SLACK_LITTLE : RFX_SLACK_MUCH;
}

bool rfx_slack_is_beyond_counting(const struct rfx_place_problem *problem, size_t capacity,
                                  size_t unit) {
    for (int s = 0; s < problem->n_sections; s++)
        if ((capacity - problem->breadth[s]) / unit > RFX_CLAUSES_MAX_UNITS) return true;
    return false;
}

size_t rfx_slack_tolerance(const struct rfx_place_problem *problem, size_t capacity) {
    size_t shares = 0;
    size_t n = (size_t)problem->n_sections;
    for (size_t s = 0; s < n; s++)
        shares += (capacity - problem->breadth[s]) / (capacity / RFX_GROUPS_WHOLE + 1);
    size_t tolerance = (5 * shares / 2 + n - 1) / n;
    return tolerance < RFX_GROUPS_WHOLE / 2 ? tolerance : 0;
}
