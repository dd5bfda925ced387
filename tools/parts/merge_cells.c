/* Part by part, run by run of elements that lie together in the part and in the output, so that
 * what is in memory does not hang on the output's size. Every part's elements are hashed again:
 * what was changed since it was made is found before the output gets its name. */
#include "tools/parts/merge_cells.h"

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

#define MIB ((size_t)1 << 20)
enum { CHUNK_ELEMS = 16384 };

struct merge {
    const struct rfx_cli_options *options;
    struct rfx_memory *mem;
    int n;
    struct rfx_part_file *parts;
    struct rfx_tensor tensor; /* of the output */
    struct rfx_output_stream *stream;
    struct rfx_fingerprint all;
    float *chunk; /* CHUNK_ELEMS */
};

bool rfx_part_is_cells(const char *path) {
    struct rfx_part_file part;
    if (rfx_part_file_read(path, &part, NULL) != RFX_OK) return false;
    bool cells = part.cells.of > 0;
    rfx_part_file_release(&part);
    return cells;
}

static enum rfx_status read_parts(struct merge *m, struct rfx_error *err) {
    const char *const *paths = m->options->args;
    size_t n = (size_t)m->options->n_args;
    char why[300];
    m->parts = rfx_memory_calloc(m->mem, n, sizeof *m->parts);
    m->chunk = rfx_memory_alloc(m->mem, CHUNK_ELEMS * sizeof *m->chunk);
    if (m->parts == NULL || m->chunk == NULL)
        return rfx_memory_fail(m->mem, "parts", n * sizeof *m->parts, err);
    for (int i = 0; i < m->options->n_args; i++) {
        enum rfx_status status = rfx_part_file_read(paths[i], &m->parts[i], err);
        if (status != RFX_OK) return status;
        m->n++;
        if (!rfx_part_file_same_run(&m->parts[0], &m->parts[i], why, sizeof why))
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "parts '%.80s' and '%.80s' are not of one run: %s", paths[0], paths[i],
                            why);
    }
    int64_t elems = m->parts[0].cells.of * m->parts[0].cells.channels;
    m->tensor = (struct rfx_tensor){.layout = RFX_LAYOUT_PLAIN,
                                    .shape = m->parts[0].shape,
                                    .c = elems,
                                    .h = 1,
                                    .w = 1,
                                    .elems = elems,
                                    .elem = RFX_ELEM_FLOAT32};
    return rfx_part_check_cover(m->parts, paths, m->n, err);
}

static enum rfx_status check_budget(const struct merge *m, const struct rfx_output_format *format,
                                    struct rfx_error *err) {
    size_t needed = rfx_plan_reserve_bytes(1) + rfx_output_stream_bytes(format, &m->tensor) +
                    CHUNK_ELEMS * sizeof *m->chunk + (size_t)m->n * sizeof *m->parts;
    if (m->options->memory_bytes == 0 || m->options->memory_bytes >= needed) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE, "needs at least %zu bytes (%.1f MiB)",
                    needed, (double)needed / (double)MIB);
}

/* Elements that follow each other in the output: a row of a map of one channel. */
static enum rfx_status put(struct merge *m, int64_t to, int64_t count, struct rfx_error *err) {
    struct rfx_end end = {.channels = 1, .at = {to, count, 1, m->tensor.elems + 1}};
    struct rfx_rect row = rfx_rect_make(0, 1, 0, count);
    struct rfx_view view = rfx_view_dense(m->chunk, row, 1);
    return rfx_output_stream_write_end(m->stream, &end, row, &view, err);
}

static enum rfx_status copy_run(struct merge *m, int part, int fd, int64_t offset,
                                struct rfx_part_run run, struct rfx_fingerprint *found,
                                struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < run.count && status == RFX_OK; i += CHUNK_ELEMS) {
        int64_t n = rfx_min_i64(CHUNK_ELEMS, run.count - i);
        status = rfx_part_file_values(m->options->args[part], fd,
                                      offset + (int64_t)rfx_floats_bytes(run.from + i), n, m->chunk,
                                      err);
        if (status == RFX_OK) rfx_fingerprint_add(found, run.to + i, m->chunk, n);
        if (status == RFX_OK) status = put(m, run.to + i, n, err);
    }
    return status;
}

