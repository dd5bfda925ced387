/* `curve --pareto`: the front of all kinds of plans of one network, and beside it that of the
 * paper's kind alone, one cut with tiles before it. */
#ifndef RFX_TOOLS_COMMANDS_FRONTS_H
#define RFX_TOOLS_COMMANDS_FRONTS_H

#include "tools/commands/curves.h"

/* What curve is asked. */
struct rfx_cli_curve_options {
    struct rfx_cli_curves_asked asked;
    bool pareto, json, csv;
    const char *file; /* the chart; NULL: none */
};

/* Calculates, draws (-o) and prints; an exit code. Models beyond the first are refused. */
int rfx_cli_fronts(const struct rfx_cli_curve_options *options);
#endif
