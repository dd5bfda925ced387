/* Fetches a run of a row from every source and combines the samples pixel by pixel.
 *
 * Invariants: 1. `order` lists the channels of part 0 first, then those of part 1, ...: part p has
 * order[first[p]] to order[first[p + 1] - 1]; 2. a run has at most `cols` columns, which fit in
 * `run`; 3. only the parts allocate memory after open. */
#include "rfexec/image/joined_bands.h"

#include <inttypes.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_backend.h"

#define RUN_BYTES 65536 /* bytes of a combined run; more if a pixel is large */
enum { LEAST_COLS = 64, MOST_COLS = 4096 };

struct joined_source {
    struct rfx_image_backend base;
    int n;
    int64_t cols;
    struct rfx_image_backend *parts[RFX_IMAGE_MAX_BANDS];
    struct rfx_joined_channel channels[RFX_IMAGE_MAX_BANDS];
    uint16_t order[RFX_IMAGE_MAX_BANDS], first[RFX_IMAGE_MAX_BANDS + 1];
    unsigned char *run;
    char *names;   /* names of the parts, if they do not belong to the caller */
    float *floats; /* buffer for a part that delivers rectangles of floats; NULL: there is none */
};

static struct joined_source *self_of(struct rfx_image_backend *b) {
    return (struct joined_source *)(void *)b;
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct joined_source *s = self_of(b);
    enum rfx_status status = RFX_OK;
    for (int p = 0; p < s->n && status == RFX_OK; p++)
        if (s->parts[p]->ops->set_window != NULL)
            status = s->parts[p]->ops->set_window(s->parts[p], rows, err);
    return status;
}

static enum rfx_status source_rewind(struct rfx_image_backend *b, struct rfx_error *err) {
    struct joined_source *s = self_of(b);
    enum rfx_status status = RFX_OK;
    for (int p = 0; p < s->n && status == RFX_OK; p++)
        if (s->parts[p]->ops->rewind != NULL) status = s->parts[p]->ops->rewind(s->parts[p], err);
    return status;
}

/* Copies `cols` samples of one channel, from every `stored`-th place at src to every c-th place at
 * dst. */
static void put_channel(const void *src, int64_t stored, void *dst, int64_t c, int64_t cols,
                        int bits) {
    if (bits == 8)
        for (int64_t i = 0; i < cols; i++)
            ((unsigned char *)dst)[i * c] = ((const unsigned char *)src)[i * stored];
    else if (bits == 16)
        for (int64_t i = 0; i < cols; i++)
            ((uint16_t *)dst)[i * c] = ((const uint16_t *)src)[i * stored];
    else
        for (int64_t i = 0; i < cols; i++) ((float *)dst)[i * c] = ((const float *)src)[i * stored];
}

/* Copies `cols` pixels of part p into the run, from column `at` on. */
static void put_part(struct joined_source *s, int p, const void *samples, int64_t at,
                     int64_t cols) {
    const size_t bytes = (size_t)s->base.sample_bits / 8;
    for (int i = s->first[p]; i < s->first[p + 1]; i++) {
        int k = s->order[i];
        put_channel((const unsigned char *)samples + s->channels[k].channel * bytes, s->parts[p]->c,
                    s->run + ((size_t)(at * s->base.c) + (size_t)k) * bytes, s->base.c, cols,
                    s->base.sample_bits);
    }
}

