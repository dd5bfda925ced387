/* The outputs of a CenterNet (Zhou et al., "Objects as Points", 2019) as a described head.
 *
 *   output                                       channels
 *   hm, heatmap, center_heatmap_pred             a score of each class, before or after the sigmoid
 *   wh, wh_pred                                  width and height in cells
 *   reg, offset, offset_pred                     x and y of the centre from the cell's corner
 *
 * All three are feature maps of one size, with a cell for each 4 x 4 pixels of the image. Names of
 * other exporters need a head file with the decode "centernet". */
#ifndef RFX_RFEXEC_RUN_JOIN_CENTERNET_H
#define RFX_RFEXEC_RUN_JOIN_CENTERNET_H

#include "layers/graph/graph.h"
#include "rfexec/output/detector.h"

/* Returns whether the outputs are those of a CenterNet, and sets *out to their description then.
 * The scores are after the sigmoid if no convolution is between a sigmoid and the output. */
bool rfx_centernet_find(const struct rfx_graph *graph, struct rfx_detector *out);
#endif
