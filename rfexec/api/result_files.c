/* Files of outputs of the public header's calls; see result_files.h. */
#include "rfexec/api/result_files.h"

#include <float.h>
#include <string.h>

#include "rfexec/api/api_support.h"

static const struct rfx_tensor *tensor_of(const struct rfx_graph *graph, int k) {
    return &graph->nodes[graph->outputs[k].node].out;
}

/* Finds a word, or NULL, in a list. Sets *out to its place in the list. Returns false if it is not
 * there. */
static bool find_word(const char *word, const char *const *words, int n, int *out) {
    for (int i = 0; i < n; i++) {
        const char *known = words[i];
        if (word == known || (word != NULL && known != NULL && strcmp(word, known) == 0)) {
            *out = i;
            return true;
        }
    }
    return false;
}

static enum rfx_status refuse(const struct rfx_result_file *file, const char *why,
                              struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "the file '%.200s' of output %d: %s",
                    file->path, file->output, why);
}

/* Returns a text about a member that this kind of file does not have; NULL: all members fit. */
static const char *misfit(const struct rfx_result_file *file, unsigned takes) {
    bool tiff = (takes & RFX_OUTPUT_TAKES_TILES) != 0,
         zarr = (takes & RFX_OUTPUT_TAKES_CHUNKS) != 0;
    if (file->tile != 0 && !tiff) return "tile is for TIFF";
    if (file->cog != 0 && (takes & RFX_OUTPUT_TAKES_COG) == 0) return "cog is for .tif";
    if (file->compression != NULL && !tiff && !zarr) return "compression is for TIFF and Zarr";
    if (file->overviews != NULL && (takes & RFX_OUTPUT_TAKES_OVERVIEWS) == 0)
        return "overviews are for TIFF and .ome.zarr";
    if (file->channel_names != NULL && (takes & RFX_OUTPUT_TAKES_NAMES) == 0)
        return "channel_names are for .ome.tif";
    if ((file->zarr_format != 0 || file->chunk != 0) && !zarr)
        return "zarr_format and chunk are for Zarr";
    bool answers = file->n_thresholds != 0 || file->corners != 0 || file->all_labels != 0 ||
                   file->pixels != 0 || file->least_area != 0 || file->classes != NULL ||
                   file->answer_bytes != 0 || file->head != NULL ||
                   file->score != RFX_ANSWER_SCORE || file->overlap != RFX_ANSWER_OVERLAP ||
                   file->agnostic != 0 || file->most_boxes != 0 || file->distance != 0 ||
                   file->within != NULL || file->bins != 0 || file->simplify != 0 ||
                   file->soft_nms != 0 || file->class_count != 0 || file->n_quantiles != 0;
    if (answers && (takes & RFX_OUTPUT_TAKES_ANSWERS) == 0)
        return "thresholds and other members of answers are for .geojson, .csv and .json";
    if (file->distance != 0 && (takes & RFX_OUTPUT_TAKES_DISTANCE) == 0)
        return "distance is for .points.geojson and .points.csv";
    if ((file->within != NULL || file->bins != 0 || file->n_quantiles != 0) &&
        (takes & RFX_OUTPUT_TAKES_AREAS) == 0)
        return "within, bins and quantiles are for .summary.json and .summary.csv";
    return NULL;
}

/* Returns a text about a number that is out of the range that the writers need; NULL: all are
 * valid. */
static const char *bad_number(const struct rfx_result_file *file) {
    enum { MOST_TILE = 4096, MOST_CHUNK = 4096 };
    if (file->tile < 0 || file->tile > MOST_TILE || file->tile % 16 != 0)
        return "tile is 0 or a multiple of 16 up to 4096";
    if (file->chunk < 0 || file->chunk > MOST_CHUNK) return "chunk is 0 to 4096";
    if (file->zarr_format != 0 && file->zarr_format != 2 && file->zarr_format != 3)
        return "zarr_format is 2 or 3";
    if ((file->thresholds == NULL) != (file->n_thresholds == 0) || file->n_thresholds < 0)
        return "thresholds and n_thresholds do not go together";
    for (int i = 0; i < file->n_thresholds; i++)
        if (file->thresholds[i] != file->thresholds[i]) return "a threshold is NaN";
    if (file->least_area < 0) return "least_area is below 0";
    if (file->most_boxes < 0 || file->most_boxes > INT32_MAX)
        return "most_boxes is 0 to 2147483647";
    if (file->class_count < 0 || file->class_count > INT32_MAX)
        return "class_count is 0 to 2147483647";
    if (file->distance < 0 || file->distance > INT32_MAX) return "distance is 0 to 2147483647";
    if (file->bins < 0 || file->bins > RFX_ANSWER_MOST_BINS) return "bins is 0 to 65536";
    double wide = file->bins_high - file->bins_low;
    if (file->bins > 0 && !(wide > 0 && wide <= DBL_MAX))
        return "bins_low is not below bins_high, or one is not finite";
    if ((file->quantiles == NULL) != (file->n_quantiles == 0) || file->n_quantiles < 0 ||
        file->n_quantiles > RFX_ANSWER_MOST_QUANTILES)
        return "n_quantiles is not the number of quantiles, or above 16";
    for (int i = 0; i < file->n_quantiles; i++) {
        const double *q = &file->quantiles[i];
        if (!(*q >= 0 && *q <= 1) || (i > 0 && *q <= q[-1]))
            return "quantiles are rising numbers from 0 to 1";
    }
    if (file->low > file->high || file->low != file->low || file->high != file->high)
        return "low is above high, or one is NaN";
    return NULL;
}

