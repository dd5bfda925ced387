/* From boundaries to clauses and back; see clauses_formula.h. */
#include "tiler/clauses/clauses_formula.h"

#include <string.h>

#include "tiler/clauses/clauses_spans.h"
#include "tiler/clauses/clauses_sums.h"
#include "tiler/packer/packer_boundaries.h"

/* MAX_CLAUSES: of those that say what lies side by side, what sums come to (CLAUSES_PER_SUM for
 * each variable), or how much is free below what; beyond it nothing is searched. MAX_ADDED: of the
 * items of a boundary for which the sums of each group are said too. */
enum {
    MAX_CLAUSES = 1 << 22,
    CLAUSES_PER_SUM = 4,
    MAX_SIDES = 2 * RFX_BOUNDARY_MAX_SIDE,
    MAX_ADDED = 8,
    MAX_OWN = 1 << 18, /* variables of the sums of one boundary; where more are needed nothing is
                          said, and what is found may be none */
    MAX_PIECES = 2048  /* items with fillers */
};

struct rfx_formula {
    struct rfx_memory *mem;
    struct rfx_boundaries *b;
    struct rfx_clauses *clauses;
    struct rfx_sums **sums; /* per boundary; NULL: nothing is said there */
    int *first;             /* per boundary: the first of its groups' and sums' variables */
    int *pair;              /* per two items: the variable, or -1: never alive at one time */
    int *live;
    const struct rfx_runs *runs;
    int *gaps; /* per item and run: the first of its variables where it is open; -1: has none yet */
    int n_variables, yes; /* yes: a variable that is true */
};

/* That item i lies below item j. */
static int below(const struct rfx_formula *f, int i, int j) {
    return rfx_clauses_below(f->pair, f->b->n_items, i, j);
}

/* The k-th variable from there on, from 0, says that more than k units are free below an item. */
static int *gap_of(const struct rfx_formula *f, int item, int section) {
    return &f->gaps[(size_t)item * (size_t)f->runs->n + (size_t)f->runs->of_section[section]];
}

/* What is free before and after a boundary and is not guessed; false: all is, or it stays. */
static bool count_free(const struct rfx_formula *f, int at, struct rfx_sums_counts *counts) {
    const struct rfx_runs *runs = f->runs;
    *counts = (struct rfx_sums_counts){.unit = runs->unit};
    if (at == 0 || runs->of_section[at] == runs->of_section[at - 1]) return false;
    counts->before = rfx_runs_units(runs, at - 1);
    counts->after = rfx_runs_units(runs, at);
    return counts->before > 0 || counts->after > 0;
}

/* Drops items that end at a boundary from those that live; returns their number. */
static int end_items(const struct rfx_formula *f, int n_live, int at) {
    int n = 0;
    for (int k = 0; k < n_live; k++)
        if (f->b->items[f->live[k]].end > at) f->live[n++] = f->live[k];
    return n;
}

/* The sums of what ends (positive) and begins at a boundary. */
static enum rfx_status make_sums(struct rfx_formula *f, int at, struct rfx_error *err) {
    const struct rfx_boundary *boundary = &f->b->at[at];
    int64_t terms[MAX_SIDES];
    int n = 0;
    for (int k = 0; k < boundary->n_ends; k++)
        terms[n++] = (int64_t)f->b->items[f->b->by_end[boundary->ends + k]].size;
    for (int k = 0; k < boundary->n_begins; k++)
        terms[n++] = -(int64_t)f->b->items[f->b->by_begin[boundary->begins + k]].size;
    struct rfx_sums_counts counts;
    (void)count_free(f, at, &counts);
    return n == 0 ? RFX_OK : rfx_sums_create(f->mem, terms, n, &counts, &f->sums[at], err);
}

/* How many ends and begins a boundary has. */
static int count_sides(const struct rfx_formula *f, int at) {
    return f->b->at[at].n_ends + f->b->at[at].n_begins;
}

