/* Private: runners, for what makes them: networks (runner.c) and plans of models (model.c). */
#ifndef RFX_RFEXEC_API_RUNNER_H
#define RFX_RFEXEC_API_RUNNER_H

#include "rfexec/api/job.h"

struct rfx_runner {
    struct rfx_network *network;       /* kept until the runner is freed; NULL: it is of a plan */
    struct rfx_model_plan *model_plan; /* likewise; NULL: it is of a network */
    struct rfx_memory *mem;            /* the network's, or the runner's own */
    struct rfx_job job;
};

/* Adds one owner of the plan; rfx_model_plan_free takes one away. From any thread. */
void rfx_model_plan_keep(struct rfx_model_plan *plan);

/* The call that made the plan: its graph, options, plan and packed weights. */
const struct rfx_job *rfx_model_plan_job(const struct rfx_model_plan *plan);

/* Where the model's options have memory taken from. */
struct rfx_memory_hooks rfx_model_plan_hooks(const struct rfx_model_plan *plan);
#endif
