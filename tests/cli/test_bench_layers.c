/* `rfexec bench --layers`: for every way of running the rows account for all MACs and all time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli_program.h"

#define NET8 "bench " RFX_SOURCE_DIR "/data/defect_net.int8.onnx --size 96x128 --runs 1 --layers "
#define NET "bench mobilenet_v2 --size 96x128 --runs 3 --layers --no-groups "

static double real_at(json_t *doc, const char *path) {
    json_t *value = at(doc, path);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void assert_same(double a, double b) {
    if (!(fabs(a - b) <= 1e-9 * fabs(b))) fail_msg("%.17g is not %.17g", a, b);
}

static int count(const char *text, const char *words) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, words)) != NULL; p += strlen(words)) ++n;
    return n;
}

/* The figures of one row follow from each other. */
static void check_row(json_t *row, double run_seconds, double peak, double own_peak) {
    double seconds = real_at(row, "seconds"), flops = 2.0 * (double)integer_at(row, "macs");
    assert_true(integer_at(row, "steps") >= 1);
    assert_true(seconds > 0 && seconds < run_seconds);
    assert_same(real_at(row, "share"), seconds / run_seconds);
    assert_same(real_at(row, "gflops_per_second"), flops / seconds * 1e-9);
    assert_same(real_at(row, "fma_peak_share") * peak, real_at(row, "gflops_per_second"));
    assert_same(real_at(row, "peak_share") * own_peak, real_at(row, "gflops_per_second"));
    assert_same(real_at(row, "gb_per_second"), (double)integer_at(row, "bytes") / seconds * 1e-9);
    assert_true(json_is_array(at(row, "shape")));
    assert_true(json_is_string(at(row, "op")));
}

/* No node twice; sums are the total's, and the plan's. */
static void check_document(const char *args) {
    expect(0, args);
    json_t *doc = document("bench"), *row, *layers = at(doc, "layers"), *rest = at(doc, "rest");
    double run = real_at(doc, "measured.seconds"), sum = 0, all = 0;
    double peak = real_at(doc, "machine.fma_gflops_per_second");
    long long macs = 0, bytes = 0;
    size_t i, j;
    assert_true(peak > 0 && real_at(doc, "machine.memory_gb_per_second") > 0);
    assert_true(json_is_null(at(doc, "machine.int_gops_per_second")));
    assert_true(json_is_string(at(doc, "machine.kernels")));
    assert_int_equal(integer_at(doc, "machine.threads"), integer_at(doc, "plan.threads"));
    assert_true(json_array_size(layers) > 50); /* 52 convolutions and the classifier */
    json_array_foreach(layers, i, row) {
        const char *name = json_string_value(at(row, "name"));
        json_t *other;
        json_array_foreach(layers, j, other) {
            if (j < i) assert_string_not_equal(name, json_string_value(at(other, "name")));
        }
        bool is_conv = strcmp(json_string_value(at(row, "op")), "Conv") == 0;
        assert_true(json_is_string(at(row, "backend")) == is_conv);
        assert_true((integer_at(row, "macs") > 0) >= is_conv);
        check_row(row, run, peak, peak);
        macs += integer_at(row, "macs");
        bytes += integer_at(row, "bytes");
        sum += real_at(row, "seconds");
    }
    assert_int_equal(macs, integer_at(doc, "plan.macs"));
    assert_int_equal(macs, integer_at(doc, "measured.macs"));
    assert_int_equal(macs, integer_at(doc, "layers_total.macs"));
    assert_int_equal(bytes, integer_at(doc, "layers_total.bytes"));
    assert_same(sum, real_at(doc, "layers_total.seconds"));
    assert_int_equal(json_array_size(rest), 6);
    json_array_foreach(rest, i, row) all += real_at(row, "seconds");
    assert_same(all + sum, run); /* of one run; medians of several only come near */
    json_decref(doc);
}

static void test_every_plan(void **state) {
    static const char *const plans[] = {"--untiled",
                                        "--memory 34MiB",
                                        "--bands 4 --tight",
                                        "--tiles 2x3 --split features.6",
                                        "--untiled --row-by-row --threads 1",
                                        "--bands 8 --strips 2 --weights-by-stage"};
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        char args[256];
        (void)snprintf(args, sizeof args, NET "--runs 1 --json %s", plans[i]);
        check_document(args);
    }
}

/* Integer convolutions have a peak of their own, also beside layers of float32. The whole network's
 * share is that of the seconds that all its multiply-accumulates take at their peaks. */
