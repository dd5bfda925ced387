/* Files that end in nodes whose sizes depend on data: where they are cut, what the late nodes give,
 * and what is refused in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/late/late_run.h"
#include "rfexec/run/model.h"
#include "tests/support/makers/late_maker.h"
#include "tests/support/run/run_whole.h"

#define MODEL_PATH "test_onnx_late.onnx"
enum { H = 16, W = 24, CELLS = 24 };

static struct maker graph, model;

static enum rfx_status load(struct rfx_memory *mem, bool late, struct rfx_graph **net,
                            struct rfx_error *err) {
    const struct rfx_load_options options = {.late = late};
    return rfx_onnx_load(mem, MODEL_PATH, &options, net, err);
}

static struct rfx_graph *loaded(void) {
    struct rfx_graph *net = NULL;
    struct rfx_error err = {""};
    if (load(rfx_memory_create(0), true, &net, &err) != RFX_OK) fail_msg("%s", err.text);
    return net;
}

static void discard(struct rfx_graph *net) {
    struct rfx_memory *mem = net->mem;
    rfx_graph_free(net);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void refused(bool late, const char *words) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *net = NULL;
    struct rfx_error err = {""};
    enum rfx_status status = load(mem, late, &net, &err);
    if (status != RFX_STATUS_UNSUPPORTED && status != RFX_STATUS_MALFORMED)
        fail_msg("status %d", (int)status);
    if (strstr(err.text, words) == NULL) fail_msg("%s", err.text);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* A network of nodes behind an image of 1 x 2 x 2 x 3. */
static void begin(void) {
    static const int64_t image[] = {1, 2, 2, 3}, zero = 0;
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_ints(&graph, "zero", &zero, 1);
}

static void save(const char *output) {
    maker_value(&graph, MAKER_OUTPUT, output, NULL, 0);
    maker_model(&graph, 17, &model);
    maker_save(&model, MODEL_PATH);
}

/* Runs front and late nodes. The caller frees the run. */
static struct rfx_late_run *run_on(const struct rfx_graph *net, const float *image) {
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_late_run_create(net, net->mem, 0, &run, &err), RFX_OK);
    for (int k = 0; k < net->n_outputs; k++) {
        float *values = test_run_output(net, image, k);
        int64_t elems = net->nodes[net->outputs[k].node].out.elems;
        const struct rfx_end end = {0, k, elems, {.channel_step = 1}};
        const struct rfx_rect one = rfx_rect_make(0, 1, 0, 1);
        const struct rfx_view view = {.data = values, .rect = one, .c = elems, .row_stride = elems};
        rfx_late_run_take(run, &end, one, &view);
        free(values);
    }
    if (rfx_late_run_nodes(run, &err) != RFX_OK) fail_msg("%s", err.text);
    return run;
}

static int index_of(const struct rfx_graph *net, const char *name) {
    for (int k = 0; k < net->n_outputs; k++)
        if (strcmp(net->outputs[k].name, name) == 0) return k;
    fail_msg("no cut tensor '%s'", name);
    return -1;
}

/* Selections of classes and comparisons run late: two tensors are cut, not five. */
static void a_detector_is_cut_at_boxes_and_scores(void **state) {
    (void)state;
    late_maker_save(MODEL_PATH, H, W, 0.5F);
    struct rfx_graph *net = loaded();
    const struct rfx_shape boxes = rfx_output_shape(net, index_of(net, "all_boxes"));
    const struct rfx_shape scores = rfx_output_shape(net, index_of(net, "all_scores"));
    assert_int_equal(net->n_outputs, 2);
    assert_int_equal(net->late->n_cuts, 2);
    assert_true(boxes.rank == 2 && boxes.dims[0] == CELLS && boxes.dims[1] == 4);
    assert_true(scores.rank == 2 && scores.dims[0] == CELLS && scores.dims[1] == 2);
    assert_int_equal(rfx_late_cut_bytes(net), CELLS * 6 * sizeof(float));
    assert_int_equal(net->late->n_outputs, 3);
    assert_int_equal(net->late->outputs[2].type, RFX_TYPE_INT64);
    assert_int_equal(net->late->outputs[0].dims[1], 4);
    assert_int_equal(net->late->outputs[0].dims[0], -1);
    discard(net);
}

