/* rfexec merge --status: reports the state of a folder of shards, stage by stage. First come the
 * rounds of states; each round is merged before the next round begins. The last stage is the shards
 * of the output. There are no such shards when merge computes the output from the last round. */
#include "tools/commands/command_forms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/printable.h"
#include "rfexec/shards/shard_file.h"
#include "rfexec/shards/shard_scan.h"
#include "tools/cli/command.h"
#include "tools/cli/report.h"

/* Largest accepted number of shards. A damaged file may contain any number. */
#define MOST_PARTS 1000000

/* The shards of one round, or of the output. */
struct stage {
    int round; /* 0: the output */
    int64_t count;
    const struct rfx_shard_item *first; /* the first undamaged shard; NULL: none */
    struct rfx_shard_item *parts;       /* [count]; the stage owns the paths, the scan the rest */
    bool complete;
};

struct status {
    const struct rfx_merge_options *options;
    struct rfx_shard_scan scan;
    int rounds;     /* of states; -1: not known */
    bool by_merge;  /* merge computes the output from the last round */
    int64_t count;  /* number of shards; 0: not known */
    json_t *words;  /* words of the command that computes shards; borrowed; NULL: not known */
    char *merged;   /* file of the last merged round, or the --states file of existing shards */
    json_t *listed; /* all shards, for --json */
    json_t *commands;
    bool complete;
};

static const char *name_of_state(enum rfx_shard_condition state) {
    static const char *const names[] = {[RFX_SHARD_MISSING] = "missing",
                                        [RFX_SHARD_SOUND] = "there",
                                        [RFX_SHARD_DAMAGED] = "damaged",
                                        [RFX_SHARD_OTHER] = "in the way"};
    return names[state];
}

/* Returns whether a word needs no quotes in a shell. */
static bool is_plain(const char *word) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "_./:=,+@%-";
    return *word != '\0' && strspn(word, plain) == strlen(word);
}

static void put_word(FILE *to, const char *word) {
    if (ftell(to) > 0) fputc(' ', to);
    if (is_plain(word)) {
        fputs(word, to);
        return;
    }
    fputc('\'', to);
    for (const char *p = word; *p != '\0'; p++)
        if (*p == '\'')
            fputs("'\\''", to);
        else
            fputc(*p, to);
    fputc('\'', to);
}

/* Writes a file name; "./" keeps a leading minus from looking like an option. */
static void put_file(FILE *to, const char *path) {
    char name[RFX_SHARD_PATH_CHARS + 2];
    (void)snprintf(name, sizeof name, "%s%s", path[0] == '-' ? "./" : "", path);
    put_word(to, name);
}

/* Closes the memory stream to which a command was written, and appends its text to s->commands. */
static void end_command(struct status *s, FILE *to, char **text) {
    if (fclose(to) != 0 || *text == NULL)
        rfx_report_note_no_memory();
    else if (json_array_append_new(s->commands, json_string(*text)) != 0)
        rfx_cli_message("a command is left out, as a name in it is not UTF-8");
    free(*text);
}

static FILE *begin_command(const char *name, char **text, size_t *size) {
    FILE *to = open_memstream(text, size);
    if (to == NULL) {
        rfx_report_note_no_memory();
        return NULL;
    }
    put_word(to, "rfexec");
    put_word(to, name);
    return to;
}

static void add_run(struct status *s, const struct stage *stage, int64_t i) {
    char *text = NULL, share[64];
    size_t size, at;
    json_t *word;
    FILE *to = s->words != NULL ? begin_command("run", &text, &size) : NULL;
    if (to == NULL) return;
    (void)snprintf(share, sizeof share, "%" PRId64 "/%" PRId64, i + 1, stage->count);
    put_word(to, "--part");
    put_word(to, share);
    put_word(to, "-o");
    put_file(to, stage->parts[i].path);
    if (s->merged != NULL) put_word(to, "--states");
    if (s->merged != NULL) put_file(to, s->merged);
    json_array_foreach(s->words, at, word) put_word(to, json_string_value(word));
    end_command(s, to, &text);
}

