/* The kernel table of one instruction set. */
#include "layers/kernels/generic/variant.h"

#define TABLE_STRING(name) #name
#define TABLE_STRING_OF(name) TABLE_STRING(name)

#define OF_BYTES(type)                                                                  \
    {                                                                                   \
        .pool_max = VARIANT_NAME(pool_max_##type), .widen = VARIANT_NAME(widen_##type), \
        .quantise = VARIANT_NAME(quantise_##type),                                      \
        .quantise_shifted = VARIANT_NAME(quantise_shifted_##type),                      \
        .mul = VARIANT_NAME(mul_##type), .dequantise = VARIANT_NAME(dequantise_##type), \
        .add = VARIANT_NAME(add_##type)                                                 \
    }

const struct rfx_kernels SET_NAME(table) = {
    .name = TABLE_STRING_OF(RFX_KERNEL_SET),
    .like = TABLE_STRING_OF(RFX_KERNEL_VARIANT),
#ifdef VARIANT_INT_BYTES
    .int_bytes = true,
    .int_depthwise_bytes = SET_NAME(int_depthwise_bytes),
#endif
    .u8 = OF_BYTES(u8),
    .i8 = OF_BYTES(i8),
    .int_conv = SET_NAME(int_conv),
    .int_depthwise = VARIANT_NAME(int_depthwise),
    .act = VARIANT_NAME(act),
    .epilogue = VARIANT_NAME(epilogue),
    .binary = VARIANT_NAME(binary),
    .affine = VARIANT_NAME(affine),
    .normalise = VARIANT_NAME(normalise),
    .channel_norm = VARIANT_NAME(channel_norm),
    .exp = VARIANT_NAME(exp),
    .exact = VARIANT_NAME(exact),
    .depthwise = VARIANT_NAME(depthwise),
    .pool = VARIANT_NAME(pool),
    .dense = VARIANT_NAME(dense),
    .interleave = VARIANT_NAME(interleave),
#ifdef VARIANT_HAS_FMA
    .conv = VARIANT_NAME(conv),
    .lanes = VARIANT_NAME(lanes),
    .expand = VARIANT_NAME(expand),
    .pixels = VARIANT_NAME(pixels),
    .planes = VARIANT_NAME(planes),
    .winograd_in = VARIANT_NAME(winograd_in),
    .winograd_filters = VARIANT_NAME(winograd_filters),
    .winograd_out = VARIANT_NAME(winograd_out),
#endif
    .peak = VARIANT_NAME(peak),
    .peak_int = SET_NAME(peak_int),
};
