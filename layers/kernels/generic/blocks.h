/* Divides work into blocks of nearly equal size, or of a few sizes. Where a block is computed, its
 * size is a compile-time constant: a switch has one case per size. */
#ifndef RFX_LAYERS_KERNELS_GENERIC_BLOCKS_H
#define RFX_LAYERS_KERNELS_GENERIC_BLOCKS_H

#include <stdint.h>

/* Blocks of nearly equal size: `least` in each, and one more in the first `larger` blocks. */
struct cut {
    int64_t blocks, larger;
    int least;
};

static inline struct cut cut_evenly(int64_t count, int64_t most) {
    int64_t blocks = (count + most - 1) / most;
    if (blocks <= 0) return (struct cut){0, 0, 0};
    return (struct cut){blocks, count % blocks, (int)(count / blocks)};
}

static inline int cut_size(const struct cut *cut, int64_t block) {
    return cut->least + (block < cut->larger);
}

/* Returns where the blocks of `least` begin. */
static inline int64_t cut_smaller(const struct cut *cut) {
    return cut->larger * (cut->least + 1);
}

/* A part of a run. */
struct portion {
    int64_t first;
    int size;
};

/* Returns the portion at `at` of a run of `count`: `most`, `few` or 1 at a time. It may begin
 * before `at`, and overlap the portion before it, so that it ends with the run. */
static inline struct portion portion_at(int64_t at, int64_t count, int most, int few) {
    const int64_t left = count - at;
    const int size = count >= most && left > few ? most : count >= few ? few : 1;
    return (struct portion){at < count - size ? at : count - size, size};
}

/* Expands to CASE(n, x) for n = 1 .. most; `most` must be one of the numbers below. */
#define CASES(most, CASE, x) CASES_UP_TO(most, CASE, x)
#define CASES_UP_TO(most, CASE, x) CASES_##most(CASE, x)
#define CASES_2(CASE, x) CASE(1, x) CASE(2, x)
#define CASES_4(CASE, x) CASES_2(CASE, x) CASE(3, x) CASE(4, x)
#define CASES_6(CASE, x) CASES_4(CASE, x) CASE(5, x) CASE(6, x)
#define CASES_7(CASE, x) CASES_6(CASE, x) CASE(7, x)
#define CASES_8(CASE, x) CASES_7(CASE, x) CASE(8, x)
#define CASES_12(CASE, x) CASES_8(CASE, x) CASE(9, x) CASE(10, x) CASE(11, x) CASE(12, x)
#define CASES_14(CASE, x) CASES_12(CASE, x) CASE(13, x) CASE(14, x)
#endif
