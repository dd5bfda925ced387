/* Exact quantiles of the values of each channel of a map, and of its areas.
 *
 * Of n values that are not NaN, sorted, the quantile q is the value at q (n - 1), counted from 0;
 * between two values it lies on the straight line between them, computed in double. These are the
 * numbers of NumPy's quantile for float64, unless a neighbour is infinite. -0 counts as 0.
 *
 * The values wait in a file without a name (output_spool.h), 4 bytes for each. The sorted values
 * that are asked for are found by counting: the first bits of all values at once while they arrive,
 * then further bits of those that share the bits found so far, in passes over the file. Without
 * areas 11, 11 and 10 bits are counted. With areas 8 bits four times, so that an area's tables are
 * small; only areas that are open at a row have tables, in each pass again. So memory does not grow
 * with the map or the pixels of areas. Test: test_value_quantiles.c. */
#ifndef RFX_RFEXEC_ANSWERS_VALUE_QUANTILES_H
#define RFX_RFEXEC_ANSWERS_VALUE_QUANTILES_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"
#include "rfexec/answers/areas.h"
#include "rfexec/output/answer_options.h"

struct rfx_value_quantiles;

/* Returns the memory of the quantiles of a map: up to 32 KiB for each quantile of each channel, and
 * a row of the map. */
size_t rfx_value_quantiles_bytes(const struct rfx_answer_quantiles *list,
                                 const struct rfx_tensor *map);

/* Returns the further memory of the quantiles of so many areas, of which so many are open at a row:
 * for each quantile of each channel up to 40 bytes for an area, and 4 KiB more for one that is
 * open. */
size_t rfx_value_quantiles_area_bytes(const struct rfx_answer_quantiles *list,
                                      const struct rfx_tensor *map, int64_t areas, int64_t open);

/* path: of the file beside which the values wait. list: at least one number from 0 to 1. areas:
 * before their first row; they must live longer. NULL: none. IO, OUT_OF_MEMORY. Free with
 * rfx_value_quantiles_free. */
RFX_NODISCARD enum rfx_status rfx_value_quantiles_create(struct rfx_memory *mem, const char *path,
                                                         const struct rfx_answer_quantiles *list,
                                                         const struct rfx_tensor *map,
                                                         struct rfx_areas *areas,
                                                         struct rfx_value_quantiles **out,
                                                         struct rfx_error *err);

/* Takes the next row of the map: values [w, c], and the areas' n spans on it (rfx_areas_row). IO.
 */
RFX_NODISCARD enum rfx_status rfx_value_quantiles_row(struct rfx_value_quantiles *quantiles,
                                                      const float *values,
                                                      const struct rfx_area_span *spans, int64_t n,
                                                      struct rfx_error *err);

/* Finds the quantiles when all rows have come. Goes over the rows of the areas again. IO. */
RFX_NODISCARD enum rfx_status rfx_value_quantiles_find(struct rfx_value_quantiles *quantiles,
                                                       struct rfx_error *err);

/* Returns a quantile of a channel in an area, or in the map (area -1), after find; NaN if there are
 * no values. */
double rfx_value_quantile(const struct rfx_value_quantiles *quantiles, int64_t area,
                          int64_t channel, int k);

/* NULL is fine. */
void rfx_value_quantiles_free(struct rfx_value_quantiles *quantiles);
#endif
