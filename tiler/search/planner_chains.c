/* Trials of chains: a stage per level, what is stored between them and what is made again; see
 * planner_trials.h. */
#include <string.h>

#include "layers/core/checked.h"
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
    if (status == RFX_OK) status = rfx_trial_add_small_stores(search, mode, trial, err);
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
