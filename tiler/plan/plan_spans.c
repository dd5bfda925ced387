/* Spans in no order; what is cut out of one leaves up to two. */
#include "tiler/plan/plan_spans.h"

#include "layers/core/checked.h"

static bool add_span(struct rfx_row_spans *s, struct rfx_row_span span) {
    if (span.y0 >= span.y1) return true;
    struct rfx_row_span *items =
        rfx_memory_reserve(s->mem, s->items, &s->capacity, s->count + 1, sizeof *s->items);
    if (items == NULL) return false;
    s->items = items;
    s->items[s->count++] = span;
    return true;
}

/* Takes rows [lo, hi) out of span i, whose place another one may take. */
static bool cut_span(struct rfx_row_spans *s, size_t i, int64_t lo, int64_t hi) {
    struct rfx_row_span above = s->items[i];
    struct rfx_row_span below = above;
    s->items[i] = s->items[--s->count];
    above.y1 = rfx_min_i64(lo, above.y1);
    below.y0 = rfx_max_i64(hi, below.y0);
    below.begin += (size_t)(below.y0 - above.y0) * below.row_bytes;
    return add_span(s, above) && add_span(s, below);
}

bool rfx_row_spans_overwrite(struct rfx_row_spans *s, size_t begin, size_t end) {
    for (size_t i = s->count; i-- > 0;) {
        const struct rfx_row_span *span = &s->items[i];
        size_t span_end = span->begin + (size_t)(span->y1 - span->y0) * span->row_bytes;
        if (begin >= span_end || end <= span->begin) continue;
        size_t from = begin > span->begin ? (begin - span->begin) / span->row_bytes : 0;
        size_t to = (end - span->begin + span->row_bytes - 1) / span->row_bytes;
        if (!cut_span(s, i, span->y0 + (int64_t)from, span->y0 + (int64_t)to)) return false;
    }
    return true;
}

bool rfx_row_spans_forget(struct rfx_row_spans *s, int node, int64_t lo, int64_t hi) {
    for (size_t i = s->count; i-- > 0;) {
        const struct rfx_row_span *span = &s->items[i];
        if (span->node != node || span->y0 >= hi || span->y1 <= lo) continue;
        if (!cut_span(s, i, lo, hi)) return false;
    }
    return true;
}

const struct rfx_row_span *rfx_row_spans_find(const struct rfx_row_spans *s, int node, int64_t y,
                                              int64_t *until) {
    for (size_t i = 0; i < s->count; i++) {
        const struct rfx_row_span *span = &s->items[i];
        if (span->node != node) continue;
        if (span->y0 <= y && y < span->y1) {
            *until = rfx_min_i64(*until, span->y1);
            return span;
        }
        if (span->y0 > y) *until = rfx_min_i64(*until, span->y0);
    }
    return NULL;
}

bool rfx_row_spans_join(struct rfx_row_spans *s, struct rfx_row_span span) {
    for (size_t i = 0; i < s->count; i++) {
        struct rfx_row_span *have = &s->items[i];
        bool alike = have->node == span.node && have->row_bytes == span.row_bytes &&
                     have->x0 == span.x0 && have->cols.lo == span.cols.lo &&
                     have->cols.hi == span.cols.hi;
        if (!alike || have->y1 != span.y0) continue;
        if (have->begin + (size_t)(have->y1 - have->y0) * have->row_bytes != span.begin) continue;
        have->y1 = span.y1;
        return true;
    }
    return add_span(s, span);
}

void rfx_row_spans_free(struct rfx_row_spans *s) {
    rfx_memory_release(s->mem, s->items);
}
