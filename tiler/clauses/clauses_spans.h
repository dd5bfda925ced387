/* From items of boundaries to heights of clauses. */
#ifndef RFX_TILER_CLAUSES_CLAUSES_SPANS_H
#define RFX_TILER_CLAUSES_CLAUSES_SPANS_H

#include "tiler/clauses/clauses.h"
#include "tiler/clauses/clauses_runs.h"
#include "tiler/packer/packer_boundaries.h"

/* Says of clauses whose order is that of the items of `b`, the first n of which are those of the
 * problem, that nothing lies so low or high that the capacity is not enough. What is said of a
 * filler has the run of it as its origin. Where heights are too large to be counted nothing is
 * said. false: no memory. */
RFX_NODISCARD bool rfx_spans_add(const struct rfx_boundaries *b, const struct rfx_runs *runs, int n,
                                 size_t capacity, struct rfx_clauses *clauses);
#endif
