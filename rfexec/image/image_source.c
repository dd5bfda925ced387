/* Converts stored samples to the network's input values.
 *
 * All arithmetic on values is here and the same for every kind of file. 8-bit samples go through
 * one table of 256 floats per channel, 16-bit samples through the formula that made the table, so a
 * value depends on its sample and channel only. Grey for an RGB network is replicated. Colour for a
 * one-channel network becomes luma, (299 R + 587 G + 114 B + 500) / 1000 in integers, before scale.
 * Rectangles are checked against the picture, the view and the window before the backend is called.
 */
#include "rfexec/image/image_source.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/row_sums.h"

/* Preprocessing of a delivered channel. */
struct channel {
    float mean, std;
    float table[256]; /* value of each 8-bit sample */
};

struct rfx_image {
    struct rfx_memory *mem;
    char *spec;
    struct rfx_image_backend *backend;
    struct rfx_image_options options;
    int64_t c;                 /* channels delivered */
    int64_t window_rows;       /* 0: no window is set */
    int64_t highest_y1;        /* highest y1 read so far */
    struct channel *channels;  /* for samples that are not floats; else NULL */
    int64_t n_channels;        /* 1: the same for all channels; else c */
    struct rfx_row_sums *sums; /* checksums of all reads; NULL: none */
};

/* Returns the bytes of the copy of a picture's name: the same number for all names of usual length,
 * so that a budget does not depend on the picture's folder. */
static size_t spec_bytes(const char *spec) {
    size_t bytes = strlen(spec) + 1;
    return bytes > 256 ? bytes : 256;
}

const float rfx_imagenet_mean[3] = {0.485f, 0.456f, 0.406f};
const float rfx_imagenet_std[3] = {0.229f, 0.224f, 0.225f};

struct rfx_image_options rfx_image_default_options(void) {
    struct rfx_image_options o = {
        .scale = 1.0f / 255.0f, .bgr = false, .channels = 3, .max_pixels = RFX_IMAGE_WHOLE_PIXELS};
    return o;
}

/* Returns the value of a sample by the formula of struct rfx_image_options. */
static float preprocess(const struct channel *channel, float scale, float sample) {
    return (sample * scale - channel->mean) / channel->std;
}

/* Returns the divisor of samples before scale. */
static float most_of(const struct rfx_image *image) {
    return image->backend->sample_bits == 16 && !image->options.raw ? 257.0f : 1.0f;
}

static const struct channel *channel_of(const struct rfx_image *image, int64_t channel) {
    return &image->channels[image->n_channels == 1 ? 0 : channel];
}

float rfx_image_sample_of(const struct rfx_image *image, int64_t channel, float value) {
    if (image->channels == NULL) return value;
    const struct channel *c = channel_of(image, channel);
    float sample = (value * c->std + c->mean) / image->options.scale;
    return image->backend->sample_bits == 16 && image->options.raw ? sample / 257.0f : sample;
}

static enum rfx_status check_options(const struct rfx_image_options *o, struct rfx_error *err) {
    if (o->nodata.given && !isfinite(o->nodata.fill))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "nodata is filled with %g: must be a number", (double)o->nodata.fill);
    if (!isfinite(o->scale))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "scale %g is not a number to use",
                        (double)o->scale);
    for (int c = 0; c < o->n_mean; c++)
        if (!isfinite(o->mean[c]))
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "mean %g of channel %d: must be finite", (double)o->mean[c], c);
    for (int c = 0; c < o->n_std; c++)
        if (!isfinite(o->std[c]) || o->std[c] == 0.0f)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "std %g of channel %d: must be finite and not 0", (double)o->std[c], c);
    return RFX_OK;
}

static enum rfx_status check_count(const struct rfx_image *image, const char *what, int n,
                                   struct rfx_error *err) {
    if (n <= 1 || n == image->c || image->options.channels == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: %s has %d numbers, the network takes %" PRId64
                    " channels: one number for each, or one for all",
                    image->spec, what, n, image->c);
}

