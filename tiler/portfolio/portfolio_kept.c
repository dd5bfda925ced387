/* One search per turn; see portfolio_kept.h. */
#include "tiler/portfolio/portfolio_kept.h"

struct rfx_clauses_packing *rfx_kept_take(struct rfx_kept *kept, int turn, size_t capacity) {
    struct rfx_clauses_packing *packing = kept->of_turn[turn];
    if (packing == NULL || kept->capacity[turn] != capacity) return NULL;
    kept->of_turn[turn] = NULL;
    return packing;
}

void rfx_kept_give(struct rfx_kept *kept, int turn, size_t capacity,
                   struct rfx_clauses_packing *packing) {
    struct rfx_clauses_packing *other = kept->of_turn[turn];
    if (packing == NULL) return;
    if (other != NULL && kept->capacity[turn] == capacity &&
        rfx_clauses_packing_conflicts(other) > rfx_clauses_packing_conflicts(packing)) {
        rfx_clauses_packing_free(packing);
        return;
    }
    rfx_clauses_packing_free(other);
    kept->of_turn[turn] = packing;
    kept->capacity[turn] = capacity;
}

void rfx_kept_release(struct rfx_kept *kept) {
    for (int turn = 0; turn < RFX_N_TURNS; turn++) rfx_clauses_packing_free(kept->of_turn[turn]);
}
