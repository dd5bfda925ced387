/* See heap_sort.h. */
#include "layers/core/heap_sort.h"

#include <assert.h>
#include <string.h>

struct heap {
    char *list;
    size_t size;
    rfx_comes_before *before;
    const void *context;
};

static char *item(const struct heap *heap, int64_t i) {
    return heap->list + (size_t)i * heap->size;
}

/* Moves `moved` from place `at` of a heap of n items down to its place. No parent comes before its
 * children. */
static void sift_down(const struct heap *heap, int64_t n, int64_t at, const char *moved) {
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap->before(heap->context, item(heap, child), item(heap, child + 1)))
            child++;
        if (!heap->before(heap->context, moved, item(heap, child))) break;
        memcpy(item(heap, at), item(heap, child), heap->size);
    }
    memcpy(item(heap, at), moved, heap->size);
}

static bool is_sorted(const struct heap *heap, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (heap->before(heap->context, item(heap, i), item(heap, i - 1))) return false;
    return true;
}

void rfx_heap_sort(void *list, int64_t n, size_t size, rfx_comes_before *before,
                   const void *context) {
    const struct heap heap = {list, size, before, context};
    _Alignas(max_align_t) char moved[RFX_HEAP_SORT_MOST_BYTES];
    assert(size <= sizeof moved);
    if (is_sorted(&heap, n)) return;
    for (int64_t i = n / 2 - 1; i >= 0; i--) {
        memcpy(moved, item(&heap, i), size);
        sift_down(&heap, n, i, moved);
    }
    for (int64_t last = n - 1; last > 0; last--) {
        memcpy(moved, item(&heap, last), size);
        memcpy(item(&heap, last), item(&heap, 0), size);
        sift_down(&heap, last, 0, moved);
    }
}
