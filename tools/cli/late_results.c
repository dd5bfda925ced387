/* See late_results.h. */
#include "tools/cli/late_results.h"

#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/late/late_boxes.h"
#include "rfexec/output/output_file.h"
#include "tools/cli/command.h"

static void free_graph(struct rfx_memory *mem, struct rfx_graph *graph) {
    rfx_memory_release(mem, graph->nodes);
    rfx_memory_release(mem, graph->outputs);
    rfx_memory_release(mem, graph->ends);
    *graph = (struct rfx_graph){0};
}

/* Describes output k: as it was computed or, without a run, as it is declared. */
static struct rfx_tensor tensor_of(const struct rfx_late *late, const struct rfx_late_run *run,
                                   size_t k, enum rfx_type *type) {
    const struct rfx_late_output *output = &late->outputs[k];
    struct rfx_shape shape = {.rank = output->rank < 0 ? 1 : output->rank};
    int64_t elems = 1;
    *type = output->type;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = output->rank < 0 ? 1 : rfx_max_i64(output->dims[i], 1);
    if (run != NULL) {
        shape = rfx_late_run_output(run, k)->shape;
        *type = rfx_late_run_output(run, k)->type;
    }
    if (!rfx_late_elems(&shape, &elems)) shape = (struct rfx_shape){1, {elems = 1}};
    return rfx_tensor_plain(&shape, elems);
}

/* Makes the graph of the results; run NULL: before a run. */
static enum rfx_status make_graph(const struct rfx_graph *front, const struct rfx_late_run *run,
                                  struct rfx_graph *graph, struct rfx_error *err) {
    const struct rfx_late *late = front->late;
    size_t n = late->n_outputs;
    *graph = *front;
    graph->late = NULL;
    graph->late_free = NULL;
    graph->n_nodes = (int)n + 1;
    graph->n_outputs = graph->n_ends = graph->input = (int)n;
    graph->nodes = rfx_memory_calloc(front->mem, n + 1, sizeof *graph->nodes);
    graph->outputs = rfx_memory_calloc(front->mem, n, sizeof *graph->outputs);
    graph->ends = rfx_memory_calloc(front->mem, n, sizeof *graph->ends);
    if (graph->nodes == NULL || graph->outputs == NULL || graph->ends == NULL) {
        free_graph(front->mem, graph);
        return rfx_memory_fail(front->mem, "outputs", (n + 1) * sizeof *graph->nodes, err);
    }
    graph->nodes[n] = front->nodes[front->input];
    for (size_t k = 0; k < n; ++k) {
        struct rfx_node *node = &graph->nodes[k];
        struct rfx_output *output = &graph->outputs[k];
        *node = (struct rfx_node){.op = RFX_OP_CONST_PLAIN, .name = late->outputs[k].name};
        *output = (struct rfx_output){.node = (int)k, .name = node->name};
        node->out = tensor_of(late, run, k, &output->stored.type);
        output->part = rfx_rect_make(0, 1, 0, 1);
        if (late->outputs[k].boxes) output->stored.head = RFX_LATE_BOXES_HEAD;
        graph->ends[k] = (struct rfx_end){(int)k, (int)k, node->out.elems, {.channel_step = 1}};
    }
    return RFX_OK;
}

size_t rfx_cli_late_most(const struct rfx_graph *graph, const struct rfx_cli_run_options *options) {
    struct rfx_answer_options answer = {.most_bytes = options->output.answer.memory_bytes};
    bool chosen = answer.most_bytes > 0;
    rfx_answer_limit(&answer, options->plan.memory_bytes > 0);
    if (chosen || answer.most_bytes == 0) return answer.most_bytes;
    /* The first late nodes make tensors as large as the cut tensors, and indices of elements. */
    size_t sum = answer.most_bytes, cut = rfx_late_cut_bytes(graph);
    bool fits = rfx_checked_add_size(sum, cut, &sum) && rfx_checked_add_size(sum, cut, &sum);
    return fits ? sum : SIZE_MAX;
}

/* Returns the options of the files of the cut tensors: those of --dump alone. */
static struct rfx_cli_run_options dumps_of(const struct rfx_cli_run_options *options) {
    struct rfx_cli_run_options dumps = *options;
    dumps.output.file = NULL;
    dumps.output.answer = (struct rfx_cli_answer_options){0};
    return dumps;
}

static bool keeps_without_file(const struct rfx_cli_run_options *options) {
    bool any = false;
    for (int i = 0; i < options->model.kept.n; ++i) any |= options->model.kept.files[i] == NULL;
    return any;
}

/* Returns why an option does not go with late nodes; NULL: all do. */
static const char *misfit(const struct rfx_graph *graph,
                          const struct rfx_cli_run_options *options) {
    const struct rfx_cli_answer_options *answer = &options->output.answer;
    const struct rfx_cli_output_options *output = &options->output;
    if (options->images > 1 && options->images != INT64_MAX)
        return "they run on one image, not on a batch";
    if (output->file != NULL && rfx_output_kind_of(output->file) != &rfx_output_npy)
        return "-o writes them as .npy only";
    if (keeps_without_file(options))
        return "--dump NAME=FILE writes a tensor before them, where --keep alone does not";
    if (rfx_cli_options_of_files(output))
        return "-o writes their values as they are, without --bits, --range and options of TIFF "
               "and Zarr";
    if (answer->regions != NULL || answer->points != NULL || answer->summary != NULL)
        return "they are no maps, which --regions, --points and --summary need";
    if (options->report.top > 0 || options->report.labels != NULL || options->report.cam != NULL)
        return "--top, --labels and --cam do not go with them";
    if (options->report.page != NULL || options->report.overlay != NULL)
        return "--report and --overlay do not go with them";
    if (rfx_cli_options_mark(&options->input))
        return "--nodata cannot mark them: --nodata-mark none";
    if (answer->boxes != NULL && answer->boxes_of == NULL && !rfx_late_has_boxes(graph->late))
        return "--boxes needs boxes (N x 4), scores (N) and labels (N, integers), or one output of "
               "1 x N x 6";
    return NULL;
}

