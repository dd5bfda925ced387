/* rfexec run --list. Network, plan and run are kept from one image to the next as long as the
 * images are alike (kept_run.h).
 *
 * A result gets its name when it is complete, so a result that exists need not be computed again.
 */
#include "tools/commands/command_forms.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/clock.h"
#include "layers/core/printable.h"
#include "rfexec/run/run.h"
#include "tools/cli/job.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/commands/batch_list.h"
#include "tools/commands/kept_run.h"
#include "tools/commands/list_table.h"

struct batch {
    const struct rfx_cli_run_options *options; /* options of the command */
    struct rfx_cli_run_options one;            /* options for running one image */
    struct rfx_batch_list list;
    struct rfx_list_table table;
    struct rfx_kept_run kept; /* for images of one size */
    char result[PATH_MAX];    /* path of the result of the current image */
    size_t done, skipped, failed;
    int first_code; /* exit code of the first failure */
    bool useless;   /* the options suit no image: stop the batch */
    bool has_table; /* the table is written */
};

/* Checks that the outputs of an image can be written, and adds what their files take in a run. */
static int ready(void *user, struct rfx_cli_job *job, size_t *more_bytes) {
    struct batch *run = user;
    bool table = run->options->list.table != NULL;
    int code = RFX_EXIT_USAGE;
    if (table && job->graph->n_outputs > 1 && run->one.output.answer.boxes == NULL)
        rfx_cli_message("--table is about one output, and the network has %d",
                        job->graph->n_outputs);
    else
        code = rfx_cli_outputs_check(job->graph, &run->one);
    run->useless = code == RFX_EXIT_USAGE;
    *more_bytes = run->list.bytes + (table ? rfx_list_table_bytes() : 0) +
                  rfx_cli_outputs_bytes(job->graph, &run->one, &job->geo);
    return code;
}

/* Prints a JSON document as one line, at once, and frees it. */
static void print_line(json_t *line) {
    (void)json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(line);
    (void)putchar('\n');
    (void)fflush(stdout);
}

static void tell_done(const struct batch *run, const char *path,
                      const struct rfx_cli_outputs *outputs, double seconds) {
    char shown[4096];
    rfx_printable(path, shown, sizeof shown);
    if (!run->options->json) {
        printf("done       %s, %.3f s", shown, seconds);
        for (int k = 0; k < outputs->count; ++k)
            printf("%s %s %s", k > 0 ? "," : ", hash", outputs->items[k].name,
                   outputs->items[k].hash);
        (void)putchar('\n');
        (void)fflush(stdout);
        return;
    }
    json_t *hashes = json_object();
    for (int k = 0; k < outputs->count; ++k)
        (void)json_object_set_new(hashes, outputs->items[k].name,
                                  json_string(outputs->items[k].hash));
    print_line(json_pack("{s:s, s:s, s:f, s:o}", "input", shown, "state", "done", "seconds",
                         seconds, "hashes", hashes));
}

static enum rfx_status compute(struct batch *run, const char *path, struct rfx_error *err) {
    struct rfx_cli_outputs outputs = {0};
    struct rfx_cli_progress progress;
    double started = rfx_clock_seconds(CLOCK_MONOTONIC);
    enum rfx_status status = rfx_cli_outputs_open(run->kept.job.mem, run->kept.job.graph, &run->one,
                                                  &run->kept.job.geo, &outputs, err);
    if (status == RFX_OK) {
        struct rfx_output_sink sink = rfx_cli_outputs_sink(&outputs);
        run->kept.run.sink = &sink;
        run->kept.run.user = &progress;
        rfx_cli_progress_start(&progress, rfx_batch_list_base(path));
        status = rfx_run_image(&run->kept.run, run->kept.job.image, NULL, err);
        rfx_cli_progress_end(&progress);
    }
    if (status == RFX_OK) status = rfx_cli_outputs_finish(&outputs, err);
    rfx_cli_memory_may_stop(
        run->kept.job.mem); /* finishing the output files had disabled stopping */
    if (status == RFX_OK)
        tell_done(run, path, &outputs, rfx_clock_seconds(CLOCK_MONOTONIC) - started);
    rfx_cli_outputs_free(&outputs);
    return status;
}

