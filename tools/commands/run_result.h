/* The result that rfexec run and rfexec-mpi print on stdout, as text or JSON. */
#ifndef RFX_TOOLS_COMMANDS_RUN_RESULT_H
#define RFX_TOOLS_COMMANDS_RUN_RESULT_H

#include <jansson.h>

#include "tiler/plan/plan.h"
#include "tools/cli/classes.h"
#include "tools/cli/outputs.h"
#include "tools/report/image_overlay.h"

/* Figures of a run by several processes. */
struct rfx_run_ranks {
    int count, rounds;     /* ranks; rounds of states that were merged before the output */
    uint64_t macs;         /* of all ranks, in all rounds */
    size_t peak_rss_bytes; /* largest peak resident set of any rank */
    double seconds;        /* of the slowest rank */
    const int *cuts;       /* nodes whose feature map rows the ranks exchanged */
    int n_cuts;
    uint64_t moved_bytes; /* bytes of the exchanged rows */
    int64_t
        macs_saved; /* MACs that the exchange saves, as halos are not computed twice; from shapes */
};

struct rfx_run_result {
    const struct rfx_cli_run_options *options;
    const struct rfx_graph *graph; /* the whole network */
    const struct rfx_plan *plan;
    const struct rfx_run_report *report;
    const struct rfx_cli_outputs *outputs; /* with hashes */
    const struct rfx_cli_classes *classes;
    const struct rfx_overlay *overlay; /* NULL: none was asked for */
    const struct rfx_run_ranks *ranks; /* NULL: one process; else plan and report are rank 0's */
};

/* Print all outputs and what is found in them. */
void rfx_run_outputs_print(const struct rfx_cli_outputs *outputs);

/* Returns a new JSON array of all outputs. */
json_t *rfx_run_outputs_json(const struct rfx_cli_outputs *outputs);

/* Adds what is found in the outputs, such as "boxes", to a document. */
void rfx_run_answers_add(json_t *document, const struct rfx_cli_outputs *outputs);

/* Prints the result. Returns an exit code. */
RFX_NODISCARD int rfx_run_result_print(const struct rfx_run_result *result);
#endif
