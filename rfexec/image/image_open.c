/* Opens a picture of any kind. The first bytes of the file tell the kind. The picture is delivered
 * in the orientation in which it is seen, or a rectangle of it. */
#include <inttypes.h>
#include <string.h>

#include <rfx_build.h>

#include "layers/core/checked.h"
#include "rfexec/image/decode/npy_format.h"
#include "rfexec/image/decode/orientation.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"
#include "rfexec/image/image_kind.h"
#include "rfexec/image/joined_bands.h"

#define HEAD_BYTES 34 /* first bytes of a file, which tell its kind */

/* Refuses a choice of page, level or band for a file that is one picture of one or three channels.
 */
static enum rfx_status refuse_choice(const struct rfx_image_options *options, const char *name,
                                     struct rfx_error *err) {
    if (options->slide)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: --level: only slides and Zarr folders have levels", name);
    if (options->page != 0)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: --page %" PRId64
                        ": only TIFF files, slides and Zarr folders have more than page 0",
                        name, options->page);
    return RFX_OK;
}

/* Makes a picture of the chosen bands of b, in this order. `b` delivers all its bands. Owns b after
 * success. */
static enum rfx_status choose_bands(struct rfx_image_backend *b,
                                    const struct rfx_image_bands *chosen,
                                    struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_joined_channel channels[RFX_IMAGE_MAX_BANDS];
    for (int k = 0; k < chosen->n; k++) {
        if (chosen->numbers[k] > b->c)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: --channels: band %d of %" PRId64,
                            b->name, chosen->numbers[k], b->c);
        channels[k] = (struct rfx_joined_channel){0, (uint16_t)(chosen->numbers[k] - 1)};
    }
    return rfx_image_joined_open(b->mem, b->name, &b, 1, channels, chosen->n, (int)b->c, out, err);
}

/* A kind of file, recognised by `n` bytes at an offset. If this build does not read such pictures,
 * `opener` is NULL, and `option` names the build option that is OFF. Without an option no build
 * reads them. */
struct file_kind {
    const char *name; /* name for messages */
    size_t offset, n;
    const char *bytes, *option;
    rfx_image_opener *opener;
};

#define CODEC(option, opener) #option, RFX_WHEN(option, opener)

static const struct file_kind tiff = {"TIFF", 0, 0, "",
                                      CODEC(RFX_WITH_TIFF, rfx_image_tiff_pages_open)};
static const struct file_kind bmp_rle = {"BMP", 0, 0, "",
                                         CODEC(RFX_WITH_STB, rfx_image_bmp_rle_open)};
static const struct file_kind zarr = {"Zarr", 0, 0, "", CODEC(RFX_WITH_ZARR, rfx_image_zarr_open)};
static const struct file_kind slide = {"slide", 0, 0, "",
                                       CODEC(RFX_WITH_SLIDES, rfx_image_slide_open)};
/* Files of one picture. The last row matches every other file. */
static const struct file_kind pictures[] = {
    {"PNG", 0, 8, "\x89PNG\r\n\x1a\n", CODEC(RFX_WITH_PNG, rfx_image_png_open)},
    {"JPEG", 0, 2, "\xff\xd8", CODEC(RFX_WITH_JPEG, rfx_image_jpeg_open)},
    {"WebP", 8, 4, "WEBP", CODEC(RFX_WITH_WEBP, rfx_image_webp_open)},
    {"JPEG 2000", 4, 4, "jP  ", CODEC(RFX_WITH_JPEG2000, rfx_image_jp2_open)},
    {"JPEG 2000", 0, 4, "\xff\x4f\xff\x51", CODEC(RFX_WITH_JPEG2000, rfx_image_jp2_open)},
    {"a high dynamic range (Radiance HDR) picture", 0, 10, "#?RADIANCE", NULL, NULL},
    {"a high dynamic range (Radiance HDR) picture", 0, 6, "#?RGBE", NULL, NULL},
    {"an AVIF picture", 4, 8, "ftypavif", NULL, NULL},
    {"a HEIC picture", 4, 7, "ftyphei", NULL, NULL},
    {"a HEIC picture", 4, 8, "ftypmif1", NULL, NULL},
    {"a JPEG XL picture", 4, 4, "JXL ", NULL, NULL},
    {"an OpenEXR picture", 0, 4, "\x76\x2f\x31\x01", NULL, NULL},
    {"a PDF document", 0, 4, "%PDF", NULL, NULL},
    {"an archive (zip, .npz)", 0, 4, "PK\x03\x04", NULL, NULL},
    {"an HDF5 file", 0, 4, "\x89HDF", NULL, NULL},
    {"BMP, GIF, PIC, PNM, PSD or TGA", 0, 0, "", CODEC(RFX_WITH_STB, rfx_image_stb_open)},
};

