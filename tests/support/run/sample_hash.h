/* Samples of made pictures: a well mixed function of seed, place and component. */
#ifndef RFX_TESTS_SUPPORT_RUN_SAMPLE_HASH_H
#define RFX_TESTS_SUPPORT_RUN_SAMPLE_HASH_H

#include <stdint.h>

static inline uint32_t sample_hash(uint32_t seed, uint32_t a, uint32_t b, uint32_t c) {
    uint32_t v = seed * 2654435761u + a * 2246822519u + b * 3266489917u + c * 668265263u;
    v ^= v >> 15;
    v *= 2246822519u;
    v ^= v >> 13;
    v *= 3266489917u;
    return v ^ (v >> 16);
}
#endif
