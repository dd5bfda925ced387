/* The demos' makers of pictures, the scorer, the tiles: what they promise in their headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/demo/defects.h"
#include "tools/demo/demo_support.h"
#include "tools/demo/local_tiles.h"
#include "tools/demo/marks.h"
#include "tools/demo/micrograph.h"
#include "tools/demo/phase_map.h"
#include "tools/demo/surface.h"

static int64_t gap(int64_t a0, int64_t a1, int64_t b0, int64_t b1) {
    if (b0 >= a1) return b0 - a1;
    return a0 >= b1 ? a0 - b1 : -1;
}

static void defects_lie_inside_and_apart(void **state) {
    (void)state;
    struct marks m;
    assert_int_equal(demo_marks_create(&m, 5, 1501, 2003, 20.0, 1.0f), 0);
    size_t defects = 0;
    for (size_t i = 0; i < m.count; i++) {
        const struct mark *a = &m.mark[i];
        if (i > 0) assert_true(m.mark[i - 1].ry0 <= a->ry0);
        if (a->kind > MARK_STAIN) continue;
        defects++;
        assert_true(a->y0 >= 0 && a->x0 >= 0 && a->y1 <= 1501 && a->x1 <= 2003);
        assert_true(a->y0 < a->y1 && a->x0 < a->x1);
        for (size_t k = i + 1; k < m.count; k++) {
            const struct mark *b = &m.mark[k];
            if (b->kind > MARK_STAIN) continue;
            int64_t dy = gap(a->y0, a->y1, b->y0, b->y1), dx = gap(a->x0, a->x1, b->x0, b->x1);
            assert_true(dy >= MARK_DISTANCE_PX || dx >= MARK_DISTANCE_PX);
        }
    }
    assert_true(defects > 40 && defects <= 60); /* 3.0 Mpx x 20, less those that found no place */
    demo_marks_free(&m);
}

static void drawing_stays_in_the_box(void **state) {
    (void)state;
    enum { H = 700, W = 900 };
    static float lum[W], stain[W];
    static uint8_t truth[W];
    struct mark_row row = {W, lum, stain, truth};
    struct marks m;
    assert_int_equal(demo_marks_create(&m, 9, H, W, 30.0, 1.0f), 0);
    for (size_t i = 0; i < m.count; i++) {
        const struct mark *a = &m.mark[i];
        size_t drawn = 0, marked = 0;
        for (int64_t y = 0; y < H; y++) {
            memset(lum, 0, sizeof lum);
            memset(stain, 0, sizeof stain);
            memset(truth, 0, sizeof truth);
            demo_mark_draw_row(a, y, &row);
            for (int64_t x = 0; x < W; x++) {
                bool in_draw = y >= a->ry0 && y < a->ry1 && x >= a->rx0 && x < a->rx1;
                bool in_truth = y >= a->y0 && y < a->y1 && x >= a->x0 && x < a->x1;
                drawn += lum[x] != 0.0f || stain[x] != 0.0f;
                marked += truth[x] != 0;
                if (!in_draw) assert_true(lum[x] == 0.0f && stain[x] == 0.0f);
                if (!in_truth) assert_int_equal(truth[x], 0);
            }
        }
        if (a->kind <= MARK_STAIN) assert_true(drawn >= 20 && marked >= 20);
        if (a->kind > MARK_STAIN) assert_int_equal(marked, 0);
    }
    demo_marks_free(&m);
}

static void a_row_needs_no_row_before_it(void **state) {
    (void)state;
    enum { W = 501 };
    float once[W], again[W], other[W];
    struct surface s, t;
    demo_surface_init(&s, 3, 400, W);
    demo_surface_row(&s, 123, once);
    for (int64_t y = 0; y < 130; y++) demo_surface_row(&s, y, other);
    demo_surface_row(&s, 123, again);
    assert_memory_equal(once, again, sizeof once);
    demo_surface_init(&t, 4, 400, W);
    demo_surface_row(&t, 123, other);
    assert_memory_not_equal(once, other, sizeof once);
}

