/* Element types: one table has the size and the names of each.
 *
 * A tensor in memory, a weight in a model file, and an output on its way out each name the type of
 * their elements by the same enum. Most kernels compute float32. Tensors whose model says integers
 * or booleans may still hold float32 numbers, which are exact up to 2^24: such an output becomes
 * elements of its type when it leaves the run. */
#ifndef RFX_LAYERS_CORE_TYPE_H
#define RFX_LAYERS_CORE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rfx_type {
    RFX_TYPE_FLOAT32,
    RFX_TYPE_UINT8,
    RFX_TYPE_INT8,
    RFX_TYPE_UINT16,
    RFX_TYPE_INT16,
    RFX_TYPE_INT32,
    RFX_TYPE_INT64,
    RFX_TYPE_BOOL, /* a byte of 0 or 1; outputs are written as the types up to this one */
    RFX_TYPE_FLOAT16,
    RFX_TYPE_BFLOAT16,
    RFX_TYPE_FLOAT64,
    RFX_TYPE_UINT32,
    RFX_TYPE_UINT64,
    RFX_TYPE_COUNT
};

/* Bytes of an element. */
size_t rfx_type_bytes(enum rfx_type type);

/* Numpy's name of the type, "uint8"; of no type "an unknown type". */
const char *rfx_type_name(enum rfx_type type);

/* Numpy's description of little-endian elements, "|u1"; NULL for BFLOAT16, which numpy lacks. */
const char *rfx_type_descr(enum rfx_type type);

/* The number of the type in ONNX's TensorProto.DataType, and the type of such a number;
 * RFX_TYPE_COUNT: another number. */
int32_t rfx_type_onnx(enum rfx_type type);
enum rfx_type rfx_type_of_onnx(int32_t number);

/* Whether elements are integers; booleans are not. */
bool rfx_type_is_integer(enum rfx_type type);

/* Whether outputs are written as the type. */
static inline bool rfx_type_is_stored(enum rfx_type type) {
    return type <= RFX_TYPE_BOOL;
}

/* The smallest and the largest float32 that a cast to the type gives; both fit the type but for
 * the upper ends of INT32 and INT64, which are the next powers of two. Stored types only. */
void rfx_type_limits(enum rfx_type type, float *lo, float *hi);

/* Writes `count` floats as elements of a stored type: integers cut towards zero and held to the
 * type's range, NaN as 0; booleans as 0 and 1 (all but 0); FLOAT32 as they are. `to` and `values`
 * do not overlap. */
void rfx_type_store(enum rfx_type type, const float *values, int64_t count, void *to);

/* The same with integers rounded to the nearest whole number, halves to the even one: ONNX's
 * saturate(round(x)) of QuantizeLinear. Computed without libm: the same bytes everywhere. */
void rfx_type_round(enum rfx_type type, const float *values, int64_t count, void *to);

/* Writes `count` little-endian elements of any type, which need not be aligned, as float32, rounded
 * to nearest where they are no float32. FLOAT32 keeps every bit. `to` and `from` do not overlap. */
void rfx_type_load(enum rfx_type type, const void *from, int64_t count, float *to);

/* Writes `count` elements that lie `step` elements apart as elements of a stored type, one behind
 * the other: copied where the types are the same, else by way of float32 as rfx_type_load and
 * rfx_type_store say. Every float32 NaN becomes the same one (rfx_one_nan). */
void rfx_type_gather(enum rfx_type from_type, const void *from, int64_t step, int64_t count,
                     enum rfx_type to_type, void *to);
#endif
