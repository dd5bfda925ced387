/* One run object: how a plan is run on an image, and where its outputs go. The library, the
 * program, ranks and shards all run plans through it.
 *
 * Life: fill in the members, rfx_run_prepare, rfx_run_image as often as needed, rfx_run_release. */
#ifndef RFX_RFEXEC_RUN_RUN_H
#define RFX_RFEXEC_RUN_RUN_H

#include "rfexec/run/session.h"

struct rfx_run { /* all pointers are borrowed, until rfx_run_release */
    const struct rfx_plan *plan;
    /* shared with other runs; NULL: the run packs its own */
    const struct rfx_packed_weights *weights;
    /* memory for the run's own allocations; NULL: the memory of the plan's graph */
    struct rfx_memory *mem;
    const struct rfx_output_sink *sink;       /* receives the outputs; NULL: none */
    const struct rfx_state_sink *states;      /* receives states of reductions; NULL: none */
    const struct rfx_step_observer *observer; /* NULL: none, and no step is timed */
    struct rfx_row_sums *sums;                /* checksums of the image rows read; NULL: none */
    const char *spill_folder;                 /* folder for spilled maps; NULL: none */
    rfx_progress_fn *progress;                /* called between steps; NULL: none */
    void *user;                               /* first argument of progress */
    struct rfx_session *session;              /* made by rfx_run_prepare */
};

/* Allocates the arena and workspace. If run->weights is NULL, also packs the weights; else uses
 * run->weights. Fails with the statuses of rfx_session_create. */
RFX_NODISCARD enum rfx_status rfx_run_prepare(struct rfx_run *run, struct rfx_error *err);

/* Runs on one image: calls the sink's begin, runs all steps, calls the sink's end. report may be
 * NULL. Statuses of rfx_session_run and of the sink. */
RFX_NODISCARD enum rfx_status rfx_run_image(struct rfx_run *run, struct rfx_image *image,
                                            struct rfx_run_report *report, struct rfx_error *err);

/* Frees everything that rfx_run_prepare made. A struct of zeros is fine. */
void rfx_run_release(struct rfx_run *run);
#endif
