/* Clauses and variables in memory; see clauses_state.h. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tiler/clauses/clauses_state.h"

/* KEPT_LEVELS: a learnt clause of no more levels is never forgotten. */
enum { KEPT_LEVELS = 2, MOST_FIXED = 3 };

/* Activities are scaled down when one passes this. */
static const double largest_activity = 1e100;

static bool allocate(struct rfx_clauses *c) {
    struct rfx_memory *mem = c->mem;
    size_t n = (size_t)c->n;
    c->lists = rfx_memory_calloc(mem, 2 * n, sizeof *c->lists);
    c->value = rfx_memory_calloc(mem, 2 * n, sizeof *c->value);
    c->of = rfx_memory_calloc(mem, n, sizeof *c->of);
    c->origins = rfx_memory_calloc(mem, n, sizeof *c->origins);
    c->trail = rfx_memory_calloc(mem, n, sizeof *c->trail);
    c->starts = rfx_memory_calloc(mem, n + 1, sizeof *c->starts);
    c->activity = rfx_memory_calloc(mem, n, sizeof *c->activity);
    c->heap = rfx_memory_calloc(mem, n, sizeof *c->heap);
    c->seen = rfx_memory_calloc(mem, n, sizeof *c->seen);
    c->learn = rfx_memory_calloc(mem, n + 1, sizeof *c->learn);
    c->stack = rfx_memory_calloc(mem, n, sizeof *c->stack);
    c->touched = rfx_memory_calloc(mem, n, sizeof *c->touched);
    c->stamp = rfx_memory_calloc(mem, n + 1, sizeof *c->stamp);
    return c->lists != NULL && c->value != NULL && c->of != NULL && c->origins != NULL &&
           c->trail != NULL && c->starts != NULL && c->activity != NULL && c->heap != NULL &&
           c->seen != NULL && c->learn != NULL && c->stack != NULL && c->touched != NULL &&
           c->stamp != NULL;
}

enum rfx_status rfx_clauses_create(struct rfx_memory *mem, int n, struct rfx_clauses **out,
                                   struct rfx_error *err) {
    struct rfx_clauses *c = rfx_memory_calloc(mem, 1, sizeof *c);
    if (c == NULL) return rfx_memory_fail(mem, "packer", sizeof *c, err);
    c->mem = mem;
    c->n = n;
    c->step = 1;
    if (!allocate(c)) {
        rfx_clauses_free(c);
        return rfx_memory_fail(mem, "packer", (size_t)n * sizeof *c->lists, err);
    }
    for (int v = 0; v < n; v++) c->of[v].place = -1;
    *out = c;
    return RFX_OK;
}

void rfx_clauses_free(struct rfx_clauses *c) {
    if (c == NULL) return;
    for (int i = 0; i < 2 * c->n && c->lists != NULL; i++)
        rfx_memory_release(c->mem, c->lists[i].watches);
    rfx_clauses_release_orders(&c->orders);
    rfx_clauses_release_heights(&c->heights);
    void *const blocks[] = {c->store,       c->lists,        c->value,   c->trail, c->starts,
                            c->activity,    c->heap,         c->seen,    c->learn, c->stack,
                            c->touched,     c->stamp,        c->origins, c->of,    c->fixed.first,
                            c->fixed.pairs, c->fixed.triples};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(c->mem, blocks[i]);
    rfx_memory_release(c->mem, c);
}

void rfx_clauses_let_follow(struct rfx_clauses *c, int variable) {
    c->of[variable].follows = true;
}

bool rfx_clauses_value(const struct rfx_clauses *c, int variable) {
    return c->value[2 * variable] > 0;
}

bool rfx_clauses_watch(struct rfx_clauses *c, int literal, struct rfx_clauses_watch watch) {
    struct rfx_clauses_list *list = &c->lists[literal];
    struct rfx_clauses_watch *watches = rfx_memory_reserve(
        c->mem, list->watches, &list->capacity, (size_t)list->n + 1, sizeof *list->watches);
    if (watches == NULL) return false;
    list->watches = watches;
    list->watches[list->n++] = watch;
    return true;
}

static bool watch_both(struct rfx_clauses *c, uint32_t clause) {
    const int *literals = rfx_clauses_literals(c, clause);
    bool is_pair = c->store[clause] == 2;
    return rfx_clauses_watch(c, literals[0],
                             (struct rfx_clauses_watch){clause, literals[1], is_pair}) &&
           rfx_clauses_watch(c, literals[1],
                             (struct rfx_clauses_watch){clause, literals[0], is_pair});
}

