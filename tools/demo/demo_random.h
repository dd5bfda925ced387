/* Counter-based random numbers for the made pictures: a value is a function of its coordinates and
 * the seed alone, so that a row can be made without the rows before it. */
#ifndef RFX_TOOLS_DEMO_DEMO_RANDOM_H
#define RFX_TOOLS_DEMO_DEMO_RANDOM_H

#include <stdint.h>

/* Mixes 64 bits (the finaliser of splitmix64). */
static inline uint64_t demo_mix(uint64_t v) {
    v ^= v >> 30;
    v *= UINT64_C(0xbf58476d1ce4e5b9);
    v ^= v >> 27;
    v *= UINT64_C(0x94d049bb133111eb);
    return v ^ (v >> 31);
}

/* A hash of a lattice point under a seed. */
static inline uint64_t demo_hash(uint64_t seed, int64_t y, int64_t x) {
    return demo_mix(demo_mix(seed + (uint64_t)y * UINT64_C(0x9e3779b97f4a7c15)) + (uint64_t)x);
}

/* A stream of numbers. */
struct demo_random {
    uint64_t state;
};

static inline uint64_t demo_random_next(struct demo_random *r) {
    r->state += UINT64_C(0x9e3779b97f4a7c15);
    return demo_mix(r->state);
}

/* Uniform in [lo, hi). */
static inline float demo_random_between(struct demo_random *r, float lo, float hi) {
    float unit = (float)(demo_random_next(r) >> 40) * (1.0f / 16777216.0f);
    return lo + (hi - lo) * unit;
}
#endif