static void test_integers(void **state) {
    size_t i, n_floats = 0, n_ints = 0;
    double at_peak = 0;
    (void)state;
    write_file("list.txt", "synthetic:96x128:1\n");
    expect(0, "quantize " RFX_SOURCE_DIR
              "/data/defect_net.onnx --images list.txt --float blocks.1.expand -o mixed.onnx");
    expect(0, "bench mixed.onnx --size 96x128 --runs 1 --layers --no-groups --json");
    json_t *doc = document("bench"), *row;
    double run = real_at(doc, "measured.seconds"), seconds = real_at(doc, "layers_total.seconds");
    double floats = real_at(doc, "machine.fma_gflops_per_second");
    double ints = real_at(doc, "machine.int_gops_per_second");
    assert_true(ints > 0);
#ifndef RFX_SANITIZE
    if (strstr(json_string_value(at(doc, "machine.kernels")), "vnni") != NULL)
        assert_true(ints > 1.5 * floats); /* dot products do four times as many */
#endif
    json_array_foreach(at(doc, "layers"), i, row) {
        const char *op = json_string_value(at(row, "op"));
        bool is_int = strcmp(op, "QLinearConv") == 0;
        n_ints += is_int;
        n_floats += strcmp(op, "Conv") == 0;
        check_row(row, run, floats, is_int ? ints : floats);
        at_peak += real_at(row, "peak_share") * real_at(row, "seconds");
    }
    assert_true(n_ints >= 5);
    assert_int_equal(n_floats, 1);
    assert_same(real_at(doc, "layers_total.peak_share") * seconds, at_peak);
    assert_same(real_at(doc, "layers_total.fma_peak_share") * floats,
                real_at(doc, "layers_total.gflops_per_second"));
    json_decref(doc);
}

/* What the text shows of a layer is its share of its own peak; groups of layers too, all of whose
 * convolutions are of integers here. */
static void test_integers_text(void **state) {
    char name[64], backend[32], shape[32], macs[32];
    double floats, ints, ms, share, speed, of_peak;
    int n = 0, groups = 0, threads;
    (void)state;
    expect(0, NET8);
    const char *machine = strstr(out_text, "machine    ");
    assert_non_null(machine);
    assert_int_equal(sscanf(machine,
                            "machine %63s kernels, %d thread%*[s:] %lf GFLOP/s of multiply-adds, "
                            "%lf GOP/s of 8-bit ones, ",
                            name, &threads, &floats, &ints),
                     4);
    assert_non_null(strstr(machine, " GB/s of memory\n"));
    for (const char *line = machine; (line = strchr(line, '\n')) != NULL; ++line) {
        char op[32];
        if (sscanf(line, " %63s %31s %31s %31s %lf %lf%% %31s M %lf %lf%%", name, op, backend,
                   shape, &ms, &share, macs, &speed, &of_peak) != 9)
            continue;
        groups += strcmp(op, "Group") == 0;
        if (fabs(of_peak - 100 * speed / ints) > 0.05 + 0.01 * of_peak)
            fail_msg("%s: %g%% of %g", name, of_peak, ints);
        ++n;
    }
    assert_true(n >= 2 && groups >= 1);
}

/* Halos of tiles are in the layers' MACs, not only in the plan's. */
static void test_halos(void **state) {
    (void)state;
    expect(0, NET "--json --tiles 3x3 --split features.6");
    json_t *doc = document("bench"), *rows = at(doc, "layers");
    assert_true(integer_at(doc, "layers_total.macs") > integer_at(doc, "plan.macs_untiled"));
    /* by hand: 48 x 64 positions of 32 channels, 27 products each, and halos */
    json_t *first = json_array_get(rows, 0);
    assert_string_equal(json_string_value(at(first, "name")), "features.0.0");
    assert_true(integer_at(first, "macs") > 48 * 64 * 32 * 27);
    assert_int_equal(integer_at(first, "steps"), 9);
    json_decref(doc);
    expect(0, NET "--json --untiled");
    doc = document("bench");
    first = json_array_get(at(doc, "layers"), 0);
    assert_int_equal(integer_at(first, "macs"), 48 * 64 * 32 * 27);
    /* the image, the map, and 27 x 32 weights with 32 biases at the least */
    assert_true(integer_at(first, "bytes") >= 4 * (96 * 128 * 3 + 48 * 64 * 32 + 28 * 32));
    assert_true(integer_at(first, "bytes") < 4 * (96 * 128 * 3 + 48 * 64 * 32 + 56 * 32));
    assert_int_equal(integer_at(first, "steps"), 1);
    json_decref(doc);
}

