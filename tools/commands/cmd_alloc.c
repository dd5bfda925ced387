/* rfexec alloc: packs a placement problem given as CSV. Uses one strategy, or all strategies and
 * keeps the best result. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rfexec/output/output_file.h"
#include "tiler/arena/greedy_packers.h"
#include "tiler/arena/packer.h"
#include "tools/cli/command.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/study/placement_chart.h"
#include "tools/study/placement_csv.h"

struct alloc_job {
    struct rfx_place_table *table;
    struct rfx_place_problem *problem;
    size_t *offsets;
    struct rfx_packer_result result;
};

struct alloc_options {
    struct rfx_cli_words words;
    const char *strategy;  /* NULL: the best */
    size_t capacity_bytes; /* 0: not given */
    float time_limit;      /* seconds; 0: not given */
    struct rfx_cli_threads threads;
    const char *file, *plot;
    bool json;
};

/* The names of --strategy: "best", the greedy strategies, then names of searches. */
enum { NAME_BEST, NAME_GREEDY, NAME_SEARCH = NAME_GREEDY + RFX_GREEDY_COUNT };

/* Names of the exact search. "exact" is the current name. The other names meant separate searches
 * in earlier versions; they now mean the exact search. */
static const char *const searches[] = {"exact",     "tight",   "loose",    "fronts", "sections",
                                       "canonical", "skyline", "overlaps", "clauses"};
enum { N_SEARCHES = sizeof searches / sizeof *searches };

static const char *strategy_name(int k) {
    if (k == NAME_BEST) return "best";
    if (k < NAME_SEARCH) return rfx_greedy_name((enum rfx_greedy_packer)(k - 1));
    return searches[k - NAME_SEARCH];
}

/* Sets *out to the strategy of a name; NULL: the best strategy. */
static enum rfx_status find_strategy(const char *name, int *out, struct rfx_error *err) {
    char names[256] = "";
    size_t used = 0;
    *out = NAME_BEST;
    if (name == NULL) return RFX_OK;
    for (int k = 0; k < NAME_SEARCH + N_SEARCHES; k++) {
        const char *known = strategy_name(k);
        if (strcmp(name, known) == 0) {
            *out = k;
            if (k > NAME_SEARCH)
                rfx_cli_message(
                    "option '--strategy': there is one search now: '%s' is taken for "
                    "'exact'",
                    name);
            return RFX_OK;
        }
        if (k > NAME_SEARCH) continue;
        int n = snprintf(names + used, sizeof names - used, "%s%s", k > 0 ? ", " : "", known);
        used += n > 0 ? (size_t)n : 0;
    }
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "option '--strategy': '%s' is none of %s",
                    name, names);
}

static bool must_stop(void *user, int64_t done_ns) {
    struct rfx_cli_progress *progress = user;
    return rfx_cli_progress_step(progress, done_ns, progress->limit_ns) != 0;
}

/* Runs the greedy strategies and the exact search on the threads of --threads, within the time
 * limit of --time-limit. */
static enum rfx_status search(const struct alloc_options *options, struct alloc_job *job,
                              struct rfx_error *err) {
    struct rfx_cli_progress progress;
    struct rfx_packer_limits limits = {.time_ns = RFX_CLI_PACK_TIME_NS,
                                       .target_bytes = options->capacity_bytes,
                                       .threads = (int)options->threads.n,
                                       .must_stop = must_stop,
                                       .user = &progress};
    if (options->time_limit > 0) limits.time_ns = (int64_t)((double)options->time_limit * 1e9);
    rfx_cli_progress_start(&progress, "packing");
    progress.limit_ns = limits.time_ns;
    enum rfx_status status =
        rfx_packer_solve(job->problem, &limits, job->offsets, &job->result, err);
    rfx_cli_progress_end(&progress);
    return status;
}

static enum rfx_status pack(struct rfx_memory *mem, const struct alloc_options *options,
                            struct alloc_job *job, struct rfx_error *err) {
    int strategy;
    enum rfx_status status = find_strategy(options->strategy, &strategy, err);
    if (status == RFX_OK)
        status = rfx_place_table_read(mem, options->words.args[0], &job->table, err);
    if (status == RFX_OK)
        status =
            rfx_place_problem_create(mem, job->table->items, job->table->n, &job->problem, err);
    if (status != RFX_OK) return status;
    size_t n = (size_t)job->table->n;
    job->offsets = rfx_memory_calloc(mem, n, sizeof *job->offsets);
    if (job->offsets == NULL) return rfx_memory_fail(mem, "offsets", n * sizeof *job->offsets, err);
    struct rfx_packer_result *result = &job->result;
    if (strategy == NAME_BEST || strategy >= NAME_SEARCH) {
        status = search(options, job, err);
    } else {
        result->method = strategy_name(strategy);
        result->lower_bound_bytes = job->problem->lower_bound;
        status = rfx_greedy_place(job->problem, (enum rfx_greedy_packer)(strategy - NAME_GREEDY),
                                  NULL, job->offsets, &result->arena_bytes, err);
        result->optimal = result->arena_bytes == result->lower_bound_bytes;
    }
    if (status != RFX_OK) return status;
    /* Checked in every build, as the program must never print a wrong answer. */
    if (!rfx_place_answer_is_valid(job->table->items, job->table->n, job->offsets,
                                   result->arena_bytes))
        return rfx_place_fail_check(result->method, job->table->n, err);
    return RFX_OK;
}

