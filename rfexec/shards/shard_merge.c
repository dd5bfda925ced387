/* Reading, checking and copying shards; see shard_merge.h. */
#include "rfexec/shards/shard_merge.h"

#include <string.h>
#include <unistd.h>

#include "layers/core/byte_text.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "rfexec/output/output_stream.h"
#include "rfexec/shards/shard_json.h"
#include "tiler/plan/plan.h"

#define MIB ((size_t)1 << 20)
#define USUAL_BAND_BYTES (16 * MIB)
enum { CHUNK = 16384 };

/* The open .npy file of a shard. */
struct array {
    int shard, fd;
    int64_t offset; /* of the values in the file */
};

/* Returns the bytes of memory for n shards and the chunk. */
static size_t held_bytes(int n) {
    struct rfx_shards *shards;
    return (size_t)n * (sizeof *shards->files + sizeof *shards->found) +
           CHUNK * sizeof *shards->chunk;
}

/* Checks that image rows which this shard and an earlier one have read have equal checksums. */
static enum rfx_status check_image(const struct rfx_shards *shards, int shard,
                                   struct rfx_error *err) {
    int64_t row;
    for (int i = 0; i < shard; i++)
        if (!rfx_shard_image_agrees(shards->files[i].picture, shards->files[shard].picture, &row))
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "parts '%.80s' and '%.80s' are not of one image: row %lld was another "
                            "one when they read it",
                            shards->paths[i], shards->paths[shard], (long long)row);
    return RFX_OK;
}

/* Reads the JSON file of a shard. Checks that the shard is of the same run and the same image as
 * the shards read before it. */
static enum rfx_status read_shard(struct rfx_shards *shards, int shard, struct rfx_error *err) {
    const char *path = shards->paths[shard];
    struct rfx_shard_file *file = &shards->files[shard];
    char why[300];
    enum rfx_status status = rfx_shard_file_read(path, file, err);
    if (status != RFX_OK) return status;
    shards->n = shard + 1;
    if (!rfx_shard_file_same_run(&shards->files[0], file, why, sizeof why))
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "parts '%.80s' and '%.80s' are not of one run: %s", shards->paths[0], path,
                        why);
    if (shard > 0) {
        json_t *picture = json_incref(file->picture);
        rfx_shard_file_release(file);
        file->picture = picture;
    }
    shards->picture_bytes += 2 * json_string_length(json_object_get(file->picture, "sums"));
    return check_image(shards, shard, err);
}

static enum rfx_status open_array(const struct rfx_shards *shards, int shard, struct array *out,
                                  struct rfx_error *err) {
    out->shard = shard;
    return rfx_shard_file_open(shards->paths[shard], &shards->files[shard], &out->fd, &out->offset,
                               err);
}

/* Checks the header and length of every array, before the output file is created. */
static enum rfx_status check_arrays(const struct rfx_shards *shards, struct rfx_error *err) {
    struct array array;
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < shards->n && status == RFX_OK; i++) {
        status = open_array(shards, i, &array, err);
        if (status == RFX_OK) (void)close(array.fd);
    }
    return status;
}

enum rfx_status rfx_shards_read(struct rfx_memory *mem, const char *const *paths, int n,
                                struct rfx_shards *out, struct rfx_error *err) {
    *out = (struct rfx_shards){.mem = mem, .paths = paths};
    out->files = rfx_memory_calloc(mem, (size_t)n, sizeof *out->files);
    out->found = rfx_memory_calloc(mem, (size_t)n, sizeof *out->found);
    out->chunk = rfx_memory_alloc(mem, CHUNK * sizeof *out->chunk);
    if (out->files == NULL || out->found == NULL || out->chunk == NULL)
        return rfx_memory_fail(mem, "parts", held_bytes(n), err);
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < n && status == RFX_OK; i++) status = read_shard(out, i, err);
    if (status == RFX_OK) status = rfx_shards_check_cover(out->files, out->paths, n, err);
    return status == RFX_OK ? check_arrays(out, err) : status;
}

void rfx_shards_release(struct rfx_shards *shards) {
    for (int i = 0; i < shards->n; i++) rfx_shard_file_release(&shards->files[i]);
    rfx_memory_release(shards->mem, shards->files);
    rfx_memory_release(shards->mem, shards->found);
    rfx_memory_release(shards->mem, shards->chunk);
}

static bool are_of_map(const struct rfx_shards *shards) {
    return shards->files[0].cells.of == 0;
}

