/* Computes the ROI of every node, from the outputs back to the image, one axis at a time. */
#include "rf_analysis/part_graph.h"

#include <string.h>

#include "layers/graph/group.h"
#include "layers/graph/op.h"
#include "rf_analysis/regions.h"

static void set_wanted(struct rfx_node *node, enum rfx_axis axis, struct rfx_range range) {
    if (axis == RFX_AXIS_ROWS) {
        node->wanted.y0 = range.lo;
        node->wanted.y1 = range.hi;
    } else {
        node->wanted.x0 = range.lo;
        node->wanted.x1 = range.hi;
    }
}

static void add_wanted(struct rfx_node *node, enum rfx_axis axis, struct rfx_range range) {
    struct rfx_range inside = {rfx_max_i64(range.lo, 0),
                               rfx_min_i64(range.hi, rfx_node_extent(node, axis))};
    if (inside.lo < inside.hi)
        set_wanted(node, axis, rfx_range_union(rfx_node_roi(node, axis), inside));
}

/* Adds what node i needs to the ROI of its inputs. Nodes that are not local in space are computed
 * whole, from whole inputs. */
static void want_inputs(struct rfx_graph *graph, int i, enum rfx_axis axis) {
    struct rfx_node *node = &graph->nodes[i];
    struct rfx_range need = rfx_node_roi(node, axis);
    if (need.lo >= need.hi) return;
    if (!rfx_op_def(node->op)->spatial) need = (struct rfx_range){0, rfx_node_extent(node, axis)};
    set_wanted(node, axis, need);
    if (rfx_op_def(node->op)->reduction != NULL) {
        add_wanted(&graph->nodes[node->in[0]], axis, rfx_node_stage_range(node, true, axis));
        return;
    }
    for (int k = 0; k < node->n_in; k++)
        add_wanted(&graph->nodes[node->in[k]], axis, rfx_input_range(graph, node, k, axis, need));
}

/* Computes the ROI of every node from the parts of the outputs. */
static void want_parts(struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++) graph->nodes[i].wanted = rfx_rect_full(0, 0);
    for (int axis = 0; axis < 2; axis++) {
        for (int k = 0; k < graph->n_outputs; k++) {
            struct rfx_rect part = graph->outputs[k].part;
            add_wanted(&graph->nodes[graph->outputs[k].node], (enum rfx_axis)axis,
                       axis == 0 ? rfx_rect_row_range(part) : rfx_rect_col_range(part));
        }
        for (int i = graph->n_nodes - 1; i >= 0; i--) want_inputs(graph, i, (enum rfx_axis)axis);
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        struct rfx_node *node = &graph->nodes[i];
        if (rfx_node_is_constant(node)) rfx_node_want_all(graph, node); /* packed whole */
        if (rfx_rect_is_empty(node->wanted)) node->taken = rfx_rect_full(0, 0);
    }
}

/* Turns nodes that no output needs into INNER, and counts the readers of the others. The image
 * stays, because the network is run on it. */
static void drop_unneeded(struct rfx_graph *graph) {
    int *consumers = graph->n_consumers;
    memset(consumers, 0, (size_t)graph->n_nodes * sizeof *consumers);
    for (int k = 0; k < graph->n_outputs; k++) consumers[graph->outputs[k].node]++;
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        struct rfx_node *node = &graph->nodes[i];
        if (consumers[i] == 0 && i != graph->input) {
            node->op = RFX_OP_INNER;
            node->n_in = 0;
            node->act = (struct rfx_act){.slope = -1};
            node->residual = false;
        }
        for (int k = 0; k < node->n_in; k++) consumers[node->in[k]]++;
    }
}

/* Turns reductions whose results are known into constants, with weights owned by the graph. */
static enum rfx_status set_known(struct rfx_graph *graph, const struct rfx_part_known *known,
                                 int n_known, struct rfx_error *err) {
    if (n_known == 0) return RFX_OK;
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)(graph->n_weights + n_known);
    struct rfx_weight *weights = rfx_memory_calloc(mem, n, sizeof *weights);
    if (weights == NULL) return rfx_memory_fail(mem, "weights", n * sizeof *weights, err);
    if (graph->n_weights > 0)
        memcpy(weights, graph->weights, (size_t)graph->n_weights * sizeof *weights);
    graph->weights = weights;
    for (int i = 0; i < n_known; i++) {
        struct rfx_node *node = &graph->nodes[known[i].node];
        struct rfx_weight weight = {.source = RFX_WEIGHT_OWNED,
                                    .data = known[i].values,
                                    .shape = node->out.shape,
                                    .elems = node->out.elems};
        int index;
        graph->weight_capacity = (int)n;
        enum rfx_status status = rfx_graph_add_weight(graph, &weight, &index, err);
        if (status != RFX_OK) return status;
        node->op = RFX_OP_CONST_MAP;
        node->n_in = 0;
        node->attr.constant.weight = index;
        node->attr.constant.shape = node->out.shape;
        node->act = (struct rfx_act){.slope = -1};
    }
    return RFX_OK;
}

