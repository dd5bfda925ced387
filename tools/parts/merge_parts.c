/* Reading and checking parts; see merge_parts.h. */
#include "tools/parts/merge_parts.h"

#include <string.h>
#include <unistd.h>

#include "layers/core/floats.h"
#include "tools/cli/outputs.h"
#include "tools/parts/files/part_cover.h"
#include "tools/parts/files/part_picture.h"

size_t rfx_merge_parts_bytes(int n) {
    struct rfx_merge_parts *parts;
    return (size_t)n * (sizeof *parts->files + sizeof *parts->found) +
           RFX_MERGE_CHUNK * sizeof *parts->chunk;
}

/* Rows that two parts have read must be the same in both. */
static enum rfx_status check_picture(const struct rfx_merge_parts *parts, int part,
                                     struct rfx_error *err) {
    int64_t row;
    for (int i = 0; i < part; i++)
        if (!rfx_part_picture_agrees(parts->files[i].picture, parts->files[part].picture, &row))
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "parts '%.80s' and '%.80s' are not of one image: row %lld was another "
                            "one when they read it",
                            parts->paths[i], parts->paths[part], (long long)row);
    return RFX_OK;
}

static enum rfx_status read_part(struct rfx_merge_parts *parts, int part, struct rfx_error *err) {
    const char *path = parts->paths[part];
    const struct rfx_part_file *first = &parts->files[0];
    struct rfx_part_file *file = &parts->files[part];
    char why[300];
    enum rfx_status status = rfx_part_file_read(path, file, err);
    if (status != RFX_OK) return status;
    parts->n = part + 1;
    if (!rfx_part_file_same_run(first, file, why, sizeof why))
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "parts '%.80s' and '%.80s' are not of one run: %s", parts->paths[0], path,
                        why);
    json_t *picture = json_incref(file->picture);
    if (part > 0)
        rfx_part_file_release(file);
    else
        json_decref(picture);
    file->picture = picture;
    parts->picture_bytes += 2 * json_string_length(json_object_get(picture, "sums"));
    return check_picture(parts, part, err);
}

/* Before the output is begun. */
static enum rfx_status check_arrays(const struct rfx_merge_parts *parts, struct rfx_error *err) {
    struct rfx_merge_array array;
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < parts->n && status == RFX_OK; i++) {
        status = rfx_merge_parts_open(parts, i, &array, err);
        if (status == RFX_OK) (void)close(array.fd);
    }
    return status;
}

enum rfx_status rfx_merge_parts_read(struct rfx_memory *mem,
                                     const struct rfx_merge_options *options,
                                     struct rfx_merge_parts *out, struct rfx_error *err) {
    int n = options->words.n_args;
    *out = (struct rfx_merge_parts){.mem = mem, .paths = options->words.args};
    out->files = rfx_memory_calloc(mem, (size_t)n, sizeof *out->files);
    out->found = rfx_memory_calloc(mem, (size_t)n, sizeof *out->found);
    out->chunk = rfx_memory_alloc(mem, RFX_MERGE_CHUNK * sizeof *out->chunk);
    if (out->files == NULL || out->found == NULL || out->chunk == NULL)
        return rfx_memory_fail(mem, "parts", rfx_merge_parts_bytes(n), err);
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < n && status == RFX_OK; i++) status = read_part(out, i, err);
    if (status == RFX_OK) status = rfx_part_check_cover(out->files, out->paths, n, err);
    return status == RFX_OK ? check_arrays(out, err) : status;
}

void rfx_merge_parts_release(struct rfx_merge_parts *parts) {
    for (int i = 0; i < parts->n; i++) rfx_part_file_release(&parts->files[i]);
    rfx_memory_release(parts->mem, parts->files);
    rfx_memory_release(parts->mem, parts->found);
    rfx_memory_release(parts->mem, parts->chunk);
}

enum rfx_status rfx_merge_parts_open(const struct rfx_merge_parts *parts, int part,
                                     struct rfx_merge_array *out, struct rfx_error *err) {
    out->part = part;
    return rfx_part_file_open(parts->paths[part], &parts->files[part], &out->fd, &out->offset, err);
}

enum rfx_status rfx_merge_parts_take(struct rfx_merge_parts *parts,
                                     const struct rfx_merge_array *array, int64_t from, int64_t to,
                                     int64_t step, int64_t n, struct rfx_error *err) {
    const struct rfx_end end = {.channels = 1, .at = {to, 0, step, 1}};
    const struct rfx_view view = rfx_view_dense(parts->chunk, rfx_rect_make(0, 1, 0, n), 1);
    int64_t offset = array->offset + (int64_t)rfx_floats_bytes(from);
    enum rfx_status status =
        rfx_part_file_values(parts->paths[array->part], array->fd, offset, n, parts->chunk, err);
    if (status == RFX_OK)
        rfx_fingerprint_add_end(&parts->found[array->part], &end, view.rect, &view);
    return status;
}

enum rfx_status rfx_merge_parts_check(const struct rfx_merge_parts *parts, int part,
                                      struct rfx_error *err) {
    char found[RFX_FINGERPRINT_CHARS];
    rfx_fingerprint_hex(&parts->found[part], found);
    if (strcmp(found, parts->files[part].fingerprint) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "part '%.200s': its values have the hash %s, not %s: they were changed since "
                    "it was made",
                    parts->paths[part], found, parts->files[part].fingerprint);
}

void rfx_merge_parts_hash(const struct rfx_merge_parts *parts, char hash[RFX_FINGERPRINT_CHARS]) {
    struct rfx_fingerprint all = {0};
    for (int i = 0; i < parts->n; i++) {
        all.high += parts->found[i].high;
        all.low += parts->found[i].low;
    }
    rfx_fingerprint_hex(&all, hash);
}

enum rfx_status rfx_merge_format(const struct rfx_merge_options *options,
                                 const struct rfx_tensor *tensor, const struct rfx_stored *stored,
                                 struct rfx_output_format *format, struct rfx_error *err) {
    char ends[RFX_OUTPUT_ENDS];
    if (!rfx_cli_output_format(&options->output, 0, options->output.file, format))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "-o '%.200s': the name must end in %s",
                        options->output.file, rfx_output_ends(ends));
    const char *why = rfx_cli_options_misfit(&options->output, format->kind->takes);
    if (why != NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "-o '%.200s': %s", options->output.file,
                        why);
    format->stored = *stored;
    return rfx_output_format_check(format, tensor, options->output.file, err);
}
