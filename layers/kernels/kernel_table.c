/* Selects the kernels of the best instruction set of the processor, once per process. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef RFX_KERNELS_HAVE_AVXVNNI
#include <cpuid.h>
#endif

#include "layers/core/floats.h"
#include "layers/kernels/kernels.h"

/* The build defines RFX_KERNELS_HAVE_<SET> for each instruction set that it contains
 * (tools/cmake/rfx_helpers.cmake). Each has the table rfx_kernel_table_<set>. */
#ifdef RFX_KERNELS_HAVE_BASE
extern const struct rfx_kernels rfx_kernel_table_base;
#endif
#ifdef RFX_KERNELS_HAVE_NEON
extern const struct rfx_kernels rfx_kernel_table_neon;
#endif

static bool runs_anywhere(void) { /* every processor that the build is for can run it */
    return true;
}

#ifdef RFX_KERNELS_HAVE_AVX2
extern const struct rfx_kernels rfx_kernel_table_avx2;

static bool runs_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
#endif

#ifdef RFX_KERNELS_HAVE_AVX512
extern const struct rfx_kernels rfx_kernel_table_avx512;

static bool runs_avx512(void) {
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

/* Sets that differ from another set only in their dot products of bytes. */
#ifdef RFX_KERNELS_HAVE_AVXVNNI
extern const struct rfx_kernels rfx_kernel_table_avxvnni;

/* By cpuid: some compilers do not know the name. */
static bool runs_avxvnni(void) {
    unsigned a = 0, b, c, d;
    return runs_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1) != 0;
}
#endif

#ifdef RFX_KERNELS_HAVE_AVX512VNNI
extern const struct rfx_kernels rfx_kernel_table_avx512vnni;

static bool runs_avx512vnni(void) {
    return runs_avx512() && __builtin_cpu_supports("avx512vnni");
}
#endif

/* Best first. */
static const struct {
    const struct rfx_kernels *table;
    bool (*runs)(void); /* whether this processor can run it */
} sets[] = {
#ifdef RFX_KERNELS_HAVE_AVX512VNNI
    {&rfx_kernel_table_avx512vnni, runs_avx512vnni},
#endif
#ifdef RFX_KERNELS_HAVE_AVX512
    {&rfx_kernel_table_avx512, runs_avx512},
#endif
#ifdef RFX_KERNELS_HAVE_AVXVNNI
    {&rfx_kernel_table_avxvnni, runs_avxvnni},
#endif
#ifdef RFX_KERNELS_HAVE_AVX2
    {&rfx_kernel_table_avx2, runs_avx2},
#endif
#ifdef RFX_KERNELS_HAVE_NEON
    {&rfx_kernel_table_neon, runs_anywhere},
#endif
#ifdef RFX_KERNELS_HAVE_BASE
    {&rfx_kernel_table_base, runs_anywhere},
#endif
};
#define N_SETS (sizeof sets / sizeof sets[0])

static const struct rfx_kernels *chosen;
static pthread_once_t chosen_once = PTHREAD_ONCE_INIT;

const struct rfx_kernels *rfx_kernels_find(const char *name) {
    for (size_t i = 0; i < N_SETS; i++)
        if (strcmp(name, sets[i].table->name) == 0 && sets[i].runs()) return sets[i].table;
    return NULL;
}

static void choose(void) {
    const char *asked = getenv("RFX_KERNELS");
    if (asked != NULL) chosen = rfx_kernels_find(asked);
    for (size_t i = 0; i < N_SETS && chosen == NULL; i++)
        if (sets[i].runs()) chosen = sets[i].table;
}

const struct rfx_kernels *rfx_kernels(void) {
    pthread_once(&chosen_once, choose);
    return chosen;
}

const struct rfx_byte_kernels *rfx_kernels_of_bytes(enum rfx_type type) {
    assert(rfx_type_is_byte(type));
    return type == RFX_TYPE_UINT8 ? &rfx_kernels()->u8 : &rfx_kernels()->i8;
}

size_t rfx_act_packed_bytes(const struct rfx_act *act, int64_t c) {
    return act->kind == RFX_ACT_PRELU ? rfx_floats_bytes(c) : 0;
}

enum rfx_status rfx_act_pack(const struct rfx_graph *graph, const struct rfx_act *act, int64_t c,
                             float *packed, struct rfx_error *err) {
    if (act->kind != RFX_ACT_PRELU) return RFX_OK;
    const struct rfx_weight *slope = &graph->weights[act->slope];
    int64_t n = slope->elems == c ? c : 1;
    enum rfx_status status = rfx_weight_read(slope, 0, n, packed, err);
    for (int64_t i = n; status == RFX_OK && i < c; i++) packed[i] = packed[0];
    return status;
}

void rfx_act_apply(const struct rfx_act *act, const float *slope, const float *x, float *y,
                   int64_t pixels, int64_t c) {
    rfx_kernels()->act(act, slope, x, y, pixels, c);
}

void rfx_dense_in_parts(struct rfx_dense_args args) {
    for (int64_t left = args.k; left > 0; left -= args.k) {
        args.k = left < RFX_CONV_PART ? left : RFX_CONV_PART;
        rfx_kernels()->dense(&args);
        args.x += args.k;
        args.w += args.k * args.w_stride;
    }
}

void rfx_dense_product(const float *x, const float *w, float *y, int64_t rows, int64_t k,
                       int64_t m) {
    memset(y, 0, rfx_floats_bytes(rows * m));
    rfx_dense_in_parts((struct rfx_dense_args){.x = x,
                                               .w = w,
                                               .y = y,
                                               .x_stride = k,
                                               .w_stride = m,
                                               .y_stride = m,
                                               .rows = rows,
                                               .k = k,
                                               .m = m});
}
