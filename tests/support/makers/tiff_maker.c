/* Samples are a hash of seed, place and component, cut to the bits of a sample. */
#include "tests/support/makers/tiff_maker.h"

#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include <unistd.h>

#include "tests/support/run/sample_hash.h"

/* Waves with straight flanks, 64 ... 191. */
static uint32_t smooth(int y, int x, int k) {
    uint32_t v = (uint32_t)(y + 2 * x + 60 * k) & 255;
    return v < 128 ? 64 + v : 319 - v;
}

static uint32_t raw(const struct tiff_maker *m, int y, int x, int k) {
    if (m->smooth) return smooth(y, x, k);
    uint32_t v = sample_hash(m->seed, (uint32_t)y, (uint32_t)x, (uint32_t)k);
    return m->bits >= 32 ? v : v & ((1u << m->bits) - 1);
}

static int format_of(const struct tiff_maker *m) {
    if (m->format != 0) return m->format;
    return m->bits >= 32 ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT;
}

bool tiff_maker_has_values(const struct tiff_maker *m) {
    return m->bits >= 32 || format_of(m) != SAMPLEFORMAT_UINT;
}

static float raw_float(const struct tiff_maker *m, int y, int x, int k) {
    return (float)(raw(m, y, x, k) >> 8) / 65536.0f - 100.0f;
}

/* No float32. */
static double raw_double(const struct tiff_maker *m, int y, int x, int k) {
    return (double)raw(m, y, x, k) / 65536.0 - 100.0 + 1.0 / 3.0;
}

/* A sample that is taken as it is. */
static float value(const struct tiff_maker *m, int y, int x, int k) {
    uint32_t v = raw(m, y, x, k);
    if (format_of(m) == SAMPLEFORMAT_IEEEFP)
        return m->bits == 32 ? raw_float(m, y, x, k) : (float)raw_double(m, y, x, k);
    if (format_of(m) == SAMPLEFORMAT_UINT) return (float)v;
    int64_t above = m->bits == 32 ? INT64_C(1) << 32 : 1 << m->bits;
    return (float)((int64_t)v >= above / 2 ? (int64_t)v - above : (int64_t)v);
}

static uint16_t palette_entry(const struct tiff_maker *m, uint32_t index, int c) {
    uint32_t v = sample_hash(m->seed + 1, index, (uint32_t)c, 7);
    return (uint16_t)(m->wide_palette ? v & 0xffff : (v & 0xff) * 257);
}

int tiff_maker_channels(const struct tiff_maker *m) {
    if (m->no_alpha) return m->samples;
    return m->samples >= 3 || m->photometric == PHOTOMETRIC_PALETTE ? 3 : 1;
}

float tiff_maker_sample(const struct tiff_maker *m, int y, int x, int c) {
    if (tiff_maker_has_values(m)) return value(m, y, x, c);
    if (m->photometric == PHOTOMETRIC_PALETTE)
        return (float)palette_entry(m, raw(m, y, x, 0), c) / 257.0f;
    uint32_t v = raw(m, y, x, c), top = (1u << m->bits) - 1;
    if (m->photometric == PHOTOMETRIC_MINISWHITE && c == 0) v = top - v;
    if (m->bits == 16) return (float)v / 257.0f;
    return (float)(v * 255 / top);
}

static void put_sample(const struct tiff_maker *m, unsigned char *row, int i, int y, int x, int k) {
    uint32_t v = raw(m, y, x, k);
    uint16_t v16 = (uint16_t)v;
    float f = raw_float(m, y, x, k);
    double wide = raw_double(m, y, x, k);
    int bit = i * m->bits;
    if (m->bits == 64)
        memcpy(row + 8 * i, &wide, 8);
    else if (m->bits == 32 && format_of(m) == SAMPLEFORMAT_IEEEFP)
        memcpy(row + 4 * i, &f, 4);
    else if (m->bits == 32)
        memcpy(row + 4 * i, &v, 4);
    else if (m->bits == 16)
        memcpy(row + 2 * i, &v16, 2);
    else
        row[bit / 8] = (unsigned char)(row[bit / 8] | v << (8 - m->bits - bit % 8));
}

