/* Geometry of groups, and the graph that has them: see group.h. */
#include "layers/graph/group.h"

#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"

static bool is_inside(int node, int first, int last) {
    return node >= first && node <= last;
}

/* Returns whether a node of the group other than the last is read outside of the group or is an
 * output. Such a node has more consumers than there are inputs of nodes in the group that read
 * it. */
static bool is_read_outside(const struct rfx_graph *base, int first, int last) {
    int inside[RFX_GROUP_MAX_NODES] = {0};
    for (int i = first; i <= last; i++)
        for (int k = 0; k < base->nodes[i].n_in; k++)
            if (base->nodes[i].in[k] >= first) inside[base->nodes[i].in[k] - first]++;
    for (int i = first; i < last; i++)
        if (base->n_consumers[i] > inside[i - first]) return true;
    return false;
}

static bool has_input(const int *inputs, int n, int node) {
    for (int k = 0; k < n; k++)
        if (inputs[k] == node) return true;
    return false;
}

/* Lists the nodes outside of a group that the group reads, and returns their number, or -1 if there
 * are more than RFX_GROUP_MAX_INPUTS. inputs[RFX_GROUP_MAX_INPUTS]. */
static int list_inputs(const struct rfx_graph *base, int first, int last, int *inputs) {
    int n = 0;
    for (int i = first; i <= last; i++)
        for (int k = 0; k < base->nodes[i].n_in; k++) {
            int in = base->nodes[i].in[k];
            if (is_inside(in, first, last) || has_input(inputs, n, in)) continue;
            if (n == RFX_GROUP_MAX_INPUTS) return -1;
            inputs[n++] = in;
        }
    return n;
}

/* Returns whether output position p needs exactly the input range that the axis map gives. A
 * convolution that is computed in blocks needs the input range of the whole block instead. */
static bool is_as_mapped(const struct rfx_graph *base, const struct rfx_node *node, int k, int axis,
                         const struct rfx_axis_map *map, int64_t p) {
    struct rfx_range one = {p, p + 1}, wanted = rfx_axis_map_range(map, one);
    struct rfx_range r = rfx_op_in_range(base, node, k, axis, one);
    return r.lo == wanted.lo && r.hi == wanted.hi;
}

/* Returns whether, away from borders, each input range of a node moves by a whole number of
 * positions when its output range moves by one. The sizes of ring buffers depend on this. Also
 * returns false if an input from inside the group is broadcast. */
static bool moves_evenly(const struct rfx_graph *base, int i, int first) {
    const struct rfx_node *node = &base->nodes[i];
    const struct rfx_op_def *def = rfx_op_def(node->op);
    if (def->in_range != NULL && def->kind != RFX_CLASS_CONVOLUTION) return false;
    for (int k = 0; k < node->n_in; k++)
        for (int axis = 0; axis < 2; axis++) {
            struct rfx_axis_map map = rfx_op_axis_map(base, node, k, axis);
            int64_t n = axis == 0 ? node->out.h : node->out.w;
            if (def->in_range != NULL && (!is_as_mapped(base, node, k, axis, &map, 0) ||
                                          !is_as_mapped(base, node, k, axis, &map, n - 1)))
                return false;
            if (map.rule != RFX_AXIS_EVEN || map.up != 1 || map.down < 1) return false;
            if (map.broadcast && node->in[k] >= first) return false;
        }
    return true;
}

/* Returns whether each map of the group has a single stride relative to the last map: whether the
 * product of the strides is the same along all paths between the two. In tiny maps, paths with
 * different products can meet. */
static bool has_one_scale(const struct rfx_graph *base, int first, int last, int axis) {
    int64_t scale[RFX_GROUP_MAX_NODES] = {0};
    scale[last - first] = 1;
    for (int i = last; i > first; i--) {
        const struct rfx_node *node = &base->nodes[i];
        for (int k = 0; k < node->n_in; k++) {
            int in = node->in[k] - first;
            if (in < 0) continue;
            int64_t own = scale[i - first] * rfx_op_axis_map(base, node, k, axis).down;
            if (scale[in] != 0 && scale[in] != own) return false;
            scale[in] = own;
        }
    }
    return true;
}