/* Selections stay in front of the cut if they are one, or less than half of their tensor. */
static void small_selections_are_cut_themselves(void **state) {
    static const int64_t starts[2] = {0, 0}, ends[2] = {1, 1}, others[2] = {2, 2}, axes[2] = {2, 3};
    (void)state;
    begin();
    maker_add_int(&graph, "Gather", "image zero", "a", "axis", 1);
    maker_add(&graph, "NonZero", "a", "y");
    save("y");
    struct rfx_graph *net = loaded();
    assert_int_equal(rfx_late_cut_bytes(net), 6 * sizeof(float));
    discard(net);
    begin();
    maker_ints(&graph, "starts", starts, 2);
    maker_ints(&graph, "ends", ends, 2);
    maker_ints(&graph, "others", others, 2);
    maker_ints(&graph, "axes", axes, 2);
    maker_add(&graph, "Slice", "image starts ends axes", "a");
    maker_add(&graph, "Slice", "image ends others axes", "b");
    maker_add(&graph, "NonZero", "a", "x");
    maker_value(&graph, MAKER_OUTPUT, "x", NULL, 0);
    maker_add(&graph, "NonZero", "b", "y");
    save("y");
    net = loaded();
    assert_int_equal(net->n_outputs, 2);
    assert_int_equal(rfx_late_cut_bytes(net), 4 * sizeof(float));
    discard(net);
}

/* None, some and all of the candidates are above the threshold. */
static void detections_are_counted_by_the_threshold(void **state) {
    static const float thresholds[] = {2.0F, 0.5F, -1.0F};
    static float image[3 * H * W];
    int64_t before = -1;
    (void)state;
    for (int i = 0; i < 3 * H * W; i++) image[i] = (float)(i * 37 % 101) / 101.0F;
    for (int i = 0; i < 3; i++) {
        late_maker_save(MODEL_PATH, H, W, thresholds[i]);
        struct rfx_graph *net = loaded();
        struct rfx_late_run *run = run_on(net, image);
        const struct rfx_late_tensor *boxes = rfx_late_run_output(run, 0);
        const int64_t n = boxes->shape.dims[0];
        assert_true(i == 0 ? n == 0 : n > before && n <= 2 * CELLS);
        /* the freed cut tensors are not subtracted, which would wrap around */
        assert_true(rfx_late_run_high_water_bytes(run) < 1 << 16);
        assert_int_equal(rfx_late_run_output(run, 1)->elems, n);
        assert_int_equal(rfx_late_run_output(run, 2)->elems, n);
        assert_int_equal(rfx_late_run_output(run, 2)->type, RFX_TYPE_INT64);
        const float *scores = rfx_late_run_output(run, 1)->data;
        for (int64_t k = 1; k < n; k++) assert_true(scores[k] <= scores[k - 1]);
        before = n;
        rfx_late_run_free(run);
        discard(net);
    }
}

/* Booleans and indices that the network computes are cut with their types. */
static void cut_tensors_have_types(void **state) {
    static const float image[12] = {1, 0, -1, 2, 0, 0, 3, 4, 0, 0, 0, 5};
    (void)state;
    begin();
    maker_add_int(&graph, "ArgMax", "image", "label", "axis", 1);
    maker_add(&graph, "NonZero", "label", "y");
    save("y");
    struct rfx_graph *net = loaded();
    assert_int_equal(net->outputs[0].stored.type, RFX_TYPE_INT64);
    struct rfx_late_run *run = run_on(net, image);
    const struct rfx_late_tensor *y = rfx_late_run_output(run, 0);
    /* channel 1 is larger at pixels 0, 1, 2 and 5: 3 > 1, 4 > 0, 0 > -1, 5 > 0 */
    static const int64_t places[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 2, 2};
    assert_int_equal(y->elems, 16);
    /* without the cut tensor */
    assert_int_equal(rfx_late_run_high_water_bytes(run), 16 * sizeof(int64_t));
    assert_memory_equal(y->data, places, sizeof places);
    rfx_late_run_free(run);
    discard(net);
}

