/* Adds rows of a map, or a whole map, to a state; see reduction.h. */
#include "layers/graph/reduction.h"

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "layers/graph/units.h"

/* Elements; with fewer, distributing the work takes longer than adding the values. */
#define SERIAL_ELEMS 32768
/* Least pixels of a part; adding fewer takes less time than merging its state. */
#define SERIAL_PIXELS 512

const struct rfx_reduction *rfx_node_reduction(const struct rfx_node *node) {
    return rfx_op_def(node->op)->reduction;
}

size_t rfx_reduction_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                                   int threads) {
    (void)graph;
    return rfx_node_reduction(node)->state_bytes(node) * (size_t)threads;
}

/* The arguments of rfx_reduction_add, for its threads. */
struct adding {
    const struct rfx_node *node;
    const struct rfx_view *in;
    struct rfx_rect rect;
    char *state, *scratch;
    size_t state_bytes;
    struct rfx_units parts;
};

/* Adds the pixels of one part of the rectangle: part 0 to the caller's state, any other part to a
 * new state in scratch, which is merged later. */
static void add_part(void *user, int64_t part, int thread) {
    const struct adding *a = user;
    const struct rfx_reduction *reduction = rfx_node_reduction(a->node);
    void *state = part == 0 ? a->state : a->scratch + (size_t)(part - 1) * a->state_bytes;
    struct rfx_rect rect = rfx_units_part(a->rect, a->parts, part), row = rect;
    (void)thread;
    if (part > 0) reduction->begin(a->node, state);
    for (int64_t y = rect.y0; y < rect.y1; y++) {
        row.y0 = y;
        row.y1 = y + 1;
        reduction->add(a->node, state, a->in, row);
    }
}

void rfx_reduction_add(const struct rfx_node *node, void *state, const struct rfx_view *in,
                       struct rfx_rect rect, struct rfx_team *team, void *scratch) {
    const struct rfx_reduction *reduction = rfx_node_reduction(node);
    int64_t pixels = rfx_rect_area(rect), rows = rfx_rect_rows(rect);
    int64_t parts = rfx_min_i64(rfx_min_i64(rfx_team_threads(team), rows), pixels / SERIAL_PIXELS);
    if (parts < 1 || pixels * in->c < SERIAL_ELEMS) parts = 1;
    size_t bytes = reduction->state_bytes(node);
    struct adding a = {node, in, rect, state, scratch, bytes, rfx_units_into(rect, (int)parts)};
    rfx_team_for(team, parts, add_part, &a);
    for (int64_t p = 1; p < parts; p++)
        reduction->merge(node, state, (char *)scratch + (size_t)(p - 1) * bytes);
}

void rfx_reduction_run(const struct rfx_run_args *args) {
    const struct rfx_node *node = args->node;
    const struct rfx_reduction *reduction = rfx_node_reduction(node);
    const struct rfx_tensor *in = &args->graph->nodes[node->in[0]].out;
    char *state = args->scratch;
    reduction->begin(node, state);
    rfx_reduction_add(node, state, &args->in[0], rfx_rect_full(in->h, in->w), args->team,
                      state + reduction->state_bytes(node));
    reduction->finish(node, state, in->h, in->w, &args->out);
}
