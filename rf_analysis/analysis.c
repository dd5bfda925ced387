/* Receptive fields, and the per-layer table.
 *
 * Receptive fields are computed by back-propagating single output positions on an endless image.
 * Upsampling makes the field depend on the output's phase; the largest field over one period
 * counts. Jumps are propagated forward as rationals: strides multiply, upsampling factors divide.
 * Periods are propagated forward too; they are not the jump's denominator: a jump of 16/2 is 8, but
 * has two phases. */
#include "rf_analysis/analysis.h"

#include "layers/core/checked.h"
#include "layers/graph/op.h"

#define MAX_PHASES 64

static struct rfx_ratio ratio_scale(struct rfx_ratio r, int64_t num, int64_t den) {
    struct rfx_ratio v = {r.num * num, r.den * den};
    int64_t g = rfx_gcd_i64(v.num, v.den);
    v.num /= g;
    v.den /= g;
    return v;
}

/* Returns whether a node's output positions depend on the whole image: the operator is not local in
 * space, or such a node comes before it. */
static bool sees_everything(const struct rfx_graph *graph, const struct rfx_node *node,
                            const struct rfx_layer_info *info) {
    if (rfx_op_sees_all(graph, node)) return true;
    for (int k = 0; k < node->n_in; k++)
        if (info[node->in[k]].global) return true;
    return false;
}

/* Returns the jump of a node, from the first input that depends on the image. */
static struct rfx_ratio node_jump(const struct rfx_graph *graph, const struct rfx_node *node,
                                  const struct rfx_layer_info *info, enum rfx_axis axis) {
    struct rfx_ratio one = {1, 1};
    int k = 0;
    while (k < node->n_in && (rfx_node_is_constant(&graph->nodes[node->in[k]]) ||
                              rfx_node_is_source(&graph->nodes[node->in[k]])))
        k++;
    if (k == node->n_in) return one;
    struct rfx_ratio jump = info[node->in[k]].field[axis].jump;
    struct rfx_axis_map map = rfx_op_axis_map(graph, node, k, (int)axis);
    if (map.rule != RFX_AXIS_ROUNDED) return ratio_scale(jump, map.down, map.up);
    int64_t in = rfx_node_extent(&graph->nodes[node->in[k]], axis);
    return ratio_scale(jump, in, rfx_node_extent(node, axis)); /* the average */
}

/* Returns the number of outputs after which the phases of all inputs repeat together; at most
 * MAX_PHASES. */
static int64_t node_period(const struct rfx_graph *graph, const struct rfx_node *node,
                           const struct rfx_layer_info *info, enum rfx_axis axis) {
    int64_t period = 1;
    for (int k = 0; k < node->n_in; k++) {
        if (rfx_node_is_constant(&graph->nodes[node->in[k]])) continue;
        struct rfx_axis_map map = rfx_op_axis_map(graph, node, k, (int)axis);
        int64_t common = rfx_gcd_i64(map.up, map.down); /* outputs per inputs, reduced: */
        struct rfx_ratio rate = {map.up / common, (map.down < 0 ? -map.down : map.down) / common};
        int64_t in = info[node->in[k]].field[axis].period;
        int64_t mine = rfx_min_i64(in / rfx_gcd_i64(in, rate.den), MAX_PHASES) * rate.num;
        if (map.rule == RFX_AXIS_BLOCKS) mine = in / rfx_gcd_i64(in, map.taps) * map.taps;
        mine = rfx_min_i64(mine, MAX_PHASES);
        period = rfx_min_i64(period / rfx_gcd_i64(period, mine) * mine, MAX_PHASES);
    }
    return period;
}

/* Returns the range of the image that output positions `out` of node `target` depend on. */
static struct rfx_range image_range(const struct rfx_graph *graph, int target, enum rfx_axis axis,
                                    struct rfx_range out, struct rfx_range *ranges) {
    struct rfx_range none = {0, 0};
    for (int i = 0; i < target; i++) ranges[i] = none;
    ranges[target] = out;
    for (int i = target; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        if (ranges[i].lo >= ranges[i].hi) continue;
        for (int k = 0; k < node->n_in; k++) {
            struct rfx_range r = rfx_op_endless_range(graph, node, k, (int)axis, ranges[i]);
            struct rfx_range *in = &ranges[node->in[k]];
            *in = rfx_range_union(*in, r);
        }
    }
    return ranges[graph->input];
}

struct rfx_range rfx_field_at(const struct rfx_graph *graph, int node, enum rfx_axis axis,
                              int64_t at, struct rfx_range *scratch) {
    const struct rfx_range none = {0, 0};
    for (int i = 0; i < node; i++) scratch[i] = none;
    scratch[node] = (struct rfx_range){at, at + 1};
    for (int i = node; i > graph->input; i--) {
        const struct rfx_node *from = &graph->nodes[i];
        if (scratch[i].lo >= scratch[i].hi || rfx_op_sees_all(graph, from)) continue;
        for (int k = 0; k < from->n_in; k++) {
            int64_t extent = rfx_node_extent(&graph->nodes[from->in[k]], axis);
            struct rfx_range r = rfx_op_in_range(graph, from, k, (int)axis, scratch[i]);
            r = (struct rfx_range){rfx_max_i64(r.lo, 0), rfx_min_i64(r.hi, extent)};
            struct rfx_range *in = &scratch[from->in[k]];
            *in = rfx_range_union(*in, r);
        }
    }
    return scratch[graph->input];
}

