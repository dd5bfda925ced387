/* Makes large picture files row by row, in little memory: the synthetic picture of that size as
 * tiled BigTIFF (LZW), PNG or baseline JPEG.
 *     make_big_image tiff|png|jpeg HxW FILE */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rfexec/image/image_source.h"
#include "rfexec/output/image_write.h"

/* After stdio.h, which it needs. */
#include <jpeglib.h>
#include <tiffio.h>

#define TILE 256

_Noreturn static void die(const char *words) {
    (void)fprintf(stderr, "make_big_image: %s\n", words);
    exit(1);
}

/* `rows` rows of 8-bit RGB from y on; what is past the picture is 0. */
static void fill(struct rfx_image *image, int64_t y, int64_t rows, float *floats,
                 unsigned char *out) {
    struct rfx_source_traits t = rfx_image_traits(image);
    struct rfx_error err;
    for (int64_t i = 0; i < rows; i++) {
        unsigned char *row = out + i * t.w * 3;
        memset(row, 0, (size_t)t.w * 3);
        if (y + i >= t.h) continue;
        struct rfx_view view = rfx_view_dense(floats, rfx_rect_make(y + i, y + i + 1, 0, t.w), 3);
        if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK) die(err.text);
        for (int64_t k = 0; k < t.w * 3; k++) row[k] = (unsigned char)floats[k];
    }
}

static void make_png(struct rfx_image *image, const char *path, float *floats, unsigned char *row) {
    struct rfx_source_traits t = rfx_image_traits(image);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_png_writer *writer = NULL;
    struct rfx_error err;
    if (rfx_png_write_open(mem, path, t.h, t.w, 3, 8, &writer, &err) != RFX_OK) die(err.text);
    for (int64_t y = 0; y < t.h; y++) {
        fill(image, y, 1, floats, row);
        if (rfx_png_write_row(writer, row, &err) != RFX_OK) die(err.text);
    }
    if (rfx_png_write_commit(writer, &err) != RFX_OK) die(err.text);
    rfx_png_write_free(writer);
    rfx_memory_free(mem);
}

static void make_jpeg(struct rfx_image *image, const char *path, float *floats,
                      unsigned char *row) {
    struct rfx_source_traits t = rfx_image_traits(image);
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    FILE *file = fopen(path, "wb");
    if (file == NULL) die("cannot open the file");
    jpeg.err = jpeg_std_error(&errors); /* an error prints and exits: fine here */
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_height = (JDIMENSION)t.h;
    jpeg.image_width = (JDIMENSION)t.w;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 90, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    for (int64_t y = 0; y < t.h; y++) {
        fill(image, y, 1, floats, row);
        (void)jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    if (fclose(file) != 0) die("cannot write the file");
}

static void make_tiff(struct rfx_image *image, const char *path, float *floats,
                      unsigned char *rows) {
    struct rfx_source_traits t = rfx_image_traits(image);
    unsigned char *tile = malloc((size_t)TILE * TILE * 3);
    TIFF *tif = TIFFOpen(path, "w8");
    if (tif == NULL || tile == NULL) die("cannot open the file");
    TIFFSetField(tif, TIFFTAG_IMAGEWIDTH, (uint32_t)t.w);
    TIFFSetField(tif, TIFFTAG_IMAGELENGTH, (uint32_t)t.h);
    TIFFSetField(tif, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tif, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(tif, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(tif, TIFFTAG_COMPRESSION, COMPRESSION_LZW);
    TIFFSetField(tif, TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
    TIFFSetField(tif, TIFFTAG_TILEWIDTH, TILE);
    TIFFSetField(tif, TIFFTAG_TILELENGTH, TILE);
    for (int64_t y = 0; y < t.h; y += TILE) {
        fill(image, y, TILE, floats, rows);
        for (int64_t x = 0; x < t.w; x += TILE) {
            int64_t cols = x + TILE < t.w ? TILE : t.w - x;
            memset(tile, 0, (size_t)TILE * TILE * 3);
            for (int64_t i = 0; i < TILE; i++)
                memcpy(tile + i * TILE * 3, rows + (i * t.w + x) * 3, (size_t)cols * 3);
            if (TIFFWriteTile(tif, tile, (uint32_t)x, (uint32_t)y, 0, 0) < 0)
                die("cannot write a tile");
        }
    }
    if (TIFFFlush(tif) != 1) die("cannot write the file");
    TIFFClose(tif);
    free(tile);
}

int main(int argc, char **argv) {
    const struct rfx_image_options options = {.scale = 1.0f,
                                              .mean = (const float[]){0},
                                              .n_mean = 1,
                                              .std = (const float[]){1},
                                              .n_std = 1,
                                              .bgr = false,
                                              .channels = 3};
    char spec[64];
    struct rfx_error err;
    if (argc != 4) die("usage: make_big_image tiff|png|jpeg HxW FILE");
    (void)snprintf(spec, sizeof spec, "synthetic:%s", argv[2]);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    if (rfx_image_open(mem, spec, &options, &image, &err) != RFX_OK) die(err.text);
    size_t samples = (size_t)rfx_image_traits(image).w * 3;
    float *floats = malloc(samples * sizeof *floats);
    unsigned char *rows = malloc(samples * TILE);
    if (floats == NULL || rows == NULL) die("no memory");
    if (strcmp(argv[1], "png") == 0)
        make_png(image, argv[3], floats, rows);
    else if (strcmp(argv[1], "jpeg") == 0)
        make_jpeg(image, argv[3], floats, rows);
    else if (strcmp(argv[1], "tiff") == 0)
        make_tiff(image, argv[3], floats, rows);
    else
        die("the kind is tiff, png or jpeg");
    free(rows);
    free(floats);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return 0;
}
