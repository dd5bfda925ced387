/* Prime implicates by looking at every cube; reachable sums from both ends. */
#include "tiler/clauses/clauses_sums.h"

#include <stdlib.h>
#include <string.h>

/* MAX_CUBES: 3 to the power of MAX_SHORT; MAX_TERMS: masks have 64 bits on either side; MAX_LAYER:
 * sums of the first k terms before those that lead nowhere are left out, MAX_NODES of all k after
 * that. */
enum {
    MAX_SHORT = 10,
    MAX_CUBES = 59049,
    MAX_TERMS = 128,
    MAX_LAYER = 1 << 17,
    MAX_NODES = 1 << 16
};

/* Sums of the first k terms in rising order. */
struct layer {
    int64_t *sums;
    int n, first; /* number of the first of them */
};

struct rfx_sums {
    struct rfx_memory *mem;
    int n;
    int64_t *terms;
    int *order;  /* which term is the k-th */
    int *shorts; /* clauses of few terms: number of literals, then 2 * term + negated */
    int n_shorts;
    struct layer *layers; /* n + 1, of more terms, or with counts */
    struct rfx_sums_counts counts;
    int n_variables;
};

/* Whether zero can be reached from each cube: in base 3 the digit of a term is 0 (false), 1 (true)
 * or 2 (open). */
static void mark_possible(const struct rfx_sums *s, const int *power, bool *possible) {
    for (int cube = 0; cube < power[s->n]; cube++) {
        int64_t sum = 0;
        int open = -1;
        for (int k = 0; k < s->n; k++) {
            int digit = cube / power[k] % 3;
            if (digit == 1) sum += s->terms[k];
            if (digit == 2) open = k;
        }
        possible[cube] =
            open < 0 ? sum == 0 : possible[cube - power[open]] || possible[cube - 2 * power[open]];
    }
}

/* Whether a cube is impossible, but not without any one of its literals. */
static bool is_prime(const struct rfx_sums *s, const int *power, const bool *possible, int cube) {
    if (possible[cube]) return false;
    for (int k = 0; k < s->n; k++) {
        int digit = cube / power[k] % 3;
        if (digit < 2 && !possible[cube + (2 - digit) * power[k]]) return false;
    }
    return true;
}

/* false: no memory. */
static bool make_shorts(struct rfx_sums *s) {
    int power[MAX_SHORT + 1] = {1};
    bool *possible = rfx_memory_alloc(s->mem, MAX_CUBES * sizeof *possible);
    for (int k = 0; k < s->n; k++) power[k + 1] = 3 * power[k];
    s->shorts = rfx_memory_alloc(s->mem, (size_t)power[s->n] * ((size_t)s->n + 1) * sizeof(int));
    if (possible != NULL && s->shorts != NULL) {
        mark_possible(s, power, possible);
        for (int cube = 0; cube < power[s->n]; cube++) {
            if (!is_prime(s, power, possible, cube)) continue;
            int *length = &s->shorts[s->n_shorts++];
            *length = 0;
            for (int k = 0; k < s->n; k++) {
                int digit = cube / power[k] % 3;
                if (digit == 2) continue;
                s->shorts[s->n_shorts++] = 2 * k + digit;
                ++*length;
            }
        }
    }
    rfx_memory_release(s->mem, possible);
    return possible != NULL && s->shorts != NULL;
}

static int find(const struct layer *layer, int64_t sum) {
    int lo = 0;
    int hi = layer->n;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (layer->sums[middle] < sum)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < layer->n && layer->sums[lo] == sum ? lo : -1;
}

/* Sums of `from`, and those with `term` more, merged. false: no memory. */
static bool spread(struct rfx_memory *mem, const struct layer *from, int64_t term,
                   struct layer *to) {
    const int64_t *sums = from->sums;
    int low = 0; /* from here on as they are, from `high` on with the term */
    int high = 0;
    to->sums = rfx_memory_alloc(mem, 2 * (size_t)from->n * sizeof *to->sums);
    if (to->sums == NULL) return false;
    to->n = 0;
    while (low < from->n || high < from->n) {
        bool is_low = high == from->n || (low < from->n && sums[low] < sums[high] + term);
        int64_t sum = is_low ? sums[low++] : sums[high++] + term;
        if (to->n == 0 || to->sums[to->n - 1] != sum) to->sums[to->n++] = sum;
    }
    return true;
}

