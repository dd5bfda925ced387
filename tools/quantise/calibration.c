/* Counts of all tensors of a network, and their files. */
#include "tools/quantise/calibration.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rfexec/output/output_file.h"
#include "rfexec/shards/shard_json.h"

static const char format_name[] = "rfexec value counts";
enum { VERSION = 1 };

/* Largest file of counts: 2,000 tensors whose bins are all filled. */
#define MOST_BYTES ((int64_t)1 << 30)

enum rfx_status rfx_calibration_create(struct rfx_memory *mem,
                                       const struct rfx_quantiser *quantiser,
                                       struct rfx_calibration *out, struct rfx_error *err) {
    size_t n = (size_t)quantiser->graph->n_nodes, counted = (size_t)quantiser->counted, at = 0;
    *out = (struct rfx_calibration){
        .mem = mem, .quantiser = quantiser, .bytes = counted * RFX_VALUE_BINS * sizeof(uint64_t)};
    out->counts = rfx_memory_calloc(mem, n, sizeof *out->counts);
    out->bins = rfx_memory_calloc(mem, counted * RFX_VALUE_BINS, sizeof *out->bins);
    if (out->counts == NULL || out->bins == NULL)
        return rfx_memory_fail(mem, "counts of values", out->bytes, err);
    for (size_t i = 0; i < n; i++)
        if (rfx_quantiser_counts(quantiser, (int)i))
            out->counts[i].bins = out->bins + at++ * RFX_VALUE_BINS;
    return RFX_OK;
}

void rfx_calibration_release(struct rfx_calibration *calibration) {
    if (calibration->mem == NULL) return;
    rfx_memory_release(calibration->mem, calibration->bins);
    rfx_memory_release(calibration->mem, calibration->counts);
    *calibration = (struct rfx_calibration){.mem = NULL};
}

/* Returns the network's name: of a model file, the name without its folders. */
static const char *name_of(const struct rfx_graph *graph) {
    const char *slash = strrchr(graph->name, '/');
    return slash == NULL ? graph->name : slash + 1;
}

/* --- writing --- */

static json_t *tensor_json(const struct rfx_value_counts *counts) {
    json_t *bins = json_array();
    for (int b = 0; b < RFX_VALUE_BINS; b++) {
        if (counts->bins[b] == 0) continue;
        (void)json_array_append_new(bins, json_integer(b));
        (void)json_array_append_new(bins, json_integer((json_int_t)counts->bins[b]));
    }
    return json_pack("{s:[f,f], s:o}", "range", (double)counts->lo, (double)counts->hi, "bins",
                     bins);
}

static json_t *document_of(const struct rfx_calibration *c) {
    const struct rfx_graph *graph = c->quantiser->graph;
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    json_t *tensors = json_object();
    for (int i = 0; i < graph->n_nodes; i++)
        if (c->counts[i].bins != NULL)
            (void)json_object_set_new(tensors, rfx_quantiser_name(c->quantiser, i),
                                      tensor_json(&c->counts[i]));
    return json_pack("{s:s, s:i, s:s, s:[I,I], s:I, s:[i,i], s:o}", "format", format_name,
                     "version", VERSION, "model", name_of(graph), "size", (json_int_t)input->h,
                     (json_int_t)input->w, "pictures", (json_int_t)c->pictures, "part", c->part,
                     c->parts, "tensors", tensors);
}

enum rfx_status rfx_calibration_write(const struct rfx_calibration *c, const char *path,
                                      struct rfx_error *err) {
    struct rfx_output_file *file = NULL;
    json_t *document = document_of(c);
    bool sealed = document != NULL && rfx_shard_json_seal(document);
    char *text = sealed ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(document);
    enum rfx_status status = RFX_OK;
    if (text == NULL) status = rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
    if (status == RFX_OK) status = rfx_output_file_open(c->mem, path, &file, err);
    if (status == RFX_OK) status = rfx_output_file_append(file, text, strlen(text), err);
    if (status == RFX_OK) status = rfx_output_file_append(file, "\n", 1, err);
    if (status == RFX_OK) status = rfx_output_file_commit(file, err);
    rfx_output_file_free(file);
    free(text);
    return status;
}

/* --- reading --- */

/* A file of counts that is being read. */
struct counts_file {
    const char *path;
    json_t *document;
    struct rfx_error *err;
};

static enum rfx_status malformed(const struct counts_file *file, const char *why) {
    return rfx_fail(file->err, RFX_STATUS_MALFORMED, "'%.200s': %s", file->path, why);
}

static enum rfx_status open_counts(struct counts_file *file, const char *path,
                                   struct rfx_error *err) {
    struct stat info;
    json_error_t where;
    *file = (struct counts_file){.path = path, .err = err};
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > MOST_BYTES)
        return malformed(file, "not a file of value counts that can be read");
    file->document = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (file->document == NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "'%.200s': line %d: %.120s", path, where.line,
                        where.text);
    const char *format = json_string_value(json_object_get(file->document, "format"));
    if (format == NULL || strcmp(format, format_name) != 0 ||
        json_integer_value(json_object_get(file->document, "version")) != VERSION)
        return malformed(file, "not a file of value counts of this version of rfexec");
    if (!rfx_shard_json_is_sealed(file->document))
        return malformed(file, "its checksum is wrong: the file was changed or is not whole");
    return RFX_OK;
}

