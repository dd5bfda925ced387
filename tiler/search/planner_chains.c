/* Trials of chains: a stage per level, what is stored between them and what is made again; see
 * planner_trials.h. */
#include <limits.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/search/chain_stores.h"
#include "tiler/search/planner_trials.h"

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
    struct rfx_trial_choices choices;
    rfx_trial_list_choices(search, trial, &c.skeleton, search->levels.n, &choices);
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
    if (status == RFX_OK)
        status = rfx_trial_add_skeleton(search, mode, trial, chain, search->levels.n, err);
    if (status == RFX_OK) status = add_passes_between(search, mode, trial, &middle, many, err);
    return status;
}

enum { N_LATE = 3, QUARTERS = 4, MOST_SMALL = N_LATE * RFX_SKELETON_MAX_SPILLS };

/* By rising sizes. In the later half or quarter of the levels, where a U-Net's small maps are dead,
 * those of the next size may be stored too. */
static int list_small(const struct rfx_levels *levels, struct rfx_skeleton *list) {
    static const int late[N_LATE] = {QUARTERS, 3, 2}; /* quarters; the first: nowhere */
    size_t sizes[RFX_SKELETON_MAX_SPILLS];
    int count = 0, n = rfx_skeleton_spills(levels, sizes);
    for (int k = 0; k < N_LATE; k++)
        for (int i = n - 1; i > 0; i--)
            list[count++] = (struct rfx_skeleton){.kind = RFX_SKELETON_CHAIN,
                                                  .store_to = sizes[i],
                                                  .late_to = sizes[i - 1],
                                                  .late = levels->n * late[k] / QUARTERS};
    return count;
}

/* Whether one of the candidates from a number on fits, placed as it will be when it is chosen. */
static enum rfx_status find_fitting(struct rfx_search *search, size_t from, bool *fit,
                                    struct rfx_error *err) {
    size_t budget = search->context.request->memory_bytes;
    enum rfx_status status = RFX_OK;
    for (size_t i = from; status == RFX_OK && i < search->n_candidates && !*fit; i++) {
        struct rfx_candidate *c = &search->candidates[i];
        if (c->bound > budget) continue;
        status = rfx_search_peak(search, c, err);
        *fit = status == RFX_OK && c->peak <= budget;
    }
    return status;
}

/* What the smallest of the candidates from a number on needs at least; 0: there is none. */
static size_t least_bound(const struct rfx_search *search, size_t from) {
    size_t least = 0;
    for (size_t i = from; i < search->n_candidates; i++)
        if (least == 0 || search->candidates[i].bound < least) least = search->candidates[i].bound;
    return least;
}

/* Whether the last choice is none of those before it, and stores anything. */
static bool is_new(const struct rfx_search *search) {
    size_t n = (size_t)search->context.graph->n_nodes, last = (size_t)search->n_chosen * n;
    bool any = false;
    for (size_t i = 0; i < n; i++) any = any || search->chosen[last + i] >= 0;
    if (!any) return false;
    for (size_t at = 0; at < last; at += n)
        if (memcmp(search->chosen + at, search->chosen + last, n * sizeof *search->chosen) == 0)
            return false;
    return true;
}

/* What adds chains whose stored maps are chosen one by one. */
struct chooser {
    const struct rfx_mode *mode;
    const struct rfx_trial *trial;
    struct rfx_chain_stores *stores;
    int share;
    bool fit; /* one of them fits */
};

/* Those that store what saves most for so many bytes. *room: what they do store. *least: what one
 * of them needs at least; 0: they are there already, or of no interest. */
static enum rfx_status add_choice(struct rfx_search *search, struct chooser *c,
                                  struct rfx_chain_way way, size_t *room, size_t *least,
                                  struct rfx_error *err) {
    size_t n = (size_t)search->context.graph->n_nodes, before = search->n_candidates;
    int *until = search->chosen + (size_t)search->n_chosen * n;
    struct rfx_skeleton chain = {.kind = RFX_SKELETON_CHAIN, .until = until};
    struct rfx_chain_count count;
    *least = 0;
    if (search->n_chosen == RFX_SEARCH_CHOICES) return RFX_OK;
    rfx_chain_stores_choose(c->stores, *room, way, until, &count);
    if (count.bytes < *room) *room = count.bytes;
    if (!is_new(search)) return RFX_OK;
    search->n_chosen++;
    enum rfx_status status =
        rfx_trial_add_skeleton(search, c->mode, c->trial, chain, c->share, err);
    if (status == RFX_OK && !rfx_search_wants_all(search))
        status = find_fitting(search, before, &c->fit, err);
    *least = least_bound(search, before);
    return status;
}

