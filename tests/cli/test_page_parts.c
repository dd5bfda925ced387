/* The parts of a page about a run, each by hand: histograms, previews, escaping and base64, memory
 * over time, and what of an arena is in use. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tiler/modes/modes.h"
#include "tools/report/html.h"
#include "tools/report/output_summary.h"
#include "tools/report/overlay_drawing.h"
#include "tools/report/run_timeline.h"

static uint64_t count_between(const float *values, int n, double lo, double hi) {
    uint64_t count = 0;
    for (int i = 0; i < n; ++i) count += (double)values[i] >= lo && (double)values[i] < hi;
    return count;
}

/* Every bin against a count of its own edges, and the same bins from the values backwards. */
static void check_sketch(const float *values, int n, int at_least_bins) {
    struct rfx_value_sketch s = {0}, back = {0};
    rfx_value_sketch_add(&s, values, n / 2);
    rfx_value_sketch_add(&s, values + n / 2, n - n / 2);
    for (int i = n; i-- > 0;) rfx_value_sketch_add(&back, values + i, 1);
    int used = rfx_value_sketch_used(&s);
    assert_in_range(used, at_least_bins, RFX_SKETCH_BINS);
    uint64_t total = 0;
    for (int i = 0; i < used; ++i) {
        uint64_t expected = count_between(values, n, rfx_value_sketch_edge(&s, i),
                                          rfx_value_sketch_edge(&s, i + 1));
        assert_int_equal(s.bins[i], expected);
        total += s.bins[i];
    }
    assert_int_equal(total, s.finite);
    assert_int_equal(s.exponent, back.exponent);
    assert_int_equal(s.first, back.first);
    assert_memory_equal(s.bins, back.bins, sizeof s.bins);
}

static void test_histogram(void **state) {
    enum { N = 5000 };
    static float values[N];
    unsigned seed = 12345;
    (void)state;
    for (int i = 0; i < N; ++i) {
        seed = seed * 1103515245U + 12345U;
        values[i] = (float)(seed >> 8) / 16777216.0F * 3.0F - 1.0F;
    }
    check_sketch(values, N, 33);
    for (int i = 0; i < N; ++i) values[i] *= 1e30F;
    check_sketch(values, N, 33);
    for (int i = 0; i < N; ++i) values[i] = i % 3 == 0 ? 1e-40F : i % 3 == 1 ? -3e38F : 3e38F;
    check_sketch(values, N, 33);
    for (int i = 0; i < N; ++i) values[i] = (float)(i % 7);
    check_sketch(values, N, 7);
    for (int i = 0; i < N; ++i) values[i] = 0.0F;
    check_sketch(values, N, 1);
    for (int i = 0; i < N; ++i) values[i] = 16777217.0F;
    check_sketch(values, N, 1);
}

static void test_special_values(void **state) {
    static const float values[] = {NAN, 1.0F, INFINITY, -INFINITY, INFINITY, 2.0F, -0.0F};
    struct rfx_value_sketch s = {0}, none = {0};
    (void)state;
    rfx_value_sketch_add(&s, values, 7);
    assert_int_equal(s.finite, 3);
    assert_int_equal(s.nan, 1);
    assert_int_equal(s.plus_inf, 2);
    assert_int_equal(s.minus_inf, 1);
    assert_true(s.sum == 3.0 && s.min == 0.0F && s.max == 2.0F);
    rfx_value_sketch_add(&none, values, 1);
    assert_int_equal(rfx_value_sketch_used(&none), 0);
}

/* 2 channels of 3 x 400 pixels: value = column + 1000 * channel; shown in 1 x 160 cells. In column
 * strips and row by row alike. */
static void test_preview(void **state) {
    enum { C = 2, H = 3, W = 400 };
    static float nhwc[H * W * C];
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_tensor map = rfx_tensor_nhwc(C, H, W), point = rfx_tensor_nhwc(C, 1, 1);
    struct rfx_map_preview a, b;
    (void)state;
    assert_true(rfx_map_preview_suits(&map) && !rfx_map_preview_suits(&point));
    for (int c = 0; c < C; ++c)
        for (int i = 0; i < H * W; ++i) nhwc[i * C + c] = (float)(i % W + 1000 * c);
    nhwc[0] = NAN; /* of the first cell, channel 0: columns 0, 1, 2 are left, less one */
    nhwc[C * 399 + 1] = INFINITY;
    assert_int_equal(rfx_map_preview_create(mem, &map, &a, NULL), RFX_OK);
    assert_int_equal(rfx_map_preview_create(mem, &map, &b, NULL), RFX_OK);
    assert_true(a.rows == 1 && a.cols == 160 && a.channels == C);
    struct rfx_view view = rfx_view_dense(nhwc, rfx_rect_full(H, W), C);
    for (int64_t x = 0; x < W; x += 150)
        rfx_map_preview_add(&a, rfx_rect_make(0, H, x, x + 150 < W ? x + 150 : W), &view);
    for (int64_t y = 0; y < H; ++y) rfx_map_preview_add(&b, rfx_rect_make(y, y + 1, 0, W), &view);
    for (int64_t c = 0; c < C; ++c)
        for (int64_t x = 0; x < 160; ++x) {
            double mean = rfx_map_preview_mean(&a, c, 0, x);
            assert_true(mean == rfx_map_preview_mean(&b, c, 0, x));
            double first = ceil((double)x * 2.5), last = ceil((double)(x + 1) * 2.5) - 1;
            if ((c == 0 && x == 0) || (c == 1 && x == 159)) continue;
            assert_true(fabs(mean - (first + last) / 2 - 1000.0 * (double)c) < 1e-9);
        }
    assert_true(fabs(rfx_map_preview_mean(&a, 0, 0, 0) - 9.0 / 8.0) < 1e-9);
    rfx_map_preview_free(&a);
    rfx_map_preview_free(&b);
    rfx_memory_free(mem);
}

