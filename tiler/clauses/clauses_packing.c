/* From boundaries to clauses and back; see clauses_packing.h. */
#include "tiler/clauses/clauses_packing.h"

#include <string.h>

#include "tiler/clauses/clauses_sums.h"
#include "tiler/packer/packer_boundaries.h"

/* MAX_CLAUSES: of those that say what lies below what; beyond it nothing is searched. MAX_ADDED: of
 * the items of a boundary for which the sums of each group are said too. */
enum {
    MAX_CLAUSES = 1 << 22,
    MAX_SIDES = 2 * RFX_BOUNDARY_MAX_SIDE,
    MAX_ADDED = 8,
    MAX_OWN = 1 << 18, /* variables of the sums of one boundary; where more are needed nothing is
                          said, and what is found may be none */
    MAX_PIECES = 2048  /* items with fillers */
};

struct packing {
    struct rfx_memory *mem;
    struct rfx_boundaries *b;
    struct rfx_clauses *clauses;
    struct rfx_sums **sums; /* per boundary; NULL: nothing is said there */
    int *first;             /* per boundary: the first of its groups' and sums' variables */
    int *pair;              /* per two items: the variable, or -1: never alive at one time */
    int *live;
    int n_variables, yes; /* yes: a variable that is true */
};

/* That item i lies below item j. */
static int below(const struct packing *p, int i, int j) {
    if (i < j) return 2 * p->pair[i * p->b->n_items + j];
    return 2 * p->pair[j * p->b->n_items + i] + 1;
}

/* Drops items that end at a boundary from those that live; returns their number. */
static int end_items(const struct packing *p, int n_live, int at) {
    int n = 0;
    for (int k = 0; k < n_live; k++)
        if (p->b->items[p->live[k]].end > at) p->live[n++] = p->live[k];
    return n;
}

/* The sums of what ends (positive) and begins at a boundary. */
static enum rfx_status make_sums(struct packing *p, int at, struct rfx_error *err) {
    const struct rfx_boundary *boundary = &p->b->at[at];
    int64_t terms[MAX_SIDES];
    int n = 0;
    for (int k = 0; k < boundary->n_ends; k++)
        terms[n++] = (int64_t)p->b->items[p->b->by_end[boundary->ends + k]].size;
    for (int k = 0; k < boundary->n_begins; k++)
        terms[n++] = -(int64_t)p->b->items[p->b->by_begin[boundary->begins + k]].size;
    return n == 0 ? RFX_OK : rfx_sums_create(p->mem, terms, n, &p->sums[at], err);
}

/* How many ends and begins a boundary has. */
static int count_sides(const struct packing *p, int at) {
    return p->b->at[at].n_ends + p->b->at[at].n_begins;
}

/* The variables of the groups and sums of a boundary at which n_live items go on. */
static int count_variables(const struct packing *p, int n_live, int at) {
    int n = count_sides(p, at);
    return n * (n - 1) / 2 + rfx_sums_variables(p->sums[at]) * (n_live + (n <= MAX_ADDED ? n : 0));
}

/* Numbers the variables. *possible: there are not too many clauses. */
static enum rfx_status number(struct packing *p, bool *possible, struct rfx_error *err) {
    const struct rfx_boundaries *b = p->b;
    int64_t clauses = 0;
    int n_live = 0;
    enum rfx_status status = RFX_OK;
    memset(p->pair, 0xff, (size_t)b->n_items * (size_t)b->n_items * sizeof *p->pair);
    for (int at = 0; at < b->n - 1 && status == RFX_OK; at++) {
        n_live = end_items(p, n_live, at);
        if (n_live > 0) status = make_sums(p, at, err);
        p->first[at] = p->n_variables;
        if (p->sums[at] != NULL && count_variables(p, n_live, at) > MAX_OWN) {
            rfx_sums_free(p->sums[at]);
            p->sums[at] = NULL;
        }
        if (p->sums[at] != NULL) p->n_variables += count_variables(p, n_live, at);
        for (int k = 0; k < b->at[at].n_begins; k++) {
            int item = b->by_begin[b->at[at].begins + k];
            for (int l = 0; l < n_live; l++) {
                int i = p->live[l] < item ? p->live[l] : item;
                int j = p->live[l] < item ? item : p->live[l];
                p->pair[i * b->n_items + j] = p->n_variables++;
            }
            clauses += (int64_t)n_live * (n_live - 1);
            p->live[n_live++] = item;
        }
    }
    *possible = clauses <= MAX_CLAUSES;
    p->yes = p->n_variables++;
    return status;
}

