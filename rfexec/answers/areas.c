/* A sweep over the rows: each area keeps the edges that cross the middle of the row; see areas.h.
 *
 * Edges of an area are sorted by their first row. Those from `passed` to `next` cross the row;
 * those before are over. The areas themselves are kept in the same way in `order`. No edge is lost,
 * and each step of an edge can be undone, so the sweep can begin again without a copy. */
#include "rfexec/answers/areas.h"

#include <assert.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/heap_sort.h"

__extension__ typedef __int128 wide;

static const int64_t one = INT64_C(1) << RFX_AREA_BITS, half = INT64_C(1) << (RFX_AREA_BITS - 1);

/* An edge that crosses the middles of rows `row` to `end` - 1. On the next of these rows it is at
 * x + rest / dy units from the left; 0 <= rest < dy. */
struct edge {
    int64_t x, rest, step, step_rest, dy;
    int32_t row, end;
    int32_t column; /* the first pixel whose centre is at or right of the edge */
};

struct area {
    size_t from, passed, next, to; /* places of edges */
    int32_t row, end;              /* the rows of all edges; row == end: there are none */
};

struct rfx_areas {
    struct rfx_memory *mem;
    int64_t h, w, row;
    size_t n, n_edges, most, most_edges;
    struct area *items;
    struct edge *edges;
    int32_t *order; /* areas with edges, by their first row */
    size_t passed, next, n_order;
    int64_t most_at_once;
    struct rfx_area_span *spans; /* of a row */
};

size_t rfx_areas_bytes(size_t areas, size_t edges) {
    return sizeof(struct rfx_areas) + areas * (sizeof(struct area) + 2 * sizeof(int32_t)) +
           edges * sizeof(struct edge) + edges / 2 * sizeof(struct rfx_area_span);
}

enum rfx_status rfx_areas_create(struct rfx_memory *mem, int64_t h, int64_t w, size_t areas,
                                 size_t edges, struct rfx_areas **out, struct rfx_error *err) {
    struct rfx_areas *made = rfx_memory_calloc(mem, 1, sizeof *made);
    if (made == NULL) return rfx_memory_fail(mem, "areas", sizeof *made, err);
    *made = (struct rfx_areas){.mem = mem, .h = h, .w = w, .most = areas, .most_edges = edges};
    made->items = rfx_memory_calloc(mem, areas, sizeof *made->items);
    made->order = rfx_memory_calloc(mem, areas, sizeof *made->order);
    made->edges = rfx_memory_calloc(mem, edges, sizeof *made->edges);
    if (made->items == NULL || made->order == NULL || made->edges == NULL) {
        rfx_areas_free(made);
        return rfx_memory_fail(mem, "areas", rfx_areas_bytes(areas, edges), err);
    }
    *out = made;
    return RFX_OK;
}

void rfx_areas_begin(struct rfx_areas *areas) {
    assert(areas->n < areas->most);
    areas->items[areas->n++] =
        (struct area){.from = areas->n_edges, .to = areas->n_edges, .row = INT32_MAX};
}

/* Returns the first pixel whose centre is at `at` units or beyond, from 0 to `most`. */
static int32_t pixel_from(int64_t at, int64_t most) {
    return (int32_t)rfx_min_i64(rfx_max_i64(rfx_ceil_div(at - half, one), 0), most);
}

static int64_t wide_floor_div(wide a, int64_t b, int64_t *rest) {
    wide q = a / b;
    if (a % b < 0) q--;
    *rest = (int64_t)(a - q * b);
    return (int64_t)q;
}

void rfx_areas_edge(struct rfx_areas *areas, const int64_t from[2], const int64_t to[2]) {
    struct area *area = &areas->items[areas->n - 1];
    const int64_t *top = from[1] < to[1] ? from : to, *bottom = top == from ? to : from;
    struct edge edge = {.row = pixel_from(top[1], areas->h),
                        .end = pixel_from(bottom[1], areas->h)};
    int64_t dx = bottom[0] - top[0];
    if (edge.row >= edge.end) return;
    edge.dy = bottom[1] - top[1];
    edge.x =
        top[0] + wide_floor_div((wide)(edge.row * one + half - top[1]) * dx, edge.dy, &edge.rest);
    /* An edge across several rows is higher than a pixel, so the step fits. */
    if (edge.end - edge.row > 1)
        edge.step = wide_floor_div((wide)dx * one, edge.dy, &edge.step_rest);
    assert(areas->n_edges < areas->most_edges);
    areas->edges[areas->n_edges++] = edge;
    area->to = areas->n_edges;
    area->row = (int32_t)rfx_min_i64(area->row, edge.row);
    area->end = (int32_t)rfx_max_i64(area->end, edge.end);
}

static bool has_earlier_row(const void *context, const void *a, const void *b) {
    (void)context;
    return ((const struct edge *)a)->row < ((const struct edge *)b)->row;
}

static bool has_earlier_column(const void *context, const void *a, const void *b) {
    (void)context;
    return ((const struct edge *)a)->column < ((const struct edge *)b)->column;
}

/* Compares numbers of areas. */
static bool begins_earlier(const void *items, const void *a, const void *b) {
    const struct area *areas = items;
    return areas[*(const int32_t *)a].row < areas[*(const int32_t *)b].row;
}

static bool is_smaller(const void *context, const void *a, const void *b) {
    (void)context;
    return *(const int32_t *)a < *(const int32_t *)b;
}

