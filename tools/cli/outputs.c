/* Fingerprints and files of outputs; see outputs.h. */
#include "tools/cli/outputs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "rfexec/run/class_map.h"
#include "tools/cli/classes.h"
#include "tools/cli/command.h"
#include "tools/cli/late_results.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"

enum { MAX_NAME = RFX_CLI_FILE_NAME };

bool rfx_cli_options_mark(const struct rfx_cli_input_options *options) {
    const char *mark = options->nodata_mark;
    return options->nodata.given && (mark == NULL || strcmp(mark, "none") != 0);
}

static bool of_tiff(const struct rfx_cli_output_options *options) {
    return options->tiff_tile != 0 || options->tiff_compress != NULL || options->cog;
}

static bool of_zarr(const struct rfx_cli_output_options *options) {
    return options->zarr_chunk != 0 || options->zarr_compress != NULL || options->zarr_format != 0;
}

static bool of_answers(const struct rfx_cli_answer_options *options) {
    return options->thresholds.n > 0 || options->connect != NULL || options->least_area != 0 ||
           options->all_labels || options->classes != NULL || options->coordinates != NULL ||
           options->memory_bytes != 0 || options->head != NULL || options->score.given ||
           options->overlap.given || options->agnostic || options->most_boxes != 0 ||
           options->class_count != 0 || options->distance != 0 || options->bins.n != 0 ||
           options->quantiles.n != 0 || options->within != NULL || options->tolerance.given ||
           options->growth.given || options->soft;
}

const char *rfx_cli_options_misfit(const struct rfx_cli_output_options *options, unsigned takes) {
    if ((takes & RFX_OUTPUT_TAKES_NAMES) == 0 && options->channel_names != NULL)
        return "--channel-names is for files of -o that end in .ome.tif";
    if ((takes & RFX_OUTPUT_TAKES_TILES) == 0 && of_tiff(options))
        return "--tiff-tile, --tiff-compress and --cog are for files of -o that end in .tif";
    if ((takes & RFX_OUTPUT_TAKES_COG) == 0 && options->cog)
        return "--cog is for files of -o that end in .tif, not in .ome.tif";
    if ((takes & RFX_OUTPUT_TAKES_CHUNKS) == 0 && of_zarr(options))
        return "options --zarr-... are for folders of -o that end in .zarr";
    if ((takes & RFX_OUTPUT_TAKES_OVERVIEWS) == 0 && options->overviews != NULL)
        return "--overviews are for -o that ends in .tif or .ome.zarr";
    if ((takes & RFX_OUTPUT_TAKES_ANSWERS) == 0 && of_answers(&options->answer))
        return "answer options are for --regions, --points, --summary, --text and --boxes, or "
               "for -o that ends in .geojson, .csv or .json";
    if ((takes & RFX_OUTPUT_TAKES_DISTANCE) == 0 && options->answer.distance != 0)
        return "--distance is for --points, or for -o that ends in .points.geojson or .points.csv";
    if ((takes & RFX_OUTPUT_TAKES_AREAS) == 0 &&
        (options->answer.within != NULL || options->answer.bins.n != 0 ||
         options->answer.quantiles.n != 0))
        return "--within, --bins and --quantiles are for --summary, or for -o that ends in "
               ".summary.json or "
               ".summary.csv";
    if ((takes & RFX_OUTPUT_TAKES_GROWTH) == 0 && options->answer.growth.given)
        return "--unclip is for --text, or for -o that ends in .text.json, .text.csv or "
               ".text.geojson";
    return NULL;
}

bool rfx_cli_options_of_files(const struct rfx_cli_output_options *options) {
    return options->bits != 0 || options->range[0] < options->range[1] ||
           options->overviews != NULL || options->channel_names != NULL || of_tiff(options) ||
           of_zarr(options);
}

static bool is_word(const char *given, const char *word) {
    return given != NULL && strcmp(given, word) == 0;
}

