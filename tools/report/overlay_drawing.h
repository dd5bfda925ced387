/* How values are drawn over an image: colours, positions, and a small copy of the result.
 *
 * The values of a map lie in the middle of the pixels that they see. A kernel of odd size with a
 * stride sees pixels around the first pixel of a cell, not around the middle of the cell; and a map
 * made without padding ends before the image does. */
#ifndef RFX_TOOLS_REPORT_OVERLAY_DRAWING_H
#define RFX_TOOLS_REPORT_OVERLAY_DRAWING_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "rf_analysis/analysis.h"

/* Red, for values that are not finite and for labels that do not exist. */
extern const unsigned char rfx_no_value_colour[3];

/* Colours from dark blue to yellow, lighter with every step, so that they can be read in grey too;
 * for a share from 0 to 1, and the nearer end outside. */
void rfx_heat_colour(double share, unsigned char rgb[3]);

/* Colours of labels from 1 on: the seven of "Color Universal Design" (2008), which colour-blind
 * readers can tell apart, then hues as far as possible from those just before. */
void rfx_label_colour(int64_t label, unsigned char rgb[3]);

struct rfx_map_place {
    double first; /* middle of value 0, in pixels from the edge of the image */
    double step;  /* pixels from one value to the next; negative: mirrored */
    int64_t count;
};

/* The places of `count` values with this field. NULL: they see the whole image and are spread
 * evenly over its `pixels`. */
struct rfx_map_place rfx_map_place_of(const struct rfx_axis_field *field, int64_t count,
                                      int64_t pixels);

/* The value nearest to the middle of a pixel; -1: it is a whole step away, so the map says nothing
 * about the pixel. */
int64_t rfx_map_place_nearest(const struct rfx_map_place *place, int64_t pixel);

struct rfx_small_copy { /* A copy of every n-th row and column, so that labels keep their colours;
                           an image no larger than RFX_SMALL_COPY_SIDE is copied whole. All zeros:
                           no copy, no row is wanted. */
    struct rfx_memory *mem;
    int64_t h, w;       /* of the image */
    int64_t rows, cols; /* of the copy */
    unsigned char *rgb; /* [rows, cols, 3] */
};

/* Bytes that the copy of an image of h x w pixels takes. */
size_t rfx_small_copy_bytes(int64_t h, int64_t w);

/* Creates a black copy. OUT_OF_MEMORY. Freed with rfx_small_copy_free. */
RFX_NODISCARD enum rfx_status rfx_small_copy_create(struct rfx_memory *mem, int64_t h, int64_t w,
                                                    struct rfx_small_copy *copy,
                                                    struct rfx_error *err);
void rfx_small_copy_free(struct rfx_small_copy *copy);

/* Whether the copy has row y of the image. */
bool rfx_small_copy_wants(const struct rfx_small_copy *copy, int64_t y);

/* Takes row y if the copy has it: colours [w, 3] from 0 to 255, rounded as in files. */
void rfx_small_copy_take(struct rfx_small_copy *copy, int64_t y, const float *colours);
#endif
