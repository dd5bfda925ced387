/* rfexec merge: the parts of an output, put together.
 *
 * The output is made in bands of rows, each read from the parts that have some of it, so that what
 * is in memory follows from --memory and a row's length alone. Every part's elements are hashed
 * again: what was changed since it was made is found before the output gets its name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_stream.h"
#include "tiler/plan/plan.h"
#include "tools/cli/command.h"
#include "tools/cli/option_checks.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/parts/files/part_cover.h"
#include "tools/parts/files/part_file.h"
#include "tools/parts/files/part_geo.h"
#include "tools/parts/merge_cells.h"
#include "tools/parts/part_states.h"

#define MIB ((size_t)1 << 20)
#define USUAL_BAND_BYTES (16 * MIB)
enum { CHUNK_ELEMS = 16384 };

struct merge {
    const struct rfx_cli_options *options;
    struct rfx_memory *mem;
    int n;
    struct rfx_part_file *parts;
    struct rfx_fingerprint *found; /* n: of the elements read so far */
    int64_t *offsets;              /* n: of the values in the file */
    struct rfx_tensor map;
    struct rfx_output_stream *stream;
    struct rfx_georeference geo; /* of the output */
    int64_t band_rows;
    float *band;  /* band_rows x columns x channels */
    float *chunk; /* CHUNK_ELEMS */
};

static enum rfx_status read_parts(struct merge *m, struct rfx_error *err) {
    const char *const *paths = m->options->args;
    char why[300];
    for (int i = 0; i < m->options->n_args; i++, m->n++) {
        int fd;
        enum rfx_status status = rfx_part_file_read(paths[i], &m->parts[i], err);
        if (status != RFX_OK) return status;
        status = rfx_part_file_open(paths[i], &m->parts[i], &fd, &m->offsets[i], err);
        if (status == RFX_OK) (void)close(fd);
        bool same =
            status != RFX_OK || rfx_part_file_same_run(&m->parts[0], &m->parts[i], why, sizeof why);
        if (!same)
            status = rfx_fail(err, RFX_STATUS_MALFORMED,
                              "parts '%.80s' and '%.80s' are not of one run: %s", paths[0],
                              paths[i], why);
        if (status != RFX_OK) {
            rfx_part_file_release(&m->parts[i]);
            return status;
        }
    }
    m->map = rfx_part_file_map(&m->parts[0]);
    return rfx_part_check_cover(m->parts, paths, m->n, err);
}

static enum rfx_status allocate_tables(struct merge *m, struct rfx_error *err) {
    size_t n = (size_t)m->options->n_args;
    m->parts = rfx_memory_calloc(m->mem, n, sizeof *m->parts);
    m->found = rfx_memory_calloc(m->mem, n, sizeof *m->found);
    m->offsets = rfx_memory_calloc(m->mem, n, sizeof *m->offsets);
    m->chunk = rfx_memory_alloc(m->mem, CHUNK_ELEMS * sizeof *m->chunk);
    if (m->parts != NULL && m->found != NULL && m->offsets != NULL && m->chunk != NULL)
        return RFX_OK;
    return rfx_memory_fail(m->mem, "parts", n * sizeof *m->parts, err);
}

/* That of the first part; all are of one picture. */
static enum rfx_status read_georeference(struct merge *m, struct rfx_output_format *format,
                                         struct rfx_error *err) {
    if (!rfx_output_is_tiff(format->kind)) return RFX_OK;
    enum rfx_status status = rfx_part_geo_parse(m->mem, m->parts[0].geo, &m->geo, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "part '%.200s'", m->options->args[0]);
    format->geo = &m->geo;
    return RFX_OK;
}

static enum rfx_status choose_format(const struct merge *m, struct rfx_output_format *format,
                                     struct rfx_error *err) {
    const struct rfx_cli_options *o = m->options;
    bool known = rfx_cli_output_format(o, o->output, format);
    if (!known)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "-o '%.200s': the name must end in .npy, .tif, .tiff, .png or .zarr",
                        o->output);
    const char *why = rfx_cli_options_misfit(o, 1U << format->kind);
    if (why != NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "-o '%.200s': %s", o->output, why);
    return RFX_OK;
}

