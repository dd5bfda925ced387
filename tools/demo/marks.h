/* The marks on a made surface: defects (scratch, pit, stain) and harmless marks (hairline, speck,
 * smudge) that a detector must ignore.
 *
 * Invariants: 1. defects are MARK_DISTANCE_PX apart from each other and lie inside the image; 2. a
 * mark is drawn row by row, inside its box only. */
#ifndef RFX_TOOLS_DEMO_MARKS_H
#define RFX_TOOLS_DEMO_MARKS_H

#include <stddef.h>
#include <stdint.h>

#define MARK_DISTANCE_PX 40
#define MARK_POINTS 13
#define MARK_WAVES 3

enum mark_kind {
    MARK_SCRATCH,
    MARK_PIT,
    MARK_STAIN,
    MARK_HAIRLINE, /* from here on: harmless */
    MARK_SPECK,
    MARK_SMUDGE,
    MARK_KIND_COUNT
};

struct mark_line {
    int points;
    float y[MARK_POINTS], x[MARK_POINTS];
    float half_width;
    float phase; /* of the pressure, which varies along the line */
};

struct mark_blob {
    float cy, cx;
    float ry, rx; /* radii before turning */
    float cosine, sine;
    float phase[MARK_WAVES], amp[MARK_WAVES]; /* waves of the outline */
};

struct mark {
    enum mark_kind kind;
    float contrast;             /* luminance at the strongest place; negative is dark */
    float size;                 /* length of a line, mean diameter of a blob, in pixels */
    int64_t y0, y1, x0, x1;     /* the true extent, half-open */
    int64_t ry0, ry1, rx0, rx1; /* the extent of drawing */
    struct mark_line line;
    struct mark_blob blob;
};

struct marks {
    struct mark *mark; /* sorted by ry0; owned */
    size_t count;
};

/* One row being made: luminance and stain strength (w values each) and the truth (0: sound,
 * 1 + kind: defect). */
struct mark_row {
    int64_t w;
    float *lum;
    float *stain;
    uint8_t *truth;
};

/* Makes the marks of h x w pixels from the seed. defects_per_mpx is the density of the defects;
 * `contrast` multiplies theirs (1: as the detector was trained). 0, or -1 when there is no memory.
 */
int demo_marks_create(struct marks *out, uint64_t seed, int64_t h, int64_t w,
                      double defects_per_mpx, float contrast);
void demo_marks_free(struct marks *marks);

/* Draws row y of the mark. */
void demo_mark_draw_row(const struct mark *mark, int64_t y, const struct mark_row *row);

/* "scratch", "pit", ... */
const char *demo_mark_name(enum mark_kind kind);
#endif