/* Pixels x0 ... x0 + cols of row y in one plane, or all samples; zeros outside of the
 * picture, or on as it was where it is smooth. */
static void put_row(const struct tiff_maker *m, unsigned char *row, int y, int x0, int cols,
                    int plane) {
    int each = m->separate ? 1 : m->samples;
    for (int i = 0; i < cols * each; i++)
        if (m->smooth || (y < m->h && x0 + i / each < m->w))
            put_sample(m, row, i, y, x0 + i / each, m->separate ? plane : i % each);
}

static int quiet(TIFF *tif, void *user, const char *module, const char *format, va_list args) {
    (void)tif;
    (void)user;
    (void)module;
    (void)format;
    (void)args;
    return 1;
}

static void put_tags(const struct tiff_maker *m, TIFF *tif) {
    TIFFSetField(tif, TIFFTAG_IMAGEWIDTH, (uint32_t)m->w);
    TIFFSetField(tif, TIFFTAG_IMAGELENGTH, (uint32_t)m->h);
    TIFFSetField(tif, TIFFTAG_BITSPERSAMPLE, m->bits);
    TIFFSetField(tif, TIFFTAG_SAMPLESPERPIXEL, m->samples);
    TIFFSetField(tif, TIFFTAG_PHOTOMETRIC, m->photometric);
    TIFFSetField(tif, TIFFTAG_PLANARCONFIG,
                 m->separate ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
    TIFFSetField(tif, TIFFTAG_SAMPLEFORMAT, format_of(m));
    uint16_t alpha[1] = {m->associated ? EXTRASAMPLE_ASSOCALPHA : EXTRASAMPLE_UNASSALPHA};
    if (m->samples % 2 == 0 && !m->no_alpha) TIFFSetField(tif, TIFFTAG_EXTRASAMPLES, 1, alpha);
    if (m->lsb_first) TIFFSetField(tif, TIFFTAG_FILLORDER, FILLORDER_LSB2MSB);
    if (m->orientation != 0) TIFFSetField(tif, TIFFTAG_ORIENTATION, m->orientation);
    if (m->description != NULL) TIFFSetField(tif, TIFFTAG_IMAGEDESCRIPTION, m->description);
    TIFFSetField(tif, TIFFTAG_COMPRESSION, m->compression);
    if (m->predictor > 0) TIFFSetField(tif, TIFFTAG_PREDICTOR, m->predictor);
    if (m->compression == COMPRESSION_WEBP) TIFFSetField(tif, TIFFTAG_WEBP_LOSSLESS, 1);
    if (m->compression == COMPRESSION_JPEG) {
        TIFFSetField(tif, TIFFTAG_JPEGQUALITY, 95);
        TIFFSetField(tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    }
    if (m->photometric == PHOTOMETRIC_PALETTE) {
        static uint16_t map[3][256];
        for (uint32_t i = 0; i < 256; i++)
            for (int c = 0; c < 3; c++) map[c][i] = palette_entry(m, i, c);
        TIFFSetField(tif, TIFFTAG_COLORMAP, map[0], map[1], map[2]);
    }
    if (m->cols > 0) {
        TIFFSetField(tif, TIFFTAG_TILEWIDTH, (uint32_t)m->cols);
        TIFFSetField(tif, TIFFTAG_TILELENGTH, (uint32_t)m->rows);
    } else {
        TIFFSetField(tif, TIFFTAG_ROWSPERSTRIP, (uint32_t)m->rows);
    }
}

static bool put_tiles(const struct tiff_maker *m, TIFF *tif) {
    size_t row_bytes = (size_t)TIFFTileRowSize(tif);
    unsigned char *tile = malloc(row_bytes * (size_t)m->rows);
    bool ok = tile != NULL;
    for (int plane = 0; plane < (m->separate ? m->samples : 1); plane++)
        for (int y = 0; y < m->h; y += m->rows)
            for (int x = 0; x < m->w && ok; x += m->cols) {
                memset(tile, 0, row_bytes * (size_t)m->rows);
                for (int i = 0; i < m->rows; i++)
                    put_row(m, tile + (size_t)i * row_bytes, y + i, x, m->cols, plane);
                ok = TIFFWriteTile(tif, tile, (uint32_t)x, (uint32_t)y, 0, (uint16_t)plane) >= 0;
            }
    free(tile);
    return ok;
}

static bool put_strips(const struct tiff_maker *m, TIFF *tif) {
    size_t row_bytes = (size_t)TIFFScanlineSize(tif);
    unsigned char *row = malloc(row_bytes);
    bool ok = row != NULL;
    for (int plane = 0; plane < (m->separate ? m->samples : 1); plane++)
        for (int y = 0; y < m->h && ok; y++) {
            memset(row, 0, row_bytes);
            put_row(m, row, y, 0, m->w, plane);
            ok = TIFFWriteScanline(tif, row, (uint32_t)y, (uint16_t)plane) >= 0;
        }
    free(row);
    return ok;
}

static bool put_page(const struct tiff_maker *m, TIFF *tif) {
    static const uint64_t places[8] = {0}; /* libtiff fills them in */
    put_tags(m, tif);
    if (m->reduced) TIFFSetField(tif, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
    if (m->subs > 0) TIFFSetField(tif, TIFFTAG_SUBIFD, m->subs, places);
    return m->cols > 0 ? put_tiles(m, tif) : put_strips(m, tif);
}

bool tiff_maker_write(const struct tiff_maker *m, const char *path) {
    return tiff_maker_write_pages(m, 1, path);
}

bool tiff_maker_write_pages(const struct tiff_maker *pages, int n, const char *path) {
    const struct tiff_maker *m = pages;
    if (!TIFFIsCODECConfigured((uint16_t)m->compression)) return false;
    (void)unlink(path); /* some file systems write a file that is filled again at once */
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, quiet, NULL);
    TIFFOpenOptionsSetWarningHandlerExtR(options, quiet, NULL);
    char mode[4] = {'w', m->big_endian ? 'b' : 'l', m->big_tiff ? '8' : '4', 0};
    TIFF *tif = TIFFOpenExt(path, mode, options);
    TIFFOpenOptionsFree(options);
    if (tif == NULL) return false;
    bool ok = true;
    for (int i = 0; i < n && ok; i++) ok = put_page(&pages[i], tif) && TIFFWriteDirectory(tif) == 1;
    TIFFClose(tif);
    return ok;
}

static const struct {
    int bits, samples, photometric;
} colours[] = {
    {8, 1, PHOTOMETRIC_MINISBLACK},  {8, 2, PHOTOMETRIC_MINISBLACK},
    {8, 3, PHOTOMETRIC_RGB},         {8, 4, PHOTOMETRIC_RGB},
    {16, 1, PHOTOMETRIC_MINISBLACK}, {16, 3, PHOTOMETRIC_RGB},
    {16, 4, PHOTOMETRIC_RGB},        {32, 1, PHOTOMETRIC_MINISBLACK},
    {32, 3, PHOTOMETRIC_RGB},        {32, 4, PHOTOMETRIC_RGB},
    {8, 1, PHOTOMETRIC_MINISWHITE},  {16, 2, PHOTOMETRIC_MINISWHITE},
    {8, 1, PHOTOMETRIC_PALETTE},     {4, 1, PHOTOMETRIC_PALETTE},
    {1, 1, PHOTOMETRIC_PALETTE},     {1, 1, PHOTOMETRIC_MINISBLACK},
    {2, 1, PHOTOMETRIC_MINISBLACK},  {4, 1, PHOTOMETRIC_MINISBLACK},
    {1, 1, PHOTOMETRIC_MINISWHITE},
};
_Static_assert(sizeof colours / sizeof colours[0] == TIFF_MAKER_COLOURS, "a row per colour");

struct tiff_maker tiff_maker_of(int colour, int compression) {
    struct tiff_maker m = {.h = 37, .w = 53, .compression = compression};
    m.bits = colours[colour].bits;
    m.samples = colours[colour].samples;
    m.photometric = colours[colour].photometric;
    m.seed = (uint32_t)(colour * 100 + compression);
    return m;
}
