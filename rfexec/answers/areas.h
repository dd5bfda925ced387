/* Areas of a map: polygons, and the pixels of each row whose centres lie inside.
 *
 * A pixel lies in an area if a line from its centre to the left crosses an odd number of the area's
 * edges, those of all rings together (even-odd rule). An edge counts on rows whose middle is at or
 * below its upper end and above its lower end, and for centres at or right of it. So areas with a
 * common border share its pixels out: each lies in exactly one of them.
 *
 * Corners are rounded to 2^-RFX_AREA_BITS of a pixel. All further arithmetic is in integers and
 * exact. Memory grows with the edges that cross the middle of a row of the map.
 * Tests: test_areas.c, tests/oracle/answers.py. */
#ifndef RFX_RFEXEC_ANSWERS_AREAS_H
#define RFX_RFEXEC_ANSWERS_AREAS_H

#include "layers/core/memory.h"

enum {
    RFX_AREA_BITS = 20,
    RFX_AREA_REACH_BITS = 40 /* corners are at most 2^40 pixels from the origin */
};

struct rfx_areas;

/* Pixels x0 to x1 - 1 of a row lie in area number `area`, counted from 0. */
struct rfx_area_span {
    int32_t area, x0, x1;
};

/* Memory of this many areas and edges. */
size_t rfx_areas_bytes(size_t areas, size_t edges);

/* Makes room for areas in a map of h x w pixels. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_areas_create(struct rfx_memory *mem, int64_t h, int64_t w,
                                               size_t areas, size_t edges, struct rfx_areas **out,
                                               struct rfx_error *err);

/* Begins the next area. */
void rfx_areas_begin(struct rfx_areas *areas);

/* Adds an edge of the area that was begun last, between two corners (x, y) in units of
 * 2^-RFX_AREA_BITS pixels. The corners of a ring need not turn in a certain direction. */
void rfx_areas_edge(struct rfx_areas *areas, const int64_t from[2], const int64_t to[2]);

/* Ends the list of areas; afterwards rows can be asked for. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_areas_end(struct rfx_areas *areas, struct rfx_error *err);

int64_t rfx_areas_count(const struct rfx_areas *areas);

/* Returns how many areas are begun and not over at most at a row. */
int64_t rfx_areas_most_at_once(const struct rfx_areas *areas);

/* Returns whether area k has no pixels below the rows that were asked for. */
bool rfx_areas_is_over(const struct rfx_areas *areas, int64_t k);

/* Returns the spans of the next row from the top, those of an area one after the other from left to
 * right, none empty; *n is their number. Valid until the next call. */
const struct rfx_area_span *rfx_areas_row(struct rfx_areas *areas, int64_t *n);

/* Goes back to the first row, in time as all rows take. */
void rfx_areas_rewind(struct rfx_areas *areas);

/* NULL is fine. */
void rfx_areas_free(struct rfx_areas *areas);
#endif
