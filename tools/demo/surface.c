#include "tools/demo/surface.h"

#include <string.h>

#include "tools/demo/demo_support.h"

static float lattice_value(uint64_t seed, int64_t y, int64_t x) {
    return (float)(demo_hash(seed, y, x) >> 40) * (2.0f / 16777216.0f) - 1.0f;
}

static float smooth_step(float t) {
    return t * t * (3.0f - 2.0f * t);
}

/* Adds row y of one noise layer: both lattice rows are blended first, then the columns. */
static void add_layer_row(const struct surface_layer *layer, int64_t y, int64_t w, float *lum) {
    int64_t cell_y = y / layer->cell_h;
    float ty = smooth_step((float)(y % layer->cell_h) / (float)layer->cell_h);
    float step = 1.0f / (float)layer->cell_w;
    float left = 0.0f, right = 0.0f;
    for (int64_t x0 = 0, cell_x = 0; x0 < w; x0 += layer->cell_w, cell_x++) {
        for (int k = cell_x == 0 ? 0 : 1; k < 2; k++) {
            float a = lattice_value(layer->seed, cell_y, cell_x + k);
            float b = lattice_value(layer->seed, cell_y + 1, cell_x + k);
            left = right;
            right = layer->amp * (a + (b - a) * ty);
        }
        int64_t n = w - x0 < layer->cell_w ? w - x0 : layer->cell_w;
        for (int64_t i = 0; i < n; i++) {
            lum[x0 + i] += left + (right - left) * smooth_step((float)i * step);
        }
    }
}

static void set_layer(struct surface *s, int index, uint64_t seed, int cell_h, int cell_w,
                      float amp) {
    struct surface_layer layer = {cell_h, cell_w, amp, demo_mix(seed + (uint64_t)index + 1)};
    s->layers[index] = layer;
}

void demo_surface_init(struct surface *s, uint64_t seed, int64_t h, int64_t w) {
    struct demo_random r = {demo_mix(seed ^ UINT64_C(0x5f356495))};
    memset(s, 0, sizeof *s);
    s->h = h;
    s->w = w;
    s->base = demo_random_between(&r, 0.46f, 0.62f);
    s->slope_y = demo_random_between(&r, -0.10f, 0.10f);
    s->slope_x = demo_random_between(&r, -0.10f, 0.10f);
    s->grain = demo_random_between(&r, 0.008f, 0.022f);
    s->tint[0] = demo_random_between(&r, 0.94f, 1.04f);
    s->tint[1] = demo_random_between(&r, 0.96f, 1.02f);
    s->tint[2] = demo_random_between(&r, 0.97f, 1.07f);
    s->grain_seed = demo_random_next(&r);
    uint64_t noise = demo_random_next(&r);
    float brush = demo_random_between(&r, 0.6f, 1.25f);
    int direction = (int)(demo_random_next(&r) % 4); /* three in four are brushed along the rows */
    static const int cell[3][2] = {{2, 180}, {3, 70}, {9, 420}};
    static const float amp[3] = {0.034f, 0.022f, 0.026f};
    for (int i = 0; i < 3; i++) {
        int ch = cell[i][direction == 3], cw = cell[i][direction != 3];
        set_layer(s, i, noise, ch, cw, amp[i] * brush);
    }
    set_layer(s, 3, noise, 4, 4, 0.020f * (1.5f - brush)); /* cast grain, strong where brush weak */
    set_layer(s, 4, noise, 47, 53, 0.016f);                /* unevenness */
    set_layer(s, 5, noise, 900, 1100, demo_random_between(&r, 0.06f, 0.14f)); /* light */
}

void demo_surface_row(const struct surface *s, int64_t y, float *lum) {
    float start = s->base + s->slope_y * ((float)y / (float)s->h - 0.5f);
    float step = s->slope_x / (float)s->w;
    uint64_t row_seed = demo_mix(s->grain_seed + (uint64_t)y);
    for (int64_t x = 0; x < s->w; x++) {
        uint32_t bits = (uint32_t)x * UINT32_C(0x9e3779b1) ^ (uint32_t)row_seed;
        bits = (bits ^ (bits >> 15)) * UINT32_C(0x2c1b3c6d);
        bits = (bits ^ (bits >> 12)) * UINT32_C(0x297a2d39);
        bits ^= bits >> 15;
        float triangle = (float)((int)(bits & 0xffff) - (int)(bits >> 16)) * (1.0f / 65536.0f);
        lum[x] = start + step * ((float)x - 0.5f * (float)s->w) + s->grain * triangle;
    }
    for (int i = 0; i < SURFACE_LAYERS; i++)
        if (s->layers[i].amp > 0.0f) add_layer_row(&s->layers[i], y, s->w, lum);
}
