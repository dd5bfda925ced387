/* Factors that are kept; see factors.h. */
#include "tiler/search/forms/factors.h"

#include <stdlib.h>

#include "layers/graph/group.h"
#include "layers/graph/op.h"

/* Bytes that packed weights take more where factors are kept; 0: they are kept, or there are none.
 */
static size_t bytes_more(const struct rfx_graph *graph, const struct rfx_node *node) {
    struct rfx_node keeper = *node;
    if (node->op != RFX_OP_CONV) return 0;
    keeper.attr.conv.keeps_factors = true;
    return rfx_op_packed_bytes(graph, &keeper) - rfx_op_packed_bytes(graph, node);
}

/* The base with the groups of another form of it. */
static enum rfx_status group_alike(const struct rfx_graph *base, const struct rfx_graph *like,
                                   struct rfx_graph **out, struct rfx_error *err) {
    size_t bytes = (size_t)like->n_nodes * sizeof(struct rfx_group_attr);
    struct rfx_group_attr *groups = rfx_memory_alloc(base->mem, bytes);
    if (groups == NULL) return rfx_memory_fail(base->mem, "groups of nodes", bytes, err);
    int n = 0;
    for (int i = 0; i < like->n_nodes; i++)
        if (like->nodes[i].op == RFX_OP_GROUP) groups[n++] = like->nodes[i].attr.group;
    enum rfx_status status = rfx_graph_group(base, groups, n, out, err);
    rfx_memory_release(base->mem, groups);
    return status;
}

struct keeper {
    int node;
    int64_t pixels;
    size_t bytes;
};

static int by_pixels(const void *a, const void *b) {
    const struct keeper *x = a, *y = b;
    if (x->pixels != y->pixels) return x->pixels > y->pixels ? -1 : 1;
    return x->node - y->node;
}

enum rfx_status rfx_factors_keep(const struct rfx_graph *graph, const struct rfx_plan *plan,
                                 size_t room, struct rfx_graph **out, struct rfx_error *err) {
    const struct rfx_graph *from = plan->graph;
    size_t bytes = (size_t)from->n_nodes * sizeof(struct keeper);
    struct keeper *keepers = rfx_memory_alloc(graph->mem, bytes);
    struct rfx_graph *made = NULL;
    enum rfx_status status = RFX_OK;
    int n = 0;
    if (keepers == NULL) return rfx_memory_fail(graph->mem, "factors", bytes, err);
    for (int i = 0; i < from->n_nodes; i++) {
        const struct rfx_node *node = &from->nodes[i];
        size_t more = bytes_more(from, node);
        if (more > 0) keepers[n++] = (struct keeper){i, node->out.h * node->out.w, more};
    }
    qsort(keepers, (size_t)n, sizeof *keepers, by_pixels);
    for (int k = 0; status == RFX_OK && k < n; k++) {
        if (keepers[k].bytes > room) continue;
        room -= keepers[k].bytes;
        if (made == NULL) status = group_alike(graph, from, &made, err);
        if (status == RFX_OK) made->nodes[keepers[k].node].attr.conv.keeps_factors = true;
    }
    rfx_memory_release(graph->mem, keepers);
    if (made != NULL) *out = made;
    return status;
}

enum rfx_status rfx_factors_apply(const struct rfx_graph *graph,
                                  const struct rfx_plan_request *request, struct rfx_graph **made,
                                  struct rfx_error *err) {
    for (int k = 0; k < request->n_keepers; k++) {
        int node = request->keepers[k];
        if (node < 0 || node >= graph->n_nodes || graph->nodes[node].op != RFX_OP_CONV)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "keepers[%d] is no convolution", k);
    }
    if (request->n_keepers == 0) return RFX_OK;
    if (*made == NULL) {
        enum rfx_status status = rfx_graph_group(graph, NULL, 0, made, err);
        if (status != RFX_OK) return status;
    }
    for (int k = 0; k < request->n_keepers; k++) {
        struct rfx_node *node = &(*made)->nodes[request->keepers[k]];
        if (node->op == RFX_OP_CONV) node->attr.conv.keeps_factors = true; /* not of a group */
    }
    return RFX_OK;
}

int rfx_factors_count(const struct rfx_plan *plan) {
    int n = 0;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const struct rfx_node *node = &plan->graph->nodes[i];
        struct rfx_node maker = *node;
        if (node->op != RFX_OP_CONV || !node->attr.conv.keeps_factors) continue;
        maker.attr.conv.keeps_factors = false;
        if (bytes_more(plan->graph, &maker) > 0) n++;
    }
    return n;
}
