/* Connected regions of a label map, from its rows in order: exact polygons along the edges of the
 * pixels, areas and scores.
 *
 * A region is a largest set of pixels of one label that are joined by sides (connectivity 4) or by
 * sides and corners (8). Each row is cut into runs of one label. A region's pixels are stored as
 * rectangles, runs that stay the same from row to row, so that memory follows the corners of the
 * regions that are open, not the map: 20 bytes for each rectangle, and while its region is passed
 * on, 72 more and 24 for each ring; 20 for each junction of a region whose rings are simplified; 36
 * for each set of pixels joined by sides (296 with scores); 24 for each run of two rows. A region
 * is passed on at the first row that has no pixel of it; several regions at one row by their
 * leftmost pixels in the row before.
 *
 * Invariants: 1. what is passed on, and its order, depend on the map alone; 2. rows come once, from
 * top to bottom; 3. all allocations count against `most_bytes`.
 *
 * Sources: union-find of the runs of two rows: Rosenfeld and Pfaltz, "Sequential operations in
 * digital picture processing", 1966. Tests: test_label_regions.c, tests/oracle/region_cases.py. */
#ifndef RFX_RFEXEC_ANSWERS_LABEL_REGIONS_H
#define RFX_RFEXEC_ANSWERS_LABEL_REGIONS_H

#include "layers/core/memory.h"
#include "layers/core/rect.h"

/* A closed line along edges of pixels. Corners (x, y) are counted in pixels from the upper left
 * corner of the map. Only the points where the line turns are listed, and the first is not
 * repeated. It begins at the leftmost of its topmost points. If x and y are drawn to the right and
 * upward, outer rings turn counterclockwise and holes clockwise: the sum of x[i] y[i + 1] -
 * x[i + 1] y[i] is positive for outer rings. Drawn as in the image, with y downward, outer rings
 * turn clockwise, from their first point to the right. */
struct rfx_region_ring {
    const int32_t (*points)[2];
    int64_t n;
    bool outer; /* it begins a polygon; the holes of that polygon follow */
};

struct rfx_region { /* valid during the call of rfx_region_fn */
    int64_t label;
    int64_t area;        /* pixels */
    int64_t edges[2];    /* edges of pixels on its rings, those of holes too: along rows, along
                            columns */
    struct rfx_rect box; /* the smallest rectangle that holds it */
    double centroid[2];  /* x, y: mean of the pixels' middles, exact sums rounded once */
    double mean_score;   /* exact sum rounded to double, divided by area; 0 without scores */
    float largest_score; /* +0 is larger than -0; NaN if all are NaN; 0 without scores */
    double unit; /* pixels that 1 in the points of rings is: 1, or 0.5 if they are simplified */
    /* Polygons, one for each set of pixels that are joined by sides (so one with connectivity 4),
     * by their first points from top to bottom and left to right; so are the holes of each. All
     * rings are simple lines: none passes a point twice. */
    const struct rfx_region_ring *rings;
    int64_t n_rings;
};

/* Takes a region that is complete. A status other than RFX_OK ends the work with that status. */
typedef enum rfx_status rfx_region_fn(void *user, const struct rfx_region *region,
                                      struct rfx_error *err);

struct rfx_regions_options {
    int64_t width;    /* of the map, at most 2^31 - 1 */
    int connectivity; /* 4 or 8 */
    bool has_background;
    int64_t background; /* label of pixels that belong to no region */
    int64_t least_area; /* smaller regions are not passed on */
    bool scored;        /* rows have scores */
    double tolerance;   /* rings are simplified (region_simplify.h), by at most
                           RFX_REGION_MOST_TOLERANCE; 0: they are exact */
    size_t most_bytes;  /* for all that is open at a time; 0: no limit */
};

struct rfx_regions;

/* OUT_OF_MEMORY; BUDGET_IMPOSSIBLE: most_bytes is below some hundred. Free *out with
 * rfx_regions_free. */
RFX_NODISCARD enum rfx_status rfx_regions_create(struct rfx_memory *mem,
                                                 const struct rfx_regions_options *options,
                                                 rfx_region_fn *take, void *user,
                                                 struct rfx_regions **out, struct rfx_error *err);

/* Takes the next row: `width` labels, and as many scores where options.scored. A NaN score makes
 * the region's mean NaN and is left out of the largest. BUDGET_IMPOSSIBLE, with the numbers:
 * most_bytes is not enough, or more than 2^29 rectangles are open. OUT_OF_MEMORY. UNSUPPORTED: more
 * than 2^31 - 1 rows, or scores of a region of more than 2^40 pixels. Statuses of `take`. After a
 * failure, only rfx_regions_free may be called. O(width), and O(n log n) in the n rectangles of
 * each region that is complete. */
RFX_NODISCARD enum rfx_status rfx_regions_row(struct rfx_regions *regions, const int64_t *labels,
                                              const float *scores, struct rfx_error *err);

/* Passes on the regions that touch the last row. Statuses as rfx_regions_row. */
RFX_NODISCARD enum rfx_status rfx_regions_end(struct rfx_regions *regions, struct rfx_error *err);

/* Returns the most bytes that were used at a time. */
size_t rfx_regions_high_water_bytes(const struct rfx_regions *regions);

/* NULL is fine. */
void rfx_regions_free(struct rfx_regions *regions);
#endif
