/* Chooses the output that is shown, stores its values and draws them; see image_overlay.h. */
#include "tools/report/image_overlay.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rf_analysis/grid.h"
#include "tools/cli/command.h"
#include "tools/cli/option_values.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/report/overlay_drawing.h"

/* Returns the node of an output's map, or -1 when the output is not a map of more than one pixel.
 * An output of shape (1, rows, columns) or (rows, columns) counts as a map when it is a reshaped
 * map of one channel, such as the result of ArgMax without keepdims. */
static int map_node_of(const struct rfx_graph *graph, int output) {
    int i = graph->outputs[output].node;
    const struct rfx_shape *shape = &graph->nodes[i].out.shape;
    bool flat = graph->nodes[i].out.layout != RFX_LAYOUT_NHWC;
    while (graph->nodes[i].out.layout != RFX_LAYOUT_NHWC) {
        const struct rfx_node *node = &graph->nodes[i];
        if (node->op != RFX_OP_RESHAPE && node->op != RFX_OP_TO_PLAIN) return -1;
        i = node->in[0];
    }
    const struct rfx_tensor *map = &graph->nodes[i].out;
    if (map->h * map->w <= 1) return -1;
    if (!flat) return i;
    int rank = shape->rank;
    bool same = rank >= 2 && map->c == 1 && shape->dims[rank - 2] == map->h &&
                shape->dims[rank - 1] == map->w;
    return same ? i : -1;
}

/* Returns whether the values of a map are labels: numbers of channels. */
static bool has_labels(const struct rfx_graph *graph, int map) {
    const struct rfx_node *node = &graph->nodes[map];
    return node->op == RFX_OP_CHANNEL_REDUCE && rfx_reduce_is_arg(node->attr.reduce.kind);
}

/* Returns whether the channels of a map are independent of each other. The channel of the largest
 * value then says little. */
static bool has_shares(const struct rfx_graph *graph, int map) {
    enum rfx_act_kind kind = graph->nodes[map].act.kind;
    return kind == RFX_ACT_SIGMOID || kind == RFX_ACT_HARD_SIGMOID;
}

/* Returns whether an output seems to have the boxes of a detector, and sets *k to it. */
static bool find_boxes(const struct rfx_graph *graph, int *k) {
    for (*k = 0; *k < graph->n_outputs; ++*k)
        if (rfx_cli_answers_may_have_boxes(graph, *k)) return true;
    return false;
}

/* Prints that no output is a map. Returns RFX_EXIT_USAGE. */
static int refuse_all(const struct rfx_graph *graph, const struct rfx_overlay_choice *choice) {
    char shape[96];
    int k;
    if (choice->most_boxes == 0 && find_boxes(graph, &k)) {
        rfx_cli_message(
            "%s: output '%s' of '%s' has the boxes of a detector: add --boxes FILE.json, and they "
            "are drawn",
            choice->option, graph->outputs[k].name, graph->name);
        return RFX_EXIT_USAGE;
    }
    rfx_cli_message("%s: no output of '%s' is a map over the picture, '%s' is %s", choice->option,
                    graph->name, graph->outputs[0].name,
                    rfx_human_shape(&graph->nodes[graph->outputs[0].node].out.shape, shape));
    rfx_cli_message("--keep TENSOR makes a map inside of the network an output (see analyze)");
    return RFX_EXIT_USAGE;
}

/* Returns the map that is shown. */
static const struct rfx_tensor *overlay_map(const struct rfx_graph *graph,
                                            const struct rfx_overlay_choice *choice) {
    return &graph->nodes[choice->map].out;
}

static int choose_output(const struct rfx_graph *graph, const char *name,
                         struct rfx_overlay_choice *choice) {
    char shape[96];
    for (int k = 0; k < graph->n_outputs; ++k) {
        if (name != NULL && strcmp(name, graph->outputs[k].name) != 0) continue;
        choice->output = k;
        choice->map = map_node_of(graph, k);
        if (choice->map >= 0) return RFX_EXIT_DONE;
        if (name == NULL) continue;
        rfx_cli_message("--overlay-output '%s' is no map over the picture: its shape is %s", name,
                        rfx_human_shape(&graph->nodes[graph->outputs[k].node].out.shape, shape));
        return RFX_EXIT_USAGE;
    }
    if (name == NULL) return refuse_all(graph, choice);
    rfx_cli_message("--overlay-output '%s': there is no such output; the first is '%s'", name,
                    graph->outputs[0].name);
    return RFX_EXIT_USAGE;
}

static int choose_channel(const struct rfx_graph *graph, const char *text,
                          struct rfx_overlay_choice *choice) {
    const struct rfx_tensor *map = overlay_map(graph, choice);
    int64_t number;
    const char *name = graph->outputs[choice->output].name;
    choice->channel = map->c > 1 || has_labels(graph, choice->map) ? -1 : 0;
    if (text == NULL && map->c > 1 && has_shares(graph, choice->map)) {
        rfx_cli_message(
            "%s: output '%s' has %lld channels, each a share by itself (sigmoid): "
            "--overlay-of says which is shown, 1 to %lld, or labels",
            choice->option, name, (long long)map->c, (long long)map->c);
        return RFX_EXIT_USAGE;
    }
    if (text == NULL) return RFX_EXIT_DONE;
    choice->channel = -1;
    if (strcmp(text, "labels") == 0) return RFX_EXIT_DONE;
    if (!rfx_cli_parse_count(text, map->c, &number)) {
        rfx_cli_message("--overlay-of '%s': labels, or a channel of output '%s', 1 to %lld", text,
                        name, (long long)map->c);
        return RFX_EXIT_USAGE;
    }
    choice->channel = number - 1;
    return RFX_EXIT_DONE;
}

