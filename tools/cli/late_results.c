/* See late_results.h. */
#include "tools/cli/late_results.h"

#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/late/late_boxes.h"
#include "tools/cli/command.h"

size_t rfx_cli_late_most(const struct rfx_graph *graph, const struct rfx_cli_run_options *options) {
    return rfx_late_most_bytes(graph, options->output.answer.memory_bytes,
                               options->plan.memory_bytes > 0);
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
        return "--boxes needs boxes (N x 4), scores (N) and labels (N, integers), the results of "
               "EfficientNMS_TRT, or one output of 1 x N x 6";
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
    enum rfx_status status = rfx_late_outputs_describe(graph, NULL, graph->mem, &results, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    int code = rfx_cli_outputs_check(&results, &others);
    rfx_late_outputs_release(&results);
    return code;
}

size_t rfx_cli_late_bytes(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                          const struct rfx_geo_source *source) {
    const struct rfx_cli_run_options dumps = dumps_of(options);
    struct rfx_graph results, front = *graph;
    size_t sum = rfx_late_beside_bytes(graph, rfx_cli_late_most(graph, options));
    if (rfx_late_outputs_describe(graph, NULL, graph->mem, &results, NULL) != RFX_OK)
        return SIZE_MAX;
    front.late = NULL; /* its outputs as those of any network */
    size_t files = rfx_cli_outputs_bytes(&results, options, source) +
                   rfx_cli_outputs_bytes(&front, &dumps, source);
    rfx_late_outputs_release(&results);
    return rfx_checked_add_size(sum, files, &sum) ? sum : SIZE_MAX;
}

enum rfx_status rfx_late_results_open(struct rfx_late_results *results,
                                      const struct rfx_graph *graph,
                                      const struct rfx_cli_run_options *options,
                                      const struct rfx_geo_source *source, struct rfx_error *err) {
    const struct rfx_cli_run_options dumps = dumps_of(options);
    *results = (struct rfx_late_results){.of = graph};
    enum rfx_status status = rfx_late_outputs_try(graph->mem, options->output.file, err);
    if (status == RFX_OK)
        status = rfx_late_outputs_try(graph->mem, options->output.answer.boxes, err);
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
    struct rfx_memory *mem = results->of->mem;
    if (status == RFX_OK)
        status = rfx_late_outputs_describe(results->of, results->run, mem, graph, err);
    if (status == RFX_OK) status = rfx_cli_outputs_open(mem, graph, options, source, outputs, err);
    struct rfx_output_sink sink = rfx_cli_outputs_sink(outputs);
    if (status == RFX_OK) status = rfx_late_outputs_pass(graph, results->run, &sink, err);
    return status == RFX_OK ? rfx_cli_outputs_finish(&results->front, err) : status;
}

void rfx_late_results_free(struct rfx_late_results *results) {
    if (results->of == NULL) return;
    rfx_cli_outputs_free(&results->front);
    rfx_late_run_free(results->run);
    rfx_late_outputs_release(&results->graph);
}
