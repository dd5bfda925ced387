/* The clauses of packings without a spare byte (clauses_packing.h), and what their variables say of
 * offsets. */
#ifndef RFX_TILER_CLAUSES_CLAUSES_FORMULA_H
#define RFX_TILER_CLAUSES_CLAUSES_FORMULA_H

#include "tiler/clauses/clauses.h"
#include "tiler/clauses/clauses_packing.h"
#include "tiler/clauses/clauses_runs.h"

struct rfx_formula;

/* *out is NULL when there were too many clauses, or an item too many at a time. The runs are those
 * of problem and request, and stay as they are for as long. RFX_STATUS_OUT_OF_MEMORY. Free with
 * rfx_formula_free. */
RFX_NODISCARD enum rfx_status rfx_formula_create(const struct rfx_place_problem *problem,
                                                 const struct rfx_clauses_packing_request *request,
                                                 const struct rfx_runs *runs,
                                                 const struct rfx_place_stop *stop,
                                                 struct rfx_formula **out, struct rfx_error *err);
void rfx_formula_free(struct rfx_formula *formula);

/* Each boundary's clauses come from the runs on both its sides. */
struct rfx_clauses *rfx_formula_clauses(struct rfx_formula *formula);

/* The offsets of the problem's n items, after FOUND. */
void rfx_formula_offsets(const struct rfx_formula *formula, int n, size_t *offsets);
#endif
