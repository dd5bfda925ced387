/* Junctions are put into the rings, then each arc becomes the fewest lines; see
 * region_simplify.h. */
#include "rfexec/answers/region_simplify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A line leaves out fewer corners, so that the cost stays linear. */
enum { MOST_CORNERS = 256 };

typedef int32_t point[2]; /* x, y */

int32_t rfx_region_junctions_take(const struct rfx_region_pool *component_pool,
                                  const struct rfx_region_pool *rectangle_pool,
                                  int32_t components) {
    int32_t taken = RFX_REGION_NONE;
    for (int32_t i = components; i != RFX_REGION_NONE;
         i = *rfx_region_pool_link(component_pool, i)) {
        int32_t *link = &rfx_region_component_at(component_pool, i)->first;
        while (*link != RFX_REGION_NONE) {
            struct rfx_region_rectangle *here = rfx_region_rectangle_at(rectangle_pool, *link);
            int32_t k = *link;
            if (rfx_region_is_junction(here)) {
                *link = here->next;
                here->next = taken;
                taken = k;
            } else {
                link = &here->next;
            }
        }
    }
    return taken;
}

void rfx_region_junctions_give(const struct rfx_region_pool *component_pool,
                               const struct rfx_region_pool *rectangle_pool, int32_t components,
                               int32_t junctions) {
    int32_t *link = &rfx_region_component_at(component_pool, components)->first;
    while (*link != RFX_REGION_NONE) link = rfx_region_pool_link(rectangle_pool, *link);
    *link = junctions;
}

/* ---- junctions by place ---- */

/* Junctions as points, sorted by their coordinate `first`, then by the other one. */
struct places {
    point *points;
    int64_t n;
    int first;
};

static int compare(const point a, const point b, int first) {
    if (a[first] != b[first]) return a[first] < b[first] ? -1 : 1;
    return (a[1 - first] > b[1 - first]) - (a[1 - first] < b[1 - first]);
}

