/* Private: what one call of the public header makes of a network: a source, a plan, a session, and
 * where the outputs go.
 *
 * Life: rfx_job_open, a source (rfx_job_use_...), rfx_job_plan, rfx_job_prepare, rfx_job_execute;
 * rfx_job_close frees what there is, after a failure of any of them too. A job may rest between
 * two executions, which need an rfx_job_wake and a source each. */
#ifndef RFX_RFEXEC_API_JOB_H
#define RFX_RFEXEC_API_JOB_H

#include "layers/graph/graph.h"
#include "rfexec/api/result_files.h"
#include "rfexec/image/image_source.h"
#include "rfexec/rfexec.h"
#include "rfexec/session/session.h"
#include "tiler/plan/plan.h"

struct rfx_job {
    struct rfx_graph *graph;
    struct rfx_run_options options;
    struct rfx_source source; /* the caller's, where he gave one */
    struct rfx_image *image;
    struct rfx_source_traits traits; /* of the image, last one freed or not */
    struct rfx_plan *plan;
    struct rfx_plan *smallest; /* when none fits */
    struct rfx_session *session;
    float *const *outputs; /* as many as the graph has, or NULL: all to options.write */
    struct rfx_result_files files;
};

/* Takes the options, and has the graph's allocator ask options.stop until rfx_job_close. */
RFX_NODISCARD enum rfx_status rfx_job_open(struct rfx_job *job, struct rfx_graph *graph,
                                           const struct rfx_run_options *options,
                                           struct rfx_error *err);

/* Refuses a number of outputs that the network does not have. */
RFX_NODISCARD enum rfx_status rfx_job_set_outputs(struct rfx_job *job, float *const *outputs,
                                                  int n_outputs, struct rfx_error *err);

RFX_NODISCARD enum rfx_status rfx_job_use_picture(struct rfx_job *job, const char *picture,
                                                  struct rfx_error *err);

/* values: in ONNX order. */
RFX_NODISCARD enum rfx_status rfx_job_use_values(struct rfx_job *job, const float *values,
                                                 struct rfx_error *err);

RFX_NODISCARD enum rfx_status rfx_job_use_source(struct rfx_job *job,
                                                 const struct rfx_source *source,
                                                 struct rfx_error *err);

/* BUDGET_IMPOSSIBLE: job->smallest is the plan with the least peak. */
RFX_NODISCARD enum rfx_status rfx_job_plan(struct rfx_job *job, struct rfx_error *err);

/* Packs weights and takes the memory of the plan. */
RFX_NODISCARD enum rfx_status rfx_job_prepare(struct rfx_job *job, struct rfx_error *err);

/* Runs on the source and hands out all outputs. */
RFX_NODISCARD enum rfx_status rfx_job_execute(struct rfx_job *job, struct rfx_error *err);

/* Takes progress, observe, stop, write and user of the options, and asks stop until rfx_job_rest.
 */
RFX_NODISCARD enum rfx_status rfx_job_wake(struct rfx_job *job,
                                           const struct rfx_run_options *options,
                                           struct rfx_error *err);

/* Nobody is asked any more, and the source is closed. */
void rfx_job_rest(struct rfx_job *job);

/* Closes the source only. */
void rfx_job_drop_source(struct rfx_job *job);

void rfx_job_close(struct rfx_job *job);

/* Opens a picture: what cannot be opened is as good as broken. */
RFX_NODISCARD enum rfx_status rfx_job_open_picture(struct rfx_memory *mem, const char *picture,
                                                   const struct rfx_image_options *options,
                                                   struct rfx_image **out, struct rfx_error *err);
#endif
