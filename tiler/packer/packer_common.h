/* What the packer's searches share: the clock they stop by and a hash. */
#ifndef RFX_TILER_PACKER_PACKER_COMMON_H
#define RFX_TILER_PACKER_PACKER_COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Of CLOCK_MONOTONIC; 0 when there is none. */
static inline int64_t rfx_packer_now_ns(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000 * 1000 * 1000 + now.tv_nsec;
}

/* Whether a deadline has passed; 0: there is none. */
static inline bool rfx_packer_is_past(int64_t deadline_ns) {
    return deadline_ns != 0 && rfx_packer_now_ns() > deadline_ns;
}

/* A well mixed function of its argument: splitmix64 (Steele, Lea and Flood 2014), whose constants
 * these are. Shuffled orders and the states that are held for equal hang on it. */
static inline uint64_t rfx_packer_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}
#endif
