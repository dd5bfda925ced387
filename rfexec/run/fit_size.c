/* Adds a PAD node after the image and a CROP node after each output map; see fit_size.h. */
#include "rfexec/run/fit_size.h"

#include <stdio.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"

/* Returns the smallest multiple of fit->multiple that is at least `extent`, the image's number of
 * rows or columns. */
static int64_t fit_extent(const struct rfx_fit_size *fit, int64_t extent) {
    return fit->multiple > 1 ? rfx_ceil_div(extent, fit->multiple) * fit->multiple : extent;
}

bool rfx_fit_pad(const struct rfx_fit_size *fit, int64_t h, int64_t w, struct rfx_node *pad) {
    struct rfx_pads pads = {.bottom = fit_extent(fit, h) - h, .right = fit_extent(fit, w) - w};
    *pad = (struct rfx_node){.op = RFX_OP_PAD};
    pad->attr.pad.pads = pads;
    pad->attr.pad.mode = fit->mode;
    return pads.bottom > 0 || pads.right > 0;
}

void rfx_fit_note(const struct rfx_node *pad, int64_t h, int64_t w, struct rfx_graph *graph) {
    graph->padded[0] = h + pad->attr.pad.pads.bottom;
    graph->padded[1] = w + pad->attr.pad.pads.right;
}

/* Writes a name for the cut node that no other node has. */
static void name_cut(const struct rfx_graph *graph, const char *output, char *name, size_t size) {
    (void)snprintf(name, size, "%.200s/cut", output);
    for (int i = 2; rfx_graph_find(graph, name) >= 0; i++)
        (void)snprintf(name, size, "%.200s/cut%d", output, i);
}

static enum rfx_status cut_output(struct rfx_graph *graph, const struct rfx_fit_size *fit, int k,
                                  struct rfx_error *err) {
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    const int in = graph->outputs[k].node;
    const struct rfx_tensor *map = &graph->nodes[in].out;
    int64_t rows, cols;
    if (map->layout != RFX_LAYOUT_NHWC) return RFX_OK;
    if (!rfx_checked_mul_i64(map->h, image->h, &rows) ||
        !rfx_checked_mul_i64(map->w, image->w, &cols))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "output '%s': its size overflows",
                        graph->outputs[k].name);
    char name[256];
    struct rfx_node cut = {.op = RFX_OP_CROP, .name = name, .n_in = 1, .in = &in};
    cut.attr.crop.sy = cut.attr.crop.sx = 1;
    cut.attr.crop.oh = rfx_ceil_div(rows, fit_extent(fit, image->h));
    cut.attr.crop.ow = rfx_ceil_div(cols, fit_extent(fit, image->w));
    if (cut.attr.crop.oh == map->h && cut.attr.crop.ow == map->w) return RFX_OK;
    name_cut(graph, graph->outputs[k].name, name, sizeof name);
    int made;
    enum rfx_status status = rfx_graph_add(graph, &cut, &made, err);
    if (status != RFX_OK) return status;
    graph->outputs[k].node = made;
    graph->outputs[k].part = rfx_node_full_rect(&graph->nodes[made]);
    return RFX_OK;
}

enum rfx_status rfx_fit_cut_outputs(struct rfx_graph *graph, const struct rfx_fit_size *fit,
                                    struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int k = 0; status == RFX_OK && k < graph->n_outputs; k++)
        status = cut_output(graph, fit, k, err);
    return status;
}
