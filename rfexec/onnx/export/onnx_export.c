/* Writing a graph as an ONNX model of opset 17.
 *
 * A node of the graph becomes one to four ONNX nodes: fused scales a BatchNormalization, fused
 * residuals an Add, fused activations their own node; the last of them makes the tensor, which is
 * called by the node's alias. Height and width stay symbolic unless a node fixes them. What ONNX
 * cannot say in this opset is refused with the node's name. */
#include "rfexec/onnx/export/onnx_export.h"

#include <string.h>

#include "layers/graph/op.h"
#include "rfexec/session/model.h"

void rfx_export_refuse(struct rfx_exporter *x, const struct rfx_node *node, const char *why) {
    if (x->writer.status != RFX_OK) return;
    x->writer.status = rfx_fail(x->writer.err, RFX_STATUS_UNSUPPORTED, "ONNX export: %s '%s': %s",
                                rfx_op_def(node->op)->name, node->name, why);
}

struct rfx_onnx_node *rfx_export_emit1(struct rfx_exporter *x, const char *op, const char *name,
                                       const char *output, const char *in) {
    return rfx_onnx_node(&x->writer, op, name, output, &in, 1);
}

struct rfx_onnx_node *rfx_export_emit2(struct rfx_exporter *x, const char *op, const char *name,
                                       const char *output, const char *left, const char *right) {
    const char *in[2] = {left, right};
    return rfx_onnx_node(&x->writer, op, name, output, in, 2);
}

const char *rfx_export_scalar(struct rfx_exporter *x, const char *node, const char *part,
                              float value) {
    const char *name = rfx_onnx_text(&x->writer, "%s#%s", node, part);
    return rfx_onnx_fill(&x->writer, name, (struct rfx_shape){0, {0}}, value);
}

/* The name of a node's tensor: that of the output it is, else its alias, else its name. */
static const char *value_name(struct rfx_exporter *x, int index) {
    const struct rfx_graph *graph = x->graph;
    const struct rfx_node *node = &graph->nodes[index];
    if (rfx_node_is_input(node)) return "input";
    if (!rfx_node_is_constant(node))
        for (int i = 0; i < graph->n_outputs; i++)
            if (graph->outputs[i].node == index) return graph->outputs[i].name;
    const char *name = node->alias != NULL && rfx_graph_find(graph, node->alias) == index
                           ? node->alias
                           : node->name;
    bool taken = strcmp(name, "input") == 0;
    for (int i = 0; i < graph->n_outputs; i++)
        taken = taken || strcmp(name, graph->outputs[i].name) == 0;
    return taken ? rfx_onnx_text(&x->writer, "%s#value", name) : name;
}

static void export_node(struct rfx_exporter *x, int index) {
    const struct rfx_node *node = &x->graph->nodes[index];
    struct rfx_onnx_writer *w = &x->writer;
    const char *value = value_name(x, index);
    x->values[index] = value;
    if (rfx_node_is_input(node)) return;
    const struct rfx_export_row *row = rfx_export_row(node->op);
    if (node->act.kind == RFX_ACT_NONE || !rfx_node_takes_in(node, RFX_FUSE_ACTIVATION)) {
        row->write(x, node, value);
    } else {
        const char *before = rfx_onnx_text(w, "%s#linear", node->name);
        row->write(x, node, before);
        rfx_export_act(x, node, rfx_onnx_text(w, "%s#act", node->name), value, before);
    }
}

/* A constant beside an operand that follows the size: broadcast over space, or fixing it. */
static bool meets_sized_constant(const struct rfx_exporter *x, const struct rfx_node *node) {
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_node *in = &x->graph->nodes[node->in[k]];
        bool sized = in->out.layout == RFX_LAYOUT_PLAIN || in->out.h != 1 || in->out.w != 1;
        if (!x->follows_size[node->in[k]] && in->out.elems != 1 && sized) return true;
    }
    return false;
}

static void find_fixed_sizes(struct rfx_exporter *x) {
    for (int i = 0; i < x->graph->n_nodes; i++) {
        const struct rfx_node *node = &x->graph->nodes[i];
        const struct rfx_export_row *row = rfx_export_row(node->op);
        bool follows = rfx_node_is_input(node);
        for (int k = 0; k < node->n_in; k++) follows = follows || x->follows_size[node->in[k]];
        bool fixes = row->fixes_size != NULL && row->fixes_size(node);
        if (follows && (fixes || meets_sized_constant(x, node))) x->size_is_fixed = true;
        x->follows_size[i] = follows && !row->has_own_size;
    }
}

static void export_values(struct rfx_exporter *x) {
    const struct rfx_graph *graph = x->graph;
    struct rfx_onnx_writer *w = &x->writer;
    if (graph->input >= 0) {
        struct rfx_onnx_value value = {.name = "input",
                                       .shape = graph->nodes[graph->input].out.shape};
        if (!x->size_is_fixed) {
            value.dim_names[2] = "height";
            value.dim_names[3] = "width";
        }
        rfx_onnx_value(w, false, &value);
    }
    for (int i = 0; i < graph->n_outputs; i++) {
        int node = graph->outputs[i].node;
        struct rfx_onnx_value value = {.name = graph->outputs[i].name,
                                       .shape = graph->nodes[node].out.shape};
        bool symbolic = x->follows_size[node] && !x->size_is_fixed;
        for (int d = 0; symbolic && d < value.shape.rank; d++)
            if (graph->nodes[node].out.layout == RFX_LAYOUT_PLAIN || d >= 2)
                value.dim_names[d] = rfx_onnx_text(w, "%s_dim%d", value.name, d);
        rfx_onnx_value(w, true, &value);
        if (strcmp(x->values[node], value.name) != 0)
            (void)rfx_export_emit1(x, "Identity", rfx_onnx_text(w, "%s#output", value.name),
                                   value.name, x->values[node]);
    }
}

enum rfx_status rfx_onnx_export(const struct rfx_graph *graph, const char *path,
                                struct rfx_error *err) {
    struct rfx_exporter x = {.graph = graph};
    size_t n = (size_t)graph->n_nodes;
    rfx_onnx_writer_init(&x.writer, graph, err);
    x.values = rfx_memory_calloc(graph->mem, n, sizeof *x.values);
    x.follows_size = rfx_memory_calloc(graph->mem, n, sizeof *x.follows_size);
    enum rfx_status status;
    if (x.values == NULL || x.follows_size == NULL) {
        status = rfx_memory_fail(graph->mem, "ONNX export", n * sizeof *x.values, err);
        goto done;
    }
    find_fixed_sizes(&x);
    for (int i = 0; i < graph->n_nodes; i++) export_node(&x, i);
    export_values(&x);
    status = rfx_onnx_writer_save(&x.writer, path);
done:
    rfx_onnx_writer_free(&x.writer);
    rfx_memory_release(graph->mem, x.follows_size);
    rfx_memory_release(graph->mem, x.values);
    return status;
}
