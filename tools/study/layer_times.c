/* Counts the steps of layers and their times, and draws their chart; see layer_times.h. The axes of
 * the chart are chosen so that both roofs and every point lie inside. */
#include "tools/study/layer_times.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/clock.h"
#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"
#include "tools/study/chart.h"

/* Returns the row of `seconds` to which a step belongs. */
static size_t slot_of(const struct rfx_layer_times *times, const struct rfx_step *step) {
    const struct rfx_graph *graph = times->plan->graph;
    size_t rest = (size_t)graph->n_nodes;
    switch (step->kind) {
        case RFX_STEP_LOAD:
            return rest + RFX_REST_LOAD;
        case RFX_STEP_KEEP:
            return rest + RFX_REST_KEEP;
        case RFX_STEP_EMIT:
            return rest + RFX_REST_EMIT;
        case RFX_STEP_SPILL:
        case RFX_STEP_FETCH:
            return rest + RFX_REST_SPILL;
        case RFX_STEP_RUN:
        case RFX_STEP_REDUCE_BEGIN:
        case RFX_STEP_REDUCE_ADD:
        case RFX_STEP_REDUCE_FINISH:
            break;
    }
    return step->node == graph->input ? rest + RFX_REST_READ : (size_t)step->node;
}

static uint64_t moved_bytes(const struct rfx_graph *graph, const struct rfx_step *step) {
    const struct rfx_node *node = &graph->nodes[step->node];
    if (step->kind == RFX_STEP_RUN) return rfx_op_moved_bytes(graph, node, step->rect);
    if (step->kind == RFX_STEP_REDUCE_ADD)
        return rfx_tensor_pixel_bytes(&graph->nodes[node->in[0]].out, rfx_rect_area(step->rect));
    return step->kind == RFX_STEP_REDUCE_FINISH ? rfx_tensor_bytes(&node->out) : 0;
}

/* Observes a step. MACs, bytes and the number of steps are the same in every run, so they are
 * counted in the first run only. */
static void take_step(void *user, const struct rfx_step *step, double seconds) {
    struct rfx_layer_times *times = user;
    const struct rfx_graph *graph = times->plan->graph;
    size_t slot = slot_of(times, step);
    if (times->run >= times->runs) return;
    double cpu = rfx_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    size_t at = slot * (size_t)times->runs + (size_t)times->run;
    times->seconds[at] += seconds;
    times->cpu_seconds[at] += times->cpu_last < 0 ? seconds : cpu - times->cpu_last;
    times->cpu_last = cpu;
    if (times->run != 0 || slot != (size_t)step->node) return;
    struct rfx_layer_row *row = &times->nodes[step->node];
    if (row->steps++ == 0) times->first_stage[step->node] = step->stage;
    if (step->kind == RFX_STEP_RUN) {
        const struct rfx_node *node = &graph->nodes[step->node];
        row->macs += rfx_op_macs(graph, node, step->rect);
        row->int_macs += rfx_op_int_macs(graph, node, step->rect);
    }
    row->bytes += moved_bytes(graph, step);
}

enum rfx_status rfx_layer_times_create(struct rfx_memory *mem, const struct rfx_plan *plan,
                                       int64_t runs, struct rfx_layer_times **out,
                                       struct rfx_error *err) {
    size_t n = (size_t)plan->graph->n_nodes, slots = n + RFX_REST_COUNT + 1;
    struct rfx_layer_times *times = rfx_memory_calloc(mem, 1, sizeof *times);
    if (times == NULL) return rfx_memory_fail(mem, "times of layers", sizeof *times, err);
    times->mem = mem;
    times->plan = plan;
    times->runs = runs;
    times->cpu_last = -1.0;
    times->observer = (struct rfx_step_observer){.step = take_step, .user = times};
    times->rows = rfx_memory_calloc(mem, n, sizeof *times->rows);
    times->nodes = rfx_memory_calloc(mem, n, sizeof *times->nodes);
    times->first_stage = rfx_memory_calloc(mem, n, sizeof *times->first_stage);
    times->seconds = rfx_memory_calloc(mem, slots * (size_t)runs, sizeof *times->seconds);
    times->cpu_seconds = rfx_memory_calloc(mem, slots * (size_t)runs, sizeof *times->seconds);
    if (times->cpu_seconds == NULL || times->rows == NULL || times->nodes == NULL ||
        times->first_stage == NULL || times->seconds == NULL) {
        rfx_layer_times_free(times);
        return rfx_memory_fail(mem, "times of layers", slots * (size_t)runs * sizeof(double), err);
    }
    *out = times;
    return RFX_OK;
}

