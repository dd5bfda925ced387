/* The planted defects, and which of them the detector's spots belong to.
 *
 * The rule: a spot belongs to a true defect of its own kind when at least half of the spot's cells
 * have their middle in the defect's box grown by one cell. A true defect is found when a spot
 * belongs to it; a spot that belongs to none is false. */
#ifndef RFX_TOOLS_DEMO_DEFECT_TRUTH_H
#define RFX_TOOLS_DEMO_DEFECT_TRUTH_H

#include "defect_map.h"

struct true_defect {
    int kind;
    int64_t y0, y1, x0, x1; /* pixels, half-open */
    int found;
};

struct truth {
    struct true_defect *defect;
    size_t count;
};

/* Reads the CSV of rfx-make-inspection-image. 0, or -1 after printing the reason. */
int demo_truth_read(const char *path, struct truth *out);
void demo_truth_free(struct truth *truth);

/* Applies the rule: sets `found` of the defects and `truth` of the spots. */
void demo_truth_match(struct truth *truth, struct defect_spots *spots, const struct defect_map *map,
                      int64_t cell_px);
#endif
