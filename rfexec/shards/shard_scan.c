/* Reads and checks the shards in a folder; see shard_scan.h. */
#include "rfexec/shards/shard_scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rfexec/shards/shard_json.h"
#include "rfexec/shards/shard_states.h"

/* Names of files in a folder that end in .json, without that ending. */
struct names {
    char **list; /* [n], sorted */
    size_t n;
};

static void release_names(struct rfx_memory *mem, struct names *names) {
    for (size_t i = 0; i < names->n; i++) rfx_memory_release(mem, names->list[i]);
    rfx_memory_release(mem, names->list);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds a name if it ends in .json. */
static enum rfx_status add_name(struct rfx_memory *mem, const char *name, struct names *names,
                                struct rfx_error *err) {
    size_t length = strlen(name), end = strlen(".json");
    if (length <= end || strcmp(name + length - end, ".json") != 0) return RFX_OK;
    char **grown = rfx_memory_realloc(mem, names->list, (names->n + 1) * sizeof *grown);
    if (grown == NULL) return rfx_memory_fail(mem, "names", (names->n + 1) * sizeof *grown, err);
    names->list = grown;
    char *copy = rfx_memory_strdup(mem, name);
    if (copy == NULL) return rfx_memory_fail(mem, "names", length + 1, err);
    copy[length - end] = '\0';
    names->list[names->n++] = copy;
    return RFX_OK;
}

static enum rfx_status list_names(struct rfx_memory *mem, const char *folder, struct names *names,
                                  struct rfx_error *err) {
    DIR *open = opendir(folder);
    enum rfx_status status = RFX_OK;
    if (open == NULL)
        return rfx_fail(err, RFX_STATUS_IO, "the folder cannot be read: %s", strerror(errno));
    for (struct dirent *entry; status == RFX_OK && (entry = readdir(open)) != NULL;)
        status = add_name(mem, entry->d_name, names, err);
    (void)closedir(open);
    if (names->n > 1) qsort(names->list, names->n, sizeof *names->list, by_name);
    return status;
}

/* Copies the run, with "output" added, and "about" to the item. */
static void take_run(struct rfx_shard_item *item, const json_t *run, const json_t *about,
                     const char *output) {
    item->known = true;
    item->run = json_deep_copy(run);
    (void)json_object_set_new(item->run, "output", json_string(output));
    item->about = json_deep_copy(about);
}

/* Reads and checks a file of states. */
static enum rfx_status look_at_states(struct rfx_shard_scan *scan, struct rfx_shard_item *item,
                                      struct rfx_error *err) {
    struct rfx_shard_states states;
    enum rfx_status status = rfx_shard_states_peek(scan->mem, item->path, &states, err);
    if (status != RFX_OK) return status;
    item->round = states.round;
    item->index = states.index;
    item->count = states.count;
    take_run(item, states.run, states.about, states.output);
    rfx_shard_states_release(&states);
    return rfx_shard_states_check(item->path, err);
}

/* Reads and checks a shard of the output. */
static enum rfx_status look_at_shard(struct rfx_shard_scan *scan, struct rfx_shard_item *item,
                                     struct rfx_error *err) {
    struct rfx_shard_file shard;
    enum rfx_status status = rfx_shard_file_read(item->path, &shard, err);
    if (status != RFX_OK) return status;
    const json_t *place = json_object_get(shard.about, "part");
    item->index = json_integer_value(json_array_get(place, 0));
    item->count = json_integer_value(json_array_get(place, 1));
    if (item->index < 1 || item->index > item->count) item->index = item->count = 0;
    take_run(item, shard.run, shard.about, shard.output);
    status = rfx_shard_file_check(scan->mem, item->path, &shard, err);
    rfx_shard_file_release(&shard);
    shard.run = shard.about = shard.geo = shard.grid = shard.picture = NULL;
    item->shard = shard;
    return status;
}

/* Returns the member "format" of a document, or "". */
static const char *format_of(const json_t *document) {
    const char *format = json_string_value(json_object_get(document, "format"));
    return format == NULL ? "" : format;
}

/* Adds an item for the file `path`, unless its JSON file has another format. A file that cannot be
 * read is an item too, as DAMAGED. */
static enum rfx_status look_at(struct rfx_shard_scan *scan, const char *path,
                               struct rfx_error *err) {
    struct rfx_error why = {{0}};
    json_t *document = NULL;
    struct rfx_shard_item item = {.state = RFX_SHARD_SOUND};
    enum rfx_status status = rfx_shard_json_load("part", path, &document, &why);
    bool states = status == RFX_OK && strcmp(format_of(document), "rfexec states") == 0;
    bool shard = status == RFX_OK && strcmp(format_of(document), RFX_SHARD_FORMAT) == 0;
    json_decref(document);
    if (status == RFX_OK && !states && !shard) return RFX_OK; /* a file of some other program */
    item.path = rfx_memory_strdup(scan->mem, path);
    if (item.path == NULL) return rfx_memory_fail(scan->mem, "parts", strlen(path), err);
    if (shard) status = look_at_shard(scan, &item, &why);
    if (states) status = look_at_states(scan, &item, &why);
    if (status != RFX_OK) item.state = RFX_SHARD_DAMAGED;
    (void)snprintf(item.why, sizeof item.why, "%s", why.text);
    size_t bytes = ((size_t)scan->n + 1) * sizeof *scan->items;
    struct rfx_shard_item *grown = rfx_memory_realloc(scan->mem, scan->items, bytes);
    if (grown != NULL) {
        scan->items = grown;
        scan->items[scan->n++] = item;
        return rfx_memory_check_stop(scan->mem, err);
    }
    rfx_memory_release(scan->mem, item.path);
    json_decref(item.run);
    json_decref(item.about);
    return rfx_memory_fail(scan->mem, "parts", bytes, err);
}

/* Keeps a plan.json that 'rfexec plan --parts --json' has written. */
static void take_plan(struct rfx_shard_scan *scan, const char *path) {
    json_t *document = NULL;
    if (rfx_shard_json_load("plan", path, &document, NULL) != RFX_OK) return;
    const char *command = json_string_value(json_object_get(document, "command"));
    if (command != NULL && strcmp(command, "plan") == 0 &&
        json_is_integer(json_object_get(document, "part_count")))
        scan->plan = document;
    else
        json_decref(document);
}

enum rfx_status rfx_shard_scan_read(struct rfx_memory *mem, const char *folder,
                                    struct rfx_shard_scan *out, struct rfx_error *err) {
    struct names names = {NULL, 0};
    char path[RFX_SHARD_PATH_CHARS];
    *out = (struct rfx_shard_scan){.mem = mem, .folder = folder};
    enum rfx_status status = list_names(mem, folder, &names, err);
    for (size_t i = 0; i < names.n && status == RFX_OK; i++) {
        int n = snprintf(path, sizeof path, "%s/%s", folder, names.list[i]);
        if (n < 0 || (size_t)n >= sizeof path) continue;
        if (strcmp(names.list[i], "plan") == 0) take_plan(out, path);
        if (access(path, F_OK) == 0) status = look_at(out, path, err);
    }
    release_names(mem, &names);
    return status;
}

void rfx_shard_scan_release(struct rfx_shard_scan *scan) {
    for (int i = 0; i < scan->n; i++) {
        rfx_memory_release(scan->mem, scan->items[i].path);
        json_decref(scan->items[i].run);
        json_decref(scan->items[i].about);
    }
    if (scan->mem != NULL) rfx_memory_release(scan->mem, scan->items);
    json_decref(scan->plan);
}

/* Returns whether an item is undamaged and of this kind; see rfx_shard_scan_settle. */
static bool is_of_kind(const struct rfx_shard_item *item, int round, bool merged) {
    return item->state == RFX_SHARD_SOUND && item->round == round &&
           (round == 0 || merged == (item->count == 0));
}

static bool are_alike(const struct rfx_shard_item *a, const struct rfx_shard_item *b) {
    return a->count == b->count && json_equal(a->run, b->run);
}

/* Marks an item as OTHER. Writes to item->why how it differs from the majority, of which `most` is
 * one: the member of "run", or the number of shards. */
static void tell_other(const struct rfx_shard_item *most, struct rfx_shard_item *item) {
    const char *key, *found = NULL;
    json_t *value;
    json_object_foreach(most->run, key, value) {
        if (found == NULL && !json_equal(value, json_object_get(item->run, key))) found = key;
    }
    item->state = RFX_SHARD_OTHER;
    if (found != NULL || most->count == item->count)
        (void)snprintf(item->why, sizeof item->why,
                       "is not of one run with '%.200s': their '%.40s' differs", most->path,
                       found != NULL ? found : "states");
    else
        (void)snprintf(item->why, sizeof item->why, "is part %lld of %lld; '%.200s' is one of %lld",
                       (long long)item->index, (long long)item->count, most->path,
                       (long long)most->count);
}

const struct rfx_shard_item *rfx_shard_scan_settle(struct rfx_shard_scan *scan, int round,
                                                   bool merged) {
    const struct rfx_shard_item *most = NULL;
    int votes = 0;
    for (int i = 0; i < scan->n; i++) { /* majority vote: `most` has the run of more than half of
                                           the items, if there is one */
        const struct rfx_shard_item *item = &scan->items[i];
        if (!is_of_kind(item, round, merged)) continue;
        if (votes == 0) most = item;
        votes += are_alike(most, item) ? 1 : -1;
    }
    for (int i = 0; most != NULL && i < scan->n; i++)
        if (is_of_kind(&scan->items[i], round, merged) && !are_alike(most, &scan->items[i]))
            tell_other(most, &scan->items[i]);
    return most;
}
