/* Creates placement problems with their sections, validates answers, and says when a search has to
 * stop. */
#include "tiler/arena/arena_problem.h"

#include <stdlib.h>
#include <string.h>

#include "layers/core/checked.h"

static enum rfx_status check_items(const struct rfx_place_item *items, int n,
                                   struct rfx_error *err) {
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        const struct rfx_place_item *item = &items[i];
        if (item->lo >= item->hi)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "item %d: its lifetime [%lld, %lld) is empty", i, (long long)item->lo,
                            (long long)item->hi);
        if (item->size == 0)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "item %d: its size is 0", i);
        if (item->alignment == 0 || (item->alignment & (item->alignment - 1)) != 0)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "item %d: alignment %zu is no power of two", i, item->alignment);
        if (item->size > INT64_MAX || item->alignment > INT64_MAX ||
            !rfx_checked_add_i64(total, (int64_t)item->size, &total) ||
            !rfx_checked_add_i64(total, (int64_t)item->alignment, &total))
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "item %d: the sizes add up to more than %lld bytes", i,
                            (long long)INT64_MAX);
    }
    return RFX_OK;
}

static int compare_times(const void *pa, const void *pb) {
    int64_t a = *(const int64_t *)pa;
    int64_t b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

/* Fills times with the begins and ends of all items, rising and each once; returns their number.
 * `times` has room for 2 n elements. */
static int list_times(const struct rfx_place_item *items, int n, int64_t *times) {
    int count = 0;
    for (int i = 0; i < n; i++) {
        times[2 * i] = items[i].lo;
        times[2 * i + 1] = items[i].hi;
    }
    if (n > 0) qsort(times, 2 * (size_t)n, sizeof *times, compare_times);
    for (int i = 0; i < 2 * n; i++)
        if (count == 0 || times[count - 1] != times[i]) times[count++] = times[i];
    return count;
}

/* Returns the index of `time` in the sorted times, which contain it. */
static int find_time(const int64_t *times, int n, int64_t time) {
    int lo = 0;
    int hi = n - 1;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (times[middle] < time)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* Fills the sections; `times` is scratch of 2 n elements. */
static void cut_sections(struct rfx_place_problem *problem, int64_t *times) {
    int n_times = list_times(problem->items, problem->n, times);
    problem->n_sections = n_times > 0 ? n_times - 1 : 0;
    for (int i = 0; i < problem->n; i++) {
        const struct rfx_place_item *item = &problem->items[i];
        problem->first[i] = find_time(times, n_times, item->lo);
        problem->last[i] = find_time(times, n_times, item->hi);
        problem->sum_bytes += item->size;
        problem->breadth[problem->first[i]] +=
            item->size; /* sums modulo 2^64; each is a true size in the end */
        problem->breadth[problem->last[i]] -= item->size;
    }
    for (int s = 1; s < problem->n_sections; s++) problem->breadth[s] += problem->breadth[s - 1];
    for (int s = 0; s < problem->n_sections; s++)
        if (problem->breadth[s] > problem->lower_bound) problem->lower_bound = problem->breadth[s];
}

int rfx_place_compare_ranked(const void *pa, const void *pb) {
    const struct rfx_place_ranked *a = pa;
    const struct rfx_place_ranked *b = pb;
    if (a->key != b->key) return a->key < b->key ? 1 : -1;
    return (a->index > b->index) - (a->index < b->index);
}

enum rfx_status rfx_place_problem_create(struct rfx_memory *mem, const struct rfx_place_item *items,
                                         int n, struct rfx_place_problem **out,
                                         struct rfx_error *err) {
    enum rfx_status status = check_items(items, n, err);
    if (status != RFX_OK) return status;
    size_t count = (size_t)n;
    struct rfx_place_problem *problem = rfx_memory_calloc(mem, 1, sizeof *problem);
    if (problem == NULL) return rfx_memory_fail(mem, "placement problem", sizeof *problem, err);
    problem->mem = mem;
    problem->n = n;
    problem->items = rfx_memory_calloc(mem, count, sizeof *problem->items);
    problem->first = rfx_memory_calloc(mem, count, sizeof *problem->first);
    problem->last = rfx_memory_calloc(mem, count, sizeof *problem->last);
    problem->breadth = rfx_memory_calloc(mem, 2 * count, sizeof *problem->breadth);
    int64_t *times = rfx_memory_calloc(mem, 2 * count, sizeof *times);
    if (problem->items == NULL || problem->first == NULL || problem->last == NULL ||
        problem->breadth == NULL || times == NULL) {
        rfx_memory_release(mem, times);
        rfx_place_problem_free(problem);
        return rfx_memory_fail(mem, "placement problem", count * sizeof *items, err);
    }
    if (n > 0) memcpy(problem->items, items, count * sizeof *items);
    cut_sections(problem, times);
    rfx_memory_release(mem, times);
    *out = problem;
    return RFX_OK;
}

void rfx_place_problem_free(struct rfx_place_problem *problem) {
    if (problem == NULL) return;
    struct rfx_memory *mem = problem->mem;
    rfx_memory_release(mem, problem->items);
    rfx_memory_release(mem, problem->first);
    rfx_memory_release(mem, problem->last);
    rfx_memory_release(mem, problem->breadth);
    rfx_memory_release(mem, problem);
}

/* Answers with more items are checked by a sweep; smaller ones are checked pair by pair, which
 * needs no memory. */
enum { MAX_PAIRWISE = 2048 };

static bool pairs_are_apart(const struct rfx_place_item *items, int n, const size_t *offsets) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) {
            if (!rfx_place_items_overlap(&items[i], &items[j])) continue;
            if (offsets[i] < offsets[j] + items[j].size && offsets[j] < offsets[i] + items[i].size)
                return false;
        }
    }
    return true;
}

