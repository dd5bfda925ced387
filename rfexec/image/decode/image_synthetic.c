/* "synthetic:HxW[:seed]": a procedural RGB picture of 8-bit samples, computed when it is read.
 *
 * It is the sum of four octaves of value noise (cells of 512, 128, 32, 8 pixels), plates with sharp
 * slanted edges and a fine grain. All arithmetic is in integers, so the value at (y, x, channel)
 * depends only on the seed and the place, on every machine. It is computed in chunks of one row;
 * nothing is stored.
 *
 * A network whose number of channels is neither 1 nor 3 gets floats, (sample - 127.5) / 64, from as
 * many pictures as it has channels, with consecutive seeds. */
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_backend.h"

#define MAX_SIDE 1000000
#define LEAN 100000 /* offset of one texture's lines; keeps them above 0 on small pictures */
#define CHUNK 256
#define OCTAVES 4
#define CHANNELS 3
#define MAX_CHANNELS 65536

struct synthetic_source {
    struct rfx_image_backend base;
    uint64_t seed;
};

/* A chunk while it is computed. */
struct chunk {
    uint64_t seed;
    int32_t sums[CHUNK * CHANNELS];
    unsigned char samples[CHUNK * CHANNELS];
};
_Static_assert(sizeof(struct chunk) <= RFX_IMAGE_ROOM_BYTES, "a chunk has room");

static const int octave_shift[OCTAVES] = {9, 7, 5, 3};           /* log2 of the cell */
static const int32_t octave_weight[OCTAVES] = {104, 64, 36, 20}; /* of 256 grey levels */

/* Returns 16 random bits for each of three channels: splitmix64's finaliser applied to the place.
 */
