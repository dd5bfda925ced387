/* Evaluates tile grids at every aggregation point of a graph under one baseline. */
#include "tools/study/curve.h"

#include <stdlib.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "tiler/plan/splits.h"
#include "tiler/plan/tiling.h"

struct work { /* scratch tables */
    struct rfx_memory *mem;
    struct rfx_liveness *liveness;
    struct rfx_axis_region *regions; /* [n_nodes] */
    struct rfx_tile_extent *extents; /* [2 axes][RFX_TILING_MAX_COUNTS][n_nodes] */
    size_t *bytes;                   /* [n_nodes] */
    uint64_t *macs_tail;             /* [n_nodes + 1] MACs of the nodes [i, n) on whole maps */
    int *splits;                     /* [n_nodes] */
    struct rfx_curve_point *all;     /* candidates for the Pareto front */
    size_t n_all, all_capacity;
};

static enum rfx_status work_init(struct work *work, const struct rfx_graph *graph,
                                 enum rfx_baseline baseline, struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    size_t n_extents = 2 * RFX_TILING_MAX_COUNTS * n;
    memset(work, 0, sizeof *work);
    work->mem = mem;
    enum rfx_status status = rfx_liveness_create(graph, baseline, &work->liveness, err);
    if (status != RFX_OK) return status;
    work->regions = rfx_memory_calloc(mem, n, sizeof *work->regions);
    work->extents = rfx_memory_calloc(mem, n_extents, sizeof *work->extents);
    work->bytes = rfx_memory_calloc(mem, n, sizeof *work->bytes);
    work->macs_tail = rfx_memory_calloc(mem, n + 1, sizeof *work->macs_tail);
    work->splits = rfx_memory_calloc(mem, n, sizeof *work->splits);
    if (work->regions == NULL || work->extents == NULL || work->bytes == NULL ||
        work->macs_tail == NULL || work->splits == NULL)
        return rfx_memory_fail(mem, "curve tables", n_extents * sizeof *work->extents, err);
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        work->macs_tail[i] =
            work->macs_tail[i + 1] + rfx_op_macs(graph, node, rfx_node_full_rect(node));
    }
    return RFX_OK;
}

static void work_release(struct work *work) {
    rfx_liveness_free(work->liveness);
    rfx_memory_release(work->mem, work->regions);
    rfx_memory_release(work->mem, work->extents);
    rfx_memory_release(work->mem, work->bytes);
    rfx_memory_release(work->mem, work->macs_tail);
    rfx_memory_release(work->mem, work->splits);
    rfx_memory_release(work->mem, work->all);
}

/* Writes the bytes of the head's tensors for one tile. The split gets 0 bytes here, because its
 * whole map is counted separately. */
static void fill_tile_bytes(struct work *work, int split, const struct rfx_tile_extent *rows,
                            const struct rfx_tile_extent *cols) {
    const struct rfx_graph *graph = work->liveness->graph;
    for (int i = 0; i < split; i++) {
        bool counts = work->liveness->whole_bytes[i] != 0;
        work->bytes[i] =
            counts ? rfx_tensor_pixel_bytes(&graph->nodes[i].out, rows[i].max * cols[i].max) : 0;
    }
    work->bytes[split] = 0;
}

static uint64_t count_macs(const struct work *work, int split, const struct rfx_tile_extent *rows,
                           const struct rfx_tile_extent *cols) {
    const struct rfx_graph *graph = work->liveness->graph;
    uint64_t macs = work->macs_tail[split + 1];
    for (int i = 0; i <= split; i++)
        macs += rfx_op_macs(graph, &graph->nodes[i], rfx_rect_full(rows[i].sum, cols[i].sum));
    return macs;
}

/* Peak memory of the layers after a split, which run on whole maps. It does not depend on the tile
 * grid. */
struct tail {
    size_t bytes; /* the peak, with all weights */
    int node;     /* where the peak is */
};

