/* rfexec compare: runs two networks on the same pictures and shows how far their outputs are apart,
 * and with --layers the tensors of the same name.
 *
 * The first network's tensors wait in a nameless file while the second one runs, so memory holds
 * one run at a time. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/temp_file.h"
#include "layers/graph/op.h"
#include "rfexec/run/keep_tensors.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/run_once.h"
#include "tools/cli/table.h"
#include "tools/commands/batch_list.h"

struct compare_options {
    struct rfx_cli_run_options run;
    const char *images;
    bool layers;
};

/* How far a tensor of the second network is from that of the first, over all pictures. */
struct apart {
    const char *name; /* in the first network */
    char *own;        /* the copy of an output's name; NULL: the name is one of a kept tensor */
    bool output;      /* an output of both networks */
    int64_t elements;
    double signal, noise;   /* sums of squares: of the first network's values, of differences */
    double largest, most;   /* largest magnitude of a difference; of the first network's values */
    int64_t pixels, others; /* pixels of several channels; those whose largest channel is another */
};

struct compare {
    const struct compare_options *asked;
    struct rfx_memory *mem; /* of names and tables */
    const char *models[2];
    struct rfx_batch_list list;
    const char **names[2]; /* per network: the kept tensors, in the same order */
    int n_kept;
    const char **all; /* names of the first network's tensors with every end, and their text */
    char *text;
    struct apart *tensors; /* outputs, then kept tensors */
    int n_tensors;
    struct rfx_cli_job job;
    int file;        /* the first network's tensors */
    int64_t *places; /* per piece of the outputs: offset in the file */
    int64_t *elems;  /* per piece: number of elements */
    int n_pieces;
    float *row; /* of both networks: row_elems each */
    int64_t row_elems;
};

/* --- names of tensors --- */

/* In the second network, a tensor of this name is float32 behind one of these DequantizeLinear
 * nodes, as rfexec and ONNX Runtime name them, if it is stored as bytes. */
static const char *const ends[] = {"#dequantised", "_DequantizeLinear",
                                   "_output_0_DequantizeLinear", ""};
enum { N_ENDS = sizeof ends / sizeof ends[0] };

static struct rfx_cli_run_options options_of(const struct compare *c, int network,
                                             const char **model) {
    struct rfx_cli_run_options options = c->asked->run;
    *model = c->models[network];
    options.words.args = model;
    options.model.tensors = c->names[network];
    options.model.n_tensors = c->n_kept;
    options.model.keep_how = RFX_KEEP_COPIES;
    options.model.dequantize = true; /* outputs of bytes are compared by their values */
    return options;
}

/* Returns the name under which a node's tensor can be kept. */
static const char *name_of(const struct rfx_graph *graph, int i) {
    const struct rfx_node *node = &graph->nodes[i];
    return node->alias != NULL && rfx_graph_find(graph, node->alias) == i ? node->alias
                                                                          : node->name;
}

/* Returns the name that end e follows. rfexec names what it writes behind a node after the node; a
 * batch norm that was fused into the node has another name. */
static const char *end_name(const struct rfx_graph *graph, int i, int e) {
    return e == N_ENDS - 1 ? name_of(graph, i) : graph->nodes[i].name;
}

static bool is_compared(const struct rfx_graph *graph, int i) {
    const struct rfx_node *node = &graph->nodes[i];
    return !rfx_node_is_constant(node) && !rfx_node_is_joined(node) && !rfx_node_is_input(node) &&
           rfx_graph_count_outputs(graph, i) == 0;
}

/* Lists the names of the first network's tensors with every end: c->all. Returns their number in
 * *n. */
static enum rfx_status list_names(struct compare *c, const struct rfx_graph *graph, int *n,
                                  struct rfx_error *err) {
    size_t most = (size_t)graph->n_nodes * N_ENDS, bytes = 1;
    for (int i = 0; i < graph->n_nodes; ++i)
        for (int e = 0; e < N_ENDS; ++e)
            bytes += strlen(end_name(graph, i, e)) + strlen(ends[e]) + 1;
    *n = 0;
    c->all = rfx_memory_calloc(c->mem, most, sizeof *c->all);
    c->text = rfx_memory_alloc(c->mem, bytes);
    if (c->all == NULL || c->text == NULL)
        return rfx_memory_fail(c->mem, "names of tensors", bytes, err);
    char *at = c->text;
    for (int i = 0; i < graph->n_nodes; ++i)
        for (int e = 0; e < N_ENDS && is_compared(graph, i); ++e) {
            c->all[(*n)++] = at;
            at += sprintf(at, "%s%s", end_name(graph, i, e), ends[e]) + 1;
        }
    return RFX_OK;
}

