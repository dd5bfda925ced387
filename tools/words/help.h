/* Help and usage, from the table of commands and the rows of options. */
#ifndef RFX_TOOLS_WORDS_HELP_H
#define RFX_TOOLS_WORDS_HELP_H

#include <stdio.h>

#include "tools/cli/command.h"

/* All commands with their summaries, and the exit codes. */
void rfx_cli_print_usage(FILE *stream, const struct rfx_cli_command *commands, int n);

/* Everything about one command, on stdout. */
void rfx_cli_print_help(const struct rfx_cli_command *command);

/* The command of that name, or NULL. */
const struct rfx_cli_command *rfx_cli_find_command(const struct rfx_cli_command *commands, int n,
                                                   const char *name);

/* Says that there is no such command and which has a name like it; returns RFX_EXIT_USAGE. */
int rfx_cli_refuse_command(const struct rfx_cli_command *commands, int n, const char *name);

/* Whether a word asks for help: help, --help, -h. */
bool rfx_cli_is_help(const char *word);

/* 'rfexec help [COMMAND]': argv are the words after help. */
int rfx_cli_help(const struct rfx_cli_command *commands, int n, int argc, char **argv);
#endif
