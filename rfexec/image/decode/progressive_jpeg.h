/* Private: stores the coefficients of progressive JPEG files, whose image comes in several scans.
 * libjpeg calls these arrays virtual arrays. A strip of rows of each component is in memory. If a
 * strip is not all rows, a temporary file without a name holds all of them. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_PROGRESSIVE_JPEG_H
#define RFX_RFEXEC_IMAGE_DECODE_PROGRESSIVE_JPEG_H

#include <stdbool.h>
#include <stdio.h>

#include "rfexec/image/decode/image_pool.h"

/* After stdio.h, because jpeglib.h needs it. */
#include <jpeglib.h>

struct rfx_coefficients {
    const char *folder; /* NULL: rfx_temp_folder */
    int fd;             /* -1: no file */
    int64_t file_bytes; /* bytes of the file that the arrays need; 0: no file */
    int number;         /* errno of the failure; 0: none */
    const char *doing;  /* what failed */
};

/* Returns the bytes that an array of `blocks` by `n_rows` takes from the pool. `access`: most rows
 * that are read or written at a time. */
size_t rfx_coefficients_bytes(size_t blocks, size_t n_rows, size_t access);

/* Makes an array. Elements that were not written are 0. Returns NULL if the pool is exhausted. */
jvirt_barray_ptr rfx_coefficients_request(struct rfx_coefficients *coefficients,
                                          struct rfx_image_pool *pool, JDIMENSION blocks,
                                          JDIMENSION n_rows, JDIMENSION access);

/* Makes the file if one is needed; called after all requests. Returns false on failure;
 * coefficients->number is the errno. */
bool rfx_coefficients_realize(struct rfx_coefficients *coefficients);

/* Returns rows [first, first + n_rows) of an array, valid until other rows of the array are
 * requested. NULL: there are no such rows, or a failure, whose errno is coefficients->number. */
JBLOCKARRAY rfx_coefficients_access(struct rfx_coefficients *coefficients, jvirt_barray_ptr array,
                                    JDIMENSION first, JDIMENSION n_rows, bool writable);

/* Forgets all arrays; their pool is used again. */
void rfx_coefficients_restart(struct rfx_coefficients *coefficients);

void rfx_coefficients_close(struct rfx_coefficients *coefficients);
#endif
