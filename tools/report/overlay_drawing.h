/* Colours that stand for values, and colours that tell labels apart. */
/* Where the values of a map lie over the picture: along one axis, every value in the middle of the
 * pixels that it sees. Kernels of odd sizes with a stride see about their first pixel, not about
 * the middle of a cell, which would be half a stride off; maps made without padding end before the
 * picture does. */
/* A small copy of a picture that comes row by row: of every so many rows and columns the first, so
 * that labels keep their colours. A picture no larger than RFX_SMALL_COPY_SIDE is copied as it is.
 */
#ifndef RFX_TOOLS_REPORT_OVERLAY_DRAWING_H
#define RFX_TOOLS_REPORT_OVERLAY_DRAWING_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "rf_analysis/analysis.h"

/* Red: of what is no finite value, or no label. */
extern const unsigned char rfx_no_value_colour[3];

/* Dark blue to yellow, lighter with every step, so that it can be read in grey too: of a share from
 * 0 to 1, beyond them as the nearer one. */
void rfx_heat_colour(double share, unsigned char rgb[3]);

/* Of a label from 1 on: the seven of "Color Universal Design" (2008), which colour-blind eyes tell
 * apart, then hues each as far as may be from those just before. */
void rfx_label_colour(int64_t label, unsigned char rgb[3]);

struct rfx_map_place {
    double first; /* middle of value 0, in pixels from the picture's edge */
    double step;  /* pixels from one value to the next; negative: mirrored */
    int64_t count;
};

/* Of `count` values with this field; NULL (they see all of the picture): spread over its `pixels`
 * evenly. */
struct rfx_map_place rfx_map_place_of(const struct rfx_axis_field *field, int64_t count,
                                      int64_t pixels);

/* The value nearest to the middle of a pixel; -1: it is a whole step away, the map says nothing of
 * the pixel. */
int64_t rfx_map_place_nearest(const struct rfx_map_place *place, int64_t pixel);

struct rfx_small_copy { /* all zero: of nothing, which wants no row */
    struct rfx_memory *mem;
    int64_t h, w;       /* of the picture */
    int64_t rows, cols; /* of the copy */
    unsigned char *rgb; /* [rows, cols, 3] */
};

/* Bytes that the copy of a picture of h x w pixels takes. */
size_t rfx_small_copy_bytes(int64_t h, int64_t w);

/* Black at first. OUT_OF_MEMORY. Freed with rfx_small_copy_free. */
RFX_NODISCARD enum rfx_status rfx_small_copy_create(struct rfx_memory *mem, int64_t h, int64_t w,
                                                    struct rfx_small_copy *copy,
                                                    struct rfx_error *err);
void rfx_small_copy_free(struct rfx_small_copy *copy);

/* Whether the copy has row y of the picture. */
bool rfx_small_copy_wants(const struct rfx_small_copy *copy, int64_t y);

/* Takes row y if it is wanted: colours [w, 3] from 0 to 255, rounded as those
 * of files are. */
void rfx_small_copy_take(struct rfx_small_copy *copy, int64_t y, const float *colours);
#endif