/* For less and less until one fits beside rings, weights and all else, and for a quarter less than
 * that: what is computed again may take less time than what shorter bands cost. */
static enum rfx_status choose_for_budget(struct rfx_search *search, struct chooser *c,
                                         struct rfx_chain_way way, struct rfx_error *err) {
    enum { TRIES = 4, LITTLE = 32 };
    size_t budget = search->context.request->memory_bytes, room = budget, least;
    enum rfx_status status = RFX_OK;
    bool fit = c->fit;
    c->fit = false;
    for (int k = 0; status == RFX_OK && k < TRIES && !c->fit; k++) {
        status = add_choice(search, c, way, &room, &least, err);
        size_t over = least > budget ? least - budget : room / LITTLE;
        room = room > over ? room - over : 0;
    }
    room -= room / 4;
    if (status == RFX_OK && c->fit) status = add_choice(search, c, way, &room, &least, err);
    c->fit |= fit;
    return status;
}

/* For less and less from a quarter of what could be stored to a sixteenth, and for a little more
 * and a little less than what of these needs least: it hangs on the network alone. */
static enum rfx_status choose_small(struct rfx_search *search, struct chooser *c,
                                    struct rfx_error *err) {
    enum { MOST = 4, LEAST = 16 };
    static const int beside[] = {9, 7, 12, 6}; /* eighths */
    const struct rfx_chain_way by_span = {true, true}, at_all = {false, true};
    size_t n = (size_t)search->context.graph->n_nodes, least, best = SIZE_MAX, best_room = 0;
    struct rfx_chain_count all;
    enum rfx_status status = RFX_OK;
    if (search->n_chosen == RFX_SEARCH_CHOICES) return RFX_OK;
    int *until = search->chosen + (size_t)search->n_chosen * n; /* for now */
    rfx_chain_stores_choose(c->stores, SIZE_MAX, by_span, until, &all);
    for (size_t tried = all.bytes / MOST; status == RFX_OK && tried > all.bytes / LEAST && !c->fit;
         tried -= tried / 3 + 1) {
        size_t room = tried;
        status = add_choice(search, c, by_span, &room, &least, err);
        if (least == 0 || least >= best) continue;
        best = least;
        best_room = room;
    }
    for (int k = 0; status == RFX_OK && k < 4 && best_room > 0 && !c->fit; k++) {
        size_t room = best_room / 8 * (size_t)beside[k];
        status = add_choice(search, c, k < 2 ? by_span : at_all, &room, &least, err);
    }
    return status;
}

static enum rfx_status add_choices(struct rfx_search *search, struct chooser *c,
                                   struct rfx_error *err) {
    enum { MOST_LOOKS = 8 * 1000 * 1000 };
    const struct rfx_graph *graph = search->context.graph;
    size_t n = (size_t)graph->n_nodes, before = search->n_candidates;
    if (search->n_chosen > 0) return RFX_OK; /* they are listed already */
    double *times = rfx_memory_calloc(graph->mem, n, sizeof *times);
    if (times == NULL) return rfx_memory_fail(graph->mem, "times", n * sizeof *times, err);
    for (int i = 0; i < graph->n_nodes; i++) {
        struct rfx_cost_counts counts = {{0}};
        rfx_cost_count_whole(&search->cost, i, &counts);
        times[i] = (double)rfx_cost_picoseconds(&search->cost, &counts);
    }
    enum rfx_status status = rfx_chain_stores_create(&search->levels, times, &c->stores, err);
    bool wanted = status == RFX_OK && rfx_chain_stores_looks(c->stores) <= MOST_LOOKS;
    bool all = rfx_search_wants_all(search);
    for (int k = 0; wanted && !all && status == RFX_OK && k < 3; k++) {
        struct rfx_chain_way way = {k != 1, k < 2};
        status = choose_for_budget(search, c, way, err);
    }
    if (!c->fit && search->rivals == NULL) { /* the least does not hang on the budget */
        search->n_candidates = before;
        search->n_chosen = 0;
    }
    if (wanted && status == RFX_OK && !c->fit) status = choose_small(search, c, err);
    rfx_chain_stores_free(c->stores);
    rfx_memory_release(graph->mem, times);
    return status;
}

/* Chains that store small maps alone: what large ones are needed for, such as a U-Net's skips at
 * its full size, is made again from the image, what is behind small ones is not. Each of the levels
 * is a stage, whose rows are walked through, which costs as much as ROWS_BESIDE rows besides: of a
 * deep network or a large image few are tried, those that store least. Then those whose maps are
 * chosen one by one, and, where none fits, one more that stores little. */
