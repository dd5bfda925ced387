/* Reads directory fields through libtiff; converts one run of pixels at a time. */
#include "rfexec/image/tiff/tiff_layout.h"

#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "rfexec/image/image_backend.h"

#define MOST_TILE_SIDE 4000000

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

/* Returns the colour samples of a pixel; 0: pictures of this kind are not delivered. */
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

/* Reads a palette. 16-bit entries become 8-bit ones if nothing is lost. */
static enum rfx_status read_palette(const struct rfx_tiff_library *lib, TIFF *tif,
                                    struct rfx_tiff_layout *l, struct rfx_error *err) {
    uint16_t *map[3];
    if (l->bits > 8 || l->sample_bits != 8)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "a palette of %d bits%s; up to 8 without sign are read", l->bits,
                        l->bits > 8 ? "" : " with sign");
    if (!lib->TIFFGetField(tif, TIFFTAG_COLORMAP, &map[0], &map[1], &map[2]))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "a palette picture without a palette");
    int n = 1 << l->bits;
    bool narrow = true, plain = true; /* plain: 8-bit numbers, which old programs wrote */
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
    return RFX_OK;
}

/* Checks that samples of this kind are supported. */
static enum rfx_status check_samples(const struct rfx_tiff_layout *l, struct rfx_error *err) {
    bool small = l->bits == 1 || l->bits == 2 || l->bits == 4;
    bool whole = l->bits == 8 || l->bits == 16 || l->bits == 32;
    bool unsigned_int = l->format == SAMPLEFORMAT_UINT || l->format == SAMPLEFORMAT_VOID;
    if (unsigned_int && (whole || (small && l->stored == 1))) return RFX_OK;
    if (l->format == SAMPLEFORMAT_INT && whole) return RFX_OK;
    if (l->format == SAMPLEFORMAT_IEEEFP && (l->bits == 16 || l->bits == 32 || l->bits == 64))
        return RFX_OK;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "%d-bit %s samples, %d per pixel; integers of 8, 16 and 32 bits, 1, 2 and 4 "
                    "bit grey, float16, float32 and float64 are read",
                    l->bits,
                    unsigned_int                       ? "unsigned"
                    : l->format == SAMPLEFORMAT_IEEEFP ? "floating point"
                    : l->format == SAMPLEFORMAT_INT    ? "signed"
                                                       : "complex",
                    l->stored);
}

/* Returns the bits of delivered samples: unsigned integers of up to 16 bits are delivered as
 * integers, all others as floats. */
static int delivered_bits(const struct rfx_tiff_layout *l) {
    bool unsigned_int = l->format == SAMPLEFORMAT_UINT || l->format == SAMPLEFORMAT_VOID;
    if (!unsigned_int || l->bits > 16) return 32;
    return l->bits == 16 ? 16 : 8;
}

/* Chooses all samples except those that the file calls alpha. */
static void take_all_but_alpha(const struct rfx_tiff_library *lib, TIFF *tif,
                               struct rfx_tiff_layout *l) {
    uint16_t n = 0, *kinds = NULL;
    if (!lib->TIFFGetField(tif, TIFFTAG_EXTRASAMPLES, &n, &kinds) || n > l->stored) n = 0;
    for (int i = 0; i < l->stored; i++) {
        int extra = i - (l->stored - n); /* extra samples are the last ones */
        bool alpha = extra >= 0 && (kinds[extra] == EXTRASAMPLE_ASSOCALPHA ||
                                    kinds[extra] == EXTRASAMPLE_UNASSALPHA);
        if (alpha && kinds[extra] == EXTRASAMPLE_ASSOCALPHA && l->divisor < 0) l->divisor = i;
        if (alpha)
            l->n_alpha++;
        else
            l->bands.numbers[l->bands.n++] = (uint16_t)i;
    }
}

