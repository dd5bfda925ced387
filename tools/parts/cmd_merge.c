/* rfexec merge: the parts of an output, put together.
 *
 * A map is made in bands of rows, each read from the parts that have some of it, so that what is in
 * memory follows from --memory and a row's length alone; what is no map: merge_cells.h, and states
 * of a round: part_states.h. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/byte_text.h"
#include "layers/core/checked.h"
#include "rfexec/output/output_stream.h"
#include "tiler/plan/plan.h"
#include "tools/cli/command.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/parts/files/part_geo.h"
#include "tools/parts/merge_cells.h"
#include "tools/parts/merge_parts.h"
#include "tools/parts/part_states.h"
#include "tools/parts/parts_status.h"

#define MIB ((size_t)1 << 20)
#define USUAL_BAND_BYTES (16 * MIB)

struct merge {
    const struct rfx_merge_options *options;
    struct rfx_memory *mem;
    struct rfx_merge_parts parts;
    struct rfx_tensor tensor; /* the output */
    struct rfx_output_stream *stream;
    struct rfx_georeference geo; /* of the output */
    int64_t band_rows;           /* of a map */
    float *band;                 /* band_rows x columns x channels */
};

static bool is_map(const struct merge *m) {
    return m->parts.files[0].cells.of == 0;
}

/* That of the first part; all are of one picture. */
static enum rfx_status read_georeference(struct merge *m, struct rfx_output_format *format,
                                         struct rfx_error *err) {
    if (!format->kind->placed) return RFX_OK;
    enum rfx_status status = rfx_part_geo_parse(m->mem, m->parts.files[0].geo, &m->geo, err);
    if (status != RFX_OK)
        return rfx_fail_within(err, status, "part '%.200s'", m->options->words.args[0]);
    format->geo = &m->geo;
    return RFX_OK;
}

/* Of a map as many rows as the budget allows, a usual number of them without one. */
static enum rfx_status allocate_band(struct merge *m, const struct rfx_output_format *format,
                                     struct rfx_error *err) {
    size_t row = is_map(m) ? rfx_tensor_pixel_bytes(&m->tensor, m->tensor.w) : 0;
    size_t fixed = rfx_plan_reserve_bytes(1) + rfx_output_stream_bytes(format, &m->tensor) +
                   rfx_georeference_bytes(&m->geo) + rfx_merge_parts_bytes(m->parts.n) +
                   m->parts.picture_bytes;
    size_t budget = m->options->memory_bytes, band = USUAL_BAND_BYTES;
    if (budget != 0 && budget < fixed + row) {
        char needs[RFX_BYTE_TEXT], has[RFX_BYTE_TEXT];
        rfx_byte_texts(fixed + row, budget, needs, has);
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "needs at least %zu bytes (%s), the budget is %s: a row of the output "
                        "%.1f MiB, writing and process %.1f MiB",
                        fixed + row, needs, has, (double)row / (double)MIB,
                        (double)fixed / (double)MIB);
    }
    if (row == 0) return RFX_OK;
    if (budget != 0 && budget - fixed < band) band = budget - fixed;
    m->band_rows = rfx_max_i64(1, rfx_min_i64((int64_t)(band / row), m->tensor.h));
    m->band = rfx_memory_alloc(m->mem, (size_t)m->band_rows * row);
    return m->band != NULL
               ? RFX_OK
               : rfx_memory_fail(m->mem, "a band of rows", (size_t)m->band_rows * row, err);
}

/* One row of one channel of a part, columns of the map, into the band. */
static enum rfx_status read_row(struct merge *m, const struct rfx_merge_array *array, int64_t c,
                                int64_t y, int64_t band_y, struct rfx_error *err) {
    const struct rfx_tensor *map = &m->tensor;
    struct rfx_rect rect = m->parts.files[array->part].rect;
    int64_t rows = rfx_rect_rows(rect), cols = rfx_rect_cols(rect);
    int64_t from = (c * rows + y - rect.y0) * cols;
    const struct rfx_spread at = rfx_part_file_end(&m->parts.files[0]).at;
    int64_t to = y * at.row_step + rect.x0 * at.column_step + c * at.channel_step;
    float *band = m->band + ((y - band_y) * map->w + rect.x0) * map->c + c;
    for (int64_t x = 0; x < cols; x += RFX_MERGE_CHUNK) {
        int64_t n = rfx_min_i64(RFX_MERGE_CHUNK, cols - x);
        enum rfx_status status = rfx_merge_parts_take(
            &m->parts, array, from + x, to + x * at.column_step, at.column_step, n, err);
        if (status != RFX_OK) return status;
        for (int64_t i = 0; i < n; i++) band[(x + i) * map->c] = m->parts.chunk[i];
    }
    return RFX_OK;
}

