/* Computes colours and positions, and makes small copies; see overlay_drawing.h. */
#include "tools/report/overlay_drawing.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/output/samples.h"

enum { RFX_SMALL_COPY_SIDE = 400 };

const unsigned char rfx_no_value_colour[3] = {210, 30, 30};

void rfx_heat_colour(double share, unsigned char rgb[3]) {
    static const double colours[][3] = {
        {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
    enum { N = sizeof colours / sizeof colours[0] };
    double at = share * (N - 1);
    int i = at < 0 ? 0 : at >= N - 1 ? N - 2 : (int)at;
    double part = fmin(fmax(at - i, 0.0), 1.0);
    for (int k = 0; k < 3; ++k)
        rgb[k] = (unsigned char)lround(colours[i][k] + part * (colours[i + 1][k] - colours[i][k]));
}

/* Sets rgb to the colour of a hue (0 to 1: red, yellow, green, cyan, blue, magenta, red) at a
 * lightness from 0 to 1. */
static void hue_colour(double hue, double light, unsigned char rgb[3]) {
    for (int k = 0; k < 3; ++k) {
        double at = fmod(hue * 6.0 + 2.0 * (double)((3 - k) % 3), 6.0);
        double part = fmin(fmax(fabs(at - 3.0) - 1.0, 0.0), 1.0);
        rgb[k] = (unsigned char)lround(255.0 * light * (0.15 + 0.85 * part));
    }
}

void rfx_label_colour(int64_t label, unsigned char rgb[3]) {
    static const unsigned char first[][3] = {{230, 159, 0},  {86, 180, 233}, {0, 158, 115},
                                             {240, 228, 66}, {0, 114, 178},  {213, 94, 0},
                                             {204, 121, 167}};
    enum { N = sizeof first / sizeof first[0] };
    static const double golden = 0.61803398874989485;
    if (label >= 1 && label <= N) {
        memcpy(rgb, first[label - 1], 3);
        return;
    }
    int64_t i = label > N ? label - N - 1 : 0;
    hue_colour(fmod(0.08 + (double)i * golden, 1.0), i % 2 == 0 ? 1.0 : 0.7, rgb);
}

struct rfx_map_place rfx_map_place_of(const struct rfx_axis_field *field, int64_t count,
                                      int64_t pixels) {
    struct rfx_map_place place = {.step = (double)pixels / (double)count, .count = count};
    place.first = place.step / 2.0;
    if (field == NULL || field->jump.num == 0 || field->jump.den == 0) return place;
    place.step = (double)field->jump.num / (double)field->jump.den;
    place.first = field->middle_px;
    return place;
}

int64_t rfx_map_place_nearest(const struct rfx_map_place *place, int64_t pixel) {
    double at = ((double)pixel + 0.5 - place->first) / place->step;
    double nearest = fmin(fmax(floor(at + 0.5), 0.0), (double)(place->count - 1));
    return fabs(at - nearest) < 1.0 ? (int64_t)nearest : -1;
}

/* Returns the sizes of a copy that has the proportions of the image. */
static struct rfx_small_copy shape_of(int64_t h, int64_t w) {
    int64_t longer = rfx_max_i64(h, w), side = rfx_min_i64(longer, RFX_SMALL_COPY_SIDE);
    return (struct rfx_small_copy){.h = h,
                                   .w = w,
                                   .rows = rfx_max_i64(1, h * side / longer),
                                   .cols = rfx_max_i64(1, w * side / longer)};
}

static size_t bytes_of(const struct rfx_small_copy *copy) {
    return (size_t)(3 * copy->rows * copy->cols);
}

size_t rfx_small_copy_bytes(int64_t h, int64_t w) {
    struct rfx_small_copy shape = shape_of(h, w);
    return bytes_of(&shape);
}

enum rfx_status rfx_small_copy_create(struct rfx_memory *mem, int64_t h, int64_t w,
                                      struct rfx_small_copy *copy, struct rfx_error *err) {
    struct rfx_small_copy made = shape_of(h, w);
    made.mem = mem;
    made.rgb = rfx_memory_calloc(mem, bytes_of(&made), 1);
    if (made.rgb == NULL) return rfx_memory_fail(mem, "small overlay", bytes_of(&made), err);
    *copy = made;
    return RFX_OK;
}

void rfx_small_copy_free(struct rfx_small_copy *copy) {
    if (copy->mem != NULL) rfx_memory_release(copy->mem, copy->rgb);
    *copy = (struct rfx_small_copy){0};
}

/* Of a row that the copy does not contain: the first row of the copy below it. */
int64_t rfx_small_copy_row(const struct rfx_small_copy *copy, int64_t y) {
    return rfx_ceil_div(y * copy->rows, copy->h);
}

bool rfx_small_copy_wants(const struct rfx_small_copy *copy, int64_t y) {
    if (copy->mem == NULL) return false;
    int64_t row = rfx_small_copy_row(copy, y);
    return row < copy->rows && row * copy->h / copy->rows == y;
}

void rfx_small_copy_take(struct rfx_small_copy *copy, int64_t row, const float *colours) {
    const struct rfx_value_range all = {0.0, 255.0};
    rfx_samples_of(RFX_TYPE_FLOAT32, colours, 3 * copy->cols, all, 8,
                   copy->rgb + 3 * row * copy->cols);
}