void rfx_layer_times_free(struct rfx_layer_times *times) {
    if (times == NULL) return;
    rfx_memory_release(times->mem, times->seconds);
    rfx_memory_release(times->mem, times->cpu_seconds);
    rfx_memory_release(times->mem, times->first_stage);
    rfx_memory_release(times->mem, times->nodes);
    rfx_memory_release(times->mem, times->rows);
    rfx_memory_release(times->mem, times);
}

void rfx_layer_times_end_run(struct rfx_layer_times *times, double seconds) {
    size_t n = (size_t)times->plan->graph->n_nodes, runs = (size_t)times->runs;
    assert(times->run < times->runs);
    double *of_run = times->seconds + times->run;
    double steps = 0;
    for (size_t slot = 0; slot < n + RFX_REST_COUNT; ++slot) steps += of_run[slot * runs];
    of_run[(n + RFX_REST_BETWEEN) * runs] = seconds - steps;
    of_run[(n + RFX_REST_COUNT) * runs] = seconds;
    ++times->run;
    times->cpu_last = rfx_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

static int compare_seconds(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double rfx_median_of_times(double *seconds, size_t n) {
    if (n == 0) return 0;
    qsort(seconds, n, sizeof *seconds, compare_seconds);
    return n % 2 == 1 ? seconds[n / 2] : 0.5 * (seconds[n / 2 - 1] + seconds[n / 2]);
}

static double median_of_slot(const struct rfx_layer_times *times, double *all, size_t slot) {
    return rfx_median_of_times(all + slot * (size_t)times->runs, (size_t)times->run);
}

void rfx_layer_times_finish(struct rfx_layer_times *times) {
    int n = times->plan->graph->n_nodes;
    times->n_rows = 0;
    for (int stage = 0; stage < times->plan->n_stages; ++stage) {
        for (int i = 0; i < n; ++i) {
            if (times->nodes[i].steps == 0 || times->first_stage[i] != stage) continue;
            struct rfx_layer_row *row = &times->rows[times->n_rows++];
            *row = times->nodes[i];
            row->node = i;
            row->seconds = median_of_slot(times, times->seconds, (size_t)i);
            row->cpu_seconds = median_of_slot(times, times->cpu_seconds, (size_t)i);
        }
    }
    for (size_t k = 0; k < RFX_REST_COUNT; ++k) {
        times->rest[k] = median_of_slot(times, times->seconds, (size_t)n + k);
        times->rest_cpu[k] = median_of_slot(times, times->cpu_seconds, (size_t)n + k);
    }
    times->run_seconds = median_of_slot(times, times->seconds, (size_t)n + RFX_REST_COUNT);
}

struct rfx_layer_row rfx_layer_times_total(const struct rfx_layer_times *times) {
    struct rfx_layer_row total = {.node = -1};
    for (int i = 0; i < times->n_rows; ++i) {
        total.steps += times->rows[i].steps;
        total.seconds += times->rows[i].seconds;
        total.cpu_seconds += times->rows[i].cpu_seconds;
        total.macs += times->rows[i].macs;
        total.bytes += times->rows[i].bytes;
        total.int_macs += times->rows[i].int_macs;
    }
    return total;
}

bool rfx_layers_have_int(const struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; ++i) {
        const struct rfx_node *node = &graph->nodes[i];
        struct rfx_rect whole = rfx_rect_full(node->out.h, node->out.w);
        if (rfx_op_int_macs(graph, node, whole) > 0) return true;
    }
    return false;
}

double rfx_layer_peak_share(const struct rfx_layer_row *row, const struct rfx_machine_peak *peak) {
    const uint64_t macs[] = {row->macs - row->int_macs, row->int_macs};
    const double rates[] = {peak->flops_per_second, peak->int_ops_per_second};
    double seconds = 0;
    if (row->seconds <= 0) return 0;
    for (int i = 0; i < 2; ++i) {
        if (macs[i] == 0) continue;
        if (rates[i] <= 0) return 0;
        seconds += 2.0 * (double)macs[i] / rates[i];
    }
    return seconds / row->seconds;
}

enum rfx_layer_class rfx_layer_class_of(const struct rfx_node *node) {
    if (!rfx_node_is_class(node, RFX_CLASS_CONVOLUTION)) return RFX_LAYER_OTHER;
    const struct rfx_conv_attr *conv = &node->attr.conv;
    if (conv->groups > 1 && conv->groups == conv->ic) return RFX_LAYER_DEPTHWISE;
    struct rfx_window window = rfx_op_window(node);
    return window.kernel[0] == 1 && window.kernel[1] == 1 ? RFX_LAYER_POINTWISE : RFX_LAYER_DENSE;
}

const char *rfx_layer_class_name(enum rfx_layer_class class) {
    static const char *const names[] = {
        [RFX_LAYER_POINTWISE] = "1x1 convolution",
        [RFX_LAYER_DENSE] = "other convolution",
        [RFX_LAYER_DEPTHWISE] = "depthwise convolution",
        [RFX_LAYER_OTHER] = "other",
    };
    _Static_assert(sizeof names / sizeof names[0] == RFX_LAYER_CLASS_COUNT, "a name per class");
    return names[class];
}

const char *rfx_layer_rest_name(enum rfx_layer_rest rest) {
    static const char *const names[] = {
        [RFX_REST_READ] = "reading the image", [RFX_REST_LOAD] = "loading weights by stage",
        [RFX_REST_KEEP] = "keeping rows",      [RFX_REST_EMIT] = "handing out outputs",
        [RFX_REST_SPILL] = "spilling maps",    [RFX_REST_BETWEEN] = "between steps",
    };
    _Static_assert(sizeof names / sizeof names[0] == RFX_REST_COUNT, "a name per row");
    return names[rest];
}

enum {
    TEXT_CHARS = 200,
    ROOFLINE_HEIGHT_PX = 600,
    ROOFLINE_PLOT_PX = 450, /* height of the plot without titles and legend, about */
    TIMES_HEIGHT_PX = 420,
    MIN_WIDTH_PX = 900,
    MAX_WIDTH_PX = 1500,
    LAYER_PX = 20, /* width of a bar with its name */
    ROOFS = 3,     /* at the most */
    PLACES = 4,    /* where a name can stand beside its point */
    POINTED = 5,   /* number of layers whose names are written: the slowest */
    N_SERIES = ROOFS + RFX_LAYER_CLASS_COUNT + PLACES
};

/* The places of a name beside its point: 0 above and after, 1 above and before, 2 below and after,
 * 3 below and before. */
static bool place_is_before(int place) {
    return place % 2 != 0;
}

static bool place_is_below(int place) {
    return place >= PLACES / 2;
}

/* Colours of the classes, as numbers in the palette of the chart. */
static const int colors[] = {
    [RFX_LAYER_POINTWISE] = 1,
    [RFX_LAYER_DENSE] = 2,
    [RFX_LAYER_DEPTHWISE] = 3,
    [RFX_LAYER_OTHER] = 8,
};
_Static_assert(sizeof colors / sizeof colors[0] == RFX_LAYER_CLASS_COUNT, "a colour per class");

/* Points and bars of one class of layers. */
struct group {
    int n_points, n_bars;
    double *flops_per_byte, *gflops;  /* coordinates of the points */
    double *left, *right, *zero, *ms; /* edges of the bars */
};

/* Rings around slow layers. The names of all these layers stand in the same place beside the ring,
 * or are not written. */
struct pointers {
    int n;
    double x[POINTED], y[POINTED];
    const char *labels[POINTED];
};

struct roof { /* a line, from left to right */
    double x[2], y[2];
};

struct area { /* in pixels from the lower left corner of the plot */
    double x0, x1, y0, y1;
};

struct drawing {
    struct rfx_memory *mem;
    const struct rfx_layer_times *times;
    struct rfx_machine_peak peak;
    struct group groups[RFX_LAYER_CLASS_COUNT];
    double *values;     /* memory of all groups */
    const char **names; /* of the layers, in the order of the bars */
    double x_min, x_max, y_min, y_max, longest_ms;
    struct roof memory, floats, ints; /* ints: if its peak was measured */
    int width_px;
    struct pointers pointers[PLACES];
    struct area areas[POINTED]; /* of the names written so far */
    int n_areas;
};

static bool allocate(struct drawing *p) {
    size_t n = (size_t)p->times->n_rows, arrays = 6 * RFX_LAYER_CLASS_COUNT;
    p->values = rfx_memory_calloc(p->mem, arrays * n, sizeof *p->values);
    p->names = rfx_memory_calloc(p->mem, n, sizeof *p->names);
    if (p->values == NULL || p->names == NULL) return false;
    for (size_t k = 0; k < RFX_LAYER_CLASS_COUNT; ++k) {
        double *at = p->values + 6 * k * n;
        p->groups[k] = (struct group){.flops_per_byte = at,
                                      .gflops = at + n,
                                      .left = at + 2 * n,
                                      .right = at + 3 * n,
                                      .zero = at + 4 * n,
                                      .ms = at + 5 * n};
    }
    return true;
}

/* Finds the point of a layer in the roofline. Returns false when the layer has no point. */
static bool find_point(const struct rfx_layer_row *row, double *x, double *y) {
    if (row->macs == 0 || row->bytes == 0 || row->seconds <= 0) return false;
    *x = 2.0 * (double)row->macs / (double)row->bytes;
    *y = 2e-9 * (double)row->macs / row->seconds;
    return true;
}

/* Adds the bar of layer i and, if it has one, its point. */
static void add_row(struct drawing *p, int i) {
    const struct rfx_layer_row *row = &p->times->rows[i];
    const struct rfx_node *node = &p->times->plan->graph->nodes[row->node];
    struct group *group = &p->groups[rfx_layer_class_of(node)];
    p->names[i] = node->name;
    group->left[group->n_bars] = i - 0.4;
    group->right[group->n_bars] = i + 0.4;
    group->ms[group->n_bars++] = row->seconds * 1e3;
    p->longest_ms = fmax(p->longest_ms, row->seconds * 1e3);
    double x, y;
    if (!find_point(row, &x, &y)) return;
    group->flops_per_byte[group->n_points] = x;
    group->gflops[group->n_points++] = y;
    p->x_min = fmin(p->x_min, x);
    p->x_max = fmax(p->x_max, x);
    p->y_min = fmin(p->y_min, y);
    p->y_max = fmax(p->y_max, y);
}

/* Computes the roofs and the ranges of the axes. The roof of the memory bandwidth ends where the
 * highest roof of the processor begins. */
static void add_roofs(struct drawing *p) {
    double floats = p->peak.flops_per_second * 1e-9, ints = p->peak.int_ops_per_second * 1e-9;
    double bandwidth = p->peak.bytes_per_second * 1e-9, highest = fmax(floats, ints);
    p->x_min = fmin(p->x_min, (ints > 0 ? fmin(floats, ints) : floats) / bandwidth / 4) / 1.5;
    p->x_max = fmax(p->x_max, highest / bandwidth * 4) * 1.5;
    p->y_min = fmin(p->y_min, bandwidth * p->x_min) / 1.5;
    p->y_max = fmax(p->y_max, highest) * 1.8;
    p->memory = (struct roof){{p->x_min, highest / bandwidth}, {bandwidth * p->x_min, highest}};
    p->floats = (struct roof){{floats / bandwidth, p->x_max}, {floats, floats}};
    p->ints = (struct roof){{ints / bandwidth, p->x_max}, {ints, ints}};
}

/* Return the distance in pixels from the left and from the lower edge of the roofline's plot. */
static double across_px(const struct drawing *p, double x) {
    double width = p->width_px - RFX_CHART_PANEL_LEFT_PX - RFX_CHART_RIGHT_PX;
    return width * log(x / p->x_min) / log(p->x_max / p->x_min);
}

static double up_px(const struct drawing *p, double y) {
    return ROOFLINE_PLOT_PX * log(y / p->y_min) / log(p->y_max / p->y_min);
}

/* Returns whether a name in this area would cover a point. */
static bool covers_point(const struct drawing *p, const struct area *area) {
    for (int k = 0; k < RFX_LAYER_CLASS_COUNT; ++k) {
        const struct group *group = &p->groups[k];
        for (int i = 0; i < group->n_points; ++i) {
            double x = across_px(p, group->flops_per_byte[i]), y = up_px(p, group->gflops[i]);
            if (x > area->x0 && x < area->x1 && y > area->y0 && y < area->y1) return true;
        }
    }
    return false;
}

/* Reserves the area of a name beside a point. Returns false when the name would leave the plot, or
 * cover a point or another name. */
static bool take_area(struct drawing *p, double x, double y, const char *name, int place) {
    enum { LETTER_PX = 8, GAP_PX = 8, LOW_PX = 3, HEIGHT_PX = 18 };
    double at = across_px(p, x), up = up_px(p, y), length = LETTER_PX * (double)strlen(name);
    double x0 = place_is_before(place) ? at - GAP_PX - length : at + GAP_PX;
    double y0 = place_is_below(place) ? up - LOW_PX - HEIGHT_PX : up + LOW_PX;
    struct area area = {x0, x0 + length, y0, y0 + HEIGHT_PX};
    if (area.x0 < 0 || area.x1 > across_px(p, p->x_max) || area.y0 < 0) return false;
    for (int i = 0; i < p->n_areas; ++i) {
        const struct area *a = &p->areas[i];
        if (area.x0 < a->x1 && a->x0 < area.x1 && area.y0 < a->y1 && a->y0 < area.y1) return false;
    }
    if (covers_point(p, &area)) return false;
    p->areas[p->n_areas++] = area;
    return true;
}

/* Puts a ring around a layer, and its name in the first place where the name covers nothing. */
static void add_pointer(struct drawing *p, int row) {
    double x, y;
    int place = 0;
    if (!find_point(&p->times->rows[row], &x, &y)) return;
    while (place < PLACES && !take_area(p, x, y, p->names[row], place)) ++place;
    struct pointers *pointers = &p->pointers[place % PLACES];
    pointers->x[pointers->n] = x;
    pointers->y[pointers->n] = y;
    pointers->labels[pointers->n++] = place < PLACES ? p->names[row] : NULL;
}

/* Adds rings for the POINTED slowest layers, as far as these have a point in the roofline. */
static void add_pointers(struct drawing *p) {
    const struct rfx_layer_row *rows = p->times->rows;
    int last = -1; /* the layer added before; layers of equal time come in plan order */
    for (int k = 0; k < POINTED; ++k) {
        int best = -1;
        for (int i = 0; i < p->times->n_rows; ++i) {
            bool after = last < 0 || rows[i].seconds < rows[last].seconds ||
                         (rows[i].seconds == rows[last].seconds && i > last);
            if (after && (best < 0 || rows[i].seconds > rows[best].seconds)) best = i;
        }
        if (best < 0) return;
        add_pointer(p, best);
        last = best;
    }
}

/* The names of the roofs. */
struct roof_names {
    char memory[TEXT_CHARS], floats[TEXT_CHARS], ints[TEXT_CHARS];
};

/* Puts the series of the roofs first. Returns their number. */
static int put_roofs(const struct drawing *p, struct roof_names *names,
                     struct rfx_chart_series series[N_SERIES]) {
    int n = 0;
    (void)snprintf(names->floats, sizeof names->floats, "multiply-adds: %.0f GFLOP/s",
                   p->peak.flops_per_second * 1e-9);
    (void)snprintf(names->ints, sizeof names->ints, "8-bit multiply-adds: %.0f GOP/s",
                   p->peak.int_ops_per_second * 1e-9);
    (void)snprintf(names->memory, sizeof names->memory, "memory: %.1f GB/s",
                   p->peak.bytes_per_second * 1e-9);
    series[n++] = (struct rfx_chart_series){
        .name = names->floats, .n = 2, .x = p->floats.x, .y = p->floats.y, .color = 7};
    if (p->peak.int_ops_per_second > 0)
        series[n++] = (struct rfx_chart_series){
            .name = names->ints, .n = 2, .x = p->ints.x, .y = p->ints.y, .color = 4};
    series[n++] = (struct rfx_chart_series){.name = names->memory,
                                            .n = 2,
                                            .x = p->memory.x,
                                            .y = p->memory.y,
                                            .color = 7,
                                            .dashed = true};
    return n;
}

/* Appends the series of the rings. n: number of series so far. Returns the new number of series. */
static int put_pointers(const struct drawing *p, struct rfx_chart_series *series, int n) {
    bool named = false;
    for (int k = 0; k < PLACES; ++k) {
        const struct pointers *at = &p->pointers[k];
        if (at->n == 0) continue;
        series[n++] = (struct rfx_chart_series){.name = named ? NULL : "slowest layers",
                                                .style = RFX_CHART_RINGS,
                                                .n = at->n,
                                                .x = at->x,
                                                .y = at->y,
                                                .labels = at->labels,
                                                .labels_before = place_is_before(k),
                                                .labels_below = place_is_below(k),
                                                .color = 7};
        named = true;
    }
    return n;
}

/* Appends a series for each class of layers: its points in the roofline, or its bars. n: number of
 * series so far. Returns the new number of series. */
static int put_groups(const struct drawing *p, struct rfx_chart_series *series, int n, bool bars) {
    for (int k = 0; k < RFX_LAYER_CLASS_COUNT; ++k) {
        const struct group *group = &p->groups[k];
        int count = bars ? group->n_bars : group->n_points;
        if (count == 0) continue;
        series[n++] =
            (struct rfx_chart_series){.name = rfx_layer_class_name((enum rfx_layer_class)k),
                                      .style = bars ? RFX_CHART_BOXES : RFX_CHART_POINTS,
                                      .n = count,
                                      .x = bars ? group->left : group->flops_per_byte,
                                      .y = bars ? group->zero : group->gflops,
                                      .x_end = bars ? group->right : NULL,
                                      .y_end = bars ? group->ms : NULL,
                                      .color = colors[k]};
    }
    return n;
}

static enum rfx_status draw(const struct drawing *p, const char *model, const char *path,
                            struct rfx_error *err) {
    const struct rfx_layer_times *times = p->times;
    const struct rfx_graph *graph = times->plan->graph;
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    struct rfx_layer_row total = rfx_layer_times_total(times);
    char title[TEXT_CHARS], subtitle[TEXT_CHARS], spent[TEXT_CHARS], text[RFX_PLAN_TEXT];
    rfx_plan_describe(times->plan, text, sizeof text);
    (void)snprintf(title, sizeof title, "%.80s, %lldx%lld: layers beside the machine's peak", model,
                   (long long)in->h, (long long)in->w);
    (void)snprintf(subtitle, sizeof subtitle, "%.100s; %s kernels, %d thread%s", text,
                   rfx_kernels()->name, p->peak.threads, p->peak.threads == 1 ? "" : "s");
    (void)snprintf(spent, sizeof spent, "%.2f ms in layers, %.2f ms in all", total.seconds * 1e3,
                   times->run_seconds * 1e3);
    struct roof_names names;
    struct rfx_chart_series above[N_SERIES], below[N_SERIES];
    int n = put_roofs(p, &names, above);
    n = put_pointers(p, above, put_groups(p, above, n, false));
    struct rfx_chart panels[2] = {
        {.title = title,
         .subtitle = subtitle,
         .x = {.label = "operations per byte moved at least [FLOP/byte]",
               .log = true,
               .min = p->x_min,
               .max = p->x_max},
         .y = {.label = "speed [GFLOP/s]", .log = true, .min = p->y_min, .max = p->y_max},
         .series = above,
         .n_series = n,
         .width_px = p->width_px,
         .height_px = ROOFLINE_HEIGHT_PX},
        {.title = "Time of every layer",
         .subtitle = spent,
         .x = {.label = "layers in the order they run",
               .categories = p->names,
               .n_categories = times->n_rows},
         .y = {.label = "time [ms]", .max = p->longest_ms * 1.08},
         .series = below,
         .n_series = put_groups(p, below, 0, true),
         .width_px = p->width_px,
         .height_px = TIMES_HEIGHT_PX}};
    return rfx_chart_write_panels(panels, 2, p->mem, path, err);
}

enum rfx_status rfx_layer_chart(const struct rfx_layer_times *times,
                                const struct rfx_machine_peak *peak, const char *model,
                                const char *path, struct rfx_error *err) {
    struct drawing p = {
        .mem = times->mem, .times = times, .peak = *peak, .x_min = HUGE_VAL, .y_min = HUGE_VAL};
    p.width_px = RFX_CHART_PANEL_LEFT_PX + RFX_CHART_RIGHT_PX + LAYER_PX * times->n_rows;
    if (p.width_px < MIN_WIDTH_PX) p.width_px = MIN_WIDTH_PX;
    if (p.width_px > MAX_WIDTH_PX) p.width_px = MAX_WIDTH_PX;
    enum rfx_status status = RFX_OK;
    if (allocate(&p)) {
        for (int i = 0; i < times->n_rows; ++i) add_row(&p, i);
        add_roofs(&p);
        add_pointers(&p);
        status = draw(&p, model, path, err);
    } else {
        status = rfx_memory_fail(p.mem, "chart", (size_t)times->n_rows * sizeof(double), err);
    }
    rfx_memory_release(p.mem, p.names);
    rfx_memory_release(p.mem, p.values);
    return status;
}
