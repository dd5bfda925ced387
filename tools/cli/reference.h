/* Prints the man page and the shell completions. They are made from the tables of commands and
 * options and the list of built-in networks, as the help is. The build runs 'rfexec reference KIND'
 * and installs the printed text. */
#ifndef RFX_TOOLS_CLI_REFERENCE_H
#define RFX_TOOLS_CLI_REFERENCE_H

#include <stdio.h>

#include "tools/cli/command.h"

/* Prints the man page ("man") or the completions of a shell ("bash", "zsh", "fish") on stdout.
 * Returns RFX_EXIT_USAGE when `kind` is none of these. */
int rfx_cli_reference(const char *kind);

/* Prints the man page of a program that has only one command. called_by: the words that a user
 * types before the program's name, as roff text. */
void rfx_cli_man_page_of(FILE *stream, const struct rfx_cli_command *command,
                         const char *called_by);
#endif
