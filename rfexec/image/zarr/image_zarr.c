/* Zarr arrays, read by rectangles. Chunks are decompressed when a rectangle needs them; one row of
 * chunks is kept in memory.
 *
 * Unsigned samples of 8 and 16 bits are preprocessed like those of other pictures. All other
 * samples are delivered as the nearest float32. Chunks that do not exist have the fill value.
 * Invariants: 1. column x of row y lies in cache row y mod the rows of a chunk, valid if
 * chunk_row_of of its column of chunks is that row of chunks; 2. only chunks that a delivered
 * channel needs are decompressed; 3. fixed_bytes includes the memory of the codec's library. */
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_pages.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "rfexec/image/zarr/zarr_folder.h"
#include "rfexec/image/zarr/zarr_level.h"

struct zarr_source {
    struct rfx_image_backend base;
    struct rfx_zarr_layout layout;
    int folder;
    struct rfx_zarr_decoder *decoder;
    struct rfx_image_bands *chosen; /* chosen bands, from 1; NULL: all */
    int64_t rows, cols, bands;      /* rows, columns and bands of a chunk */
    int64_t cache_rows, n_across;
    size_t pixel_bytes;          /* bytes of a delivered pixel */
    unsigned char *cache;        /* one row of chunks; NULL: not allocated */
    unsigned char *raw, *packed; /* a chunk, decompressed and compressed */
    int64_t *chunk_row_of; /* for each column of chunks: the row of chunks that the cache has; -1:
                              none */
};

static struct zarr_source *self_of(struct rfx_image_backend *b) {
    return (struct zarr_source *)(void *)b;
}

static int64_t band_of(const struct zarr_source *s, int64_t channel) {
    return s->chosen != NULL ? s->chosen->numbers[channel] - 1 : channel;
}

/* Reads the file of a chunk into s->raw, and decompresses it if it is compressed. */
static enum rfx_status read_chunk(struct zarr_source *s, int fd, int64_t bytes, const char *key,
                                  struct rfx_error *err) {
    const struct rfx_zarr_layout *l = &s->layout;
    bool plain = l->codec == RFX_ZARR_CODEC_NONE;
    size_t most = plain ? l->chunk_bytes : rfx_zarr_packed_bytes(l->chunk_bytes);
    if ((plain && bytes != (int64_t)most) || bytes > (int64_t)most)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "'%s' has %" PRId64 " bytes instead of %s%zu",
                        key, bytes, plain ? "" : "at most ", most);
    if (plain) return rfx_zarr_file_read(fd, key, s->raw, most, err);
    enum rfx_status status = rfx_zarr_file_read(fd, key, s->packed, (size_t)bytes, err);
    if (status != RFX_OK) return status;
    status = rfx_zarr_decode(s->decoder, s->packed, (size_t)bytes, s->raw, l->chunk_bytes, err);
    return status == RFX_OK ? status : rfx_fail_within(err, status, "'%s'", key);
}

/* Loads a chunk into s->raw. *there: whether the chunk exists. */
static enum rfx_status load_chunk(struct zarr_source *s, int64_t c, int64_t y, int64_t x,
                                  bool *there, struct rfx_error *err) {
    char key[RFX_ZARR_KEY_CHARS];
    int fd;
    int64_t bytes = 0;
    rfx_zarr_layout_key(&s->layout, c, y, x, key);
    enum rfx_status status = rfx_zarr_file_open(s->folder, key, &fd, &bytes, err);
    *there = status == RFX_OK && fd >= 0;
    if (!*there) return status;
    status = read_chunk(s, fd, bytes, key, err);
    (void)close(fd);
    return status;
}

/* Copies one band of the loaded chunk, or its fill value, to a channel of the cache. */
static void put_band(struct zarr_source *s, bool there, int64_t band, int64_t channel, int64_t rows,
                     int64_t x0, int64_t cols) {
    const struct rfx_zarr_layout *l = &s->layout;
    const size_t sample = (size_t)(s->base.sample_bits / 8);
    size_t from = l->axes.c < 0 ? 0 : (size_t)(band % s->bands) * l->step[l->axes.c];
    for (int64_t i = 0; i < rows; i++, from += l->step[l->axes.y]) {
        unsigned char *to =
            s->cache + (size_t)(i * s->base.w + x0) * s->pixel_bytes + (size_t)channel * sample;
        if (there)
            rfx_zarr_type_convert(l->type, l->big, s->raw + from, l->step[l->axes.x], (size_t)cols,
                                  to, s->pixel_bytes);
        else
            for (int64_t k = 0; k < cols; k++, to += s->pixel_bytes) memcpy(to, l->fill, sample);
    }
}

