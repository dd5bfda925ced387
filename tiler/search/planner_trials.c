/* Which candidates each phase tries: the modes' trials, cut by cut; see planner_search.h. */
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/search/planner_trials.h"

#define LAST_CUTS 3   /* the last legal splits: streaming costs no MACs, so later is smaller */
#define SPREAD_CUTS 4 /* and some spread over the others */
#define MAX_CUTS (LAST_CUTS + SPREAD_CUTS)

/* The splits at which streams may end: the last ones, and some spread over the others. */
static int list_cuts(const struct rfx_search *search, int *cuts) {
    int n = 0;
    int early = search->n_splits > LAST_CUTS ? search->n_splits - LAST_CUTS : 0;
    int spread = early < SPREAD_CUTS ? early : SPREAD_CUTS;
    for (int i = 0; i < spread; i++)
        cuts[n++] = search->splits[(int64_t)(2 * i + 1) * early / (2 * spread)];
    for (int i = early; i < search->n_splits; i++) cuts[n++] = search->splits[i];
    return n;
}

/* The numbers of parts along an axis that a trial looks at, or the one that was asked for. */
static int list_parts(const struct rfx_search *search, const struct rfx_trial *trial,
                      const struct rfx_skeleton *skeleton, enum rfx_axis axis, int64_t *counts) {
    const struct rfx_stage_spec *asked = &search->context.request->asked;
    int64_t given = axis == RFX_AXIS_ROWS ? asked->parts_y : asked->parts_x;
    bool grid = trial->parts == RFX_PARTS_GRID;
    bool listed = trial->parts == RFX_PARTS_ACROSS && axis == RFX_AXIS_COLS;
    if (asked->mode != NULL || !(grid || listed)) {
        counts[0] = rfx_max_i64(given, 1);
        return 1;
    }
    if (grid) {
        const struct rfx_node *cut = &search->context.graph->nodes[skeleton->cut];
        int64_t extent = rfx_range_size(rfx_node_wanted(cut, axis));
        return rfx_tiling_counts(rfx_max_i64(1, extent), counts);
    }
    memcpy(counts, trial->across, (size_t)trial->n_across * sizeof *counts);
    return trial->n_across;
}

/* Leaves out every other one of a list, never the last. */
static void halve(int64_t *list, int *n) {
    int kept = 0;
    for (int i = (*n - 1) % 2; i < *n; i += 2) list[kept++] = list[i];
    *n = kept;
}

/* Of several skeletons, no more than the search may look at in all: the longest list is thinned
 * out first. */
static void limit_choices(const struct rfx_search *search, int n_skeletons,
                          struct rfx_trial_choices *c) {
    for (;;) {
        int64_t each = (int64_t)c->n_down * c->n_across * c->n_bands;
        if (each == 1 || n_skeletons * each <= search->most) return;
        if (c->n_down >= c->n_across && c->n_down >= c->n_bands)
            halve(c->down, &c->n_down);
        else if (c->n_across >= c->n_bands)
            halve(c->across, &c->n_across);
        else
            halve(c->bands, &c->n_bands);
    }
}

void rfx_trial_list_choices(const struct rfx_search *search, const struct rfx_trial *trial,
                            const struct rfx_skeleton *skeleton, int n_skeletons,
                            struct rfx_trial_choices *c) {
    const struct rfx_stage_spec *asked = &search->context.request->asked;
    c->n_down = list_parts(search, trial, skeleton, RFX_AXIS_ROWS, c->down);
    c->n_across = list_parts(search, trial, skeleton, RFX_AXIS_COLS, c->across);
    c->n_bands = 1;
    c->bands[0] = 0;
    if (trial->n_bands > 0 && asked->mode != NULL && asked->band_rows > 0) {
        c->bands[0] = asked->band_rows;
    } else if (trial->n_bands > 0) {
        c->n_bands = trial->n_bands;
        memcpy(c->bands, trial->bands, (size_t)trial->n_bands * sizeof *c->bands);
    }
    limit_choices(search, n_skeletons, c);
}