static struct rfx_answer_options answer_of(const struct rfx_cli_answer_options *options) {
    struct rfx_answer_options answer = {.names = options->classes,
                                        .most_bytes = options->memory_bytes,
                                        .thresholds = options->thresholds.values,
                                        .n_thresholds = options->thresholds.n,
                                        .corners = is_word(options->connect, "8"),
                                        .all_labels = options->all_labels,
                                        .least_area = options->least_area,
                                        .distance = options->distance};
    answer.tolerance = options->tolerance.given ? (double)options->tolerance.value : 0.0;
    answer.within = options->within;
    answer.bins = options->bins;
    answer.quantiles = options->quantiles;
    if (is_word(options->coordinates, "pixels")) answer.coordinates = RFX_ANSWER_PIXELS;
    if (is_word(options->coordinates, "map")) answer.coordinates = RFX_ANSWER_MAP;
    answer.head = options->head;
    answer.score = options->score.given ? options->score.value : RFX_ANSWER_SCORE;
    answer.overlap = options->overlap.given ? (double)options->overlap.value : RFX_ANSWER_OVERLAP;
    answer.agnostic = options->agnostic;
    answer.soft = options->soft;
    answer.classes = options->class_count;
    answer.most_boxes = options->most_boxes;
    answer.text_score = options->score.given ? options->score.value : RFX_ANSWER_TEXT_SCORE;
    answer.growth = options->growth.given ? (double)options->growth.value : RFX_ANSWER_GROWTH;
    return answer;
}

bool rfx_cli_output_format(const struct rfx_cli_output_options *options, int64_t images,
                           const char *path, struct rfx_output_format *format) {
    *format = (struct rfx_output_format){
        .images = images,
        .bits = (int)options->bits,
        .has_range = options->range[0] < options->range[1],
        .range = {(double)options->range[0], (double)options->range[1]},
        .zarr_format = (int)options->zarr_format,
        .chunk = options->zarr_chunk,
        .zstd = is_word(options->zarr_compress, "zstd"),
        .cog = options->cog,
        .channel_names = options->channel_names,
        .answer = answer_of(&options->answer),
    };
    if (options->cog || is_word(options->overviews, "mean")) format->overviews = RFX_OVERVIEW_MEAN;
    if (is_word(options->overviews, "nearest")) format->overviews = RFX_OVERVIEW_NEAREST;
    format->kind = rfx_output_kind_of(path);
    if (format->kind == NULL) return false;
    if ((format->kind->takes & RFX_OUTPUT_TAKES_TILES) == 0) return true;
    if (is_word(options->tiff_compress, "deflate")) format->packing = RFX_TIFF_DEFLATE;
    if (is_word(options->tiff_compress, "zstd")) format->packing = RFX_TIFF_ZSTD;
    format->tile = (int)options->tiff_tile;
    rfx_output_format_settle(format);
    return true;
}

bool rfx_cli_run_format(const struct rfx_cli_run_options *options, const char *path,
                        struct rfx_output_format *format) {
    if (!rfx_cli_output_format(&options->output, options->images, path, format)) return false;
    rfx_answer_limit(&format->answer, options->plan.memory_bytes > 0);
    return true;
}

static const struct rfx_tensor *tensor_of(const struct rfx_graph *graph, int k) {
    return &graph->nodes[graph->outputs[k].node].out;
}

/* Returns whether output k is there for --cam only. It goes to no file. */
static bool is_for_class_map(const struct rfx_graph *graph,
                             const struct rfx_cli_run_options *options, int k) {
    struct rfx_class_map map;
    return options->model.class_map && rfx_class_map_find(graph, &map, NULL) == RFX_OK &&
           map.added && map.output == k;
}

/* Returns whether output k is an intermediate tensor of --keep, --dump or --cam. Sets *file to the
 * file of --dump, or NULL. */
static bool is_kept(const struct rfx_graph *graph, const struct rfx_cli_run_options *options, int k,
                    const char **file) {
    bool kept = is_for_class_map(graph, options, k);
    *file = NULL;
    for (int i = 0; i < options->model.kept.n; ++i) {
        if (strcmp(options->model.kept.tensors[i], graph->outputs[k].name) != 0) continue;
        kept = true;
        if (options->model.kept.files[i] != NULL) *file = options->model.kept.files[i];
    }
    return kept;
}

/* Returns the number of outputs that are the network's own (not of --keep, --dump or --cam), or
 * `limit` when there are more. */
static int count_own(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                     int limit) {
    int n = 0;
    const char *file;
    for (int k = 0; k < graph->n_outputs && n < limit; ++k) n += !is_kept(graph, options, k, &file);
    return n;
}

/* Returns the file that --dump or -o gives for output k, or NULL. Sets *named to true when the
 * output's name must become a part of the file name: the network has several outputs of its own, or
 * output k is a tensor of --keep. */
