/* The table of operations and the wrappers that give absent members their meaning. */
#include "layers/op.h"

static const struct rfx_op_def *const op_table[] = {
#define RFX_OP_ROW(op, def) [op] = &(def),
    RFX_OP_LIST(RFX_OP_ROW)
#undef RFX_OP_ROW
};
_Static_assert(sizeof op_table / sizeof op_table[0] == RFX_OP_COUNT, "one row per op");

const struct rfx_op_def *rfx_op_def(enum rfx_op op) {
    return op_table[op];
}

struct rfx_rect rfx_op_in_rect(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                               struct rfx_rect out) {
    const struct rfx_op_def *def = op_table[node->op];
    const struct rfx_node *in = &graph->nodes[node->in[k]];
    if (!def->spatial || in->out.layout == RFX_LAYOUT_PLAIN) return rfx_node_full_rect(in);
    if (def->in_range == NULL) return out;
    return rfx_rect_from_ranges(def->in_range(graph, node, k, 0, rfx_rect_row_range(out)),
                                def->in_range(graph, node, k, 1, rfx_rect_col_range(out)));
}

uint64_t rfx_op_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                     struct rfx_rect out) {
    const struct rfx_op_def *def = op_table[node->op];
    return def->macs == NULL ? 0 : def->macs(graph, node, (uint64_t)rfx_rect_area(out));
}

size_t rfx_op_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads) {
    const struct rfx_op_def *def = op_table[node->op];
    return def->scratch_bytes == NULL ? 0 : def->scratch_bytes(graph, node, threads);
}

size_t rfx_op_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_op_def *def = op_table[node->op];
    return def->packed_bytes == NULL ? 0 : def->packed_bytes(graph, node);
}

bool rfx_op_in_place_elementwise(const struct rfx_graph *graph, const struct rfx_node *node,
                                 int k) {
    const struct rfx_tensor *in = &graph->nodes[node->in[k]].out;
    const struct rfx_tensor *out = &node->out;
    return in->layout == out->layout && in->elems == out->elems && in->c == out->c &&
           in->h == out->h && in->w == out->w;
}

enum rfx_status rfx_op_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                            void *packed, void *temp, struct rfx_error *err) {
    const struct rfx_op_def *def = op_table[node->op];
    if (def->pack == NULL) return RFX_OK;
    void *own = temp == NULL ? rfx_memory_alloc(graph->mem, RFX_PACK_TEMP_BYTES) : NULL;
    if (temp == NULL && own == NULL)
        return rfx_memory_fail(graph->mem, "packing weights", RFX_PACK_TEMP_BYTES, err);
    enum rfx_status status = def->pack(graph, node, packed, temp == NULL ? own : temp, err);
    rfx_memory_release(graph->mem, own);
    return status;
}