const char *rfx_group_refusal(const struct rfx_graph *base, int first, int last) {
    int inputs[RFX_GROUP_MAX_INPUTS];
    if (first < 0 || last >= base->n_nodes || last <= first) return "fewer than two nodes";
    if (last - first >= RFX_GROUP_MAX_NODES) return "more than 12 nodes";
    for (int i = first; i <= last; i++) {
        const struct rfx_node *node = &base->nodes[i];
        if (rfx_node_is_input(node) || rfx_node_is_constant(node)) return "nothing is computed";
        if (rfx_node_is_source(node)) return "nothing is read";
        if (!rfx_node_is_local(node) || node->op == RFX_OP_GROUP || node->op == RFX_OP_INNER)
            return "a node is not local in space";
        if (node->n_in > RFX_GROUP_MAX_INPUTS) return "a node has more than 8 inputs";
        if (!moves_evenly(base, i, first)) return "a node does not move evenly over its input";
    }
    if (!has_one_scale(base, first, last, 0) || !has_one_scale(base, first, last, 1))
        return "ways of different strides meet";
    if (list_inputs(base, first, last, inputs) < 1) return "no input or more than 8";
    return is_read_outside(base, first, last) ? "a map inside is read outside" : NULL;
}

static int64_t extent_of(const struct rfx_node *node, int axis) {
    return axis == 0 ? node->out.h : node->out.w;
}

/* As rfx_group_needs; returns false if a map's border clips a range. */
static bool list_needs(const struct rfx_group_attr *group, int axis, struct rfx_range out,
                       struct rfx_range *need) {
    const struct rfx_graph *base = group->base;
    int n = group->last - group->first + 1;
    bool inside = true;
    for (int i = 0; i < n; i++) need[i] = (struct rfx_range){0, 0};
    need[n - 1] = out;
    for (int i = n - 1; i > 0; i--) {
        const struct rfx_node *node = &base->nodes[group->first + i];
        for (int k = 0; k < node->n_in; k++) {
            int in = node->in[k] - group->first;
            if (in < 0 || need[i].lo >= need[i].hi) continue;
            struct rfx_range r = rfx_op_in_range(base, node, k, axis, need[i]);
            int64_t extent = extent_of(&base->nodes[node->in[k]], axis);
            inside = inside && r.lo >= 0 && r.hi <= extent;
            r.lo = rfx_max_i64(r.lo, 0);
            r.hi = rfx_min_i64(r.hi, extent);
            need[in] = rfx_range_union(need[in], r);
        }
    }
    return inside;
}

void rfx_group_needs(const struct rfx_group_attr *group, int axis, struct rfx_range out,
                     struct rfx_range *need) {
    (void)list_needs(group, axis, out, need);
}

struct rfx_range rfx_group_in_range_by_nodes(const struct rfx_node *node, int k, int axis,
                                             struct rfx_range out) {
    const struct rfx_group_attr *group = &node->attr.group;
    const struct rfx_graph *base = group->base;
    struct rfx_range need[RFX_GROUP_MAX_NODES], all = {out.lo, out.lo};
    rfx_group_needs(group, axis, out, need);
    for (int i = group->first; i <= group->last; i++)
        for (int j = 0; j < base->nodes[i].n_in; j++)
            if (base->nodes[i].in[j] == node->in[k])
                all = rfx_range_union(
                    all, rfx_op_in_range(base, &base->nodes[i], j, axis, need[i - group->first]));
    return all;
}

struct rfx_range rfx_group_in_range(const struct rfx_node *node, int k, int axis,
                                    struct rfx_range out) {
    const struct rfx_group_reach *reach = &node->attr.group.reach[axis];
    bool known = k < RFX_GROUP_REACH_INPUTS && reach->in[k].scale != 0 &&
                 rfx_max_i64(out.lo, reach->lo) < rfx_min_i64(out.hi, reach->hi);
    known = known && (out.lo >= reach->lo || out.lo == 0) &&
            (out.hi <= reach->hi || out.hi == extent_of(node, axis));
    if (!known) return rfx_group_in_range_by_nodes(node, k, axis, out);
    struct rfx_range in = {reach->in[k].scale * out.lo + reach->in[k].first,
                           reach->in[k].scale * (out.hi - 1) + reach->in[k].end};
    if (out.lo < reach->lo) in.lo = reach->in[k].low;
    if (out.hi > reach->hi) in.hi = reach->in[k].high;
    return in;
}

