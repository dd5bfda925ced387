/* Placing and drawing marks; see marks.h. */
#include "tools/demo/marks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/demo/demo_support.h"

#define PLACING_TRIES 60
#define TAU 6.2831853f

static const char *const mark_names[] = {"scratch", "pit", "stain", "hairline", "speck", "smudge"};
_Static_assert(sizeof mark_names / sizeof mark_names[0] == MARK_KIND_COUNT, "a name per kind");

const char *demo_mark_name(enum mark_kind kind) {
    return mark_names[kind];
}

static void set_extent(struct mark *m, float y0, float y1, float x0, float x1, float draw) {
    m->y0 = (int64_t)floorf(y0);
    m->y1 = (int64_t)ceilf(y1) + 1;
    m->x0 = (int64_t)floorf(x0);
    m->x1 = (int64_t)ceilf(x1) + 1;
    int64_t more = (int64_t)ceilf(draw);
    m->ry0 = m->y0 - more;
    m->ry1 = m->y1 + more;
    m->rx0 = m->x0 - more;
    m->rx1 = m->x1 + more;
}

/* A line bent as a quadratic Bezier curve, its middle at (cy, cx). */
static void make_line(struct mark *m, struct demo_random *r, float cy, float cx, float length,
                      float half_width, float bend) {
    struct mark_line *line = &m->line;
    float angle = demo_random_between(r, 0.0f, TAU);
    float dy = sinf(angle), dx = cosf(angle);
    float off = demo_random_between(r, -bend, bend) * length;
    line->points = MARK_POINTS;
    line->half_width = half_width;
    line->phase = demo_random_between(r, 0.0f, TAU);
    float y0 = cy, y1 = cy, x0 = cx, x1 = cx;
    for (int i = 0; i < MARK_POINTS; i++) {
        float t = (float)i / (float)(MARK_POINTS - 1);
        float along = (t - 0.5f) * length, aside = 2.0f * t * (1.0f - t) * off - 0.25f * off;
        line->y[i] = cy + dy * along + dx * aside;
        line->x[i] = cx + dx * along - dy * aside;
        y0 = fminf(y0, line->y[i]);
        y1 = fmaxf(y1, line->y[i]);
        x0 = fminf(x0, line->x[i]);
        x1 = fmaxf(x1, line->x[i]);
    }
    m->size = length;
    set_extent(m, y0 - half_width, y1 + half_width, x0 - half_width, x1 + half_width,
               half_width + 3.0f);
}

static void make_blob(struct mark *m, struct demo_random *r, float cy, float cx, float radius,
                      float ragged, float draw) {
    struct mark_blob *b = &m->blob;
    float angle = demo_random_between(r, 0.0f, TAU);
    float stretch = demo_random_between(r, 0.8f, 1.25f);
    b->cy = cy;
    b->cx = cx;
    b->ry = radius * stretch;
    b->rx = radius / stretch;
    b->cosine = cosf(angle);
    b->sine = sinf(angle);
    float reach = 0.0f;
    for (int i = 0; i < MARK_WAVES; i++) {
        b->phase[i] = demo_random_between(r, 0.0f, TAU);
        b->amp[i] = demo_random_between(r, 0.3f, 1.0f) * ragged / (float)(i + 1);
    }
    for (int i = 0; i < 64; i++) {
        float t = TAU * (float)i / 64.0f, scale = 1.0f;
        for (int k = 0; k < MARK_WAVES; k++)
            scale += b->amp[k] * sinf((float)(k + 2) * t + b->phase[k]);
        float along = scale * hypotf(b->ry * sinf(t), b->rx * cosf(t));
        reach = fmaxf(reach, along);
    }
    m->size = 2.0f * radius;
    set_extent(m, cy - reach, cy + reach, cx - reach, cx + reach, draw);
}

