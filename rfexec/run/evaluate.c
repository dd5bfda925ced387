/* See evaluate.h. */
#include "rfexec/run/evaluate.h"

#include <assert.h>

#include "layers/conv/blas.h"
#include "layers/core/checked.h"
#include "layers/graph/op.h"

struct evaluation {
    const struct rfx_graph *graph;
    struct rfx_memory *mem;
    bool *needed;
    int *uses; /* per node: how many inputs of nodes that are not computed yet read its tensor */
    void **values; /* per node: its tensor until its last reader is computed, else NULL */
    struct rfx_view *in;
    struct rfx_error *err;
};

int64_t rfx_graph_mark_needed(const struct rfx_graph *graph, int node, bool *needed) {
    int64_t elems = 0;
    needed[node] = true;
    for (int i = node; i >= 0; i--) {
        if (!needed[i]) continue;
        const struct rfx_node *n = &graph->nodes[i];
        for (int k = 0; k < n->n_in; k++) needed[n->in[k]] = true;
        if (rfx_node_is_constant(n) && !rfx_checked_add_i64(elems, n->out.elems, &elems))
            elems = INT64_MAX;
    }
    return elems;
}

/* Counts the uses of each tensor. Returns the largest number of inputs of a needed node. */
static int count_uses(struct evaluation *e, int last) {
    int most = 1;
    for (int i = 0; i <= last; i++) {
        const struct rfx_node *n = &e->graph->nodes[i];
        if (!e->needed[i]) continue;
        assert(!rfx_node_is_input(n));
        for (int k = 0; k < n->n_in; k++) e->uses[n->in[k]]++;
        if (n->n_in > most) most = n->n_in;
    }
    return most;
}

static enum rfx_status run(struct evaluation *e, const struct rfx_node *node, void *out,
                           void *packed, void *scratch) {
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_node *from = &e->graph->nodes[node->in[k]];
        e->in[k] = rfx_view_of(&from->out, e->values[node->in[k]], rfx_node_full_rect(from));
    }
    struct rfx_rect full = rfx_node_full_rect(node);
    struct rfx_run_args args = {.graph = e->graph,
                                .node = node,
                                .in = e->in,
                                .out = rfx_view_of(&node->out, out, full),
                                .rect = full,
                                .packed = packed,
                                .scratch = scratch,
                                .threads = 1};
    enum rfx_status status = RFX_OK;
    if (rfx_op_calls_blas(e->graph, node)) status = rfx_blas_reserve(1, e->err);
    if (status == RFX_OK) status = rfx_op_pack(e->graph, node, packed, e->err);
    if (status == RFX_OK) rfx_op_run(&args);
    return status;
}

static enum rfx_status compute(struct evaluation *e, const struct rfx_node *node, void *out) {
    enum rfx_status status = rfx_memory_check_stop(e->mem, e->err);
    if (status != RFX_OK) return status;
    if (rfx_node_is_constant(node)) return rfx_op_pack(e->graph, node, out, e->err);
    size_t packed_bytes = rfx_op_packed_bytes(e->graph, node);
    size_t scratch_bytes = rfx_op_scratch_bytes(e->graph, node, 1);
    void *packed = rfx_memory_alloc(e->mem, packed_bytes);
    void *scratch = rfx_memory_alloc(e->mem, scratch_bytes);
    if (packed == NULL || scratch == NULL)
        status =
            rfx_memory_fail(e->mem, "computing a constant", packed_bytes + scratch_bytes, e->err);
    if (status == RFX_OK) status = run(e, node, out, packed, scratch);
    rfx_memory_release(e->mem, packed);
    rfx_memory_release(e->mem, scratch);
    return status;
}

static void drop_inputs(struct evaluation *e, const struct rfx_node *node) {
    for (int k = 0; k < node->n_in; k++) {
        int from = node->in[k];
        if (--e->uses[from] > 0) continue;
        rfx_memory_release(e->mem, e->values[from]);
        e->values[from] = NULL;
    }
}

/* Computes all needed nodes up to `last`, whose tensor goes to `out`. */
static enum rfx_status compute_all(struct evaluation *e, int last, void *out) {
    for (int i = 0; i <= last; i++) {
        const struct rfx_node *node = &e->graph->nodes[i];
        void *to = out;
        if (!e->needed[i]) continue;
        if (i != last) to = e->values[i] = rfx_memory_alloc(e->mem, rfx_node_out_bytes(node));
        if (to == NULL)
            return rfx_memory_fail(e->mem, "computing a constant", rfx_node_out_bytes(node),
                                   e->err);
        enum rfx_status status = compute(e, node, to);
        if (status != RFX_OK) return status;
        drop_inputs(e, node);
    }
    return RFX_OK;
}

enum rfx_status rfx_graph_evaluate(const struct rfx_graph *graph, int node, void *out,
                                   struct rfx_error *err) {
    struct evaluation e = {.graph = graph, .mem = graph->mem, .err = err};
    size_t n = (size_t)node + 1, most = 0;
    e.needed = rfx_memory_calloc(e.mem, n, sizeof *e.needed);
    e.uses = rfx_memory_calloc(e.mem, n, sizeof *e.uses);
    e.values = rfx_memory_calloc(e.mem, n, sizeof *e.values);
    bool room = e.needed != NULL && e.uses != NULL && e.values != NULL;
    if (room) {
        (void)rfx_graph_mark_needed(graph, node, e.needed);
        most = (size_t)count_uses(&e, node);
        e.in = rfx_memory_calloc(e.mem, most, sizeof *e.in);
    }
    enum rfx_status status = e.in != NULL ? compute_all(&e, node, out)
                                          : rfx_memory_fail(e.mem, "computing a constant", n, err);
    for (size_t i = 0; room && i < n; i++) rfx_memory_release(e.mem, e.values[i]);
    rfx_memory_release(e.mem, e.needed);
    rfx_memory_release(e.mem, e.uses);
    rfx_memory_release(e.mem, e.values);
    rfx_memory_release(e.mem, e.in);
    return status;
}
