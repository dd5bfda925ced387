/* The plans of all parts, as plan --parts makes them one after the other: of rounds of states
 * (plan_rounds.c), then of the output (part_plan.c). */
#ifndef RFX_TOOLS_PARTS_PART_PLANS_H
#define RFX_TOOLS_PARTS_PART_PLANS_H

#include "tools/cli/job.h"
#include "tools/parts/part_round.h"

struct rfx_part_plans {
    struct rfx_cli_job job; /* its graph: the whole one, but while a part is planned */
    const struct rfx_cli_run_options *options;
    int output;                    /* of the graph */
    struct rfx_part_before before; /* the rounds planned so far; states of no pixels */
    json_t *list, *rounds;         /* with --json: parts of the output; of each round */
    uint64_t macs, macs_untiled;   /* of the parts of all rounds */
};

/* {"image_rows", "image_columns", "macs", "macs_ratio", "arena_bytes", "peak_bytes",
 * "predicted_seconds", "plan"} of a part's plan; a new reference. */
json_t *rfx_part_plans_json(const struct rfx_plan *plan);

/* Plans the rounds of states that come before the output, which are in p->before then, and without
 * --json prints a table of them. Returns an exit code. */
RFX_NODISCARD int rfx_part_plans_rounds(struct rfx_part_plans *p);

/* "exchange": what each part would take where rows are exchanged instead of made again, and
 * "halos": the maps whose rows are, rf_analysis/part_exchange.h. */
RFX_NODISCARD enum rfx_status rfx_part_plans_exchange(const struct rfx_part_plans *p,
                                                      json_t *document, struct rfx_error *err);
#endif
