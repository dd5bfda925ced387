/* Trials of chains by the maps that they store: small ones alone, or one by one what a budget has
 * room for; see planner_trials.h. */
#include <limits.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/search/chain_stores.h"
#include "tiler/search/planner_trials.h"

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
    size_t *beside; /* per stage of a choice */
    int share;
    bool fit;      /* one of them fits, */
    bool by_level; /* or one for the room at each level */
};

/* Those that store what saves most for so many bytes, of which what is known to be beside the maps
 * takes its part. *room: what is taken of it. *least: what one of them needs at least; 0: they are
 * there already, or of no interest. */
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

/* Notes for each level what the last choice has there beside stored maps in its shortest bands, if
 * that is more than was known, and in *fixed what it takes beside the arena. */
static enum rfx_status measure_beside(struct rfx_search *search, struct chooser *c, size_t *fixed,
                                      struct rfx_error *err) {
    const struct rfx_levels *levels = &search->levels;
    size_t n = (size_t)search->context.graph->n_nodes;
    struct rfx_candidate last = {
        .skeleton = {.kind = RFX_SKELETON_CHAIN,
                     .until = search->chosen + (size_t)(search->n_chosen - 1) * n},
        .way = {.mode = c->mode,
                .parts_y = 1,
                .parts_x = 1,
                .tight = true,
                .row_by_row = true,
                .weights_by_stage = true}};
    struct rfx_trial_choices choices;
    int n_stages;
    rfx_trial_list_choices(search, c->trial, &last.skeleton, c->share, &choices);
    last.way.band_rows = choices.bands[choices.n_bands - 1];
    enum rfx_status status = rfx_search_lay_out(search, &last, &n_stages, err);
    if (status != RFX_OK) return status;
    for (int s = 0; s < n_stages; s++) rfx_search_set_flags(&search->shapes[s].spec, &last.way);
    size_t *beside = rfx_chain_stores_beside(c->stores);
    rfx_plan_list_beside(&search->context, search->shapes, n_stages, c->beside);
    for (int s = 0; s < n_stages; s++) {
        int level = levels->level[search->shapes[s].spec.targets[0]];
        if (c->beside[s] > beside[level]) beside[level] = c->beside[s];
    }
    *fixed = rfx_plan_fixed_bytes(&search->context, search->shapes, n_stages);
    return RFX_OK;
}

/* For what there is room for level by level, as what the choices before have there beside stored
 * maps: a map may be stored where little is computed again that has no room where much is. */
static enum rfx_status choose_by_level(struct rfx_search *search, struct chooser *c,
                                       struct rfx_chain_way way, struct rfx_error *err) {
    enum { TRIES = 3, LITTLE = 64 };
    size_t budget = search->context.request->memory_bytes, fixed, least;
    enum rfx_status status = RFX_OK;
    bool fit = c->fit;
    c->fit = false;
    for (int k = 0; status == RFX_OK && k < TRIES && !c->fit; k++) {
        status = measure_beside(search, c, &fixed, err);
        size_t room = budget > fixed ? budget - fixed : 0;
        room -= room / LITTLE * (size_t)k;
        if (status == RFX_OK) status = add_choice(search, c, way, &room, &least, err);
    }
    c->by_level |= c->fit;
    c->fit = fit;
    memset(rfx_chain_stores_beside(c->stores), 0, (size_t)search->levels.n * sizeof fixed);
    return status;
}

/* For less and less until one fits beside rings, weights and all else, level by level where that is
 * not the first, and for a quarter less than that: what is computed again may take less time than
 * what shorter bands cost. */
static enum rfx_status choose_for_budget(struct rfx_search *search, struct chooser *c,
                                         struct rfx_chain_way way, struct rfx_error *err) {
    enum { TRIES = 4, LITTLE = 32 };
    size_t budget = search->context.request->memory_bytes, room = budget, least;
    enum rfx_status status = RFX_OK;
    bool fit = c->fit;
    int tried = 0;
    c->fit = false;
    for (; status == RFX_OK && tried < TRIES && !c->fit; tried++) {
        status = add_choice(search, c, way, &room, &least, err);
        size_t over = least > budget ? least - budget : room / LITTLE;
        room = room > over ? room - over : 0;
    }
    if (status == RFX_OK && tried > 1 && search->n_chosen > 0)
        status = choose_by_level(search, c, way, err);
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
    c->beside = rfx_memory_calloc(graph->mem, (size_t)search->max_stages, sizeof *c->beside);
    if (times == NULL || c->beside == NULL) {
        rfx_memory_release(graph->mem, times);
        rfx_memory_release(graph->mem, c->beside);
        return rfx_memory_fail(graph->mem, "times", n * sizeof *times, err);
    }
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
    bool none_fits = !c->fit && !c->by_level;
    if (none_fits && search->rivals == NULL) { /* the least does not hang on the budget */
        search->n_candidates = before;
        search->n_chosen = 0;
    }
    if (wanted && status == RFX_OK && !c->fit) status = choose_small(search, c, err);
    rfx_chain_stores_free(c->stores);
    rfx_memory_release(graph->mem, c->beside);
    rfx_memory_release(graph->mem, times);
    return status;
}

/* Chains that store small maps alone: what large ones are needed for, such as a U-Net's skips at
 * its full size, is made again from the image, what is behind small ones is not. Each of the levels
 * is a stage, whose rows are walked through, which costs as much as ROWS_BESIDE rows besides: of a
 * deep network or a large image few are tried, those that store least. Then those whose maps are
 * chosen one by one, and, where none fits, one more that stores little. */
enum rfx_status rfx_trial_add_small_stores(struct rfx_search *search, const struct rfx_mode *mode,
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
    struct chooser chooser = {
        .mode = mode, .trial = trial, .share = (int)rfx_min_i64(INT_MAX, of_choices)};
    if (status == RFX_OK) status = add_choices(search, &chooser, err);
    bool more = walks > 0 && chains < n && !chooser.fit;
    if (status == RFX_OK && more)
        status = rfx_trial_add_skeleton(search, mode, trial, list[chains], share, err);
    return status;
}
