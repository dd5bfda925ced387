/* Lines of prototypes that are multiplied, and lines of pixels between them; see box_masks.h. */
#include "rfexec/answers/box_masks.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/output/output_spool.h"

/* Lines of values that are made together: columns are read as pieces of all rows, which should not
 * be too short. */
enum { LINES = 16, STRIDE = RFX_ANSWER_PROTOTYPE_STRIDE };

struct rfx_box_masks {
    struct rfx_memory *mem;
    struct rfx_answer_prototypes of;
    struct rfx_output_spool *spool;
    int64_t received; /* pixels */
    float *read;      /* [w or LINES, c]: prototypes of a row */
    float *values;    /* [LINES, the longer side] */
    unsigned char *pixels;
    /* Of the box at hand: */
    const float *coefficients;
    bool columns;
    struct rfx_rect inside;
    int64_t first, n_lines; /* of prototypes whose values are held */
};

static int64_t longer(int64_t h, int64_t w) {
    return rfx_max_i64(h, w);
}

static size_t read_floats(const struct rfx_answer_prototypes *of) {
    return (size_t)(rfx_max_i64(of->map.w, LINES) * of->map.c);
}

static size_t value_floats(const struct rfx_answer_prototypes *of) {
    return (size_t)(LINES * longer(of->map.h, of->map.w));
}

size_t rfx_box_masks_bytes(const struct rfx_answer_prototypes *of) {
    return sizeof(struct rfx_box_masks) + RFX_OUTPUT_SPOOL_BYTES +
           (read_floats(of) + value_floats(of)) * sizeof(float) +
           (size_t)longer(of->picture_h, of->picture_w);
}

enum rfx_status rfx_box_masks_create(struct rfx_memory *mem, const char *path,
                                     const struct rfx_answer_prototypes *of,
                                     struct rfx_box_masks **out, struct rfx_error *err) {
    struct rfx_box_masks *masks = rfx_memory_calloc(mem, 1, sizeof *masks);
    if (masks == NULL) return rfx_memory_fail(mem, "masks", sizeof *masks, err);
    masks->mem = mem;
    masks->of = *of;
    masks->read = rfx_memory_alloc(mem, read_floats(of) * sizeof(float));
    masks->values = rfx_memory_alloc(mem, value_floats(of) * sizeof(float));
    masks->pixels = rfx_memory_alloc(mem, (size_t)longer(of->picture_h, of->picture_w));
    enum rfx_status status = masks->read != NULL && masks->values != NULL && masks->pixels != NULL
                                 ? rfx_output_spool_open(mem, path, &of->map, &masks->spool, err)
                                 : rfx_memory_fail(mem, "masks", rfx_box_masks_bytes(of), err);
    if (status != RFX_OK) {
        rfx_box_masks_free(masks);
        return status;
    }
    *out = masks;
    return RFX_OK;
}

void rfx_box_masks_free(struct rfx_box_masks *masks) {
    if (masks == NULL) return;
    rfx_output_spool_free(masks->spool);
    rfx_memory_release(masks->mem, masks->pixels);
    rfx_memory_release(masks->mem, masks->values);
    rfx_memory_release(masks->mem, masks->read);
    rfx_memory_release(masks->mem, masks);
}

enum rfx_status rfx_box_masks_take(struct rfx_box_masks *masks, struct rfx_rect rect,
                                   const struct rfx_view *view, struct rfx_error *err) {
    const struct rfx_tensor *map = &masks->of.map;
    if (!rfx_rect_contains(rfx_rect_full(map->h, map->w), rect) ||
        !rfx_rect_contains(view->rect, rect) || view->c < map->c || view->type != map->type ||
        rfx_rect_area(rect) > map->h * map->w - masks->received)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "masks: rows %" PRId64 "..%" PRId64 ", columns %" PRId64 "..%" PRId64
                        " do not fit the prototypes of %" PRId64 " x %" PRId64
                        " or the view, or come twice",
                        rect.y0, rect.y1, rect.x0, rect.x1, map->h, map->w);
    masks->received += rfx_rect_area(rect);
    return rfx_output_spool_write(masks->spool, rect, view, err);
}

void rfx_box_masks_size(const struct rfx_box_masks *masks, int64_t *h, int64_t *w) {
    *h = masks->of.picture_h;
    *w = masks->of.picture_w;
}

/* Returns the first whole number that is not below a corner, within 0 and n. NaN: 0. */
static int64_t first_from(float corner, int64_t n) {
    if (!(corner > 0)) return 0;
    return (double)corner >= (double)n ? n : (int64_t)ceil((double)corner);
}

static struct rfx_rect pixels_in(const struct rfx_box *box, int64_t h, int64_t w) {
    for (int i = 0; i < 4; i++)
        if (isnan(box->corner[i])) return rfx_rect_make(0, 0, 0, 0);
    struct rfx_rect inside = {.x0 = first_from(box->corner[0], w),
                              .y0 = first_from(box->corner[1], h),
                              .x1 = first_from(box->corner[2], w),
                              .y1 = first_from(box->corner[3], h)};
    return rfx_rect_is_empty(inside) ? rfx_rect_make(0, 0, 0, 0) : inside;
}

