/* Streams, waiting shares and sums; see rank_outputs.h. */
#include "tools/mpi/rank_outputs.h"

#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/temp_file.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/output/output_file.h"
#include "rfexec/output/output_folder.h"
#include "tools/cli/command.h"
#include "tools/parts/part_rows.h"

#define BAND_BYTES ((size_t)1 << 20)
#define SPOOL_BYTES ((size_t)1 << 15) /* more than one holds in memory */

/* Where an output goes, as rank 0 finds. */
enum where { GOES_NOWHERE, GOES_SHARED, GOES_TO_RANK_0 };

/* Ends of all outputs: the maps that they are made of (rf_analysis/part_ends.h). */
static int count_ends(const struct rfx_graph *whole) {
    return rfx_part_ends(whole, RFX_PART_ALL);
}

static struct rfx_end end_of(const struct rfx_graph *whole, int e) {
    return rfx_part_end(whole, RFX_PART_ALL, e);
}

static const struct rfx_tensor *map_of(const struct rfx_graph *whole, int e) {
    return &whole->nodes[end_of(whole, e).node].out;
}

static bool is_map(const struct rfx_graph *whole, int e) {
    return map_of(whole, e)->layout == RFX_LAYOUT_NHWC;
}

/* At least a row. */
static size_t band_bytes(const struct rfx_graph *whole) {
    size_t most = BAND_BYTES;
    for (int e = 0; e < count_ends(whole); e++) {
        size_t row =
            is_map(whole, e) ? rfx_tensor_pixel_bytes(map_of(whole, e), map_of(whole, e)->w) : 0;
        if (row > most) most = row;
    }
    return most;
}

size_t rfx_rank_outputs_bytes(const struct rfx_ranks *ranks, const struct rfx_graph *whole,
                              const struct rfx_cli_options *options,
                              const struct rfx_geo_source *source) {
    size_t bytes = rfx_cli_outputs_bytes(whole, options, source);
    if (ranks->size == 1 || bytes == 0) return bytes;
    return bytes + band_bytes(whole) + (size_t)count_ends(whole) * SPOOL_BYTES;
}

/* Whether all ranks can write into it. */
static bool is_shared(const struct rfx_graph *whole, int k, const char *name,
                      const struct rfx_output_format *format) {
    bool maps = true;
    for (int e = 0; e < count_ends(whole); e++)
        if (end_of(whole, e).output == k) maps &= is_map(whole, e);
    return maps && format->kind == &rfx_output_npy && rfx_output_file_is_regular(name);
}

static enum rfx_status open_waiting(struct rfx_rank_outputs *o, int k, struct rfx_error *err) {
    char path[RFX_CLI_FILE_NAME];
    enum rfx_status status = RFX_OK;
    (void)snprintf(path, sizeof path, "%s/share", o->folder);
    for (int e = 0; e < count_ends(o->whole) && status == RFX_OK; e++) {
        struct rfx_rect part = rfx_part_end_share(o->whole, e, o->ranks->rank, o->ranks->size);
        if (end_of(o->whole, e).output != k || rfx_rect_is_empty(part)) continue;
        struct rfx_tensor share =
            rfx_tensor_nhwc(map_of(o->whole, e)->c, rfx_rect_rows(part), rfx_rect_cols(part));
        status = rfx_output_spool_open(o->mem, path, &share, &o->waiting[e], err);
    }
    return status;
}

/* Opens what output k goes to; the file that all write is open. */
static enum rfx_status open_stream(struct rfx_rank_outputs *o, int k, enum where where,
                                   const char *name, const struct rfx_output_format *format,
                                   struct rfx_error *err) {
    struct rfx_output_format onto = *format;
    struct rfx_cli_output *item = &o->outputs.items[k];
    if (where == GOES_TO_RANK_0 && o->ranks->rank > 0) return open_waiting(o, k, err);
    o->targets[k] = (struct rfx_npy_target){rfx_shared_file_put, o->shared[k], o->ranks->rank == 0};
    if (where == GOES_SHARED) onto.onto = &o->targets[k];
    return rfx_cli_outputs_open_file(o->whole, o->options, o->source, k, name, &onto, &item->stream,
                                     err);
}

