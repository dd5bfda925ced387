/* Parsing and checking of command lines, from the tables of commands; see options.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "tools/cli/options.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/printable.h"
#include "layers/graph/near_names.h"
#include "rfexec/output/output_format.h"
#include "tools/cli/command.h"

enum { MOST_PER_PROCESSOR = 8 /* with more threads a message is printed */, NAME = 32, LIST = 512 };

_Static_assert(RFX_CLI_MAX_KEPT == 16, "the messages of --keep and --dump say 16");
_Static_assert(RFX_IMAGE_MAX_BANDS == 512, "the messages of bands and numbers say 512");

/* Every command has --help. */
static const struct rfx_cli_option help_row = {
    .name = "help", .letter = 'h', .kind = RFX_CLI_FLAG, .help = "print this text"};
static const struct rfx_cli_group help_group = {rfx_cli_heading_report, &help_row, 1};

const struct rfx_cli_option *rfx_cli_option_at(const struct rfx_cli_command *command, int k,
                                               struct rfx_cli_use *use) {
    struct rfx_cli_use found = {&help_group, offsetof(struct rfx_cli_words, help)};
    int i = 0;
    for (; i < command->n_uses && k >= command->uses[i].group->n; ++i)
        k -= command->uses[i].group->n;
    if (i < command->n_uses) found = command->uses[i];
    if (use != NULL) *use = found;
    return k < found.group->n ? &found.group->rows[k] : NULL;
}

/* Returns the number of the option with this name or letter, or -1 when there is none. */
static int find_row(const struct rfx_cli_command *command, const char *name, size_t length) {
    const struct rfx_cli_option *row;
    for (int k = 0; (row = rfx_cli_option_at(command, k, NULL)) != NULL; ++k) {
        bool by_name = strlen(row->name) == length && strncmp(row->name, name, length) == 0;
        if (by_name || (length == 1 && row->letter == name[0])) return k;
    }
    return -1;
}

const char *rfx_cli_given(const struct rfx_cli_words *words, const char *name) {
    int k = find_row(words->command, name, strlen(name));
    return k < 0 ? NULL : words->given[k];
}

int64_t rfx_cli_usable_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

bool rfx_cli_may_come_again(const struct rfx_cli_option *row) {
    return row->kind == RFX_CLI_KEEP || row->kind == RFX_CLI_DUMP;
}

/* Values. */

static bool store_kept(char *text, bool dump, struct rfx_cli_kept *kept) {
    char *mark = dump ? strrchr(text, '=') : NULL;
    bool whole = dump ? mark != NULL && mark != text && mark[1] != '\0' : text[0] != '\0';
    if (!whole || kept->n == RFX_CLI_MAX_KEPT) return false;
    if (dump) *mark = '\0';
    kept->tensors[kept->n] = text;
    kept->files[kept->n++] = dump ? mark + 1 : NULL;
    return true;
}

static bool is_word(const char *text, const char *words) {
    size_t length = strlen(text);
    for (const char *at = words; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, text, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return length > 0;
    }
    return false;
}

static bool is_file_end(const char *text) {
    char name[NAME];
    int n = snprintf(name, sizeof name, "x.%s", text);
    return n < (int)sizeof name && rfx_output_kind_of(name) != NULL;
}

static bool parse_divisors(const char *text, struct rfx_cli_numbers *out) {
    if (!rfx_cli_parse_floats(text, out)) return false;
    for (int i = 0; i < out->n; ++i)
        if (out->values[i] == 0.0F) return false;
    return true;
}

static bool store_number(const struct rfx_cli_option *row, const char *text, void *at) {
    if (row->kind == RFX_CLI_INDEX) {
        struct rfx_cli_index *index = at;
        index->given = true;
        return rfx_cli_parse_index(text, row->most, &index->value);
    }
    if (row->kind == RFX_CLI_THREADS) {
        struct rfx_cli_threads *threads = at;
        threads->given = true;
        return rfx_cli_parse_count(text, row->most, &threads->n);
    }
    int64_t *count = at;
    if (!rfx_cli_parse_count(text, row->most, count) || *count < row->least) return false;
    return row->kind != RFX_CLI_SIDE || *count % 16 == 0;
}