static struct rfx_answer_options answer_of(const struct rfx_result_file *file, bool budget) {
    struct rfx_answer_options answer = {
        .names = file->classes,
        .most_bytes = file->answer_bytes,
        .coordinates = file->pixels != 0 ? RFX_ANSWER_PIXELS : RFX_ANSWER_AUTO,
        .thresholds = file->thresholds,
        .n_thresholds = file->n_thresholds,
        .corners = file->corners != 0,
        .all_labels = file->all_labels != 0,
        .least_area = file->least_area,
        .distance = file->distance,
        .tolerance = file->simplify,
        .within = file->within,
        .bins = {file->bins, file->bins_low, file->bins_high},
        .head = file->head,
        .score = file->score,
        .overlap = file->overlap,
        .agnostic = file->agnostic != 0,
        .soft = file->soft_nms != 0,
        .classes = file->class_count,
        .most_boxes = file->most_boxes,
        .text_score = file->score != RFX_ANSWER_SCORE ? file->score : RFX_ANSWER_TEXT_SCORE,
        .growth = RFX_ANSWER_GROWTH};
    rfx_answer_limit(&answer, budget);
    return answer;
}

static enum rfx_status make_format(const struct rfx_result_file *file,
                                   const struct rfx_graph *graph, bool budget,
                                   struct rfx_output_format *format, struct rfx_error *err) {
    static const char *const compressions[] = {NULL, "deflate", "zstd"};
    static const char *const overviews[] = {NULL, "mean", "nearest"};
    char ends[RFX_OUTPUT_ENDS];
    int packing = 0, levels = 0;
    *format = (struct rfx_output_format){.kind = rfx_output_kind_of(file->path),
                                         .bits = file->bits,
                                         .has_range = file->low < file->high,
                                         .range = {(double)file->low, (double)file->high},
                                         .tile = file->tile,
                                         .cog = file->cog != 0,
                                         .channel_names = file->channel_names,
                                         .zarr_format = file->zarr_format,
                                         .chunk = file->chunk,
                                         .answer = answer_of(file, budget)};
    const char *option = format->kind == NULL ? rfx_output_option_of(file->path) : NULL;
    if (option != NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the file '%.200s' of output %d: this build has no %s support (%s=OFF)",
                        file->path, file->output, option + strlen(RFX_OUTPUT_OPTION), option);
    if (format->kind == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the file '%.200s' of output %d: the name must end in %s", file->path,
                        file->output, rfx_output_ends(ends));
    const char *why = misfit(file, format->kind->takes);
    if (why == NULL) why = bad_number(file);
    if (why == NULL && !find_word(file->compression, compressions, 3, &packing))
        why = "compression is deflate, zstd or NULL";
    if (why == NULL && !find_word(file->overviews, overviews, 3, &levels))
        why = "overviews are mean, nearest or NULL";
    bool zarr = (format->kind->takes & RFX_OUTPUT_TAKES_CHUNKS) != 0;
    if (why == NULL && zarr && packing == 1) why = "Zarr is compressed by zstd";
    if (why != NULL) return refuse(file, why, err);
    struct rfx_answer_quantiles *quantiles = &format->answer.quantiles;
    for (quantiles->n = 0; quantiles->n < file->n_quantiles; quantiles->n++)
        quantiles->at[quantiles->n] = file->quantiles[quantiles->n];
    format->zstd = zarr && packing == 2;
    if (!zarr && packing > 0) format->packing = packing == 1 ? RFX_TIFF_DEFLATE : RFX_TIFF_ZSTD;
    if (levels == 1 || format->cog) format->overviews = RFX_OVERVIEW_MEAN;
    if (levels == 2) format->overviews = RFX_OVERVIEW_NEAREST;
    rfx_output_format_settle(format);
    rfx_output_declare(format, graph, file->output);
    bool boxes =
        format->kind->take != NULL && tensor_of(graph, file->output)->layout != RFX_LAYOUT_NHWC;
    if (boxes) rfx_output_declare_prototypes(format, graph, file->output);
    return rfx_output_format_check(format, tensor_of(graph, file->output), file->path, err);
}