/* The variables of the groups and sums of a boundary at which n_live items go on. */
static int count_variables(const struct rfx_formula *f, int n_live, int at) {
    int n = count_sides(f, at);
    return n * (n - 1) / 2 + rfx_sums_variables(f->sums[at]) * (n_live + (n <= MAX_ADDED ? n : 0));
}

/* Numbers what is free below those that live in a section; how many clauses that takes at most. */
static int64_t number_gaps(struct rfx_formula *f, int n_live, int section) {
    int units = rfx_runs_units(f->runs, section);
    int64_t clauses = 0;
    for (int k = 0; k < n_live && units > 0; k++) {
        int *gap = gap_of(f, f->live[k], section);
        if (*gap >= 0) continue;
        *gap = f->n_variables;
        f->n_variables += units;
        clauses += (int64_t)units * (2 * n_live + 1);
    }
    return clauses;
}

/* Numbers the variables. *possible: there are not too many clauses. */
static enum rfx_status number(struct rfx_formula *f, bool *possible, struct rfx_error *err) {
    const struct rfx_boundaries *b = f->b;
    int64_t clauses = 0;
    int n_live = 0;
    enum rfx_status status = RFX_OK;
    memset(f->pair, 0xff, (size_t)b->n_items * (size_t)b->n_items * sizeof *f->pair);
    for (int at = 0; at < b->n - 1 && status == RFX_OK; at++) {
        n_live = end_items(f, n_live, at);
        if (n_live > 0) status = make_sums(f, at, err);
        f->first[at] = f->n_variables;
        if (f->sums[at] != NULL && count_variables(f, n_live, at) > MAX_OWN) {
            rfx_sums_free(f->sums[at]);
            f->sums[at] = NULL;
        }
        if (f->sums[at] != NULL) {
            int64_t n = count_sides(f, at);
            int own = count_variables(f, n_live, at);
            f->n_variables += own;
            clauses += n * (n - 1) * (n_live + n / 2) + CLAUSES_PER_SUM * (int64_t)own;
        }
        for (int k = 0; k < b->at[at].n_begins; k++) {
            int item = b->by_begin[b->at[at].begins + k];
            for (int l = 0; l < n_live; l++) {
                int i = f->live[l] < item ? f->live[l] : item;
                int j = f->live[l] < item ? item : f->live[l];
                f->pair[i * b->n_items + j] = f->n_variables++;
            }
            f->live[n_live++] = item;
        }
        clauses += number_gaps(f, n_live, at);
    }
    *possible = clauses <= MAX_CLAUSES;
    f->yes = f->n_variables++;
    return status;
}

/* Of equal items the first lies below. false: no memory. */
static bool add_twins(struct rfx_formula *f, int n_live, int item) {
    const struct rfx_boundary_item *items = f->b->items;
    for (int k = 0; k < n_live; k++) {
        int i = f->live[k];
        int twins[] = {below(f, i, item)};
        if (items[i].size == items[item].size && items[i].begin == items[item].begin &&
            items[i].end == items[item].end && !rfx_clauses_add(f->clauses, twins, 1))
            return false;
    }
    return true;
}

/* No less is free below the upper of two items. false: no memory. */
static bool add_gaps(struct rfx_formula *f, int i, int j, int section) {
    int low = *gap_of(f, i, section);
    int high = *gap_of(f, j, section);
    for (int k = 0; k < rfx_runs_units(f->runs, section); k++) {
        int up[] = {below(f, i, j) ^ 1, 2 * (low + k) + 1, 2 * (high + k)};
        int down[] = {below(f, i, j), 2 * (high + k) + 1, 2 * (low + k)};
        if (!rfx_clauses_add(f->clauses, up, 3) || !rfx_clauses_add(f->clauses, down, 3))
            return false;
    }
    return true;
}

/* What is free below the items of a section; the first n_old live before it, too. false: no
 * memory. */
