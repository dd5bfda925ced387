/* Images of sizes that a network does not take: filled up to the next multiple at their right and
 * lower borders; maps that come out are cut back. Both are nodes of the graph, so that every plan,
 * part and budget knows of them. */
#ifndef RFX_RFEXEC_RUN_FIT_SIZE_H
#define RFX_RFEXEC_RUN_FIT_SIZE_H

#include "layers/graph/graph.h"

struct rfx_fit_size {
    int64_t multiple;       /* of rows and columns; 0 and 1: images are as they are */
    enum rfx_pad_mode mode; /* what is filled in; CONSTANT: zeros, of values as the network takes
                               them (after mean and std) */
};

#define RFX_FIT_MOST 65536 /* of a multiple */

/* The next multiple of fit->multiple from `extent` on, which is that of an image. */
int64_t rfx_fit_extent(const struct rfx_fit_size *fit, int64_t extent);

/* Writes the node that fills up an image of h x w to *pad: op and attributes alone. false: it has
 * such a size. */
bool rfx_fit_pad(const struct rfx_fit_size *fit, int64_t h, int64_t w, struct rfx_node *pad);

/* Cuts the outputs of a graph whose image was filled up: of a map, the rows and columns that the
 * image's part of the filled-up image makes, rounded up. What is no map, or does not grow with the
 * image, stays. To be called before rfx_graph_keep and rfx_graph_finish. */
RFX_NODISCARD enum rfx_status rfx_fit_cut_outputs(struct rfx_graph *graph,
                                                  const struct rfx_fit_size *fit,
                                                  struct rfx_error *err);
#endif