/* A model may have outputs of both kinds, and the same tensor may be cut and an output. */
static void outputs_of_the_front_come_along(void **state) {
    static const float image[12] = {1, 0, -1, 2, 0, 0, 3, 4, 0, 0, 0, 5};
    static const float relu[12] = {1, 0, 0, 2, 0, 0, 3, 4, 0, 0, 0, 5};
    (void)state;
    begin();
    maker_add(&graph, "Relu", "image", "r");
    maker_add(&graph, "NonZero", "r", "y");
    maker_value(&graph, MAKER_OUTPUT, "r", NULL, 0);
    save("y");
    struct rfx_graph *net = loaded();
    assert_int_equal(net->n_outputs, 1);
    struct rfx_late_run *run = run_on(net, image);
    const struct rfx_late_tensor *r = rfx_late_run_output(run, 0);
    assert_int_equal(r->shape.rank, 4);
    assert_memory_equal(r->data, relu, sizeof relu);
    assert_int_equal(rfx_late_run_output(run, 1)->shape.dims[1], 5);
    rfx_late_run_free(run);
    discard(net);
}

static void what_cannot_run_is_named(void **state) {
    (void)state;
    begin();
    maker_add(&graph, "NonZero", "image", "p");
    maker_add(&graph, "Sin", "p", "y");
    save("y");
    refused(true, "Sin 'y' (opset 17): it lies behind a node whose size depends on data");
    refused(false, "the size of its result depends on the data, which only run, plan, verify and");
    begin();
    maker_add(&graph, "NonZero", "image", "p");
    maker_add_int(&graph, "Gather", "p zero", "y", "sideways", 1);
    save("y");
    refused(true, "attribute sideways = 1 is not supported here");
    begin();
    maker_add(&graph, "NonZero", "image zero", "y");
    save("y");
    refused(true, "it has 2 inputs and 1 outputs");
    begin();
    maker_add(&graph, "NonZero", "image", "y z");
    save("y");
    refused(true, "it has 1 inputs and 2 outputs");
    begin();
    maker_add(&graph, "Unique", "image", "y");
    save("y");
    refused(true, "Unique 'y' (opset 17): the size of its result depends on the data");
    begin();
    maker_add_int(&graph, "ArgMax", "image", "label", "axis", 1);
    maker_add_int(&graph, "Cast", "label", "byte", "to", 2);
    maker_add(&graph, "NonZero", "byte", "y");
    save("y");
    refused(true, "operand 'byte' has element type 2");
    begin();
    maker_add(&graph, "NonZero", "zero", "y");
    save("y");
    struct rfx_graph *net = NULL; /* of a constant: nothing is late */
    struct rfx_memory *mem = rfx_memory_create(0);
    (void)load(mem, true, &net, NULL);
    assert_true(net == NULL || net->late == NULL);
    rfx_graph_free(net);
    rfx_memory_free(mem);
}

static void save_plugin(float threshold, const char *domain) {
    late_maker_plugin_graph(&graph, H, W, threshold, domain);
    maker_model(&graph, 17, &model);
    maker_save(&model, MODEL_PATH);
}

