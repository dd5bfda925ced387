/* Samples are a hash of seed, place and component, cut to the bit depth. */
#include "tests/support/makers/png_maker.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/run/sample_hash.h"

static int stored_components(const struct png_maker *m) {
    switch (m->color_type) {
        case PNG_COLOR_TYPE_RGB:
            return 3;
        case PNG_COLOR_TYPE_GRAY_ALPHA:
            return 2;
        case PNG_COLOR_TYPE_RGB_ALPHA:
            return 4;
        default:
            return 1;
    }
}

static int raw(const struct png_maker *m, int y, int x, int k) {
    uint32_t v = sample_hash(m->seed, (uint32_t)y, (uint32_t)x, (uint32_t)k);
    return (int)(v & ((1u << m->bit_depth) - 1));
}

static int palette_entry(const struct png_maker *m, int index, int c) {
    return (int)(sample_hash(m->seed + 1, (uint32_t)index, (uint32_t)c, 7) & 255);
}

int png_maker_channels(const struct png_maker *m) {
    return (m->color_type & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
}

int png_maker_sample(const struct png_maker *m, int y, int x, int c) {
    if (m->color_type == PNG_COLOR_TYPE_PALETTE) return palette_entry(m, raw(m, y, x, 0), c);
    int v = raw(m, y, x, c);
    return m->bit_depth < 8 ? v * 255 / ((1 << m->bit_depth) - 1) : v;
}

static void pack_row(const struct png_maker *m, int y, unsigned char *row) {
    int n = stored_components(m);
    for (int i = 0; i < m->w * n; i++) {
        int v = raw(m, y, i / n, i % n);
        if (m->bit_depth == 16) {
            row[2 * i] = (unsigned char)(v >> 8);
            row[2 * i + 1] = (unsigned char)(v & 255);
        } else {
            int bit = i * m->bit_depth;
            int shift = 8 - m->bit_depth - bit % 8;
            row[bit / 8] = (unsigned char)(row[bit / 8] | v << shift);
        }
    }
}

static void put_tables(const struct png_maker *m, png_structp png, png_infop info) {
    png_color palette[256];
    png_byte alpha[256];
    png_color_16 key;
    memset(&key, 0, sizeof key);
    int colours = 1 << (m->bit_depth < 8 ? m->bit_depth : 8);
    for (int i = 0; i < colours; i++) {
        palette[i].red = (png_byte)palette_entry(m, i, 0);
        palette[i].green = (png_byte)palette_entry(m, i, 1);
        palette[i].blue = (png_byte)palette_entry(m, i, 2);
        alpha[i] = (png_byte)(i * 37);
    }
    bool is_palette = m->color_type == PNG_COLOR_TYPE_PALETTE;
    if (is_palette) png_set_PLTE(png, info, palette, colours);
    if (!m->transparent || (m->color_type & PNG_COLOR_MASK_ALPHA) != 0) return;
    key.gray = key.red = (png_uint_16)raw(m, 0, 0, 0);
    key.green = (png_uint_16)raw(m, 0, 0, 1);
    key.blue = (png_uint_16)raw(m, 0, 0, 2);
    png_set_tRNS(png, info, is_palette ? alpha : NULL, is_palette ? colours : 0,
                 is_palette ? NULL : &key);
}

/* A TIFF with one entry, in a chunk of its own. */
static void put_orientation(const struct png_maker *m, png_structp png) {
    const png_byte exif[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                             1,   18,  0, 3,  0, 0, 0, 1, 0, (png_byte)m->orientation,
                             0,   0,   0, 0,  0, 0};
    png_write_chunk(png, (png_const_bytep) "eXIf", exif, sizeof exif);
}

bool png_maker_write(const struct png_maker *m, const char *path) {
    size_t row_bytes = ((size_t)m->w * (size_t)(stored_components(m) * m->bit_depth) + 7) / 8;
    unsigned char *pixels = calloc((size_t)m->h, row_bytes);
    png_bytep *rows = calloc((size_t)m->h, sizeof *rows);
    FILE *file = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
    volatile bool ok = false;
    if (pixels == NULL || rows == NULL || file == NULL || info == NULL) goto done;
    for (int y = 0; y < m->h; y++) {
        rows[y] = pixels + (size_t)y * row_bytes;
        pack_row(m, y, rows[y]);
    }
    if (setjmp(png_jmpbuf(png)) != 0) goto done;
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)m->w, (png_uint_32)m->h, m->bit_depth, m->color_type,
                 m->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    put_tables(m, png, info);
    png_write_info(png, info);
    if (m->orientation > 0 && !m->exif_last) put_orientation(m, png);
    png_write_image(png, rows);
    if (m->orientation > 0 && m->exif_last) put_orientation(m, png);
    png_write_end(png, NULL);
    ok = true;
done:
    if (png != NULL) png_destroy_write_struct(&png, &info);
    if (file != NULL && fclose(file) != 0) ok = false;
    free(rows);
    free(pixels);
    return ok;
}
