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

/* Whether an output is not its node's tensor as it is, which other nodes read. */
static bool is_declared_otherwise(const struct rfx_output *output) {
    return output->stored.reshaped || output->stored.type != RFX_TYPE_FLOAT32;
}

/* The name of a node's tensor: that of the output it is, else its alias, else its name. */
static const char *value_name(struct rfx_exporter *x, int index) {
    const struct rfx_graph *graph = x->graph;
    const struct rfx_node *node = &graph->nodes[index];
    if (rfx_node_is_input(node)) return "input";
    if (!rfx_node_is_constant(node))
        for (int i = 0; i < graph->n_outputs; i++)
            if (graph->outputs[i].node == index && !is_declared_otherwise(&graph->outputs[i]))
                return graph->outputs[i].name;
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

/* Places of axes of 1 in front of the rows of a declared shape, and how many there are. */
static int list_ones(const struct rfx_stored *stored, const struct rfx_tensor *map, int64_t *axes) {
    int n = 0, row = stored->shape.rank - (stored->last ? 3 : 2);
    bool channels = stored->last || map->c == 1; /* are not among them */
    for (int i = 0; i < row; i++) {
        if (!channels && stored->shape.dims[i] == map->c)
            channels = true;
        else
            axes[n++] = i;
    }
    return n;
}

/* A node that takes or gives axes. */
static const char *change_axes(struct rfx_exporter *x, const char *op, const char *name,
                               const char *in, const int64_t *axes, int n) {
    const char *made = rfx_onnx_text(&x->writer, "%s#%s", name, op);
    const char *list = rfx_onnx_text(&x->writer, "%s#%s#axes", name, op);
    (void)rfx_export_emit2(x, op, made, made, in, rfx_onnx_int64(&x->writer, list, axes, n));
    return made;
}

/* The tensor of an output as it is declared, from (1, c, h, w). */
static const char *export_stored(struct rfx_exporter *x, const struct rfx_output *output,
                                 const char *value) {
    static const int64_t to_last[4] = {0, 2, 3, 1}, leading[2] = {0, 1};
    const struct rfx_tensor *map = &x->graph->nodes[output->node].out;
    const struct rfx_stored *stored = &output->stored;
    struct rfx_onnx_writer *w = &x->writer;
    int64_t ones[RFX_MAX_RANK];
    if (!stored->reshaped) return value;
    if (stored->last) {
        const char *turned = rfx_onnx_text(w, "%s#turned", output->name);
        rfx_onnx_ints(rfx_export_emit1(x, "Transpose", turned, turned, value), "perm", to_last, 4);
        value = turned;
    }
    int n = list_ones(stored, map, ones), dropped = stored->last || map->c > 1 ? 1 : 2;
    value = change_axes(x, "Squeeze", output->name, value, leading, dropped);
    return n == 0 ? value : change_axes(x, "Unsqueeze", output->name, value, ones, n);
}

/* Which axes of an output have the image's rows and columns. */
static bool is_sized_axis(const struct rfx_output *output, const struct rfx_tensor *t, int rank,
                          int axis) {
    if (t->layout == RFX_LAYOUT_PLAIN) return true;
    int row = rank - (output->stored.last ? 3 : 2);
    return axis == row || axis == row + 1;
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
        const struct rfx_output *output = &graph->outputs[i];
        const struct rfx_tensor *t = &graph->nodes[output->node].out;
        struct rfx_onnx_value value = {
            .name = output->name, .shape = rfx_output_shape(graph, i), .type = output->stored.type};
        bool symbolic = x->follows_size[output->node] && !x->size_is_fixed;
        for (int d = 0; symbolic && d < value.shape.rank; d++)
            if (is_sized_axis(output, t, value.shape.rank, d))
                value.dim_names[d] = rfx_onnx_text(w, "%s_dim%d", value.name, d);
        rfx_onnx_value(w, true, &value);
        const char *made = export_stored(x, output, x->values[output->node]);
        if (strcmp(made, value.name) == 0) continue;
        bool floats = value.type == RFX_TYPE_FLOAT32;
        struct rfx_onnx_node *last =
            rfx_export_emit1(x, floats ? "Identity" : "Cast",
                             rfx_onnx_text(w, "%s#output", value.name), value.name, made);
        if (!floats) rfx_onnx_int(last, "to", rfx_type_onnx(value.type));
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
