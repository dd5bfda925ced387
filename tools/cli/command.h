/* The commands of rfexec and the exit codes they return.
 *
 * A command gets parsed options, writes its result to stdout and messages to stderr, and returns an
 * exit code. Adding a command touches its cmd_<name>.c, the declaration here and a row in main.c.
 */
#ifndef RFX_TOOLS_CLI_COMMAND_H
#define RFX_TOOLS_CLI_COMMAND_H

#include "layers/core/status.h"
#include "rfexec/rfexec.h"
#include "tools/cli/options.h"

enum rfx_cli_exit {
    RFX_EXIT_DONE = RFX_CODE_OK,
    RFX_EXIT_DIFFERENT = 1, /* verify or selftest found a difference */
    RFX_EXIT_USAGE = RFX_CODE_USAGE,
    RFX_EXIT_REFUSED = RFX_CODE_REFUSED, /* model or input */
    RFX_EXIT_BUDGET = RFX_CODE_BUDGET,   /* no plan fits */
    RFX_EXIT_SYSTEM = RFX_CODE_SYSTEM,   /* I/O, memory; cancelled too */
};

struct rfx_cli_command {
    const char *name;
    const char *args; /* in the usage line */
    const char *summary;
    const char *details;  /* paragraphs of the help, each line ending in \n */
    const char *examples; /* likewise, one command a line */
    unsigned groups;      /* of options */
    int min_args, max_args;
    int (*run)(const struct rfx_cli_options *options);
};

/* How long the commands that only pack (`alloc`, `memory`) search for a better packing at most: 10
 * s, what somebody may wait for an answer. The help of --time-limit states it too. */
#define RFX_CLI_PACK_TIME_NS ((int64_t)10 * 1000 * 1000 * 1000)

/* Prints "rfexec: <text>" to stderr and returns the exit code of the status. */
int rfx_cli_fail(enum rfx_status status, const struct rfx_error *err);

/* Prints "rfexec: ..." to stderr. */
void rfx_cli_message(const char *format, ...) RFX_PRINTF(1, 2);

int rfx_cmd_advise(const struct rfx_cli_options *options);
int rfx_cmd_alloc(const struct rfx_cli_options *options);
int rfx_cmd_analyze(const struct rfx_cli_options *options);
int rfx_cmd_check(const struct rfx_cli_options *options);
int rfx_cmd_explain(const struct rfx_cli_options *options);
int rfx_cmd_chart(const struct rfx_cli_options *options);
int rfx_cmd_bench(const struct rfx_cli_options *options);
int rfx_cmd_curve(const struct rfx_cli_options *options);
int rfx_cmd_export(const struct rfx_cli_options *options);
int rfx_cmd_info(const struct rfx_cli_options *options);
int rfx_cmd_memory(const struct rfx_cli_options *options);
int rfx_cmd_merge(const struct rfx_cli_options *options);
int rfx_cmd_models(const struct rfx_cli_options *options);
int rfx_cmd_operators(const struct rfx_cli_options *options);
int rfx_cmd_plan(const struct rfx_cli_options *options);
int rfx_cmd_run(const struct rfx_cli_options *options);
int rfx_cmd_selftest(const struct rfx_cli_options *options);
int rfx_cmd_verify(const struct rfx_cli_options *options);
#endif
