/* Placing marks: how many, where, how large. Drawing is in draw_marks.c. */
#include "marks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "demo_random.h"

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

/* The sizes and strengths of each kind: what is a defect and what is harmless. */
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

/* Whether a defect may stay: inside the picture and away from the `count` defects before it. */
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
