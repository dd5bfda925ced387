/* Built-in networks on bytes: their file is the exported one, byte for byte, wherever it is read;
 * weights and zero points against rounding by hand; sizes, refusals, lack of memory. */
#include "rfexec/builtin/builtin_int8.h"

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

#include "rfexec/builtin/builtin_ranges.h"
#include "rfexec/onnx/file/onnx_file.h"
#include "rfexec/quantise/quantiser.h"
#include "tests/support/test_util.h"

static struct rfx_graph *build(struct rfx_memory *mem, const char *name, int64_t h, int64_t w,
                               const struct rfx_fuse_options *fuse) {
    const struct rfx_load_options options = {.h = h, .w = w, .fuse = fuse};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    if (rfx_builtin_build(mem, name, &options, &graph, &err) != RFX_OK)
        fail_msg("%s: %s", name, err.text);
    return graph;
}

static void test_every_table_is_a_listed_network(void **state) {
    (void)state;
    int count, listed = 0, n = 0;
    const struct rfx_builtin *list = rfx_builtin_list(&count);
    for (int i = 0; i < count; i++) listed += rfx_builtin_is_int8(list[i].name);
    for (; rfx_builtin_ranges[n].network != NULL; n++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s:int8", rfx_builtin_ranges[n].network);
        int k = 0;
        while (k < count && strcmp(list[k].name, name) != 0) k++;
        if (k == count) fail_msg("%s is not listed", name);
    }
    assert_int_equal(listed, n);
}

/* Pieces of any size and place of the file that is made, against the file that is written. */
static void check_file(const char *name, int64_t h, int64_t w) {
    static const char path[] = "test_builtin_int8.onnx";
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = build(mem, name, h, w, NULL);
    const struct rfx_onnx_bytes made = rfx_onnx_files_model(graph->files);
    const struct rfx_load_options options = {.h = h, .w = w};
    struct rfx_error err = {""};
    if (rfx_builtin_export(mem, name, &options, path, &err) != RFX_OK) fail_msg("%s", err.text);
    unsigned char *wanted = malloc(made.size + 1), *got = malloc(made.size);
    FILE *file = fopen(path, "rb");
    assert_true(wanted != NULL && got != NULL && file != NULL);
    assert_int_equal(fread(wanted, 1, made.size + 1, file), made.size);
    (void)fclose(file);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rfx_weight_file_read(made.file, 0, got, made.size, &err), RFX_OK);
    assert_memory_equal(got, wanted, made.size);
    struct test_rng rng = test_rng_make(4);
    for (int k = 0; k < 2000; k++) {
        int64_t most = k % 2 == 0 ? 7 : 20000, from = test_rng_int(&rng, 0, (int64_t)made.size - 1);
        size_t n = (size_t)test_rng_int(&rng, 1, most), left = made.size - (size_t)from;
        if (n > left) n = left;
        assert_int_equal(rfx_weight_file_read(made.file, (uint64_t)from, got, n, &err), RFX_OK);
        assert_memory_equal(got, wanted + from, n);
    }
    assert_int_equal(rfx_weight_file_read(made.file, made.size - 3, got, 4, &err),
                     RFX_STATUS_INTERNAL);
    free(wanted);
    free(got);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void test_made_file_is_the_exported_one(void **state) {
    (void)state;
    check_file("fsrcnn:int8", 33, 20); /* slopes and a transposed convolution in float32 */
    check_file("mobilenet_v2:int8", 64, 64);
    check_file("yolov8n:int8", 64, 96); /* a fixed size */
}

/* The next node of this operator from *i on. */
static const struct rfx_node *next_of(const struct rfx_graph *graph, enum rfx_op op, int *i) {
    while (*i < graph->n_nodes && graph->nodes[*i].op != op) ++*i;
    return *i < graph->n_nodes ? &graph->nodes[(*i)++] : NULL;
}

static float *values_of(const struct rfx_graph *graph, int weight) {
    float *values = test_floats(graph->weights[weight].elems);
    test_read_weight(&graph->weights[weight], 0, graph->weights[weight].elems, values);
    return values;
}

/* Each output channel has a scale of its own, its largest magnitude / 127. */
static void check_layer(const struct rfx_graph *floats, const struct rfx_conv_attr *a,
                        const struct rfx_graph *bytes, const struct rfx_conv_attr *b) {
    int64_t elems = floats->weights[a->weight].elems, block = elems / a->oc;
    float *weights = values_of(floats, a->weight), *got = values_of(bytes, b->weight);
    float *factors = a->scale >= 0 ? values_of(floats, a->scale) : NULL;
    assert_int_equal(bytes->weights[b->weight].elems, elems);
    for (int64_t c = 0; c < a->oc; c++) {
        float *w = weights + c * block, most = 0.0f;
        for (int64_t i = 0; i < block; i++) {
            if (factors != NULL) w[i] *= factors[c];
            most = fmaxf(most, fabsf(w[i]));
        }
        for (int64_t i = 0; i < block; i++)
            assert_true(got[c * block + i] == nearbyintf(w[i] / (most / 127.0f)));
    }
    free(weights);
    free(got);
    free(factors);
}