static enum rfx_status open_kind(const struct file_kind *kind, struct rfx_memory *mem,
                                 const char *name, const struct rfx_image_options *options,
                                 struct rfx_image_backend **out, struct rfx_error *err) {
    if (kind->opener != NULL) return kind->opener(mem, name, options, out, err);
    if (kind->option != NULL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: %s: this build has no %s support (%s=OFF)", name, kind->name,
                        kind->name, kind->option);
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "%s: %s, which rfexec does not read: convert it to PNG, TIFF or .npy", name,
                    kind->name);
}

static const struct file_kind *kind_of(const unsigned char head[HEAD_BYTES]) {
    const struct file_kind *k = pictures;
    while (memcmp(head + k->offset, k->bytes, k->n) != 0) k++;
    return k->n == 0 && rfx_image_is_bmp_rle(head) ? &bmp_rle : k;
}

/* Finds the kind of file by its first bytes and opens it. */
static enum rfx_status open_file(struct rfx_memory *mem, const char *name,
                                 const struct rfx_image_options *options,
                                 struct rfx_image_backend **out, struct rfx_error *err) {
    unsigned char head[HEAD_BYTES];
    struct rfx_image_file *file =
        rfx_memory_alloc(mem, sizeof *file); /* 16 KiB, too large for the stack */
    if (file == NULL) return rfx_memory_fail(mem, name, sizeof *file, err);
    memset(head, 0, sizeof head);
    enum rfx_status status = rfx_image_file_open(file, name, err);
    size_t got = 0;
    if (status == RFX_OK) {
        got = rfx_image_file_pread(file, head, sizeof head, 0);
        if (file->error_number != 0)
            status = rfx_fail(err, RFX_STATUS_IO, "%s: %s", name, strerror(file->error_number));
        rfx_image_file_close(file);
    }
    rfx_memory_release(mem, file);
    if (status != RFX_OK) return status;
    if (got == 0) return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: the file is empty", name);
    if (memcmp(head, RFX_NPY_MAGIC, RFX_NPY_MAGIC_BYTES) == 0 && options->page == 0)
        return rfx_image_npy_open(mem, name, options, out, err);
    if (rfx_image_is_tiff(head)) return open_kind(&tiff, mem, name, options, out, err);
    status = refuse_choice(options, name, err);
    struct rfx_image_backend *b = NULL;
    if (status == RFX_OK) status = open_kind(kind_of(head), mem, name, options, &b, err);
    if (status != RFX_OK || options->bands == NULL) {
        *out = b;
        return status;
    }
    status = choose_bands(b, options->bands, out, err);
    if (status != RFX_OK) b->ops->free(b);
    return status;
}

/* Opens the picture in the orientation in which it is seen. */
static enum rfx_status open_seen(struct rfx_memory *mem, const char *name,
                                 const struct rfx_image_options *options,
                                 struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_image_backend *b = NULL;
    const bool bands = strncmp(name, RFX_IMAGE_BANDS_PREFIX, strlen(RFX_IMAGE_BANDS_PREFIX)) == 0;
    enum rfx_status status = bands ? rfx_image_file_bands_open(mem, name, options, &b, err)
                             : rfx_is_zarr(name) ? open_kind(&zarr, mem, name, options, &b, err)
                             : options->slide || rfx_image_is_slide(name)
                                 ? open_kind(&slide, mem, name, options, &b, err)
                                 : open_file(mem, name, options, &b, err);
    if (status != RFX_OK) return status;
    if (options->as_stored || b->orientation < 2) {
        *out = b;
        return RFX_OK;
    }
    status = rfx_image_orient(b, options->folder, out, err);
    if (status != RFX_OK) b->ops->free(b);
    return status;
}

struct cropped_source {
    struct rfx_image_backend base;
    struct rfx_image_backend *whole;
    int64_t y0, x0;
};

static struct cropped_source *self_of(struct rfx_image_backend *b) {
    return (struct cropped_source *)(void *)b;
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct rfx_image_backend *whole = self_of(b)->whole;
    return whole->ops->set_window != NULL ? whole->ops->set_window(whole, rows, err) : RFX_OK;
}

static enum rfx_status source_rewind(struct rfx_image_backend *b, struct rfx_error *err) {
    struct rfx_image_backend *whole = self_of(b)->whole;
    return whole->ops->rewind != NULL ? whole->ops->rewind(whole, err) : RFX_OK;
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    const struct cropped_source *s = self_of(b);
    enum rfx_status status =
        s->whole->ops->fetch(s->whole, y + s->y0, x0 + s->x0, x1 + s->x0, room, samples, end, err);
    *end -= s->x0;
    return status;
}

/* Reads row by row, because the rows of a ring buffer are placed by their own numbers. */
static enum rfx_status source_read_floats(struct rfx_image_backend *b, struct rfx_rect rect,
                                          const struct rfx_view *out, struct rfx_error *err) {
    const struct cropped_source *s = self_of(b);
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y++) {
        const int64_t from = y + s->y0;
        struct rfx_rect row = rfx_rect_make(from, from + 1, rect.x0 + s->x0, rect.x1 + s->x0);
        struct rfx_view view = {.data = rfx_view_f32_at(out, y, rect.x0),
                                .rect = row,
                                .c = out->c,
                                .row_stride = out->row_stride,
                                .type = out->type};
        status = s->whole->ops->read_floats(s->whole, row, &view, err);
    }
    return status;
}

