/* Counts and ranges of values as text; see summary_file.h. */
#include "rfexec/answers/summary_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "layers/core/printable.h"
#include "layers/kernels/exact_sum.h"
#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/area_counts.h"
#include "rfexec/answers/label_counts.h"
#include "rfexec/answers/label_rows.h"
#include "rfexec/answers/value_bins.h"
#include "rfexec/answers/value_quantiles.h"

struct rfx_summary_file {
    struct rfx_memory *mem;
    struct rfx_answer_text text;
    struct rfx_label_rows rows;
    enum rfx_answer_form form;
    int64_t pixels, count;
    struct rfx_label_counts *labels;     /* NULL: there are no classes */
    struct rfx_channel_values *channels; /* NULL: the map has labels */
    void *sums;                          /* an accumulator of all channels (exact_sum.h) */
    struct rfx_answer_bins bins;
    int64_t *in_bins; /* [channels, counts of bins]; NULL: none are wanted */
    struct rfx_answer_quantiles list;
    struct rfx_value_quantiles *quantiles; /* NULL: none are wanted */
    struct rfx_area_counts *areas;         /* NULL: none are wanted */
};

#define MOST_PIXELS (INT64_C(1) << 40) /* of an exact sum */

enum rfx_status rfx_summary_file_check(const struct rfx_output_format *format,
                                       const struct rfx_tensor *map, const char *path,
                                       struct rfx_error *err) {
    if (map->h > MOST_PIXELS / map->w)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: a summary counts up to 2^40 pixels, and the map is %" PRId64
                        " x %" PRId64,
                        path, map->h, map->w);
    const struct rfx_answer_options *answer = &format->answer;
    if ((answer->bins.n > 0 || answer->quantiles.n > 0) &&
        rfx_label_source_of(format, map) == RFX_LABELS_GIVEN)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: %s for values, and the map has labels, which are counted one by one",
                        path, answer->bins.n > 0 ? "--bins is" : "--quantiles are");
    return rfx_label_thresholds_check(&format->answer, map, path, err);
}

static size_t channels_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    size_t counts = (size_t)rfx_value_counts(&format->answer.bins) * sizeof(int64_t);
    return (size_t)map->c * (sizeof(struct rfx_channel_values) + counts) +
           rfx_exact_sum_bytes(map->c) + rfx_value_quantiles_bytes(&format->answer.quantiles, map);
}

size_t rfx_summary_file_bytes(const struct rfx_output_format *format,
                              const struct rfx_tensor *map) {
    enum rfx_label_source source = rfx_label_source_of(format, map);
    return sizeof(struct rfx_summary_file) + rfx_answer_text_bytes(&format->answer) +
           rfx_label_rows_bytes(format, map) +
           (source != RFX_LABELS_NONE ? rfx_label_counts_bytes(RFX_LABEL_COUNTS) : 0) +
           (source != RFX_LABELS_GIVEN ? channels_bytes(format, map) : 0) +
           (format->answer.within != NULL ? rfx_area_counts_bytes(format, map) : 0);
}

static enum rfx_status make_channels(struct rfx_summary_file *file, struct rfx_error *err) {
    int64_t c = file->rows.channels;
    size_t bytes = rfx_exact_sum_bytes(c);
    if (file->rows.source == RFX_LABELS_GIVEN) return RFX_OK;
    file->channels = rfx_memory_calloc(file->mem, (size_t)c, sizeof *file->channels);
    file->sums = rfx_memory_alloc(file->mem, bytes);
    if (file->channels == NULL || file->sums == NULL)
        return rfx_memory_fail(file->mem, "sums of a summary", bytes, err);
    size_t bins = (size_t)(c * rfx_value_counts(&file->bins));
    if (bins > 0) file->in_bins = rfx_memory_calloc(file->mem, bins, sizeof *file->in_bins);
    if (bins > 0 && file->in_bins == NULL)
        return rfx_memory_fail(file->mem, "bins", bins * sizeof *file->in_bins, err);
    (void)rfx_exact_sum_reset(file->sums, c);
    for (int64_t k = 0; k < c; k++) file->channels[k] = RFX_NO_CHANNEL_VALUES;
    return RFX_OK;
}