/* Reads file i of the caller's array. The array's elements may have the size of another version. */
static enum rfx_status read_file(const struct rfx_run_options *options, int i,
                                 const struct rfx_graph *graph, struct rfx_result_files *out,
                                 struct rfx_error *err) {
    const char *at = (const char *)(const void *)options->files + (size_t)i * options->files->size;
    struct rfx_result_file file;
    enum rfx_status status =
        rfx_api_read_result_file((const struct rfx_result_file *)(const void *)at, &file, err);
    if (status != RFX_OK) return status;
    if (file.path == NULL || file.output < 0 || file.output >= graph->n_outputs)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "files[%d] is of output %d and has %s path: the network has %d outputs", i,
                        file.output, file.path == NULL ? "no" : "a", graph->n_outputs);
    for (int k = 0; k < out->n; k++)
        if (out->items[k].output == file.output) return refuse(&file, "it has one already", err);
    struct rfx_result_files_item *item = &out->items[out->n++];
    item->output = file.output;
    item->path = file.path;
    if (file.answer_bytes > out->answer_bytes) out->answer_bytes = (size_t)file.answer_bytes;
    status = make_format(&file, graph, options->memory_bytes > 0, &item->format, err);
    if (status != RFX_OK || options->mask == NULL) return status;
    if (!rfx_output_is_scaled(&item->format) || item->format.has_range) return RFX_OK;
    return refuse(&file,
                  "mask with samples of 8 and 16 bits needs low and high, because the extremes of "
                  "the pixels that are not computed are not known",
                  err);
}

enum rfx_status rfx_result_files_read(const struct rfx_run_options *options,
                                      const struct rfx_graph *graph, struct rfx_memory *mem,
                                      struct rfx_result_files *out, struct rfx_error *err) {
    *out = (struct rfx_result_files){.mem = mem};
    if ((options->files == NULL) != (options->n_files == 0) || options->n_files < 0 ||
        options->n_files > graph->n_outputs)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "files is %s and n_files %d: 1 to %d files, one an output, or NULL and 0",
                        options->files != NULL ? "given" : "NULL", options->n_files,
                        graph->n_outputs);
    if (options->n_files == 0) return RFX_OK;
    out->items = rfx_memory_calloc(mem, (size_t)options->n_files, sizeof *out->items);
    if (out->items == NULL) return rfx_memory_fail(mem, "files", sizeof *out->items, err);
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < options->n_files && status == RFX_OK; i++)
        status = read_file(options, i, graph, out, err);
    return status;
}

static struct rfx_output_files files_of(const struct rfx_result_files *files,
                                        const struct rfx_graph *graph, bool as_stored) {
    return (struct rfx_output_files){.graph = graph,
                                     .source = &files->geo,
                                     .as_stored = as_stored,
                                     .no_data = files->no_data,
                                     .mem = files->mem};
}

size_t rfx_result_files_bytes(const struct rfx_result_files *files, const struct rfx_graph *graph) {
    const struct rfx_output_files all = files_of(files, graph, false);
    struct rfx_output_files_bytes sum = {0};
    for (int i = 0; i < files->n; i++)
        rfx_output_files_add(&sum, &all, files->items[i].output, &files->items[i].format);
    return rfx_output_files_sum(&sum, &all);
}

enum rfx_status rfx_result_files_open(struct rfx_result_files *files, const struct rfx_graph *graph,
                                      bool as_stored, struct rfx_error *err) {
    const struct rfx_output_files all = files_of(files, graph, as_stored);
    char words[RFX_GEOREFERENCED_WORDS]; /* warnings, which the library does not show */
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < files->n && status == RFX_OK; i++) {
        struct rfx_result_files_item *item = &files->items[i];
        status = rfx_output_files_open(&all, item->output, item->path, &item->format, &item->stream,
                                       words, err);
    }
    return status;
}

const struct rfx_result_files_item *rfx_result_files_item(const struct rfx_result_files *files,
                                                          int k) {
    for (int i = 0; i < files->n; i++)
        if (files->items[i].output == k) return &files->items[i];
    return NULL;
}

struct asking {
    int (*stop)(void *user);
    void *user;
};

static int ask(void *user, int64_t done, int64_t total) {
    const struct asking *asking = user;
    (void)done;
    (void)total;
    return asking->stop != NULL ? asking->stop(asking->user) : 0;
}

enum rfx_status rfx_result_files_commit(struct rfx_result_files *files, int (*stop)(void *user),
                                        void *user, struct rfx_error *err) {
    struct asking asking = {stop, user};
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < files->n && status == RFX_OK; i++) {
        status = rfx_output_stream_commit(files->items[i].stream, ask, &asking, err);
        asking.stop = NULL; /* once one file has its name, all others are completed too */
        rfx_memory_set_stop(files->mem, NULL, NULL);
    }
    return status;
}

void rfx_result_files_close(struct rfx_result_files *files) {
    for (int i = 0; i < files->n; i++) {
        rfx_output_stream_free(files->items[i].stream);
        files->items[i].stream = NULL;
    }
}

void rfx_result_files_free(struct rfx_result_files *files) {
    rfx_result_files_close(files);
    rfx_georeference_release(&files->geo.geo);
    if (files->mem != NULL) rfx_memory_release(files->mem, files->items);
    *files = (struct rfx_result_files){0};
}
