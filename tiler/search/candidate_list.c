/* Lists the candidates that each phase tries: expands the modes' candidate templates over cuts,
 * bands and tiles. For chains it also varies which maps they store between their stages and which
 * maps they compute again. */
#include "tiler/search/candidates.h"

#include <limits.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/search/chain_stores.h"

/* The values that a template varies for one partition. */
struct choices_of_template {
    int n_down, n_across, n_bands;
    int64_t down[RFX_TILING_MAX_COUNTS], across[RFX_TILING_MAX_COUNTS];
    int64_t bands[RFX_TILING_MAX_COUNTS];
};

#define LAST_CUTS \
    3 /* number of last legal splits: streaming adds no MACs, so a later cut needs less memory */
#define SPREAD_CUTS 4 /* number of further splits, spread over the others */
#define MAX_CUTS (LAST_CUTS + SPREAD_CUTS)

/* Lists the splits at which streams may end: the last legal ones, and some spread over the others.
 * Returns their number. */
static int list_cuts(const struct rfx_search *search, int *cuts) {
    int n = 0;
    int early = search->n_splits > LAST_CUTS ? search->n_splits - LAST_CUTS : 0;
    int spread = early < SPREAD_CUTS ? early : SPREAD_CUTS;
    for (int i = 0; i < spread; i++)
        cuts[n++] = search->splits[(int64_t)(2 * i + 1) * early / (2 * spread)];
    for (int i = early; i < search->n_splits; i++) cuts[n++] = search->splits[i];
    return n;
}

/* Lists the tile counts along an axis that a template tries, or the one count that the request
 * gives. Returns their number. */
static int list_parts(const struct rfx_search *search,
                      const struct rfx_candidate_template *template,
                      const struct rfx_partition *partition, enum rfx_axis axis, int64_t *counts) {
    const struct rfx_stage_spec *asked = &search->context.request->asked;
    int64_t given = axis == RFX_AXIS_ROWS ? asked->tiles_y : asked->tiles_x;
    bool grid = template->tiles == RFX_TILES_GRID;
    bool listed = template->tiles == RFX_TILES_ACROSS && axis == RFX_AXIS_COLS;
    if (asked->mode != NULL || !(grid || listed)) {
        counts[0] = rfx_max_i64(given, 1);
        return 1;
    }
    if (grid) {
        const struct rfx_node *cut = &search->context.graph->nodes[partition->cut];
        int64_t extent = rfx_range_size(rfx_node_roi(cut, axis));
        return rfx_tiling_counts(rfx_max_i64(1, extent), counts);
    }
    memcpy(counts, template->across, (size_t) template->n_across * sizeof *counts);
    return template->n_across;
}

/* Removes every other entry of a list but keeps the last one. */
static void halve(int64_t *list, int *n) {
    int kept = 0;
    for (int i = (*n - 1) % 2; i < *n; i += 2) list[kept++] = list[i];
    *n = kept;
}

/* Shortens the lists, the longest first, until n_partitions partitions together have no more
 * candidates than the search allows. */
static void limit_choices(const struct rfx_search *search, int n_partitions,
                          struct choices_of_template *c) {
    for (;;) {
        int64_t each = (int64_t)c->n_down * c->n_across * c->n_bands;
        if (each == 1 || n_partitions * each <= search->most) return;
        if (c->n_down >= c->n_across && c->n_down >= c->n_bands)
            halve(c->down, &c->n_down);
        else if (c->n_across >= c->n_bands)
            halve(c->across, &c->n_across);
        else
            halve(c->bands, &c->n_bands);
    }
}

