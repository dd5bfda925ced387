/* A group of nodes that is computed depth first, and the placeholder of its inner nodes (group.h).
 *
 * A rectangle is cut into column strips, and tall rectangles also into runs of rows. Threads share
 * the resulting pieces. Within a piece, a few output rows at a time pass through all nodes. Each
 * node computes the new rows of its map into a ring buffer in the thread's scratch; the last node
 * writes into the output. Rows that two pieces need are computed by both. Every node is computed by
 * its own operator, as in a separate call. */
#include "layers/graph/group.h"
#include "layers/core/checked.h"
#include "layers/graph/infer.h"
#include "layers/graph/op.h"
#include "layers/graph/units.h"

static enum rfx_status refuse(const struct rfx_graph *graph, struct rfx_node *node,
                              struct rfx_error *err) {
    (void)graph;
    return rfx_infer_refuse(node, err, "groups are made from graphs, not added to them");
}

static int count_of(const struct rfx_group_attr *g) {
    return g->last - g->first + 1;
}

static const struct rfx_node *member(const struct rfx_group_attr *g, int i) {
    return &g->base->nodes[g->first + i];
}

static struct rfx_range group_in_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                       int k, int axis, struct rfx_range out) {
    (void)graph;
    return rfx_group_in_range(node, k, axis, out);
}

/* Only the rule of this map is used: in_range gives the required regions, and analysis works on the
 * base graph. */
static struct rfx_axis_map group_axis_map(const struct rfx_graph *graph,
                                          const struct rfx_node *node, int k, int axis) {
    const struct rfx_group_attr *g = &node->attr.group;
    struct rfx_axis_map map = rfx_axis_map_identity();
    (void)graph;
    for (int i = 0; i < count_of(g); i++)
        for (int j = 0; j < member(g, i)->n_in; j++)
            if (member(g, i)->in[j] == node->in[k])
                map = rfx_op_axis_map(g->base, member(g, i), j, axis);
    return map;
}

typedef uint64_t macs_of_rect(const struct rfx_graph *graph, const struct rfx_node *node,
                              struct rfx_rect out);

/* Returns the sum of what `macs_of` counts of the nodes. */
static uint64_t sum_macs(const struct rfx_group_attr *g, struct rfx_rect out,
                         macs_of_rect *macs_of) {
    int64_t rows[RFX_GROUP_MAX_NODES], cols[RFX_GROUP_MAX_NODES];
    if (rfx_rect_is_empty(out)) return 0;
    uint64_t macs = 0;
    int64_t strips = rfx_group_strips(g, rfx_rect_cols(out));
    int64_t parts = rfx_group_row_parts(g, rfx_rect_rows(out), strips);
    rfx_group_made(g, 0, rfx_rect_row_range(out), parts, rows);
    rfx_group_made(g, 1, rfx_rect_col_range(out), strips, cols);
    for (int i = 0; i < count_of(g); i++)
        macs += macs_of(g->base, member(g, i), rfx_rect_full(rows[i], cols[i]));
    return macs;
}

static uint64_t group_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                           struct rfx_rect out) {
    (void)graph;
    return sum_macs(&node->attr.group, out, rfx_op_macs);
}

static uint64_t group_int_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                               struct rfx_rect out) {
    (void)graph;
    return sum_macs(&node->attr.group, out, rfx_op_int_macs);
}

static bool group_calls_blas(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_group_attr *g = &node->attr.group;
    (void)graph;
    for (int i = 0; i < count_of(g); i++)
        if (rfx_op_calls_blas(g->base, member(g, i))) return true;
    return false;
}

static size_t packed_of_member(const struct rfx_group_attr *g, int i) {
    return rfx_align_up(rfx_op_packed_bytes(g->base, member(g, i)));
}

static size_t group_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_group_attr *g = &node->attr.group;
    size_t bytes = 0;
    (void)graph;
    for (int i = 0; i < count_of(g); i++) bytes += packed_of_member(g, i);
    return bytes;
}

static enum rfx_status group_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                  void *packed, const struct rfx_pack_part *part,
                                  struct rfx_error *err) {
    const struct rfx_group_attr *g = &node->attr.group;
    unsigned char *at = packed;
    enum rfx_status status = RFX_OK;
    (void)graph;
    for (int i = 0; status == RFX_OK && i < count_of(g); i++) {
        status = rfx_op_pack_part(g->base, member(g, i), at, part, err);
        at += packed_of_member(g, i);
    }
    return status;
}

/* Returns the scratch bytes of one thread: the ring buffers, then the largest scratch of any
 * node. */
static size_t thread_scratch(const struct rfx_group_attr *g) {
    size_t most = 0;
    for (int i = 0; i < count_of(g); i++) {
        size_t bytes = rfx_align_up(rfx_op_scratch_bytes(g->base, member(g, i), 1));
        if (bytes > most) most = bytes;
    }
    return rfx_group_ring_bytes(g) + most;
}

static size_t group_scratch(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads) {
    (void)graph;
    return (size_t)threads * thread_scratch(&node->attr.group);
}

/* A run, divided into pieces for the threads. */
struct pieces {
    const struct rfx_run_args *args;
    struct rfx_units grid;             /* columns: strips; rows: runs of rows */
    size_t scratch_bytes, rings_bytes; /* of one thread, whose scratch begins with the rings */
    int64_t ring_rows[RFX_GROUP_MAX_NODES];
};