enum rfx_status rfx_summary_file_open(struct rfx_memory *mem, const char *path,
                                      const struct rfx_output_format *format,
                                      const struct rfx_tensor *map, enum rfx_answer_form form,
                                      struct rfx_summary_file **out, struct rfx_error *err) {
    struct rfx_summary_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    file->form = form;
    file->pixels = map->h * map->w;
    file->bins = format->answer.bins;
    file->list = format->answer.quantiles;
    enum rfx_status status = rfx_answer_text_open(&file->text, mem, path, &format->answer,
                                                  &format->place, format->geo, err);
    if (status == RFX_OK) status = rfx_label_rows_open(&file->rows, mem, format, map, err);
    file->rows.all_labels = true;
    if (status == RFX_OK && file->rows.source != RFX_LABELS_NONE)
        status = rfx_label_counts_create(mem, RFX_LABEL_COUNTS, &file->labels, err);
    if (status == RFX_OK) status = make_channels(file, err);
    if (status == RFX_OK && format->answer.within != NULL)
        status = rfx_area_counts_open(mem, format, &file->text, map, &file->areas, err);
    if (status == RFX_OK && file->channels != NULL && file->list.n > 0)
        status = rfx_value_quantiles_create(
            mem, path, &file->list, map,
            file->areas != NULL ? rfx_area_counts_areas(file->areas) : NULL, &file->quantiles, err);
    if (status != RFX_OK) {
        rfx_summary_file_free(file);
        return status;
    }
    *out = file;
    return RFX_OK;
}

static int64_t *bins_of(const struct rfx_summary_file *file, int64_t channel) {
    if (file->in_bins == NULL) return NULL;
    return file->in_bins + channel * rfx_value_counts(&file->bins);
}

/* Adds the row's values to the channels. NaN is counted and replaced by 0, which adds nothing. */
static void add_values(struct rfx_summary_file *file) {
    int64_t c = file->rows.channels;
    float *value = file->rows.values;
    for (int64_t x = 0; x < file->rows.w; x++)
        for (int64_t k = 0; k < c; k++, value++) {
            if (file->in_bins != NULL) rfx_value_count(&file->bins, *value, bins_of(file, k));
            if (rfx_channel_values_add(&file->channels[k], *value)) *value = 0.0F;
        }
    rfx_exact_sum_add(file->sums, file->rows.values, file->rows.w);
}

static enum rfx_status add_to_quantiles(struct rfx_summary_file *file, struct rfx_error *err) {
    int64_t n = 0;
    const struct rfx_area_span *spans =
        file->areas != NULL ? rfx_area_counts_spans(file->areas, &n) : NULL;
    return rfx_value_quantiles_row(file->quantiles, file->rows.values, spans, n, err);
}

enum rfx_status rfx_summary_file_row(struct rfx_summary_file *file, const void *samples,
                                     struct rfx_error *err) {
    struct rfx_label_rows *rows = &file->rows;
    struct rfx_area_counts *areas = file->areas;
    enum rfx_status status = RFX_OK;
    rfx_label_rows_load(rows, samples);
    if (areas != NULL) rfx_area_counts_begin(areas);
    for (int i = 0; file->labels != NULL && i < rows->n && status == RFX_OK; i++) {
        rfx_label_rows_find(rows, i);
        status = rfx_label_counts_add(file->labels, rows->labels, rows->w, RFX_NO_LABEL, err);
        if (status == RFX_OK && areas != NULL) status = rfx_area_counts_labels(areas, rows, err);
    }
    if (file->channels == NULL) return status;
    if (areas != NULL) rfx_area_counts_values(areas, rows->values);
    if (status == RFX_OK && file->quantiles != NULL) status = add_to_quantiles(file, err);
    add_values(file);
    if (areas != NULL) rfx_area_counts_sums(areas, rows->values);
    return status;
}

/* A class of the map or of an area. */
struct entry {
    int64_t area; /* -1: the map */
    int64_t label;
    int64_t pixels; /* -1: there are no classes */
    int64_t all;    /* pixels of the map or of the area */
    const struct rfx_channel_values *channel;
    const int64_t *bins; /* NULL: none are wanted */
    double mean;         /* NaN: there is no value */
};

