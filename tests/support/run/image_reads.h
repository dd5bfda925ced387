/* Reads whole image files, for tests with damaged files and failing allocations. */
#ifndef RFX_TESTS_SUPPORT_RUN_IMAGE_READS_H
#define RFX_TESTS_SUPPORT_RUN_IMAGE_READS_H

#include "rfexec/image/image_source.h"

/* Options that leave samples unchanged: no scaling, channels as in the file. */
extern const struct rfx_image_options image_reads_plain;

/* Opens the file, reads its rows one by one and frees everything. Reads at most `most` rows and
 * columns, because a damaged header may give any size. fail_after and limit are those of
 * rfx_memory_fail_after and rfx_memory_create. */
enum rfx_status image_reads_all(const char *path, int64_t most, int64_t fail_after, size_t limit,
                                struct rfx_error *err);

/* Calls image_reads_all with each allocation failing once. Asserts that each failure is
 * OUT_OF_MEMORY with a text. Returns the number of allocations. */
int64_t image_reads_failing(const char *path);
#endif
