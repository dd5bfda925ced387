/* Man page and completions of shells, made of the tables of commands and options and the list of
 * built-in networks: what help says, in other forms. The build runs 'rfexec reference KIND' and
 * installs what it prints. */
#ifndef RFX_TOOLS_CLI_REFERENCE_H
#define RFX_TOOLS_CLI_REFERENCE_H

#include <stdio.h>

#include "tools/cli/command.h"

/* Prints one of them on stdout: "man", "bash", "zsh", "fish". RFX_EXIT_USAGE: no such kind. */
int rfx_cli_reference(const char *kind);

/* Man page of a program that has one command; called_by: what comes before its name, in roff. */
void rfx_cli_man_page_of(FILE *stream, const struct rfx_cli_command *command,
                         const char *called_by);
#endif