/* Returns whether a map may be an image itself: the output of a network that generates images. */
static bool may_be_image(const struct rfx_graph *graph, int map) {
    const struct rfx_tensor *input = &graph->nodes[graph->input].out, *out = &graph->nodes[map].out;
    if (has_labels(graph, map) || has_shares(graph, map)) return false;
    return out->c == 3 || out->h > input->h || out->w > input->w;
}

/* Returns the shape of the overlay: three channels, as large as the network's input. */
static struct rfx_tensor overlay_tensor(const struct rfx_graph *graph) {
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    return rfx_tensor_nhwc(3, input->h, input->w);
}

/* Sets the map of --cam. */
static int choose_class(const struct rfx_graph *graph, const char *text,
                        struct rfx_overlay_choice *choice) {
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_class_map_find(graph, &choice->class_map, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    const struct rfx_class_map *map = &choice->class_map;
    if (!rfx_cli_parse_index(text, map->classes - 1, &choice->label)) {
        rfx_cli_message("--cam '%s': a class of '%s', 0 to %lld", text, graph->name,
                        (long long)map->classes - 1);
        return RFX_EXIT_USAGE;
    }
    choice->activation = true;
    choice->output = map->output;
    choice->map = graph->outputs[map->output].node;
    return RFX_EXIT_DONE;
}

/* Sets the map that is shown: output, node and channel. */
static int choose_map(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                      struct rfx_overlay_choice *choice) {
    const struct rfx_cli_report_options *report = &options->report;
    bool named = report->overlay_of != NULL || report->overlay_output != NULL;
    int regions = rfx_cli_answers_output(graph, options, RFX_CLI_REGIONS);
    if (report->cam != NULL) return choose_class(graph, report->cam, choice);
    if (named || (regions < 0 && choice->most_boxes == 0)) {
        int code = choose_output(graph, report->overlay_output, choice);
        return code == RFX_EXIT_DONE ? choose_channel(graph, report->overlay_of, choice) : code;
    }
    choice->channel = -1;
    choice->output = choice->map = regions;
    choice->regions = regions >= 0;
    if (choice->regions) choice->map = graph->outputs[regions].node;
    return RFX_EXIT_DONE;
}

/* The answers that are drawn as marks. */
static const int marked_answers[RFX_OVERLAY_MARKS] = {
    [RFX_OVERLAY_TEXT_BOXES] = RFX_CLI_TEXT_BOXES, [RFX_OVERLAY_POINTS] = RFX_CLI_POINTS};

int rfx_overlay_choose(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                       struct rfx_overlay_choice *choice) {
    struct rfx_error err = {{0}};
    struct rfx_tensor image = overlay_tensor(graph);
    char what[256];
    bool viewer = options->report.viewer != NULL && options->report.overlay == NULL;
    *choice = (struct rfx_overlay_choice){
        .option = viewer ? "--viewer" : "--overlay",
        .most_boxes = rfx_cli_answers_most_boxes(options),
        .format = {.kind = &rfx_output_npy, .bits = 8, .has_range = true, .range = {0.0, 255.0}}};
    for (int i = 0; i < RFX_OVERLAY_MARKS; ++i)
        choice->marked[i] = rfx_cli_answers_output(graph, options, marked_answers[i]);
    int code = choose_map(graph, options, choice);
    if (code != RFX_EXIT_DONE) return code;
    if (choice->channel < 0 &&
        options->report.overlay_range[0] < options->report.overlay_range[1]) {
        rfx_cli_message(
            "--overlay-range is for the values of a channel (--overlay-of), not labels, regions or "
            "boxes");
        return RFX_EXIT_USAGE;
    }
    if (options->report.viewer != NULL) code = rfx_image_viewer_check(options);
    if (options->report.overlay == NULL) return code; /* the overlay has no file */
    const struct rfx_output_kind *kind = rfx_output_kind_of(options->report.overlay);
    if (strcmp(options->report.overlay, "-") == 0) kind = &rfx_output_png;
    if (kind != NULL) choice->format.kind = kind;
    (void)snprintf(what, sizeof what, "--overlay '%.200s'", options->report.overlay);
    enum rfx_status status = rfx_output_format_check(&choice->format, &image, what, &err);
    return status == RFX_OK ? code : rfx_cli_fail(status, &err);
}

int rfx_overlay_choose_for_page(const struct rfx_graph *graph,
                                const struct rfx_cli_run_options *options,
                                struct rfx_overlay_choice *choice, bool *shown) {
    struct rfx_cli_run_options first = *options;
    bool asked = options->report.cam != NULL || options->report.overlay_of != NULL ||
                 options->report.overlay_output != NULL ||
                 options->report.overlay_range[0] < options->report.overlay_range[1] ||
                 options->output.answer.regions != NULL || options->output.answer.boxes != NULL;
    *shown = true;
    if (asked) return rfx_overlay_choose(graph, options, choice);
    int map = -1;
    for (int k = 0; k < graph->n_outputs && map < 0; ++k) map = map_node_of(graph, k);
    bool marked = options->output.answer.points != NULL || options->output.answer.text != NULL;
    *shown = map >= 0 && (marked || !may_be_image(graph, map));
    if (!*shown) return RFX_EXIT_DONE;
    if (has_shares(graph, map)) first.report.overlay_of = "1";
    return rfx_overlay_choose(graph, &first, choice);
}

/* Opacities. LABEL_COVER: of labels. VALUE_COVER: of the brightest value and of values that are not
 * finite. */
#define LABEL_COVER 0.5
#define VALUE_COVER 0.75

static const struct rfx_tensor *map_of(const struct rfx_overlay *o) {
    return overlay_map(o->job->graph, &o->choice);
}

static const struct rfx_tensor *input_of(const struct rfx_graph *graph) {
    return &graph->nodes[graph->input].out;
}

static size_t floats(int64_t n) {
    return (size_t)n * sizeof(float);
}

/* Returns the columns of the map; 0: there is none. */
static int64_t map_cols(const struct rfx_graph *graph, const struct rfx_overlay_choice *choice) {
    return choice->output >= 0 ? overlay_map(graph, choice)->w : 0;
}

/* Returns whether there is a buffer for this row of the map. */
static bool needs_row(const struct rfx_overlay_choice *choice, int row) {
    return row == RFX_OVERLAY_HERE || choice->regions;
}

/* Returns the number of answers that are drawn as marks. */
static int marks_of(const struct rfx_overlay_choice *choice) {
    int n = 0;
    for (int i = 0; i < RFX_OVERLAY_MARKS; ++i) n += choice->marked[i] >= 0;
    return n;
}

size_t rfx_overlay_bytes(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                         const struct rfx_overlay_choice *choice) {
    struct rfx_tensor image = overlay_tensor(graph);
    const struct rfx_tensor *input = input_of(graph);
    bool filed = options->report.overlay != NULL, paged = options->report.page != NULL;
    size_t bytes = floats(input->w * (input->c + 3));
    for (int row = 0; row < RFX_OVERLAY_ROWS && choice->output >= 0; ++row)
        if (needs_row(choice, row)) bytes += floats(map_cols(graph, choice));
    if (choice->output >= 0)
        bytes += RFX_OUTPUT_SPOOL_BYTES +
                 (choice->activation ? 2 : 1) * floats(overlay_map(graph, choice)->c);
    if (choice->most_boxes > 0)
        bytes += (size_t)(filed + paged) * rfx_box_drawing_bytes(choice->most_boxes);
    bytes += (size_t)((filed + paged) * marks_of(choice)) * rfx_mark_layer_bytes(input->w);
    if (filed) bytes += rfx_output_stream_bytes(&choice->format, &image);
    if (options->report.viewer != NULL)
        bytes += 4 * (size_t)input->w + rfx_image_viewer_bytes(input, choice->output >= 0);
    if (paged) bytes += rfx_small_copy_bytes(input->h, input->w);
    return bytes;
}

/* Finds the places of a node's map. */
static void find_place(const struct rfx_graph *graph, const struct rfx_analysis *analysis, int node,
                       struct rfx_map_place *rows, struct rfx_map_place *cols) {
    const struct rfx_tensor *map = &graph->nodes[node].out, *input = input_of(graph);
    const struct rfx_layer_info *info = &analysis->layers[node];
    const struct rfx_axis_field *field[2];
    for (int axis = 0; axis < 2; axis++) {
        field[axis] = info->global ? NULL : &info->field[axis];
        if (rfx_map_covers_image(graph, node) && field[axis] != NULL &&
            field[axis]->jump.num == field[axis]->jump.den)
            field[axis] = NULL;
    }
    *rows = rfx_map_place_of(field[0], map->h, input->h);
    *cols = rfx_map_place_of(field[1], map->w, input->w);
}

static enum rfx_status find_places(struct rfx_overlay *o, struct rfx_error *err) {
    const struct rfx_graph *graph = o->job->graph;
    struct rfx_analysis *analysis = NULL;
    if (o->choice.output < 0 && marks_of(&o->choice) == 0) return RFX_OK;
    enum rfx_status status = rfx_analysis_create(graph, &analysis, err);
    if (status != RFX_OK) return status;
    if (o->choice.output >= 0) find_place(graph, analysis, o->choice.map, &o->rows, &o->cols);
    for (int i = 0; i < RFX_OVERLAY_MARKS; ++i)
        if (o->choice.marked[i] >= 0)
            find_place(graph, analysis, graph->outputs[o->choice.marked[i]].node, &o->marks[i].rows,
                       &o->marks[i].cols);
    rfx_analysis_free(analysis);
    return RFX_OK;
}

static enum rfx_status make_row(struct rfx_overlay *o, int64_t n, float **row,
                                struct rfx_error *err) {
    *row = rfx_memory_alloc(o->mem, floats(n));
    return *row != NULL ? RFX_OK : rfx_memory_fail(o->mem, "overlay", floats(n), err);
}

static enum rfx_status make_rows(struct rfx_overlay *o, struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(o->job->graph);
    enum rfx_status status = make_row(o, input->w * input->c, &o->pixels, err);
    if (status == RFX_OK) status = make_row(o, 3 * input->w, &o->colours, err);
    if (o->choice.output < 0) return status;
    if (status == RFX_OK && o->options->report.viewer != NULL) {
        o->covers = rfx_memory_alloc(o->mem, 4 * (size_t)input->w);
        if (o->covers == NULL)
            status = rfx_memory_fail(o->mem, "overlay", 4 * (size_t)input->w, err);
    }
    if (status == RFX_OK) status = make_row(o, map_of(o)->c, &o->pixel, err);
    if (status == RFX_OK && o->choice.activation) {
        status = make_row(o, map_of(o)->c, &o->weights, err);
        if (status == RFX_OK)
            status = rfx_class_map_weights(o->job->graph, &o->choice.class_map, o->choice.label,
                                           o->weights, err);
    }
    for (int row = 0; row < RFX_OVERLAY_ROWS && status == RFX_OK; ++row)
        if (needs_row(&o->choice, row)) status = make_row(o, map_of(o)->w, &o->values[row], err);
    return status;
}

static struct rfx_box_canvas canvas_of(const struct rfx_overlay *o, int64_t rows, int64_t cols) {
    const struct rfx_tensor *input = input_of(o->job->graph);
    return (struct rfx_box_canvas){.rows = rows,
                                   .cols = cols,
                                   .image_h = input->h,
                                   .image_w = input->w,
                                   .labelled = rows == input->h && cols == input->w};
}

static enum rfx_status make_boxes(struct rfx_overlay *o, int64_t rows, int64_t cols,
                                  struct rfx_box_drawing **out, struct rfx_error *err) {
    const struct rfx_box_canvas canvas = canvas_of(o, rows, cols);
    if (o->choice.most_boxes == 0) return RFX_OK;
    return rfx_box_drawing_create(o->mem, o->choice.most_boxes, &canvas, out, err);
}

/* Opens the layers of marks of the file and of the small copy. */
static enum rfx_status open_marks(struct rfx_overlay *o, struct rfx_error *err) {
    const struct rfx_cli_report_options *report = &o->options->report;
    const struct rfx_tensor *input = input_of(o->job->graph);
    const struct rfx_box_canvas large = canvas_of(o, input->h, input->w),
                                small = canvas_of(o, o->small.rows, o->small.cols);
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < RFX_OVERLAY_MARKS && status == RFX_OK; ++i) {
        struct rfx_overlay_marks *marks = &o->marks[i];
        if (o->choice.marked[i] < 0) continue;
        if (report->overlay != NULL)
            status = rfx_mark_layer_open(o->mem, report->overlay, &large, &marks->layer, err);
        if (status == RFX_OK && report->page != NULL)
            status = rfx_mark_layer_open(o->mem, report->page, &small, &marks->small, err);
    }
    return status;
}