/* Lists the choices for one of n_partitions partitions of a template. */
static void list_choices(const struct rfx_search *search,
                         const struct rfx_candidate_template *template,
                         const struct rfx_partition *partition, int n_partitions,
                         struct choices_of_template *c) {
    const struct rfx_stage_spec *asked = &search->context.request->asked;
    c->n_down = list_parts(search, template, partition, RFX_AXIS_ROWS, c->down);
    c->n_across = list_parts(search, template, partition, RFX_AXIS_COLS, c->across);
    c->n_bands = 1;
    c->bands[0] = 0;
    if (template->n_bands > 0 && asked->mode != NULL && asked->band_rows > 0) {
        c->bands[0] = asked->band_rows;
    } else if (template->n_bands > 0) {
        c->n_bands = template->n_bands;
        memcpy(c->bands, template->bands, (size_t) template->n_bands * sizeof *c->bands);
    }
    limit_choices(search, n_partitions, c);
}

/* Limit of a grid's predicted time, as a multiple of the untiled run's. Grids above it have tiles
 * so small that they are mostly halo; still smaller tiles take even longer. Such candidates are
 * left out once a listed candidate seems to fit, because they matter only if nothing else fits. */
#define TOO_MANY_TIMES 200.0

static bool seems_settled(const struct rfx_search *search, enum rfx_plan_kind kind) {
    if (rfx_search_wants_all(search) || search->patient) return false;
    return search->rivals != NULL ? search->rivals->n[kind] > 0 : search->some_fit;
}

static bool takes_too_long(struct rfx_search *search, const struct rfx_candidate_template *template,
                           enum rfx_plan_kind kind, int n_stages) {
    double least = 0.0;
    if (template->tiles != RFX_TILES_GRID || !seems_settled(search, kind)) return false;
    for (int s = 0; s < n_stages; s++) least += rfx_cost_least(&search->cost, &search->shapes[s]);
    bool slow = least > TOO_MANY_TIMES * (double)search->cost_untiled;
    search->left_out |= slow;
    return slow;
}

/* Adds a candidate for every tile count across. The stages are measured for the first count that is
 * of interest, since row counts do not depend on the tile count. *slow receives whether even the
 * fewest tiles take too long. */
static enum rfx_status add_across(struct rfx_search *search,
                                  const struct rfx_candidate_template *template,
                                  const struct choices_of_template *choices,
                                  struct rfx_candidate *c, bool *slow, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    int n_stages = 0;
    *slow = false;
    for (int x = 0; status == RFX_OK && x < choices->n_across; x++) {
        bool cut = c->spec.tiles_y > 1 || choices->across[x] > 1;
        c->kind = cut ? template->kind_in_tiles : template->kind;
        c->spec.tiles_x = choices->across[x];
        search->tried++;
        status = rfx_memory_check_stop(search->context.graph->mem, err);
        if (status != RFX_OK || rfx_search_is_hopeless(search, c)) continue;
        if (n_stages == 0)
            status = rfx_search_lay_out(search, c, &n_stages, err);
        else
            rfx_search_lay_across(search, c->spec.mode, c->spec.tiles_x, n_stages);
        if (status == RFX_OK && takes_too_long(search, template, c->kind, n_stages)) {
            *slow = x == 0;
            break;
        }
        if (status == RFX_OK) status = rfx_search_add(search, c, n_stages, err);
    }
    return status;
}

/* Adds the candidates of one of n_partitions partitions, with every choice of bands and tiles. */
static enum rfx_status add_partition(struct rfx_search *search, const struct rfx_mode *mode,
                                     const struct rfx_candidate_template *template,
                                     struct rfx_partition partition, int n_partitions,
                                     struct rfx_error *err) {
    struct choices_of_template choices;
    enum rfx_status status = RFX_OK;
    list_choices(search, template, &partition, n_partitions, &choices);
    memset(search->behind, 0, sizeof search->behind);
    for (int b = 0; b < choices.n_bands; b++) {
        bool slow = false;
        for (int y = 0; status == RFX_OK && !slow && y < choices.n_down; y++) {
            struct rfx_candidate c = {.partition = partition};
            c.spec = (struct rfx_stage_spec){
                .mode = mode, .tiles_y = choices.down[y], .band_rows = choices.bands[b]};
            status = add_across(search, template, &choices, &c, &slow, err);
        }
    }
    return status;
}

