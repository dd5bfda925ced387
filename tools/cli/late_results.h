/* The outputs of a network with late nodes (rfexec/late/late.h): a run hands over the cut tensors,
 * then the late nodes run, and their results are written as the outputs of any other network. */
#ifndef RFX_TOOLS_CLI_LATE_RESULTS_H
#define RFX_TOOLS_CLI_LATE_RESULTS_H

#include "rfexec/late/late_outputs.h"
#include "tools/cli/outputs.h"

/* Checks before a run that the options suit a network with late nodes and its outputs. Prints why
 * they do not. */
RFX_NODISCARD int rfx_cli_late_check(const struct rfx_graph *graph,
                                     const struct rfx_cli_run_options *options);

/* Returns the bytes of a run beside its plan: the cut tensors, the allowance for the late nodes (8
 * MiB where there is no limit), and the files. SIZE_MAX: there is no memory to find out. */
size_t rfx_cli_late_bytes(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                          const struct rfx_geo_source *source);

/* Returns the bytes that late nodes may take at a time: --answer-memory; without it, 8 MiB and
 * twice the size of the cut tensors if there is a budget; else 0, which is no limit. */
size_t rfx_cli_late_most(const struct rfx_graph *graph, const struct rfx_cli_run_options *options);

struct rfx_late_results {
    const struct rfx_graph *of; /* the network */
    struct rfx_graph graph;     /* of the results (late_outputs.h) */
    struct rfx_late_run *run;
    struct rfx_cli_outputs front; /* the cut tensors, with the files of --dump */
};

/* Prepares a run: makes room for the cut tensors and opens the files of --dump. Fails if a file
 * cannot be made in the folder of -o or --boxes. */
RFX_NODISCARD enum rfx_status rfx_late_results_open(struct rfx_late_results *results,
                                                    const struct rfx_graph *graph,
                                                    const struct rfx_cli_run_options *options,
                                                    const struct rfx_geo_source *source,
                                                    struct rfx_error *err);

/* Returns the sink of the run; valid as long as `results`. */
struct rfx_output_sink rfx_late_results_sink(struct rfx_late_results *results);

/* Called after the run: runs the late nodes, and writes their results to the files of `outputs`,
 * which it opens. The results must live as long as the outputs. */
RFX_NODISCARD enum rfx_status rfx_late_results_write(struct rfx_late_results *results,
                                                     const struct rfx_cli_run_options *options,
                                                     const struct rfx_geo_source *source,
                                                     struct rfx_cli_outputs *outputs,
                                                     struct rfx_error *err);

/* A struct of zeros is fine. */
void rfx_late_results_free(struct rfx_late_results *results);
#endif
