/* Which form is asked for, and what the tables say of arguments; see reference.h. */
#include "tools/words/reference.h"

#include <ctype.h>
#include <string.h>

int rfx_cli_reference(const struct rfx_cli_command *commands, int n, const char *kind) {
    static const struct {
        const char *name;
        void (*print)(FILE *stream, const struct rfx_cli_command *commands, int n);
    } kinds[] = {{"man", rfx_cli_man_page},
                 {"bash", rfx_cli_complete_bash},
                 {"zsh", rfx_cli_complete_zsh},
                 {"fish", rfx_cli_complete_fish}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        if (strcmp(kinds[i].name, kind) != 0) continue;
        kinds[i].print(stdout, commands, n);
        return RFX_EXIT_DONE;
    }
    rfx_cli_message("reference '%s': there are man, bash, zsh and fish", kind);
    return RFX_EXIT_USAGE;
}

enum rfx_cli_follows rfx_cli_command_follows(const struct rfx_cli_command *command) {
    const char *args = command->args + (command->args[0] == '[');
    if (command->max_args == 0) return RFX_FOLLOWS_NOTHING;
    bool model = strncmp(args, "MODEL", 5) == 0 || strncmp(args, "BUILTIN", 7) == 0;
    return model ? RFX_FOLLOWS_MODEL : RFX_FOLLOWS_FILE;
}

enum rfx_cli_follows rfx_cli_option_follows(const struct rfx_cli_option_info *option) {
    if (option->value == NULL) return RFX_FOLLOWS_NOTHING;
    if (strstr(option->value, "FILE") != NULL) return RFX_FOLLOWS_FILE;
    bool words = strchr(option->value, '|') != NULL && islower((unsigned char)option->value[0]);
    return words ? RFX_FOLLOWS_WORDS : RFX_FOLLOWS_NOTHING;
}
