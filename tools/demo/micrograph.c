#include "tools/demo/micrograph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/demo/demo_support.h"

#define MARGIN 2   /* cells of domains outside of the picture, on each side */
#define SPOT_PX 48 /* side of a cell of spots */

static void set_layer(struct surface *s, int index, uint64_t seed, int64_t cell, float amp) {
    struct surface_layer layer = {(int)cell, (int)cell, amp, demo_mix(seed + (uint64_t)index)};
    s->layers[index] = layer;
}

/* Noise alone: layers that are not set have amplitude 0 and are skipped. */
static void noise_only(struct surface *s, uint64_t seed, int64_t h, int64_t w) {
    memset(s, 0, sizeof *s);
    s->h = h;
    s->w = w;
    s->grain_seed = seed;
}

static void draw_properties(struct micrograph *m, struct demo_random *r) {
    int64_t d = m->domain_px;
    m->black = demo_random_between(r, 0.12f, 0.40f);
    m->gain = demo_random_between(r, 0.14f, 0.42f);
    noise_only(&m->noise, demo_random_next(r), m->h, m->w);
    m->noise.grain = 0.55f * m->gain;
    set_layer(&m->noise, 0, demo_random_next(r), 4, 0.12f * m->gain);
    set_layer(&m->noise, 1, demo_random_next(r), 8 * d, 0.05f * m->gain); /* the beam's drift */
    for (int axis = 0; axis < 2; axis++) {
        noise_only(&m->bend[axis], 0, m->h, m->w);
        set_layer(&m->bend[axis], 0, demo_random_next(r), d, 0.3f * (float)d);
        set_layer(&m->bend[axis], 1, demo_random_next(r), d / 4 + 1, 0.08f * (float)d);
        set_layer(&m->bend[axis], 2, demo_random_next(r), 11, 1.5f);
    }
}

/* A phase per cell so that each block of three by three has all of them, in no regular order. */
static void scatter_domains(struct micrograph *m, struct demo_random *r) {
    float d = (float)m->domain_px;
    for (int64_t i = 0; i < m->rows * m->columns; i++) {
        int64_t cy = i / m->columns, cx = i % m->columns;
        m->domains[i] = (struct micrograph_domain){
            .y = ((float)(cy - MARGIN) + demo_random_between(r, 0.1f, 0.9f)) * d,
            .x = ((float)(cx - MARGIN) + demo_random_between(r, 0.1f, 0.9f)) * d,
            .phase = (int)((uint64_t)(cy + cx) + demo_random_next(r) % 2) % PHASES};
    }
}

static void scatter_spots(struct micrograph *m, struct demo_random *r) {
    for (int64_t i = 0; i < m->spot_rows * m->spot_columns; i++) {
        float radius = demo_random_between(r, 4.0f, 14.0f);
        struct micrograph_spot spot = {.y = demo_random_between(r, radius, SPOT_PX - radius) +
                                            (float)(i / m->spot_columns * SPOT_PX),
                                       .x = demo_random_between(r, radius, SPOT_PX - radius) +
                                            (float)(i % m->spot_columns * SPOT_PX),
                                       .radius = demo_random_next(r) % 5 == 0 ? radius : 0.0f,
                                       .shift = 1 + (int)(demo_random_next(r) % (PHASES - 1))};
        m->spots[i] = spot;
    }
}

int demo_micrograph_create(struct micrograph *m, uint64_t seed, int64_t h, int64_t w,
                           int64_t domain_px) {
    struct demo_random r = {demo_mix(seed ^ UINT64_C(0x6d696372))};
    *m = (struct micrograph){.h = h, .w = w, .domain_px = domain_px};
    m->rows = (h - 1) / domain_px + 1 + 2 * MARGIN;
    m->columns = (w - 1) / domain_px + 1 + 2 * MARGIN;
    m->spot_rows = (h - 1) / SPOT_PX + 1;
    m->spot_columns = (w - 1) / SPOT_PX + 1;
    m->domains = calloc((size_t)(m->rows * m->columns), sizeof *m->domains);
    m->spots = calloc((size_t)(m->spot_rows * m->spot_columns), sizeof *m->spots);
    for (int i = 0; i < 3; i++) m->line[i] = calloc((size_t)w, sizeof *m->line[i]);
    if (!m->domains || !m->spots || !m->line[0] || !m->line[1] || !m->line[2]) {
        demo_micrograph_free(m);
        return -1;
    }
    draw_properties(m, &r);
    scatter_domains(m, &r);
    scatter_spots(m, &r);
    return 0;
}

void demo_micrograph_free(struct micrograph *m) {
    for (int i = 0; i < 3; i++) free(m->line[i]);
    free(m->spots);
    free(m->domains);
    memset(m, 0, sizeof *m);
}

static int64_t clamp(int64_t v, int64_t most) {
    return v < 0 ? 0 : v > most ? most : v;
}

/* The phase of the nearest centre among the cells around a place. */
static int domain_phase(const struct micrograph *m, float y, float x) {
    float d = (float)m->domain_px, least = INFINITY;
    int64_t cy = clamp((int64_t)floorf(y / d) + MARGIN, m->rows - 1);
    int64_t cx = clamp((int64_t)floorf(x / d) + MARGIN, m->columns - 1);
    int64_t y1 = clamp(cy + 1, m->rows - 1), x1 = clamp(cx + 1, m->columns - 1);
    int phase = 0;
    for (int64_t i = clamp(cy - 1, cy); i <= y1; i++) {
        for (int64_t k = clamp(cx - 1, cx); k <= x1; k++) {
            const struct micrograph_domain *c = &m->domains[i * m->columns + k];
            float far = (c->y - y) * (c->y - y) + (c->x - x) * (c->x - x);
            if (far >= least) continue;
            least = far;
            phase = c->phase;
        }
    }
    return phase;
}

static int spot_shift(const struct micrograph *m, int64_t y, int64_t x) {
    const struct micrograph_spot *s = &m->spots[y / SPOT_PX * m->spot_columns + x / SPOT_PX];
    float dy = (float)y - s->y, dx = (float)x - s->x;
    return dy * dy + dx * dx < s->radius * s->radius ? s->shift : 0;
}

static uint8_t to_byte(float v) {
    float scaled = v * 255.0f + 0.5f;
    return scaled <= 0.0f ? 0 : scaled >= 255.0f ? 255 : (uint8_t)scaled;
}

void demo_micrograph_row(struct micrograph *m, int64_t y, uint8_t *grey, uint8_t *phase) {
    demo_surface_row(&m->noise, y, m->line[0]);
    for (int axis = 0; axis < 2; axis++) demo_surface_row(&m->bend[axis], y, m->line[1 + axis]);
    for (int64_t x = 0; x < m->w; x++) {
        int domain = domain_phase(m, (float)y + m->line[1][x], (float)x + m->line[2][x]);
        int own = (domain + spot_shift(m, y, x)) % PHASES;
        float level = m->black + m->gain * (float)own / (float)(PHASES - 1);
        phase[x] = (uint8_t)own;
        grey[x] = to_byte(level + m->line[0][x]);
    }
}
