/* Smaller copies of a picture, made while it is written: each level has half the rows and columns
 * of the one before, rounded up, until both are at most `side`.
 *
 * Of each 2 x 2 samples of a channel (fewer at odd edges) the next level has the mean, or the first
 * one, which is what maps of labels need. Means of floats are of those that are numbers and not
 * the no-data number, in double, rounded once; where there are none the first sample stays. Means
 * of whole numbers are rounded to the nearest, halves up. Levels wait in a nameless file
 * beside the output, a third of the picture's bytes, as files have them one after the other. With
 * `planes` the picture waits there too, and each channel of a level is a picture of its own. */
#ifndef RFX_RFEXEC_OUTPUT_OVERVIEWS_OVERVIEWS_H
#define RFX_RFEXEC_OUTPUT_OVERVIEWS_OVERVIEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"

enum rfx_overview_kind { RFX_OVERVIEW_NONE, RFX_OVERVIEW_MEAN, RFX_OVERVIEW_NEAREST };

struct rfx_overview_map {
    int64_t h, w, channels;
    int bits;       /* 8 and 16: unsigned samples, 32: float32, unless */
    bool is_signed; /* samples of 8, 16 or 32 bits are integers with a sign */
    int64_t side;
    enum rfx_overview_kind kind;
    bool planes;
    bool has_no_data;
    double no_data;
};

struct rfx_overviews;

/* Levels below the picture itself. */
int rfx_overviews_count(const struct rfx_overview_map *map);

/* Rows or columns of level k, 0 being the picture. */
int64_t rfx_overviews_length(int64_t length, int k);

/* At most so many bytes are held. */
size_t rfx_overviews_bytes(const struct rfx_overview_map *map);

/* IO: no file can be made beside `path`, or the disk has no room. */
RFX_NODISCARD enum rfx_status rfx_overviews_open(struct rfx_memory *mem, const char *path,
                                                 const struct rfx_overview_map *map,
                                                 struct rfx_overviews **out, struct rfx_error *err);

/* Takes the picture's next row, samples [w, channels]; h of them in all. */
RFX_NODISCARD enum rfx_status rfx_overviews_put(struct rfx_overviews *overviews, const void *row,
                                                struct rfx_error *err);

/* Row y of level k, 1 ... count, when all rows are put. */
RFX_NODISCARD enum rfx_status rfx_overviews_read(struct rfx_overviews *overviews, int k, int64_t y,
                                                 void *row, struct rfx_error *err);

/* Of planes: row y of a channel of level k, 0 ... count. */
RFX_NODISCARD enum rfx_status rfx_overviews_read_plane(struct rfx_overviews *overviews, int k,
                                                       int64_t channel, int64_t y, void *row,
                                                       struct rfx_error *err);

/* Closes and frees; NULL is fine. */
void rfx_overviews_free(struct rfx_overviews *overviews);
#endif