/* Leaves out sums of which neither they nor those with `term` more are in the other layer. */
static void keep_linked(struct layer *layer, int64_t term, const struct layer *other) {
    int n = 0;
    for (int i = 0; i < layer->n; i++)
        if (find(other, layer->sums[i]) >= 0 || find(other, layer->sums[i] + term) >= 0)
            layer->sums[n++] = layer->sums[i];
    layer->n = n;
}

/* The sums that can be reached, from both ends at once until they meet. false: no memory;
 * *too_many. */
static bool make_layers(struct rfx_sums *s, bool *too_many) {
    int n = s->n;
    int lo = 0;
    int hi = n;
    s->layers = rfx_memory_calloc(s->mem, (size_t)n + 1, sizeof *s->layers);
    if (s->layers == NULL) return false;
    for (int end = 0; end < 2; end++) {
        struct layer *layer = &s->layers[end * n];
        int least = end == 0 ? 0 : -s->counts.before;
        int most = end == 0 ? 0 : s->counts.after;
        layer->n = most - least + 1;
        layer->sums = rfx_memory_calloc(s->mem, (size_t)layer->n, sizeof *layer->sums);
        if (layer->sums == NULL) return false;
        for (int k = least; k <= most; k++) layer->sums[k - least] = k * s->counts.unit;
    }
    while (lo + 1 < hi) {
        bool is_low = s->layers[lo].n <= s->layers[hi].n;
        int to = is_low ? lo + 1 : hi - 1;
        int64_t term = is_low ? s->terms[s->order[lo]] : -s->terms[s->order[hi - 1]];
        if (!spread(s->mem, &s->layers[is_low ? lo : hi], term, &s->layers[to])) return false;
        *too_many = s->layers[to].n > MAX_LAYER;
        if (*too_many) return true;
        if (is_low)
            lo++;
        else
            hi--;
    }
    for (int k = lo; k >= 0; k--)
        keep_linked(&s->layers[k], s->terms[s->order[k]], &s->layers[k + 1]);
    for (int k = 0; k < n; k++)
        keep_linked(&s->layers[k + 1], -s->terms[s->order[k]], &s->layers[k]);
    for (int k = 0; k <= n; k++) {
        s->layers[k].first = s->n_variables;
        if (s->layers[k].n > 1) s->n_variables += s->layers[k].n;
    }
    *too_many = s->n_variables > MAX_NODES;
    return true;
}

/* The largest terms first, of either sign: then sums that lead nowhere are soon left out. */
static void sort_terms(struct rfx_sums *s) {
    for (int k = 0; k < s->n; k++) {
        int at = k;
        for (; at > 0 && llabs(s->terms[s->order[at - 1]]) < llabs(s->terms[k]); at--)
            s->order[at] = s->order[at - 1];
        s->order[at] = k;
    }
}

enum rfx_status rfx_sums_create(struct rfx_memory *mem, const int64_t *terms, int n,
                                const struct rfx_sums_counts *counts, struct rfx_sums **out,
                                struct rfx_error *err) {
    struct rfx_sums *s = rfx_memory_calloc(mem, 1, sizeof *s);
    bool too_many = n > MAX_TERMS;
    *out = NULL;
    if (s == NULL) return rfx_memory_fail(mem, "packer", sizeof *s, err);
    s->mem = mem;
    s->n = n;
    if (counts != NULL) s->counts = *counts;
    bool is_short = n <= MAX_SHORT && s->counts.before == 0 && s->counts.after == 0;
    s->terms = rfx_memory_alloc(mem, (size_t)n * sizeof *s->terms);
    s->order = rfx_memory_alloc(mem, (size_t)n * sizeof *s->order);
    bool enough = s->terms != NULL && s->order != NULL;
    if (enough && !too_many) {
        memcpy(s->terms, terms, (size_t)n * sizeof *terms);
        sort_terms(s);
        enough = is_short ? make_shorts(s) : make_layers(s, &too_many);
    }
    if (enough && !too_many)
        *out = s;
    else
        rfx_sums_free(s);
    return enough ? RFX_OK : rfx_memory_fail(mem, "packer", MAX_LAYER * sizeof *terms, err);
}

