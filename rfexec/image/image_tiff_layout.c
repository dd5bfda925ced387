/* Directory fields through libtiff; conversion of one run of pixels at a time. */
#include "rfexec/image/image_tiff_layout.h"

#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_backend.h"

static const char *photometric_name(int photometric) {
    switch (photometric) {
        case PHOTOMETRIC_MASK:
            return "a mask";
        case PHOTOMETRIC_SEPARATED:
            return "inks (CMYK)";
        case PHOTOMETRIC_YCBCR:
            return "YCbCr without JPEG";
        case PHOTOMETRIC_CIELAB:
        case PHOTOMETRIC_ICCLAB:
        case PHOTOMETRIC_ITULAB:
            return "L*a*b*";
        case PHOTOMETRIC_LOGL:
        case PHOTOMETRIC_LOGLUV:
            return "logarithmic (SGI Log)";
        default:
            return "unknown to rfexec";
    }
}

/* Colour samples of a pixel, 0 when the kind is not delivered. */
static int colour_samples(const struct rfx_tiff_layout *l, int photometric) {
    switch (photometric) {
        case PHOTOMETRIC_MINISWHITE:
        case PHOTOMETRIC_MINISBLACK:
        case PHOTOMETRIC_PALETTE:
            return 1;
        case PHOTOMETRIC_RGB:
            return 3;
        case PHOTOMETRIC_YCBCR:
            return l->compression == COMPRESSION_JPEG ? 3 : 0;
        default:
            return 0;
    }
}

/* 16-bit entries become 8-bit ones where nothing is lost. */
static enum rfx_status read_palette(const struct rfx_tiff_library *lib, TIFF *tif,
                                    struct rfx_tiff_layout *l, struct rfx_error *err) {
    uint16_t *map[3];
    if (l->bits > 8)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "a palette of %d bits; up to 8 are read",
                        l->bits);
    if (!lib->TIFFGetField(tif, TIFFTAG_COLORMAP, &map[0], &map[1], &map[2]))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "a palette picture without a palette");
    int n = 1 << l->bits;
    bool narrow = true, plain = true; /* plain: 8-bit numbers, as old programs wrote */
    for (int i = 0; i < 3 * n; i++) {
        unsigned v = map[i % 3][i / 3];
        narrow = narrow && v % 257 == 0;
        plain = plain && v < 256;
    }
    l->sample_bits = narrow || plain ? 8 : 16;
    for (int i = 0; i < 3 * n; i++) {
        unsigned v = map[i % 3][i / 3];
        l->palette[i / 3][i % 3] = (uint16_t)(narrow && !plain ? v / 257 : v);
    }
    l->c = 3;
    l->is_palette = true;
    return RFX_OK;
}

static enum rfx_status check_samples(const struct rfx_tiff_layout *l, int format, int colours,
                                     struct rfx_error *err) {
    if (l->stored != colours && l->stored != colours + 1)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%d samples per pixel; %d, or %d with alpha, are read for this kind of "
                        "colour",
                        l->stored, colours, colours + 1);
    bool small = l->bits == 1 || l->bits == 2 || l->bits == 4;
    bool integers = format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID;
    if (integers && (l->bits == 8 || l->bits == 16 || (small && l->stored == 1))) return RFX_OK;
    if (format == SAMPLEFORMAT_IEEEFP && l->bits == 32) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "%d-bit %s samples, %d per pixel; 8 and 16 bit unsigned, 1, 2 and 4 bit grey "
                    "and float32 are read",
                    l->bits,
                    integers                        ? "unsigned"
                    : format == SAMPLEFORMAT_IEEEFP ? "floating point"
                                                    : "signed or complex",
                    l->stored);
}

static enum rfx_status read_colour(const struct rfx_tiff_library *lib, TIFF *tif,
                                   struct rfx_tiff_layout *l, struct rfx_error *err) {
    uint16_t stored = 1, bits = 1, photometric = 0, format = SAMPLEFORMAT_UINT;
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLESPERPIXEL, &stored);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_BITSPERSAMPLE, &bits);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLEFORMAT, &format);
    if (!lib->TIFFGetField(tif, TIFFTAG_PHOTOMETRIC, &photometric))
        photometric = stored >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
    l->stored = stored;
    l->bits = l->sample_bits = bits;
    int colours = colour_samples(l, photometric);
    if (colours == 0)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "colour is %s (photometric interpretation %d); grey, RGB, palettes and "
                        "JPEG's YCbCr are read",
                        photometric_name(photometric), photometric);
    enum rfx_status status = check_samples(l, format, colours, err);
    if (status != RFX_OK) return status;
    if (bits < 8) l->sample_bits = 8;
    l->c = colours;
    l->white_first = photometric == PHOTOMETRIC_MINISWHITE;
    if (l->white_first && bits == 32)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "float32 samples where 0 is white");
    /* libtiff converts JPEG's YCbCr itself when told so, and reports sizes accordingly */
    l->is_ycbcr = photometric == PHOTOMETRIC_YCBCR;
    if (l->is_ycbcr) (void)lib->TIFFSetField(tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    return photometric == PHOTOMETRIC_PALETTE ? read_palette(lib, tif, l, err) : RFX_OK;
}

static enum rfx_status check_compression(const struct rfx_tiff_library *lib, int compression,
                                         struct rfx_error *err) {
    const TIFFCodec *codec = lib->TIFFFindCODEC((uint16_t)compression);
    if (compression == COMPRESSION_OJPEG)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "compressed in the old JPEG way (6), which was never well defined");
    if (!lib->TIFFIsCODECConfigured((uint16_t)compression))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "compressed with method %d (%s), which this libtiff does not read",
                        compression, codec != NULL ? codec->name : "unknown");
    return RFX_OK;
}