static bool add_free(struct rfx_formula *f, int n_old, int n_live, int section) {
    int units = rfx_runs_units(f->runs, section);
    const int *run = f->runs->of_section;
    bool is_first = section == 0 || run[section] != run[section - 1]; /* of its run */
    for (int l = is_first ? 0 : n_old; l < n_live && units > 0; l++) {
        int gap = *gap_of(f, f->live[l], section);
        for (int k = 1; k < units; k++) {
            int fewer[] = {2 * (gap + k - 1), 2 * (gap + k) + 1};
            if (!rfx_clauses_add(f->clauses, fewer, 2)) return false;
        }
        for (int k = 0; k < l; k++)
            if (!add_gaps(f, f->live[k], f->live[l], section)) return false;
    }
    return true;
}

/* A boundary at which some items go on. Its sides are its ends, then its begins. */
struct boundary {
    int at, n_live, n_ends, n;
    int sides[MAX_SIDES];
    int first;       /* of the groups' variables */
    bool is_guessed; /* what is free on both sides */
};

/* That sides x and y are of one group. */
static int together(const struct boundary *k, int x, int y) {
    int high = x > y ? x : y;
    int low = x > y ? y : x;
    return 2 * (k->first + high * (high - 1) / 2 + low);
}

/* Of one group: nothing that goes on, and no other side of the same kind, lies between. false: no
 * memory. */
static bool add_pair(struct rfx_formula *f, const struct boundary *k, int x, int y) {
    int apart = together(k, x, y) ^ 1;
    for (int l = 0; l < k->n_live; l++) {
        int low = below(f, k->sides[x], f->live[l]);
        int high = below(f, k->sides[y], f->live[l]);
        int one[] = {apart, low, high ^ 1};
        int other[] = {apart, low ^ 1, high};
        if (!rfx_clauses_add(f->clauses, one, 3) || !rfx_clauses_add(f->clauses, other, 3))
            return false;
    }
    for (int z = 0; z < k->n; z++) {
        if (z == x || z == y) continue;
        int chain[] = {apart ^ 1, together(k, x, z) ^ 1, together(k, y, z) ^ 1};
        if (!rfx_clauses_add(f->clauses, chain, 3)) return false;
        if ((x < k->n_ends) != (y < k->n_ends) || (x < k->n_ends) != (z < k->n_ends)) continue;
        int low = below(f, k->sides[x], k->sides[z]);
        int high = below(f, k->sides[y], k->sides[z]);
        int one[] = {apart, together(k, x, z), low, high ^ 1};
        int other[] = {apart, together(k, x, z), low ^ 1, high};
        if (!rfx_clauses_add(f->clauses, one, 4) || !rfx_clauses_add(f->clauses, other, 4))
            return false;
    }
    return true;
}

/* The group of side x has ends and begins, of equal sums, where free bytes are sides too.
 * *variable: the next one that is free. false: no memory. */
static bool add_group(struct rfx_formula *f, const struct boundary *k, int x, int *variable) {
    const struct rfx_sums *sums = f->sums[k->at];
    int literals[MAX_SIDES];
    int n = 0;
    if (!k->is_guessed) return true;
    for (int y = 0; y < k->n; y++)
        if ((x < k->n_ends) != (y < k->n_ends)) literals[n++] = together(k, x, y);
    if (!rfx_clauses_add(f->clauses, literals, n)) return false;
    if (k->n > MAX_ADDED) return true;
    for (int y = 0; y < k->n; y++) literals[y] = x == y ? 2 * f->yes : together(k, x, y);
    if (!rfx_sums_add(sums, f->clauses, literals, *variable, 0, 0)) return false;
    *variable += rfx_sums_variables(sums);
    return true;
}