static struct tail measure_tail(const struct work *work, int split) {
    const struct rfx_liveness *l = work->liveness;
    struct tail tail;
    tail.bytes = rfx_liveness_peak(l, split, l->graph->n_nodes, l->whole_bytes, &tail.node, NULL);
    tail.bytes += l->weights_bytes;
    return tail;
}

static struct rfx_curve_point measure(struct work *work, int split, int64_t tiles_y,
                                      int64_t tiles_x, const struct rfx_tile_extent *rows,
                                      const struct rfx_tile_extent *cols, struct tail tail) {
    const struct rfx_liveness *l = work->liveness;
    int node;
    fill_tile_bytes(work, split, rows, cols);
    size_t head = rfx_liveness_peak(l, 0, split + 1, work->bytes, &node, NULL);
    head += l->whole_bytes[split] + l->weights_bytes;
    struct rfx_curve_point point = {
        .split = split,
        .tiles_y = tiles_y,
        .tiles_x = tiles_x,
        .tile_h_px = rows[work->liveness->graph->input].max,
        .tile_w_px = cols[work->liveness->graph->input].max,
        .macs = count_macs(work, split, rows, cols),
        .peak_bytes = head > tail.bytes ? head : tail.bytes,
        .head_bytes = head,
        .tail_bytes = tail.bytes,
        .peak_node = head > tail.bytes ? node : tail.node,
    };
    return point;
}

static struct rfx_curve_point measure_untiled(const struct work *work) {
    const struct rfx_liveness *l = work->liveness;
    const struct rfx_tensor *image = &l->graph->nodes[l->graph->input].out;
    int node;
    size_t peak = rfx_liveness_peak(l, 0, l->graph->n_nodes, l->whole_bytes, &node, NULL);
    peak += l->weights_bytes;
    struct rfx_curve_point point = {.split = -1,
                                    .tiles_y = 1,
                                    .tiles_x = 1,
                                    .tile_h_px = image->h,
                                    .tile_w_px = image->w,
                                    .macs = work->macs_tail[0],
                                    .peak_bytes = peak,
                                    .head_bytes = peak,
                                    .tail_bytes = peak,
                                    .peak_node = node};
    return point;
}

static bool is_smaller(const struct rfx_curve_point *a, const struct rfx_curve_point *b) {
    if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes;
    return a->macs < b->macs;
}

static enum rfx_status fill_points(struct rfx_curve *curve, struct work *work,
                                   const struct rfx_curve_request *request, struct rfx_error *err) {
    const struct rfx_graph *graph = curve->graph;
    struct rfx_tile_extent *rows = work->extents;
    struct rfx_tile_extent *cols = work->extents + graph->n_nodes;
    enum rfx_status status = RFX_OK;
    curve->best = -1;
    for (int s = 0; status == RFX_OK && s < curve->n_points; s++) {
        int split = work->splits[s];
        const struct rfx_tensor *map = &graph->nodes[split].out;
        int64_t tiles_y = rfx_min_i64(request->tiles_y, map->h);
        int64_t tiles_x = rfx_min_i64(request->tiles_x, map->w);
        rfx_tiling_axis(graph, split, RFX_AXIS_ROWS, tiles_y, work->regions, rows);
        rfx_tiling_axis(graph, split, RFX_AXIS_COLS, tiles_x, work->regions, cols);
        curve->points[s] =
            measure(work, split, tiles_y, tiles_x, rows, cols, measure_tail(work, split));
        if (curve->best < 0 || is_smaller(&curve->points[s], &curve->points[curve->best]))
            curve->best = s;
        status = rfx_memory_check_stop(work->mem, err);
    }
    return status;
}

static enum rfx_status all_reserve(struct work *work, size_t more, struct rfx_error *err) {
    size_t wanted = work->n_all + more;
    struct rfx_curve_point *all =
        rfx_memory_reserve(work->mem, work->all, &work->all_capacity, wanted, sizeof *work->all);
    if (all == NULL)
        return rfx_memory_fail(work->mem, "Pareto candidates", wanted * sizeof *all, err);
    work->all = all;
    return RFX_OK;
}

