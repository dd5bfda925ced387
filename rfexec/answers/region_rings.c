/* Rings from rectangles: a sweep over the lines between rows, then a walk along the sides.
 *
 * A side is a vertical edge of the region, as long as it is straight. Left and right ends of
 * rectangles are parts of sides, because the pixel beside a run has another label. A side has two
 * corners, 2 s (top) and 2 s + 1 (bottom) of side s, and every corner has one horizontal edge,
 * which leads to its partner. On each line, from left to right, corners are partners in pairs: the
 * first and the second, the third and the fourth.
 *
 * Two sides meet at a point where a rectangle ends and another begins. If both have the region on
 * the same side, they are one straight side. If not, two pixels of the component touch only there,
 * and each of the two corners belongs to the pixel outside that its side touches. Those pixels are
 * not joined by sides outside the component: a path inside it, from one touching pixel to the
 * other, closes a line around one of them. So no ring passes the point twice. */
#include "rfexec/answers/region_rings.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES ((size_t)2048)

/* A rectangle in the order of first rows: the sides of its ends, or their columns before the sweep
 * has come to its first row. */
struct row {
    int32_t y0, end[2];
};

struct side {
    int32_t x, y[2], partner[2];
};

struct sweep {
    const struct rfx_region_pool *rectangles;
    struct row *rows;
    struct side *sides;
    int32_t n_sides;
    int32_t pending; /* corner at the left end of a horizontal edge; RFX_REGION_NONE: no edge */
};

static struct rfx_region_rectangle *rectangle_at(const struct sweep *sweep, int32_t i) {
    return rfx_region_rectangle_at(sweep->rectangles, i);
}

bool rfx_region_begins_before(const struct rfx_region_order *order, int32_t a, int32_t b) {
    const struct rfx_region_rectangle *p = rfx_region_rectangle_at(order->rectangles, a);
    const struct rfx_region_rectangle *q = rfx_region_rectangle_at(order->rectangles, b);
    return p->y0 != q->y0 ? p->y0 < q->y0 : p->x0 < q->x0;
}

static bool ends_before(const struct rfx_region_order *order, int32_t a, int32_t b) {
    const struct rfx_region_rectangle *p = rfx_region_rectangle_at(order->rectangles, a);
    const struct rfx_region_rectangle *q = rfx_region_rectangle_at(order->rectangles, b);
    return p->y1 != q->y1 ? p->y1 < q->y1 : p->x0 < q->x0;
}

/* For components whose first rectangle is their uppermost one. */
static bool component_before(const struct rfx_region_order *order, int32_t a, int32_t b) {
    return rfx_region_begins_before(order, rfx_region_component_at(order->pool, a)->first,
                                    rfx_region_component_at(order->pool, b)->first);
}

static int32_t merge_lists(const struct rfx_region_order *order, int32_t a, int32_t b) {
    int32_t head = RFX_REGION_NONE, *tail = &head;
    while (a != RFX_REGION_NONE && b != RFX_REGION_NONE) {
        int32_t *from = order->before(order, b, a) ? &b : &a;
        *tail = *from;
        tail = rfx_region_pool_link(order->pool, *from);
        *from = *tail;
    }
    *tail = a != RFX_REGION_NONE ? a : b;
    return head;
}

/* Cuts the longest ascending part from the head of a list, which may be empty. */
static int32_t cut_ascending(const struct rfx_region_order *order, int32_t *list) {
    int32_t head = *list, last = head, next;
    if (head == RFX_REGION_NONE) return head;
    while ((next = *rfx_region_pool_link(order->pool, last)) != RFX_REGION_NONE &&
           order->before(order, last, next))
        last = next;
    *list = next;
    *rfx_region_pool_link(order->pool, last) = RFX_REGION_NONE;
    return head;
}

/* Part k is empty or made of 2^k ascending parts. */
int32_t rfx_region_sort_list(const struct rfx_region_order *order, int32_t list) {
    enum { PARTS = 32 };
    int32_t parts[PARTS], sorted = RFX_REGION_NONE, part = cut_ascending(order, &list);
    if (list == RFX_REGION_NONE) return part;
    for (int k = 0; k < PARTS; k++) parts[k] = RFX_REGION_NONE;
    for (; part != RFX_REGION_NONE; part = cut_ascending(order, &list)) {
        int k = 0;
        for (; parts[k] != RFX_REGION_NONE; k++) {
            part = merge_lists(order, parts[k], part);
            parts[k] = RFX_REGION_NONE;
        }
        parts[k] = part;
    }
    for (int k = 0; k < PARTS; k++) sorted = merge_lists(order, parts[k], sorted);
    return sorted;
}

