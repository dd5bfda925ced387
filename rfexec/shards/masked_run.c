/* See masked_run.h. */
#include "rfexec/shards/masked_run.h"

#include <math.h>
#include <stdlib.h>

#include "layers/core/checked.h"
#include "rf_analysis/grid.h"
#include "rf_analysis/part_graph.h"

/* Pixels are copied into a block of at least one row, because the values in the caller's view must
 * not change. */

#define BLOCK_BYTES ((size_t)1 << 20)

static size_t block_bytes(const struct rfx_tensor *map) {
    size_t row = rfx_tensor_pixel_bytes(map, map->w);
    return row > BLOCK_BYTES ? row : BLOCK_BYTES;
}

/* Passes the block, which holds `rect`, on. */
static enum rfx_status put_block(struct rfx_masked_run *run, struct rfx_rect rect,
                                 struct rfx_error *err) {
    struct rfx_view view = rfx_view_dense(run->block, rect, run->map.c);
    return run->to->write(run->to->user, &run->end, rect, &view, err);
}

/* Returns how many rows of `rect` the block holds, at least 1. */
static int64_t block_rows(const struct rfx_masked_run *run, struct rfx_rect rect) {
    size_t row = rfx_tensor_pixel_bytes(&run->map, rfx_rect_cols(rect));
    return rfx_max_i64(1, (int64_t)(block_bytes(&run->map) / row));
}

/* Copies columns [x0, x1) of row y from the view to `to`. Pixels that the mask does not select get
 * the fill value. */
static void copy_row(const struct rfx_masked_run *run, const struct rfx_view *view, int64_t y,
                     int64_t x0, int64_t x1, float *to) {
    const struct rfx_tensor *map = &run->map;
    for (int64_t x = x0; x < x1; x++, to += map->c) {
        bool wanted = rfx_mask_any(&run->mask, map->h, map->w, rfx_rect_make(y, y + 1, x, x + 1));
        const float *from = rfx_view_f32_at(view, y, x);
        for (int64_t c = 0; c < map->c; c++) to[c] = wanted ? from[c] : run->fill;
    }
}

/* Takes a piece of the current rectangle. */
static enum rfx_status take(void *user, const struct rfx_end *end, struct rfx_rect rect,
                            const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_masked_run *run = user;
    int64_t rows = block_rows(run, rect);
    enum rfx_status status = RFX_OK;
    if (end->output != run->received) return RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y += rows) {
        struct rfx_rect block = rfx_rect_make(y, rfx_min_i64(y + rows, rect.y1), rect.x0, rect.x1);
        for (int64_t k = block.y0; k < block.y1; k++)
            copy_row(run, view, k, rect.x0, rect.x1,
                     run->block + (k - block.y0) * rfx_rect_cols(rect) * run->map.c);
        status = put_block(run, block, err);
    }
    return status;
}

static enum rfx_status fill_rect(struct rfx_masked_run *run, struct rfx_rect rect,
                                 struct rfx_error *err) {
    int64_t rows = rfx_min_i64(block_rows(run, rect), rfx_rect_rows(rect));
    int64_t elems = rows * rfx_rect_cols(rect) * run->map.c;
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < elems; i++) run->block[i] = run->fill;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y += rows) {
        status = rfx_memory_check_stop(run->mem, err);
        struct rfx_rect block = rfx_rect_make(y, rfx_min_i64(y + rows, rect.y1), rect.x0, rect.x1);
        if (status == RFX_OK) status = put_block(run, block, err);
    }
    return status;
}

/* Returns the first row after y at which a rectangle begins or ends; h when there is none. */
static int64_t next_change(const struct rfx_mask_rects *rects, int64_t y, int64_t h) {
    int64_t next = h;
    for (int i = 0; i < rects->n; i++) {
        if (rects->rects[i].y0 > y) next = rfx_min_i64(next, rects->rects[i].y0);
        if (rects->rects[i].y1 > y) next = rfx_min_i64(next, rects->rects[i].y1);
    }
    return next;
}

/* Returns the first column from x on at which a rectangle begins in row y, and sets *end to the end
 * of that rectangle. Returns w and sets *end to w when there is none. */
static int64_t next_rect(const struct rfx_mask_rects *rects, int64_t y, int64_t x, int64_t w,
                         int64_t *end) {
    int64_t next = w;
    *end = w;
    for (int i = 0; i < rects->n; i++) {
        const struct rfx_rect *r = &rects->rects[i];
        if (y < r->y0 || y >= r->y1 || r->x0 < x || r->x0 >= next) continue;
        next = r->x0;
        *end = r->x1;
    }
    return next;
}

/* Writes the fill value to everything outside of the rectangles. */
static enum rfx_status fill_rest(struct rfx_masked_run *run, struct rfx_error *err) {
    int64_t h = run->map.h, w = run->map.w;
    enum rfx_status status = RFX_OK;
    for (int64_t y = 0, next; y < h && status == RFX_OK; y = next) {
        next = next_change(&run->rects, y, h);
        for (int64_t x = 0, end; x < w && status == RFX_OK; x = end) {
            int64_t to = next_rect(&run->rects, y, x, w, &end);
            if (to > x) status = fill_rect(run, rfx_rect_make(y, next, x, to), err);
        }
    }
    return status;
}

