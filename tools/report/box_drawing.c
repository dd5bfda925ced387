/* Boxes over an image, row by row; see box_drawing.h. */
#include "tools/report/box_drawing.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/heap_sort.h"
#include "layers/core/rect.h"
#include "rfexec/answers/boxes.h"
#include "rfexec/answers/oriented_boxes.h"
#include "rfexec/output/name_list.h"
#include "tools/report/bitmap_font.h"
#include "tools/report/outline_drawing.h"
#include "tools/report/overlay_drawing.h"

enum {
    MOST_LETTERS = 40, /* of a name; longer names are cut */
    TEXT = MOST_LETTERS + 64,
    BAR_HEIGHT = RFX_FONT_HEIGHT + 2, /* of a label, in pixels of the font */
    SMALL_SIDE = 640,                 /* smaller images have letters of 7 pixels */
    WORD = 64
};

struct rfx_box_drawing {
    struct rfx_memory *mem;
    struct rfx_box_canvas canvas;
    int64_t most, line, letter; /* letter: pixels for a pixel of the font */
    struct rfx_found found;     /* the boxes */
    int64_t n, next;            /* boxes that are drawn; the first of `order` that is still below */
    uint32_t *order;            /* [n] indexes of boxes by their first rows, labels included */
    uint64_t *crossing;         /* a bit for each box: rows of it may come */
    int64_t n_words;
};

/* Where a box is drawn. */
struct place {
    struct rfx_rect box; /* empty: it is not drawn */
    int64_t bar_y0;      /* first row of the label */
    int64_t end;         /* the row behind the last one of box and label */
};

int64_t rfx_overlay_line(int64_t rows, int64_t cols) {
    int64_t side = rfx_max_i64(rows, cols);
    return side <= 1000 ? 1 : rfx_max_i64(2, (side + 500) / 1000);
}

static int64_t words_of(int64_t most) {
    return (most + WORD - 1) / WORD;
}

size_t rfx_box_drawing_bytes(int64_t most) {
    return sizeof(struct rfx_box_drawing) + (size_t)most * sizeof(uint32_t) +
           (size_t)words_of(most) * sizeof(uint64_t);
}

enum rfx_status rfx_box_drawing_create(struct rfx_memory *mem, int64_t most,
                                       const struct rfx_box_canvas *canvas,
                                       struct rfx_box_drawing **out, struct rfx_error *err) {
    struct rfx_box_drawing *d = rfx_memory_calloc(mem, 1, sizeof *d);
    if (d == NULL) return rfx_memory_fail(mem, "drawing of boxes", sizeof *d, err);
    d->mem = mem;
    d->canvas = *canvas;
    d->most = most;
    d->line = rfx_overlay_line(canvas->rows, canvas->cols);
    d->letter = rfx_max_i64(d->line, rfx_max_i64(canvas->rows, canvas->cols) < SMALL_SIDE ? 1 : 2);
    d->n_words = words_of(most);
    d->order = rfx_memory_alloc(mem, (size_t)most * sizeof *d->order);
    d->crossing = rfx_memory_alloc(mem, (size_t)d->n_words * sizeof *d->crossing);
    if (d->order == NULL || d->crossing == NULL) {
        rfx_box_drawing_free(d);
        return rfx_memory_fail(mem, "drawing of boxes", rfx_box_drawing_bytes(most), err);
    }
    *out = d;
    return RFX_OK;
}

void rfx_box_drawing_free(struct rfx_box_drawing *drawing) {
    if (drawing == NULL) return;
    rfx_memory_release(drawing->mem, drawing->order);
    rfx_memory_release(drawing->mem, drawing->crossing);
    rfx_memory_release(drawing->mem, drawing);
}

/* Returns the edge between drawn pixels that is nearest to a corner's coordinate, at most one pixel
 * outside of [0, drawn]. */
static int64_t edge_of(float corner, int64_t image, int64_t drawn) {
    double at = floor((double)corner * ((double)drawn / (double)image) + 0.5);
    return (int64_t)fmin(fmax(at, -1.0), (double)drawn + 1.0);
}