void rfx_sums_free(struct rfx_sums *s) {
    if (s == NULL) return;
    for (int k = 0; k <= s->n && s->layers != NULL; k++)
        rfx_memory_release(s->mem, s->layers[k].sums);
    rfx_memory_release(s->mem, s->layers);
    rfx_memory_release(s->mem, s->shorts);
    rfx_memory_release(s->mem, s->order);
    rfx_memory_release(s->mem, s->terms);
    rfx_memory_release(s->mem, s);
}

int rfx_sums_variables(const struct rfx_sums *s) {
    return s->n_variables;
}

/* false: no memory. */
static bool add_shorts(const struct rfx_sums *s, struct rfx_clauses *clauses, const int *literals) {
    for (int at = 0; at < s->n_shorts; at += 1 + s->shorts[at]) {
        int clause[MAX_SHORT];
        for (int k = 0; k < s->shorts[at]; k++)
            clause[k] = literals[s->shorts[at + 1 + k] / 2] ^ (s->shorts[at + 1 + k] & 1);
        if (!rfx_clauses_add(clauses, clause, s->shorts[at])) return false;
    }
    return true;
}

/* When the sum of the first k terms is `from`, and a literal is false, the sum of a layer beside it
 * is `sum`. false: no memory. */
static bool add_link(struct rfx_clauses *clauses, const struct layer *layer, int from, int literal,
                     const struct layer *beside, int64_t sum, int first) {
    int clause[3];
    int n = 0;
    int to = find(beside, sum);
    clause[n++] = literal;
    if (layer->n > 1) clause[n++] = 2 * (first + layer->first + from) + 1;
    if (to >= 0 && beside->n == 1) return true;
    if (to >= 0) clause[n++] = 2 * (first + beside->first + to);
    return rfx_clauses_add(clauses, clause, n);
}

/* When the sum of all terms is `sum` units, the number after is the one before and `sum`. `node`:
 * a literal that is false then, -1: there is no other sum. false: no memory. */
static bool add_counts(const struct rfx_sums *s, struct rfx_clauses *clauses, int node, int sum,
                       int before, int after) {
    const struct rfx_sums_counts *counts = &s->counts;
    for (int k = 0; k <= counts->before; k++) {
        int clause[3] = {node};
        int to = k + sum;
        int n = node < 0 ? 0 : 1;
        if (to >= 1 && to <= counts->after + 1) { /* k or more, then `to` or more */
            if (k > 0) clause[n++] = 2 * (before + k - 1) + 1;
            if (to <= counts->after) clause[n++] = 2 * (after + to - 1);
            if (!rfx_clauses_add(clauses, clause, n)) return false;
        }
        n = node < 0 ? 0 : 1;
        if (to >= -1 && to < counts->after) { /* k or less, then `to` or less */
            if (k < counts->before) clause[n++] = 2 * (before + k);
            if (to >= 0) clause[n++] = 2 * (after + to) + 1;
            if (!rfx_clauses_add(clauses, clause, n)) return false;
        }
    }
    return true;
}

bool rfx_sums_add(const struct rfx_sums *s, struct rfx_clauses *clauses, const int *literals,
                  int first, int before, int after) {
    if (s->layers == NULL) return add_shorts(s, clauses, literals);
    for (int v = first; v < first + s->n_variables; v++) rfx_clauses_let_follow(clauses, v);
    for (int k = 0; k < s->n; k++) {
        const struct layer *low = &s->layers[k];
        const struct layer *high = &s->layers[k + 1];
        int64_t term = s->terms[s->order[k]];
        int literal = literals[s->order[k]];
        for (int i = 0; i < low->n; i++)
            if (!add_link(clauses, low, i, literal, high, low->sums[i], first) ||
                !add_link(clauses, low, i, literal ^ 1, high, low->sums[i] + term, first))
                return false;
        for (int i = 0; i < high->n; i++)
            if (!add_link(clauses, high, i, literal, low, high->sums[i], first) ||
                !add_link(clauses, high, i, literal ^ 1, low, high->sums[i] - term, first))
                return false;
    }
    const struct layer *last = &s->layers[s->n];
    for (int i = 0; i < last->n && (s->counts.before > 0 || s->counts.after > 0); i++) {
        int node = last->n > 1 ? 2 * (first + last->first + i) + 1 : -1;
        if (!add_counts(s, clauses, node, (int)(last->sums[i] / s->counts.unit), before, after))
            return false;
    }
    return true;
}
