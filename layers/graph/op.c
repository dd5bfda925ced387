/* The table of operators, and the wrappers that apply the rules for absent members. */
#include "layers/graph/op.h"

#include "layers/graph/units.h"

static const struct rfx_op_def *const op_table[] = {
#define RFX_OP_ROW(op, def) [op] = &(def),
    RFX_OP_LIST(RFX_OP_ROW)
#undef RFX_OP_ROW
};
_Static_assert(sizeof op_table / sizeof op_table[0] == RFX_OP_COUNT, "one row per op");

const struct rfx_op_def *rfx_op_def(enum rfx_op op) {
    return op_table[op];
}

bool rfx_op_takes(enum rfx_op op, enum rfx_type type) {
    unsigned types = op_table[op]->types;
    return ((types != 0 ? types : RFX_TYPE_BIT(RFX_TYPE_FLOAT32)) >> type & 1U) != 0;
}

bool rfx_node_is_local(const struct rfx_node *node) {
    return op_table[node->op]->spatial && node->out.layout == RFX_LAYOUT_NHWC;
}

bool rfx_node_has_large_windows(const struct rfx_node *node) {
    const struct rfx_window_attention_attr *a = &node->attr.window_attention;
    return node->op == RFX_OP_WINDOW_ATTENTION && a->h * a->w > RFX_WINDOW_MOST_BIASED;
}

bool rfx_node_runs_by_rows(const struct rfx_node *node) {
    /* If it were computed in parts, it would cost more. */
    bool at_once = op_table[node->op]->rect_macs != NULL;
    return rfx_node_is_local(node) && !rfx_node_is_input(node) && !at_once;
}

struct rfx_axis_map rfx_op_map_identity(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis) {
    (void)graph;
    (void)node;
    (void)k;
    (void)axis;
    return rfx_axis_map_identity();
}

struct rfx_axis_map rfx_op_map_broadcast(const struct rfx_graph *graph, const struct rfx_node *node,
                                         int k, int axis) {
    const struct rfx_tensor *in = &graph->nodes[node->in[k]].out;
    struct rfx_axis_map map = rfx_axis_map_identity();
    map.broadcast = axis == 0 ? in->h == 1 && node->out.h != 1 : in->w == 1 && node->out.w != 1;
    return map;
}

struct rfx_axis_map rfx_op_map_window(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis) {
    (void)graph;
    (void)k;
    struct rfx_window w = rfx_op_window(node);
    return rfx_axis_map_window(w.kernel[axis], w.dilation[axis], w.stride[axis],
                               axis == 0 ? w.pads.top : w.pads.left);
}

struct rfx_axis_map rfx_op_map_transposed(const struct rfx_graph *graph,
                                          const struct rfx_node *node, int k, int axis) {
    (void)graph;
    (void)k;
    struct rfx_window w = rfx_op_window(node);
    return rfx_axis_map_transposed(w.kernel[axis], w.dilation[axis], w.stride[axis],
                                   axis == 0 ? w.pads.top : w.pads.left);
}

struct rfx_window rfx_op_window(const struct rfx_node *node) {
    struct rfx_window window = {{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
    const struct rfx_op_def *def = op_table[node->op];
    if (def->window != NULL) def->window(node, &window);
    return window;
}

struct rfx_axis_map rfx_op_axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                    int k, int axis) {
    const struct rfx_op_def *def = op_table[node->op];
    return def->spatial ? def->axis_map(graph, node, k, axis) : rfx_axis_map_identity();
}

struct rfx_range rfx_op_in_range(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                                 int axis, struct rfx_range out) {
    const struct rfx_op_def *def = op_table[node->op];
    const struct rfx_tensor *in = &graph->nodes[node->in[k]].out;
    const struct rfx_range whole = {0, axis == 0 ? in->h : in->w};
    if (!def->spatial || in->layout == RFX_LAYOUT_PLAIN) return whole;
    if (def->axis_map == rfx_op_map_identity) return out;
    if (def->in_range != NULL) return def->in_range(graph, node, k, axis, out);
    struct rfx_axis_map map = def->axis_map(graph, node, k, axis);
    return rfx_axis_map_range(&map, out);
}

bool rfx_op_needs_same(const struct rfx_node *node) {
    const struct rfx_op_def *def = op_table[node->op];
    bool rows = def->spatial && node->out.layout != RFX_LAYOUT_PLAIN;
    return rows && def->axis_map == rfx_op_map_identity;
}

struct rfx_rect rfx_op_in_rect(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                               struct rfx_rect out) {
    return rfx_rect_from_ranges(rfx_op_in_range(graph, node, k, 0, rfx_rect_row_range(out)),
                                rfx_op_in_range(graph, node, k, 1, rfx_rect_col_range(out)));
}

struct rfx_range rfx_op_endless_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis, struct rfx_range out) {
    const struct rfx_op_def *def = op_table[node->op];
    if (def->endless_range != NULL) return def->endless_range(graph, node, k, axis, out);
    struct rfx_axis_map map = rfx_op_axis_map(graph, node, k, axis);
    return rfx_axis_map_hull(&map, out);
}