/* What is alive when an item begins is in one order with it. false: no memory. */
static bool add_orders(struct packing *p, int n_live, int item) {
    const struct rfx_boundary_item *items = p->b->items;
    for (int k = 0; k < n_live; k++) {
        int i = p->live[k];
        int twins[] = {below(p, i, item)}; /* of equal items the first lies below */
        if (items[i].size == items[item].size && items[i].begin == items[item].begin &&
            items[i].end == items[item].end && !rfx_clauses_add(p->clauses, twins, 1))
            return false;
        for (int l = 0; l < k; l++) {
            int j = p->live[l];
            int round[] = {below(p, i, j), below(p, j, item), below(p, item, i)};
            int back[] = {round[0] ^ 1, round[1] ^ 1, round[2] ^ 1};
            if (!rfx_clauses_add(p->clauses, round, 3) || !rfx_clauses_add(p->clauses, back, 3))
                return false;
        }
    }
    return true;
}

/* A boundary at which some items go on. Its sides are its ends, then its begins. */
struct boundary {
    int at, n_live, n_ends, n;
    int sides[MAX_SIDES];
    int first; /* of the groups' variables */
};

/* That sides x and y are of one group. */
static int together(const struct boundary *k, int x, int y) {
    int high = x > y ? x : y;
    int low = x > y ? y : x;
    return 2 * (k->first + high * (high - 1) / 2 + low);
}

/* Of one group: nothing that goes on, and no other side of the same kind, lies between. false: no
 * memory. */
static bool add_pair(struct packing *p, const struct boundary *k, int x, int y) {
    int apart = together(k, x, y) ^ 1;
    for (int l = 0; l < k->n_live; l++) {
        int low = below(p, k->sides[x], p->live[l]);
        int high = below(p, k->sides[y], p->live[l]);
        int one[] = {apart, low, high ^ 1};
        int other[] = {apart, low ^ 1, high};
        if (!rfx_clauses_add(p->clauses, one, 3) || !rfx_clauses_add(p->clauses, other, 3))
            return false;
    }
    for (int z = 0; z < k->n; z++) {
        if (z == x || z == y) continue;
        int chain[] = {apart ^ 1, together(k, x, z) ^ 1, together(k, y, z) ^ 1};
        if (!rfx_clauses_add(p->clauses, chain, 3)) return false;
        if ((x < k->n_ends) != (y < k->n_ends) || (x < k->n_ends) != (z < k->n_ends)) continue;
        int low = below(p, k->sides[x], k->sides[z]);
        int high = below(p, k->sides[y], k->sides[z]);
        int one[] = {apart, together(k, x, z), low, high ^ 1};
        int other[] = {apart, together(k, x, z), low ^ 1, high};
        if (!rfx_clauses_add(p->clauses, one, 4) || !rfx_clauses_add(p->clauses, other, 4))
            return false;
    }
    return true;
}

/* The group of side x has ends and begins, of equal sums. *variable: the next one that is free.
 * false: no memory. */
static bool add_group(struct packing *p, const struct boundary *k, int x, int *variable) {
    const struct rfx_sums *sums = p->sums[k->at];
    int literals[MAX_SIDES];
    int n = 0;
    for (int y = 0; y < k->n; y++)
        if ((x < k->n_ends) != (y < k->n_ends)) literals[n++] = together(k, x, y);
    if (!rfx_clauses_add(p->clauses, literals, n)) return false;
    if (k->n > MAX_ADDED) return true;
    for (int y = 0; y < k->n; y++) literals[y] = x == y ? 2 * p->yes : together(k, x, y);
    if (!rfx_sums_add(sums, p->clauses, literals, *variable)) return false;
    *variable += rfx_sums_variables(sums);
    return true;
}

/* What goes on at a boundary keeps its place, and its sides are in groups. false: no memory. */
static bool add_boundary(struct packing *p, int n_live, int at) {
    const struct rfx_boundary *boundary = &p->b->at[at];
    struct boundary k = {at, n_live, boundary->n_ends, count_sides(p, at), {0}, p->first[at]};
    int variable = k.first + k.n * (k.n - 1) / 2;
    int literals[MAX_SIDES];
    memcpy(k.sides, &p->b->by_end[boundary->ends], (size_t)k.n_ends * sizeof *k.sides);
    memcpy(&k.sides[k.n_ends], &p->b->by_begin[boundary->begins],
           (size_t)boundary->n_begins * sizeof *k.sides);
    for (int l = 0; l < n_live; l++) {
        for (int x = 0; x < k.n; x++) literals[x] = below(p, k.sides[x], p->live[l]);
        if (!rfx_sums_add(p->sums[at], p->clauses, literals, variable)) return false;
        variable += rfx_sums_variables(p->sums[at]);
    }
    for (int x = 0; x < k.n; x++) {
        if (!add_group(p, &k, x, &variable)) return false;
        for (int y = x + 1; y < k.n; y++)
            if (!add_pair(p, &k, x, y)) return false;
    }
    return true;
}

