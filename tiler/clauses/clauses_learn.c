/* What is learnt from a false clause; see clauses_state.h. */
#include "tiler/clauses/clauses_state.h"

uint64_t rfx_clauses_gather_origins(const struct rfx_clauses *c, uint32_t clause, int variable) {
    int own[CLAUSES_ORDER_LITERALS];
    struct rfx_clauses_view view = rfx_clauses_view(c, clause, variable, own);
    uint64_t origins = view.origins;
    for (int k = 0; k < view.n; k++)
        if (c->value[view.literals[k]] < 0 && c->of[view.literals[k] / 2].level == 0)
            origins |= c->origins[view.literals[k] / 2];
    return origins;
}

/* Marks the levels of literals; returns how many there are. */
static int mark_levels(struct rfx_clauses *c, const int *literals, int n) {
    int levels = 0;
    c->now++;
    for (int k = 0; k < n; k++) {
        int level = c->of[literals[k] / 2].level;
        if (c->stamp[level] != c->now) levels++;
        c->stamp[level] = c->now;
    }
    return levels;
}

static void touch(struct rfx_clauses *c, int variable) {
    c->seen[variable] = true;
    c->touched[c->n_touched++] = variable;
}

/* Whether a literal of the learnt clause is false because others of it are: then it is not needed.
 */
static bool is_implied(struct rfx_clauses *c, int literal) {
    int n = 0;
    int before = c->n_touched;
    c->stack[n++] = literal / 2;
    while (n > 0) {
        int variable = c->stack[--n];
        uint32_t reason = c->of[variable].reason;
        int own[CLAUSES_ORDER_LITERALS];
        struct rfx_clauses_view view = rfx_clauses_view(c, reason, variable, own);
        c->origin |= rfx_clauses_gather_origins(c, reason, variable);
        for (int k = 0; k < view.n; k++) {
            int v = view.literals[k] / 2;
            if (v == variable || c->seen[v] || c->of[v].level == 0) continue;
            if (c->of[v].reason == CLAUSES_NONE || c->stamp[c->of[v].level] != c->now) {
                while (c->n_touched > before) c->seen[c->touched[--c->n_touched]] = false;
                return false;
            }
            touch(c, v);
            c->stack[n++] = v;
        }
    }
    return true;
}

/* Adds the literals of a clause, the reason of a variable, to what is being learnt, those of the
 * last level to *open. */
static void take_clause(struct rfx_clauses *c, uint32_t clause, int variable, int *open) {
    int own[CLAUSES_ORDER_LITERALS];
    struct rfx_clauses_view view = rfx_clauses_view(c, clause, variable, own);
    c->origin |= view.origins;
    if (clause >= c->learnt && rfx_clauses_is_written(clause) && c->store[clause + 1] > 2) {
        uint32_t levels = (uint32_t)mark_levels(c, view.literals, view.n);
        if (levels < c->store[clause + 1]) c->store[clause + 1] = levels;
    }
    for (int k = 0; k < view.n; k++) {
        int v = view.literals[k] / 2;
        if (c->of[v].level == 0) c->origin |= c->origins[v];
        if (c->seen[v] || c->of[v].level == 0) continue;
        touch(c, v);
        rfx_clauses_bump(c, v);
        if (c->of[v].level == c->n_levels)
            ++*open;
        else
            c->learn[c->n_learn++] = view.literals[k];
    }
}

int rfx_clauses_learn(struct rfx_clauses *c, uint32_t conflict, int *levels) {
    int open = 0;
    int at = c->n_trail;
    int variable = -1;
    uint32_t clause = conflict;
    c->n_learn = 1;
    c->n_touched = 0;
    c->origin = 0;
    for (;;) {
        take_clause(c, clause, variable, &open);
        do at--;
        while (!c->seen[c->trail[at] / 2]);
        if (--open == 0) break;
        variable = c->trail[at] / 2;
        clause = c->of[variable].reason;
    }
    c->learn[0] = c->trail[at] ^ 1;
    (void)mark_levels(c, c->learn, c->n_learn);
    int n = 1;
    for (int k = 1; k < c->n_learn; k++) {
        int literal = c->learn[k];
        if (c->of[literal / 2].reason == CLAUSES_NONE || !is_implied(c, literal))
            c->learn[n++] = literal;
    }
    c->n_learn = n;
    while (c->n_touched > 0) c->seen[c->touched[--c->n_touched]] = false;
    *levels = mark_levels(c, c->learn, n);
    if (n == 1) return 0;
    int last = 1;
    for (int k = 2; k < n; k++)
        if (c->of[c->learn[k] / 2].level > c->of[c->learn[last] / 2].level) last = k;
    int swap = c->learn[1];
    c->learn[1] = c->learn[last];
    c->learn[last] = swap;
    return c->of[c->learn[1] / 2].level;
}
