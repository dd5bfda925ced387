/* Helpers of most tests: seeded random numbers, comparisons that report the place of a difference,
 * buffers of exact size, and a loop in which every allocation fails once. */
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
/* Returns a uniform number in [lo, hi], both included. */
int64_t test_rng_int(struct test_rng *rng, int64_t lo, int64_t hi);
float test_rng_float(struct test_rng *rng, float lo, float hi);
bool test_rng_chance(struct test_rng *rng, int percent);
void test_rng_fill(struct test_rng *rng, float *values, int64_t n, float lo, float hi);

/* Replaces about one value in fifty by a special one: NaN of several signs and payloads,
 * infinities, zeros, subnormal and huge numbers. */
void test_rng_specials(struct test_rng *rng, float *values, int64_t n);

/* Returns the integer in the environment variable, or `missing` if it is not set. */
int64_t test_env_int(const char *name, int64_t missing);

/* Returns the choice of convolutions that RFX_TEST_CONV names ("direct", "openblas", ...), or the
 * default if it is not set. Networks made by tests/support use it. ctest runs each suite once per
 * choice (tests/CMakeLists.txt). Aborts if the name is unknown. */
enum rfx_conv_choice test_conv_choice(void);

/* For main: whether the test must be skipped, because this processor lacks the kernels that
 * RFX_KERNELS names or cannot run OpenBLAS for the core type that the environment sets. main then
 * returns TEST_SKIPPED, which ctest reports as skipped. */
bool test_skip(void);
enum { TEST_SKIPPED = 77 };

/* The differences of two arrays: their number, and the indices of the first and the worst. */
struct test_diff {
    int64_t count, first, worst;
    double worst_error; /* |got - want| / max(|want|, floor) */
};

/* Replaces every NaN by the quiet NaN 0x7fc00000. Only the outputs of a session promise which NaN
 * they contain; maps within a network do not. */
void test_quiet_nans(float *values, int64_t n);

/* Compares bit by bit. Returns true if the arrays are identical. */
bool test_same_bits(const float *got, const float *want, int64_t n, struct test_diff *diff);

/* Returns whether |got - want| <= tolerance * max(|want|, floor) for all elements. NaN equals NaN,
 * and infinities must be equal. */
bool test_close(const float *got, const float *want, int64_t n, double tolerance, double floor,
                struct test_diff *diff);

/* Compares two whole tensors of one type, byte by byte; all NaN count as equal, and are replaced by
 * the quiet NaN. Prints the differences to stderr. */
bool test_same_tensors(const char *what, const struct rfx_tensor *t, void *got, void *want);

/* Prints "what: 3 of 70 differ, first [5] got a (bits) want b (bits), worst ..." to stderr. */
void test_print_diff(const char *what, const float *got, const float *want, int64_t n,
                     const struct test_diff *diff);

/* Returns the distance of two floats in units in the last place; INT64_MAX if one is NaN. */
int64_t test_ulp_distance(float a, float b);

/* Returns exactly n floats from malloc, filled with NaN. Aborts if there is no memory. */
float *test_floats(int64_t n);

/* Calls rfx_weight_read; aborts with its text if it fails. */
void test_read_weight(const struct rfx_weight *weight, int64_t first, int64_t count, float *out);

/* Convert a map of c x h x w between NCHW and NHWC. */
void test_nchw_to_nhwc(const float *in, float *out, int64_t c, int64_t h, int64_t w);
void test_nhwc_to_nchw(const float *in, float *out, int64_t c, int64_t h, int64_t w);

/* Copies `rect` from one view to another of the same type; both must contain it. */
void test_copy_rect(const struct rfx_view *from, const struct rfx_view *to, struct rfx_rect rect);

/* Whether the view's pixels in `rect` equal those of the whole map `want`, which has elements of
 * the map's type, as the view has; all NaN count as equal. */
bool test_same_pixels(const struct rfx_view *view, struct rfx_rect rect,
                      const struct rfx_tensor *map, void *want);

/* Packs and runs one node on `rect`, with buffers of exactly the sizes that its op states. The
 * required parts of the whole tensors `in` are copied to views of exact size, and the results are
 * copied to the whole tensor `out`; all have the element type of their tensor. Returns false, with
 * a message on stderr, if the node writes outside the rectangle or breaks another rule of op.h. */
bool test_run_node(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                   float *out, struct rfx_rect rect, int threads);

/* Calls `build` with a new allocator that fails at the k-th allocation, for k = 0, 1, ... until
 * `build` succeeds. `build` returns the status and frees everything it allocated. Returns the
 * number of failing calls; -1 if a failure had another status than OUT_OF_MEMORY, leaked a block,
 * or left the error text empty. */
int64_t test_fail_each_allocation(enum rfx_status (*build)(struct rfx_memory *mem, void *context,
                                                           struct rfx_error *err),
                                  void *context);

/* Returns a built-in network with the choice of RFX_TEST_CONV; `fuse` as in rfx_load_options. Fails
 * the test if it cannot be loaded. */
struct rfx_graph *test_builtin(struct rfx_memory *mem, const char *name, int64_t h, int64_t w,
                               uint64_t seed, const struct rfx_fuse_options *fuse);

/* Returns the MACs of all nodes of a graph, for whole maps. */
uint64_t test_total_macs(const struct rfx_graph *graph);

/* A small file in memory, which a test damages byte by byte. */
struct test_bytes {
    unsigned char data[1 << 16];
    size_t count;
};
void test_bytes_load(struct test_bytes *bytes, const char *path);

/* Returns the text of a file and removes the file. Valid until the next call. Aborts if there is no
 * such file, or if it has 64 KiB or more. */
const char *test_take_text(const char *path);

/* Writes the file anew under another inode. Some file systems write a file that is truncated and
 * filled again to the disk at once, which would make tests slow. */
void test_bytes_store(const char *path, const void *data, size_t count);

/* Returns the number of files in a directory, hidden ones included. Aborts if it cannot be read. */
int test_files_in(const char *directory);
#endif
