/* Completions for bash, zsh and fish. Values hold no quotes; words of help are quoted here. */
#include <string.h>

#include "rfexec/session/model.h"
#include "tools/words/reference.h"

static void put_models(FILE *stream) {
    int count;
    const struct rfx_builtin *list = rfx_builtin_list(&count);
    for (int i = 0; i < count; ++i) fprintf(stream, "%s%s", i > 0 ? " " : "", list[i].name);
}

static void put_commands(FILE *stream, const struct rfx_cli_command *commands, int n) {
    for (int i = 0; i < n; ++i) fprintf(stream, "%s ", commands[i].name);
    fputs("help version", stream);
}

/* "direct|openblas" as "direct openblas". */
static void put_words(FILE *stream, const char *value) {
    for (; *value != '\0'; ++value) fputc(*value == '|' ? ' ' : *value, stream);
}

/* Text within single quotes of a shell; `escaped` characters get a backslash before them. */
static void put_quoted(FILE *stream, const char *text, const char *quote, const char *escaped) {
    for (; *text != '\0'; ++text) {
        if (strchr(escaped, *text) != NULL) fputc('\\', stream);
        if (*text == '\'')
            fputs(quote, stream);
        else
            fputc(*text, stream);
    }
}

static void bash_option(FILE *stream, const struct rfx_cli_option_info *option) {
    if (option->letter != 0) fprintf(stream, "-%c|", option->letter);
    fprintf(stream, "--%s) ", option->name);
    switch (rfx_cli_option_follows(option)) {
        case RFX_FOLLOWS_FILE:
        case RFX_FOLLOWS_MODEL:
            fputs("compopt -o default", stream);
            break;
        case RFX_FOLLOWS_WORDS:
            fputs("COMPREPLY=($(compgen -W '", stream);
            put_words(stream, option->value);
            fputs("' -- \"$cur\"))", stream);
            break;
        case RFX_FOLLOWS_NOTHING:
            fputs(":", stream);
            break;
    }
    fputs("; return ;;\n", stream);
}

static void bash_command(FILE *stream, const struct rfx_cli_command *command) {
    struct rfx_cli_option_info option;
    fprintf(stream, "        %s)\n            case $prev in\n", command->name);
    for (int at = 0; rfx_cli_options_next(&at, command->groups, &option);) {
        if (option.value == NULL) continue;
        fputs("                ", stream);
        bash_option(stream, &option);
    }
    fputs("            esac\n            options='", stream);
    for (int at = 0; rfx_cli_options_next(&at, command->groups, &option);)
        fprintf(stream, "--%s ", option.name);
    static const char *const takes[] = {"", "files=1", "files=1 models=1", ""};
    fprintf(stream, "'\n            %s ;;\n", takes[rfx_cli_command_follows(command)]);
}