/* The highest ends of placed items, in a tree over time. A leaf is a stretch of time. A node holds
 * the highest end of the items that cover all of its leaves (`whole`), and of the items that cover
 * some of them (`any`). */
struct tops {
    int64_t *times;
    size_t *whole, *any;
    int n_times, n_leaves;
};

/* Places an item at its offset. Returns false when a placed item that is live with it ends above
 * that offset. Items come by rising offset, so the new end replaces the old ones. */
static bool lay(struct tops *tops, const struct rfx_place_item *item, size_t offset) {
    size_t end = offset + item->size;
    int from = tops->n_leaves + find_time(tops->times, tops->n_times, item->lo);
    int to = tops->n_leaves + find_time(tops->times, tops->n_times, item->hi);
    /* an item that covers all leaves of a node above is found on the paths up from both ends */
    for (int up = from / 2; up > 0; up /= 2)
        if (tops->whole[up] > offset) return false;
    for (int up = (to - 1) / 2; up > 0; up /= 2)
        if (tops->whole[up] > offset) return false;
    for (int a = from, b = to; a < b; a = (a + 1) / 2, b /= 2) {
        if (a % 2 == 1) {
            if (tops->any[a] > offset) return false;
            tops->whole[a] = tops->any[a] = end;
        }
        if (b % 2 == 1) {
            if (tops->any[b - 1] > offset) return false;
            tops->whole[b - 1] = tops->any[b - 1] = end;
        }
    }
    for (int up = from / 2; up > 0; up /= 2)
        if (tops->any[up] < end) tops->any[up] = end;
    for (int up = (to - 1) / 2; up > 0; up /= 2)
        if (tops->any[up] < end) tops->any[up] = end;
    return true;
}

/* Sets *apart to whether no two items that are live together share a byte. Lays the items one by
 * one, lowest offset first. Returns false when there is no memory. */
