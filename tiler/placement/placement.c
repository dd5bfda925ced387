/* Placing the records of a plan, the largest-breadth bound, and the validator. */
#include "tiler/placement/placement.h"

#include <stdint.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/packer/packer.h"

/* Search nodes for where no greedy strategy meets the bound: limits in nodes, not in time, so that
 * a placement is a function of the records. Quick ones serve the planner, which compares thousands
 * of plans; the one that is run gets more. A node looks at each record in each section of time that
 * it lives in, up to once a nanosecond or so: where there are thousands of records, nodes are as
 * many as looks allow, which take some tenths of a second. Plans hang on all values: other ones
 * find other arenas. */
enum { QUICK_NODES = 50, SEARCH_NODES = 4000, SEARCH_LOOKS = 80 * 1000 * 1000 };

static struct rfx_place_item item_of(const struct rfx_record *r) {
    struct rfx_place_item item = {r->first, (int64_t)r->last + 1, r->bytes, RFX_ALIGNMENT_BYTES};
    return item;
}

bool rfx_records_overlap(const struct rfx_record *a, const struct rfx_record *b) {
    struct rfx_place_item ia = item_of(a);
    struct rfx_place_item ib = item_of(b);
    return rfx_place_items_overlap(&ia, &ib);
}

static uint64_t count_nodes(const struct rfx_place_problem *problem, bool quick) {
    uint64_t looks = 1, most = quick ? QUICK_NODES : SEARCH_NODES;
    for (int i = 0; i < problem->n; i++) looks += (uint64_t)(problem->last[i] - problem->first[i]);
    uint64_t allowed = 1 + SEARCH_LOOKS / looks;
    return allowed < most ? allowed : most;
}

enum rfx_status rfx_place_records(struct rfx_memory *mem, struct rfx_record *records, int n,
                                  bool quick, size_t *arena_bytes, const char **strategy,
                                  struct rfx_error *err) {
    struct rfx_packer_limits limits = {0};
    struct rfx_packer_result result = {0};
    struct rfx_place_problem *problem = NULL;
    size_t bytes = (size_t)n * (sizeof(struct rfx_place_item) + sizeof(size_t));
    struct rfx_place_item *items = rfx_memory_alloc(mem, bytes);
    if (items == NULL) return rfx_memory_fail(mem, "placement", bytes, err);
    size_t *offsets = (size_t *)(void *)(items + n);
    for (int i = 0; i < n; i++) items[i] = item_of(&records[i]);
    enum rfx_status status = rfx_place_problem_create(mem, items, n, &problem, err);
    if (status == RFX_OK) {
        limits.nodes = count_nodes(problem, quick);
        status = rfx_packer_solve(problem, &limits, offsets, &result, err);
    }
    if (status == RFX_OK) {
        for (int i = 0; i < n; i++) records[i].offset = offsets[i]; /* packer.h has checked them */
        *arena_bytes = result.arena_bytes;
        *strategy = result.method;
    }
    rfx_place_problem_free(problem);
    rfx_memory_release(mem, items);
    return status;
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

static bool are_apart(const struct rfx_record *a, const struct rfx_record *b) {
    return a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
}

/* Whether a slide allows the two records to lie as they do. */
static bool may_slide(const struct rfx_record *records, int i, int j,
                      const struct rfx_slide *slides, int n_slides, const bool *upwards) {
    for (int k = 0; k < n_slides; k++) {
        const struct rfx_slide *s = &slides[k];
        if (!((s->before == i && s->after == j) || (s->before == j && s->after == i))) continue;
        size_t before = records[s->before].offset;
        size_t after = records[s->after].offset;
        return upwards[k] ? after >= before + s->up : before >= after + s->down;
    }
    return false;
}

bool rfx_place_is_valid(const struct rfx_record *records, int n, const struct rfx_slide *slides,
                        int n_slides, const bool *upwards, size_t arena_bytes) {
    for (int i = 0; i < n; i++) {
        const struct rfx_record *a = &records[i];
        if (a->offset % RFX_ALIGNMENT_BYTES != 0) return false;
        if (a->offset > arena_bytes || a->bytes > arena_bytes - a->offset) return false;
        for (int j = 0; j < i; j++) {
            if (!rfx_records_overlap(a, &records[j]) || are_apart(a, &records[j])) continue;
            if (!may_slide(records, i, j, slides, n_slides, upwards)) return false;
        }
    }
    return true;
}
