/* Tags of sizes, samples, packing and places; see tiff_fields.h. */
#include "rfexec/output/tiff/tiff_fields.h"

#include <stdlib.h>

#include "rfexec/image/geo/geo_tiff.h"

enum { ZSTD_LEVEL = 3, MOST_BELOW = 32 };

struct target {
    struct rfx_memory *mem;
    const char *path;
    const struct rfx_tiff_client *client;
    const struct rfx_tiff_library *lib;
    TIFF *tiff;
};

static enum rfx_status failed(const struct target *t, int64_t h, struct rfx_error *err) {
    return rfx_tiff_client_failed(t->client, t->path, 0, h, err);
}

/* Sets the tags of channels. Channels after the colours are marked as unspecified. */
static enum rfx_status set_channels(const struct target *t, const struct rfx_tiff_picture *p,
                                    struct rfx_error *err) {
    bool colour = p->channels == 3;
    size_t extra = colour ? 0 : (size_t)p->channels - 1;
    bool done = t->lib->TIFFSetField(t->tiff, TIFFTAG_SAMPLESPERPIXEL, (int)p->channels) != 0 &&
                t->lib->TIFFSetField(t->tiff, TIFFTAG_PHOTOMETRIC,
                                     colour ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK) != 0;
    if (!done) return failed(t, p->h, err);
    if (extra == 0) return RFX_OK;
    uint16_t *kinds = rfx_memory_calloc(t->mem, extra, sizeof *kinds);
    if (kinds == NULL) return rfx_memory_fail(t->mem, t->path, extra * sizeof *kinds, err);
    done = t->lib->TIFFSetField(t->tiff, TIFFTAG_EXTRASAMPLES, (int)extra, kinds) != 0;
    rfx_memory_release(t->mem, kinds);
    return done ? RFX_OK : failed(t, p->h, err);
}

/* Sets the compression. The predictor replaces samples by differences between neighbours: 2, or 3
 * for floats; 1: none. */
static enum rfx_status set_packing(const struct target *t, const struct rfx_tiff_picture *p,
                                   struct rfx_error *err) {
    static const int codecs[] = {COMPRESSION_NONE, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_ZSTD};
    static const char *const names[] = {"none", "deflate", "zstd"};
    const struct rfx_tiff_library *lib = t->lib;
    int codec = codecs[p->packing], predictor = p->bits < 32 || p->is_signed ? 2 : p->ome ? 1 : 3;
    if (lib->TIFFIsCODECConfigured((uint16_t)codec) == 0)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: this system's libtiff has no %s", t->path,
                        names[p->packing]);
    bool done = lib->TIFFSetField(t->tiff, TIFFTAG_COMPRESSION, codec) != 0;
    if (done && p->packing != RFX_TIFF_PLAIN)
        done = lib->TIFFSetField(t->tiff, TIFFTAG_PREDICTOR, predictor) != 0;
    if (done && p->packing == RFX_TIFF_ZSTD)
        done = lib->TIFFSetField(t->tiff, TIFFTAG_ZSTD_LEVEL, (int)ZSTD_LEVEL) != 0;
    return done ? RFX_OK : failed(t, p->h, err);
}

static bool set_striles(const struct target *t, const struct rfx_tiff_directory *directory) {
    const struct rfx_tiff_picture *p = directory->picture;
    if (p->tile == 0)
        return t->lib->TIFFSetField(t->tiff, TIFFTAG_ROWSPERSTRIP,
                                    (uint32_t)directory->strip_rows) != 0;
    return (!directory->reduced ||
            t->lib->TIFFSetField(t->tiff, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE) != 0) &&
           t->lib->TIFFSetField(t->tiff, TIFFTAG_TILEWIDTH, (uint32_t)p->tile) != 0 &&
           t->lib->TIFFSetField(t->tiff, TIFFTAG_TILELENGTH, (uint32_t)p->tile) != 0;
}

/* Sets the description and the SubIFDs. libtiff replaces the zeros by the SubIFDs' offsets later.
 */
static bool set_words(const struct target *t, const struct rfx_tiff_directory *directory) {
    static const uint64_t places[MOST_BELOW];
    const char *words = directory->picture->description;
    return (words == NULL || t->lib->TIFFSetField(t->tiff, TIFFTAG_IMAGEDESCRIPTION, words) != 0) &&
           (directory->n_below == 0 ||
            t->lib->TIFFSetField(t->tiff, TIFFTAG_SUBIFD, directory->n_below, places) != 0);
}

static int sample_format(const struct rfx_tiff_picture *p) {
    if (p->is_signed) return SAMPLEFORMAT_INT;
    return p->bits == 32 ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT;
}

static bool set_samples(const struct target *t, const struct rfx_tiff_picture *p) {
    const struct rfx_tiff_library *lib = t->lib;
    return lib->TIFFSetField(t->tiff, TIFFTAG_IMAGEWIDTH, (uint32_t)p->w) != 0 &&
           lib->TIFFSetField(t->tiff, TIFFTAG_IMAGELENGTH, (uint32_t)p->h) != 0 &&
           lib->TIFFSetField(t->tiff, TIFFTAG_BITSPERSAMPLE, p->bits) != 0 &&
           lib->TIFFSetField(t->tiff, TIFFTAG_SAMPLEFORMAT, sample_format(p)) != 0 &&
           lib->TIFFSetField(t->tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) != 0 &&
           lib->TIFFSetField(t->tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT) != 0;
}

enum rfx_status rfx_tiff_fields_set(struct rfx_memory *mem, const char *path,
                                    const struct rfx_tiff_client *client,
                                    const struct rfx_tiff_library *lib, TIFF *tiff,
                                    const struct rfx_tiff_directory *directory,
                                    struct rfx_error *err) {
    const struct target t = {mem, path, client, lib, tiff};
    const struct rfx_tiff_picture *p = directory->picture;
    if (!set_samples(&t, p)) return failed(&t, p->h, err);
    enum rfx_status status = set_channels(&t, p, err);
    if (status == RFX_OK) status = set_packing(&t, p, err);
    if (status != RFX_OK) return status;
    bool done = set_striles(&t, directory) && set_words(&t, directory) &&
                (p->geo == NULL || rfx_geo_tiff_set(p->geo, lib, tiff));
    return done ? RFX_OK : failed(&t, p->h, err);
}
