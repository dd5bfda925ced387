/* Hull of a region's pixels and calipers around it; see region_rectangle.h. */
#include "rfexec/answers/region_rectangle.h"

#include <math.h>

struct point {
    int32_t x, y;
};

struct extent { /* first and last pixel of a row that are corners of the hull, if last >= first */
    int32_t first, last;
};

struct rfx_region_hull {
    struct rfx_memory *mem;
    int64_t rows, n;
    struct extent *extents; /* [rows] from the first row of the region */
    struct point *points;   /* [2 rows + 1]; n of them are the hull's corners, clockwise */
};

size_t rfx_region_hull_bytes(int64_t rows) {
    return sizeof(struct rfx_region_hull) + sizeof(struct point) +
           (size_t)rows * (sizeof(struct extent) + 2 * sizeof(struct point));
}

enum rfx_status rfx_region_hull_create(struct rfx_memory *mem, int64_t rows,
                                       struct rfx_region_hull **out, struct rfx_error *err) {
    struct rfx_region_hull *hull = rfx_memory_calloc(mem, 1, sizeof *hull);
    if (hull == NULL) return rfx_memory_fail(mem, "hulls", rfx_region_hull_bytes(rows), err);
    hull->mem = mem;
    hull->rows = rows;
    hull->extents = rfx_memory_alloc(mem, (size_t)rows * sizeof *hull->extents);
    hull->points = rfx_memory_alloc(mem, (2 * (size_t)rows + 1) * sizeof *hull->points);
    if (hull->extents == NULL || hull->points == NULL) {
        rfx_region_hull_free(hull);
        return rfx_memory_fail(mem, "hulls", rfx_region_hull_bytes(rows), err);
    }
    *out = hull;
    return RFX_OK;
}

void rfx_region_hull_free(struct rfx_region_hull *hull) {
    if (hull == NULL) return;
    rfx_memory_release(hull->mem, hull->points);
    rfx_memory_release(hull->mem, hull->extents);
    rfx_memory_release(hull->mem, hull);
}

static int32_t sign(int64_t value) {
    return (value > 0) - (value < 0);
}

/* Adds the pixels inside of a ring's corners. Every corner of the hull is one of them: where a ring
 * turns clockwise, from direction a to b, the pixel lies behind a and beyond b. */
static void add_ring(struct rfx_region_hull *hull, int64_t y0, const struct rfx_region_ring *ring) {
    for (int64_t i = 0; i < ring->n; i++) {
        const int32_t *before = ring->points[(i + ring->n - 1) % ring->n], *at = ring->points[i],
                      *after = ring->points[(i + 1) % ring->n];
        const int32_t a[2] = {sign(at[0] - before[0]), sign(at[1] - before[1])};
        const int32_t b[2] = {sign(after[0] - at[0]), sign(after[1] - at[1])};
        if (a[0] * b[1] - a[1] * b[0] < 0) continue; /* a corner that goes into the region */
        int32_t x = at[0] - (1 + a[0] - b[0]) / 2, y = at[1] - (1 + a[1] - b[1]) / 2;
        struct extent *extent = &hull->extents[y - y0];
        if (x < extent->first) extent->first = x;
        if (x > extent->last) extent->last = x;
    }
}

/* Whether c lies on the line from a to b or to the right of it, as seen in the picture. */
static bool turns_right(struct point a, struct point b, struct point c) {
    return ((int64_t)b.x - a.x) * ((int64_t)c.y - a.y) -
               ((int64_t)b.y - a.y) * ((int64_t)c.x - a.x) >
           0;
}

/* Appends a point to the chain that begins at points[begin], without the corners that it cuts off.
 */
static void append(struct rfx_region_hull *hull, int64_t begin, struct point point) {
    struct point *p = hull->points;
    while (hull->n - begin >= 2 && !turns_right(p[hull->n - 2], p[hull->n - 1], point)) hull->n--;
    p[hull->n++] = point;
}

/* Makes the hull, clockwise from the first pixel of the first row: the last pixels of the rows
 * downward, the first pixels upward. */
static void make_hull(struct rfx_region_hull *hull, const struct rfx_region *region) {
    int64_t y0 = region->box.y0, rows = region->box.y1 - y0;
    const struct extent none = {INT32_MAX, -1};
    for (int64_t i = 0; i < rows; i++) hull->extents[i] = none;
    for (int64_t i = 0; i < region->n_rings; i++) add_ring(hull, y0, &region->rings[i]);
    struct point first = {hull->extents[0].first, (int32_t)y0};
    hull->n = 0;
    append(hull, 0, first);
    for (int64_t i = 0; i < rows; i++) {
        struct point last = {hull->extents[i].last, (int32_t)(y0 + i)};
        if (last.x >= 0 && (i > 0 || last.x > first.x)) append(hull, 0, last);
    }
    int64_t begin = hull->n - 1;
    for (int64_t i = rows - 1; i >= 0; i--) {
        struct point point = {hull->extents[i].first, (int32_t)(y0 + i)};
        struct point end = hull->points[hull->n - 1];
        bool same = point.x == end.x && point.y == end.y;
        if (point.x < INT32_MAX && !same) append(hull, begin, point);
    }
    hull->n--; /* the first point again */
}

