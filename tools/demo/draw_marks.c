/* Drawing marks row by row: profiles of lines and blobs, and what of them is the true defect. */
#include <math.h>

#include "demo_random.h"
#include "marks.h"

static float clamp01(float v) {
    return v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
}

/* 1 for u <= lo, 0 for u >= hi, smooth between. */
static float fall(float u, float lo, float hi) {
    float t = clamp01((u - lo) / (hi - lo));
    return 1.0f - t * t * (3.0f - 2.0f * t);
}

static int64_t max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Nearest place of a line to a pixel: distance, side (its sign) and place along it in [0, 1]. */
struct line_place {
    float distance, side, along;
};

static struct line_place nearest_place(const struct mark_line *line, float y, float x) {
    struct line_place best = {1e9f, 0.0f, 0.0f};
    for (int i = 0; i + 1 < line->points; i++) {
        float ey = line->y[i + 1] - line->y[i], ex = line->x[i + 1] - line->x[i];
        float py = y - line->y[i], px = x - line->x[i];
        float t = clamp01((py * ey + px * ex) / (ey * ey + ex * ex + 1e-9f));
        float d = hypotf(py - t * ey, px - t * ex);
        if (d < best.distance) {
            best.distance = d;
            best.side = ey * px - ex * py;
            best.along = ((float)i + t) / (float)(line->points - 1);
        }
    }
    return best;
}

/* The columns that a line can touch in row y, half-open; empty when it passes elsewhere. */
static void line_columns(const struct mark_line *line, float y, float reach, int64_t *x0,
                         int64_t *x1) {
    float lo = 1e9f, hi = -1e9f;
    for (int i = 0; i + 1 < line->points; i++) {
        float ya = line->y[i], yb = line->y[i + 1], xa = line->x[i], xb = line->x[i + 1];
        if (fminf(ya, yb) > y + reach || fmaxf(ya, yb) < y - reach) continue;
        float slope = fabsf(yb - ya) > 1e-3f ? (xb - xa) / (yb - ya) : 0.0f;
        float pa = xa, pb = xb;
        if (slope != 0.0f) {
            float ca = fminf(fmaxf(y - reach, fminf(ya, yb)), fmaxf(ya, yb));
            float cb = fminf(fmaxf(y + reach, fminf(ya, yb)), fmaxf(ya, yb));
            pa = xa + (ca - ya) * slope;
            pb = xa + (cb - ya) * slope;
        }
        lo = fminf(lo, fminf(pa, pb));
        hi = fmaxf(hi, fmaxf(pa, pb));
    }
    *x0 = lo > hi ? 0 : (int64_t)floorf(lo - reach);
    *x1 = lo > hi ? 0 : (int64_t)ceilf(hi + reach) + 1;
}

/* Scratch: a groove with a raised edge; hairline: a faint line without one. */
static void draw_line_row(const struct mark *m, int64_t y, const struct mark_row *row) {
    const struct mark_line *line = &m->line;
    float half = line->half_width;
    int64_t x0, x1;
    line_columns(line, (float)y, half + 3.0f, &x0, &x1);
    x0 = max_i64(x0, 0);
    x1 = min_i64(x1, row->w);
    for (int64_t x = x0; x < x1; x++) {
        struct line_place p = nearest_place(line, (float)y, (float)x);
        if (p.distance > half + 2.5f) continue;
        float ends = clamp01(fminf(p.along, 1.0f - p.along) * m->size / 8.0f);
        float pressure = 0.85f + 0.15f * sinf(line->phase + 19.0f * p.along);
        float groove = fall(p.distance, half - 0.6f, half + 0.8f);
        float value = m->contrast * ends * pressure * groove;
        if (m->kind == MARK_SCRATCH && p.side > 0.0f) {
            float edge = 1.0f - fabsf(p.distance - half - 0.8f) / 1.2f;
            value -= 0.45f * m->contrast * ends * clamp01(edge);
        }
        row->lum[x] += value;
        if (m->kind == MARK_SCRATCH && p.distance <= half + 0.5f) row->truth[x] = 1 + MARK_SCRATCH;
    }
}

/* Distance of a pixel from a blob's middle as a share of its ragged outline there. */
static float blob_place(const struct mark_blob *b, float dy, float dx) {
    float v = b->cosine * dy + b->sine * dx, u = b->cosine * dx - b->sine * dy;
    float angle = atan2f(v / b->ry, u / b->rx), scale = 1.0f;
    for (int k = 0; k < MARK_WAVES; k++) {
        scale += b->amp[k] * sinf((float)(k + 2) * angle + b->phase[k]);
    }
    return hypotf(v / b->ry, u / b->rx) / scale;
}

/* What one pixel of a blob adds to luminance and stain. */
static void blob_pixel(const struct mark *m, float u, float dy, float dx, float *lum,
                       float *stain) {
    float radius = 0.5f * m->size;
    float c = m->contrast;
    switch (m->kind) {
        case MARK_PIT: {
            /* light from the upper left: the near wall lies in shadow, the far rim shines */
            float shade = (dy + dx) / (1.42f * radius);
            float rim = clamp01(1.0f - fabsf(u - 1.0f) * radius / 2.0f);
            *lum += c * fall(u, 0.55f, 1.1f) - 0.55f * c * rim * shade;
            break;
        }
        case MARK_STAIN: {
            float soft = 4.0f / radius;
            float ring = clamp01(1.0f - fabsf(u - 0.9f) * radius / 4.0f);
            *stain += -c * (0.75f * fall(u, 1.0f - soft, 1.0f + soft) + 0.35f * ring);
            break;
        }
        case MARK_SMUDGE:
            *lum += c * fall(u, 0.4f, 1.2f);
            break;
        case MARK_SPECK:
            *lum += c * fall(u, 0.6f, 1.5f);
            break;
        case MARK_SCRATCH:
        case MARK_HAIRLINE:
        case MARK_KIND_COUNT:
            break;
    }
}

static void draw_blob_row(const struct mark *m, int64_t y, const struct mark_row *row) {
    int64_t x0 = max_i64(m->rx0, 0), x1 = min_i64(m->rx1, row->w);
    float dy = (float)y - m->blob.cy;
    for (int64_t x = x0; x < x1; x++) {
        float dx = (float)x - m->blob.cx;
        float u = blob_place(&m->blob, dy, dx);
        blob_pixel(m, u, dy, dx, &row->lum[x], &row->stain[x]);
        if (m->kind <= MARK_STAIN && u <= 1.0f) row->truth[x] = (uint8_t)(1 + m->kind);
    }
}

void demo_mark_draw_row(const struct mark *mark, int64_t y, const struct mark_row *row) {
    if (y < mark->ry0 || y >= mark->ry1) return;
    if (mark->kind == MARK_SCRATCH || mark->kind == MARK_HAIRLINE) {
        draw_line_row(mark, y, row);
    } else {
        draw_blob_row(mark, y, row);
    }
}
