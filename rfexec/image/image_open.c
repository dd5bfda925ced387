/* Opening a picture by its kind, which the first bytes of the file tell. */
#include <inttypes.h>
#include <string.h>

#include "rfexec/image/bands/file_bands.h"
#include "rfexec/image/bands/joined.h"
#include "rfexec/image/bands/page_bands.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"
#include "rfexec/image/jp2/image_jp2.h"
#include "rfexec/image/npy_format.h"
#include "rfexec/image/slides/image_slide.h"
#include "rfexec/image/turn/cropped.h"
#include "rfexec/image/turn/turned.h"
#include "rfexec/image/webp/image_webp.h"
#include "rfexec/image/zarr/image_zarr.h"
#include "rfexec/image/zarr/zarr_folder.h"

#define HEAD_BYTES 34 /* of a file, by which its kind is told */

/* Of files that are one picture, of one or three channels. */
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

/* Those bands of b, in this order, of which it delivers all. Takes b over when it succeeds. */
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

/* Kinds that people have and that are not read, by bytes at an offset; NULL: none of them. */
static const char *known_kind(const unsigned char head[HEAD_BYTES]) {
    static const struct {
        const char *name, *bytes;
        size_t offset, n;
    } kinds[] = {
        {"a high dynamic range (Radiance HDR) picture", "#?RADIANCE", 0, 10},
        {"a high dynamic range (Radiance HDR) picture", "#?RGBE", 0, 6},
        {"an AVIF picture", "ftypavif", 4, 8},
        {"a HEIC picture", "ftyphei", 4, 7},
        {"a HEIC picture", "ftypmif1", 4, 8},
        {"a JPEG XL picture", "JXL ", 4, 4},
        {"an OpenEXR picture", "\x76\x2f\x31\x01", 0, 4},
        {"a PDF document", "%PDF", 0, 4},
        {"an archive (zip, .npz)", "PK\x03\x04", 0, 4},
        {"an HDF5 file", "\x89HDF", 0, 4},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (memcmp(head + kinds[i].offset, kinds[i].bytes, kinds[i].n) == 0) return kinds[i].name;
    return NULL;
}

/* Files of one picture, of which all bands are delivered where some are chosen. */
static enum rfx_status open_picture(struct rfx_memory *mem, const char *name,
                                    const unsigned char head[HEAD_BYTES],
                                    const struct rfx_image_options *options,
                                    struct rfx_image_backend **out, struct rfx_error *err) {
    if (memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0)
        return rfx_image_png_open(mem, name, options, out, err);
    if (memcmp(head, "\xff\xd8", 2) == 0)
        return rfx_image_jpeg_open(mem, name, options->folder, out, err);
    if (memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBP", 4) == 0)
        return rfx_image_webp_open(mem, name, options, out, err);
    if (memcmp(head + 4, "jP  ", 4) == 0 || memcmp(head, "\xff\x4f\xff\x51", 4) == 0)
        return rfx_image_jp2_open(mem, name, options, out, err);
    if (rfx_image_is_bmp_rle(head)) return rfx_image_bmp_rle_open(mem, name, out, err);
    const char *kind = known_kind(head);
    if (kind != NULL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: %s, which rfexec does not read: convert it to PNG, TIFF or .npy", name,
                        kind);
    return rfx_image_stb_open(mem, name, out, err);
}

/* Picks the kind by the first bytes and opens it. */
static enum rfx_status open_file(struct rfx_memory *mem, const char *name,
                                 const struct rfx_image_options *options,
                                 struct rfx_image_backend **out, struct rfx_error *err) {
    unsigned char head[HEAD_BYTES];
    struct rfx_image_file *file =
        rfx_memory_alloc(mem, sizeof *file); /* 16 KiB: not on the stack */
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
    if (memcmp(head, "II*\0", 4) == 0 || memcmp(head, "MM\0*", 4) == 0 ||
        memcmp(head, "II+\0", 4) == 0 || memcmp(head, "MM\0+", 4) == 0)
        return rfx_image_tiff_pages_open(mem, name, options, out, err);
    status = refuse_choice(options, name, err);
    struct rfx_image_backend *b = NULL;
    if (status == RFX_OK) status = open_picture(mem, name, head, options, &b, err);
    if (status != RFX_OK || options->bands == NULL) {
        *out = b;
        return status;
    }
    status = choose_bands(b, options->bands, out, err);
    if (status != RFX_OK) b->ops->free(b);
    return status;
}
/* The picture as it is seen. */
static enum rfx_status open_seen(struct rfx_memory *mem, const char *name,
                                 const struct rfx_image_options *options,
                                 struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_image_backend *b = NULL;
    const bool bands = strncmp(name, RFX_IMAGE_BANDS_PREFIX, strlen(RFX_IMAGE_BANDS_PREFIX)) == 0;
    enum rfx_status status = bands ? rfx_image_file_bands_open(mem, name, options, &b, err)
                             : rfx_is_zarr(name) ? rfx_image_zarr_open(mem, name, options, &b, err)
                             : options->slide || rfx_image_is_slide(name)
                                 ? rfx_image_slide_open(mem, name, options, &b, err)
                                 : open_file(mem, name, options, &b, err);
    if (status != RFX_OK) return status;
    if (options->as_stored || b->orientation < 2) {
        *out = b;
        return RFX_OK;
    }
    status = rfx_image_turned_open(b, options->folder, out, err);
    if (status != RFX_OK) b->ops->free(b);
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
    status = synthetic ? rfx_image_synthetic_open(mem, name, options->channels, &b, err)
                       : open_seen(mem, name, options, &b, err);
    if (status == RFX_OK && memcmp(&options->region, &all, sizeof all) == 0) {
        *out = b;
        return RFX_OK;
    }
    if (status != RFX_OK) return status;
    status = rfx_image_cropped_open(b, options->region, out, err);
    if (status != RFX_OK) b->ops->free(b);
    return status;
}