/* Sets run->result to the path of an image's result. Returns false when the path is too long. */
static bool name_result(struct batch *run, const char *path) {
    const char *kind = run->options->list.as != NULL ? run->options->list.as : "npy";
    int n = snprintf(run->result, sizeof run->result, "%s/%s.%s", run->options->list.out_dir,
                     rfx_batch_list_base(path), kind);
    return n > 0 && n < (int)sizeof run->result;
}

/* Counts an image whose result is complete, and adds the result to the table. */
static int finish(struct batch *run, const char *path, size_t *count) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    if (run->options->list.table != NULL)
        status = rfx_list_table_add(&run->table, path, run->result, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    ++*count;
    return RFX_EXIT_DONE;
}

static int run_one(struct batch *run, char *path) {
    struct rfx_error err = {{0}};
    char shown[4096];
    rfx_printable(path, shown, sizeof shown);
    if (!name_result(run, path)) {
        rfx_cli_message("'%s': the name of its result is too long", shown);
        return RFX_EXIT_REFUSED;
    }
    if (run->options->list.resume && access(run->result, F_OK) == 0)
        return finish(run, path, &run->skipped);
    run->one.words.args[1] = path;
    run->one.words.shown[1] = shown;
    run->one.output.file = run->result;
    run->one.output.answer.boxes = NULL;
    rfx_cli_answers_settle(&run->one.output);
    int code = rfx_kept_run_open(&run->kept, path);
    if (code != RFX_EXIT_DONE) return code;
    if (run->options->list.resume && run->one.output.file != NULL &&
        rfx_cli_outputs_exist(run->kept.job.graph, &run->one))
        return finish(run, path, &run->skipped);
    enum rfx_status status = compute(run, path, &err);
    return status == RFX_OK ? finish(run, path, &run->done) : rfx_cli_fail(status, &err);
}

/* Completes the table if every image of the list is in it. */
static int finish_table(struct batch *run) {
    const char *path = run->options->list.table;
    struct rfx_error err = {{0}};
    if (path == NULL || run->useless) return RFX_EXIT_DONE;
    size_t n = run->done + run->skipped;
    if (n < run->list.n) {
        rfx_cli_message(
            "--table '%.200s' is not written: it has %zu of %zu images; --resume takes the results "
            "that are there",
            path, n, run->list.n);
        return RFX_EXIT_DONE; /* the code is that of the failure */
    }
    enum rfx_status status = rfx_list_table_commit(&run->table, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    run->has_table = true;
    return RFX_EXIT_DONE;
}

static void tell_sum(const struct batch *run, double seconds) {
    if (run->options->json) {
        json_t *table = run->has_table ? json_pack("{s:s, s:I}", "file", run->options->list.table,
                                                   "lines", (json_int_t)run->table.lines)
                                       : NULL;
        print_line(json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:f, s:I, s:o*}", "schema",
                             RFX_JSON_SCHEMA, "command", "run", "listed", (json_int_t)run->list.n,
                             "done", (json_int_t)run->done, "skipped", (json_int_t)run->skipped,
                             "failed", (json_int_t)run->failed, "seconds", seconds,
                             "peak_rss_bytes", (json_int_t)rfx_peak_rss_bytes(), "table", table));
        return;
    }
    char peak[RFX_HUMAN_CHARS];
    printf("list       %zu of %zu done, %zu there already, %zu failed, %.3f s, %s peak RSS\n",
           run->done, run->list.n, run->skipped, run->failed, seconds,
           rfx_human_bytes(rfx_peak_rss_bytes(), peak));
    if (run->has_table)
        printf("table      %lld lines, in %s\n", (long long)run->table.lines,
               run->options->list.table);
}

/* Prints a line for an image without a result of this run. */
static void tell_state(const struct batch *run, const char *path, const char *state, int code) {
    char shown[4096];
    if (!run->options->json) return; /* a message has said why */
    rfx_printable(path, shown, sizeof shown);
    print_line(json_pack("{s:s, s:s, s:i}", "input", shown, "state", state, "exit", code));
}

