/* rfexec selftest: checks that this machine computes the same bits as every other machine.
 *
 * Each network runs on whole maps and in tiles. Both runs must give the golden fingerprint. The
 * golden fingerprints do not apply to a processor without fused multiply-add, where OpenBLAS
 * computes the convolutions. There both runs must still give the same fingerprint. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/graph/graph.h"
#include "rfexec/output/fingerprint.h"
#include "tools/cli/command.h"
#include "tools/cli/job.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/run_once.h"

/* Golden fingerprints: the fingerprints of networks' outputs for synthetic images, the same on
 * every machine.
 *
 * A table is CSV with the columns model, size (rows x columns), conv (what computes convolutions),
 * output, shape and fingerprint. Each output has one row; rows of one run follow each other. The
 * program contains the table data/fingerprints.csv, which tools/scripts/make_fingerprints.py
 * writes. */
enum { GOLDEN_NAME = 64 }; /* characters of a name or shape, with the end */

struct golden_row {
    char model[GOLDEN_NAME], output[GOLDEN_NAME], shape[GOLDEN_NAME];
    char fingerprint[RFX_FINGERPRINT_CHARS];
    int64_t h, w;
    enum rfx_conv_choice conv;
};

struct golden {
    struct rfx_memory *mem;
    int count;
    struct golden_row *rows;
};

/* data/fingerprints.csv as text, made by the build (tools/cmake/rfx_helpers.cmake). */
extern const char rfx_golden_csv[];

#define HEADER "model,size,conv,output,shape,fingerprint\n"
enum { MOST_BYTES = 1 << 20 };

/* Copies the next field of a line, which must be followed by the character `end`. Returns false
 * when the field is empty or too long. */
static bool take_field(const char **at, char end, char *field, size_t size) {
    size_t length = strcspn(*at, ",\n");
    if ((*at)[length] != end || length == 0 || length >= size) return false;
    memcpy(field, *at, length);
    field[length] = '\0';
    *at += length + 1;
    return true;
}

static bool parse_line(const char **at, struct golden_row *row) {
    char size[32], conv[32], after;
    long long h, w;
    if (!take_field(at, ',', row->model, sizeof row->model) ||
        !take_field(at, ',', size, sizeof size) || !take_field(at, ',', conv, sizeof conv) ||
        !take_field(at, ',', row->output, sizeof row->output) ||
        !take_field(at, ',', row->shape, sizeof row->shape) ||
        !take_field(at, '\n', row->fingerprint, sizeof row->fingerprint) ||
        !rfx_conv_choice_find(conv, &row->conv) ||
        strlen(row->fingerprint) != RFX_FINGERPRINT_CHARS - 1 ||
        sscanf(size, "%9lldx%9lld%c", &h, &w, &after) != 2 || h < 1 || w < 1)
        return false;
    row->h = h;
    row->w = w;
    return true;
}

static enum rfx_status parse_table(const char *text, const char *name, struct golden *golden,
                                   struct rfx_error *err) {
    int lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++) lines++;
    if (strncmp(text, HEADER, strlen(HEADER)) != 0 || lines < 2)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: not a table of fingerprints", name);
    size_t bytes = (size_t)lines * sizeof *golden->rows;
    golden->rows = rfx_memory_calloc(golden->mem, (size_t)lines, sizeof *golden->rows);
    if (golden->rows == NULL) return rfx_memory_fail(golden->mem, name, bytes, err);
    const char *at = text + strlen(HEADER);
    for (; *at != '\0'; golden->count++)
        if (!parse_line(&at, &golden->rows[golden->count]))
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "%s: line %d is not model,ROWSxCOLUMNS,conv,output,shape,fingerprint",
                            name, golden->count + 2);
    return RFX_OK;
}

static enum rfx_status read_text(const char *path, char *text, struct rfx_error *err) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return rfx_fail(err, RFX_STATUS_IO, "%s: %s", path, strerror(errno));
    size_t got = fread(text, 1, MOST_BYTES, file);
    bool bad = ferror(file) != 0;
    (void)fclose(file);
    if (bad) return rfx_fail(err, RFX_STATUS_IO, "%s: cannot be read", path);
    if (got == MOST_BYTES || memchr(text, '\0', got) != NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: not a table of fingerprints", path);
    text[got] = '\0';
    return RFX_OK;
}

