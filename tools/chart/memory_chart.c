/* See memory_chart.h. */
#include "tools/chart/memory_chart.h"

#include <stdio.h>

#include "layers/graph/op.h"
#include "tiler/plan/splits.h"
#include "tools/chart/placement_chart.h"

enum { SUBJECT_CHARS = 120 };

enum kind { POINTWISE, DEPTHWISE, CONVOLUTION, POOLING, JOIN, ELEMENTWISE, OTHER, KIND_COUNT };

/* The same colours in the picture of every network. */
static const struct rfx_placement_kind kinds[] = {
    {"1x1 convolution", 6},      {"depthwise, grouped", 5}, {"convolution", 1}, {"pooling", 3},
    {"sum, product, concat", 4}, {"norm, activation", 2},   {"other", 8},
};
_Static_assert(sizeof kinds / sizeof kinds[0] == KIND_COUNT, "one row per kind");

bool rfx_memory_is_step(const struct rfx_graph *graph, int node) {
    const struct rfx_node *n = &graph->nodes[node];
    return !rfx_node_is_input(n) && !rfx_node_is_constant(n) && !rfx_node_is_joined(n);
}

static enum kind conv_kind(const struct rfx_conv_attr *conv) {
    if (conv->groups > 1) return DEPTHWISE;
    return conv->kh == 1 && conv->kw == 1 ? POINTWISE : CONVOLUTION;
}

static enum kind node_kind(const struct rfx_node *node) {
    switch (rfx_op_def(node->op)->kind) {
        case RFX_CLASS_CONVOLUTION:
            return conv_kind(&node->attr.conv);
        case RFX_CLASS_POOLING:
            return POOLING;
        case RFX_CLASS_JOIN:
            return JOIN;
        case RFX_CLASS_ELEMENTWISE:
            return ELEMENTWISE;
        case RFX_CLASS_OTHER:
            break;
    }
    return OTHER;
}

enum rfx_status rfx_memory_chart(struct rfx_memory *mem,
                                 const struct rfx_memory_placement *placement, const char *path,
                                 struct rfx_error *err) {
    const struct rfx_graph *graph = placement->graph;
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    size_t n = (size_t)placement->problem->n, n_nodes = (size_t)graph->n_nodes;
    char subject[SUBJECT_CHARS];
    const char **names = rfx_memory_calloc(mem, n + n_nodes, sizeof *names);
    int *of_kind = rfx_memory_calloc(mem, n, sizeof *of_kind);
    enum rfx_status status = RFX_OK;
    if (names == NULL || of_kind == NULL) {
        status = rfx_memory_fail(mem, "picture", (n + n_nodes) * sizeof *names, err);
        goto done;
    }
    const char **steps = names + n;
    int n_steps = 0;
    for (int i = 0; i < graph->n_nodes; ++i)
        if (rfx_memory_is_step(graph, i)) steps[n_steps++] = rfx_split_label(graph, i);
    for (size_t i = 0; i < n; ++i) {
        names[i] = rfx_split_label(graph, placement->nodes[i]);
        of_kind[i] = (int)node_kind(&graph->nodes[placement->nodes[i]]);
    }
    (void)snprintf(subject, sizeof subject, "%.80s, %lldx%lld", placement->model, (long long)in->h,
                   (long long)in->w);
    struct rfx_placement_picture picture = {.subject = subject,
                                            .items = "tensors",
                                            .problem = placement->problem,
                                            .offsets = placement->offsets,
                                            .result = &placement->result,
                                            .names = names,
                                            .kinds = of_kind,
                                            .kind = kinds,
                                            .n_kinds = KIND_COUNT,
                                            .steps = steps,
                                            .n_steps = n_steps};
    status = rfx_placement_chart_write(mem, &picture, path, err);
done:
    rfx_memory_release(mem, of_kind);
    rfx_memory_release(mem, names);
    return status;
}