static void write_file(const char *path, const void *bytes, size_t count) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

/* Writes float32 [1, 3, h, w] with a version 1 header, by the format's description. */
static void write_maps(const char *path, const char *descr, const float *value, int h, int w) {
    char text[119], bytes[128 + 3 * 64 * sizeof(float)];
    (void)snprintf(text, sizeof text,
                   "{'descr': '%s', 'fortran_order': False, 'shape': (1, 3, %d, %d), }", descr, h,
                   w);
    (void)snprintf(bytes, sizeof bytes, "\x93NUMPY%c%c%c%c%-117s\n", 1, 1, 118, 1, text);
    bytes[7] = 0;
    bytes[9] = 0;
    size_t size = (size_t)(3 * h * w) * sizeof(float);
    memcpy(bytes + 128, value, size);
    write_file(path, bytes, 128 + size);
}

#define COLUMNS                                                                     \
    "label,name,pixels,area,perimeter,centroid_x,centroid_y,left,top,right,bottom," \
    "mean_score,largest_score\n"

static const int least[DEFECT_KINDS] = {1, 1, 1};

/* The number of regions in a file of the lines, with the usual column names before them. */
static int regions_in(const char *lines, const int least_cells[], struct found_regions *out) {
    char text[1000];
    int n = snprintf(text, sizeof text, COLUMNS "%s", lines);
    write_file("demo_regions.csv", text, (size_t)n);
    return demo_regions_read("demo_regions.csv", least_cells, out);
}

/* Three regions of 8 x 8 pixels a cell: three cells in a row, a single cell far away, a pit. */
#define THREE_REGIONS                                               \
    "0,\"scratch\",3,192,96,12.5,8.5,-3.5,-3.5,20.5,12.5,0.8,0.9\n" \
    "0,\"scratch\",1,64,32,56.5,24.5,52.5,20.5,60.5,28.5,0.6,0.6\n" \
    "1,\"pit\",1,64,32,32.5,16.5,28.5,12.5,36.5,20.5,0.95,0.95\n"

static void regions_are_matched_by_the_rule(void **state) {
    (void)state;
    static const char csv[] =
        "kind,y0,x0,y1,x1,cy,cx,size\n"
        "scratch,0,0,4,8,2,4,12\n"    /* found: grown by a cell it holds 12 rows of 16 and 18.5
                                         columns of 24 */
        "stain,12,28,21,37,20,36,8\n" /* missed: the region there is a pit's */
        "pit,16,41,24,49,20,45,8\n";  /* missed: grown to column 33, it holds less than half */
    static const int least_two[DEFECT_KINDS] = {2, 2, 2};
    struct found_regions regions;
    struct truth truth;
    write_file("demo_truth.csv", csv, sizeof csv - 1);
    assert_int_equal(demo_truth_read("demo_truth.csv", &truth), 0);
    assert_int_equal(truth.count, 3);
    assert_int_equal(regions_in(THREE_REGIONS, least, &regions), 0);
    assert_int_equal(regions.count, 3);
    const struct found_region *r = regions.region;
    assert_true(r[0].kind == 0 && r[0].cells == 3 && r[0].left == -3.5 && r[0].bottom == 12.5);
    assert_true(r[2].kind == 1 && r[2].top == 12.5 && r[2].right == 36.5);
    demo_truth_match(&truth, &regions, 8);
    assert_int_equal(r[0].truth, 0);
    assert_int_equal(r[1].truth, -1);
    assert_int_equal(r[2].truth, -1);
    assert_true(truth.defect[0].found && !truth.defect[1].found && !truth.defect[2].found);
    truth.defect[2].x0 = 40; /* grown to column 32 and row 8, it holds 4.5 of 8 columns */
    demo_truth_match(&truth, &regions, 8);
    assert_int_equal(r[2].truth, 2);
    demo_regions_free(&regions);
    assert_int_equal(regions_in(THREE_REGIONS, least_two, &regions), 0);
    assert_int_equal(regions.count, 1);
    demo_regions_free(&regions);
    demo_truth_free(&truth);
}