uint32_t rfx_clauses_append(struct rfx_clauses *c, const int *literals, int n, int levels) {
    size_t wanted = c->n_store + CLAUSES_HEADER + (size_t)n;
    if (wanted >= CLAUSES_ORDER) return CLAUSES_NONE;
    uint32_t *store =
        rfx_memory_reserve(c->mem, c->store, &c->store_capacity, wanted, sizeof *c->store);
    if (store == NULL) return CLAUSES_NONE;
    c->store = store;
    uint32_t clause = (uint32_t)c->n_store;
    c->store[clause] = (uint32_t)n;
    c->store[clause + 1] = (uint32_t)levels;
    c->store[clause + 2] = (uint32_t)c->origin;
    c->store[clause + 3] = (uint32_t)(c->origin >> 32);
    memcpy(rfx_clauses_literals(c, clause), literals, (size_t)n * sizeof *literals);
    c->n_store = wanted;
    bool is_fixed = n <= MOST_FIXED && !c->has_searched;
    return is_fixed || watch_both(c, clause) ? clause : CLAUSES_NONE;
}

/* From how many pairs and triples each literal has to where they begin. */
static void add_up(struct rfx_clauses_first *first, int n) {
    struct rfx_clauses_first sum = {0, 0};
    for (int i = 0; i <= n; i++) {
        struct rfx_clauses_first here = first[i];
        first[i] = sum;
        sum.pair += here.pair;
        sum.triple += here.triple;
    }
}

static void count_fixed(const struct rfx_clauses *c, struct rfx_clauses_first *first) {
    for (size_t at = 0; at < c->n_store; at += CLAUSES_HEADER + c->store[at]) {
        const int *literals = rfx_clauses_literals(c, (uint32_t)at);
        for (uint32_t k = 0; k < c->store[at] && c->store[at] <= MOST_FIXED; k++)
            ++*(c->store[at] == 2 ? &first[literals[k]].pair : &first[literals[k]].triple);
    }
    add_up(first, 2 * c->n);
}

static void fill_fixed(const struct rfx_clauses *c, struct rfx_clauses_fixed *fixed) {
    struct rfx_clauses_first *first = fixed->first;
    for (size_t at = 0; at < c->n_store; at += CLAUSES_HEADER + c->store[at]) {
        uint32_t clause = (uint32_t)at;
        const int *l = rfx_clauses_literals(c, clause);
        for (int k = 0; k < 2 && c->store[at] == 2; k++)
            fixed->pairs[first[l[k]].pair++] = (struct rfx_clauses_pair){l[1 - k], clause};
        for (int k = 0; k < 3 && c->store[at] == 3; k++)
            fixed->triples[first[l[k]].triple++] =
                (struct rfx_clauses_triple){{l[(k + 1) % 3], l[(k + 2) % 3]}, clause};
    }
    memmove(&first[1], first, 2 * (size_t)c->n * sizeof *first); /* each is where the next begins */
    first[0] = (struct rfx_clauses_first){0, 0};
}

bool rfx_clauses_fix(struct rfx_clauses *c) {
    struct rfx_clauses_fixed *fixed = &c->fixed;
    size_t n = 2 * (size_t)c->n;
    c->learnt = c->n_store;
    fixed->first = rfx_memory_calloc(c->mem, n + 1, sizeof *fixed->first);
    if (fixed->first == NULL) return false;
    count_fixed(c, fixed->first);
    struct rfx_clauses_first all = fixed->first[n];
    fixed->pairs = rfx_memory_alloc(c->mem, (size_t)all.pair * sizeof *fixed->pairs);
    fixed->triples = rfx_memory_alloc(c->mem, (size_t)all.triple * sizeof *fixed->triples);
    if (fixed->pairs == NULL || fixed->triples == NULL) return false;
    fill_fixed(c, fixed);
    return true;
}

void rfx_clauses_set_origin(struct rfx_clauses *c, uint64_t origin) {
    c->origin = origin;
}

uint64_t rfx_clauses_proof(const struct rfx_clauses *c) {
    return c->proof;
}

