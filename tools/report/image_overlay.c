/* Chooses the output that is shown, stores its values and draws them; see image_overlay.h. */
#include "tools/report/image_overlay.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
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

/* Prints that no output is a map. Returns RFX_EXIT_USAGE. */
static int refuse_all(const struct rfx_graph *graph) {
    char shape[96];
    rfx_cli_message("--overlay: no output of '%s' is a map over the picture, '%s' is %s",
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
    if (name == NULL) return refuse_all(graph);
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
            "--overlay: output '%s' has %lld channels, each a share by itself (sigmoid): "
            "--overlay-of says which is shown, 1 to %lld, or labels",
            name, (long long)map->c, (long long)map->c);
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

int rfx_overlay_choose(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                       struct rfx_overlay_choice *choice) {
    struct rfx_error err = {{0}};
    struct rfx_tensor image = overlay_tensor(graph);
    char what[256];
    *choice = (struct rfx_overlay_choice){
        .format = {.kind = &rfx_output_npy, .bits = 8, .has_range = true, .range = {0.0, 255.0}}};
    int code = choose_output(graph, options->report.overlay_output, choice);
    if (code == RFX_EXIT_DONE) code = choose_channel(graph, options->report.overlay_of, choice);
    if (code != RFX_EXIT_DONE) return code;
    if (choice->channel < 0 &&
        options->report.overlay_range[0] < options->report.overlay_range[1]) {
        rfx_cli_message(
            "--overlay-range is for the values of a channel (--overlay-of), not labels");
        return RFX_EXIT_USAGE;
    }
    if (options->report.overlay == NULL) return RFX_EXIT_DONE; /* the overlay has no file */
    const struct rfx_output_kind *kind = rfx_output_kind_of(options->report.overlay);
    if (strcmp(options->report.overlay, "-") == 0) kind = &rfx_output_png;
    if (kind != NULL) choice->format.kind = kind;
    (void)snprintf(what, sizeof what, "--overlay '%.200s'", options->report.overlay);
    enum rfx_status status = rfx_output_format_check(&choice->format, &image, what, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

int rfx_overlay_choose_for_page(const struct rfx_graph *graph,
                                const struct rfx_cli_run_options *options,
                                struct rfx_overlay_choice *choice, bool *shown) {
    struct rfx_cli_run_options first = *options;
    bool asked = options->report.overlay_of != NULL || options->report.overlay_output != NULL ||
                 options->report.overlay_range[0] < options->report.overlay_range[1];
    *shown = true;
    if (asked) return rfx_overlay_choose(graph, options, choice);
    int map = -1;
    for (int k = 0; k < graph->n_outputs && map < 0; ++k) map = map_node_of(graph, k);
    *shown = map >= 0 && !may_be_image(graph, map);
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

size_t rfx_overlay_bytes(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                         const struct rfx_overlay_choice *choice) {
    struct rfx_tensor image = overlay_tensor(graph);
    const struct rfx_tensor *input = input_of(graph);
    size_t bytes =
        RFX_OUTPUT_SPOOL_BYTES + floats(input->w * (input->c + 3) + overlay_map(graph, choice)->w);
    if (options->report.overlay != NULL) bytes += rfx_output_stream_bytes(&choice->format, &image);
    if (options->report.page != NULL) bytes += rfx_small_copy_bytes(input->h, input->w);
    return bytes;
}

static enum rfx_status find_places(struct rfx_overlay *o, struct rfx_error *err) {
    const struct rfx_graph *graph = o->job->graph;
    const struct rfx_tensor *map = map_of(o), *input = input_of(graph);
    struct rfx_analysis *analysis = NULL;
    enum rfx_status status = rfx_analysis_create(graph, &analysis, err);
    if (status != RFX_OK) return status;
    const struct rfx_layer_info *info = &analysis->layers[o->choice.map];
    o->rows = rfx_map_place_of(info->global ? NULL : &info->field[0], map->h, input->h);
    o->cols = rfx_map_place_of(info->global ? NULL : &info->field[1], map->w, input->w);
    rfx_analysis_free(analysis);
    return RFX_OK;
}

static enum rfx_status make_rows(struct rfx_overlay *o, struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(o->job->graph);
    int64_t sizes[3] = {map_of(o)->w, input->w * input->c, 3 * input->w};
    float **rows[3] = {&o->values, &o->pixels, &o->colours};
    for (int i = 0; i < 3; ++i) {
        *rows[i] = rfx_memory_alloc(o->mem, floats(sizes[i]));
        if (*rows[i] == NULL) return rfx_memory_fail(o->mem, "overlay", floats(sizes[i]), err);
    }
    return RFX_OK;
}

enum rfx_status rfx_overlay_open(struct rfx_overlay *overlay,
                                 const struct rfx_cli_run_options *options,
                                 const struct rfx_cli_job *job,
                                 const struct rfx_overlay_choice *choice, struct rfx_error *err) {
    *overlay =
        (struct rfx_overlay){.mem = job->mem, .options = options, .job = job, .choice = *choice};
    struct rfx_tensor image = overlay_tensor(job->graph);
    struct rfx_tensor values = rfx_tensor_nhwc(1, map_of(overlay)->h, map_of(overlay)->w);
    overlay->range = rfx_value_range_empty();
    enum rfx_status status = find_places(overlay, err);
    if (status == RFX_OK) status = make_rows(overlay, err);
    if (status == RFX_OK && options->report.overlay != NULL)
        status = rfx_output_stream_open(job->mem, options->report.overlay, &choice->format, &image,
                                        &overlay->stream, err);
    if (status == RFX_OK && options->report.page != NULL)
        status = rfx_small_copy_create(job->mem, image.h, image.w, &overlay->small, err);
    const char *beside =
        options->report.overlay != NULL ? options->report.overlay : options->report.page;
    if (status == RFX_OK)
        status = rfx_output_spool_open(job->mem, beside, &values, &overlay->spool, err);
    return status;
}

void rfx_overlay_free(struct rfx_overlay *overlay) {
    if (overlay->mem == NULL) return;
    rfx_output_spool_free(overlay->spool);
    rfx_output_stream_free(overlay->stream);
    rfx_small_copy_free(&overlay->small);
    rfx_memory_release(overlay->mem, overlay->values);
    rfx_memory_release(overlay->mem, overlay->pixels);
    rfx_memory_release(overlay->mem, overlay->colours);
    *overlay = (struct rfx_overlay){0};
}

/* Returns the value that is shown for a pixel of the map: the value of the chosen channel, or the
 * number of the channel with the largest value. */
static float value_of(const struct rfx_overlay *o, const float *pixel, int64_t channels) {
    if (o->choice.channel >= 0) return pixel[o->choice.channel];
    if (channels == 1) return pixel[0];
    int64_t best = 0;
    for (int64_t c = 0; c < channels; ++c) {
        if (isnan(pixel[c])) return NAN;
        if (pixel[c] > pixel[best]) best = c;
    }
    return (float)best;
}

/* Stores columns [x0, x1) of row y of the map; o->values holds them. */
static enum rfx_status store_row(struct rfx_overlay *o, int64_t y, int64_t x0, int64_t x1,
                                 struct rfx_error *err) {
    struct rfx_rect row = rfx_rect_make(y, y + 1, x0, x1);
    struct rfx_view view = rfx_view_dense(o->values, row, 1);
    if (o->choice.channel >= 0)
        rfx_value_range_add(&o->range, RFX_TYPE_FLOAT32, o->values, x1 - x0);
    o->received += x1 - x0;
    return rfx_output_spool_write(o->spool, row, &view, err);
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_overlay *o = user;
    enum rfx_status status = RFX_OK;
    bool shown = end->output == o->choice.output && end->node == o->choice.map;
    for (int64_t y = rect.y0; shown && y < rect.y1 && status == RFX_OK; ++y) {
        for (int64_t x = rect.x0; x < rect.x1; ++x)
            o->values[x - rect.x0] = value_of(o, rfx_view_f32_at(view, y, x), end->channels);
        status = store_row(o, y, rect.x0, rect.x1, err);
    }
    return status == RFX_OK ? o->sink.write(o->sink.user, end, rect, view, err) : status;
}

static void look(void *user, const struct rfx_end *end, struct rfx_rect rect,
                 const struct rfx_view *view) {
    const struct rfx_overlay *o = user;
    rfx_sink_look(&o->sink, end, rect, view);
}

void rfx_overlay_watch(struct rfx_overlay *overlay, struct rfx_output_sink *sink) {
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
    return o->stream != NULL || rfx_small_copy_wants(&o->small, y);
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

/* Combines a row of the image (o->pixels) and a row of the map (o->values) in o->colours. covered:
 * the map covers this row. shown: the samples that are drawn black and white. */
static void put_together(struct rfx_overlay *o, struct rfx_value_range shown, bool covered) {
    const struct rfx_tensor *input = input_of(o->job->graph);
    unsigned char rgb[3] = {0};
    for (int64_t x = 0; x < input->w; ++x) {
        int64_t at = covered ? rfx_map_place_nearest(&o->cols, x) : -1;
        double cover = at >= 0 ? colour_of(o, o->values[at], rgb) : 0.0;
        for (int k = 0; k < 3; ++k) {
            int64_t c = channel_of(o, k);
            float sample = rfx_image_sample_of(o->job->image, c, o->pixels[x * input->c + c]);
            double grey = 255.0 * ((double)sample - shown.lo) / (shown.hi - shown.lo);
            grey = grey > 0.0 ? fmin(grey, 255.0) : 0.0; /* NaN becomes black */
            o->colours[3 * x + k] = (float)(grey + cover * ((double)rgb[k] - grey));
        }
    }
}

static enum rfx_status draw_rows(struct rfx_overlay *o, struct rfx_value_range shown,
                                 struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(o->job->graph);
    struct rfx_cli_progress progress;
    int64_t held = -1;
    enum rfx_status status = rfx_image_rewind(o->job->image, err);
    rfx_cli_progress_start(&progress, "overlay");
    for (int64_t y = 0; y < input->h && status == RFX_OK; ++y) {
        if (!is_drawn(o, y)) continue;
        int64_t at = rfx_map_place_nearest(&o->rows, y);
        if (at >= 0 && at != held) status = rfx_output_spool_read(o->spool, at, o->values, err);
        if (at >= 0) held = at;
        if (status == RFX_OK) status = read_pixels(o, y, err);
        if (status != RFX_OK) break;
        put_together(o, shown, at >= 0);
        struct rfx_rect row = rfx_rect_make(y, y + 1, 0, input->w);
        struct rfx_view view = rfx_view_dense(o->colours, row, 3);
        rfx_small_copy_take(&o->small, y, o->colours);
        if (o->stream != NULL) status = rfx_output_stream_write(o->stream, row, &view, err);
        if (status == RFX_OK && rfx_cli_progress_step(&progress, y + 1, input->h) != 0)
            status = stopped(err);
    }
    rfx_cli_progress_end(&progress);
    return status;
}

enum rfx_status rfx_overlay_draw(struct rfx_overlay *o, struct rfx_error *err) {
    struct rfx_value_range shown;
    enum rfx_status status = RFX_OK;
    if (o->received != map_of(o)->h * map_of(o)->w)
        status = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                          "overlay: %" PRId64 " of %" PRId64 " values came", o->received,
                          map_of(o)->h * map_of(o)->w);
    const float *asked = o->options->report.overlay_range;
    o->range = rfx_value_range_settle(o->range);
    if (asked[0] < asked[1])
        o->range = (struct rfx_value_range){(double)asked[0], (double)asked[1]};
    if (status == RFX_OK) status = find_black_and_white(o, &shown, err);
    if (status == RFX_OK) status = draw_rows(o, shown, err);
    if (status != RFX_OK || o->stream == NULL) return status;
    return rfx_output_stream_commit(o->stream, NULL, NULL, err);
}

void rfx_overlay_describe(const struct rfx_overlay *o, char text[RFX_OVERLAY_TEXT]) {
    const char *name = o->job->graph->outputs[o->choice.output].name;
    if (o->choice.channel >= 0)
        (void)snprintf(text, RFX_OVERLAY_TEXT, "channel %lld of '%.200s': %.6g clear, %.6g bright",
                       (long long)o->choice.channel + 1, name, o->range.lo, o->range.hi);
    else if (map_of(o)->c == 1)
        (void)snprintf(text, RFX_OVERLAY_TEXT, "labels of '%.200s', 0 clear", name);
    else
        (void)snprintf(text, RFX_OVERLAY_TEXT,
                       "labels of '%.200s', the largest of %lld channels; the first clear", name,
                       (long long)map_of(o)->c);
}
