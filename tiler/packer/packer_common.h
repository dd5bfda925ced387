/* What the packer's searches share: when they stop, and a hash. */
#ifndef RFX_TILER_PACKER_PACKER_COMMON_H
#define RFX_TILER_PACKER_PACKER_COMMON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* When a search is to stop without an answer. */
struct rfx_packer_stop {
    int64_t deadline_ns;  /* of CLOCK_MONOTONIC; 0: none */
    atomic_bool *stopped; /* set by whoever wants all to stop; NULL: nobody does */

    /* Asked every so often, by one thread at a time; true: stop. NULL: nobody is asked. */
    bool (*ask)(void *user);
    void *user;
    atomic_flag *asking;          /* with `ask`: held by the thread that asks */
    _Atomic int64_t *asked_at_ns; /* with `ask`: when it was asked last */
};

/* How often `ask` is called at most: ten times as often as anybody could notice. */
#define RFX_PACKER_ASK_EVERY_NS ((int64_t)20 * 1000 * 1000)

/* Of CLOCK_MONOTONIC; 0 when there is none. */
static inline int64_t rfx_packer_now_ns(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000 * 1000 * 1000 + now.tv_nsec;
}

/* Whether to stop; NULL: never. Looks at the clock only where there is a use for it. */
bool rfx_packer_must_stop(const struct rfx_packer_stop *stop);

/* A well mixed function of its argument: splitmix64 (Steele, Lea and Flood 2014), whose constants
 * these are. Shuffled orders and the states that are held for equal hang on it. */
static inline uint64_t rfx_packer_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}
#endif
