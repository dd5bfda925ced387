/* What the detector says: maps of probabilities per cell, and the connected spots in them.
 *
 * Functions return 0, or -1 after printing the reason to stderr. */
#ifndef RFX_TOOLS_DEMO_DEFECT_MAP_H
#define RFX_TOOLS_DEMO_DEFECT_MAP_H

#include <stddef.h>
#include <stdint.h>

#define DEFECT_KINDS 3 /* scratch, pit, stain: the order of the maps */

struct defect_map {
    int64_t h, w;
    float *value; /* [DEFECT_KINDS, h, w]; owned */
};

/* A connected set (8 neighbours) of cells of one kind above the threshold. */
struct defect_spot {
    int kind;
    int64_t y0, y1, x0, x1; /* extent in cells, half-open */
    size_t first, count;    /* its cells in defect_spots.cell */
    float peak;             /* largest probability in it */
    int truth;              /* index of the true defect that it belongs to, -1: none */
};

struct defect_spots {
    struct defect_spot *spot;
    size_t count;
    int64_t *cell; /* y * w + x, spot by spot */
};

/* Reads float32 [1, 3, h, w] (or [3, h, w]) from an .npy file. */
int demo_map_read(const char *path, struct defect_map *out);
void demo_map_free(struct defect_map *map);

/* Collects the spots of all kinds; smaller ones than least_cells[kind] are dropped. */
int demo_spots_find(const struct defect_map *map, float threshold, const int least_cells[],
                    struct defect_spots *out);
void demo_spots_free(struct defect_spots *spots);
#endif