static enum rfx_status fetch_floats(struct joined_source *s, int p, int64_t y, int64_t x0,
                                    int64_t x1, struct rfx_error *err) {
    struct rfx_rect rect = rfx_rect_make(y, y + 1, x0, x1);
    struct rfx_view view = rfx_view_dense(s->floats, rect, s->parts[p]->c);
    enum rfx_status status = s->parts[p]->ops->read_floats(s->parts[p], rect, &view, err);
    if (status == RFX_OK) put_part(s, p, s->floats, 0, x1 - x0);
    return status;
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    struct joined_source *s = self_of(b);
    enum rfx_status status = RFX_OK;
    x1 = rfx_min_i64(x1, x0 + s->cols);
    for (int p = 0; p < s->n && status == RFX_OK; p++) {
        struct rfx_image_backend *part = s->parts[p];
        if (part->ops->fetch == NULL) {
            status = fetch_floats(s, p, y, x0, x1, err);
            continue;
        }
        for (int64_t x = x0, next = x0; x < x1 && status == RFX_OK; x = next) {
            const void *got = NULL;
            status = part->ops->fetch(part, y, x, x1, room, &got, &next, err);
            if (status == RFX_OK) put_part(s, p, got, x - x0, next - x);
        }
    }
    *samples = s->run;
    *end = x1;
    return status;
}

static void source_free(struct rfx_image_backend *b) {
    struct joined_source *s = self_of(b);
    for (int p = 0; p < s->n; p++) s->parts[p]->ops->free(s->parts[p]);
    rfx_memory_release(b->mem, s->names);
    rfx_memory_release(b->mem, s->run);
    rfx_memory_release(b->mem, s->floats);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops source_ops = {.set_window = source_set_window,
                                                        .fetch = source_fetch,
                                                        .rewind = source_rewind,
                                                        .free = source_free};

/* Checks that a source has the size and sample type of `first`. UNSUPPORTED: it has not; the text
 * names both. */
static enum rfx_status check_beside(const struct rfx_image_backend *first,
                                    const struct rfx_image_backend *part, struct rfx_error *err) {
    if (part->h != first->h || part->w != first->w)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s is %" PRId64 " x %" PRId64 " pixels, %s is %" PRId64 " x %" PRId64
                        ": bands must have the same size",
                        first->name, first->h, first->w, part->name, part->h, part->w);
    if (part->sample_bits != first->sample_bits)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s has samples of %d bits, %s of %d: bands must have the same",
                        first->name, first->sample_bits, part->name, part->sample_bits);
    if (rfx_max_i64(part->orientation, 1) != rfx_max_i64(first->orientation, 1))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s has orientation %d, %s has %d: bands must have the same", first->name,
                        first->orientation, part->name, part->orientation);
    return RFX_OK;
}

/* Returns whether a part before p has the same kind, so that its library is loaded once for both.
 */
static bool is_kind_known(const struct joined_source *s, int p) {
    for (int i = 0; i < p; i++)
        if (strcmp(s->parts[i]->kind, s->parts[p]->kind) == 0) return true;
    return false;
}

/* Takes ownership of the parts and adds up their memory. */
static enum rfx_status settle(struct joined_source *s, struct rfx_error *err) {
    struct rfx_image_backend *b = &s->base;
    int64_t widest = 0;
    bool fits = true;
    b->random_access = true;
    b->fixed_bytes = sizeof *s;
    for (int p = 0; p < s->n; p++) {
        const struct rfx_image_backend *part = s->parts[p];
        enum rfx_status status = check_beside(s->parts[0], part, err);
        if (status != RFX_OK) return status;
        b->random_access = b->random_access && part->random_access;
        b->pass_picoseconds += part->random_access ? 0.0 : part->pass_picoseconds;
        size_t own = part->fixed_bytes - (is_kind_known(s, p) ? part->shared_bytes : 0);
        fits = fits && rfx_checked_add_size(b->fixed_bytes, own, &b->fixed_bytes) &&
               rfx_checked_add_size(b->window_row_bytes, part->window_row_bytes,
                                    &b->window_row_bytes) &&
               rfx_checked_add_size(b->file_bytes, part->file_bytes, &b->file_bytes);
        if (part->ops->fetch == NULL) widest = rfx_max_i64(widest, part->c);
    }
    const size_t pixel = (size_t)(b->c * (b->sample_bits / 8));
    s->cols = rfx_min_i64(rfx_max_i64(LEAST_COLS, RUN_BYTES / (int64_t)pixel), MOST_COLS);
    const size_t run = (size_t)s->cols * pixel;
    const size_t floats = (size_t)(s->cols * widest) * sizeof(float);
    fits = fits && rfx_checked_add_size(b->fixed_bytes, run, &b->fixed_bytes) &&
           rfx_checked_add_size(b->fixed_bytes, floats, &b->fixed_bytes);
    if (!fits)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: %d bands do not fit any memory", b->name,
                        s->n);
    s->run = rfx_memory_alloc(b->mem, run);
    if (widest > 0) s->floats = rfx_memory_alloc(b->mem, floats);
    if (s->run == NULL || (widest > 0 && s->floats == NULL))
        return rfx_memory_fail(b->mem, b->name, run + floats, err);
    return RFX_OK;
}

