/* Runs a network on tiles of an image, as a careful person would: every tile has all the halo that
 * the convolutions need, but norms over the whole map see only the tile.
 *
 * Functions return 0, or -1 after printing the reason to stderr. */
#ifndef RFX_TOOLS_DEMO_LOCAL_TILES_H
#define RFX_TOOLS_DEMO_LOCAL_TILES_H

#include <stdint.h>

struct local_tiles {
    const char *model;  /* its only output is a map; all its channels get the image's one channel */
    int64_t stride;     /* rows of the image per row of the map */
    int64_t tile, halo; /* in pixels of the image; multiples of the network's strides */
    int64_t count;      /* number of tiles that were run */
    int64_t c, h, w;    /* of the map */
};

/* Reads an image file as a run of a network of one channel does: [*h, *w], to be freed. */
int demo_read_values(const char *path, int64_t *h, int64_t *w, float **values);

/* Runs values [h, w] through the model in tiles of tile x tile pixels, smaller ones at the edges,
 * each with its halo inside the image. Sets count, c, h and w of `tiles`, and *map, [c, h, w], to
 * be freed. */
int demo_local_tiles_run(struct local_tiles *tiles, const float *values, int64_t h, int64_t w,
                         float **map);
#endif