/* The state of a piece while its rows pass through the nodes. */
struct piece {
    const struct rfx_run_args *args;
    const struct rfx_group_attr *g;
    struct rfx_range cols[RFX_GROUP_MAX_NODES], need[RFX_GROUP_MAX_NODES]; /* rows of this step */
    int64_t done[RFX_GROUP_MAX_NODES];         /* end of the rows computed so far */
    struct rfx_view ring[RFX_GROUP_MAX_NODES]; /* the last node's is the output */
    void *scratch;
};

/* Begins a piece: places the ring buffers of the maps between the nodes one after another in
 * scratch. */
static void begin_piece(struct piece *s, const struct pieces *p, struct rfx_range cols,
                        void *scratch) {
    const struct rfx_group_attr *g = &p->args->node->attr.group;
    const int64_t *rows = p->ring_rows;
    int last = g->last - g->first;
    unsigned char *at = scratch;
    s->args = p->args;
    s->g = g;
    rfx_group_needs(g, 1, cols, s->cols);
    for (int i = 0; i < last; i++) {
        const struct rfx_tensor *t = &member(g, i)->out;
        s->ring[i] = rfx_view_of(t, at, rfx_rect_from_ranges(s->cols[i], s->cols[i]));
        s->ring[i].ring_rows = rows[i];
        s->done[i] = 0;
        at += rfx_align_up(rfx_tensor_pixel_bytes(t, rows[i] * rfx_range_size(s->cols[i])));
    }
    s->ring[last] = p->args->out;
    s->scratch = (unsigned char *)scratch + p->rings_bytes;
}

/* Returns the view of input j of node i. */
static struct rfx_view input_of(const struct piece *s, int i, int j) {
    int in = member(s->g, i)->in[j], k = 0;
    if (in >= s->g->first) return s->ring[in - s->g->first];
    while (s->args->node->in[k] != in) k++;
    return s->args->in[k];
}

static void run_member(const struct piece *s, int i, struct rfx_range rows, const void *packed) {
    const struct rfx_node *node = member(s->g, i);
    struct rfx_view in[RFX_GROUP_MAX_INPUTS];
    for (int j = 0; j < node->n_in; j++) in[j] = input_of(s, i, j);
    struct rfx_run_args args = {
        .graph = s->g->base,
        .node = node,
        .in = in,
        .out = s->ring[i],
        .rect = rfx_rect_from_ranges(rows, s->cols[i]),
        .packed = packed,
        .scratch = s->scratch,
        .threads = 1,
    };
    rfx_op_def(node->op)->run(&args);
}

/* Computes output rows [y0, y1) of a piece through all nodes. */
static void step_down(struct piece *s, int64_t y0, int64_t y1) {
    int last = s->g->last - s->g->first;
    const unsigned char *packed = s->args->packed;
    rfx_group_needs(s->g, 0, (struct rfx_range){y0, y1}, s->need);
    for (int i = 0; i <= last; i++) {
        struct rfx_range rows = {rfx_max_i64(s->done[i], s->need[i].lo), s->need[i].hi};
        if (i == last) rows = (struct rfx_range){y0, y1};
        if (i < last) s->ring[i].rect = rfx_rect_from_ranges(s->need[i], s->cols[i]);
        if (rows.lo < rows.hi && s->cols[i].lo < s->cols[i].hi) run_member(s, i, rows, packed);
        if (rows.hi > s->done[i]) s->done[i] = rows.hi;
        packed += packed_of_member(s->g, i);
    }
}

static void run_piece(const struct pieces *p, struct rfx_rect r, void *scratch) {
    struct piece s;
    int64_t step = p->args->node->attr.group.step_rows;
    begin_piece(&s, p, rfx_rect_col_range(r), scratch);
    for (int64_t y = r.y0; y < r.y1 && !rfx_team_must_stop(p->args->team); y += step)
        step_down(&s, y, rfx_min_i64(y + step, r.y1));
}

static void run_one_piece(void *user, int64_t index, int thread) {
    const struct pieces *p = user;
    char *scratch = (char *)p->args->scratch + (size_t)thread * p->scratch_bytes;
    run_piece(p, rfx_units_part(p->args->rect, p->grid, index), scratch);
}

static void group_run(const struct rfx_run_args *args) {
    const struct rfx_group_attr *g = &args->node->attr.group;
    struct pieces pieces = {.args = args};
    pieces.grid.across = rfx_group_strips(g, rfx_rect_cols(args->rect));
    pieces.grid.down = rfx_group_row_parts(g, rfx_rect_rows(args->rect), pieces.grid.across);
    pieces.scratch_bytes = thread_scratch(g);
    pieces.rings_bytes = rfx_group_ring_bytes(g);
    rfx_group_extents(g, 0, g->step_rows, pieces.ring_rows);
    rfx_team_for(args->team, pieces.grid.down * pieces.grid.across, run_one_piece, &pieces);
}

const struct rfx_op_def rfx_op_group = {
    .name = "Group",
    .spatial = true,
    .infer = refuse,
    .axis_map = group_axis_map,
    .in_range = group_in_range,
    .rect_macs = group_macs,
    .int_macs = group_int_macs,
    .calls_blas = group_calls_blas,
    .scratch_bytes = group_scratch,
    .packed_bytes = group_packed_bytes,
    .pack = group_pack,
    .run = group_run,
};

const struct rfx_op_def rfx_op_inner = {.name = "Inner", .spatial = true, .infer = refuse};
