/* Padding of images whose size a network does not take. The image is padded at its right and lower
 * borders to the next multiple, and the output maps are cut back. Padding and cutting are nodes of
 * the graph, so plans, parts and budgets include them. */
#ifndef RFX_RFEXEC_RUN_FIT_SIZE_H
#define RFX_RFEXEC_RUN_FIT_SIZE_H

#include "layers/graph/graph.h"

struct rfx_fit_size {
    int64_t multiple; /* multiple for rows and columns; 0 and 1: images are not padded */
    /* values of the padding; CONSTANT: zeros, after mean and std were applied */
    enum rfx_pad_mode mode;
};

#define RFX_FIT_MOST 65536 /* largest multiple */

/* Writes the op and attributes of the node that pads an image of h x w to *pad; its other members
 * are 0. Returns false if the image needs no padding. */
bool rfx_fit_pad(const struct rfx_fit_size *fit, int64_t h, int64_t w, struct rfx_node *pad);

/* Sets graph->padded for this node, which pads the image of h x w. */
void rfx_fit_note(const struct rfx_node *pad, int64_t h, int64_t w, struct rfx_graph *graph);

/* Cuts the outputs of a graph whose image was padded. A map keeps the share of its rows and columns
 * that belongs to the image, rounded up. Outputs that are no maps stay as they are. Call it before
 * rfx_graph_keep and rfx_graph_finish. UNSUPPORTED: a size overflows; OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_fit_cut_outputs(struct rfx_graph *graph,
                                                  const struct rfx_fit_size *fit,
                                                  struct rfx_error *err);
#endif
