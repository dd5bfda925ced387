/* Makes labels of rows of samples and text of regions; see regions_file.h. */
#include "rfexec/answers/regions_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/label_regions.h"

#define NO_LABEL INT64_MIN /* of pixels that belong to no region */

enum source { LABELS, LARGEST_CHANNEL, THRESHOLD };

struct rfx_regions_file {
    struct rfx_memory *mem;
    struct rfx_answer_text text;
    struct rfx_answer_options options; /* without borrowed members */
    float *thresholds;                 /* of each channel; NULL: none */
    enum rfx_regions_form form;
    enum source source;
    enum rfx_type sample;
    int64_t w, channels, count;
    int n; /* maps of labels: one, or with a threshold one of each channel */
    struct rfx_regions **regions;
    float *values; /* a row as floats; not of LABELS */
    float *scores; /* of one map; not of LABELS */
    int64_t *labels;
};

static enum source source_of(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    if (format->answer.n_thresholds > 0) return THRESHOLD;
    return map->c > 1 ? LARGEST_CHANNEL : LABELS;
}

enum rfx_status rfx_regions_file_check(const struct rfx_output_format *format,
                                       const struct rfx_tensor *map, const char *path,
                                       struct rfx_error *err) {
    int n = format->answer.n_thresholds;
    if (n > 1 && n != map->c)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: %d thresholds for a map of %" PRId64
                        " channels: give one for all "
                        "channels, or one for each",
                        path, n, map->c);
    if (source_of(format, map) != LABELS || rfx_output_sample(format) != RFX_TYPE_FLOAT32)
        return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: regions of a map of one channel of floats need a threshold (--threshold)",
                    path);
}

static size_t rows_bytes(const struct rfx_tensor *map, enum source source) {
    size_t floats = (size_t)(map->w * (source == LABELS ? 1 : map->c + 1));
    return (size_t)map->w * sizeof(int64_t) + floats * sizeof(float);
}

size_t rfx_regions_file_bytes(const struct rfx_output_format *format,
                              const struct rfx_tensor *map) {
    const struct rfx_answer_options *options = &format->answer;
    return sizeof(struct rfx_regions_file) + (size_t)map->c * (sizeof(void *) + sizeof(float)) +
           rfx_answer_text_bytes(options) + rows_bytes(map, source_of(format, map)) +
           (options->most_bytes > 0 ? options->most_bytes : RFX_ANSWER_BYTES);
}

static void put_ring(struct rfx_answer_text *text, const struct rfx_region_ring *ring) {
    rfx_answer_put(text, "[");
    for (int64_t i = 0; i <= ring->n; i++) { /* the first point again at the end */
        int64_t k = i % ring->n;
        const int32_t *p = ring->points[text->mirrored && k > 0 ? ring->n - k : k];
        rfx_answer_put(text, i > 0 ? ",[" : "[");
        rfx_answer_point(text, (double)p[0], (double)p[1]);
        rfx_answer_put(text, "]");
    }
    rfx_answer_put(text, "]");
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
        put_ring(text, &region->rings[i]);
    }
    rfx_answer_put(text, several ? "]]}" : "]}");
}

/* Returns the length of all rings in coordinates. */
static double perimeter_of(const struct rfx_answer_text *text, const struct rfx_region *region) {
    int64_t along[2] = {0, 0}; /* edges along rows and along columns */
    for (int64_t i = 0; i < region->n_rings; i++) {
        const struct rfx_region_ring *ring = &region->rings[i];
        for (int64_t k = 0; k < ring->n; k++) {
            const int32_t *a = ring->points[k], *b = ring->points[(k + 1) % ring->n];
            for (int axis = 0; axis < 2; axis++) {
                int64_t step = (int64_t)b[axis] - a[axis];
                along[axis] += step < 0 ? -step : step;
            }
        }
    }
    return (double)along[0] * text->side[0] + (double)along[1] * text->side[1];
}

/* Appends the numbers under the names that QuPath lists beside its own. */
static void put_measurements(struct rfx_regions_file *file, const struct rfx_region *region) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text, ",\"measurements\":{\"Area px^2\":");
    rfx_answer_number(text, (double)region->area * text->cell_area);
    rfx_answer_put(text, ",\"Perimeter px\":");
    rfx_answer_number(text, perimeter_of(text, region));
    if (file->source != LABELS) {
        rfx_answer_put(text, ",\"Mean score\":");
        rfx_answer_number(text, region->mean_score);
        rfx_answer_put(text, ",\"Largest score\":");
        rfx_answer_float(text, region->largest_score);
    }
    rfx_answer_put(text, "}");
}

