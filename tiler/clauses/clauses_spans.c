/* Items in units; see clauses_spans.h. */
#include "tiler/clauses/clauses_spans.h"

#include <limits.h>

bool rfx_spans_add(const struct rfx_boundaries *b, const struct rfx_runs *runs, int n,
                   size_t capacity, struct rfx_clauses *clauses) {
    size_t unit = (size_t)runs->unit, height = capacity / unit;
    if (height > INT_MAX / 4) return true; /* two sums and a size are added up */
    struct rfx_clauses_item *items = rfx_memory_calloc(b->mem, (size_t)b->n_items, sizeof *items);
    if (items == NULL) return false;
    for (int i = 0; i < b->n_items; i++) {
        const struct rfx_boundary_item *item = &b->items[i];
        items[i] = (struct rfx_clauses_item){(int)(item->size / unit), item->begin, item->end,
                                             i < n ? 0 : rfx_runs_origin(runs, item->begin)};
    }
    bool enough = rfx_clauses_set_heights(clauses, items, b->n, (int)height);
    rfx_memory_release(b->mem, items);
    return enough;
}