static void sort_channels(struct joined_source *s) {
    int at = 0;
    for (int p = 0; p < s->n; p++) {
        s->first[p] = (uint16_t)at;
        for (int k = 0; k < s->base.c; k++)
            if (s->channels[k].part == p) s->order[at++] = (uint16_t)k;
    }
    s->first[s->n] = (uint16_t)at;
}

enum rfx_status rfx_image_joined_open(struct rfx_memory *mem, const char *name,
                                      struct rfx_image_backend *const *parts, int n,
                                      const struct rfx_joined_channel *channels, int c, int bands,
                                      struct rfx_image_backend **out, struct rfx_error *err) {
    struct joined_source *s = rfx_memory_calloc(mem, 1, sizeof *s);
    if (s == NULL) return rfx_memory_fail(mem, name, sizeof *s, err);
    s->base = (struct rfx_image_backend){.ops = &source_ops,
                                         .mem = mem,
                                         .name = name,
                                         .kind = parts[0]->kind,
                                         .h = parts[0]->h,
                                         .w = parts[0]->w,
                                         .c = c,
                                         .sample_bits = parts[0]->sample_bits,
                                         .bands = bands,
                                         .chosen = true,
                                         .orientation = parts[0]->orientation};
    memcpy(s->parts, parts, (size_t)n * sizeof *parts);
    memcpy(s->channels, channels, (size_t)c * sizeof *channels);
    s->n = n;
    sort_channels(s);
    enum rfx_status status = settle(s, err);
    if (status == RFX_OK) {
        *out = &s->base;
        return RFX_OK;
    }
    s->n = 0; /* the caller's */
    source_free(&s->base);
    return status;
}

/* Passes ownership of the text with the parts' names, `bytes` bytes of the same memory, to the
 * picture, which frees it after the parts. */
static void keep_names(struct rfx_image_backend *joined, char *names, size_t bytes) {
    self_of(joined)->names = names;
    joined->fixed_bytes += bytes; /* in addition to the parts' memory */
}

/* State while files are opened. */
struct opening {
    int n, c; /* number of files; number of bands of all files */
    struct rfx_image_backend *parts[RFX_IMAGE_MAX_BANDS];
    struct rfx_joined_channel bands[RFX_IMAGE_MAX_BANDS], channels[RFX_IMAGE_MAX_BANDS];
};

static enum rfx_status open_part(struct opening *o, struct rfx_memory *mem, const char *file,
                                 const struct rfx_image_options *options, struct rfx_error *err) {
    struct rfx_image_options one = *options;
    const struct rfx_rect all = {0};
    one.bands = NULL;
    one.region = all;
    one.channels = 0;
    one.max_images = 1;
    one.as_stored = true;
    if (*file == '\0')
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "a file of the bands has no name");
    if (strncmp(file, RFX_IMAGE_BANDS_PREFIX, strlen(RFX_IMAGE_BANDS_PREFIX)) == 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: bands of bands", file);
    enum rfx_status status = rfx_image_backend_open(mem, file, &one, &o->parts[o->n], err);
    if (status != RFX_OK) return status;
    const struct rfx_image_backend *part = o->parts[o->n];
    if (part->c > RFX_IMAGE_MAX_BANDS - o->c) {
        o->n++;
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: more than %d bands in all files", file,
                        RFX_IMAGE_MAX_BANDS);
    }
    for (int64_t k = 0; k < part->c; k++)
        o->bands[o->c++] = (struct rfx_joined_channel){(uint16_t)o->n, (uint16_t)k};
    o->n++;
    return RFX_OK;
}