enum { N_LATE = 3, QUARTERS = 4, MOST_SMALL = N_LATE * RFX_PARTITION_MAX_SPILLS };

/* Lists chains that store small maps, in the order of rising sizes, and returns their number. In
 * the last half or quarter of the levels, where a U-Net's small maps are no longer needed, they may
 * also store maps of the next larger size. */
static int list_small(const struct rfx_levels *levels, struct rfx_partition *list) {
    static const int late[N_LATE] = {QUARTERS, 3, 2}; /* quarters of the levels; 4 of 4: no level */
    size_t sizes[RFX_PARTITION_MAX_SPILLS];
    int count = 0, n = rfx_partition_spills(levels, sizes);
    for (int k = 0; k < N_LATE; k++)
        for (int i = n - 1; i > 0; i--)
            list[count++] = (struct rfx_partition){.kind = RFX_PARTITION_CHAIN,
                                                   .store_to = sizes[i],
                                                   .late_to = sizes[i - 1],
                                                   .late = levels->n * late[k] / QUARTERS};
    return count;
}

/* Sets *fit if one of the candidates from index `from` on fits the budget, with its buffers placed
 * as they would be if it were chosen. */
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

/* Returns the smallest bound of the candidates from index `from` on; 0: there are none. */
static size_t least_bound(const struct rfx_search *search, size_t from) {
    size_t least = 0;
    for (size_t i = from; i < search->n_candidates; i++)
        if (least == 0 || search->candidates[i].bound < least) least = search->candidates[i].bound;
    return least;
}

/* Returns whether the last choice stores any map and differs from all choices before it. */
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

/* State while chains with chosen stored maps are added. */
struct chooser {
    const struct rfx_mode *mode;
    const struct rfx_candidate_template *template;
    struct rfx_chain_stores *stores;
    size_t *beside; /* bytes beside the stored maps, per stage of a choice */
    int share;
    bool fit;      /* one of the chains fits */
    bool by_level; /* one of the chains chosen level by level fits */
};

/* Adds chains that store the maps which save the most time. The stored maps and the bytes known to
 * be required beside them take at most *room bytes; *room becomes the bytes that they take. *least
 * receives the smallest bound of these chains; 0: they are already listed or not of interest. */
static enum rfx_status add_choice(struct rfx_search *search, struct chooser *c,
                                  struct rfx_chain_preference preference, size_t *room,
                                  size_t *least, struct rfx_error *err) {
    size_t n = (size_t)search->context.graph->n_nodes, before = search->n_candidates;
    int *until = search->chosen + (size_t)search->n_chosen * n;
    struct rfx_partition chain = {.kind = RFX_PARTITION_CHAIN, .until = until};
    struct rfx_chain_count count;
    *least = 0;
    if (search->n_chosen == RFX_SEARCH_CHOICES) return RFX_OK;
    rfx_chain_stores_choose(c->stores, *room, preference, until, &count);
    if (count.bytes < *room) *room = count.bytes;
    if (!is_new(search)) return RFX_OK;
    search->n_chosen++;
    enum rfx_status status = add_partition(search, c->mode, c->template, chain, c->share, err);
    if (status == RFX_OK && !rfx_search_wants_all(search))
        status = find_fitting(search, before, &c->fit, err);
    *least = least_bound(search, before);
    return status;
}

/* Measures the last choice with its shortest bands and raises, level by level, the bytes known to
 * be required beside stored maps. *fixed receives the bytes of the choice outside the arena. */
