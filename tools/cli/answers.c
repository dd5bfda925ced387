/* Regions, points, summaries and boxes of a run; see answers.h. */
#include "tools/cli/answers.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "rfexec/answers/box_head.h"
#include "rfexec/output/head_file.h"
#include "tools/cli/command.h"
#include "tools/cli/outputs.h"

static const struct rfx_tensor *tensor_of(const struct rfx_graph *graph, int k) {
    return &graph->nodes[graph->outputs[k].node].out;
}

enum { MOST_KINDS = 4 };

/* One of the options. */
struct asked {
    const char *option;
    const char *path;   /* NULL: not given */
    const char *output; /* name of the output that it is about; NULL: the first that suits */
    bool maps;          /* it is about maps, else about outputs that are none */
    const struct rfx_output_kind *kinds[MOST_KINDS]; /* of its files; the first is that of "-" */
};

static struct asked asked_of(const struct rfx_cli_run_options *options, int which) {
    const struct rfx_cli_answer_options *o = &options->output.answer;
    const struct asked all[RFX_CLI_ANSWERS] = {
        [RFX_CLI_REGIONS] =
            {"--regions", o->regions, o->regions_of, true, {&rfx_output_geojson, &rfx_output_csv}},
        [RFX_CLI_POINTS] = {"--points",
                            o->points,
                            o->points_of,
                            true,
                            {&rfx_output_points_geojson, &rfx_output_points_csv}},
        [RFX_CLI_SUMMARY] = {"--summary",
                             o->summary,
                             o->summary_of,
                             true,
                             {&rfx_output_summary_json, &rfx_output_summary_csv}},
        [RFX_CLI_TEXT_BOXES] = {"--text",
                                o->text,
                                o->text_of,
                                true,
                                {&rfx_output_text_json, &rfx_output_text_csv,
                                 &rfx_output_text_geojson}},
        [RFX_CLI_BOXES] = {"--boxes",
                           o->boxes,
                           o->boxes_of,
                           false,
                           {&rfx_output_json, &rfx_output_coco, &rfx_output_boxes_csv,
                            &rfx_output_boxes_geojson}}};
    return all[which];
}

/* Returns the kind of the option's file: one of its kinds that has the name's ending, or the last
 * part of whose ending is the name's: --points x.csv is a file of points. NULL: there is none. */
static const struct rfx_output_kind *kind_of(const struct asked *asked) {
    const struct rfx_output_kind *named = rfx_output_kind_of(asked->path), *alike = NULL;
    if (strcmp(asked->path, "-") == 0) return asked->kinds[0];
    for (int i = 0; i < MOST_KINDS && asked->kinds[i] != NULL && named != NULL; ++i) {
        if (named == asked->kinds[i]) return named;
        if (strcmp(named->ends[0], strrchr(asked->kinds[i]->ends[0], '.')) == 0)
            alike = asked->kinds[i];
    }
    return alike;
}

void rfx_cli_answers_notice(const struct rfx_found *found) {
    if (found->empty_areas > 0)
        rfx_cli_message("--within: %lld of %lld areas hold the centre of no pixel",
                        (long long)found->empty_areas, (long long)found->areas);
}

bool rfx_cli_answers_any(const struct rfx_cli_answer_options *options) {
    return options->regions != NULL || options->points != NULL || options->summary != NULL ||
           options->text != NULL || options->boxes != NULL;
}

static bool are_boxes(const char *path) {
    const struct rfx_output_kind *kind = rfx_output_kind_of(path);
    return kind != NULL && (kind == &rfx_output_json || kind == &rfx_output_coco ||
                            kind == &rfx_output_boxes_csv || kind == &rfx_output_boxes_geojson);
}

void rfx_cli_answers_settle(struct rfx_cli_output_options *options) {
    if (options->file == NULL || options->answer.boxes != NULL || !are_boxes(options->file)) return;
    options->answer.boxes = options->file;
    options->file = NULL;
}

static bool are_parts(const struct rfx_cli_part_options *part) {
    return part->part != NULL || part->part_rect != NULL || part->parts > 0;
}

bool rfx_cli_answers_join(const struct rfx_cli_run_options *options) {
    const struct rfx_cli_answer_options *answer = &options->output.answer;
    const char *planned = options->output.for_output, *file = options->output.file;
    if (planned != NULL && are_boxes(planned)) return true;
    if (are_parts(&options->part) && answer->head != NULL) return true;
    /* Of rfexec-mpi; run has made it --boxes. */
    if (answer->boxes == NULL && file != NULL && are_boxes(file)) return true;
    return answer->boxes != NULL && answer->boxes_of == NULL;
}

