/* Runs of a mask's columns and regions of its rows; see mask_text.h. */
#include "rfexec/answers/mask_text.h"

#include <inttypes.h>

#include "rfexec/answers/label_regions.h"
#include "rfexec/answers/ring_text.h"

/* The runs of a mask while they are written. */
struct runs {
    struct rfx_answer_text *text;
    bool compressed;
    int64_t n;         /* runs that were written */
    int64_t before[2]; /* the last two of them, the last one first */
    int64_t length;    /* of the present run */
    bool inside;       /* it is of pixels of the mask */
};

/* Appends the difference to the run before the last one, 5 bits for each character, the lowest
 * first; the sixth bit says that more follow. */
static void put_compressed(struct runs *runs) {
    int64_t x = runs->length - (runs->n > 2 ? runs->before[1] : 0);
    bool more = true;
    while (more) {
        int bits = (int)(x & 31);
        x = (x - bits) / 32;
        more = (bits & 16) != 0 ? x != -1 : x != 0;
        int character = bits + (more ? 32 : 0) + '0';
        rfx_answer_put(runs->text, "%s%c", character == '\\' ? "\\" : "", character);
    }
}

static void end_run(struct runs *runs) {
    if (runs->compressed)
        put_compressed(runs);
    else
        rfx_answer_put(runs->text, "%s%" PRId64, runs->n > 0 ? "," : "", runs->length);
    runs->n++;
    runs->before[1] = runs->before[0];
    runs->before[0] = runs->length;
    runs->length = 0;
    runs->inside = !runs->inside;
}

static void add_pixels(struct runs *runs, bool inside, int64_t n) {
    if (n > 0 && inside != runs->inside) end_run(runs);
    runs->length += n;
}

static enum rfx_status add_column(struct runs *runs, struct rfx_box_masks *masks, int64_t x,
                                  int64_t rows, struct rfx_error *err) {
    const unsigned char *pixels;
    enum rfx_status status = rfx_box_masks_line(masks, x, &pixels, err);
    for (int64_t i = 0; i < rows && status == RFX_OK; i++) add_pixels(runs, pixels[i] != 0, 1);
    return status;
}

enum rfx_status rfx_mask_put_runs(struct rfx_answer_text *text, struct rfx_box_masks *masks,
                                  const struct rfx_box *box, const float *coefficients,
                                  bool compressed, struct rfx_error *err) {
    const char *begin = compressed ? "\"" : "[", *end = compressed ? "\"" : "]";
    struct runs runs = {.text = text, .compressed = compressed};
    struct rfx_rect in;
    int64_t h, w;
    rfx_box_masks_size(masks, &h, &w);
    enum rfx_status status = rfx_box_masks_begin(masks, box, coefficients, true, &in, err);
    if (status != RFX_OK) return status;
    rfx_answer_put(text, "{\"size\":[%" PRId64 ",%" PRId64 "],\"counts\":%s", h, w, begin);
    add_pixels(&runs, false, in.x0 * h);
    for (int64_t x = in.x0; x < in.x1 && status == RFX_OK; x++) {
        add_pixels(&runs, false, in.y0);
        status = add_column(&runs, masks, x, rfx_rect_rows(in), err);
        add_pixels(&runs, false, h - in.y1);
    }
    add_pixels(&runs, false, (w - in.x1) * h);
    end_run(&runs);
    rfx_answer_put(text, "%s}", end);
    return status;
}

/* The polygons of a mask while they are written. */
struct polygons {
    struct rfx_answer_text *text;
    int64_t n;
    int64_t x0, y0; /* of the box's first pixel */
};

static enum rfx_status put_polygon(void *user, const struct rfx_region *region,
                                   struct rfx_error *err) {
    struct polygons *polygons = user;
    (void)err;
    rfx_answer_put(polygons->text, polygons->n++ > 0 ? ",[" : "[");
    for (int64_t i = 0; i < region->n_rings; i++) {
        if (i > 0) rfx_answer_put(polygons->text, ",");
        rfx_answer_ring(polygons->text, &region->rings[i], region->unit, polygons->x0,
                        polygons->y0);
    }
    rfx_answer_put(polygons->text, "]");
    return RFX_OK;
}

size_t rfx_mask_polygon_bytes(const struct rfx_answer_prototypes *prototypes, size_t most_bytes) {
    return (size_t)prototypes->picture_w * sizeof(int64_t) +
           (most_bytes > 0 ? most_bytes : RFX_ANSWER_BYTES);
}

static enum rfx_status add_rows(struct rfx_regions *regions, struct rfx_box_masks *masks,
                                struct rfx_rect in, int64_t *labels, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t y = in.y0; y < in.y1 && status == RFX_OK; y++) {
        const unsigned char *pixels;
        status = rfx_box_masks_line(masks, y, &pixels, err);
        for (int64_t i = 0; i < rfx_rect_cols(in) && status == RFX_OK; i++) labels[i] = pixels[i];
        if (status == RFX_OK) status = rfx_regions_row(regions, labels, NULL, err);
    }
    return status == RFX_OK ? rfx_regions_end(regions, err) : status;
}

enum rfx_status rfx_mask_put_polygons(struct rfx_answer_text *text, struct rfx_box_masks *masks,
                                      const struct rfx_box *box, const float *coefficients,
                                      size_t most_bytes, struct rfx_error *err) {
    struct rfx_regions *regions = NULL;
    int64_t *labels = NULL;
    struct rfx_rect in;
    enum rfx_status status = rfx_box_masks_begin(masks, box, coefficients, false, &in, err);
    if (status != RFX_OK) return status;
    struct polygons polygons = {.text = text, .x0 = in.x0, .y0 = in.y0};
    rfx_answer_put(text, "{\"type\":\"MultiPolygon\",\"coordinates\":[");
    if (!rfx_rect_is_empty(in)) {
        size_t bytes = (size_t)rfx_rect_cols(in) * sizeof *labels;
        const struct rfx_regions_options wanted = {.width = rfx_rect_cols(in),
                                                   .connectivity = 4,
                                                   .has_background = true,
                                                   .background = 0,
                                                   .most_bytes = most_bytes};
        labels = rfx_memory_alloc(text->mem, bytes);
        if (labels == NULL) return rfx_memory_fail(text->mem, "a row of a mask", bytes, err);
        status = rfx_regions_create(text->mem, &wanted, put_polygon, &polygons, &regions, err);
        if (status == RFX_OK) status = add_rows(regions, masks, in, labels, err);
    }
    rfx_regions_free(regions);
    rfx_memory_release(text->mem, labels);
    rfx_answer_put(text, "]}");
    return status;
}