static uint64_t mix(uint64_t seed, uint64_t kind, uint64_t gy, uint64_t gx) {
    uint64_t z =
        seed + kind * 0x9e3779b97f4a7c15u + gy * 0xd1b54a32d192ed03u + gx * 0x8cb92ba72f3d8dd7u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns the fraction t / cell in units of 1/256, after the smooth step 3 t^2 - 2 t^3. */
static int32_t smooth(int64_t t, int shift) {
    int32_t f = (int32_t)((t << 8) >> shift);
    return (f * f * (768 - 2 * f)) >> 16;
}

/* Computes the three channels of the noise at lattice column gx, interpolated between two lattice
 * rows. */
static void lattice(uint64_t seed, int octave, int64_t gy, int64_t gx, int32_t fy,
                    int32_t out[CHANNELS]) {
    uint64_t a = mix(seed, (uint64_t)octave, (uint64_t)gy, (uint64_t)gx);
    uint64_t b = mix(seed, (uint64_t)octave, (uint64_t)gy + 1, (uint64_t)gx);
    int32_t common_a = (int32_t)(a >> 48 & 0xff), common_b = (int32_t)(b >> 48 & 0xff);
    for (int c = 0; c < CHANNELS; c++) {
        int32_t va = (3 * common_a + (int32_t)(a >> (16 * c) & 0xff)) / 4; /* mostly grey */
        int32_t vb = (3 * common_b + (int32_t)(b >> (16 * c) & 0xff)) / 4;
        out[c] = va * 256 + (vb - va) * fy; /* 0 .. 255 * 256 */
    }
}

static void add_octave(struct chunk *s, int octave, int64_t y, int64_t x0, int64_t x1) {
    int shift = octave_shift[octave];
    int64_t cell = (int64_t)1 << shift;
    int32_t fy = smooth(y & (cell - 1), shift);
    int32_t left[CHANNELS], right[CHANNELS];
    for (int64_t x = x0; x < x1;) {
        int64_t gx = x >> shift, stop = rfx_min_i64((gx + 1) << shift, x1);
        lattice(s->seed, octave, y >> shift, gx, fy, left);
        lattice(s->seed, octave, y >> shift, gx + 1, fy, right);
        for (; x < stop; x++) {
            int32_t fx = smooth(x & (cell - 1), shift);
            int32_t *sum = s->sums + (x - x0) * CHANNELS;
            for (int c = 0; c < CHANNELS; c++) {
                int32_t v = (left[c] * 256 + (right[c] - left[c]) * fx) >> 8; /* < 2^16 */
                sum[c] += v * octave_weight[octave];                          /* < 2^23 */
            }
        }
    }
}

/* Adds the plates: parallelograms of one tone each. Their edges are two families of slanted lines.
 */
static void add_plates(struct chunk *s, int64_t y, int64_t x0, int64_t x1) {
    uint32_t last_u = UINT32_MAX, last_v = UINT32_MAX;
    int32_t tone[CHANNELS] = {0, 0, 0};
    for (int64_t x = x0; x < x1; x++) {
        uint32_t u = (uint32_t)(3 * x + y) / 421;
        uint32_t v = (uint32_t)(3 * y - x + LEAN) / 613;
        if (u != last_u || v != last_v) {
            uint64_t bits = mix(s->seed, OCTAVES, v, u);
            int32_t shared = (int32_t)(bits >> 48 & 63) - 32;
            for (int c = 0; c < CHANNELS; c++)
                tone[c] = shared + (int32_t)(bits >> (16 * c) & 15) - 8;
            last_u = u;
            last_v = v;
        }
        for (int c = 0; c < CHANNELS; c++) s->sums[(x - x0) * CHANNELS + c] += tone[c] * 65536;
    }
}

static void finish(struct chunk *s, int64_t y, int64_t x0, int64_t x1) {
    for (int64_t x = x0; x < x1; x++) {
        uint64_t grain = mix(s->seed, OCTAVES + 1, (uint64_t)y, (uint64_t)x);
        for (int c = 0; c < CHANNELS; c++) {
            int64_t i = (x - x0) * CHANNELS + c;
            int32_t v = (s->sums[i] >> 16) + 16 + (int32_t)(grain >> (8 * c) & 15) - 8;
            s->samples[i] = (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    }
}

static void make_chunk(struct chunk *s, int64_t y, int64_t x0, int64_t x1) {
    memset(s->sums, 0, sizeof s->sums);
    for (int octave = 0; octave < OCTAVES; octave++) add_octave(s, octave, y, x0, x1);
    add_plates(s, y, x0, x1);
    finish(s, y, x0, x1);
}

static enum rfx_status synthetic_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0,
                                       int64_t x1, void *room, const void **samples, int64_t *end,
                                       struct rfx_error *err) {
    (void)err;
    struct chunk *s = room;
    s->seed = ((const struct synthetic_source *)(const void *)b)->seed;
    x1 = rfx_min_i64(x1, x0 + CHUNK);
    make_chunk(s, y, x0, x1);
    *samples = s->samples;
    *end = x1;
    return RFX_OK;
}

static enum rfx_status synthetic_read(struct rfx_image_backend *b, struct rfx_rect rect,
                                      const struct rfx_view *out, struct rfx_error *err) {
    struct chunk s;
    (void)err;
    for (int64_t y = rect.y0; y < rect.y1; y++) {
        for (int64_t x0 = rect.x0, x1; x0 < rect.x1; x0 = x1) {
            x1 = rfx_min_i64(rect.x1, x0 + CHUNK);
            for (int64_t c0 = 0; c0 < b->c; c0 += CHANNELS) {
                int64_t n = rfx_min_i64(CHANNELS, b->c - c0);
                s.seed = ((const struct synthetic_source *)(const void *)b)->seed +
                         (uint64_t)(c0 / CHANNELS);
                make_chunk(&s, y, x0, x1);
                for (int64_t x = x0; x < x1; x++)
                    for (int64_t c = 0; c < n; c++)
                        rfx_view_f32_at(out, y, x)[c0 + c] =
                            ((float)s.samples[(x - x0) * CHANNELS + c] - 127.5f) / 64.0f;
            }
        }
    }
    return RFX_OK;
}

static void synthetic_free(struct rfx_image_backend *b) {
    rfx_memory_release(b->mem, b);
}

static const struct rfx_image_backend_ops synthetic_ops = {.fetch = synthetic_fetch,
                                                           .free = synthetic_free};
static const struct rfx_image_backend_ops float_ops = {.read_floats = synthetic_read,
                                                       .free = synthetic_free};

/* Reads a decimal number of at most `limit`. Returns false if there is no digit or the number is
 * larger than `limit`. */
static bool parse_number(const char **text, uint64_t limit, uint64_t *out) {
    const char *p = *text;
    uint64_t value = 0;
    if (*p < '0' || *p > '9') return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (value > (limit - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *text = p;
    *out = value;
    return true;
}

static bool parse_spec(const char *spec, uint64_t *h, uint64_t *w, uint64_t *seed) {
    const char *p = spec + strlen(RFX_IMAGE_SYNTHETIC_PREFIX);
    *seed = 0;
    if (!parse_number(&p, MAX_SIDE, h) || *p++ != 'x' || !parse_number(&p, MAX_SIDE, w))
        return false;
    if (*p == ':') {
        p++;
        if (!parse_number(&p, UINT64_MAX, seed)) return false;
    }
    return *p == '\0' && *h > 0 && *w > 0;
}

enum rfx_status rfx_image_synthetic_open(struct rfx_memory *mem, const char *name,
                                         const struct rfx_image_options *options,
                                         struct rfx_image_backend **out, struct rfx_error *err) {
    uint64_t h, w, seed;
    const int64_t channels = options->channels; /* channels of the network */
    bool floats = channels > 1 && channels <= MAX_CHANNELS && channels != CHANNELS;
    if (!parse_spec(name, &h, &w, &seed))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: not of the form synthetic:HxW or synthetic:HxW:seed with 1 to %d rows "
                        "and columns",
                        name, MAX_SIDE);
    struct synthetic_source *s = rfx_memory_calloc(mem, 1, sizeof *s);
    if (s == NULL) return rfx_memory_fail(mem, name, sizeof *s, err);
    s->base = (struct rfx_image_backend){.ops = floats ? &float_ops : &synthetic_ops,
                                         .mem = mem,
                                         .name = name,
                                         .kind = "synthetic",
                                         .h = (int64_t)h,
                                         .w = (int64_t)w,
                                         .c = floats ? channels : CHANNELS,
                                         .sample_bits = floats ? 32 : 8,
                                         .random_access = true,
                                         .concurrent = true,
                                         .fixed_bytes = sizeof *s};
    s->seed = mix(seed, 77, 1, 1);
    *out = &s->base;
    return RFX_OK;
}