static enum rfx_status check_part(const struct rfx_graph *base, int k, struct rfx_rect part,
                                  struct rfx_error *err) {
    const struct rfx_tensor *out = &base->nodes[base->outputs[k].node].out;
    const char *name = base->outputs[k].name;
    if (out->layout != RFX_LAYOUT_NHWC)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "output '%s' is no map of rows and columns: it has no parts", name);
    if (!rfx_rect_is_empty(part) && rfx_rect_contains(rfx_rect_full(out->h, out->w), part))
        return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "rows %lld to %lld, columns %lld to %lld are no part of output '%s' of %lld "
                    "rows and %lld columns",
                    (long long)part.y0, (long long)part.y1, (long long)part.x0, (long long)part.x1,
                    name, (long long)out->h, (long long)out->w);
}

/* Copies the base with an output table of its own. */
static enum rfx_status copy_graph(const struct rfx_graph *base, int n_outputs,
                                  struct rfx_graph **out, struct rfx_error *err) {
    enum rfx_status status = rfx_graph_group(base, NULL, 0, out, err);
    if (status != RFX_OK) return status;
    size_t bytes = (size_t)n_outputs * sizeof *(*out)->outputs;
    (*out)->outputs = rfx_memory_calloc(base->mem, (size_t)n_outputs, sizeof *(*out)->outputs);
    (*out)->n_outputs = n_outputs;
    if ((*out)->outputs != NULL) return RFX_OK;
    rfx_graph_free(*out);
    *out = NULL;
    return rfx_memory_fail(base->mem, "outputs of a part", bytes, err);
}

/* Makes the ends of output k (or of all outputs) the outputs of the graph, one by one. */
static void list_outputs(struct rfx_graph *graph, const struct rfx_graph *base, int k) {
    graph->n_outputs = rfx_part_ends(base, k);
    for (int i = 0; i < graph->n_outputs; i++) {
        struct rfx_end end = rfx_part_end(base, k, i);
        graph->outputs[i] = (struct rfx_output){.node = end.node,
                                                .name = base->outputs[end.output].name,
                                                .part = rfx_node_full_rect(&base->nodes[end.node])};
    }
}

/* Makes the graph without outputs, with room for as many as there are nodes or ends. */
static enum rfx_status begin_bare(const struct rfx_graph *base, const struct rfx_part_known *known,
                                  int n_known, struct rfx_graph **out, struct rfx_error *err) {
    struct rfx_graph *graph = NULL;
    int ends = rfx_part_ends(base, RFX_PART_ALL);
    int room = base->n_nodes > ends ? base->n_nodes : ends;
    enum rfx_status status = copy_graph(base, room, &graph, err);
    if (status != RFX_OK) return status;
    status = set_known(graph, known, n_known, err);
    if (status == RFX_OK)
        *out = graph;
    else
        rfx_graph_free(graph);
    return status;
}

/* Makes the graph of output k, or of all outputs, with empty ROIs. */
static enum rfx_status begin(const struct rfx_graph *base, int k,
                             const struct rfx_part_known *known, int n_known,
                             struct rfx_graph **out, struct rfx_error *err) {
    enum rfx_status status = begin_bare(base, known, n_known, out, err);
    if (status != RFX_OK) return status;
    list_outputs(*out, base, k);
    drop_unneeded(*out);
    return RFX_OK;
}

/* Lists the ends of a finished shard graph; frees the graph where that fails. */
static enum rfx_status keep_listed(struct rfx_graph **graph, struct rfx_error *err) {
    enum rfx_status status = rfx_graph_list_ends(*graph, err);
    if (status == RFX_OK) return RFX_OK;
    rfx_graph_free(*graph);
    *graph = NULL;
    return status;
}

