/* Charts as files: what an SVG must contain, what is refused, what is left behind when gnuplot is
 * missing or fails. Texts are looked for as SVG writes them, chosen by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/study/chart.h"

enum { FILE_BYTES = 1 << 18 };
static char file_text[FILE_BYTES];

static size_t read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("%s is not there", path);
    size_t n = fread(file_text, 1, FILE_BYTES - 1, file);
    file_text[n] = '\0';
    (void)fclose(file);
    return n;
}

static bool exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* How many entries of this directory begin with `prefix`. */
static int count_files(const char *prefix) {
    char command[128];
    (void)snprintf(command, sizeof command, "ls | grep -c '^%s'", prefix);
    FILE *pipe = popen(command, "r");
    int count = -1;
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%d", &count), 1);
    (void)pclose(pipe);
    return count;
}

static const double line_y[] = {1.0, 3.0, 2.0};

static struct rfx_chart_series one_series(const char *name) {
    return (struct rfx_chart_series){
        .name = name, .style = RFX_CHART_LINES_POINTS, .n = 3, .y = line_y};
}

static enum rfx_status write_chart(const struct rfx_chart *chart, const char *path,
                                   struct rfx_error *err) {
    struct rfx_memory *mem = rfx_memory_create(0);
    enum rfx_status status = rfx_chart_write(chart, mem, path, err);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return status;
}

static void test_texts(void **state) {
    static const struct {
        const char *text, *in_svg;
    } names[] = {
        {"plain", ">plain<"},
        {"module_1^2", ">module_1^2<"},
        {"it's {/Bold x}", "it's {/Bold x}"},
        {"a\\nb \\101", "a\\nb \\101"},
        {"<b> & \"q\"", "&lt;b"},
        {"`touch chart_pwned` @x $y", "`touch chart_pwned` @x $y"},
        {"two\nlines'\nsystem 'touch chart_pwned'", "two lines' system 'touch chart_pwned'"},
        {"h\xc3\xb6he", "h\xc3\xb6he"},
        {"bad\xff\xc3(", "bad?\?("},
    };
    static const char *const categories[] = {"layer_one", "layer'two", "\xe2\x82\xac"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        struct rfx_error err = {{0}};
        struct rfx_chart_series series = one_series(names[i].text);
        struct rfx_chart chart = {
            .title = "the title",
            .subtitle = "the subtitle",
            .x = {.label = "layers", .categories = categories, .n_categories = 3},
            .y = {.label = "memory [MiB]"},
            .n_series = 1,
            .series = &series};
        if (write_chart(&chart, "chart_texts.svg", &err) != RFX_OK) fail_msg("%s", err.text);
        (void)read_file("chart_texts.svg");
        if (strstr(file_text, names[i].in_svg) == NULL)
            fail_msg("no \"%s\" in the chart of \"%s\"", names[i].in_svg, names[i].text);
        assert_non_null(strstr(file_text, "the title"));
        assert_non_null(strstr(file_text, "the subtitle"));
        assert_non_null(strstr(file_text, "memory [MiB]"));
        assert_non_null(strstr(file_text, "layer_one"));
        assert_non_null(strstr(file_text, "layer'two"));
        assert_non_null(strstr(file_text, "\xe2\x82\xac"));
    }
    assert_false(exists("chart_pwned"));
    assert_int_equal(count_files("chart_texts"), 1);
}

