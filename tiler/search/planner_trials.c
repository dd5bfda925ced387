/* Which candidates each phase tries: the modes' trials, cut by cut; see planner_search.h. */
#include <limits.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/search/planner_search.h"

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

/* What a trial varies, for one skeleton. */
struct choices {
    int n_down, n_across, n_bands;
    int64_t down[RFX_TILING_MAX_COUNTS], across[RFX_TILING_MAX_COUNTS];
    int64_t bands[RFX_TILING_MAX_COUNTS];
};

/* Leaves out every other one of a list, never the last. */
static void halve(int64_t *list, int *n) {
    int kept = 0;
    for (int i = (*n - 1) % 2; i < *n; i += 2) list[kept++] = list[i];
    *n = kept;
}

/* Of several skeletons, no more than the search may look at in all: the longest list is thinned
 * out first. */
static void limit_choices(const struct rfx_search *search, int n_skeletons, struct choices *c) {
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

static void list_choices(const struct rfx_search *search, const struct rfx_trial *trial,
                         const struct rfx_skeleton *skeleton, int n_skeletons, struct choices *c) {
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
    size_t budget = search->context.request->memory_bytes;
    if (budget == 0 || budget == SIZE_MAX || search->patient) return false; /* fronts have all */
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
                                  const struct choices *choices, struct rfx_candidate *c,
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
static enum rfx_status add_skeleton(struct rfx_search *search, const struct rfx_mode *mode,
                                    const struct rfx_trial *trial, struct rfx_skeleton skeleton,
                                    int n_skeletons, struct rfx_error *err) {
    struct choices choices;
    enum rfx_status status = RFX_OK;
    list_choices(search, trial, &skeleton, n_skeletons, &choices);
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
            status = add_skeleton(search, mode, trial, pair, pairs, err);
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
        status = add_skeleton(search, mode, trial, cut, most, err);
    }
    return status;
}

/* What chains need at least that start again from the image at so many barriers: for each number of
 * bands, as asked for and squeezed as far as it goes. */
struct passes {
    int n; /* barriers at which the image is read again */
    size_t bounds[2 * RFX_TILING_MAX_COUNTS];
};

static enum rfx_status measure_passes(struct rfx_search *search, const struct rfx_mode *mode,
                                      const struct rfx_trial *trial, struct passes *p,
                                      struct rfx_error *err) {
    struct rfx_candidate c = {.skeleton = {.kind = RFX_SKELETON_CHAIN, .passes = p->n}};
    const struct rfx_stage_spec *asked = &search->context.request->asked;
    struct choices choices;
    list_choices(search, trial, &c.skeleton, search->levels.n, &choices);
    memset(p->bounds, 0, sizeof p->bounds);
    for (int b = 0; b < choices.n_bands; b++) {
        int n_stages;
        c.way = (struct rfx_stage_spec){.mode = mode,
                                        .parts_y = choices.down[0],
                                        .parts_x = choices.across[0],
                                        .band_rows = choices.bands[b]};
        enum rfx_status status = rfx_search_lay_out(search, &c, &n_stages, err);
        if (status != RFX_OK) return status;
        for (int squeezed = 0; squeezed < 2; squeezed++) { /* rows do not hang on flags */
            bool s = squeezed != 0;
            c.way.tight = s || asked->tight;
            c.way.row_by_row = s || asked->row_by_row;
            c.way.weights_by_stage = s || asked->weights_by_stage;
            for (int i = 0; i < n_stages; i++)
                rfx_search_set_flags(&search->shapes[i].spec, &c.way);
            p->bounds[2 * b + squeezed] =
                rfx_plan_bound(&search->context, search->shapes, n_stages);
        }
    }
    return RFX_OK;
}

/* Whether two numbers of passes need the same, or nearly so. */
static bool need_alike(const struct passes *a, const struct passes *b) {
    for (int i = 0; i < 2 * RFX_TILING_MAX_COUNTS; i++) {
        size_t less = a->bounds[i] < b->bounds[i] ? a->bounds[i] : b->bounds[i];
        size_t more = a->bounds[i] < b->bounds[i] ? b->bounds[i] : a->bounds[i];
        if (more - less > less / 32) return false;
    }
    return true;
}

/* The chains with a number of passes between two that were looked at. More passes take longer;
 * where two numbers need the same, those between are taken to need it too, and to be of no use. */
static enum rfx_status add_passes_between(struct rfx_search *search, const struct rfx_mode *mode,
                                          const struct rfx_trial *trial, const struct passes *few,
                                          const struct passes *many, struct rfx_error *err) {
    struct passes middle = {.n = few->n + (many->n - few->n) / 2};
    struct rfx_skeleton chain = {.kind = RFX_SKELETON_CHAIN, .passes = middle.n};
    if (middle.n == few->n || need_alike(few, many)) return RFX_OK;
    enum rfx_status status = measure_passes(search, mode, trial, &middle, err);
    if (status == RFX_OK) status = add_passes_between(search, mode, trial, few, &middle, err);
    if (status == RFX_OK) status = add_skeleton(search, mode, trial, chain, search->levels.n, err);
    if (status == RFX_OK) status = add_passes_between(search, mode, trial, &middle, many, err);
    return status;
}

/* Chains that store small maps alone: what large ones are needed for, such as a U-Net's skips at
 * its full size, is made again from the image, what is behind small ones is not. In the later half
 * or quarter of the levels, where such a network's small maps are dead, those of the next size are
 * stored too. Each of the levels is a stage, whose rows are walked through, which costs as much as
 * ROWS_BESIDE rows besides: of a deep network or a large image few are tried. */
static enum rfx_status add_small_stores(struct rfx_search *search, const struct rfx_mode *mode,
                                        const struct rfx_trial *trial, struct rfx_error *err) {
    enum {
        N_LATE = 3,
        QUARTERS = 4,
        BANDS = 3,
        ROWS_BESIDE = 1536,
        MOST_STEPS = 200 * 1000 * 1000
    };
    static const int late[N_LATE] = {QUARTERS, 3, 2}; /* quarters; the first: nowhere */
    const struct rfx_graph *graph = search->context.graph;
    enum rfx_status status = RFX_OK;
    size_t sizes[RFX_SKELETON_MAX_SPILLS];
    int n = rfx_skeleton_spills(&search->levels, sizes), levels = search->levels.n;
    int64_t rows = graph->nodes[graph->input].out.h + ROWS_BESIDE;
    int64_t walks = MOST_STEPS / ((int64_t)levels * graph->n_nodes) / rows;
    int64_t chains = rfx_min_i64((int64_t)N_LATE * (n - 1), rfx_max_i64(1, walks / BANDS));
    if (walks == 0 || chains <= 0) return RFX_OK;
    int share = (int)rfx_min_i64(INT_MAX, search->most / (walks / chains) + 1);
    for (int k = 0; k < N_LATE; k++)
        for (int i = n - 1; status == RFX_OK && i > 0 && chains > 0; i--, chains--) {
            struct rfx_skeleton chain = {.kind = RFX_SKELETON_CHAIN,
                                         .store_to = sizes[i],
                                         .late_to = sizes[i - 1],
                                         .late = levels * late[k] / QUARTERS};
            status = add_skeleton(search, mode, trial, chain, share, err);
        }
    return status;
}

/* From the image again at one barrier, at all, and at numbers between that need less than fewer. */
static enum rfx_status add_passes(struct rfx_search *search, const struct rfx_mode *mode,
                                  const struct rfx_trial *trial, struct rfx_error *err) {
    struct passes one = {.n = 1}, all = {.n = search->levels.n - 1};
    struct rfx_skeleton chain = {.kind = RFX_SKELETON_CHAIN, .passes = one.n};
    if (all.n < 1) return RFX_OK;
    enum rfx_status status = measure_passes(search, mode, trial, &one, err);
    if (status == RFX_OK) status = add_skeleton(search, mode, trial, chain, search->levels.n, err);
    if (status == RFX_OK) status = add_small_stores(search, mode, trial, err);
    if (status != RFX_OK || all.n == one.n) return status;
    status = measure_passes(search, mode, trial, &all, err);
    if (status == RFX_OK) status = add_passes_between(search, mode, trial, &one, &all, err);
    chain.passes = all.n;
    if (status == RFX_OK) status = add_skeleton(search, mode, trial, chain, search->levels.n, err);
    return status;
}

int rfx_search_more(int k) {
    static const int more[RFX_SEARCH_MORE] = {1, 2, 3, 5, 8, RFX_SKELETON_MAX_MORE};
    return more[k];
}

/* A stage per level, with maps of so many bytes on in files, and then with more stages, between
 * which all maps go through files: a deep network's rings are too many for one stream. Little is
 * computed from the image again: up to the first barriers, as a first convolution takes less time
 * than a file. */
static enum rfx_status add_spilled(struct rfx_search *search, const struct rfx_mode *mode,
                                   const struct rfx_trial *trial, struct rfx_error *err) {
    enum { PASSES = 3 };
    enum rfx_status status = RFX_OK;
    size_t sizes[RFX_SKELETON_MAX_SPILLS];
    int n = search->levels.n > 0 ? rfx_skeleton_spills(&search->levels, sizes) : 0;
    int passes = search->levels.n < PASSES ? search->levels.n : PASSES;
    for (int p = 0; p < passes; p++)
        for (int i = 0; status == RFX_OK && i < n; i++) {
            struct rfx_skeleton chain = {
                .kind = RFX_SKELETON_CHAIN, .passes = p, .spill_from = sizes[i]};
            status = add_skeleton(search, mode, trial, chain, passes * n, err);
        }
    for (int k = 0; status == RFX_OK && k < RFX_SEARCH_MORE; k++) {
        struct rfx_skeleton cut = {
            .kind = RFX_SKELETON_CHAIN, .spill_from = 1, .more = rfx_search_more(k)};
        if (search->more[k].n > 0)
            status = add_skeleton(search, mode, trial, cut, RFX_SEARCH_MORE, err);
    }
    return status;
}

static enum rfx_status add_trial(struct rfx_search *search, const struct rfx_mode *mode,
                                 const struct rfx_trial *trial, struct rfx_error *err) {
    struct rfx_skeleton chain = {.kind = RFX_SKELETON_CHAIN};
    switch (trial->cuts) {
        case RFX_CUTS_NONE:
            chain.kind = RFX_SKELETON_REST;
            return add_skeleton(search, mode, trial, chain, 1, err);
        case RFX_CUTS_CHAIN:
            return search->levels.n > 0 ? add_skeleton(search, mode, trial, chain, 1, err) : RFX_OK;
        case RFX_CUTS_PASSES:
            return add_passes(search, mode, trial, err);
        case RFX_CUTS_SPILLED:
            return add_spilled(search, mode, trial, err);
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