static float fill_of(const char *no_data) {
    char *end = NULL;
    double value = no_data == NULL ? 0.0 : strtod(no_data, &end);
    return end != NULL && end != no_data ? (float)value : 0.0f;
}

/* Finds out whether the output's rectangles can be computed independently of each other. */
static enum rfx_status look_at_output(struct rfx_masked_run *run, struct rfx_error *err) {
    const struct rfx_output *output = &run->graph->outputs[run->k];
    struct rfx_part_rounds rounds;
    run->global_node = -1;
    run->map = run->graph->nodes[output->node].out;
    run->end = (struct rfx_end){.node = output->node,
                                .output = run->k,
                                .channels = run->map.c,
                                .at = rfx_stored_spread(&output->stored, output->part, run->map.c)};
    if (run->map.layout != RFX_LAYOUT_NHWC)
        return rfx_fail(
            err, RFX_STATUS_UNSUPPORTED,
            "output '%.300s' is not a map of rows and columns: --mask does not apply to it",
            output->name);
    enum rfx_status status = rfx_part_graph_rounds(run->graph, run->k, NULL, 0, &rounds, err);
    if (status != RFX_OK) return status;
    run->is_global = rounds.rounds > 0 || rounds.blocking >= 0;
    if (run->is_global) run->global_node = rounds.blocking >= 0 ? rounds.blocking : rounds.first;
    return RFX_OK;
}

enum rfx_status rfx_masked_run_open(struct rfx_masked_run *run, struct rfx_error *err) {
    struct rfx_grid grid;
    double halo[2] = {0.0, 0.0}; /* without a known grid the halo is counted as 0 */
    enum rfx_status status = look_at_output(run, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *map = &run->map;
    status = rfx_mask_open(run->mem, run->path, run->memory_bytes, &run->mask, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "--mask");
    status = rfx_grid_find(run->graph, run->end.node, &grid, err);
    if (status != RFX_OK) return status;
    for (int axis = 0; axis < 2 && grid.known; axis++)
        halo[axis] = (grid.axis[axis].size_px - 1.0) / fabs(grid.axis[axis].step);
    rfx_mask_find_rects(&run->mask, map->h, map->w, halo[0], halo[1], &run->rects);
    if (run->is_global && run->rects.n > 0)
        run->rects = (struct rfx_mask_rects){1, {rfx_rect_full(map->h, map->w)}};
    for (int i = 0; i < run->rects.n; i++) run->pixels += rfx_rect_area(run->rects.rects[i]);
    run->fill = fill_of(run->no_data);
    return RFX_OK;
}

size_t rfx_masked_run_bytes(const struct rfx_masked_run *run) {
    return rfx_mask_bytes(&run->mask) + block_bytes(&run->map);
}

/* Plans a rectangle. Runs the plan unless the sink is NULL. */
static enum rfx_status make_rect(struct rfx_masked_run *run, struct rfx_rect rect,
                                 const struct rfx_output_sink *sink, struct rfx_error *err) {
    struct rfx_graph *part = NULL;
    enum rfx_status status = RFX_OK;
    if (!run->is_global) status = rfx_part_graph_create(run->graph, run->k, rect, &part, err);
    run->rect = rect;
    run->received = part != NULL ? 0 : run->k;
    if (status == RFX_OK) status = run->make(run->user, part, sink, err);
    rfx_graph_free(part);
    return status;
}

static int by_area(const void *a, const void *b) {
    const struct rfx_rect *left = a, *right = b;
    int64_t more = rfx_rect_area(*right), less = rfx_rect_area(*left);
    return (more > less) - (more < less);
}

static enum rfx_status check_budget(struct rfx_masked_run *run, struct rfx_error *err) {
    struct rfx_mask_rects sorted = run->rects;
    enum rfx_status status = RFX_OK;
    if (run->memory_bytes == 0 || sorted.n < 2) return RFX_OK;
    qsort(sorted.rects, (size_t)sorted.n, sizeof sorted.rects[0], by_area);
    for (int i = 0; i < sorted.n && status == RFX_OK; i++)
        status = make_rect(run, sorted.rects[i], NULL, err);
    return status;
}

enum rfx_status rfx_masked_run_execute(struct rfx_masked_run *run, struct rfx_error *err) {
    const struct rfx_output_sink sink = {.write = take, .user = run};
    enum rfx_status status = check_budget(run, err);
    if (status != RFX_OK) return status;
    run->block = rfx_memory_alloc(run->mem, block_bytes(&run->map));
    if (run->block == NULL) return rfx_memory_fail(run->mem, "mask", block_bytes(&run->map), err);
    status = run->to->begin(run->to->user, err);
    for (int i = 0; i < run->rects.n && status == RFX_OK; i++) {
        status = make_rect(run, run->rects.rects[i], &sink, err);
        run->done_pixels += rfx_rect_area(run->rects.rects[i]);
    }
    if (status == RFX_OK) status = fill_rest(run, err);
    return status == RFX_OK ? run->to->end(run->to->user, err) : status;
}

void rfx_masked_run_release(struct rfx_masked_run *run) {
    rfx_memory_release(run->mem, run->block);
    rfx_mask_release(&run->mask);
}
