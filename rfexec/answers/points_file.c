/* Text of peaks; see points_file.h. */
#include "rfexec/answers/points_file.h"

#include <inttypes.h>

#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/label_rows.h"
#include "rfexec/answers/peaks.h"

struct rfx_points_file {
    struct rfx_memory *mem;
    struct rfx_answer_text text;
    enum rfx_answer_form form;
    enum rfx_type sample;
    const struct rfx_answer_watch *watch; /* NULL: nobody watches */
    int64_t row_elems, count;
    float *values; /* a row as floats */
    struct rfx_peaks *peaks;
};

enum rfx_status rfx_points_file_check(const struct rfx_output_format *format,
                                      const struct rfx_tensor *map, const char *path,
                                      struct rfx_error *err) {
    if (format->answer.n_thresholds > 0)
        return rfx_label_thresholds_check(&format->answer, map, path, err);
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: points need a threshold (--threshold)",
                    path);
}

static struct rfx_peaks_options peaks_of(const struct rfx_output_format *format,
                                         const struct rfx_tensor *map) {
    int64_t distance = format->answer.distance > 0 ? format->answer.distance : RFX_ANSWER_DISTANCE;
    return (struct rfx_peaks_options){
        .width = map->w, .height = map->h, .channels = map->c, .distance = distance};
}

size_t rfx_points_file_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    const struct rfx_peaks_options peaks = peaks_of(format, map);
    size_t row = (size_t)(map->w * map->c) * sizeof(float);
    return sizeof(struct rfx_points_file) + rfx_answer_text_bytes(&format->answer) + row +
           (size_t)map->c * sizeof(float) + rfx_peaks_bytes(&peaks);
}

static void put_feature(struct rfx_points_file *file, const struct rfx_peak *peak) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text, "%s\n{\"type\":\"Feature\",\"geometry\":{\"type\":\"Point\",",
                   file->count > 0 ? "," : "");
    rfx_answer_put(text, "\"coordinates\":[");
    rfx_answer_point(text, (double)peak->x + 0.5, (double)peak->y + 0.5);
    rfx_answer_put(text, "]}");
    rfx_answer_properties(text, "detection", peak->channel);
    rfx_answer_put(text, ",\"score\":");
    rfx_answer_float(text, peak->value);
    rfx_answer_put(text, "}}");
}

static void put_line(struct rfx_points_file *file, const struct rfx_peak *peak) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_class_csv(text, peak->channel);
    rfx_answer_float(text, peak->value);
    rfx_answer_put(text, ",");
    rfx_answer_point(text, (double)peak->x + 0.5, (double)peak->y + 0.5);
    rfx_answer_put(text, "\n");
}

static enum rfx_status take(void *user, const struct rfx_peak *peak, struct rfx_error *err) {
    struct rfx_points_file *file = user;
    if (file->form == RFX_ANSWER_GEOJSON)
        put_feature(file, peak);
    else
        put_line(file, peak);
    file->count++;
    enum rfx_status status = rfx_answer_text_status(&file->text, err);
    if (status != RFX_OK || file->watch == NULL || file->watch->take == NULL) return status;
    const double middle[2] = {(double)peak->x + 0.5, (double)peak->y + 0.5};
    return file->watch->take(file->watch->user, middle, 1, peak->channel, err);
}

static enum rfx_status make_peaks(struct rfx_points_file *file,
                                  const struct rfx_output_format *format,
                                  const struct rfx_tensor *map, struct rfx_error *err) {
    struct rfx_peaks_options options = peaks_of(format, map);
    float *thresholds = NULL;
    size_t bytes = (size_t)file->row_elems * sizeof *file->values;
    file->values = rfx_memory_alloc(file->mem, bytes);
    if (file->values == NULL) return rfx_memory_fail(file->mem, "a row of points", bytes, err);
    enum rfx_status status =
        rfx_label_thresholds_copy(file->mem, &format->answer, map->c, &thresholds, err);
    options.thresholds = thresholds;
    if (status == RFX_OK)
        status = rfx_peaks_create(file->mem, &options, take, file, &file->peaks, err);
    rfx_memory_release(file->mem, thresholds);
    return status;
}

enum rfx_status rfx_points_file_open(struct rfx_memory *mem, const char *path,
                                     const struct rfx_output_format *format,
                                     const struct rfx_tensor *map, enum rfx_answer_form form,
                                     struct rfx_points_file **out, struct rfx_error *err) {
    struct rfx_points_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    file->form = form;
    file->sample = rfx_output_sample(format);
    file->watch = format->answer.watch;
    file->row_elems = map->w * map->c;
    enum rfx_status status = rfx_answer_text_open(&file->text, mem, path, &format->answer,
                                                  &format->place, format->geo, err);
    if (status == RFX_OK) status = make_peaks(file, format, map, err);
    if (status != RFX_OK) {
        rfx_points_file_free(file);
        return status;
    }
    if (form == RFX_ANSWER_GEOJSON) rfx_answer_collection(&file->text);
    if (form == RFX_ANSWER_CSV) rfx_answer_put(&file->text, "label,name,score,x,y\n");
    *out = file;
    return RFX_OK;
}

enum rfx_status rfx_points_file_row(struct rfx_points_file *file, const void *samples,
                                    struct rfx_error *err) {
    rfx_type_load(file->sample, samples, file->row_elems, file->values);
    enum rfx_status status = rfx_peaks_row(file->peaks, file->values, err);
    return status == RFX_OK ? rfx_answer_text_status(&file->text, err) : status;
}

enum rfx_status rfx_points_file_commit(struct rfx_points_file *file, struct rfx_error *err) {
    enum rfx_status status = rfx_peaks_end(file->peaks, err);
    if (status != RFX_OK) return status;
    if (file->form == RFX_ANSWER_GEOJSON) rfx_answer_put(&file->text, "\n]}\n");
    status = rfx_answer_text_status(&file->text, err);
    return status == RFX_OK ? rfx_output_file_commit(file->text.file, err) : status;
}

struct rfx_found rfx_points_file_found(const struct rfx_points_file *file) {
    return (struct rfx_found){.what = "points", .count = file->count};
}

void rfx_points_file_free(struct rfx_points_file *file) {
    if (file == NULL) return;
    rfx_peaks_free(file->peaks);
    rfx_memory_release(file->mem, file->values);
    rfx_answer_text_close(&file->text);
    rfx_memory_release(file->mem, file);
}
