/* Regions and boxes of a run; see answers.h. */
#include "tools/cli/answers.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/command.h"
#include "tools/cli/outputs.h"

static const struct rfx_tensor *tensor_of(const struct rfx_graph *graph, int k) {
    return &graph->nodes[graph->outputs[k].node].out;
}

static bool is_map(const struct rfx_graph *graph, int k) {
    return tensor_of(graph, k)->layout == RFX_LAYOUT_NHWC;
}

/* Returns the output in which --regions are found, or -1. */
static int find_map(const struct rfx_graph *graph, const char *name) {
    for (int k = 0; k < graph->n_outputs; ++k)
        if (name == NULL ? is_map(graph, k) : strcmp(graph->outputs[k].name, name) == 0) return k;
    return -1;
}

/* Sets *format to the format of the file of --regions and *output to its output. Returns whether
 * there is such a file. */
static bool regions_format(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                           int *output, struct rfx_output_format *format) {
    const struct rfx_cli_answer_options *answer = &options->output.answer;
    if (answer->regions == NULL) return false;
    *output = find_map(graph, answer->regions_of);
    if (*output < 0 || !rfx_cli_run_format(options, answer->regions, format)) return false;
    if (strcmp(answer->regions, "-") == 0) format->kind = &rfx_output_geojson;
    rfx_output_declare(format, graph, *output);
    return true;
}

