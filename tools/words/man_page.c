/* rfexec(1) in roff. */
#include <string.h>

#include "rfexec/rfexec.h"
#include "tools/words/help.h"
#include "tools/words/reference.h"

/* Text in which roff sees nothing of its own. */
static void put(FILE *stream, const char *text, size_t size) {
    bool line_begins = true;
    for (size_t i = 0; i < size; ++i) {
        char c = text[i];
        if (line_begins && (c == '.' || c == '\'')) fputs("\\&", stream);
        if (c == '\\')
            fputs("\\e", stream);
        else if (c == '-')
            fputs("\\-", stream);
        else if (c == '\'')
            fputs("\\(aq", stream);
        else
            fputc(c, stream);
        line_begins = c == '\n';
    }
}

static void put_text(FILE *stream, const char *text) {
    put(stream, text, strlen(text));
}

/* Lines as they are: examples, and tables in details, whose lines begin with a space. */
static void put_as_is(FILE *stream, const char *text, size_t size) {
    fputs(".RS\n.nf\n", stream);
    put(stream, text, size);
    fputs(".fi\n.RE\n", stream);
}

static void put_details(FILE *stream, const char *details) {
    while (*details != '\0') {
        bool table = details[0] == ' ';
        const char *end = details;
        while (*end != '\0' && (*end == ' ') == table) {
            const char *line = strchr(end, '\n');
            end = line != NULL ? line + 1 : end + strlen(end);
        }
        if (table)
            put_as_is(stream, details, (size_t)(end - details));
        else
            put(stream, details, (size_t)(end - details));
        details = end;
    }
}

static void put_options(FILE *stream, unsigned groups) {
    struct rfx_cli_option_info option;
    for (int at = 0; rfx_cli_options_next(&at, groups, &option);) {
        fputs(".TP\n", stream);
        if (option.letter != 0) fprintf(stream, "\\fB\\-%c\\fR, ", option.letter);
        fputs("\\fB\\-\\-", stream);
        put_text(stream, option.name);
        fputs("\\fR", stream);
        if (option.value != NULL) {
            fputs(" \\fI", stream);
            put_text(stream, option.value);
            fputs("\\fR", stream);
        }
        fputc('\n', stream);
        put_text(stream, option.help);
        fputc('\n', stream);
    }
}

static void put_command(FILE *stream, const struct rfx_cli_command *command) {
    fprintf(stream, ".SS \"%s\"\n\\fBrfexec %s\\fR ", command->name, command->name);
    put_text(stream, command->args);
    fputs("\n.PP\n", stream);
    put_text(stream, command->summary);
    fputs(".\n", stream);
    if (command->details[0] != '\0') fputs(".PP\n", stream);
    put_details(stream, command->details);
    fputs(".PP\nOptions:\n", stream);
    put_options(stream, command->groups);
    fputs(".PP\nExamples:\n", stream);
    put_as_is(stream, command->examples, strlen(command->examples));
}

static void put_end(FILE *stream) {
    fputs(".SH EXIT STATUS\n", stream);
    for (int i = 0; i < RFX_CLI_EXIT_CODES; ++i) {
        fprintf(stream, ".TP\n\\fB%d\\fR\n", rfx_cli_exit_words[i].code);
        put_text(stream, rfx_cli_exit_words[i].words);
        fputc('\n', stream);
    }
    fputs(".SH ENVIRONMENT\n", stream);
    put_text(stream, rfx_cli_starts_again);
}

void rfx_cli_man_page(FILE *stream, const struct rfx_cli_command *commands, int n) {
    fprintf(stream,
            ".TH RFEXEC 1 \"\" \"rfexec %s\" \"User Commands\"\n.SH NAME\n"
            "rfexec \\- run convolutional networks on images of any size in a given number of "
            "bytes\n.SH SYNOPSIS\n\\fBrfexec\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR] "
            "[\\fIOPTIONS\\fR]\n.br\n\\fBrfexec help\\fR [\\fICOMMAND\\fR]\n.br\n"
            "\\fBrfexec version\\fR\n.SH DESCRIPTION\n",
            rfx_version());
    put_text(
        stream,
        "Runs convolutional networks, ONNX files or built-in ones, on images of any size. With "
        "--memory\nthe whole process stays within so many bytes, or the smallest possible "
        "number is named; the\nbits of the result are those of the whole-image run. Sizes are "
        "rows x columns.\n");
    fputs(".SH COMMANDS\n", stream);
    for (int i = 0; i < n; ++i) put_command(stream, &commands[i]);
    put_end(stream);
}

void rfx_cli_man_page_of(FILE *stream, const struct rfx_cli_command *command,
                         const char *called_by) {
    fprintf(stream, ".TH \"%s\" 1 \"\" \"rfexec %s\" \"User Commands\"\n.SH NAME\n", command->name,
            rfx_version());
    put_text(stream, command->name);
    fputs(" \\- ", stream);
    put_text(stream, command->summary);
    fprintf(stream, "\n.SH SYNOPSIS\n%s \\fB", called_by);
    put_text(stream, command->name);
    fputs("\\fR ", stream);
    put_text(stream, command->args);
    fputs("\n.SH DESCRIPTION\n", stream);
    put_details(stream, command->details);
    fputs(".SH OPTIONS\n", stream);
    put_options(stream, command->groups);
    fputs(".SH EXAMPLES\n", stream);
    put_as_is(stream, command->examples, strlen(command->examples));
    put_end(stream);
    fputs(".SH SEE ALSO\n\\fBrfexec\\fR(1)\n", stream);
}
