/* See machine_peak.h. The best span counts: other work on the machine, and a processor that has yet
 * to reach its clock rate, only ever make one slower. */
#include "tools/measure/machine_peak.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "layers/core/checked.h"
#include "layers/kernels/kernels.h"

static const double SPAN_SECONDS = 0.005; /* long beside starting threads, short beside a slice */
static const double PROBE_SECONDS = 0.0005;
enum { PROBES = 12, MOST_ROUNDS = 1 << 24, SPANS = 16, PASSES = 6, ARRAYS = 3 };

static double now_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* That this thread has had a processor. */
static double thread_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds in which every thread does `rounds` rounds; *done receives the multiply-adds of all. */
static double span(const struct rfx_kernels *kernels, int threads, int64_t rounds, int64_t *done) {
    int64_t sums_done = 0;
    double start = now_seconds();
#pragma omp parallel num_threads(threads) reduction(+ : sums_done)
    {
        float sums[RFX_PEAK_SUMS] = {0};
        sums_done += kernels->peak(0.5f, 1.0f, rounds, sums); /* towards 2: no value is special */
    }
    double seconds = now_seconds() - start;
    *done = sums_done * rounds;
    return seconds;
}

double rfx_machine_flops_per_second(int threads) {
    const struct rfx_kernels *kernels = rfx_kernels();
    int64_t rounds = 1 << 10, done;
    double best = 0;
    while (span(kernels, threads, rounds, &done) < SPAN_SECONDS) rounds *= 2;
    for (int i = 0; i < SPANS; ++i) {
        double seconds = span(kernels, threads, rounds, &done);
        double rate = 2.0 * (double)done / seconds;
        if (rate > best) best = rate;
    }
    return best;
}

double rfx_machine_probe(void) {
    const struct rfx_kernels *kernels = rfx_kernels();
    int64_t rounds = 1 << 12;
    double best = 0;
    for (int i = 0; i < PROBES;) {
        float sums[RFX_PEAK_SUMS] = {0};
        double start = thread_seconds();
        int n = kernels->peak(0.5f, 1.0f, rounds, sums);
        double seconds = thread_seconds() - start;
        double rate = seconds > 0.0 ? 2.0 * n * (double)rounds / seconds : 0.0;
        bool too_short = seconds < PROBE_SECONDS && rounds < MOST_ROUNDS;
        if (too_short) rounds *= 2;
        if (!too_short && rate > best) best = rate;
        i += !too_short;
    }
    return best;
}

enum rfx_status rfx_machine_bytes_per_second(struct rfx_memory *mem, int threads, double *out,
                                             struct rfx_error *err) {
    const struct rfx_kernels *kernels = rfx_kernels();
    const int64_t n = (int64_t)(RFX_MACHINE_PEAK_BYTES / sizeof(float) / ARRAYS);
    const size_t bytes = (size_t)n * sizeof(float);
    float *a = rfx_memory_alloc(mem, ARRAYS * bytes);
    if (a == NULL) return rfx_memory_fail(mem, "measuring the memory", ARRAYS * bytes, err);
    float *b = a + n, *sum = b + n;
    double best = 0;
    for (int pass = -1; pass < PASSES; ++pass) { /* the first one gets the pages from the system */
        double start = now_seconds();
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int t = 0; t < threads; ++t) {
            int64_t lo = n * t / threads, count = n * (t + 1) / threads - lo;
            if (pass < 0) {
                memset(a + lo, 0, (size_t)count * sizeof *a);
                memset(b + lo, 0, (size_t)count * sizeof *b);
            }
            kernels->binary(RFX_BINARY_ADD, a + lo, 1, b + lo, 1, sum + lo, count);
        }
        double rate = (double)(ARRAYS * bytes) / (now_seconds() - start);
        if (pass >= 0 && rate > best) best = rate;
    }
    rfx_memory_release(mem, a);
    *out = best;
    return RFX_OK;
}
