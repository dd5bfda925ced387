/* Heap sort (Williams 1964): needs no memory, unlike qsort of the C library. */
#ifndef RFX_LAYERS_CORE_HEAP_SORT_H
#define RFX_LAYERS_CORE_HEAP_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RFX_HEAP_SORT_MOST_BYTES = 128 }; /* of an item */

/* Returns whether item `a` comes before item `b`; false for equal items. */
typedef bool rfx_comes_before(const void *context, const void *a, const void *b);

/* Sorts n items of `size` bytes (asserted: at most RFX_HEAP_SORT_MOST_BYTES). The order of equal
 * items is not defined, but is the same for the same list. O(n log n); O(n) for a sorted list. */
void rfx_heap_sort(void *list, int64_t n, size_t size, rfx_comes_before *before,
                   const void *context);
#endif
