/* What a careful person's tiles make of a picture whose network has norms over the whole of it:
 * tiles with all the halo that convolutions ask for, each a run of its own, so that its norms see
 * the tile and not the picture.
 *
 * Functions return 0, or -1 after printing the reason to stderr. */
#ifndef RFX_TOOLS_DEMO_LOCAL_TILES_H
#define RFX_TOOLS_DEMO_LOCAL_TILES_H

#include <stddef.h>
#include <stdint.h>

struct local_tiles {
    const char *model;  /* its only output is a map; all its channels get the picture's one */
    int64_t stride;     /* rows of the picture per row of the map */
    int64_t tile, halo; /* in pixels of the picture; multiples of what the network strides */
    int64_t count;      /* how many tiles were run */
    int64_t c, h, w;    /* of the map */
};

/* The values of a picture file as a run of a network of one channel takes them, [*h, *w], to be
 * freed. */
int demo_read_values(const char *path, int64_t *h, int64_t *w, float **values);

/* Runs values [h, w] through the model in tiles of tile x tile pixels; those at the edges are what
 * is left. Each gets its halo where the picture goes on. Sets count, c, h and w of `tiles` and
 * *map, [c, h, w], to be freed. */
int demo_local_tiles_run(struct local_tiles *tiles, const float *values, int64_t h, int64_t w,
                         float **map);
#endif