static enum rfx_status measure_beside(struct rfx_search *search, struct chooser *c, size_t *fixed,
                                      struct rfx_error *err) {
    const struct rfx_levels *levels = &search->levels;
    size_t n = (size_t)search->context.graph->n_nodes;
    struct rfx_candidate last = {
        .partition = {.kind = RFX_PARTITION_CHAIN,
                      .until = search->chosen + (size_t)(search->n_chosen - 1) * n},
        .spec = {.mode = c->mode,
                 .tiles_y = 1,
                 .tiles_x = 1,
                 .staging = true,
                 .row_by_row = true,
                 .weights_by_stage = true}};
    struct choices_of_template choices;
    int n_stages;
    list_choices(search, c->template, &last.partition, c->share, &choices);
    last.spec.band_rows = choices.bands[choices.n_bands - 1];
    enum rfx_status status = rfx_search_lay_out(search, &last, &n_stages, err);
    if (status != RFX_OK) return status;
    for (int s = 0; s < n_stages; s++) rfx_search_set_flags(&search->shapes[s].spec, &last.spec);
    size_t *beside = rfx_chain_stores_beside(c->stores);
    rfx_plan_list_beside(&search->context, search->shapes, n_stages, c->beside);
    for (int s = 0; s < n_stages; s++) {
        int level = levels->level[search->shapes[s].spec.targets[0]];
        if (c->beside[s] > beside[level]) beside[level] = c->beside[s];
    }
    *fixed = rfx_plan_fixed_bytes(&search->context, search->shapes, n_stages);
    return RFX_OK;
}

/* Chooses maps for the memory that is free at each level, given the bytes that earlier choices
 * required beside stored maps at that level. A map may fit at levels where little is computed
 * again, even if it does not fit where much is. */
static enum rfx_status choose_by_level(struct rfx_search *search, struct chooser *c,
                                       struct rfx_chain_preference preference,
                                       struct rfx_error *err) {
    enum { TRIES = 3, LITTLE = 64 };
    size_t budget = search->context.request->memory_bytes, fixed, least;
    enum rfx_status status = RFX_OK;
    bool fit = c->fit;
    c->fit = false;
    for (int k = 0; status == RFX_OK && k < TRIES && !c->fit; k++) {
        status = measure_beside(search, c, &fixed, err);
        size_t room = budget > fixed ? budget - fixed : 0;
        room -= room / LITTLE * (size_t)k;
        if (status == RFX_OK) status = add_choice(search, c, preference, &room, &least, err);
    }
    c->by_level |= c->fit;
    c->fit = fit;
    memset(rfx_chain_stores_beside(c->stores), 0, (size_t)search->levels.n * sizeof fixed);
    return status;
}

/* Chooses which feature maps a chain stores. Each of at most TRIES tries gives stored maps less
 * memory, until the chain fits the budget together with ring buffers, weights and the rest. If the
 * first try does not fit, the choice is also made level by level. If a try fits, one more choice is
 * made with a quarter less memory for stored maps: computing some maps again may take less time
 * than shorter bands. */
static enum rfx_status choose_for_budget(struct rfx_search *search, struct chooser *c,
                                         struct rfx_chain_preference preference,
                                         struct rfx_error *err) {
    enum { TRIES = 4, LITTLE = 32 };
    size_t budget = search->context.request->memory_bytes, room = budget, least;
    enum rfx_status status = RFX_OK;
    bool fit = c->fit;
    int tried = 0;
    c->fit = false;
    for (; status == RFX_OK && tried < TRIES && !c->fit; tried++) {
        status = add_choice(search, c, preference, &room, &least, err);
        size_t over = least > budget ? least - budget : room / LITTLE;
        room = room > over ? room - over : 0;
    }
    if (status == RFX_OK && tried > 1 && search->n_chosen > 0)
        status = choose_by_level(search, c, preference, err);
    room -= room / 4;
    if (status == RFX_OK && c->fit) status = add_choice(search, c, preference, &room, &least, err);
    c->fit |= fit;
    return status;
}