static void test_rest(void **state) {
    (void)state;
    expect(0, NET "--json --bands 4 --tight --weights-by-stage");
    json_t *doc = document("bench"), *row;
    size_t i;
    json_array_foreach(at(doc, "rest"), i, row) {
        const char *name = json_string_value(at(row, "name"));
        if (strcmp(name, "handing out outputs") == 0) continue; /* a vector is stored */
        if (strcmp(name, "spilling maps") == 0) continue;       /* no map is */
        if (!(real_at(row, "seconds") > 0)) fail_msg("%s: no time", name);
    }
    json_decref(doc);
    expect(0, NET "--json --untiled");
    doc = document("bench");
    json_array_foreach(at(doc, "rest"), i, row) {
        const char *name = json_string_value(at(row, "name"));
        bool has = strcmp(name, "reading the image") == 0 || strcmp(name, "between steps") == 0;
        if (has != (real_at(row, "seconds") > 0)) fail_msg("%s", name);
    }
    json_decref(doc);
}

/* The table has each layer of the JSON once, and what is no layer. */
static void test_text(void **state) {
    static const char *const words[] = {
        "machine    ",     "GFLOP/s of multiply-adds", "\nall layers ",    "\nreading the image ",
        "\nkeeping rows ", "\nhanding out outputs ",   "\nbetween steps ", "\nrun "};
    static char text[TEXT_BYTES];
    (void)state;
    expect(0, NET "--untiled");
    memcpy(text, out_text, sizeof text);
    expect(0, NET "--untiled --json");
    json_t *doc = document("bench"), *row;
    size_t i;
    json_array_foreach(at(doc, "layers"), i, row) {
        char line[160];
        (void)snprintf(line, sizeof line, "\n%s ", json_string_value(at(row, "name")));
        if (count(text, line) != 1) fail_msg("%s: %d times", line, count(text, line));
    }
    json_decref(doc);
    for (i = 0; i < sizeof words / sizeof words[0]; ++i)
        if (count(text, words[i]) != 1) fail_msg("%s: %d times", words[i], count(text, words[i]));
    assert_null(strstr(text, "8-bit"));
    expect(0, "bench mobilenet_v2 --size 96x96 --runs 1"); /* nothing of it unless asked for */
    assert_null(strstr(out_text, "machine"));
    expect(0, "bench mobilenet_v2 --size 96x96 --runs 1 --json");
    doc = document("bench");
    assert_null(json_object_get(doc, "layers"));
    json_decref(doc);
}

/* The bandwidth's 64 MiB come after the peak has been read. */
static void test_peak_memory(void **state) {
    (void)state;
#ifndef RFX_SANITIZE /* whose own memory is in no budget */
    expect(0, NET "--json --memory 34MiB");
    json_t *doc = document("bench");
    assert_true(integer_at(doc, "measured.peak_rss_bytes") <= 34 << 20);
    json_decref(doc);
#endif
}

static void test_plot(void **state) {
    struct stat info;
    (void)state;
    expect(0, NET "--memory 64MiB --plot layers.svg");
    read_text("layers.svg", out_text);
    static const char *const words[] = {"mobilenet_v2, 96x128",
                                        "[FLOP/byte]",
                                        "[GFLOP/s]",
                                        "memory: ",
                                        "multiply-adds: ",
                                        ">depthwise convolution<",
                                        "slowest layers",
                                        "time [ms]",
                                        "Time of every layer",
                                        ">features.0.0<",
                                        ">classifier.1<"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        if (strstr(out_text, words[i]) == NULL) fail_msg("no \"%s\" in the picture", words[i]);
    assert_null(strstr(out_text, "8-bit"));
    expect(0, NET8 "--plot integers.svg");
    read_text("integers.svg", out_text);
    assert_non_null(strstr(out_text, ">8-bit multiply-adds: "));
    assert_non_null(strstr(out_text, ">multiply-adds: "));
    expect(0, NET "--json --plot layers.png");
    json_decref(document("bench"));
    assert_int_equal(stat("layers.png", &info), 0);
    assert_true(info.st_size > 10000);
    expect_says(2, "bench mobilenet_v2 --size 96x96 --plot no.svg", "--layers");
    expect_says(2, NET "--plot no.pdf", ".svg or .png");
    expect_says(5, NET "--plot no_folder/no.svg", "no_folder");
    expect_says(2, "run mobilenet_v2 synthetic:96x96 --layers", "not one of this command's");
    assert_int_not_equal(access("no.svg", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_plan),    cmocka_unit_test(test_integers),
        cmocka_unit_test(test_integers_text), cmocka_unit_test(test_halos),
        cmocka_unit_test(test_rest),          cmocka_unit_test(test_text),
        cmocka_unit_test(test_peak_memory),   cmocka_unit_test(test_plot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