static void a_region_belongs_to_the_nearer_defect(void **state) {
    (void)state;
    struct true_defect defects[2] = {{2, 0, 40, 0, 34, 0}, {2, 0, 40, 20, 60, 0}};
    struct truth truth = {defects, 2};
    struct found_regions regions;
    assert_int_equal(
        regions_in("2,\"stain\",9,576,96,0,0,24.5,4.5,48.5,28.5,1,1\n", least, &regions), 0);
    demo_truth_match(&truth, &regions, 8);
    assert_int_equal(regions.region[0].truth, 1);
    assert_true(!defects[0].found && defects[1].found);
    demo_regions_free(&regions);
}

static void broken_files_are_refused(void **state) {
    (void)state;
    float value[3 * 4] = {0};
    struct phase_map map;
    struct found_regions regions;
    struct truth truth;
    write_maps("demo_bad.npy", "<f8", value, 2, 2);
    assert_int_equal(demo_phase_map_read("demo_bad.npy", &map), -1);
    write_maps("demo_bad.npy", "<f4", value, 2, 2);
    assert_int_equal(demo_phase_map_read("demo_bad.npy", &map), 0);
    assert_true(map.h == 2 && map.w == 2);
    demo_phase_map_free(&map);
    char head[160];
    FILE *f = fopen("demo_bad.npy", "rb");
    assert_non_null(f);
    assert_int_equal(fread(head, 1, sizeof head, f), 160);
    fclose(f);
    write_file("demo_bad.npy", head, 160); /* 48 bytes of values announced, 32 there */
    assert_int_equal(demo_phase_map_read("demo_bad.npy", &map), -1);
    assert_int_equal(demo_phase_map_read("no_such_file.npy", &map), -1);
    static const char csv[] = "kind,y0,x0,y1,x1\ndent,1,2,3,4\n";
    write_file("demo_bad.csv", csv, sizeof csv - 1);
    assert_int_equal(demo_truth_read("demo_bad.csv", &truth), -1);
    assert_int_equal(demo_regions_read("demo_bad.csv", least, &regions), -1);
    assert_int_equal(demo_regions_read("no_such_file.csv", least, &regions), -1);
    static const char *const lines[] = {
        "0,,3,192,96,12.5,8.5,0,0,20,12,0.8,0.9\n",         /* without --classes */
        "0,\"dent\",3,192,96,12.5,8.5,0,0,20,12,0.8,0.9\n", /* names of another network */
        "0,\"scratch\",3,192,96,12.5,8.5,0,0,20\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_int_equal(regions_in(lines[i], least, &regions), -1);
    assert_int_equal(regions_in("", least, &regions), 0);
    assert_int_equal(regions.count, 0);
    demo_regions_free(&regions);
}

static void png_rows_come_back(void **state) {
    (void)state;
    uint8_t rows[3][15], back[15];
    int64_t h, w;
    for (int i = 0; i < 45; i++) rows[i / 15][i % 15] = (uint8_t)(i * 37);
    struct png_rows *png = demo_png_create("demo_rows.png", 3, 5, 3);
    assert_non_null(png);
    for (int y = 0; y < 3; y++) assert_int_equal(demo_png_write_row(png, rows[y]), 0);
    assert_int_equal(demo_png_close(png), 0);
    png = demo_png_open("demo_rows.png", &h, &w);
    assert_non_null(png);
    assert_true(h == 3 && w == 5);
    for (int y = 0; y < 3; y++) {
        assert_int_equal(demo_png_read_row(png, back), 0);
        assert_memory_equal(back, rows[y], 15);
    }
    assert_int_equal(demo_png_close(png), 0);
}

static void phases_differ_in_brightness(void **state) {
    (void)state;
    enum { H = 256, W = 301, Y = 77 };
    static uint8_t grey[H][W], phase[H][W], again[W], other[W];
    struct micrograph m;
    assert_int_equal(demo_micrograph_create(&m, 6, H, W, 60), 0);
    demo_micrograph_row(&m, Y, again, other);
    double sum[PHASES] = {0};
    int count[PHASES] = {0};
    for (int y = 0; y < H; y++) {
        demo_micrograph_row(&m, y, grey[y], phase[y]);
        for (int x = 0; x < W; x++) {
            assert_in_range(phase[y][x], 0, PHASES - 1);
            count[phase[y][x]]++;
            sum[phase[y][x]] += grey[y][x];
        }
    }
    assert_memory_equal(again, grey[Y], W); /* a row needs no row before it */
    assert_memory_equal(other, phase[Y], W);
    for (int k = 0; k < PHASES; k++) assert_true(count[k] > H * W / 10);
    for (int k = 1; k < PHASES; k++)
        assert_true(sum[k] / count[k] > sum[k - 1] / count[k - 1] + 12.0);
    demo_micrograph_free(&m);
    assert_int_equal(demo_micrograph_create(&m, 7, H, W, 60), 0);
    demo_micrograph_row(&m, Y, again, other);
    assert_memory_not_equal(again, grey[Y], W);
    demo_micrograph_free(&m);
}

/* The largest difference between the picture as one tile and in tiles. */
static float tiles_differ_by(const char *model, int64_t stride, int64_t tile, int64_t halo) {
    enum { H = 300, W = 262 };
    static uint8_t grey[W], phase[W];
    struct micrograph m;
    int64_t h = 0, w = 0;
    float *values = NULL, *whole = NULL, *map = NULL, largest = 0.0f;
    struct png_rows *png = demo_png_create("demo_section.png", H, W, 1);
    assert_non_null(png);
    assert_int_equal(demo_micrograph_create(&m, 6, H, W, 90), 0);
    for (int y = 0; y < H; y++) {
        demo_micrograph_row(&m, y, grey, phase);
        assert_int_equal(demo_png_write_row(png, grey), 0);
    }
    demo_micrograph_free(&m);
    assert_int_equal(demo_png_close(png), 0);
    assert_int_equal(demo_read_values("demo_section.png", &h, &w, &values), 0);
    assert_true(h == H && w == W);
    struct local_tiles one = {.model = model, .stride = stride, .tile = 320, .halo = 0};
    struct local_tiles many = {.model = model, .stride = stride, .tile = tile, .halo = halo};
    assert_int_equal(demo_local_tiles_run(&one, values, h, w, &whole), 0);
    assert_int_equal(demo_local_tiles_run(&many, values, h, w, &map), 0);
    assert_true(one.count == 1 && one.h == (H + stride - 1) / stride);
    assert_int_equal(many.count, ((H - 1) / tile + 1) * ((W - 1) / tile + 1));
    for (int64_t i = 0; i < one.c * one.h * one.w; i++) {
        float difference = whole[i] > map[i] ? whole[i] - map[i] : map[i] - whole[i];
        if (difference > largest) largest = difference;
    }
    free(map);
    free(whole);
    free(values);
    return largest;
}

/* Cells of defect_net see 135 pixels and no statistics: with the halo its tiles are exact, which
 * shows that what is wrong with those of phase_net are the statistics and not the cutting. */
static void tiles_lack_nothing_but_statistics(void **state) {
    (void)state;
    static const char local[] = RFX_SOURCE_DIR "/data/defect_net.onnx";
    static const char global[] = RFX_SOURCE_DIR "/data/phase_net.onnx";
    assert_true(tiles_differ_by(local, 8, 128, 72) == 0.0f);
    assert_true(tiles_differ_by(local, 8, 128, 0) > 1e-4f);
    assert_true(tiles_differ_by(global, 2, 64, 64) > 0.5f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defects_lie_inside_and_apart),
        cmocka_unit_test(drawing_stays_in_the_box),
        cmocka_unit_test(a_row_needs_no_row_before_it),
        cmocka_unit_test(regions_are_matched_by_the_rule),
        cmocka_unit_test(a_region_belongs_to_the_nearer_defect),
        cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(png_rows_come_back),
        cmocka_unit_test(phases_differ_in_brightness),
        cmocka_unit_test(tiles_lack_nothing_but_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
