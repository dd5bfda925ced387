#include "png_rows.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL_PX 3000000 /* up to here a PNG is compressed as well as possible */

struct png_rows {
    FILE *file;
    const char *path; /* borrowed from the caller */
    png_structp png;
    png_infop info;
    int writing;
    int64_t left; /* rows still to write */
};

static void on_error(png_structp png, png_const_charp text) {
    const struct png_rows *p = png_get_error_ptr(png);
    fprintf(stderr, "%s: %s\n", p->path, text);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static void png_rows_free(struct png_rows *p) {
    if (p->writing) {
        png_destroy_write_struct(&p->png, &p->info);
    } else {
        png_destroy_read_struct(&p->png, &p->info, NULL);
    }
    if (p->file) fclose(p->file);
    free(p);
}

/* Opens the file and makes libpng's structures. */
static struct png_rows *png_rows_new(const char *path, int writing) {
    struct png_rows *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->path = path;
    p->writing = writing;
    p->file = fopen(path, writing ? "wb" : "rb");
    if (!p->file) {
        perror(path);
        free(p);
        return NULL;
    }
    p->png = writing ? png_create_write_struct(PNG_LIBPNG_VER_STRING, p, on_error, on_warning)
                     : png_create_read_struct(PNG_LIBPNG_VER_STRING, p, on_error, on_warning);
    p->info = p->png ? png_create_info_struct(p->png) : NULL;
    if (!p->info) {
        fprintf(stderr, "%s: out of memory\n", path);
        png_rows_free(p);
        return NULL;
    }
    png_init_io(p->png, p->file);
    return p;
}

struct png_rows *demo_png_create(const char *path, int64_t h, int64_t w, int channels) {
    struct png_rows *p = png_rows_new(path, 1);
    if (!p) return NULL;
    p->left = h;
    if (setjmp(png_jmpbuf(p->png))) {
        png_rows_free(p);
        return NULL;
    }
    png_set_user_limits(p->png, 0x7fffffff, 0x7fffffff);
    png_set_IHDR(p->png, p->info, (png_uint_32)w, (png_uint_32)h, 8,
                 channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (h > SMALL_PX / w) { /* time counts, not the file's size */
        png_set_compression_level(p->png, 1);
        png_set_filter(p->png, 0, channels == 1 ? PNG_FILTER_NONE : PNG_FILTER_SUB);
    } else {
        png_set_compression_level(p->png, 9);
    }
    png_write_info(p->png, p->info);
    return p;
}

struct png_rows *demo_png_open(const char *path, int64_t *h, int64_t *w) {
    struct png_rows *p = png_rows_new(path, 0);
    if (!p) return NULL;
    if (setjmp(png_jmpbuf(p->png))) {
        png_rows_free(p);
        return NULL;
    }
    png_set_user_limits(p->png, 0x7fffffff, 0x7fffffff);
    png_read_info(p->png, p->info);
    if (png_get_interlace_type(p->png, p->info) != PNG_INTERLACE_NONE) {
        png_error(p->png, "interlaced; rows are needed in order");
    }
    png_set_expand(p->png);
    png_set_scale_16(p->png);
    png_set_strip_alpha(p->png);
    png_set_gray_to_rgb(p->png);
    png_read_update_info(p->png, p->info);
    *h = png_get_image_height(p->png, p->info);
    *w = png_get_image_width(p->png, p->info);
    return p;
}

int demo_png_write_row(struct png_rows *p, const uint8_t *row) {
    if (setjmp(png_jmpbuf(p->png))) return -1;
    png_write_row(p->png, row);
    p->left--;
    return 0;
}

int demo_png_read_row(struct png_rows *p, uint8_t *row) {
    if (setjmp(png_jmpbuf(p->png))) return -1;
    png_read_row(p->png, row, NULL);
    return 0;
}

/* Writes the file's end; what was written may still be in stdio's buffer. */
static int end_writing(struct png_rows *p) {
    if (setjmp(png_jmpbuf(p->png))) return -1;
    png_write_end(p->png, NULL);
    if (fflush(p->file) == 0) return 0;
    perror(p->path);
    return -1;
}

int demo_png_close(struct png_rows *p) {
    if (!p) return 0;
    int status = p->writing && p->left == 0 ? end_writing(p) : 0;
    png_rows_free(p);
    return status;
}