struct rfx_axis_place rfx_op_axis_place(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis) {
    const struct rfx_op_def *def = op_table[node->op];
    const struct rfx_axis_place unknown = {false, 1.0, 0.0};
    bool maps = def->spatial && node->out.layout == RFX_LAYOUT_NHWC &&
                graph->nodes[node->in[k]].out.layout == RFX_LAYOUT_NHWC;
    if (!maps) return unknown;
    if (def->axis_place != NULL) return def->axis_place(graph, node, k, axis);
    struct rfx_axis_map map = def->axis_map(graph, node, k, axis);
    return rfx_axis_map_place(&map);
}

const struct rfx_weight_slot *rfx_op_weight_slot(enum rfx_op op, enum rfx_weight_role role) {
    const struct rfx_weight_slot *slot = op_table[op]->weights;
    for (; slot != NULL && slot->name != NULL; slot++)
        if (slot->role == role) return slot;
    return NULL;
}

int64_t rfx_node_weight_elems(const struct rfx_graph *graph, const struct rfx_node *node,
                              enum rfx_weight_role role) {
    const struct rfx_weight_slot *slot = rfx_op_weight_slot(node->op, role);
    int index = slot == NULL ? -1 : *rfx_node_weight_at(node, slot);
    return index < 0 ? 0 : graph->weights[index].elems;
}

bool rfx_op_shifts(const struct rfx_graph *graph, const struct rfx_node *node) {
    for (int k = 0; k < node->n_in; k++)
        for (int axis = 0; axis < 2; axis++)
            if (!rfx_axis_map_shifts(rfx_op_axis_map(graph, node, k, axis).rule)) return false;
    return true;
}

bool rfx_op_sees_all(const struct rfx_graph *graph, const struct rfx_node *node) {
    if (node->n_in == 0) return false;
    if (!op_table[node->op]->spatial) return true;
    for (int k = 0; k < node->n_in; k++)
        if (rfx_op_axis_map(graph, node, k, 0).rule == RFX_AXIS_SIZED) return true;
    return false;
}

uint64_t rfx_op_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                     struct rfx_rect out) {
    const struct rfx_op_def *def = op_table[node->op];
    if (def->rect_macs != NULL) return def->rect_macs(graph, node, out);
    return def->macs == NULL ? 0 : def->macs(graph, node, (uint64_t)rfx_rect_area(out));
}

uint64_t rfx_op_int_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                         struct rfx_rect out) {
    const struct rfx_op_def *def = op_table[node->op];
    return def->int_macs == NULL ? 0 : def->int_macs(graph, node, out);
}

size_t rfx_op_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads) {
    const struct rfx_op_def *def = op_table[node->op];
    return def->scratch_bytes == NULL ? 0 : def->scratch_bytes(graph, node, threads);
}

bool rfx_op_calls_blas(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_op_def *def = op_table[node->op];
    return def->calls_blas != NULL && def->calls_blas(graph, node);
}

size_t rfx_op_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_op_def *def = op_table[node->op];
    return def->packed_bytes == NULL ? 0 : def->packed_bytes(graph, node);
}

bool rfx_op_in_place_elementwise(const struct rfx_graph *graph, const struct rfx_node *node,
                                 int k) {
    const struct rfx_tensor *in = &graph->nodes[node->in[k]].out;
    const struct rfx_tensor *out = &node->out;
    return in->layout == out->layout && in->type == out->type && in->elems == out->elems &&
           in->c == out->c && in->h == out->h && in->w == out->w;
}

