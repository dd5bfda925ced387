/* The outputs of a network with late nodes, for files and other receivers of outputs.
 *
 * They are described as a graph of tensors without operators, which has what files ask for: names,
 * shapes, types and the size of the image. Before a run, dimensions that are not known are 1 in it.
 */
#ifndef RFX_RFEXEC_LATE_LATE_OUTPUTS_H
#define RFX_RFEXEC_LATE_LATE_OUTPUTS_H

#include "rfexec/late/late_run.h"
#include "rfexec/output/output_sink.h"

/* Describes the outputs as a run has computed them or, with run NULL, as they are declared. The
 * description takes memory of `mem`; `graph`, which has the late nodes, must outlive it.
 * OUT_OF_MEMORY. Release *out with rfx_late_outputs_release. */
RFX_NODISCARD enum rfx_status rfx_late_outputs_describe(const struct rfx_graph *graph,
                                                        const struct rfx_late_run *run,
                                                        struct rfx_memory *mem,
                                                        struct rfx_graph *out,
                                                        struct rfx_error *err);

/* A struct of zeros is fine. */
void rfx_late_outputs_release(struct rfx_graph *outputs);

/* Passes all outputs of a run to a sink, one after the other. `outputs` describes the run. Fails
 * with the sink's statuses. */
RFX_NODISCARD enum rfx_status rfx_late_outputs_pass(const struct rfx_graph *outputs,
                                                    const struct rfx_late_run *run,
                                                    const struct rfx_output_sink *sink,
                                                    struct rfx_error *err);

/* Fails if no file can be made in the folder of `path`. The outputs are written after the run,
 * which would be lost then. NULL is fine. */
RFX_NODISCARD enum rfx_status rfx_late_outputs_try(struct rfx_memory *mem, const char *path,
                                                   struct rfx_error *err);

/* Returns the bytes that late nodes may take at a time: those that the user has chosen; with 0, 8
 * MiB and twice the size of the cut tensors if there is a budget, else 0, which is no limit. */
size_t rfx_late_most_bytes(const struct rfx_graph *graph, size_t chosen, bool budget);

/* Returns the bytes of a run beside its plan, without files: the cut tensors, and what late nodes
 * may take (8 MiB if there is no limit). SIZE_MAX: more than a size_t holds. */
size_t rfx_late_beside_bytes(const struct rfx_graph *graph, size_t most_bytes);
#endif