static struct entry entry_of(struct rfx_summary_file *file, int64_t label, int64_t pixels) {
    struct entry entry = {.area = -1, .label = label, .pixels = pixels, .all = file->pixels};
    if (file->channels == NULL) return entry;
    entry.channel = &file->channels[label];
    entry.bins = bins_of(file, label);
    int64_t values = file->pixels - entry.channel->nan;
    entry.mean = values > 0 ? rfx_exact_sum_total(file->sums, label) / (double)values : NAN;
    return entry;
}

static double share_of(const struct entry *entry) {
    return (double)entry->pixels / (double)entry->all;
}

/* A channel without values has no smallest and largest one. */
static float end_of(const struct entry *entry, float end) {
    return entry->channel->nan < entry->all ? end : NAN;
}

enum { AREA_NAME = 1024 }; /* bytes of an area's name that is shown */

/* Returns the name of an area, in `name`: its own, or its number. */
static const char *name_of(const struct rfx_area_count *area, char name[AREA_NAME]) {
    if (area->name != NULL)
        rfx_printable(area->name, name, AREA_NAME);
    else
        (void)snprintf(name, AREA_NAME, "%" PRId64, area->number);
    return name;
}

static double quantile_of(const struct rfx_summary_file *file, const struct entry *entry, int k) {
    return rfx_value_quantile(file->quantiles, entry->area, entry->label, k);
}

static void put_bins(struct rfx_summary_file *file, const int64_t *counts) {
    struct rfx_answer_text *text = &file->text;
    int64_t n = file->bins.n;
    rfx_answer_put(text, ",\"below\":%" PRId64 ",\"bins\":[", counts[0]);
    for (int64_t k = 1; k <= n; k++)
        rfx_answer_put(text, "%s%" PRId64, k > 1 ? "," : "", counts[k]);
    rfx_answer_put(text, "],\"above\":%" PRId64, counts[n + 1]);
}

static void put_object(struct rfx_summary_file *file, const struct entry *entry, bool first) {
    struct rfx_answer_text *text = &file->text;
    rfx_answer_put(text, "%s\n{", first ? "" : ",");
    rfx_answer_class_json(text, entry->label);
    if (entry->pixels >= 0) {
        rfx_answer_put(text, ",\"pixels\":%" PRId64 ",\"area\":", entry->pixels);
        rfx_answer_number(text, (double)entry->pixels * text->cell_area);
        rfx_answer_put(text, ",\"share\":");
        rfx_answer_number(text, share_of(entry));
    }
    if (entry->channel != NULL) {
        rfx_answer_put(text, ",\"smallest\":");
        rfx_answer_float(text, end_of(entry, entry->channel->smallest));
        rfx_answer_put(text, ",\"largest\":");
        rfx_answer_float(text, end_of(entry, entry->channel->largest));
        rfx_answer_put(text, ",\"mean\":");
        rfx_answer_number(text, entry->mean);
        rfx_answer_put(text, ",\"nan\":%" PRId64, entry->channel->nan);
    }
    if (entry->bins != NULL) put_bins(file, entry->bins);
    for (int k = 0; k < file->list.n; k++) {
        rfx_answer_put(text, k == 0 ? ",\"quantiles\":[" : ",");
        rfx_answer_number(text, quantile_of(file, entry, k));
    }
    rfx_answer_put(text, file->list.n > 0 ? "]}" : "}");
}

/* Writes the number and the name of an area, or of the whole map: 0 and no name. */
static void put_area_fields(struct rfx_answer_text *text, const struct rfx_area_count *area) {
    char name[AREA_NAME];
    rfx_answer_put(text, "%" PRId64 ",", area != NULL ? area->number : 0);
    if (area != NULL) rfx_answer_csv_field(text, name_of(area, name));
    rfx_answer_put(text, ",");
}