static void put_feature(struct rfx_regions_file *file, const struct rfx_region *region) {
    struct rfx_answer_text *text = &file->text;
    const char *name = rfx_answer_name(text, region->label);
    rfx_answer_put(text, "%s\n{\"type\":\"Feature\",\"geometry\":", file->count > 0 ? "," : "");
    put_geometry(text, region);
    rfx_answer_put(text, ",\"properties\":{\"objectType\":\"annotation\",\"label\":%" PRId64,
                   region->label);
    if (name != NULL) {
        rfx_answer_put(text, ",\"classification\":{\"name\":");
        rfx_answer_json_string(text, name);
        rfx_answer_put(text, "}");
    }
    rfx_answer_put(text, ",\"pixels\":%" PRId64 ",\"area\":", region->area);
    rfx_answer_number(text, (double)region->area * text->cell_area);
    rfx_answer_put(text, ",\"perimeter\":");
    rfx_answer_number(text, perimeter_of(text, region));
    rfx_answer_put(text, ",\"centroid\":[");
    rfx_answer_point(text, region->centroid[0], region->centroid[1]);
    rfx_answer_put(text, "]");
    if (file->source != LABELS) {
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
    const char *name = rfx_answer_name(text, region->label);
    rfx_answer_put(text, "%" PRId64 ",", region->label);
    if (name != NULL) rfx_answer_csv_field(text, name);
    rfx_answer_put(text, ",%" PRId64 ",", region->area);
    rfx_answer_number(text, (double)region->area * text->cell_area);
    rfx_answer_put(text, ",");
    rfx_answer_number(text, perimeter_of(text, region));
    rfx_answer_put(text, ",");
    rfx_answer_point(text, region->centroid[0], region->centroid[1]);
    put_box(text, &region->box);
    rfx_answer_put(text, ",");
    if (file->source != LABELS) rfx_answer_number(text, region->mean_score);
    rfx_answer_put(text, ",");
    if (file->source != LABELS) rfx_answer_float(text, region->largest_score);
    rfx_answer_put(text, "\n");
}

static enum rfx_status take(void *user, const struct rfx_region *region, struct rfx_error *err) {
    struct rfx_regions_file *file = user;
    if (file->form == RFX_REGIONS_GEOJSON)
        put_feature(file, region);
    else
        put_line(file, region);
    file->count++;
    return rfx_answer_text_status(&file->text, err);
}

static enum rfx_status make_rows(struct rfx_regions_file *file, const struct rfx_tensor *map,
                                 struct rfx_error *err) {
    size_t w = (size_t)map->w, c = (size_t)map->c;
    file->labels = rfx_memory_alloc(file->mem, w * sizeof *file->labels);
    file->values = rfx_memory_alloc(file->mem, w * c * sizeof *file->values);
    bool enough = file->labels != NULL && file->values != NULL;
    if (file->source != LABELS) {
        file->scores = rfx_memory_alloc(file->mem, w * sizeof *file->scores);
        enough = enough && file->scores != NULL;
    }
    if (enough) return RFX_OK;
    return rfx_memory_fail(file->mem, "rows of regions", rows_bytes(map, file->source), err);
}

static enum rfx_status copy_thresholds(struct rfx_regions_file *file,
                                       const struct rfx_answer_options *options,
                                       struct rfx_error *err) {
    if (file->source != THRESHOLD) return RFX_OK;
    file->thresholds = rfx_memory_alloc(file->mem, (size_t)file->n * sizeof *file->thresholds);
    if (file->thresholds == NULL)
        return rfx_memory_fail(file->mem, "thresholds", (size_t)file->n * sizeof *file->thresholds,
                               err);
    for (int i = 0; i < file->n; i++)
        file->thresholds[i] = options->thresholds[options->n_thresholds > 1 ? i : 0];
    return RFX_OK;
}

static enum rfx_status make_regions(struct rfx_regions_file *file, struct rfx_error *err) {
    const struct rfx_answer_options *options = &file->options;
    const struct rfx_regions_options wanted = {.width = file->w,
                                               .connectivity = options->corners ? 8 : 4,
                                               .has_background = true,
                                               .background = NO_LABEL,
                                               .least_area = options->least_area,
                                               .scored = file->source != LABELS,
                                               .most_bytes = options->most_bytes / (size_t)file->n};
    file->regions = rfx_memory_calloc(file->mem, (size_t)file->n, sizeof *file->regions);
    if (file->regions == NULL)
        return rfx_memory_fail(file->mem, "regions", (size_t)file->n * sizeof *file->regions, err);
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < file->n && status == RFX_OK; i++)
        status = rfx_regions_create(file->mem, &wanted, take, file, &file->regions[i], err);
    return status;
}