/* The ranges that the first output position needs of each map, as if there were no borders, and the
 * number of positions by which each range moves per output position. */
struct endless {
    struct rfx_range need[RFX_GROUP_MAX_NODES];
    int64_t scale[RFX_GROUP_MAX_NODES];
};

static struct endless find_endless(const struct rfx_group_attr *group, int axis) {
    int last = group->last - group->first;
    struct endless e = {.scale = {0}};
    e.need[last] = (struct rfx_range){0, 1};
    e.scale[last] = 1;
    for (int i = last; i > 0; i--) {
        const struct rfx_node *node = &group->base->nodes[group->first + i];
        for (int k = 0; k < node->n_in; k++) {
            int in = node->in[k] - group->first;
            if (in < 0) continue;
            e.need[in] = rfx_range_union(
                e.need[in], rfx_op_endless_range(group->base, node, k, axis, e.need[i]));
            e.scale[in] = e.scale[i] * rfx_op_axis_map(group->base, node, k, axis).down;
        }
    }
    return e;
}

/* Returns the range of the output for which no map of the group is read over its border. */
static struct rfx_range find_inside(const struct rfx_group_attr *group, int axis,
                                    const struct endless *e) {
    struct rfx_range inside = {0, extent_of(&group->base->nodes[group->last], axis)};
    for (int i = 0; i < group->last - group->first; i++) {
        if (e->scale[i] == 0) continue; /* no node needs it */
        int64_t extent = extent_of(&group->base->nodes[group->first + i], axis);
        inside.lo = rfx_max_i64(inside.lo, rfx_ceil_div(-e->need[i].lo, e->scale[i]));
        inside.hi = rfx_min_i64(inside.hi, rfx_floor_div(extent - e->need[i].hi, e->scale[i]) + 1);
    }
    return inside;
}

/* Fills reach->in[k], the range that the group reads of input k. Leaves its scale 0 if the range
 * does not have that form (struct rfx_group_reach), such as when nodes read the input with
 * different strides. */
static void find_reach_of(const struct rfx_node *node, int k, int axis, const struct endless *e,
                          struct rfx_group_reach *reach) {
    const struct rfx_group_attr *group = &node->attr.group;
    struct rfx_range all = {0, 0};
    int64_t scale = 0;
    for (int i = group->first; i <= group->last; i++) {
        const struct rfx_node *reader = &group->base->nodes[i];
        for (int j = 0; j < reader->n_in; j++) {
            if (reader->in[j] != node->in[k]) continue;
            struct rfx_axis_map map = rfx_op_axis_map(group->base, reader, j, axis);
            int64_t own = e->scale[i - group->first] * map.down;
            if (map.broadcast || own == 0 || (scale != 0 && own != scale)) return;
            all = rfx_range_union(
                all, rfx_op_endless_range(group->base, reader, j, axis, e->need[i - group->first]));
            scale = own;
        }
    }
    struct rfx_range every = {0, extent_of(node, axis)};
    struct rfx_range whole = rfx_group_in_range_by_nodes(node, k, axis, every);
    int64_t least = rfx_min_i64(all.lo, whole.lo), most = rfx_max_i64(all.hi, whole.hi);
    if (scale > INT32_MAX || least < INT32_MIN || most > INT32_MAX) return;
    reach->in[k].low = (int32_t)whole.lo;
    reach->in[k].high = (int32_t)whole.hi;
    reach->in[k].first = (int32_t)all.lo;
    reach->in[k].end = (int32_t)all.hi;
    reach->in[k].scale = (int32_t)scale;
}