static const char *path_of(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                           int k, bool *named) {
    const char *file;
    bool kept = is_kept(graph, options, k, &file);
    *named = false;
    if (is_for_class_map(graph, options, k)) return NULL;
    *named = file == NULL && (kept || count_own(graph, options, 2) > 1);
    return file != NULL ? file : options->output.file;
}

/* Writes the file name of output k to `name`: the name of --dump, or that of -o ("out.npy"), or
 * "out.<output>.npy"; "" when the output goes to no file. Names of outputs may look like paths, so
 * each '/' becomes '_'. Returns false when the file name is too long. */
static bool file_name(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                      int k, char name[MAX_NAME]) {
    bool named;
    const char *path = path_of(graph, options, k, &named);
    if (path == NULL) path = "";
    const char *end = rfx_output_end(path);
    int stem = end != NULL ? (int)(end - path) : 0, n;
    if (!named || path[0] == '\0')
        n = snprintf(name, MAX_NAME, "%s", path);
    else
        n = snprintf(name, MAX_NAME, "%.*s.%s%s", stem, path, graph->outputs[k].name, end);
    if (n < 0 || n >= MAX_NAME) return false;
    for (char *p = name + stem; named && *p != '\0'; ++p)
        if (*p == '/') *p = '_';
    return true;
}

/* Checks that at most one output goes to standard output. */
static bool check_stdout(const struct rfx_graph *graph, const struct rfx_cli_run_options *options) {
    if (options->output.file == NULL || strcmp(options->output.file, "-") != 0) return true;
    int n = count_own(graph, options, graph->n_outputs);
    if (n > 1) {
        rfx_cli_message("-o -: %d outputs do not fit one stream; -o FILE writes one file each", n);
        return false;
    }
    for (int k = 0; k < graph->n_outputs; ++k) {
        const char *file;
        if (!is_kept(graph, options, k, &file) || file != NULL) continue;
        if (is_for_class_map(graph, options, k)) continue;
        rfx_cli_message("-o - writes one output: --dump %s=FILE writes that of --keep",
                        graph->outputs[k].name);
        return false;
    }
    return true;
}

/* Checks that no two outputs have the same file name: outputs "a/b" and "a_b" would. */
static bool check_names(const struct rfx_graph *graph, const struct rfx_cli_run_options *options) {
    if (!check_stdout(graph, options)) return false;
    for (int k = 0; k < graph->n_outputs; ++k) {
        char name[MAX_NAME], other[MAX_NAME];
        if (!file_name(graph, options, k, name)) {
            rfx_cli_message("the file name of output '%s' is too long", graph->outputs[k].name);
            return false;
        }
        for (int j = 0; j < k; ++j) {
            if (name[0] == '\0' || !file_name(graph, options, j, other)) continue;
            if (strcmp(name, other) != 0) continue;
            rfx_cli_message("outputs '%s' and '%s' would both go to '%s'", graph->outputs[j].name,
                            graph->outputs[k].name, name);
            return false;
        }
    }
    return true;
}