/* Returns number k of the given mean or std, else ImageNet's. */
static float number_of(const struct rfx_image *image, const float *given, int n,
                       const float usual[3], float none, int64_t k) {
    if (n > 0) return given[rfx_min_i64(k, n - 1)];
    bool has_usual = (image->c == 1 || image->c == 3) && !image->options.raw;
    return has_usual ? usual[k] : none;
}

/* Makes the channels: a single one if all have the same mean and std. */
static enum rfx_status settle_means(struct rfx_image *image, struct rfx_error *err) {
    const struct rfx_image_options *o = &image->options;
    enum rfx_status status = check_count(image, "mean", o->n_mean, err);
    if (status == RFX_OK) status = check_count(image, "std", o->n_std, err);
    if (status != RFX_OK) return status;
    bool one = o->n_mean <= 1 && o->n_std <= 1;
    image->n_channels = one && image->c != 3 ? 1 : image->c;
    size_t n = (size_t)image->n_channels;
    image->channels = rfx_memory_calloc(image->mem, n, sizeof *image->channels);
    if (image->channels == NULL)
        return rfx_memory_fail(image->mem, image->spec, n * sizeof *image->channels, err);
    for (int64_t k = 0; k < image->n_channels; k++) {
        struct channel *c = &image->channels[k];
        c->mean = number_of(image, o->mean, o->n_mean, rfx_imagenet_mean, 0.0f, k);
        c->std = number_of(image, o->std, o->n_std, rfx_imagenet_std, 1.0f, k);
        for (int v = 0; v < 256; v++) c->table[v] = preprocess(c, o->scale, (float)v);
    }
    return RFX_OK;
}

/* Returns whether grey is replicated, or colour becomes luma. */
static bool is_grey_or_luma(const struct rfx_image_backend *b, int64_t wanted) {
    if (b->chosen) return false;
    return (b->c == 1 && wanted == 3) || (b->c == 3 && wanted == 1 && b->is_colour);
}

static enum rfx_status settle_channels(struct rfx_image *image, struct rfx_error *err) {
    const struct rfx_image_backend *b = image->backend;
    int64_t wanted = image->options.channels;
    image->c = b->c;
    if (b->sample_bits == 32) return RFX_OK;
    if (wanted == 3 && b->c == 1 && b->other_pages > 0 && !b->chosen)
        return rfx_fail(
            err, RFX_STATUS_UNSUPPORTED,
            "%s: page 0 is grey and the network takes 3 channels, but there are %" PRId64
            " other pages: --page 0 repeats this one, --channels takes pages of one "
            "size ('rfexec info' lists them)",
            image->spec, b->other_pages);
    if (wanted != 0 && b->bands == 0 && wanted != 1 && wanted != 3)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: the network takes %" PRId64
                        " channels, a picture gives 1 or 3 (.npy and TIFF give any)",
                        image->spec, wanted);
    if (b->bands != 0 && wanted > b->bands && wanted != b->c && !is_grey_or_luma(b, wanted))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: %" PRId64 " of %d bands are read, the network takes %" PRId64
                        " channels, more than there are: --channels may name a band several times",
                        image->spec, b->c, b->bands, wanted);
    if (wanted != 0 && b->bands != 0 && wanted != b->c && !is_grey_or_luma(b, wanted))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: %" PRId64 " of %d bands are read, the network takes %" PRId64
                        ": --channels says which, as in --channels 1,2,3",
                        image->spec, b->c, b->bands, wanted);
    if (wanted != 0) image->c = wanted;
    return settle_means(image, err);
}

/* Checks the size of a picture that must be decoded whole, even to read a few rows. It then takes a
 * byte or more for each pixel, in memory or in a temporary file. The limit holds for both: a small
 * picture file must not fill the disk either. */