static enum rfx_status copy_part(struct merge *m, int part, struct rfx_error *err) {
    const struct rfx_part_file *file = &m->parts[part];
    const char *path = m->options->args[part];
    struct rfx_fingerprint found = {0};
    char hash[RFX_FINGERPRINT_CHARS];
    int64_t offset;
    int fd;
    enum rfx_status status = rfx_part_file_open(path, file, &fd, &offset, err);
    if (status != RFX_OK) return status;
    for (int64_t i = 0; i < rfx_part_cells_runs(&file->cells) && status == RFX_OK; i++)
        status = copy_run(m, part, fd, offset, rfx_part_cells_run(&file->cells, i), &found, err);
    (void)close(fd);
    if (status != RFX_OK) return status;
    rfx_fingerprint_hex(&found, hash);
    m->all.high += found.high;
    m->all.low += found.low;
    if (strcmp(hash, file->fingerprint) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "part '%.200s': its values have the hash %s, not %s: they were changed since "
                    "it was made",
                    path, hash, file->fingerprint);
}

static enum rfx_status copy_parts(struct merge *m, struct rfx_error *err) {
    struct rfx_cli_progress progress;
    enum rfx_status status = RFX_OK;
    rfx_cli_progress_start(&progress, "merge");
    for (int i = 0; i < m->n && status == RFX_OK; i++) {
        status = copy_part(m, i, err);
        if (status == RFX_OK && rfx_cli_progress_step(&progress, i + 1, m->n) != 0)
            status = rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
    }
    if (status == RFX_OK) status = rfx_output_stream_commit(m->stream, NULL, NULL, err);
    rfx_cli_progress_end(&progress);
    return status;
}

static int print_result(const struct merge *m) {
    char hash[RFX_FINGERPRINT_CHARS], shape[96], peak[RFX_HUMAN_CHARS];
    rfx_fingerprint_hex(&m->all, hash);
    if (m->options->json)
        return rfx_report_print(
            json_pack("{s:i, s:s, s:i, s:O, s:{s:s, s:o, s:s}, s:{s:I}}", "schema", RFX_JSON_SCHEMA,
                      "command", "merge", "parts", m->n, "run", m->parts[0].run, "output", "name",
                      m->parts[0].output, "shape", rfx_report_shape(&m->tensor.shape), "hash", hash,
                      "measured", "peak_rss_bytes", (json_int_t)rfx_peak_rss_bytes()));
    printf("parts      %d of one run, without gap or overlap\n", m->n);
    printf("measured   %s peak RSS\n", rfx_human_bytes(rfx_peak_rss_bytes(), peak));
    printf("output     %s %s, hash %s\n", m->parts[0].output,
           rfx_human_shape(&m->tensor.shape, shape), hash);
    return RFX_EXIT_DONE;
}

static enum rfx_status choose_format(const struct merge *m, struct rfx_output_format *format,
                                     struct rfx_error *err) {
    const struct rfx_cli_options *o = m->options;
    *format = (struct rfx_output_format){.kind = RFX_OUTPUT_NPY};
    bool known = rfx_cli_output_format(o, o->output, format);
    if (known && format->kind == RFX_OUTPUT_NPY && o->tiff_tile == 0 && o->tiff_compress == NULL)
        return rfx_output_format_check(format, &m->tensor, o->output, err);
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "-o '%.200s': this output is no map of rows, columns and channels; it is "
                    "written as .npy",
                    o->output);
}

int rfx_part_merge_cells(const struct rfx_cli_options *options, struct rfx_memory *mem) {
    struct merge m = {.options = options, .mem = mem};
    struct rfx_output_format format;
    struct rfx_error err = {{0}};
    enum rfx_status status = choose_format(&m, &format, &err);
    if (status == RFX_OK) status = read_parts(&m, &err);
    if (status == RFX_OK) status = check_budget(&m, &format, &err);
    if (status == RFX_OK)
        status = rfx_output_stream_open(mem, options->output, &format, &m.tensor, &m.stream, &err);
    if (status == RFX_OK) status = copy_parts(&m, &err);
    int code = status == RFX_OK ? print_result(&m) : rfx_cli_fail(status, &err);
    rfx_output_stream_free(m.stream);
    for (int i = 0; i < m.n; i++) rfx_part_file_release(&m.parts[i]);
    rfx_memory_release(mem, m.parts);
    rfx_memory_release(mem, m.chunk);
    return code;
}
