/* The detector's result and the planted defects.
 *
 * The detector gives maps of probabilities per cell. Connected cells above a threshold are spots. A
 * spot belongs to a true defect of its own kind when at least half of its cells have their middle
 * in the defect's box grown by one cell. A true defect is found when a spot belongs to it; a spot
 * that belongs to none is false. Functions return 0, or -1 after printing the reason to stderr. */
#ifndef RFX_TOOLS_DEMO_DEFECTS_H
#define RFX_TOOLS_DEMO_DEFECTS_H

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

/* Collects the spots of all kinds and drops those of fewer cells than least_cells[kind]. */
int demo_spots_find(const struct defect_map *map, float threshold, const int least_cells[],
                    struct defect_spots *out);
void demo_spots_free(struct defect_spots *spots);

struct true_defect {
    int kind;
    int64_t y0, y1, x0, x1; /* pixels, half-open */
    int found;
};

struct truth {
    struct true_defect *defect;
    size_t count;
};

/* Reads the CSV of rfx-make-inspection-image. */
int demo_truth_read(const char *path, struct truth *out);
void demo_truth_free(struct truth *truth);

/* Matches spots and defects: sets `found` of the defects and `truth` of the spots. */
void demo_truth_match(struct truth *truth, struct defect_spots *spots, const struct defect_map *map,
                      int64_t cell_px);
#endif
