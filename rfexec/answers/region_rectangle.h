/* The smallest rectangle, of any angle, that holds the centres of a region's pixels.
 *
 * One side of the smallest rectangle lies along an edge of the convex hull (Freeman and Shapira,
 * "Determining the minimum-area encasing rectangle for an arbitrary closed curve", 1975). The hull
 * is made from the first and last pixels of the rows (Andrew's chains), and the edges are tried by
 * rotating calipers (Toussaint, "Solving geometric problems with the rotating calipers", 1983).
 * Hull and comparison of areas are exact, in integers. Of equal areas the first edge counts,
 * clockwise as seen in the picture, from the leftmost pixel of the first row. Tests:
 * test_region_rectangle.c, tests/oracle/text_cases.py. */
#ifndef RFX_RFEXEC_ANSWERS_REGION_RECTANGLE_H
#define RFX_RFEXEC_ANSWERS_REGION_RECTANGLE_H

#include "rfexec/answers/label_regions.h"

struct rfx_rectangle {
    double centre[2]; /* x, y; the pixel in the upper left corner has its centre at 0.5, 0.5 */
    int64_t edge[2];  /* direction of the first side: an edge of the hull */
    double side[2];   /* lengths: along the edge, and across it */
};

struct rfx_region_hull; /* memory for hulls */

/* Memory for regions of maps with so many rows: 24 bytes for each. */
size_t rfx_region_hull_bytes(int64_t rows);

/* OUT_OF_MEMORY. The caller frees *out with rfx_region_hull_free. */
RFX_NODISCARD enum rfx_status rfx_region_hull_create(struct rfx_memory *mem, int64_t rows,
                                                     struct rfx_region_hull **out,
                                                     struct rfx_error *err);

/* Sets *out and returns true; false: all pixels of the region lie on one line. O(n) in the points
 * of its rings and in its rows. */
bool rfx_region_rectangle(struct rfx_region_hull *hull, const struct rfx_region *region,
                          struct rfx_rectangle *out);

/* NULL is fine. */
void rfx_region_hull_free(struct rfx_region_hull *hull);
#endif