static void find_reach(struct rfx_node *node) {
    for (int axis = 0; axis < 2; axis++) {
        struct rfx_group_reach *reach = &node->attr.group.reach[axis];
        struct endless e = find_endless(&node->attr.group, axis);
        struct rfx_range inside = find_inside(&node->attr.group, axis, &e);
        *reach = (struct rfx_group_reach){.lo = 0};
        if (inside.lo >= inside.hi || inside.hi > INT32_MAX) continue;
        reach->lo = (int32_t)inside.lo;
        reach->hi = (int32_t)inside.hi;
        for (int k = 0; k < node->n_in && k < RFX_GROUP_REACH_INPUTS; k++)
            find_reach_of(node, k, axis, &e, reach);
    }
}

bool rfx_group_is_inside(const struct rfx_group_attr *group, int axis, struct rfx_range out) {
    const struct rfx_group_reach *reach = &group->reach[axis];
    struct rfx_range need[RFX_GROUP_MAX_NODES];
    if (reach->lo < reach->hi && out.lo < out.hi) return out.lo >= reach->lo && out.hi <= reach->hi;
    return list_needs(group, axis, out, need);
}

void rfx_group_made(const struct rfx_group_attr *group, int axis, struct rfx_range out,
                    int64_t parts, int64_t *made) {
    struct rfx_range need[RFX_GROUP_MAX_NODES];
    int n = group->last - group->first + 1;
    for (int i = 0; i < n; i++) made[i] = 0;
    for (int64_t p = 0; p < parts; p++) {
        rfx_group_needs(group, axis, rfx_range_part(out, p, parts), need);
        for (int i = 0; i < n; i++) made[i] += rfx_range_size(need[i]);
    }
}

void rfx_group_extents(const struct rfx_group_attr *group, int axis, int64_t size,
                       int64_t *extents) {
    const struct rfx_graph *base = group->base;
    struct rfx_range need[RFX_GROUP_MAX_NODES];
    int n = group->last - group->first + 1;
    for (int i = 0; i < n; i++) need[i] = (struct rfx_range){0, 0};
    need[n - 1] = (struct rfx_range){0, size};
    for (int i = n - 1; i >= 0; i--) {
        const struct rfx_node *node = &base->nodes[group->first + i];
        for (int k = 0; k < node->n_in; k++) {
            int in = node->in[k] - group->first;
            if (in < 0) continue;
            need[in] =
                rfx_range_union(need[in], rfx_op_endless_range(base, node, k, axis, need[i]));
        }
        extents[i] = rfx_min_i64(rfx_range_size(need[i]), extent_of(node, axis));
    }
}

#define LEAST_COLS 8 /* least columns of a strip: narrower strips mostly compute halo */

int64_t rfx_group_strips(const struct rfx_group_attr *group, int64_t cols) {
    int64_t wide = rfx_ceil_div(cols, group->strip_cols), each = (group->strips + 1) / 2;
    int64_t most = rfx_max_i64(1, cols / LEAST_COLS), even = rfx_ceil_div(wide, each) * each;
    return rfx_max_i64(even <= most ? even : wide, rfx_min_i64(group->strips, most));
}

#define PIECES 4      /* pieces per strip with group->strips strips; fewer with more strips */
#define LEAST_ROWS 32 /* least rows of a piece */

int64_t rfx_group_row_parts(const struct rfx_group_attr *group, int64_t rows, int64_t strips) {
    if (group->strips <= 1) return 1;
    int64_t want = rfx_ceil_div(PIECES * group->strips, strips);
    return rfx_max_i64(1, rfx_min_i64(want, rows / LEAST_ROWS));
}

size_t rfx_group_ring_bytes(const struct rfx_group_attr *group) {
    int64_t rows[RFX_GROUP_MAX_NODES], cols[RFX_GROUP_MAX_NODES];
    rfx_group_extents(group, 0, group->step_rows, rows);
    rfx_group_extents(group, 1, group->strip_cols, cols);
    size_t bytes = 0;
    for (int i = 0; i < group->last - group->first; i++)
        bytes += rfx_align_up(
            rfx_tensor_pixel_bytes(&group->base->nodes[group->first + i].out, rows[i] * cols[i]));
    return bytes;
}

/* Copies node `from` of the base graph to `to`. The copy has operator `op` and inputs in[n_in], and
 * owns its name, alias and list of inputs. If `op` is another operator, the copy has no activation
 * and no residual. */
