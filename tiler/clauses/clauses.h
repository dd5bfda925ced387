/* Clauses over variables of two values: is there an assignment that makes all of them true?
 *
 * Conflict-driven clause learning (Marques-Silva and Sakallah 1996) with two watched literals and
 * activities of variables (Moskewicz et al. 2001), restarts and forgetting by the number of
 * decision levels in a learnt clause (Audemard and Simon 2009). What is learnt from a dead end
 * holds everywhere, so that choices that have nothing to do with each other need not be tried in
 * all their combinations.
 *
 * A literal is 2 * variable, plus 1 when it is negated. */
#ifndef RFX_TILER_CLAUSES_CLAUSES_H
#define RFX_TILER_CLAUSES_CLAUSES_H

#include "layers/core/memory.h"
#include "tiler/strategies/placement_stop.h"

struct rfx_clauses;

/* No clauses over n >= 1 variables. RFX_STATUS_OUT_OF_MEMORY. Free with rfx_clauses_free. */
RFX_NODISCARD enum rfx_status rfx_clauses_create(struct rfx_memory *mem, int n,
                                                 struct rfx_clauses **out, struct rfx_error *err);
void rfx_clauses_free(struct rfx_clauses *clauses);

/* Adds a clause: one of n >= 0 literals of different variables has to be true. Before any search.
 * false: no memory. */
RFX_NODISCARD bool rfx_clauses_add(struct rfx_clauses *clauses, const int *literals, int n);

/* n <= 65535 items: pair[i * n + j], i < j, is the variable that says that item i lies below item
 * j, or -1. Any three that have variables pairwise lie in one order, as if all clauses that say so
 * were added. The table has to last as long as the clauses. Once, before any search. false: no
 * memory. */
RFX_NODISCARD bool rfx_clauses_set_order(struct rfx_clauses *clauses, const int *pair, int n);

/* The literal of such a table that says that item i lies below item j. */
static inline int rfx_clauses_below(const int *pair, int n, int i, int j) {
    size_t count = (size_t)n;
    return i < j ? 2 * pair[(size_t)i * count + (size_t)j]
                 : 2 * pair[(size_t)j * count + (size_t)i] + 1;
}

/* An item of such an order, `size` high from section `begin` to before section `end`. */
struct rfx_clauses_item {
    int size, begin, end;
    uint64_t origin; /* of what is said of it; see rfx_clauses_set_origin */
};

/* The items of the order lie at one height in all their sections, none where another one lies, and
 * in each section below `height`: what lies below an item at one time, it, and what lies above it
 * at any other time are no higher. Sections are 0 to n_sections - 1, sizes add up to less than
 * 2^31. Once, after rfx_clauses_set_order and before any clause. false: no memory. */
RFX_NODISCARD bool rfx_clauses_set_heights(struct rfx_clauses *clauses,
                                           const struct rfx_clauses_item *items, int n_sections,
                                           int height);

/* Where the clauses come from that are added from now on: bits, 0: from nowhere. */
void rfx_clauses_set_origin(struct rfx_clauses *clauses, uint64_t origin);

/* Where the clauses come from that cannot all be true, after IMPOSSIBLE; some more may be among
 * them. */
uint64_t rfx_clauses_proof(const struct rfx_clauses *clauses);

/* A variable that follows from the others once they have values is never chosen to be tried. */
void rfx_clauses_let_follow(struct rfx_clauses *clauses, int variable);

enum rfx_clauses_outcome {
    RFX_CLAUSES_FOUND,      /* rfx_clauses_value tells how */
    RFX_CLAUSES_IMPOSSIBLE, /* proven */
    RFX_CLAUSES_LIMIT,      /* neither, within the limits */
    RFX_CLAUSES_NO_MEMORY,
};

struct rfx_clauses_request {
    uint64_t conflicts;                /* at most so many, > 0 */
    uint64_t seed;                     /* 0: no chance; else of the order of equal variables */
    bool steady;                       /* for an assignment: hardly any search for a proof */
    const struct rfx_place_stop *stop; /* NULL: none */
};

/* Searches; may be called again, and goes on with what was learnt. Adds the conflicts it met to
 * *conflicts. Where nothing stops it, a function of the clauses and requests so far. */
enum rfx_clauses_outcome rfx_clauses_solve(struct rfx_clauses *clauses,
                                           const struct rfx_clauses_request *request,
                                           uint64_t *conflicts);

/* A variable's value, after FOUND. */
bool rfx_clauses_value(const struct rfx_clauses *clauses, int variable);
#endif
