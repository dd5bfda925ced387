/* Picks the kernels of the best instruction set that the processor has, once. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "layers/kernels.h"

extern const struct rfx_kernels rfx_kernel_table_base;
#if defined(__x86_64__)
extern const struct rfx_kernels rfx_kernel_table_avx2, rfx_kernel_table_avx512;
#endif

static const struct rfx_kernels *chosen;
static pthread_once_t chosen_once = PTHREAD_ONCE_INIT;

const struct rfx_kernels *rfx_kernels_find(const char *name) {
    if (strcmp(name, "base") == 0) return &rfx_kernel_table_base;
#if defined(__x86_64__)
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl");
    if (strcmp(name, "avx2") == 0 && v3) return &rfx_kernel_table_avx2;
    if (strcmp(name, "avx512") == 0 && v4) return &rfx_kernel_table_avx512;
#endif
    return NULL;
}

static void choose(void) {
    const char *asked = getenv("RFX_KERNELS");
    if (asked != NULL) chosen = rfx_kernels_find(asked);
    if (chosen == NULL) chosen = rfx_kernels_find("avx512");
    if (chosen == NULL) chosen = rfx_kernels_find("avx2");
    if (chosen == NULL) chosen = rfx_kernels_find("base");
}

const struct rfx_kernels *rfx_kernels(void) {
    pthread_once(&chosen_once, choose);
    return chosen;
}

size_t rfx_act_packed_bytes(const struct rfx_act *act, int64_t c) {
    return act->kind == RFX_ACT_PRELU ? (size_t)c * sizeof(float) : 0;
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
