/* The map and the layer of a class-activation map, in built-in networks. What is drawn is tested in
 * tests/cli/test_overlay_answers.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/run/class_map.h"
#include "rfexec/run/model.h"

static struct rfx_graph *load(struct rfx_memory *mem, const char *model, const char *keep) {
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    struct rfx_load_options options = {
        .h = 64, .w = 96, .keep = &keep, .n_keep = keep != NULL, .class_map = true};
    if (rfx_model_load(mem, model, &options, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    return graph;
}

static void finds_map_and_layer(void **state) {
    static const struct {
        const char *model, *map, *layer;
        int64_t channels;
    } cases[] = {{"mobilenet_v2", "features.18.2", "classifier.1", 1280},
                 {"resnet18", "layer4.1.relu_1", "fc", 512}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph = load(mem, cases[i].model, NULL);
        struct rfx_class_map map;
        struct rfx_error err = {{0}};
        if (rfx_class_map_find(graph, &map, &err) != RFX_OK) fail_msg("%s", err.text);
        assert_string_equal(graph->nodes[map.layer].name, cases[i].layer);
        assert_int_equal(map.channels, cases[i].channels);
        assert_int_equal(map.classes, 1000);
        assert_int_equal(map.output, 1);
        assert_true(map.added);
        assert_string_equal(graph->outputs[1].name, cases[i].map);
        const struct rfx_tensor *out = &graph->nodes[graph->outputs[1].node].out;
        assert_true(out->h == 2 && out->w == 3 && out->c == map.channels);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
}

/* A map that is an output already is not added again. */
static void keeps_once(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = load(mem, "mobilenet_v2", "features.18.2");
    struct rfx_class_map map;
    (void)state;
    assert_int_equal(rfx_class_map_find(graph, &map, NULL), RFX_OK);
    assert_true(graph->n_outputs == 2 && map.output == 1 && !map.added);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void refuses_other_networks(void **state) {
    static const struct {
        const char *model, *words;
    } cases[] = {{"squeezenet1_1", "which 'classifier.3' pools, has a channel for each class"},
                 {"fsrcnn", "node 'deconv' is not the fully connected layer"},
                 {"vgg16", "is not the global average pooling"}};
    struct rfx_memory *mem = rfx_memory_create(0);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_load_options options = {.h = 64, .w = 64, .class_map = true};
        struct rfx_graph *graph = NULL;
        struct rfx_error err = {{0}};
        assert_int_equal(rfx_model_load(mem, cases[i].model, &options, &graph, &err),
                         RFX_STATUS_UNSUPPORTED);
        if (strstr(err.text, cases[i].words) == NULL) fail_msg("%s", err.text);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
    }
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_map_and_layer),
                                       cmocka_unit_test(keeps_once),
                                       cmocka_unit_test(refuses_other_networks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