/* Opens the file of --overlay and what is drawn into it. */
static enum rfx_status open_file(struct rfx_overlay *o, struct rfx_error *err) {
    const struct rfx_tensor image = overlay_tensor(o->job->graph);
    const char *path = o->options->report.overlay;
    if (path == NULL) return RFX_OK;
    enum rfx_status status = make_boxes(o, image.h, image.w, &o->boxes, err);
    return status == RFX_OK
               ? rfx_output_stream_open(o->mem, path, &o->choice.format, &image, &o->stream, err)
               : status;
}

/* Makes the small copy for --report. */
static enum rfx_status make_small(struct rfx_overlay *o, struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(o->job->graph);
    if (o->options->report.page == NULL) return RFX_OK;
    enum rfx_status status = rfx_small_copy_create(o->mem, input->h, input->w, &o->small, err);
    return status == RFX_OK ? make_boxes(o, o->small.rows, o->small.cols, &o->small_boxes, err)
                            : status;
}

/* Makes what the map needs, if one is shown. */
static enum rfx_status open_map(struct rfx_overlay *o, struct rfx_error *err) {
    const struct rfx_cli_report_options *report = &o->options->report;
    if (o->choice.output < 0) return RFX_OK;
    struct rfx_tensor values = rfx_tensor_nhwc(1, map_of(o)->h, map_of(o)->w);
    const char *beside = report->overlay != NULL ? report->overlay
                         : o->viewer != NULL     ? rfx_image_viewer_path(o->viewer)
                                                 : report->page;
    return rfx_output_spool_open(o->mem, beside, &values, &o->spool, err);
}