static int check_regions(const struct rfx_graph *graph, const struct rfx_cli_run_options *options) {
    const struct rfx_cli_answer_options *answer = &options->output.answer;
    struct rfx_output_format format;
    struct rfx_error err = {{0}};
    char what[256];
    int k;
    if (answer->regions == NULL) return RFX_EXIT_DONE;
    if (!regions_format(graph, options, &k, &format)) {
        const char *first = graph->outputs[0].name;
        if (answer->regions_of != NULL)
            rfx_cli_message("--regions-of '%s': there is no such output; the first is '%s'",
                            answer->regions_of, first);
        else
            rfx_cli_message("--regions: no output is a map of rows and columns ('%s' is none)",
                            first);
        return RFX_EXIT_USAGE;
    }
    if (rfx_cli_options_mark(&options->input) && rfx_output_sample(&format) != RFX_TYPE_FLOAT32) {
        rfx_cli_message(
            "--regions: --nodata marks pixels as NaN, and output '%s' has labels: "
            "--nodata-mark none",
            graph->outputs[k].name);
        return RFX_EXIT_USAGE;
    }
    (void)snprintf(what, sizeof what, "--regions '%.150s', output '%.60s'", answer->regions,
                   graph->outputs[k].name);
    enum rfx_status status = rfx_output_format_check(&format, tensor_of(graph, k), what, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static struct rfx_boxes_options boxes_options(const struct rfx_cli_run_options *options) {
    const struct rfx_cli_answer_options *answer = &options->output.answer;
    struct rfx_output_format format;
    (void)rfx_cli_output_format(&options->output, 1, "names.csv", &format);
    bool scored = rfx_cli_given(&options->words, "score") != NULL;
    bool overlapped = rfx_cli_given(&options->words, "iou") != NULL;
    return (struct rfx_boxes_options){
        .output = answer->boxes_of,
        .head = answer->head,
        .score = scored ? answer->score : 0.25F,
        .overlap = overlapped ? (double)answer->overlap : 0.45,
        .agnostic = answer->agnostic,
        .most = answer->most_boxes > 0 ? answer->most_boxes : RFX_BOXES_USUAL,
        .answer = format.answer};
}

static int check_boxes(const struct rfx_graph *graph, const struct rfx_cli_run_options *options) {
    const struct rfx_boxes_options boxes = boxes_options(options);
    struct rfx_boxes_source source;
    struct rfx_error err = {{0}};
    if (options->output.answer.boxes == NULL) return RFX_EXIT_DONE;
    if (!(boxes.overlap >= 0.0 && boxes.overlap <= 1.0)) {
        rfx_cli_message("--iou %g: a share, 0 to 1", boxes.overlap);
        return RFX_EXIT_USAGE;
    }
    enum rfx_status status = rfx_boxes_find(graph, &boxes, &source, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

int rfx_cli_answers_check(const struct rfx_graph *graph,
                          const struct rfx_cli_run_options *options) {
    int code = check_regions(graph, options);
    return code == RFX_EXIT_DONE ? check_boxes(graph, options) : code;
}

int rfx_cli_answers_regions(const struct rfx_graph *graph,
                            const struct rfx_cli_run_options *options) {
    const struct rfx_cli_answer_options *answer = &options->output.answer;
    return answer->regions != NULL ? find_map(graph, answer->regions_of) : -1;
}

int64_t rfx_cli_answers_most_boxes(const struct rfx_cli_run_options *options) {
    return options->output.answer.boxes != NULL ? boxes_options(options).most : 0;
}

void rfx_cli_answers_add(struct rfx_output_files_bytes *sum, const struct rfx_output_files *files,
                         const struct rfx_cli_run_options *options) {
    struct rfx_output_format format;
    int k;
    if (regions_format(files->graph, options, &k, &format))
        rfx_output_files_add(sum, files, k, &format);
    if (options->output.answer.boxes == NULL) return;
    const struct rfx_boxes_options boxes = boxes_options(options);
    struct rfx_boxes_source source;
    if (rfx_boxes_find(files->graph, &boxes, &source, NULL) != RFX_OK) return;
    sum->bytes += rfx_boxes_file_bytes(&source, &boxes);
    sum->placed = sum->placed || files->source != NULL;
}

/* Opens the file of --boxes, with the georeference of the picture. */
static enum rfx_status open_boxes(const struct rfx_output_files *files,
                                  const struct rfx_cli_run_options *options,
                                  struct rfx_cli_answers *answers, struct rfx_error *err) {
    const struct rfx_boxes_options boxes = boxes_options(options);
    struct rfx_memory *mem = files->graph->mem;
    struct rfx_georeference geo = {.mem = mem};
    struct rfx_answer_place place;
    char words[RFX_GEOREFERENCED_WORDS];
    enum rfx_status status = rfx_boxes_find(files->graph, &boxes, &answers->source, err);
    if (status == RFX_OK) status = rfx_output_place(files->graph, -1, files->source, &place, err);
    if (status == RFX_OK && files->source != NULL)
        status = rfx_georeferenced(mem, files->graph, -1, files->source, files->as_stored, &geo,
                                   words, err);
    if (status == RFX_OK)
        status = rfx_boxes_file_open(mem, options->output.answer.boxes, &answers->source, &boxes,
                                     &place, &geo, &answers->boxes, err);
    rfx_georeference_release(&geo);
    return status;
}

enum rfx_status rfx_cli_answers_open(const struct rfx_output_files *files,
                                     const struct rfx_cli_run_options *options,
                                     struct rfx_cli_answers *answers, struct rfx_error *err) {
    struct rfx_output_format format;
    enum rfx_status status = RFX_OK;
    if (regions_format(files->graph, options, &answers->regions_output, &format))
        status = rfx_cli_outputs_open_file(files->graph, options, files->source,
                                           answers->regions_output, options->output.answer.regions,
                                           &format, &answers->regions, err);
    if (status == RFX_OK && options->output.answer.boxes != NULL)
        status = open_boxes(files, options, answers, err);
    return status;
}

enum rfx_status rfx_cli_answers_write(struct rfx_cli_answers *answers, const struct rfx_end *end,
                                      struct rfx_rect rect, const struct rfx_view *view,
                                      struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    if (answers->regions != NULL && end->output == answers->regions_output)
        status = rfx_output_stream_write_end(answers->regions, end, rect, view, err);
    if (status == RFX_OK && answers->boxes != NULL)
        status = rfx_boxes_file_take(answers->boxes, end, rect, view, err);
    return status;
}

enum rfx_status rfx_cli_answers_finish(struct rfx_cli_answers *answers,
                                       struct rfx_cli_progress *progress, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    if (answers->regions != NULL)
        status = rfx_output_stream_commit(answers->regions, rfx_cli_progress_step, progress, err);
    if (status == RFX_OK && answers->boxes != NULL)
        status = rfx_boxes_file_commit(answers->boxes, err);
    if (status != RFX_OK) return status;
    if (answers->regions != NULL) answers->n_regions = rfx_output_stream_count(answers->regions);
    if (answers->boxes != NULL) answers->n_boxes = rfx_boxes_file_count(answers->boxes);
    return RFX_OK;
}

void rfx_cli_answers_free(struct rfx_cli_answers *answers) {
    rfx_output_stream_free(answers->regions);
    rfx_boxes_file_free(answers->boxes);
    *answers = (struct rfx_cli_answers){0};
}