static void source_select(struct rfx_image_backend *b, int64_t n) {
    struct rfx_image_backend *whole = self_of(b)->whole;
    if (whole->ops->select != NULL) whole->ops->select(whole, n);
}

static void source_free(struct rfx_image_backend *b) {
    struct rfx_image_backend *whole = self_of(b)->whole;
    whole->ops->free(whole);
    rfx_memory_release(b->mem, b);
}

static const struct rfx_image_backend_ops sample_ops = {.set_window = source_set_window,
                                                        .fetch = source_fetch,
                                                        .rewind = source_rewind,
                                                        .select = source_select,
                                                        .free = source_free};
static const struct rfx_image_backend_ops float_ops = {.set_window = source_set_window,
                                                       .read_floats = source_read_floats,
                                                       .rewind = source_rewind,
                                                       .select = source_select,
                                                       .free = source_free};

/* Makes a source of rectangle `region` of `whole`, which it owns after success. The values are
 * those of the whole picture. Every request is passed on to `whole`, moved by the corner of the
 * rectangle. Random access stays random access; else rows above the rectangle are decoded and
 * skipped. UNSUPPORTED: the rectangle is not in the picture. */
static enum rfx_status crop(struct rfx_image_backend *whole, struct rfx_rect region,
                            struct rfx_image_backend **out, struct rfx_error *err) {
    if (region.y0 < 0 || region.x0 < 0 || region.y1 > whole->h || region.x1 > whole->w ||
        rfx_rect_is_empty(region))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: --region %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                        " is no rectangle of %" PRId64 " x %" PRId64 " pixels",
                        whole->name, region.y0, region.x0, region.y1, region.x1, whole->h,
                        whole->w);
    struct cropped_source *s = rfx_memory_calloc(whole->mem, 1, sizeof *s);
    if (s == NULL) return rfx_memory_fail(whole->mem, whole->name, sizeof *s, err);
    s->base = *whole;
    s->base.ops = whole->ops->read_floats != NULL ? &float_ops : &sample_ops;
    s->base.h = rfx_rect_rows(region);
    s->base.w = rfx_rect_cols(region);
    s->base.pass_picoseconds *=
        (double)region.y1 / (double)whole->h; /* rows below the rectangle are not decoded */
    s->base.fixed_bytes += sizeof *s;         /* in addition to the memory of `whole` */
    s->whole = whole;
    s->y0 = region.y0;
    s->x0 = region.x0;
    int64_t pixels;
    s->base.whole_pixels = rfx_checked_mul_i64(whole->h, whole->w, &pixels) ? pixels : INT64_MAX;
    *out = &s->base;
    return RFX_OK;
}

enum rfx_status rfx_image_backend_create(struct rfx_memory *mem, size_t bytes,
                                         const struct rfx_image_backend_ops *ops, const char *name,
                                         const char *kind, struct rfx_image_backend **out,
                                         struct rfx_error *err) {
    struct rfx_image_backend *b = rfx_memory_calloc(mem, 1, bytes);
    if (b == NULL) return rfx_memory_fail(mem, name, bytes, err);
    b->ops = ops;
    b->mem = mem;
    b->name = name;
    b->kind = kind;
    *out = b;
    return RFX_OK;
}

enum rfx_status rfx_image_backend_finish(struct rfx_image_backend *b, enum rfx_status status,
                                         struct rfx_image_backend **out) {
    if (status == RFX_OK)
        *out = b;
    else
        b->ops->free(b);
    return status;
}

enum rfx_status rfx_image_backend_open(struct rfx_memory *mem, const char *name,
                                       const struct rfx_image_options *options,
                                       struct rfx_image_backend **out, struct rfx_error *err) {
    bool synthetic =
        strncmp(name, RFX_IMAGE_SYNTHETIC_PREFIX, strlen(RFX_IMAGE_SYNTHETIC_PREFIX)) == 0;
    const struct rfx_rect all = {0};
    struct rfx_image_backend *b = NULL;
    enum rfx_status status = synthetic ? refuse_choice(options, name, err) : RFX_OK;
    if (status == RFX_OK && synthetic && options->bands != NULL)
        status = rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                          "%s: --channels chooses bands of files, and this is none", name);
    if (status != RFX_OK) return status;
    status = synthetic ? rfx_image_synthetic_open(mem, name, options, &b, err)
                       : open_seen(mem, name, options, &b, err);
    if (status == RFX_OK && memcmp(&options->region, &all, sizeof all) == 0) {
        *out = b;
        return RFX_OK;
    }
    if (status != RFX_OK) return status;
    status = crop(b, options->region, out, err);
    if (status != RFX_OK) b->ops->free(b);
    return status;
}