int rfx_cli_answers_head(struct rfx_memory *mem, const struct rfx_cli_run_options *options,
                         struct rfx_detector *detector, struct rfx_cli_model_options *model) {
    const struct rfx_cli_answer_options *answer = &options->output.answer;
    struct rfx_error err = {{0}};
    const char *file = options->output.file;
    /* A part is of the joined output alone, and a file of boxes of rfexec-mpi has no other one. */
    model->head_only =
        are_parts(&options->part) || (answer->boxes == NULL && file != NULL && are_boxes(file));
    if (answer->head == NULL || !rfx_head_is_file(answer->head)) return RFX_EXIT_DONE;
    if (!model->join_heads) {
        rfx_cli_message(
            "--head '%s': a head file goes with --boxes, with --part, or with -o or --as of files "
            "of boxes alone (.json, .coco.json, .boxes.csv, .boxes.geojson), and without "
            "--boxes-of: it names the outputs",
            answer->head);
        return RFX_EXIT_USAGE;
    }
    enum rfx_status status = rfx_head_file_read(mem, answer->head, detector, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    model->detector = detector;
    model->head_only |= file == NULL;
    return RFX_EXIT_DONE;
}

/* Sets *format to the format of the file for output k. */
static enum rfx_status format_for(const struct rfx_graph *graph,
                                  const struct rfx_cli_run_options *options,
                                  const struct asked *asked, int k,
                                  struct rfx_output_format *format, struct rfx_error *err) {
    const struct rfx_tensor *tensor = tensor_of(graph, k);
    const struct rfx_output_kind *kind = kind_of(asked);
    char what[256];
    if (!rfx_cli_run_format(options, asked->path, format))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s '%.150s': no known kind of file",
                        asked->option, asked->path);
    if (kind == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s '%.150s': the name is that of another kind of file, %s", asked->option,
                        asked->path, format->kind->name);
    format->kind = kind;
    /* --bits and --range are for the samples of -o: what is found is found in the values. */
    format->bits = 0;
    format->has_range = false;
    rfx_output_declare(format, graph, k);
    if (!asked->maps) rfx_output_declare_prototypes(format, graph, k);
    (void)snprintf(what, sizeof what, "%s '%.150s', output '%.60s'", asked->option, asked->path,
                   graph->outputs[k].name);
    const char *head = options->output.answer.head;
    if (!asked->maps && head != NULL && strcasecmp(head, RFX_BOX_CENTERNET) == 0 &&
        graph->outputs[k].stored.head == NULL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: " RFX_BOX_NO_CENTERNET, what);
    if ((tensor->layout == RFX_LAYOUT_NHWC) != asked->maps)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: it is %s of rows and columns", what,
                        asked->maps ? "no map" : "a map");
    return rfx_output_format_check(format, tensor, what, err);
}

/* Whether an output is joined from those of a head, so that no other one has its boxes. */
static bool has_joined(const struct rfx_graph *graph) {
    bool any = false;
    for (int k = 0; k < graph->n_outputs; ++k) any |= graph->outputs[k].stored.head != NULL;
    return any;
}

/* Finds the output that the option is about. Fails with the reason why the first one does not suit.
 */
static enum rfx_status find_output(const struct rfx_graph *graph,
                                   const struct rfx_cli_run_options *options,
                                   const struct asked *asked, int *output,
                                   struct rfx_output_format *format, struct rfx_error *err) {
    struct rfx_error first = {{0}};
    enum rfx_status status = RFX_STATUS_INVALID_ARGUMENT;
    bool joined = !asked->maps && asked->output == NULL && has_joined(graph);
    for (int k = 0; k < graph->n_outputs; ++k) {
        struct rfx_error here = {{0}};
        if (asked->output != NULL && strcmp(asked->output, graph->outputs[k].name) != 0) continue;
        if (joined && graph->outputs[k].stored.head == NULL) continue;
        enum rfx_status found = format_for(graph, options, asked, k, format, &here);
        *output = k;
        if (found == RFX_OK) return RFX_OK;
        if (first.text[0] != '\0') continue;
        status = found;
        first = here;
    }
    if (first.text[0] != '\0') return rfx_fail(err, status, "%s", first.text);
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s-of '%.100s': there is no such output; the first is '%.100s'", asked->option,
                    asked->output, graph->outputs[0].name);
}

