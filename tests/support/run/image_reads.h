/* Reading whole image files, as often as a damaged file or a failing allocator asks for it. */
#ifndef RFX_TESTS_SUPPORT_RUN_IMAGE_READS_H
#define RFX_TESTS_SUPPORT_RUN_IMAGE_READS_H

#include "rfexec/image/image_source.h"

/* Samples as they are: no scale, mean or standard deviation, channels as in the file. */
extern const struct rfx_image_options image_reads_plain;

/* Opens the file, reads its rows one by one (at most `most` rows and columns, for headers that lie)
 * and frees. fail_after, limit: of the memory (rfx_memory_fail_after, rfx_memory_create). */
enum rfx_status image_reads_all(const char *path, int64_t most, int64_t fail_after, size_t limit,
                                struct rfx_error *err);

/* image_reads_all with every allocation failing once: asserts that each is OUT_OF_MEMORY in words.
 * Returns how many there are. */
int64_t image_reads_failing(const char *path);
#endif