static bool sweep_is_apart(struct rfx_memory *mem, const struct rfx_place_item *items, int n,
                           const size_t *offsets, bool *apart) {
    size_t count = (size_t)n;
    struct tops tops = {.n_leaves = 1};
    while (tops.n_leaves < 2 * n) tops.n_leaves *= 2;
    size_t n_nodes = 2 * (size_t)tops.n_leaves;
    struct rfx_place_ranked *order = rfx_memory_calloc(mem, count, sizeof *order);
    tops.times = rfx_memory_calloc(mem, 2 * count, sizeof *tops.times);
    tops.whole = rfx_memory_calloc(mem, n_nodes, sizeof *tops.whole);
    tops.any = rfx_memory_calloc(mem, n_nodes, sizeof *tops.any);
    bool enough = order != NULL && tops.times != NULL && tops.whole != NULL && tops.any != NULL;
    if (enough) {
        for (int i = 0; i < n; i++)
            order[i] = (struct rfx_place_ranked){UINT64_MAX - offsets[i], i};
        qsort(order, count, sizeof *order, rfx_place_compare_ranked);
        tops.n_times = list_times(items, n, tops.times);
        *apart = true;
        for (int k = 0; k < n && *apart; k++)
            *apart = lay(&tops, &items[order[k].index], offsets[order[k].index]);
    }
    rfx_memory_release(mem, order);
    rfx_memory_release(mem, tops.times);
    rfx_memory_release(mem, tops.whole);
    rfx_memory_release(mem, tops.any);
    return enough;
}

static bool lies_in(const struct rfx_place_item *item, size_t offset, size_t arena_bytes) {
    return offset % item->alignment == 0 && offset <= arena_bytes &&
           item->size <= arena_bytes - offset;
}

bool rfx_place_answer_is_valid(const struct rfx_place_item *items, int n, const size_t *offsets,
                               size_t arena_bytes) {
    for (int i = 0; i < n; i++)
        if (!lies_in(&items[i], offsets[i], arena_bytes)) return false;
    if (n <= MAX_PAIRWISE) return pairs_are_apart(items, n, offsets);
    struct rfx_memory *mem = rfx_memory_create(0);
    bool apart = false;
    bool swept = mem != NULL && sweep_is_apart(mem, items, n, offsets, &apart);
    rfx_memory_free(mem);
    return swept ? apart : pairs_are_apart(items, n, offsets);
}

enum rfx_status rfx_place_fail_check(const char *strategy, int n, struct rfx_error *err) {
    return rfx_fail(
        err, RFX_STATUS_INTERNAL,
        "internal error: '%s' placed %d buffers so that two in use at once share bytes, "
        "or one lies outside or is not aligned; please report this",
        strategy, n);
}

size_t rfx_place_arena_bytes(const struct rfx_place_item *items, int n, const size_t *offsets) {
    size_t arena = 0;
    for (int i = 0; i < n; i++)
        if (offsets[i] + items[i].size > arena) arena = offsets[i] + items[i].size;
    return arena;
}

/* Calls stop->ask if enough time has passed and no other thread is calling it. */
static bool ask(const struct rfx_place_stop *stop, int64_t now) {
    if (now - atomic_load(stop->asked_at_ns) < RFX_PLACE_ASK_EVERY_NS) return false;
    if (atomic_flag_test_and_set(stop->asking)) return false;
    atomic_store(stop->asked_at_ns, now);
    bool yes = stop->ask(stop->user);
    atomic_flag_clear(stop->asking);
    if (yes && stop->stopped != NULL) atomic_store(stop->stopped, true);
    return yes;
}

bool rfx_place_must_stop(const struct rfx_memory *mem, const struct rfx_place_stop *stop) {
    if (rfx_memory_is_stopped(mem)) return true;
    if (stop == NULL) return false;
    if (stop->stopped != NULL && atomic_load_explicit(stop->stopped, memory_order_relaxed))
        return true;
    if (stop->deadline_ns == 0 && stop->ask == NULL) return false;
    int64_t now = rfx_place_now_ns();
    if (stop->deadline_ns != 0 && now > stop->deadline_ns) return true;
    return stop->ask != NULL && ask(stop, now);
}