/* Opens the files of `list`: names that each end in 0, one after another, up to `end`. */
static enum rfx_status open_parts(struct opening *o, struct rfx_memory *mem, const char *list,
                                  const char *end, const struct rfx_image_options *options,
                                  struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (const char *file = list; file < end && status == RFX_OK; file += strlen(file) + 1) {
        if (o->n == RFX_IMAGE_MAX_BANDS)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "more than %d files of bands",
                            RFX_IMAGE_MAX_BANDS);
        status = open_part(o, mem, file, options, err);
    }
    return status;
}

/* Sets which bands are delivered, and their number *c. */
static enum rfx_status choose(struct opening *o, const struct rfx_image_bands *chosen, int *c,
                              struct rfx_error *err) {
    *c = chosen != NULL ? chosen->n : o->c;
    for (int k = 0; k < *c; k++) {
        int band = chosen != NULL ? chosen->numbers[k] - 1 : k;
        if (band >= o->c)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "--channels: band %d of %d in %d files",
                            band + 1, o->c, o->n);
        o->channels[k] = o->bands[band];
    }
    return RFX_OK;
}

/* Closes files without a delivered band, except the first, whose size counts. */
static void close_unread(struct opening *o, int c) {
    for (int p = o->n - 1; p > 0; p--) {
        bool read = false;
        for (int k = 0; k < c; k++) read = read || o->channels[k].part == p;
        if (read) continue;
        o->parts[p]->ops->free(o->parts[p]);
        o->n--;
        memmove(&o->parts[p], &o->parts[p + 1], (size_t)(o->n - p) * sizeof o->parts[0]);
        for (int k = 0; k < c; k++)
            if (o->channels[k].part > p) o->channels[k].part--;
    }
}

static enum rfx_status open_joined(struct opening *o, struct rfx_memory *mem, const char *name,
                                   char *list, const char *end,
                                   const struct rfx_image_options *options,
                                   struct rfx_image_backend **out, struct rfx_error *err) {
    int c = 0;
    enum rfx_status status = open_parts(o, mem, list, end, options, err);
    for (int p = 1; p < o->n && status == RFX_OK; p++)
        status = check_beside(o->parts[0], o->parts[p], err);
    const int bands = o->c;
    if (status == RFX_OK) status = choose(o, options->bands, &c, err);
    if (status == RFX_OK) {
        close_unread(o, c);
        status = rfx_image_joined_open(mem, name, o->parts, o->n, o->channels, c, bands, out, err);
    }
    if (status == RFX_OK) {
        keep_names(*out, list, (size_t)(end - list));
        return RFX_OK;
    }
    for (int p = 0; p < o->n; p++) o->parts[p]->ops->free(o->parts[p]);
    return status;
}

enum rfx_status rfx_image_file_bands_open(struct rfx_memory *mem, const char *name,
                                          const struct rfx_image_options *options,
                                          struct rfx_image_backend **out, struct rfx_error *err) {
    const char *from = name + strlen(RFX_IMAGE_BANDS_PREFIX);
    struct opening *o = rfx_memory_calloc(mem, 1, sizeof *o);
    char *list = rfx_memory_strdup(mem, from);
    enum rfx_status status;
    if (o == NULL || list == NULL) {
        status = rfx_memory_fail(mem, name, sizeof *o, err);
    } else {
        char *end = list + strlen(list) + 1;
        for (char *at = list; *at != '\0' || at + 1 < end; at++)
            if (*at == ',') *at = '\0';
        status = open_joined(o, mem, name, list, end, options, out, err);
    }
    rfx_memory_release(mem, o);
    if (status != RFX_OK) rfx_memory_release(mem, list);
    return status;
}