/* Tiles so small that they are mostly halo take this many times as long as an untiled run; more of
 * them take longer still. They are left out where something is listed already that seems to fit and
 * is what is wanted of the listing: what takes that long would be wanted only if nothing else
 * fitted. */
#define TOO_MANY_TIMES 200.0

static bool seems_settled(const struct rfx_search *search, enum rfx_plan_kind kind) {
    if (rfx_search_wants_all(search) || search->patient) return false;
    return search->rivals != NULL ? search->rivals->n[kind] > 0 : search->some_fit;
}

static bool takes_too_long(struct rfx_search *search, const struct rfx_trial *trial,
                           enum rfx_plan_kind kind, int n_stages) {
    double least = 0.0;
    if (trial->parts != RFX_PARTS_GRID || !seems_settled(search, kind)) return false;
    for (int s = 0; s < n_stages; s++) least += rfx_cost_least(&search->cost, &search->shapes[s]);
    bool slow = least > TOO_MANY_TIMES * (double)search->cost_untiled;
    search->left_out |= slow;
    return slow;
}

/* A candidate in every number of parts across. Its stages are laid out for the first that may be of
 * interest: rows do not depend on the number. *slow: even the fewest take too long. */
static enum rfx_status add_across(struct rfx_search *search, const struct rfx_trial *trial,
                                  const struct rfx_trial_choices *choices, struct rfx_candidate *c,
                                  bool *slow, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    int n_stages = 0;
    *slow = false;
    for (int x = 0; status == RFX_OK && x < choices->n_across; x++) {
        bool cut = c->way.parts_y > 1 || choices->across[x] > 1;
        c->kind = cut ? trial->kind_in_parts : trial->kind;
        c->way.parts_x = choices->across[x];
        search->tried++;
        status = rfx_memory_check_stop(search->context.graph->mem, err);
        if (status != RFX_OK || rfx_search_is_hopeless(search, c)) continue;
        if (n_stages == 0)
            status = rfx_search_lay_out(search, c, &n_stages, err);
        else
            rfx_search_lay_across(search, c->way.mode, c->way.parts_x, n_stages);
        if (status == RFX_OK && takes_too_long(search, trial, c->kind, n_stages)) {
            *slow = x == 0;
            break;
        }
        if (status == RFX_OK) status = rfx_search_add(search, c, n_stages, err);
    }
    return status;
}

/* A skeleton, one of so many, in every number of bands and parts of the trial. */
enum rfx_status rfx_trial_add_skeleton(struct rfx_search *search, const struct rfx_mode *mode,
                                       const struct rfx_trial *trial, struct rfx_skeleton skeleton,
                                       int n_skeletons, struct rfx_error *err) {
    struct rfx_trial_choices choices;
    enum rfx_status status = RFX_OK;
    rfx_trial_list_choices(search, trial, &skeleton, n_skeletons, &choices);
    memset(search->behind, 0, sizeof search->behind);
    for (int b = 0; b < choices.n_bands; b++) {
        bool slow = false;
        for (int y = 0; status == RFX_OK && !slow && y < choices.n_down; y++) {
            struct rfx_candidate c = {.skeleton = skeleton};
            c.way = (struct rfx_stage_spec){
                .mode = mode, .parts_y = choices.down[y], .band_rows = choices.bands[b]};
            status = add_across(search, trial, &choices, &c, &slow, err);
        }
    }
    return status;
}

/* All pairs of a few cuts. */
static enum rfx_status add_pairs(struct rfx_search *search, const struct rfx_mode *mode,
                                 const struct rfx_trial *trial, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    int cuts[MAX_CUTS];
    int n = list_cuts(search, cuts);
    int pairs = n * (n - 1) / 2;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; status == RFX_OK && j < n; j++) {
            struct rfx_skeleton pair = {
                .kind = RFX_SKELETON_CUTS, .cut = cuts[i], .second = cuts[j]};
            status = rfx_trial_add_skeleton(search, mode, trial, pair, pairs, err);
        }
    return status;
}