/* Chooses maps that take from a quarter down to a sixteenth of the bytes of all maps that could be
 * stored. Then makes choices around the size that gave the smallest of these chains. The choices
 * depend only on the network. */
static enum rfx_status choose_small(struct rfx_search *search, struct chooser *c,
                                    struct rfx_error *err) {
    enum { MOST = 4, LEAST = 16 };
    static const int beside[] = {9, 7, 12, 6}; /* eighths */
    const struct rfx_chain_preference by_span = {true, true}, at_all = {false, true};
    size_t n = (size_t)search->context.graph->n_nodes, least, best = SIZE_MAX, best_room = 0;
    struct rfx_chain_count all;
    enum rfx_status status = RFX_OK;
    if (search->n_chosen == RFX_SEARCH_CHOICES) return RFX_OK;
    int *until = search->chosen + (size_t)search->n_chosen * n; /* used as scratch here */
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
    if (search->n_chosen > 0) return RFX_OK; /* already listed */
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
        struct rfx_chain_preference preference = {k != 1, k < 2};
        status = choose_for_budget(search, c, preference, err);
    }
    bool none_fits = !c->fit && !c->by_level;
    if (none_fits && search->rivals == NULL) { /* the smallest plan must not depend on the budget */
        search->n_candidates = before;
        search->n_chosen = 0;
    }
    if (wanted && status == RFX_OK && !c->fit) status = choose_small(search, c, err);
    rfx_chain_stores_free(c->stores);
    rfx_memory_release(graph->mem, c->beside);
    rfx_memory_release(graph->mem, times);
    return status;
}

/* Adds chains that store small maps only. A stage that needs a large map, such as a U-Net's skip at
 * full size, computes the map again from the image. Each level is a stage whose rows are walked,
 * which costs as much as ROWS_BESIDE additional rows. So for a deep network or a large image only
 * the chains that store least are tried. Then adds chains whose maps are chosen one by one. If none
 * of them fits, adds one more chain that stores little. */
static enum rfx_status add_small_stores(struct rfx_search *search, const struct rfx_mode *mode,
                                        const struct rfx_candidate_template *template,
                                        struct rfx_error *err) {
    enum { BANDS = 3, CHOICE_BANDS = 4, ROWS_BESIDE = 1536, MOST_STEPS = 200 * 1000 * 1000 };
    const struct rfx_graph *graph = search->context.graph;
    enum rfx_status status = RFX_OK;
    struct rfx_partition list[MOST_SMALL];
    int64_t rows = graph->nodes[graph->input].out.h + ROWS_BESIDE;
    int64_t walks = MOST_STEPS / ((int64_t)search->levels.n * graph->n_nodes) / rows;
    int n = list_small(&search->levels, list);
    int64_t chains = rfx_min_i64(n, rfx_min_i64(walks, rfx_max_i64(1, walks / BANDS)));
    int64_t each = chains > 0 ? walks / chains : 1;
    int share = (int)rfx_min_i64(INT_MAX, rfx_max_i64(1, search->most / each));
    for (int i = 0; status == RFX_OK && i < chains; i++)
        status = add_partition(search, mode, template, list[i], share, err);
    int64_t of_choices = rfx_max_i64(1, search->most / rfx_max_i64(each, CHOICE_BANDS));
    struct chooser chooser = {
        .mode = mode, .template = template, .share = (int)rfx_min_i64(INT_MAX, of_choices)};
    if (status == RFX_OK) status = add_choices(search, &chooser, err);
    bool more = walks > 0 && chains < n && !chooser.fit;
    if (status == RFX_OK && more)
        status = add_partition(search, mode, template, list[chains], share, err);
    return status;
}

/* The bounds of chains that start again from the image at n barriers: for each band height, one
 * with the requested flags and one with all memory-saving flags. */
struct passes {
    int n; /* barriers at which the image is read again */
    size_t bounds[2 * RFX_TILING_MAX_COUNTS];
};