static int open_output(struct rfx_rank_outputs *o, int k) {
    char name[RFX_CLI_FILE_NAME];
    struct rfx_error err = {{0}};
    struct rfx_output_format format = {.kind = &rfx_output_npy};
    enum rfx_status status = rfx_cli_outputs_file(o->whole, o->options, k, name, &format, &err);
    int where = name[0] == '\0'                         ? GOES_NOWHERE
                : is_shared(o->whole, k, name, &format) ? GOES_SHARED
                                                        : GOES_TO_RANK_0;
    if (status == RFX_OK) status = rfx_ranks_spread(o->ranks, &where, sizeof where, &err);
    int code =
        rfx_ranks_agree(o->ranks, status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
    if (code != RFX_EXIT_DONE || where == GOES_NOWHERE) return code;
    const struct rfx_npy_array array = rfx_output_array(&format, o->outputs.items[k].tensor);
    if (where == GOES_SHARED)
        code = rfx_shared_file_open(o->ranks, o->mem, name, rfx_npy_write_bytes(&array),
                                    &o->shared[k]);
    if (code != RFX_EXIT_DONE) return code;
    status = open_stream(o, k, (enum where)where, name, &format, &err);
    return rfx_ranks_agree(o->ranks, status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
}

/* Makes what would be written, without a name, and drops it. Pipes and terminals are left alone. */
static enum rfx_status try_output(struct rfx_memory *mem, const char *name,
                                  const struct rfx_output_format *format, struct rfx_error *err) {
    struct rfx_output_file *file = NULL;
    struct rfx_output_folder *folder = NULL;
    enum rfx_status status = RFX_OK;
    if (format->kind->folder)
        status = rfx_output_folder_open(mem, name, &folder, err);
    else if (rfx_output_file_is_regular(name))
        status = rfx_output_file_open(mem, name, &file, err);
    rfx_output_folder_free(folder);
    rfx_output_file_free(file);
    return status;
}

int rfx_rank_outputs_check(struct rfx_ranks *ranks, struct rfx_memory *mem,
                           const struct rfx_graph *whole, const struct rfx_cli_options *options) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    for (int k = 0; ranks->rank == 0 && k < whole->n_outputs && status == RFX_OK; k++) {
        char name[RFX_CLI_FILE_NAME];
        struct rfx_output_format format = {.kind = &rfx_output_npy};
        status = rfx_cli_outputs_file(whole, options, k, name, &format, &err);
        if (status == RFX_OK && name[0] != '\0') status = try_output(mem, name, &format, &err);
    }
    return rfx_ranks_agree(ranks, status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
}

static enum rfx_status allocate(struct rfx_rank_outputs *o, struct rfx_error *err) {
    const struct rfx_graph *whole = o->whole;
    size_t n = (size_t)whole->n_outputs, e = (size_t)count_ends(whole);
    enum rfx_status status = rfx_cli_outputs_list(o->mem, whole, 1, &o->outputs, err);
    if (status != RFX_OK) return status;
    o->shared = rfx_memory_calloc(o->mem, n, sizeof(struct rfx_shared_file *));
    o->targets = rfx_memory_calloc(o->mem, n, sizeof *o->targets);
    o->waiting = rfx_memory_calloc(o->mem, e, sizeof(struct rfx_output_spool *));
    o->ends = rfx_memory_calloc(o->mem, e, sizeof *o->ends);
    if (o->ranks->size > 1) o->band = rfx_memory_alloc(o->mem, band_bytes(whole));
    if (o->shared == NULL || o->targets == NULL || o->waiting == NULL || o->ends == NULL ||
        (o->band == NULL && o->ranks->size > 1))
        return rfx_memory_fail(o->mem, "outputs", band_bytes(whole), err);
    for (int i = 0, k = 0; i < count_ends(whole); i++)
        if (!rfx_rect_is_empty(rfx_part_end_share(whole, i, o->ranks->rank, o->ranks->size)))
            o->ends[k++] = i;
    return RFX_OK;
}

int rfx_rank_outputs_open(struct rfx_ranks *ranks, struct rfx_memory *mem,
                          const struct rfx_graph *whole, const struct rfx_cli_options *options,
                          const struct rfx_geo_source *source, struct rfx_rank_outputs *outputs) {
    struct rfx_error err = {{0}};
    *outputs = (struct rfx_rank_outputs){.ranks = ranks,
                                         .mem = mem,
                                         .whole = whole,
                                         .options = options,
                                         .source = source,
                                         .folder = rfx_temp_folder(options->spill)};
    enum rfx_status status = allocate(outputs, &err);
    int code =
        rfx_ranks_agree(ranks, status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
    for (int k = 0; k < whole->n_outputs && code == RFX_EXIT_DONE; k++)
        code = open_output(outputs, k);
    return code;
}

static enum rfx_status put_waiting(void *user, struct rfx_rect rect, const struct rfx_view *view,
                                   struct rfx_error *err) {
    return rfx_output_spool_write(user, rect, view, err);
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_rank_outputs *o = user;
    int e = o->ends[end->output];
    const struct rfx_end whole = end_of(o->whole, e);
    struct rfx_output_sink sink = rfx_cli_outputs_sink(&o->outputs);
    enum rfx_status status = sink.write(sink.user, &whole, rect, view, err);
    if (status != RFX_OK || o->waiting[e] == NULL) return status;
    struct rfx_rect part = rfx_part_end_share(o->whole, e, o->ranks->rank, o->ranks->size);
    return rfx_part_put_rows(part, rect, view, put_waiting, o->waiting[e], err);
}

struct rfx_output_sink rfx_rank_outputs_sink(struct rfx_rank_outputs *outputs) {
    struct rfx_output_sink sink = {.write = receive, .user = outputs};
    return sink;
}

/* Rows of end e's share of rank r, a band at a time, from there to rank 0's stream. */
static enum rfx_status move_share(struct rfx_rank_outputs *o, int e, int r, struct rfx_error *err) {
    const struct rfx_end end = end_of(o->whole, e);
    const struct rfx_tensor *map = map_of(o->whole, e);
    struct rfx_rect part = rfx_part_end_share(o->whole, e, r, o->ranks->size);
    size_t row = rfx_tensor_pixel_bytes(map, map->w);
    int64_t rows = rfx_max_i64(1, (int64_t)(band_bytes(o->whole) / row));
    enum rfx_status status = RFX_OK;
    for (int64_t y = part.y0; y < part.y1 && status == RFX_OK; y += rows) {
        struct rfx_rect rect = rfx_rect_make(y, rfx_min_i64(y + rows, part.y1), part.x0, part.x1);
        struct rfx_view view = rfx_view_of(map, o->band, rect);
        size_t bytes = row * (size_t)rfx_rect_rows(rect);
        if (o->ranks->rank == r) {
            for (int64_t i = rect.y0; i < rect.y1 && status == RFX_OK; i++)
                status = rfx_output_spool_read(o->waiting[e], i - part.y0, rfx_view_at(&view, i, 0),
                                               err);
            if (status == RFX_OK) status = rfx_ranks_send(o->ranks, 0, o->band, bytes, err);
        } else {
            status = rfx_ranks_receive(o->ranks, r, o->band, bytes, err);
            if (status == RFX_OK)
                status = rfx_output_stream_write_end(o->outputs.items[end.output].stream, &end,
                                                     rect, &view, err);
        }
    }
    return status;
}

/* Ranks have the same idea of what waits: an output that rank 0 has and that is not shared. */
static enum rfx_status move_shares(struct rfx_rank_outputs *o, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int e = 0; e < count_ends(o->whole) && status == RFX_OK; e++) {
        int k = end_of(o->whole, e).output;
        bool mine = o->ranks->rank == 0 && o->outputs.items[k].stream != NULL &&
                    o->shared[k] == NULL && is_map(o->whole, e);
        if (o->waiting[e] != NULL) status = move_share(o, e, o->ranks->rank, err);
        for (int r = 1; mine && r < o->ranks->size && status == RFX_OK; r++)
            status = move_share(o, e, r, err);
    }
    return status;
}

/* This rank's writing ends. */
static enum rfx_status close_shared(struct rfx_rank_outputs *o, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < o->outputs.count && status == RFX_OK; k++) {
        if (o->shared[k] == NULL) continue;
        status = rfx_output_stream_commit(o->outputs.items[k].stream, NULL, NULL, err);
        if (status == RFX_OK) status = rfx_shared_file_close(o->shared[k], err);
    }
    return status;
}

/* Hashes and elements of all ranks, at rank 0; all ranks add all outputs up, whatever they find. */
static enum rfx_status add_up(struct rfx_rank_outputs *o, struct rfx_error *err) {
    enum rfx_status found = RFX_OK;
    for (int k = 0; k < o->outputs.count; k++) {
        struct rfx_cli_output *item = &o->outputs.items[k];
        uint64_t sums[3] = {item->fingerprint.high, item->fingerprint.low,
                            (uint64_t)item->received};
        enum rfx_status status = rfx_ranks_sum(o->ranks, sums, 3, err);
        if (status != RFX_OK) return status;
        if (o->ranks->rank > 0) continue;
        item->fingerprint = (struct rfx_fingerprint){.high = sums[0], .low = sums[1]};
        rfx_fingerprint_hex(&item->fingerprint, item->hash);
        if (sums[2] != (uint64_t)item->tensor->elems)
            found = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                             "output '%s': %llu of %lld elements came", item->name,
                             (unsigned long long)sums[2], (long long)item->tensor->elems);
    }
    return found;
}