static void add_merge(struct status *s, const struct stage *stage, const char *output) {
    char *text = NULL;
    size_t size;
    FILE *to = begin_command("merge", &text, &size);
    if (to == NULL) return;
    put_word(to, "-o");
    put_file(to, output);
    for (int64_t i = 0; i < stage->count; i++) put_file(to, stage->parts[i].path);
    end_command(s, to, &text);
}

/* Returns the last place in a file name where the number `index` stands, and the length of its
 * digits. */
static const char *find_number(const char *path, int64_t index, size_t *length) {
    const char *base = strrchr(path, '/'), *found = NULL;
    for (const char *p = base == NULL ? path : base + 1; *p != '\0';) {
        size_t n = strspn(p, "0123456789");
        if (n > 0 && n < 10 && strtoll(p, NULL, 10) == index) {
            found = p;
            *length = n;
        }
        p += n > 0 ? n : 1;
    }
    return found;
}

/* Returns a file name for shard `index`, made from the name of another shard of the stage by
 * replacing its number. */
static char *name_part(const struct status *s, const struct stage *stage, int64_t index) {
    char path[RFX_SHARD_PATH_CHARS];
    size_t length = 0;
    const char *like = stage->first != NULL ? stage->first->path : NULL;
    const char *at = like != NULL ? find_number(like, stage->first->index, &length) : NULL;
    if (at != NULL)
        (void)snprintf(path, sizeof path, "%.*s%0*" PRId64 "%s", (int)(at - like), like,
                       *at == '0' ? (int)length : 1, index, at + length);
    else if (stage->round > 0 && stage->round < s->rounds + !s->by_merge)
        (void)snprintf(path, sizeof path, "%s/round%d.part%" PRId64 ".states", s->scan.folder,
                       stage->round, index);
    else
        (void)snprintf(path, sizeof path, "%s/part%" PRId64 ".%s", s->scan.folder, index,
                       stage->round > 0 ? "states" : "npy");
    return rfx_memory_strdup(s->scan.mem, path);
}

static bool is_in(const struct stage *stage, const struct rfx_shard_item *item) {
    return item->known && item->round == stage->round && item->count == stage->count &&
           item->index >= 1;
}

/* Returns the best file of shard `index`: preferably an undamaged one, else a damaged one, else one
 * of another run. */
static const struct rfx_shard_item *find_part(const struct status *s, const struct stage *stage,
                                              int64_t index) {
    const struct rfx_shard_item *best = NULL;
    for (int i = 0; i < s->scan.n; i++) {
        const struct rfx_shard_item *item = &s->scan.items[i];
        if (!is_in(stage, item) || item->index != index) continue;
        if (best == NULL || item->state < best->state) best = item;
    }
    return best;
}

/* Returns the scan's item for the file `path`, in whatever condition the file is. */
static const struct rfx_shard_item *find_file(const struct status *s, const char *path) {
    for (int i = 0; i < s->scan.n; i++)
        if (strcmp(s->scan.items[i].path, path) == 0) return &s->scan.items[i];
    return NULL;
}

static void look_at_part(const struct status *s, const struct stage *stage, int64_t index,
                         struct rfx_shard_item *part) {
    const struct rfx_shard_item *found = find_part(s, stage, index);
    part->path =
        found != NULL ? rfx_memory_strdup(s->scan.mem, found->path) : name_part(s, stage, index);
    if (part->path == NULL) return;
    if (found == NULL) found = find_file(s, part->path);
    part->index = index;
    if (found != NULL) {
        part->state = found->state == RFX_SHARD_SOUND && !is_in(stage, found) ? RFX_SHARD_OTHER
                                                                              : found->state;
        (void)snprintf(part->why, sizeof part->why, "%s",
                       found->why[0] == '\0' && part->state != RFX_SHARD_SOUND
                           ? "is another part of the run"
                           : found->why);
    } else if (access(part->path, F_OK) == 0) {
        part->state = RFX_SHARD_OTHER;
        (void)snprintf(part->why, sizeof part->why, "is not a part, as it has no JSON beside it");
    }
}