enum rfx_status rfx_tiff_layout_read(const struct rfx_tiff_library *lib, TIFF *tif,
                                     struct rfx_tiff_layout *out, struct rfx_error *err) {
    struct rfx_tiff_layout *l = out;
    memset(l, 0, sizeof *l);
    uint32_t w = 0, h = 0, tile_w = 0, tile_h = 0;
    uint16_t compression = COMPRESSION_NONE, planar = PLANARCONFIG_CONTIG;
    uint16_t fill = FILLORDER_MSB2LSB;
    (void)lib->TIFFGetField(tif, TIFFTAG_IMAGEWIDTH, &w);
    (void)lib->TIFFGetField(tif, TIFFTAG_IMAGELENGTH, &h);
    if (h < 1 || w < 1 || h > RFX_IMAGE_MAX_SIDE || w > RFX_IMAGE_MAX_SIDE)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "TIFF of %u x %u pixels; 1 to %d of each are read", h, w,
                        RFX_IMAGE_MAX_SIDE);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_COMPRESSION, &compression);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_PLANARCONFIG, &planar);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_FILLORDER, &fill);
    l->h = h;
    l->w = w;
    l->compression = compression;
    l->lsb_first = fill == FILLORDER_LSB2MSB;
    enum rfx_status status = check_compression(lib, compression, err);
    if (status == RFX_OK) status = read_colour(lib, tif, l, err);
    if (status != RFX_OK) return status;
    l->separate = planar == PLANARCONFIG_SEPARATE && l->stored > 1;
    if (l->separate && l->is_ycbcr)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "JPEG's YCbCr in separate planes");
    l->tiled = lib->TIFFIsTiled(tif) != 0;
    if (l->tiled) {
        (void)lib->TIFFGetField(tif, TIFFTAG_TILEWIDTH, &tile_w);
        (void)lib->TIFFGetField(tif, TIFFTAG_TILELENGTH, &tile_h);
    } else {
        (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_ROWSPERSTRIP, &tile_h);
        tile_w = w;
        if (tile_h > h) tile_h = h;
    }
    if (tile_h < 1 || tile_w < 1 || tile_h > 4 * RFX_IMAGE_MAX_SIDE ||
        tile_w > 4 * RFX_IMAGE_MAX_SIDE)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "TIFF %s of %u x %u pixels",
                        l->tiled ? "tiles" : "strips", tile_h, tile_w);
    l->tile_h = tile_h;
    l->tile_w = tile_w;
    return RFX_OK;
}

int rfx_tiff_layout_planes(const struct rfx_tiff_layout *layout) {
    return layout->separate ? layout->stored : 1;
}

int64_t rfx_tiff_layout_row_bytes(const struct rfx_tiff_layout *layout, int64_t cols) {
    int64_t samples = cols * (layout->separate ? 1 : layout->stored);
    return (samples * layout->bits + 7) / 8;
}

int64_t rfx_tiff_layout_pixel_bytes(const struct rfx_tiff_layout *layout) {
    return (int64_t)layout->c * (layout->sample_bits / 8);
}

/* The i-th sample of 1, 2, 4 or 8 bits. */
static unsigned narrow_sample(const unsigned char *src, int bits, int64_t i) {
    if (bits == 8) return src[i];
    int64_t bit = i * bits;
    return (unsigned)src[bit / 8] >> (8 - bits - bit % 8) & ((1u << bits) - 1);
}

static void expand_palette(const struct rfx_tiff_layout *l, const unsigned char *src, int step,
                           int64_t cols, void *dst) {
    unsigned char *to8 = dst;
    uint16_t *to16 = dst;
    for (int64_t i = 0; i < cols; i++) {
        const uint16_t *colour = l->palette[narrow_sample(src, l->bits, i * step)];
        for (int c = 0; c < 3; c++) {
            if (l->sample_bits == 8)
                *to8++ = (unsigned char)colour[c];
            else
                *to16++ = colour[c];
        }
    }
}

void rfx_tiff_layout_convert(const struct rfx_tiff_layout *layout, const unsigned char *src,
                             int plane, int64_t cols, void *dst) {
    const struct rfx_tiff_layout *l = layout;
    const int step = l->separate ? 1 : l->stored; /* samples from pixel to pixel in src */
    const int first = l->separate ? plane : 0, count = l->separate ? 1 : l->c;
    if (first >= (l->is_palette ? 1 : l->c)) return; /* alpha in a plane of its own */
    if (l->is_palette) {
        expand_palette(l, src, step, cols, dst);
        return;
    }
    const size_t bytes = (size_t)l->sample_bits / 8;
    if (step == l->c && !l->white_first && l->bits >= 8) {
        memcpy(dst, src, (size_t)cols * (size_t)step * bytes);
        return;
    }
    const unsigned flip8 = l->white_first ? 0xff : 0;
    const unsigned top = (1u << (l->bits < 8 ? l->bits : 8)) - 1;
    for (int64_t i = 0; i < cols; i++)
        for (int k = 0; k < count; k++) {
            int64_t from = i * step + k;
            unsigned char *to = (unsigned char *)dst + (size_t)(i * l->c + first + k) * bytes;
            if (bytes == 1) {
                unsigned v = narrow_sample(src, l->bits, from);
                *to = (unsigned char)((l->bits == 8 ? v : v * 255 / top) ^ flip8);
                continue;
            }
            memcpy(to, src + (size_t)from * bytes, bytes);
            if (!l->white_first) continue;
            to[0] = (unsigned char)(to[0] ^ 0xff); /* 16 bits: 65535 - v */
            to[1] = (unsigned char)(to[1] ^ 0xff);
        }
}