/* Reads a table from the file `path`; NULL: reads the table that the program contains. The caller
 * frees the table with golden_free, also after a failure. Statuses: IO, MALFORMED (the error names
 * the line), OUT_OF_MEMORY. */
static enum rfx_status golden_read(struct rfx_memory *mem, const char *path, struct golden *golden,
                                   struct rfx_error *err) {
    *golden = (struct golden){.mem = mem};
    if (path == NULL) return parse_table(rfx_golden_csv, "the program's own table", golden, err);
    char *text = rfx_memory_alloc(mem, MOST_BYTES);
    if (text == NULL) return rfx_memory_fail(mem, path, MOST_BYTES, err);
    enum rfx_status status = read_text(path, text, err);
    if (status == RFX_OK) status = parse_table(text, path, golden, err);
    rfx_memory_release(mem, text);
    return status;
}

/* Returns the number of rows, beginning at `first`, that belong to one run. */
static int golden_run_length(const struct golden *golden, int first) {
    const struct golden_row *a = &golden->rows[first];
    int n = 1;
    for (; first + n < golden->count; n++) {
        const struct golden_row *b = a + n;
        if (strcmp(a->model, b->model) != 0 || a->h != b->h || a->w != b->w || a->conv != b->conv)
            break;
    }
    return n;
}

static void golden_free(struct golden *golden) {
    if (golden->mem != NULL) rfx_memory_release(golden->mem, golden->rows);
    *golden = (struct golden){0};
}

/* Networks that run without --all, at the smaller image size. Together they have every kind of
 * layer and run within seconds. */
static const char *const quick[] = {"mobilenet_v2", "resnet18", "squeezenet1_1",
                                    "densenet121",  "fsrcnn",   "efficientnet_b0",
                                    "deeplab_v3",   "posenet",  "toy"};

struct selftest_options {
    struct rfx_cli_words words;
    bool all;
    const char *table; /* NULL: the program's own */
    struct rfx_cli_threads threads;
    bool json;
};

struct selftest {
    const struct selftest_options *options;
    struct rfx_memory *mem;
    struct golden golden;
    json_t *checks; /* NULL: lines on stdout */
    int checked, different, unpromised;
};

static const char *const ways[] = {"whole", "tiles"};
enum { N_WAYS = sizeof ways / sizeof ways[0], TILES = 2 /* down and across */ };