static enum rfx_status add_small_stores(struct rfx_search *search, const struct rfx_mode *mode,
                                        const struct rfx_trial *trial, struct rfx_error *err) {
    enum { BANDS = 3, CHOICE_BANDS = 4, ROWS_BESIDE = 1536, MOST_STEPS = 200 * 1000 * 1000 };
    const struct rfx_graph *graph = search->context.graph;
    enum rfx_status status = RFX_OK;
    struct rfx_skeleton list[MOST_SMALL];
    int64_t rows = graph->nodes[graph->input].out.h + ROWS_BESIDE;
    int64_t walks = MOST_STEPS / ((int64_t)search->levels.n * graph->n_nodes) / rows;
    int n = list_small(&search->levels, list);
    int64_t chains = rfx_min_i64(n, rfx_min_i64(walks, rfx_max_i64(1, walks / BANDS)));
    int64_t each = chains > 0 ? walks / chains : 1;
    int share = (int)rfx_min_i64(INT_MAX, rfx_max_i64(1, search->most / each));
    for (int i = 0; status == RFX_OK && i < chains; i++)
        status = rfx_trial_add_skeleton(search, mode, trial, list[i], share, err);
    int64_t of_choices = rfx_max_i64(1, search->most / rfx_max_i64(each, CHOICE_BANDS));
    struct chooser chooser = {mode, trial, NULL, (int)rfx_min_i64(INT_MAX, of_choices), false};
    if (status == RFX_OK) status = add_choices(search, &chooser, err);
    bool more = walks > 0 && chains < n && !chooser.fit;
    if (status == RFX_OK && more)
        status = rfx_trial_add_skeleton(search, mode, trial, list[chains], share, err);
    return status;
}

/* Levels up to which numbers of passes are tried beside chains whose maps are chosen. */
enum { FEW_LEVELS = 32 };

/* From the image again at one barrier, at all, and at numbers between that need less than fewer. */
enum rfx_status rfx_trial_add_passes(struct rfx_search *search, const struct rfx_mode *mode,
                                     const struct rfx_trial *trial, struct rfx_error *err) {
    struct passes one = {.n = 1}, all = {.n = search->levels.n - 1};
    struct rfx_skeleton chain = {.kind = RFX_SKELETON_CHAIN, .passes = one.n};
    if (all.n < 1) return RFX_OK;
    enum rfx_status status = measure_passes(search, mode, trial, &one, err);
    if (status == RFX_OK)
        status = rfx_trial_add_skeleton(search, mode, trial, chain, search->levels.n, err);
    if (status == RFX_OK) status = add_small_stores(search, mode, trial, err);
    if (status != RFX_OK || all.n == one.n) return status;
    status = measure_passes(search, mode, trial, &all, err);
    if (status == RFX_OK && (search->n_chosen == 0 || search->levels.n <= FEW_LEVELS))
        status = add_passes_between(search, mode, trial, &one, &all, err);
    chain.passes = all.n;
    if (status == RFX_OK)
        status = rfx_trial_add_skeleton(search, mode, trial, chain, search->levels.n, err);
    return status;
}

/* Around each waist, with the maps at its ends stored and more and more of what is read behind it:
 * what is not stored, such as a U-Net's skips, is made again from the image. */
enum rfx_status rfx_trial_add_waists(struct rfx_search *search, const struct rfx_mode *mode,
                                     const struct rfx_trial *trial, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < search->n_waists; k++) {
        const struct rfx_search_waist *w = &search->waists[k];
        size_t sizes[RFX_SKELETON_MAX_SPILLS];
        int n = w->levels.n > 0 ? rfx_skeleton_spills(&w->levels, sizes) : 0;
        for (int i = n - 1; status == RFX_OK && i >= 0; i--) {
            struct rfx_skeleton chain = {
                .kind = RFX_SKELETON_CHAIN, .store_to = sizes[i], .waist = k + 1};
            if (sizes[i] < w->waist.cut_bytes) continue;
            status = rfx_trial_add_skeleton(search, mode, trial, chain, search->n_waists * n, err);
        }
    }
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
enum rfx_status rfx_trial_add_spilled(struct rfx_search *search, const struct rfx_mode *mode,
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
            status = rfx_trial_add_skeleton(search, mode, trial, chain, passes * n, err);
        }
    for (int k = 0; status == RFX_OK && k < RFX_SEARCH_MORE; k++) {
        struct rfx_skeleton cut = {
            .kind = RFX_SKELETON_CHAIN, .spill_from = 1, .more = rfx_search_more(k)};
        if (search->more[k].n > 0)
            status = rfx_trial_add_skeleton(search, mode, trial, cut, RFX_SEARCH_MORE, err);
    }
    return status;
}