enum rfx_status rfx_overlay_open(struct rfx_overlay *overlay,
                                 const struct rfx_cli_run_options *options,
                                 const struct rfx_cli_job *job,
                                 const struct rfx_overlay_choice *choice, struct rfx_error *err) {
    *overlay =
        (struct rfx_overlay){.mem = job->mem, .options = options, .job = job, .choice = *choice};
    overlay->range = rfx_value_range_empty();
    enum rfx_status status = make_rows(overlay, err);
    if (status == RFX_OK) status = open_file(overlay, err);
    if (status == RFX_OK) status = make_small(overlay, err);
    if (status == RFX_OK && options->report.viewer != NULL)
        status = rfx_image_viewer_open(options, job, choice->output >= 0, &overlay->viewer, err);
    if (status == RFX_OK) status = find_places(overlay, err);
    if (status == RFX_OK) status = open_map(overlay, err);
    return status == RFX_OK ? open_marks(overlay, err) : status;
}

void rfx_overlay_free(struct rfx_overlay *overlay) {
    if (overlay->mem == NULL) return;
    rfx_output_spool_free(overlay->spool);
    rfx_output_stream_free(overlay->stream);
    rfx_small_copy_free(&overlay->small);
    rfx_image_viewer_free(overlay->viewer);
    rfx_memory_release(overlay->mem, overlay->covers);
    rfx_box_drawing_free(overlay->boxes);
    rfx_box_drawing_free(overlay->small_boxes);
    for (int i = 0; i < RFX_OVERLAY_MARKS; ++i) {
        rfx_mark_layer_free(overlay->marks[i].layer);
        rfx_mark_layer_free(overlay->marks[i].small);
    }
    for (int row = 0; row < RFX_OVERLAY_ROWS; ++row)
        rfx_memory_release(overlay->mem, overlay->values[row]);
    rfx_memory_release(overlay->mem, overlay->pixel);
    rfx_memory_release(overlay->mem, overlay->weights);
    rfx_memory_release(overlay->mem, overlay->pixels);
    rfx_memory_release(overlay->mem, overlay->colours);
    *overlay = (struct rfx_overlay){0};
}

/* Returns the channel above its threshold that has the largest value, the first of equals, counted
 * from 1. 0: no channel is above its threshold. NaN: so, and a channel is NaN. */
