/* From a state to the next ones; see fronts_makers.h. */
#include "tiler/fronts/fronts_makers.h"

#include "tiler/packer/packer_hash.h"

enum { COMPARED_PER_NODE = 64 }; /* what they cost */

/* With a seed: how much better a state may seem. */
static const double chance_gain = 4;

/* More than what rounding makes of a score. */
static const double score_error = 0.01;

/* The second one as it would have to be if all that is known were counted. The others are for
 * places that were cut in all directions: those that leave more orders do better still, or, of
 * boundaries with many groups, small ones. */
static const struct rfx_front_weights variants[RFX_FRONTS_VARIANTS] = {
    {.match = 1.5, .orders = 1.5, .size = 1, .among = 0.4},
    {.match = -5, .orders = 1},
    {.match = -1, .orders = 2}};

/* By chance something between the variant and another one. */
static struct rfx_front_weights weights_of(const struct rfx_fronts_request *request) {
    struct rfx_front_weights w = variants[request->variant];
    if (request->seed == 0) return w;
    uint64_t chance = rfx_packer_mix(request->seed);
    const struct rfx_front_weights *other = &variants[chance % RFX_FRONTS_VARIANTS];
    double part = (double)(chance >> 40) * 0x1p-24;
    w.match += part * (other->match - w.match);
    w.orders += part * (other->orders - w.orders);
    w.size += part * (other->size - w.size);
    w.among += part * (other->among - w.among);
    return w;
}

int rfx_front_slot_nodes(const struct rfx_front_times *times) {
    return RFX_FRONT_SIDES * 2 * times->max_live;
}

enum rfx_status rfx_front_maker_init(struct rfx_front_maker *m,
                                     const struct rfx_place_problem *problem,
                                     const struct rfx_fronts_request *request,
                                     const struct rfx_front_times *times, struct rfx_error *err) {
    *m = (struct rfx_front_maker){
        .request = request, .times = times, .slot_nodes = rfx_front_slot_nodes(times)};
    enum rfx_status status =
        rfx_forests_init(&m->forests, problem->mem, problem->n, times->max_live, err);
    if (status == RFX_OK) status = rfx_front_judge_init(&m->judge, problem, times, err);
    if (status != RFX_OK) return status;
    struct rfx_front_weights weights = weights_of(request);
    return rfx_front_groups_init(&m->groups, problem, times, &m->forests, &m->judge,
                                 request->capacity_bytes, &weights, err);
}

void rfx_front_maker_release(struct rfx_front_maker *m) {
    rfx_front_groups_release(&m->groups);
    rfx_front_judge_release(&m->judge);
    rfx_forests_release(&m->forests);
}

struct rfx_forest rfx_front_forest(const struct rfx_front_state *state, struct rfx_pq_node *nodes,
                                   int slot_nodes) {
    return (struct rfx_forest){{nodes, nodes + slot_nodes / RFX_FRONT_SIDES},
                               {state->n_nodes[0], state->n_nodes[1]},
                               state->n_trees,
                               state->linked};
}

void rfx_front_enter(const struct rfx_front_times *times, struct rfx_front_state *state,
                     int boundary) {
    state->left = (struct rfx_front_left){.boundary = boundary};
    if (boundary == times->n) return;
    const struct rfx_front_boundary *b = &times->at[boundary];
    state->left.ends = rfx_front_all(b->n_ends);
    state->left.begins = rfx_front_all(b->n_begins);
}

