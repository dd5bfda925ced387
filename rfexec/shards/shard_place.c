/* Rows and cells of shards; see shard_place.h. */
#include "rfexec/shards/shard_place.h"

#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rf_analysis/part_ends.h"

int64_t rfx_shard_most(const struct rfx_graph *graph, int k) {
    int64_t most = 1;
    for (int i = 0; i < rfx_part_ends(graph, k); i++)
        most = rfx_max_i64(most, graph->nodes[rfx_part_end(graph, k, i).node].out.h);
    return most;
}

/* Returns whether the pixels of an output piece's map are whole cells of this layout. */
static bool has_form(const struct rfx_graph *graph, const struct rfx_end *end,
                     const struct rfx_shard_cells *cells) {
    const struct rfx_tensor *map = &graph->nodes[end->node].out;
    if (map->layout != RFX_LAYOUT_NHWC) return false;
    if (cells->last)
        return end->channels == cells->channels && end->at.column_step == 1 &&
               end->at.row_step == map->w && end->at.channel_step == cells->of;
    return end->at.channel_step == 1 && end->at.column_step == end->channels &&
           end->at.row_step == map->w * end->channels && end->at.first % cells->channels == 0;
}

bool rfx_shard_cells_of(const struct rfx_graph *graph, int k, struct rfx_shard_cells *out) {
    const struct rfx_tensor *tensor = &graph->nodes[graph->outputs[k].node].out;
    struct rfx_shard_cells cells = {0};
    int n = rfx_part_ends(graph, k);
    *out = (struct rfx_shard_cells){0};
    if (tensor->layout != RFX_LAYOUT_PLAIN || tensor->shape.rank < 1) return false;
    cells.channels = tensor->shape.dims[tensor->shape.rank - 1];
    struct rfx_end first = rfx_part_end(graph, k, 0);
    cells.last = first.at.channel_step != 1;
    for (int i = 0; i < n && !cells.last; i++)
        cells.channels = rfx_gcd_i64(cells.channels, rfx_part_end(graph, k, i).channels);
    if (cells.last) cells.channels = first.channels;
    if (cells.channels < 1 || tensor->elems % cells.channels != 0) return false;
    cells.of = tensor->elems / cells.channels;
    for (int i = 0; i < n; i++) {
        struct rfx_end end = rfx_part_end(graph, k, i);
        if (!has_form(graph, &end, &cells)) return false;
    }
    *out = cells;
    return true;
}

/* Returns the cell of the output at which the map of an output piece begins. */
static int64_t first_cell(const struct rfx_shard_cells *cells, const struct rfx_end *end) {
    return end->at.first / (cells->last ? 1 : cells->channels);
}

/* Returns the number of cells in a row of the map. */
static int64_t row_cells(const struct rfx_shard_cells *cells, const struct rfx_end *end,
                         const struct rfx_node *map) {
    return cells->last ? map->out.w : map->out.w * (end->channels / cells->channels);
}

/* Adds the cells of `rows` of the map of an output piece. Returns false when there are too many
 * ranges.
 */
static bool add_cells(struct rfx_shard_cells *cells, const struct rfx_end *end,
                      const struct rfx_node *map, struct rfx_rect rows) {
    int64_t first = first_cell(cells, end), w = row_cells(cells, end, map);
    struct rfx_range range = {first + rows.y0 * w, first + rows.y1 * w};
    if (range.lo >= range.hi) return true;
    if (cells->n > 0 && cells->ranges[cells->n - 1].hi == range.lo) {
        cells->ranges[cells->n - 1].hi = range.hi;
        return true;
    }
    if (cells->n == RFX_SHARD_MOST_RANGES) return false;
    cells->ranges[cells->n++] = range;
    return true;
}

bool rfx_shard_cells_share(const struct rfx_graph *graph, int k, int64_t index, int64_t count,
                           struct rfx_shard_cells *cells) {
    bool whole = rfx_shard_cells_of(graph, k, cells);
    for (int i = 0; whole && i < rfx_part_ends(graph, k); i++) {
        struct rfx_end end = rfx_part_end(graph, k, i);
        whole = add_cells(cells, &end, &graph->nodes[end.node],
                          rfx_part_end_rows(graph, &end, index, count));
    }
    return whole;
}

/* Returns how many of the shard's cells come before cell p of the output. */
static int64_t count_before(const struct rfx_shard_cells *cells, int64_t p) {
    int64_t n = 0;
    for (int i = 0; i < cells->n && cells->ranges[i].lo < p; i++)
        n += rfx_min_i64(p, cells->ranges[i].hi) - cells->ranges[i].lo;
    return n;
}

int64_t rfx_shard_cells_count(const struct rfx_shard_cells *cells) {
    return count_before(cells, cells->of);
}

struct rfx_tensor rfx_shard_cells_tensor(const struct rfx_shard_cells *cells) {
    int64_t n = rfx_shard_cells_count(cells), c = cells->channels;
    const struct rfx_shape shape = {3, {1, cells->last ? c : n, cells->last ? n : c}};
    return rfx_tensor_plain(&shape, n * c);
}

