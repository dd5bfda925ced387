/* Help and usage, from the table of commands and the rows of options. */
#ifndef RFX_TOOLS_CLI_HELP_H
#define RFX_TOOLS_CLI_HELP_H

#include <stdio.h>

#include "tools/cli/command.h"

/* Texts for help and man page: the meaning of each exit code, and why the program starts itself
 * again with a changed environment. */
enum { RFX_CLI_EXIT_CODES = 6 };
struct rfx_cli_exit_words {
    int code;
    const char *words;
};
extern const struct rfx_cli_exit_words rfx_cli_exit_words[RFX_CLI_EXIT_CODES];
extern const char rfx_cli_starts_again[];

/* Prints all commands with their summaries, and the exit codes. */
void rfx_cli_print_usage(FILE *stream);

/* Parses the words after a command's name into the command's struct. Returns true when the command
 * is to run. Returns false, with the exit code in *code, when the user asked for help (the help is
 * then printed) or when a word is wrong (a message is then printed). */
bool rfx_cli_take_words(const struct rfx_cli_command *command, int argc, char **argv, int *code);

/* Prints the help of one command on stdout. */
void rfx_cli_print_help(const struct rfx_cli_command *command);

/* An option and the heading above it in the help. */
struct rfx_cli_listed {
    const char *heading;
    const struct rfx_cli_option *row;
};

/* Lists the options of a command, sorted so that options with the same heading follow each other.
 * Returns the number of options. */
int rfx_cli_options_by_heading(const struct rfx_cli_command *command,
                               struct rfx_cli_listed list[RFX_CLI_MAX_OPTIONS]);

/* Returns the command of this name, or NULL. */
const struct rfx_cli_command *rfx_cli_find_command(const char *name);

/* Prints that no command has this name, and suggests a command with a similar name. Returns
 * RFX_EXIT_USAGE. */
int rfx_cli_refuse_command(const char *name);

/* Returns whether a word asks for help: help, --help or -h. */
bool rfx_cli_is_help(const char *word);

/* Runs 'rfexec help [COMMAND]' and returns its exit code. argv: the words after "help". */
int rfx_cli_help(int argc, char **argv);
#endif
