/* Measures the speed of the machine and stores it in a file; see machine_speed.h. The fastest of
 * several measurements counts: other work, and a processor that has not reached its clock rate yet,
 * can only make a measurement slower. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "tools/study/machine_speed.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/clock.h"
#include "layers/kernels/kernels.h"
#include "rfexec/rfexec.h"

static const double SPAN_SECONDS =
    0.005; /* long compared with starting threads, short compared with a time slice */
static const double PROBE_SECONDS = 0.0005;
enum { PROBES = 12, MOST_ROUNDS = 1 << 24, SPANS = 16, PASSES = 6, ARRAYS = 3 };

/* Does `rounds` rounds of multiply-adds. Returns the number of multiply-adds of a round. */
typedef int work(int64_t rounds);

static int add_floats(int64_t rounds) {
    float sums[RFX_PEAK_SUMS] = {0}; /* converge to 2, so no special values occur */
    return rfx_kernels()->peak(0.5f, 1.0f, rounds, sums);
}

static int add_integers(int64_t rounds) {
    int32_t sums[RFX_PEAK_SUMS] = {0};
    return rfx_kernels()->peak_int(100, -50, rounds, sums);
}

/* Returns the seconds in which every thread does `rounds` rounds of multiply-adds. *done: number of
 * multiply-adds of all threads. */
static double span(work *add, int threads, int64_t rounds, int64_t *done) {
    int64_t of_round = 0;
    double start = rfx_clock_seconds(CLOCK_MONOTONIC);
#pragma omp parallel num_threads(threads) reduction(+ : of_round)
    of_round += add(rounds);
    double seconds = rfx_clock_seconds(CLOCK_MONOTONIC) - start;
    *done = of_round * rounds;
    return seconds;
}

static double best_rate(work *add, int threads) {
    int64_t rounds = 1 << 10, done;
    double best = 0;
    while (span(add, threads, rounds, &done) < SPAN_SECONDS) rounds *= 2;
    for (int i = 0; i < SPANS; ++i) {
        double seconds = span(add, threads, rounds, &done);
        double rate = 2.0 * (double)done / seconds;
        if (rate > best) best = rate;
    }
    return best;
}

double rfx_machine_flops_per_second(int threads) {
    return best_rate(add_floats, threads);
}

double rfx_machine_int_ops_per_second(int threads) {
    return best_rate(add_integers, threads);
}

/* Returns the floating-point operations per second of one thread (two for each multiply-add),
 * measured by its processor time in some milliseconds. Other work on the machine hardly lowers the
 * result. */
static double machine_probe(void) {
    const struct rfx_kernels *kernels = rfx_kernels();
    int64_t rounds = 1 << 12;
    double best = 0;
    for (int i = 0; i < PROBES;) {
        float sums[RFX_PEAK_SUMS] = {0};
        double start = rfx_clock_seconds(CLOCK_THREAD_CPUTIME_ID);
        int n = kernels->peak(0.5f, 1.0f, rounds, sums);
        double seconds = rfx_clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
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
    for (int pass = -1; pass < PASSES;
         ++pass) { /* the first pass only gets the pages from the system */
        double start = rfx_clock_seconds(CLOCK_MONOTONIC);
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int t = 0; t < threads; ++t) {
            int64_t lo = n * t / threads, count = n * (t + 1) / threads - lo;
            if (pass < 0) {
                memset(a + lo, 0, (size_t)count * sizeof *a);
                memset(b + lo, 0, (size_t)count * sizeof *b);
            }
            kernels->binary(RFX_BINARY_ADD, a + lo, 1, b + lo, 1, sum + lo, count);
        }
        double rate = (double)(ARRAYS * bytes) / (rfx_clock_seconds(CLOCK_MONOTONIC) - start);
        if (pass >= 0 && rate > best) best = rate;
    }
    rfx_memory_release(mem, a);
    *out = best;
    return RFX_OK;
}

enum { PATH = 3072, KEY = 1024 };

/* Operations per second of one thread on the processors on which the cost constants were measured.
 * Kernels that are not listed count as the first row. */
static const struct {
    const char *kernels;
    double flops;
} constants_of[] = {{"avx2", 103e9}, {"avx512", 270e9}};

static double constants_flops(void) {
    enum { N = sizeof constants_of / sizeof constants_of[0] };
    const char *name = rfx_kernels()->like;
    for (int i = 0; i < N; ++i)
        if (strcmp(constants_of[i].kernels, name) == 0) return constants_of[i].flops;
    return constants_of[0].flops;
}

