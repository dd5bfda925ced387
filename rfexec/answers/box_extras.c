/* Numbers in the order of adding, and keys that are sorted by candidate (heap sort, which needs no
 * memory) and searched by halves. */
#include "rfexec/answers/box_extras.h"

#include <assert.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/heap_sort.h"

struct key {
    int64_t index; /* of the candidate */
    int64_t place; /* of its numbers */
};

struct rfx_box_extras {
    struct rfx_memory *mem;
    int64_t most, n, count;
    struct key *keys;
    float *numbers; /* [most, n] */
};

static bool sizes(int64_t most, int64_t n, size_t *keys, size_t *numbers) {
    size_t floats;
    return most >= 0 && most <= RFX_BOXES_MOST && n >= 1 && n <= INT32_MAX &&
           rfx_checked_mul_size((size_t)most, sizeof(struct key), keys) &&
           rfx_checked_mul_size((size_t)most, (size_t)n, &floats) &&
           rfx_checked_mul_size(floats, sizeof(float), numbers);
}

size_t rfx_box_extras_bytes(int64_t most, int64_t n) {
    size_t keys, numbers, bytes;
    if (!sizes(most, n, &keys, &numbers) || !rfx_checked_add_size(keys, numbers, &bytes) ||
        !rfx_checked_add_size(bytes, sizeof(struct rfx_box_extras), &bytes))
        return SIZE_MAX;
    return bytes;
}

enum rfx_status rfx_box_extras_create(struct rfx_memory *mem, int64_t most, int64_t n,
                                      struct rfx_box_extras **out, struct rfx_error *err) {
    static const char what[] = "numbers of candidates";
    size_t keys, numbers;
    if (!sizes(most, n, &keys, &numbers))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "boxes: %lld candidates of %lld further numbers are not possible",
                        (long long)most, (long long)n);
    struct rfx_box_extras *store = rfx_memory_calloc(mem, 1, sizeof *store);
    if (store == NULL) return rfx_memory_fail(mem, what, sizeof *store, err);
    store->mem = mem;
    store->most = most;
    store->n = n;
    store->keys = rfx_memory_alloc(mem, keys);
    store->numbers = rfx_memory_alloc(mem, numbers);
    if (store->keys == NULL || store->numbers == NULL) {
        rfx_box_extras_free(store);
        return rfx_memory_fail(mem, what, keys + numbers, err);
    }
    *out = store;
    return RFX_OK;
}

void rfx_box_extras_free(struct rfx_box_extras *store) {
    if (store == NULL) return;
    rfx_memory_release(store->mem, store->keys);
    rfx_memory_release(store->mem, store->numbers);
    rfx_memory_release(store->mem, store);
}

void rfx_box_extras_add(struct rfx_box_extras *store, int64_t index, const float *numbers) {
    assert(store->count < store->most);
    memcpy(store->numbers + store->count * store->n, numbers, (size_t)store->n * sizeof *numbers);
    store->keys[store->count] = (struct key){index, store->count};
    store->count++;
}

static bool has_smaller_index(const void *context, const void *a, const void *b) {
    (void)context;
    return ((const struct key *)a)->index < ((const struct key *)b)->index;
}

void rfx_box_extras_sort(struct rfx_box_extras *store) {
    rfx_heap_sort(store->keys, store->count, sizeof *store->keys, has_smaller_index, NULL);
}

const float *rfx_box_extras_find(const struct rfx_box_extras *store, int64_t index) {
    int64_t lo = 0, hi = store->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (store->keys[mid].index < index)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < store->count && store->keys[lo].index == index
               ? store->numbers + store->keys[lo].place * store->n
               : NULL;
}
