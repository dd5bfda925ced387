/* What every heavier test needs: seeded random numbers, comparisons that say where, exact-size
 * buffers, and the loop that lets every allocation fail once. */
#ifndef RFX_TESTS_SUPPORT_TEST_UTIL_H
#define RFX_TESTS_SUPPORT_TEST_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/graph/op.h"

struct test_rng {
    uint64_t state;
};

struct test_rng test_rng_make(uint64_t seed);
uint64_t test_rng_next(struct test_rng *rng);
/* Uniform in [lo, hi], both included. */
int64_t test_rng_int(struct test_rng *rng, int64_t lo, int64_t hi);
float test_rng_float(struct test_rng *rng, float lo, float hi);
bool test_rng_chance(struct test_rng *rng, int percent);
void test_rng_fill(struct test_rng *rng, float *values, int64_t n, float lo, float hi);

/* Puts NaN of several signs and payloads, infinities, zeros, subnormal and huge numbers in about
 * one place in fifty. */
void test_rng_specials(struct test_rng *rng, float *values, int64_t n);

/* The integer in the environment variable, or `missing`. */
int64_t test_env_int(const char *name, int64_t missing);

/* What RFX_TEST_CONV names ("direct", "openblas", ...): the arithmetic of the convolutions in the
 * networks that tests/support makes; not set: the default. Suites run once for each (CMakeLists.txt
 * of tests). Aborts when the name is unknown. */
enum rfx_conv_choice test_conv_choice(void);

/* For main: whether this processor has not the kernels that RFX_KERNELS asks for, so that the test
 * would be about others, or cannot run OpenBLAS as the core type it is told. It then returns
 * TEST_SKIPPED, which ctest knows. */
bool test_skip(void);
enum { TEST_SKIPPED = 77 };

/* Where two arrays differ. */
struct test_diff {
    int64_t count, first, worst;
    double worst_error; /* |got - want| / max(|want|, floor) */
};

/* Makes every NaN the quiet one 0x7fc00000: which NaN an operation gives is not promised within a
 * network, only of what a session puts out. */
void test_quiet_nans(float *values, int64_t n);

/* Bit by bit. Returns true when identical. */
bool test_same_bits(const float *got, const float *want, int64_t n, struct test_diff *diff);

/* |got - want| <= tolerance * max(|want|, floor); NaN equals NaN, infinities must be equal. */
bool test_close(const float *got, const float *want, int64_t n, double tolerance, double floor,
                struct test_diff *diff);

/* Prints "what: 3 of 70 differ, first [5] got a (bits) want b (bits), worst ..." to stderr. */
void test_print_diff(const char *what, const float *got, const float *want, int64_t n,
                     const struct test_diff *diff);

/* Distance of two floats in units in the last place; INT64_MAX when one is NaN. */
int64_t test_ulp_distance(float a, float b);

/* malloc of exactly n floats filled with NaN; aborts when there is no memory. free() it. */
float *test_floats(int64_t n);

/* rfx_weight_read of what must be readable; aborts with the text when it is not. */
void test_read_weight(const struct rfx_weight *weight, int64_t first, int64_t count, float *out);

/* NCHW <-> NHWC of one map of c x h x w. */
void test_nchw_to_nhwc(const float *in, float *out, int64_t c, int64_t h, int64_t w);
void test_nhwc_to_nchw(const float *in, float *out, int64_t c, int64_t h, int64_t w);

/* Copies `rect` of a view into another view; both must hold it. */
void test_copy_rect(const struct rfx_view *from, const struct rfx_view *to, struct rfx_rect rect);

/* Whether the view's pixels in `rect` are those of the whole map `want`; every NaN is as good. */
bool test_same_pixels(const struct rfx_view *view, struct rfx_rect rect,
                      const struct rfx_tensor *map, float *want);

/* Packs and runs one node on `rect` through buffers of exactly the sizes it states: inputs are cut
 * out of the whole maps `in` (NHWC or plain) into exactly sized views, output bits go to the whole
 * map `out`. Checks that nothing of `out` outside the rectangle is touched. Returns false with a
 * message on stderr when a contract is broken. */
bool test_run_node(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                   float *out, struct rfx_rect rect, int threads);

/* Calls `build` with a fresh allocator that fails at the k-th allocation, for k = 0, 1, ... until
 * it succeeds. `build` returns the status and frees all it made. Returns the number of failing
 * rounds; -1 when a failure had another status than OUT_OF_MEMORY, left blocks behind, or said
 * nothing in the error text. */
int64_t test_fail_each_allocation(enum rfx_status (*build)(struct rfx_memory *mem, void *context,
                                                           struct rfx_error *err),
                                  void *context);

/* A built-in network with the choice of RFX_TEST_CONV, `fuse` as in rfx_load_options; a failure is
 * a failed assertion. */
struct rfx_graph *test_builtin(struct rfx_memory *mem, const char *name, int64_t h, int64_t w,
                               uint64_t seed, const struct rfx_fuse_options *fuse);

/* MACs of a graph's nodes, whole maps. */
uint64_t test_total_macs(const struct rfx_graph *graph);

/* A small file in memory, to be spoilt byte by byte. */
struct test_bytes {
    unsigned char data[1 << 16];
    size_t count;
};
void test_bytes_load(struct test_bytes *bytes, const char *path);

/* Writes a file of its own each time: some file systems write one that is cut and filled again to
 * the disk at once. */
void test_bytes_store(const char *path, const void *data, size_t count);

/* How many files a directory has, hidden ones too; aborts when it cannot be read. */
int test_files_in(const char *directory);
#endif