static int compare_points(const void *pa, const void *pb) {
    const struct rfx_curve_point *a = pa;
    const struct rfx_curve_point *b = pb;
    if (a->macs != b->macs) return a->macs < b->macs ? -1 : 1;
    if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes ? -1 : 1;
    if (a->split != b->split) return a->split < b->split ? -1 : 1;
    return (a->tiles_y > b->tiles_y) - (a->tiles_y < b->tiles_y);
}

/* Sorts the candidates by MACs and keeps the Pareto front: the points for which no other point has
 * both fewer MACs and fewer bytes. Returns their number. */
static size_t keep_front(struct rfx_curve_point *points, size_t n) {
    qsort(points, n, sizeof *points, compare_points);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || points[i].peak_bytes < points[kept - 1].peak_bytes)
            points[kept++] = points[i];
    return kept;
}

/* Evaluates all grids of one split, adds them to work->all and reduces work->all to its Pareto
 * front. */
static enum rfx_status add_grids(struct work *work, int split, struct rfx_error *err) {
    const struct rfx_graph *graph = work->liveness->graph;
    int64_t counts[2][RFX_TILING_MAX_COUNTS];
    int n[2];
    enum rfx_status status = RFX_OK;
    for (int axis = 0; axis < 2; axis++) {
        int64_t extent = rfx_node_extent(&graph->nodes[split], (enum rfx_axis)axis);
        n[axis] = rfx_tiling_counts(extent, counts[axis]);
        for (int i = 0; status == RFX_OK && i < n[axis]; i++) {
            rfx_tiling_axis(graph, split, (enum rfx_axis)axis, counts[axis][i], work->regions,
                            work->extents + (axis * RFX_TILING_MAX_COUNTS + i) * graph->n_nodes);
            status = rfx_memory_check_stop(work->mem, err);
        }
    }
    if (status == RFX_OK) status = all_reserve(work, (size_t)n[0] * (size_t)n[1], err);
    if (status != RFX_OK) return status;
    struct tail tail = measure_tail(work, split);
    for (int r = 0; r < n[0] && !rfx_memory_is_stopped(work->mem); r++)
        for (int c = 0; c < n[1]; c++)
            work->all[work->n_all++] =
                measure(work, split, counts[0][r], counts[1][c], work->extents + r * graph->n_nodes,
                        work->extents + (RFX_TILING_MAX_COUNTS + c) * graph->n_nodes, tail);
    work->n_all = keep_front(work->all, work->n_all);
    return rfx_memory_check_stop(work->mem, err);
}

static enum rfx_status fill_pareto(struct rfx_curve *curve, struct work *work,
                                   struct rfx_error *err) {
    enum rfx_status status = all_reserve(work, 1, err);
    if (status != RFX_OK) return status;
    work->all[work->n_all++] = curve->untiled;
    for (int s = 0; s < curve->n_points; s++) {
        status = add_grids(work, work->splits[s], err);
        if (status != RFX_OK) return status;
    }
    curve->pareto = rfx_memory_alloc(curve->mem, work->n_all * sizeof *curve->pareto);
    if (curve->pareto == NULL)
        return rfx_memory_fail(curve->mem, "Pareto front", work->n_all * sizeof *curve->pareto,
                               err);
    memcpy(curve->pareto, work->all, work->n_all * sizeof *curve->pareto);
    curve->n_pareto = (int)work->n_all;
    return RFX_OK;
}