void rfx_cli_complete_bash(FILE *stream, const struct rfx_cli_command *commands, int n) {
    fputs(
        "# Completion of rfexec for bash; made of the program's own tables.\n"
        "_rfexec() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    local options= files= models= commands='",
        stream);
    put_commands(stream, commands, n);
    fputs(
        "'\n    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n        return\n    fi\n"
        "    case ${COMP_WORDS[1]} in\n"
        "        help) COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\")); return ;;\n",
        stream);
    for (int i = 0; i < n; ++i) bash_command(stream, &commands[i]);
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

static void zsh_option(FILE *stream, const struct rfx_cli_option_info *option) {
    bool value = option->value != NULL;
    const char *star = option->again ? "\\*" : "";
    if (option->letter != 0 && !option->again)
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
    switch (rfx_cli_option_follows(option)) {
        case RFX_FOLLOWS_FILE:
        case RFX_FOLLOWS_MODEL:
            fputs("_files", stream);
            break;
        case RFX_FOLLOWS_WORDS:
            fputs("(", stream);
            put_words(stream, option->value);
            fputs(")", stream);
            break;
        case RFX_FOLLOWS_NOTHING:
            break;
    }
    fputs("' \\\n", stream);
}

void rfx_cli_complete_zsh(FILE *stream, const struct rfx_cli_command *commands, int n) {
    static const char *const takes[] = {"", "'*:file:_files'", "'*:model or file:_rfexec_models'",
                                        ""};
    struct rfx_cli_option_info option;
    fputs(
        "#compdef rfexec\n# Completion of rfexec for zsh; made of the program's own tables.\n"
        "_rfexec_models() {\n    compadd -- ",
        stream);
    put_models(stream);
    fputs("\n    _files\n}\n\n_rfexec() {\n    local -a commands=(\n", stream);
    for (int i = 0; i < n; ++i) {
        fprintf(stream, "        '%s:", commands[i].name);
        put_quoted(stream, commands[i].summary, "'\\''", ":\\");
        fputs("'\n", stream);
    }
    fputs(
        "        'help:help, of a command too'\n        'version:the version'\n    )\n"
        "    if (( CURRENT == 2 )) || [[ ${words[2]} == help ]]; then\n"
        "        _describe command commands\n        return\n    fi\n"
        "    local name=${words[2]}\n    shift words\n    (( CURRENT-- ))\n    case $name in\n",
        stream);
    for (int i = 0; i < n; ++i) {
        fprintf(stream, "        %s)\n            _arguments -s \\\n", commands[i].name);
        for (int at = 0; rfx_cli_options_next(&at, commands[i].groups, &option);)
            zsh_option(stream, &option);
        fprintf(stream, "                %s ;;\n", takes[rfx_cli_command_follows(&commands[i])]);
    }
    fputs("    esac\n}\n\n_rfexec \"$@\"\n", stream);
}

static void fish_option(FILE *stream, const char *command,
                        const struct rfx_cli_option_info *option) {
    fprintf(stream, "complete -c rfexec -n '__fish_seen_subcommand_from %s' -l %s", command,
            option->name);
    if (option->letter != 0) fprintf(stream, " -s %c", option->letter);
    switch (rfx_cli_option_follows(option)) {
        case RFX_FOLLOWS_FILE:
        case RFX_FOLLOWS_MODEL:
            fputs(" -r -F", stream);
            break;
        case RFX_FOLLOWS_WORDS:
            fputs(" -x -a '", stream);
            put_words(stream, option->value);
            fputs("'", stream);
            break;
        case RFX_FOLLOWS_NOTHING:
            if (option->value != NULL) fputs(" -x", stream);
            break;
    }
    fputs(" -d '", stream);
    put_quoted(stream, option->help, "\\'", "\\");
    fputs("'\n", stream);
}

void rfx_cli_complete_fish(FILE *stream, const struct rfx_cli_command *commands, int n) {
    struct rfx_cli_option_info option;
    fputs("# Completion of rfexec for fish; made of the program's own tables.\n", stream);
    for (int i = 0; i < n; ++i) {
        const char *name = commands[i].name;
        fprintf(stream, "complete -c rfexec -f -n __fish_use_subcommand -a %s -d '", name);
        put_quoted(stream, commands[i].summary, "\\'", "\\");
        fputs("'\n", stream);
        if (rfx_cli_command_follows(&commands[i]) == RFX_FOLLOWS_MODEL) {
            fprintf(stream, "complete -c rfexec -n '__fish_seen_subcommand_from %s' -a '", name);
            put_models(stream);
            fputs("'\n", stream);
        }
        for (int at = 0; rfx_cli_options_next(&at, commands[i].groups, &option);)
            fish_option(stream, name, &option);
    }
    fputs("complete -c rfexec -f -n __fish_use_subcommand -a 'help version'\n", stream);
    fputs("complete -c rfexec -f -n '__fish_seen_subcommand_from help' -a '", stream);
    put_commands(stream, commands, n);
    fputs("'\n", stream);
}