/* Returns a box; of one with an angle the upright rectangle around it. */
static struct rfx_box box_at(const struct rfx_box_drawing *d, int64_t i) {
    if (d->found.oriented == NULL) return d->found.boxes[i];
    const struct rfx_oriented_box *from = &d->found.oriented[i];
    struct rfx_box box = {.score = from->score, .label = from->label};
    float corner[4][2];
    rfx_oriented_corners(from, corner);
    for (int axis = 0; axis < 2; ++axis) {
        float lo = corner[0][axis], hi = lo;
        for (int k = 0; k < 4; ++k) {
            if (!(corner[k][axis] >= lo)) lo = corner[k][axis]; /* NaN stays */
            if (!(corner[k][axis] <= hi)) hi = corner[k][axis];
        }
        box.corner[axis] = lo;
        box.corner[2 + axis] = hi;
    }
    return box;
}

static struct place place_of(const struct rfx_box_drawing *d, const struct rfx_box *box) {
    const struct rfx_box_canvas *c = &d->canvas;
    struct place place = {.box = rfx_rect_make(0, 0, 0, 0)};
    for (int i = 0; i < 4; ++i)
        if (isnan(box->corner[i])) return place;
    int64_t x0 = edge_of(box->corner[0], c->image_w, c->cols);
    int64_t y0 = edge_of(box->corner[1], c->image_h, c->rows);
    int64_t x1 = rfx_max_i64(edge_of(box->corner[2], c->image_w, c->cols), x0 + 1);
    int64_t y1 = rfx_max_i64(edge_of(box->corner[3], c->image_h, c->rows), y0 + 1);
    place.box = rfx_rect_make(rfx_max_i64(y0, 0), rfx_min_i64(y1, c->rows), rfx_max_i64(x0, 0),
                              rfx_min_i64(x1, c->cols));
    int64_t height = BAR_HEIGHT * d->letter;
    place.bar_y0 = place.box.y0 >= height ? place.box.y0 - height : place.box.y0;
    place.end = c->labelled ? rfx_max_i64(place.box.y1, place.bar_y0 + height) : place.box.y1;
    return place;
}

static bool is_seen(const struct place *place) {
    return place->box.y0 < place->box.y1 && place->box.x0 < place->box.x1;
}

static int64_t first_row(const struct rfx_box_drawing *d, uint32_t i) {
    const struct rfx_box box = box_at(d, i);
    const struct place place = place_of(d, &box);
    return d->canvas.labelled ? place.bar_y0 : place.box.y0;
}

static bool begins_earlier(const void *drawing, const void *a, const void *b) {
    return first_row(drawing, *(const uint32_t *)a) < first_row(drawing, *(const uint32_t *)b);
}

/* The order of equal rows is free, as `crossing` decides which box is drawn first. */
static void sort(struct rfx_box_drawing *d) {
    rfx_heap_sort(d->order, d->n, sizeof *d->order, begins_earlier, d);
}

void rfx_box_drawing_begin(struct rfx_box_drawing *drawing, const struct rfx_found *found) {
    assert(found->count <= drawing->most);
    drawing->found = *found;
    drawing->n = drawing->next = 0;
    for (int64_t i = 0; i < found->count; ++i) {
        const struct rfx_box box = box_at(drawing, i);
        const struct place place = place_of(drawing, &box);
        if (is_seen(&place)) drawing->order[drawing->n++] = (uint32_t)i;
    }
    sort(drawing);
    memset(drawing->crossing, 0, (size_t)drawing->n_words * sizeof *drawing->crossing);
}

static void fill(float *colours, int64_t x0, int64_t x1, const unsigned char rgb[3]) {
    for (int64_t x = x0; x < x1; ++x)
        for (int k = 0; k < 3; ++k) colours[3 * x + k] = (float)rgb[k];
}

/* Sets rgb to the colour of a class, counted from 0; negative: a label that does not exist. */
static void class_colour(int32_t label, unsigned char rgb[3]) {
    memcpy(rgb, rfx_no_value_colour, 3);
    if (label >= 0) rfx_label_colour((int64_t)label + 1, rgb);
}

static void draw_oriented(const struct rfx_box_drawing *d, const struct rfx_oriented_box *box,
                          const struct place *place, int64_t row, float *colours) {
    const double sx = (double)d->canvas.cols / (double)d->canvas.image_w,
                 sy = (double)d->canvas.rows / (double)d->canvas.image_h;
    struct rfx_outline outline = {
        .turn = box->side[0] * box->side[1] < 0 ? -1 : 1, .line = d->line, .rect = place->box};
    float corner[4][2];
    int64_t run[2][2];
    unsigned char rgb[3];
    rfx_oriented_corners(box, corner);
    for (int k = 0; k < 4; ++k) {
        outline.corner[k][0] = (double)corner[k][0] * sx;
        outline.corner[k][1] = (double)corner[k][1] * sy;
    }
    class_colour(box->label, rgb);
    rfx_outline_row(&outline, row, run);
    for (int i = 0; i < 2; ++i) fill(colours, run[i][0], run[i][1], rgb);
}