static enum rfx_status read_part(struct merge *m, int part, struct rfx_range rows,
                                 struct rfx_error *err) {
    struct rfx_rect rect = m->parts.files[part].rect;
    int64_t lo = rfx_max_i64(rows.lo, rect.y0), hi = rfx_min_i64(rows.hi, rect.y1);
    struct rfx_merge_array array;
    if (lo >= hi) return RFX_OK;
    enum rfx_status status = rfx_merge_parts_open(&m->parts, part, &array, err);
    if (status != RFX_OK) return status;
    for (int64_t c = 0; c < m->tensor.c && status == RFX_OK; c++)
        for (int64_t y = lo; y < hi && status == RFX_OK; y++)
            status = read_row(m, &array, c, y, rows.lo, err);
    (void)close(array.fd);
    return status;
}

static enum rfx_status copy_bands(struct merge *m, struct rfx_cli_progress *progress,
                                  struct rfx_error *err) {
    const struct rfx_tensor *map = &m->tensor;
    enum rfx_status status = RFX_OK;
    for (int64_t y = 0; y < map->h && status == RFX_OK; y += m->band_rows) {
        struct rfx_range rows = {y, rfx_min_i64(y + m->band_rows, map->h)};
        struct rfx_rect rect = rfx_rect_make(rows.lo, rows.hi, 0, map->w);
        struct rfx_view view = rfx_view_of(map, m->band, rect);
        for (int i = 0; i < m->parts.n && status == RFX_OK; i++)
            status = read_part(m, i, rows, err);
        if (status == RFX_OK) status = rfx_output_stream_write(m->stream, rect, &view, err);
        if (status == RFX_OK && rfx_cli_progress_step(progress, rows.hi, map->h) != 0)
            status = rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
    }
    for (int i = 0; i < m->parts.n && status == RFX_OK; i++)
        status = rfx_merge_parts_check(&m->parts, i, err);
    return status;
}

static enum rfx_status copy(struct merge *m, struct rfx_error *err) {
    struct rfx_cli_progress progress;
    rfx_cli_progress_start(&progress, "merge");
    enum rfx_status status = is_map(m) ? copy_bands(m, &progress, err)
                                       : rfx_merge_cells(&m->parts, m->stream, &progress, err);
    if (status == RFX_OK)
        status = rfx_output_stream_commit(m->stream, rfx_cli_progress_step, &progress, err);
    rfx_cli_progress_end(&progress);
    return status;
}

static const struct rfx_shape *output_shape(const struct merge *m) {
    const struct rfx_stored *stored = &m->parts.files[0].stored;
    return stored->reshaped ? &stored->shape : &m->tensor.shape;
}

static int print_result(const struct merge *m) {
    const struct rfx_part_file *first = &m->parts.files[0];
    char hash[RFX_FINGERPRINT_CHARS], shape[96], peak[RFX_HUMAN_CHARS];
    rfx_merge_parts_hash(&m->parts, hash);
    if (m->options->json)
        return rfx_report_print(
            json_pack("{s:i, s:s, s:i, s:O, s:{s:s, s:o, s:s}, s:{s:I}}", "schema", RFX_JSON_SCHEMA,
                      "command", "merge", "parts", m->parts.n, "run", first->run, "output", "name",
                      first->output, "shape", rfx_report_shape(output_shape(m)), "hash", hash,
                      "measured", "peak_rss_bytes", (json_int_t)rfx_peak_rss_bytes()));
    printf("parts      %d of one run, without gap or overlap\n", m->parts.n);
    printf("measured   %s peak RSS\n", rfx_human_bytes(rfx_peak_rss_bytes(), peak));
    printf("output     %s %s, hash %s\n", first->output, rfx_human_shape(output_shape(m), shape),
           hash);
    return RFX_EXIT_DONE;
}

static int merge_output(const struct rfx_merge_options *options, struct rfx_memory *mem) {
    struct merge m = {.options = options, .mem = mem};
    struct rfx_output_format format;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_merge_parts_read(mem, options, &m.parts, &err);
    if (status == RFX_OK)
        m.tensor =
            is_map(&m) ? rfx_part_file_map(&m.parts.files[0]) : rfx_merge_cells_tensor(&m.parts);
    if (status == RFX_OK)
        status = rfx_merge_format(options, &m.tensor, &m.parts.files[0].stored, &format, &err);
    if (status == RFX_OK) status = read_georeference(&m, &format, &err);
    if (status == RFX_OK) status = allocate_band(&m, &format, &err);
    if (status == RFX_OK)
        status =
            rfx_output_stream_open(mem, options->output.file, &format, &m.tensor, &m.stream, &err);
    if (status == RFX_OK) status = copy(&m, &err);
    int code = status == RFX_OK ? print_result(&m) : rfx_cli_fail(status, &err);
    rfx_output_stream_free(m.stream);
    rfx_georeference_release(&m.geo);
    rfx_memory_release(mem, m.band);
    rfx_merge_parts_release(&m.parts);
    return code;
}

