/* Forwards for the forests, backwards for the orders; see fronts_way.h. */
#include "tiler/fronts/fronts_way.h"

#include <assert.h>
#include <string.h>

#include "tiler/packer/packer_orders.h"

struct way {
    const struct rfx_place_problem *problem;
    const struct rfx_front_times *times;
    struct rfx_forests *forests;
    struct rfx_pq_node *nodes;
    struct rfx_forest *at; /* before each step, and at the end; one more is scratch */
    int *order[RFX_FRONT_SIDES], *place;
    int n_order[RFX_FRONT_SIDES];
    int *leaves;
    struct rfx_orders orders;
};

static void make_steps(struct way *w, const struct rfx_front_step *steps, int n) {
    int gone[RFX_FRONT_MAX_SIDE];
    int with[RFX_FRONT_MAX_SIDE];
    rfx_forest_make(w->problem, w->times->live, w->times->n_live, &w->at[0]);
    for (int k = 0; k < n; k++) {
        struct rfx_pq_run run = {.leaves = w->leaves};
        struct rfx_forest_tree tree;
        struct rfx_forest_change change =
            rfx_front_change(w->times, steps[k].boundary, &steps[k].group, gone, with);
        rfx_forest_enter(w->forests, &w->at[k], change.side);
        bool made = rfx_forest_replace(w->forests, &w->at[k], &change, &w->at[k + 1], &tree, &run);
        assert(made); /* as when the step was tried */
        (void)made;
    }
}

/* Puts what went back where what came lies in the order of that side. */
static void take_back(struct way *w, const struct rfx_front_step *step,
                      const struct rfx_forest *before, struct rfx_forest *scratch) {
    int gone[RFX_FRONT_MAX_SIDE];
    int with[RFX_FRONT_MAX_SIDE];
    struct rfx_pq_run run = {.leaves = w->leaves};
    struct rfx_forest_change change =
        rfx_front_change(w->times, step->boundary, &step->group, gone, with);
    int side = change.side;
    int *order = w->order[side];
    int n = w->n_order[side];
    int start = n;
    bool reversed = false;
    for (int i = 0; i < w->n_order[1 - side]; i++) w->place[w->order[1 - side][i]] = i;
    rfx_forest_run(w->forests, before, &change, w->place, scratch, &run);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < change.n_with; k++)
            if (order[i] == with[k] && i < start) start = i;
    for (int i = 0; i < n && run.anchor >= 0; i++)
        if (order[i] == run.anchor) reversed = (i < start) != run.anchor_first;
    memmove(&order[start + run.count], &order[start + change.n_with],
            (size_t)(n - start - change.n_with) * sizeof *order);
    for (int i = 0; i < run.count; i++)
        order[start + i] = run.leaves[reversed ? run.count - 1 - i : i];
    w->n_order[side] = n - change.n_with + run.count;
}

/* false: no memory. */
static bool take_all_back(struct way *w, const struct rfx_front_step *steps, int n) {
    bool enough = true;
    for (int side = 0; side < RFX_FRONT_SIDES; side++) {
        const struct rfx_forest *last = &w->at[n];
        for (int i = 0; i < last->n_nodes[side]; i++)
            if (last->nodes[side][i].what >= 0)
                w->order[side][w->n_order[side]++] = last->nodes[side][i].what;
        enough = enough && rfx_orders_add(&w->orders, w->order[side], w->n_order[side]);
    }
    for (int k = n - 1; enough && k >= 0; k--) {
        int side = w->times->at[steps[k].boundary].side;
        take_back(w, &steps[k], &w->at[k], &w->at[n + 1]);
        if (k > 0 && steps[k - 1].boundary == steps[k].boundary) continue;
        enough = rfx_orders_add(&w->orders, w->order[side], w->n_order[side]);
    }
    return enough;
}

/* Whether a boundary is passed after another one: side by side, by time. */
static bool is_later(const struct rfx_front_boundary *a, const struct rfx_front_boundary *b) {
    if (a->side != b->side) return a->side > b->side;
    return a->side == RFX_FRONT_LATER ? a->beyond > b->beyond : a->beyond < b->beyond;
}

/* Puts the steps, the last first, in the order of time of each side, those of a boundary in theirs:
 * so that the orders between are those of sections. */
static void sort_by_time(const struct rfx_front_times *times, struct rfx_front_step *steps, int n) {
    for (int i = 0; i < n / 2; i++) {
        struct rfx_front_step swap = steps[i];
        steps[i] = steps[n - 1 - i];
        steps[n - 1 - i] = swap;
    }
    for (int i = 1; i < n; i++) {
        struct rfx_front_step step = steps[i];
        int to = i;
        for (; to > 0; to--) {
            if (!is_later(&times->at[steps[to - 1].boundary], &times->at[step.boundary])) break;
            steps[to] = steps[to - 1];
        }
        steps[to] = step;
    }
}

enum rfx_status rfx_front_way(const struct rfx_place_problem *problem,
                              const struct rfx_front_times *times, struct rfx_forests *forests,
                              struct rfx_front_step *steps, int n, size_t *offsets,
                              struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    size_t items = (size_t)problem->n;
    size_t side_nodes = 2 * (size_t)times->max_live;
    size_t n_forests = (size_t)n + 2;
    struct way w = {.problem = problem, .times = times, .forests = forests, .orders = {.mem = mem}};
    w.nodes = rfx_memory_calloc(mem, 2 * side_nodes * n_forests, sizeof *w.nodes);
    w.at = rfx_memory_calloc(mem, n_forests, sizeof *w.at);
    w.order[0] = rfx_memory_calloc(mem, items, sizeof *w.order[0]);
    w.order[1] = rfx_memory_calloc(mem, items, sizeof *w.order[1]);
    w.place = rfx_memory_calloc(mem, items, sizeof *w.place);
    w.leaves = rfx_memory_calloc(mem, items, sizeof *w.leaves);
    bool enough = w.nodes != NULL && w.at != NULL && w.order[0] != NULL && w.order[1] != NULL &&
                  w.place != NULL && w.leaves != NULL;
    if (enough) {
        for (size_t k = 0; k < 2 * n_forests; k++)
            w.at[k / 2].nodes[k % 2] = &w.nodes[k * side_nodes];
        sort_by_time(times, steps, n);
        make_steps(&w, steps, n);
        enough = take_all_back(&w, steps, n);
    }
    if (enough) rfx_orders_settle(&w.orders, problem, offsets);
    rfx_orders_release(&w.orders);
    void *const blocks[] = {w.nodes, w.at, w.order[0], w.order[1], w.place, w.leaves};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(mem, blocks[i]);
    if (enough) return RFX_OK;
    return rfx_memory_fail(mem, "packer", 2 * side_nodes * n_forests * sizeof *w.nodes, err);
}