/* Checks that colours can be divided by alpha: unsigned samples of 8 and 16 bits, and floats. */
static enum rfx_status check_divisor(const struct rfx_tiff_layout *l, struct rfx_error *err) {
    bool whole = l->sample_bits < 32 && l->bits >= 8;
    if (l->divisor < 0 || (!l->white_first && (whole || l->format == SAMPLEFORMAT_IEEEFP)))
        return RFX_OK;
    return rfx_fail(
        err, RFX_STATUS_UNSUPPORTED,
        "colours of %d bits%s that are multiplied with alpha; unsigned ones of 8 and 16 "
        "bits and floats are divided by it (--channels reads them as they are stored)",
        l->bits, l->white_first ? " where 0 is white" : "");
}

static enum rfx_status take_chosen(const struct rfx_image_bands *chosen, struct rfx_tiff_layout *l,
                                   struct rfx_error *err) {
    if (l->is_palette)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "--channels chooses bands, and the colours of a palette are none");
    for (int k = 0; k < chosen->n; k++) {
        if (chosen->numbers[k] > l->stored)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "--channels: band %d of %d",
                            chosen->numbers[k], l->stored);
        l->bands.numbers[l->bands.n++] = (uint16_t)(chosen->numbers[k] - 1);
    }
    return RFX_OK;
}

/* Sets the bands, c and the members that depend on them. */
static enum rfx_status take_bands(const struct rfx_tiff_library *lib, TIFF *tif,
                                  const struct rfx_image_bands *chosen, int64_t wanted, int colours,
                                  struct rfx_tiff_layout *l, struct rfx_error *err) {
    struct rfx_image_bands all = {.n = 0};
    if (l->stored < colours || l->stored > RFX_IMAGE_MAX_BANDS)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%d samples per pixel; %d to %d are read for this kind of colour",
                        l->stored, colours, RFX_IMAGE_MAX_BANDS);
    l->divisor = -1;
    l->colours = colours;
    take_all_but_alpha(lib, tif, l);
    if (chosen == NULL && l->n_alpha > 0 && wanted == l->stored && !l->is_palette) {
        for (all.n = 0; all.n < l->stored; all.n++) all.numbers[all.n] = (uint16_t)(all.n + 1);
        chosen = &all;
    }
    if (l->is_palette && l->bands.n > 1)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%d samples per pixel; 1, or 2 with alpha, are read with a palette",
                        l->stored);
    if (chosen != NULL) {
        l->bands.n = l->n_alpha = 0;
        l->divisor = -1;
        l->is_colour = false;
        enum rfx_status status = take_chosen(chosen, l, err);
        if (status != RFX_OK) return status;
    } else if (l->bands.n < colours) { /* the file calls colours alpha */
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%d of %d samples per pixel are alpha",
                        l->n_alpha, l->stored);
    }
    if (l->is_palette) l->divisor = -1;
    if (!l->is_palette) l->c = l->bands.n;
    l->is_colour = l->is_colour && l->c == 3;
    return check_divisor(l, err);
}

