/* Counting steps and their times; see layer_times.h. */
#include "tools/study/layer_times.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "layers/graph/op.h"

/* The row of `seconds` to which a step belongs. */
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

static double cpu_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* MACs, bytes and the number of steps are the same in every run and counted in the first. */
static void take_step(void *user, const struct rfx_step *step, double seconds) {
    struct rfx_layer_times *times = user;
    const struct rfx_graph *graph = times->plan->graph;
    size_t slot = slot_of(times, step);
    if (times->run >= times->runs) return;
    double cpu = cpu_now();
    size_t at = slot * (size_t)times->runs + (size_t)times->run;
    times->seconds[at] += seconds;
    times->cpu_seconds[at] += times->cpu_last < 0 ? seconds : cpu - times->cpu_last;
    times->cpu_last = cpu;
    if (times->run != 0 || slot != (size_t)step->node) return;
    struct rfx_layer_row *row = &times->nodes[step->node];
    if (row->steps++ == 0) times->first_stage[step->node] = step->stage;
    if (step->kind == RFX_STEP_RUN)
        row->macs += rfx_op_macs(graph, &graph->nodes[step->node], step->rect);
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
    times->cpu_last = cpu_now();
}

static int compare_seconds(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_slot(struct rfx_layer_times *times, double *all, size_t slot) {
    double *v = all + slot * (size_t)times->runs;
    size_t n = (size_t)times->run;
    if (n == 0) return 0;
    qsort(v, n, sizeof *v, compare_seconds);
    return n % 2 == 1 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
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
    }
    return total;
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
