/* Draws the boxes of a detector and their labels over the rows of an image, from top to bottom.
 *
 * A box is an outline in the colour of its class, drawn inside its rectangle. Its corners are
 * rounded to the nearest edges of pixels and clamped to the image; each side has a pixel at least.
 * A label is the name or the number of the class and the score, on a bar in the same colour. It
 * stands above the box, or inside it where the image has no room above. Boxes of higher scores lie
 * over those of lower scores, and all labels over all outlines. A box with a corner that is NaN, or
 * with nothing inside of the image, is not drawn. The outline of a box with an angle has the pixels
 * whose centres lie inside within a line's width of a side, or outside within half a pixel; its
 * label stands where that of the upright rectangle around it would.
 *
 * Invariants: 1. the pixels depend on the boxes alone; 2. only rfx_box_drawing_create allocates, 5
 * bytes for each of `most` boxes; 3. a row costs the boxes that cross it and a bit for each box. */
#ifndef RFX_TOOLS_REPORT_BOX_DRAWING_H
#define RFX_TOOLS_REPORT_BOX_DRAWING_H

#include "rfexec/output/output_format.h"

struct rfx_box_canvas {
    int64_t rows, cols;       /* that are drawn */
    int64_t image_h, image_w; /* the pixels in which the corners of boxes count */
    bool labelled;            /* labels are drawn */
};

struct rfx_box_drawing;

/* Returns the width of lines over an image: 1 for sides up to 1000 pixels, else a thousandth of the
 * longer side and at least 2. */
int64_t rfx_overlay_line(int64_t rows, int64_t cols);

/* Returns the bytes of memory for `most` boxes. */
size_t rfx_box_drawing_bytes(int64_t most);

/* OUT_OF_MEMORY. The caller frees *out with rfx_box_drawing_free. */
RFX_NODISCARD enum rfx_status rfx_box_drawing_create(struct rfx_memory *mem, int64_t most,
                                                     const struct rfx_box_canvas *canvas,
                                                     struct rfx_box_drawing **out,
                                                     struct rfx_error *err);

/* Begins a drawing of the boxes that were found, at most `most` (asserted), by falling score. Boxes
 * and names are borrowed until the last row. */
void rfx_box_drawing_begin(struct rfx_box_drawing *drawing, const struct rfx_found *found);

/* Draws over a row. colours: [cols, 3], 0 to 255. Rows come from top to bottom, each once. */
void rfx_box_drawing_row(struct rfx_box_drawing *drawing, int64_t row, float *colours);

/* NULL is fine. */
void rfx_box_drawing_free(struct rfx_box_drawing *drawing);
#endif