static bool named(const char *const *names, int n, const char *name) {
    for (int i = 0; i < n; ++i)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Returns whether the options select the run that begins at row `first`. */
static bool asked(const struct selftest *t, int first) {
    const struct golden_row *row = &t->golden.rows[first];
    if (t->options->words.n_args > 0)
        return named(t->options->words.args, t->options->words.n_args, row->model);
    if (t->options->all) return true;
    bool smaller = first == 0 || strcmp(row[-1].model, row->model) != 0;
    return smaller && named(quick, sizeof quick / sizeof quick[0], row->model);
}

/* Reports one output, as a line or a JSON item. conv: the algorithm that computed convolutions;
 * expected: the fingerprint that the output must have. That is the golden fingerprint when `conv`
 * is the algorithm of the table's row. */
static void report(struct selftest *t, const struct golden_row *row, const char *way,
                   enum rfx_conv_choice conv, const struct rfx_cli_output *output,
                   const char *expected) {
    char shape[96];
    bool golden = conv == row->conv;
    (void)rfx_human_shape(&output->shape, shape);
    bool same = strcmp(expected, output->hash) == 0 && strcmp(row->shape, shape) == 0;
    t->checked++;
    t->different += !same;
    t->unpromised += !golden;
    if (t->checks != NULL) {
        (void)json_array_append_new(
            t->checks,
            json_pack("{s:s, s:[I, I], s:s, s:s, s:s, s:s, s:s, s:b, s:b}", "model", row->model,
                      "size", (json_int_t)row->h, (json_int_t)row->w, "conv",
                      rfx_conv_choice_name(conv), "plan", way, "output", row->output, "expected",
                      expected, "found", output->hash, "golden", golden, "same", same));
        return;
    }
    printf("%-9s  %-16s %4lldx%-4lld %-8s %-5s  %s  %s", same ? "ok" : "DIFFERENT", row->model,
           (long long)row->h, (long long)row->w, rfx_conv_choice_name(conv), way, output->hash,
           row->output);
    if (!same) printf(" %s, expected %s %s", shape, expected, row->shape);
    putchar('\n');
    (void)fflush(stdout);
}

static enum rfx_status execute(struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                               struct rfx_cli_outputs *outputs, struct rfx_error *err) {
    struct rfx_run_report ran;
    enum rfx_status status =
        rfx_cli_outputs_open(job->mem, job->graph, options, NULL, outputs, err);
    const struct rfx_output_sink sink = rfx_cli_outputs_sink(outputs);
    const struct rfx_cli_run run = {
        .plan = job->plan, .image = job->image, .sink = &sink, .what = "selftest"};
    if (status == RFX_OK) status = rfx_cli_run_once(&run, &ran, err);
    return status == RFX_OK ? rfx_cli_outputs_finish(outputs, err) : status;
}

/* Runs a network in one way (whole maps or tiles) and reports its outputs. rows[n]: the table's
 * rows of the run, one for each output. found: in: the fingerprints from the way before, unless
 * this way is the first; out: the fingerprints from this way. */
static int run_way(struct selftest *t, const struct golden_row *rows, int n, const char *way,
                   char (*found)[RFX_FINGERPRINT_CHARS], bool first) {
    static struct rfx_cli_run_options options; /* large for a stack */
    struct rfx_cli_job job = {0};
    struct rfx_cli_outputs outputs = {0};
    struct rfx_error err = {{0}};
    char picture[64];
    const char *model = rows->model;
    options = (struct rfx_cli_run_options){
        .words = {.n_args = 1, .args = &model, .shown = &model},
        .plan = {.threads = t->options->threads},
    };
    options.model.conv = rows->conv;
    options.plan.untiled = first;
    if (!first) options.plan.tiles = (struct rfx_cli_pair){.y = TILES, .x = TILES};
    (void)snprintf(picture, sizeof picture, "synthetic:%lldx%lld", (long long)rows->h,
                   (long long)rows->w);
    int code = rfx_cli_job_open(&job, &options, picture);
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&job, &options, "selftest");
    if (code == RFX_EXIT_DONE) {
        enum rfx_status status = execute(&job, &options, &outputs, &err);
        if (status == RFX_OK && outputs.count != n)
            status = rfx_fail(&err, RFX_STATUS_MALFORMED, "'%s' has %d outputs, the table %d",
                              rows->model, outputs.count, n);
        if (status != RFX_OK) code = rfx_cli_fail(status, &err);
    }
    for (int k = 0; code == RFX_EXIT_DONE && k < n; ++k) {
        enum rfx_conv_choice conv = rfx_conv_choice_of(job.graph);
        const char *hash = outputs.items[k].hash, *expected = rows[k].fingerprint;
        if (conv != rows->conv) expected = first ? hash : found[k];
        report(t, &rows[k], way, conv, &outputs.items[k], expected);
        (void)snprintf(found[k], RFX_FINGERPRINT_CHARS, "%s", hash);
    }
    rfx_cli_outputs_free(&outputs);
    rfx_cli_job_free(&job);
    return code;
}

static int run_rows(struct selftest *t, int first, int n) {
    size_t bytes = (size_t)n * RFX_FINGERPRINT_CHARS;
    char(*found)[RFX_FINGERPRINT_CHARS] = rfx_memory_calloc(t->mem, (size_t)n, sizeof *found);
    struct rfx_error err = {{0}};
    if (found == NULL) return rfx_cli_fail(rfx_memory_fail(t->mem, "selftest", bytes, &err), &err);
    int code = RFX_EXIT_DONE;
    for (int w = 0; w < N_WAYS && code == RFX_EXIT_DONE; ++w)
        code = run_way(t, &t->golden.rows[first], n, ways[w], found, w == 0);
    rfx_memory_release(t->mem, found);
    return code;
}

