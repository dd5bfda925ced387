/* See poison.h. */
#include "tests/support/oracle/poison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layers/graph/op.h"
#include "tests/support/test_util.h"

void poison_tame(struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++) {
        struct rfx_node *node = &graph->nodes[i];
        enum rfx_act_kind kind = node->act.kind;
        if (kind == RFX_ACT_LOG || kind == RFX_ACT_SQRT || kind == RFX_ACT_EXP ||
            kind == RFX_ACT_RECIPROCAL || kind == RFX_ACT_POW || kind == RFX_ACT_NOT)
            node->act.kind = RFX_ACT_NONE;
        if (node->op != RFX_OP_BINARY) continue;
        enum rfx_binary_kind binary = node->attr.binary.kind;
        if (binary > RFX_BINARY_MIN || binary == RFX_BINARY_DIV) /* may make or stop a NaN */
            node->attr.binary.kind = RFX_BINARY_ADD;
    }
}

bool poison_begin(const struct test_prepared *prepared, const float *input_nhwc,
                  struct poison *out) {
    const struct rfx_graph *graph = prepared->graph;
    size_t n = (size_t)graph->n_nodes;
    *out = (struct poison){prepared, 0, calloc(n, sizeof(float *)), calloc(n, sizeof(float *))};
    if (out->base == NULL || out->outs == NULL) abort();
    test_run_whole(prepared, input_nhwc, out->base);
    bool clean = true;
    for (int i = 0; i < graph->n_nodes; i++) {
        int64_t elems = graph->nodes[i].out.elems;
        out->outs[i] = test_floats(elems);
        for (int64_t e = 0; e < elems; e++) clean = clean && !isnan(out->base[i][e]);
    }
    return clean;
}

void poison_end(struct poison *poison) {
    test_run_whole_free(poison->prepared->graph, poison->base);
    test_run_whole_free(poison->prepared->graph, poison->outs);
    free(poison->base);
    free(poison->outs);
}

static void run_node(struct poison *poison, int i) {
    const struct test_prepared *p = poison->prepared;
    const struct rfx_node *node = &p->graph->nodes[i];
    struct rfx_view in[64];
    for (int k = 0; k < node->n_in; k++) {
        int from = node->in[k];
        const struct rfx_node *producer = &p->graph->nodes[from];
        float *values = from < poison->source ? poison->base[from] : poison->outs[from];
        in[k] = rfx_view_dense(values, rfx_node_full_rect(producer), producer->out.c);
    }
    struct rfx_rect full = rfx_node_full_rect(node);
    struct rfx_run_args args = {.graph = p->graph,
                                .node = node,
                                .in = in,
                                .out = rfx_view_dense(poison->outs[i], full, node->out.c),
                                .rect = full,
                                .packed = p->packed[i],
                                .scratch = p->scratch[i],
                                .threads = p->threads};
    rfx_op_run(&args);
}

void poison_run(struct poison *poison, int source, const bool *pixels) {
    const struct rfx_graph *graph = poison->prepared->graph;
    const struct rfx_tensor *t = &graph->nodes[source].out;
    poison->source = source;
    memcpy(poison->outs[source], poison->base[source], (size_t)t->elems * sizeof(float));
    for (int64_t p = 0; p < t->h * t->w; p++)
        for (int64_t c = 0; pixels[p] && c < t->c; c++) poison->outs[source][p * t->c + c] = NAN;
    for (int i = source + 1; i < graph->n_nodes; i++) {
        if (graph->nodes[i].n_in > 0 && graph->nodes[i].op != RFX_OP_INPUT)
            run_node(poison, i);
        else
            memcpy(poison->outs[i], poison->base[i],
                   (size_t)graph->nodes[i].out.elems * sizeof(float));
    }
}

bool poison_reached(const struct poison *poison, int i, int64_t pixel) {
    int64_t c = poison->prepared->graph->nodes[i].out.c;
    const float *values = poison->outs[i] + pixel * c;
    for (int64_t k = 0; k < c; k++)
        if (isnan(values[k])) return true;
    return false;
}