static float class_above(const struct rfx_cli_numbers *thresholds, const float *pixel,
                         int64_t channels) {
    int64_t best = -1;
    bool missing = false;
    for (int64_t c = 0; c < channels; ++c) {
        missing = missing || isnan(pixel[c]);
        if (!(pixel[c] > thresholds->values[thresholds->n > 1 ? c : 0])) continue;
        if (best < 0 || pixel[c] > pixel[best]) best = c;
    }
    return best < 0 && missing ? NAN : (float)(best + 1);
}

/* Returns the channel that has the largest value, the first of equals. NaN: a channel is NaN. */
static float class_of(const float *pixel, int64_t channels) {
    int64_t best = 0;
    for (int64_t c = 0; c < channels; ++c) {
        if (isnan(pixel[c])) return NAN;
        if (pixel[c] > pixel[best]) best = c;
    }
    return (float)best;
}

/* Returns the sum of a pixel's values, each times the weight of its channel: products are exact,
 * and their sum is made in order. */
static float activation_of(const float *weights, const float *pixel, int64_t channels) {
    double sum = 0.0;
    for (int64_t c = 0; c < channels; ++c) sum += (double)weights[c] * (double)pixel[c];
    return (float)sum;
}

/* Returns the value that is shown for a pixel of the map: the value of the chosen channel or class,
 * or the number of a colour, 0 for none: the label, which is the number of the channel with the
 * largest value. Of regions whose labels begin at 0, it is the label + 1. */
static float value_of(const struct rfx_overlay *o, const float *pixel, int64_t channels) {
    const struct rfx_cli_answer_options *answer = &o->options->output.answer;
    if (o->choice.activation) return activation_of(o->weights, pixel, channels);
    if (o->choice.channel >= 0) return pixel[o->choice.channel];
    if (o->choice.regions && answer->thresholds.n > 0)
        return class_above(&answer->thresholds, pixel, channels);
    float label = channels == 1 ? pixel[0] : class_of(pixel, channels);
    return o->choice.regions && answer->all_labels && label >= 0.0F ? label + 1.0F : label;
}

/* Stores columns [x0, x1) of row y of the map, which `values` holds. */
static enum rfx_status store_row(struct rfx_overlay *o, int64_t y, int64_t x0, int64_t x1,
                                 float *values, struct rfx_error *err) {
    struct rfx_rect row = rfx_rect_make(y, y + 1, x0, x1);
    struct rfx_view view = rfx_view_dense(values, row, 1);
    if (o->choice.channel >= 0) rfx_value_range_add(&o->range, RFX_TYPE_FLOAT32, values, x1 - x0);
    o->received += x1 - x0;
    return rfx_output_spool_write(o->spool, row, &view, err);
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_overlay *o = user;
    enum rfx_status status = RFX_OK;
    float *values = o->values[RFX_OVERLAY_HERE];
    bool shown = end->output == o->choice.output && end->node == o->choice.map;
    for (int64_t y = rect.y0; shown && y < rect.y1 && status == RFX_OK; ++y) {
        for (int64_t x = rect.x0; x < rect.x1; ++x) {
            rfx_type_gather(view->type, rfx_view_at(view, y, x), 1, end->channels, RFX_TYPE_FLOAT32,
                            o->pixel);
            values[x - rect.x0] = value_of(o, o->pixel, end->channels);
        }
        status = store_row(o, y, rect.x0, rect.x1, values, err);
    }
    return status == RFX_OK ? o->sink.write(o->sink.user, end, rect, view, err) : status;
}

static void look(void *user, const struct rfx_end *end, struct rfx_rect rect,
                 const struct rfx_view *view) {
    const struct rfx_overlay *o = user;
    rfx_sink_look(&o->sink, end, rect, view);
}

/* Draws a point or a box of text into the layers. */
static enum rfx_status take_mark(void *user, const double *corners, int n, int32_t label,
                                 struct rfx_error *err) {
    struct rfx_overlay_marks *marks = user;
    double placed[8];
    for (int k = 0; k < n; ++k) {
        placed[2 * k] = marks->cols.first + marks->cols.step * (corners[2 * k] - 0.5);
        placed[2 * k + 1] = marks->rows.first + marks->rows.step * (corners[2 * k + 1] - 0.5);
    }
    marks->count++;
    enum rfx_status status = RFX_OK;
    if (marks->layer != NULL) status = rfx_mark_layer_add(marks->layer, placed, n, label, err);
    if (status == RFX_OK && marks->small != NULL)
        status = rfx_mark_layer_add(marks->small, placed, n, label, err);
    return status;
}

void rfx_overlay_watch(struct rfx_overlay *overlay, struct rfx_output_sink *sink,
                       struct rfx_cli_answers *answers) {
    for (int i = 0; i < RFX_OVERLAY_MARKS; ++i)
        answers->items[marked_answers[i]].watch =
            (struct rfx_answer_watch){.take = take_mark, .user = &overlay->marks[i]};
    overlay->sink = *sink;
    sink->look = look;
    sink->write = receive;
    sink->user = overlay;
}

static enum rfx_status stopped(struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
}

/* Returns whether row y of the overlay is drawn. */
static bool is_drawn(const struct rfx_overlay *o, int64_t y) {
    return o->stream != NULL || o->viewer != NULL || rfx_small_copy_wants(&o->small, y);
}

static enum rfx_status read_pixels(struct rfx_overlay *o, int64_t y, struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(o->job->graph);
    struct rfx_rect row = rfx_rect_make(y, y + 1, 0, input->w);
    struct rfx_view view = rfx_view_dense(o->pixels, row, input->c);
    return rfx_image_read(o->job->image, row, &view, err);
}

