/* The program's own words about itself; see help.h. */
#include "tools/words/help.h"

#include <string.h>

#include "layers/graph/near_names.h"

const struct rfx_cli_exit_words rfx_cli_exit_words[RFX_CLI_EXIT_CODES] = {
    {0, "done"},
    {1, "verify or selftest found a difference"},
    {2, "usage"},
    {3, "model or input refused"},
    {4, "budget impossible"},
    {5, "I/O or system failure, or stopped by a signal"},
};

const char rfx_cli_starts_again[] =
    "rfexec starts itself once more with GOMP_SPINCOUNT=2000 in its environment, so that waiting\n"
    "threads leave the processor to others; setting that or OMP_WAIT_POLICY prevents it.\n";

void rfx_cli_print_usage(FILE *stream, const struct rfx_cli_command *commands, int n) {
    fputs(
        "rfexec runs convolutional networks on images of any size in a given number of bytes,\n"
        "bit-exact with the whole-image run.\n\nusage: rfexec COMMAND ...\n\n",
        stream);
    for (int i = 0; i < n; ++i)
        fprintf(stream, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream,
            "  help      this text, or 'rfexec help COMMAND'\n"
            "  version   the version\n\n%s\nexit codes:\n",
            rfx_cli_starts_again);
    for (int i = 0; i < RFX_CLI_EXIT_CODES; ++i)
        fprintf(stream, "  %d  %s\n", rfx_cli_exit_words[i].code, rfx_cli_exit_words[i].words);
}

/* Prints lines with a margin. */
static void print_indented(const char *lines) {
    for (const char *p = lines; *p != '\0';) {
        const char *end = strchr(p, '\n');
        printf("  %.*s\n", (int)(end - p), p);
        p = end + 1;
    }
}

void rfx_cli_print_help(const struct rfx_cli_command *command) {
    printf("usage: rfexec %s %s\n\n%s\n", command->name, command->args, command->summary);
    if (command->details[0] != '\0') printf("\n%s", command->details);
    puts("\noptions");
    rfx_cli_options_help(stdout, command->groups);
    puts("\nexamples");
    print_indented(command->examples);
}

const struct rfx_cli_command *rfx_cli_find_command(const struct rfx_cli_command *commands, int n,
                                                   const char *name) {
    for (int i = 0; i < n; ++i)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

int rfx_cli_refuse_command(const struct rfx_cli_command *commands, int n, const char *name) {
    struct rfx_nearest nearest = {.word = name};
    for (int i = 0; i < n; ++i) rfx_nearest_consider(&nearest, commands[i].name);
    if (nearest.name != NULL)
        rfx_cli_message("unknown command '%s': did you mean '%s'?", name, nearest.name);
    else
        rfx_cli_message("unknown command '%s': 'rfexec help' lists them", name);
    return RFX_EXIT_USAGE;
}

bool rfx_cli_is_help(const char *word) {
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int rfx_cli_help(const struct rfx_cli_command *commands, int n, int argc, char **argv) {
    if (argc == 0 || rfx_cli_is_help(argv[0])) {
        rfx_cli_print_usage(stdout, commands, n);
        return RFX_EXIT_DONE;
    }
    const struct rfx_cli_command *command = rfx_cli_find_command(commands, n, argv[0]);
    if (command == NULL) return rfx_cli_refuse_command(commands, n, argv[0]);
    rfx_cli_print_help(command);
    return RFX_EXIT_DONE;
}