/* 1000 x 10 pixels become 400 x 4: row r shows row 5 r / 2 of the image. */
static void test_small_copy(void **state) {
    enum { H = 1000, W = 10, ROWS = 400, COLS = 4 };
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_small_copy copy;
    (void)state;
    assert_int_equal(rfx_small_copy_bytes(H, W), 3 * ROWS * COLS);
    assert_int_equal(rfx_small_copy_create(mem, H, W, &copy, NULL), RFX_OK);
    assert_true(copy.rows == ROWS && copy.cols == COLS);
    for (int64_t y = 0; y < H; ++y) {
        float colours[3 * COLS];
        bool wanted = y % 5 == 0 || y % 5 == 2;
        for (int i = 0; i < 3 * COLS; ++i) colours[i] = (float)((y + 7 * i) % 256);
        assert_int_equal(rfx_small_copy_wants(&copy, y), wanted);
        if (!wanted) continue;
        assert_int_equal(5 * rfx_small_copy_row(&copy, y) / 2, y);
        rfx_small_copy_take(&copy, rfx_small_copy_row(&copy, y), colours);
    }
    for (int r = 0; r < ROWS; ++r)
        for (int i = 0; i < 3 * COLS; ++i) {
            int y = 5 * r / 2;
            assert_int_equal(copy.rgb[3 * COLS * r + i], (y + 7 * i) % 256);
        }
    rfx_small_copy_free(&copy);
    rfx_memory_free(mem);
}

