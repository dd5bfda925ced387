/* What a run tells on stdout, as text or JSON: of rfexec run and of rfexec-mpi. */
#ifndef RFX_TOOLS_PROGRAM_RUN_RESULT_H
#define RFX_TOOLS_PROGRAM_RUN_RESULT_H

#include <jansson.h>

#include "tiler/plan/plan.h"
#include "tools/cli/classes.h"
#include "tools/cli/outputs.h"
#include "tools/report/image_overlay.h"

/* A run that several processes have made. */
struct rfx_run_ranks {
    int count, rounds;     /* rounds: of states that were merged first */
    uint64_t macs;         /* of all, in all rounds */
    size_t peak_rss_bytes; /* the largest of any */
    double seconds;        /* of the slowest */
    const int *cuts;       /* nodes of maps whose rows ranks exchanged */
    int n_cuts;
    uint64_t moved_bytes; /* of these rows, between ranks */
    int64_t macs_saved;   /* of all, against making halos again; by shapes */
};

struct rfx_run_result {
    const struct rfx_cli_options *options;
    const struct rfx_graph *graph; /* the whole network */
    const struct rfx_plan *plan;
    const struct rfx_run_report *report;
    const struct rfx_cli_outputs *outputs; /* with hashes */
    const struct rfx_cli_classes *classes;
    const struct rfx_overlay *overlay; /* NULL: none was asked for */
    const struct rfx_run_ranks *ranks; /* NULL: one process; else plan and report are rank 0's */
};

/* Prints it. Returns an exit code. */
RFX_NODISCARD int rfx_run_result_print(const struct rfx_run_result *result);
#endif
