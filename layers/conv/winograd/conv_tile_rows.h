/* Where tiles of rows begin, so that rows that stream from layer to layer do not wait for tiles.
 *
 * A layer that makes whole tiles of four rows waits for the last row that a tile reads. If all
 * layers' tiles began at row 0, each of them would wait for three rows more than the one before it
 * gives, and what is read again after them, as by the skips of a U-Net, would wait for all of that.
 * So tiles begin at the row of four with which, in the middle of the map, fewest rows wait: of maps
 * of 64 rows and more, which one more row of tiles costs little, while one that passes two such
 * layers and more waits. All other tiles begin at row 0.
 *
 * Which row that is touches bits; it follows from the network, as its model has it, and the size of
 * its maps alone: what is fused or kept must not matter. */
#ifndef RFX_LAYERS_CONV_WINOGRAD_CONV_TILE_ROWS_H
#define RFX_LAYERS_CONV_WINOGRAD_CONV_TILE_ROWS_H

#include "layers/graph/graph.h"

/* Sets tiles_from of all convolutions of a graph that is not fused yet. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_conv_set_tile_rows(struct rfx_graph *graph,
                                                     struct rfx_error *err);
#endif