/* EfficientNMS_TRT in each of its domains: two cut tensors, results of fixed sizes. */
static void a_plugin_of_tensorrt_is_late(void **state) {
    static const char *const domains[] = {"", "TRT", "TensorRT"};
    static float image[3 * H * W];
    (void)state;
    for (int i = 0; i < 3 * H * W; i++) image[i] = (float)(i * 37 % 101) / 101.0F;
    for (int i = 0; i < 3; i++) {
        save_plugin(0.5F, domains[i]);
        struct rfx_graph *net = loaded();
        assert_int_equal(net->late->n_cuts, 2);
        struct rfx_late_run *run = run_on(net, image);
        const int32_t n = *(const int32_t *)rfx_late_run_output(run, 0)->data;
        const struct rfx_shape shape = {3, {1, LATE_MAKER_MOST, 4}};
        assert_true(n > 0 && n <= LATE_MAKER_MOST);
        assert_true(rfx_shape_equal(&rfx_late_run_output(run, 1)->shape, &shape));
        assert_int_equal(rfx_late_run_output(run, 3)->type, RFX_TYPE_INT32);
        rfx_late_run_free(run);
        discard(net);
    }
    save_plugin(0.5F, "other");
    refused(true, "an operator of domain 'other'");
    save_plugin(0.5F, "TRT");
    refused(false, "cut the file before it, at 'boxes' and 'scores'");
}

/* One of the plugin's attributes is set, or (values[1] 0) left out. */
static void refused_attribute(const char *name, float values[2], const char *words) {
    static const char *const names[] = {"score_threshold", "iou_threshold"};
    static struct maker node;
    begin();
    maker_node(&node, "EfficientNMS_TRT", "image image", "y");
    for (int i = 0; i < 2; i++)
        if (strcmp(names[i], name) != 0)
            maker_attr_float(&node, names[i], 0.5F);
        else if (values[1] != 0)
            maker_attr_float(&node, name, values[0]);
    maker_attr_int(&node, "max_output_boxes", strcmp(name, "max") == 0 ? (int64_t)values[0] : 9);
    if (strcmp(name, "plugin_version") == 0) maker_attr_text(&node, name, "2");
    if (strcmp(name, "other") == 0) maker_attr_int(&node, name, 1);
    maker_message(&graph, MAKER_NODE, &node);
    save("y");
    refused(true, words);
}

static void attributes_of_the_plugin_are_checked(void **state) {
    (void)state;
    refused_attribute("score_threshold", (float[2]){-1, 1}, "score_threshold is -1: 0 to 1");
    refused_attribute("score_threshold", (float[2]){0, 0}, "score_threshold is missing");
    refused_attribute("iou_threshold", (float[2]){2, 1}, "iou_threshold is 2: above 0 to 1");
    refused_attribute("iou_threshold", (float[2]){0, 0}, "attribute iou_threshold is missing");
    refused_attribute("max", (float[2]){0, 1}, "max_output_boxes is 0: 1 to 1000000");
    refused_attribute("plugin_version", (float[2]){0, 1}, "plugin_version '2'");
    refused_attribute("other", (float[2]){0, 1}, "attribute other = 1 is not supported");
    begin();
    maker_add(&graph, "EfficientNMS_TRT", "image", "y");
    save("y");
    refused(true, "it has 1 inputs and 1 outputs");
    begin();
    maker_add(&graph, "EfficientNMS_TRT", "image image", "a b c d y");
    save("y");
    refused(true, "it has 2 inputs and 5 outputs");
}

static void try_allocations(void) {
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    int k = 0;
    for (; status != RFX_OK && k < 5000; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *net = NULL;
        rfx_memory_fail_after(mem, k);
        status = load(mem, true, &net, NULL);
        if (status != RFX_OK) assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        rfx_graph_free(net);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
    assert_true(k > 5 && k < 5000);
}

static void memory_may_run_out(void **state) {
    (void)state;
    late_maker_save(MODEL_PATH, H, W, 0.5F);
    try_allocations();
    save_plugin(0.5F, "TRT");
    try_allocations();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_detector_is_cut_at_boxes_and_scores),
        cmocka_unit_test(small_selections_are_cut_themselves),
        cmocka_unit_test(detections_are_counted_by_the_threshold),
        cmocka_unit_test(cut_tensors_have_types),
        cmocka_unit_test(outputs_of_the_front_come_along),
        cmocka_unit_test(what_cannot_run_is_named),
        cmocka_unit_test(a_plugin_of_tensorrt_is_late),
        cmocka_unit_test(attributes_of_the_plugin_are_checked),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests_name("onnx_late", tests, NULL, NULL);
}