static void put_line(struct rfx_summary_file *file, const struct rfx_area_count *area,
                     const struct entry *entry) {
    struct rfx_answer_text *text = &file->text;
    if (file->areas != NULL) put_area_fields(text, area);
    rfx_answer_class_csv(text, entry->label);
    if (entry->pixels >= 0) {
        rfx_answer_put(text, "%" PRId64 ",", entry->pixels);
        rfx_answer_number(text, (double)entry->pixels * text->cell_area);
        rfx_answer_put(text, ",");
        rfx_answer_number(text, share_of(entry));
    } else {
        rfx_answer_put(text, ",,");
    }
    rfx_answer_put(text, ",");
    if (entry->channel != NULL) {
        rfx_answer_float(text, end_of(entry, entry->channel->smallest));
        rfx_answer_put(text, ",");
        rfx_answer_float(text, end_of(entry, entry->channel->largest));
        rfx_answer_put(text, ",");
        rfx_answer_number(text, entry->mean);
        rfx_answer_put(text, ",%" PRId64, entry->channel->nan);
    } else {
        rfx_answer_put(text, ",,,");
    }
    for (int64_t k = 0; entry->bins != NULL && k < rfx_value_counts(&file->bins); k++)
        rfx_answer_put(text, ",%" PRId64, entry->bins[k]);
    for (int k = 0; k < file->list.n; k++) {
        rfx_answer_put(text, ",");
        rfx_answer_number(text, quantile_of(file, entry, k));
    }
    rfx_answer_put(text, "\n");
}

static void put_entry(struct rfx_summary_file *file, const struct rfx_area_count *area,
                      const struct entry *entry, bool first) {
    if (file->form == RFX_ANSWER_JSON)
        put_object(file, entry, first);
    else
        put_line(file, area, entry);
}

static void put_class(struct rfx_summary_file *file, int64_t label, int64_t pixels) {
    const struct entry entry = entry_of(file, label, pixels);
    put_entry(file, NULL, &entry, file->count++ == 0);
}

/* Writes an entry for each label that occurs, or for each channel. */
static void put_classes(struct rfx_summary_file *file) {
    int64_t n = 0, next = 0;
    const struct rfx_label_count *list =
        file->labels != NULL ? rfx_label_counts_list(file->labels, &n) : NULL;
    for (int64_t i = 0; file->channels == NULL && i < n; i++)
        put_class(file, list[i].label, list[i].pixels);
    for (int64_t k = 0; file->channels != NULL && k < file->rows.channels; k++) {
        bool occurs = next < n && list[next].label == k;
        int64_t pixels = occurs ? list[next++].pixels : 0;
        put_class(file, k, file->labels != NULL ? pixels : -1);
    }
}

/* Writes the same for area k. */
static void put_area_classes(struct rfx_summary_file *file, int64_t k,
                             const struct rfx_area_count *area) {
    struct entry entry = {.area = k, .all = area->pixels};
    if (area->channels == NULL)
        for (int64_t i = 0; rfx_area_counts_next(file->areas, k, &entry.label, &entry.pixels); i++)
            put_entry(file, area, &entry, i == 0);
    for (int64_t i = 0; area->channels != NULL && i < file->rows.channels; i++) {
        const struct rfx_area_channel *channel = &area->channels[i];
        entry = (struct entry){
            .area = k,
            .label = i,
            .pixels = file->labels != NULL ? channel->pixels : -1,
            .all = area->pixels,
            .channel = &channel->values,
            .bins = area->bins != NULL ? area->bins + i * rfx_value_counts(&file->bins) : NULL,
            .mean = channel->mean};
        put_entry(file, area, &entry, i == 0);
    }
}

/* Writes the pixels and the area of the map or of an area. */
static void put_size(struct rfx_summary_file *file, int64_t pixels) {
    rfx_answer_put(&file->text, "\"pixels\":%" PRId64 ",\"area\":", pixels);
    rfx_answer_number(&file->text, (double)pixels * file->text.cell_area);
}

