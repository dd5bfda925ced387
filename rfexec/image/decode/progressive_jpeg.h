/* Private: decoding progressive JPEG files, whose image comes in several scans: the coefficients of
 * all scans, which libjpeg calls virtual arrays. A strip of rows of each component is in memory.
 * Where a strip is not all rows, a temporary file without a name holds all of them. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_PROGRESSIVE_JPEG_H
#define RFX_RFEXEC_IMAGE_DECODE_PROGRESSIVE_JPEG_H

#include <stdbool.h>
#include <stdio.h>

#include "rfexec/image/decode/image_pool.h"

/* After stdio.h, which it needs. */
#include <jpeglib.h>

struct rfx_coefficients {
    const char *folder; /* NULL: rfx_temp_folder */
    int fd;             /* -1: no file */
    int64_t file_bytes; /* that the arrays need; 0: none */
    int number;         /* errno of what failed; 0: nothing */
    const char *doing;  /* when it did */
};

/* Of the pool, for an array of `blocks` by `n_rows` of which up to `access` rows are asked for. */
size_t rfx_coefficients_bytes(size_t blocks, size_t n_rows, size_t access);

/* An array; what was not written is 0. NULL: the pool is exhausted. */
jvirt_barray_ptr rfx_coefficients_request(struct rfx_coefficients *kept,
                                          struct rfx_image_pool *pool, JDIMENSION blocks,
                                          JDIMENSION n_rows, JDIMENSION access);

/* Makes the file where one is needed, after all requests. false: `number` says why not. */
bool rfx_coefficients_realize(struct rfx_coefficients *kept);

/* Rows [first, first + n_rows) of an array, until others of it are asked for; NULL: not of it, or
 * `number` says why not. */
JBLOCKARRAY rfx_coefficients_access(struct rfx_coefficients *kept, jvirt_barray_ptr array,
                                    JDIMENSION first, JDIMENSION n_rows, bool writable);

/* Forgets all arrays, whose pool is used anew. */
void rfx_coefficients_restart(struct rfx_coefficients *kept);

void rfx_coefficients_close(struct rfx_coefficients *kept);
#endif
