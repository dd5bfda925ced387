/* Start, messages and end of the programs rfexec and rfexec-mpi.
 *
 * Messages go to stderr as "NAME: ..." (rfx_cli_message of tools/cli/command.h), or to a function
 * of the program. */
#ifndef RFX_TOOLS_CLI_PROGRAM_H
#define RFX_TOOLS_CLI_PROGRAM_H

/* Must be the first call in main. May execute the program again in the same process, once, with an
 * environment variable that makes idle OpenMP threads sleep soon. */
void rfx_program_begin(char **argv);

/* Must be the last call in main. Returns the exit code of the program. When standard output could
 * not be written, prints a message and returns RFX_EXIT_SYSTEM in place of RFX_EXIT_DONE. */
int rfx_program_end(int code);

/* Called before the program itself calls exit, so that its exit code is not replaced. (An exit by a
 * library gets the code RFX_EXIT_SYSTEM.) */
void rfx_program_ends_by_itself(void);

/* Sends all later messages to the function `hear` instead of stderr; NULL: to stderr again. The
 * messages are printable and have no newline. */
void rfx_program_hear(void (*hear)(const char *text));
#endif
