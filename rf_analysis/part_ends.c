/* Finds the maps whose pixels an output consists of. Finds cuts by going back from the outputs and
 * looking for the lowest node whose tensor is read behind each node. */
#include "rf_analysis/part_ends.h"

#include "layers/graph/op.h"
#include "rf_analysis/regions.h"

/* Returns whether a node has this operator and no activation, so that it only moves elements. */
static bool is_plain_move(const struct rfx_node *node, enum rfx_op op) {
    return node->op == op && node->act.kind == RFX_ACT_NONE;
}

/* Returns the map whose elements a tensor holds in order, pixel by pixel or (`planes`) channel by
 * channel; -1: none. */
static int map_behind(const struct rfx_graph *graph, int i, bool *planes) {
    while (is_plain_move(&graph->nodes[i], RFX_OP_RESHAPE)) i = graph->nodes[i].in[0];
    const struct rfx_node *node = &graph->nodes[i];
    *planes = is_plain_move(node, RFX_OP_TO_PLAIN);
    if (!*planes && !is_plain_move(node, RFX_OP_NHWC_AS_PLAIN)) return -1;
    return graph->nodes[node->in[0]].out.layout == RFX_LAYOUT_NHWC ? node->in[0] : -1;
}

/* Returns whether a concatenation's inputs follow one another in its memory. */
static bool is_row(const struct rfx_node *node) {
    bool row = is_plain_move(node, RFX_OP_PLAIN_CONCAT);
    for (int i = 0; row && i < node->attr.concat.axis; i++) row = node->out.shape.dims[i] == 1;
    return row;
}

/* Returns the number of maps whose pixels make up a tensor; 0: the tensor is something else. */
static int count_maps(const struct rfx_graph *graph, int i) {
    const struct rfx_node *node = &graph->nodes[i];
    bool planes, large = false;
    int n = is_row(node) ? node->n_in : 1;
    for (int k = 0; k < n; k++) {
        int map = map_behind(graph, is_row(node) ? node->in[k] : i, &planes);
        if (map < 0 || (planes && n > 1)) return 0;
        large |= graph->nodes[map].out.h * graph->nodes[map].out.w > 1;
    }
    return large ? n : 0;
}

static int first_end(const struct rfx_graph *base, int k) {
    int e = 0;
    while (base->ends[e].output < k) e++;
    return e;
}

int rfx_part_ends(const struct rfx_graph *base, int k) {
    int all = 0;
    for (int j = 0; k == RFX_PART_ALL && j < base->n_outputs; j++) all += rfx_part_ends(base, j);
    if (k == RFX_PART_ALL) return all;
    int n = 0, maps = count_maps(base, base->outputs[k].node);
    for (int e = 0; e < base->n_ends; e++) n += base->ends[e].output == k;
    return maps > 0 ? maps : n;
}

struct rfx_end rfx_part_end(const struct rfx_graph *base, int k, int i) {
    if (k == RFX_PART_ALL) {
        int j = 0;
        for (int n; i >= (n = rfx_part_ends(base, j)); j++) i -= n;
        return rfx_part_end(base, j, i);
    }
    int out = base->outputs[k].node;
    if (count_maps(base, out) == 0) return base->ends[first_end(base, k) + i];
    const struct rfx_node *node = &base->nodes[out];
    int64_t first = 0;
    bool planes;
    for (int j = 0; j < i; j++) first += base->nodes[node->in[j]].out.elems;
    int index = map_behind(base, is_row(node) ? node->in[i] : out, &planes);
    const struct rfx_tensor *map = &base->nodes[index].out;
    struct rfx_end end = {index, k, map->c, {first, map->w * map->c, map->c, 1}};
    if (planes) end.at = (struct rfx_spread){first, map->w, 1, map->h * map->w};
    return end;
}

struct rfx_rect rfx_part_map_rows(const struct rfx_graph *base, int map, int64_t index,
                                  int64_t count) {
    const struct rfx_node *node = &base->nodes[map];
    struct rfx_range all = {0, node->out.w};
    return rfx_rect_from_ranges(rfx_tile_range(node->out.h, count, index), all);
}

struct rfx_rect rfx_part_end_rows(const struct rfx_graph *base, const struct rfx_end *end,
                                  int64_t index, int64_t count) {
    const struct rfx_node *node = &base->nodes[end->node];
    if (node->out.layout != RFX_LAYOUT_NHWC || rfx_node_is_constant(node))
        return index == 0 ? rfx_node_full_rect(node) : rfx_rect_full(0, 0);
    return rfx_part_map_rows(base, end->node, index, count);
}

struct rfx_rect rfx_part_end_share(const struct rfx_graph *base, int e, int64_t index,
                                   int64_t count) {
    struct rfx_end end = rfx_part_end(base, RFX_PART_ALL, e);
    return rfx_part_end_rows(base, &end, index, count);
}

struct rfx_end rfx_part_share_end(const struct rfx_graph *base, int k, int64_t index, int64_t count,
                                  int i) {
    struct rfx_end end;
    int j = 0;
    do {
        end = rfx_part_end(base, k, j++);
        i -= !rfx_rect_is_empty(rfx_part_end_rows(base, &end, index, count));
    } while (i >= 0);
    return end;
}

/* reads[i]: 1 where node i depends on the image. */
static void find_readers(const struct rfx_graph *graph, int *reads) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        reads[i] = i == graph->input;
        for (int k = 0; k < node->n_in; k++) reads[i] |= reads[node->in[k]];
    }
}

/* Returns whether a node's map may be the image of the next section: images have float32. */
static bool may_be_image(const struct rfx_node *node) {
    return node->out.layout == RFX_LAYOUT_NHWC && node->out.type == RFX_TYPE_FLOAT32 &&
           !rfx_node_is_input(node) && node->op != RFX_OP_INNER;
}

int rfx_part_cuts_list(const struct rfx_graph *graph, int *cuts) {
    int n = 0, lowest = graph->n_nodes, first_output = graph->n_nodes;
    find_readers(graph, cuts);
    for (int e = 0; e < graph->n_ends; e++)
        if (cuts[graph->ends[e].node] && graph->ends[e].node < first_output)
            first_output = graph->ends[e].node;
    /* Until node i is visited, cuts[i] says whether it reads the image. Then it says whether node i
     * is a cut: no other tensor is read behind it. */
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        bool reads = cuts[i] != 0;
        cuts[i] = reads && lowest >= i && i < first_output && may_be_image(node);
        for (int k = 0; reads && k < node->n_in; k++)
            if (cuts[node->in[k]] && node->in[k] < lowest) lowest = node->in[k];
    }
    for (int i = 0; i < graph->n_nodes; i++)
        if (cuts[i]) cuts[n++] = i;
    return n;
}
