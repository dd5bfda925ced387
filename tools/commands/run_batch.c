/* rfexec run --list. Graph, plan and session are kept from one image to the next as long as the
 * images are alike.
 *
 * Invariants: 1. there is one graph, plan, session and image at a time, so a budget holds for any
 * number of images; 2. an image is opened while a session exists only if opening the image cannot
 * take more memory than opening the session's own image took (is_alike); 3. a result gets its name
 * when it is complete, so a result that exists need not be computed again. */
#include "tools/commands/command_forms.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
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

/* The beginning of an image file. It tells the kind of file and, for a PNG, its size and type. */
struct look {
    unsigned char head[26];
    int64_t bytes; /* of the file; -1: it cannot be read */
};

struct batch {
    const struct rfx_cli_run_options *options; /* options of the command */
    struct rfx_cli_run_options one;            /* options for running one image */
    struct rfx_batch_list list;
    struct rfx_cli_job job;          /* job.plan NULL: no plan and session are kept */
    struct rfx_run kept;             /* session for images of one size */
    struct rfx_source_traits traits; /* traits of the image that the plan was made for */
    struct look look;                /* beginning of that image's file */
    size_t geo_bytes;                /* memory of that image's georeference */
    size_t most_fixed_bytes;         /* largest fixed memory of any image of that size so far */
    char result[PATH_MAX];           /* path of the result of the current image */
    size_t done, skipped, failed;
    int first_code; /* exit code of the first failure */
    bool useless;   /* the options suit no image: stop the batch */
};

static struct look look_at(const char *path) {
    struct look look = {.bytes = -1};
    struct stat info;
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    if (file == NULL) return look;
    if (fread(look.head, 1, sizeof look.head, file) > 0) look.bytes = (int64_t)info.st_size;
    (void)fclose(file);
    return look;
}

/* Returns whether opening the file `next` takes about the same memory as opening the file `kept`.
 * Both must be of the same kind, and `next` not much larger, because a TIFF's tables grow with the
 * file. PNG files must have the same image size, because a PNG's rows are buffered. */
static bool is_alike(const struct look *kept, const struct look *next) {
    bool png = memcmp(next->head, "\x89PNG", 4) == 0;
    return next->bytes >= 0 && kept->bytes >= 0 && next->bytes / 2 <= kept->bytes + 65536 &&
           memcmp(kept->head, next->head, png ? sizeof next->head : 4) == 0;
}

static void drop_kept(struct batch *run) {
    rfx_run_release(&run->kept);
    rfx_cli_job_free(&run->job);
    run->job = (struct rfx_cli_job){0};
}

static bool is_same_plan(const struct rfx_source_traits *a, const struct rfx_source_traits *b) {
    return a->h == b->h && a->w == b->w && a->c == b->c && a->random_access == b->random_access &&
           a->window_row_bytes == b->window_row_bytes;
}

/* Opens an image while the kept session exists. *same: the session can run the image. */
static int open_beside(struct batch *run, const char *path, bool *same) {
    *same = false;
    int code = rfx_cli_job_change(&run->job, &run->one, path);
    if (code != RFX_EXIT_DONE) return code;
    struct rfx_source_traits traits = rfx_image_traits(run->job.image);
    bool alike = is_same_plan(&traits, &run->traits);
    *same = alike && traits.fixed_bytes <= run->traits.fixed_bytes &&
            rfx_georeference_bytes(&run->job.geo.geo) <= run->geo_bytes;
    if (alike && !*same) run->most_fixed_bytes = traits.fixed_bytes;
    return RFX_EXIT_DONE;
}