/* As rfx_clauses_add, and c->origin becomes all origins of what is left of the clause. */
static bool add(struct rfx_clauses *c, const int *literals, int n) {
    int left = 0;
    int *kept = c->learn;
    assert(!c->has_searched && n <= c->n);
    for (int i = 0; i < n; i++) {
        if (c->value[literals[i]] > 0) return true;
        if (c->value[literals[i]] == 0)
            kept[left++] = literals[i];
        else
            c->origin |= c->origins[literals[i] / 2];
    }
    if (left == 0) {
        c->is_impossible = true;
        c->proof = c->origin;
    }
    if (left == 1) {
        c->value[kept[0]] = 1;
        c->value[kept[0] ^ 1] = -1;
        c->of[kept[0] / 2].level = 0;
        c->origins[kept[0] / 2] = c->origin;
        c->trail[c->n_trail++] = kept[0];
    }
    return left < 2 || rfx_clauses_append(c, kept, left, 0) != CLAUSES_NONE;
}

bool rfx_clauses_add(struct rfx_clauses *c, const int *literals, int n) {
    uint64_t origin = c->origin;
    bool enough = add(c, literals, n);
    c->origin = origin;
    return enough;
}

static int compare_levels(const void *pa, const void *pb) {
    const uint32_t *a = pa;
    const uint32_t *b = pb;
    return (a[0] > b[0]) - (a[0] < b[0]);
}

/* The levels from which on learnt clauses are forgotten, so that half of them are. false: no
 * memory. */
static bool find_median(struct rfx_clauses *c, uint32_t *median) {
    size_t n = 0;
    for (size_t at = c->learnt; at < c->n_store; at += CLAUSES_HEADER + c->store[at]) n++;
    uint32_t *levels = rfx_memory_alloc(c->mem, (n + 1) * sizeof *levels);
    if (levels == NULL) return false;
    n = 0;
    for (size_t at = c->learnt; at < c->n_store; at += CLAUSES_HEADER + c->store[at])
        levels[n++] = c->store[at + 1];
    qsort(levels, n, sizeof *levels, compare_levels);
    *median = n > 0 ? levels[n / 2] : 0;
    rfx_memory_release(c->mem, levels);
    return true;
}

bool rfx_clauses_forget(struct rfx_clauses *c) {
    uint32_t most = 0;
    size_t to = c->learnt;
    if (!find_median(c, &most)) return false;
    if (most <= KEPT_LEVELS) most = KEPT_LEVELS + 1;
    for (int i = 0; i < 2 * c->n; i++) {
        struct rfx_clauses_list *list = &c->lists[i];
        int kept = 0;
        for (int k = 0; k < list->n; k++)
            if (list->watches[k].clause < c->learnt) list->watches[kept++] = list->watches[k];
        list->n = kept;
    }
    size_t end = c->n_store;
    for (size_t at = c->learnt; at < end;) {
        size_t length = CLAUSES_HEADER + c->store[at];
        if (c->store[at + 1] < most) {
            memmove(&c->store[to], &c->store[at], length * sizeof *c->store);
            if (!watch_both(c, (uint32_t)to)) return false;
            to += length;
        }
        at += length;
    }
    c->n_store = to;
    return true;
}

static void sift_up(struct rfx_clauses *c, int at) {
    int variable = c->heap[at];
    while (at > 0 && c->activity[c->heap[(at - 1) / 2]] < c->activity[variable]) {
        c->heap[at] = c->heap[(at - 1) / 2];
        c->of[c->heap[at]].place = at;
        at = (at - 1) / 2;
    }
    c->heap[at] = variable;
    c->of[variable].place = at;
}

void rfx_clauses_push(struct rfx_clauses *c, int variable) {
    if (c->of[variable].place >= 0) return;
    c->heap[c->n_heap++] = variable;
    sift_up(c, c->n_heap - 1);
}

int rfx_clauses_pop(struct rfx_clauses *c) {
    int top = c->heap[0];
    int last = c->heap[--c->n_heap];
    int at = 0;
    c->of[top].place = -1;
    if (c->n_heap == 0) return top;
    for (int child = 1; child < c->n_heap; child = 2 * at + 1) {
        if (child + 1 < c->n_heap && c->activity[c->heap[child + 1]] > c->activity[c->heap[child]])
            child++;
        if (c->activity[c->heap[child]] <= c->activity[last]) break;
        c->heap[at] = c->heap[child];
        c->of[c->heap[at]].place = at;
        at = child;
    }
    c->heap[at] = last;
    c->of[last].place = at;
    return top;
}

void rfx_clauses_bump(struct rfx_clauses *c, int variable) {
    c->activity[variable] += c->step;
    if (c->activity[variable] > largest_activity) {
        for (int v = 0; v < c->n; v++) c->activity[v] /= largest_activity;
        c->step /= largest_activity;
    }
    if (c->of[variable].place >= 0) sift_up(c, c->of[variable].place);
}