struct rfx_tensor rfx_shards_tensor(const struct rfx_shards *shards) {
    const struct rfx_shard_file *first = &shards->files[0];
    int64_t elems = first->cells.of * first->cells.channels;
    if (are_of_map(shards)) return rfx_shard_file_map(first);
    return rfx_tensor_plain(&first->shape, elems);
}

const struct rfx_shape *rfx_shards_shape(const struct rfx_shards *shards) {
    const struct rfx_shard_file *first = &shards->files[0];
    return first->stored.reshaped ? &first->stored.shape : &first->shape;
}

void rfx_shards_hash(const struct rfx_shards *shards, char hash[RFX_FINGERPRINT_CHARS]) {
    struct rfx_fingerprint all = {0};
    for (int i = 0; i < shards->n; i++) {
        all.high += shards->found[i].high;
        all.low += shards->found[i].low;
    }
    rfx_fingerprint_hex(&all, hash);
}

struct merge {
    struct rfx_shards *shards;
    struct rfx_tensor tensor;    /* the output */
    struct rfx_output_sink sink; /* receives cells */
    struct rfx_output_stream *stream;
    struct rfx_georeference geo; /* of the output */
    bool by_cells;               /* the file takes whole cells (boxes) */
    int64_t band_rows;           /* of a map; with by_cells: cells */
    float *band;                 /* [band_rows, w, c], or [cells, channels] */
    rfx_progress_fn *progress;
    void *user;
};

/* Allocates a band of rows, for a map: USUAL_BAND_BYTES, or less if the budget leaves less. Checks
 * the budget for all outputs. */
static enum rfx_status allocate_band(struct merge *m, const struct rfx_output_format *format,
                                     size_t budget, struct rfx_error *err) {
    const struct rfx_shards *shards = m->shards;
    size_t row = are_of_map(shards) ? rfx_tensor_pixel_bytes(&m->tensor, m->tensor.w) : 0;
    if (m->by_cells) row = rfx_floats_bytes(shards->files[0].cells.channels);
    size_t fixed = rfx_plan_reserve_bytes(1) + rfx_output_stream_bytes(format, &m->tensor) +
                   rfx_georeference_bytes(&m->geo) + held_bytes(shards->n) + shards->picture_bytes;
    size_t band = USUAL_BAND_BYTES;
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
    int64_t most = m->by_cells ? CHUNK : m->tensor.h;
    m->band_rows = rfx_max_i64(1, rfx_min_i64((int64_t)(band / row), most));
    m->band = rfx_memory_alloc(shards->mem, (size_t)m->band_rows * row);
    return m->band != NULL
               ? RFX_OK
               : rfx_memory_fail(shards->mem, "a band of rows", (size_t)m->band_rows * row, err);
}

/* Reads n elements (at most CHUNK), beginning with element `from` of the array, into the chunk, and
 * adds them to the fingerprint of the shard. They are the elements `to`, `to` + step, ... of the
 * output. */
static enum rfx_status take(struct rfx_shards *shards, const struct array *array, int64_t from,
                            int64_t to, int64_t step, int64_t n, struct rfx_error *err) {
    const struct rfx_end end = {.channels = 1, .at = {to, 0, step, 1}};
    const struct rfx_view view = rfx_view_dense(shards->chunk, rfx_rect_make(0, 1, 0, n), 1);
    int64_t offset = array->offset + (int64_t)rfx_floats_bytes(from);
    enum rfx_status status = rfx_shard_file_values(shards->paths[array->shard], array->fd, offset,
                                                   n, shards->chunk, err);
    if (status == RFX_OK)
        rfx_fingerprint_add_end(&shards->found[array->shard], &end, view.rect, &view);
    return status;
}

/* Checks the fingerprint of a shard after all its elements have been read. */
static enum rfx_status check_hash(const struct rfx_shards *shards, int shard,
                                  struct rfx_error *err) {
    char found[RFX_FINGERPRINT_CHARS];
    rfx_fingerprint_hex(&shards->found[shard], found);
    return rfx_shard_file_check_hash(shards->paths[shard], &shards->files[shard], found, err);
}

