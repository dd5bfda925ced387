/* libjpeg goes through an array from top to bottom, once for each scan and once for the picture. So
 * strips follow each other; a strip that was changed is written back. libjpeg may request more rows
 * at a time than it moves on by (five times as many when it smooths blocks that are missing in the
 * scans). The next strip begins with the first row requested. */
#include "rfexec/image/decode/progressive_jpeg.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/descriptor.h"
#include "layers/core/temp_file.h"

/* Bytes of a strip, unless the rows requested at a time need more. */
#define STRIP_BYTES ((size_t)256 * 1024)

struct jvirt_barray_control {
    JBLOCKARRAY rows; /* rows of the strip */
    size_t row_bytes;
    size_t n_rows, strip_rows;
    size_t first, held; /* first row in memory, and number of rows */
    bool changed;       /* the rows were changed since they were read */
    int64_t at;         /* offset of the array in the file */
};

static size_t strip_rows(size_t blocks, size_t n_rows, size_t access) {
    size_t rows = STRIP_BYTES / (blocks * sizeof(JBLOCK));
    if (rows < access) rows = access;
    return rows < n_rows ? rows : n_rows;
}

size_t rfx_coefficients_bytes(size_t blocks, size_t n_rows, size_t access) {
    size_t rows = strip_rows(blocks, n_rows, access);
    return rfx_align_up(sizeof(struct jvirt_barray_control)) + rfx_align_up(rows * sizeof(void *)) +
           rfx_align_up(rows * blocks * sizeof(JBLOCK));
}

jvirt_barray_ptr rfx_coefficients_request(struct rfx_coefficients *coefficients,
                                          struct rfx_image_pool *pool, JDIMENSION blocks,
                                          JDIMENSION n_rows, JDIMENSION access) {
    const size_t rows = strip_rows(blocks, n_rows, access);
    struct jvirt_barray_control *array = rfx_image_pool_take(pool, sizeof *array);
    JBLOCKARRAY pointers = rfx_image_pool_take(pool, rows * sizeof *pointers);
    JBLOCKROW strip = rfx_image_pool_take(pool, rows * blocks * sizeof *strip);
    if (array == NULL || pointers == NULL || strip == NULL) return NULL;
    *array = (struct jvirt_barray_control){.rows = pointers,
                                           .row_bytes = blocks * sizeof *strip,
                                           .n_rows = n_rows,
                                           .strip_rows = rows,
                                           .held = rows};
    for (size_t i = 0; i < rows; i++) pointers[i] = strip + i * blocks;
    memset(strip, 0, rows * array->row_bytes);
    if (rows == n_rows) return array;
    array->at = coefficients->file_bytes;
    coefficients->file_bytes +=
        (int64_t)(n_rows * array->row_bytes); /* no overflow: at most 65,500 samples a side */
    return array;
}

static bool failed(struct rfx_coefficients *coefficients, const char *doing, int number) {
    coefficients->doing = doing;
    coefficients->number = number;
    return false;
}

bool rfx_coefficients_realize(struct rfx_coefficients *coefficients) {
    if (coefficients->file_bytes == 0) return true;
    if (coefficients->fd < 0)
        coefficients->fd = rfx_temp_file_open(rfx_temp_folder(coefficients->folder));
    if (coefficients->fd < 0) return failed(coefficients, "cannot make it", errno);
    /* removes data of an earlier decoding; unwritten parts are read as 0 */
    int number = rfx_descriptor_truncate(coefficients->fd, 0);
    if (number == 0) number = rfx_descriptor_truncate(coefficients->fd, coefficients->file_bytes);
    return number == 0 ? true : failed(coefficients, "cannot make it", number);
}

/* Makes the strip begin with row `first`. */
static bool move_strip(struct rfx_coefficients *coefficients, struct jvirt_barray_control *array,
                       size_t first) {
    const int64_t row = (int64_t)array->row_bytes;
    int number = 0;
    if (array->changed)
        number = rfx_descriptor_write_at(coefficients->fd, array->rows[0],
                                         array->held * array->row_bytes,
                                         array->at + (int64_t)array->first * row);
    if (number != 0) return failed(coefficients, "cannot write", number);
    array->changed = false;
    array->first = first;
    array->held = array->n_rows - first;
    if (array->held > array->strip_rows) array->held = array->strip_rows;
    number =
        rfx_descriptor_read_at(coefficients->fd, array->rows[0], array->held * array->row_bytes,
                               array->at + (int64_t)first * row);
    return number == 0 ? true : failed(coefficients, "cannot read", number);
}

JBLOCKARRAY rfx_coefficients_access(struct rfx_coefficients *coefficients, jvirt_barray_ptr array,
                                    JDIMENSION first, JDIMENSION n_rows, bool writable) {
    if (n_rows > array->strip_rows || first > array->n_rows || n_rows > array->n_rows - first)
        return NULL;
    bool here = first >= array->first && first + n_rows <= array->first + array->held;
    if (!here && !move_strip(coefficients, array, first)) return NULL;
    array->changed = array->changed || writable;
    return array->rows + (first - array->first);
}

void rfx_coefficients_restart(struct rfx_coefficients *coefficients) {
    coefficients->file_bytes = 0;
    coefficients->number = 0;
}

void rfx_coefficients_close(struct rfx_coefficients *coefficients) {
    if (coefficients->fd >= 0) (void)close(coefficients->fd);
    coefficients->fd = -1;
}
