/* rfexec quantize: writes a network on bytes. Runs the float32 network on pictures, counts the
 * values of all tensors that become bytes, and takes their scales from the counts.
 *
 * The pictures are run within the memory budget, one after the other. The counts, and so the
 * scales, do not depend on the plan. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "layers/core/printable.h"
#include "layers/graph/op.h"
#include "rfexec/run/keep_tensors.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/commands/batch_list.h"
#include "tools/commands/kept_run.h"
#include "tools/quantise/calibration.h"

struct quantize_options {
    struct rfx_cli_run_options run;
    const char *images, *counts, *part, *method, *type;
    struct rfx_cli_pair size; /* of the pictures that the file is for; 0: not given */
    float percentile;         /* 0: not given */
    float keep_error;         /* dB; 0: not given */
    bool symmetric, one_weight_scale;
    struct rfx_cli_kept left_float;
};

struct quantize {
    const struct quantize_options *asked;
    struct rfx_cli_run_options options; /* for loading and for the runs on pictures */
    struct rfx_quantiser_request request;
    struct rfx_batch_list list;
    size_t first, end;         /* pictures of this process */
    struct rfx_cli_job loaded; /* the network without kept tensors */
    struct rfx_quantiser quantiser;
    struct rfx_calibration calibration;
    const char **names; /* of the counted tensors that are no outputs of the network */
    int *kept;          /* their nodes */
    int n_kept;
    struct rfx_kept_run counting; /* the network with kept tensors, for pictures of one size */
    const char *picture;          /* the one that is being run */
};

/* --- pictures --- */

/* Returns the node of the quantiser's graph whose tensor is output k of a run, or -1. */
static int counted_node(const struct quantize *z, int k) {
    const struct rfx_graph *graph = z->loaded.graph;
    int node = k < graph->n_outputs ? graph->outputs[k].node : z->kept[k - graph->n_outputs];
    return rfx_quantiser_counts(&z->quantiser, node) ? node : -1;
}

/* Counts the values of a piece of a tensor. */
static enum rfx_status count_piece(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                   const struct rfx_view *view, struct rfx_error *err) {
    struct quantize *z = user;
    int node = counted_node(z, end->output);
    if (node < 0) return RFX_OK;
    struct rfx_value_counts *counts = &z->calibration.counts[node];
    int64_t cols = rfx_rect_cols(rect);
    bool dense = view->c == end->channels;
    for (int64_t y = rect.y0; y < rect.y1; ++y)
        for (int64_t x = rect.x0; x < rect.x1; x += dense ? cols : 1)
            if (!rfx_value_counts_add(counts, rfx_view_f32_at(view, y, x),
                                      dense ? cols * view->c : end->channels))
                return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                                "'%.200s': tensor '%s' has values that are not finite", z->picture,
                                rfx_quantiser_name(&z->quantiser, node));
    return RFX_OK;
}

/* Checks that the network has at a picture's size the tensors that are counted. */
static int ready(void *user, struct rfx_cli_job *job, size_t *more_bytes) {
    const struct quantize *z = user;
    job->request.emit_outputs = true;
    *more_bytes = z->list.bytes;
    if (job->graph->n_outputs == z->loaded.graph->n_outputs + z->n_kept) return RFX_EXIT_DONE;
    rfx_cli_message("'%s': at this size the network has other tensors", z->picture);
    return RFX_EXIT_REFUSED;
}

