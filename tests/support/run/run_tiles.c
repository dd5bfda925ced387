/* See run_tiles.h. */
#include "tests/support/run/run_tiles.h"

#include <stdlib.h>

#include "layers/graph/op.h"
#include "tests/support/test_util.h"

void test_back_regions(const struct rfx_graph *graph, int split, struct rfx_rect tile,
                       struct rfx_rect *need) {
    for (int i = 0; i < graph->n_nodes; i++) need[i] = rfx_rect_make(0, 0, 0, 0);
    need[split] = tile;
    for (int i = split; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        if (rfx_rect_is_empty(need[i])) continue;
        if (!rfx_op_def(node->op)->spatial) need[i] = rfx_node_full_rect(node);
        for (int k = 0; k < node->n_in; k++) {
            int from = node->in[k];
            struct rfx_rect full = rfx_node_full_rect(&graph->nodes[from]);
            struct rfx_rect r = rfx_rect_intersect(rfx_op_in_rect(graph, node, k, need[i]), full);
            if (!rfx_rect_is_empty(r)) need[from] = rfx_rect_union(need[from], r);
        }
    }
}

static void run_one(const struct test_prepared *prepared, int index, const struct rfx_view *views,
                    const struct rfx_view *input) {
    const struct rfx_graph *graph = prepared->graph;
    const struct rfx_node *node = &graph->nodes[index];
    if (node->op == RFX_OP_INPUT) {
        test_copy_rect(input, &views[index], views[index].rect);
        return;
    }
    struct rfx_view in[64];
    for (int k = 0; k < node->n_in; k++) in[k] = views[node->in[k]];
    struct rfx_run_args args = {.graph = graph,
                                .node = node,
                                .in = in,
                                .out = views[index],
                                .rect = views[index].rect,
                                .packed = prepared->packed[index],
                                .scratch = prepared->scratch[index],
                                .threads = prepared->threads};
    rfx_op_run(&args);
}

void test_run_tiles(const struct test_prepared *prepared, const float *input_nhwc, int split,
                    int64_t rows, int64_t cols, void *out) {
    const struct rfx_graph *graph = prepared->graph;
    const struct rfx_node *last = &graph->nodes[split];
    const struct rfx_node *image = &graph->nodes[graph->input];
    union {
        const float *in;
        float *out;
    } unconst = {input_nhwc};
    struct rfx_view input = rfx_view_dense(unconst.out, rfx_node_full_rect(image), image->out.c);
    struct rfx_view whole = rfx_view_of(&last->out, out, rfx_node_full_rect(last));
    struct rfx_rect *need = calloc((size_t)graph->n_nodes, sizeof *need);
    struct rfx_view *views = calloc((size_t)graph->n_nodes, sizeof *views);
    if (need == NULL || views == NULL) abort();
    for (int64_t t = 0; t < rows * cols; t++) {
        int64_t r = t / cols, c = t % cols;
        struct rfx_rect tile = {last->out.h * r / rows, last->out.h * (r + 1) / rows,
                                last->out.w * c / cols, last->out.w * (c + 1) / cols};
        if (rfx_rect_is_empty(tile)) continue;
        test_back_regions(graph, split, tile, need);
        for (int i = 0; i <= split; i++) {
            const struct rfx_tensor *map = &graph->nodes[i].out;
            int64_t bytes = (int64_t)rfx_tensor_pixel_bytes(map, rfx_rect_area(need[i]));
            views[i] = rfx_view_of(map, test_floats((bytes + 3) / 4), need[i]);
            if (bytes > 0) run_one(prepared, i, views, &input);
        }
        test_copy_rect(&views[split], &whole, tile);
        for (int i = 0; i <= split; i++) free(views[i].data);
    }
    free(views);
    free(need);
}