/* Sizes and strengths of each kind. */
static void make_mark(struct mark *m, enum mark_kind kind, struct demo_random *r, int64_t h,
                      int64_t w) {
    float cy = demo_random_between(r, 0.0f, (float)h), cx = demo_random_between(r, 0.0f, (float)w);
    float sign = demo_random_between(r, 0.0f, 1.0f) < 0.7f ? -1.0f : 1.0f;
    memset(m, 0, sizeof *m);
    m->kind = kind;
    switch (kind) {
        case MARK_SCRATCH:
            m->contrast = sign * demo_random_between(r, 0.11f, 0.32f);
            make_line(m, r, cy, cx, demo_random_between(r, 48.0f, 220.0f),
                      demo_random_between(r, 1.1f, 2.6f), 0.35f);
            break;
        case MARK_PIT:
            m->contrast = -demo_random_between(r, 0.13f, 0.38f);
            make_blob(m, r, cy, cx, demo_random_between(r, 4.0f, 11.0f), 0.16f, 3.0f);
            break;
        case MARK_STAIN:
            m->contrast = -demo_random_between(r, 0.09f, 0.38f);
            make_blob(m, r, cy, cx, demo_random_between(r, 18.0f, 60.0f), 0.20f, 10.0f);
            break;
        case MARK_HAIRLINE:
            m->contrast = sign * demo_random_between(r, 0.03f, 0.065f);
            make_line(m, r, cy, cx, demo_random_between(r, 60.0f, 420.0f), 0.7f, 0.15f);
            break;
        case MARK_SPECK:
            m->contrast = sign * demo_random_between(r, 0.10f, 0.35f);
            make_blob(m, r, cy, cx, demo_random_between(r, 0.7f, 1.7f), 0.1f, 1.0f);
            break;
        case MARK_SMUDGE:
            m->contrast = -demo_random_between(r, 0.02f, 0.05f);
            make_blob(m, r, cy, cx, demo_random_between(r, 25.0f, 90.0f), 0.25f, 20.0f);
            break;
        case MARK_KIND_COUNT:
            break;
    }
}

static int too_close(const struct mark *a, const struct mark *b) {
    int64_t d = MARK_DISTANCE_PX;
    return a->y0 < b->y1 + d && b->y0 < a->y1 + d && a->x0 < b->x1 + d && b->x0 < a->x1 + d;
}

/* Whether a defect may stay: inside the image and away from the `count` defects before it. */
static int fits(const struct mark *m, const struct mark *others, size_t count, int64_t h,
                int64_t w) {
    if (m->y0 < 0 || m->x0 < 0 || m->y1 > h || m->x1 > w) return 0;
    for (size_t i = 0; i < count; i++) {
        if (too_close(m, &others[i])) return 0;
    }
    return 1;
}

static int compare_marks(const void *a, const void *b) {
    const struct mark *p = a, *q = b;
    if (p->ry0 != q->ry0) return p->ry0 < q->ry0 ? -1 : 1;
    return p->rx0 < q->rx0 ? -1 : p->rx0 > q->rx0;
}

static enum mark_kind draw_defect_kind(struct demo_random *r) {
    float u = demo_random_between(r, 0.0f, 1.0f);
    if (u < 0.40f) return MARK_SCRATCH;
    return u < 0.72f ? MARK_PIT : MARK_STAIN;
}

int demo_marks_create(struct marks *out, uint64_t seed, int64_t h, int64_t w,
                      double defects_per_mpx, float contrast) {
    struct demo_random r = {demo_mix(seed ^ UINT64_C(0x6d61726b))};
    double mpx = (double)h * (double)w * 1e-6;
    size_t wanted = (size_t)(mpx * defects_per_mpx + 0.5);
    const size_t harmless[] = {(size_t)(mpx * 16.0), (size_t)(mpx * 70.0), (size_t)(mpx * 4.0)};
    size_t capacity = wanted + harmless[0] + harmless[1] + harmless[2];
    struct mark *mark = calloc(capacity ? capacity : 1, sizeof *mark);
    if (!mark) return -1;
    size_t count = 0;
    for (size_t i = 0; i < wanted; i++) {
        for (int tries = 0; tries < PLACING_TRIES; tries++) {
            make_mark(&mark[count], draw_defect_kind(&r), &r, h, w);
            mark[count].contrast *= contrast;
            if (fits(&mark[count], mark, count, h, w)) {
                count++;
                break;
            }
        }
    }
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < harmless[k]; i++) {
            make_mark(&mark[count++], (enum mark_kind)(MARK_HAIRLINE + k), &r, h, w);
        }
    }
    qsort(mark, count, sizeof *mark, compare_marks);
    out->mark = mark;
    out->count = count;
    return 0;
}

void demo_marks_free(struct marks *marks) {
    free(marks->mark);
    marks->mark = NULL;
    marks->count = 0;
}

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

/* The point of a line nearest to a pixel: distance, side (by sign) and place along the line in [0,
 * 1]. */
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

/* The columns that a line can touch in row y, half-open; empty where there are none. */
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