static enum rfx_status measure_passes(struct rfx_search *search, const struct rfx_mode *mode,
                                      const struct rfx_candidate_template *template,
                                      struct passes *p, struct rfx_error *err) {
    struct rfx_candidate c = {.partition = {.kind = RFX_PARTITION_CHAIN, .passes = p->n}};
    const struct rfx_stage_spec *asked = &search->context.request->asked;
    struct choices_of_template choices;
    list_choices(search, template, &c.partition, search->levels.n, &choices);
    memset(p->bounds, 0, sizeof p->bounds);
    for (int b = 0; b < choices.n_bands; b++) {
        int n_stages;
        c.spec = (struct rfx_stage_spec){.mode = mode,
                                         .tiles_y = choices.down[0],
                                         .tiles_x = choices.across[0],
                                         .band_rows = choices.bands[b]};
        enum rfx_status status = rfx_search_lay_out(search, &c, &n_stages, err);
        if (status != RFX_OK) return status;
        for (int squeezed = 0; squeezed < 2; squeezed++) { /* the flags do not change row counts */
            bool s = squeezed != 0;
            c.spec.staging = s || asked->staging;
            c.spec.row_by_row = s || asked->row_by_row;
            c.spec.weights_by_stage = s || asked->weights_by_stage;
            for (int i = 0; i < n_stages; i++)
                rfx_search_set_flags(&search->shapes[i].spec, &c.spec);
            p->bounds[2 * b + squeezed] =
                rfx_plan_bound(&search->context, search->shapes, n_stages);
        }
    }
    return RFX_OK;
}

/* Returns whether two numbers of passes need nearly the same memory, within 1/32, in all cases. */
static bool need_alike(const struct passes *a, const struct passes *b) {
    for (int i = 0; i < 2 * RFX_TILING_MAX_COUNTS; i++) {
        size_t less = a->bounds[i] < b->bounds[i] ? a->bounds[i] : b->bounds[i];
        size_t more = a->bounds[i] < b->bounds[i] ? b->bounds[i] : a->bounds[i];
        if (more - less > less / 32) return false;
    }
    return true;
}

/* Adds chains with numbers of passes between two numbers that were measured. More passes take
 * longer. If the two numbers need nearly the same memory, the numbers between them are assumed to
 * need as much and are left out. */
static enum rfx_status add_passes_between(struct rfx_search *search, const struct rfx_mode *mode,
                                          const struct rfx_candidate_template *template,
                                          const struct passes *few, const struct passes *many,
                                          struct rfx_error *err) {
    struct passes middle = {.n = few->n + (many->n - few->n) / 2};
    struct rfx_partition chain = {.kind = RFX_PARTITION_CHAIN, .passes = middle.n};
    if (middle.n == few->n || need_alike(few, many)) return RFX_OK;
    enum rfx_status status = measure_passes(search, mode, template, &middle, err);
    if (status == RFX_OK) status = add_passes_between(search, mode, template, few, &middle, err);
    if (status == RFX_OK)
        status = add_partition(search, mode, template, chain, search->levels.n, err);
    if (status == RFX_OK) status = add_passes_between(search, mode, template, &middle, many, err);
    return status;
}

/* Most levels for which numbers of passes are tried in addition to chains with chosen maps. */
enum { FEW_LEVELS = 32 };

/* Adds chains that read the image again at one barrier, at all barriers, and at numbers of barriers
 * between if these change the memory. */