static enum rfx_status check_pixels(const struct rfx_image *image, struct rfx_error *err) {
    const struct rfx_image_backend *b = image->backend;
    int64_t pixels, limit = image->options.max_pixels;
    if (!rfx_checked_mul_i64(b->h, b->w, &pixels)) pixels = INT64_MAX;
    if (b->whole_pixels > 0) pixels = b->whole_pixels;
    size_t bytes = b->file_bytes > b->fixed_bytes ? b->file_bytes : b->fixed_bytes;
    if (limit == 0 || pixels <= limit || bytes < (uint64_t)pixels) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "%s: %" PRId64 " x %" PRId64
                    " pixels must be decoded whole, which takes %zu "
                    "bytes; without a memory budget pictures of up to %" PRId64
                    " are (--max-pixels, max_pixels)",
                    image->spec, b->h, b->w, bytes, limit);
}

const char *rfx_image_file_of(const char *spec, int k, char *room, size_t size) {
    const size_t prefix = strlen(RFX_IMAGE_BANDS_PREFIX);
    if (strncmp(spec, RFX_IMAGE_BANDS_PREFIX, prefix) != 0) return k == 0 ? spec : NULL;
    const char *at = spec + prefix;
    for (int i = 0; i < k && at != NULL; i++) {
        at = strchr(at, ',');
        if (at != NULL) at++;
    }
    const size_t length = at != NULL ? strcspn(at, ",") : size;
    if (length >= size) return NULL;
    memcpy(room, at, length);
    room[length] = '\0';
    return room;
}

enum rfx_status rfx_image_open(struct rfx_memory *mem, const char *spec,
                               const struct rfx_image_options *options, struct rfx_image **out,
                               struct rfx_error *err) {
    struct rfx_image_options chosen = options != NULL ? *options : rfx_image_default_options();
    enum rfx_status status = check_options(&chosen, err);
    if (status != RFX_OK) return status;
    struct rfx_image *image = rfx_memory_calloc(mem, 1, sizeof *image);
    if (image == NULL) return rfx_memory_fail(mem, spec, sizeof *image, err);
    image->mem = mem;
    image->options = chosen;
    image->options.bands = NULL; /* belongs to the caller */
    image->spec = rfx_memory_alloc(mem, spec_bytes(spec));
    if (image->spec == NULL) {
        status = rfx_memory_fail(mem, spec, spec_bytes(spec), err);
        goto fail;
    }
    memcpy(image->spec, spec, strlen(spec) + 1);
    status = rfx_image_backend_open(mem, image->spec, &chosen, &image->backend, err);
    if (status != RFX_OK) goto fail;
    status = settle_channels(image, err);
    if (status == RFX_OK) status = check_pixels(image, err);
    if (status != RFX_OK) goto fail;
    image->options.mean = image->options.std = NULL; /* belongs to the caller */
    *out = image;
    return RFX_OK;
fail:
    rfx_image_free(image);
    return status;
}

enum rfx_status rfx_image_of_backend(struct rfx_image_backend *b, struct rfx_image **out,
                                     struct rfx_error *err) {
    struct rfx_image *image = rfx_memory_calloc(b->mem, 1, sizeof *image);
    char *spec = rfx_memory_strdup(b->mem, b->name);
    if (image == NULL || spec == NULL) {
        rfx_memory_release(b->mem, image);
        rfx_memory_release(b->mem, spec);
        return rfx_memory_fail(b->mem, b->name, sizeof *image, err);
    }
    *image = (struct rfx_image){.mem = b->mem,
                                .spec = spec,
                                .backend = b,
                                .options = rfx_image_default_options(),
                                .c = b->c};
    *out = image;
    return RFX_OK;
}

enum rfx_status rfx_image_of_samples(struct rfx_image_backend *b,
                                     const struct rfx_image_options *options,
                                     struct rfx_image **out, struct rfx_error *err) {
    struct rfx_image *image = NULL;
    enum rfx_status status = check_options(options, err);
    if (status == RFX_OK) status = rfx_image_of_backend(b, &image, err);
    if (status != RFX_OK) return status;
    image->options = *options;
    image->options.bands = NULL;
    image->options.channels = b->c;
    status = settle_means(image, err);
    if (status != RFX_OK) {
        image->backend = NULL; /* stays the caller's */
        rfx_image_free(image);
        return status;
    }
    image->options.mean = image->options.std = NULL; /* the caller's */
    *out = image;
    return RFX_OK;
}

