/* Runs of sections with as many bytes free, and what is said of the free bytes of each.
 *
 * A run is closed at first: its free bytes are guessed to be items. Where that guess is wrong it is
 * opened: how many bytes are free below an item is any number of units then. */
#ifndef RFX_TILER_CLAUSES_CLAUSES_RUNS_H
#define RFX_TILER_CLAUSES_CLAUSES_RUNS_H

#include "tiler/strategies/placement_problem.h"

struct rfx_runs {
    struct rfx_memory *mem;
    int n;
    int *of_section;    /* in the direction of time */
    size_t *free_bytes; /* per run */
    bool *is_open;
    int64_t unit; /* of all sizes and the capacity */
};

/* For a capacity >= the largest breadth of a problem of n >= 1 items; `backwards`: in time. All are
 * closed. RFX_STATUS_OUT_OF_MEMORY; release with rfx_runs_release in any case. */
RFX_NODISCARD enum rfx_status rfx_runs_make(const struct rfx_place_problem *problem,
                                            size_t capacity, bool backwards, struct rfx_runs *runs,
                                            struct rfx_error *err);
void rfx_runs_release(struct rfx_runs *runs);

/* How many units may be free below an item of a section; 0: its run is closed. */
int rfx_runs_units(const struct rfx_runs *runs, int section);

/* The run of a section as an origin of clauses (clauses.h). */
uint64_t rfx_runs_origin(const struct rfx_runs *runs, int section);

/* Opens one of the runs that a proof comes from, that with the most free bytes: there the most was
 * guessed. false: all that can be are open. */
bool rfx_runs_open(struct rfx_runs *runs, uint64_t proof);
#endif