/* Makes the graph, plan and session that are kept, for an image. */
static int make_kept(struct batch *run, const char *path, const struct look *look) {
    struct rfx_error err = {{0}};
    size_t most = run->most_fixed_bytes;
    int code = rfx_cli_job_open(&run->job, &run->one, path);
    if (code == RFX_EXIT_DONE) code = rfx_cli_outputs_check(run->job.graph, &run->one);
    run->useless = code == RFX_EXIT_USAGE;
    if (code != RFX_EXIT_DONE) return code;
    run->look = *look;
    run->geo_bytes = rfx_georeference_bytes(&run->job.geo.geo);
    run->traits = rfx_image_traits(run->job.image);
    if (run->traits.fixed_bytes < most) run->traits.fixed_bytes = most;
    run->job.request.source.fixed_bytes =
        run->traits.fixed_bytes + run->list.bytes +
        rfx_cli_outputs_bytes(run->job.graph, &run->one, &run->job.geo);
    code = rfx_cli_job_plan(&run->job, &run->one, "run");
    if (code != RFX_EXIT_DONE) return code;
    run->kept = (struct rfx_run){.plan = run->job.plan,
                                 .spill_folder = run->options->plan.spill,
                                 .progress = rfx_cli_progress_step};
    enum rfx_status status = rfx_run_prepare(&run->kept, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static int prepare(struct batch *run, const char *path) {
    struct look look = look_at(path);
    bool same = false;
    run->most_fixed_bytes = 0;
    if (run->kept.session != NULL && is_alike(&run->look, &look)) {
        int code = open_beside(run, path, &same);
        if (code != RFX_EXIT_DONE || same) return code;
    }
    drop_kept(run);
    int code = make_kept(run, path, &look);
    if (code != RFX_EXIT_DONE) drop_kept(run);
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
    enum rfx_status status =
        rfx_cli_outputs_open(run->job.mem, run->job.graph, &run->one, &run->job.geo, &outputs, err);
    if (status == RFX_OK) {
        struct rfx_output_sink sink = rfx_cli_outputs_sink(&outputs);
        run->kept.sink = &sink;
        run->kept.user = &progress;
        rfx_cli_progress_start(&progress, rfx_batch_list_base(path));
        status = rfx_run_image(&run->kept, run->job.image, NULL, err);
        rfx_cli_progress_end(&progress);
    }
    if (status == RFX_OK) status = rfx_cli_outputs_finish(&outputs, err);
    rfx_cli_memory_may_stop(run->job.mem); /* finishing the output files had disabled stopping */
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

static int skip(struct batch *run) {
    run->skipped++;
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
    if (run->options->list.resume && access(run->result, F_OK) == 0) return skip(run);
    run->one.words.args[1] = path;
    run->one.words.shown[1] = shown;
    run->one.output.file = run->result;
    int code = prepare(run, path);
    if (code != RFX_EXIT_DONE) return code;
    if (run->options->list.resume && rfx_cli_outputs_exist(run->job.graph, &run->one))
        return skip(run);
    enum rfx_status status = compute(run, path, &err);
    if (status == RFX_OK) run->done++;
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static void tell_sum(const struct batch *run, double seconds) {
    if (run->options->json) {
        print_line(json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:f, s:I}", "schema", RFX_JSON_SCHEMA,
                             "command", "run", "listed", (json_int_t)run->list.n, "done",
                             (json_int_t)run->done, "skipped", (json_int_t)run->skipped, "failed",
                             (json_int_t)run->failed, "seconds", seconds, "peak_rss_bytes",
                             (json_int_t)rfx_peak_rss_bytes()));
        return;
    }
    char peak[RFX_HUMAN_CHARS];
    printf("list       %zu of %zu done, %zu there already, %zu failed, %.3f s, %s peak RSS\n",
           run->done, run->list.n, run->skipped, run->failed, seconds,
           rfx_human_bytes(rfx_peak_rss_bytes(), peak));
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
    run.list.mem = mem;
    int code = check_all(&run);
    if (code == RFX_EXIT_DONE) code = run_all(&run);
    drop_kept(&run);
    rfx_batch_list_free(&run.list);
    rfx_memory_free(mem);
    return code;
}
