/* Man page and completions of shells, made of the tables of commands and options and the list of
 * built-in networks: what help says, in other forms. The build runs 'rfexec reference KIND' and
 * installs what it prints. */
#ifndef RFX_TOOLS_WORDS_REFERENCE_H
#define RFX_TOOLS_WORDS_REFERENCE_H

#include <stdio.h>

#include "tools/cli/command.h"

/* Prints one of them on stdout: "man", "bash", "zsh", "fish". RFX_EXIT_USAGE: no such kind. */
int rfx_cli_reference(const struct rfx_cli_command *commands, int n, const char *kind);

void rfx_cli_man_page(FILE *stream, const struct rfx_cli_command *commands, int n);
/* Of a program that has one command; called_by: what comes before its name, in roff. */
void rfx_cli_man_page_of(FILE *stream, const struct rfx_cli_command *command,
                         const char *called_by);
void rfx_cli_complete_bash(FILE *stream, const struct rfx_cli_command *commands, int n);
void rfx_cli_complete_zsh(FILE *stream, const struct rfx_cli_command *commands, int n);
void rfx_cli_complete_fish(FILE *stream, const struct rfx_cli_command *commands, int n);

/* What may follow a command or option. */
enum rfx_cli_follows {
    RFX_FOLLOWS_NOTHING, /* nothing that can be listed */
    RFX_FOLLOWS_FILE,
    RFX_FOLLOWS_MODEL, /* a built-in network, or a file */
    RFX_FOLLOWS_WORDS, /* one of a value like "direct|openblas" */
};
enum rfx_cli_follows rfx_cli_command_follows(const struct rfx_cli_command *command);
enum rfx_cli_follows rfx_cli_option_follows(const struct rfx_cli_option_info *option);
#endif
