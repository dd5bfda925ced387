/* Options of the demo programs, and PNG files through librfexec; see demo_support.h. */
#include "tools/demo/demo_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rfexec/image/image_source.h"
#include "rfexec/output/image_write.h"

#define MAX_SIDE 1000000

static int read_value(const struct demo_option *option, const char *text) {
    char *end = NULL;
    switch (option->kind) {
        case DEMO_TEXT:
            *(const char **)option->at = text;
            return 0;
        case DEMO_WHOLE:
            *(int64_t *)option->at = strtoll(text, &end, 10);
            break;
        case DEMO_SEED:
            *(uint64_t *)option->at = strtoull(text, &end, 10);
            break;
        case DEMO_REAL:
            *(double *)option->at = strtod(text, &end);
            break;
    }
    return end == text || *end ? -1 : 0;
}

int demo_read_options(int argc, char **argv, const struct demo_option *options, int n) {
    for (int i = 0; i < argc; i += 2) {
        int k = 0;
        while (k < n && strcmp(argv[i], options[k].name) != 0) k++;
        if (k == n || i + 1 == argc || read_value(&options[k], argv[i + 1]) != 0) return -1;
    }
    return 0;
}

int demo_read_size(const char *text, int64_t *h, int64_t *w) {
    char *end;
    *h = strtoll(text, &end, 10);
    if (*end != 'x') return -1;
    *w = strtoll(end + 1, &end, 10);
    return *end || *h < 1 || *w < 1 || *h > MAX_SIDE || *w > MAX_SIDE ? -1 : 0;
}

struct png_rows {
    struct rfx_memory *mem;
    struct rfx_png_writer *writer; /* NULL: the file is read */
    struct rfx_image *image;
    int64_t w, next, h; /* next: the row that is read or written next */
    float *values;      /* [w, 3] of the row that is read */
};

static void png_free(struct png_rows *p) {
    if (p == NULL) return;
    rfx_png_write_free(p->writer);
    rfx_image_free(p->image);
    if (p->mem != NULL) rfx_memory_release(p->mem, p->values);
    rfx_memory_free(p->mem);
    free(p);
}

static int tell(enum rfx_status status, const struct rfx_error *err) {
    if (status != RFX_OK) fprintf(stderr, "%s\n", err->text);
    return status == RFX_OK ? 0 : -1;
}

static struct png_rows *png_new(void) {
    struct png_rows *p = calloc(1, sizeof *p);
    if (p != NULL) p->mem = rfx_memory_create(0);
    if (p != NULL && p->mem != NULL) return p;
    fprintf(stderr, "out of memory for a PNG file\n");
    png_free(p);
    return NULL;
}

struct png_rows *demo_png_create(const char *path, int64_t h, int64_t w, int channels) {
    struct rfx_error err = {{0}};
    struct png_rows *p = png_new();
    if (p == NULL) return NULL;
    p->h = h;
    if (tell(rfx_png_write_open(p->mem, path, h, w, channels, 8, &p->writer, &err), &err) == 0)
        return p;
    png_free(p);
    return NULL;
}

struct png_rows *demo_png_open(const char *path, int64_t *h, int64_t *w) {
    static const float mean = 0.0F, std = 1.0F;
    struct rfx_error err = {{0}};
    struct rfx_image_options options = {
        .scale = 1.0F, .mean = &mean, .std = &std, .n_mean = 1, .n_std = 1, .channels = 3};
    struct png_rows *p = png_new();
    if (p == NULL) return NULL;
    enum rfx_status status = rfx_image_open(p->mem, path, &options, &p->image, &err);
    if (status == RFX_OK) status = rfx_image_set_window(p->image, 1, &err);
    if (status == RFX_OK) {
        p->h = *h = rfx_image_traits(p->image).h;
        p->w = *w = rfx_image_traits(p->image).w;
        p->values = rfx_memory_alloc(p->mem, 3 * (size_t)p->w * sizeof *p->values);
        if (p->values == NULL) status = rfx_memory_fail(p->mem, path, 3 * (size_t)p->w, &err);
    }
    if (tell(status, &err) == 0) return p;
    png_free(p);
    return NULL;
}

int demo_png_write_row(struct png_rows *p, const uint8_t *row) {
    struct rfx_error err = {{0}};
    p->next++;
    return tell(rfx_png_write_row(p->writer, row, &err), &err);
}

int demo_png_read_row(struct png_rows *p, uint8_t *row) {
    struct rfx_error err = {{0}};
    struct rfx_rect rect = {p->next, p->next + 1, 0, p->w};
    struct rfx_view view = rfx_view_dense(p->values, rect, 3);
    p->next++;
    int status = tell(rfx_image_read(p->image, rect, &view, &err), &err);
    for (int64_t i = 0; i < 3 * p->w && status == 0; i++) row[i] = (uint8_t)p->values[i];
    return status;
}

int demo_png_close(struct png_rows *p) {
    struct rfx_error err = {{0}};
    int status = 0;
    if (p != NULL && p->writer != NULL && p->next == p->h)
        status = tell(rfx_png_write_commit(p->writer, &err), &err);
    png_free(p);
    return status;
}
