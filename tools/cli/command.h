/* The commands of rfexec and the exit codes they return.
 *
 * A command gets its parsed options, writes its result to stdout and messages to stderr, and
 * returns an exit code. A new command is a file cmd_<name>.c, which holds its text, its table of
 * options and its code, and a line in commands.c.
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
    const char *details;            /* paragraphs of the help, each line ending in \n */
    const char *examples;           /* example commands, one a line, each line ending in \n */
    const struct rfx_cli_use *uses; /* the table of options */
    int n_uses;
    const char *needs; /* at least one of these options must be given; NULL: no such rule */
    int min_args, max_args;
    int input; /* number, from 1 on, of the argument that may be '-' (standard input); 0: none may
                */
    void *values;             /* the command's struct, zeros; begins with struct rfx_cli_words */
    bool writes_nothing;      /* the command takes names of result files but writes no such file */
    int (*run)(void *values); /* runs the command; returns an exit code */
};

/* All commands of rfexec, in the order of the help; NULL ends them. */
extern const struct rfx_cli_command *const rfx_cli_commands[];

/* Default time limit of the packing search in the commands that only pack (`alloc`, `memory`): 10
 * seconds, as long as a user may want to wait. The help of --time-limit states the same number. */
#define RFX_CLI_PACK_TIME_NS ((int64_t)10 * 1000 * 1000 * 1000)

/* Prints "rfexec: <text>" to stderr and returns the exit code of the status. */
int rfx_cli_fail(enum rfx_status status, const struct rfx_error *err);

/* Prints "rfexec: ..." to stderr. */
void rfx_cli_message(const char *format, ...) RFX_PRINTF(1, 2);
#endif
