/* What the search of clauses.h works on: clauses in one array, who watches what, the assignment,
 * and the order in which variables are chosen. Only clauses*.c include it.
 *
 * Invariants: 1. a clause that was learnt, or has more than three literals, is watched by its first
 * two: when one of them becomes false, all clauses in that literal's list are looked at; 2. clauses
 * that were given come before those that were learnt; 3. reasons of what is assigned at level 0 are
 * never looked at; 4. the origins of a clause, and of what is assigned at level 0, are those of all
 * clauses it follows from; 5. while it is searched, the sets of orders say what is assigned. */
#ifndef RFX_TILER_CLAUSES_CLAUSES_STATE_H
#define RFX_TILER_CLAUSES_CLAUSES_STATE_H

#include "tiler/clauses/clauses.h"

/* Number of literals; levels of a learnt clause (else 0); two words of origins. */
enum { CLAUSES_HEADER = 4 };

/* Where a clause begins in the store, or, from CLAUSES_ORDER on, one that is never written there.
 * Of an order: the item in the middle, plus CLAUSES_ORDER, is the reason of what follows from two
 * others; CLAUSES_CYCLE is false. Of heights: where it begins among the reasons, plus
 * CLAUSES_HEIGHT. */
#define CLAUSES_NONE UINT32_MAX
#define CLAUSES_CYCLE (UINT32_MAX - 1)
#define CLAUSES_HEIGHT UINT32_C(0xe0000000)
#define CLAUSES_ORDER UINT32_C(0xc0000000)
enum { CLAUSES_ORDER_LITERALS = 3 };

/* A clause as seen by a watched literal: when `blocker` is true there is nothing to do. */
struct rfx_clauses_watch {
    uint32_t clause;
    int blocker; /* another literal of it: of two literals, the other one */
    bool is_pair;
};

/* The given clauses of two and of three literals as each of their literals sees them. They are most
 * of all clauses, and are never moved: what is looked at lies side by side, without the clause. */
struct rfx_clauses_pair {
    int other;
    uint32_t clause;
};
struct rfx_clauses_triple {
    int others[2];
    uint32_t clause;
};
struct rfx_clauses_first {
    uint32_t pair, triple;
};
struct rfx_clauses_fixed {
    struct rfx_clauses_first *first; /* per literal, and the end of the last one's */
    struct rfx_clauses_pair *pairs;
    struct rfx_clauses_triple *triples;
};

/* Items in one order as far as it is known, as bits: all conclusions from two known pairs of three
 * items are drawn with a few words for all third items at once. */
struct rfx_clauses_orders {
    struct rfx_memory *mem;
    int n, words;                     /* items; of a set of them */
    const int *pair;                  /* as given */
    uint32_t *items;                  /* per variable: lower * 2^16 + upper, NONE: it is no pair */
    uint64_t *pairs, *after, *before; /* per item: those that it has a variable with, those that lie
                                         above it, those that lie below it */
    int cycle[CLAUSES_ORDER_LITERALS]; /* a clause that is false */
};

/* What is known to lie below and above each item in each section. What follows from it, and what
 * is false, has its clause among the reasons: origins (two words), number of literals, literals.
 * Those of a level are dropped with it. */
struct rfx_clauses_heights {
    struct rfx_memory *mem;
    int n_sections, height;
    struct rfx_clauses_item *items;
    int *under, *over; /* per item and section: sums of sizes */
    int *reasons;
    size_t n_reasons, reasons_capacity;
    size_t *starts; /* per level: as many reasons were there before it */
};

struct rfx_clauses_list {
    struct rfx_clauses_watch *watches;
    int n;
    size_t capacity;
};

enum { CLAUSES_RECENT = 50 };

/* Of a variable: what is used together lies together. */
struct rfx_clauses_variable {
    int level;
    uint32_t reason;
    int place;                /* in the heap; -1: not in it */
    bool phase;               /* the value it had last */
    bool follows;             /* is never chosen */
    signed char target, best; /* values in steady search, 0: none; see below */
};

/* What tells when to restart and when to forget. */
struct rfx_clauses_pace {
    int recent[CLAUSES_RECENT]; /* levels of the clauses learnt last */
    int n_recent, at;
    uint64_t sum_recent, sum, conflicts, forget_at, forget_every;
    double mean_trail, decay;
};

/* Quick search restarts often and tries the values variables had last, which is good for proofs.
 * Steady search, which takes turns with it and comes first, restarts rarely and tries the values of
 * the largest assignment without a conflict since its turn began (the target), so that it builds on
 * what fits; now and then all variables take those of the largest one since the last time (the
 * best), with which both kinds go on. Cai and Zhang 2021; Biere's CaDiCaL. */
struct rfx_clauses_turns {
    bool is_steady, stays_steady;         /* takes no turns with quick search */
    uint64_t turn, turn_at;               /* how many there were, when the next begins */
    uint64_t backs, back_at;              /* the same of going back to the best */
    uint64_t restart, factor, restart_at; /* of steady search */
    int target_trail, best_trail;         /* how many variables have values there */
};

struct rfx_clauses {
    struct rfx_memory *mem;
    uint32_t *store;                        /* clauses: header, literals */
    size_t n_store, store_capacity, learnt; /* learnt clauses begin there */
    bool has_searched, is_impossible, has_no_memory;
    struct rfx_clauses_fixed fixed;
    struct rfx_clauses_orders orders;
    struct rfx_clauses_heights heights; /* n_sections 0: nothing is known of them */
    struct rfx_clauses_list *lists;     /* per literal: of the other clauses */