void rfx_image_free(struct rfx_image *image) {
    if (image == NULL) return;
    if (image->backend != NULL) image->backend->ops->free(image->backend);
    rfx_memory_release(image->mem, image->channels);
    rfx_memory_release(image->mem, image->spec);
    rfx_memory_release(image->mem, image);
}

struct rfx_source_traits rfx_image_traits(const struct rfx_image *image) {
    const struct rfx_image_backend *b = image->backend;
    struct rfx_source_traits traits = {
        .h = b->h,
        .w = b->w,
        .c = image->c,
        .random_access = b->random_access,
        .fixed_bytes = b->fixed_bytes + sizeof *image + spec_bytes(image->spec) +
                       (size_t)image->n_channels * sizeof *image->channels,
        .window_row_bytes = b->window_row_bytes,
        .pass_picoseconds = b->random_access ? 0.0 : b->pass_picoseconds};
    return traits;
}

struct rfx_image_facts rfx_image_facts(const struct rfx_image *image) {
    const struct rfx_image_backend *b = image->backend;
    int bands = b->bands > 0 ? b->bands : (int)rfx_min_i64(b->c, INT32_MAX);
    int orientation = b->orientation > 1 ? b->orientation : 1;
    return (struct rfx_image_facts){.kind = b->kind,
                                    .h = b->h,
                                    .w = b->w,
                                    .bands = bands,
                                    .sample_bits = b->sample_bits,
                                    .orientation = orientation,
                                    .pixel_um = {b->pixel_um[0], b->pixel_um[1]},
                                    .images = rfx_max_i64(b->images, 1)};
}

void rfx_image_select(struct rfx_image *image, int64_t n) {
    if (image->backend->ops->select != NULL) image->backend->ops->select(image->backend, n);
}

int rfx_image_alpha(const struct rfx_image *image, int *bands) {
    if (bands != NULL) *bands = image->backend->bands;
    return image->backend->n_alpha;
}

const char *rfx_image_note(const struct rfx_image *image) {
    return image->backend->note;
}

size_t rfx_image_npy_bytes(void) {
    return rfx_image_npy_source_bytes() + sizeof(struct rfx_image) + spec_bytes("");
}

bool rfx_image_is_concurrent(const struct rfx_image *image) {
    return image->backend->concurrent;
}

enum rfx_status rfx_image_set_window(struct rfx_image *image, int64_t rows, struct rfx_error *err) {
    struct rfx_image_backend *b = image->backend;
    if (rows < 1)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: a window of %" PRId64 " rows",
                        image->spec, rows);
    image->window_rows = 0;
    image->highest_y1 = 0;
    if (b->ops->set_window != NULL) {
        enum rfx_status status = b->ops->set_window(b, rows, err);
        if (status != RFX_OK) return status;
    }
    image->window_rows = rfx_min_i64(rows, b->h);
    return RFX_OK;
}

enum rfx_status rfx_image_rewind(struct rfx_image *image, struct rfx_error *err) {
    struct rfx_image_backend *b = image->backend;
    image->highest_y1 = 0;
    return b->ops->rewind != NULL ? b->ops->rewind(b, err) : RFX_OK;
}

static unsigned luma(unsigned r, unsigned g, unsigned b) {
    return (299 * r + 587 * g + 114 * b + 500) / 1000;
}

