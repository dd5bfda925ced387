/* The curves of the models on a command line: what `curve`, its chart and `advise` start from.
 *
 * Invariants: 1. every graph is loaded as its baseline wants it; 2. a message has been printed
 * whenever an exit code other than RFX_EXIT_DONE is returned. */
#ifndef RFX_TOOLS_COMMANDS_CURVES_H
#define RFX_TOOLS_COMMANDS_CURVES_H

#include <jansson.h>

#include "layers/graph/graph.h"
#include "tools/cli/command.h"
#include "tools/study/curve.h"
#include "tools/study/curve_formulas.h"

struct rfx_cli_curves {
    struct rfx_memory *mem;
    enum rfx_baseline baseline;
    bool as_executed; /* graphs as they run, residual additions inside convolutions; each makes a
                         tensor as baseline FUSED has it */
    int64_t tiles_y, tiles_x;
    int count;
    const char *models[RFX_CLI_MAX_ARGS]; /* as they are shown; borrowed from the options */
    struct rfx_graph *graphs[RFX_CLI_MAX_ARGS];
    struct rfx_curve *curves[RFX_CLI_MAX_ARGS];
    struct rfx_curve_formulas *formulas[RFX_CLI_MAX_ARGS];
};

/* Loads every model of the options and calculates its curve; as it is executed, where that is asked
 * for and no --baseline is given. To be freed in any case. */
RFX_NODISCARD int rfx_cli_curves_open(struct rfx_cli_curves *curves,
                                      const struct rfx_cli_options *options, bool pareto,
                                      bool as_executed);

/* What counts as a tensor, in words: "as executed", or "fused baseline"; text is returned. */
const char *rfx_cli_curves_baseline(const struct rfx_cli_curves *curves, char text[32]);

void rfx_cli_curves_free(struct rfx_cli_curves *curves);

/* The name of the point's split, or "untiled". */
const char *rfx_cli_point_label(const struct rfx_curve *curve, const struct rfx_curve_point *point);

/* {"split", "tiles", "macs_ratio", "memory_ratio", "macs", "peak_bytes", "head_bytes",
 * "tail_bytes", "peak_layer"}; a new reference. */
json_t *rfx_cli_point_json(const struct rfx_curve *curve, const struct rfx_curve_point *point);
#endif
