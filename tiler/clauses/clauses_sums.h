/* Clauses that say which of some literals may be true together: those whose terms add up to zero.
 *
 * Of few terms they are all shortest clauses that follow (prime implicates), so that whatever is
 * certain is concluded at once. Of more terms the sums of the first k of them get variables of
 * their own, those alone from which zero can still be reached. */
#ifndef RFX_TILER_CLAUSES_CLAUSES_SUMS_H
#define RFX_TILER_CLAUSES_CLAUSES_SUMS_H

#include "tiler/clauses/clauses.h"

/* Const once created. */
struct rfx_sums;

/* What else is in a sum: a number of 0 to `before` units, and less one of 0 to `after`. */
struct rfx_sums_counts {
    int64_t unit;
    int before, after;
};

/* For n >= 1 terms; counts NULL: nothing but them. *out is NULL when there are too many sums.
 * RFX_STATUS_OUT_OF_MEMORY. Free with rfx_sums_free. */
RFX_NODISCARD enum rfx_status rfx_sums_create(struct rfx_memory *mem, const int64_t *terms, int n,
                                              const struct rfx_sums_counts *counts,
                                              struct rfx_sums **out, struct rfx_error *err);
void rfx_sums_free(struct rfx_sums *sums);

/* How many variables of its own each use takes. */
int rfx_sums_variables(const struct rfx_sums *sums);

/* Of n literals, in the order of the terms, those that are true have terms that add up to zero; the
 * variables from `first` on are its own. The k-th variable, from 1, from `before` on says that this
 * number is k or more, so from `after` on. false: no memory. */
RFX_NODISCARD bool rfx_sums_add(const struct rfx_sums *sums, struct rfx_clauses *clauses,
                                const int *literals, int first, int before, int after);
#endif