static enum rfx_status look_at_stage(struct status *s, int round, struct stage *stage,
                                     struct rfx_error *err) {
    struct rfx_memory *mem = s->scan.mem;
    *stage = (struct stage){.round = round, .first = rfx_shard_scan_settle(&s->scan, round, false)};
    stage->count = stage->first != NULL ? stage->first->count : s->count;
    if (stage->count < 1 || stage->count > MOST_PARTS) return RFX_OK;
    stage->parts = rfx_memory_calloc(mem, (size_t)stage->count, sizeof *stage->parts);
    if (stage->parts == NULL)
        return rfx_memory_fail(mem, "parts", (size_t)stage->count * sizeof *stage->parts, err);
    stage->complete = true;
    for (int64_t i = 0; i < stage->count; i++) {
        look_at_part(s, stage, i + 1, &stage->parts[i]);
        if (stage->parts[i].path == NULL) return rfx_memory_fail(mem, "parts", 1, err);
        stage->complete &= stage->parts[i].state == RFX_SHARD_SOUND;
    }
    return RFX_OK;
}

static void release_stage(const struct status *s, struct stage *stage) {
    for (int64_t i = 0; stage->parts != NULL && i < stage->count; i++)
        rfx_memory_release(s->scan.mem, stage->parts[i].path);
    rfx_memory_release(s->scan.mem, stage->parts);
}

static void list_part(struct status *s, const struct stage *stage,
                      const struct rfx_shard_item *part) {
    char path[RFX_SHARD_PATH_CHARS];
    rfx_printable(part->path, path, sizeof path);
    json_t *entry = json_pack("{s:s, s:[I,I], s:i, s:s}", "file", path, "part",
                              (json_int_t)part->index, (json_int_t)stage->count, "round",
                              stage->round, "state", name_of_state(part->state));
    if (part->why[0] != '\0') (void)json_object_set_new(entry, "why", json_string(part->why));
    (void)json_array_append_new(s->listed, entry);
}

/* Prints the numbers of the shards in one state, such as "there 1 to 3, 5". Returns false when no
 * shard is in this state. */
static bool print_numbers(const struct stage *stage, enum rfx_shard_condition state, bool more) {
    bool any = false;
    for (int64_t i = 0; i < stage->count; i++) {
        int64_t first = i;
        if (stage->parts[i].state != state) continue;
        while (i + 1 < stage->count && stage->parts[i + 1].state == state) i++;
        if (any)
            printf(", ");
        else
            printf("%s%s ", more ? "; " : "", name_of_state(state));
        printf(i > first ? "%" PRId64 " to %" PRId64 : "%" PRId64, first + 1, i + 1);
        any = true;
    }
    return any;
}

static void print_stage(const struct stage *stage) {
    char name[32];
    bool more = false;
    (void)snprintf(name, sizeof name, stage->round > 0 ? "round %d" : "output", stage->round);
    printf("%-10s ", name);
    for (int state = RFX_SHARD_MISSING; state <= RFX_SHARD_OTHER; state++)
        more |= print_numbers(stage, (enum rfx_shard_condition)state, more);
    printf(", of %" PRId64 "\n", stage->count);
    for (int64_t i = 0; i < stage->count; i++) {
        char path[RFX_SHARD_PATH_CHARS];
        rfx_printable(stage->parts[i].path, path, sizeof path);
        if (stage->parts[i].state == RFX_SHARD_DAMAGED) printf("  %s\n", stage->parts[i].why);
        if (stage->parts[i].state == RFX_SHARD_OTHER)
            printf("  %s %s: move it away first\n", path, stage->parts[i].why);
    }
}

/* Lists a stage, and the commands that make its missing shards. */
static void tell_stage(struct status *s, const struct stage *stage) {
    if (!s->options->json) print_stage(stage);
    for (int64_t i = 0; i < stage->count; i++) {
        list_part(s, stage, &stage->parts[i]);
        if (stage->parts[i].state != RFX_SHARD_SOUND) add_run(s, stage, i);
    }
}

/* Checks whether shards without numbers (--part-rect) cover the output. The error names the missing
 * part. */