static bool store_text(const struct rfx_cli_option *row, const char *text, void *at) {
    *(const char **)at = text;
    if (row->kind == RFX_CLI_WORD) return is_word(text, row->value);
    if (row->kind == RFX_CLI_FILE_END) return is_file_end(text);
    return *text != '\0';
}

static bool store(const struct rfx_cli_option *row, char *text, void *at) {
    switch (row->kind) {
        case RFX_CLI_FLAG:
            *(bool *)at = true;
            return true;
        case RFX_CLI_BYTES:
            return rfx_cli_parse_bytes(text, at);
        case RFX_CLI_PAIR:
            return rfx_cli_parse_pair(text, at);
        case RFX_CLI_GRID:
            return rfx_cli_parse_grid(text, at);
        case RFX_CLI_COUNT:
        case RFX_CLI_INDEX:
        case RFX_CLI_SIDE:
        case RFX_CLI_THREADS:
            return store_number(row, text, at);
        case RFX_CLI_SEED:
            return rfx_cli_parse_seed(text, at);
        case RFX_CLI_TEXT:
        case RFX_CLI_RESULT:
        case RFX_CLI_WORD:
        case RFX_CLI_FILE_END:
            return store_text(row, text, at);
        case RFX_CLI_FLOAT:
            return rfx_cli_parse_float(text, at);
        case RFX_CLI_NUMBER:
            ((struct rfx_cli_number *)at)->given = true;
            return rfx_cli_parse_float(text, &((struct rfx_cli_number *)at)->value);
        case RFX_CLI_FLOATS:
            return rfx_cli_parse_floats(text, at);
        case RFX_CLI_DIVISORS:
            return parse_divisors(text, at);
        case RFX_CLI_NODATA:
            return rfx_cli_parse_nodata(text, at);
        case RFX_CLI_SCALE:
            return rfx_cli_parse_scale(text, at);
        case RFX_CLI_RANGE:
            return rfx_cli_parse_range(text, at);
        case RFX_CLI_BINS:
            return rfx_cli_parse_bins(text, at);
        case RFX_CLI_QUANTILES:
            return rfx_cli_parse_quantiles(text, at);
        case RFX_CLI_BANDS:
            return rfx_cli_parse_bands(text, at);
        case RFX_CLI_FIT:
            return rfx_cli_parse_fit(text, at);
        case RFX_CLI_RECT:
            return rfx_cli_parse_rect(text, at);
        case RFX_CLI_KEEP:
            return store_kept(text, false, at);
        case RFX_CLI_DUMP:
            return store_kept(text, true, at);
        case RFX_CLI_CONV:
            return rfx_conv_choice_find(text, at);
        case RFX_CLI_INT8:
            return rfx_int8_choice_find(text, at);
    }
    return false;
}

/* Messages. */

static void append(char *text, size_t size, const char *more) {
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s", more);
}

/* Writes the name of an option as messages show it: "--tiles" or "--bits 8". --output is shown as
 * "-o", as users write it. Returns `text`. */
static const char *label(const char *name, char text[NAME]) {
    bool output = strcmp(name, "output") == 0;
    (void)snprintf(text, NAME, "%s%.28s", output ? "-" : "--", output ? "o" : name);
    char *mark = strchr(text, '=');
    if (mark != NULL) *mark = ' ';
    return text;
}

/* Appends the items of a list to `text` as "a, b or c". mark: the character between the items of
 * `list`; options: the items are names of options. */