static enum rfx_status add_passes(struct rfx_search *search, const struct rfx_mode *mode,
                                  const struct rfx_candidate_template *template,
                                  struct rfx_error *err) {
    struct passes one = {.n = 1}, all = {.n = search->levels.n - 1};
    struct rfx_partition chain = {.kind = RFX_PARTITION_CHAIN, .passes = one.n};
    if (all.n < 1) return RFX_OK;
    enum rfx_status status = measure_passes(search, mode, template, &one, err);
    if (status == RFX_OK)
        status = add_partition(search, mode, template, chain, search->levels.n, err);
    if (status == RFX_OK) status = add_small_stores(search, mode, template, err);
    if (status != RFX_OK || all.n == one.n) return status;
    status = measure_passes(search, mode, template, &all, err);
    if (status == RFX_OK && (search->n_chosen == 0 || search->levels.n <= FEW_LEVELS))
        status = add_passes_between(search, mode, template, &one, &all, err);
    chain.passes = all.n;
    if (status == RFX_OK)
        status = add_partition(search, mode, template, chain, search->levels.n, err);
    return status;
}

/* Adds chains around each waist. They store the maps at the waist's ends and, chain by chain, more
 * of the maps that are read after it. Maps that are not stored, such as a U-Net's skips, are
 * computed again from the image. */
static enum rfx_status add_waists(struct rfx_search *search, const struct rfx_mode *mode,
                                  const struct rfx_candidate_template *template,
                                  struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < search->n_waists; k++) {
        const struct rfx_search_waist *w = &search->waists[k];
        size_t sizes[RFX_PARTITION_MAX_SPILLS];
        int n = w->levels.n > 0 ? rfx_partition_spills(&w->levels, sizes) : 0;
        for (int i = n - 1; status == RFX_OK && i >= 0; i--) {
            struct rfx_partition chain = {
                .kind = RFX_PARTITION_CHAIN, .store_to = sizes[i], .waist = k + 1};
            if (sizes[i] < w->waist.cut_bytes) continue;
            status = add_partition(search, mode, template, chain, search->n_waists * n, err);
        }
    }
    return status;
}

int rfx_search_more(int k) {
    static const int more[RFX_SEARCH_MORE] = {1, 2, 3, 5, 8, RFX_PARTITION_MAX_MORE};
    return more[k];
}

/* Adds chains with one stage per level that spill maps from some size on. Then adds chains with
 * more stages, all of whose maps go through files, because the ring buffers of a deep network may
 * be too large for one stream. Chains start again from the image at no more than the first few
 * barriers, where computing a first convolution takes less time than a file. */
static enum rfx_status add_spilled(struct rfx_search *search, const struct rfx_mode *mode,
                                   const struct rfx_candidate_template *template,
                                   struct rfx_error *err) {
    enum { PASSES = 3 };
    enum rfx_status status = RFX_OK;
    size_t sizes[RFX_PARTITION_MAX_SPILLS];
    int n = search->levels.n > 0 ? rfx_partition_spills(&search->levels, sizes) : 0;
    int passes = search->levels.n < PASSES ? search->levels.n : PASSES;
    for (int p = 0; p < passes; p++)
        for (int i = 0; status == RFX_OK && i < n; i++) {
            struct rfx_partition chain = {
                .kind = RFX_PARTITION_CHAIN, .passes = p, .spill_from = sizes[i]};
            status = add_partition(search, mode, template, chain, passes * n, err);
        }
    for (int k = 0; status == RFX_OK && k < RFX_SEARCH_MORE; k++) {
        struct rfx_partition cut = {
            .kind = RFX_PARTITION_CHAIN, .spill_from = 1, .more = rfx_search_more(k)};
        if (search->more[k].n > 0)
            status = add_partition(search, mode, template, cut, RFX_SEARCH_MORE, err);
    }
    return status;
}

/* Adds all pairs of a few cuts. */
static enum rfx_status add_pairs(struct rfx_search *search, const struct rfx_mode *mode,
                                 const struct rfx_candidate_template *template,
                                 struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    int cuts[MAX_CUTS];
    int n = list_cuts(search, cuts);
    int pairs = n * (n - 1) / 2;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; status == RFX_OK && j < n; j++) {
            struct rfx_partition pair = {
                .kind = RFX_PARTITION_CUTS, .cut = cuts[i], .second = cuts[j]};
            status = add_partition(search, mode, template, pair, pairs, err);
        }
    return status;
}