/* Appends the lines of /proc/cpuinfo that identify the processor. */
static void add_processor(char key[KEY]) {
    static const char *const names[] = {"vendor_id", "cpu family",      "model",       "stepping",
                                        "CPU part",  "CPU implementer", "CPU variant", "uarch"};
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL) return;
    while (fgets(line, sizeof line, file) != NULL && line[0] != '\n') {
        bool known = false;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
            known |= strncmp(line, names[i], strlen(names[i])) == 0;
        size_t used = strlen(key);
        if (known) (void)snprintf(key + used, KEY - used, "%s", line);
    }
    (void)fclose(file);
}

static void make_key(char key[KEY]) {
    (void)snprintf(key, KEY, "rfexec %s\nkernels %s\n", rfx_version(), rfx_kernels()->name);
    add_processor(key);
}

/* Finds the folder of the files. Returns false when there is none. */
static bool find_folder(char folder[PATH]) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache != NULL && cache[0] == '/')
        n = snprintf(folder, PATH, "%s", cache);
    else if (home != NULL && home[0] == '/')
        n = snprintf(folder, PATH, "%s/.cache", home);
    if (n < 0 || n >= PATH - 128) return false;
    (void)mkdir(folder, 0700); /* opening the file shows whether this worked */
    (void)snprintf(folder + n, (size_t)(PATH - n), "/rfexec");
    return true;
}

static void name_file(const char *folder, const char *key, char path[PATH]) {
    uint64_t hash = 14695981039346656037U; /* FNV-1a */
    for (const char *p = key; *p != '\0'; ++p) hash = (hash ^ (unsigned char)*p) * 1099511628211U;
    (void)snprintf(path, PATH, "%.3000s/speed-%016" PRIx64, folder, hash);
}

/* Reads the speed from a file, which has the key and a line with the speed. Returns false when the
 * file is missing, has another key or no sensible speed. */
static bool read_speed(const char *path, const char *key, double *speed) {
    char text[KEY + 64];
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    size_t n = fread(text, 1, sizeof text - 1, file), length = strlen(key);
    (void)fclose(file);
    text[n] = '\0';
    return n > length && memcmp(text, key, length) == 0 &&
           sscanf(text + length, "speed %lf", speed) == 1 && *speed > 1e-3 && *speed < 1e3;
}

/* Writes the file of the speed, if that is possible. */
static void write_speed(const char *folder, const char *path, const char *key, double speed) {
    char other[PATH + 16];
    (void)mkdir(folder, 0700);
    (void)snprintf(other, sizeof other, "%s.XXXXXX", path);
    int fd = mkstemp(other);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        if (fd >= 0) (void)close(fd);
        return;
    }
    bool written = fprintf(file, "%sspeed %.4f\n", key, speed) > 0;
    if (fclose(file) != 0 || !written || rename(other, path) != 0) (void)unlink(other);
}

/* Returns the speed of one thread as a multiple of the speed of the constants' processor; 0: the
 * speed cannot be measured. */
static double find_speed(void) {
    char key[KEY] = "", folder[PATH], path[PATH];
    double speed = 0.0;
    make_key(key);
    bool kept = find_folder(folder);
    if (kept) name_file(folder, key, path);
    if (kept && read_speed(path, key, &speed)) return speed;
    speed = rint(1e4 * machine_probe() / constants_flops()) / 1e4; /* rounded as in the file */
    if (kept && speed > 0.0) write_speed(folder, path, key, speed);
    return speed;
}

/* Returns the factor by which work slows down because more threads than processors take turns. */
static double turns(int threads) {
    cpu_set_t allowed;
    int processors = threads;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) processors = CPU_COUNT(&allowed);
    return threads > processors && processors > 0 ? (double)threads / (double)processors : 1.0;
}

double rfx_machine_seconds(uint64_t picoseconds, int threads) {
    static double known; /* 0: not measured yet */
    const char *given = getenv("RFX_MACHINE_SPEED");
    double seconds = (double)picoseconds * 1e-12, speed = given != NULL ? strtod(given, NULL) : 0.0;
    if (speed > 0.0) return seconds / speed;
    if (known == 0.0) known = find_speed();
    if (known <= 0.0) known = 1.0;
    return seconds / known * turns(threads);
}
