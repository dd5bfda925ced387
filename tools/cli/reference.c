/* Prints man page and completions from the tables of commands and options; see reference.h. The
 * values of options contain no quotes. Help texts may contain quotes, so this file quotes them. */
#include "tools/cli/reference.h"

#include <ctype.h>
#include <string.h>

#include "rfexec/rfexec.h"
#include "rfexec/run/model.h"
#include "tools/cli/help.h"

/* What a shell may complete after a command or an option. */
enum follows {
    FOLLOWS_NOTHING, /* nothing that can be listed */
    FOLLOWS_FILE,
    FOLLOWS_MODEL, /* a built-in network, or a file */
    FOLLOWS_WORDS, /* one of a value like "direct|openblas" */
};

static enum follows command_follows(const struct rfx_cli_command *command) {
    const char *args = command->args + (command->args[0] == '[');
    if (command->max_args == 0) return FOLLOWS_NOTHING;
    bool model = strncmp(args, "MODEL", 5) == 0 || strncmp(args, "BUILTIN", 7) == 0;
    return model ? FOLLOWS_MODEL : FOLLOWS_FILE;
}

static enum follows option_follows(const struct rfx_cli_option *option) {
    if (option->value == NULL) return FOLLOWS_NOTHING;
    if (strstr(option->value, "FILE") != NULL) return FOLLOWS_FILE;
    bool words = strchr(option->value, '|') != NULL && islower((unsigned char)option->value[0]);
    return words ? FOLLOWS_WORDS : FOLLOWS_NOTHING;
}

/* rfexec(1) in roff. */

/* Writes text with all characters escaped that roff would interpret. */
static void put_roff(FILE *stream, const char *text, size_t size) {
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

static void put_roff_text(FILE *stream, const char *text) {
    put_roff(stream, text, strlen(text));
}

/* Writes lines without filling them: examples, and tables in details (lines that begin with a
 * space). */
static void put_as_is(FILE *stream, const char *text, size_t size) {
    fputs(".RS\n.nf\n", stream);
    put_roff(stream, text, size);
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
            put_roff(stream, details, (size_t)(end - details));
        details = end;
    }
}

