/* What the programs of this folder share beside commands: how they begin, speak and end.
 *
 * Messages go to stderr as "NAME: ..." (rfx_cli_message of tools/cli/command.h), unless the program
 * takes them. */
#ifndef RFX_TOOLS_CLI_PROGRAM_H
#define RFX_TOOLS_CLI_PROGRAM_H

/* First of all in main: may replace the process by itself, once, so that waiting threads leave the
 * processor to others. */
void rfx_program_begin(char **argv);

/* Last of all in main: the exit code, after what was printed has reached its reader or a message
 * says that it did not. */
int rfx_program_end(int code);

/* From here on an exit is the program's own and no library's. */
void rfx_program_ends_by_itself(void);

/* Takes messages, printable and without a newline, instead of stderr. NULL: stderr again. */
void rfx_program_hear(void (*hear)(const char *text));
#endif