static void test_weights_are_rounded(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *floats = build(mem, "mobilenet_v2", 64, 64, &rfx_quantiser_fusing);
    struct rfx_graph *bytes = build(mem, "mobilenet_v2:int8", 64, 64, NULL);
    int i = 0, j = 0, layers = 0;
    for (const struct rfx_node *conv; (conv = next_of(floats, RFX_OP_CONV, &i)) != NULL;) {
        const struct rfx_node *integer = next_of(bytes, RFX_OP_INT_CONV, &j);
        assert_non_null(integer);
        check_layer(floats, &conv->attr.conv, bytes, &integer->attr.int_conv.conv);
        /* The image's range is -2.12 to 2.65: 255 steps of 0.018706, of which 113.3 are below 0. */
        if (layers++ == 0) assert_int_equal(integer->attr.int_conv.in_zero, 113);
    }
    assert_int_equal(layers, 52);
    rfx_graph_free(floats);
    rfx_graph_free(bytes);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void test_sizes(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = build(mem, "deeplab_v3:int8", 0, 0, NULL);
    assert_int_equal(graph->nodes[graph->input].out.h, 257);
    assert_int_equal(graph->nodes[graph->outputs[0].node].out.w, 257);
    rfx_graph_free(graph);

    /* yolov8n has tensors of a fixed size, here of the padded image. */
    static const struct rfx_load_options padded = {.h = 97, .w = 65, .fit = {.multiple = 64}};
    struct rfx_error err = {""};
    assert_int_equal(rfx_builtin_build(mem, "yolov8n:int8", &padded, &graph, &err), RFX_OK);
    assert_int_equal(graph->nodes[graph->input].out.w, 65);
    assert_int_equal(graph->padded[0], 128);
    assert_int_equal(graph->padded[1], 128);
    assert_int_equal(graph->declared[0], 0);
    const struct rfx_shape shape = rfx_output_shape(graph, 0);
    assert_int_equal(shape.dims[shape.rank - 1], (16 * 16 + 8 * 8 + 4 * 4)); /* places of a box */
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        uint64_t seed;
    } cases[] = {
        {"vgg16:int8", "':int8' follows only the names mobilenet_v2, resnet18", 0},
        {"mobilenet_v2:0.5:int8", "':int8' follows only the names", 0},
        {"fsrcnn:3:int8", "':int8' follows only the names", 0},
        {"mobilenet_v2:int8:int8", "':int8' follows only the names", 0},
        {"mobilenet_v2:int8", "seed 1: the ranges of its tensors are those of seed 0", 1},
        {"mobilenet_v2:int8", "seed 4294967296: the ranges", (uint64_t)1 << 32},
        {"mobilenet_v2:int", "the width multiplier 'int' is not a number", 0},
        {":int8", "neither a built-in network", 0},
        {"net:int8", "neither a built-in network", 0},
    };
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rfx_load_options options = {.h = 64, .w = 64, .seed = cases[i].seed};
        struct rfx_error err = {""};
        struct rfx_graph *graph = NULL;
        assert_int_equal(rfx_model_load(mem, cases[i].name, &options, &graph, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        if (strstr(err.text, cases[i].text) == NULL) fail_msg("%s", err.text);
        assert_int_equal(
            rfx_builtin_export(mem, cases[i].name, &options, "test_builtin_int8.onnx", &err),
            RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(access("test_builtin_int8.onnx", F_OK), -1);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
    }
    rfx_memory_free(mem);
}

static enum rfx_status build_small(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct rfx_load_options options = {.h = 8, .w = 8};
    struct rfx_graph *graph = NULL;
    (void)context;
    enum rfx_status status = rfx_builtin_build(mem, "fsrcnn:int8", &options, &graph, err);
    rfx_graph_free(graph);
    return status;
}

static void test_allocations_may_fail(void **state) {
    (void)state;
    assert_true(test_fail_each_allocation(build_small, NULL) >= 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_table_is_a_listed_network),
                                       cmocka_unit_test(test_made_file_is_the_exported_one),
                                       cmocka_unit_test(test_weights_are_rounded),
                                       cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_allocations_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