static void put_areas(struct rfx_summary_file *file) {
    struct rfx_answer_text *text = &file->text;
    bool json = file->form == RFX_ANSWER_JSON;
    char name[AREA_NAME];
    if (json) rfx_answer_put(text, "\n],\"within\":[");
    for (int64_t k = 0; k < rfx_area_counts_number(file->areas); k++) {
        const struct rfx_area_count area = rfx_area_counts_of(file->areas, k);
        if (json) {
            rfx_answer_put(text, "%s\n{\"number\":%" PRId64 ",", k > 0 ? "," : "", area.number);
            rfx_answer_put(text, "\"name\":");
            rfx_answer_json_string(text, name_of(&area, name));
            rfx_answer_put(text, ",");
            put_size(file, area.pixels);
            rfx_answer_put(text, ",\"classes\":[");
        }
        put_area_classes(file, k, &area);
        if (json) rfx_answer_put(text, "]}");
    }
}

/* Writes the edges of the bins as a list, or as names of columns. */
static void put_edges(struct rfx_summary_file *file) {
    struct rfx_answer_text *text = &file->text;
    const struct rfx_answer_bins *bins = &file->bins;
    bool json = file->form == RFX_ANSWER_JSON;
    rfx_answer_put(text, json ? ",\"bins\":[" : ",below_");
    if (!json) rfx_answer_number(text, bins->low);
    for (int64_t k = 0; k <= bins->n; k++) {
        if (json)
            rfx_answer_put(text, k > 0 ? "," : "");
        else
            rfx_answer_put(text, k < bins->n ? ",from_" : ",above_");
        rfx_answer_number(text, rfx_value_edge(bins, k));
    }
    if (json) rfx_answer_put(text, "]");
}

/* Writes which quantiles there are as a list, or as names of columns. */
static void put_list(struct rfx_summary_file *file) {
    struct rfx_answer_text *text = &file->text;
    bool json = file->form == RFX_ANSWER_JSON;
    for (int k = 0; k < file->list.n; k++) {
        rfx_answer_put(text, !json ? ",quantile_" : k == 0 ? ",\"quantiles\":[" : ",");
        rfx_answer_number(text, file->list.at[k]);
    }
    if (json && file->list.n > 0) rfx_answer_put(text, "]");
}

enum rfx_status rfx_summary_file_commit(struct rfx_summary_file *file, struct rfx_error *err) {
    struct rfx_answer_text *text = &file->text;
    enum rfx_status status = RFX_OK;
    if (file->quantiles != NULL) status = rfx_value_quantiles_find(file->quantiles, err);
    if (status != RFX_OK) return status;
    if (file->form == RFX_ANSWER_JSON) {
        rfx_answer_put(text, "{");
        put_size(file, file->pixels);
        if (text->epsg != 0) rfx_answer_put(text, ",\"epsg\":%d", text->epsg);
        if (file->bins.n > 0) put_edges(file);
        put_list(file);
        rfx_answer_put(text, ",\"classes\":[");
    } else {
        rfx_answer_put(text, file->areas != NULL ? "within,within_name," : "");
        rfx_answer_put(text, "label,name,pixels,area,share,smallest,largest,mean,nan");
        if (file->bins.n > 0) put_edges(file);
        put_list(file);
        rfx_answer_put(text, "\n");
    }
    put_classes(file);
    if (file->areas != NULL) put_areas(file);
    if (file->form == RFX_ANSWER_JSON) rfx_answer_put(text, "\n]}\n");
    status = rfx_answer_text_status(text, err);
    return status == RFX_OK ? rfx_output_file_commit(text->file, err) : status;
}

struct rfx_found rfx_summary_file_found(const struct rfx_summary_file *file) {
    struct rfx_found found = {.what = "summary", .count = file->count, .unit = "classes"};
    if (file->areas != NULL) found.areas = rfx_area_counts_number(file->areas);
    for (int64_t k = 0; k < found.areas; k++)
        found.empty_areas += rfx_area_counts_of(file->areas, k).pixels == 0;
    return found;
}

void rfx_summary_file_free(struct rfx_summary_file *file) {
    if (file == NULL) return;
    rfx_area_counts_free(file->areas);
    rfx_value_quantiles_free(file->quantiles);
    rfx_label_counts_free(file->labels);
    rfx_memory_release(file->mem, file->channels);
    rfx_memory_release(file->mem, file->sums);
    rfx_memory_release(file->mem, file->in_bins);
    rfx_label_rows_close(&file->rows);
    rfx_answer_text_close(&file->text);
    rfx_memory_release(file->mem, file);
}
