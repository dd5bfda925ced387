/* Makes labels of rows of samples and text of regions; see regions_file.h. */
#include "rfexec/answers/regions_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/label_regions.h"
#include "rfexec/answers/label_rows.h"
#include "rfexec/answers/region_simplify.h"
#include "rfexec/answers/ring_text.h"

struct rfx_regions_file {
    struct rfx_memory *mem;
    struct rfx_answer_text text;
    struct rfx_answer_options options; /* without borrowed members */
    struct rfx_label_rows rows;
    enum rfx_answer_form form;
    int64_t count;
    struct rfx_regions **regions; /* of each map of labels */
};

static bool has_scores(const struct rfx_regions_file *file) {
    return file->rows.scores != NULL;
}

enum rfx_status rfx_regions_file_check(const struct rfx_output_format *format,
                                       const struct rfx_tensor *map, const char *path,
                                       struct rfx_error *err) {
    double tolerance = format->answer.tolerance;
    if (!(tolerance >= 0.0 && tolerance <= RFX_REGION_MOST_TOLERANCE))
        return rfx_fail(
            err, RFX_STATUS_INVALID_ARGUMENT,
            "%s: polygons are simplified by 0 to %g pixels of the map, not %g: by more, "
            "neighbours could cross",
            path, RFX_REGION_MOST_TOLERANCE, tolerance);
    if (tolerance > 0.0 && format->kind != &rfx_output_geojson)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: polygons are simplified in .geojson; this kind of file has none",
                        path);
    enum rfx_status status = rfx_label_thresholds_check(&format->answer, map, path, err);
    if (status != RFX_OK || rfx_label_source_of(format, map) != RFX_LABELS_NONE) return status;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: regions of a map of one channel of floats need a threshold (--threshold)",
                    path);
}

size_t rfx_regions_file_bytes(const struct rfx_output_format *format,
                              const struct rfx_tensor *map) {
    const struct rfx_answer_options *options = &format->answer;
    return sizeof(struct rfx_regions_file) + (size_t)map->c * sizeof(void *) +
           rfx_answer_text_bytes(options) + rfx_label_rows_bytes(format, map) +
           (options->most_bytes > 0 ? options->most_bytes : RFX_ANSWER_BYTES);
}

static void put_geometry(struct rfx_answer_text *text, const struct rfx_region *region) {
    int64_t polygons = 0;
    for (int64_t i = 0; i < region->n_rings; i++) polygons += region->rings[i].outer;
    bool several = polygons > 1;
    rfx_answer_put(text, "{\"type\":\"%s\",\"coordinates\":%s[",
                   several ? "MultiPolygon" : "Polygon", several ? "[" : "");
    for (int64_t i = 0; i < region->n_rings; i++) {
        bool outer = region->rings[i].outer;
        if (i > 0) rfx_answer_put(text, outer ? "],[" : ",");
        rfx_answer_ring(text, &region->rings[i], region->unit, 0, 0);
    }
    rfx_answer_put(text, several ? "]]}" : "]}");
}

/* Returns the length of all rings in coordinates. */
static double perimeter_of(const struct rfx_answer_text *text, const struct rfx_region *region) {
    return (double)region->edges[0] * text->side[0] + (double)region->edges[1] * text->side[1];
}

/* Appends the numbers under the names that QuPath lists beside its own. */
static void put_measurements(struct rfx_regions_file *file, const struct rfx_region *region) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text, ",\"measurements\":{\"Area px^2\":");
    rfx_answer_number(text, (double)region->area * text->cell_area);
    rfx_answer_put(text, ",\"Perimeter px\":");
    rfx_answer_number(text, perimeter_of(text, region));
    if (has_scores(file)) {
        rfx_answer_put(text, ",\"Mean score\":");
        rfx_answer_number(text, region->mean_score);
        rfx_answer_put(text, ",\"Largest score\":");
        rfx_answer_float(text, region->largest_score);
    }
    rfx_answer_put(text, "}");
}

