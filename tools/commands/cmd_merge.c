/* rfexec merge: joins the shards of an output (rfexec/shards/shard_merge.h), or adds up the states
 * of all shards of a round (shard_rounds.h). */
#include <stdio.h>
#include <sys/stat.h>

#include "rfexec/output/output_stream.h"
#include "rfexec/shards/shard_head.h"
#include "rfexec/shards/shard_merge.h"
#include "rfexec/shards/shard_network.h"
#include "rfexec/shards/shard_rounds.h"
#include "tools/cli/answers.h"
#include "tools/cli/command.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/run_once.h"
#include "tools/commands/command_forms.h"

/* Sets *format to the format of the file of -o. Fails when that format cannot hold the tensor in
 * its declared shape and type, or does not support an option that is given. cells: those
 * of an output that is joined of maps. */
static enum rfx_status find_format(const struct rfx_merge_options *options,
                                   const struct rfx_tensor *tensor, const struct rfx_stored *stored,
                                   struct rfx_answer_cells cells, struct rfx_output_format *format,
                                   struct rfx_error *err) {
    char ends[RFX_OUTPUT_ENDS];
    if (!rfx_cli_output_format(&options->output, 0, options->output.file, format))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "-o '%.200s': the name must end in %s",
                        options->output.file, rfx_output_ends(ends));
    const char *why = rfx_cli_options_misfit(&options->output, format->kind->takes);
    if (why != NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "-o '%.200s': %s", options->output.file,
                        why);
    rfx_answer_limit(&format->answer, options->memory_bytes > 0);
    format->stored = *stored;
    format->cells = cells;
    return rfx_output_format_check(format, tensor, options->output.file, err);
}

static int print_shards(const struct rfx_shards *shards, const struct rfx_merge_options *options) {
    const struct rfx_shard_file *first = &shards->files[0];
    const struct rfx_shape *shape = rfx_shards_shape(shards);
    char hash[RFX_FINGERPRINT_CHARS], text[96], peak[RFX_HUMAN_CHARS];
    rfx_shards_hash(shards, hash);
    rfx_cli_answers_notice(&shards->answers);
    if (options->json)
        return rfx_report_print(json_pack(
            "{s:i, s:s, s:i, s:O, s:{s:s, s:o, s:s}, s:o*, s:{s:I}}", "schema", RFX_JSON_SCHEMA,
            "command", "merge", "parts", shards->n, "run", first->run, "output", "name",
            first->output, "shape", rfx_report_shape(shape), "hash", hash,
            shards->answers.what != NULL ? shards->answers.what : "regions",
            shards->answers.what == NULL ? NULL
                                         : json_pack("{s:s, s:I}", "file", options->output.file,
                                                     "count", (json_int_t)shards->answers.count),
            "measured", "peak_rss_bytes", (json_int_t)rfx_peak_rss_bytes()));
    printf("parts      %d of one run, without gap or overlap\n", shards->n);
    printf("measured   %s peak RSS\n", rfx_human_bytes(rfx_peak_rss_bytes(), peak));
    printf("output     %s %s, hash %s\n", first->output, rfx_human_shape(shape, text), hash);
    if (shards->answers.what != NULL)
        printf("%-10s %lld%s%s, in %s\n", shards->answers.what, (long long)shards->answers.count,
               shards->answers.unit != NULL ? " " : "",
               shards->answers.unit != NULL ? shards->answers.unit : "", options->output.file);
    return RFX_EXIT_DONE;
}

static int merge_shards(const struct rfx_merge_options *options, struct rfx_memory *mem) {
    struct rfx_shards shards;
    struct rfx_output_format format;
    struct rfx_cli_progress progress;
    struct rfx_detector detector;
    struct rfx_stored stored = {.head = NULL};
    struct rfx_error err = {{0}};
    enum rfx_status status =
        rfx_shards_read(mem, options->words.args, options->words.n_args, &shards, &err);
    if (status == RFX_OK && rfx_shard_has_late_nodes(shards.files[0].run)) {
        int code = rfx_merge_late(options, &shards);
        rfx_shards_release(&shards);
        return code;
    }
    if (status == RFX_OK) {
        stored = shards.files[0].stored;
        status = rfx_shard_head_declare(mem, &shards.files[0], options->output.answer.head,
                                        &detector, &stored, &err);
    }
    if (status == RFX_OK) {
        const struct rfx_tensor tensor = rfx_shards_tensor(&shards);
        const struct rfx_shard_file *first = &shards.files[0];
        const struct rfx_answer_cells cells = {
            .image_h = first->image[0],
            .image_w = first->image[1],
            .channels = first->cells.channels,
            .channel_step = first->cells.last ? first->cells.of : 1};
        status = find_format(options, &tensor, &stored, cells, &format, &err);
    }
    if (status == RFX_OK) {
        rfx_cli_progress_start(&progress, "merge");
        status = rfx_shards_merge(&shards, options->output.file, &format, options->memory_bytes,
                                  rfx_cli_progress_step, &progress, &err);
        rfx_cli_progress_end(&progress);
    }
    int code = status == RFX_OK ? print_shards(&shards, options) : rfx_cli_fail(status, &err);
    rfx_shards_release(&shards);
    return code;
}

