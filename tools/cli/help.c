/* Prints help and usage; see help.h. */
#include "tools/cli/help.h"

#include <string.h>

#include "layers/graph/near_names.h"

/* WIDTH: longest line in characters. MARGIN: column where the description of an option begins. */
enum { WIDTH = 100, MARGIN = 26 };

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

void rfx_cli_print_usage(FILE *stream) {
    const struct rfx_cli_command *const *commands = rfx_cli_commands;
    int width = 0;
    for (int i = 0; commands[i] != NULL; ++i) {
        int chars = (int)strlen(commands[i]->name);
        if (chars > width) width = chars;
    }
    fputs(
        "rfexec runs convolutional networks on images of any size in a given number of bytes,\n"
        "bit-exact with the whole-image run.\n\nusage: rfexec COMMAND ...\n\n",
        stream);
    for (int i = 0; commands[i] != NULL; ++i)
        fprintf(stream, "  %-*s  %s\n", width, commands[i]->name, commands[i]->summary);
    fprintf(stream,
            "  %-*s  this text, or 'rfexec help COMMAND'\n"
            "  %-*s  the version\n\n%s\nexit codes:\n",
            width, "help", width, "version", rfx_cli_starts_again);
    for (int i = 0; i < RFX_CLI_EXIT_CODES; ++i)
        fprintf(stream, "  %d  %s\n", rfx_cli_exit_words[i].code, rfx_cli_exit_words[i].words);
}

/* Prints lines, each indented by two spaces. */
static void print_indented(const char *lines) {
    for (const char *p = lines; *p != '\0';) {
        const char *end = strchr(p, '\n');
        printf("  %.*s\n", (int)(end - p), p);
        p = end + 1;
    }
}

/* Returns the word before a command's name in a usage line: "rfexec ", or "" for a command that is
 * a program by itself, whose name begins with "rfexec-". */
static const char *called_by(const struct rfx_cli_command *command) {
    return strncmp(command->name, "rfexec-", 7) == 0 ? "" : "rfexec ";
}

/* Prints a text with line breaks. `at`: characters that the current line has already. A word that
 * would exceed WIDTH goes to a new line, indented by `indent`. Text in brackets counts as one word,
 * so that usage lines do not break within brackets. */