enum rfx_status rfx_part_graph_after(const struct rfx_graph *base, int k,
                                     const struct rfx_part_known *known, int n_known,
                                     struct rfx_rect part, struct rfx_graph **out,
                                     struct rfx_error *err) {
    bool map = base->nodes[base->outputs[k].node].out.layout == RFX_LAYOUT_NHWC;
    enum rfx_status status = map || n_known == 0 ? check_part(base, k, part, err) : RFX_OK;
    if (status == RFX_OK) status = begin_bare(base, known, n_known, out, err);
    if (status != RFX_OK) return status;
    (*out)->n_outputs = 1;
    (*out)->outputs[0] = base->outputs[k];
    if (map) (*out)->outputs[0].part = part;
    drop_unneeded(*out);
    want_parts(*out);
    return keep_listed(out, err);
}

enum rfx_status rfx_part_graph_create(const struct rfx_graph *base, int k, struct rfx_rect part,
                                      struct rfx_graph **out, struct rfx_error *err) {
    return rfx_part_graph_after(base, k, NULL, 0, part, out, err);
}

/* Returns whether a node sees the whole of a map of more than one pixel. */
static bool is_global(const struct rfx_graph *graph, const struct rfx_node *node) {
    if (rfx_node_is_constant(node) || rfx_node_is_input(node) || rfx_node_is_local(node))
        return false;
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_node *in = &graph->nodes[node->in[k]];
        if (!rfx_node_is_constant(in) && in->out.h * in->out.w > 1) return true;
    }
    return false;
}

/* Computes per node the number of global operations on the longest path to it, itself included;
 * returns the largest. */
static int list_depths(const struct rfx_graph *graph, int *depth) {
    int most = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        depth[i] = 0;
        for (int k = 0; k < node->n_in; k++)
            if (depth[node->in[k]] > depth[i]) depth[i] = depth[node->in[k]];
        depth[i] += is_global(graph, node);
        if (depth[i] > most) most = depth[i];
    }
    return most;
}

/* Returns whether the outputs read the image when the results of all reductions are known. */
static bool reads_image(const struct rfx_graph *graph, int *needed) {
    memset(needed, 0, (size_t)graph->n_nodes * sizeof *needed);
    for (int k = 0; k < graph->n_outputs; k++) needed[graph->outputs[k].node] = 1;
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        if (!needed[i] || (is_global(graph, node) && rfx_op_def(node->op)->reduction != NULL))
            continue;
        for (int k = 0; k < node->n_in; k++) needed[node->in[k]] = 1;
    }
    return graph->input >= 0 && needed[graph->input] != 0;
}

enum rfx_status rfx_part_graph_rounds(const struct rfx_graph *base, int k,
                                      const struct rfx_part_known *known, int n_known,
                                      struct rfx_part_rounds *out, struct rfx_error *err) {
    struct rfx_graph *graph;
    struct rfx_part_rounds rounds = {.blocking = -1, .first = -1};
    size_t n = (size_t)base->n_nodes;
    int *depth = rfx_memory_calloc(base->mem, n, sizeof *depth);
    if (depth == NULL) return rfx_memory_fail(base->mem, "rounds", n * sizeof *depth, err);
    enum rfx_status status = begin(base, k, known, n_known, &graph, err);
    if (status == RFX_OK) {
        rounds.rounds = list_depths(graph, depth);
        for (int i = graph->n_nodes - 1; i >= 0; i--) {
            if (!is_global(graph, &graph->nodes[i])) continue;
            bool reduction = rfx_op_def(graph->nodes[i].op)->reduction != NULL;
            if (!reduction) rounds.blocking = i;
            if (reduction && depth[i] == 1) rounds.first = i;
        }
        rounds.reads_image = reads_image(graph, depth);
        rfx_graph_free(graph);
        *out = rounds;
    }
    rfx_memory_release(base->mem, depth);
    return status;
}

/* Makes node `from` the input of the graph, so that nothing before it is needed. */
static void read_from(struct rfx_graph *graph, int from) {
    if (from == RFX_PART_OUTER) return;
    struct rfx_node *node = &graph->nodes[from];
    node->op = RFX_OP_INPUT;
    node->n_in = 0;
    node->attr = (union rfx_attr){0};
    node->act = (struct rfx_act){.slope = -1};
    node->residual = false;
    graph->input = from;
}