/* As many rows as the budget allows, a usual number of them without one. */
static enum rfx_status allocate_band(struct merge *m, const struct rfx_output_format *format,
                                     struct rfx_error *err) {
    size_t row = rfx_tensor_pixel_bytes(&m->map, m->map.w), band = USUAL_BAND_BYTES;
    size_t fixed = rfx_plan_reserve_bytes(1) + rfx_output_stream_bytes(format, &m->map) +
                   rfx_georeference_bytes(&m->geo) + CHUNK_ELEMS * sizeof *m->chunk;
    size_t budget = m->options->memory_bytes;
    if (budget != 0 && budget < fixed + row)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "needs at least %zu bytes (%.1f MiB): a row of the output %.1f MiB, "
                        "writing and process %.1f MiB",
                        fixed + row, (double)(fixed + row) / (double)MIB, (double)row / (double)MIB,
                        (double)fixed / (double)MIB);
    if (budget != 0 && budget - fixed < band) band = budget - fixed;
    m->band_rows = rfx_max_i64(1, rfx_min_i64((int64_t)(band / row), m->map.h));
    m->band = rfx_memory_alloc(m->mem, (size_t)m->band_rows * row);
    return m->band != NULL
               ? RFX_OK
               : rfx_memory_fail(m->mem, "a band of rows", (size_t)m->band_rows * row, err);
}

/* One row of one channel of a part, columns of the map, into the band. */
static enum rfx_status read_row(struct merge *m, int part, int fd, int64_t c, int64_t y,
                                int64_t band_y, struct rfx_error *err) {
    struct rfx_rect rect = m->parts[part].rect;
    int64_t rows = rfx_rect_rows(rect), cols = rfx_rect_cols(rect);
    int64_t first = (c * rows + y - rect.y0) * cols;
    for (int64_t x = 0; x < cols; x += CHUNK_ELEMS) {
        int64_t n = rfx_min_i64(CHUNK_ELEMS, cols - x);
        int64_t offset = m->offsets[part] + (int64_t)rfx_floats_bytes(first + x);
        enum rfx_status status =
            rfx_part_file_values(m->options->args[part], fd, offset, n, m->chunk, err);
        if (status != RFX_OK) return status;
        rfx_fingerprint_add(&m->found[part], (c * m->map.h + y) * m->map.w + rect.x0 + x, m->chunk,
                            n);
        float *to = m->band + ((y - band_y) * m->map.w + rect.x0 + x) * m->map.c + c;
        for (int64_t i = 0; i < n; i++) to[i * m->map.c] = m->chunk[i];
    }
    return RFX_OK;
}

static enum rfx_status read_part(struct merge *m, int part, struct rfx_range rows,
                                 struct rfx_error *err) {
    struct rfx_rect rect = m->parts[part].rect;
    int64_t lo = rfx_max_i64(rows.lo, rect.y0), hi = rfx_min_i64(rows.hi, rect.y1), offset;
    int fd;
    if (lo >= hi) return RFX_OK;
    enum rfx_status status =
        rfx_part_file_open(m->options->args[part], &m->parts[part], &fd, &offset, err);
    if (status != RFX_OK) return status;
    for (int64_t c = 0; c < m->map.c && status == RFX_OK; c++)
        for (int64_t y = lo; y < hi && status == RFX_OK; y++)
            status = read_row(m, part, fd, c, y, rows.lo, err);
    (void)close(fd);
    return status;
}

static enum rfx_status check_part(const struct merge *m, int part, struct rfx_error *err) {
    char found[RFX_FINGERPRINT_CHARS];
    rfx_fingerprint_hex(&m->found[part], found);
    if (strcmp(found, m->parts[part].fingerprint) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "part '%.200s': its values have the hash %s, not %s: they were changed since "
                    "it was made",
                    m->options->args[part], found, m->parts[part].fingerprint);
}

