/* Longest paths over pairs. */
#include "tiler/packer/packer_orders.h"

#include <string.h>

bool rfx_orders_add(struct rfx_orders *orders, const int *items, int n) {
    void *pairs = rfx_memory_reserve(orders->mem, orders->pairs, &orders->capacity,
                                     orders->n + (size_t)n, sizeof *orders->pairs);
    if (pairs == NULL) return false;
    orders->pairs = pairs;
    for (int i = 0; i + 1 < n; i++) {
        orders->pairs[orders->n][0] = items[i];
        orders->pairs[orders->n++][1] = items[i + 1];
    }
    return true;
}

/* Lifts the upper item of a pair off the lower one; whether it lay too low. */
static bool lift(const struct rfx_place_problem *problem, const int pair[2], size_t *offsets) {
    size_t end = offsets[pair[0]] + problem->items[pair[0]].size;
    size_t at = rfx_place_align(end, problem->items[pair[1]].alignment);
    if (offsets[pair[1]] >= at) return false;
    offsets[pair[1]] = at;
    return true;
}

void rfx_orders_settle(const struct rfx_orders *orders, const struct rfx_place_problem *problem,
                       size_t *offsets) {
    memset(offsets, 0, (size_t)problem->n * sizeof *offsets);
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < orders->n; k++)
            if (lift(problem, orders->pairs[k], offsets)) moved = true;
        for (size_t k = orders->n; k-- > 0;)
            if (lift(problem, orders->pairs[k], offsets)) moved = true;
    }
}

void rfx_orders_release(struct rfx_orders *orders) {
    rfx_memory_release(orders->mem, orders->pairs);
}