/* A sum of states, and the output that is computed from it. */
struct rest {
    const struct rfx_merge_options *options;
    struct rfx_shard_sum sum;
    struct rfx_output_stream *stream;
    struct rfx_fingerprint fingerprint;
};

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct rest *r = user;
    rfx_fingerprint_add_end(&r->fingerprint, end, rect, view);
    return rfx_output_stream_write_end(r->stream, end, rect, view, err);
}

/* Runs the rest of the network, which does not read the image, and writes the output. */
static enum rfx_status make_output(struct rest *r, struct rfx_error *err) {
    const struct rfx_graph *graph = r->sum.graph;
    const struct rfx_tensor *out = &graph->nodes[graph->outputs[r->sum.k].node].out;
    const struct rfx_output_sink sink = {.write = receive, .user = r};
    struct rfx_stored stored = graph->outputs[r->sum.k].stored;
    struct rfx_shard_rest rest = {.graph = NULL};
    struct rfx_output_format format;
    struct rfx_run_report report;
    if (stored.reshaped) stored.shape = rfx_output_shape(graph, r->sum.k);
    if (rfx_shard_has_late_nodes(r->sum.made.states.run))
        return rfx_fail(
            err, RFX_STATUS_UNSUPPORTED,
            "the model's outputs depend on the whole image before its last nodes, whose "
            "sizes depend on data: it cannot be merged of states");
    enum rfx_status status =
        find_format(r->options, out, &stored, (struct rfx_answer_cells){0}, &format, err);
    if (status == RFX_OK && format.kind != &rfx_output_npy)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "-o '%.200s': this output is written as .npy", r->options->output.file);
    if (status == RFX_OK)
        status = rfx_shard_rest_plan(&r->sum, rfx_output_stream_bytes(&format, out),
                                     r->options->memory_bytes, &rest, err);
    if (status == RFX_OK)
        status = rfx_output_stream_open(graph->mem, r->options->output.file, &format, out,
                                        &r->stream, err);
    if (status == RFX_OK) {
        const struct rfx_cli_run run = {
            .plan = rest.plan, .image = rest.image, .sink = &sink, .what = "merge"};
        status = rfx_cli_run_once(&run, &report, err);
    }
    if (status == RFX_OK) status = rfx_output_stream_commit(r->stream, NULL, NULL, err);
    rfx_shard_rest_release(&rest);
    return status;
}

static enum rfx_status write_states(const struct rest *r, struct rfx_error *err) {
    if (rfx_cli_options_of_files(&r->options->output))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "-o '%.200s': states are written, to which --bits, --range and options of "
                        "TIFF and Zarr do not apply",
                        r->options->output.file);
    return rfx_shard_states_write(r->options->output.file, r->sum.graph, &r->sum.made.states, err);
}

static int print_states(const struct rest *r, bool made) {
    const struct rfx_shard_states *all = &r->sum.made.states;
    const struct rfx_shape output = rfx_output_shape(r->sum.graph, r->sum.k);
    int rounds = r->sum.made.rounds.rounds, n = r->options->words.n_args;
    char hash[RFX_FINGERPRINT_CHARS], shape[96], peak[RFX_HUMAN_CHARS];
    rfx_fingerprint_hex(&r->fingerprint, hash);
    if (r->options->json) {
        json_t *document = json_pack("{s:i, s:s, s:i, s:O, s:i, s:i}", "schema", RFX_JSON_SCHEMA,
                                     "command", "merge", "parts", n, "run", all->run, "round",
                                     all->round, "rounds_left", rounds);
        if (made)
            (void)json_object_set_new(document, "output",
                                      json_pack("{s:s, s:o, s:s}", "name", all->output, "shape",
                                                rfx_report_shape(&output), "hash", hash));
        return rfx_report_print(document);
    }
    printf("parts      %d of one run, states of round %d\n", n, all->round);
    printf("measured   %s peak RSS\n", rfx_human_bytes(rfx_peak_rss_bytes(), peak));
    if (made)
        printf("output     %s %s, hash %s\n", all->output, rfx_human_shape(&output, shape), hash);
    else
        printf("states     %d round%s more: run --part I/N --states %s makes %s\n", rounds,
               rounds == 1 ? "" : "s", r->options->output.file,
               rounds == 0 ? "the parts of the output" : "those of the next round");
    return RFX_EXIT_DONE;
}

