/* Checksums of the rows of an image as a run reads them. With them the reads of two runs of one
 * image can be compared row by row, whatever their plans were.
 *
 * The sum of a row depends only on its values in the chosen columns. Rows are read as rectangles,
 * some values several times where tiles or strips overlap. Each value counts once, as long as the
 * rectangles of a row come from left to right without gap (strips and tiles do). Other rows have no
 * sum.
 *
 * A sum is a multilinear hash of the values' bits, modulo 2^64, in two levels: 32-bit keys within a
 * block of values, odd 64-bit factors of blocks. 32 mixed bits of it are returned. Two different
 * rows have the same sum with a probability of about 2^-31. The sums do not protect against
 * deliberate forgery. */
#ifndef RFX_RFEXEC_IMAGE_ROW_SUMS_H
#define RFX_RFEXEC_IMAGE_ROW_SUMS_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

struct rfx_row_sums;

/* Sums of different versions of this function cannot be compared. */
enum { RFX_ROW_SUMS_VERSION = 2 };

/* Returns the memory for the sums of so many rows. */
size_t rfx_row_sums_bytes(int64_t rows);

/* Makes sums for the rows and columns of `rect`. Free *out with rfx_row_sums_free. */
RFX_NODISCARD enum rfx_status rfx_row_sums_create(struct rfx_memory *mem, struct rfx_rect rect,
                                                  struct rfx_row_sums **out, struct rfx_error *err);
void rfx_row_sums_free(struct rfx_row_sums *sums);

/* Adds the values of a rectangle of the image, which `view` holds. Several threads may add
 * different rows at a time. */
void rfx_row_sums_add(struct rfx_row_sums *sums, struct rfx_rect rect, const struct rfx_view *view);

/* Returns whether all columns of row y have been added; if so, *sum is the row's sum. */
bool rfx_row_sums_get(const struct rfx_row_sums *sums, int64_t y, uint32_t *sum);
#endif