/* Loads the chunks of all channels at (y, x) into the cache. */
static enum rfx_status fill_column(struct zarr_source *s, int64_t y, int64_t x,
                                   struct rfx_error *err) {
    const int64_t row = y / s->rows, column = x / s->cols, x0 = column * s->cols;
    const int64_t rows = rfx_min_i64(s->rows, s->base.h - row * s->rows);
    const int64_t cols = rfx_min_i64(s->cols, s->base.w - x0);
    int64_t loaded = -1;
    bool there = false;
    s->chunk_row_of[column] = -1;
    for (int64_t k = 0; k < s->base.c; k++) {
        int64_t band = band_of(s, k);
        if (band / s->bands != loaded) {
            loaded = band / s->bands;
            enum rfx_status status = load_chunk(s, loaded, row, column, &there, err);
            if (status != RFX_OK)
                return rfx_fail_within(err, status, "%s: row %" PRId64 " of %" PRId64, s->base.name,
                                       y, s->base.h);
        }
        put_band(s, there, band, k, rows, x0, cols);
    }
    s->chunk_row_of[column] = row;
    return RFX_OK;
}

static size_t packed_bytes(const struct rfx_zarr_layout *l) {
    return l->codec == RFX_ZARR_CODEC_NONE ? 0 : rfx_zarr_packed_bytes(l->chunk_bytes);
}

/* Returns the bytes of the cache. No overflow: sides are at most 1,000,000, pixels have less than
 * 2^18 bytes. */
static size_t cache_bytes(const struct zarr_source *s) {
    return (size_t)(s->cache_rows * s->base.w) * s->pixel_bytes;
}

static void release_cache(struct zarr_source *s) {
    rfx_memory_release(s->base.mem, s->cache);
    rfx_memory_release(s->base.mem, s->raw);
    rfx_memory_release(s->base.mem, s->packed);
    rfx_memory_release(s->base.mem, s->chunk_row_of);
    s->cache = s->raw = s->packed = NULL;
    s->chunk_row_of = NULL;
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct zarr_source *s = self_of(b);
    size_t packed = packed_bytes(&s->layout);
    size_t across = (size_t)s->n_across * sizeof *s->chunk_row_of;
    (void)rows;
    if (s->cache != NULL) return RFX_OK;
    s->raw = rfx_memory_alloc(b->mem, s->layout.chunk_bytes);
    s->packed = rfx_memory_alloc(b->mem, packed);
    s->chunk_row_of = rfx_memory_alloc(b->mem, across);
    if (s->raw != NULL && s->packed != NULL && s->chunk_row_of != NULL)
        s->cache = rfx_memory_alloc(b->mem, cache_bytes(s));
    if (s->cache == NULL) {
        release_cache(s);
        return rfx_memory_fail(b->mem, b->name,
                               s->layout.chunk_bytes + packed + across + cache_bytes(s), err);
    }
    for (int64_t i = 0; i < s->n_across; i++) s->chunk_row_of[i] = -1;
    return RFX_OK;
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    struct zarr_source *s = self_of(b);
    enum rfx_status status = RFX_OK;
    (void)room;
    if (s->cache == NULL) status = source_set_window(b, 1, err);
    if (status != RFX_OK) return status;
    const int64_t column = x0 / s->cols;
    if (s->chunk_row_of[column] != y / s->rows) status = fill_column(s, y, x0, err);
    *samples = s->cache + (size_t)(y % s->rows * b->w + x0) * s->pixel_bytes;
    *end = rfx_min_i64(x1, (column + 1) * s->cols);
    return status;
}

static void source_free(struct rfx_image_backend *b) {
    struct zarr_source *s = self_of(b);
    release_cache(s);
    rfx_zarr_decoder_free(s->decoder);
    rfx_memory_release(b->mem, s->chosen);
    if (s->folder >= 0) (void)close(s->folder);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops source_ops = {
    .set_window = source_set_window, .fetch = source_fetch, .free = source_free};

static enum rfx_status choose_bands(struct zarr_source *s, const struct rfx_image_bands *bands,
                                    struct rfx_error *err) {
    if (bands == NULL) return RFX_OK;
    for (int k = 0; k < bands->n; k++)
        if (bands->numbers[k] > s->layout.c)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: --channels: band %d of %" PRId64,
                            s->base.name, bands->numbers[k], s->layout.c);
    s->chosen = rfx_memory_alloc(s->base.mem, sizeof *bands);
    if (s->chosen == NULL) return rfx_memory_fail(s->base.mem, s->base.name, sizeof *bands, err);
    *s->chosen = *bands;
    s->base.chosen = true;
    return RFX_OK;
}

