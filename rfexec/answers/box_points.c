/* An array that is sorted by candidate (heap sort, which needs no memory) and searched by halves.
 */
#include "rfexec/answers/box_points.h"

#include <assert.h>
#include <string.h>

#include "layers/core/checked.h"

struct entry {
    int64_t index; /* of the candidate */
    float points[2 * RFX_BOX_POINTS];
};

struct rfx_box_points {
    struct rfx_memory *mem;
    int64_t most, count;
    struct entry *entries;
};

static bool entries_bytes(int64_t most, size_t *bytes) {
    return most >= 0 && most <= RFX_BOXES_MOST &&
           rfx_checked_mul_size((size_t)most, sizeof(struct entry), bytes);
}

size_t rfx_box_points_bytes(int64_t most) {
    size_t bytes;
    if (!entries_bytes(most, &bytes) ||
        !rfx_checked_add_size(bytes, sizeof(struct rfx_box_points), &bytes))
        return SIZE_MAX;
    return bytes;
}

enum rfx_status rfx_box_points_create(struct rfx_memory *mem, int64_t most,
                                      struct rfx_box_points **out, struct rfx_error *err) {
    size_t bytes;
    if (!entries_bytes(most, &bytes))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "boxes: landmarks of %lld candidates are not possible", (long long)most);
    struct rfx_box_points *store = rfx_memory_calloc(mem, 1, sizeof *store);
    if (store == NULL) return rfx_memory_fail(mem, "landmarks", sizeof *store, err);
    store->mem = mem;
    store->most = most;
    store->entries = rfx_memory_alloc(mem, bytes);
    if (store->entries == NULL) {
        rfx_box_points_free(store);
        return rfx_memory_fail(mem, "landmarks", bytes, err);
    }
    *out = store;
    return RFX_OK;
}

void rfx_box_points_free(struct rfx_box_points *store) {
    if (store == NULL) return;
    rfx_memory_release(store->mem, store->entries);
    rfx_memory_release(store->mem, store);
}

void rfx_box_points_add(struct rfx_box_points *store, int64_t index,
                        const float points[2 * RFX_BOX_POINTS]) {
    assert(store->count < store->most);
    struct entry *entry = &store->entries[store->count++];
    entry->index = index;
    memcpy(entry->points, points, sizeof entry->points);
}

/* Moves `entry` from place `at` of a heap down to its place. Parents come after their children. */
static void sift_down(struct entry *heap, int64_t n, int64_t at, struct entry entry) {
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1].index > heap[child].index) child++;
        if (entry.index >= heap[child].index) break;
        heap[at] = heap[child];
    }
    heap[at] = entry;
}

void rfx_box_points_sort(struct rfx_box_points *store) {
    struct entry *list = store->entries;
    for (int64_t i = store->count / 2 - 1; i >= 0; i--) sift_down(list, store->count, i, list[i]);
    for (int64_t last = store->count - 1; last > 0; last--) {
        struct entry moved = list[last];
        list[last] = list[0];
        sift_down(list, last, 0, moved);
    }
}

const float *rfx_box_points_find(const struct rfx_box_points *store, int64_t index) {
    int64_t lo = 0, hi = store->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (store->entries[mid].index < index)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < store->count && store->entries[lo].index == index ? store->entries[lo].points
                                                                  : NULL;
}
