/* Regions of all tiles of an axis, those of alike tiles once.
 *
 * Away from borders the region of a node for a tile moves on with the tile. That is proven, not
 * guessed: between two tiles for which no region is cut off at a border, none is, and then its
 * first position is the least of some that grow evenly (one per way from the target to the node),
 * its last the greatest of such. A least of lines that has three points on one line, two of them
 * next to each other, is that line between them; so has a greatest. */
#include "layers/core/checked.h"
#include "layers/graph/group.h"
#include "layers/graph/op.h"
#include "tiler/plan/stage.h"

#define FEWEST_TILES 12 /* that are worth the trouble */

struct sweep {
    const struct rfx_graph *graph;
    const enum rfx_node_place *places;
    enum rfx_axis axis;
    int64_t n;
};

static bool moves_evenly(const struct sweep *s, int i) {
    const struct rfx_node *node = &s->graph->nodes[i];
    if (s->places[i] == RFX_PLACE_FETCHED) return true;
    if (node->op == RFX_OP_GROUP) return true; /* its nodes do: group.c refuses others */
    for (int k = 0; k < node->n_in; k++) {
        struct rfx_axis_map map = rfx_op_axis_map(s->graph, node, k, (int)s->axis);
        if (map.rule != RFX_AXIS_EVEN || map.up != 1 || map.down < 1) return false;
    }
    return true;
}

/* Positions of the targets, when all have as many and every region moves evenly; 0: not so. */
static int64_t even_extent(const struct sweep *s) {
    const struct rfx_graph *graph = s->graph;
    int64_t extent = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        enum rfx_node_place place = s->places[i];
        if (!rfx_place_is_computed(place)) continue;
        if (place != RFX_PLACE_REDUCED && !moves_evenly(s, i)) return 0;
        if (place <= RFX_PLACE_LOCAL) continue;
        int target = place == RFX_PLACE_REDUCED ? graph->nodes[i].in[0] : i;
        int64_t own = rfx_node_extent(&graph->nodes[target], s->axis);
        if (extent != 0 && own != extent) return 0;
        extent = own;
    }
    return extent;
}

static bool are_equal(struct rfx_range a, struct rfx_range b) {
    return a.lo == b.lo && a.hi == b.hi;
}

/* Whether no region is cut off at a border, nor any inside of a group. */
static bool is_free(const struct sweep *s, const struct rfx_axis_region *regions) {
    const struct rfx_graph *graph = s->graph;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        struct rfx_range need = regions[i].clamped;
        if (!are_equal(regions[i].unclamped, need)) return false;
        if (s->places[i] == RFX_PLACE_FETCHED) continue;
        if (node->op == RFX_OP_GROUP) { /* its maps inside; its inputs have regions themselves */
            if (!rfx_group_is_inside(&node->attr.group, (int)s->axis, need)) return false;
            continue;
        }
        bool own_rule = rfx_op_def(node->op)->in_range != NULL;
        if (need.lo >= need.hi || !own_rule || s->places[i] == RFX_PLACE_REDUCED) continue;
        for (int k = 0; k < node->n_in; k++) {
            if (!rfx_place_is_computed(s->places[node->in[k]])) continue;
            if (!are_equal(rfx_op_in_range(graph, node, k, (int)s->axis, need),
                           rfx_op_endless_range(graph, node, k, (int)s->axis, need)))
                return false;
        }
    }
    return true;
}

static bool look_at(const struct sweep *s, int64_t tile, struct rfx_axis_region *regions) {
    rfx_stage_regions(s->graph, s->places, s->axis, s->n, tile, regions);
    return is_free(s, regions);
}

/* Whether the regions of three tiles, the second next to the first and the third `steps` behind it,
 * lie on one line each. */
static bool are_in_line(int n_nodes, const struct rfx_axis_region *first,
                        const struct rfx_axis_region *second, const struct rfx_axis_region *third,
                        int64_t steps) {
    for (int i = 0; i < n_nodes; i++) {
        struct rfx_range a = first[i].clamped, b = second[i].clamped, c = third[i].clamped;
        if (c.lo - a.lo != steps * (b.lo - a.lo) || c.hi - a.hi != steps * (b.hi - a.hi))
            return false;
        if (rfx_range_size(a) != rfx_range_size(b)) return false;
    }
    return true;
}

/* Adds the tiles behind `tile`, whose regions are free and lie in regions[0 .. n_nodes), as far as
 * they are alike; returns the last one added. `end`: of the tiles as wide as this one. */
static int64_t add_alike(const struct sweep *s, int64_t tile, int64_t end,
                         struct rfx_axis_region *regions, rfx_tile_adder *add, void *user) {
    int n = s->graph->n_nodes;
    struct rfx_axis_region *second = regions + n, *third = second + n;
    int64_t lo = tile, hi = end - 1; /* the last free one lies here */
    if (end - tile < FEWEST_TILES || !look_at(s, tile + 1, second)) return tile;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo + 1) / 2;
        if (look_at(s, middle, third))
            lo = middle;
        else
            hi = middle - 1;
    }
    if (lo < tile + 3 || !look_at(s, lo, third)) return tile;
    if (!are_in_line(n, regions, second, third, lo - tile)) return tile;
    add(user, second, lo - tile - 1);
    add(user, third, 1);
    return lo;
}

void rfx_stage_sweep(const struct rfx_graph *graph, const enum rfx_node_place *places,
                     enum rfx_axis axis, int64_t n, struct rfx_axis_region *regions,
                     rfx_tile_adder *add, void *user) {
    struct sweep s = {.graph = graph, .places = places, .axis = axis, .n = n};
    int64_t extent = n < FEWEST_TILES ? 0 : even_extent(&s);
    bool even = extent >= n;
    int64_t longer = even ? extent % n : 0; /* so many tiles are wider by one: see rfx_tile_range */
    bool tried[2] = {!even, !even};         /* of the wider tiles, of the others */
    for (int64_t t = 0; t < n; t++) {
        int width = t < longer ? 0 : 1;
        rfx_stage_regions(graph, places, axis, n, t, regions);
        add(user, regions, 1);
        if (tried[width] || !is_free(&s, regions)) continue;
        tried[width] = true;
        t = add_alike(&s, t, width == 0 ? longer : n, regions, add, user);
    }
}

struct extent_sums {
    int n_nodes;
    struct rfx_tile_extent *extents;
};

static void add_extents(void *user, const struct rfx_axis_region *regions, int64_t tiles) {
    const struct extent_sums *sums = user;
    for (int i = 0; i < sums->n_nodes; i++) {
        int64_t size = rfx_range_size(regions[i].clamped);
        sums->extents[i].max = rfx_max_i64(sums->extents[i].max, size);
        sums->extents[i].sum += size * tiles;
    }
}

void rfx_stage_extents(const struct rfx_graph *graph, const enum rfx_node_place *places,
                       enum rfx_axis axis, int64_t n, struct rfx_axis_region *regions,
                       struct rfx_tile_extent *extents) {
    struct extent_sums sums = {graph->n_nodes, extents};
    for (int i = 0; i < graph->n_nodes; i++) extents[i].max = extents[i].sum = 0;
    rfx_stage_sweep(graph, places, axis, n, regions, add_extents, &sums);
}