/* What goes on at a boundary keeps its place, and its sides are in groups. false: no memory. */
static bool add_boundary(struct rfx_formula *f, int n_live, int at) {
    const struct rfx_boundary *boundary = &f->b->at[at];
    struct rfx_sums_counts counts;
    struct boundary k = {.at = at,
                         .n_live = n_live,
                         .n_ends = boundary->n_ends,
                         .n = count_sides(f, at),
                         .first = f->first[at],
                         .is_guessed = !count_free(f, at, &counts)};
    int variable = k.first + k.n * (k.n - 1) / 2;
    int literals[MAX_SIDES];
    memcpy(k.sides, &f->b->by_end[boundary->ends], (size_t)k.n_ends * sizeof *k.sides);
    memcpy(&k.sides[k.n_ends], &f->b->by_begin[boundary->begins],
           (size_t)boundary->n_begins * sizeof *k.sides);
    for (int l = 0; l < n_live; l++) {
        for (int x = 0; x < k.n; x++) literals[x] = below(f, k.sides[x], f->live[l]);
        int before = *gap_of(f, f->live[l], at - 1);
        int after = *gap_of(f, f->live[l], at);
        if (!rfx_sums_add(f->sums[at], f->clauses, literals, variable, before, after)) return false;
        variable += rfx_sums_variables(f->sums[at]);
    }
    for (int x = 0; x < k.n; x++) {
        if (!add_group(f, &k, x, &variable)) return false;
        for (int y = x + 1; y < k.n; y++)
            if (!add_pair(f, &k, x, y)) return false;
    }
    return true;
}

/* false: no memory. */
static bool add_all(struct rfx_formula *f, const struct rfx_place_stop *stop) {
    const struct rfx_boundaries *b = f->b;
    int n_live = 0;
    for (int at = 0; at < b->n - 1; at++) {
        n_live = end_items(f, n_live, at);
        int n_old = n_live;
        rfx_clauses_set_origin(f->clauses, rfx_runs_origin(f->runs, at) |
                                               rfx_runs_origin(f->runs, at > 0 ? at - 1 : 0));
        if (n_live > 0 && f->sums[at] != NULL && !add_boundary(f, n_live, at)) return false;
        rfx_clauses_set_origin(f->clauses, 0);
        for (int k = 0; k < b->at[at].n_begins; k++) {
            int item = b->by_begin[b->at[at].begins + k];
            if (!add_twins(f, n_live, item)) return false;
            f->live[n_live++] = item;
        }
        if (!add_free(f, n_old, n_live, at)) return false;
        if (rfx_place_must_stop(f->mem, stop)) return true;
    }
    return true;
}

void rfx_formula_offsets(const struct rfx_formula *f, int n, size_t *offsets) {
    const struct rfx_boundary_item *items = f->b->items;
    for (int i = 0; i < n; i++) {
        int begin = items[i].begin;
        offsets[i] = 0;
        for (int j = 0; j < f->b->n_items; j++) {
            if (j == i || items[j].begin > begin || items[j].end <= begin) continue;
            int literal = below(f, j, i);
            if (rfx_clauses_value(f->clauses, literal / 2) == ((literal & 1) == 0))
                offsets[i] += items[j].size;
        }
        for (int k = 0; k < rfx_runs_units(f->runs, begin); k++)
            if (rfx_clauses_value(f->clauses, *gap_of(f, i, begin) + k))
                offsets[i] += (size_t)f->runs->unit;
    }
}

/* Leaves out items that never live; the number of those left. */
static int keep_living(const struct rfx_boundaries *b, int *list, int n) {
    int kept = 0;
    for (int k = 0; k < n; k++)
        if (b->items[list[k]].begin < b->items[list[k]].end) list[kept++] = list[k];
    return kept;
}

/* Takes away the fillers of open runs, each of which lives in one run: they never live. */
static void drop_fillers(struct rfx_formula *f, int n) {
    struct rfx_boundaries *b = f->b;
    for (int i = n; i < b->n_items; i++)
        if (rfx_runs_units(f->runs, b->items[i].begin) > 0) b->items[i].end = b->items[i].begin;
    for (int at = 0; at < b->n; at++) {
        struct rfx_boundary *boundary = &b->at[at];
        boundary->n_ends = keep_living(b, &b->by_end[boundary->ends], boundary->n_ends);
        boundary->n_begins = keep_living(b, &b->by_begin[boundary->begins], boundary->n_begins);
    }
}

