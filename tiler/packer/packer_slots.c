/* One array of nodes and the numbers of the free slots in another. */
#include "tiler/packer/packer_slots.h"

bool rfx_pq_slots_reserve(struct rfx_pq_slots *slots, int n) {
    if (n <= slots->n_free) return true;
    int n_slots = slots->n_slots + n - slots->n_free;
    size_t wanted = (size_t)n_slots;
    struct rfx_pq_node *nodes =
        rfx_memory_reserve(slots->mem, slots->nodes, &slots->nodes_capacity,
                           wanted * (size_t)slots->slot_nodes, sizeof *nodes);
    if (nodes == NULL) return false;
    slots->nodes = nodes;
    int *free_slots = rfx_memory_reserve(slots->mem, slots->free_slots, &slots->free_capacity,
                                         wanted, sizeof *free_slots);
    if (free_slots == NULL) return false;
    slots->free_slots = free_slots;
    for (int k = n_slots; k > slots->n_slots; k--) free_slots[slots->n_free++] = k - 1;
    slots->n_slots = n_slots;
    return true;
}

int rfx_pq_slots_take(struct rfx_pq_slots *slots) {
    if (!rfx_pq_slots_reserve(slots, 1)) return -1;
    return slots->free_slots[--slots->n_free];
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
