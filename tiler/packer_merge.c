/* Joins items until no rule applies; sure joins first. */
#include "tiler/packer_merge.h"

#include <string.h>

struct merger {
    struct rfx_place_item *items; /* size 0: joined to another */
    int n;
    int *owner;
    size_t *relative;
};

/* Moves item b and all joined to it to `above` bytes over the start of a. */
static void join(struct merger *m, int a, int b, size_t above) {
    struct rfx_place_item *item = &m->items[a];
    if (m->items[b].lo < item->lo) item->lo = m->items[b].lo;
    if (m->items[b].hi > item->hi) item->hi = m->items[b].hi;
    if (m->items[b].alignment > item->alignment) item->alignment = m->items[b].alignment;
    item->size = above == 0 ? item->size : above + m->items[b].size;
    m->items[b].size = 0;
    for (int i = 0; i < m->n; i++) {
        if (m->owner[i] != b) continue;
        m->owner[i] = a;
        m->relative[i] += above;
    }
}

/* How many items of this size begin (or end) at a time. */
static int count_at(const struct merger *m, int64_t time, size_t size, bool begin) {
    int count = 0;
    for (int i = 0; i < m->n; i++)
        if (m->items[i].size == size && (begin ? m->items[i].lo : m->items[i].hi) == time) count++;
    return count;
}

static bool join_following(struct merger *m) {
    for (int a = 0; a < m->n; a++) {
        const struct rfx_place_item *item = &m->items[a];
        if (item->size == 0) continue;
        for (int b = 0; b < m->n; b++) {
            if (m->items[b].size != item->size || m->items[b].lo != item->hi) continue;
            if (count_at(m, item->hi, item->size, true) != 1) break;
            if (count_at(m, item->hi, item->size, false) != 1) break;
            join(m, a, b, 0);
            return true;
        }
    }
    return false;
}

/* Two of one lifetime; with `supported` only where one item of their sum ends or begins beside. */
static bool join_stacked(struct merger *m, bool supported) {
    for (int a = 0; a < m->n; a++) {
        const struct rfx_place_item *item = &m->items[a];
        if (item->size == 0) continue;
        for (int b = 0; b < m->n; b++) {
            const struct rfx_place_item *other = &m->items[b];
            if (b == a || other->size == 0 || other->lo != item->lo || other->hi != item->hi)
                continue;
            if (item->size % other->alignment != 0) continue;
            size_t sum = item->size + other->size;
            if (supported && count_at(m, item->lo, sum, false) == 0 &&
                count_at(m, item->hi, sum, true) == 0)
                continue;
            join(m, a, b, item->size);
            return true;
        }
    }
    return false;
}

enum rfx_status rfx_packer_merge(const struct rfx_place_problem *problem, int *owner,
                                 size_t *relative, struct rfx_place_problem **merged,
                                 struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    size_t n = (size_t)problem->n;
    struct merger m = {rfx_memory_calloc(mem, n, sizeof *m.items), problem->n, owner, relative};
    int *place = rfx_memory_calloc(mem, n, sizeof *place);
    enum rfx_status status;
    if (m.items == NULL || place == NULL) {
        status = rfx_memory_fail(mem, "packer", n * sizeof *m.items, err);
    } else {
        int count = 0;
        memcpy(m.items, problem->items, n * sizeof *m.items);
        memset(relative, 0, n * sizeof *relative);
        for (int i = 0; i < m.n; i++) owner[i] = i;
        while (join_following(&m) || join_stacked(&m, true) || join_stacked(&m, false)) continue;
        for (int i = 0; i < m.n; i++) {
            if (m.items[i].size == 0) continue;
            place[i] = count;
            m.items[count++] = m.items[i];
        }
        for (int i = 0; i < m.n; i++) owner[i] = place[owner[i]];
        status = rfx_place_problem_create(mem, m.items, count, merged, err);
    }
    rfx_memory_release(mem, place);
    rfx_memory_release(mem, m.items);
    return status;
}
