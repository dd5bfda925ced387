/* Rings of a region with fewer points, the same along an edge from both of its sides.
 *
 * A junction is a corner of pixels where edges of regions meet: of the four pairs of neighbours
 * among the pixels around it, three or more have different labels; what is outside the map is a
 * label too. Junctions stay. Between two of them an arc of the ring becomes the fewest lines, and
 * of these the shortest (lengths are added in float64 along the arc; of equal ones, the first
 * found), whose ends are corners of the arc and middles of its steps (edges of one pixel between
 * two edges of one direction). A line may leave out up to 255 corners if, for each of them, it
 * - passes the corner within `tolerance`,
 * - crosses the diagonal that halves the corner's angle at most 0.7 from the corner, and
 * - goes on along the two edges of the corner.
 * An arc is walked from its smaller end (by row, then column; of equal ends by the next corner), a
 * ring without junctions from the leftmost of its topmost corners, to the right. Rings of four
 * corners without junctions stay.
 *
 * It follows that
 * 1. a ring's points are at most `tolerance` from the exact ring, and the exact ones from it;
 * 2. a line stays in the squares of side 1 around the arc's points on the grid, in their order:
 *    0.7 is less than half of a diagonal. Other arcs have other points, but for junctions, which
 *    lines leave less than 45 degrees from the arc's first edge. So lines cross neither themselves
 *    nor each other, no ring vanishes, and holes stay inside;
 * 3. two regions have the same points along an edge between them, whether or not both are written.
 *
 * Below 0.36 almost nothing changes: a slope of 45 degrees is that far from its corners. Directions
 * are compared in float64. Cost O(n log n) in corners and junctions. Pinned by
 * test_region_simplify.c and tests/oracle/simplified_cases.py. */
#ifndef RFX_RFEXEC_ANSWERS_REGION_SIMPLIFY_H
#define RFX_RFEXEC_ANSWERS_REGION_SIMPLIFY_H

#include "rfexec/answers/region_rings.h"

/* Largest tolerance, in pixels of the map; below half of the diagonal of a pixel. */
#define RFX_REGION_MOST_TOLERANCE 0.7

/* Largest width and height of a map whose rings are simplified: points are counted in halves. */
#define RFX_REGION_MOST_SIMPLIFIED ((int64_t)1 << 30)

/* A junction in a list of rectangles: a rectangle without columns and rows. */
static inline bool rfx_region_is_junction(const struct rfx_region_rectangle *rectangle) {
    return rectangle->x0 == rectangle->x1;
}

/* Takes the junctions out of the lists of the components and returns the list of them. */
int32_t rfx_region_junctions_take(const struct rfx_region_pool *component_pool,
                                  const struct rfx_region_pool *rectangle_pool, int32_t components);

/* Puts a list of junctions back, to the end of the first component's list. */
void rfx_region_junctions_give(const struct rfx_region_pool *component_pool,
                               const struct rfx_region_pool *rectangle_pool, int32_t components,
                               int32_t junctions);

/* Replaces the rings that rfx_region_rings_make has made. Their points are then counted in halves
 * of pixels, and begin at a junction if the ring has one. Sorts the list of junctions. Statuses of
 * rfx_region_allocate. */
RFX_NODISCARD enum rfx_status rfx_region_simplify(struct rfx_region_memory *memory,
                                                  const struct rfx_region_pool *rectangle_pool,
                                                  int32_t *junctions, double tolerance,
                                                  struct rfx_region_rings *rings,
                                                  struct rfx_error *err);
#endif
