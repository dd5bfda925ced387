#include "tests/support/makers/jpeg_maker.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* After stdio.h, which it needs. */
#include <jpeglib.h>

struct catcher {
    struct jpeg_error_mgr errors;
    jmp_buf escape;
};

_Noreturn static void on_error(j_common_ptr jpeg) {
    struct catcher *c = (struct catcher *)(void *)jpeg->err;
    longjmp(c->escape, 1);
}

static void on_message(j_common_ptr jpeg, int level) {
    (void)jpeg;
    (void)level;
}

static struct jpeg_error_mgr *catch_errors(struct catcher *c) {
    struct jpeg_error_mgr *errors = jpeg_std_error(&c->errors);
    errors->error_exit = on_error;
    errors->emit_message = on_message;
    return errors;
}

int jpeg_maker_sample(int y, int x, int c) {
    double v = sin(0.05 * y + 0.03 * x + c) + cos(0.04 * x - 0.02 * y + 2 * c);
    return (int)lround(127.5 + 43.5 * v);
}

static void set_scans(struct jpeg_compress_struct *jpeg, jpeg_scan_info *scans) {
    for (int i = 0; i < jpeg->num_components; i++)
        scans[i] = (jpeg_scan_info){
            .comps_in_scan = 1, .component_index = {i}, .Ss = 0, .Se = 63, .Ah = 0, .Al = 0};
    jpeg->scan_info = scans;
    jpeg->num_scans = jpeg->num_components;
}

/* A directory of three entries; the second one is the orientation. */
static void put_exif(struct jpeg_compress_struct *jpeg, const struct jpeg_maker *m) {
    static const int fields[][4] = {{256, 4, 1, 7}, {274, 3, 1, 0}, {305, 3, 1, 5}};
    unsigned char exif[6 + 8 + 2 + 3 * 12 + 4] = "Exif\0";
    size_t at = 6;
    /* n bytes of a number in the order of the data */
#define PUT(value, n)                \
    for (int i_ = 0; i_ < (n); i_++) \
    exif[at++] = (unsigned char)((unsigned)(value) >> 8 * (m->exif_big_endian ? (n)-1 - i_ : i_))
    PUT(m->exif_big_endian ? 0x4d4d : 0x4949, 2);
    PUT(42, 2);
    PUT(8, 4);
    PUT(3, 2);
    for (int i = 0; i < 3; i++) {
        int value = i == 1 ? m->orientation : fields[i][3];
        PUT(fields[i][0], 2);
        PUT(fields[i][1], 2);
        PUT(fields[i][2], 4);
        if (fields[i][1] == 3) { /* two bytes, and two that mean nothing */
            PUT(value, 2);
            PUT(0, 2);
        } else {
            PUT(value, 4);
        }
    }
#undef PUT
    jpeg_write_marker(jpeg, JPEG_APP0 + 1, exif, sizeof exif);
}

bool jpeg_maker_write(const struct jpeg_maker *m, const char *path) {
    struct jpeg_compress_struct jpeg;
    struct catcher catcher;
    jpeg_scan_info scans[4];
    (void)unlink(path); /* some file systems write a file that is filled again at once */
    FILE *file = fopen(path, "wb");
    JSAMPLE *row = malloc((size_t)m->w * (size_t)m->components);
    volatile bool ok = false;
    jpeg.err = catch_errors(&catcher);
    jpeg_create_compress(&jpeg);
    if (file == NULL || row == NULL || setjmp(catcher.escape) != 0) goto done;
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_height = (JDIMENSION)m->h;
    jpeg.image_width = (JDIMENSION)m->w;
    jpeg.input_components = m->components;
    jpeg.in_color_space = m->components == 1   ? JCS_GRAYSCALE
                          : m->components == 4 ? JCS_CMYK
                                               : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    if (m->rgb) jpeg_set_colorspace(&jpeg, JCS_RGB);
    jpeg_set_quality(&jpeg, m->quality, TRUE);
    jpeg.comp_info[0].h_samp_factor = m->h_sampling;
    jpeg.comp_info[0].v_samp_factor = m->v_sampling;
    jpeg.arith_code = m->arithmetic ? TRUE : FALSE;
    jpeg.restart_interval = (unsigned)m->restart_interval;
    if (m->progressive) jpeg_simple_progression(&jpeg);
    if (m->separate_scans) set_scans(&jpeg, scans);
    jpeg_start_compress(&jpeg, TRUE);
    if (m->orientation != 0) put_exif(&jpeg, m);
    for (int y = 0; y < m->h; y++) {
        for (int i = 0; i < m->w * m->components; i++)
            row[i] = (JSAMPLE)jpeg_maker_sample(y, i / m->components, i % m->components);
        (void)jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    ok = true;
done:
    jpeg_destroy_compress(&jpeg);
    if (file != NULL && fclose(file) != 0) ok = false;
    free(row);
    return ok;
}

unsigned char *jpeg_maker_decode(const char *path, int *h, int *w, int *components) {
    struct jpeg_decompress_struct jpeg;
    struct catcher catcher;
    FILE *file = fopen(path, "rb");
    JSAMPLE *volatile pixels = NULL;
    volatile bool ok = false;
    jpeg.err = catch_errors(&catcher);
    jpeg_create_decompress(&jpeg);
    if (file == NULL || setjmp(catcher.escape) != 0) goto done;
    jpeg_stdio_src(&jpeg, file);
    (void)jpeg_read_header(&jpeg, TRUE);
    (void)jpeg_start_decompress(&jpeg);
    size_t row_bytes = (size_t)jpeg.output_width * (size_t)jpeg.output_components;
    pixels = malloc(row_bytes * jpeg.output_height);
    while (pixels != NULL && jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = pixels + jpeg.output_scanline * row_bytes;
        (void)jpeg_read_scanlines(&jpeg, &row, 1);
    }
    (void)jpeg_finish_decompress(&jpeg);
    *h = (int)jpeg.output_height;
    *w = (int)jpeg.output_width;
    *components = jpeg.output_components;
    ok = pixels != NULL;
done:
    jpeg_destroy_decompress(&jpeg);
    if (file != NULL) (void)fclose(file);
    if (ok) return pixels;
    free(pixels);
    return NULL;
}