enum rfx_status rfx_part_graph_states(const struct rfx_graph *base, int k,
                                      const struct rfx_part_known *known, int n_known, int from,
                                      int64_t index, int64_t count, struct rfx_graph **out,
                                      struct rfx_error *err) {
    struct rfx_graph *graph;
    size_t n = (size_t)base->n_nodes;
    int *depth = rfx_memory_calloc(base->mem, n, sizeof *depth), ready = 0;
    if (depth == NULL) return rfx_memory_fail(base->mem, "rounds", n * sizeof *depth, err);
    enum rfx_status status = begin(base, k, known, n_known, &graph, err);
    if (status == RFX_OK) {
        (void)list_depths(graph, depth);
        for (int i = 0; i < graph->n_nodes; i++) {
            struct rfx_node *node = &graph->nodes[i];
            if (depth[i] != 1 || rfx_op_def(node->op)->reduction == NULL || !is_global(graph, node))
                continue;
            struct rfx_range rows = rfx_rect_row_range(node->taken);
            rows = rfx_range_part(rows, index, count);
            node->taken.y0 = rows.lo;
            node->taken.y1 = rows.hi;
            graph->outputs[ready].node = i;
            graph->outputs[ready].name = node->name;
            graph->outputs[ready++].part = rfx_node_full_rect(node);
        }
        graph->n_outputs = ready;
        read_from(graph, from);
        drop_unneeded(graph);
        want_parts(graph);
        status = keep_listed(&graph, err);
        if (status == RFX_OK) *out = graph;
    }
    rfx_memory_release(base->mem, depth);
    return status;
}

/* Keeps the outputs of which the share has a rectangle, with that rectangle. */
static void take_share(struct rfx_graph *graph, const struct rfx_graph *base, int k, int64_t index,
                       int64_t count) {
    graph->n_outputs = 0;
    for (int i = 0; i < rfx_part_ends(base, k); i++) {
        struct rfx_output output = graph->outputs[i];
        struct rfx_end end = rfx_part_end(base, k, i);
        output.part = rfx_part_end_rows(base, &end, index, count);
        if (!rfx_rect_is_empty(output.part)) graph->outputs[graph->n_outputs++] = output;
    }
}

/* Finishes the graph with the outputs that are left; *out stays NULL where there are none. */
static enum rfx_status finish_share(struct rfx_graph *graph, struct rfx_graph **out,
                                    struct rfx_error *err) {
    if (graph->n_outputs == 0) {
        rfx_graph_free(graph);
        return RFX_OK;
    }
    drop_unneeded(graph);
    want_parts(graph);
    *out = graph;
    return keep_listed(out, err);
}

enum rfx_status rfx_part_graph_share(const struct rfx_graph *base, int k,
                                     const struct rfx_part_known *known, int n_known, int64_t index,
                                     int64_t count, struct rfx_graph **out, struct rfx_error *err) {
    struct rfx_graph *graph;
    *out = NULL;
    enum rfx_status status = begin(base, k, known, n_known, &graph, err);
    if (status != RFX_OK) return status;
    take_share(graph, base, k, index, count);
    return finish_share(graph, out, err);
}

enum rfx_status rfx_part_graph_section(const struct rfx_graph *base, struct rfx_part_section ends,
                                       const struct rfx_part_known *known, int n_known,
                                       int64_t index, int64_t count, struct rfx_graph **out,
                                       struct rfx_error *err) {
    struct rfx_graph *graph;
    *out = NULL;
    if (ends.to == RFX_PART_STATES)
        return rfx_part_graph_states(base, RFX_PART_ALL, known, n_known, ends.from, index, count,
                                     out, err);
    enum rfx_status status = begin(base, RFX_PART_ALL, known, n_known, &graph, err);
    if (status != RFX_OK) return status;
    if (ends.to == RFX_PART_OUTER) {
        take_share(graph, base, RFX_PART_ALL, index, count);
    } else {
        struct rfx_rect rows = rfx_part_map_rows(base, ends.to, index, count);
        graph->n_outputs = rfx_rect_is_empty(rows) ? 0 : 1;
        graph->outputs[0] =
            (struct rfx_output){.node = ends.to, .name = graph->nodes[ends.to].name, .part = rows};
    }
    read_from(graph, ends.from);
    return finish_share(graph, out, err);
}

struct rfx_rect rfx_part_graph_image(const struct rfx_graph *graph) {
    return graph->input < 0 ? rfx_rect_full(0, 0) : graph->nodes[graph->input].wanted;
}