/* Checks that the file of output k, if there is one, can hold the output. */
static int check_format(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                        int k) {
    struct rfx_output_format format;
    struct rfx_error err = {{0}};
    bool named;
    char what[256];
    const char *file = path_of(graph, options, k, &named);
    const char *output = options->output.for_output != NULL ? "--for-output" : "-o";
    const char *option = file == options->output.file ? output : "--dump";
    struct stat at;
    if (file == NULL) return RFX_EXIT_DONE;
    const struct rfx_output_kind *kind = rfx_output_kind_of(file);
    if ((kind == NULL || !kind->folder) && stat(file, &at) == 0 && S_ISDIR(at.st_mode)) {
        rfx_cli_message("%s '%s' is a folder: name a file in it, such as %s%smap.npy", option, file,
                        file, file[strlen(file) - 1] == '/' ? "" : "/");
        return RFX_EXIT_USAGE;
    }
    if (!rfx_cli_run_format(options, file, &format)) {
        char ends[RFX_OUTPUT_ENDS];
        rfx_cli_message("%s '%s': the name must end in %s", option, file, rfx_output_ends(ends));
        return RFX_EXIT_USAGE;
    }
    rfx_output_declare(&format, graph, k);
    bool floats = rfx_output_sample(&format) == RFX_TYPE_FLOAT32;
    if (rfx_cli_options_mark(&options->input) && !floats) {
        rfx_cli_message(
            "%s '%s': --nodata marks pixels as NaN, which such a file cannot hold: write a .npy, "
            ".tif or .zarr of floats, or --nodata-mark none",
            option, file);
        return RFX_EXIT_USAGE;
    }
    (void)snprintf(what, sizeof what, "%s '%.150s', output '%.60s'", option, file,
                   graph->outputs[k].name);
    enum rfx_status status = rfx_output_format_check(&format, tensor_of(graph, k), what, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static bool writes_files(const struct rfx_cli_run_options *options) {
    bool any = options->output.file != NULL;
    for (int i = 0; i < options->model.kept.n; ++i) any |= options->model.kept.files[i] != NULL;
    return any;
}

/* Returns whether every option about TIFF or Zarr has a file of that kind. Prints a message if not.
 */
static bool suits_kinds(const struct rfx_graph *graph, const struct rfx_cli_run_options *options) {
    const struct rfx_cli_answer_options *answer = &options->output.answer;
    unsigned takes = rfx_cli_answers_any(answer) ? RFX_OUTPUT_TAKES_ANSWERS : 0;
    if (answer->points != NULL) takes |= RFX_OUTPUT_TAKES_DISTANCE;
    if (answer->summary != NULL) takes |= RFX_OUTPUT_TAKES_AREAS;
    if (answer->text != NULL) takes |= RFX_OUTPUT_TAKES_GROWTH;
    bool named;
    for (int k = 0; k < graph->n_outputs; ++k) {
        const char *path = path_of(graph, options, k, &named);
        const struct rfx_output_kind *kind = path != NULL ? rfx_output_kind_of(path) : NULL;
        if (kind != NULL) takes |= kind->takes;
    }
    const char *why = rfx_cli_options_misfit(&options->output, takes);
    if (why != NULL) rfx_cli_message("%s", why);
    return why == NULL;
}

int rfx_cli_outputs_check(const struct rfx_graph *graph,
                          const struct rfx_cli_run_options *options) {
    if (graph->late != NULL) return rfx_cli_late_check(graph, options);
    const struct rfx_tensor *first = tensor_of(graph, 0);
    bool classes_asked = options->report.top > 0 || options->report.labels != NULL;
    if (classes_asked && !rfx_cli_is_vector(first)) {
        char shape[96];
        rfx_cli_message("--top and --labels need a vector of classes; output '%s' is %s",
                        graph->outputs[0].name, rfx_human_shape(&first->shape, shape));
        return RFX_EXIT_USAGE;
    }
    int answers = rfx_cli_answers_check(graph, options);
    if (answers != RFX_EXIT_DONE) return answers;
    if (!writes_files(options)) {
        if (!rfx_cli_options_of_files(&options->output)) return RFX_EXIT_DONE;
        rfx_cli_message("--bits, --range and those of TIFF and Zarr are for the file of -o");
        return RFX_EXIT_USAGE;
    }
    for (int k = 0; k < graph->n_outputs; ++k) {
        int code = check_format(graph, options, k);
        if (code != RFX_EXIT_DONE) return code;
    }
    if (!suits_kinds(graph, options)) return RFX_EXIT_USAGE;
    return check_names(graph, options) ? RFX_EXIT_DONE : RFX_EXIT_USAGE;
}

bool rfx_cli_outputs_exist(const struct rfx_graph *graph,
                           const struct rfx_cli_run_options *options) {
    for (int k = 0; k < graph->n_outputs; ++k) {
        char name[MAX_NAME];
        if (!file_name(graph, options, k, name) || access(name, F_OK) != 0) return false;
    }
    return true;
}

static struct rfx_output_files files_of(const struct rfx_graph *graph,
                                        const struct rfx_cli_run_options *options,
                                        const struct rfx_geo_source *source) {
    return (struct rfx_output_files){
        .graph = graph,
        .source = source,
        .as_stored = options->input.no_orient,
        .no_data = rfx_cli_options_mark(&options->input) ? "nan" : NULL};
}

size_t rfx_cli_outputs_bytes(const struct rfx_graph *graph,
                             const struct rfx_cli_run_options *options,
                             const struct rfx_geo_source *source) {
    if (graph->late != NULL) return rfx_cli_late_bytes(graph, options, source);
    const struct rfx_output_files files = files_of(graph, options, source);
    struct rfx_output_files_bytes sum = {0};
    for (int k = 0; k < graph->n_outputs; ++k) {
        char name[MAX_NAME];
        struct rfx_output_format format;
        if (!file_name(graph, options, k, name) || !rfx_cli_run_format(options, name, &format))
            continue;
        rfx_output_declare(&format, graph, k);
        rfx_output_files_add(&sum, &files, k, &format);
    }
    rfx_cli_answers_add(&sum, &files, options);
    return rfx_output_files_sum(&sum, &files);
}

enum rfx_status rfx_cli_outputs_open_file(const struct rfx_graph *graph,
                                          const struct rfx_cli_run_options *options,
                                          const struct rfx_geo_source *source, int k,
                                          const char *name, const struct rfx_output_format *format,
                                          struct rfx_output_stream **out, struct rfx_error *err) {
    const struct rfx_output_files files = files_of(graph, options, source);
    char words[RFX_GEOREFERENCED_WORDS];
    enum rfx_status status = rfx_output_files_open(&files, k, name, format, out, words, err);
    if (words[0] != '\0') rfx_cli_message("%s", words);
    return status;
}

enum rfx_status rfx_cli_outputs_list(struct rfx_memory *mem, const struct rfx_graph *graph,
                                     int64_t images, struct rfx_cli_outputs *outputs,
                                     struct rfx_error *err) {
    size_t bytes = (size_t)graph->n_outputs * sizeof *outputs->items;
    *outputs = (struct rfx_cli_outputs){.mem = mem, .images = images};
    outputs->items = rfx_memory_calloc(mem, (size_t)graph->n_outputs, sizeof *outputs->items);
    if (outputs->items == NULL) return rfx_memory_fail(mem, "outputs", bytes, err);
    outputs->count = graph->n_outputs;
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < outputs->count && status == RFX_OK; ++k) {
        struct rfx_cli_output *item = &outputs->items[k];
        item->name = graph->outputs[k].name;
        item->tensor = tensor_of(graph, k);
        item->type = graph->outputs[k].stored.type;
        const struct rfx_shape one = item->shape = rfx_output_shape(graph, k);
        if (images > 1) status = rfx_npy_batch_shape(&one, images, &item->shape, err);
    }
    return status;
}

enum rfx_status rfx_cli_outputs_file(const struct rfx_graph *graph,
                                     const struct rfx_cli_run_options *options, int k,
                                     char name[MAX_NAME], struct rfx_output_format *format,
                                     struct rfx_error *err) {
    if (!file_name(graph, options, k, name))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the file name of output '%s' is too long", graph->outputs[k].name);
    if (name[0] != '\0' && !rfx_cli_run_format(options, name, format))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: no known format", name);
    if (name[0] != '\0') rfx_output_declare(format, graph, k);
    return RFX_OK;
}

enum rfx_status rfx_cli_outputs_open(struct rfx_memory *mem, const struct rfx_graph *graph,
                                     const struct rfx_cli_run_options *options,
                                     const struct rfx_geo_source *source,
                                     struct rfx_cli_outputs *outputs, struct rfx_error *err) {
    int64_t images = rfx_max_i64(options->images, 1);
    enum rfx_status status = rfx_cli_outputs_list(mem, graph, images, outputs, err);
    for (int k = 0; k < outputs->count && status == RFX_OK; ++k) {
        char name[MAX_NAME];
        struct rfx_output_format format;
        struct rfx_cli_output *item = &outputs->items[k];
        status = rfx_cli_outputs_file(graph, options, k, name, &format, err);
        if (status == RFX_OK && name[0] != '\0')
            status = rfx_cli_outputs_open_file(graph, options, source, k, name, &format,
                                               &item->stream, err);
    }
    const struct rfx_output_files files = files_of(graph, options, source);
    if (status == RFX_OK) status = rfx_cli_answers_open(&files, options, &outputs->answers, err);
    return status;
}

static enum rfx_status put(struct rfx_cli_outputs *outputs, const struct rfx_end *end,
                           struct rfx_rect rect, const struct rfx_view *view,
                           struct rfx_error *err) {
    struct rfx_cli_output *item = &outputs->items[end->output];
    enum rfx_status status = RFX_OK;
    rfx_fingerprint_add_end(&item->fingerprint, end, rect, view);
    if (item->stream != NULL)
        status = rfx_output_stream_write_end(item->stream, end, rect, view, err);
    return status == RFX_OK ? rfx_cli_answers_write(&outputs->answers, end, rect, view, err)
                            : status;
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_cli_outputs *outputs = user;
    struct rfx_cli_output *item = &outputs->items[end->output];
    int64_t count = rfx_rect_area(rect) * end->channels;
    if (count > item->tensor->elems - item->received)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "output '%s': %lld elements after %lld of %lld", item->name,
                        (long long)count, (long long)item->received,
                        (long long)item->tensor->elems);
    item->received += count;
    if (outputs->classes != NULL && end->output == 0)
        rfx_cli_classes_take(outputs->classes, end, rect, view);
    const struct rfx_missing *missing = outputs->missing;
    if (missing == NULL || !rfx_missing_any(missing, end->output, rect))
        return put(outputs, end, rect, view, err);
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; ++y) {
        struct rfx_view row =
            rfx_missing_row(missing, end->output, end->channels, y, rect.x0, rect.x1, view);
        status = put(outputs, end, row.rect, &row, err);
    }
    return status;
}

