/* The rfexec program: finds the command, parses its options, runs it and maps failures to exit
 * codes. stdout carries the result alone; messages go to stderr as "rfexec: ...".
 *
 * Before anything else the process executes the same program again (program.h), once. A debugger, a
 * profiler or a service manager therefore sees two programs start under one process id. The file
 * docs/host_process.md describes how the library affects its process. */
#include <stdio.h>
#include <string.h>

#include "layers/core/temp_file.h"
#include "tools/cli/command.h"
#include "tools/cli/help.h"
#include "tools/cli/program.h"
#include "tools/cli/progress.h"
#include "tools/cli/reference.h"
#include "tools/cli/standard_input.h"

/* When the input argument is '-', makes standard input readable as a file and puts the file's name
 * in place of '-'. Prints a message when the bytes had to be copied to a file. */
static int take_standard_input(const struct rfx_cli_command *command, struct rfx_cli_words *words) {
    int at = command->input - 1;
    if (at < 0 || at >= words->n_args || strcmp(words->args[at], "-") != 0) return RFX_EXIT_DONE;
    const char *folder = rfx_temp_folder(rfx_cli_given(words, "spill"));
    struct rfx_error err = {{0}};
    int64_t kept;
    enum rfx_status status = rfx_standard_input(folder, RFX_STANDARD_INPUT_MOST,
                                                rfx_cli_progress_cancelled, &kept, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    if (kept > 0)
        rfx_cli_message("standard input: %lld bytes, kept in a nameless file in '%s'",
                        (long long)kept, folder);
    words->args[at] = RFX_STANDARD_INPUT;
    return RFX_EXIT_DONE;
}

static int run_command(const struct rfx_cli_command *command, int argc, char **argv) {
    struct rfx_cli_words *words = command->values;
    int code;
    if (!rfx_cli_take_words(command, argc, argv, &code)) return code;
    rfx_cli_progress_catch_signals();
    code = take_standard_input(command, words);
    if (code != RFX_EXIT_DONE) return code;
    if (!command->writes_nothing && rfx_cli_use_stdout(words))
        stdout = stderr; /* stdout carries the result file, so other text goes to stderr */
    return command->run(command->values);
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        rfx_cli_print_usage(stderr);
        return RFX_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (rfx_cli_is_help(name)) return rfx_cli_help(argc - 2, argv + 2);
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("rfexec %s\n", rfx_version());
        return RFX_EXIT_DONE;
    }
    if (strcmp(name, "reference") == 0 && argc == 3) /* for the build; not shown in help */
        return rfx_cli_reference(argv[2]);
    const struct rfx_cli_command *command = rfx_cli_find_command(name);
    return command != NULL ? run_command(command, argc - 2, argv + 2)
                           : rfx_cli_refuse_command(name);
}

int main(int argc, char **argv) {
    rfx_program_begin(argv);
    return rfx_program_end(dispatch(argc, argv));
}
