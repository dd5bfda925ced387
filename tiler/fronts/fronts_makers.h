/* What one thread needs to make the states that follow others: several go on from states of a beam
 * at the same time, and none of them changes what another one sees. */
#ifndef RFX_TILER_FRONTS_FRONTS_MAKERS_H
#define RFX_TILER_FRONTS_FRONTS_MAKERS_H

#include "tiler/fronts/fronts.h"
#include "tiler/fronts/fronts_groups.h"

/* A state of the beam; its forest lies in a slot. */
struct rfx_front_state {
    int previous, from; /* the step before (-1: none), and the boundary and group of the last */
    struct rfx_front_group group;
    struct rfx_front_left left;
    int slot, n_nodes[RFX_FRONT_SIDES], n_trees;
    struct rfx_forest_set linked;
    struct rfx_front_sums sums; /* of its forest */
    double gain;                /* of all groups */
};

/* A state that was made and has no slot yet. */
struct rfx_front_made {
    struct rfx_front_state state;
    uint64_t hash;
    float score;
    int n_ends; /* of its group */
};

/* What was made of some states, in order; all zero but for `mem` to begin with. */
struct rfx_front_part {
    struct rfx_memory *mem;
    struct rfx_front_made *list;
    int n;
    size_t capacity;
    struct rfx_pq_node *nodes; /* a slot's for each */
    size_t nodes_capacity;
    uint64_t tried; /* groups, and what comparing them cost */
    bool left_out;  /* a state or a group was */
    bool has_no_memory;
};

struct rfx_front_maker {
    const struct rfx_fronts_request *request;
    const struct rfx_front_times *times;
    int slot_nodes;
    struct rfx_forests forests;
    struct rfx_front_groups groups;
    struct rfx_front_judge judge;
};

/* All must outlive it. Release with rfx_front_maker_release, after a failure too.
 * RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_front_maker_init(struct rfx_front_maker *m,
                                                   const struct rfx_place_problem *problem,
                                                   const struct rfx_fronts_request *request,
                                                   const struct rfx_front_times *times,
                                                   struct rfx_error *err);
void rfx_front_maker_release(struct rfx_front_maker *m);

/* The nodes that the slot of a state of this problem has: for both sides. */
int rfx_front_slot_nodes(const struct rfx_front_times *times);

/* The forest of a state in a slot's nodes. */
struct rfx_forest rfx_front_forest(const struct rfx_front_state *state, struct rfx_pq_node *nodes,
                                   int slot_nodes);

/* All of a boundary is still to be grouped (after the last one nothing is). */
void rfx_front_enter(const struct rfx_front_times *times, struct rfx_front_state *state,
                     int boundary);

/* Adds what follows a state, with the groups of its boundary, whose previous step is `step`, to the
 * part. least[k]: the score that one with k more ends has to be better than to be kept. false: no
 * memory. */
RFX_NODISCARD bool rfx_front_make(struct rfx_front_maker *m, const struct rfx_front_state *state,
                                  struct rfx_pq_node *nodes, int step, const float *least,
                                  struct rfx_front_part *part);

void rfx_front_part_release(struct rfx_front_part *part);
#endif