/* Passes a piece of an output to the file's search for its range of values. The marks of
 * outputs->missing need no care here: marked pixels become NaN, files of scaled samples cannot hold
 * NaN, and only such files look for a range. */
static void look(void *user, const struct rfx_end *end, struct rfx_rect rect,
                 const struct rfx_view *view) {
    const struct rfx_cli_outputs *outputs = user;
    struct rfx_output_stream *stream = outputs->items[end->output].stream;
    if (stream != NULL) rfx_output_stream_look(stream, rect, view);
}

struct rfx_output_sink rfx_cli_outputs_sink(struct rfx_cli_outputs *outputs) {
    struct rfx_output_sink sink = {.look = look, .write = receive, .user = outputs};
    return sink;
}

static enum rfx_status stopped(struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
}

/* Checks that all elements of the current image were received. */
static enum rfx_status need_all(struct rfx_cli_outputs *outputs, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < outputs->count && status == RFX_OK; ++k) {
        struct rfx_cli_output *item = &outputs->items[k];
        if (item->received != item->tensor->elems)
            status = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                              "output '%s': %lld of %lld elements came", item->name,
                              (long long)item->received, (long long)item->tensor->elems);
        rfx_fingerprint_hex(&item->fingerprint, item->hash);
    }
    return status;
}

