/* Element types of tensors outside of the kernels: what outputs are declared as and written as.
 *
 * Kernels compute float32. Tensors of integers and booleans hold their values as float32 numbers,
 * exactly up to 2^24; they become elements of their type where an output leaves the run. */
#ifndef RFX_LAYERS_CORE_TYPE_H
#define RFX_LAYERS_CORE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are those of enum rfx_element in the public header. */
enum rfx_type {
    RFX_TYPE_FLOAT32,
    RFX_TYPE_UINT8,
    RFX_TYPE_INT8,
    RFX_TYPE_UINT16,
    RFX_TYPE_INT16,
    RFX_TYPE_INT32,
    RFX_TYPE_INT64,
    RFX_TYPE_BOOL,
    RFX_TYPE_COUNT
};

/* Bytes of an element. */
size_t rfx_type_bytes(enum rfx_type type);

/* numpy's name of the type: "uint8". */
const char *rfx_type_name(enum rfx_type type);

/* numpy's description of little-endian elements: "|u1". */
const char *rfx_type_descr(enum rfx_type type);

static inline bool rfx_type_is_integer(enum rfx_type type) {
    return type != RFX_TYPE_FLOAT32 && type != RFX_TYPE_BOOL;
}

/* The smallest and the largest float32 that a cast to the type gives; both fit the type but for
 * the upper ends of INT32 and INT64, which are the next powers of two. */
void rfx_type_limits(enum rfx_type type, float *lo, float *hi);

/* Writes `count` floats as elements of the type: integers cut towards zero and held to the type's
 * range, NaN as 0; booleans as 0 and 1 (all but 0); FLOAT32 as they are. `to` and `values` do not
 * overlap. */
void rfx_type_store(enum rfx_type type, const float *values, int64_t count, void *to);
#endif
