/* What the search of clauses.h works on: clauses in one array, who watches what, the assignment,
 * and the order in which variables are chosen. Only clauses*.c include it.
 *
 * Invariants: 1. a clause of two or more literals is watched by its first two: when one of them
 * becomes false, all clauses in that literal's list are looked at; 2. clauses that were given come
 * before those that were learnt; 3. reasons of what is assigned at level 0 are never looked at. */
#ifndef RFX_TILER_CLAUSES_CLAUSES_STATE_H
#define RFX_TILER_CLAUSES_CLAUSES_STATE_H

#include "tiler/clauses/clauses.h"

enum { CLAUSES_HEADER = 2 }; /* number of literals; levels of a learnt clause (else 0) */
#define CLAUSES_NONE UINT32_MAX

/* A clause as seen by a watched literal: when `blocker` is true there is nothing to do. */
struct rfx_clauses_watch {
    uint32_t clause;
    int blocker; /* another literal of it: of two literals, the other one */
    bool is_pair;
};

struct rfx_clauses_list {
    struct rfx_clauses_watch *watches;
    int n;
    size_t capacity;
};

struct rfx_clauses {
    struct rfx_memory *mem;
    uint32_t *store;                        /* clauses: header, literals */
    size_t n_store, store_capacity, learnt; /* learnt clauses begin there */
    bool has_searched, is_impossible, has_no_memory;
    struct rfx_clauses_list *lists; /* per literal */

    int n;              /* variables */
    signed char *value; /* per literal: 1, 0 (open), -1 */
    bool *phase;        /* per variable: the value it had last */
    bool *follows;      /* per variable: is never chosen */
    int *level;
    uint32_t *reason;
    int *trail, n_trail, next; /* assigned literals; those from `next` on have not been looked at */
    int *starts, n_levels;     /* where on the trail levels begin */

    double *activity, step;    /* per variable; what a bump adds */
    int *heap, *place, n_heap; /* of open variables, and some more; place: -1: not in it */

    bool *seen;
    int *learn, n_learn, *stack, *touched, n_touched;
    uint64_t *stamp, now; /* per level */
};

/* The literals of a clause. */
static inline int *rfx_clauses_literals(const struct rfx_clauses *c, uint32_t clause) {
    return (int *)&c->store[clause + CLAUSES_HEADER];
}

/* Appends a clause of n >= 2 literals and watches it; CLAUSES_NONE: no memory. */
uint32_t rfx_clauses_append(struct rfx_clauses *c, const int *literals, int n, int levels);

/* Adds to what is looked at when a literal becomes false; false: no memory. */
RFX_NODISCARD bool rfx_clauses_watch(struct rfx_clauses *c, int literal,
                                     struct rfx_clauses_watch watch);

/* Forgets half of the learnt clauses, those of most levels. At level 0. false: no memory. */
RFX_NODISCARD bool rfx_clauses_forget(struct rfx_clauses *c);

/* The order of variables by falling activity. */
void rfx_clauses_push(struct rfx_clauses *c, int variable); /* unless it is there */
int rfx_clauses_pop(struct rfx_clauses *c);                 /* of n_heap > 0 */
void rfx_clauses_bump(struct rfx_clauses *c, int variable);
#endif