/* Returns the channel of the input that is shown as red (k = 0), green or blue. An input of three
 * or more channels shows its first three channels, any other input its first channel as grey. */
static int64_t channel_of(const struct rfx_overlay *o, int k) {
    int64_t c = input_of(o->job->graph)->c;
    bool bgr = o->options->input.bgr && c == 3;
    return c < 3 ? 0 : bgr ? 2 - k : k;
}

/* Finds the samples that are drawn black and white: 0 and 255, or the smallest and the largest
 * sample of the drawn rows if the image has float samples. */
static enum rfx_status find_black_and_white(struct rfx_overlay *o, struct rfx_value_range *range,
                                            struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(o->job->graph);
    *range = (struct rfx_value_range){0.0, 255.0};
    if (rfx_image_facts(o->job->image).sample_bits != 32) return RFX_OK;
    *range = rfx_value_range_empty();
    enum rfx_status status = rfx_image_rewind(o->job->image, err);
    for (int64_t y = 0; y < input->h && status == RFX_OK; ++y) {
        if (!is_drawn(o, y)) continue;
        status = read_pixels(o, y, err);
        for (int64_t x = 0; x < input->w && status == RFX_OK; ++x)
            rfx_value_range_add(range, RFX_TYPE_FLOAT32, o->pixels + x * input->c,
                                rfx_min_i64(input->c, 3));
        if (status == RFX_OK && rfx_cli_progress_cancelled()) status = stopped(err);
    }
    *range = rfx_value_range_settle(*range);
    return status;
}

/* Sets rgb to the colour of a value and returns its opacity. */
static double colour_of(const struct rfx_overlay *o, float value, unsigned char rgb[3]) {
    bool labels = o->choice.channel < 0;
    double wide = o->range.hi - o->range.lo;
    memcpy(rgb, rfx_no_value_colour, 3);
    if (!isfinite(value) || (labels && (value <= -0.5F || value > 1e9F))) return VALUE_COVER;
    if (labels) {
        long long label = llround((double)value);
        rfx_label_colour(label, rgb);
        return label == 0 ? 0.0 : LABEL_COVER;
    }
    double share = fmin(fmax(((double)value - o->range.lo) / wide, 0.0), 1.0);
    rfx_heat_colour(share, rgb);
    return share * VALUE_COVER;
}

/* The pixels that are drawn: all of the image, or those of the small copy. */
struct canvas {
    int64_t h, w; /* of the image */
    int64_t rows, cols;
    int64_t line;                                    /* width of outlines */
    struct rfx_box_drawing *boxes;                   /* NULL: none */
    struct rfx_value_range shown;                    /* samples that are drawn black and white */
    struct rfx_mark_layer *marks[RFX_OVERLAY_MARKS]; /* NULL: none */
};

static int64_t image_row(const struct canvas *canvas, int64_t row) {
    return row * canvas->h / canvas->rows;
}

static int64_t image_col(const struct canvas *canvas, int64_t col) {
    return col * canvas->w / canvas->cols;
}

/* Reads the row of the map over a row of the canvas, unless it is held already. */
static enum rfx_status hold_row(struct rfx_overlay *o, const struct canvas *canvas, int64_t row,
                                int which, struct rfx_error *err) {
    bool inside = row >= 0 && row < canvas->rows && o->choice.output >= 0;
    int64_t at = inside ? rfx_map_place_nearest(&o->rows, image_row(canvas, row)) : -1;
    if (at == o->held[which]) return RFX_OK;
    o->held[which] = at;
    return at >= 0 ? rfx_output_spool_read(o->spool, at, o->values[which], err) : RFX_OK;
}

static enum rfx_status hold_rows(struct rfx_overlay *o, const struct canvas *canvas, int64_t row,
                                 struct rfx_error *err) {
    enum rfx_status status = hold_row(o, canvas, row, RFX_OVERLAY_HERE, err);
    if (status != RFX_OK || !o->choice.regions) return status;
    status = hold_row(o, canvas, row - canvas->line, RFX_OVERLAY_ABOVE, err);
    if (status != RFX_OK) return status;
    return hold_row(o, canvas, row + canvas->line, RFX_OVERLAY_BELOW, err);
}

/* Returns the column of the map over a column of the canvas, or -1. */
static int64_t map_col(const struct rfx_overlay *o, const struct canvas *canvas, int64_t col) {
    if (col < 0 || col >= canvas->cols) return -1;
    return rfx_map_place_nearest(&o->cols, image_col(canvas, col));
}

/* Returns whether the map has another class than `value` at a column of a held row. */
static bool differs(const struct rfx_overlay *o, int which, int64_t at, float value) {
    float other = at >= 0 && o->held[which] >= 0 ? o->values[which][at] : 0.0F;
    return other != value && !(isnan(other) && isnan(value));
}

/* Returns whether a pixel of a region is on its outline. at: the pixel's column of the map. */
static bool is_on_outline(const struct rfx_overlay *o, const struct canvas *canvas, int64_t col,
                          int64_t at) {
    float value = o->values[RFX_OVERLAY_HERE][at];
    return differs(o, RFX_OVERLAY_ABOVE, at, value) || differs(o, RFX_OVERLAY_BELOW, at, value) ||
           differs(o, RFX_OVERLAY_HERE, map_col(o, canvas, col - canvas->line), value) ||
           differs(o, RFX_OVERLAY_HERE, map_col(o, canvas, col + canvas->line), value);
}

/* Sets rgb to the colour over a pixel of the canvas, in a row of which the map's rows are held.
 * Returns its opacity. */
