/* Texts after "synthetic:", the picture that is computed. */
#include <stdio.h>
#include <string.h>

#include "rfexec/image/image_source.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY_BYTES ((size_t)1 << 20)
enum { MOST_TEXT = 64, SIDE = 7 };

/* The last SIDE rows and columns, at once and pixel by pixel. */
static void read_corner(struct rfx_image *image) {
    float all[SIDE * SIDE * 3], one[3];
    struct rfx_source_traits t = rfx_image_traits(image);
    struct rfx_rect corner =
        rfx_rect_make(t.h > SIDE ? t.h - SIDE : 0, t.h, t.w > SIDE ? t.w - SIDE : 0, t.w);
    struct rfx_view view = rfx_view_dense(all, corner, t.c);
    struct rfx_error err = {""};
    if (t.c != 3 || rfx_image_read(image, corner, &view, &err) != RFX_OK)
        fuzz_fail("%lld channels: %s", (long long)t.c, err.text);
    for (int64_t y = corner.y0; y < corner.y1; y++)
        for (int64_t x = corner.x0; x < corner.x1; x++) {
            struct rfx_rect rect = rfx_rect_make(y, y + 1, x, x + 1);
            struct rfx_view pixel = rfx_view_dense(one, rect, 3);
            if (rfx_image_read(image, rect, &pixel, &err) != RFX_OK ||
                memcmp(one, rfx_view_f32_at(&view, y, x), sizeof one) != 0)
                fuzz_fail("pixel %lld, %lld is another: %s", (long long)y, (long long)x, err.text);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char spec[16 + MOST_TEXT];
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    int length = (int)(size < MOST_TEXT ? size : MOST_TEXT);
    (void)snprintf(spec, sizeof spec, "synthetic:%.*s", length, (const char *)data);
    enum rfx_status status = rfx_image_open(mem, spec, NULL, &image, &err);
    fuzz_check_status(status, &err);
    if (status == RFX_OK) read_corner(image);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return 0;
}