enum rfx_status rfx_region_buffer_resize(struct rfx_region_memory *memory,
                                         struct rfx_region_buffer *buffer, size_t bytes,
                                         struct rfx_error *err) {
    if (buffer->block != NULL && buffer->bytes >= bytes) return RFX_OK;
    rfx_region_release(memory, buffer->block, buffer->bytes);
    buffer->block = NULL;
    buffer->bytes = bytes < KEPT_BYTES ? KEPT_BYTES : bytes;
    return rfx_region_allocate(memory, buffer->bytes, &buffer->block, err);
}

static void trim(struct rfx_region_memory *memory, struct rfx_region_buffer *buffer) {
    if (buffer->bytes <= KEPT_BYTES) return;
    rfx_region_release(memory, buffer->block, buffer->bytes);
    *buffer = (struct rfx_region_buffer){NULL, 0};
}

static void add_corner(struct sweep *sweep, int32_t corner) {
    int32_t left = sweep->pending;
    sweep->pending = left == RFX_REGION_NONE ? corner : RFX_REGION_NONE;
    if (left == RFX_REGION_NONE) return;
    sweep->sides[left / 2].partner[left % 2] = corner;
    sweep->sides[corner / 2].partner[corner % 2] = left;
}

static int32_t begin_side(struct sweep *sweep, int32_t x, int32_t y) {
    sweep->sides[sweep->n_sides] = (struct side){x, {y, y}, {RFX_REGION_NONE, RFX_REGION_NONE}};
    return sweep->n_sides++;
}

/* Adds the bottom corner of a side. */
static void end_side(struct sweep *sweep, int32_t side, int32_t y) {
    sweep->sides[side].y[1] = y;
    add_corner(sweep, 2 * side + 1);
}

/* A place in the ends of the rectangles that end, or that begin, at a line. */
struct place {
    int32_t i;   /* rectangle: link of a list, or index into rows */
    int32_t end; /* 0: left; 1: right */
};

/* Returns the column at the place in the ends of rectangles that end at line y; INT32_MAX: none. */
static int32_t upper_column(const struct sweep *sweep, struct place at, int32_t y) {
    if (at.i == RFX_REGION_NONE) return INT32_MAX;
    const struct rfx_region_rectangle *rectangle = rectangle_at(sweep, at.i);
    if (rectangle->y1 != y) return INT32_MAX;
    return at.end == 0 ? rectangle->x0 : rectangle->x1;
}

static int32_t lower_column(const struct sweep *sweep, struct place at, int32_t n, int32_t y) {
    return at.i < n && sweep->rows[at.i].y0 == y ? sweep->rows[at.i].end[at.end] : INT32_MAX;
}

/* Handles the point (x, y) where a side from above meets a side to below. Returns the latter. */
static int32_t meet(struct sweep *sweep, int32_t upper_side, int32_t upper_end, int32_t lower_end,
                    int32_t x, int32_t y) {
    if (upper_end == lower_end) return upper_side;
    int32_t lower_side = begin_side(sweep, x, y);
    if (upper_end == 0) { /* the pixel outside that the upper side touches is on the left */
        end_side(sweep, upper_side, y);
        add_corner(sweep, 2 * lower_side);
    } else {
        add_corner(sweep, 2 * lower_side);
        end_side(sweep, upper_side, y);
    }
    return lower_side;
}

/* Makes all corners of line y. The y0 of a rectangle is its index into rows here. */
static void sweep_line(struct sweep *sweep, int32_t n, int32_t y, struct place *upper,
                       struct place *lower) {
    for (;;) {
        int32_t above = upper_column(sweep, *upper, y), below = lower_column(sweep, *lower, n, y);
        if (above == INT32_MAX && below == INT32_MAX) return;
        int32_t upper_side = RFX_REGION_NONE;
        if (above <= below)
            upper_side = sweep->rows[rectangle_at(sweep, upper->i)->y0].end[upper->end];
        int32_t *lower_side = below <= above ? &sweep->rows[lower->i].end[lower->end] : NULL;
        if (lower_side == NULL) {
            end_side(sweep, upper_side, y);
        } else if (above == below) {
            *lower_side = meet(sweep, upper_side, upper->end, lower->end, below, y);
        } else {
            *lower_side = begin_side(sweep, below, y);
            add_corner(sweep, 2 * *lower_side);
        }
        if (above <= below && upper->end == 1) upper->i = rectangle_at(sweep, upper->i)->next;
        if (above <= below) upper->end ^= 1;
        if (lower_side != NULL && lower->end == 1) lower->i++;
        if (lower_side != NULL) lower->end ^= 1;
    }
}