/* Checks that the answer fits --capacity. If not, the error text tells whether it is proven that no
 * packing fits. */
static enum rfx_status check_capacity(const struct alloc_job *job, size_t capacity,
                                      struct rfx_error *err) {
    const struct rfx_packer_result *result = &job->result;
    if (capacity == 0 || result->arena_bytes <= capacity) return RFX_OK;
    if (result->lower_bound_bytes > capacity)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "no placement fits %zu bytes: at least %zu are needed (proven), %zu are "
                        "enough (%s)",
                        capacity, result->lower_bound_bytes, result->arena_bytes, result->method);
    return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                    "no placement into %zu bytes found, but it is not proven that there is none: "
                    "%zu bytes are enough (%s), the proven bound is %zu",
                    capacity, result->arena_bytes, result->method, result->lower_bound_bytes);
}

static enum rfx_status write_file(struct rfx_memory *mem, const struct alloc_job *job,
                                  const char *path, struct rfx_error *err) {
    struct rfx_output_file *file = NULL;
    enum rfx_status status = rfx_output_file_open(mem, path, &file, err);
    if (status != RFX_OK) return status;
    int copy = fcntl(rfx_output_file_descriptor(file), F_DUPFD_CLOEXEC, 3);
    FILE *stream = copy >= 0 ? fdopen(copy, "wb") : NULL;
    bool good = stream != NULL && rfx_place_table_write(job->table, job->offsets, stream);
    if (!good)
        status = rfx_fail(err, RFX_STATUS_IO, "cannot write '%s': %s", path, strerror(errno));
    if (stream != NULL)
        (void)fclose(stream); /* flushed */
    else if (copy >= 0)
        (void)close(copy);
    if (status == RFX_OK) status = rfx_output_file_commit(file, err);
    rfx_output_file_free(file);
    return status;
}

/* Draws the packing to the file of --plot. */
static enum rfx_status draw(struct rfx_memory *mem, const struct alloc_options *options,
                            const struct alloc_job *job, struct rfx_error *err) {
    const char *slash = strrchr(options->words.shown[0], '/');
    struct rfx_placement_drawing picture = {
        .subject = slash != NULL ? slash + 1 : options->words.shown[0],
        .items = "items",
        .problem = job->problem,
        .offsets = job->offsets,
        .result = &job->result,
        .names = job->table->ids};
    return rfx_placement_chart_write(mem, &picture, options->plot, err);
}

static json_t *items_json(const struct alloc_job *job) {
    json_t *items = json_array();
    for (int i = 0; i < job->table->n; i++) {
        const struct rfx_place_item *item = &job->table->items[i];
        json_t *row = json_pack("{s:s%, s:I, s:I, s:I, s:I, s:I}", "id", job->table->ids[i],
                                strlen(job->table->ids[i]), "lower", (json_int_t)item->lo, "upper",
                                (json_int_t)item->hi, "size", (json_int_t)item->size, "alignment",
                                (json_int_t)item->alignment, "offset", (json_int_t)job->offsets[i]);
        (void)json_array_append_new(items, row);
    }
    return items;
}