static double cover_of(const struct rfx_overlay *o, const struct canvas *canvas, int64_t col,
                       unsigned char rgb[3]) {
    int64_t at = o->held[RFX_OVERLAY_HERE] >= 0 ? map_col(o, canvas, col) : -1;
    double cover = at >= 0 ? colour_of(o, o->values[RFX_OVERLAY_HERE][at], rgb) : 0.0;
    if (cover > 0.0 && o->choice.regions && is_on_outline(o, canvas, col, at)) return 1.0;
    return cover;
}

/* Returns the brightness, 0 to 255, of colour k of a pixel of the image. NaN becomes black. */
static double grey_of(const struct rfx_overlay *o, const struct canvas *canvas, const float *pixel,
                      int k) {
    const struct rfx_value_range shown = canvas->shown;
    int64_t c = channel_of(o, k);
    float sample = rfx_image_sample_of(o->job->image, c, pixel[c]);
    double grey = 255.0 * ((double)sample - shown.lo) / (shown.hi - shown.lo);
    return grey > 0.0 ? fmin(grey, 255.0) : 0.0;
}

/* Combines a row of the image (o->pixels), rows of the map, marks and boxes in o->colours. */
static enum rfx_status put_together(struct rfx_overlay *o, const struct canvas *canvas, int64_t row,
                                    struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(o->job->graph);
    unsigned char rgb[3] = {0};
    enum rfx_status status = hold_rows(o, canvas, row, err);
    if (status != RFX_OK) return status;
    for (int64_t col = 0; col < canvas->cols; ++col) {
        const float *pixel = o->pixels + image_col(canvas, col) * input->c;
        double cover = cover_of(o, canvas, col, rgb);
        for (int k = 0; k < 3; ++k) {
            double grey = grey_of(o, canvas, pixel, k);
            o->colours[3 * col + k] = (float)(grey + cover * ((double)rgb[k] - grey));
        }
    }
    for (int i = 0; i < RFX_OVERLAY_MARKS && status == RFX_OK; ++i)
        if (canvas->marks[i] != NULL)
            status = rfx_mark_layer_row(canvas->marks[i], row, o->colours, err);
    if (canvas->boxes != NULL) rfx_box_drawing_row(canvas->boxes, row, o->colours);
    return status;
}

/* Gives --viewer a row of the image and, if there is a map, one of its colours. canvas: of the
 * whole image, with lines of no width, so that there are no outlines. */
static enum rfx_status draw_tiles(struct rfx_overlay *o, const struct canvas *canvas, int64_t row,
                                  struct rfx_error *err) {
    for (int64_t i = 0; i < 3 * canvas->cols; ++i)
        o->colours[i] =
            (float)grey_of(o, canvas, o->pixels + i / 3 * input_of(o->job->graph)->c, (int)(i % 3));
    enum rfx_status status = rfx_image_viewer_image(o->viewer, o->colours, err);
    if (status != RFX_OK || o->choice.output < 0) return status;
    status = hold_rows(o, canvas, row, err);
    if (status != RFX_OK) return status;
    for (int64_t col = 0; col < canvas->cols; ++col) {
        unsigned char *rgba = o->covers + 4 * col;
        rgba[3] = (unsigned char)lround(255.0 * cover_of(o, canvas, col, rgba));
        if (rgba[3] == 0) memset(rgba, 0, 3);
    }
    return rfx_image_viewer_map(o->viewer, o->covers, err);
}

static enum rfx_status draw_large(struct rfx_overlay *o, const struct canvas *canvas, int64_t y,
                                  struct rfx_error *err) {
    struct rfx_rect row = rfx_rect_make(y, y + 1, 0, canvas->w);
    struct rfx_view view = rfx_view_dense(o->colours, row, 3);
    enum rfx_status status = put_together(o, canvas, y, err);
    return status == RFX_OK ? rfx_output_stream_write(o->stream, row, &view, err) : status;
}

static enum rfx_status draw_small(struct rfx_overlay *o, const struct canvas *canvas, int64_t y,
                                  struct rfx_error *err) {
    int64_t row = rfx_small_copy_row(&o->small, y);
    enum rfx_status status = put_together(o, canvas, row, err);
    if (status == RFX_OK) rfx_small_copy_take(&o->small, row, o->colours);
    return status;
}

static enum rfx_status draw_rows(struct rfx_overlay *o, struct rfx_value_range shown,
                                 struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(o->job->graph);
    struct canvas large = {
        input->h, input->w, input->h, input->w, rfx_overlay_line(input->h, input->w),
        o->boxes, shown,    {NULL}};
    struct canvas small = {input->h, input->w,       o->small.rows, o->small.cols,
                           1,        o->small_boxes, shown,         {NULL}};
    const struct canvas tiles = {input->h, input->w, input->h, input->w, 0, NULL, shown, {NULL}};
    for (int i = 0; i < RFX_OVERLAY_MARKS; ++i) {
        large.marks[i] = o->marks[i].layer;
        small.marks[i] = o->marks[i].small;
    }
    struct rfx_cli_progress progress;
    enum rfx_status status = rfx_image_rewind(o->job->image, err);
    for (int row = 0; row < RFX_OVERLAY_ROWS; ++row) o->held[row] = -1;
    rfx_cli_progress_start(&progress, "overlay");
    for (int64_t y = 0; y < input->h && status == RFX_OK; ++y) {
        if (!is_drawn(o, y)) continue;
        status = read_pixels(o, y, err);
        if (status == RFX_OK && o->stream != NULL) status = draw_large(o, &large, y, err);
        if (status == RFX_OK && rfx_small_copy_wants(&o->small, y))
            status = draw_small(o, &small, y, err);
        if (status == RFX_OK && o->viewer != NULL) status = draw_tiles(o, &tiles, y, err);
        if (status == RFX_OK && rfx_cli_progress_step(&progress, y + 1, input->h) != 0)
            status = stopped(err);
    }
    rfx_cli_progress_end(&progress);
    return status;
}