int rfx_cli_late_check(const struct rfx_graph *graph, const struct rfx_cli_run_options *options) {
    struct rfx_cli_run_options others = *options;
    struct rfx_graph results;
    struct rfx_error err = {{0}};
    const char *why = misfit(graph, options);
    if (why != NULL) {
        rfx_cli_message("the sizes of the model's outputs depend on data: %s", why);
        return RFX_EXIT_USAGE;
    }
    others.output.answer.memory_bytes = 0; /* limits late nodes even without a file */
    enum rfx_status status = make_graph(graph, NULL, &results, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    int code = rfx_cli_outputs_check(&results, &others);
    free_graph(graph->mem, &results);
    return code;
}

size_t rfx_cli_late_bytes(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                          const struct rfx_geo_source *source) {
    const struct rfx_cli_run_options dumps = dumps_of(options);
    struct rfx_graph results, front = *graph;
    size_t sum = rfx_late_cut_bytes(graph), most = rfx_cli_late_most(graph, options);
    if (most == 0) most = RFX_ANSWER_BYTES;
    if (make_graph(graph, NULL, &results, NULL) != RFX_OK) return SIZE_MAX;
    front.late = NULL; /* its outputs as those of any network */
    size_t files = rfx_cli_outputs_bytes(&results, options, source) +
                   rfx_cli_outputs_bytes(&front, &dumps, source);
    free_graph(graph->mem, &results);
    if (!rfx_checked_add_size(sum, most, &sum) || !rfx_checked_add_size(sum, files, &sum))
        return SIZE_MAX;
    return sum;
}

/* Fails if no file can be made in the folder of `path`. The results are written after the run,
 * which would be lost then. */
static enum rfx_status try_file(struct rfx_memory *mem, const char *path, struct rfx_error *err) {
    struct rfx_output_file *file = NULL;
    if (path == NULL) return RFX_OK;
    enum rfx_status status = rfx_output_file_open(mem, path, &file, err);
    rfx_output_file_free(file);
    return status;
}

enum rfx_status rfx_late_results_open(struct rfx_late_results *results,
                                      const struct rfx_graph *graph,
                                      const struct rfx_cli_run_options *options,
                                      const struct rfx_geo_source *source, struct rfx_error *err) {
    const struct rfx_cli_run_options dumps = dumps_of(options);
    *results = (struct rfx_late_results){.of = graph};
    enum rfx_status status = try_file(graph->mem, options->output.file, err);
    if (status == RFX_OK) status = try_file(graph->mem, options->output.answer.boxes, err);
    if (status == RFX_OK)
        status = rfx_late_run_create(graph, graph->mem, rfx_cli_late_most(graph, options),
                                     &results->run, err);
    if (status == RFX_OK)
        status = rfx_cli_outputs_open(graph->mem, graph, &dumps, source, &results->front, err);
    return status;
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_late_results *results = user;
    struct rfx_output_sink front = rfx_cli_outputs_sink(&results->front);
    rfx_late_run_take(results->run, end, rect, view);
    return front.write(front.user, end, rect, view, err);
}

struct rfx_output_sink rfx_late_results_sink(struct rfx_late_results *results) {
    return (struct rfx_output_sink){.write = receive, .user = results};
}

enum rfx_status rfx_late_results_write(struct rfx_late_results *results,
                                       const struct rfx_cli_run_options *options,
                                       const struct rfx_geo_source *source,
                                       struct rfx_cli_outputs *outputs, struct rfx_error *err) {
    enum rfx_status status = rfx_late_run_nodes(results->run, err);
    struct rfx_graph *graph = &results->graph;
    if (status == RFX_OK) status = make_graph(results->of, results->run, graph, err);
    if (status == RFX_OK)
        status = rfx_cli_outputs_open(results->of->mem, graph, options, source, outputs, err);
    struct rfx_output_sink sink = rfx_cli_outputs_sink(outputs);
    for (int k = 0; k < graph->n_outputs && status == RFX_OK; ++k) {
        const struct rfx_late_tensor *tensor = rfx_late_run_output(results->run, (size_t)k);
        struct rfx_view view = {.data = tensor->data,
                                .rect = rfx_rect_make(0, 1, 0, 1),
                                .c = tensor->elems,
                                .row_stride = tensor->elems,
                                .type = tensor->type};
        status = sink.write(sink.user, &graph->ends[k], view.rect, &view, err);
    }
    return status == RFX_OK ? rfx_cli_outputs_finish(&results->front, err) : status;
}

void rfx_late_results_free(struct rfx_late_results *results) {
    if (results->of == NULL) return;
    rfx_cli_outputs_free(&results->front);
    rfx_late_run_free(results->run);
    free_graph(results->of->mem, &results->graph);
}
