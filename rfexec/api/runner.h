/* Private: the struct of a runner, shared by runner.c (runners of networks) and model.c (plans of
 * models). */
#ifndef RFX_RFEXEC_API_RUNNER_H
#define RFX_RFEXEC_API_RUNNER_H

#include "rfexec/api/job.h"

struct rfx_runner {
    /* kept until the runner is freed; NULL: the runner belongs to a plan */
    struct rfx_network *network;
    /* kept until the runner is freed; NULL: the runner belongs to a network */
    struct rfx_model_plan *model_plan;
    struct rfx_memory *mem; /* the network's, or the runner's own */
    struct rfx_job job;
};

/* Adds an owner of the plan; rfx_model_plan_free removes one. May be called from any thread. */
void rfx_model_plan_keep(struct rfx_model_plan *plan);

/* Returns the job that made the plan: its graph, options, plan and packed weights. */
const struct rfx_job *rfx_model_plan_job(const struct rfx_model_plan *plan);

/* Returns the functions from which the model's options take memory. */
struct rfx_memory_hooks rfx_model_plan_hooks(const struct rfx_model_plan *plan);
#endif
