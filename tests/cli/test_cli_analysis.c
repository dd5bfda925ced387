/* The commands that say something of a network without running it: analyze, models, curve, advise,
 * export. JSON keys, figures that are known, files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli_program.h"

static void test_analyze(void **state) {
    (void)state;
    expect(0, "analyze mobilenet_v2 --json");
    json_t *doc = document("analyze");
    assert_int_equal(integer_at(doc, "totals.macs"), 300774272);
    assert_int_equal(integer_at(doc, "totals.params"), 3504872);
    json_t *layers = at(doc, "layers");
    static const char *const keys[] = {
        "name",       "op",   "output", "kernel",       "stride",     "padding", "rf",    "jump",
        "rf_padding", "macs", "params", "output_bytes", "live_bytes", "split",   "global"};
    json_t *layer;
    size_t i;
    int with_491 = 0, splits = 0;
    json_array_foreach(layers, i, layer) {
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; ++k) (void)at(layer, keys[k]);
        with_491 += json_integer_value(json_array_get(at(layer, "rf"), 0)) == 491 &&
                    json_integer_value(json_array_get(at(layer, "jump"), 1)) == 32;
        splits += json_is_true(at(layer, "split"));
    }
    assert_true(with_491 >= 1);
    assert_true(splits > 10);
    size_t n_layers = json_array_size(layers);
    json_decref(doc);

    expect(0, "analyze mobilenet_v2 --csv");
    size_t lines = 0;
    for (char *p = out_text; (p = strchr(p, '\n')) != NULL; ++p) lines++;
    assert_int_equal(lines, n_layers + 1);

    expect(0, "analyze resnet50 --size 2048x3072");
    for (char *p = out_text, *end; (end = strchr(p, '\n')) != NULL; p = end + 1)
        if (end - p > 120) fail_msg("%ld columns: %.130s", (long)(end - p), p);
}

/* What a whole-image run of resnet50 holds, by hand: at 2048x2048 three maps of 256x512x512 and
 * 64x512x512 at a time, as the Add is inside the convolution, and 25557032 parameters less the
 * scales of 53 batch norms. Every command and chart names the same figure. */
static void test_one_peak(void **state) {
    static const char *const commands[] = {"analyze", "advise", "plan"};
    long long map = 256LL * 512 * 512 * 4, scales = 26560;
    long long bytes = 2 * map + map / 4 + (25557032 - scales) * 4;
    (void)state;
    for (size_t i = 0; i < 3; ++i) {
        char args[128];
        (void)snprintf(args, sizeof args, "%s resnet50 --size 2048x2048 --json", commands[i]);
        expect(0, args);
        json_t *doc = document(commands[i]);
        assert_int_equal(integer_at(doc, "untiled.maps_and_parameters_bytes"), bytes);
        json_decref(doc);
        (void)snprintf(args, sizeof args, "%s resnet50 --size 2048x2048", commands[i]);
        expect(0, args);
        assert_non_null(
            strstr(out_text, "untiled    673.4 MiB of maps and parameters at layer1.0"));
    }
}

/* In a pipe nothing is cut: the longest name of a layer is there. */
static void test_nothing_is_cut(void **state) {
    (void)state;
    expect(0, "plan densenet121 --size 1024x1024 --memory 60MiB");
    assert_null(strstr(out_text, "..."));
    expect(0, "analyze unet_instance");
    assert_non_null(strstr(out_text, " encoder.stages.0.convs.0.norm.moments "));
}

static void test_models(void **state) {
    (void)state;
    expect(0, "models");
    assert_non_null(strstr(out_text, "15470264320")); /* vgg16 */
    expect(0, "models --json");
    json_t *doc = document("models"), *model;
    size_t i;
    int found = 0;
    json_array_foreach(at(doc, "models"), i, model) {
        if (strcmp(json_string_value(at(model, "name")), "resnet50") != 0) continue;
        found++;
        assert_int_equal(integer_at(model, "macs_224"), 4089184256);
        assert_int_equal(integer_at(model, "params"), 25557032);
    }
    assert_int_equal(found, 1);
    json_decref(doc);
}

/* The figures are the known ones of 4x4 tiles at 1024x1024 (tests/unit/tools/study/test_curve.c).
 */
