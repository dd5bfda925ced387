/* Tiles without halos, to show the error that they make; no plan runs like this.
 *
 * Every tile of the plan's grid is cut out of the image, run through the layers before the split as
 * an image of its own, so that each layer pads it with zeros at the seams, and put back; then the
 * layers behind the split run on the whole map. Takes the memory of the untiled run. */
#ifndef RFX_TOOLS_COMMANDS_NAIVE_TILES_H
#define RFX_TOOLS_COMMANDS_NAIVE_TILES_H

#include "rfexec/image/image_source.h"
#include "rfexec/run/model.h"
#include "tiler/plan/plan.h"

struct rfx_naive_tiles {
    struct rfx_memory *mem;
    int n_outputs;
    float **outputs; /* per output of the graph, in ONNX order */
    int64_t tiles;   /* run */
    int64_t
        resized_tiles; /* whose map was larger or smaller than its place: cropped, or zeros left */
};

/* Runs the tiles of `plan` (INVALID_ARGUMENT when it has none) on the image. `model` is loaded
 * again for each size of tile, with load->seed and load->fuse; UNSUPPORTED or MALFORMED when it
 * cannot take one. Free with rfx_naive_tiles_free. */
RFX_NODISCARD enum rfx_status rfx_naive_tiles_run(const struct rfx_plan *plan, const char *model,
                                                  const struct rfx_load_options *load,
                                                  struct rfx_image *image,
                                                  struct rfx_naive_tiles **out,
                                                  struct rfx_error *err);

/* NULL is fine. */
void rfx_naive_tiles_free(struct rfx_naive_tiles *naive);
#endif