static int report(const struct alloc_options *options, const struct alloc_job *job,
                  const struct rfx_error *refusal) {
    const struct rfx_packer_result *result = &job->result;
    if (!options->json) {
        if (refusal != NULL) return RFX_EXIT_DONE;
        if (options->file == NULL) {
            if (!rfx_place_table_write(job->table, job->offsets, stdout)) return RFX_EXIT_SYSTEM;
        }
        rfx_cli_message("%d items in %zu bytes (%s); lower bound %zu%s; one beside the other %zu",
                        job->table->n, result->arena_bytes, result->method,
                        result->lower_bound_bytes, result->optimal ? ", so none is smaller" : "",
                        job->problem->sum_bytes);
        return RFX_EXIT_DONE;
    }
    json_t *document = rfx_report_document("alloc", NULL);
    (void)json_object_update_new(
        document, json_pack("{s:s, s:i, s:s, s:I, s:I, s:I, s:b, s:I, s:o}", "problem",
                            options->words.shown[0], "count", job->table->n, "strategy",
                            result->method, "arena_bytes", (json_int_t)result->arena_bytes,
                            "lower_bound_bytes", (json_int_t)result->lower_bound_bytes, "sum_bytes",
                            (json_int_t)job->problem->sum_bytes, "optimal", result->optimal,
                            "nodes", (json_int_t)result->nodes, "items", items_json(job)));
    if (refusal != NULL)
        (void)json_object_update_new(
            document, json_pack("{s:s, s:I, s:b}", "error", refusal->text, "capacity_bytes",
                                (json_int_t)options->capacity_bytes, "proven",
                                result->lower_bound_bytes > options->capacity_bytes));
    return rfx_report_print(document);
}

static int run(void *given) {
    const struct alloc_options *options = given;
    struct rfx_memory *mem = rfx_cli_memory_create();
    struct alloc_job job = {0};
    struct rfx_error err = {{0}};
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    int code = RFX_EXIT_DONE;
    enum rfx_status status = pack(mem, options, &job, &err);
    if (status == RFX_OK) {
        status = check_capacity(&job, options->capacity_bytes, &err);
        bool fits = status == RFX_OK;
        if (fits && options->file != NULL) status = write_file(mem, &job, options->file, &err);
        if (fits && status == RFX_OK && options->plot != NULL)
            status = draw(mem, options, &job, &err);
        if (fits == (status == RFX_OK)) code = report(options, &job, fits ? NULL : &err);
    }
    if (status != RFX_OK) code = rfx_cli_fail(status, &err);
    rfx_memory_release(mem, job.offsets);
    rfx_place_problem_free(job.problem);
    rfx_place_table_free(job.table);
    rfx_memory_free(mem);
    return code;
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(
        alloc_options, "strategy", TEXT, strategy, "NAME",
        "a greedy packer: by-size, by-breadth, strip-packing, first-fit, best-fit, longer-first or "
        "bigger-first; or best, exact: the best of them, improved by an exact search (default)"),
    RFX_CLI_OPTION(alloc_options, "capacity", BYTES, capacity_bytes, "BYTES",
                   "size of the arena: stop as soon as it is known whether all buffers fit"),
    RFX_CLI_OPTION(alloc_options, "time-limit", FLOAT, time_limit, "SECONDS",
                   "longest time to search (default 10)"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("packing options", rows);

static const struct rfx_cli_option result_rows[] = {
    RFX_CLI_OPTION(alloc_options, "output", RESULT, file, "FILE",
                   "write the table with offsets to this file instead of standard output",
                   .letter = 'o'),
    RFX_CLI_OPTION(alloc_options, "plot", RESULT, plot, "FILE",
                   "draw the placement: time across, address up", .ends = ".svg .png"),
};
static const struct rfx_cli_group results = RFX_CLI_GROUP("result options", result_rows);

static struct alloc_options values;

static const struct rfx_cli_use uses[] = {
    {&group, 0},
    RFX_CLI_USE(threads, alloc_options, threads),
    {&results, 0},
    RFX_CLI_USE(json, alloc_options, json),
};

const struct rfx_cli_command rfx_cmd_alloc = {
    .name = "alloc",
    .args =
        "PROBLEM.csv [--strategy NAME] [--capacity BYTES] [--time-limit SECONDS] [-o FILE] "
        "[--plot FILE] [--json]",
    .summary = "pack buffers of given sizes and lifetimes into one arena",
    .details =
        "Each item needs size bytes from time lower up to, not including, time upper.\n"
        "PROBLEM.csv:\n"
        "  id,lower,upper,size,alignment      the column alignment may be left out\n"
        "  a,0,2,4096,64\n"
        "  b,1,3,1024,64\n"
        "The result is the same table with an offset for each item. Without --strategy the best\n"
        "greedy placement is taken; where it is above the lower bound, an exact search on all\n"
        "processors improves it for at most --time-limit seconds. With more than 4,096 items\n"
        "there is no search. tight, loose, fronts, sections, canonical, skyline, overlaps and\n"
        "clauses named other searches in earlier versions and mean exact. The exit code is 4 when\n"
        "the items do not fit --capacity; the message says whether this is proven. A signal ends\n"
        "the search with exit code 5 and no result.\n",
    .examples =
        "rfexec alloc problem.csv -o placed.csv --plot placed.svg\n"
        "rfexec alloc problem.csv --strategy by-size --json\n"
        "rfexec alloc problem.csv --capacity 1MiB\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = 1,
    .values = &values,
    .run = run,
};