/* Reports progress. CANCELLED: the caller asks to stop. */
static enum rfx_status tell(const struct merge *m, int64_t done, int64_t total,
                            struct rfx_error *err) {
    if (m->progress == NULL || m->progress(m->user, done, total) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
}

/* Copies row y of channel c of a shard into the band, which begins at row band_y. */
static enum rfx_status read_row(struct merge *m, const struct array *array, int64_t c, int64_t y,
                                int64_t band_y, struct rfx_error *err) {
    const struct rfx_tensor *map = &m->tensor;
    const struct rfx_shard_file *file = &m->shards->files[array->shard];
    struct rfx_rect rect = file->rect;
    int64_t rows = rfx_rect_rows(rect), cols = rfx_rect_cols(rect);
    int64_t from = (c * rows + y - rect.y0) * cols;
    const struct rfx_spread at = rfx_shard_file_end(&m->shards->files[0]).at;
    int64_t to = y * at.row_step + rect.x0 * at.column_step + c * at.channel_step;
    float *band = m->band + ((y - band_y) * map->w + rect.x0) * map->c + c;
    for (int64_t x = 0; x < cols; x += CHUNK) {
        int64_t n = rfx_min_i64(CHUNK, cols - x);
        enum rfx_status status =
            take(m->shards, array, from + x, to + x * at.column_step, at.column_step, n, err);
        if (status != RFX_OK) return status;
        for (int64_t i = 0; i < n; i++) band[(x + i) * map->c] = m->shards->chunk[i];
    }
    return RFX_OK;
}

/* Copies the rows of the band that are in the shard. */
static enum rfx_status read_rows(struct merge *m, int shard, struct rfx_range rows,
                                 struct rfx_error *err) {
    struct rfx_rect rect = m->shards->files[shard].rect;
    int64_t lo = rfx_max_i64(rows.lo, rect.y0), hi = rfx_min_i64(rows.hi, rect.y1);
    struct array array;
    if (lo >= hi) return RFX_OK;
    enum rfx_status status = open_array(m->shards, shard, &array, err);
    if (status != RFX_OK) return status;
    for (int64_t c = 0; c < m->tensor.c && status == RFX_OK; c++)
        for (int64_t y = lo; y < hi && status == RFX_OK; y++)
            status = read_row(m, &array, c, y, rows.lo, err);
    (void)close(array.fd);
    return status;
}

/* Writes the map band by band. */
static enum rfx_status merge_map(struct merge *m, struct rfx_error *err) {
    const struct rfx_tensor *map = &m->tensor;
    enum rfx_status status = RFX_OK;
    for (int64_t y = 0; y < map->h && status == RFX_OK; y += m->band_rows) {
        struct rfx_range rows = {y, rfx_min_i64(y + m->band_rows, map->h)};
        struct rfx_rect rect = rfx_rect_make(rows.lo, rows.hi, 0, map->w);
        struct rfx_view view = rfx_view_of(map, m->band, rect);
        for (int i = 0; i < m->shards->n && status == RFX_OK; i++)
            status = read_rows(m, i, rows, err);
        if (status == RFX_OK) status = rfx_output_stream_write(m->stream, rect, &view, err);
        if (status == RFX_OK) status = tell(m, rows.hi, map->h, err);
    }
    for (int i = 0; i < m->shards->n && status == RFX_OK; i++)
        status = check_hash(m->shards, i, err);
    return status;
}

/* Copies a span to the output, chunk by chunk. The elements of a span are contiguous in the output,
 * like a row of a map of one channel. */
static enum rfx_status copy_span(struct merge *m, const struct array *array,
                                 struct rfx_shard_span span, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < span.count && status == RFX_OK; i += CHUNK) {
        int64_t n = rfx_min_i64(CHUNK, span.count - i);
        struct rfx_end end = {.channels = 1, .at = {span.to + i, n, 1, INT64_MAX}};
        struct rfx_rect row = rfx_rect_make(0, 1, 0, n);
        struct rfx_view view = rfx_view_dense(m->shards->chunk, row, 1);
        status = take(m->shards, array, span.from + i, span.to + i, 1, n, err);
        if (status == RFX_OK) status = m->sink.write(m->sink.user, &end, row, &view, err);
    }
    return status;
}

/* Reads n cells, beginning with the k-th cell of the shard's range `range`, into the band and
 * passes them on with all channels. */
static enum rfx_status put_cells(struct merge *m, const struct array *array, int range, int64_t k,
                                 int64_t n, struct rfx_error *err) {
    const struct rfx_shard_cells *cells = &m->shards->files[array->shard].cells;
    int64_t c = cells->channels, each = cells->last ? c : 1, count = cells->last ? n : n * c;
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < each && status == RFX_OK; i++) {
        struct rfx_shard_span span = rfx_shard_cells_span(cells, i * cells->n + range);
        int64_t at = cells->last ? k : k * c;
        for (int64_t done = 0; done < count && status == RFX_OK; done += CHUNK) {
            int64_t part = rfx_min_i64(CHUNK, count - done);
            status =
                take(m->shards, array, span.from + at + done, span.to + at + done, 1, part, err);
            for (int64_t j = 0; j < part && status == RFX_OK; j++)
                m->band[cells->last ? (done + j) * c + i : done + j] = m->shards->chunk[j];
        }
    }
    if (status != RFX_OK) return status;
    int64_t first = cells->ranges[range].lo + k;
    struct rfx_end end = {.channels = c, .at = {first, n, 1, cells->of}};
    if (!cells->last) end.at = (struct rfx_spread){first * c, n * c, c, 1};
    struct rfx_view view = rfx_view_dense(m->band, rfx_rect_make(0, 1, 0, n), c);
    return m->sink.write(m->sink.user, &end, view.rect, &view, err);
}

