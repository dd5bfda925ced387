/* Runs a network on tiles without halos, to show the error of that method. No plan runs like this.
 *
 * Every tile of the plan's grid is cut out of the image and run through the layers up to the split
 * as if it were a whole image. So each layer pads the tile with zeros at the seams. The results are
 * joined to one feature map, and the layers after the split run on the whole map. The method takes
 * the memory of the untiled run. */
#ifndef RFX_TOOLS_COMMANDS_NAIVE_TILES_H
#define RFX_TOOLS_COMMANDS_NAIVE_TILES_H

#include "rfexec/image/image_source.h"
#include "rfexec/run/model.h"
#include "tiler/plan/plan.h"

struct rfx_naive_tiles {
    struct rfx_memory *mem;
    int n_outputs;
    float **outputs;       /* per output of the graph, in ONNX order */
    int64_t tiles;         /* number of tiles that were run */
    int64_t resized_tiles; /* tiles whose map was larger (then cropped) or smaller (then zeros
                              remain) than its place */
};

/* Runs the tiles of `plan` on the image. The file or built-in `model` is loaded again for each size
 * of tile, with load->seed and load->fuse. The caller frees *out with rfx_naive_tiles_free.
 * Statuses: INVALID_ARGUMENT when the plan has no tiles; UNSUPPORTED or MALFORMED when the model
 * cannot take a tile's size. */
RFX_NODISCARD enum rfx_status rfx_naive_tiles_run(const struct rfx_plan *plan, const char *model,
                                                  const struct rfx_load_options *load,
                                                  struct rfx_image *image,
                                                  struct rfx_naive_tiles **out,
                                                  struct rfx_error *err);

/* Frees the outputs. NULL is allowed. */
void rfx_naive_tiles_free(struct rfx_naive_tiles *naive);
#endif
