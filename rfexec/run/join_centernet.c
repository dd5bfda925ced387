/* Names, shapes and the sigmoid of a CenterNet's outputs; see join_centernet.h. */
#include "rfexec/run/join_centernet.h"

#include <math.h>
#include <stdio.h>

#include "layers/core/checked.h"
#include "rfexec/run/join_heads.h"

enum { HEAT, SIZES, OFFSETS, MAPS, STRIDE = 4, NAMES = 3 };

static const struct {
    const char *names[NAMES];
    int64_t channels; /* 0: any number */
    enum rfx_detector_value value;
} maps[MAPS] = {
    [HEAT] = {{"hm", "heatmap", "center_heatmap_pred"}, 0, RFX_DETECTOR_SCORES},
    [SIZES] = {{"wh", "wh_pred"}, 2, RFX_DETECTOR_BOX_SIDES},
    [OFFSETS] = {{"reg", "offset", "offset_pred"}, 2, RFX_DETECTOR_BOX_CENTRE},
};

static int find_output(const struct rfx_graph *graph, int map) {
    int k = -1;
    for (int i = 0; i < NAMES && k < 0 && maps[map].names[i] != NULL; i++)
        k = rfx_join_find_output(graph, maps[map].names[i]);
    return k;
}

/* Whether output k is a map 1 x channels x rows x columns of stride 4. */
static bool fits(const struct rfx_graph *graph, int k, int64_t channels) {
    const struct rfx_output *output = &graph->outputs[k];
    const struct rfx_tensor *t = &graph->nodes[output->node].out;
    return t->layout == RFX_LAYOUT_NHWC && !output->stored.reshaped &&
           t->h == rfx_ceil_div(rfx_graph_image_extent(graph, 0), STRIDE) &&
           t->w == rfx_ceil_div(rfx_graph_image_extent(graph, 1), STRIDE) &&
           (channels == 0 || t->c == channels);
}

/* Whether a node of the output's way back to the last convolution is a sigmoid. */
static bool has_sigmoid(const struct rfx_graph *graph, int node) {
    for (;;) {
        const struct rfx_node *at = &graph->nodes[node];
        if (at->act.kind == RFX_ACT_SIGMOID) return true;
        if (at->n_in < 1 || at->op == RFX_OP_CONV || at->op == RFX_OP_CONV_TRANSPOSE ||
            at->op == RFX_OP_INT_CONV)
            return false;
        node = at->in[0];
    }
}

bool rfx_centernet_find(const struct rfx_graph *graph, struct rfx_detector *out) {
    *out = (struct rfx_detector){.name = "centernet",
                                 .n_outputs = MAPS,
                                 .n_levels = 1,
                                 .levels = {{.stride = STRIDE, .anchors = 1}},
                                 .decode = RFX_DETECTOR_CENTERNET,
                                 .every_class = true,
                                 .background = -1,
                                 .offset = 0.5F,
                                 .weights = {1, 1, 1, 1},
                                 .limit = INFINITY};
    if (graph->input < 0) return false;
    for (int i = 0; i < MAPS; i++) {
        struct rfx_detector_output *output = &out->outputs[i];
        int k = find_output(graph, i);
        if (k < 0 || !fits(graph, k, maps[i].channels)) return false;
        *output = (struct rfx_detector_output){
            .n_names = 1, .axes = "v y x", .n_values = 1, .values = {maps[i].value}};
        (void)snprintf(output->names[0], RFX_DETECTOR_NAME, "%s", graph->outputs[k].name);
        if (i == HEAT && !has_sigmoid(graph, graph->outputs[k].node))
            out->activation = RFX_DETECTOR_SIGMOID;
    }
    return true;
}