/* false: no memory. */
static bool add_all(struct packing *p, const struct rfx_place_stop *stop) {
    const struct rfx_boundaries *b = p->b;
    int n_live = 0;
    for (int at = 0; at < b->n - 1; at++) {
        n_live = end_items(p, n_live, at);
        if (n_live > 0 && p->sums[at] != NULL && !add_boundary(p, n_live, at)) return false;
        for (int k = 0; k < b->at[at].n_begins; k++) {
            int item = b->by_begin[b->at[at].begins + k];
            if (!add_orders(p, n_live, item)) return false;
            p->live[n_live++] = item;
        }
        if (rfx_place_must_stop(p->mem, stop)) return true;
    }
    return true;
}

/* Offsets of the first n items: what lies below each when it begins. */
static void set_offsets(const struct packing *p, int n, size_t *offsets) {
    const struct rfx_boundary_item *items = p->b->items;
    for (int i = 0; i < n; i++) {
        offsets[i] = 0;
        for (int j = 0; j < p->b->n_items; j++) {
            if (j == i || items[j].begin > items[i].begin || items[j].end <= items[i].begin)
                continue;
            int literal = below(p, j, i);
            if (rfx_clauses_value(p->clauses, literal / 2) == ((literal & 1) == 0))
                offsets[i] += items[j].size;
        }
    }
}

static bool allocate(struct packing *p) {
    size_t items = (size_t)p->b->n_items;
    size_t boundaries = (size_t)p->b->n;
    p->sums = rfx_memory_calloc(p->mem, boundaries, sizeof *p->sums);
    p->first = rfx_memory_calloc(p->mem, boundaries, sizeof *p->first);
    p->pair = rfx_memory_alloc(p->mem, items * items * sizeof *p->pair);
    p->live = rfx_memory_calloc(p->mem, items, sizeof *p->live);
    return p->sums != NULL && p->first != NULL && p->pair != NULL && p->live != NULL;
}

static void release(struct packing *p) {
    for (int at = 0; p->sums != NULL && at < p->b->n; at++) rfx_sums_free(p->sums[at]);
    void *const blocks[] = {p->sums, p->first, p->pair, p->live};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(p->mem, blocks[i]);
    rfx_clauses_free(p->clauses);
    rfx_boundaries_free(p->b);
}

/* Makes the clauses; *possible: there are not too many. */
static enum rfx_status make_clauses(struct packing *p, const struct rfx_place_stop *stop,
                                    bool *possible, struct rfx_error *err) {
    size_t items = (size_t)p->b->n_items;
    if (!allocate(p)) return rfx_memory_fail(p->mem, "packer", items * items * sizeof(int), err);
    enum rfx_status status = number(p, possible, err);
    if (status != RFX_OK || !*possible) return status;
    status = rfx_clauses_create(p->mem, p->n_variables, &p->clauses, err);
    int yes[] = {2 * p->yes};
    if (status == RFX_OK && (!rfx_clauses_add(p->clauses, yes, 1) || !add_all(p, stop)))
        status = rfx_memory_fail(p->mem, "packer", items * items * sizeof(int), err);
    return status;
}

enum rfx_status rfx_clauses_packing_place(const struct rfx_place_problem *problem,
                                          const struct rfx_clauses_packing_request *request,
                                          size_t *offsets,
                                          enum rfx_clauses_packing_outcome *outcome,
                                          uint64_t *conflicts, struct rfx_error *err) {
    struct packing p = {.mem = problem->mem};
    *outcome = RFX_CLAUSES_PACKING_ALL_TRIED;
    if (problem->n == 0 || problem->n > RFX_CLAUSES_MAX_ITEMS) return RFX_OK;
    enum rfx_status status = rfx_boundaries_create(
        problem, request->capacity_bytes, request->split ? RFX_FILLERS_SPLIT : RFX_FILLERS_CUT,
        request->backwards, &p.b, err);
    if (status != RFX_OK) return status;
    bool possible = p.b->possible && p.b->n_items <= MAX_PIECES;
    if (possible) status = make_clauses(&p, request->stop, &possible, err);
    if (status == RFX_OK && possible) {
        struct rfx_clauses_request search = {request->conflicts, request->seed, request->stop};
        switch (rfx_clauses_solve(p.clauses, &search, conflicts)) {
            case RFX_CLAUSES_FOUND:
                set_offsets(&p, problem->n, offsets);
                if (rfx_place_answer_is_valid(problem->items, problem->n, offsets,
                                              request->capacity_bytes))
                    *outcome = RFX_CLAUSES_PACKING_FOUND;
                break;
            case RFX_CLAUSES_IMPOSSIBLE:
                break;
            case RFX_CLAUSES_LIMIT:
                *outcome = RFX_CLAUSES_PACKING_SOME_LEFT;
                break;
            case RFX_CLAUSES_NO_MEMORY:
                status = rfx_memory_fail(p.mem, "packer", (size_t)p.n_variables, err);
                break;
        }
    }
    release(&p);
    return status;
}
