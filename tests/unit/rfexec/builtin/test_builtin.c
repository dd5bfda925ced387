/* Built-in networks: published MACs and parameter counts, torchvision's names, fused and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "layers/graph/op.h"
#include "rfexec/run/model.h"
#include "tests/support/test_util.h"

static const struct rfx_fuse_options fuse_nothing = {0};

/* Published figures at 224 x 224, of the network as stated and fused. */
static void test_published_figures(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t macs, params;
    } facts[] = {{"mobilenet_v2", 300774272u, 3504872u},
                 {"resnet18", 1814073344u, 11689512u},
                 {"resnet50", 4089184256u, 25557032u},
                 {"vgg16", 15470264320u, 138357544u}};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        for (int fused = 0; fused < 2; fused++) {
            struct rfx_graph *graph =
                test_builtin(mem, facts[i].name, 0, 0, 1, fused ? NULL : &fuse_nothing);
            assert_int_equal(test_total_macs(graph), facts[i].macs);
            assert_int_equal(rfx_graph_param_count(graph), facts[i].params);
            assert_int_equal(graph->n_outputs, 1);
            assert_string_equal(graph->outputs[0].name, "output");
            const struct rfx_tensor *out = &graph->nodes[graph->outputs[0].node].out;
            assert_int_equal(out->layout, RFX_LAYOUT_PLAIN);
            assert_int_equal(out->elems, 1000);
            rfx_graph_free(graph);
        }
    }
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Module names find the block's end and its size, by hand from torchvision's definition. */
static void test_module_names(void **state) {
    (void)state;
    static const struct {
        const char *network, *module;
        int64_t c, h, w;
    } cases[] = {
        {"mobilenet_v2", "features.0", 32, 112, 112},   {"mobilenet_v2", "features.6", 32, 28, 28},
        {"mobilenet_v2", "features.7", 64, 14, 14},     {"mobilenet_v2", "features.18", 1280, 7, 7},
        {"mobilenet_v2:0.5", "features.6", 16, 28, 28}, {"resnet18", "layer2.1", 128, 28, 28},
        {"resnet34", "layer3.5", 256, 14, 14},          {"resnet50", "layer2.3", 512, 28, 28},
        {"resnet50", "layer3.0", 1024, 14, 14},         {"resnet50", "maxpool", 64, 56, 56},
        {"resnet152", "layer3.35", 1024, 14, 14},       {"vgg16", "features.16", 256, 28, 28},
        {"vgg16", "features.29", 512, 14, 14},          {"vgg16", "features.30", 512, 7, 7},
    };
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int fused = 0; fused < 2; fused++) {
            struct rfx_graph *graph =
                test_builtin(mem, cases[i].network, 224, 224, 1, fused ? NULL : &fuse_nothing);
            int node = rfx_graph_find(graph, cases[i].module);
            if (node < 0) fail_msg("%s has no %s", cases[i].network, cases[i].module);
            assert_int_equal(graph->nodes[node].out.c, cases[i].c);
            assert_int_equal(graph->nodes[node].out.h, cases[i].h);
            assert_int_equal(graph->nodes[node].out.w, cases[i].w);
            rfx_graph_free(graph);
        }
    }
    rfx_memory_free(mem);
}

/* Everything between convolutions fuses away: 52 convs, input, pool, two flattens and a Gemm. */
static void test_mobilenet_fuses_completely(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = test_builtin(mem, "mobilenet_v2", 0, 0, 1, NULL);
    assert_int_equal(graph->n_nodes, 52 + 5);
    int residuals = 0;
    for (int i = 0; i < graph->n_nodes; i++) residuals += graph->nodes[i].residual;
    assert_int_equal(residuals, 10);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Seeds change the weights; the same seed gives the same ones at any image size. */
static void test_seed(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    float values[3][64];
    static const uint64_t seeds[3] = {7, 7, 8};
    for (int i = 0; i < 3; i++) {
        struct rfx_graph *graph = test_builtin(mem, "resnet18", 64 + 32 * i, 96, seeds[i], NULL);
        int node = rfx_graph_find(graph, "layer1.0.conv1");
        assert_true(node >= 0);
        const struct rfx_weight *weight = &graph->weights[graph->nodes[node].attr.conv.weight];
        test_read_weight(weight, 100, 64, values[i]);
        rfx_graph_free(graph);
    }
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    assert_memory_not_equal(values[0], values[2], sizeof values[0]);
    /* He-uniform of fan-in 64 * 9: all within sqrt(6 / 576), not all in its half. */
    float largest = 0.0f;
    for (int i = 0; i < 64; i++) {
        float size = values[0][i] < 0 ? -values[0][i] : values[0][i];
        largest = size > largest ? size : largest;
    }
    assert_true(largest <= 0.10207f && largest > 0.051f);
    rfx_memory_free(mem);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *model, *text;
    } cases[] = {{"mobilenet_v3", "mobilenet_v2"}, {"resnet5", "resnet50"},
                 {"ResNet50", "resnet50"},         {"mobilenet_v2:x", "width multiplier"},
                 {"mobilenet_v2:0", "from 0.05"},  {"resnet18:0.5", "no width multiplier"}};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_load_options options = {.seed = 1};
        struct rfx_error err = {""};
        struct rfx_graph *graph = NULL;
        enum rfx_status status = rfx_model_load(mem, cases[i].model, &options, &graph, &err);
        assert_int_equal(status, RFX_STATUS_INVALID_ARGUMENT);
        assert_null(graph);
        if (strstr(err.text, cases[i].text) == NULL) fail_msg("%s", err.text);
    }
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Each allocation in turn fails: an error, nothing left behind. */
static void test_out_of_memory(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    bool built = false;
    for (int64_t k = 0; !built; k++) {
        struct rfx_load_options options = {.seed = 1};
        struct rfx_error err = {""};
        struct rfx_graph *graph = NULL;
        rfx_memory_fail_after(mem, k);
        enum rfx_status status = rfx_builtin_build(mem, "resnet18", &options, &graph, &err);
        rfx_memory_fail_after(mem, -1);
        built = status == RFX_OK;
        if (!built) {
            assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
            assert_true(err.text[0] != '\0');
        }
        rfx_graph_free(graph);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
    }
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published_figures),
                                       cmocka_unit_test(test_module_names),
                                       cmocka_unit_test(test_mobilenet_fuses_completely),
                                       cmocka_unit_test(test_seed),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