static enum rfx_status copy_bands(struct merge *m, struct rfx_error *err) {
    struct rfx_cli_progress progress;
    enum rfx_status status = RFX_OK;
    rfx_cli_progress_start(&progress, "merge");
    for (int64_t y = 0; y < m->map.h && status == RFX_OK; y += m->band_rows) {
        struct rfx_range rows = {y, rfx_min_i64(y + m->band_rows, m->map.h)};
        struct rfx_rect rect = rfx_rect_make(rows.lo, rows.hi, 0, m->map.w);
        struct rfx_view view = rfx_view_of(&m->map, m->band, rect);
        for (int i = 0; i < m->n && status == RFX_OK; i++) status = read_part(m, i, rows, err);
        if (status == RFX_OK) status = rfx_output_stream_write(m->stream, rect, &view, err);
        if (status == RFX_OK && rfx_cli_progress_step(&progress, rows.hi, m->map.h) != 0)
            status = rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
    }
    for (int i = 0; i < m->n && status == RFX_OK; i++) status = check_part(m, i, err);
    if (status == RFX_OK)
        status = rfx_output_stream_commit(m->stream, rfx_cli_progress_step, &progress, err);
    rfx_cli_progress_end(&progress);
    return status;
}

static int print_result(const struct merge *m) {
    struct rfx_fingerprint all = {0};
    char hash[RFX_FINGERPRINT_CHARS], shape[96], peak[RFX_HUMAN_CHARS];
    for (int i = 0; i < m->n; i++) {
        all.high += m->found[i].high;
        all.low += m->found[i].low;
    }
    rfx_fingerprint_hex(&all, hash);
    if (m->options->json) {
        json_t *document =
            json_pack("{s:i, s:s, s:i, s:O, s:{s:s, s:o, s:s}, s:{s:I}}", "schema", RFX_JSON_SCHEMA,
                      "command", "merge", "parts", m->n, "run", m->parts[0].run, "output", "name",
                      m->parts[0].output, "shape", rfx_report_shape(&m->map.shape), "hash", hash,
                      "measured", "peak_rss_bytes", (json_int_t)rfx_peak_rss_bytes());
        return rfx_report_print(document);
    }
    printf("parts      %d of one run, without gap or overlap\n", m->n);
    printf("measured   %s peak RSS\n", rfx_human_bytes(rfx_peak_rss_bytes(), peak));
    printf("output     %s %s, hash %s\n", m->parts[0].output, rfx_human_shape(&m->map.shape, shape),
           hash);
    return RFX_EXIT_DONE;
}

static void release(struct merge *m) {
    rfx_output_stream_free(m->stream);
    for (int i = 0; i < m->n; i++) rfx_part_file_release(&m->parts[i]);
    rfx_memory_release(m->mem, m->parts);
    rfx_georeference_release(&m->geo);
    rfx_memory_release(m->mem, m->found);
    rfx_memory_release(m->mem, m->offsets);
    rfx_memory_release(m->mem, m->chunk);
    rfx_memory_release(m->mem, m->band);
    rfx_memory_free(m->mem);
}

int rfx_cmd_merge(const struct rfx_cli_options *options) {
    struct merge m = {.options = options, .mem = rfx_cli_memory_create()};
    struct rfx_output_format format;
    struct rfx_error err = {{0}};
    if (options->output == NULL) {
        rfx_cli_message("merge needs -o FILE");
        return RFX_EXIT_USAGE;
    }
    if (m.mem == NULL) {
        rfx_cli_message("out of memory at start");
        return RFX_EXIT_SYSTEM;
    }
    if (rfx_part_states_is_file(options->args[0])) {
        int code = rfx_part_merge_states(options, m.mem);
        rfx_memory_free(m.mem);
        return code;
    }
    if (rfx_part_is_cells(options->args[0])) {
        int code = rfx_part_merge_cells(options, m.mem);
        rfx_memory_free(m.mem);
        return code;
    }
    enum rfx_status status = choose_format(&m, &format, &err);
    if (status == RFX_OK) status = allocate_tables(&m, &err);
    if (status == RFX_OK) status = read_parts(&m, &err);
    if (status == RFX_OK) status = read_georeference(&m, &format, &err);
    if (status == RFX_OK) status = rfx_output_format_check(&format, &m.map, options->output, &err);
    if (status == RFX_OK) status = allocate_band(&m, &format, &err);
    if (status == RFX_OK)
        status = rfx_output_stream_open(m.mem, options->output, &format, &m.map, &m.stream, &err);
    if (status == RFX_OK) status = copy_bands(&m, &err);
    int code = status == RFX_OK ? print_result(&m) : rfx_cli_fail(status, &err);
    release(&m);
    return code;
}