/* Converts cols pixels of 8-bit samples [cols, stored] to floats at dst, `step` floats apart. */
static void convert_u8(const struct rfx_image *image, const unsigned char *src, int64_t cols,
                       float *dst, int64_t step) {
    const int64_t stored = image->backend->c;
    const struct channel *channels = image->channels;
    const int first = image->options.bgr ? 2 : 0, last = 2 - first;
    if (stored == 3 && image->c == 3) {
        for (int64_t i = 0; i < cols; i++, src += 3, dst += step) {
            dst[0] = channels[0].table[src[first]];
            dst[1] = channels[1].table[src[1]];
            dst[2] = channels[2].table[src[last]];
        }
        return;
    }
    if (stored == image->c) {
        const int64_t next =
            image->n_channels == 1 ? 0 : 1; /* step in `channels` from one band to the next */
        for (int64_t i = 0; i < cols; i++, src += stored, dst += step)
            for (int64_t c = 0; c < stored; c++) dst[c] = channels[c * next].table[src[c]];
        return;
    }
    for (int64_t i = 0; i < cols; i++, src += stored, dst += step) {
        unsigned v = stored == 3 ? luma(src[0], src[1], src[2]) : src[0];
        for (int64_t c = 0; c < image->c; c++) dst[c] = channel_of(image, c)->table[v];
    }
}

/* Like convert_u8, for 16-bit samples in host order. */
static void convert_u16(const struct rfx_image *image, const uint16_t *src, int64_t cols,
                        float *dst, int64_t step) {
    const int64_t stored = image->backend->c;
    const struct rfx_image_options *o = &image->options;
    const bool bands = stored == image->c && stored != 3;
    const float most = most_of(image);
    for (int64_t i = 0; i < cols; i++, src += stored, dst += step) {
        unsigned v[3] = {src[0], src[0], src[0]};
        if (stored == 3 && image->c == 3) {
            v[0] = src[o->bgr ? 2 : 0];
            v[1] = src[1];
            v[2] = src[o->bgr ? 0 : 2];
        } else if (stored == 3) {
            v[0] = luma(src[0], src[1], src[2]);
        }
        for (int c = 0; c < (int)image->c; c++)
            dst[c] =
                preprocess(channel_of(image, c), o->scale, (float)(bands ? src[c] : v[c]) / most);
    }
}

/* Returns whether a stored sample is missing. */
static bool is_missing(const struct rfx_image *image, float sample) {
    const float value = (float)image->options.nodata.value;
    return value != value ? sample != sample : sample == value;
}

/* Returns stored sample i of a run of pixels. */
static float stored_sample(const struct rfx_image *image, const void *samples, int64_t i) {
    switch (image->backend->sample_bits) {
        case 8:
            return ((const unsigned char *)samples)[i];
        case 16:
            return ((const uint16_t *)samples)[i];
        default:
            return ((const float *)samples)[i];
    }
}

/* Returns the value of a missing sample in a channel. */
static float filled(const struct rfx_image *image, int64_t channel) {
    const struct rfx_image_options *o = &image->options;
    if (image->channels == NULL) return o->nodata.fill;
    return preprocess(channel_of(image, channel), o->scale, o->nodata.fill / most_of(image));
}

static void put_missing(const struct rfx_image *image, bool missing, int64_t channel, float *to) {
    if (image->options.nodata.flags)
        *to = missing ? 1.0f : 0.0f;
    else if (missing)
        *to = filled(image, channel);
}

/* Replaces the missing samples of cols pixels, whose values are in dst. */
static void replace_missing(const struct rfx_image *image, const void *samples, int64_t cols,
                            float *dst, int64_t step) {
    const int64_t stored = image->backend->c, c = image->c;
    const bool swapped = image->options.bgr && c == 3 && image->channels != NULL;
    for (int64_t i = 0; i < cols; i++, dst += step) {
        bool any = false;
        for (int64_t k = 0; k < stored && stored != c; k++)
            any |= is_missing(image, stored_sample(image, samples, i * stored + k));
        for (int64_t k = 0; k < c; k++) {
            int64_t from = i * stored + (swapped ? 2 - k : k);
            bool missing =
                stored == c ? is_missing(image, stored_sample(image, samples, from)) : any;
            put_missing(image, missing, k, dst + k);
        }
    }
}

