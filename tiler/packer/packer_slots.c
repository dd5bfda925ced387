/* One array of nodes and the numbers of the free slots in another. */
#include "tiler/packer/packer_slots.h"

int rfx_pq_slots_take(struct rfx_pq_slots *slots) {
    if (slots->n_free > 0) return slots->free_slots[--slots->n_free];
    size_t wanted = (size_t)slots->n_slots + 1;
    struct rfx_pq_node *nodes =
        rfx_memory_reserve(slots->mem, slots->nodes, &slots->nodes_capacity,
                           wanted * (size_t)slots->slot_nodes, sizeof *nodes);
    if (nodes == NULL) return -1;
    slots->nodes = nodes;
    int *free_slots = rfx_memory_reserve(slots->mem, slots->free_slots, &slots->free_capacity,
                                         wanted, sizeof *free_slots);
    if (free_slots == NULL) return -1;
    slots->free_slots = free_slots;
    return slots->n_slots++;
}

void rfx_pq_slots_give(struct rfx_pq_slots *slots, int slot) {
    slots->free_slots[slots->n_free++] = slot;
}

struct rfx_pq_node *rfx_pq_slots_at(const struct rfx_pq_slots *slots, int slot) {
    return &slots->nodes[(size_t)slot * (size_t)slots->slot_nodes];
}

void rfx_pq_slots_release(struct rfx_pq_slots *slots) {
    rfx_memory_release(slots->mem, slots->nodes);
    rfx_memory_release(slots->mem, slots->free_slots);
}