static void draw_outline(const struct rfx_box_drawing *d, const struct rfx_box *box,
                         const struct place *place, int64_t row, float *colours) {
    const struct rfx_rect *r = &place->box;
    unsigned char rgb[3];
    if (row < r->y0 || row >= r->y1) return;
    class_colour(box->label, rgb);
    if (row < r->y0 + d->line || row >= r->y1 - d->line) {
        fill(colours, r->x0, r->x1, rgb);
        return;
    }
    fill(colours, r->x0, rfx_min_i64(r->x0 + d->line, r->x1), rgb);
    fill(colours, rfx_max_i64(r->x1 - d->line, r->x0), r->x1, rgb);
}

/* Writes a label such as "dog 0.87" and returns the number of its letters. Characters beyond ASCII
 * become one question mark each. */
static int write_label(const struct rfx_box_drawing *d, const struct rfx_box *box,
                       char text[TEXT]) {
    const char *name = rfx_name_at(d->found.names, d->found.n_names, box->label);
    int n = 0;
    for (const char *p = name; p != NULL && *p != '\0' && n < MOST_LETTERS; ++p) {
        unsigned byte = (unsigned char)*p;
        if ((byte & 0xC0u) == 0x80u) continue; /* of a character that has begun */
        text[n++] = byte < 0x80u ? *p : '?';
    }
    if (name == NULL) n = snprintf(text, TEXT, "%" PRId32, box->label);
    return n + snprintf(text + n, TEXT - (size_t)n, " %.2f", (double)box->score);
}

static void draw_label(const struct rfx_box_drawing *d, const struct rfx_box *box,
                       const struct place *place, int64_t row, float *colours) {
    static const unsigned char black[3] = {0, 0, 0}, white[3] = {255, 255, 255};
    int64_t y = row - place->bar_y0, cols = d->canvas.cols;
    unsigned char rgb[3];
    char text[TEXT];
    if (y < 0 || y >= BAR_HEIGHT * d->letter) return;
    int letters = write_label(d, box, text);
    int64_t width = (1 + (int64_t)letters * RFX_FONT_ADVANCE) * d->letter;
    int64_t x0 = rfx_max_i64(0, rfx_min_i64(place->box.x0, cols - width));
    int64_t x1 = rfx_min_i64(x0 + width, cols);
    class_colour(box->label, rgb);
    bool light = 299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] > 128000;
    fill(colours, x0, x1, rgb);
    int font_y = (int)(y / d->letter) - 1;
    if (font_y < 0 || font_y >= RFX_FONT_HEIGHT) return;
    for (int64_t x = x0 + d->letter; x < x1; ++x) {
        int font_x = (int)((x - x0) / d->letter) - 1;
        int in_letter = font_x % RFX_FONT_ADVANCE;
        if (in_letter < RFX_FONT_WIDTH &&
            rfx_font_has_ink(text[font_x / RFX_FONT_ADVANCE], in_letter, font_y))
            fill(colours, x, x + 1, light ? black : white);
    }
}

void rfx_box_drawing_row(struct rfx_box_drawing *d, int64_t row, float *colours) {
    while (d->next < d->n && first_row(d, d->order[d->next]) <= row) {
        uint32_t i = d->order[d->next++];
        d->crossing[i / WORD] |= (uint64_t)1 << (i % WORD);
    }
    for (int labels = 0; labels <= (int)d->canvas.labelled; ++labels)
        for (int64_t w = d->n_words - 1; w >= 0; --w) /* the lowest score first */
            for (uint64_t left = d->crossing[w]; left != 0;) {
                int bit = WORD - 1 - __builtin_clzll(left);
                int64_t i = w * WORD + bit;
                const struct rfx_box box = box_at(d, i);
                const struct place place = place_of(d, &box);
                left &= ~((uint64_t)1 << bit);
                if (row >= place.end)
                    d->crossing[w] &= ~((uint64_t)1 << bit);
                else if (labels != 0)
                    draw_label(d, &box, &place, row, colours);
                else if (d->found.oriented != NULL)
                    draw_oriented(d, &d->found.oriented[i], &place, row, colours);
                else
                    draw_outline(d, &box, &place, row, colours);
            }
}