    int n;              /* variables */
    signed char *value; /* per literal: 1, 0 (open), -1 */
    uint64_t *origins;  /* per variable that is assigned at level 0 */
    uint64_t origin;    /* of the clauses that are added; while one is learnt: its origins */
    uint64_t proof;     /* the origins of what is impossible */
    struct rfx_clauses_variable *of;
    int *trail, n_trail, next; /* assigned literals; those from `next` on have not been looked at */
    int *starts, n_levels;     /* where on the trail levels begin */

    double *activity, step; /* per variable; what a bump adds */
    int *heap, n_heap;      /* of open variables, and some more */

    bool *seen;
    int *learn, n_learn, *stack, *touched, n_touched;
    uint64_t *stamp, now; /* per level */
    struct rfx_clauses_pace pace;
    struct rfx_clauses_turns turns;
};

/* The literals of a clause. */
static inline int *rfx_clauses_literals(const struct rfx_clauses *c, uint32_t clause) {
    return (int *)&c->store[clause + CLAUSES_HEADER];
}

static inline uint64_t rfx_clauses_origins_of(const struct rfx_clauses *c, uint32_t clause) {
    return c->store[clause + 2] | (uint64_t)c->store[clause + 3] << 32;
}

static inline bool rfx_clauses_is_written(uint32_t clause) {
    return clause < CLAUSES_ORDER;
}

/* A clause, wherever it is. */
struct rfx_clauses_view {
    const int *literals;
    int n;
    uint64_t origins;
};

/* The reason of a variable, or (-1) a clause that is false; `own` is for one that is not written
 * down. */
struct rfx_clauses_view rfx_clauses_view(const struct rfx_clauses *c, uint32_t clause, int variable,
                                         int own[CLAUSES_ORDER_LITERALS]);

/* The items of a true literal of a pair; false: it is of none. */
bool rfx_clauses_items_of(const struct rfx_clauses_orders *orders, int literal, int *low,
                          int *high);

/* Takes down that a literal is true, if it is of a pair, or that it is open again. */
void rfx_clauses_note_order(struct rfx_clauses *c, int literal, bool is_true);
void rfx_clauses_note_heights(struct rfx_clauses_heights *heights, int low, int high, bool is_true);

/* Draws the conclusions from a pair that has become known; CLAUSES_CYCLE: there is no such order,
 * else CLAUSES_NONE. */
uint32_t rfx_clauses_propagate_order(struct rfx_clauses *c, int literal);

/* The same of the heights of its items; a clause that is false, or CLAUSES_NONE, also where there
 * is no memory (c->has_no_memory). */
uint32_t rfx_clauses_propagate_heights(struct rfx_clauses *c, int literal);

/* A clause from CLAUSES_HEIGHT on. */
struct rfx_clauses_view rfx_clauses_view_height(const struct rfx_clauses *c, uint32_t clause);

/* A level begins; all above a level are dropped. */
void rfx_clauses_begin_heights(struct rfx_clauses *c);
void rfx_clauses_drop_heights(struct rfx_clauses *c, int level);

void rfx_clauses_release_orders(struct rfx_clauses_orders *orders);
void rfx_clauses_release_heights(struct rfx_clauses_heights *heights);

/* Makes a literal true; CLAUSES_NONE: there is no reason. */
void rfx_clauses_assign(struct rfx_clauses *c, int literal, uint32_t reason);

/* The origins of a clause and of those of its literals that are false at level 0. */
uint64_t rfx_clauses_gather_origins(const struct rfx_clauses *c, uint32_t clause, int variable);

/* Learns from a false clause: c->learn, whose first literal becomes true after going back to the
 * level that is returned, that of its second literal. */
int rfx_clauses_learn(struct rfx_clauses *c, uint32_t conflict, int *levels);

/* Appends a clause of n >= 2 literals, of the origins c->origin; CLAUSES_NONE: no memory. After
 * rfx_clauses_fix, or of more than three literals, it is watched. */
uint32_t rfx_clauses_append(struct rfx_clauses *c, const int *literals, int n, int levels);

/* Makes c->fixed of all clauses; those that come after it are learnt. false: no memory. */
RFX_NODISCARD bool rfx_clauses_fix(struct rfx_clauses *c);

/* Adds to what is looked at when a literal becomes false; false: no memory. */
RFX_NODISCARD bool rfx_clauses_watch(struct rfx_clauses *c, int literal,
                                     struct rfx_clauses_watch watch);

/* Forgets half of the learnt clauses, those of most levels. At level 0. false: no memory. */
RFX_NODISCARD bool rfx_clauses_forget(struct rfx_clauses *c);

/* Turns begin with the search. Their ends, and restarts of steady search, are looked for where
 * there is no conflict; a turn is taken at level 0. Targets are kept before going back from a
 * conflict of level 1 or higher. */
void rfx_clauses_begin_turns(struct rfx_clauses *c);
bool rfx_clauses_turn_ends(const struct rfx_clauses *c);
void rfx_clauses_take_turn(struct rfx_clauses *c);
bool rfx_clauses_restarts_steadily(struct rfx_clauses *c); /* and plans the next one */
void rfx_clauses_keep_targets(struct rfx_clauses *c);

/* The order of variables by falling activity. */
void rfx_clauses_push(struct rfx_clauses *c, int variable); /* unless it is there */
int rfx_clauses_pop(struct rfx_clauses *c);                 /* of n_heap > 0 */
void rfx_clauses_bump(struct rfx_clauses *c, int variable);
#endif
