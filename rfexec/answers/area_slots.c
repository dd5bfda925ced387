/* A list of unused slots, and who has which; see area_slots.h. */
#include "rfexec/answers/area_slots.h"

struct rfx_area_slots {
    struct rfx_memory *mem;
    const struct rfx_areas *areas;
    int64_t n, n_unused;
    int32_t *of_area; /* the slot of each area; -1: none */
    int32_t *owners;  /* the area of each slot; -1: none */
    int32_t *unused;  /* slots without an owner */
};

size_t rfx_area_slots_bytes(int64_t areas, int64_t slots) {
    return sizeof(struct rfx_area_slots) + (size_t)(areas + 2 * slots) * sizeof(int32_t);
}

enum rfx_status rfx_area_slots_create(struct rfx_memory *mem, const struct rfx_areas *areas,
                                      struct rfx_area_slots **out, struct rfx_error *err) {
    const int64_t k = rfx_areas_count(areas), n = rfx_areas_most_at_once(areas);
    struct rfx_area_slots *slots = rfx_memory_calloc(mem, 1, sizeof *slots);
    if (slots == NULL) return rfx_memory_fail(mem, "slots of areas", sizeof *slots, err);
    *slots = (struct rfx_area_slots){.mem = mem, .areas = areas, .n = n};
    slots->of_area = rfx_memory_calloc(mem, (size_t)k, sizeof *slots->of_area);
    slots->owners = rfx_memory_calloc(mem, (size_t)n, sizeof *slots->owners);
    slots->unused = rfx_memory_calloc(mem, (size_t)n, sizeof *slots->unused);
    if (slots->of_area == NULL || slots->owners == NULL || slots->unused == NULL) {
        rfx_area_slots_free(slots);
        return rfx_memory_fail(mem, "slots of areas", rfx_area_slots_bytes(k, n), err);
    }
    for (int64_t i = 0; i < k; i++) slots->of_area[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        slots->owners[i] = -1;
        slots->unused[slots->n_unused++] = (int32_t)i;
    }
    *out = slots;
    return RFX_OK;
}

int64_t rfx_area_slots_take(struct rfx_area_slots *slots, int32_t area, bool *is_new) {
    *is_new = slots->of_area[area] < 0;
    if (*is_new) {
        slots->of_area[area] = slots->unused[--slots->n_unused];
        slots->owners[slots->of_area[area]] = area;
    }
    return slots->of_area[area];
}

int32_t rfx_area_slots_leave(struct rfx_area_slots *slots, int64_t *slot) {
    for (; *slot < slots->n; ++*slot) {
        const int32_t area = slots->owners[*slot];
        if (area < 0 || !rfx_areas_is_over(slots->areas, area)) continue;
        slots->owners[*slot] = slots->of_area[area] = -1;
        slots->unused[slots->n_unused++] = (int32_t)*slot;
        return area;
    }
    return -1;
}

void rfx_area_slots_free(struct rfx_area_slots *slots) {
    if (slots == NULL) return;
    rfx_memory_release(slots->mem, slots->of_area);
    rfx_memory_release(slots->mem, slots->owners);
    rfx_memory_release(slots->mem, slots->unused);
    rfx_memory_release(slots->mem, slots);
}
