/* What memory holds while a plan is checked: spans of consecutive rows of a node that were written
 * to some bytes and that nobody has written over since. No two spans share a byte.
 * Functions that return bool: false when there is no memory. */
#ifndef RFX_TILER_PLAN_PLAN_SPANS_H
#define RFX_TILER_PLAN_PLAN_SPANS_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

/* Rows [y0, y1) of a node that are in memory, one after the other. */
struct rfx_row_span {
    int node;
    int64_t y0, y1;
    size_t begin, row_bytes; /* in the arena */
    struct rfx_range cols;   /* that have been written (the hull) */
    int64_t x0;              /* the view's first column when they were written */
};

/* All zero but `mem` is empty. */
struct rfx_row_spans {
    struct rfx_memory *mem;
    struct rfx_row_span *items;
    size_t count, capacity;
};

void rfx_row_spans_free(struct rfx_row_spans *s);

/* Takes back what any node has on bytes [begin, end). */
RFX_NODISCARD bool rfx_row_spans_overwrite(struct rfx_row_spans *s, size_t begin, size_t end);

/* Takes back rows [lo, hi) of a node wherever they are. */
RFX_NODISCARD bool rfx_row_spans_forget(struct rfx_row_spans *s, int node, int64_t lo, int64_t hi);

/* The span that has row y of a node, or NULL; *until: rows [y, *until) are in it, or in none. */
const struct rfx_row_span *rfx_row_spans_find(const struct rfx_row_spans *s, int node, int64_t y,
                                              int64_t *until);

/* Adds a span on bytes that none has, or lengthens the one that it continues. Empty: nothing. */
RFX_NODISCARD bool rfx_row_spans_join(struct rfx_row_spans *s, struct rfx_row_span span);
#endif
