/* TIFF and OME-TIFF as kinds of output files: converts a format to the writer's options. */
#include <string.h>

#include "rfexec/image/tiff/tiff_library.h"
#include "rfexec/output/name_list.h"
#include "rfexec/output/ome/ome_xml.h"
#include "rfexec/output/output_format.h"
#include "rfexec/output/tiff_write.h"

#define PATH_BYTES ((size_t)4096)
/* Memory that all TIFFs share: libtiff, and code pages that further files use too. One more TIFF
 * took 30 KiB besides its rows. */
#define SHARED_BYTES (RFX_TIFF_LIBRARY_BYTES + (size_t)144 * 1024)
enum { OME_TILE = 256, LONGEST = 6 /* most bytes of a character in XML */ };

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
    bool ome = format->kind == &rfx_output_ome_tiff;
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

/* Makes the description of the first directory. */
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

static enum rfx_status kind_open(struct rfx_memory *mem, const char *path,
                                 const struct rfx_output_format *format,
                                 const struct rfx_tensor *map, void **writer,
                                 struct rfx_error *err) {
    struct rfx_tiff_writer *tiff = NULL;
    char *words = NULL;
    enum rfx_status status = RFX_OK;
    if (format->kind == &rfx_output_ome_tiff)
        status = describe(mem, path, format, map, &words, err);
    const struct rfx_tiff_picture picture = tiff_picture(format, map, words);
    if (status == RFX_OK) status = rfx_tiff_write_open(mem, path, &picture, &tiff, err);
    rfx_memory_release(mem, words);
    *writer = tiff;
    return status;
}

static size_t kind_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    const struct rfx_tiff_picture picture = tiff_picture(format, map, NULL);
    const struct rfx_ome_image image = ome_image(format, map, "", NULL);
    const char *file = format->channel_names;
    size_t bytes = RFX_TIFF_LIBRARY_BYTES + rfx_tiff_write_bytes(&picture), names;
    if (format->kind != &rfx_output_ome_tiff) return bytes;
    names = file == NULL ? 0 : rfx_channel_names_bytes(file);
    /* our copy, libtiff's copy and its buffer; all characters of names may need LONGEST bytes */
    return bytes + names + 3 * (rfx_ome_xml_bytes(&image) + LONGEST * (PATH_BYTES + names));
}

static enum rfx_status kind_write_row(void *writer, const void *samples, struct rfx_error *err) {
    return rfx_tiff_write_row(writer, samples, err);
}

static enum rfx_status kind_commit(void *writer, struct rfx_error *err) {
    return rfx_tiff_write_commit(writer, err);
}

static void kind_free(void *writer) {
    rfx_tiff_write_free(writer);
}

static enum rfx_status check_ome(const struct rfx_output_format *format, const char *path,
                                 struct rfx_error *err) {
    if (format->packing != RFX_TIFF_ZSTD) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: Bio-Formats does not read an OME-TIFF with libtiff's zstd; deflate is "
                    "read by all",
                    path);
}

const struct rfx_output_kind rfx_output_tiff = {
    .name = "TIFF",
    .ends = {".tif", ".tiff"},
    .samples = RFX_OUTPUT_ALL_SAMPLES,
    .most_channels = RFX_TIFF_MAX_CHANNELS,
    .most_side = INT32_MAX,
    .takes = RFX_OUTPUT_TAKES_TILES | RFX_OUTPUT_TAKES_COG | RFX_OUTPUT_TAKES_OVERVIEWS,
    .shared_bytes = SHARED_BYTES,
    .placed = true,
    .bytes = kind_bytes,
    .open = kind_open,
    .write_row = kind_write_row,
    .commit = kind_commit,
    .free = kind_free,
};

/* OME-TIFF: tiles, OME-XML, and overviews as SubIFDs of their picture. */
const struct rfx_output_kind rfx_output_ome_tiff = {
    .name = "tiled OME-TIFF",
    .ends = {".ome.tif", ".ome.tiff"},
    .samples = RFX_OUTPUT_ALL_SAMPLES,
    .most_channels = 4096, /* each channel is a directory, and readers go through them one by one */
    .most_side = INT32_MAX,
    .takes = RFX_OUTPUT_TAKES_TILES | RFX_OUTPUT_TAKES_OVERVIEWS | RFX_OUTPUT_TAKES_NAMES,
    .shared_bytes = SHARED_BYTES,
    .placed = true,
    .check = check_ome,
    .bytes = kind_bytes,
    .open = kind_open,
    .write_row = kind_write_row,
    .commit = kind_commit,
    .free = kind_free,
};
