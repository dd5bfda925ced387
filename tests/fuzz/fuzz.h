/* What the fuzz targets share.
 *
 * A target is one file of targets/ and a function of its input alone: libFuzzer calls it with the
 * inputs that it makes, run_corpus.c with those of the corpus. A promise that does not hold ends
 * the process, which both report with the input. Statuses for bad input are no findings. */
#ifndef RFX_TESTS_FUZZ_FUZZ_H
#define RFX_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Prints the text and aborts. */
_Noreturn void fuzz_fail(const char *format, ...) RFX_PRINTF(1, 2);

/* Aborts unless the status is OK, or one that an input of others may lead to, with a text. */
void fuzz_check_status(enum rfx_status status, const struct rfx_error *err);

/* Path of a file in memory that holds the bytes, valid until the next call. Always the same path,
 * so that an input can name its own file. */
const char *fuzz_file(const uint8_t *data, size_t size);

/* An allocator with this limit, on which all work stops after half a second of the processor.
 * rfx_memory_free aborts when something is left in it. */
struct rfx_memory *fuzz_memory(size_t limit_bytes);

/* What is allocated between true and false is kept until the end and is no leak. (Of a block of no
 * bytes only the end is known, which LeakSanitizer does not count as known.) */
void fuzz_keep(bool on);

/* `count` values of -1 to 1, the same in each call. */
void fuzz_values(float *values, int64_t count);

/* Mixes bytes into a sum that tells them from others. */
uint64_t fuzz_sum(uint64_t sum, const void *bytes, size_t count);

/* Opens the input as a picture and reads it in different ways, which must give the same values. */
void fuzz_picture(const uint8_t *data, size_t size);

/* The same of what lies under a path, and its pages as fuzz_pages. */
void fuzz_picture_at(const char *path);
void fuzz_pages_at(const char *path);

/* A TIFF of several pages: all are told in their order, and the first ones are read. */
void fuzz_pages(const uint8_t *data, size_t size);
#endif