/* The file that is read as part or states, or beside them, and that `path` names too; NULL. */
static const char *find_input(const struct rfx_merge_options *options, const char *path, char *name,
                              size_t size) {
    struct stat out, in;
    if (stat(path, &out) != 0) return NULL;
    for (int i = 0; i < options->words.n_args; i++)
        for (int k = 0; k < 2; k++) {
            (void)snprintf(name, size, "%s%s", options->words.args[i], k == 0 ? "" : ".json");
            if (stat(name, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
                return name;
        }
    return NULL;
}

/* What the options lack. */
static int check_options(const struct rfx_merge_options *options) {
    char name[RFX_PART_PATH_CHARS];
    if (options->status != NULL && options->words.n_args > 0) {
        rfx_cli_message("--status only looks at a folder: it excludes PART");
        return RFX_EXIT_USAGE;
    }
    if (options->status != NULL) return RFX_EXIT_DONE;
    if (options->words.n_args == 0) {
        rfx_cli_message("merge needs a PART, or --status DIR");
        return RFX_EXIT_USAGE;
    }
    if (find_input(options, options->output.file, name, sizeof name) != NULL) {
        rfx_cli_message("-o '%s' would write over '%s', which is merged: name another file",
                        options->output.file, name);
        return RFX_EXIT_USAGE;
    }
    return RFX_EXIT_DONE;
}

static int run(void *given) {
    const struct rfx_merge_options *options = given;
    int code = check_options(options);
    if (code != RFX_EXIT_DONE) return code;
    struct rfx_memory *mem = rfx_cli_memory_create();
    if (mem == NULL) {
        rfx_cli_message("out of memory at start");
        return RFX_EXIT_SYSTEM;
    }
    if (options->status != NULL)
        code = rfx_parts_status(options, mem);
    else if (rfx_part_states_is_file(options->words.args[0]))
        code = rfx_part_merge_states(options, mem);
    else
        code = merge_output(options, mem);
    rfx_memory_free(mem);
    return code;
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(rfx_merge_options, "memory", BYTES, memory_bytes, "BYTES",
                   "memory budget of the whole process, such as 64MiB or 1.5GiB", .letter = 'm'),
    RFX_CLI_OPTION(rfx_merge_options, "status", TEXT, status, "DIR",
                   "merge nothing; say which parts in this folder are there, missing or damaged, "
                   "and which commands make the missing ones",
                   .excludes = "output"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("merge options", rows);

static struct rfx_merge_options values;

static const struct rfx_cli_use uses[] = {
    {&group, 0},
    RFX_CLI_USE(file, rfx_merge_options, output),
    RFX_CLI_USE(samples, rfx_merge_options, output),
    RFX_CLI_USE(format, rfx_merge_options, output),
    RFX_CLI_USE(json, rfx_merge_options, json),
};

const struct rfx_cli_command rfx_cmd_merge = {
    .name = "merge",
    .args =
        "PART.npy [PART.npy ...] -o FILE [--memory BYTES] [--json]\n"
        "       rfexec merge --status DIR [--json]",
    .summary = "put the parts of an output together that 'run --part' made",
    .details =
        "All parts must be of one run: the same model, input, version and options that change\n"
        "bits, as the JSON file beside each part says. The parts must cover the output without\n"
        "gap or overlap and must not have changed since they were made. FILE is written in bands\n"
        "of rows inside the budget, as -o of run would write it; the hash is that of a single\n"
        "run. The exit code is 3 when parts are missing, doubled, changed or of other runs.\n"
        "--status reads all bytes of the parts in a folder, such as OUT.parts of run_parts.sh,\n"
        "and says which are there, missing, damaged or in the way, and the commands that make the\n"
        "missing ones. The exit code is 0 when all parts are there, else 3.\n",
    .examples =
        "rfexec merge part1.npy part2.npy part3.npy -o map.npy\n"
        "rfexec merge part*.npy -o large.tif --memory 64MiB\n"
        "rfexec merge --status large.npy.parts\n",
    RFX_CLI_TABLE(uses),
    .needs = "output status",
    .min_args = 0,
    .max_args = RFX_CLI_MAX_PARTS,
    .values = &values,
    .run = run,
};
