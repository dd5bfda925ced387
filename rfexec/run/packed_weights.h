/* The packed constants of a plan that stay in memory during the whole run.
 *
 * Invariants: 1. the object is const once it is created, so any number of sessions in any number of
 * threads may share it; 2. it holds exactly plan->bytes.weights bytes; 3. it does not hold the
 * constants that the plan loads by stage: each session loads them into its arena. */
#ifndef RFX_RFEXEC_RUN_PACKED_WEIGHTS_H
#define RFX_RFEXEC_RUN_PACKED_WEIGHTS_H

#include "tiler/plan/plan.h"

struct rfx_packed_weights;

/* Packs the constants with plan->threads threads. All memory comes from `mem`. The plan must
 * outlive the object. OUT_OF_MEMORY; CANCELLED; IO: the model's file can no longer be read. */
RFX_NODISCARD enum rfx_status rfx_packed_weights_create(const struct rfx_plan *plan,
                                                        struct rfx_memory *mem,
                                                        struct rfx_packed_weights **out,
                                                        struct rfx_error *err);

/* Frees the weights; NULL is fine. */
void rfx_packed_weights_free(struct rfx_packed_weights *weights);

/* Returns the packed constant of a node that the plan keeps in memory during the whole run. */
unsigned char *rfx_packed_weights_of(const struct rfx_packed_weights *weights, int node);
#endif