static void test_html(void **state) {
    static const struct {
        const char *bytes, *base64;
    } groups[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_html html = {0};
    char text[400] = {0};
    (void)state;
    assert_int_equal(rfx_output_file_open(mem, "page.html", &html.file, NULL), RFX_OK);
    rfx_html_text(&html, "<a b=\"c\" d='e'>&amp; \xef\xbf\xbe\xef\xbf\xbf \xef\xbf\xbd g\xef");
    for (int i = 0; i < 5; ++i) { /* RFC 4648, section 10 */
        rfx_html_raw(&html, "|");
        enum rfx_status status =
            rfx_html_base64(&html, groups[i].bytes, strlen(groups[i].bytes), NULL);
        assert_int_equal(status, RFX_OK);
        rfx_html_base64_end(&html);
    }
    memset(text, 'x', sizeof text - 1);
    rfx_html_format(&html, "|%d", 7);
    assert_int_equal(html.status, RFX_OK);
    assert_int_equal(rfx_output_file_commit(html.file, NULL), RFX_OK);
    rfx_html_format(&html, "%s%s%s", text, text, text);
    assert_int_equal(html.status, RFX_STATUS_INVALID_ARGUMENT);
    rfx_output_file_free(html.file);
    rfx_memory_free(mem);
    FILE *stream = fopen("page.html", "rb");
    assert_non_null(stream);
    size_t n = fread(text, 1, sizeof text - 1, stream);
    text[n] = '\0';
    (void)fclose(stream);
    assert_string_equal(text,
                        "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp; ?? \xef\xbf\xbd g\xef"
                        "||Zg==|Zm8=|Zm9v|Zm9vYmFy|7");
}

static void test_timeline(void **state) {
    struct rfx_run_timeline t = {.interval = 1.0};
    (void)state;
    rfx_run_timeline_add(&t, 0.5, 10, 100);
    rfx_run_timeline_add(&t, 3.5, 7, 0); /* a step over three intervals */
    assert_int_equal(t.used, 4);
    assert_true(t.planned[0] == 10 && t.planned[1] == 7 && t.planned[2] == 7 && t.planned[3] == 7);
    rfx_run_timeline_add(&t, RFX_TIMELINE_INTERVALS * 3.0, 5, 300); /* twice twice as long */
    assert_true(t.interval == 4.0);
    assert_int_equal(t.used, RFX_TIMELINE_INTERVALS * 3 / 4 + 1);
    assert_true(t.planned[0] == 10 && t.planned[1] == 5 && t.resident[0] == 100);
    assert_int_equal(t.resident[RFX_TIMELINE_INTERVALS * 3 / 4], 300);
    assert_int_equal(t.planned[RFX_TIMELINE_INTERVALS * 3 / 4], 5);
}

/* Two boxes of one step share no byte unless one is written over the other: in a plan without that,
 * and all lie in the arena, which the fullest step fills up to the gaps that packing left. */
static void check_arena(const struct rfx_plan *plan, struct rfx_memory *mem) {
    struct rfx_arena_use *use = NULL;
    size_t most = 0;
    assert_int_equal(rfx_arena_use_create(mem, plan, &use, NULL), RFX_OK);
    for (int s = 0; s < plan->n_stages; ++s) {
        rfx_arena_use_stage(use, s);
        assert_true(use->n_boxes > 0);
        for (int i = 0; i < use->n_boxes; ++i) {
            const struct rfx_arena_box *a = &use->boxes[i];
            assert_true(a->offset + a->bytes <= plan->bytes.arena);
            assert_true(0 <= a->first && a->first <= a->last && a->last < use->n_steps);
            for (int j = 0; j < i; ++j) {
                const struct rfx_arena_box *b = &use->boxes[j];
                bool meet = a->first <= b->last && b->first <= a->last;
                assert_false(meet && b->offset + b->bytes > a->offset);
            }
        }
        for (int k = 0; k < use->n_steps; ++k) most = use->live[k] > most ? use->live[k] : most;
    }
    /* Sizes are rounded up to RFX_ALIGNMENT_BYTES for each of few buffers. */
    assert_true(most <= plan->lower_bound_bytes);
    assert_true(most + 64 * (size_t)use->n_steps * (1 + RFX_RED_ZONE_BYTES) >=
                plan->lower_bound_bytes);
    rfx_arena_use_free(use);
}

/* Bytes in use at each step, against a map of the arena's bytes. Returns the number of steps at
 * which boxes overlap. */

static int check_live_bytes(const struct rfx_plan *plan, struct rfx_memory *mem) {
    struct rfx_arena_use *use = NULL;
    unsigned char *taken = malloc(plan->bytes.arena);
    int overlaps = 0;
    assert_non_null(taken);
    assert_int_equal(rfx_arena_use_create(mem, plan, &use, NULL), RFX_OK);
    for (int s = 0; s < plan->n_stages; ++s) {
        rfx_arena_use_stage(use, s);
        for (int k = 0; k < use->n_steps; ++k) {
            size_t count = 0, sum = 0;
            memset(taken, 0, plan->bytes.arena);
            for (int i = 0; i < use->n_boxes; ++i) {
                const struct rfx_arena_box *box = &use->boxes[i];
                if (k < box->first || k > box->last) continue;
                memset(taken + box->offset, 1, box->bytes);
                sum += box->bytes;
            }
            for (size_t i = 0; i < plan->bytes.arena; ++i) count += taken[i];
            assert_int_equal(use->live[k], count);
            overlaps += sum > count;
        }
    }
    rfx_arena_use_free(use);
    free(taken);
    return overlaps;
}

/* Layers that overwrite their input: their boxes overlap, and each byte counts once. */
static void test_arena_in_place(void **state) {
    struct small_plan_case c = small_plan_case_begin(64, 48);
    struct rfx_plan *plan = NULL;
    (void)state;
    c.request.asked = rfx_ask_whole();
    c.request.asked.row_by_row = true;
    assert_int_equal(rfx_plan_create(c.graph, &c.request, &plan, NULL), RFX_OK);
    assert_true(check_live_bytes(plan, c.mem) > 0);
    rfx_plan_free(plan);
    small_plan_case_end(&c);
}

static void test_arena(void **state) {
    static const int64_t bands[] = {0, 1, 4};
    (void)state;
    for (int k = 0; k < 3; ++k) {
        struct small_plan_case c = small_plan_case_begin(64, 48);
        struct rfx_plan *plan = NULL;
        c.request.no_inplace = true;
        c.request.asked = bands[k] == 0 ? rfx_ask_whole() : rfx_ask_bands(bands[k], 1);
        c.request.asked.staging = bands[k] == 4;
        assert_int_equal(rfx_plan_create(c.graph, &c.request, &plan, NULL), RFX_OK);
        check_arena(plan, c.mem);
        rfx_plan_free(plan);
        small_plan_case_end(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histogram), cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_preview),   cmocka_unit_test(test_small_copy),
        cmocka_unit_test(test_html),      cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_arena),     cmocka_unit_test(test_arena_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