static void append_choice(char *text, size_t size, const char *list, char mark, bool options) {
    const char marks[] = {mark, '\0'};
    for (const char *at = list; *at != '\0';) {
        size_t n = strcspn(at, marks);
        char word[NAME], item[NAME];
        (void)snprintf(word, sizeof word, "%.*s", (int)n, at);
        const char *next = at + n + (at[n] == mark);
        if (at != list) append(text, size, *next == '\0' ? " or " : ", ");
        append(text, size, options ? label(word, item) : word);
        at = next;
    }
}

/* Writes the description of an option's number, such as "a whole number from 1 to 32". */
static void form_of_number(const struct rfx_cli_option *row, char *text, size_t size) {
    long long least = row->kind == RFX_CLI_INDEX ? 0 : row->least > 0 ? row->least : 1;
    if (row->kind == RFX_CLI_SIDE)
        (void)snprintf(text, size, "one of 16, 32, ... %lld", (long long)row->most);
    else if (row->most == least + 1)
        (void)snprintf(text, size, "%lld or %lld", least, (long long)row->most);
    else
        (void)snprintf(text, size, "a whole number from %lld to %lld", least, (long long)row->most);
}

/* Writes the description of an option's value, for messages about a wrong value. */
static void form_of(const struct rfx_cli_option *row, char *text, size_t size) {
    static const char *const forms[] = {
        [RFX_CLI_BYTES] = "a positive number of bytes such as 64MiB",
        [RFX_CLI_DUMP] = "TENSOR=FILE, or more than 16 are kept",
        [RFX_CLI_KEEP] = "a tensor, or more than 16 are kept",
        [RFX_CLI_PAIR] = "rows x columns such as 4x6",
        [RFX_CLI_BANDS] = "bands from 1 on such as 4,3,2 (at most 512)",
        [RFX_CLI_FIT] = "a multiple such as 32, or 32,edge (reflect, edge or zero)",
        [RFX_CLI_RECT] = "a rectangle Y0,X0,Y1,X1 such as 0,0,512,768",
        [RFX_CLI_FLOATS] =
            "a number such as 0.5, or one for each channel such as 0.1,0.2 (at most 512)",
        [RFX_CLI_DIVISORS] =
            "a number other than 0 such as 0.5, or one for each channel such as "
            "0.1,0.2 (at most 512)",
        [RFX_CLI_NODATA] =
            "a sample or file, and what replaces it, such as -9999=0, nan=0 or file=0",
        [RFX_CLI_SCALE] = "a number such as 0.5, or raw, or raw,0.0001",
        [RFX_CLI_RANGE] = "two rising numbers such as 0,1",
        [RFX_CLI_QUANTILES] = "1 to 16 rising numbers from 0 to 1 such as 0.05,0.5,0.95",
        [RFX_CLI_BINS] = "a number of bins (at most 65536) and two rising numbers such as 10,0,1",
        [RFX_CLI_GRID] = "a number of tiles or rows x columns such as 4x6",
        [RFX_CLI_INT8] = NULL, /* the last */
    };
    char ends[RFX_OUTPUT_ENDS];
    text[0] = '\0';
    if (row->most != 0)
        form_of_number(row, text, size);
    else if (row->kind == RFX_CLI_WORD)
        append_choice(text, size, row->value, '|', false);
    else if (row->kind == RFX_CLI_FILE_END)
        (void)snprintf(text, size, "a kind of file: results are %s", rfx_output_ends(ends));
    else
        append(text, size, forms[row->kind] != NULL ? forms[row->kind] : row->value);
}

/* Checks of which options go together. */

/* Moves *list past its next item, "name" or "name=value". Sets `item` to the name and *value to the
 * text after the '=' (NULL: no '='). Returns false at the end of the list. */
static bool next_item(const char **list, char item[NAME], const char **value) {
    if (*list == NULL || **list == '\0') return false;
    size_t n = strcspn(*list, " ");
    (void)snprintf(item, NAME, "%.*s", (int)n, *list);
    *list += n + ((*list)[n] == ' ');
    char *mark = strchr(item, '=');
    *value = mark != NULL ? mark + 1 : NULL;
    if (mark != NULL) *mark = '\0';
    return true;
}