enum rfx_status rfx_regions_file_open(struct rfx_memory *mem, const char *path,
                                      const struct rfx_output_format *format,
                                      const struct rfx_tensor *map, enum rfx_regions_form form,
                                      struct rfx_regions_file **out, struct rfx_error *err) {
    struct rfx_regions_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    file->options = format->answer;
    file->options.thresholds = NULL;
    file->options.names = NULL;
    file->form = form;
    file->source = source_of(format, map);
    file->sample = rfx_output_sample(format);
    file->w = map->w;
    file->channels = map->c;
    file->n = file->source == THRESHOLD ? (int)map->c : 1;
    enum rfx_status status = rfx_answer_text_open(&file->text, mem, path, &format->answer,
                                                  &format->place, format->geo, err);
    if (status == RFX_OK) status = make_rows(file, map, err);
    if (status == RFX_OK) status = copy_thresholds(file, &format->answer, err);
    if (status == RFX_OK) status = make_regions(file, err);
    if (status == RFX_OK && form == RFX_REGIONS_GEOJSON) rfx_answer_collection(&file->text);
    if (status == RFX_OK && form == RFX_REGIONS_CSV) {
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

/* Converts a row of labels, which rfexec computes as floats or as 32-bit integers. */
static void read_labels(struct rfx_regions_file *file, const void *samples) {
    int64_t none = file->options.all_labels ? NO_LABEL : 0;
    if (file->sample != RFX_TYPE_INT32) rfx_type_load(file->sample, samples, file->w, file->values);
    for (int64_t x = 0; x < file->w; x++) {
        int64_t label = file->sample == RFX_TYPE_INT32 ? ((const int32_t *)samples)[x]
                                                       : (int64_t)file->values[x];
        file->labels[x] = label == none ? NO_LABEL : label;
    }
}

/* Finds for each pixel the first channel of the largest value; none if a value is NaN. */
static void find_largest(struct rfx_regions_file *file) {
    int64_t c = file->channels, first = file->options.all_labels ? 0 : 1;
    for (int64_t x = 0; x < file->w; x++) {
        const float *pixel = file->values + x * c;
        int64_t best = 0;
        bool missing = false;
        for (int64_t k = 0; k < c; k++) {
            missing = missing || isnan(pixel[k]);
            if (pixel[k] > pixel[best]) best = k;
        }
        file->labels[x] = missing || best < first ? NO_LABEL : best;
        file->scores[x] = pixel[best];
    }
}

/* Marks the pixels of one channel that are above the threshold. */
static void find_above(struct rfx_regions_file *file, int channel) {
    float threshold = file->thresholds[channel];
    const float *value = file->values + channel;
    for (int64_t x = 0; x < file->w; x++, value += file->channels) {
        file->labels[x] = *value > threshold ? channel : NO_LABEL;
        file->scores[x] = *value;
    }
}

enum rfx_status rfx_regions_file_row(struct rfx_regions_file *file, const void *samples,
                                     struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    if (file->source == LABELS)
        read_labels(file, samples);
    else
        rfx_type_load(file->sample, samples, file->w * file->channels, file->values);
    if (file->source == LARGEST_CHANNEL) find_largest(file);
    for (int i = 0; i < file->n && status == RFX_OK; i++) {
        if (file->source == THRESHOLD) find_above(file, i);
        status = rfx_regions_row(file->regions[i], file->labels, file->scores, err);
    }
    if (status == RFX_STATUS_BUDGET_IMPOSSIBLE)
        return rfx_fail_within(err, status, "--answer-memory %zu, shared by %d map%s of labels",
                               file->options.most_bytes, file->n, file->n == 1 ? "" : "s");
    return status == RFX_OK ? rfx_answer_text_status(&file->text, err) : status;
}

enum rfx_status rfx_regions_file_commit(struct rfx_regions_file *file, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < file->n && status == RFX_OK; i++)
        status = rfx_regions_end(file->regions[i], err);
    if (status != RFX_OK) return status;
    if (file->form == RFX_REGIONS_GEOJSON) rfx_answer_put(&file->text, "\n]}\n");
    status = rfx_answer_text_status(&file->text, err);
    return status == RFX_OK ? rfx_output_file_commit(file->text.file, err) : status;
}

struct rfx_found rfx_regions_file_found(const struct rfx_regions_file *file) {
    return (struct rfx_found){.what = "regions", .count = file->count};
}

void rfx_regions_file_free(struct rfx_regions_file *file) {
    if (file == NULL) return;
    for (int i = 0; i < file->n && file->regions != NULL; i++) rfx_regions_free(file->regions[i]);
    rfx_memory_release(file->mem, file->regions);
    rfx_memory_release(file->mem, file->thresholds);
    rfx_memory_release(file->mem, file->values);
    rfx_memory_release(file->mem, file->scores);
    rfx_memory_release(file->mem, file->labels);
    rfx_answer_text_close(&file->text);
    rfx_memory_release(file->mem, file);
}
