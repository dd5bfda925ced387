/* See packed_weights.h. */
#include "rfexec/run/packed_weights.h"

#include <assert.h>

#include "layers/core/checked.h"
#include "layers/core/team.h"
#include "layers/graph/op.h"
#include "layers/graph/pack.h"
#include "rfexec/run/session_state.h"

struct rfx_packed_weights {
    struct rfx_memory *mem;
    unsigned char *bytes;
    size_t *offset; /* per node: offset of its constant in bytes */
    const struct rfx_plan *plan;
};

void rfx_packed_weights_free(struct rfx_packed_weights *weights) {
    if (weights == NULL) return;
    rfx_memory_release(weights->mem, weights->bytes);
    rfx_memory_release(weights->mem, weights->offset);
    rfx_memory_release(weights->mem, weights);
}

unsigned char *rfx_packed_weights_of(const struct rfx_packed_weights *weights, int node) {
    return weights->bytes + weights->offset[node];
}

/* Returns the place to pack the node's constant to. NULL: it is loaded by stage, so it is not
 * packed here. */
static void *place_of(void *user, int node) {
    const struct rfx_packed_weights *weights = user;
    return weights->plan->resident[node] ? rfx_packed_weights_of(weights, node) : NULL;
}

struct packing {
    struct rfx_pack_nodes nodes;
    enum rfx_status status;
    struct rfx_error *err;
};

static void share_packing(struct rfx_team *team, void *user) {
    struct packing *p = user;
    p->status = rfx_pack_share(team, &p->nodes, p->err);
}

/* Sets the offset of each constant. Returns the sum of their bytes. */
static size_t set_offsets(struct rfx_packed_weights *weights) {
    const struct rfx_graph *graph = weights->plan->graph;
    size_t offset = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        weights->offset[i] = offset;
        if (weights->plan->resident[i])
            offset += rfx_align_up(rfx_op_packed_bytes(graph, &graph->nodes[i]));
    }
    return offset;
}

static enum rfx_status pack(struct rfx_packed_weights *weights, struct rfx_error *err) {
    const struct rfx_graph *graph = weights->plan->graph;
    struct packing p = {
        .nodes = {.graph = graph, .last = graph->n_nodes, .at = place_of, .user = weights},
        .err = err};
    p.nodes.temp = rfx_memory_alloc(weights->mem, RFX_PACK_TEMP_BYTES);
    if (p.nodes.temp == NULL)
        return rfx_memory_fail(weights->mem, "packing weights", RFX_PACK_TEMP_BYTES, err);
    rfx_team_run(weights->plan->threads, share_packing, &p);
    rfx_memory_release(weights->mem, p.nodes.temp);
    return p.status;
}

enum rfx_status rfx_packed_weights_create(const struct rfx_plan *plan, struct rfx_memory *mem,
                                          struct rfx_packed_weights **out, struct rfx_error *err) {
    size_t n = (size_t)plan->graph->n_nodes, bytes = plan->bytes.weights;
    struct rfx_packed_weights *weights = rfx_memory_calloc(mem, 1, sizeof *weights);
    if (weights == NULL) return rfx_memory_fail(mem, "packed weights", sizeof *weights, err);
    *weights = (struct rfx_packed_weights){.mem = mem, .plan = plan};
    weights->offset = rfx_memory_calloc(mem, n, sizeof *weights->offset);
    weights->bytes = rfx_memory_alloc(mem, bytes + 1); /* bytes may be 0 */
    enum rfx_status status = RFX_OK;
    if (weights->offset == NULL || weights->bytes == NULL)
        status = rfx_memory_fail(mem, "packed weights", bytes + n * sizeof *weights->offset, err);
    if (status == RFX_OK) {
        rfx_session_prefer_huge_pages(weights->bytes, bytes);
        size_t packed = set_offsets(weights);
        assert(packed == bytes);
        if (packed != 0) status = pack(weights, err);
    }
    if (status != RFX_OK) {
        rfx_packed_weights_free(weights);
        return status;
    }
    *out = weights;
    return RFX_OK;
}
