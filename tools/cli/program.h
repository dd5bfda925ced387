/* Start, messages and end of the programs rfexec and rfexec-mpi.
 *
 * Messages go to stderr as "NAME: ..." (rfx_cli_message of tools/cli/command.h), or to a function
 * of the program. */
#ifndef RFX_TOOLS_CLI_PROGRAM_H
#define RFX_TOOLS_CLI_PROGRAM_H

/* The first call in main. May start the program again in this process, once, with an environment
 * that makes waiting threads sleep soon. */
void rfx_program_begin(char **argv);

/* The last call in main. Returns the exit code, which becomes RFX_EXIT_SYSTEM, with a message, when
 * standard output could not be written. */
int rfx_program_end(int code);

/* Called before the program exits by itself: later exits keep their code. */
void rfx_program_ends_by_itself(void);

/* Sends messages, printable and without a newline, to `hear` instead of stderr. NULL: to stderr. */
void rfx_program_hear(void (*hear)(const char *text));
#endif
