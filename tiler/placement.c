/* Greedy-by-size placement, the largest-breadth bound, and the validator. */
#include "tiler/placement.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "layers/checked.h"
#include "tiler/placement_problem.h"

bool rfx_records_overlap(const struct rfx_record *a, const struct rfx_record *b) {
    struct rfx_place_item ia = {a->first, (int64_t)a->last + 1, a->bytes, RFX_ALIGNMENT_BYTES};
    struct rfx_place_item ib = {b->first, (int64_t)b->last + 1, b->bytes, RFX_ALIGNMENT_BYTES};
    return rfx_place_items_overlap(&ia, &ib);
}

/* Larger first; ties by id, so that the order is total. */
static int compare_size(const void *pa, const void *pb) {
    const struct rfx_record *a = pa;
    const struct rfx_record *b = pb;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Lowest offset of the smallest gap that fits among the `n` placed records, sorted by offset. */
static size_t best_gap(const struct rfx_record *placed, int n, const struct rfx_record *record) {
    size_t best = 0;
    size_t best_size = SIZE_MAX;
    size_t end = 0;
    for (int i = 0; i < n; i++) {
        if (!rfx_records_overlap(&placed[i], record)) continue;
        if (placed[i].offset > end) {
            size_t gap = placed[i].offset - end;
            if (gap >= record->bytes && gap < best_size) {
                best = end;
                best_size = gap;
            }
        }
        size_t next = placed[i].offset + placed[i].bytes;
        if (next > end) end = next;
    }
    return best_size == SIZE_MAX ? end : best;
}

size_t rfx_place_by_size(struct rfx_record *records, int n) {
    size_t arena = 0;
    qsort(records, (size_t)n, sizeof *records, compare_size);
    for (int i = 0; i < n; i++) {
        struct rfx_record record = records[i];
        record.offset = best_gap(records, i, &record);
        if (record.offset + record.bytes > arena) arena = record.offset + record.bytes;
        int at = i; /* keep the placed ones sorted by offset */
        while (at > 0 && records[at - 1].offset > record.offset) at--;
        memmove(&records[at + 1], &records[at], (size_t)(i - at) * sizeof *records);
        records[at] = record;
    }
    return arena;
}

size_t rfx_place_lower_bound(const struct rfx_record *records, int n, int n_steps, size_t *live) {
    memset(live, 0, ((size_t)n_steps + 1) * sizeof *live);
    for (int i = 0; i < n; i++) {
        live[records[i].first] += records[i].bytes;
        if (records[i].last + 1 <= n_steps) live[records[i].last + 1] -= records[i].bytes;
    }
    size_t bound = 0;
    size_t current = 0;
    for (int t = 0; t < n_steps; t++) {
        current += live[t]; /* modular sums: each prefix is a true size */
        if (current > bound) bound = current;
    }
    return bound;
}

bool rfx_place_is_valid(const struct rfx_record *records, int n, size_t arena_bytes) {
    for (int i = 0; i < n; i++) {
        const struct rfx_record *a = &records[i];
        if (a->offset % RFX_ALIGNMENT_BYTES != 0) return false;
        if (a->offset > arena_bytes || a->bytes > arena_bytes - a->offset) return false;
        for (int j = 0; j < i; j++) {
            const struct rfx_record *b = &records[j];
            if (!rfx_records_overlap(a, b)) continue;
            if (a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes) return false;
        }
    }
    return true;
}
