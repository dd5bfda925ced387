/* Heights from the leaves up, room from the roots down; see fronts_rooms.h. */
#include "tiler/fronts/fronts_rooms.h"

/* In units of the mean share: more than what evenly drawn shares come to, as that is estimated; and
 * the least mean, of rounding. */
static const double most_shares = 2.4;
static const double least_share = 1e-6;

struct rfx_front_value {
    int gone, leaves;
    size_t sum;   /* of the sizes of its leaves */
    size_t spare; /* how much higher its place may be than its height */
    double room, variance;
};

/* The share of the area of all items that were made smaller which is free. */
static double mean_share(const struct rfx_place_problem *problem,
                         const struct rfx_front_times *times, size_t capacity) {
    double free_area = 0;
    double area = 0;
    for (int s = 0; s < problem->n_sections; s++) {
        free_area += (double)(capacity - problem->breadth[s]);
        area += (double)capacity;
    }
    for (int i = 0; i < times->n_live; i++) {
        int item = times->live[i];
        area -= (double)problem->items[item].size *
                (double)(problem->last[item] - problem->first[item]);
    }
    double share = area > 0 ? free_area / area : 0;
    return share > least_share ? share : least_share;
}

enum rfx_status rfx_front_rooms_init(struct rfx_front_rooms *rooms,
                                     const struct rfx_place_problem *problem,
                                     const struct rfx_front_times *times, size_t capacity,
                                     struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    size_t nodes = 2 * (size_t)times->max_live + 2;
    *rooms = (struct rfx_front_rooms){
        .mem = mem, .problem = problem, .times = times, .capacity = capacity};
    rooms->shrink = mean_share(problem, times, capacity);
    rooms->most = most_shares * rooms->shrink;
    rooms->values = rfx_memory_calloc(mem, nodes, sizeof *rooms->values);
    rooms->parents = rfx_memory_calloc(mem, nodes, sizeof *rooms->parents);
    if (rooms->values != NULL && rooms->parents != NULL) return RFX_OK;
    return rfx_memory_fail(mem, "packer", nodes * sizeof *rooms->values, err);
}

void rfx_front_rooms_release(struct rfx_front_rooms *rooms) {
    rfx_memory_release(rooms->mem, rooms->values);
    rfx_memory_release(rooms->mem, rooms->parents);
}

static size_t size_of(const struct rfx_front_rooms *rooms, const struct rfx_pq_node *node) {
    return node->what >= 0 ? rooms->problem->items[node->what].size : 0;
}

bool rfx_front_measure(struct rfx_front_rooms *rooms, struct rfx_forest *forest, int side,
                       const struct rfx_forest_tree *tree) {
    struct rfx_pq_node *nodes = &forest->nodes[side][tree->at[side]];
    struct rfx_front_value *values = rooms->values;
    for (int i = nodes->span - 1; i >= 0; i--) { /* children come before their parent */
        size_t height = size_of(rooms, &nodes[i]);
        values[i].sum = height;
        for (int k = i + 1; k < i + nodes[i].span; k += nodes[k].span) {
            values[i].sum += values[k].sum;
            height += nodes[k].height;
        }
        if (height > nodes[i].height) nodes[i].height = height;
        if ((double)values[i].sum < (double)nodes[i].height * (1 - rooms->most)) return false;
    }
    struct rfx_pq_node *other = &forest->nodes[1 - side][tree->at[1 - side]];
    if (nodes->height > other->height) other->height = nodes->height;
    if (other->height > nodes->height) nodes->height = other->height;
    size_t total = 0;
    for (int k = 0; k < forest->n_nodes[side]; k += forest->nodes[side][k].span)
        total += forest->nodes[side][k].height;
    return total <= rooms->capacity;
}

/* Counts from the leaves up; false: none of the tree is marked, and nothing else is known of it. */
static bool count_leaves(struct rfx_front_rooms *rooms, const struct rfx_pq_node *nodes, int n,
                         const bool *marked) {
    struct rfx_front_value *values = rooms->values;
    bool any = false;
    for (int i = 0; i < n && !any; i++) any = nodes[i].what >= 0 && marked[nodes[i].what];
    if (!any) return false;
    for (int i = n - 1; i >= 0; i--) {
        bool leaf = nodes[i].what >= 0;
        int gone = leaf && marked[nodes[i].what], leaves = leaf;
        size_t sum = size_of(rooms, &nodes[i]);
        for (int k = i + 1; k < i + nodes[i].span; k += nodes[k].span) {
            gone += values[k].gone;
            leaves += values[k].leaves;
            sum += values[k].sum;
        }
        values[i] = (struct rfx_front_value){.leaves = leaves, .gone = gone, .sum = sum};
    }
    return true;
}