static enum rfx_status check_rectangles(struct status *s, struct rfx_error *err) {
    size_t n = (size_t)s->scan.n;
    struct rfx_shard_file *files = rfx_memory_calloc(s->scan.mem, n, sizeof *files);
    const char **paths = rfx_memory_calloc(s->scan.mem, n, sizeof *paths);
    enum rfx_status status =
        files != NULL && paths != NULL ? RFX_OK : rfx_memory_fail(s->scan.mem, "parts", n, err);
    int found = 0;
    for (int i = 0; i < s->scan.n && status == RFX_OK; i++) {
        const struct rfx_shard_item *item = &s->scan.items[i];
        bool counts = item->known && item->round == 0 && item->state == RFX_SHARD_SOUND;
        if (counts) files[found] = item->shard;
        if (counts) paths[found++] = item->path;
    }
    if (status == RFX_OK) status = rfx_shards_check_cover(files, paths, found, err);
    s->complete = status == RFX_OK;
    if (!s->options->json)
        printf("output     %d parts without numbers, of --part-rect or an earlier version\n",
               found);
    rfx_memory_release(s->scan.mem, files);
    rfx_memory_release(s->scan.mem, paths);
    return status;
}

static int integer_of(const json_t *object, const char *key, int otherwise) {
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_integer_value(value);
    return json_is_integer(value) && number >= 0 && number <= MOST_PARTS ? (int)number : otherwise;
}

/* Takes the number of rounds, the number of shards and the command from plan.json, or, without that
 * file, from the shards. */
static void learn_from_plan(struct status *s) {
    const json_t *plan = s->scan.plan;
    s->by_merge = json_is_true(json_object_get(plan, "last_by_merge"));
    s->rounds = integer_of(plan, "rounds", 0) - !s->by_merge;
    s->count = integer_of(plan, "part_count", 0);
    s->words = json_object_get(plan, "words");
}

static void learn_from_item(struct status *s, const struct rfx_shard_item *item) {
    if (item->state != RFX_SHARD_SOUND) return;
    if (s->words == NULL) s->words = json_object_get(item->about, "words");
    if (s->count == 0) s->count = item->count;
    if (item->round == 0) return;
    int rounds = integer_of(item->about, "rounds", -1);
    if (rounds >= item->round && s->rounds < rounds) {
        s->rounds = rounds;
        s->by_merge = json_is_true(json_object_get(item->about, "last_by_merge"));
    }
}

static void learn(struct status *s) {
    bool outputs = false;
    s->rounds = -1;
    if (s->scan.plan != NULL) learn_from_plan(s);
    for (int i = 0; i < s->scan.n; i++) {
        const struct rfx_shard_item *item = &s->scan.items[i];
        learn_from_item(s, item);
        outputs |= item->known && item->round == 0;
    }
    if (s->rounds < 0 && outputs) s->rounds = 0;
    if (!json_is_array(s->words)) s->words = NULL;
}

static bool set_merged(struct status *s, const char *path) {
    rfx_memory_release(s->scan.mem, s->merged);
    s->merged = rfx_memory_strdup(s->scan.mem, path);
    return s->merged != NULL;
}

/* Finds the last round whose states are merged. */
static int find_merged(struct status *s) {
    for (int round = s->rounds; round > 0; round--) {
        const struct rfx_shard_item *found = rfx_shard_scan_settle(&s->scan, round, true);
        if (found == NULL || !set_merged(s, found->path)) continue;
        return round;
    }
    return 0;
}

/* Reports the rounds that must be made and merged before the last stage. */
static enum rfx_status tell_rounds(struct status *s, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    char output[RFX_SHARD_PATH_CHARS];
    int from = find_merged(s);
    if (from > 0 && !s->options->json)
        printf("%-10s merged up to round %d of %d\n", "states", from, s->rounds);
    for (int round = from + 1; round <= s->rounds - s->by_merge && status == RFX_OK; round++) {
        struct stage stage;
        status = look_at_stage(s, round, &stage, err);
        (void)snprintf(output, sizeof output, "%s/round%d.states", s->scan.folder, round);
        if (status == RFX_OK) {
            tell_stage(s, &stage);
            add_merge(s, &stage, output);
            if (!set_merged(s, output)) status = rfx_memory_fail(s->scan.mem, "parts", 1, err);
        }
        release_stage(s, &stage);
    }
    return status;
}

/* When the folder has no merged states, uses the --states file with which the shards of the output
 * were computed. */