/* Sets c->names to the tensors that both networks have: of each name, the first end that the second
 * network knows. */
static enum rfx_status match_names(struct compare *c, const struct rfx_graph *second, int n,
                                   struct rfx_error *err) {
    const char **names = c->all;
    size_t most = (size_t)(n / N_ENDS) + 1;
    for (int k = 0; k < 2; ++k) {
        c->names[k] = rfx_memory_calloc(c->mem, most, sizeof *c->names[k]);
        if (c->names[k] == NULL) return rfx_memory_fail(c->mem, "names of tensors", most, err);
    }
    for (int i = 0; i < n; i += N_ENDS)
        for (int e = 0, found = 0; e < N_ENDS && !found; ++e)
            for (int k = 0; k < second->n_outputs && !found; ++k) {
                const struct rfx_output *kept = &second->outputs[k];
                if (strcmp(kept->name, names[i + e]) != 0) continue;
                if (kept->stored.type != RFX_TYPE_FLOAT32) continue; /* bytes without their scale */
                c->names[0][c->n_kept] = names[i + N_ENDS - 1];      /* without an end */
                c->names[1][c->n_kept++] = names[i + e];
                found = 1;
            }
    return RFX_OK;
}

/* Finds the tensors that both networks have under the same name. */
static int find_tensors(struct compare *c, const char *picture) {
    static const struct rfx_fuse_options batch_norms = {.batch_norm = true};
    struct rfx_error err = {{0}};
    const char *model;
    int n = 0;
    struct rfx_cli_run_options options = options_of(c, 0, &model);
    options.model.fuse = &batch_norms;
    int code = rfx_cli_job_open(&c->job, &options, picture);
    if (code != RFX_EXIT_DONE) return code;
    enum rfx_status status = list_names(c, c->job.graph, &n, &err);
    rfx_cli_job_free(&c->job);
    c->job = (struct rfx_cli_job){0};
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    options = options_of(c, 1, &model);
    options.model.tensors = c->all;
    options.model.n_tensors = n;
    options.model.keep_how = RFX_KEEP_KNOWN;
    code = rfx_cli_job_open(&c->job, &options, picture);
    if (code != RFX_EXIT_DONE) return code;
    status = match_names(c, c->job.graph, n, &err);
    rfx_cli_job_free(&c->job);
    c->job = (struct rfx_cli_job){0};
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

/* --- a picture --- */

static enum rfx_status fail_file(struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_IO, "tensors that wait in '%.200s': %s", rfx_temp_folder(NULL),
                    strerror(errno));
}

/* Moves `elems` floats of piece k, from element `first` on, to or from the file. */
static enum rfx_status move(struct compare *c, bool to_file, int k, int64_t first, float *values,
                            int64_t elems, struct rfx_error *err) {
    size_t left = (size_t)elems * sizeof *values;
    off_t at = (off_t)(c->places[k] + first * (int64_t)sizeof *values);
    for (char *bytes = (char *)values; left > 0;) {
        ssize_t n = to_file ? pwrite(c->file, bytes, left, at) : pread(c->file, bytes, left, at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) return fail_file(err);
        bytes += n;
        at += n;
        left -= (size_t)n;
    }
    return RFX_OK;
}

static void compare_row(struct apart *t, const float *a, const float *b, int64_t pixels,
                        int64_t channels) {
    for (int64_t i = 0; i < pixels * channels; ++i) {
        double value = (double)a[i], difference = value - (double)b[i];
        t->signal += value * value;
        t->noise += difference * difference;
        t->largest = fmax(t->largest, fabs(difference));
        t->most = fmax(t->most, fabs(value));
    }
    t->elements += pixels * channels;
    for (int64_t p = 0; p < pixels && channels > 1; ++p, a += channels, b += channels) {
        int64_t first = 0, second = 0;
        for (int64_t k = 1; k < channels; ++k) {
            if (a[k] > a[first]) first = k;
            if (b[k] > b[second]) second = k;
        }
        t->pixels++;
        t->others += first != second;
    }
}