static enum rfx_status fill(struct rfx_curve *curve, struct work *work,
                            const struct rfx_curve_request *request, struct rfx_error *err) {
    curve->weights_bytes = work->liveness->weights_bytes;
    curve->untiled = measure_untiled(work);
    curve->n_points = rfx_splits_list(curve->graph, work->splits);
    size_t bytes = (size_t)curve->n_points * sizeof *curve->points;
    curve->points = rfx_memory_alloc(curve->mem, bytes);
    if (curve->points == NULL) return rfx_memory_fail(curve->mem, "curve points", bytes, err);
    enum rfx_status status = fill_points(curve, work, request, err);
    return status == RFX_OK && request->pareto ? fill_pareto(curve, work, err) : status;
}

enum rfx_status rfx_curve_create(const struct rfx_graph *graph,
                                 const struct rfx_curve_request *request, struct rfx_curve **out,
                                 struct rfx_error *err) {
    if (request->tiles_y < 1 || request->tiles_x < 1)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "tiles %lldx%lld: both must be positive",
                        (long long)request->tiles_y, (long long)request->tiles_x);
    struct work work;
    struct rfx_curve *curve = rfx_memory_calloc(graph->mem, 1, sizeof *curve);
    if (curve == NULL) return rfx_memory_fail(graph->mem, "curve", sizeof *curve, err);
    curve->mem = graph->mem;
    curve->graph = graph;
    curve->baseline = request->baseline;
    enum rfx_status status = work_init(&work, graph, request->baseline, err);
    if (status == RFX_OK) status = fill(curve, &work, request, err);
    work_release(&work);
    if (status == RFX_OK)
        *out = curve;
    else
        rfx_curve_free(curve);
    return status;
}

void rfx_curve_free(struct rfx_curve *curve) {
    if (curve == NULL) return;
    rfx_memory_release(curve->mem, curve->points);
    rfx_memory_release(curve->mem, curve->pareto);
    rfx_memory_release(curve->mem, curve);
}

double rfx_curve_macs_ratio(const struct rfx_curve *curve, const struct rfx_curve_point *point) {
    return curve->untiled.macs == 0 ? 1.0 : (double)point->macs / (double)curve->untiled.macs;
}

double rfx_curve_memory_ratio(const struct rfx_curve *curve, const struct rfx_curve_point *point) {
    return point->peak_bytes == 0 ? 1.0
                                  : (double)curve->untiled.peak_bytes / (double)point->peak_bytes;
}

enum rfx_status rfx_curve_footprint(const struct rfx_curve *curve,
                                    const struct rfx_curve_point *point, size_t *bytes,
                                    struct rfx_error *err) {
    struct work work;
    enum rfx_status status = work_init(&work, curve->graph, curve->baseline, err);
    if (status == RFX_OK) {
        const struct rfx_liveness *l = work.liveness;
        int n = curve->graph->n_nodes;
        int split = point != NULL ? point->split : -1;
        int tail = split < 0 ? 0 : split;
        (void)rfx_liveness_peak(l, tail, n, l->whole_bytes, NULL, bytes);
        if (split >= 0) {
            struct rfx_tile_extent *rows = work.extents;
            struct rfx_tile_extent *cols = work.extents + n;
            rfx_tiling_axis(curve->graph, split, RFX_AXIS_ROWS, point->tiles_y, work.regions, rows);
            rfx_tiling_axis(curve->graph, split, RFX_AXIS_COLS, point->tiles_x, work.regions, cols);
            fill_tile_bytes(&work, split, rows, cols);
            (void)rfx_liveness_peak(l, 0, split + 1, work.bytes, NULL, bytes);
            for (int i = 0; i <= split; i++) bytes[i] += l->whole_bytes[split];
        }
        for (int i = 0; i < n; i++) bytes[i] += l->weights_bytes;
    }
    work_release(&work);
    return status;
}

void rfx_curve_square_grid(int64_t tiles, int64_t *tiles_y, int64_t *tiles_x) {
    int64_t rows = 1;
    for (int64_t r = 1; r <= tiles / r; r++)
        if (tiles % r == 0) rows = r;
    *tiles_y = rows;
    *tiles_x = tiles / rows;
}
