/* What a part has read of the image, in its JSON: {"rows": [y0, y1], "columns": [x0, x1],
 * "version", "sums": "..."; "file": [size, seconds, nanoseconds, inode]}.
 *
 * "sums" has 8 hexadecimal digits for each row, or 8 minus signs where the row has no sum;
 * "version" is that of row_sums.h. Parts of one run share rows at their borders: where two parts
 * have different sums of one version for a row, they are not of one image. "file" is the image's
 * file as it was; of several files, the last one that was written; there is none where the image is
 * no file. */
#ifndef RFX_TOOLS_PARTS_PART_PICTURE_H
#define RFX_TOOLS_PARTS_PART_PICTURE_H

#include <jansson.h>

#include "rfexec/image/row_sums.h"

/* A new reference; NULL: no memory. input: the name of the image; sums: of the rectangle. */
json_t *rfx_part_picture_json(const char *input, struct rfx_rect rect,
                              const struct rfx_row_sums *sums);

/* Whether the file of `input` is the one of `picture`: of the same size, time and inode. */
bool rfx_part_picture_same_file(const json_t *picture, const char *input);

/* Whether the two have the same sums in all rows that both have read in the same columns; else the
 * first other row, in *row. What is no picture has no rows. */
bool rfx_part_picture_agrees(const json_t *a, const json_t *b, int64_t *row);
#endif