/* Takes a piece of a tensor row by row: writes the first network's, compares the second one's. */
static enum rfx_status take_piece(struct compare *c, bool first, const struct rfx_end *end,
                                  struct rfx_rect rect, const struct rfx_view *view,
                                  struct rfx_error *err) {
    const struct rfx_graph *graph = c->job.graph;
    const struct rfx_tensor *t = &graph->nodes[end->node].out;
    int k = (int)(end - graph->ends);
    int64_t cols = t->layout == RFX_LAYOUT_NHWC ? t->w : 1, n = end->channels;
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; status == RFX_OK && y < rect.y1; ++y)
        for (int64_t x0 = rect.x0; status == RFX_OK && x0 < rect.x1;) {
            int64_t fit = c->row_elems / n, some = rfx_rect_cols(rect) - (x0 - rect.x0);
            if (some > fit) some = fit;
            for (int64_t x = 0; x < some; ++x)
                rfx_type_load(view->type, rfx_view_at(view, y, x0 + x), n, c->row + x * n);
            int64_t at = (y * cols + x0) * n;
            float *waiting = c->row + c->row_elems;
            if (first) {
                status = move(c, true, k, at, c->row, some * n, err);
            } else {
                status = move(c, false, k, at, waiting, some * n, err);
                if (status == RFX_OK)
                    compare_row(&c->tensors[end->output], waiting, c->row, some, n);
            }
            x0 += some;
        }
    return status;
}

static enum rfx_status keep_piece(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                  const struct rfx_view *view, struct rfx_error *err) {
    return take_piece(user, true, end, rect, view, err);
}

static enum rfx_status compare_piece(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                     const struct rfx_view *view, struct rfx_error *err) {
    return take_piece(user, false, end, rect, view, err);
}

/* Frees the tables of one picture. */
static void forget_picture(struct compare *c) {
    rfx_memory_release(c->mem, c->places);
    rfx_memory_release(c->mem, c->elems);
    rfx_memory_release(c->mem, c->row);
    c->places = c->elems = NULL;
    c->row = NULL;
}

/* Gives every piece of the first network's outputs its place in the file. */
static enum rfx_status lay_out(struct compare *c, struct rfx_error *err) {
    const struct rfx_graph *graph = c->job.graph;
    size_t n = (size_t)graph->n_ends;
    int64_t at = 0;
    c->n_pieces = graph->n_ends;
    c->row_elems = 65536;
    c->places = rfx_memory_calloc(c->mem, n, sizeof *c->places);
    c->elems = rfx_memory_calloc(c->mem, n, sizeof *c->elems);
    if (c->places == NULL || c->elems == NULL) return rfx_memory_fail(c->mem, "places", n, err);
    for (size_t k = 0; k < n; ++k) {
        const struct rfx_end *end = &graph->ends[k];
        c->places[k] = at;
        c->elems[k] = graph->nodes[end->node].out.elems;
        at += c->elems[k] * (int64_t)sizeof(float);
        if (end->channels > c->row_elems) c->row_elems = end->channels;
    }
    c->row = rfx_memory_calloc(c->mem, 2 * (size_t)c->row_elems, sizeof *c->row);
    if (c->row == NULL) return rfx_memory_fail(c->mem, "row", 2 * (size_t)c->row_elems, err);
    if (ftruncate(c->file, at) != 0) return fail_file(err);
    if (c->tensors != NULL) return RFX_OK;
    c->n_tensors = graph->n_outputs;
    c->tensors = rfx_memory_calloc(c->mem, (size_t)c->n_tensors, sizeof *c->tensors);
    if (c->tensors == NULL) return rfx_memory_fail(c->mem, "tensors", (size_t)c->n_tensors, err);
    for (int k = 0; k < c->n_tensors; ++k) {
        int kept = k - (c->n_tensors - c->n_kept);
        struct apart *t = &c->tensors[k];
        t->output = kept < 0;
        if (t->output) t->own = rfx_memory_strdup(c->mem, graph->outputs[k].name);
        t->name = t->output ? t->own : c->names[0][kept];
        if (t->name == NULL) return rfx_memory_fail(c->mem, "name of an output", 1, err);
    }
    return RFX_OK;
}

/* Checks that the second network has the outputs of the first one. */
static int check_same(const struct compare *c, const char *picture) {
    const struct rfx_graph *graph = c->job.graph;
    bool same = graph->n_outputs == c->n_tensors && graph->n_ends == c->n_pieces;
    for (int k = 0; same && k < c->n_pieces; ++k)
        same = graph->nodes[graph->ends[k].node].out.elems == c->elems[k];
    if (same) return RFX_EXIT_DONE;
    rfx_cli_message("'%s' and '%s' have outputs of other numbers or sizes on '%s'", c->models[0],
                    c->models[1], picture);
    return RFX_EXIT_REFUSED;
}