/* Sets what a state is after its group was made at the boundary of the one before. */
static void set_state(struct rfx_front_maker *m, const struct rfx_front_state *before,
                      const struct rfx_forest *from, const struct rfx_forest *to,
                      const struct rfx_forest_tree *tree, struct rfx_front_made *made) {
    struct rfx_front_state *next = &made->state;
    next->n_nodes[0] = to->n_nodes[0];
    next->n_nodes[1] = to->n_nodes[1];
    next->n_trees = to->n_trees;
    next->linked = to->linked;
    next->gain = before->gain + (double)next->group.gain;
    if (next->group.ends == before->left.ends)
        rfx_front_enter(m->times, next, before->left.boundary + 1);
    else
        next->left =
            (struct rfx_front_left){before->left.boundary, before->left.ends & ~next->group.ends,
                                    before->left.begins & ~next->group.begins};
    next->sums = rfx_front_judge_change(&m->judge, &m->forests, from, to, tree);
    made->hash = rfx_front_hash(&m->judge, &next->sums, &next->left);
    double orders = rfx_front_orders(&m->judge, &next->sums, to->n_trees);
    double score = next->gain + m->groups.weights.orders * orders;
    if (m->request->seed != 0) {
        uint64_t chance = rfx_packer_mix(made->hash ^ m->request->seed) >> 40;
        score += chance_gain * (double)chance * 0x1p-24;
    }
    made->score = (float)score;
}

/* Room for one more. false: no memory. */
static bool reserve(struct rfx_front_part *part, int slot_nodes) {
    size_t n = (size_t)part->n + 1;
    struct rfx_front_made *list =
        rfx_memory_reserve(part->mem, part->list, &part->capacity, n, sizeof *list);
    if (list == NULL) return false;
    part->list = list;
    struct rfx_pq_node *nodes = rfx_memory_reserve(part->mem, part->nodes, &part->nodes_capacity,
                                                   n * (size_t)slot_nodes, sizeof *nodes);
    if (nodes == NULL) return false;
    part->nodes = nodes;
    return true;
}

bool rfx_front_make(struct rfx_front_maker *m, const struct rfx_front_state *state,
                    struct rfx_pq_node *nodes, int step, const float *least,
                    struct rfx_front_part *part) {
    int gone[RFX_FRONT_MAX_SIDE];
    int with[RFX_FRONT_MAX_SIDE];
    int leaves[RFX_FRONT_MAX_SIDE];
    float scores[RFX_FRONT_MAX_SIDE + 1]; /* that a group has to be better than */
    double chance = m->request->seed != 0 ? chance_gain : 0;
    struct rfx_forest from = rfx_front_forest(state, nodes, m->slot_nodes);
    rfx_front_judge_enter(&m->judge, &state->sums);
    rfx_forest_enter(&m->forests, &from, m->times->at[state->left.boundary].side);
    int most = __builtin_popcountll(state->left.ends);
    for (int n = 0; n <= most; n++)
        scores[n] = (float)((double)least[n] - state->gain - chance - score_error);
    rfx_front_groups_list(&m->groups, &from, &state->left, scores);
    part->tried += (uint64_t)m->groups.n_compared / COMPARED_PER_NODE + (uint64_t)m->groups.n;
    for (int i = 0; i < m->groups.n; i++) {
        struct rfx_pq_run run = {.leaves = leaves};
        struct rfx_forest_tree tree;
        if (!reserve(part, m->slot_nodes)) return false;
        struct rfx_front_made *made = &part->list[part->n];
        made->state = (struct rfx_front_state){
            .previous = step, .from = state->left.boundary, .group = m->groups.list[i], .slot = -1};
        struct rfx_forest to =
            rfx_front_forest(&made->state, &part->nodes[part->n * m->slot_nodes], m->slot_nodes);
        struct rfx_forest_change change =
            rfx_front_change(m->times, state->left.boundary, &made->state.group, gone, with);
        if (!rfx_forest_replace(&m->forests, &from, &change, &to, &tree, &run)) continue;
        if (!rfx_front_measure(&m->groups.rooms, &to, change.side, &tree)) continue;
        made->n_ends = change.n_gone;
        set_state(m, state, &from, &to, &tree, made);
        if (made->score > least[made->n_ends])
            part->n++;
        else
            part->left_out = true;
    }
    return true;
}

void rfx_front_part_release(struct rfx_front_part *part) {
    rfx_memory_release(part->mem, part->list);
    rfx_memory_release(part->mem, part->nodes);
}