static void put_option(FILE *stream, const struct rfx_cli_command *command,
                       const struct rfx_cli_option *option) {
    char help[1000];
    fputs(".TP\n", stream);
    if (option->letter != 0) fprintf(stream, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", stream);
    put_roff_text(stream, option->name);
    fputs("\\fR", stream);
    if (option->value != NULL) {
        fputs(" \\fI", stream);
        put_roff_text(stream, option->value);
        fputs("\\fR", stream);
    }
    fputc('\n', stream);
    rfx_cli_option_help(command, option, help, sizeof help);
    put_roff_text(stream, help);
    fputc('\n', stream);
}

static void put_options(FILE *stream, const struct rfx_cli_command *command) {
    struct rfx_cli_listed list[RFX_CLI_MAX_OPTIONS];
    int n = rfx_cli_options_by_heading(command, list);
    for (int i = 0; i < n; ++i) {
        if (i == 0 || strcmp(list[i].heading, list[i - 1].heading) != 0)
            fprintf(stream, ".PP\n%s:\n", list[i].heading);
        put_option(stream, command, list[i].row);
    }
}

static void put_command(FILE *stream, const struct rfx_cli_command *command) {
    fprintf(stream, ".SS \"%s\"\n\\fBrfexec %s\\fR ", command->name, command->name);
    put_roff_text(stream, command->args);
    fputs("\n.PP\n", stream);
    put_roff_text(stream, command->summary);
    fputs(".\n", stream);
    if (command->details[0] != '\0') fputs(".PP\n", stream);
    put_details(stream, command->details);
    put_options(stream, command);
    fputs(".PP\nExamples:\n", stream);
    put_as_is(stream, command->examples, strlen(command->examples));
}

static void put_end(FILE *stream) {
    fputs(".SH EXIT STATUS\n", stream);
    for (int i = 0; i < RFX_CLI_EXIT_CODES; ++i) {
        fprintf(stream, ".TP\n\\fB%d\\fR\n", rfx_cli_exit_words[i].code);
        put_roff_text(stream, rfx_cli_exit_words[i].words);
        fputc('\n', stream);
    }
    fputs(".SH ENVIRONMENT\n", stream);
    put_roff_text(stream, rfx_cli_starts_again);
}

static void man_page(FILE *stream) {
    fprintf(stream,
            ".TH RFEXEC 1 \"\" \"rfexec %s\" \"User Commands\"\n.SH NAME\n"
            "rfexec \\- run convolutional networks on images of any size in a given number of "
            "bytes\n.SH SYNOPSIS\n\\fBrfexec\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR] "
            "[\\fIOPTIONS\\fR]\n.br\n\\fBrfexec help\\fR [\\fICOMMAND\\fR]\n.br\n"
            "\\fBrfexec version\\fR\n.SH DESCRIPTION\n",
            rfx_version());
    put_roff_text(
        stream,
        "Runs convolutional networks, ONNX files or built-in ones, on images of any size. With "
        "--memory\nthe whole process stays within so many bytes, or the smallest possible "
        "number is named; the\nbits of the result are those of the whole-image run. Sizes are "
        "rows x columns.\n");
    fputs(".SH COMMANDS\n", stream);
    for (int i = 0; rfx_cli_commands[i] != NULL; ++i) put_command(stream, rfx_cli_commands[i]);
    put_end(stream);
}

void rfx_cli_man_page_of(FILE *stream, const struct rfx_cli_command *command,
                         const char *called_by) {
    fprintf(stream, ".TH \"%s\" 1 \"\" \"rfexec %s\" \"User Commands\"\n.SH NAME\n", command->name,
            rfx_version());
    put_roff_text(stream, command->name);
    fputs(" \\- ", stream);
    put_roff_text(stream, command->summary);
    fprintf(stream, "\n.SH SYNOPSIS\n%s \\fB", called_by);
    put_roff_text(stream, command->name);
    fputs("\\fR ", stream);
    put_roff_text(stream, command->args);
    fputs("\n.SH DESCRIPTION\n", stream);
    put_details(stream, command->details);
    fputs(".SH OPTIONS\n", stream);
    put_options(stream, command);
    fputs(".SH EXAMPLES\n", stream);
    put_as_is(stream, command->examples, strlen(command->examples));
    put_end(stream);
    fputs(".SH SEE ALSO\n\\fBrfexec\\fR(1)\n", stream);
}

/* Completions. */

static void put_models(FILE *stream) {
    int count;
    const struct rfx_builtin *list = rfx_builtin_list(&count);
    for (int i = 0; i < count; ++i) fprintf(stream, "%s%s", i > 0 ? " " : "", list[i].name);
}

static void put_commands(FILE *stream) {
    for (int i = 0; rfx_cli_commands[i] != NULL; ++i)
        fprintf(stream, "%s ", rfx_cli_commands[i]->name);
    fputs("help version", stream);
}

/* Writes the words of "direct|openblas" with spaces: "direct openblas". */
static void put_words(FILE *stream, const char *value) {
    for (; *value != '\0'; ++value) fputc(*value == '|' ? ' ' : *value, stream);
}

/* Writes text for the inside of single quotes of a shell. Characters in `escaped` get a backslash
 * before them. quote: text that replaces a single quote. */
static void put_quoted(FILE *stream, const char *text, const char *quote, const char *escaped) {
    for (; *text != '\0'; ++text) {
        if (strchr(escaped, *text) != NULL) fputc('\\', stream);
        if (*text == '\'')
            fputs(quote, stream);
        else
            fputc(*text, stream);
    }
}

static void bash_option(FILE *stream, const struct rfx_cli_option *option) {
    if (option->letter != 0) fprintf(stream, "-%c|", option->letter);
    fprintf(stream, "--%s) ", option->name);
    switch (option_follows(option)) {
        case FOLLOWS_FILE:
        case FOLLOWS_MODEL:
            fputs("compopt -o default", stream);
            break;
        case FOLLOWS_WORDS:
            fputs("COMPREPLY=($(compgen -W '", stream);
            put_words(stream, option->value);
            fputs("' -- \"$cur\"))", stream);
            break;
        case FOLLOWS_NOTHING:
            fputs(":", stream);
            break;
    }
    fputs("; return ;;\n", stream);
}

static void bash_command(FILE *stream, const struct rfx_cli_command *command) {
    const struct rfx_cli_option *option;
    fprintf(stream, "        %s)\n            case $prev in\n", command->name);
    for (int k = 0; (option = rfx_cli_option_at(command, k, NULL)) != NULL; ++k) {
        if (option->value == NULL) continue;
        fputs("                ", stream);
        bash_option(stream, option);
    }
    fputs("            esac\n            options='", stream);
    for (int k = 0; (option = rfx_cli_option_at(command, k, NULL)) != NULL; ++k)
        fprintf(stream, "--%s ", option->name);
    static const char *const takes[] = {"", "files=1", "files=1 models=1", ""};
    fprintf(stream, "'\n            %s ;;\n", takes[command_follows(command)]);
}

static void complete_bash(FILE *stream) {
    fputs(
        "# Completion of rfexec for bash; made of the program's own tables.\n"
        "_rfexec() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    local options= files= models= commands='",
        stream);
    put_commands(stream);
    fputs(
        "'\n    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n        return\n    fi\n"
        "    case ${COMP_WORDS[1]} in\n"
        "        help) COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\")); return ;;\n",
        stream);
    for (int i = 0; rfx_cli_commands[i] != NULL; ++i) bash_command(stream, rfx_cli_commands[i]);
    fputs(
        "    esac\n"
        "    case $cur in\n"
        "        -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")); return ;;\n    esac\n"
        "    [ -z \"$files\" ] || compopt -o default 2>/dev/null\n"
        "    [ -z \"$models\" ] || COMPREPLY=($(compgen -f -- \"$cur\") $(compgen -W '",
        stream);
    put_models(stream);
    fputs("' -- \"$cur\"))\n}\ncomplete -o filenames -F _rfexec rfexec\n", stream);
}

