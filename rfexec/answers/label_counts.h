/* Numbers of pixels of labels, of which at most RFX_LABEL_COUNTS are different. */
#ifndef RFX_RFEXEC_ANSWERS_LABEL_COUNTS_H
#define RFX_RFEXEC_ANSWERS_LABEL_COUNTS_H

#include "layers/core/memory.h"

#define RFX_LABEL_COUNTS 65536

struct rfx_label_count {
    int64_t label, pixels;
};

struct rfx_label_counts;

/* Memory of the table. */
size_t rfx_label_counts_bytes(void);

/* OUT_OF_MEMORY. Free *out with rfx_label_counts_free. */
RFX_NODISCARD enum rfx_status rfx_label_counts_create(struct rfx_memory *mem,
                                                      struct rfx_label_counts **out,
                                                      struct rfx_error *err);

/* Adds a row of labels, but for those equal to `none`. UNSUPPORTED: more than RFX_LABEL_COUNTS
 * different labels came. */
RFX_NODISCARD enum rfx_status rfx_label_counts_add(struct rfx_label_counts *counts,
                                                   const int64_t *labels, int64_t n, int64_t none,
                                                   struct rfx_error *err);

/* Returns the counts by ascending labels; *n is their number. Afterwards nothing can be added. */
const struct rfx_label_count *rfx_label_counts_list(struct rfx_label_counts *counts, int64_t *n);

/* NULL is fine. */
void rfx_label_counts_free(struct rfx_label_counts *counts);
#endif