enum rfx_status rfx_box_masks_begin(struct rfx_box_masks *masks, const struct rfx_box *box,
                                    const float *coefficients, bool columns,
                                    struct rfx_rect *inside, struct rfx_error *err) {
    int64_t all = masks->of.map.h * masks->of.map.w;
    if (masks->received != all)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "masks: %" PRId64 " of %" PRId64 " pixels of prototypes came",
                        masks->received, all);
    masks->coefficients = coefficients;
    masks->columns = columns;
    masks->first = masks->n_lines = 0;
    masks->inside = pixels_in(box, masks->of.picture_h, masks->of.picture_w);
    *inside = masks->inside;
    return RFX_OK;
}

/* Where pixel i of a row or column lies between prototypes `at` and `at` + 1. */
struct between {
    int64_t at;
    float share; /* of the second one */
};

static struct between between_of(int64_t i) {
    int64_t eighths = 2 * i + 1 - STRIDE; /* 8 ((i + 0.5) / 4 - 0.5) */
    if (eighths < 0) eighths = 0;
    return (struct between){eighths / (2 * STRIDE),
                            (float)(eighths % (2 * STRIDE)) / (float)(2 * STRIDE)};
}

/* Returns the prototypes [*begin, *end) that pixels [from, to) of a side of n prototypes need. */
static void needed(int64_t from, int64_t to, int64_t n, int64_t *begin, int64_t *end) {
    *begin = between_of(from).at;
    *end = rfx_min_i64(between_of(to - 1).at + 2, n);
}

static float value_of(const float *prototypes, const float *coefficients, int64_t c) {
    float sum = coefficients[0] * prototypes[0];
    for (int64_t k = 1; k < c; k++) sum += coefficients[k] * prototypes[k];
    return sum;
}

/* Makes the values of lines from `first` on, along the whole box. */
static enum rfx_status make_values(struct rfx_box_masks *masks, int64_t first,
                                   struct rfx_error *err) {
    const struct rfx_tensor *map = &masks->of.map;
    struct rfx_rect need;
    enum rfx_status status = RFX_OK;
    needed(masks->inside.y0, masks->inside.y1, map->h, &need.y0, &need.y1);
    needed(masks->inside.x0, masks->inside.x1, map->w, &need.x0, &need.x1);
    int64_t *lo = masks->columns ? &need.x0 : &need.y0, *hi = masks->columns ? &need.x1 : &need.y1;
    *lo = first;
    *hi = rfx_min_i64(*hi, first + LINES);
    masks->first = first;
    masks->n_lines = *hi - *lo;
    /* The value of a prototype lies at its line and, in the line, at its distance from the box's
     * first one. */
    int64_t stride = longer(map->h, map->w), row = masks->columns ? 1 : stride,
            column = masks->columns ? stride : 1;
    for (int64_t y = need.y0; y < need.y1 && status == RFX_OK; y++) {
        float *to = masks->values + (y - need.y0) * row;
        status = rfx_output_spool_read_part(masks->spool, y, need.x0, need.x1, masks->read, err);
        for (int64_t x = 0; x < need.x1 - need.x0 && status == RFX_OK; x++)
            to[x * column] = value_of(masks->read + x * map->c, masks->coefficients, map->c);
    }
    return status;
}

/* Makes the pixels [from, to) of a line from the values of two lines, which begin at prototype
 * `begin` and end before `end`. */
static void make_pixels(struct rfx_box_masks *masks, const float *const lines[2], float share,
                        int64_t from, int64_t to, int64_t begin, int64_t end) {
    for (int64_t i = from; i < to; i++) {
        struct between along = between_of(i);
        int64_t k[2] = {along.at - begin, rfx_min_i64(along.at + 1, end - 1) - begin};
        /* of two rows, the values of two columns; if lines are columns, the other way round */
        float v[2][2] = {{lines[0][k[0]], lines[0][k[1]]}, {lines[1][k[0]], lines[1][k[1]]}};
        float u1 = share, v1 = along.share;
        if (masks->columns) {
            float other = v[0][1];
            v[0][1] = v[1][0];
            v[1][0] = other;
            u1 = along.share;
            v1 = share;
        }
        float u0 = 1 - u1, v0 = 1 - v1;
        float pixel = u0 * (v0 * v[0][0] + v1 * v[0][1]) + u1 * (v0 * v[1][0] + v1 * v[1][1]);
        masks->pixels[i - from] = pixel > 0;
    }
}

enum rfx_status rfx_box_masks_line(struct rfx_box_masks *masks, int64_t i,
                                   const unsigned char **pixels, struct rfx_error *err) {
    const struct rfx_tensor *map = &masks->of.map;
    const struct rfx_rect *in = &masks->inside;
    int64_t n = masks->columns ? map->w : map->h, side = masks->columns ? map->h : map->w, begin,
            end, from = masks->columns ? in->y0 : in->x0, to = masks->columns ? in->y1 : in->x1;
    struct between across = between_of(i);
    int64_t last = rfx_min_i64(across.at + 1, n - 1);
    enum rfx_status status = RFX_OK;
    if (last >= masks->first + masks->n_lines) status = make_values(masks, across.at, err);
    if (status != RFX_OK) return status;
    needed(from, to, side, &begin, &end);
    int64_t stride = longer(map->h, map->w);
    const float *lines[2] = {masks->values + (across.at - masks->first) * stride,
                             masks->values + (last - masks->first) * stride};
    make_pixels(masks, lines, across.share, from, to, begin, end);
    *pixels = masks->pixels;
    return RFX_OK;
}
