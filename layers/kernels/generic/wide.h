/* A register of doubles, and the floats that are converted to or from it. Conversions are
 * intrinsics where compilers would otherwise split them into several instructions. */
#ifndef RFX_LAYERS_KERNELS_GENERIC_WIDE_H
#define RFX_LAYERS_KERNELS_GENERIC_WIDE_H

#include "layers/kernels/generic/variant.h"

#define WIDE_DOUBLES (VECTOR_FLOATS / 2)

typedef double wide __attribute__((vector_size(WIDE_DOUBLES * 8)));
typedef uint64_t wide_int __attribute__((vector_size(WIDE_DOUBLES * 8)));
typedef float narrow __attribute__((vector_size(WIDE_DOUBLES * 4), aligned(4), may_alias));
typedef int32_t narrow_int __attribute__((vector_size(WIDE_DOUBLES * 4), aligned(4), may_alias));

#define NARROW_LOAD(at) (*(const narrow *)(const void *)(at))
#define NARROW_STORE(at, v) (*(narrow *)(void *)(at) = (v))

/* WIDE_ANY_BIT: whether any lane has a bit set other than the highest. NARROW_ANY_BELOW_0: whether
 * any lane has its highest bit set. They are intrinsics because compilers split comparisons of
 * vectors. */
#if VECTOR_FLOATS == 16
#define WIDE_ANY_BIT(v) (_mm512_test_epi64_mask((__m512i)(v), _mm512_set1_epi64(INT64_MAX)) != 0)
#define NARROW_ANY_BELOW_0(v) (_mm256_movemask_ps((__m256)(v)) != 0)
#define WIDEN(v) ((wide)_mm512_cvtps_pd((__m256)(v)))
#define NARROW(v) ((narrow)_mm512_cvtpd_ps((__m512d)(v)))
#elif VECTOR_FLOATS == 8
#define WIDE_ANY_BIT(v) (_mm256_testz_si256((__m256i)(v), _mm256_set1_epi64x(INT64_MAX)) == 0)
#define NARROW_ANY_BELOW_0(v) (_mm_movemask_ps((__m128)(v)) != 0)
#define WIDEN(v) ((wide)_mm256_cvtps_pd((__m128)(v)))
#define NARROW(v) ((narrow)_mm256_cvtpd_ps((__m256d)(v)))
#else
#define WIDE_ANY_BIT(v) ((((v)[0] | (v)[1]) << 1) != 0)
#define NARROW_ANY_BELOW_0(v) (((v)[0] | (v)[1]) < 0)
#define WIDEN(v) __builtin_convertvector((v), wide)
#define NARROW(v) __builtin_convertvector((v), narrow)
#endif
#endif
