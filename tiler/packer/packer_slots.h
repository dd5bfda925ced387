/* Slots for the PQ-trees of a beam search's states: taken, given back, taken again. */
#ifndef RFX_TILER_PACKER_PACKER_SLOTS_H
#define RFX_TILER_PACKER_PACKER_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "tiler/packer/packer_pq.h"

/* To begin with all zero but for `mem` and `slot_nodes`, the nodes of a slot. */
struct rfx_pq_slots {
    struct rfx_memory *mem;
    struct rfx_pq_node *nodes;
    int *free_slots;
    int slot_nodes, n_slots, n_free;
    size_t nodes_capacity, free_capacity;
};

/* A slot, its nodes not set; -1: no memory. All slots may move. */
int rfx_pq_slots_take(struct rfx_pq_slots *slots);

/* Makes sure that the next n are there: taking them moves none, and writes nothing that
 * rfx_pq_slots_at reads. false: no memory. */
bool rfx_pq_slots_reserve(struct rfx_pq_slots *slots, int n);

void rfx_pq_slots_give(struct rfx_pq_slots *slots, int slot);

/* The nodes of a slot. */
struct rfx_pq_node *rfx_pq_slots_at(const struct rfx_pq_slots *slots, int slot);

void rfx_pq_slots_release(struct rfx_pq_slots *slots);
#endif