static void put_feature(struct rfx_regions_file *file, const struct rfx_region *region) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text, "%s\n{\"type\":\"Feature\",\"geometry\":", file->count > 0 ? "," : "");
    put_geometry(text, region);
    rfx_answer_properties(text, "annotation", region->label);
    rfx_answer_put(text, ",\"pixels\":%" PRId64 ",\"area\":", region->area);
    rfx_answer_number(text, (double)region->area * text->cell_area);
    rfx_answer_put(text, ",\"perimeter\":");
    rfx_answer_number(text, perimeter_of(text, region));
    rfx_answer_put(text, ",\"centroid\":[");
    rfx_answer_point(text, region->centroid[0], region->centroid[1]);
    rfx_answer_put(text, "]");
    if (has_scores(file)) {
        rfx_answer_put(text, ",\"mean_score\":");
        rfx_answer_number(text, region->mean_score);
        rfx_answer_put(text, ",\"largest_score\":");
        rfx_answer_float(text, region->largest_score);
    }
    if (!text->mapped) put_measurements(file, region);
    rfx_answer_put(text, "}}");
}

/* Appends the smallest and largest coordinates of a region: left, top, right, bottom. */
static void put_box(struct rfx_answer_text *text, const struct rfx_rect *box) {
    const struct rfx_geo_affine *a = &text->affine;
    const double x[2] = {(double)box->x0, (double)box->x1},
                 y[2] = {(double)box->y0, (double)box->y1};
    double lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++) {
        const double at[2] = {a->x[0] * x[i & 1] + a->x[1] * y[i >> 1] + a->x[2],
                              a->y[0] * x[i & 1] + a->y[1] * y[i >> 1] + a->y[2]};
        for (int axis = 0; axis < 2; axis++) {
            lo[axis] = fmin(lo[axis], at[axis]);
            hi[axis] = fmax(hi[axis], at[axis]);
        }
    }
    const double out[4] = {lo[0], lo[1], hi[0], hi[1]};
    for (int i = 0; i < 4; i++) {
        rfx_answer_put(text, ",");
        rfx_answer_number(text, out[i]);
    }
}

static void put_line(struct rfx_regions_file *file, const struct rfx_region *region) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_class_csv(text, region->label);
    rfx_answer_put(text, "%" PRId64 ",", region->area);
    rfx_answer_number(text, (double)region->area * text->cell_area);
    rfx_answer_put(text, ",");
    rfx_answer_number(text, perimeter_of(text, region));
    rfx_answer_put(text, ",");
    rfx_answer_point(text, region->centroid[0], region->centroid[1]);
    put_box(text, &region->box);
    rfx_answer_put(text, ",");
    if (has_scores(file)) rfx_answer_number(text, region->mean_score);
    rfx_answer_put(text, ",");
    if (has_scores(file)) rfx_answer_float(text, region->largest_score);
    rfx_answer_put(text, "\n");
}

static enum rfx_status take(void *user, const struct rfx_region *region, struct rfx_error *err) {
    struct rfx_regions_file *file = user;
    if (file->form == RFX_ANSWER_GEOJSON)
        put_feature(file, region);
    else
        put_line(file, region);
    file->count++;
    return rfx_answer_text_status(&file->text, err);
}

static enum rfx_status make_regions(struct rfx_regions_file *file, struct rfx_error *err) {
    const struct rfx_answer_options *options = &file->options;
    const struct rfx_regions_options wanted = {
        .width = file->rows.w,
        .connectivity = options->corners ? 8 : 4,
        .has_background = true,
        .background = RFX_NO_LABEL,
        .least_area = options->least_area,
        .scored = has_scores(file),
        .tolerance = file->form == RFX_ANSWER_GEOJSON ? options->tolerance : 0.0,
        .most_bytes = options->most_bytes / (size_t)file->rows.n};
    file->regions = rfx_memory_calloc(file->mem, (size_t)file->rows.n, sizeof *file->regions);
    if (file->regions == NULL)
        return rfx_memory_fail(file->mem, "regions", (size_t)file->rows.n * sizeof *file->regions,
                               err);
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < file->rows.n && status == RFX_OK; i++)
        status = rfx_regions_create(file->mem, &wanted, take, file, &file->regions[i], err);
    return status;
}

