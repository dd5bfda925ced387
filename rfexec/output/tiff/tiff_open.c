/* What of a format reaches the writer; see tiff_open.h. */
#include "rfexec/output/tiff/tiff_open.h"

#include <string.h>

#include "rfexec/output/ome/channel_names.h"
#include "rfexec/output/ome/ome_xml.h"

#define PATH_BYTES ((size_t)4096)
enum { OME_TILE = 256, LONGEST = 6 /* bytes of a character in XML */ };

static struct rfx_ome_image ome_image(const struct rfx_output_format *format,
                                      const struct rfx_tensor *t, const char *path,
                                      const char *names) {
    struct rfx_ome_image image = {.h = t->h,
                                  .w = t->w,
                                  .channels = t->c,
                                  .bits = rfx_output_bits(format),
                                  .is_signed = rfx_output_is_signed(format),
                                  .path = path,
                                  .names = names};
    if (format->geo == NULL) return image;
    memcpy(image.pixel_um, format->geo->pixel_um, sizeof image.pixel_um);
    return image;
}

static struct rfx_tiff_picture tiff_picture(const struct rfx_output_format *format,
                                            const struct rfx_tensor *t, const char *words) {
    bool ome = format->kind == RFX_OUTPUT_OME_TIFF;
    const struct rfx_ome_image image = ome_image(format, t, "", format->channel_names);
    return (struct rfx_tiff_picture){.h = t->h,
                                     .w = t->w,
                                     .channels = t->c,
                                     .bits = rfx_output_bits(format),
                                     .is_signed = rfx_output_is_signed(format),
                                     .tile = ome && format->tile == 0 ? OME_TILE : format->tile,
                                     .packing = format->packing,
                                     .geo = format->geo,
                                     .overviews = format->overviews,
                                     .planes = ome && t->c > 1 && !rfx_ome_is_colour(&image),
                                     .ome = ome,
                                     .cog = format->cog,
                                     .description = words};
}

/* The words of the first directory. */
static enum rfx_status describe(struct rfx_memory *mem, const char *path,
                                const struct rfx_output_format *format,
                                const struct rfx_tensor *tensor, char **words,
                                struct rfx_error *err) {
    char *names = NULL;
    enum rfx_status status = RFX_OK;
    if (format->channel_names != NULL)
        status = rfx_channel_names_read(mem, format->channel_names, tensor->c, &names, err);
    const struct rfx_ome_image image = ome_image(format, tensor, path, names);
    if (status == RFX_OK) status = rfx_ome_xml(mem, &image, words, err);
    rfx_memory_release(mem, names);
    return status;
}

enum rfx_status rfx_tiff_open(struct rfx_memory *mem, const char *path,
                              const struct rfx_output_format *format,
                              const struct rfx_tensor *tensor, struct rfx_tiff_writer **out,
                              struct rfx_error *err) {
    char *words = NULL;
    enum rfx_status status = RFX_OK;
    if (format->kind == RFX_OUTPUT_OME_TIFF)
        status = describe(mem, path, format, tensor, &words, err);
    const struct rfx_tiff_picture picture = tiff_picture(format, tensor, words);
    if (status == RFX_OK) status = rfx_tiff_write_open(mem, path, &picture, out, err);
    rfx_memory_release(mem, words);
    return status;
}

size_t rfx_tiff_bytes(const struct rfx_output_format *format, const struct rfx_tensor *tensor) {
    const struct rfx_tiff_picture picture = tiff_picture(format, tensor, NULL);
    const struct rfx_ome_image image = ome_image(format, tensor, "", NULL);
    const char *file = format->channel_names;
    size_t bytes = rfx_tiff_write_bytes(&picture), names;
    if (format->kind != RFX_OUTPUT_OME_TIFF) return bytes;
    names = file == NULL ? 0 : rfx_channel_names_bytes(file);
    /* ours, libtiff's, its buffer; names perhaps of such characters alone */
    return bytes + names + 3 * (rfx_ome_xml_bytes(&image) + LONGEST * (PATH_BYTES + names));
}