static enum rfx_status read_colour(const struct rfx_tiff_library *lib, TIFF *tif,
                                   const struct rfx_image_bands *chosen, int64_t wanted,
                                   struct rfx_tiff_layout *l, struct rfx_error *err) {
    uint16_t stored = 1, bits = 1, photometric = 0, format = SAMPLEFORMAT_UINT;
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLESPERPIXEL, &stored);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_BITSPERSAMPLE, &bits);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLEFORMAT, &format);
    if (!lib->TIFFGetField(tif, TIFFTAG_PHOTOMETRIC, &photometric))
        photometric = stored >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
    l->stored = stored;
    l->bits = bits;
    l->format = format;
    int colours = colour_samples(l, photometric);
    if (colours == 0)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "colour is %s (photometric interpretation %d); grey, RGB, palettes and "
                        "JPEG's YCbCr are read",
                        photometric_name(photometric), photometric);
    enum rfx_status status = check_samples(l, err);
    if (status != RFX_OK) return status;
    l->sample_bits = delivered_bits(l);
    l->white_first = photometric == PHOTOMETRIC_MINISWHITE;
    if (l->white_first && l->sample_bits == 32)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "signed, 32-bit or floating point samples where 0 is white");
    /* libtiff converts JPEG's YCbCr itself if this is set, and reports sizes accordingly */
    l->is_ycbcr = photometric == PHOTOMETRIC_YCBCR;
    if (l->is_ycbcr) (void)lib->TIFFSetField(tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    l->is_palette = photometric == PHOTOMETRIC_PALETTE;
    l->is_colour = l->is_palette || colours == 3;
    if (l->is_palette) status = read_palette(lib, tif, l, err);
    return status == RFX_OK ? take_bands(lib, tif, chosen, wanted, colours, l, err) : status;
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
                                     const struct rfx_image_bands *chosen, int64_t wanted,
                                     struct rfx_tiff_layout *out, struct rfx_error *err) {
    struct rfx_tiff_layout *l = out;
    memset(l, 0, sizeof *l);
    uint32_t w = 0, h = 0, tile_w = 0, tile_h = 0;
    uint16_t compression = COMPRESSION_NONE, planar = PLANARCONFIG_CONTIG;
    uint16_t fill = FILLORDER_MSB2LSB, orientation = ORIENTATION_TOPLEFT;
    (void)lib->TIFFGetField(tif, TIFFTAG_IMAGEWIDTH, &w);
    (void)lib->TIFFGetField(tif, TIFFTAG_IMAGELENGTH, &h);
    if (h < 1 || w < 1 || h > RFX_IMAGE_MAX_SIDE || w > RFX_IMAGE_MAX_SIDE)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "TIFF of %u x %u pixels; 1 to %d of each are read", h, w,
                        RFX_IMAGE_MAX_SIDE);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_COMPRESSION, &compression);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_PLANARCONFIG, &planar);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_FILLORDER, &fill);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_ORIENTATION, &orientation);
    l->h = h;
    l->w = w;
    l->orientation = orientation >= 1 && orientation <= 8 ? orientation : ORIENTATION_TOPLEFT;
    l->compression = compression;
    l->lsb_first = fill == FILLORDER_LSB2MSB;
    enum rfx_status status = check_compression(lib, compression, err);
    if (status == RFX_OK) status = read_colour(lib, tif, chosen, wanted, l, err);
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
    if (tile_h < 1 || tile_w < 1 ||
        (l->tiled && (tile_h > MOST_TILE_SIDE || tile_w > MOST_TILE_SIDE)))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "TIFF %s of %u x %u pixels",
                        l->tiled ? "tiles" : "strips", tile_h, tile_w);
    l->tile_h = tile_h;
    l->tile_w = tile_w;
    return RFX_OK;
}