static void test_quoting(void **state) {
    static const struct {
        const char *text, *quoted;
    } cases[] = {
        {"", "''"},
        {"a'b''c", "'a''b''''c'"},
        {"tab\tend\x7f", "'tab end '"},
        {"\xed\xa0\x80", "'?\?\?'"}, /* half of a surrogate pair */
        {"\xc0\xaf", "'?\?'"},       /* an overlong slash */
        {"\xf0\x9f\x99\x82", "'\xf0\x9f\x99\x82'"},
        {"cut \xe2\x82", "'cut ?\?'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        FILE *file = fopen("chart_quote.txt", "wb");
        assert_non_null(file);
        rfx_chart_quote(cases[i].text, file);
        assert_int_equal(fclose(file), 0);
        (void)read_file("chart_quote.txt");
        assert_string_equal(file_text, cases[i].quoted);
    }
}

static void test_png(void **state) {
    static const unsigned char head[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13,
                                         'I',  'H', 'D', 'R', 0,  0,  7,  8,  0, 0, 4, 0x60};
    struct rfx_error err = {{0}};
    struct rfx_chart_series series = one_series("x");
    struct rfx_chart chart = {.n_series = 1, .series = &series};
    (void)state;
    if (write_chart(&chart, "chart.PNG", &err) != RFX_OK) fail_msg("%s", err.text);
    assert_true(read_file("chart.PNG") > 1000);
    assert_memory_equal(file_text, head, sizeof head); /* 1800 x 1120: twice 900 x 560 */
}

static void test_refusals(void **state) {
    static const double bad[] = {1.0, 0.0, 2.0}, nothing[] = {NAN, INFINITY, -INFINITY};
    struct rfx_chart_series series = one_series("x");
    struct rfx_chart chart = {.n_series = 1, .series = &series};
    struct rfx_error err = {{0}};
    (void)state;
    assert_true(rfx_chart_name_ok("a.svg"));
    assert_true(rfx_chart_name_ok("a.b.PnG"));
    assert_false(rfx_chart_name_ok("a.pdf"));
    assert_false(rfx_chart_name_ok(".svg"));
    assert_false(rfx_chart_name_ok("svg"));
    assert_int_equal(write_chart(&chart, "chart_no.pdf", &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, ".svg or .png"));
    series.y = nothing;
    assert_int_equal(write_chart(&chart, "chart_no.svg", &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "nothing to draw"));
    series.y = bad;
    chart.y.log = true;
    assert_int_equal(write_chart(&chart, "chart_no.svg", &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "logarithmic"));
    chart.y.log = false;
    assert_int_equal(write_chart(&chart, "no_such_folder/chart.svg", &err), RFX_STATUS_IO);
    assert_int_equal(count_files("chart_no"), 0);
}

/* Two charts in one picture, as high as both, each with its own axes. */
static void test_panels(void **state) {
    static const double rising[] = {1.0, 10.0, 100.0};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {{0}};
    struct rfx_chart_series above = {.name = "above", .n = 3, .x = rising, .y = rising};
    struct rfx_chart_series below = one_series("below");
    struct rfx_chart panels[2] = {{.title = "the first",
                                   .x = {.label = "logarithmic [x]", .log = true},
                                   .y = {.log = true},
                                   .n_series = 1,
                                   .series = &above,
                                   .height_px = 500},
                                  {.title = "the second",
                                   .y = {.label = "straight [y]"},
                                   .n_series = 1,
                                   .series = &below,
                                   .height_px = 300}};
    (void)state;
    if (rfx_chart_write_panels(panels, 2, mem, "chart_panels.svg", &err) != RFX_OK)
        fail_msg("%s", err.text);
    (void)read_file("chart_panels.svg");
    assert_non_null(strstr(file_text, "width=\"900\" height=\"800\""));
    static const char *const words[] = {"the first", "the second",      ">above<",
                                        ">below<",   "logarithmic [x]", "straight [y]"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) { /* no part is drawn twice */
        const char *place = strstr(file_text, words[i]);
        if (place == NULL || strstr(place + 1, words[i]) != NULL)
            fail_msg("\"%s\" is not there once", words[i]);
    }
    assert_true(strstr(file_text, "the first") < strstr(file_text, "the second"));
    panels[1].y.log = true; /* 1, 3 and 2: drawable */
    assert_int_equal(rfx_chart_write_panels(panels, 2, mem, "chart_panels.svg", &err), RFX_OK);
    below.n = 0;
    assert_int_equal(rfx_chart_write_panels(panels, 2, mem, "chart_none.svg", &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(count_files("chart_none"), 0);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* gnuplot missing, and gnuplots that fail in several ways: an error, and the old file untouched. */
static void test_gnuplot_fails(void **state) {
    static const struct {
        const char *script, *words;
    } cases[] = {
        {NULL, "gnuplot-nox"},
        {"#!/bin/sh\necho 'line 7: no such thing' >&2\nexit 1\n", "line 7: no such thing"},
        {"#!/bin/sh\necho half a picture\nexit 3\n", "gnuplot failed"},
        {"#!/bin/sh\nexit 0\n", "gnuplot failed"},
        {"#!/bin/sh\necho half; kill -9 $$\n", "gnuplot failed"},
    };
    char old_path[4096];
    struct rfx_chart_series series = one_series("x");
    struct rfx_chart chart = {.n_series = 1, .series = &series};
    (void)state;
    (void)snprintf(old_path, sizeof old_path, "%s", getenv("PATH"));
    (void)mkdir("chart_bin", 0777);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct rfx_error err = {{0}};
        FILE *file = fopen("chart_old.svg", "wb");
        assert_non_null(file);
        assert_true(fputs("old", file) >= 0);
        assert_int_equal(fclose(file), 0);
        (void)unlink("chart_bin/gnuplot");
        if (cases[i].script != NULL) {
            file = fopen("chart_bin/gnuplot", "wb");
            assert_non_null(file);
            assert_true(fputs(cases[i].script, file) >= 0);
            assert_int_equal(fclose(file), 0);
            assert_int_equal(chmod("chart_bin/gnuplot", 0755), 0);
        }
        assert_int_equal(setenv("PATH", "chart_bin", 1), 0);
        enum rfx_status status = write_chart(&chart, "chart_old.svg", &err);
        assert_int_equal(setenv("PATH", old_path, 1), 0);
        assert_int_equal(status, RFX_STATUS_IO);
        if (strstr(err.text, cases[i].words) == NULL)
            fail_msg("case %zu: no \"%s\" in \"%s\"", i, cases[i].words, err.text);
        (void)read_file("chart_old.svg");
        assert_string_equal(file_text, "old");
        assert_int_equal(count_files("chart_old"), 1);
    }
    (void)unlink("chart_bin/gnuplot");
    (void)rmdir("chart_bin");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quoting),       cmocka_unit_test(test_texts),
        cmocka_unit_test(test_png),           cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_gnuplot_fails), cmocka_unit_test(test_panels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
