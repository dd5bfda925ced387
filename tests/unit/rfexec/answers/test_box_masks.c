/* Masks of boxes beside the formula of box_masks.h, written down once more with pixels one by one,
 * and their texts beside values that were worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/mask_text.h"
#include "tests/support/test_util.h"

enum { C = 3, H = 21, W = 37, IMAGE_H = 4 * H - 1, IMAGE_W = 4 * W - 3 };

static float map[H * W * C];

static unsigned drawn = 12345U;

static float draw(void) {
    drawn = drawn * 1664525U + 1013904223U;
    return (float)(drawn >> 8) * 0x1p-24f - 0.5f;
}

static struct rfx_answer_prototypes prototypes_of(int64_t h, int64_t w, int64_t c) {
    return (struct rfx_answer_prototypes){.known = true,
                                          .map = {.layout = RFX_LAYOUT_NHWC,
                                                  .type = RFX_TYPE_FLOAT32,
                                                  .h = h,
                                                  .w = w,
                                                  .c = c,
                                                  .elems = h * w * c},
                                          .picture_h = 4 * h,
                                          .picture_w = 4 * w};
}

static float value_at(const float *k, int r, int c) {
    const float *p = map + (r * W + c) * C;
    return (k[0] * p[0] + k[1] * p[1]) + k[2] * p[2];
}

static bool wanted_at(const struct rfx_box *box, const float *k, int y, int x) {
    float sy = fmaxf(((float)y + 0.5f) * 0.25f - 0.5f, 0);
    float sx = fmaxf(((float)x + 0.5f) * 0.25f - 0.5f, 0);
    int r = (int)floorf(sy), c = (int)floorf(sx);
    int below = r + 1 < H ? r + 1 : r, right = c + 1 < W ? c + 1 : c;
    float u = sy - (float)r, v = sx - (float)c;
    float top = (1 - v) * value_at(k, r, c) + v * value_at(k, r, right);
    float bottom = (1 - v) * value_at(k, below, c) + v * value_at(k, below, right);
    return (1 - u) * top + u * bottom > 0 && (float)x >= box->corner[0] &&
           (float)y >= box->corner[1] && (float)x < box->corner[2] && (float)y < box->corner[3];
}

/* Prototypes in pieces of all sizes, out of order. */
static void take_all(struct rfx_box_masks *masks) {
    static const int rows[] = {9, H, 0, 4, 4, 9}, columns[] = {0, 5, 30, W};
    const struct rfx_view view = rfx_view_dense(map, rfx_rect_make(0, H, 0, W), C);
    struct rfx_error err;
    for (int i = 0; i < 6; i += 2)
        for (int k = 0; k < 3; k++)
            assert_int_equal(
                rfx_box_masks_take(masks,
                                   rfx_rect_make(rows[i], rows[i + 1], columns[k], columns[k + 1]),
                                   &view, &err),
                RFX_OK);
    assert_int_equal(rfx_box_masks_take(masks, rfx_rect_make(0, 1, 0, 1), &view, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "come twice"));
}

static void assert_mask(struct rfx_box_masks *masks, const struct rfx_box *box, const float *k,
                        bool columns) {
    static unsigned char got[IMAGE_H][IMAGE_W];
    struct rfx_rect in;
    struct rfx_error err;
    const unsigned char *pixels = NULL;
    memset(got, 0, sizeof got);
    assert_int_equal(rfx_box_masks_begin(masks, box, k, columns, &in, &err), RFX_OK);
    for (int64_t i = columns ? in.x0 : in.y0; i < (columns ? in.x1 : in.y1); i++) {
        assert_int_equal(rfx_box_masks_line(masks, i, &pixels, &err), RFX_OK);
        for (int64_t j = columns ? in.y0 : in.x0, at = 0; j < (columns ? in.y1 : in.x1); j++)
            got[columns ? j : i][columns ? i : j] = pixels[at++];
    }
    for (int y = 0; y < IMAGE_H; y++)
        for (int x = 0; x < IMAGE_W; x++)
            if ((got[y][x] != 0) != wanted_at(box, k, y, x))
                fail_msg("box %g %g %g %g, %s: pixel %d, %d is %d", (double)box->corner[0],
                         (double)box->corner[1], (double)box->corner[2], (double)box->corner[3],
                         columns ? "columns" : "rows", y, x, got[y][x]);
}

static struct rfx_box_masks *open_all(struct rfx_memory *mem) {
    struct rfx_answer_prototypes of = prototypes_of(H, W, C);
    struct rfx_box_masks *masks = NULL;
    struct rfx_error err;
    of.picture_h = IMAGE_H;
    of.picture_w = IMAGE_W;
    assert_int_equal(rfx_box_masks_create(mem, "box_masks.json", &of, &masks, &err), RFX_OK);
    assert_true(rfx_memory_current_bytes(mem) <= rfx_box_masks_bytes(&of));
    return masks;
}

