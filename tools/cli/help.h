/* Help and usage, from the table of commands and the rows of options. */
#ifndef RFX_TOOLS_CLI_HELP_H
#define RFX_TOOLS_CLI_HELP_H

#include <stdio.h>

#include "tools/cli/command.h"

/* Meanings of exit codes, and what the program does to its environment; for help and man page. */
enum { RFX_CLI_EXIT_CODES = 6 };
struct rfx_cli_exit_words {
    int code;
    const char *words;
};
extern const struct rfx_cli_exit_words rfx_cli_exit_words[RFX_CLI_EXIT_CODES];
extern const char rfx_cli_starts_again[];

/* Prints all commands with their summaries, and the exit codes. */
void rfx_cli_print_usage(FILE *stream);

/* Returns the word before a command's name in a usage line: "rfexec ", or "" for a command that is
 * a program by itself, whose name begins with "rfexec-". */
const char *rfx_cli_called_by(const struct rfx_cli_command *command);

/* Parses the words after a command's name into the command's struct. false: there is nothing to run
 * and *code is the exit code; help was asked for and is printed, or a word is wrong and a message
 * says so. */
bool rfx_cli_take_words(const struct rfx_cli_command *command, int argc, char **argv, int *code);

/* Prints "usage: rfexec ...", in lines of at most 100 characters. */
void rfx_cli_print_call(FILE *stream, const struct rfx_cli_command *command);

/* Prints the help of one command on stdout. */
void rfx_cli_print_help(const struct rfx_cli_command *command);

/* An option and the heading that it stands below. */
struct rfx_cli_listed {
    const char *heading;
    const struct rfx_cli_option *row;
};

/* Lists the options of a command so that those of one heading follow each other; returns how many
 * there are. */
int rfx_cli_options_by_heading(const struct rfx_cli_command *command,
                               struct rfx_cli_listed list[RFX_CLI_MAX_OPTIONS]);

/* Returns the command of this name, or NULL. */
const struct rfx_cli_command *rfx_cli_find_command(const char *name);

/* Prints that there is no such command and which one has a similar name. Returns RFX_EXIT_USAGE. */
int rfx_cli_refuse_command(const char *name);

/* Whether a word asks for help: help, --help, -h. */
bool rfx_cli_is_help(const char *word);

/* 'rfexec help [COMMAND]': argv are the words after help. */
int rfx_cli_help(int argc, char **argv);
#endif