static void zsh_option(FILE *stream, const struct rfx_cli_option *option) {
    bool value = option->value != NULL;
    const char *star = rfx_cli_may_come_again(option) ? "\\*" : "";
    if (option->letter != 0 && !rfx_cli_may_come_again(option))
        fprintf(stream, "                '(-%c --%s)'{-%c%s,--%s%s}'[", option->letter,
                option->name, option->letter, value ? "+" : "", option->name, value ? "=" : "");
    else
        fprintf(stream, "                %s--%s%s'[", star, option->name, value ? "=" : "");
    put_quoted(stream, option->help, "'\\''", "[]:\\");
    fputs("]", stream);
    if (value) {
        fputs(":", stream);
        put_quoted(stream, option->value, "'\\''", "[]:\\");
        fputs(":", stream);
    }
    switch (option_follows(option)) {
        case FOLLOWS_FILE:
        case FOLLOWS_MODEL:
            fputs("_files", stream);
            break;
        case FOLLOWS_WORDS:
            fputs("(", stream);
            put_words(stream, option->value);
            fputs(")", stream);
            break;
        case FOLLOWS_NOTHING:
            break;
    }
    fputs("' \\\n", stream);
}

static void complete_zsh(FILE *stream) {
    static const char *const takes[] = {"", "'*:file:_files'", "'*:model or file:_rfexec_models'",
                                        ""};
    const struct rfx_cli_option *option;
    fputs(
        "#compdef rfexec\n# Completion of rfexec for zsh; made of the program's own tables.\n"
        "_rfexec_models() {\n    compadd -- ",
        stream);
    put_models(stream);
    fputs("\n    _files\n}\n\n_rfexec() {\n    local -a commands=(\n", stream);
    for (int i = 0; rfx_cli_commands[i] != NULL; ++i) {
        fprintf(stream, "        '%s:", rfx_cli_commands[i]->name);
        put_quoted(stream, rfx_cli_commands[i]->summary, "'\\''", ":\\");
        fputs("'\n", stream);
    }
    fputs(
        "        'help:help, of a command too'\n        'version:the version'\n    )\n"
        "    if (( CURRENT == 2 )) || [[ ${words[2]} == help ]]; then\n"
        "        _describe command commands\n        return\n    fi\n"
        "    local name=${words[2]}\n    shift words\n    (( CURRENT-- ))\n    case $name in\n",
        stream);
    for (int i = 0; rfx_cli_commands[i] != NULL; ++i) {
        fprintf(stream, "        %s)\n            _arguments -s \\\n", rfx_cli_commands[i]->name);
        for (int k = 0; (option = rfx_cli_option_at(rfx_cli_commands[i], k, NULL)) != NULL; ++k)
            zsh_option(stream, option);
        fprintf(stream, "                %s ;;\n", takes[command_follows(rfx_cli_commands[i])]);
    }
    fputs("    esac\n}\n\n_rfexec \"$@\"\n", stream);
}