/* Counts how many areas overlap in rows at most. */
static enum rfx_status find_most_at_once(struct rfx_areas *areas, struct rfx_error *err) {
    size_t n = areas->n_order, bytes = n * sizeof(int32_t), over = 0;
    int32_t *ends = rfx_memory_alloc(areas->mem, bytes);
    if (ends == NULL) return rfx_memory_fail(areas->mem, "areas", bytes, err);
    for (size_t i = 0; i < n; i++) ends[i] = areas->items[areas->order[i]].end;
    rfx_heap_sort(ends, (int64_t)n, sizeof *ends, is_smaller, NULL);
    for (size_t i = 0; i < n; i++) {
        while (ends[over] <= areas->items[areas->order[i]].row) over++;
        areas->most_at_once = rfx_max_i64(areas->most_at_once, (int64_t)(i + 1 - over));
    }
    rfx_memory_release(areas->mem, ends);
    return RFX_OK;
}

/* Sorts the edges of each area, and the areas, for a sweep from row 0. */
static void begin_sweep(struct rfx_areas *areas) {
    areas->row = 0;
    areas->passed = areas->next = areas->n_order = 0;
    for (size_t k = 0; k < areas->n; k++) {
        struct area *area = &areas->items[k];
        rfx_heap_sort(areas->edges + area->from, (int64_t)(area->to - area->from),
                      sizeof *areas->edges, has_earlier_row, NULL);
        area->passed = area->next = area->from;
        if (area->from < area->to) areas->order[areas->n_order++] = (int32_t)k;
    }
    rfx_heap_sort(areas->order, (int64_t)areas->n_order, sizeof *areas->order, begins_earlier,
                  areas->items);
}

enum rfx_status rfx_areas_end(struct rfx_areas *areas, struct rfx_error *err) {
    size_t spans = areas->n_edges / 2;
    begin_sweep(areas);
    enum rfx_status status = find_most_at_once(areas, err);
    if (status != RFX_OK) return status;
    areas->spans = rfx_memory_alloc(areas->mem, spans * sizeof *areas->spans);
    if (areas->spans == NULL)
        return rfx_memory_fail(areas->mem, "areas", spans * sizeof *areas->spans, err);
    return RFX_OK;
}

int64_t rfx_areas_count(const struct rfx_areas *areas) {
    return (int64_t)areas->n;
}

bool rfx_areas_is_over(const struct rfx_areas *areas, int64_t k) {
    return areas->items[k].end <= areas->row;
}

/* Moves the edges that are over before the others, which keep their order, and takes those that
 * begin. */
static void find_edges(struct rfx_areas *areas, struct area *area) {
    size_t place = area->next;
    for (size_t i = area->next; i-- > area->passed;) {
        if (areas->edges[i].end <= areas->row || --place == i) continue;
        const struct edge over = areas->edges[place];
        areas->edges[place] = areas->edges[i];
        areas->edges[i] = over;
    }
    area->passed = place;
    while (area->next < area->to && areas->edges[area->next].row == areas->row) area->next++;
}

/* Puts an edge's place on the row into `column`, and goes to the next row. */
static void step_edge(struct edge *edge, int64_t w) {
    edge->column = pixel_from(edge->x + (edge->rest > 0), w);
    edge->x += edge->step;
    edge->rest += edge->step_rest;
    if (edge->rest < edge->dy) return;
    edge->rest -= edge->dy;
    edge->x++;
}

/* Puts an edge back to its first row after so many steps. */
static void undo_steps(struct edge *edge, int64_t steps) {
    const wide rest = edge->rest - (wide)steps * edge->step_rest;
    edge->x += wide_floor_div(rest, edge->dy, &edge->rest) - steps * edge->step;
}

void rfx_areas_rewind(struct rfx_areas *areas) {
    for (size_t i = 0; i < areas->n_edges; i++) {
        struct edge *edge = &areas->edges[i];
        const int64_t to = rfx_min_i64(areas->row, edge->end);
        if (to > edge->row) undo_steps(edge, to - edge->row);
    }
    begin_sweep(areas);
}

/* Appends the spans of an area. Returns their new number. */
static int64_t find_spans(struct rfx_areas *areas, int32_t k, int64_t n) {
    struct area *area = &areas->items[k];
    find_edges(areas, area);
    struct edge *edges = areas->edges + area->passed;
    size_t count = area->next - area->passed;
    assert(count % 2 == 0); /* rings are closed */
    for (size_t i = 0; i < count; i++) step_edge(&edges[i], areas->w);
    rfx_heap_sort(edges, (int64_t)count, sizeof *edges, has_earlier_column, NULL);
    for (size_t i = 0; i < count; i += 2)
        if (edges[i].column < edges[i + 1].column)
            areas->spans[n++] = (struct rfx_area_span){k, edges[i].column, edges[i + 1].column};
    return n;
}

/* Drops the areas that are over and takes those that begin. */
static void find_areas(struct rfx_areas *areas) {
    size_t place = areas->next;
    for (size_t i = areas->next; i-- > areas->passed;)
        if (!rfx_areas_is_over(areas, areas->order[i])) areas->order[--place] = areas->order[i];
    areas->passed = place;
    while (areas->next < areas->n_order &&
           areas->items[areas->order[areas->next]].row <= areas->row)
        areas->next++;
}

int64_t rfx_areas_most_at_once(const struct rfx_areas *areas) {
    return areas->most_at_once;
}

const struct rfx_area_span *rfx_areas_row(struct rfx_areas *areas, int64_t *n) {
    *n = 0;
    find_areas(areas);
    for (size_t i = areas->passed; i < areas->next; i++)
        *n = find_spans(areas, areas->order[i], *n);
    areas->row++;
    return areas->spans;
}

void rfx_areas_free(struct rfx_areas *areas) {
    if (areas == NULL) return;
    rfx_memory_release(areas->mem, areas->items);
    rfx_memory_release(areas->mem, areas->order);
    rfx_memory_release(areas->mem, areas->edges);
    rfx_memory_release(areas->mem, areas->spans);
    rfx_memory_release(areas->mem, areas);
}