/* Returns whether two texts are the same value. Whole numbers are compared as numbers: "08" is 8.
 */
static bool same_value(const char *a, const char *b) {
    int64_t x, y;
    if (rfx_cli_parse_index(a, INT32_MAX, &x) && rfx_cli_parse_index(b, INT32_MAX, &y))
        return x == y;
    return strcmp(a, b) == 0;
}

/* Returns whether the command line has one of the options in a list. Sets `item` and *value to the
 * first such option. */
static bool any_given(const struct rfx_cli_words *words, const char *list, char item[NAME],
                      const char **value) {
    while (next_item(&list, item, value)) {
        const char *text = rfx_cli_given(words, item);
        if (text != NULL && (*value == NULL || same_value(text, *value))) return true;
    }
    return false;
}

/* Copies from a list the options that the command takes to `text`, and returns `text`. */
static const char *known_options(const struct rfx_cli_command *command, const char *list,
                                 char text[LIST]) {
    char item[NAME];
    const char *value;
    text[0] = '\0';
    while (next_item(&list, item, &value)) {
        if (find_row(command, item, strlen(item)) < 0) continue;
        if (text[0] != '\0') append(text, LIST, " ");
        append(text, LIST, item);
        if (value != NULL) append(text, LIST, "=");
        if (value != NULL) append(text, LIST, value);
    }
    return text;
}

void rfx_cli_option_help(const struct rfx_cli_command *command, const struct rfx_cli_option *row,
                         char *text, size_t size) {
    char needs[LIST], excludes[LIST];
    (void)known_options(command, row->needs, needs);
    (void)known_options(command, row->excludes, excludes);
    (void)snprintf(text, size, "%s", row->help);
    if (needs[0] != '\0') append(text, size, " (needs ");
    append_choice(text, size, needs, ' ', true);
    if (excludes[0] != '\0') append(text, size, needs[0] != '\0' ? "; not with " : " (not with ");
    append_choice(text, size, excludes, ' ', true);
    if (needs[0] != '\0' || excludes[0] != '\0') append(text, size, ")");
}

static bool check_row(const struct rfx_cli_words *words, const struct rfx_cli_option *row,
                      char *why, size_t why_size) {
    char item[NAME], unless[NAME], own[NAME], other[NAME], list[LIST];
    const char *value, *ignored;
    if (any_given(words, row->excludes, item, &value) &&
        !any_given(words, row->unless, unless, &ignored)) {
        (void)snprintf(why, why_size, "%s excludes %s%s%s%s%s", label(row->name, own),
                       label(item, other), value != NULL ? " " : "", value != NULL ? value : "",
                       row->because != NULL ? ": " : "", row->because != NULL ? row->because : "");
        return false;
    }
    if (known_options(words->command, row->needs, list)[0] == '\0') return true;
    if (any_given(words, row->needs, item, &value)) return true;
    (void)snprintf(why, why_size, "%s needs ", label(row->name, own));
    append_choice(why, why_size, list, ' ', true);
    if (row->because == NULL) return false;
    append(why, why_size, ": ");
    append(why, why_size, row->because);
    return false;
}

/* A file that is written, and the option that names it. */
struct result {
    const struct rfx_cli_option *row;
    const char *file;
};

/* Sets *out to the next result file of the command line and returns true, or returns false when
 * there is no further one. *k: number of the option that names the file; *i: index of the next file
 * of this option. Both are 0 at first. */
