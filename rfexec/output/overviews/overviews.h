/* Makes smaller copies of a picture while it is written. Each level has half the rows and columns
 * of the one before, rounded up, until both are at most `side`.
 *
 * A sample of the next level is made of 2 x 2 samples of a channel (fewer at odd edges). It is
 * their mean, or the first of them, which maps of labels need. A mean leaves out the no-data value
 * and NaNs; if no value is left, it is the first sample. Means of floats are computed in double and
 * rounded once. Means of integers are rounded to the nearest, halves up (for signed integers away
 * from zero). Levels are stored in a temporary file without a name beside the output, because files
 * hold one level after the other. It takes a third of the picture's bytes. With `planes` the
 * picture is stored there too, and each channel of a level is a picture of its own. */
#ifndef RFX_RFEXEC_OUTPUT_OVERVIEWS_OVERVIEWS_H
#define RFX_RFEXEC_OUTPUT_OVERVIEWS_OVERVIEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"

enum rfx_overview_kind { RFX_OVERVIEW_NONE, RFX_OVERVIEW_MEAN, RFX_OVERVIEW_NEAREST };

struct rfx_overview_map {
    int64_t h, w, channels;
    int bits;       /* 8 and 16: unsigned samples, 32: float32, if not is_signed */
    bool is_signed; /* samples of 8, 16 or 32 bits are integers with a sign */
    int64_t side;
    enum rfx_overview_kind kind;
    bool planes;
    bool has_no_data;
    double no_data;
};

struct rfx_overviews;

/* Returns the number of levels below the picture itself. */
int rfx_overviews_count(const struct rfx_overview_map *map);

/* Returns the rows or columns of level k. Level 0 is the picture. */
int64_t rfx_overviews_length(int64_t length, int k);

/* Returns an upper bound of the memory. */
size_t rfx_overviews_bytes(const struct rfx_overview_map *map);

/* Makes the file and the buffers. IO: no file can be made beside `path`, or the disk is full. */
RFX_NODISCARD enum rfx_status rfx_overviews_open(struct rfx_memory *mem, const char *path,
                                                 const struct rfx_overview_map *map,
                                                 struct rfx_overviews **out, struct rfx_error *err);

/* Adds the picture's next row: samples [w, channels]. Call it h times. */
RFX_NODISCARD enum rfx_status rfx_overviews_put(struct rfx_overviews *overviews, const void *row,
                                                struct rfx_error *err);

/* Reads row y of level k, 1 ... count. All rows of the picture must have been added. */
RFX_NODISCARD enum rfx_status rfx_overviews_read(struct rfx_overviews *overviews, int k, int64_t y,
                                                 void *row, struct rfx_error *err);

/* Reads row y of a channel of level k, 0 ... count, if `planes` is set. */
RFX_NODISCARD enum rfx_status rfx_overviews_read_plane(struct rfx_overviews *overviews, int k,
                                                       int64_t channel, int64_t y, void *row,
                                                       struct rfx_error *err);

/* Closes and frees; NULL is fine. */
void rfx_overviews_free(struct rfx_overviews *overviews);
#endif