/* Adds partitions with one cut: one of a few cuts, or any legal cut. If even a handful of grids per
 * cut would be too many candidates, tries only cuts that are spread over the graph. */
static enum rfx_status add_cuts(struct rfx_search *search, const struct rfx_mode *mode,
                                const struct rfx_candidate_template *template,
                                struct rfx_error *err) {
    enum { HANDFUL = 9 };
    enum rfx_status status = RFX_OK;
    bool few = template->cuts == RFX_CUTS_FEW;
    int some[MAX_CUTS];
    const int *cuts = few ? some : search->splits;
    int n = few ? list_cuts(search, some) : search->n_splits;
    int most = few ? n : (int)rfx_min_i64(n, rfx_max_i64(1, search->most / HANDFUL));
    for (int i = 0; status == RFX_OK && i < most; i++) {
        int at = (int)((int64_t)(i + 1) * n / most) - 1;
        struct rfx_partition cut = {.kind = few ? RFX_PARTITION_CUT : RFX_PARTITION_MAP,
                                    .cut = cuts[at]};
        status = add_partition(search, mode, template, cut, most, err);
    }
    return status;
}

static enum rfx_status add_template(struct rfx_search *search, const struct rfx_mode *mode,
                                    const struct rfx_candidate_template *template,
                                    struct rfx_error *err) {
    struct rfx_partition chain = {.kind = RFX_PARTITION_CHAIN};
    switch (template->cuts) {
        case RFX_CUTS_NONE:
            chain.kind = RFX_PARTITION_REST;
            return add_partition(search, mode, template, chain, 1, err);
        case RFX_CUTS_CHAIN:
            return search->levels.n > 0 ? add_partition(search, mode, template, chain, 1, err)
                                        : RFX_OK;
        case RFX_CUTS_PASSES:
            return add_passes(search, mode, template, err);
        case RFX_CUTS_WAIST:
            return add_waists(search, mode, template, err);
        case RFX_CUTS_SPILLED:
            return add_spilled(search, mode, template, err);
        case RFX_CUTS_PAIRS:
            return add_pairs(search, mode, template, err);
        case RFX_CUTS_FEW:
        case RFX_CUTS_EVERY:
            break;
    }
    return add_cuts(search, mode, template, err);
}

/* Returns whether the request allows a template. */
static bool is_open_template(const struct rfx_plan_request *request, const struct rfx_mode *mode,
                             const struct rfx_candidate_template *template) {
    bool at_cut = template->cuts == RFX_CUTS_FEW || template->cuts == RFX_CUTS_EVERY;
    if (request->split != NULL && !at_cut) return false;
    if (template->cuts == RFX_CUTS_SPILLED && !request->may_spill) return false;
    if (request->asked.mode == mode) return template->when_asked;
    return request->memory_bytes != 0 || template->always;
}

/* Adds those templates of a mode that belong to the phase and are allowed. */
static enum rfx_status add_mode(struct rfx_search *search, const struct rfx_mode *mode, int phase,
                                struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int t = 0; status == RFX_OK && t < mode->n_templates; t++)
        if ((int)mode->templates[t].phase == phase &&
            is_open_template(search->context.request, mode, &mode->templates[t]))
            status = add_template(search, mode, &mode->templates[t], err);
    return status;
}

enum rfx_status rfx_search_list(struct rfx_search *search, int phase, struct rfx_error *err) {
    const struct rfx_mode *asked = search->context.request->asked.mode;
    enum rfx_status status = RFX_OK;
    search->first = search->n_candidates;
    if (asked != NULL)
        return add_mode(search, asked, phase, err); /* the named mode need not be in the list */
    for (int m = 0; status == RFX_OK && m < search->n_modes; m++)
        status = add_mode(search, search->modes[m], phase, err);
    return status;
}