static void fill_field(const struct rfx_graph *graph, int node, enum rfx_axis axis,
                       struct rfx_axis_field *field, struct rfx_range *scratch) {
    int64_t phases = field->period;
    double jump = (double)field->jump.num / (double)field->jump.den, middles = 0.0;
    field->size_px = 0;
    for (int64_t p = 0; p < phases; p++) {
        struct rfx_range out = {p, p + 1};
        struct rfx_range r = image_range(graph, node, axis, out, scratch);
        field->size_px = rfx_max_i64(field->size_px, r.hi - r.lo);
        if (p == 0) field->padding_px = -r.lo;
        middles += (double)(r.lo + r.hi) / 2.0 - (double)p * jump;
    }
    field->middle_px = middles / (double)phases;
}

static void find_receptive_fields(const struct rfx_graph *graph, struct rfx_layer_info *info,
                                  struct rfx_range *scratch) {
    for (int i = 0; i < graph->n_nodes && !rfx_memory_is_stopped(graph->mem); i++) {
        const struct rfx_node *node = &graph->nodes[i];
        info[i].global = sees_everything(graph, node, info);
        for (int axis = 0; axis < 2; axis++) {
            struct rfx_axis_field *field = &info[i].field[axis];
            field->jump = node_jump(graph, node, info, (enum rfx_axis)axis);
            field->period = node_period(graph, node, info, (enum rfx_axis)axis);
            field->size_px = 0;
            field->padding_px = 0;
            field->middle_px = 0.0;
            if (!info[i].global && !rfx_node_is_constant(node))
                fill_field(graph, i, (enum rfx_axis)axis, field, scratch);
        }
    }
}

void rfx_last_uses(const struct rfx_graph *graph, int *last_use) {
    for (int i = 0; i < graph->n_nodes; i++) last_use[i] = i;
    for (int i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_in; k++) last_use[graph->nodes[i].in[k]] = i;
    for (int e = 0; e < graph->n_ends; e++) last_use[graph->ends[e].node] = graph->n_nodes;
}

/* Computes live_bytes: a tensor is live from its own node to its last use. */
static void fill_live_bytes(const struct rfx_graph *graph, const int *last_use,
                            struct rfx_layer_info *info) {
    size_t live = 0;
    for (int i = 0; i < graph->n_nodes; i++) info[i].live_bytes = 0;
    for (int i = 0; i < graph->n_nodes; i++) { /* live_bytes first holds what ends before node i */
        live += info[i].output_bytes - info[i].live_bytes;
        info[i].live_bytes = live;
        if (last_use[i] + 1 < graph->n_nodes)
            info[last_use[i] + 1].live_bytes += info[i].output_bytes;
    }
}

enum rfx_status rfx_analysis_create(const struct rfx_graph *graph, struct rfx_analysis **out,
                                    struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    struct rfx_analysis *analysis = rfx_memory_calloc(mem, 1, sizeof *analysis);
    struct rfx_layer_info *layers = rfx_memory_calloc(mem, n, sizeof *layers);
    struct rfx_range *ranges = rfx_memory_calloc(mem, n, sizeof *ranges);
    int *last_use = rfx_memory_calloc(mem, n, sizeof *last_use);
    if (analysis == NULL || layers == NULL || ranges == NULL || last_use == NULL) {
        rfx_memory_release(mem, analysis);
        rfx_memory_release(mem, layers);
        rfx_memory_release(mem, ranges);
        rfx_memory_release(mem, last_use);
        return rfx_memory_fail(mem, "analysis", n * sizeof *layers, err);
    }
    analysis->mem = mem;
    analysis->n_layers = graph->n_nodes;
    analysis->layers = layers;
    analysis->params = rfx_graph_param_count(graph);
    find_receptive_fields(graph, layers, ranges);
    enum rfx_status status = rfx_memory_check_stop(mem, err);
    rfx_last_uses(graph, last_use);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        layers[i].macs = rfx_op_macs(graph, node, rfx_node_full_rect(node));
        layers[i].params = rfx_node_param_count(graph, node);
        layers[i].output_bytes = rfx_node_is_joined(node) ? 0 : rfx_node_out_bytes(node);
        analysis->macs += layers[i].macs;
    }
    fill_live_bytes(graph, last_use, layers);
    for (int i = 0; i < graph->n_nodes; i++)
        if (layers[i].live_bytes > analysis->peak_live_bytes) {
            analysis->peak_live_bytes = layers[i].live_bytes;
            analysis->peak_layer = i;
        }
    rfx_memory_release(mem, ranges);
    rfx_memory_release(mem, last_use);
    if (status == RFX_OK)
        *out = analysis;
    else
        rfx_analysis_free(analysis);
    return status;
}

void rfx_analysis_free(struct rfx_analysis *analysis) {
    if (analysis == NULL) return;
    rfx_memory_release(analysis->mem, analysis->layers);
    rfx_memory_release(analysis->mem, analysis);
}