/* One cut, of a few or wherever there may be one: in graphs so large that a handful of tilings of
 * each would be too many, of cuts spread over them. */
static enum rfx_status add_cuts(struct rfx_search *search, const struct rfx_mode *mode,
                                const struct rfx_trial *trial, struct rfx_error *err) {
    enum { HANDFUL = 9 };
    enum rfx_status status = RFX_OK;
    bool few = trial->cuts == RFX_CUTS_FEW;
    int some[MAX_CUTS];
    const int *cuts = few ? some : search->splits;
    int n = few ? list_cuts(search, some) : search->n_splits;
    int most = few ? n : (int)rfx_min_i64(n, rfx_max_i64(1, search->most / HANDFUL));
    for (int i = 0; status == RFX_OK && i < most; i++) {
        int at = (int)((int64_t)(i + 1) * n / most) - 1;
        struct rfx_skeleton cut = {.kind = few ? RFX_SKELETON_CUT : RFX_SKELETON_MAP,
                                   .cut = cuts[at]};
        status = rfx_trial_add_skeleton(search, mode, trial, cut, most, err);
    }
    return status;
}

static enum rfx_status add_trial(struct rfx_search *search, const struct rfx_mode *mode,
                                 const struct rfx_trial *trial, struct rfx_error *err) {
    struct rfx_skeleton chain = {.kind = RFX_SKELETON_CHAIN};
    switch (trial->cuts) {
        case RFX_CUTS_NONE:
            chain.kind = RFX_SKELETON_REST;
            return rfx_trial_add_skeleton(search, mode, trial, chain, 1, err);
        case RFX_CUTS_CHAIN:
            return search->levels.n > 0 ? rfx_trial_add_skeleton(search, mode, trial, chain, 1, err)
                                        : RFX_OK;
        case RFX_CUTS_PASSES:
            return rfx_trial_add_passes(search, mode, trial, err);
        case RFX_CUTS_WAIST:
            return rfx_trial_add_waists(search, mode, trial, err);
        case RFX_CUTS_SPILLED:
            return rfx_trial_add_spilled(search, mode, trial, err);
        case RFX_CUTS_PAIRS:
            return add_pairs(search, mode, trial, err);
        case RFX_CUTS_FEW:
        case RFX_CUTS_EVERY:
            break;
    }
    return add_cuts(search, mode, trial, err);
}

/* Whether the request leaves a trial open. */
static bool is_open_trial(const struct rfx_plan_request *request, const struct rfx_mode *mode,
                          const struct rfx_trial *trial) {
    bool at_cut = trial->cuts == RFX_CUTS_FEW || trial->cuts == RFX_CUTS_EVERY;
    if (request->split != NULL && !at_cut) return false;
    if (trial->cuts == RFX_CUTS_SPILLED && !request->may_spill) return false;
    if (request->asked.mode == mode) return trial->when_asked;
    return request->memory_bytes != 0 || trial->always;
}

/* Adds the trials of a mode that belong to a phase and are open. */
static enum rfx_status add_mode(struct rfx_search *search, const struct rfx_mode *mode, int phase,
                                struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int t = 0; status == RFX_OK && t < mode->n_trials; t++)
        if ((int)mode->trials[t].phase == phase &&
            is_open_trial(search->context.request, mode, &mode->trials[t]))
            status = add_trial(search, mode, &mode->trials[t], err);
    return status;
}

enum rfx_status rfx_search_list(struct rfx_search *search, int phase, struct rfx_error *err) {
    const struct rfx_mode *asked = search->context.request->asked.mode;
    enum rfx_status status = RFX_OK;
    search->first = search->n_candidates;
    if (asked != NULL) return add_mode(search, asked, phase, err); /* listed or not */
    for (int m = 0; status == RFX_OK && m < search->n_modes; m++)
        status = add_mode(search, search->modes[m], phase, err);
    return status;
}