enum rfx_status rfx_calibration_size(const char *path, int64_t *rows, int64_t *columns,
                                     struct rfx_error *err) {
    struct counts_file file;
    json_int_t h = 0, w = 0;
    enum rfx_status status = open_counts(&file, path, err);
    if (status == RFX_OK &&
        (json_unpack(file.document, "{s:[I,I]}", "size", &h, &w) != 0 || h < 1 || w < 1))
        status = malformed(&file, "it names no size of pictures");
    *rows = h;
    *columns = w;
    json_decref(file.document);
    return status;
}

/* Adds the counts of one tensor. Returns false if they are not such as rfexec writes. */
static bool add_tensor(struct rfx_value_counts *counts, json_t *tensor) {
    double lo, hi;
    json_t *bins;
    int last = -1;
    uint64_t sum = 0;
    if (json_unpack(tensor, "{s:[F,F], s:o}", "range", &lo, &hi, "bins", &bins) != 0) return false;
    size_t n = json_array_size(bins);
    if (!(lo <= hi) || !isfinite((float)lo) || !isfinite((float)hi) || n == 0 || n % 2 != 0)
        return false;
    for (size_t k = 0; k < n; k += 2) {
        json_int_t bin = json_integer_value(json_array_get(bins, k));
        json_int_t count = json_integer_value(json_array_get(bins, k + 1));
        if (bin <= last || bin >= RFX_VALUE_BINS || count < 1) return false;
        last = (int)bin;
        counts->bins[bin] += (uint64_t)count;
        sum += (uint64_t)count;
    }
    counts->lo = counts->n == 0 ? (float)lo : fminf(counts->lo, (float)lo);
    counts->hi = counts->n == 0 ? (float)hi : fmaxf(counts->hi, (float)hi);
    counts->n += sum;
    return true;
}

static enum rfx_status add_file(struct rfx_calibration *c, const struct counts_file *file) {
    const struct rfx_graph *graph = c->quantiser->graph;
    const json_t *tensors = json_object_get(file->document, "tensors");
    const char *model = json_string_value(json_object_get(file->document, "model"));
    if (model == NULL || strcmp(model, name_of(graph)) != 0 ||
        json_object_size(tensors) != (size_t)c->quantiser->counted)
        return rfx_fail(file->err, RFX_STATUS_MALFORMED,
                        "'%.200s': values of %zu tensors of '%.100s', not of the %d tensors of "
                        "'%.100s' that these options count",
                        file->path, json_object_size(tensors), model == NULL ? "" : model,
                        c->quantiser->counted, name_of(graph));
    for (int i = 0; i < graph->n_nodes; i++) {
        if (c->counts[i].bins == NULL) continue;
        const char *name = rfx_quantiser_name(c->quantiser, i);
        json_t *tensor = json_object_get(tensors, name);
        if (tensor == NULL || !add_tensor(&c->counts[i], tensor))
            return rfx_fail(file->err, RFX_STATUS_MALFORMED, "'%.200s': no counts of tensor '%s'",
                            file->path, name);
    }
    c->pictures += json_integer_value(json_object_get(file->document, "pictures"));
    return RFX_OK;
}

/* Checks that the file is a part of a job of n parts that was not read yet. */
static enum rfx_status check_part(const struct counts_file *file, int n, bool *read) {
    int part = 0, parts = 0;
    if (json_unpack(file->document, "{s:[i,i]}", "part", &part, &parts) != 0)
        return malformed(file, "it does not say which part it is");
    if (parts == 0 && n == 1) return RFX_OK;
    if (parts != n || part < 1 || part > n)
        return rfx_fail(file->err, RFX_STATUS_MALFORMED,
                        "'%.200s': part %d of %d, but %d files are given", file->path, part, parts,
                        n);
    if (read[part - 1])
        return rfx_fail(file->err, RFX_STATUS_MALFORMED, "'%.200s': part %d is given twice",
                        file->path, part);
    read[part - 1] = true;
    return RFX_OK;
}

enum rfx_status rfx_calibration_read(struct rfx_calibration *c, const char *const *paths, int n,
                                     struct rfx_error *err) {
    bool *read = rfx_memory_calloc(c->mem, (size_t)n, sizeof *read);
    enum rfx_status status =
        read == NULL ? rfx_memory_fail(c->mem, "parts", (size_t)n, err) : RFX_OK;
    for (int k = 0; status == RFX_OK && k < n; k++) {
        struct counts_file file;
        status = open_counts(&file, paths[k], err);
        if (status == RFX_OK) status = check_part(&file, n, read);
        if (status == RFX_OK) status = add_file(c, &file);
        json_decref(file.document);
    }
    rfx_memory_release(c->mem, read);
    return status;
}
