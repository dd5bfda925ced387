/* Reports on layers and on a plan's stages in the structs of the public header.
 *
 * Invariant: elements of the caller's arrays are as far apart as the caller's element size, and
 * never written beyond that size, so that programs and libraries of different versions work
 * together. */
#include "rfexec/api/reports.h"

#include <stdlib.h>
#include <string.h>

#include "layers/core/float_env.h"
#include "layers/graph/op.h"
#include "rf_analysis/analysis.h"
#include "rfexec/api/api_support.h"
#include "rfexec/api/job.h"
#include "rfexec/api/network.h"
#include "tiler/plan/mode.h"
#include "tiler/search/plan_counts.h"

/* Sizes in version 0.1, the first version with these structs. */
enum { LAYER_FIRST = 168, STAGE_FIRST = 72 };
_Static_assert(sizeof(struct rfx_layer_report) >= LAYER_FIRST, "members are only added");
_Static_assert(sizeof(struct rfx_stage_report) >= STAGE_FIRST, "members are only added");

static enum rfx_status check_bytes(size_t bytes, size_t first, const char *name,
                                   struct rfx_error *err) {
    if (bytes >= first && bytes <= 4096) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "struct %s is said to have %zu bytes: at least %zu are needed", name, bytes,
                    first);
}

static void write_element(void *array, int k, size_t bytes, const void *known, size_t known_bytes) {
    char *to = (char *)array + (size_t)k * bytes;
    memset(to, 0, bytes);
    memcpy(to, known, bytes < known_bytes ? bytes : known_bytes);
}

static struct rfx_layer_report describe_layer(const struct rfx_node *node,
                                              const struct rfx_layer_info *info) {
    struct rfx_layer_report layer = {
        .name = node->name,
        .op = rfx_op_def(node->op)->name,
        .n_dims = node->out.shape.rank,
        .global = info->global,
        .macs = info->macs,
        .parameters = info->params,
        .output_bytes = info->output_bytes,
        .live_bytes = info->live_bytes,
    };
    memcpy(layer.dims, node->out.shape.dims, (size_t)layer.n_dims * sizeof *layer.dims);
    for (int axis = 0; axis < 2 && !info->global; axis++) {
        const struct rfx_axis_field *field = &info->field[axis];
        layer.field[axis] = field->size_px;
        layer.field_padding[axis] = field->padding_px;
        layer.jump[axis] =
            field->jump.den == 0 ? 0.0 : (double)field->jump.num / (double)field->jump.den;
    }
    return layer;
}

int rfx_network_layer_count(const struct rfx_network *network) {
    return network != NULL ? rfx_network_graph_of(network)->n_nodes : 0;
}

enum rfx_code rfx_network_layers(const struct rfx_network *network, struct rfx_layer_report *layers,
                                 size_t layer_bytes, struct rfx_why *why) {
    struct rfx_analysis *analysis = NULL;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    const struct rfx_graph *graph = rfx_network_graph_of(network);
    status = check_bytes(layer_bytes, LAYER_FIRST, "rfx_layer_report", &err);
    if (status == RFX_OK && layers == NULL)
        status = rfx_fail(&err, RFX_STATUS_INVALID_ARGUMENT, "no room for the layers is given");
    if (status == RFX_OK) status = rfx_analysis_create(graph, &analysis, &err);
    for (int i = 0; status == RFX_OK && i < graph->n_nodes; i++) {
        struct rfx_layer_report layer = describe_layer(&graph->nodes[i], &analysis->layers[i]);
        write_element(layers, i, layer_bytes, &layer, sizeof layer);
    }
    rfx_analysis_free(analysis);
    return rfx_api_result(status, &err, why);
}

/* A list of buffers, some of which may overlap. */
struct buffers {
    struct rfx_buffer *items;
    size_t n;
};

enum { BUFFERS_PER_NODE = 4 };

static void add(struct buffers *buffers, struct rfx_buffer buffer) {
    if (buffer.bytes != 0) buffers->items[buffers->n++] = buffer;
}

