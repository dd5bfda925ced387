/* Draws values over an image: colours, positions, and a small copy of the result.
 *
 * A value of a map is drawn at the centre of its receptive field. With a stride and a kernel of odd
 * size, this is the first pixel of the value's cell, not the centre of the cell. A map computed
 * without padding ends before the image ends. */
#ifndef RFX_TOOLS_REPORT_OVERLAY_DRAWING_H
#define RFX_TOOLS_REPORT_OVERLAY_DRAWING_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "rf_analysis/analysis.h"

/* Red: the colour of values that are not finite and of labels that do not exist. */
extern const unsigned char rfx_no_value_colour[3];

/* Sets rgb to a colour from dark blue (share 0) to yellow (share 1). A share outside of [0, 1] is
 * clamped. The colours get steadily lighter, so that they can be told apart in grey too. */
void rfx_heat_colour(double share, unsigned char rgb[3]);

/* Sets rgb to the colour of a label, from 1 on. The first seven colours are those of "Color
 * Universal Design" (2008), which colour-blind readers can distinguish. Each further hue is as far
 * as possible from the hues just before. */
void rfx_label_colour(int64_t label, unsigned char rgb[3]);

struct rfx_map_place {
    double first; /* middle of value 0, in pixels from the edge of the image */
    double step;  /* pixels from one value to the next; negative: mirrored */
    int64_t count;
};

/* Returns the positions of `count` values along an axis of `pixels` image pixels. field: the
 * receptive field; NULL: each value sees the whole image, so the values are spread evenly. */
struct rfx_map_place rfx_map_place_of(const struct rfx_axis_field *field, int64_t count,
                                      int64_t pixels);

/* Returns the index of the value nearest to the centre of a pixel, or -1 when the nearest value is
 * a whole step away, so that the map has no value for the pixel. */
int64_t rfx_map_place_nearest(const struct rfx_map_place *place, int64_t pixel);

struct rfx_small_copy { /* A copy of every n-th row and column, so that labels keep their colours;
                           an image no larger than RFX_SMALL_COPY_SIDE is copied whole. All zeros:
                           no copy, no row is wanted. */
    struct rfx_memory *mem;
    int64_t h, w;       /* of the image */
    int64_t rows, cols; /* of the copy */
    unsigned char *rgb; /* [rows, cols, 3] */
};

/* Returns the bytes of memory that the copy of an image of h x w pixels takes. */
size_t rfx_small_copy_bytes(int64_t h, int64_t w);

/* Creates a black copy. The caller frees it with rfx_small_copy_free. Status: OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_small_copy_create(struct rfx_memory *mem, int64_t h, int64_t w,
                                                    struct rfx_small_copy *copy,
                                                    struct rfx_error *err);
void rfx_small_copy_free(struct rfx_small_copy *copy);

/* Returns whether the copy contains row y of the image. */
bool rfx_small_copy_wants(const struct rfx_small_copy *copy, int64_t y);

/* Returns the row of the copy that shows row y of the image, which the copy must contain. */
int64_t rfx_small_copy_row(const struct rfx_small_copy *copy, int64_t y);

/* Stores a row of the copy. colours: [cols, 3] from 0 to 255; they are rounded as in files. */
void rfx_small_copy_take(struct rfx_small_copy *copy, int64_t row, const float *colours);
#endif