static int run_all(struct selftest *t) {
    int code = RFX_EXIT_DONE;
    for (int i = 0; i < t->golden.count && code == RFX_EXIT_DONE;) {
        int n = golden_run_length(&t->golden, i);
        if (asked(t, i)) code = run_rows(t, i, n);
        i += n;
    }
    if (code == RFX_EXIT_DONE && t->checked == 0) {
        rfx_cli_message("no fingerprints of '%s' in the table", t->options->words.args[0]);
        code = RFX_EXIT_USAGE;
    }
    return code;
}

static int finish(struct selftest *t) {
    int code = RFX_EXIT_DONE;
    if (t->checks != NULL) {
        json_t *document = rfx_report_document("selftest", NULL);
        (void)json_object_update_new(
            document, json_pack("{s:s, s:i, s:i, s:i, s:O}", "kernels", rfx_kernels()->name,
                                "checked", t->checked, "different", t->different, "unpromised",
                                t->unpromised, "checks", t->checks));
        code = rfx_report_print(document);
    } else {
        printf("%s  kernels %s: %d checks, %d different\n", t->different == 0 ? "PASSED" : "FAILED",
               rfx_kernels()->name, t->checked, t->different);
        if (t->unpromised > 0)
            printf(
                "           %d of them without the table: the %s kernels have no fused "
                "multiply-add, so that\n           convolutions are OpenBLAS's; that all plans "
                "agree is what was checked\n",
                t->unpromised, rfx_kernels()->name);
    }
    return code == RFX_EXIT_DONE && t->different > 0 ? RFX_EXIT_DIFFERENT : code;
}

static int run(void *given) {
    const struct selftest_options *options = given;
    struct selftest t = {.options = options, .mem = rfx_cli_memory_create()};
    struct rfx_error err = {{0}};
    if (t.mem == NULL) return RFX_EXIT_SYSTEM;
    if (options->json) t.checks = json_array();
    enum rfx_status status = golden_read(t.mem, options->table, &t.golden, &err);
    int code = status == RFX_OK ? run_all(&t) : rfx_cli_fail(status, &err);
    if (code == RFX_EXIT_DONE) code = finish(&t);
    json_decref(t.checks);
    golden_free(&t.golden);
    rfx_memory_free(t.mem);
    return code;
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(selftest_options, "all", FLAG, all, NULL,
                   "run every network at both sizes (about a minute, 1.1 GiB)"),
    RFX_CLI_OPTION(selftest_options, "table", TEXT, table, "FILE",
                   "compare with the fingerprints of this table, of the form of "
                   "data/fingerprints.csv (default: the table in the program)"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("selftest options", rows);

static struct selftest_options values;

static const struct rfx_cli_use uses[] = {
    {&group, 0},
    RFX_CLI_USE(threads, selftest_options, threads),
    RFX_CLI_USE(json, selftest_options, json),
};

const struct rfx_cli_command rfx_cmd_selftest = {
    .name = "selftest",
    .args = "[MODEL ...] [--all] [--table FILE] [--threads N] [--json]",
    .summary = "check that this machine computes the same bits as every other machine",
    .details =
        "Runs built-in networks on synthetic images, on whole maps and in tiles, and compares the\n"
        "fingerprints of the outputs with those that every processor with fused multiply-add must\n"
        "give (AVX2, AVX-512, NEON). Some networks take seconds; --all runs all of them at two\n"
        "sizes; MODEL chooses networks. The exit code is 1 when a fingerprint differs. On\n"
        "processors without fused multiply-add OpenBLAS computes the convolutions, and the check\n"
        "is only that all plans agree.\n",
    .examples =
        "rfexec selftest\n"
        "rfexec selftest --all --threads 8\n"
        "rfexec selftest mobilenet_v2 resnet50 --json\n",
    RFX_CLI_TABLE(uses),
    .min_args = 0,
    .max_args = RFX_CLI_MAX_ARGS,
    .values = &values,
    .run = run,
};