const char *rfx_op_backend(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_op_def *def = op_table[node->op];
    return def->backend == NULL ? "" : def->backend(graph, node);
}

uint64_t rfx_op_moved_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            struct rfx_rect out) {
    if (op_table[node->op]->view) return 0;
    uint64_t bytes = rfx_tensor_pixel_bytes(&node->out, rfx_rect_area(out));
    bytes += rfx_op_packed_bytes(graph, node);
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_tensor *in = &graph->nodes[node->in[k]].out;
        struct rfx_rect need =
            rfx_rect_intersect(rfx_op_in_rect(graph, node, k, out), rfx_rect_full(in->h, in->w));
        bytes += rfx_tensor_pixel_bytes(in, rfx_rect_area(need));
    }
    return bytes;
}

enum rfx_status rfx_op_pack_part(const struct rfx_graph *graph, const struct rfx_node *node,
                                 void *packed, const struct rfx_pack_part *part,
                                 struct rfx_error *err) {
    const struct rfx_op_def *def = op_table[node->op];
    return def->pack == NULL ? RFX_OK : def->pack(graph, node, packed, part, err);
}

/* Returns the bytes of a temporary buffer for a node's weights alone: small weights need little. */
static size_t temp_bytes_of(const struct rfx_graph *graph, const struct rfx_node *node) {
    size_t packed = rfx_op_packed_bytes(graph, node);
    size_t least = RFX_PACK_MIN_TEMP_ELEMS * sizeof(float);
    if (packed >= RFX_PACK_TEMP_BYTES / 8) return RFX_PACK_TEMP_BYTES;
    return rfx_align_up(8 * packed < least ? least : 8 * packed);
}

enum rfx_status rfx_op_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                            void *packed, struct rfx_error *err) {
    if (op_table[node->op]->pack == NULL) return RFX_OK;
    size_t bytes = temp_bytes_of(graph, node);
    struct rfx_pack_part all = {.count = 1, .temp_elems = (int64_t)(bytes / sizeof(float))};
    all.temp = rfx_memory_alloc(graph->mem, bytes);
    if (all.temp == NULL) return rfx_memory_fail(graph->mem, "packing weights", bytes, err);
    enum rfx_status status = rfx_op_pack_part(graph, node, packed, &all, err);
    rfx_memory_release(graph->mem, all.temp);
    return status;
}

static void run_in_team(struct rfx_team *team, void *user) {
    struct rfx_run_args args = *(const struct rfx_run_args *)user;
    args.threads = rfx_team_threads(team);
    args.team = team;
    rfx_op_def(args.node->op)->run(&args);
}

void rfx_op_run(const struct rfx_run_args *args) {
    struct rfx_run_args copy = *args;
    rfx_team_run(args->threads, run_in_team, &copy);
}

struct op_loop {
    const struct rfx_run_args *args;
    void (*work)(const struct rfx_run_args *args, int64_t index);
};

static void one_index(void *user, int64_t index, int thread) {
    const struct op_loop *loop = user;
    (void)thread;
    loop->work(loop->args, index);
}

void rfx_op_share(const struct rfx_run_args *args, int64_t count,
                  void (*work)(const struct rfx_run_args *args, int64_t index)) {
    struct op_loop loop = {args, work};
    rfx_team_for(args->team, count, one_index, &loop);
}

struct row_loop {
    const struct rfx_run_args *args;
    void (*row)(const struct rfx_run_args *args, int64_t y);
    struct rfx_units grid; /* one row per unit, cut into column ranges */
};

static void one_row(void *user, int64_t index, int thread) {
    const struct row_loop *loop = user;
    struct rfx_run_args args = *loop->args;
    (void)thread;
    args.rect = rfx_units_part(loop->args->rect, loop->grid, index);
    loop->row(&args, args.rect.y0);
}

void rfx_op_share_rows(const struct rfx_run_args *args, bool share,
                       void (*row)(const struct rfx_run_args *args, int64_t y)) {
    struct row_loop loop = {args, row, {rfx_rect_rows(args->rect), 1}};
    if (share) loop.grid.across = rfx_units_beside(rfx_rect_cols(args->rect), args->threads);
    rfx_team_for(share ? args->team : NULL, loop.grid.down * loop.grid.across, one_row, &loop);
}