static int merge_states(const struct rfx_merge_options *options, struct rfx_memory *mem) {
    struct rest r = {.options = options};
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_shard_sum_read(mem, options->words.args, options->words.n_args,
                                                options->memory_bytes, &r.sum, &err);
    bool made = status == RFX_OK && rfx_shard_sum_is_last(&r.sum);
    if (status == RFX_OK) status = made ? make_output(&r, &err) : write_states(&r, &err);
    int code = status == RFX_OK ? print_states(&r, made) : rfx_cli_fail(status, &err);
    rfx_output_stream_free(r.stream);
    rfx_shard_sum_release(&r.sum);
    return code;
}

/* Returns the name of the input file, or of its JSON file, that is the same file as `path`; NULL
 * when there is none. */
static const char *find_input(const struct rfx_merge_options *options, const char *path, char *name,
                              size_t size) {
    struct stat out, in;
    if (stat(path, &out) != 0) return NULL;
    for (int i = 0; i < options->words.n_args; i++)
        for (int k = 0; k < 2; k++) {
            (void)snprintf(name, size, "%s%s", options->words.args[i], k == 0 ? "" : ".json");
            if (stat(name, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
                return name;
        }
    return NULL;
}

/* Checks the options. Prints a message when one is missing or wrong. */
static int check_options(const struct rfx_merge_options *options) {
    char name[RFX_SHARD_PATH_CHARS];
    if (options->status != NULL && options->words.n_args > 0) {
        rfx_cli_message("--status only looks at a folder: it excludes PART");
        return RFX_EXIT_USAGE;
    }
    if (options->status != NULL) return RFX_EXIT_DONE;
    if (options->words.n_args == 0) {
        rfx_cli_message("merge needs a PART, or --status DIR");
        return RFX_EXIT_USAGE;
    }
    if (find_input(options, options->output.file, name, sizeof name) != NULL) {
        rfx_cli_message("-o '%s' would write over '%s', which is merged: name another file",
                        options->output.file, name);
        return RFX_EXIT_USAGE;
    }
    return RFX_EXIT_DONE;
}

static int run(void *given) {
    const struct rfx_merge_options *options = given;
    int code = check_options(options);
    if (code != RFX_EXIT_DONE) return code;
    struct rfx_memory *mem = rfx_cli_memory_create();
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    if (options->status != NULL)
        code = rfx_merge_status(options, mem);
    else if (rfx_shard_states_is_file(options->words.args[0]))
        code = merge_states(options, mem);
    else
        code = merge_shards(options, mem);
    rfx_memory_free(mem);
    return code;
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(rfx_merge_options, "memory", BYTES, memory_bytes, "BYTES",
                   "memory budget of the whole process, such as 64MiB or 1.5GiB", .letter = 'm'),
    RFX_CLI_OPTION(rfx_merge_options, "status", TEXT, status, "DIR",
                   "merge nothing; say which parts in this folder are there, missing or damaged, "
                   "and which commands make the missing ones",
                   .excludes = "output"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("merge options", rows);

static struct rfx_merge_options values;

static const struct rfx_cli_use uses[] = {
    {&group, 0},
    RFX_CLI_USE(file, rfx_merge_options, output),
    RFX_CLI_USE(samples, rfx_merge_options, output),
    RFX_CLI_USE(format, rfx_merge_options, output),
    RFX_CLI_USE(answers, rfx_merge_options, output.answer),
    RFX_CLI_USE(detector, rfx_merge_options, output.answer),
    RFX_CLI_USE(json, rfx_merge_options, json),
};

const struct rfx_cli_command rfx_cmd_merge = {
    .name = "merge",
    .args =
        "PART.npy [PART.npy ...] -o FILE [--memory BYTES] [--json]\n"
        "       rfexec merge --status DIR [--json]",
    .summary = "put the parts of an output together that 'run --part' made",
    .details =
        "All parts must be of one run: the same model, input, version and options that change\n"
        "bits, as the JSON file beside each part says. The parts must cover the output without\n"
        "gap or overlap and must not have changed since they were made. FILE is written in bands\n"
        "of rows inside the budget, as -o of run would write it; the hash is that of a single\n"
        "run. The exit code is 3 when parts are missing, doubled, changed or of other runs.\n"
        "Parts of a network that ends in nodes whose sizes depend on data, such as\n"
        "NonMaxSuppression, are of the tensors before these nodes: merge loads the model from\n"
        "where it was, or from the folder of the parts, and runs these nodes. FILE is a .npy file\n"
        "for each output, or a file of boxes.\n"
        "--status reads all bytes of the parts in a folder, such as OUT.parts of run_parts.sh,\n"
        "and says which are there, missing, damaged or in the way, and the commands that make the\n"
        "missing ones. The exit code is 0 when all parts are there, else 3.\n",
    .examples =
        "rfexec merge part1.npy part2.npy part3.npy -o map.npy\n"
        "rfexec merge part*.npy -o large.tif --memory 64MiB\n"
        "rfexec merge --status large.npy.parts\n",
    RFX_CLI_TABLE(uses),
    .needs = "output status",
    .min_args = 0,
    .max_args = RFX_CLI_MAX_PARTS,
    .values = &values,
    .run = run,
};
