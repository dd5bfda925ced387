/* Chooses the row at which the Winograd tiles of each convolution begin, so that a stream keeps
 * fewer rows of maps in memory.
 *
 * A layer that computes whole tiles of four rows must wait for the last input row that a tile
 * reads. If the tiles of all layers began at row 0, each layer would lag three rows more than the
 * layer before. A map that is read again after those layers, such as at the skip connection of a
 * U-Net, would have to be kept for the sum of their lags. So the tiles of a layer begin at the row,
 * 0 to 3, for which the fewest rows in the middle of the map wait for the rest of their tile. This
 * applies to maps of at least 64 rows, where one additional row of tiles costs little. It applies
 * only to layers that run while an earlier map is kept across at least two layers with such tiles.
 * The tiles of all other layers begin at row 0.
 *
 * The starting row changes the bits of the result. It depends only on the network as the model
 * describes it and on the sizes of its maps; fusion and the plan must not affect it. */
#ifndef RFX_LAYERS_CONV_WINOGRAD_CONV_TILE_ROWS_H
#define RFX_LAYERS_CONV_WINOGRAD_CONV_TILE_ROWS_H

#include "layers/graph/graph.h"

/* Sets attr.conv.tiles_from of every convolution of a graph that is not fused yet. Fails with
 * OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_conv_set_tile_rows(struct rfx_graph *graph,
                                                     struct rfx_error *err);
#endif
