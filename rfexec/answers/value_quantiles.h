/* Exact quantiles of the values of each channel of a map.
 *
 * Of n values that are not NaN, sorted, the quantile q is the value at q (n - 1), counted from 0;
 * between two values it lies on the straight line between them, computed in double. These are the
 * numbers of NumPy's quantile for float64, unless a neighbour is infinite. -0 counts as 0.
 *
 * The values wait in a file without a name (output_spool.h), 4 bytes for each. The sorted values
 * that are asked for are found by counting: 11 bits of all values at once while they arrive, then
 * 11 and 10 bits more of those that share the bits found so far, in two passes over the file. So
 * memory does not grow with the map. Test: test_value_quantiles.c. */
#ifndef RFX_RFEXEC_ANSWERS_VALUE_QUANTILES_H
#define RFX_RFEXEC_ANSWERS_VALUE_QUANTILES_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"
#include "rfexec/output/answer_options.h"

struct rfx_value_quantiles;

/* Returns the memory of the quantiles of a map: 32 KiB for each quantile of each channel, and a row
 * of the map. */
size_t rfx_value_quantiles_bytes(const struct rfx_answer_quantiles *list,
                                 const struct rfx_tensor *map);

/* path: of the file beside which the values wait. list: at least one number from 0 to 1. IO,
 * OUT_OF_MEMORY. Free with rfx_value_quantiles_free. */
RFX_NODISCARD enum rfx_status rfx_value_quantiles_create(struct rfx_memory *mem, const char *path,
                                                         const struct rfx_answer_quantiles *list,
                                                         const struct rfx_tensor *map,
                                                         struct rfx_value_quantiles **out,
                                                         struct rfx_error *err);

/* Takes the next row of the map: values [w, c]. IO. */
RFX_NODISCARD enum rfx_status rfx_value_quantiles_row(struct rfx_value_quantiles *quantiles,
                                                      const float *values, struct rfx_error *err);

/* Finds the quantiles when all rows have come. IO. */
RFX_NODISCARD enum rfx_status rfx_value_quantiles_find(struct rfx_value_quantiles *quantiles,
                                                       struct rfx_error *err);

/* Returns a quantile of a channel, after find; NaN if the channel has no values. */
double rfx_value_quantile(const struct rfx_value_quantiles *quantiles, int64_t channel, int k);

/* NULL is fine. */
void rfx_value_quantiles_free(struct rfx_value_quantiles *quantiles);
#endif
