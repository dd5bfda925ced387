/* The table of commands; see tools/cli/command.h. */
#include <stddef.h>

#include "tools/cli/command.h"

extern const struct rfx_cli_command rfx_cmd_advise, rfx_cmd_alloc, rfx_cmd_analyze, rfx_cmd_bench,
    rfx_cmd_chart, rfx_cmd_check, rfx_cmd_compare, rfx_cmd_curve, rfx_cmd_explain, rfx_cmd_export,
    rfx_cmd_info, rfx_cmd_memory, rfx_cmd_merge, rfx_cmd_models, rfx_cmd_operators, rfx_cmd_plan,
    rfx_cmd_quantize, rfx_cmd_run, rfx_cmd_selftest, rfx_cmd_verify;

const struct rfx_cli_command *const rfx_cli_commands[] = {
    &rfx_cmd_analyze,  &rfx_cmd_plan,      &rfx_cmd_curve,
    &rfx_cmd_advise,   &rfx_cmd_run,       &rfx_cmd_merge,
    &rfx_cmd_verify,   &rfx_cmd_bench,     &rfx_cmd_export,
    &rfx_cmd_quantize, &rfx_cmd_compare,   &rfx_cmd_alloc,
    &rfx_cmd_chart,    &rfx_cmd_memory,    &rfx_cmd_selftest,
    &rfx_cmd_check,    &rfx_cmd_info,      &rfx_cmd_explain,
    &rfx_cmd_models,   &rfx_cmd_operators, NULL,
};
