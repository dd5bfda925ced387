/* Kernels of uint8 and int8: loops over channels that the compiler vectorises. */
#include "layers/kernels/generic/variant.h"

#define POOL_MAX(name, element, least)                                              \
    void VARIANT_NAME(name)(const struct rfx_byte_pool_args *r) {                   \
        element *restrict out = r->out;                                             \
        const element *x = r->row;                                                  \
        const int64_t c = r->c;                                                     \
        if (!r->begun)                                                              \
            for (int64_t i = 0; i < c; i++) out[i] = (least);                       \
        for (int64_t col = 0; col < r->n_cols; col++, x += r->col_step)             \
            for (int64_t i = 0; i < c; i++) out[i] = x[i] > out[i] ? x[i] : out[i]; \
    }

POOL_MAX(pool_max_u8, uint8_t, 0)
POOL_MAX(pool_max_i8, int8_t, INT8_MIN)