int rfx_cli_answers_check(const struct rfx_graph *graph,
                          const struct rfx_cli_run_options *options) {
    for (int i = 0; i < RFX_CLI_ANSWERS; ++i) {
        const struct asked asked = asked_of(options, i);
        struct rfx_output_format format;
        struct rfx_error err = {{0}};
        int k;
        if (asked.path == NULL) continue;
        enum rfx_status status = find_output(graph, options, &asked, &k, &format, &err);
        if (status != RFX_OK) return rfx_cli_fail(status, &err);
        bool labels = asked.maps && rfx_output_sample(&format) != RFX_TYPE_FLOAT32;
        if (labels && rfx_cli_options_mark(&options->input)) {
            rfx_cli_message(
                "%s: --nodata marks pixels as NaN, and output '%s' has labels: "
                "--nodata-mark none",
                asked.option, graph->outputs[k].name);
            return RFX_EXIT_USAGE;
        }
    }
    return RFX_EXIT_DONE;
}

int rfx_cli_answers_output(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                           int which) {
    const struct asked asked = asked_of(options, which);
    struct rfx_output_format format;
    int k = -1;
    bool found =
        asked.path != NULL && find_output(graph, options, &asked, &k, &format, NULL) == RFX_OK;
    return found ? k : -1;
}

int64_t rfx_cli_answers_most_boxes(const struct rfx_cli_run_options *options) {
    const struct rfx_cli_answer_options *answer = &options->output.answer;
    if (answer->boxes == NULL) return 0;
    return answer->most_boxes > 0 ? answer->most_boxes : RFX_ANSWER_BOXES;
}

bool rfx_cli_answers_may_have_boxes(const struct rfx_graph *graph, int k) {
    struct rfx_output_format format = {.kind = &rfx_output_json};
    if (tensor_of(graph, k)->layout == RFX_LAYOUT_NHWC) return false;
    rfx_output_declare(&format, graph, k);
    enum rfx_status status = rfx_output_format_check(&format, tensor_of(graph, k), "--boxes", NULL);
    /* INVALID_ARGUMENT: several heads fit, and --boxes names them. */
    return status == RFX_OK || status == RFX_STATUS_INVALID_ARGUMENT;
}

void rfx_cli_answers_add(struct rfx_output_files_bytes *sum, const struct rfx_output_files *files,
                         const struct rfx_cli_run_options *options) {
    for (int i = 0; i < RFX_CLI_ANSWERS; ++i) {
        const struct asked asked = asked_of(options, i);
        struct rfx_output_format format;
        int k;
        if (asked.path != NULL &&
            find_output(files->graph, options, &asked, &k, &format, NULL) == RFX_OK)
            rfx_output_files_add(sum, files, k, &format);
    }
}

enum rfx_status rfx_cli_answers_open(const struct rfx_output_files *files,
                                     const struct rfx_cli_run_options *options,
                                     struct rfx_cli_answers *answers, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < RFX_CLI_ANSWERS && status == RFX_OK; ++i) {
        const struct asked asked = asked_of(options, i);
        struct rfx_cli_answer *item = &answers->items[i];
        struct rfx_output_format format;
        if (asked.path == NULL) continue;
        status = find_output(files->graph, options, &asked, &item->output, &format, err);
        format.answer.watch = &item->watch;
        if (status == RFX_OK)
            status = rfx_cli_outputs_open_file(files->graph, options, files->source, item->output,
                                               asked.path, &format, &item->stream, err);
        item->prototypes = format.prototypes.known ? format.prototypes.output : item->output;
    }
    return status;
}

enum rfx_status rfx_cli_answers_write(struct rfx_cli_answers *answers, const struct rfx_end *end,
                                      struct rfx_rect rect, const struct rfx_view *view,
                                      struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < RFX_CLI_ANSWERS && status == RFX_OK; ++i) {
        const struct rfx_cli_answer *item = &answers->items[i];
        if (item->stream != NULL &&
            (item->output == end->output || item->prototypes == end->output))
            status = rfx_output_stream_write_end(item->stream, end, rect, view, err);
    }
    return status;
}

enum rfx_status rfx_cli_answers_finish(struct rfx_cli_answers *answers,
                                       struct rfx_cli_progress *progress, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < RFX_CLI_ANSWERS && status == RFX_OK; ++i) {
        struct rfx_cli_answer *item = &answers->items[i];
        if (item->stream == NULL) continue;
        status = rfx_output_stream_commit(item->stream, rfx_cli_progress_step, progress, err);
        if (status == RFX_OK) item->found = rfx_output_stream_found(item->stream);
    }
    return status;
}

void rfx_cli_answers_free(struct rfx_cli_answers *answers) {
    for (int i = 0; i < RFX_CLI_ANSWERS; ++i) rfx_output_stream_free(answers->items[i].stream);
    *answers = (struct rfx_cli_answers){0};
}