/* Shares the room of a node among its children by their sizes; how the slack really falls is as
 * uncertain as if it fell evenly anywhere. */
static void share_room(struct rfx_front_value *values, const struct rfx_pq_node *nodes, int i) {
    size_t height = 0;
    for (int k = i + 1; k < i + nodes[i].span; k += nodes[k].span) height += nodes[k].height;
    size_t slack = nodes[i].height - height;
    for (int k = i + 1; k < i + nodes[i].span; k += nodes[k].span) {
        struct rfx_front_value *v = &values[k];
        double share = (double)v->sum / (double)values[i].sum;
        double spread = (double)slack * share;
        v->spare = values[i].spare + slack;
        v->room = values[i].room * share;
        if (v->room < (double)nodes[k].height) v->room = (double)nodes[k].height;
        v->variance = values[i].variance * share * share + spread * spread / 6;
    }
}

/* `spare`: how much higher the tree's place may be. */
static void share_rooms(struct rfx_front_rooms *rooms, const struct rfx_pq_node *nodes, int n,
                        size_t spare) {
    struct rfx_front_value *values = rooms->values;
    values[0].spare = spare;
    values[0].room = (double)nodes[0].height;
    for (int i = 0; i < n; i++)
        if (nodes[i].what < 0) share_room(values, nodes, i);
}

/* Adds a node, all of which ends, to a block. */
static void add_node(const struct rfx_front_rooms *rooms, const struct rfx_pq_node *nodes, int i,
                     int side, struct rfx_front_block *block) {
    const struct rfx_front_value *v = &rooms->values[i];
    block->height += nodes[i].height;
    block->highest += nodes[i].height + v->spare;
    block->room += v->room;
    block->variance += v->variance;
    for (int k = i; k < i + nodes[i].span; k++)
        if (nodes[k].what >= 0)
            block->mask |= (uint64_t)1 << rooms->times->bit[side][nodes[k].what];
}

/* Adds the blocks of a tree to n that are listed; their number. */
static int add_blocks(const struct rfx_front_rooms *rooms, const struct rfx_pq_node *nodes,
                      int n_nodes, int side, struct rfx_front_block *blocks, int n) {
    int *parents = rooms->parents;
    int depth = 0;
    int after = -1; /* the node after the last block, when that was a child of a Q node */
    for (int i = 0; i < n_nodes;) {
        while (depth > 0 && i >= parents[depth - 1] + nodes[parents[depth - 1]].span) depth--;
        if (rooms->values[i].gone < rooms->values[i].leaves) {
            bool goes = rooms->values[i].gone > 0;
            if (nodes[i].what < 0 && goes) parents[depth++] = i;
            i += goes ? 1 : nodes[i].span;
            continue;
        }
        if (i != after) blocks[n++] = (struct rfx_front_block){.mask = 0};
        add_node(rooms, nodes, i, side, &blocks[n - 1]);
        int end = i + nodes[i].span;
        int parent = depth > 0 ? parents[depth - 1] : -1;
        bool in_q = parent >= 0 && nodes[parent].what == RFX_PQ_Q;
        after = in_q && end < parent + nodes[parent].span ? end : -1;
        i = end;
    }
    return n;
}

int rfx_front_blocks(struct rfx_front_rooms *rooms, const struct rfx_forest *forest, int side,
                     const bool *marked, struct rfx_front_block *blocks) {
    const struct rfx_pq_node *nodes = forest->nodes[side];
    size_t total = 0;
    int n = 0;
    for (int i = 0; i < forest->n_nodes[side]; i += nodes[i].span) total += nodes[i].height;
    for (int i = 0; i < forest->n_nodes[side]; i += nodes[i].span) {
        if (!count_leaves(rooms, &nodes[i], nodes[i].span, marked)) continue;
        share_rooms(rooms, &nodes[i], nodes[i].span, rooms->capacity - total);
        n = add_blocks(rooms, &nodes[i], nodes[i].span, side, blocks, n);
    }
    return n;
}