static int count_picture(struct quantize *z, const char *path) {
    struct rfx_cli_progress progress;
    struct rfx_error err = {{0}};
    const struct rfx_output_sink sink = {.write = count_piece, .user = z};
    z->picture = path;
    int code = rfx_kept_run_open(&z->counting, path);
    if (code != RFX_EXIT_DONE) return code;
    z->counting.run.sink = &sink;
    z->counting.run.user = &progress;
    rfx_cli_progress_start(&progress, rfx_batch_list_base(path));
    enum rfx_status status = rfx_run_image(&z->counting.run, z->counting.job.image, NULL, &err);
    rfx_cli_progress_end(&progress);
    if (status == RFX_OK && rfx_cli_progress_cancelled())
        status = rfx_fail(&err, RFX_STATUS_CANCELLED, "stopped by a signal");
    if (status == RFX_OK) z->calibration.pictures++;
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

/* Lists the tensors that runs on pictures keep. */
static enum rfx_status list_kept(struct quantize *z, struct rfx_error *err) {
    const struct rfx_graph *graph = z->loaded.graph;
    size_t n = (size_t)graph->n_nodes;
    z->names = rfx_memory_calloc(graph->mem, n, sizeof *z->names);
    z->kept = rfx_memory_calloc(graph->mem, n, sizeof *z->kept);
    if (z->names == NULL || z->kept == NULL)
        return rfx_memory_fail(graph->mem, "names of tensors", n * sizeof *z->names, err);
    for (int i = 0; i < graph->n_nodes; ++i) {
        if (!rfx_quantiser_counts(&z->quantiser, i) || rfx_graph_count_outputs(graph, i) != 0)
            continue;
        z->names[z->n_kept] = rfx_quantiser_name(&z->quantiser, i);
        z->kept[z->n_kept++] = i;
    }
    z->options.model.tensors = z->names;
    z->options.model.n_tensors = z->n_kept;
    z->options.model.keep_how = RFX_KEEP_COPIES;
    return RFX_OK;
}

static int count_pictures(struct quantize *z) {
    int code = RFX_EXIT_DONE;
    z->counting = (struct rfx_kept_run){
        .options = &z->options, .command = "quantize", .ready = ready, .user = z};
    for (size_t i = z->first; i < z->end && code == RFX_EXIT_DONE; ++i)
        code = count_picture(z, z->list.paths[i]);
    rfx_kept_run_release(&z->counting);
    return code;
}

/* --- the command --- */

static int read_request(struct quantize *z) {
    const struct quantize_options *o = z->asked;
    struct rfx_range_request *range = &z->request.range;
    range->method = RFX_RANGE_MINMAX;
    if (o->percentile != 0.0f || (o->method != NULL && strcmp(o->method, "percentile") == 0))
        range->method = RFX_RANGE_PERCENTILE;
    if (o->method != NULL && strcmp(o->method, "entropy") == 0) range->method = RFX_RANGE_ENTROPY;
    range->percentile = o->percentile != 0.0f ? (double)o->percentile : 99.99;
    if (o->percentile != 0.0f && !(o->percentile >= 50.0f && o->percentile <= 100.0f)) {
        rfx_cli_message("--percentile %g: from 50 to 100", (double)o->percentile);
        return RFX_EXIT_USAGE;
    }
    bool is_signed = o->type != NULL && strcmp(o->type, "int8") == 0;
    range->type = is_signed ? RFX_TYPE_INT8 : RFX_TYPE_UINT8;
    if (o->keep_error != 0.0f && !(o->keep_error > 0.0f && o->keep_error <= 200.0f)) {
        rfx_cli_message("--keep-error %g: more than 0, at most 200 dB", (double)o->keep_error);
        return RFX_EXIT_USAGE;
    }
    range->symmetric = o->symmetric;
    z->request.one_weight_scale = o->one_weight_scale;
    z->request.left_float = o->left_float.tensors;
    z->request.n_left_float = o->left_float.n;
    return RFX_EXIT_DONE;
}

/* Reads the list of pictures and chooses those of this part. */
static int read_list(struct quantize *z, struct rfx_memory *mem) {
    const struct quantize_options *o = z->asked;
    struct rfx_error err = {{0}};
    int64_t part = 1, parts = 1;
    if (o->part != NULL && !rfx_cli_parse_share(o->part, &part, &parts)) {
        rfx_cli_message("--part '%s' is not I/N, such as 1/4: part I of N, counted from 1",
                        o->part);
        return RFX_EXIT_USAGE;
    }
    enum rfx_status status = rfx_batch_list_read_images(mem, o->images, &z->list, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    z->first = z->list.n * (size_t)(part - 1) / (size_t)parts;
    z->end = z->list.n * (size_t)part / (size_t)parts;
    if (z->first < z->end) return RFX_EXIT_DONE;
    rfx_cli_message("--part %s: %zu pictures are too few for so many parts", o->part, z->list.n);
    return RFX_EXIT_USAGE;
}

/* Loads the network at the size of --size or of the first picture, and chooses what becomes bytes.
 */
static int load(struct quantize *z) {
    struct rfx_error err = {{0}};
    struct rfx_cli_run_options options = z->options;
    const char *picture = z->asked->counts == NULL ? z->list.paths[z->first] : NULL;
    if (z->asked->size.y > 0) {
        options.model.size = z->asked->size;
        picture = NULL;
    } else if (picture == NULL) {
        char first[4096];
        (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(z->asked->counts, ","),
                       z->asked->counts);
        enum rfx_status status =
            rfx_calibration_size(first, &options.model.size.y, &options.model.size.x, &err);
        if (status != RFX_OK) return rfx_cli_fail(status, &err);
    }
    int code = rfx_cli_job_open(&z->loaded, &options, picture);
    if (code != RFX_EXIT_DONE) return code;
    rfx_image_free(z->loaded.image);
    z->loaded.image = NULL;
    enum rfx_status status =
        rfx_quantiser_choose(&z->quantiser, z->loaded.graph, &z->request, &err);
    if (status == RFX_OK)
        status = rfx_calibration_create(z->loaded.mem, &z->quantiser, &z->calibration, &err);
    if (status == RFX_OK) status = list_kept(z, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

/* Reads the files of --counts. */
static int read_counts(struct quantize *z) {
    struct rfx_memory *mem = z->loaded.mem;
    struct rfx_error err = {{0}};
    char *text = rfx_memory_strdup(mem, z->asked->counts);
    const char **paths =
        text == NULL ? NULL : rfx_memory_calloc(mem, strlen(text) + 1, sizeof *paths);
    int n = 0;
    enum rfx_status status =
        paths == NULL ? rfx_memory_fail(mem, "names of files", strlen(z->asked->counts), &err)
                      : RFX_OK;
    for (char *at = text; status == RFX_OK && at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL) *comma++ = '\0';
        paths[n++] = at;
        at = comma;
    }
    if (status == RFX_OK) status = rfx_calibration_read(&z->calibration, paths, n, &err);
    rfx_memory_release(mem, paths);
    rfx_memory_release(mem, text);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

/* Layers with weights, those of them that are computed on integers, and other operators that are.
 * Transposed convolutions are not, though their weights are bytes. */
struct shares {
    int layers, integer_layers, integer_others;
};

static struct shares shares_of(const struct rfx_quantiser *q) {
    struct shares s = {0};
    for (int i = 0; i < q->graph->n_nodes; ++i) {
        enum rfx_op op = q->graph->nodes[i].op;
        bool layer = op == RFX_OP_CONV || op == RFX_OP_CONV_TRANSPOSE || op == RFX_OP_GEMM;
        if (layer) s.layers++;
        if (layer && op != RFX_OP_CONV_TRANSPOSE) s.integer_layers += q->integer[i];
        if (!layer) s.integer_others += q->integer[i];
    }
    return s;
}

/* Returns whether --keep-error leaves a node in float32. */
static bool is_noisy(const struct quantize *z, int node) {
    return z->quantiser.noise[node].part != NULL && !z->quantiser.integer[node];
}

static json_t *noisy_json(const struct quantize *z) {
    json_t *list = json_array();
    for (int i = 0; i < z->loaded.graph->n_nodes; ++i)
        if (is_noisy(z, i))
            (void)json_array_append_new(
                list, json_pack("{s:s, s:f, s:s}", "name", z->loaded.graph->nodes[i].name,
                                "signal_to_noise_db", z->quantiser.noise[i].db, "part",
                                z->quantiser.noise[i].part));
    return list;
}

static void print_noisy(const struct quantize *z) {
    for (int i = 0; i < z->loaded.graph->n_nodes; ++i)
        if (is_noisy(z, i))
            printf("float32    %s, %.1f dB of its %s\n", z->loaded.graph->nodes[i].name,
                   z->quantiser.noise[i].db, z->quantiser.noise[i].part);
}

static int report(const struct quantize *z, const char *file) {
    const struct shares s = shares_of(&z->quantiser);
    struct stat info = {.st_size = 0};
    char bytes[RFX_HUMAN_CHARS], peak[RFX_HUMAN_CHARS];
    (void)stat(file, &info);
    bool scales = z->asked->part == NULL;
    if (z->options.json) {
        json_t *document = rfx_report_document("quantize", z->options.words.shown[0]);
        (void)json_object_update_new(
            document, json_pack("{s:s, s:I, s:i, s:i, s:i, s:i, s:o, s:I, s:I}", "file", file,
                                "pictures", (json_int_t)z->calibration.pictures, "tensors",
                                z->quantiser.counted, "layers", s.layers, "integer_layers",
                                s.integer_layers, "other_integer_operators", s.integer_others,
                                "kept_by_error", noisy_json(z), "bytes", (json_int_t)info.st_size,
                                "peak_rss_bytes", (json_int_t)rfx_peak_rss_bytes()));
        return rfx_report_print(document);
    }
    printf("pictures   %lld\n", (long long)z->calibration.pictures);
    printf("bytes      %d tensors\n", z->quantiser.counted);
    if (scales)
        printf("integers   %d of %d convolutions and Gemms, %d other operators\n", s.integer_layers,
               s.layers, s.integer_others);
    print_noisy(z);
    printf("file       %s, %s%s\n", file, rfx_human_bytes((size_t)info.st_size, bytes),
           scales ? "" : ", for --counts");
    printf("measured   %s peak RSS\n", rfx_human_bytes(rfx_peak_rss_bytes(), peak));
    return RFX_EXIT_DONE;
}

static enum rfx_status find_scales(struct quantize *z, struct rfx_error *err) {
    const struct rfx_value_counts *counts = z->calibration.counts;
    double least = (double)z->asked->keep_error;
    enum rfx_status status = rfx_quantiser_find_scales(&z->quantiser, counts, &z->request, err);
    if (status != RFX_OK || least == 0.0) return status;
    status = rfx_quantiser_leave_noisy(&z->quantiser, counts, &z->request, least, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "--keep-error %g", least);
    return rfx_quantiser_find_scales(&z->quantiser, counts, &z->request, err);
}

static int write_result(struct quantize *z, const char *file) {
    struct rfx_error err = {{0}};
    enum rfx_status status;
    int64_t part = 0, parts = 0;
    if (z->asked->part != NULL && rfx_cli_parse_share(z->asked->part, &part, &parts)) {
        z->calibration.part = (int)part;
        z->calibration.parts = (int)parts;
        status = rfx_calibration_write(&z->calibration, file, &err);
    } else {
        status = find_scales(z, &err);
        const struct rfx_quantisation quantisation = {.type = z->request.range.type,
                                                      .nodes = z->quantiser.nodes};
        if (status == RFX_OK)
            status = rfx_onnx_export_quantised(z->loaded.graph, &quantisation, file, &err);
    }
    return status == RFX_OK ? report(z, file) : rfx_cli_fail(status, &err);
}

static int run(void *given) {
    static struct quantize z; /* large for a stack */
    const struct quantize_options *asked = given;
    memset(&z, 0, sizeof z);
    z.asked = asked;
    z.options = asked->run;
    z.options.model.fuse = &rfx_quantiser_fusing;
    const char *file = asked->run.output.file;
    if (file == NULL || (asked->images == NULL && asked->counts == NULL)) {
        rfx_cli_message("quantize needs --images or --counts, and -o: see 'rfexec help quantize'");
        return RFX_EXIT_USAGE;
    }
    struct rfx_memory *mem = rfx_cli_memory_create();
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    int code = read_request(&z);
    if (code == RFX_EXIT_DONE && asked->images != NULL) code = read_list(&z, mem);
    if (code == RFX_EXIT_DONE) code = load(&z);
    if (code == RFX_EXIT_DONE) code = asked->images != NULL ? count_pictures(&z) : read_counts(&z);
    if (code == RFX_EXIT_DONE) code = write_result(&z, file);
    rfx_calibration_release(&z.calibration);
    rfx_quantiser_release(&z.quantiser);
    if (z.loaded.mem != NULL) {
        rfx_memory_release(z.loaded.mem, z.kept);
        rfx_memory_release(z.loaded.mem, z.names);
    }
    rfx_cli_job_free(&z.loaded);
    rfx_batch_list_free(&z.list);
    rfx_memory_free(mem);
    return code;
}

static struct quantize_options values;

static const char heading[] = "quantize options (what becomes bytes, and how)";

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(
        quantize_options, "images", TEXT, images, "LIST|FOLDER",
        "pictures to take the ranges from: a folder, a file with one path a line, or one "
        "picture",
        .excludes = "counts"),
    RFX_CLI_OPTION(quantize_options, "part", TEXT, part, "I/N",
                   "count part I of N of the pictures and write the counts to -o",
                   .needs = "images"),
    RFX_CLI_OPTION(quantize_options, "counts", TEXT, counts, "FILE,FILE,...",
                   "instead of pictures: the counts of all parts"),
    RFX_CLI_OPTION(quantize_options, "size", PAIR, size, "HxW",
                   "rows and columns of the pictures that the file is for (default: of the first "
                   "picture), where the network has tensors that depend on them, as detectors have",
                   .excludes = "part"),
    RFX_CLI_OPTION(quantize_options, "method", WORD, method, "minmax|percentile|entropy",
                   "how a tensor's range is taken from its values (default minmax): from the "
                   "smallest to the largest; without a share of the outermost values; or the range "
                   "that loses the least information"),
    RFX_CLI_OPTION(quantize_options, "percentile", FLOAT, percentile, "P",
                   "share of the values in percent that the range holds (default 99.99)",
                   .excludes = "method=minmax method=entropy"),
    RFX_CLI_OPTION(quantize_options, "type", WORD, type, "uint8|int8",
                   "element type of the tensors (default uint8); weights are int8"),
    RFX_CLI_OPTION(quantize_options, "symmetric", FLAG, symmetric, NULL,
                   "ranges of tensors reach as far below 0 as above"),
    RFX_CLI_OPTION(quantize_options, "one-weight-scale", FLAG, one_weight_scale, NULL,
                   "one scale for all weights of a layer, instead of one for each output channel"),
    RFX_CLI_OPTION(quantize_options, "float", KEEP, left_float, "LAYER",
                   "leave this layer in float32 (may be given again)"),
    RFX_CLI_OPTION(quantize_options, "keep-error", FLOAT, keep_error, "DB",
                   "leave the layers in float32 whose input, weights or result have less than DB "
                   "decibels of signal to noise as bytes",
                   .excludes = "part"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP(heading, rows);

static const struct rfx_cli_use uses[] = {
    {&group, 0},
    RFX_CLI_USE(file, rfx_cli_run_options, output),
    RFX_CLI_USE(plan, rfx_cli_run_options, plan),
    RFX_CLI_USE(seed, rfx_cli_run_options, model),
    RFX_CLI_USE(input, rfx_cli_run_options, input),
    RFX_CLI_USE(json, rfx_cli_run_options, json),
};

const struct rfx_cli_command rfx_cmd_quantize = {
    .name = "quantize",
    .args =
        "MODEL --images LIST|FOLDER -o FILE.onnx [--method M] [--memory BYTES]\n"
        "       rfexec quantize MODEL --images LIST|FOLDER --part I/N -o FILE.json\n"
        "       rfexec quantize MODEL --counts FILE,FILE,... -o FILE.onnx",
    .summary = "write a network of bytes (8 bits), with ranges taken from pictures",
    .details =
        "MODEL is an .onnx file in float32 or a built-in name. The network runs on every picture,\n"
        "of any size and within --memory, and the values of its tensors are counted. "
        "Convolutions,\n"
        "Gemms, sums and products of maps, means and Concat are computed on integers; everything\n"
        "else stays in float32, transposed convolutions with weights of bytes. Relu and Clip "
        "become\n"
        "part of the layer before them, batch norms part of the weights.\n"
        "\n"
        "The file has QuantizeLinear and DequantizeLinear around each operator (QDQ, opset 17), "
        "as\n"
        "ONNX Runtime and others read it. rfexec computes the same bytes as ONNX Runtime does.\n"
        "\n"
        "Large sets of pictures can be counted in parts: --part 2/4 counts the second quarter and\n"
        "writes a file, and --counts adds up the files of all parts. The scales are the same as\n"
        "without parts, and for every plan.\n"
        "\n"
        "The file takes pictures of any size where the network has no tensors that depend on it;\n"
        "else those of one size (--size). The ranges may come from pictures of other sizes.\n",
    .examples = "rfexec quantize mobilenet_v2.onnx --images photos/ --memory 256MiB -o int8.onnx\n",
    RFX_CLI_TABLE(uses),
    .needs = "output",
    .min_args = 1,
    .max_args = 1,
    .values = &values,
    .run = run,
};
