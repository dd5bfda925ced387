/* What the demo programs share: their options, PNG files row by row, and random numbers.
 *
 * Functions return 0, or -1 on failure. Those that use files print the reason to stderr. */
#ifndef RFX_TOOLS_DEMO_DEMO_SUPPORT_H
#define RFX_TOOLS_DEMO_DEMO_SUPPORT_H

#include <stdint.h>

/* The type of an option's value, and what `at` points to. */
enum demo_kind {
    DEMO_TEXT,  /* const char *, borrowed from argv */
    DEMO_WHOLE, /* int64_t */
    DEMO_SEED,  /* uint64_t */
    DEMO_REAL,  /* double */
};

struct demo_option {
    const char *name; /* "--seed" */
    enum demo_kind kind;
    void *at;
};

/* Reads argv[0 .. argc): names of the options, each followed by its value. */
int demo_read_options(int argc, char **argv, const struct demo_option *options, int n);

/* Parses "HxW", rows and columns of an image, up to 1,000,000 each. */
int demo_read_size(const char *text, int64_t *h, int64_t *w);

/* A PNG file with 8 bits per sample, read or written row by row. */
struct png_rows;

/* Creates `path` for h x w pixels of `channels` samples (1: grey, 3: RGB). NULL on failure. */
struct png_rows *demo_png_create(const char *path, int64_t h, int64_t w, int channels);

/* Opens `path`; rows are delivered as RGB whatever the file holds. NULL on failure. */
struct png_rows *demo_png_open(const char *path, int64_t *h, int64_t *w);

int demo_png_write_row(struct png_rows *png, const uint8_t *row);
int demo_png_read_row(struct png_rows *png, uint8_t *row);

/* Frees. A created file gets its name if every row was written. NULL is fine. */
int demo_png_close(struct png_rows *png);

/* Random numbers for the made images. A value depends on its coordinates and the seed alone, so
 * that a row can be made without the rows before it. */

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