/* Checks that all values of the map came. */
static enum rfx_status need_values(const struct rfx_overlay *o, struct rfx_error *err) {
    if (o->choice.output < 0 || o->received == map_of(o)->h * map_of(o)->w) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "overlay: %" PRId64 " of %" PRId64 " values came", o->received,
                    map_of(o)->h * map_of(o)->w);
}

static void begin_boxes(struct rfx_overlay *o, const struct rfx_cli_answer *answer) {
    const struct rfx_found *found = &answer->found;
    o->n_boxes = found->count;
    o->boxes_output = o->job->graph->outputs[answer->output].name;
    struct rfx_box_drawing *drawings[2] = {o->boxes, o->small_boxes};
    for (int i = 0; i < 2; ++i)
        if (drawings[i] != NULL) rfx_box_drawing_begin(drawings[i], found);
}

/* Describes the regions that are shown. */
static void describe_regions(const struct rfx_overlay *o, const char *name,
                             char text[RFX_OVERLAY_TEXT]) {
    const struct rfx_cli_numbers *thresholds = &o->options->output.answer.thresholds;
    char above[64] = "", largest[64] = "";
    if (thresholds->n == 1)
        (void)snprintf(above, sizeof above, " above %.6g", (double)thresholds->values[0]);
    else if (thresholds->n > 1)
        (void)snprintf(above, sizeof above, " above their thresholds");
    if (map_of(o)->c > 1)
        (void)snprintf(largest, sizeof largest, ", the largest of %lld channels",
                       (long long)map_of(o)->c);
    (void)snprintf(text, RFX_OVERLAY_TEXT, "regions of '%.200s' with outlines%s%s", name, largest,
                   above);
}

static void describe_map(const struct rfx_overlay *o, char text[RFX_OVERLAY_TEXT]) {
    const char *name = o->job->graph->outputs[o->choice.output].name;
    if (o->choice.activation)
        (void)snprintf(text, RFX_OVERLAY_TEXT,
                       "class %lld, from '%.200s' and the weights of '%.200s': %.6g clear, %.6g "
                       "bright",
                       (long long)o->choice.label, name,
                       o->job->graph->nodes[o->choice.class_map.layer].name, o->range.lo,
                       o->range.hi);
    else if (o->choice.regions)
        describe_regions(o, name, text);
    else if (o->choice.channel >= 0)
        (void)snprintf(text, RFX_OVERLAY_TEXT, "channel %lld of '%.200s': %.6g clear, %.6g bright",
                       (long long)o->choice.channel + 1, name, o->range.lo, o->range.hi);
    else if (map_of(o)->c == 1)
        (void)snprintf(text, RFX_OVERLAY_TEXT, "labels of '%.200s', 0 clear", name);
    else
        (void)snprintf(text, RFX_OVERLAY_TEXT,
                       "labels of '%.200s', the largest of %lld channels; the first clear", name,
                       (long long)map_of(o)->c);
}

enum rfx_status rfx_overlay_draw(struct rfx_overlay *o, const struct rfx_cli_answers *answers,
                                 struct rfx_error *err) {
    struct rfx_value_range shown;
    char shows[RFX_OVERLAY_TEXT] = "";
    enum rfx_status status = need_values(o, err);
    const float *asked = o->options->report.overlay_range;
    o->range = rfx_value_range_settle(o->range);
    if (asked[0] < asked[1])
        o->range = (struct rfx_value_range){(double)asked[0], (double)asked[1]};
    if (o->choice.most_boxes > 0) begin_boxes(o, &answers->items[RFX_CLI_BOXES]);
    if (status == RFX_OK) status = find_black_and_white(o, &shown, err);
    if (status == RFX_OK) status = draw_rows(o, shown, err);
    if (status == RFX_OK && o->stream != NULL)
        status = rfx_output_stream_commit(o->stream, NULL, NULL, err);
    if (status != RFX_OK || o->viewer == NULL) return status;
    if (o->choice.output >= 0) describe_map(o, shows);
    return rfx_image_viewer_commit(o->viewer, answers, shows, err);
}

/* Adds words such as "; 3 boxes of 'detections'". what: the singular and the plural. */
static void describe_found(char text[RFX_OVERLAY_TEXT], int64_t n, const char *const what[2],
                           const char *output) {
    size_t used = strlen(text);
    (void)snprintf(text + used, RFX_OVERLAY_TEXT - used, "%s%lld %s of '%.200s'",
                   used > 0 ? "; " : "", (long long)n, what[n != 1], output);
}

void rfx_overlay_describe(const struct rfx_overlay *o, char text[RFX_OVERLAY_TEXT]) {
    static const char *const boxes[2] = {"box", "boxes"};
    static const char *const marks[RFX_OVERLAY_MARKS][2] = {
        [RFX_OVERLAY_TEXT_BOXES] = {"box of text", "boxes of text"},
        [RFX_OVERLAY_POINTS] = {"point", "points"}};
    text[0] = '\0';
    if (o->choice.output >= 0) describe_map(o, text);
    for (int i = 0; i < RFX_OVERLAY_MARKS; ++i)
        if (o->choice.marked[i] >= 0)
            describe_found(text, o->marks[i].count, marks[i],
                           o->job->graph->outputs[o->choice.marked[i]].name);
    if (o->choice.most_boxes > 0) describe_found(text, o->n_boxes, boxes, o->boxes_output);
}
