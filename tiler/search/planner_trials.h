/* What trials of a mode become: skeletons, each in every number of bands and parts that is tried.
 * Private to tiler/search. */
#ifndef RFX_TILER_SEARCH_PLANNER_TRIALS_H
#define RFX_TILER_SEARCH_PLANNER_TRIALS_H

#include "tiler/search/planner_search.h"

/* What a trial varies, for one skeleton. */
struct rfx_trial_choices {
    int n_down, n_across, n_bands;
    int64_t down[RFX_TILING_MAX_COUNTS], across[RFX_TILING_MAX_COUNTS];
    int64_t bands[RFX_TILING_MAX_COUNTS];
};

/* Those of one skeleton of so many, which are no more in all than a trial may have. */
void rfx_trial_list_choices(const struct rfx_search *search, const struct rfx_trial *trial,
                            const struct rfx_skeleton *skeleton, int n_skeletons,
                            struct rfx_trial_choices *c);

/* Adds a skeleton, one of so many, in all of them. */
RFX_NODISCARD enum rfx_status rfx_trial_add_skeleton(struct rfx_search *search,
                                                     const struct rfx_mode *mode,
                                                     const struct rfx_trial *trial,
                                                     struct rfx_skeleton skeleton, int n_skeletons,
                                                     struct rfx_error *err);

/* planner_chains.c: RFX_CUTS_PASSES, RFX_CUTS_WAIST and RFX_CUTS_SPILLED. */
RFX_NODISCARD enum rfx_status rfx_trial_add_passes(struct rfx_search *search,
                                                   const struct rfx_mode *mode,
                                                   const struct rfx_trial *trial,
                                                   struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_trial_add_waists(struct rfx_search *search,
                                                   const struct rfx_mode *mode,
                                                   const struct rfx_trial *trial,
                                                   struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_trial_add_spilled(struct rfx_search *search,
                                                    const struct rfx_mode *mode,
                                                    const struct rfx_trial *trial,
                                                    struct rfx_error *err);

/* planner_stores.c: chains that store small maps, or those that a budget has room for. */
RFX_NODISCARD enum rfx_status rfx_trial_add_small_stores(struct rfx_search *search,
                                                         const struct rfx_mode *mode,
                                                         const struct rfx_trial *trial,
                                                         struct rfx_error *err);
#endif
