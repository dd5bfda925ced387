/* See run_whole.h. */
#include "tests/support/run/run_whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "tests/support/test_util.h"

static void *block_of(size_t bytes) {
    size_t total = rfx_align_up(bytes > 0 ? bytes : 1);
    void *block = aligned_alloc(RFX_ALIGNMENT_BYTES, total);
    if (block == NULL) abort();
    memset(block, 0xff, total); /* NaN where nothing is written */
    return block;
}

bool test_prepare(const struct rfx_graph *graph, int threads, struct test_prepared *out) {
    size_t n = (size_t)graph->n_nodes;
    *out = (struct test_prepared){graph, threads, calloc(n, sizeof(void *)),
                                  calloc(n, sizeof(void *))};
    bool ok = out->packed != NULL && out->scratch != NULL;
    for (int i = 0; ok && i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        struct rfx_error err = {"no definition"};
        out->packed[i] = block_of(rfx_op_packed_bytes(graph, node));
        out->scratch[i] = block_of(rfx_op_scratch_bytes(graph, node, threads));
        ok = rfx_op_def(node->op) != NULL &&
             rfx_op_pack(graph, node, out->packed[i], &err) == RFX_OK;
        if (!ok) fprintf(stderr, "node '%s': %s\n", node->name, err.text);
    }
    if (!ok) test_prepared_free(out);
    return ok;
}

void test_prepared_free(struct test_prepared *prepared) {
    for (int i = 0; i < prepared->graph->n_nodes; i++) {
        if (prepared->packed != NULL) free(prepared->packed[i]);
        if (prepared->scratch != NULL) free(prepared->scratch[i]);
    }
    free(prepared->packed);
    free(prepared->scratch);
    prepared->packed = prepared->scratch = NULL;
}

void test_run_whole(const struct test_prepared *prepared, const float *input_nhwc, float **outs) {
    const struct rfx_graph *graph = prepared->graph;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        struct rfx_view in[64];
        outs[i] = test_floats(node->out.elems);
        if (node->op == RFX_OP_INPUT) {
            memcpy(outs[i], input_nhwc, (size_t)node->out.elems * sizeof(float));
            continue;
        }
        for (int k = 0; k < node->n_in; k++) {
            const struct rfx_node *from = &graph->nodes[node->in[k]];
            in[k] = rfx_view_of(&from->out, outs[node->in[k]], rfx_node_full_rect(from));
        }
        struct rfx_rect full = rfx_node_full_rect(node);
        struct rfx_run_args args = {.graph = graph,
                                    .node = node,
                                    .in = in,
                                    .out = rfx_view_of(&node->out, outs[i], full),
                                    .rect = full,
                                    .packed = prepared->packed[i],
                                    .scratch = prepared->scratch[i],
                                    .threads = prepared->threads};
        rfx_op_run(&args);
    }
}

void test_run_whole_free(const struct rfx_graph *graph, float **outs) {
    for (int i = 0; i < graph->n_nodes; i++) free(outs[i]);
}

float *test_run_output(const struct rfx_graph *graph, const float *input_nchw, int k) {
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    const struct rfx_tensor *made = &graph->nodes[graph->outputs[k].node].out;
    float *input = test_floats(image->elems), *result = test_floats(made->elems);
    float **outs = calloc((size_t)graph->n_nodes, sizeof *outs);
    struct test_prepared prepared;
    test_nchw_to_nhwc(input_nchw, input, image->c, image->h, image->w);
    if (outs == NULL || !test_prepare(graph, 1, &prepared)) abort();
    test_run_whole(&prepared, input, outs);
    const float *values = outs[graph->outputs[k].node];
    if (made->layout == RFX_LAYOUT_NHWC)
        test_nhwc_to_nchw(values, result, made->c, made->h, made->w);
    else
        memcpy(result, values, (size_t)made->elems * sizeof *result);
    test_run_whole_free(graph, outs);
    test_prepared_free(&prepared);
    free(outs);
    free(input);
    return result;
}