static void settle(struct zarr_source *s, size_t held) {
    const struct rfx_zarr_layout *l = &s->layout;
    struct rfx_image_backend *b = &s->base;
    b->h = l->h;
    b->w = l->w;
    b->c = s->chosen != NULL ? s->chosen->n : l->c;
    b->bands = (int)l->c;
    b->sample_bits = rfx_zarr_type_sample_bits(l->type);
    b->is_colour = l->c == 3 && l->axes.c > l->axes.x; /* contiguous in a pixel: red, green, blue */
    b->random_access = true;
    s->rows = l->chunk[l->axes.y];
    s->cols = l->chunk[l->axes.x];
    s->bands = l->axes.c < 0 ? 1 : l->chunk[l->axes.c];
    s->cache_rows = rfx_min_i64(s->rows, b->h);
    s->n_across = rfx_ceil_div(b->w, s->cols);
    s->pixel_bytes = (size_t)(b->c * b->sample_bits / 8);
    b->fixed_bytes = sizeof *s + held + (s->chosen != NULL ? sizeof *s->chosen : 0) +
                     l->chunk_bytes + packed_bytes(l) + cache_bytes(s) +
                     (size_t)s->n_across * sizeof *s->chunk_row_of +
                     rfx_zarr_decoder_bytes(l->codec, l->chunk_bytes);
}

enum rfx_status rfx_image_zarr_open(struct rfx_memory *mem, const char *name,
                                    const struct rfx_image_options *options,
                                    struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_zarr_level level;
    enum rfx_status status = rfx_zarr_level_open(mem, name, options->page, &level, err);
    if (status != RFX_OK) return status;
    struct rfx_image_backend *b;
    status = rfx_image_backend_create(mem, sizeof(struct zarr_source), &source_ops, name, "Zarr",
                                      &b, err);
    if (status != RFX_OK) {
        (void)close(level.folder);
        return status;
    }
    struct zarr_source *s = self_of(b);
    s->layout = level.layout;
    s->folder = level.folder;
    status = choose_bands(s, options->bands, err);
    if (status == RFX_OK) {
        settle(s, level.held);
        status = rfx_zarr_decoder_open(mem, s->layout.codec, &s->decoder, err);
        if (status != RFX_OK) (void)rfx_fail_within(err, status, "%s", name);
    }
    return rfx_image_backend_finish(b, status, out);
}

static void tell(const struct rfx_zarr_layout *l, struct rfx_image_page *page) {
    page->h = l->h;
    page->w = l->w;
    page->bands = (int)l->c;
    page->bits = 8 * l->type->bytes;
    page->type = l->type->kind == 'u' ? "unsigned" : l->type->kind == 'i' ? "signed" : "float";
    page->tile_h = l->chunk[l->axes.y];
    page->tile_w = l->chunk[l->axes.x];
    page->compression = rfx_zarr_codec_name(l->codec);
}

enum rfx_status rfx_image_zarr_levels(struct rfx_memory *mem, const char *name,
                                      rfx_image_page_fn *fn, void *user, struct rfx_error *err) {
    int levels = 1;
    for (int number = 0; number < levels; number++) {
        struct rfx_image_page page = {.number = number,
                                      .parent = -1,
                                      .kind = "Zarr",
                                      .type = "unsigned",
                                      .reduced = number > 0,
                                      .orientation = 1};
        struct rfx_zarr_level level;
        enum rfx_status status = rfx_zarr_level_open(mem, name, number, &level, &page.refusal);
        bool refused = status == RFX_STATUS_UNSUPPORTED || status == RFX_STATUS_MALFORMED;
        if (status != RFX_OK && (!refused || level.levels == 0))
            return rfx_fail(err, status, "%s", page.refusal.text);
        levels = level.levels;
        if (status == RFX_OK) {
            (void)close(level.folder);
            tell(&level.layout, &page);
            page.refusal.text[0] = '\0';
        }
        fn(user, &page);
    }
    return RFX_OK;
}