static int run_network(struct compare *c, int network, const char *picture) {
    const char *model;
    struct rfx_error err = {{0}};
    struct rfx_cli_run_options options = options_of(c, network, &model);
    const struct rfx_output_sink sink = {.write = network == 0 ? keep_piece : compare_piece,
                                         .user = c};
    int code = rfx_cli_job_open(&c->job, &options, picture);
    if (code != RFX_EXIT_DONE) return code;
    enum rfx_status status = network == 0 ? lay_out(c, &err) : RFX_OK;
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    if (network == 1) code = check_same(c, picture);
    if (code != RFX_EXIT_DONE) return code;
    c->job.request.emit_outputs = true;
    c->job.request.source.fixed_bytes += c->list.bytes + 2 * (size_t)c->row_elems * sizeof(float);
    code = rfx_cli_job_plan(&c->job, &options, "compare");
    if (code != RFX_EXIT_DONE) return code;
    const struct rfx_cli_run run = {.plan = c->job.plan,
                                    .image = c->job.image,
                                    .sink = &sink,
                                    .spill = options.plan.spill,
                                    .what = network == 0 ? "first" : "second"};
    struct rfx_run_report report;
    status = rfx_cli_run_once(&run, &report, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static int compare_picture(struct compare *c, const char *picture) {
    int code = RFX_EXIT_DONE;
    for (int network = 0; network < 2 && code == RFX_EXIT_DONE; ++network) {
        code = run_network(c, network, picture);
        rfx_cli_job_free(&c->job);
        c->job = (struct rfx_cli_job){0};
    }
    forget_picture(c);
    return code;
}

/* --- the report --- */

/* Returns the signal to noise ratio in dB; infinite: no value differs. */
static double ratio_of(const struct apart *t) {
    return t->noise == 0.0 ? (double)INFINITY : 10.0 * log10(t->signal / t->noise);
}

static json_t *tensor_json(const struct apart *t) {
    json_t *row = json_pack("{s:s, s:b, s:I, s:f, s:f}", "name", t->name, "output", t->output,
                            "elements", (json_int_t)t->elements, "largest_difference", t->largest,
                            "largest_value", t->most);
    double ratio = ratio_of(t);
    (void)json_object_set_new(row, "signal_to_noise_db",
                              isfinite(ratio) ? json_real(ratio) : json_null());
    if (t->output && t->pixels > 0)
        (void)json_object_set_new(row, "other_class_share",
                                  json_real((double)t->others / (double)t->pixels));
    return row;
}

static int report_json(const struct compare *c) {
    json_t *document = rfx_report_document("compare", c->models[0]), *rows = json_array();
    for (int k = 0; k < c->n_tensors; ++k)
        (void)json_array_append_new(rows, tensor_json(&c->tensors[k]));
    (void)json_object_update_new(document,
                                 json_pack("{s:s, s:I, s:o}", "other", c->models[1], "pictures",
                                           (json_int_t)c->list.n, "tensors", rows));
    return rfx_report_print(document);
}

static int report(const struct compare *c) {
    static const struct rfx_table_column columns[] = {{"tensor", RFX_TABLE_NAMES},
                                                      {"elements", RFX_TABLE_NUMBER},
                                                      {"dB", RFX_TABLE_NUMBER},
                                                      {"largest difference", RFX_TABLE_NUMBER},
                                                      {"largest value", RFX_TABLE_NUMBER},
                                                      {"other class", RFX_TABLE_NUMBER}};
    if (c->asked->run.json) return report_json(c);
    struct rfx_table *table =
        rfx_table_create(c->mem, columns, (int)(sizeof columns / sizeof columns[0]));
    /* kept tensors in the order of the network, outputs last */
    for (int k = 0; k < c->n_tensors; ++k) {
        const struct apart *t = &c->tensors[(k + c->n_tensors - c->n_kept) % c->n_tensors];
        double ratio = ratio_of(t);
        rfx_table_cell(table, "%s", t->name);
        rfx_table_cell(table, "%lld", (long long)t->elements);
        rfx_table_cell(table, isfinite(ratio) ? "%.1f" : "equal", ratio);
        rfx_table_cell(table, "%.4g", t->largest);
        rfx_table_cell(table, "%.4g", t->most);
        if (t->output && t->pixels > 0)
            rfx_table_cell(table, "%.3g %%", 100.0 * (double)t->others / (double)t->pixels);
        else
            rfx_table_cell(table, "-");
    }
    rfx_table_print(table, stdout, rfx_table_terminal_width());
    rfx_table_free(table);
    return rfx_report_lacks_memory() ? RFX_EXIT_SYSTEM : RFX_EXIT_DONE;
}

/* --- the command --- */

/* Lists the pictures: INPUT, or those of --images. */
static int read_list(struct compare *c) {
    const struct rfx_cli_words *words = &c->asked->run.words;
    const char *images = c->asked->images;
    struct rfx_error err = {{0}};
    if ((words->n_args == 3) == (images != NULL)) {
        rfx_cli_message("compare needs either INPUT or --images: see 'rfexec help compare'");
        return RFX_EXIT_USAGE;
    }
    if (images == NULL) {
        c->list = (struct rfx_batch_list){.mem = c->mem, .n = 1};
        c->list.paths = rfx_memory_calloc(c->mem, 1, sizeof *c->list.paths);
        char *copy = rfx_memory_strdup(c->mem, words->args[2]);
        c->list.text = copy;
        if (copy == NULL || c->list.paths == NULL)
            return rfx_cli_fail(rfx_memory_fail(c->mem, "name of the picture", 1, &err), &err);
        c->list.paths[0] = copy;
        return RFX_EXIT_DONE;
    }
    enum rfx_status status = rfx_batch_list_read_images(c->mem, images, &c->list, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static void release(struct compare *c) {
    forget_picture(c);
    for (int k = 0; k < c->n_tensors && c->tensors != NULL; ++k)
        rfx_memory_release(c->mem, c->tensors[k].own);
    rfx_memory_release(c->mem, c->tensors);
    for (int k = 0; k < 2; ++k) rfx_memory_release(c->mem, c->names[k]);
    rfx_memory_release(c->mem, c->all);
    rfx_memory_release(c->mem, c->text);
    rfx_batch_list_free(&c->list);
    rfx_memory_free(c->mem);
}

static int run(void *given) {
    static struct compare c; /* large for a stack */
    const struct compare_options *asked = given;
    struct rfx_error err = {{0}};
    memset(&c, 0, sizeof c);
    c.asked = asked;
    c.models[0] = asked->run.words.args[0];
    c.models[1] = asked->run.words.args[1];
    c.mem = rfx_cli_memory_create();
    if (c.mem == NULL) return RFX_EXIT_SYSTEM;
    c.file = rfx_temp_file_open(rfx_temp_folder(asked->run.plan.spill));
    int code = c.file < 0 ? rfx_cli_fail(fail_file(&err), &err) : read_list(&c);
    if (code == RFX_EXIT_DONE && asked->layers) code = find_tensors(&c, c.list.paths[0]);
    for (size_t i = 0; code == RFX_EXIT_DONE && i < c.list.n; ++i)
        code = compare_picture(&c, c.list.paths[i]);
    if (code == RFX_EXIT_DONE) code = report(&c);
    if (c.file >= 0) (void)close(c.file);
    rfx_cli_job_free(&c.job);
    release(&c);
    return code;
}

static struct compare_options values;

static const char heading[] = "compare options";

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(compare_options, "images", TEXT, images, "LIST|FOLDER",
                   "instead of INPUT: a folder of pictures, or a file with one path a line"),
    RFX_CLI_OPTION(
        compare_options, "layers", FLAG, layers, NULL,
        "also compare the tensors that both networks have under the same name; they need "
        "4 bytes of disk space for each element"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP(heading, rows);

static const struct rfx_cli_use uses[] = {
    {&group, 0},
    RFX_CLI_USE(plan, rfx_cli_run_options, plan),
    RFX_CLI_USE(seed, rfx_cli_run_options, model),
    RFX_CLI_USE(input, rfx_cli_run_options, input),
    RFX_CLI_USE(json, rfx_cli_run_options, json),
};

const struct rfx_cli_command rfx_cmd_compare = {
    .name = "compare",
    .args = "MODEL OTHER INPUT|--images LIST|FOLDER [--layers] [PLAN OPTIONS] [--json]",
    .summary = "show how far the outputs of two networks are apart, such as float32 and bytes",
    .details =
        "Both networks run on every picture, one after the other and each within --memory. For\n"
        "each output: the signal to noise ratio in dB (of the first network's values to the\n"
        "differences; 6 dB are one bit), the largest difference, and the share of pixels whose\n"
        "largest channel is another one (a class, where the output is a vector).\n"
        "\n"
        "--layers shows the same for tensors inside of the networks, so that the layer that loses\n"
        "most can be found and left in float32 (rfexec quantize --float).\n",
    .examples = "rfexec compare net.onnx net.int8.onnx --images photos/ --layers\n",
    RFX_CLI_TABLE(uses),
    .min_args = 2,
    .max_args = 3,
    .values = &values,
    .run = run,
};
