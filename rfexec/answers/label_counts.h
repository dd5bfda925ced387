/* Numbers of pixels of labels, of which at most a given number are different. */
#ifndef RFX_RFEXEC_ANSWERS_LABEL_COUNTS_H
#define RFX_RFEXEC_ANSWERS_LABEL_COUNTS_H

#include "layers/core/memory.h"

#define RFX_LABEL_COUNTS 65536 /* different labels of a summary of a map */

struct rfx_label_count {
    int64_t label, pixels;
};

struct rfx_label_counts;

/* Memory of a table for `most` different labels, a power of 2. */
size_t rfx_label_counts_bytes(int64_t most);

/* OUT_OF_MEMORY. Free *out with rfx_label_counts_free. */
RFX_NODISCARD enum rfx_status rfx_label_counts_create(struct rfx_memory *mem, int64_t most,
                                                      struct rfx_label_counts **out,
                                                      struct rfx_error *err);

/* Adds pixels of one label; pixels > 0. UNSUPPORTED: more than `most` different labels came. */
RFX_NODISCARD enum rfx_status rfx_label_counts_add_run(struct rfx_label_counts *counts,
                                                       int64_t label, int64_t pixels,
                                                       struct rfx_error *err);

/* Adds a row of labels, but for those equal to `none`. Statuses of rfx_label_counts_add_run. */
RFX_NODISCARD enum rfx_status rfx_label_counts_add(struct rfx_label_counts *counts,
                                                   const int64_t *labels, int64_t n, int64_t none,
                                                   struct rfx_error *err);

/* Returns the counts by ascending labels; *n is their number. Afterwards nothing can be added. */
const struct rfx_label_count *rfx_label_counts_list(struct rfx_label_counts *counts, int64_t *n);

/* NULL is fine. */
void rfx_label_counts_free(struct rfx_label_counts *counts);
#endif