/* Makes the sides of a component whose rectangles are sorted by beginning. */
static void sweep_component(struct sweep *sweep, struct rfx_region_component *component) {
    int32_t n = 0;
    component->first_side = sweep->n_sides;
    for (int32_t i = component->first; i != RFX_REGION_NONE; i = rectangle_at(sweep, i)->next) {
        struct rfx_region_rectangle *rectangle = rectangle_at(sweep, i);
        sweep->rows[n] = (struct row){rectangle->y0, {rectangle->x0, rectangle->x1}};
        rectangle->y0 = n++;
    }
    const struct rfx_region_order by_end = {sweep->rectangles, sweep->rectangles, ends_before};
    component->first = rfx_region_sort_list(&by_end, component->first);
    struct place upper = {component->first, 0}, lower = {0, 0};
    while (upper.i != RFX_REGION_NONE) {
        int32_t y = rectangle_at(sweep, upper.i)->y1;
        if (lower.i < n && sweep->rows[lower.i].y0 < y) y = sweep->rows[lower.i].y0;
        sweep_line(sweep, n, y, &upper, &lower);
        assert(sweep->pending == RFX_REGION_NONE);
    }
}

/* Sorts the components, and the rectangles of each, by beginning. *most: rectangles of a component;
 * *total: of all. */
static int32_t sort_components(const struct rfx_region_pool *components,
                               const struct rfx_region_pool *rectangles, int32_t list, size_t *most,
                               size_t *total) {
    const struct rfx_region_order by_beginning = {rectangles, rectangles, rfx_region_begins_before};
    const struct rfx_region_order by_first = {components, rectangles, component_before};
    *most = *total = 0;
    for (int32_t i = list; i != RFX_REGION_NONE; i = *rfx_region_pool_link(components, i)) {
        struct rfx_region_component *component = rfx_region_component_at(components, i);
        size_t n = 0;
        component->first = rfx_region_sort_list(&by_beginning, component->first);
        for (int32_t k = component->first; k != RFX_REGION_NONE;
             k = *rfx_region_pool_link(rectangles, k))
            n++;
        *total += n;
        if (n > *most) *most = n;
    }
    return rfx_region_sort_list(&by_first, list);
}

struct walk {
    struct side *sides;
    int32_t (*points)[2];
    int64_t n_points;
    int64_t edges[2]; /* along rows, along columns */
};

static void add_point(struct walk *walk, int32_t corner) {
    walk->points[walk->n_points][0] = walk->sides[corner / 2].x;
    walk->points[walk->n_points++][1] = walk->sides[corner / 2].y[corner % 2];
}

/* Follows the horizontal edge at a corner and returns its other end. Both lose their partners, so
 * that a side without partners has been passed. */
static int32_t pass_edge(struct walk *walk, int32_t corner) {
    int32_t *partner = &walk->sides[corner / 2].partner[corner % 2], other = *partner;
    *partner = walk->sides[other / 2].partner[other % 2] = RFX_REGION_NONE;
    walk->edges[0] += abs(walk->sides[corner / 2].x - walk->sides[other / 2].x);
    return other;
}

/* Adds the points of a ring from the top of side s, its first point: outer rings to the right
 * first, holes down first. */
static void walk_ring(struct walk *walk, int32_t s, bool outer) {
    int32_t corner = 2 * s;
    do {
        const struct side *side = &walk->sides[corner / 2];
        if (!outer) walk->edges[1] += side->y[1] - side->y[0];
        add_point(walk, corner);
        corner = outer ? pass_edge(walk, corner) : corner ^ 1;
        side = &walk->sides[corner / 2];
        if (outer) walk->edges[1] += side->y[1] - side->y[0];
        add_point(walk, corner);
        corner = outer ? corner ^ 1 : pass_edge(walk, corner);
    } while (corner != 2 * s);
}

/* Walks along all rings of sides [first, end), those of a component, and returns the number of
 * rings so far. Sides are in the order of their tops, so that the first one that no ring has passed
 * begins a ring. Side k, which has been passed by then, keeps the numbers of ring k: x is the
 * number of its points halved, y[0] whether it is an outer ring. */