/* Returns the number of points before p. */
static int64_t count_before(const struct places *places, const point p) {
    int64_t lo = 0, hi = places->n;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        if (compare(places->points[middle], p, places->first) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static bool is_place(const struct places *places, const point p) {
    int64_t k = count_before(places, p);
    return k < places->n && compare(places->points[k], p, places->first) == 0;
}

static bool by_column(const struct rfx_region_order *order, int32_t a, int32_t b) {
    const struct rfx_region_rectangle *p = rfx_region_rectangle_at(order->rectangles, a);
    const struct rfx_region_rectangle *q = rfx_region_rectangle_at(order->rectangles, b);
    return p->x0 != q->x0 ? p->x0 < q->x0 : p->y0 < q->y0;
}

/* Sorts the list and writes its places, each once. */
static struct places list_places(const struct rfx_region_pool *rectangles, int32_t *list, int first,
                                 point *out) {
    const struct rfx_region_order order = {rectangles, rectangles,
                                           first == 1 ? rfx_region_begins_before : by_column};
    int64_t n = 0;
    *list = rfx_region_sort_list(&order, *list);
    for (int32_t i = *list; i != RFX_REGION_NONE; i = *rfx_region_pool_link(rectangles, i)) {
        const struct rfx_region_rectangle *at = rfx_region_rectangle_at(rectangles, i);
        const point p = {at->x0, at->y0};
        if (n == 0 || compare(out[n - 1], p, first) != 0) memcpy(out[n++], p, sizeof p);
    }
    return (struct places){out, n, first};
}

/* ---- rings with all junctions on them ---- */

struct line {
    point *points;
    unsigned char *fixed; /* of each point: it is a junction */
    int64_t n;
};

static void add_point(struct line *line, const point p, bool fixed) {
    memcpy(line->points[line->n], p, sizeof(point));
    line->fixed[line->n++] = fixed;
}

/* Adds the junctions between the ends of an edge. */
static void add_between(struct line *line, const struct places *places, const point from,
                        const point to) {
    int along = from[0] == to[0] ? 1 : 0;
    const struct places *sorted = &places[along == 1 ? 0 : 1]; /* by column, by row */
    bool forward = from[along] < to[along];
    int64_t k = count_before(sorted, forward ? from : to), end = k;
    k += k < sorted->n && compare(sorted->points[k], forward ? from : to, sorted->first) == 0;
    end = count_before(sorted, forward ? to : from);
    for (int64_t i = k; i < end; i++)
        add_point(line, sorted->points[forward ? i : k + end - 1 - i], true);
}

/* ---- arcs ---- */

/* Corners of an arc in its direction: corner k is points[(first + k * step) mod n]. */
struct arc {
    point *points;
    int64_t n, first;
    int step;
    int64_t count; /* of corners, both ends included */
};

static const int32_t *corner_at(const struct arc *arc, int64_t k) {
    int64_t i = (arc->first + k * arc->step) % arc->n;
    return arc->points[i < 0 ? i + arc->n : i];
}

/* Directions that pass all corners so far, in the order of growing angles. */
struct cone {
    bool any;
    double lo[2], hi[2];
};

static double cross(const double a[2], const double b[2]) {
    return a[0] * b[1] - a[1] * b[0];
}

/* Narrows the cone to the directions from lo to hi, less than half a turn. Returns whether any are
 * left. */
static bool narrow(struct cone *cone, const double lo[2], const double hi[2]) {
    if (!cone->any || cross(cone->lo, lo) > 0.0) memcpy(cone->lo, lo, sizeof cone->lo);
    if (!cone->any || cross(hi, cone->hi) > 0.0) memcpy(cone->hi, hi, sizeof cone->hi);
    cone->any = true;
    return cross(cone->lo, cone->hi) > 0.0;
}

/* Narrows the cone to the directions from u that pass corner v, where the arc turns to the inside
 * (both of +-1): through the gate on the diagonal and within `tolerance`, in halves of pixels.
 * Returns whether any are left. */
static bool pass_corner(struct cone *cone, const point u, const point v, const int inside[2],
                        double tolerance) {
    const double gate = RFX_REGION_MOST_TOLERANCE * sqrt(2.0); /* along each axis, in halves */
    const double d[2] = {(double)v[0] - (double)u[0], (double)v[1] - (double)u[1]};
    const double a[2] = {d[0] - gate * inside[0], d[1] - gate * inside[1]};
    const double b[2] = {d[0] + gate * inside[0], d[1] + gate * inside[1]};
    double turn = cross(a, b), square = d[0] * d[0] + d[1] * d[1] - tolerance * tolerance;
    if (turn == 0.0 || !narrow(cone, turn > 0.0 ? a : b, turn > 0.0 ? b : a)) return false;
    if (!(square > 0.0)) return true; /* u itself is near enough */
    double along = sqrt(square);      /* to the points where lines from u touch the circle */
    const double lo[2] = {d[0] * along + d[1] * tolerance, d[1] * along - d[0] * tolerance};
    const double hi[2] = {d[0] * along - d[1] * tolerance, d[1] * along + d[0] * tolerance};
    return narrow(cone, lo, hi);
}

/* Whether the direction from u to w is in the cone and goes on along the edges, whose signs are in
 * `along` (0: no edge of this axis). */
static bool reaches(const struct cone *cone, const point u, const point w, const int along[2]) {
    const double d[2] = {(double)w[0] - (double)u[0], (double)w[1] - (double)u[1]};
    for (int i = 0; i < 2; i++)
        if (along[i] != 0 && !(d[i] * along[i] > 0.0)) return false;
    return !cone->any || (cross(cone->lo, d) >= 0.0 && cross(d, cone->hi) >= 0.0);
}

/* Whether the edge before corner k is one pixel long and has edges of one direction before and
 * behind it. */
static bool is_step(const struct arc *arc, int64_t k) {
    if (k < 2 || k + 1 >= arc->count) return false;
    const int32_t *a = corner_at(arc, k - 2), *b = corner_at(arc, k - 1), *c = corner_at(arc, k),
                  *d = corner_at(arc, k + 1);
    int axis = a[0] == b[0] ? 1 : 0;
    return abs(c[1 - axis] - b[1 - axis]) == 2 && (b[axis] > a[axis]) == (d[axis] > c[axis]);
}

/* The points that lines may end at, in the order of the arc: 2 k is corner k, 2 k - 1 the middle of
 * the edge before it. */
struct node {
    int32_t lines;    /* fewest from the begin of the arc; INT32_MAX: it cannot be reached */
    int32_t previous; /* point at the other end of the last one of them */
    double length;    /* of all of them, the least of those with as few lines */
};

static void write_node(const struct arc *arc, int64_t id, point out) {
    const int32_t *v = corner_at(arc, (id + 1) / 2);
    memcpy(out, v, sizeof(point));
    if (id % 2 == 0) return;
    const int32_t *before = corner_at(arc, (id - 1) / 2);
    for (int axis = 0; axis < 2; axis++) out[axis] -= (v[axis] - before[axis]) / 2;
}

/* Takes the line from one point to a later one, if that is better. */
static void take_line(struct node *nodes, int64_t from, int64_t to, const point u, const point w) {
    double dx = (double)w[0] - (double)u[0], dy = (double)w[1] - (double)u[1];
    double length = nodes[from].length + sqrt(dx * dx + dy * dy);
    int32_t lines = nodes[from].lines + 1;
    if (lines > nodes[to].lines || (lines == nodes[to].lines && length >= nodes[to].length)) return;
    nodes[to] = (struct node){lines, (int32_t)from, length};
}

/* Takes all lines from a point. */
static void take_lines(const struct arc *arc, struct node *nodes, int64_t from, double tolerance) {
    struct cone cone = {.any = false};
    int along[2] = {0, 0};
    int64_t first = from / 2 + 1;
    point u;
    write_node(arc, from, u);
    for (int64_t i = first; i < arc->count && i - first < MOST_CORNERS; i++) {
        const int32_t *before = i == first ? u : corner_at(arc, i - 1), *v = corner_at(arc, i);
        int axis = before[0] == v[0] ? 1 : 0, sign = v[axis] > before[axis] ? 1 : -1;
        if (along[axis] == -sign) return;
        along[axis] = sign;
        point middle;
        write_node(arc, 2 * i - 1, middle);
        if (i > first && is_step(arc, i) && reaches(&cone, u, middle, along))
            take_line(nodes, from, 2 * i - 1, u, middle);
        if (reaches(&cone, u, v, along)) take_line(nodes, from, 2 * i, u, v);
        if (i + 1 == arc->count) return;
        const int32_t *after = corner_at(arc, i + 1);
        int inside[2];
        inside[axis] = -sign;
        inside[1 - axis] = after[1 - axis] > v[1 - axis] ? 1 : -1;
        if (!pass_corner(&cone, u, v, inside, tolerance)) return;
    }
}

static void swap_points(point a, point b) {
    point kept;
    memcpy(kept, a, sizeof kept);
    memcpy(a, b, sizeof kept);
    memcpy(b, kept, sizeof kept);
}

/* Adds an arc without its last point. nodes: room for 2 arc.count. */
static void add_arc(struct line *line, struct arc arc, bool backward, double tolerance,
                    struct node *nodes) {
    int64_t begin = line->n, last = 2 * (arc.count - 1);
    if (backward) {
        arc.first += arc.step * (arc.count - 1);
        arc.step = -arc.step;
    }
    for (int64_t id = 0; id <= last; id++) nodes[id].lines = INT32_MAX;
    nodes[0] = (struct node){.lines = 0};
    for (int64_t id = 0; id < last; id++)
        if (nodes[id].lines < INT32_MAX) take_lines(&arc, nodes, id, tolerance);
    /* From the end of the walk to its begin, which is the arc's own order if it is backward. */
    for (int64_t id = last;; id = nodes[id].previous) {
        point p;
        write_node(&arc, id, p);
        if (id != (backward ? 0 : last)) add_point(line, p, false);
        if (id == 0) break;
    }
    for (int64_t i = begin, j = line->n - 1; !backward && i < j; i++, j--)
        swap_points(line->points[i], line->points[j]);
}

/* Whether an arc is walked from its last corner. */
static bool is_backward(const struct arc *arc) {
    int order = compare(corner_at(arc, 0), corner_at(arc, arc->count - 1), 1);
    if (order == 0) order = compare(corner_at(arc, 1), corner_at(arc, arc->count - 2), 1);
    return order > 0;
}

/* Adds the simplified ring of in->points[0, in->n), in halves of pixels. */
static void add_ring(struct line *line, const struct line *in, bool outer, double tolerance,
                     struct node *nodes) {
    int64_t first = 0;
    struct arc arc = {.points = in->points, .n = in->n, .step = 1};
    while (first < in->n && !in->fixed[first]) first++;
    if (first == in->n && in->n == 4) {
        for (int64_t i = 0; i < in->n; i++) add_point(line, in->points[i], false);
        return;
    }
    if (first == in->n) { /* outer rings go to the right first, holes down */
        arc.count = in->n + 1;
        add_arc(line, arc, !outer, tolerance, nodes);
        return;
    }
    for (int64_t from = 0; from < in->n; from += arc.count - 1) {
        arc.first = first + from;
        arc.count = 2;
        while (!in->fixed[(arc.first + arc.count - 1) % in->n]) arc.count++;
        add_arc(line, arc, is_backward(&arc), tolerance, nodes);
    }
}

/* ---- all rings ---- */

static int64_t count_points(const struct rfx_region_rings *rings) {
    const struct rfx_region_ring *ring = rings->rings.block;
    int64_t n = 0;
    for (int64_t k = 0; k < rings->n_rings; k++) n += ring[k].n;
    return n;
}

/* Writes the points of a ring in halves of pixels, with the junctions on its edges. */
static void expand(const struct rfx_region_ring *ring, const struct places *places,
                   struct line *out) {
    out->n = 0;
    for (int64_t i = 0; i < ring->n; i++) {
        const int32_t *p = ring->points[i], *next = ring->points[i + 1 < ring->n ? i + 1 : 0];
        add_point(out, p, is_place(&places[1], p));
        add_between(out, places, p, next);
    }
    for (int64_t i = 0; i < out->n; i++)
        for (int axis = 0; axis < 2; axis++) out->points[i][axis] *= 2;
}

enum rfx_status rfx_region_simplify(struct rfx_region_memory *memory,
                                    const struct rfx_region_pool *rectangle_pool,
                                    int32_t *junctions, double tolerance,
                                    struct rfx_region_rings *rings, struct rfx_error *err) {
    int64_t n_junctions = 0, n = count_points(rings);
    for (int32_t i = *junctions; i != RFX_REGION_NONE; i = *rfx_region_pool_link(rectangle_pool, i))
        n_junctions++;
    /* A junction is a corner of rings, or on one edge. */
    size_t most = (size_t)(n + n_junctions), n_nodes = 2 * (most + 1);
    size_t bytes = n_nodes * sizeof(struct node) + most * (2 * sizeof(point) + 2) +
                   2 * (size_t)n_junctions * sizeof(point);
    enum rfx_status status = rfx_region_buffer_resize(memory, &rings->lines, bytes, err);
    if (status != RFX_OK) return status;
    struct node *nodes = rings->lines.block;
    point *block = (point *)(void *)(nodes + n_nodes);
    struct places places[2];
    places[0] = list_places(rectangle_pool, junctions, 0, block);
    places[1] = list_places(rectangle_pool, junctions, 1, block + n_junctions);
    struct line out = {.points = block + 2 * n_junctions};
    struct line whole = {.points = out.points + most};
    out.fixed = (unsigned char *)(whole.points + most);
    whole.fixed = out.fixed + most;
    struct rfx_region_ring *ring = rings->rings.block;
    for (int64_t k = 0; k < rings->n_rings; k++, ring++) {
        point *first = out.points + out.n;
        int64_t before = out.n;
        expand(ring, places, &whole);
        add_ring(&out, &whole, ring->outer, 2.0 * tolerance, nodes);
        ring->points = (const point *)first;
        ring->n = out.n - before;
    }
    return RFX_OK;
}
