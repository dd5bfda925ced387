/* The hash that the packer's searches share. */
#ifndef RFX_TILER_PACKER_PACKER_HASH_H
#define RFX_TILER_PACKER_PACKER_HASH_H

#include <stdint.h>

/* A well mixed function of its argument: splitmix64 (Steele, Lea and Flood 2014), whose constants
 * these are. Shuffled orders and the states that are held for equal hang on it. */
static inline uint64_t rfx_packer_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}
#endif
