/* Where a stream is cut into several: where little is handed on through files, or around a
 * network's waist; see skeleton.h. */
#include "layers/graph/op.h"
#include "rf_analysis/regions.h"
#include "tiler/search/skeleton.h"

/* What is known of a node's index. */
struct point {
    int last;       /* reader of the node's tensor; its own index: nobody */
    bool may_cross; /* the tensor may be put into a file */
    uint64_t rows;  /* bytes of a row of every map up to here */
    uint64_t over;  /* bytes of whole maps that are read over a cut behind this index */
    int blocked;    /* tensors that are read over it and may not be */
    uint64_t ending;
    int blocked_ending; /* of them, those whose last reader this is */
};

static bool is_map(const struct rfx_node *node) {
    return rfx_node_is_local(node) && !rfx_node_is_input(node) &&
           node->out.layout == RFX_LAYOUT_NHWC;
}

/* The image is not put into a file, nor what is not a map, nor what anything but a map is made of.
 */
static void find_readers(const struct rfx_graph *graph, struct point *points) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        points[i] = (struct point){.last = i, .may_cross = is_map(node)};
        for (int k = 0; k < node->n_in; k++) {
            points[node->in[k]].last = i;
            if (!rfx_node_is_local(node)) points[node->in[k]].may_cross = false;
        }
    }
    for (int e = 0; e < graph->n_ends; e++) points[graph->ends[e].node].may_cross = false;
}

static void find_sums(const struct rfx_graph *graph, struct point *points) {
    uint64_t rows = 0, over = 0;
    int blocked = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        struct point *p = &points[i];
        bool constant = rfx_node_is_constant(node);
        if (rfx_node_is_local(node) && !constant && node->op != RFX_OP_INNER)
            rows += rfx_tensor_pixel_bytes(&node->out, node->out.w);
        if (p->last > i && !constant) {
            uint64_t bytes = p->may_cross ? rfx_tensor_bytes(&node->out) : 0;
            over += bytes;
            blocked += !p->may_cross;
            points[p->last].ending += bytes;
            points[p->last].blocked_ending += !p->may_cross;
        }
        over -= p->ending;
        blocked -= p->blocked_ending;
        p->rows = rows;
        p->over = over;
        p->blocked = blocked;
    }
}

/* The index from `from` on with the least over it whose rows are near a share; -1: none. */
static int find_cut(const struct point *points, int n, int from, uint64_t share, uint64_t slack) {
    int best = -1;
    for (int i = from; i < n - 1; i++) {
        const struct point *p = &points[i];
        if (p->rows + slack < share || p->rows > share + slack || p->blocked > 0) continue;
        if (best < 0 || p->over < points[best].over) best = i;
    }
    return best;
}

bool rfx_skeleton_find_cuts(const struct rfx_graph *graph, int more, int *cuts) {
    int n = graph->n_nodes, found = 0;
    struct point *points = rfx_memory_alloc(graph->mem, (size_t)n * sizeof *points);
    if (points == NULL) return false;
    find_readers(graph, points);
    find_sums(graph, points);
    uint64_t share = points[n - 1].rows / (uint64_t)(more + 1);
    for (int from = 0; found < more; found++) {
        cuts[found] = find_cut(points, n, from, share * (uint64_t)(found + 1), share / 3);
        if (cuts[found] < 0) break;
        from = cuts[found] + 1;
    }
    rfx_memory_release(graph->mem, points);
    return found == more;
}

/* Pixels of a map that a stream makes; 0: the node makes none. */
static int64_t pixels_of(const struct rfx_graph *graph, int i) {
    const struct rfx_node *node = &graph->nodes[i];
    bool made = is_map(node) && !rfx_node_is_constant(node) && node->op != RFX_OP_INNER;
    return made ? node->out.h * node->out.w : 0;
}

bool rfx_skeleton_find_waist(const struct rfx_graph *graph, int64_t below,
                             struct rfx_waist *waist) {
    int n = graph->n_nodes, before = -1, after = -1;
    *waist = (struct rfx_waist){.pixels = 0, .cuts = {-1, -1}};
    for (int i = 0; i < n; i++) {
        int64_t pixels = pixels_of(graph, i);
        if (pixels < below && pixels > waist->pixels) waist->pixels = pixels;
    }
    for (int i = 0; i < n; i++) {
        int64_t pixels = pixels_of(graph, i);
        if (pixels == 0) continue;
        if (pixels <= waist->pixels) {
            if (waist->cuts[0] < 0) waist->cuts[0] = i;
            waist->cuts[1] = i;
        } else if (waist->cuts[0] < 0) {
            before = i;
        } else {
            after = i;
        }
    }
    waist->is_one = before >= 0 && after > waist->cuts[1] && waist->cuts[1] > waist->cuts[0];
    for (int k = 0; k < 2 && waist->is_one; k++) {
        size_t bytes = rfx_node_wanted_bytes(&graph->nodes[waist->cuts[k]]);
        if (bytes > waist->cut_bytes) waist->cut_bytes = bytes;
    }
    return waist->pixels > 0;
}