static int compare_offsets(const void *a, const void *b) {
    const struct rfx_buffer *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Returns the number of bytes that at least one buffer covers. */
static uint64_t count_bytes(struct buffers *buffers) {
    uint64_t bytes = 0;
    size_t end = 0;
    qsort(buffers->items, buffers->n, sizeof *buffers->items, compare_offsets);
    for (size_t k = 0; k < buffers->n; k++) {
        size_t from = buffers->items[k].offset, to = from + buffers->items[k].bytes;
        if (from < end) from = end;
        if (to <= from) continue;
        bytes += to - from;
        end = to;
    }
    return bytes;
}

/* Returns the last stage that needs the full map of a node, or -1. Outputs are needed to the end.
 */
static int last_need(const struct rfx_plan *plan, int node) {
    for (int k = 0; k < plan->graph->n_outputs; k++)
        if (plan->graph->outputs[k].node == node) return plan->n_stages - 1;
    int last = -1;
    for (int s = 0; s < plan->n_stages; s++)
        if (rfx_place_has_map(plan->stages[s].places[node])) last = s;
    return last;
}

static int first_made(const struct rfx_plan *plan, int node) {
    for (int s = 0; s < plan->n_stages; s++)
        if (rfx_place_has_map(plan->stages[s].places[node])) return s;
    return plan->n_stages;
}

static uint64_t arena_bytes(const struct rfx_plan *plan, int s, struct buffers *buffers) {
    const struct rfx_stage *stage = &plan->stages[s];
    buffers->n = 0;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const struct rfx_stage_node *node = &stage->nodes[i];
        if (rfx_place_is_computed(stage->places[i])) {
            add(buffers, node->buffer);
            add(buffers, node->staging);
            add(buffers, node->packed);
        }
        if (first_made(plan, i) <= s && last_need(plan, i) >= s) add(buffers, plan->stored[i]);
    }
    return count_bytes(buffers);
}

static uint64_t spilled_bytes(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    uint64_t bytes = 0;
    for (int i = 0; i < plan->graph->n_nodes; i++)
        if (stage->places[i] == RFX_PLACE_SPILLED)
            bytes += (uint64_t)rfx_node_out_bytes(&plan->graph->nodes[i]);
    return bytes;
}

static struct rfx_stage_report describe_stage(const struct rfx_plan *plan,
                                              const struct rfx_graph *graph, int s) {
    const struct rfx_stage *stage = &plan->stages[s];
    return (struct rfx_stage_report){
        .mode = stage->spec.mode->name,
        .first = graph->nodes[stage->first].name,
        .last = graph->nodes[stage->last].name,
        .tiles = {stage->spec.tiles_y, stage->spec.tiles_x},
        .band_rows = stage->spec.band_rows,
        .spilled_bytes = spilled_bytes(plan, stage),
    };
}

enum rfx_status rfx_report_stages(const struct rfx_plan *plan, const struct rfx_graph *graph,
                                  struct rfx_stage_report *stages, size_t stage_bytes, int most,
                                  int *count, struct rfx_error *err) {
    struct rfx_memory *mem = plan->mem;
    enum rfx_status status = RFX_OK;
    size_t most_buffers = (size_t)plan->graph->n_nodes * BUFFERS_PER_NODE;
    struct buffers buffers = {NULL, 0};
    status = rfx_api_need(count, "count", err);
    if (status == RFX_OK && stages != NULL)
        status = check_bytes(stage_bytes, STAGE_FIRST, "rfx_stage_report", err);
    if (status == RFX_OK && stages != NULL && most < plan->n_stages)
        status = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "room for %d of %d stages", most,
                          plan->n_stages);
    if (status != RFX_OK || stages == NULL) {
        if (status == RFX_OK) *count = plan->n_stages;
        return status;
    }
    uint64_t *macs = rfx_memory_calloc(mem, (size_t)plan->n_stages, sizeof *macs);
    buffers.items = rfx_memory_calloc(mem, most_buffers, sizeof *buffers.items);
    if (macs == NULL || buffers.items == NULL)
        status = rfx_memory_fail(mem, "stages", most_buffers * sizeof *buffers.items, err);
    else
        status = rfx_plan_count_step_macs(plan, NULL, macs, err);
    for (int s = 0; status == RFX_OK && s < plan->n_stages; s++) {
        struct rfx_stage_report stage = describe_stage(plan, graph, s);
        stage.macs = macs[s];
        stage.arena_bytes = arena_bytes(plan, s, &buffers);
        write_element(stages, s, stage_bytes, &stage, sizeof stage);
    }
    rfx_memory_release(mem, buffers.items);
    rfx_memory_release(mem, macs);
    if (status == RFX_OK) *count = plan->n_stages;
    return status;
}

enum rfx_code rfx_network_stages(struct rfx_network *network, const char *picture,
                                 const struct rfx_run_options *options,
                                 struct rfx_stage_report *stages, size_t stage_bytes, int most,
                                 int *count, struct rfx_why *why) {
    static const float nothing; /* a plan does not look at values */
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_job job = {0};
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    struct rfx_graph *graph = rfx_network_graph(network);
    status = rfx_job_open(&job, graph, graph->mem, options, &err);
    if (status == RFX_OK)
        status = picture != NULL ? rfx_job_use_picture(&job, picture, &err)
                                 : rfx_job_use_values(&job, &nothing, &err);
    if (status == RFX_OK) status = rfx_job_plan(&job, &err);
    if (status == RFX_OK)
        status = rfx_report_stages(job.plan, graph, stages, stage_bytes, most, count, &err);
    rfx_job_close(&job);
    return rfx_api_result(status, &err, why);
}