struct rfx_end rfx_shard_cells_end(const struct rfx_shard_cells *cells, const struct rfx_end *end,
                                   const struct rfx_node *map, struct rfx_rect rows) {
    int64_t w = row_cells(cells, end, map), step = cells->last ? 1 : cells->channels;
    int64_t first = count_before(cells, first_cell(cells, end) + rows.y0 * w) - rows.y0 * w;
    struct rfx_end inside = *end;
    inside.at.first = first * step;
    if (cells->last) inside.at.channel_step = rfx_shard_cells_count(cells);
    return inside;
}

int64_t rfx_shard_cells_spans(const struct rfx_shard_cells *cells) {
    return cells->last ? cells->n * cells->channels : cells->n;
}

struct rfx_shard_span rfx_shard_cells_span(const struct rfx_shard_cells *cells, int64_t i) {
    int64_t channel = i / cells->n, step = cells->last ? 1 : cells->channels;
    struct rfx_range range = cells->ranges[i % cells->n];
    struct rfx_shard_span run = {count_before(cells, range.lo) * step, range.lo * step,
                                 (range.hi - range.lo) * step};
    run.from += channel * rfx_shard_cells_count(cells);
    run.to += channel * cells->of;
    return run;
}

bool rfx_shard_cells_equal(const struct rfx_shard_cells *a, const struct rfx_shard_cells *b) {
    bool same = a->of == b->of && a->channels == b->channels && a->last == b->last && a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = a->ranges[i].lo == b->ranges[i].lo && a->ranges[i].hi == b->ranges[i].hi;
    return same;
}

const char *rfx_shard_cells_text(const struct rfx_shard_cells *cells,
                                 char text[RFX_SHARD_CELLS_CHARS]) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < cells->n && used < RFX_SHARD_CELLS_CHARS; i++)
        used += (size_t)snprintf(text + used, RFX_SHARD_CELLS_CHARS - used, "%s%lld to %lld",
                                 i == 0 ? "" : ", ", (long long)cells->ranges[i].lo,
                                 (long long)cells->ranges[i].hi);
    return text;
}

json_t *rfx_shard_cells_ranges_json(const struct rfx_shard_cells *cells) {
    json_t *list = json_array();
    for (int i = 0; i < cells->n; i++)
        (void)json_array_append_new(list, json_pack("[I,I]", (json_int_t)cells->ranges[i].lo,
                                                    (json_int_t)cells->ranges[i].hi));
    return list;
}

json_t *rfx_shard_cells_json(const struct rfx_shard_cells *cells) {
    return json_pack("{s:I, s:I, s:b, s:o}", "of", (json_int_t)cells->of, "channels",
                     (json_int_t)cells->channels, "last", (int)cells->last, "ranges",
                     rfx_shard_cells_ranges_json(cells));
}

static bool read_number(const json_t *json, int64_t *value) {
    *value = json_integer_value(json);
    return json_is_integer(json);
}

bool rfx_shard_cells_read(const json_t *json, int64_t elems, struct rfx_shard_cells *out) {
    const json_t *last = json_object_get(json, "last"), *ranges = json_object_get(json, "ranges");
    struct rfx_shard_cells read = {.last = json_is_true(last)};
    size_t n = json_array_size(ranges);
    int64_t all;
    if (!json_is_boolean(last) || !read_number(json_object_get(json, "of"), &read.of) ||
        !read_number(json_object_get(json, "channels"), &read.channels) || read.of < 1 ||
        read.channels < 1 || !rfx_checked_mul_i64(read.of, read.channels, &all) || all != elems ||
        n < 1 || n > RFX_SHARD_MOST_RANGES)
        return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *pair = json_array_get(ranges, i);
        struct rfx_range *range = &read.ranges[read.n++];
        if (json_array_size(pair) != 2 || !read_number(json_array_get(pair, 0), &range->lo) ||
            !read_number(json_array_get(pair, 1), &range->hi) || range->lo >= range->hi ||
            range->lo < (i == 0 ? 0 : read.ranges[i - 1].hi) || range->hi > read.of)
            return false;
    }
    *out = read;
    return true;
}

enum rfx_status rfx_shard_put_rows(struct rfx_rect part, struct rfx_rect rect,
                                   const struct rfx_view *view, rfx_shard_put_fn *put, void *user,
                                   struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0, next; y < rect.y1 && status == RFX_OK; y = next) {
        float *at = rfx_view_f32_at(view, y, rect.x0);
        for (next = y + 1; next < rect.y1; next++)
            if (rfx_view_f32_at(view, next, rect.x0) != at + (next - y) * view->row_stride) break;
        struct rfx_view rows = *view;
        rows.data = at;
        rows.staging = NULL;
        rows.ring_rows = 0;
        rows.rect =
            rfx_rect_make(y - part.y0, next - part.y0, rect.x0 - part.x0, rect.x1 - part.x0);
        status = put(user, rows.rect, &rows, err);
    }
    return status;
}