/* Like replace_missing, for floats that are already in the view. */
static void replace_missing_floats(const struct rfx_image *image, struct rfx_rect rect,
                                   const struct rfx_view *out) {
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++) {
            float *pixel = rfx_view_f32_at(out, y, x);
            for (int64_t k = 0; k < image->c; k++)
                put_missing(image, is_missing(image, pixel[k]), k, pixel + k);
        }
}

/* Like convert_u8, for float32 samples, which are copied unchanged. */
static void convert_f32(const struct rfx_image *image, const float *src, int64_t cols, float *dst,
                        int64_t step) {
    for (int64_t i = 0; i < cols; i++)
        memcpy(dst + i * step, src + i * image->c, (size_t)image->c * sizeof *dst);
}

static enum rfx_status check_rect(const struct rfx_image *image, struct rfx_rect rect,
                                  const struct rfx_view *out, struct rfx_error *err) {
    const struct rfx_image_backend *b = image->backend;
    if (!rfx_rect_contains(rfx_rect_full(b->h, b->w), rect) ||
        !rfx_rect_contains(out->rect, rect) || out->c < image->c)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: rows %" PRId64 "..%" PRId64 ", columns %" PRId64 "..%" PRId64
                        " are not inside the picture of %" PRId64 " x %" PRId64
                        " or do not fit the view",
                        image->spec, rect.y0, rect.y1, rect.x0, rect.x1, b->h, b->w);
    if (b->random_access) return RFX_OK;
    int64_t highest = rfx_max_i64(image->highest_y1, rect.y1);
    if (rect.y0 < highest - image->window_rows)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: rows %" PRId64 "..%" PRId64 " asked for, but of the %" PRId64
                        " rows read only the last %" PRId64 " are kept",
                        image->spec, rect.y0, rect.y1, highest, image->window_rows);
    return RFX_OK;
}

static enum rfx_status read_row(const struct rfx_image *image, int64_t y, struct rfx_rect rect,
                                const struct rfx_view *out, struct rfx_error *err) {
    struct rfx_image_backend *b = image->backend;
    _Alignas(max_align_t) unsigned char room[RFX_IMAGE_ROOM_BYTES];
    for (int64_t x = rect.x0; x < rect.x1;) {
        const void *samples = NULL;
        int64_t end = x;
        enum rfx_status status = b->ops->fetch(b, y, x, rect.x1, room, &samples, &end, err);
        if (status != RFX_OK) return status;
        float *dst = rfx_view_f32_at(out, y, x);
        if (b->sample_bits == 8)
            convert_u8(image, samples, end - x, dst, out->c);
        else if (b->sample_bits == 32)
            convert_f32(image, samples, end - x, dst, out->c);
        else
            convert_u16(image, samples, end - x, dst, out->c);
        if (image->options.nodata.given) replace_missing(image, samples, end - x, dst, out->c);
        x = end;
    }
    return RFX_OK;
}

static enum rfx_status read_rect(struct rfx_image *image, struct rfx_rect rect,
                                 const struct rfx_view *out, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    struct rfx_image_backend *b = image->backend;
    if (b->ops->read_floats != NULL) {
        status = b->ops->read_floats(b, rect, out, err);
        if (status == RFX_OK && image->options.nodata.given)
            replace_missing_floats(image, rect, out);
        return status;
    }
    if (!b->random_access) image->highest_y1 = rfx_max_i64(image->highest_y1, rect.y1);
    for (int64_t y = rect.y0; y < rect.y1; y++) {
        status = read_row(image, y, rect, out, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

void rfx_image_set_row_sums(struct rfx_image *image, struct rfx_row_sums *sums) {
    image->sums = sums;
}

enum rfx_status rfx_image_read(struct rfx_image *image, struct rfx_rect rect,
                               const struct rfx_view *out, struct rfx_error *err) {
    if (rfx_rect_is_empty(rect)) return RFX_OK;
    enum rfx_status status = check_rect(image, rect, out, err);
    if (status == RFX_OK) status = read_rect(image, rect, out, err);
    if (status == RFX_OK && image->sums != NULL) rfx_row_sums_add(image->sums, rect, out);
    return status;
}