static bool allocate(struct rfx_formula *f) {
    size_t items = (size_t)f->b->n_items;
    size_t boundaries = (size_t)f->b->n;
    size_t gaps = items * (size_t)f->runs->n;
    f->sums = rfx_memory_calloc(f->mem, boundaries, sizeof *f->sums);
    f->first = rfx_memory_calloc(f->mem, boundaries, sizeof *f->first);
    f->pair = rfx_memory_alloc(f->mem, items * items * sizeof *f->pair);
    f->live = rfx_memory_calloc(f->mem, items, sizeof *f->live);
    f->gaps = rfx_memory_alloc(f->mem, gaps * sizeof *f->gaps);
    if (f->gaps != NULL) memset(f->gaps, 0xff, gaps * sizeof *f->gaps);
    return f->sums != NULL && f->first != NULL && f->pair != NULL && f->live != NULL &&
           f->gaps != NULL;
}

void rfx_formula_free(struct rfx_formula *f) {
    if (f == NULL) return;
    for (int at = 0; f->sums != NULL && at < f->b->n; at++) rfx_sums_free(f->sums[at]);
    void *const blocks[] = {f->sums, f->first, f->pair, f->live, f->gaps};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(f->mem, blocks[i]);
    rfx_clauses_free(f->clauses);
    rfx_boundaries_free(f->b);
    rfx_memory_release(f->mem, f);
}

struct rfx_clauses *rfx_formula_clauses(struct rfx_formula *f) {
    return f->clauses;
}

/* Makes the clauses; *possible: there are not too many. */
static enum rfx_status make_clauses(struct rfx_formula *f, int n, size_t capacity,
                                    const struct rfx_place_stop *stop, bool *possible,
                                    struct rfx_error *err) {
    size_t items = (size_t)f->b->n_items;
    if (!allocate(f)) return rfx_memory_fail(f->mem, "packer", items * items * sizeof(int), err);
    enum rfx_status status = number(f, possible, err);
    if (status != RFX_OK || !*possible) return status;
    status = rfx_clauses_create(f->mem, f->n_variables, &f->clauses, err);
    int yes[] = {2 * f->yes};
    if (status == RFX_OK && (!rfx_clauses_set_order(f->clauses, f->pair, f->b->n_items) ||
                             !rfx_spans_add(f->b, f->runs, n, capacity, f->clauses) ||
                             !rfx_clauses_add(f->clauses, yes, 1) || !add_all(f, stop)))
        status = rfx_memory_fail(f->mem, "packer", items * items * sizeof(int), err);
    return status;
}

enum rfx_status rfx_formula_create(const struct rfx_place_problem *problem,
                                   const struct rfx_clauses_packing_request *request,
                                   const struct rfx_runs *runs, const struct rfx_place_stop *stop,
                                   struct rfx_formula **out, struct rfx_error *err) {
    struct rfx_formula *f = rfx_memory_calloc(problem->mem, 1, sizeof *f);
    *out = NULL;
    if (f == NULL) return rfx_memory_fail(problem->mem, "packer", sizeof *f, err);
    f->mem = problem->mem;
    f->runs = runs;
    enum rfx_status status = rfx_boundaries_create(
        problem, request->capacity_bytes, request->split ? RFX_FILLERS_SPLIT : RFX_FILLERS_CUT,
        request->backwards, &f->b, err);
    bool possible = status == RFX_OK && f->b->possible && f->b->n_items <= MAX_PIECES;
    if (possible) {
        drop_fillers(f, problem->n);
        status = make_clauses(f, problem->n, request->capacity_bytes, stop, &possible, err);
    }
    if (status == RFX_OK && possible)
        *out = f;
    else
        rfx_formula_free(f);
    return status;
}