static bool next_result(const struct rfx_cli_words *words, int *k, int *i, struct result *out) {
    struct rfx_cli_use use;
    for (; (out->row = rfx_cli_option_at(words->command, *k, &use)) != NULL; ++*k, *i = 0) {
        const void *member = (const char *)words + use.at + out->row->at;
        if (words->given[*k] == NULL) continue;
        if (out->row->kind == RFX_CLI_RESULT && (*i)++ == 0) {
            out->file = words->given[*k];
            return true;
        }
        const struct rfx_cli_kept *kept = member;
        while (out->row->kind == RFX_CLI_DUMP && *i < kept->n)
            if ((out->file = kept->files[(*i)++]) != NULL) return true;
    }
    return false;
}

static int count_stdout(const struct rfx_cli_words *words) {
    struct result result;
    int n = 0;
    for (int k = 0, i = 0; next_result(words, &k, &i, &result);) n += strcmp(result.file, "-") == 0;
    return n;
}

bool rfx_cli_use_stdout(const struct rfx_cli_words *words) {
    return count_stdout(words) > 0;
}

static bool check_ends(const struct result *result, char *why, size_t why_size) {
    const char *list = result->row->ends, *value;
    char end[NAME], own[NAME];
    size_t length = strlen(result->file);
    if (list == NULL || strcmp(result->file, "-") == 0) return true;
    while (next_item(&list, end, &value)) {
        size_t n = strlen(end);
        if (length > n && strcasecmp(result->file + length - n, end) == 0) return true;
    }
    (void)snprintf(why, why_size, "%s '%.150s': the name must end in ",
                   label(result->row->name, own), result->file);
    append_choice(why, why_size, result->row->ends, ' ', false);
    return false;
}

/* Returns false, with a message in `why`, when an option before option k names the same file. */
static bool check_alone(const struct rfx_cli_words *words, int k, const struct result *result,
                        char *why, size_t why_size) {
    struct result other;
    char a[NAME], b[NAME];
    for (int m = 0, i = 0; next_result(words, &m, &i, &other) && m < k;) {
        if (strcmp(result->file, other.file) != 0) continue;
        (void)snprintf(why, why_size, "%s and %s would both go to '%.150s'",
                       label(other.row->name, a), label(result->row->name, b), result->file);
        return false;
    }
    return true;
}

/* Checks that at most one of --json, --csv and the result files goes to standard output, and that
 * the result files have allowed and different names. */
static bool check_results(const struct rfx_cli_words *words, char *why, size_t why_size) {
    struct result result;
    int files = count_stdout(words);
    bool json = rfx_cli_given(words, "json") != NULL, csv = rfx_cli_given(words, "csv") != NULL;
    if (files > 0 && files + (json || csv) > 1) {
        (void)snprintf(why, why_size,
                       "only one of --json, --csv and files '-' can be standard output");
        return false;
    }
    for (int k = 0, i = 0; next_result(words, &k, &i, &result);)
        if (!check_ends(&result, why, why_size) || !check_alone(words, k, &result, why, why_size))
            return false;
    return true;
}

static bool check_options(const struct rfx_cli_words *words, char *why, size_t why_size) {
    const struct rfx_cli_command *command = words->command;
    const struct rfx_cli_option *row;
    const char *value;
    char item[NAME];
    for (int k = 0; (row = rfx_cli_option_at(command, k, NULL)) != NULL; ++k) {
        assert(k < RFX_CLI_MAX_OPTIONS);
        if (words->given[k] != NULL && !check_row(words, row, why, why_size)) return false;
    }
    if (command->needs != NULL && !any_given(words, command->needs, item, &value)) {
        (void)snprintf(why, why_size, "%s needs ", command->name);
        append_choice(why, why_size, command->needs, ' ', true);
        return false;
    }
    return check_results(words, why, why_size);
}

/* The command line. */

/* Returns the name of the option in a word and its length. *is_long: the word begins with two
 * dashes; otherwise the name is the one letter after a single dash. */
static const char *name_of(const char *word, size_t *length, bool *is_long) {
    *is_long = word[1] == '-';
    const char *name = word + (*is_long ? 2 : 1);
    *length = *is_long ? strcspn(name, "=") : 1;
    return name;
}