struct rfx_image_bands rfx_tiff_layout_samples(const struct rfx_tiff_layout *layout) {
    struct rfx_image_bands once = {0};
    for (uint16_t i = 0; i < layout->stored; i++) {
        bool wanted = false;
        for (int k = 0; k < layout->bands.n; k++) wanted = wanted || layout->bands.numbers[k] == i;
        wanted = wanted || layout->divisor == i;
        if (wanted) once.numbers[once.n++] = i;
    }
    return once;
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

/* Returns the i-th sample of 1, 2, 4 or 8 bits. */
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

/* Returns the i-th sample as the nearest float32, for kinds that are delivered as floats. */
static float float_sample(const struct rfx_tiff_layout *l, const unsigned char *src, int64_t i) {
    const unsigned char *at = src + i * (l->bits / 8);
    if (l->format == SAMPLEFORMAT_IEEEFP) {
        float narrow;
        double wide;
        uint16_t half;
        if (l->bits == 16) return memcpy(&half, at, 2), rfx_float_of_half(half);
        if (l->bits == 32) return memcpy(&narrow, at, 4), narrow;
        return memcpy(&wide, at, 8), (float)wide;
    }
    if (l->format == SAMPLEFORMAT_INT) {
        int16_t half;
        int32_t whole;
        if (l->bits == 8) return (float)(signed char)*at;
        if (l->bits == 16) return memcpy(&half, at, 2), (float)half;
        return memcpy(&whole, at, 4), (float)whole;
    }
    uint32_t whole;
    return memcpy(&whole, at, 4), (float)whole;
}

/* Converts channel k, whose samples are `step` apart from `first` on. */
static void convert_channel(const struct rfx_tiff_layout *l, const unsigned char *src, int step,
                            int first, int k, int64_t cols, void *dst) {
    const bool white_first = l->white_first && l->bands.numbers[k] == 0;
    const unsigned flip8 = white_first ? 0xff : 0, flip16 = white_first ? 0xffff : 0;
    const unsigned top = (1u << (l->bits < 8 ? l->bits : 8)) - 1;
    unsigned char *to8 = (unsigned char *)dst + k;
    uint16_t *to16 = (uint16_t *)dst + k, v16;
    float *to32 = (float *)dst + k;
    for (int64_t i = 0; i < cols; i++) {
        int64_t from = i * step + first;
        if (l->sample_bits == 32) {
            to32[i * l->c] = float_sample(l, src, from);
        } else if (l->sample_bits == 16) {
            memcpy(&v16, src + 2 * from, 2);
            to16[i * l->c] = (uint16_t)(v16 ^ flip16);
        } else {
            unsigned v = narrow_sample(src, l->bits, from);
            to8[i * l->c] = (unsigned char)((l->bits == 8 ? v : v * 255 / top) ^ flip8);
        }
    }
}

static unsigned divided(unsigned colour, unsigned alpha, unsigned top) {
    if (alpha == 0) return 0;
    uint64_t value = ((uint64_t)colour * top + alpha / 2) / alpha;
    return value < top ? (unsigned)value : top;
}

/* Divides the colours in dst by alpha, which is every `step`-th sample of src from `first` on. */
static void divide_colours(const struct rfx_tiff_layout *l, const unsigned char *src, int step,
                           int first, int64_t cols, void *dst) {
    unsigned char *to8 = dst;
    uint16_t *to16 = dst, alpha16;
    float *to32 = dst;
    for (int64_t i = 0; i < cols; i++)
        for (int k = 0; k < l->c; k++) {
            const int64_t to = i * l->c + k, from = i * step + first;
            if (l->bands.numbers[k] >= l->colours) continue;
            if (l->sample_bits == 32) {
                float alpha = float_sample(l, src, from);
                to32[to] = alpha == 0.0f ? 0.0f : to32[to] / alpha;
            } else if (l->sample_bits == 16) {
                memcpy(&alpha16, src + 2 * from, 2);
                to16[to] = (uint16_t)divided(to16[to], alpha16, 65535);
            } else {
                to8[to] = (unsigned char)divided(to8[to], src[from], 255);
            }
        }
}

/* Returns whether pixels are delivered as they are stored. */
static bool is_as_stored(const struct rfx_tiff_layout *l) {
    if (l->separate || l->white_first || l->bits != l->sample_bits || l->c != l->stored)
        return false;
    if (l->bits == 32 && l->format != SAMPLEFORMAT_IEEEFP) return false;
    for (int k = 0; k < l->c; k++)
        if (l->bands.numbers[k] != k) return false;
    return true;
}

void rfx_tiff_layout_convert(const struct rfx_tiff_layout *layout, const unsigned char *src,
                             int plane, int64_t cols, void *dst) {
    const struct rfx_tiff_layout *l = layout;
    const int step = l->separate ? 1 : l->stored; /* samples from one pixel to the next in src */
    if (l->is_palette) {
        if (!l->separate || plane == 0) expand_palette(l, src, step, cols, dst);
        return;
    }
    if (is_as_stored(l)) {
        memcpy(dst, src, (size_t)(cols * rfx_tiff_layout_pixel_bytes(l)));
        return;
    }
    for (int k = 0; k < l->c; k++) {
        int band = l->bands.numbers[k];
        if (!l->separate)
            convert_channel(l, src, step, band, k, cols, dst);
        else if (band == plane)
            convert_channel(l, src, 1, 0, k, cols, dst);
    }
    if (l->divisor >= 0 && !l->separate)
        divide_colours(l, src, step, l->divisor, cols, dst);
    else if (l->divisor >= 0 && l->divisor == plane) /* the colours' planes are converted already */
        divide_colours(l, src, 1, 0, cols, dst);
}
