/* The regions that rfexec found in the detector's output, and the planted defects.
 *
 * A region belongs to a true defect of its own kind when at least half of the region's box lies in
 * the defect's box grown by one cell of the detector's output. Of several such defects it belongs
 * to the one whose grown box holds the largest share. A true defect is found when a region belongs
 * to it; a region that belongs to none is false. The reading functions return 0, or -1 after
 * printing the reason to stderr. */
#ifndef RFX_TOOLS_DEMO_DEFECTS_H
#define RFX_TOOLS_DEMO_DEFECTS_H

#include <stddef.h>
#include <stdint.h>

#define DEFECT_KINDS 3 /* scratch, pit, stain: names in data/defect_kinds.txt */

struct found_region {
    int kind;
    int64_t cells;                   /* pixels of the detector's output */
    double left, top, right, bottom; /* of its box, in pixels of the picture */
    int truth;                       /* index of the true defect that it belongs to, -1: none */
};

struct found_regions {
    struct found_region *region;
    size_t count;
};

/* Reads the CSV of `rfexec run --regions FILE.csv --classes data/defect_kinds.txt`. Regions of
 * fewer cells than least_cells[kind] are left out. */
int demo_regions_read(const char *path, const int least_cells[], struct found_regions *out);
void demo_regions_free(struct found_regions *regions);

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

/* Matches regions and defects: sets `found` of the defects and `truth` of the regions. */
void demo_truth_match(struct truth *truth, struct found_regions *regions, int64_t cell_px);
#endif