/* Writes to `why` that the command does not take this option: the option belongs to another
 * command, or is unknown; an option with a similar name is suggested. Returns false. */
static bool refuse_option(const struct rfx_cli_command *command, const char *arg, char *why,
                          size_t why_size) {
    char word[NAME]; /* no option name is longer */
    const struct rfx_cli_option *row;
    size_t length;
    bool is_long;
    const char *name = name_of(arg, &length, &is_long);
    (void)snprintf(word, sizeof word, "%.*s", length < NAME - 1 ? (int)length : NAME - 1, name);
    for (int i = 0; (length > 1 || !is_long) && rfx_cli_commands[i] != NULL; ++i) {
        int k = find_row(rfx_cli_commands[i], name, length);
        if (k < 0) continue;
        (void)snprintf(why, why_size, "option '--%s' is not one of this command's",
                       rfx_cli_option_at(rfx_cli_commands[i], k, NULL)->name);
        return false;
    }
    struct rfx_nearest nearest = {.word = word};
    for (int k = 0; (row = rfx_cli_option_at(command, k, NULL)) != NULL; ++k)
        rfx_nearest_consider(&nearest, row->name);
    if (nearest.name != NULL)
        (void)snprintf(why, why_size, "unknown option '%s': did you mean '--%s'?", arg,
                       nearest.name);
    else
        (void)snprintf(why, why_size, "unknown option '%s'", arg);
    return false;
}

/* Parses the option at argv[*i] and moves *i to the last word of the option. */
static bool parse_option(struct rfx_cli_words *words, int argc, char **argv, int *i, char *why,
                         size_t why_size) {
    char *arg = argv[*i], form[RFX_OUTPUT_ENDS + 40];
    struct rfx_cli_use use;
    size_t length;
    bool is_long;
    const char *name = name_of(arg, &length, &is_long);
    /* --m is not -m */
    int k = is_long && length == 1 ? -1 : find_row(words->command, name, length);
    if (k < 0) return refuse_option(words->command, arg, why, why_size);
    const struct rfx_cli_option *row = rfx_cli_option_at(words->command, k, &use);
    char *value = name[length] != '\0' ? arg + (is_long ? length + 3 : 2) : NULL;
    if (row->kind == RFX_CLI_FLAG && value != NULL) {
        (void)snprintf(why, why_size, "option '--%s' takes no value: '%s'", row->name, arg);
        return false;
    }
    if (row->kind != RFX_CLI_FLAG && value == NULL) {
        if (*i + 1 >= argc) {
            (void)snprintf(why, why_size, "option '--%s' needs a value: %s", row->name, row->value);
            return false;
        }
        value = argv[++*i];
    }
    if (words->given[k] != NULL && row->kind != RFX_CLI_FLAG && !rfx_cli_may_come_again(row))
        rfx_cli_message("option '--%s' is given twice: the last one counts", row->name);
    words->given[k] = value != NULL ? value : "";
    if (store(row, value, (char *)words + use.at + row->at)) return true;
    form_of(row, form, sizeof form);
    (void)snprintf(why, why_size, "option '--%s': '%s' is not %s", row->name, value, form);
    return false;
}

/* Returns the printable form of argument k. A form of more than 1023 bytes is cut. */
static const char *show(const char *arg, int k) {
    static char forms[RFX_CLI_MAX_PARTS][1024];
    if (rfx_is_printable(arg)) return arg;
    rfx_printable(arg, forms[k], sizeof forms[k]);
    return forms[k];
}

static void add_argument(struct rfx_cli_words *words, const char *arg) {
    words->shown[words->n_args] = show(arg, words->n_args);
    words->args[words->n_args++] = arg;
}