static enum rfx_status commit(struct rfx_rank_outputs *o, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < o->outputs.count && o->ranks->rank == 0 && status == RFX_OK; k++) {
        if (o->outputs.items[k].stream == NULL) continue;
        status = o->shared[k] != NULL
                     ? rfx_shared_file_commit(o->shared[k], err)
                     : rfx_output_stream_commit(o->outputs.items[k].stream, NULL, NULL, err);
    }
    return status;
}

int rfx_rank_outputs_finish(struct rfx_rank_outputs *outputs) {
    struct rfx_error err = {{0}};
    enum rfx_status status = move_shares(outputs, &err);
    if (status != RFX_OK) /* others wait for rows */
        rfx_ranks_end_job(outputs->ranks, rfx_cli_fail(status, &err));
    status = close_shared(outputs, &err);
    int code = rfx_ranks_agree(outputs->ranks,
                               status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
    if (code != RFX_EXIT_DONE) return code;
    status = add_up(outputs, &err);
    if (status == RFX_OK) status = commit(outputs, &err);
    return rfx_ranks_agree(outputs->ranks,
                           status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
}

void rfx_rank_outputs_free(struct rfx_rank_outputs *o) {
    if (o->mem == NULL) return;
    for (int e = 0; o->waiting != NULL && e < count_ends(o->whole); e++)
        rfx_output_spool_free(o->waiting[e]);
    for (int k = 0; o->shared != NULL && k < o->whole->n_outputs; k++)
        rfx_shared_file_free(o->shared[k]);
    rfx_cli_outputs_free(&o->outputs);
    rfx_memory_release(o->mem, o->band);
    rfx_memory_release(o->mem, o->ends);
    rfx_memory_release(o->mem, o->waiting);
    rfx_memory_release(o->mem, o->targets);
    rfx_memory_release(o->mem, o->shared);
    *o = (struct rfx_rank_outputs){0};
}