static void take_given_states(struct status *s, const struct stage *last) {
    const json_t *given =
        last->first != NULL ? json_object_get(last->first->about, "states") : NULL;
    if (s->merged == NULL && json_is_string(given) && access(json_string_value(given), F_OK) == 0)
        (void)set_merged(s, json_string_value(given));
}

static enum rfx_status tell_all(struct status *s, struct rfx_error *err) {
    struct stage last;
    enum rfx_status status = look_at_stage(s, s->by_merge ? s->rounds : 0, &last, err);
    bool rectangles = status == RFX_OK && last.first != NULL && last.count == 0;
    if (status == RFX_OK && !rectangles && !last.complete) status = tell_rounds(s, err);
    if (rectangles) status = check_rectangles(s, err);
    if (status == RFX_OK && !rectangles) {
        take_given_states(s, &last);
        tell_stage(s, &last);
        add_merge(s, &last, "FILE");
        s->complete = last.complete;
    }
    release_stage(s, &last);
    return status;
}

/* Prints a message for each file that is not recognised. */
static void tell_unknown(const struct status *s) {
    for (int i = 0; i < s->scan.n; i++)
        if (!s->scan.items[i].known) rfx_cli_message("%s", s->scan.items[i].why);
}

static int print_result(struct status *s) {
    size_t at;
    json_t *command;
    if (s->options->json) {
        char folder[RFX_SHARD_PATH_CHARS];
        rfx_printable(s->options->status, folder, sizeof folder);
        json_t *document = json_pack("{s:i, s:s, s:s, s:b, s:O, s:O}", "schema", RFX_JSON_SCHEMA,
                                     "command", "merge", "status", folder, "complete", s->complete,
                                     "parts", s->listed, "commands", s->commands);
        int code = rfx_report_print(document);
        return code != RFX_EXIT_DONE || s->complete ? code : RFX_EXIT_REFUSED;
    }
    printf(s->complete ? "complete   this puts the parts together:\n"
                       : "commands   that make the rest, in this order:\n");
    json_array_foreach(s->commands, at, command) {
        const char *text = json_string_value(command);
        char *shown = rfx_printable_copy(s->scan.mem, text);
        printf("  %s\n", shown != NULL ? shown : text);
        rfx_memory_release(s->scan.mem, shown);
    }
    return s->complete ? RFX_EXIT_DONE : RFX_EXIT_REFUSED;
}

static int refuse_unknown(const struct status *s) {
    if (s->scan.n == 0 && s->scan.plan == NULL)
        rfx_cli_message(
            "--status '%s': there is no part, and no plan.json that run_parts.sh writes first: "
            "nothing tells model, input, options and number of parts",
            s->options->status);
    else
        rfx_cli_message(
            "--status '%s': no part that is sound says how many there are, and there is no "
            "plan.json that run_parts.sh writes first",
            s->options->status);
    return RFX_EXIT_REFUSED;
}

static void tell_lack(const struct status *s) {
    if (s->words == NULL && !s->complete)
        rfx_cli_message(
            "the parts do not say which command made them (an earlier version did): "
            "the commands that make the others are not known");
}

static int tell(struct status *s) {
    struct rfx_error err = {{0}};
    learn(s);
    tell_unknown(s);
    bool rectangles = rfx_shard_scan_settle(&s->scan, 0, false) != NULL;
    if (s->rounds < 0 || (s->count == 0 && !rectangles)) return refuse_unknown(s);
    enum rfx_status status = tell_all(s, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    tell_lack(s);
    return print_result(s);
}

int rfx_merge_status(const struct rfx_merge_options *options, struct rfx_memory *mem) {
    struct status s = {.options = options, .listed = json_array(), .commands = json_array()};
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_shard_scan_read(mem, options->status, &s.scan, &err);
    if (status != RFX_OK)
        status = rfx_fail_within(&err, status, "--status '%.300s'", options->status);
    int code = status == RFX_OK ? tell(&s) : rfx_cli_fail(status, &err);
    rfx_memory_release(mem, s.merged);
    json_decref(s.listed);
    json_decref(s.commands);
    rfx_shard_scan_release(&s.scan);
    return code;
}
