/* Element types: one table contains the size and the names of each.
 *
 * A tensor in memory, a weight in a model file and an output each have an element type from the
 * same enum. Most kernels compute float32. A tensor with integer or boolean elements in the model
 * may still hold float32 numbers, which are exact up to 2^24. Its elements are converted to the
 * model's type when the output is written. */
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
    RFX_TYPE_BOOL, /* a byte of 0 or 1; outputs can be of all types up to this one */
    RFX_TYPE_FLOAT16,
    RFX_TYPE_BFLOAT16,
    RFX_TYPE_FLOAT64,
    RFX_TYPE_UINT32,
    RFX_TYPE_UINT64,
    RFX_TYPE_COUNT
};

/* Returns the bytes of an element. */
size_t rfx_type_bytes(enum rfx_type type);

/* Returns Numpy's name of the type, such as "uint8", or "an unknown type" for a value that is no
 * type. */
const char *rfx_type_name(enum rfx_type type);

/* Returns Numpy's description of little-endian elements, such as "|u1"; NULL for BFLOAT16, which
 * Numpy lacks. */
const char *rfx_type_descr(enum rfx_type type);

/* rfx_type_onnx returns the type's number in ONNX's TensorProto.DataType. rfx_type_of_onnx returns
 * the type with this number, or RFX_TYPE_COUNT if there is none. */
int32_t rfx_type_onnx(enum rfx_type type);
enum rfx_type rfx_type_of_onnx(int32_t number);

/* Whether elements are integers; booleans are not. */
bool rfx_type_is_integer(enum rfx_type type);

/* Whether elements are integers of one byte. */
static inline bool rfx_type_is_byte(enum rfx_type type) {
    return type == RFX_TYPE_UINT8 || type == RFX_TYPE_INT8;
}

/* Whether outputs can be written as this type. */
static inline bool rfx_type_is_stored(enum rfx_type type) {
    return type <= RFX_TYPE_BOOL;
}

/* Sets *lo and *hi to the smallest and largest float32 that a cast to the type yields. Both are
 * values of the type, except the upper limits of INT32 and INT64, which are one larger: the next
 * power of two. Stored types only. */
void rfx_type_limits(enum rfx_type type, float *lo, float *hi);

/* Returns whether QuantizeLinear to the type can have this scale and zero point: the type is UINT8
 * or INT8, the scale positive and finite, the zero point a value of the type. */
bool rfx_type_takes_steps(enum rfx_type type, float scale, int32_t zero_point);

/* Writes `count` floats as elements of a stored type. Integers are rounded to the nearest whole
 * number, halves to the even one, and clamped to the type's range: ONNX's saturate(round(x)) of
 * QuantizeLinear. NaN becomes 0. Booleans become 0 for zero and 1 for all other values. FLOAT32
 * values are copied. Computed without libm, so the bytes are the same on every machine. `to` and
 * `values` must not overlap. */
void rfx_type_round(enum rfx_type type, const float *values, int64_t count, void *to);

/* Converts `count` little-endian elements of any type to float32, rounding to nearest if a value is
 * no float32. `from` need not be aligned. FLOAT32 keeps every bit. `to` and `from` must not
 * overlap. */
void rfx_type_load(enum rfx_type type, const void *from, int64_t count, float *to);

/* Copies `count` elements, whose distance in `from` is `step` elements, to consecutive elements of
 * a stored type. Equal types are copied. Other elements are converted to float32 (rfx_type_load)
 * and then to `to_type`: integers are truncated towards zero and clamped to the type's range, and
 * NaN becomes 0; booleans become 0 for zero and 1 for all other values. Every float32 NaN becomes
 * the same NaN (rfx_one_nan). */
void rfx_type_gather(enum rfx_type from_type, const void *from, int64_t step, int64_t count,
                     enum rfx_type to_type, void *to);
#endif