enum rfx_status rfx_cli_outputs_next(struct rfx_cli_outputs *outputs, struct rfx_error *err) {
    enum rfx_status status = need_all(outputs, err);
    for (int k = 0; k < outputs->count && status == RFX_OK; ++k) {
        struct rfx_cli_output *item = &outputs->items[k];
        item->received = 0;
        item->fingerprint.before += item->tensor->elems;
        if (item->stream != NULL) status = rfx_output_stream_next(item->stream, err);
    }
    return status;
}

enum rfx_status rfx_cli_outputs_finish(struct rfx_cli_outputs *outputs, struct rfx_error *err) {
    enum rfx_status status = need_all(outputs, err);
    if (status == RFX_OK && rfx_cli_progress_cancelled()) status = stopped(err);
    rfx_memory_set_stop(outputs->mem, NULL,
                        NULL); /* a signal must not stop the completion of files */
    struct rfx_cli_progress progress;
    rfx_cli_progress_start(&progress, "write");
    for (int k = 0; k < outputs->count && status == RFX_OK; ++k) {
        struct rfx_cli_output *item = &outputs->items[k];
        if (item->stream == NULL) continue;
        status = rfx_output_stream_commit(item->stream, rfx_cli_progress_step, &progress, err);
        if (status == RFX_OK) item->found = rfx_output_stream_found(item->stream);
    }
    if (status == RFX_OK) status = rfx_cli_answers_finish(&outputs->answers, &progress, err);
    rfx_cli_progress_end(&progress);
    return status;
}

void rfx_cli_outputs_free(struct rfx_cli_outputs *outputs) {
    for (int k = 0; k < outputs->count; ++k) rfx_output_stream_free(outputs->items[k].stream);
    rfx_cli_answers_free(&outputs->answers);
    if (outputs->mem != NULL) rfx_memory_release(outputs->mem, outputs->items);
    *outputs = (struct rfx_cli_outputs){0};
}