enum rfx_status rfx_regions_file_open(struct rfx_memory *mem, const char *path,
                                      const struct rfx_output_format *format,
                                      const struct rfx_tensor *map, enum rfx_answer_form form,
                                      struct rfx_regions_file **out, struct rfx_error *err) {
    struct rfx_regions_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    file->options = format->answer;
    file->options.thresholds = NULL;
    file->options.names = NULL;
    file->form = form;
    enum rfx_status status = rfx_answer_text_open(&file->text, mem, path, &format->answer,
                                                  &format->place, format->geo, err);
    if (status == RFX_OK) status = rfx_label_rows_open(&file->rows, mem, format, map, err);
    if (status == RFX_OK) status = make_regions(file, err);
    if (status == RFX_OK && form == RFX_ANSWER_GEOJSON) rfx_answer_collection(&file->text);
    if (status == RFX_OK && form == RFX_ANSWER_CSV) {
        rfx_answer_put(&file->text, "label,name,pixels,area,perimeter,centroid_x,centroid_y,");
        rfx_answer_put(&file->text, "left,top,right,bottom,mean_score,largest_score\n");
    }
    if (status != RFX_OK) {
        rfx_regions_file_free(file);
        return status;
    }
    *out = file;
    return RFX_OK;
}

/* Names the option that a failure is about. Returns the status. */
static enum rfx_status tell_option(const struct rfx_regions_file *file, enum rfx_status status,
                                   struct rfx_error *err) {
    int n = file->rows.n;
    if (status != RFX_STATUS_BUDGET_IMPOSSIBLE) return status;
    return rfx_fail_within(err, status, "--answer-memory %zu, shared by %d map%s of labels",
                           file->options.most_bytes, n, n == 1 ? "" : "s");
}

enum rfx_status rfx_regions_file_row(struct rfx_regions_file *file, const void *samples,
                                     struct rfx_error *err) {
    struct rfx_label_rows *rows = &file->rows;
    enum rfx_status status = RFX_OK;
    rfx_label_rows_load(rows, samples);
    for (int i = 0; i < rows->n && status == RFX_OK; i++) {
        rfx_label_rows_find(rows, i);
        status = rfx_regions_row(file->regions[i], rows->labels, rows->scores, err);
    }
    if (status != RFX_OK) return tell_option(file, status, err);
    return rfx_answer_text_status(&file->text, err);
}

enum rfx_status rfx_regions_file_commit(struct rfx_regions_file *file, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < file->rows.n && status == RFX_OK; i++)
        status = rfx_regions_end(file->regions[i], err);
    if (status != RFX_OK) return tell_option(file, status, err);
    if (file->form == RFX_ANSWER_GEOJSON) rfx_answer_put(&file->text, "\n]}\n");
    status = rfx_answer_text_status(&file->text, err);
    return status == RFX_OK ? rfx_output_file_commit(file->text.file, err) : status;
}

struct rfx_found rfx_regions_file_found(const struct rfx_regions_file *file) {
    return (struct rfx_found){.what = "regions", .count = file->count};
}

void rfx_regions_file_free(struct rfx_regions_file *file) {
    if (file == NULL) return;
    for (int i = 0; i < file->rows.n && file->regions != NULL; i++)
        rfx_regions_free(file->regions[i]);
    rfx_memory_release(file->mem, file->regions);
    rfx_label_rows_close(&file->rows);
    rfx_answer_text_close(&file->text);
    rfx_memory_release(file->mem, file);
}