/* Turns --bands-from into the argument INPUT "bands:FILE,FILE,...". */
static bool take_bands_from(struct rfx_cli_words *words, char *why, size_t why_size) {
    static char spec[65536];
    const char *files = rfx_cli_given(words, "bands-from");
    if (files == NULL) return true;
    if (words->n_args != 1 || words->command->max_args < 2) {
        (void)snprintf(why, why_size, "--bands-from takes the place of INPUT%s",
                       words->n_args > 1 ? ": leave one of them out" : "");
        return false;
    }
    if (snprintf(spec, sizeof spec, "bands:%s", files) >= (int)sizeof spec) {
        (void)snprintf(why, why_size, "--bands-from has more than 65000 characters");
        return false;
    }
    add_argument(words, spec);
    return true;
}

/* Sets the number of threads to the processors of the process when --threads is not given. Prints a
 * message when --threads asks for far more threads than processors. */
static void settle_threads(struct rfx_cli_words *words) {
    int k = find_row(words->command, "threads", strlen("threads"));
    struct rfx_cli_use use;
    if (k < 0) return;
    const struct rfx_cli_option *row = rfx_cli_option_at(words->command, k, &use);
    struct rfx_cli_threads *threads = (void *)((char *)words + use.at + row->at);
    int64_t usable = rfx_cli_usable_processors();
    if (!threads->given) threads->n = usable;
    if (threads->n > MOST_PER_PROCESSOR * usable)
        rfx_cli_message(
            "--threads %lld: %lld processors may be used; more threads only take memory",
            (long long)threads->n, (long long)usable);
}

bool rfx_cli_options_parse(const struct rfx_cli_command *command, void *values, int argc,
                           char **argv, char *why, size_t why_size) {
    static const char *args[RFX_CLI_MAX_PARTS], *shown[RFX_CLI_MAX_PARTS];
    struct rfx_cli_words *words = values;
    bool only_args = false;
    *words = (struct rfx_cli_words){
        .command = command, .args = args, .shown = shown, .n_all = argc, .all = argv};
    for (int i = 0; i < argc; ++i) {
        const char *arg = argv[i];
        if (!only_args && strcmp(arg, "--") == 0) {
            only_args = true;
        } else if (!only_args && arg[0] == '-' && arg[1] != '\0') {
            if (!parse_option(words, argc, argv, &i, why, why_size)) return false;
        } else if (words->n_args >= command->max_args) {
            (void)snprintf(why, why_size, "one argument too many: '%s'", arg);
            return false;
        } else {
            add_argument(words, arg);
        }
    }
    settle_threads(words);
    if (words->help) return true;
    if (!take_bands_from(words, why, why_size) || !check_options(words, why, why_size))
        return false;
    if (words->n_args >= command->min_args) return true;
    (void)snprintf(why, why_size, "%s needs %d argument%s, %d given", command->name,
                   command->min_args, command->min_args == 1 ? "" : "s", words->n_args);
    return false;
}

int rfx_cli_options_words(const struct rfx_cli_words *words, const char *const *without,
                          int n_without, const char **out, int most) {
    int n = 0;
    bool only_args = false;
    for (int i = 0; i < words->n_all;) {
        const char *word = words->all[i];
        bool drop = false;
        int next = i + 1;
        only_args = only_args || strcmp(word, "--") == 0;
        if (!only_args && word[0] == '-' && word[1] != '\0') {
            size_t length;
            bool is_long;
            const char *name = name_of(word, &length, &is_long);
            int k = find_row(words->command, name, length); /* >= 0, as the option was parsed */
            const struct rfx_cli_option *row = rfx_cli_option_at(words->command, k, NULL);
            for (int w = 0; w < n_without; ++w) drop |= strcmp(row->name, without[w]) == 0;
            next += row->kind != RFX_CLI_FLAG && name[length] == '\0';
        }
        for (; i < next && i < words->n_all; ++i) {
            if (!drop && n < most) out[n] = words->all[i];
            n += !drop;
        }
    }
    return n;
}