static enum rfx_status copy_node(struct rfx_graph *graph, const struct rfx_node *from,
                                 enum rfx_op op, const int *in, int n_in, struct rfx_node *to,
                                 struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t bytes = (size_t)n_in * sizeof *in;
    int *inputs = rfx_memory_alloc(mem, bytes + 1);
    char *name = rfx_memory_strdup(mem, from->name);
    char *alias = from->alias == NULL ? NULL : rfx_memory_strdup(mem, from->alias);
    if (inputs == NULL || name == NULL || (from->alias != NULL && alias == NULL)) {
        rfx_memory_release(mem, inputs);
        rfx_memory_release(mem, name);
        rfx_memory_release(mem, alias);
        return rfx_memory_fail(mem, "grouped nodes", bytes, err);
    }
    if (bytes != 0) memcpy(inputs, in, bytes);
    *to = *from;
    to->op = op;
    to->name = name;
    to->alias = alias;
    to->n_in = n_in;
    to->in = inputs;
    if (op == from->op) return RFX_OK;
    to->act = (struct rfx_act){.slope = -1};
    to->residual = false;
    return RFX_OK;
}

static void count_consumers(struct rfx_graph *graph) {
    memset(graph->n_consumers, 0, (size_t)graph->n_nodes * sizeof *graph->n_consumers);
    for (int i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_in; k++) graph->n_consumers[graph->nodes[i].in[k]]++;
    for (int k = 0; k < graph->n_outputs; k++) graph->n_consumers[graph->outputs[k].node]++;
}

static enum rfx_status copy_nodes(struct rfx_graph *graph, const struct rfx_group_attr *groups,
                                  int n_groups, struct rfx_error *err) {
    const struct rfx_graph *base = graph->base;
    for (int i = 0, g = 0; i < base->n_nodes; i++, graph->n_nodes++) {
        const struct rfx_node *from = &base->nodes[i];
        struct rfx_node *to = &graph->nodes[i];
        while (g < n_groups && groups[g].last < i) g++;
        bool grouped = g < n_groups && i >= groups[g].first;
        enum rfx_status status;
        if (!grouped) {
            status = copy_node(graph, from, from->op, from->in, from->n_in, to, err);
        } else if (i < groups[g].last) {
            status = copy_node(graph, from, RFX_OP_INNER, NULL, 0, to, err);
        } else {
            int inputs[RFX_GROUP_MAX_INPUTS];
            int n = list_inputs(base, groups[g].first, i, inputs);
            status = copy_node(graph, from, RFX_OP_GROUP, inputs, n, to, err);
            if (status == RFX_OK) to->attr.group = groups[g];
            if (status == RFX_OK) to->attr.group.base = base;
            if (status == RFX_OK) find_reach(to);
        }
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

enum rfx_status rfx_graph_group(const struct rfx_graph *base, const struct rfx_group_attr *groups,
                                int n_groups, struct rfx_graph **out, struct rfx_error *err) {
    struct rfx_memory *mem = base->mem;
    size_t n = (size_t)base->n_nodes, before = rfx_memory_current_bytes(mem);
    struct rfx_graph *graph = rfx_memory_calloc(mem, 1, sizeof *graph);
    if (graph == NULL) return rfx_memory_fail(mem, "grouped graph", sizeof *graph, err);
    *graph = *base;
    graph->base = base;
    graph->n_nodes = 0;
    graph->nodes = rfx_memory_calloc(mem, n, sizeof *graph->nodes);
    graph->n_consumers = rfx_memory_calloc(mem, n, sizeof *graph->n_consumers);
    enum rfx_status status = RFX_OK;
    if (graph->nodes == NULL || graph->n_consumers == NULL)
        status = rfx_memory_fail(mem, "grouped graph", n * sizeof *graph->nodes, err);
    if (status == RFX_OK) status = copy_nodes(graph, groups, n_groups, err);
    if (status != RFX_OK) {
        rfx_graph_free(graph);
        return status;
    }
    count_consumers(graph);
    graph->held_bytes += rfx_memory_current_bytes(mem) - before;
    *out = graph;
    return RFX_OK;
}
