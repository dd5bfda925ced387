/* Guesses, and what is guessed no more; see clauses_packing.h. */
#include "tiler/clauses/clauses_packing.h"

#include "tiler/clauses/clauses_formula.h"

/* A proof that took so many conflicts opens one more run: where proofs are long, many guesses are
 * wrong, and each proof costs more than a larger formula. */
enum { CONFLICTS_PER_RUN = 400 };

struct rfx_clauses_packing {
    const struct rfx_place_problem *problem;
    struct rfx_clauses_packing_request request;
    struct rfx_runs runs;
    struct rfx_formula *formula; /* NULL: to be made */
    uint64_t conflicts, proof;   /* in all, with this formula */
    bool has_searched;           /* the formula */
};

enum rfx_status rfx_clauses_packing_create(const struct rfx_place_problem *problem,
                                           const struct rfx_clauses_packing_request *request,
                                           struct rfx_clauses_packing **out,
                                           struct rfx_error *err) {
    struct rfx_clauses_packing *p = rfx_memory_calloc(problem->mem, 1, sizeof *p);
    if (p == NULL) return rfx_memory_fail(problem->mem, "packer", sizeof *p, err);
    p->problem = problem;
    p->request = *request;
    enum rfx_status status =
        rfx_runs_make(problem, request->capacity_bytes, request->backwards, &p->runs, err);
    if (status == RFX_OK)
        *out = p;
    else
        rfx_clauses_packing_free(p);
    return status;
}

static void drop_formula(struct rfx_clauses_packing *p) {
    rfx_formula_free(p->formula);
    p->formula = NULL;
    p->has_searched = false;
    p->proof = 0;
}

void rfx_clauses_packing_free(struct rfx_clauses_packing *p) {
    if (p == NULL) return;
    drop_formula(p);
    rfx_runs_release(&p->runs);
    rfx_memory_release(p->problem->mem, p);
}

uint64_t rfx_clauses_packing_conflicts(const struct rfx_clauses_packing *p) {
    return p->conflicts;
}

/* Opens runs that a proof comes from; false: all that can be are open. */
static bool open_runs(struct rfx_clauses_packing *p, uint64_t proof) {
    uint64_t n = 1 + p->proof / CONFLICTS_PER_RUN;
    uint64_t opened = 0;
    while (opened < n && rfx_runs_open(&p->runs, proof)) opened++;
    return opened > 0;
}

/* Searches the formula; *guess_is_wrong: with others there may be a packing. */
static enum rfx_status search_formula(struct rfx_clauses_packing *p,
                                      struct rfx_clauses_request search, size_t *offsets,
                                      enum rfx_clauses_packing_outcome *outcome,
                                      uint64_t *conflicts, bool *guess_is_wrong,
                                      struct rfx_error *err) {
    const struct rfx_place_problem *problem = p->problem;
    struct rfx_clauses *clauses = rfx_formula_clauses(p->formula);
    *outcome = RFX_CLAUSES_PACKING_ALL_TRIED;
    if (!p->has_searched) search.seed = p->request.seed;
    p->has_searched = true;
    uint64_t before = *conflicts;
    enum rfx_clauses_outcome end = rfx_clauses_solve(clauses, &search, conflicts);
    p->proof += *conflicts - before;
    switch (end) {
        case RFX_CLAUSES_FOUND:
            rfx_formula_offsets(p->formula, problem->n, offsets);
            if (rfx_place_answer_is_valid(problem->items, problem->n, offsets,
                                          p->request.capacity_bytes))
                *outcome = RFX_CLAUSES_PACKING_FOUND;
            break;
        case RFX_CLAUSES_IMPOSSIBLE:
            *guess_is_wrong = open_runs(p, rfx_clauses_proof(clauses));
            break;
        case RFX_CLAUSES_LIMIT:
            *outcome = RFX_CLAUSES_PACKING_SOME_LEFT;
            break;
        case RFX_CLAUSES_NO_MEMORY:
            return rfx_memory_fail(problem->mem, "packer", sizeof *p, err);
    }
    return RFX_OK;
}

/* Then nothing is guessed, and no proof is of use. */
static bool nothing_is_free(const struct rfx_runs *runs) {
    return runs->n == 1 && runs->free_bytes[0] == 0;
}

enum rfx_status rfx_clauses_packing_search(struct rfx_clauses_packing *p, uint64_t most,
                                           const struct rfx_place_stop *stop, size_t *offsets,
                                           enum rfx_clauses_packing_outcome *outcome,
                                           uint64_t *conflicts, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    uint64_t done = 0;
    bool goes_on = true;
    *outcome = RFX_CLAUSES_PACKING_ALL_TRIED;
    if (p->problem->n > RFX_CLAUSES_MAX_ITEMS) return RFX_OK;
    while (goes_on && status == RFX_OK) {
        goes_on = false;
        if (p->formula == NULL)
            status = rfx_formula_create(p->problem, &p->request, &p->runs, stop, &p->formula, err);
        if (status != RFX_OK || p->formula == NULL) break; /* too large */
        struct rfx_clauses_request search = {
            .conflicts = most - done, .steady = nothing_is_free(&p->runs), .stop = stop};
        status = search_formula(p, search, offsets, outcome, &done, &goes_on, err);
        if (!goes_on) break;
        drop_formula(p);
        *outcome = RFX_CLAUSES_PACKING_SOME_LEFT;
        goes_on = done < most && !rfx_place_must_stop(p->problem->mem, stop);
    }
    *conflicts += done;
    p->conflicts += done;
    return status;
}
