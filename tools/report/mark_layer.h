/* Marks over an image: rings around points, and outlines of quadrilaterals. They come in any order
 * and number, before the first row of the image is drawn.
 *
 * A mark has the colour of its label and lies over the marks that came before. A point's ring is a
 * square on its corner, 9 pixels wide and high, around the pixel that the point is in; the pixels
 * around this pixel stay as they are. An outline is that of outline_drawing.h, as wide as those of
 * boxes. What is outside of the image is not drawn, and no mark with a coordinate that is not
 * finite.
 *
 * The labels of drawn pixels wait in a sparse file without a name, 2 bytes for each pixel of the
 * image at most. Invariants: 1. the pixels depend on the marks and their order alone; 2. only
 * rfx_mark_layer_open allocates, whatever the number of marks; 3. a mark costs a write for each run
 * of its pixels. */
#ifndef RFX_TOOLS_REPORT_MARK_LAYER_H
#define RFX_TOOLS_REPORT_MARK_LAYER_H

#include "layers/core/memory.h"
#include "tools/report/box_drawing.h"

struct rfx_mark_layer;

/* Returns the bytes of memory for an image of so many columns that are drawn. */
size_t rfx_mark_layer_bytes(int64_t cols);

/* Makes the file beside `path`. OUT_OF_MEMORY; IO: the file cannot be made. The caller frees *out
 * with rfx_mark_layer_free. */
RFX_NODISCARD enum rfx_status rfx_mark_layer_open(struct rfx_memory *mem, const char *path,
                                                  const struct rfx_box_canvas *canvas,
                                                  struct rfx_mark_layer **out,
                                                  struct rfx_error *err);

/* Marks a point (n is 1) or draws a convex quadrilateral (n is 4). corners: x and y of each, in
 * pixels of the image, one after the other around it. label: counted from 0. IO: the disk is full.
 */
RFX_NODISCARD enum rfx_status rfx_mark_layer_add(struct rfx_mark_layer *layer,
                                                 const double *corners, int n, int32_t label,
                                                 struct rfx_error *err);

/* Draws a row of the marks. colours: [cols, 3], 0 to 255. IO: the file cannot be read. */
RFX_NODISCARD enum rfx_status rfx_mark_layer_row(struct rfx_mark_layer *layer, int64_t row,
                                                 float *colours, struct rfx_error *err);

/* NULL is fine. */
void rfx_mark_layer_free(struct rfx_mark_layer *layer);
#endif
