/* Private: one call of the public header on a graph: a source, a plan, a session, and the
 * destination of the outputs.
 *
 * Life: rfx_job_open, a source (rfx_job_use_...), rfx_job_plan or rfx_job_follow, rfx_job_prepare,
 * rfx_job_execute. With options.mask: rfx_job_open, a source, rfx_job_run_masked. rfx_job_close
 * frees everything, also after a failure of any of these. A job can be executed several times: each
 * further execution needs rfx_job_wake and a source, and ends with rfx_job_rest. */
#ifndef RFX_RFEXEC_API_JOB_H
#define RFX_RFEXEC_API_JOB_H

#include "layers/graph/graph.h"
#include "rfexec/api/result_files.h"
#include "rfexec/image/image_source.h"
#include "rfexec/rfexec.h"
#include "rfexec/run/run.h"
#include "tiler/plan/plan.h"

struct rfx_late_run;
struct rfx_step_teller;

struct rfx_job {
    const struct rfx_graph *graph;
    /* memory of the job: the graph's, or the one of a single run of a shared plan */
    struct rfx_memory *mem;
    struct rfx_run_options options;
    bool threads_given;       /* the caller set options.threads */
    struct rfx_source source; /* the caller's source, if one was given */
    struct rfx_image *image;
    /* size and access pattern of the image; they stay valid after the image is freed */
    struct rfx_source_traits traits;
    const struct rfx_plan *plan;
    /* packed weights of a shared plan; NULL: the session packs its own */
    const struct rfx_packed_weights *weights;
    struct rfx_plan *own_plan; /* the job's own plan; NULL: the plan is shared */
    struct rfx_plan *smallest; /* plan with the smallest peak memory, if no plan fits the budget */
    struct rfx_run run;
    /* one for each output of the graph; NULL: all go to options.write or files */
    float *const *outputs;
    struct rfx_result_files files;
    struct rfx_step_teller *teller; /* during rfx_job_execute */
    struct rfx_late_run *late;      /* late nodes, during rfx_job_execute; NULL: there are none */
    /* Used by a round of states, whose graph has reductions as outputs: */
    const struct rfx_state_sink *states; /* receives the states; NULL: the job computes outputs */
    struct rfx_row_sums *sums;           /* checksums of the image rows that are read; NULL: none */
};

/* Starts a job: reads the options and files. Until rfx_job_close, `mem` calls options.stop to learn
 * whether to end. Fails like rfx_api_read_run_options and rfx_result_files_read. */
RFX_NODISCARD enum rfx_status rfx_job_open(struct rfx_job *job, const struct rfx_graph *graph,
                                           struct rfx_memory *mem,
                                           const struct rfx_run_options *options,
                                           struct rfx_error *err);

/* Sets where the outputs go. INVALID_ARGUMENT unless n_outputs is the network's number of outputs.
 * `outputs` may be NULL with n_outputs 0 if options.write or files take the outputs. Outputs of
 * late nodes cannot have arrays: INVALID_ARGUMENT. */
RFX_NODISCARD enum rfx_status rfx_job_set_outputs(struct rfx_job *job, float *const *outputs,
                                                  int n_outputs, struct rfx_error *err);

/* Reads the size and channels of a picture from its header. `read` are options that
 * rfx_api_read_run_options has read. A file that cannot be opened is MALFORMED, like a broken one
 * (rfx_api_opening). */
RFX_NODISCARD enum rfx_status rfx_job_picture_traits(const char *picture,
                                                     const struct rfx_run_options *read,
                                                     struct rfx_source_traits *traits,
                                                     struct rfx_error *err);

RFX_NODISCARD enum rfx_status rfx_job_use_picture(struct rfx_job *job, const char *picture,
                                                  struct rfx_error *err);

/* Sets the source to the caller's array `values` in ONNX order, 1 x channels x rows x columns. */
RFX_NODISCARD enum rfx_status rfx_job_use_values(struct rfx_job *job, const float *values,
                                                 struct rfx_error *err);

RFX_NODISCARD enum rfx_status rfx_job_use_source(struct rfx_job *job,
                                                 const struct rfx_source *source,
                                                 struct rfx_error *err);

/* Plans the job, or reads the plan of options.plan_file. BUDGET_IMPOSSIBLE: no plan fits;
 * job->smallest is then the plan with the smallest peak memory. */
RFX_NODISCARD enum rfx_status rfx_job_plan(struct rfx_job *job, struct rfx_error *err);

/* Makes the job use a shared plan of the same graph and its packed weights. Both must outlive the
 * job. */
void rfx_job_follow(struct rfx_job *job, const struct rfx_plan *plan,
                    const struct rfx_packed_weights *weights);

/* Allocates the memory of the plan. Packs the weights, unless they are shared. */
RFX_NODISCARD enum rfx_status rfx_job_prepare(struct rfx_job *job, struct rfx_error *err);

/* Runs on the source and passes all outputs to their destinations. BUDGET_IMPOSSIBLE: there is a
 * budget, and source and files need more memory than the plan reserved. */
RFX_NODISCARD enum rfx_status rfx_job_execute(struct rfx_job *job, struct rfx_error *err);

/* Plans and runs each rectangle of options.mask, and passes the output to its destination. The
 * other functions that plan or execute a job refuse a mask. Fails like rfx_masked_run_open and
 * rfx_masked_run_execute; INVALID_ARGUMENT also: the options exclude a mask. */
RFX_NODISCARD enum rfx_status rfx_job_run_masked(struct rfx_job *job, struct rfx_error *err);

/* Prepares a further execution: reads new options, but keeps the values that the plan has fixed
 * (memory_bytes, threads, spill_folder, plan_file). Until rfx_job_rest, job->mem calls
 * options.stop. */
RFX_NODISCARD enum rfx_status rfx_job_wake(struct rfx_job *job,
                                           const struct rfx_run_options *options,
                                           struct rfx_error *err);

/* Ends an execution: closes the source and stops calling options.stop. */
void rfx_job_rest(struct rfx_job *job);

void rfx_job_close(struct rfx_job *job);
#endif