/* In each block of 2 x 2 prototypes, the last one is such that a pixel between them is 0 but for
 * rounding: the order of the sums decides whether it belongs to the mask. */
static void pixels_near_zero(void **state) {
    const struct rfx_box box = {{0, 0, IMAGE_W, IMAGE_H}, 1, 0, 0};
    const float k[C] = {1, 0, 0}, u = 0.375F, v = 0.125F;
    (void)state;
    memset(map, 0, sizeof map);
    for (int r = 0; r + 1 < H; r += 2)
        for (int c = 0; c + 1 < W; c += 2) {
            float *a = map + (r * W + c) * C, *b = a + C, *d = a + W * C, *last = d + C;
            a[0] = draw();
            b[0] = draw();
            d[0] = draw();
            last[0] = -((1 - u) * ((1 - v) * a[0] + v * b[0]) + u * (1 - v) * d[0]) / (u * v);
        }
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_box_masks *masks = open_all(mem);
    take_all(masks);
    assert_mask(masks, &box, k, false);
    assert_mask(masks, &box, k, true);
    rfx_box_masks_free(masks);
    rfx_memory_free(mem);
}

static void masks_of_boxes(void **state) {
    static const float corners[][4] = {{-10, -10, 1000, 1000}, {0, 0, 0.5F, 0.5F},
                                       {3.5F, 7.25F, 99, 61},  {140, 80, 150, 90},
                                       {20, 10, 20, 50},       {50, 40, 30, 20},
                                       {NAN, 0, 9, 9},         {0, 0, 9, NAN},
                                       {-INFINITY, 5, 64, 6},  {7, -INFINITY, 8, INFINITY},
                                       {1e30F, 0, 2e30F, 9},   {-0.0F, 82, 145, 83}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err;
    struct rfx_rect in;
    (void)state;
    for (size_t i = 0; i < sizeof map / sizeof(float); i++) map[i] = draw();
    map[(3 * W + 4) * C + 1] = NAN;
    map[(9 * W + 9) * C] = INFINITY;
    struct rfx_box_masks *masks = open_all(mem);
    struct rfx_box box = {.score = 1};
    assert_int_equal(rfx_box_masks_begin(masks, &box, map, false, &in, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "0 of 777 pixels"));
    take_all(masks);
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++)
        for (int way = 0; way < 2; way++) {
            const float k[C] = {draw(), draw(), draw()};
            memcpy(box.corner, corners[i], sizeof box.corner);
            assert_mask(masks, &box, k, way == 1);
        }
    rfx_box_masks_free(masks);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Sums whose sign depends on their order and on the rounding of products. */
static void sums_are_in_order(void **state) {
    static const struct {
        float prototype[C], coefficient[C];
        unsigned char above;
    } sums[] = {{{1, 1, 1}, {1e8F, -1e8F, 1}, 1},
                {{1, 1, 1}, {1, 1e8F, -1e8F}, 0},
                {{1, 0x1.001p0F, 0}, {-0x1.002p0F, 0x1.001p0F, 0}, 0}};
    const struct rfx_answer_prototypes of = prototypes_of(1, 1, C);
    const struct rfx_box box = {{0, 0, 4, 4}, 1, 0, 0};
    (void)state;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_box_masks *masks = NULL;
        struct rfx_error err;
        struct rfx_rect in;
        const unsigned char *pixels = NULL;
        float values[C];
        memcpy(values, sums[i].prototype, sizeof values);
        const struct rfx_view view = rfx_view_dense(values, rfx_rect_make(0, 1, 0, 1), C);
        assert_int_equal(rfx_box_masks_create(mem, "box_masks.json", &of, &masks, &err), RFX_OK);
        assert_int_equal(rfx_box_masks_take(masks, view.rect, &view, &err), RFX_OK);
        assert_int_equal(rfx_box_masks_begin(masks, &box, sums[i].coefficient, false, &in, &err),
                         RFX_OK);
        assert_int_equal(rfx_box_masks_line(masks, 0, &pixels, &err), RFX_OK);
        assert_int_equal(pixels[0], sums[i].above);
        rfx_box_masks_free(masks);
        rfx_memory_free(mem);
    }
}

