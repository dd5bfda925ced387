/* Rectangle algebra in the coordinates of a whole feature map: rows [y0, y1), columns [x0, x1).
 *
 * Invariants: 1. ranges are half-open, and no width is stored along with the two ends; 2.
 * coordinates may be negative (a halo before the map) or beyond the map's end; 3. a rectangle is
 * empty if y0 >= y1 or x0 >= x1. */
#ifndef RFX_LAYERS_CORE_RECT_H
#define RFX_LAYERS_CORE_RECT_H

#include <stdbool.h>
#include <stdint.h>

struct rfx_rect {
    int64_t y0, y1, x0, x1;
};

/* A half-open range [lo, hi) of rows or of columns. */
struct rfx_range {
    int64_t lo, hi;
};

static inline int64_t rfx_range_size(struct rfx_range r) {
    return r.hi > r.lo ? r.hi - r.lo : 0;
}

/* Returns the smallest range that contains both; an empty range adds nothing. */
static inline struct rfx_range rfx_range_union(struct rfx_range a, struct rfx_range b) {
    if (a.lo >= a.hi) return b;
    if (b.lo >= b.hi) return a;
    struct rfx_range r = {a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
    return r;
}

/* Returns part i of n parts of nearly equal size. The parts follow each other and together are the
 * whole range. */
static inline struct rfx_range rfx_range_part(struct rfx_range r, int64_t i, int64_t n) {
    int64_t size = rfx_range_size(r);
    struct rfx_range part = {r.lo + size * i / n, r.lo + size * (i + 1) / n};
    return part;
}

static inline struct rfx_rect rfx_rect_make(int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
    struct rfx_rect r = {y0, y1, x0, x1};
    return r;
}

/* Returns the rectangle of a whole map of h rows and w columns. */
static inline struct rfx_rect rfx_rect_full(int64_t h, int64_t w) {
    return rfx_rect_make(0, h, 0, w);
}

static inline bool rfx_rect_is_empty(struct rfx_rect r) {
    return r.y0 >= r.y1 || r.x0 >= r.x1;
}

static inline int64_t rfx_rect_rows(struct rfx_rect r) {
    return r.y1 > r.y0 ? r.y1 - r.y0 : 0;
}

static inline int64_t rfx_rect_cols(struct rfx_rect r) {
    return r.x1 > r.x0 ? r.x1 - r.x0 : 0;
}

static inline int64_t rfx_rect_area(struct rfx_rect r) {
    return rfx_rect_rows(r) * rfx_rect_cols(r);
}

static inline bool rfx_rect_equal(struct rfx_rect a, struct rfx_rect b) {
    return a.y0 == b.y0 && a.y1 == b.y1 && a.x0 == b.x0 && a.x1 == b.x1;
}

/* Whether `outer` contains `inner`; an empty `inner` is contained in every rectangle. */
static inline bool rfx_rect_contains(struct rfx_rect outer, struct rfx_rect inner) {
    return rfx_rect_is_empty(inner) || (inner.y0 >= outer.y0 && inner.y1 <= outer.y1 &&
                                        inner.x0 >= outer.x0 && inner.x1 <= outer.x1);
}

static inline struct rfx_rect rfx_rect_intersect(struct rfx_rect a, struct rfx_rect b) {
    struct rfx_rect r = {a.y0 > b.y0 ? a.y0 : b.y0, a.y1 < b.y1 ? a.y1 : b.y1,
                         a.x0 > b.x0 ? a.x0 : b.x0, a.x1 < b.x1 ? a.x1 : b.x1};
    return r;
}

/* Returns the smallest rectangle that contains both; an empty rectangle adds nothing. */
static inline struct rfx_rect rfx_rect_union(struct rfx_rect a, struct rfx_rect b) {
    if (rfx_rect_is_empty(a)) return b;
    if (rfx_rect_is_empty(b)) return a;
    struct rfx_rect r = {a.y0 < b.y0 ? a.y0 : b.y0, a.y1 > b.y1 ? a.y1 : b.y1,
                         a.x0 < b.x0 ? a.x0 : b.x0, a.x1 > b.x1 ? a.x1 : b.x1};
    return r;
}

static inline struct rfx_range rfx_rect_row_range(struct rfx_rect r) {
    struct rfx_range v = {r.y0, r.y1};
    return v;
}

static inline struct rfx_range rfx_rect_col_range(struct rfx_rect r) {
    struct rfx_range v = {r.x0, r.x1};
    return v;
}

static inline struct rfx_rect rfx_rect_from_ranges(struct rfx_range rows, struct rfx_range cols) {
    return rfx_rect_make(rows.lo, rows.hi, cols.lo, cols.hi);
}

/* Returns the rectangle of part i of `down` parts of the rows and part j of `across` parts of the
 * columns. */
static inline struct rfx_rect rfx_rect_part(struct rfx_rect r, int64_t i, int64_t down, int64_t j,
                                            int64_t across) {
    return rfx_rect_from_ranges(rfx_range_part(rfx_rect_row_range(r), i, down),
                                rfx_range_part(rfx_rect_col_range(r), j, across));
}
#endif