static int64_t walk_component(struct walk *walk, int32_t first, int32_t end, int64_t n_rings) {
    for (int32_t s = first; s < end; s++) {
        if (walk->sides[s].partner[0] == RFX_REGION_NONE) continue;
        int64_t before = walk->n_points;
        walk_ring(walk, s, s == first);
        struct side *kept = &walk->sides[n_rings++];
        kept->x = (int32_t)((walk->n_points - before) / 2);
        kept->y[0] = s == first;
    }
    return n_rings;
}

static int64_t walk_components(struct walk *walk, const struct rfx_region_pool *components,
                               int32_t list, int32_t n_sides) {
    int64_t n_rings = 0;
    while (list != RFX_REGION_NONE) {
        const struct rfx_region_component *component = rfx_region_component_at(components, list);
        list = component->next;
        int32_t end = list == RFX_REGION_NONE
                          ? n_sides
                          : rfx_region_component_at(components, list)->first_side;
        n_rings = walk_component(walk, component->first_side, end, n_rings);
    }
    return n_rings;
}

static void fill_rings(struct rfx_region_rings *rings) {
    const struct side *kept = rings->sides.block;
    const int32_t(*points)[2] = rings->points.block;
    struct rfx_region_ring *ring = rings->rings.block;
    for (int64_t k = 0; k < rings->n_rings; k++, ring++) {
        *ring = (struct rfx_region_ring){points, 2 * (int64_t)kept[k].x, kept[k].y[0] != 0};
        points += ring->n;
    }
}

enum rfx_status rfx_region_rings_make(struct rfx_region_memory *memory,
                                      const struct rfx_region_pool *component_pool,
                                      const struct rfx_region_pool *rectangle_pool,
                                      int32_t *components, struct rfx_region_rings *rings,
                                      struct rfx_error *err) {
    size_t most, total;
    *components = sort_components(component_pool, rectangle_pool, *components, &most, &total);
    enum rfx_status status =
        rfx_region_buffer_resize(memory, &rings->rows, most * sizeof(struct row), err);
    if (status == RFX_OK)
        status =
            rfx_region_buffer_resize(memory, &rings->sides, 2 * total * sizeof(struct side), err);
    if (status != RFX_OK) return status;
    struct sweep sweep = {.rectangles = rectangle_pool,
                          .rows = rings->rows.block,
                          .sides = rings->sides.block,
                          .pending = RFX_REGION_NONE};
    for (int32_t i = *components; i != RFX_REGION_NONE;
         i = *rfx_region_pool_link(component_pool, i))
        sweep_component(&sweep, rfx_region_component_at(component_pool, i));
    trim(memory, &rings->rows);
    status = rfx_region_buffer_resize(memory, &rings->points,
                                      2 * (size_t)sweep.n_sides * sizeof(int32_t[2]), err);
    if (status != RFX_OK) return status;
    struct walk walk = {.sides = sweep.sides, .points = rings->points.block};
    rings->n_rings = walk_components(&walk, component_pool, *components, sweep.n_sides);
    memcpy(rings->edges, walk.edges, sizeof rings->edges);
    assert(walk.n_points == 2 * (int64_t)sweep.n_sides);
    status = rfx_region_buffer_resize(memory, &rings->rings,
                                      (size_t)rings->n_rings * sizeof(struct rfx_region_ring), err);
    if (status != RFX_OK) return status;
    fill_rings(rings);
    trim(memory, &rings->sides);
    return RFX_OK;
}

void rfx_region_rings_trim(struct rfx_region_memory *memory, struct rfx_region_rings *rings) {
    trim(memory, &rings->rows);
    trim(memory, &rings->sides);
    trim(memory, &rings->points);
    trim(memory, &rings->rings);
    trim(memory, &rings->lines);
}

void rfx_region_rings_release(struct rfx_region_memory *memory, struct rfx_region_rings *rings) {
    rfx_region_release(memory, rings->rows.block, rings->rows.bytes);
    rfx_region_release(memory, rings->sides.block, rings->sides.bytes);
    rfx_region_release(memory, rings->points.block, rings->points.bytes);
    rfx_region_release(memory, rings->rings.block, rings->rings.bytes);
    rfx_region_release(memory, rings->lines.block, rings->lines.bytes);
    *rings = (struct rfx_region_rings){.n_rings = 0};
}