static void test_curve(void **state) {
    static const char *const keys[] = {"split",      "tiles",      "macs_ratio", "memory_ratio",
                                       "peak_bytes", "head_bytes", "tail_bytes", "peak_layer"};
    (void)state;
    expect(0, "curve mobilenet_v2 --size 1024x1024 --tiles 16 --json");
    json_t *doc = document("curve"), *best = at(doc, "best"), *point;
    size_t i;
    assert_string_equal(json_string_value(at(best, "split")), "features.6");
    double memory = json_real_value(at(best, "memory_ratio"));
    double macs = json_real_value(at(best, "macs_ratio"));
    assert_true(memory > 4.04 && memory < 4.08);
    assert_true(macs > 1.084 && macs < 1.090);
    assert_int_equal(json_integer_value(json_array_get(at(doc, "tiles"), 0)), 4);
    json_array_foreach(at(doc, "curve"), i, point) {
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; ++k) (void)at(point, keys[k]);
        long long head = integer_at(point, "head_bytes"), tail = integer_at(point, "tail_bytes");
        assert_int_equal(integer_at(point, "peak_bytes"), head > tail ? head : tail);
    }
    assert_true(i > 18); /* features.0 to features.18 and the points inside blocks */
    assert_true(json_array_size(at(doc, "pareto")) > 5);
    assert_int_equal(integer_at(doc, "untiled.equations.peak_bytes"),
                     integer_at(doc, "untiled.peak_bytes"));
    /* whole halos at the border too, and no stitched map while tiles run */
    assert_true(json_real_value(at(best, "equations.macs_ratio")) > macs);
    assert_true(integer_at(best, "equations.head_bytes") < integer_at(best, "head_bytes"));
    json_decref(doc);
    expect(0, "curve resnet18 vgg16 --size 224x224 --tiles 2x3 --baseline eager --json");
    doc = document("curve");
    json_t *second = json_array_get(at(doc, "models"), 1);
    assert_string_equal(json_string_value(at(second, "model")), "vgg16");
    assert_string_equal(json_string_value(at(second, "baseline")), "eager");
    json_decref(doc);
    expect(0, "curve resnet18 --csv");
    assert_ptr_equal(strstr(out_text, "model,kind,baseline,split,"), out_text);
    expect(0, "curve resnet18 --tiles 3x3");
    assert_non_null(strstr(out_text, "Pareto front"));
    assert_non_null(strstr(out_text, "by equations 3 and 4 of paper 003: "));
    expect(0, "curve squeezenet1_1 --size 224x224 --json"); /* concatenations: not the paper's */
    doc = document("curve");
    assert_true(json_is_null(at(doc, "best.equations")));
    json_decref(doc);
    expect_says(2, "curve resnet18 --tiles 0", "number of tiles");
    expect_says(2, "curve resnet18 --baseline lazy", "lazy");
}

static void test_advise(void **state) {
    (void)state;
    expect(0, "advise mobilenet_v2 --size 1024x1024 --json");
    json_t *doc = document("advise"), *budget;
    size_t i;
    /* 512x512x96 and 256x256x96 floats */
    assert_int_equal(integer_at(doc, "peak.activation_bytes"), 125829120);
    assert_string_equal(json_string_value(at(doc, "best.split")), "features.6");
    assert_int_equal(json_array_size(at(doc, "guidelines")), 3);
    assert_int_equal(integer_at(json_array_get(at(doc, "points"), 0), "case"), 1);
    assert_true(json_is_null(at(doc, "barrier")));
    json_array_foreach(at(doc, "budgets"), i, budget) {
        json_t *cut = at(budget, "cut"), *plan = at(budget, "plan");
        long long bytes = integer_at(budget, "budget_bytes");
        if (json_is_object(cut)) assert_true(integer_at(cut, "peak_bytes") <= bytes);
        if (json_is_object(plan)) assert_true(integer_at(plan, "peak_bytes") <= bytes);
    }
    assert_true(i >= 3);
    json_decref(doc);
    expect(0, "advise mobilenet_v2 --size 224x224");
    assert_non_null(strstr(out_text, "2 BROKEN")); /* 13.3 MiB parameters, 5.7 MiB activations */
    expect(0, "advise mobilenet_v2 --size 224x224 --tiles 2x2 --baseline eager");
}

static void test_export(void **state) {
    (void)state;
    expect(0, "export mobilenet_v2 -o cli_net.onnx --seed 3");
    expect(0, "run mobilenet_v2 synthetic:96x128 --seed 3 --json");
    json_t *built_in = document("run");
    expect(0, "run cli_net.onnx synthetic:96x128 --json");
    json_t *loaded = document("run");
    assert_string_equal(json_string_value(at(built_in, "output.hash")),
                        json_string_value(at(loaded, "output.hash")));
    json_decref(built_in);
    json_decref(loaded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_analyze),        cmocka_unit_test(test_one_peak),
        cmocka_unit_test(test_nothing_is_cut), cmocka_unit_test(test_models),
        cmocka_unit_test(test_curve),          cmocka_unit_test(test_advise),
        cmocka_unit_test(test_export),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