static void print_wrapped(FILE *stream, const char *text, int at, int indent) {
    for (bool first = true; *text != '\0'; first = false) {
        int depth = 0, n = 0;
        for (; text[n] != '\0' && (text[n] != ' ' || depth > 0); ++n)
            depth += text[n] == '[' ? 1 : text[n] == ']' ? -1 : 0;
        if (!first && at + 1 + n > WIDTH) {
            fprintf(stream, "\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', stream);
            ++at;
        }
        fprintf(stream, "%.*s", n, text);
        at += n;
        text += n;
        while (*text == ' ') ++text;
    }
    fputc('\n', stream);
}

/* Prints "usage: rfexec ...", in lines of at most WIDTH characters. */
static void print_call(FILE *stream, const struct rfx_cli_command *command) {
    int at = fprintf(stream, "usage: %s%s ", called_by(command), command->name);
    char line[400];
    for (const char *p = command->args; p != NULL;) { /* a line for each form */
        const char *end = strchr(p, '\n');
        (void)snprintf(line, sizeof line, "%.*s", end != NULL ? (int)(end - p) : (int)strlen(p), p);
        print_wrapped(stream, line, at, at);
        p = end != NULL ? end + 1 + strspn(end + 1, " ") : NULL;
        if (p != NULL) at = fprintf(stream, "       ");
    }
}

static void print_option(const struct rfx_cli_command *command, const struct rfx_cli_option *row) {
    char help[1000];
    int n = row->letter != 0 ? printf("  -%c, ", row->letter) : printf("      ");
    n += printf("--%s %s", row->name, row->value != NULL ? row->value : "");
    if (n >= MARGIN) printf("\n");
    printf("%*s", n >= MARGIN ? MARGIN : MARGIN - n, "");
    rfx_cli_option_help(command, row, help, sizeof help);
    print_wrapped(stdout, help, MARGIN, MARGIN);
}

int rfx_cli_options_by_heading(const struct rfx_cli_command *command,
                               struct rfx_cli_listed list[RFX_CLI_MAX_OPTIONS]) {
    const struct rfx_cli_option *row;
    struct rfx_cli_use use;
    int n = 0;
    for (int first = 0; rfx_cli_option_at(command, first, &use) != NULL; ++first) {
        const char *heading = use.group->heading;
        bool listed = false;
        for (int i = 0; i < n; ++i) listed |= strcmp(list[i].heading, heading) == 0;
        for (int k = first; !listed && (row = rfx_cli_option_at(command, k, &use)) != NULL; ++k)
            if (strcmp(use.group->heading, heading) == 0 && n < RFX_CLI_MAX_OPTIONS)
                list[n++] = (struct rfx_cli_listed){heading, row};
    }
    return n;
}

static void print_options(const struct rfx_cli_command *command) {
    struct rfx_cli_listed list[RFX_CLI_MAX_OPTIONS];
    int n = rfx_cli_options_by_heading(command, list);
    for (int i = 0; i < n; ++i) {
        if (i == 0 || strcmp(list[i].heading, list[i - 1].heading) != 0)
            printf("\n%s\n", list[i].heading);
        print_option(command, list[i].row);
    }
}

void rfx_cli_print_help(const struct rfx_cli_command *command) {
    print_call(stdout, command);
    printf("\n%s\n", command->summary);
    if (command->details[0] != '\0') printf("\n%s", command->details);
    print_options(command);
    puts("\nexamples");
    print_indented(command->examples);
}

bool rfx_cli_take_words(const struct rfx_cli_command *command, int argc, char **argv, int *code) {
    const struct rfx_cli_words *words = command->values;
    char why[512];
    bool parsed = rfx_cli_options_parse(command, command->values, argc, argv, why, sizeof why);
    *code = RFX_EXIT_DONE;
    if (parsed && words->help) {
        rfx_cli_print_help(command);
        return false;
    }
    if (parsed) return true;
    const char *by = called_by(command);
    rfx_cli_message("%s", why);
    print_call(stderr, command);
    if (by[0] != '\0')
        fprintf(stderr, "'rfexec help %s' explains\n", command->name);
    else
        fprintf(stderr, "'%s --help' explains\n", command->name);
    *code = RFX_EXIT_USAGE;
    return false;
}

const struct rfx_cli_command *rfx_cli_find_command(const char *name) {
    for (int i = 0; rfx_cli_commands[i] != NULL; ++i)
        if (strcmp(rfx_cli_commands[i]->name, name) == 0) return rfx_cli_commands[i];
    return NULL;
}

int rfx_cli_refuse_command(const char *name) {
    struct rfx_nearest nearest = {.word = name};
    for (int i = 0; rfx_cli_commands[i] != NULL; ++i)
        rfx_nearest_consider(&nearest, rfx_cli_commands[i]->name);
    if (nearest.name != NULL)
        rfx_cli_message("unknown command '%s': did you mean '%s'?", name, nearest.name);
    else
        rfx_cli_message("unknown command '%s': 'rfexec help' lists them", name);
    return RFX_EXIT_USAGE;
}

bool rfx_cli_is_help(const char *word) {
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int rfx_cli_help(int argc, char **argv) {
    if (argc == 0 || rfx_cli_is_help(argv[0])) {
        rfx_cli_print_usage(stdout);
        return RFX_EXIT_DONE;
    }
    const struct rfx_cli_command *command = rfx_cli_find_command(argv[0]);
    if (command == NULL) return rfx_cli_refuse_command(argv[0]);
    rfx_cli_print_help(command);
    return RFX_EXIT_DONE;
}
