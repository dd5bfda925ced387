/* Writes a picture and its smaller copies as square PNG files, so that a viewer loads only what it
 * shows. The files are those of Deep Zoom (DZI) without overlap: NAME.dzi, and
 * NAME_files/LEVEL/COLUMN_ROW.png. The last level is the picture, level 0 is one pixel.
 *
 * Each level has half the rows and columns of the next one, rounded up. A pixel is the mean of 2 x
 * 2 pixels (fewer at odd edges) of the next level. Means are rounded to the nearest, halves up.
 * With four channels, red, green, blue and alpha (opacity), colours are weighted by their alpha;
 * the colour of a clear pixel is 0.
 *
 * Rows come from top to bottom. The rows of tiles that are not complete wait in a file without a
 * name. Invariants: 1. memory is allocated by open, and for one tile at a time, at most
 * rfx_tile_pyramid_bytes; 2. the files depend on the pixels alone. */
#ifndef RFX_TOOLS_REPORT_TILE_PYRAMID_H
#define RFX_TOOLS_REPORT_TILE_PYRAMID_H

#include "rfexec/output/output_folder.h"

enum { RFX_TILE_SIDE = 512 };

struct rfx_tile_pyramid;

/* Returns the number of levels of a picture of h x w pixels, the picture included. */
int rfx_tile_pyramid_levels(int64_t h, int64_t w);

/* Returns an upper bound of the memory. */
size_t rfx_tile_pyramid_bytes(int64_t h, int64_t w, int channels);

/* Opens a pyramid in the folder. channels: 3 or 4, of 8 bits. beside: path beside which the file
 * without a name is made. The folder and `name` are borrowed. IO, OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_tile_pyramid_open(
    struct rfx_memory *mem, struct rfx_output_folder *folder, const char *name, const char *beside,
    int64_t h, int64_t w, int channels, struct rfx_tile_pyramid **out, struct rfx_error *err);

/* Adds the next row: pixels [w, channels]. The last row completes the files. Call it h times. IO,
 * OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_tile_pyramid_put(struct rfx_tile_pyramid *pyramid,
                                                   unsigned char *row, struct rfx_error *err);

/* NULL is fine. */
void rfx_tile_pyramid_free(struct rfx_tile_pyramid *pyramid);
#endif