/* Area w h / n of a rectangle, with n the square of the length of the edge. */
struct area {
    uint64_t w, h, n;
};

__extension__ typedef unsigned __int128 wide;

/* Whether a.w a.h b.n < b.w b.h a.n. */
static bool is_smaller(const struct area *a, const struct area *b) {
    wide mine = (wide)a->w * a->h, other = (wide)b->w * b->h;
    wide mine_low = (wide)(uint64_t)mine * b->n, other_low = (wide)(uint64_t)other * a->n;
    wide mine_high = (mine >> 64) * b->n + (mine_low >> 64);
    wide other_high = (other >> 64) * a->n + (other_low >> 64);
    return mine_high != other_high ? mine_high < other_high
                                   : (uint64_t)mine_low < (uint64_t)other_low;
}

/* An edge of the hull, and the corners that are farthest along it, across it and back along it. */
struct calipers {
    int64_t edge[2];
    int64_t at, farthest[3];
};

static const struct point *corner(const struct rfx_region_hull *hull, int64_t i) {
    return &hull->points[i % hull->n];
}

/* Returns how far corner i lies from the edge's first point: along the edge, across it or back. */
static int64_t reach_of(const struct rfx_region_hull *hull, const struct calipers *c, int way,
                        int64_t i) {
    int64_t x = (int64_t)corner(hull, i)->x - corner(hull, c->at)->x,
            y = (int64_t)corner(hull, i)->y - corner(hull, c->at)->y;
    if (way == 1) return c->edge[0] * y - c->edge[1] * x;
    int64_t along = c->edge[0] * x + c->edge[1] * y;
    return way == 0 ? along : -along;
}

/* Moves the calipers to edge `at`. The farthest corners only move on. */
static void turn(const struct rfx_region_hull *hull, struct calipers *c, int64_t at) {
    c->at = at;
    c->edge[0] = (int64_t)corner(hull, at + 1)->x - corner(hull, at)->x;
    c->edge[1] = (int64_t)corner(hull, at + 1)->y - corner(hull, at)->y;
    for (int way = 0; way < 3; way++) {
        int64_t *k = &c->farthest[way], least = way == 0 ? at + 1 : c->farthest[way - 1];
        if (*k < least) *k = least;
        while (reach_of(hull, c, way, *k + 1) > reach_of(hull, c, way, *k)) ++*k;
    }
}

static void set_rectangle(const struct rfx_region_hull *hull, const struct calipers *c,
                          struct rfx_rectangle *out) {
    double x = (double)c->edge[0], y = (double)c->edge[1], n = x * x + y * y;
    double along = (double)reach_of(hull, c, 0, c->farthest[0]);
    double across = (double)reach_of(hull, c, 1, c->farthest[1]);
    double back = (double)reach_of(hull, c, 2, c->farthest[2]);
    const struct point *from = corner(hull, c->at);
    out->edge[0] = c->edge[0];
    out->edge[1] = c->edge[1];
    out->side[0] = (along + back) / sqrt(n);
    out->side[1] = across / sqrt(n);
    out->centre[0] = (double)from->x + 0.5 + ((along - back) * x - across * y) / (2.0 * n);
    out->centre[1] = (double)from->y + 0.5 + ((along - back) * y + across * x) / (2.0 * n);
}

bool rfx_region_rectangle(struct rfx_region_hull *hull, const struct rfx_region *region,
                          struct rfx_rectangle *out) {
    struct calipers c = {.farthest = {0, 0, 0}}, best = c;
    struct area least = {0, 0, 0};
    make_hull(hull, region);
    if (hull->n < 3) return false;
    for (int64_t at = 0; at < hull->n; at++) {
        turn(hull, &c, at);
        int64_t along = reach_of(hull, &c, 0, c.farthest[0]) + reach_of(hull, &c, 2, c.farthest[2]);
        int64_t across = reach_of(hull, &c, 1, c.farthest[1]);
        const struct area area = {
            (uint64_t)along, (uint64_t)across,
            (uint64_t)(c.edge[0] * c.edge[0]) + (uint64_t)(c.edge[1] * c.edge[1])};
        if (at > 0 && !is_smaller(&area, &least)) continue;
        least = area;
        best = c;
    }
    set_rectangle(hull, &best, out);
    return true;
}