static void fish_option(FILE *stream, const char *command, const struct rfx_cli_option *option) {
    fprintf(stream, "complete -c rfexec -n '__fish_seen_subcommand_from %s' -l %s", command,
            option->name);
    if (option->letter != 0) fprintf(stream, " -s %c", option->letter);
    switch (option_follows(option)) {
        case FOLLOWS_FILE:
        case FOLLOWS_MODEL:
            fputs(" -r -F", stream);
            break;
        case FOLLOWS_WORDS:
            fputs(" -x -a '", stream);
            put_words(stream, option->value);
            fputs("'", stream);
            break;
        case FOLLOWS_NOTHING:
            if (option->value != NULL) fputs(" -x", stream);
            break;
    }
    fputs(" -d '", stream);
    put_quoted(stream, option->help, "\\'", "\\");
    fputs("'\n", stream);
}

static void complete_fish(FILE *stream) {
    const struct rfx_cli_option *option;
    fputs("# Completion of rfexec for fish; made of the program's own tables.\n", stream);
    for (int i = 0; rfx_cli_commands[i] != NULL; ++i) {
        const char *name = rfx_cli_commands[i]->name;
        fprintf(stream, "complete -c rfexec -f -n __fish_use_subcommand -a %s -d '", name);
        put_quoted(stream, rfx_cli_commands[i]->summary, "\\'", "\\");
        fputs("'\n", stream);
        if (command_follows(rfx_cli_commands[i]) == FOLLOWS_MODEL) {
            fprintf(stream, "complete -c rfexec -n '__fish_seen_subcommand_from %s' -a '", name);
            put_models(stream);
            fputs("'\n", stream);
        }
        for (int k = 0; (option = rfx_cli_option_at(rfx_cli_commands[i], k, NULL)) != NULL; ++k)
            fish_option(stream, name, option);
    }
    fputs("complete -c rfexec -f -n __fish_use_subcommand -a 'help version'\n", stream);
    fputs("complete -c rfexec -f -n '__fish_seen_subcommand_from help' -a '", stream);
    put_commands(stream);
    fputs("'\n", stream);
}

int rfx_cli_reference(const char *kind) {
    static const struct {
        const char *name;
        void (*print)(FILE *stream);
    } kinds[] = {
        {"man", man_page}, {"bash", complete_bash}, {"zsh", complete_zsh}, {"fish", complete_fish}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        if (strcmp(kinds[i].name, kind) != 0) continue;
        kinds[i].print(stdout);
        return RFX_EXIT_DONE;
    }
    rfx_cli_message("reference '%s': there are man, bash, zsh and fish", kind);
    return RFX_EXIT_USAGE;
}
