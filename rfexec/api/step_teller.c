/* Steps of the executor as the public header reports them; see step_teller.h. */
#include "rfexec/api/step_teller.h"

#include "layers/core/clock.h"

static enum rfx_step_work work_of(const struct rfx_graph *graph, const struct rfx_step *step) {
    switch (step->kind) {
        case RFX_STEP_RUN:
            return step->node == graph->input ? RFX_STEP_WORK_READ : RFX_STEP_WORK_COMPUTE;
        case RFX_STEP_LOAD:
            return RFX_STEP_WORK_PACK;
        case RFX_STEP_REDUCE_BEGIN:
        case RFX_STEP_REDUCE_ADD:
            return RFX_STEP_WORK_SUM;
        case RFX_STEP_REDUCE_FINISH:
            break;
        case RFX_STEP_KEEP:
            return RFX_STEP_WORK_KEEP;
        case RFX_STEP_EMIT:
            return RFX_STEP_WORK_WRITE;
        case RFX_STEP_SPILL:
            return RFX_STEP_WORK_SPILL;
        case RFX_STEP_FETCH:
            return RFX_STEP_WORK_FETCH;
    }
    return RFX_STEP_WORK_COMPUTE;
}

/* Returns the tensor in which a step's rectangle is counted: for sums the input map, else the
 * node's own tensor. */
static const struct rfx_tensor *tensor_of(const struct rfx_graph *graph,
                                          const struct rfx_step *step) {
    const struct rfx_node *node = &graph->nodes[step->node];
    return step->kind == RFX_STEP_REDUCE_ADD ? &graph->nodes[node->in[0]].out : &node->out;
}

static void put_rect(const struct rfx_tensor *tensor, struct rfx_rect rect,
                     struct rfx_step_report *report) {
    report->row = rect.y0;
    report->column = rect.x0;
    report->rows = rfx_rect_rows(rect);
    report->columns = rfx_rect_cols(rect);
    report->channels = tensor->c;
}

/* Returns whether a step makes its rectangle final. A rectangle of a stored map is final as soon as
 * it is computed. Any other rectangle of an output is final when it is passed to the caller. Rows
 * that a later stage computes again are not final. */
static bool makes_final(const struct rfx_step_teller *teller, const struct rfx_step *step) {
    enum rfx_node_place place = teller->plan->stages[step->stage].places[step->node];
    if (step->kind == RFX_STEP_RUN) return place == RFX_PLACE_STORED;
    return step->kind == RFX_STEP_EMIT || step->kind == RFX_STEP_REDUCE_FINISH;
}

/* Sets the output and its rectangle in the report, if the step makes a part of an output final. */
static void put_output(const struct rfx_step_teller *teller, const struct rfx_step *step,
                       struct rfx_step_report *report) {
    const struct rfx_graph *graph = teller->graph;
    if (teller->no_outputs || !makes_final(teller, step)) return;
    for (int e = 0; e < graph->n_ends; e++) {
        const struct rfx_end *end = &graph->ends[e];
        if (end->node != step->node) continue;
        struct rfx_rect all = rfx_end_part(graph, end), rect = rfx_rect_intersect(step->rect, all);
        if (rfx_rect_is_empty(rect)) return;
        put_rect(&graph->nodes[end->node].out, rect, report);
        report->row -= all.y0;
        report->column -= all.x0;
        report->output = end->output;
        return;
    }
}

/* Returns the bytes that graph, plan and run have allocated now. */
static uint64_t held_bytes(const struct rfx_step_teller *teller) {
    uint64_t bytes = rfx_memory_taken_bytes(teller->graph->mem);
    return teller->mem == teller->graph->mem ? bytes : bytes + rfx_memory_taken_bytes(teller->mem);
}

static void tell(void *user, const struct rfx_step *step, double seconds) {
    struct rfx_step_teller *teller = user;
    const struct rfx_run_options *options = teller->options;
    struct rfx_step_report report = {
        .size = sizeof report,
        .stage = step->stage,
        .n_stages = teller->plan->n_stages,
        .work = work_of(teller->graph, step),
        .layer = step->node,
        .name = teller->graph->nodes[step->node].name,
        .output = -1,
        .step = ++teller->steps,
        .done = step->unit,
        .total = step->n_units,
        .planned_bytes = teller->plan->peak_bytes,
        .held_bytes = held_bytes(teller),
        .seconds = rfx_clock_seconds(CLOCK_MONOTONIC) - teller->begin,
    };
    (void)seconds;
    if (step->kind != RFX_STEP_LOAD && step->kind != RFX_STEP_REDUCE_BEGIN) {
        put_rect(tensor_of(teller->graph, step), step->rect, &report);
        put_output(teller, step, &report);
    }
    if (options->observe(options->user, &report) != 0) teller->ends = true;
}

void rfx_step_teller_begin(struct rfx_step_teller *teller, const struct rfx_run_options *options,
                           const struct rfx_graph *graph, const struct rfx_plan *plan,
                           const struct rfx_memory *mem) {
    *teller =
        (struct rfx_step_teller){.options = options, .graph = graph, .plan = plan, .mem = mem};
    teller->observer = (struct rfx_step_observer){.step = tell, .user = teller};
    if (options->observe != NULL) teller->begin = rfx_clock_seconds(CLOCK_MONOTONIC);
}
