/* Private: one call of the public header on a graph: a source, a plan, a session, and where the
 * outputs go.
 *
 * Life: rfx_job_open, a source (rfx_job_use_...), rfx_job_plan or rfx_job_follow, rfx_job_prepare,
 * rfx_job_execute; rfx_job_close frees what there is, after a failure of any of them too. A job may
 * rest between two executions: each needs an rfx_job_wake and a source. */
#ifndef RFX_RFEXEC_API_JOB_H
#define RFX_RFEXEC_API_JOB_H

#include "layers/graph/graph.h"
#include "rfexec/api/result_files.h"
#include "rfexec/image/image_source.h"
#include "rfexec/rfexec.h"
#include "rfexec/run/run.h"
#include "tiler/plan/plan.h"

struct rfx_job {
    const struct rfx_graph *graph;
    struct rfx_memory *mem; /* of the job: the graph's, or that of one run of a shared plan */
    struct rfx_run_options options;
    bool threads_given;       /* by the caller, not by default */
    struct rfx_source source; /* the caller's, where one was given */
    struct rfx_image *image;
    struct rfx_source_traits traits; /* of the image, even after it was freed */
    const struct rfx_plan *plan;
    const struct rfx_packed_weights
        *weights;              /* of a shared plan; NULL: the session packs its own */
    struct rfx_plan *own_plan; /* NULL: the plan is shared */
    struct rfx_plan *smallest; /* when none fits the budget */
    struct rfx_run run;
    float *const *outputs; /* as many as the graph has, or NULL: all to options.write */
    struct rfx_result_files files;
    /* Of a round of states, whose graph has reductions as outputs: */
    const struct rfx_state_sink *states; /* takes them; NULL: the job makes outputs */
    struct rfx_row_sums *sums;           /* of the image rows that are read; may be NULL */
};

/* Takes the options, and has `mem` ask options.stop until rfx_job_close. */
RFX_NODISCARD enum rfx_status rfx_job_open(struct rfx_job *job, const struct rfx_graph *graph,
                                           struct rfx_memory *mem,
                                           const struct rfx_run_options *options,
                                           struct rfx_error *err);

/* Sets where the outputs go. INVALID_ARGUMENT unless n_outputs is the network's number of outputs.
 * `outputs` may be NULL with n_outputs 0 if options.write or files take the outputs. */
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

/* Uses a plan of the same graph that others use too, with its packed weights; both must outlive the
 * job. */
void rfx_job_follow(struct rfx_job *job, const struct rfx_plan *plan,
                    const struct rfx_packed_weights *weights);

/* Packs the weights that are not shared, and takes the memory of the plan. */
RFX_NODISCARD enum rfx_status rfx_job_prepare(struct rfx_job *job, struct rfx_error *err);

/* Runs on the source and hands out all outputs. BUDGET_IMPOSSIBLE: the source and the files take
 * more than the plan has room for, under a budget. */
RFX_NODISCARD enum rfx_status rfx_job_execute(struct rfx_job *job, struct rfx_error *err);

/* Takes the options of one more execution, all but those that the plan has settled (memory_bytes,
 * threads, spill_folder, plan_file), and has job->mem ask options.stop until rfx_job_rest. */
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