/* Copies the cells of a shard with all channels of a cell together. */
static enum rfx_status copy_cells(struct merge *m, const struct array *array,
                                  struct rfx_error *err) {
    const struct rfx_shard_cells *cells = &m->shards->files[array->shard].cells;
    enum rfx_status status = RFX_OK;
    for (int r = 0; r < cells->n && status == RFX_OK; r++) {
        int64_t count = cells->ranges[r].hi - cells->ranges[r].lo;
        for (int64_t k = 0; k < count && status == RFX_OK; k += m->band_rows)
            status = put_cells(m, array, r, k, rfx_min_i64(m->band_rows, count - k), err);
    }
    return status;
}

/* Passes on the cells shard by shard. */
static enum rfx_status merge_cells(struct merge *m, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < m->shards->n && status == RFX_OK; i++) {
        const struct rfx_shard_cells *cells = &m->shards->files[i].cells;
        struct array array;
        status = open_array(m->shards, i, &array, err);
        if (status != RFX_OK) return status;
        if (m->by_cells) status = copy_cells(m, &array, err);
        int64_t spans = m->by_cells ? 0 : rfx_shard_cells_spans(cells);
        for (int64_t k = 0; k < spans && status == RFX_OK; k++)
            status = copy_span(m, &array, rfx_shard_cells_span(cells, k), err);
        (void)close(array.fd);
        if (status == RFX_OK) status = check_hash(m->shards, i, err);
        if (status == RFX_OK) status = tell(m, i + 1, m->shards->n, err);
    }
    return status;
}

static enum rfx_status write_cells(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                   const struct rfx_view *view, struct rfx_error *err) {
    return rfx_output_stream_write_end(user, end, rect, view, err);
}

enum rfx_status rfx_shards_take(struct rfx_shards *shards, struct rfx_output_sink sink,
                                rfx_progress_fn *progress, void *user, struct rfx_error *err) {
    struct merge m = {.shards = shards, .sink = sink, .progress = progress, .user = user};
    return merge_cells(&m, err);
}

enum rfx_status rfx_shards_merge(struct rfx_shards *shards, const char *path,
                                 const struct rfx_output_format *format, size_t memory_bytes,
                                 rfx_progress_fn *progress, void *user, struct rfx_error *err) {
    struct rfx_output_format placed = *format;
    struct merge m = {.shards = shards, .progress = progress, .user = user};
    m.tensor = rfx_shards_tensor(shards);
    m.by_cells = !are_of_map(shards) && format->kind->take != NULL;
    enum rfx_status status = RFX_OK;
    if (format->kind->placed) { /* all shards have the same georeference */
        status = rfx_shard_geo_parse(shards->mem, shards->files[0].geo, &m.geo, err);
        if (status != RFX_OK)
            return rfx_fail_within(err, status, "part '%.200s'", shards->paths[0]);
        placed.geo = &m.geo;
        status = rfx_shard_grid_parse(shards->files[0].grid, &placed.place, err);
        if (status != RFX_OK) {
            rfx_georeference_release(&m.geo);
            return rfx_fail_within(err, status, "part '%.200s'", shards->paths[0]);
        }
    }
    status = allocate_band(&m, &placed, memory_bytes, err);
    if (status == RFX_OK)
        status = rfx_output_stream_open(shards->mem, path, &placed, &m.tensor, &m.stream, err);
    m.sink = (struct rfx_output_sink){.write = write_cells, .user = m.stream};
    if (status == RFX_OK) status = are_of_map(shards) ? merge_map(&m, err) : merge_cells(&m, err);
    if (status == RFX_OK) status = rfx_output_stream_commit(m.stream, progress, user, err);
    if (status == RFX_OK) {
        const struct rfx_found found = rfx_output_stream_found(m.stream);
        shards->answers = (struct rfx_found){.what = found.what,
                                             .count = found.count,
                                             .unit = found.unit,
                                             .areas = found.areas,
                                             .empty_areas = found.empty_areas};
    }
    rfx_output_stream_free(m.stream);
    rfx_georeference_release(&m.geo);
    rfx_memory_release(shards->mem, m.band);
    return status;
}
