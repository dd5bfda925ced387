/* A reduction of a whole map at once; see reduction.h. */
#include "layers/graph/reduction.h"

#include "layers/core/checked.h"
#include "layers/graph/op.h"

#define SERIAL_ELEMS 32768 /* below, starting threads takes longer than adding the values */

const struct rfx_reduction *rfx_node_reduction(const struct rfx_node *node) {
    return rfx_op_def(node->op)->reduction;
}

size_t rfx_reduction_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                                   int threads) {
    (void)graph;
    return rfx_node_reduction(node)->state_bytes(node) * (size_t)threads;
}

void rfx_reduction_run(const struct rfx_run_args *args) {
    const struct rfx_node *node = args->node;
    const struct rfx_reduction *reduction = rfx_node_reduction(node);
    const struct rfx_tensor *in = &args->graph->nodes[node->in[0]].out;
    size_t bytes = reduction->state_bytes(node);
    int parts = (int)rfx_max_i64(1, rfx_min_i64(args->threads, in->h));
    if (in->elems < SERIAL_ELEMS) parts = 1;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int p = 0; p < parts; p++) {
        void *state = (char *)args->scratch + (size_t)p * bytes;
        reduction->begin(node, state);
        for (int64_t y = p; y < in->h; y += parts)
            reduction->add(node, state, &args->in[0], rfx_rect_make(y, y + 1, 0, in->w));
    }
    for (int p = 1; p < parts; p++)
        reduction->merge(node, args->scratch, (char *)args->scratch + (size_t)p * bytes);
    reduction->finish(node, args->scratch, in->h, in->w, &args->out);
}