static void failing_allocations(void **state) {
    const struct rfx_answer_prototypes of = prototypes_of(H, W, C);
    (void)state;
    for (int k = 0;; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_box_masks *masks = NULL;
        rfx_memory_fail_after(mem, k);
        enum rfx_status status = rfx_box_masks_create(mem, "box_masks.json", &of, &masks, NULL);
        assert_int_equal(status == RFX_OK, masks != NULL);
        rfx_box_masks_free(masks);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
        if (status == RFX_OK) break;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_true(k < 20);
    }
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_box_masks *masks = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_box_masks_create(mem, "nowhere/box.json", &of, &masks, &err),
                     RFX_STATUS_IO);
    rfx_memory_free(mem);
    rfx_box_masks_free(NULL);
}

/* ---- texts ---- */

/* One channel of 2 x 2 prototypes of an image of 8 x 8: the upper left one is 1, the others -1. The
 * pixels 0 and 1 are those of the first prototype, 6 and 7 of the second; in between there are
 * 7, 5, 3 and 1 eighths of the first one. (u, v): u v - u (1 - v) - (1 - u) = 2 u v - 1 > 0. */
#define WHOLE \
    { {0, 0, 8, 8}, 1, 0, 0 }

static void put(const struct rfx_box *box, float coefficient, int form, const char *wanted) {
    static float values[4] = {1, -1, -1, -1};
    const struct rfx_answer_prototypes of = prototypes_of(2, 2, 1);
    const struct rfx_answer_options options = {.score = 0};
    const struct rfx_answer_place place = {.known = false};
    const struct rfx_view view = rfx_view_dense(values, rfx_rect_make(0, 2, 0, 2), 1);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_answer_text text;
    struct rfx_box_masks *masks = NULL;
    struct rfx_error err;
    assert_int_equal(
        rfx_answer_text_open(&text, mem, "mask_text.json", &options, &place, NULL, &err), RFX_OK);
    assert_int_equal(rfx_box_masks_create(mem, "mask_text.json", &of, &masks, &err), RFX_OK);
    assert_int_equal(rfx_box_masks_take(masks, view.rect, &view, &err), RFX_OK);
    enum rfx_status status =
        form == 2 ? rfx_mask_put_polygons(&text, masks, box, &coefficient, 0, &err)
                  : rfx_mask_put_runs(&text, masks, box, &coefficient, form == 1, &err);
    assert_int_equal(status, RFX_OK);
    assert_int_equal(rfx_output_file_commit(text.file, &err), RFX_OK);
    rfx_box_masks_free(masks);
    rfx_answer_text_close(&text);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    assert_string_equal(test_take_text("mask_text.json"), wanted);
}

/* Rows of column x of the mask of the whole image: 2 u v > 1 with u, v of 1, 1, 7/8, 5/8, 3/8, ...
 * Columns 0, 1: v = 1, u > 1/2: 4 rows. Column 2: u > 4/7: 4 rows. Column 3: u > 4/5: 3 rows. The
 * string by hand: differences to the run before the last, in 5 bits from '0' on. */
static void texts_by_hand(void **state) {
    const struct rfx_box whole = WHOLE, part = {{2.5F, 1, 4, 3}, 1, 0, 0},
                         none = {{9, 9, 12, 12}, 1, 0, 0}, inner = {{1, 1, 8, 8}, 1, 0, 0};
    (void)state;
    put(&whole, 1, 0, "{\"size\":[8,8],\"counts\":[0,4,4,4,4,4,4,3,37]}");
    put(&whole, 1, 1, "{\"size\":[8,8],\"counts\":\"0440000OQ1\"}");
    put(&part, 1, 0, "{\"size\":[8,8],\"counts\":[25,2,37]}");
    put(&none, 1, 0, "{\"size\":[8,8],\"counts\":[64]}");
    put(&none, 1, 1, "{\"size\":[8,8],\"counts\":\"P2\"}");
    put(&none, 1, 2, "{\"type\":\"MultiPolygon\",\"coordinates\":[]}");
    put(&whole, 1, 2,
        "{\"type\":\"MultiPolygon\",\"coordinates\":[[[[0,0],[4,0],[4,3],[3,3],[3,4],[0,4],[0,0]]]]"
        "}");
    /* the rest: 2 u v < 1; u v is 1/2 nowhere */
    put(&inner, -1, 2,
        "{\"type\":\"MultiPolygon\",\"coordinates\":[[[[4,1],[8,1],[8,8],[1,8],[1,4],[3,4],[3,3],["
        "4,3],"
        "[4,1]]]]}");
    put(&inner, 0, 2, "{\"type\":\"MultiPolygon\",\"coordinates\":[]}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_of_boxes), cmocka_unit_test(sums_are_in_order),
        cmocka_unit_test(pixels_near_zero), cmocka_unit_test(failing_allocations),
        cmocka_unit_test(texts_by_hand)};
    return cmocka_run_group_tests_name("box masks", tests, NULL, NULL);
}