static int run_all(struct batch *run) {
    double started = rfx_clock_seconds(CLOCK_MONOTONIC);
    for (size_t i = 0; i < run->list.n && !run->useless; ++i) {
        if (rfx_cli_progress_cancelled()) {
            rfx_cli_message("stopped by a signal; --resume goes on");
            if (run->first_code == RFX_EXIT_DONE) run->first_code = RFX_EXIT_SYSTEM;
            break;
        }
        size_t before = run->done;
        int code = run_one(run, run->list.paths[i]);
        if (code != RFX_EXIT_DONE || run->done == before)
            tell_state(run, run->list.paths[i], code == RFX_EXIT_DONE ? "skipped" : "failed", code);
        if (code == RFX_EXIT_DONE) continue;
        run->failed++;
        if (run->first_code == RFX_EXIT_DONE) run->first_code = code;
    }
    int code = finish_table(run);
    if (run->first_code == RFX_EXIT_DONE) run->first_code = code;
    tell_sum(run, rfx_clock_seconds(CLOCK_MONOTONIC) - started);
    return run->first_code;
}

/* Makes a folder and its parents, where they are missing. */
static bool make_folder(const char *path) {
    char at[4096];
    size_t length = strlen(path);
    if (length >= sizeof at) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (size_t i = 1; i <= length; ++i) {
        if (path[i] != '/' && path[i] != '\0') continue;
        memcpy(at, path, i);
        at[i] = '\0';
        if (mkdir(at, 0777) != 0 && access(at, F_OK) != 0) return false;
    }
    return true;
}

static bool is_csv(const char *as) {
    size_t length = strlen(as);
    return length >= 3 && strcasecmp(as + length - 3, "csv") == 0;
}

/* Checks the options and files whose errors would concern every image. */
static int check_all(struct batch *run) {
    const struct rfx_cli_run_options *o = run->options;
    struct stat info;
    struct rfx_error err = {{0}};
    if (!rfx_builtin_exists(o->words.args[0]) && access(o->words.args[0], R_OK) != 0)
        return rfx_cli_refuse_model(o->words.args[0],
                                    "neither a readable file nor a built-in network");
    enum rfx_status status = rfx_batch_list_read(run->list.mem, o->list.list, &run->list, &err);
    if (status == RFX_OK) status = rfx_batch_list_check_bases(&run->list, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    if (o->list.table != NULL && !is_csv(o->list.as)) {
        rfx_cli_message(
            "--table needs --as csv, boxes.csv, points.csv, summary.csv or text.csv, not %s",
            o->list.as);
        return RFX_EXIT_USAGE;
    }
    if (o->list.table != NULL) {
        status = rfx_list_table_open(run->list.mem, o->list.table, &run->table, &err);
        if (status != RFX_OK) return rfx_cli_fail(status, &err);
    }
    if (!make_folder(o->list.out_dir)) {
        rfx_cli_message("--out-dir '%s' cannot be made: %s", o->list.out_dir, strerror(errno));
        return RFX_EXIT_SYSTEM;
    }
    if (stat(o->list.out_dir, &info) != 0 || !S_ISDIR(info.st_mode) ||
        access(o->list.out_dir, W_OK) != 0) {
        rfx_cli_message("--out-dir '%s' is not a folder that can be written", o->list.out_dir);
        return RFX_EXIT_SYSTEM;
    }
    return RFX_EXIT_DONE;
}

int rfx_run_batch(const struct rfx_cli_run_options *options) {
    static struct batch run; /* large for a stack */
    memset(&run, 0, sizeof run);
    run.options = options;
    run.one = *options;
    struct rfx_memory *mem = rfx_cli_memory_create();
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    run.one.words.n_args = 2;
    run.kept =
        (struct rfx_kept_run){.options = &run.one, .command = "run", .ready = ready, .user = &run};
    run.list.mem = mem;
    int code = check_all(&run);
    if (code == RFX_EXIT_DONE) code = run_all(&run);
    rfx_kept_run_release(&run.kept);
    rfx_list_table_free(&run.table);
    rfx_batch_list_free(&run.list);
    rfx_memory_free(mem);
    return code;
}
