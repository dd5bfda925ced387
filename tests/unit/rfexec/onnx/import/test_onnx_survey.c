/* Which operators a model asks for: counts and refusals by hand, files that are no models, lack of
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/onnx/import/onnx_survey.h"
#include "tests/support/makers/onnx_maker.h"
#include "tests/support/test_util.h"

#define MODEL_PATH "test_onnx_survey.onnx"

static struct maker graph, model;

/* Two Relu, three of "Wild", one "Odd", one Abs that nothing needs. */
static void make_model(void) {
    static const int64_t image[] = {1, 3, 0, 0}, dims[] = {2, 3};
    static const float values[6] = {0};
    graph.size = 0;
    maker_floats(&graph, "k", dims, 2, values);
    maker_value(&graph, MAKER_INPUT, "k", dims, 2); /* an initialiser, listed as old files do */
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_add(&graph, "Relu", "image", "a");
    maker_add(&graph, "Wild", "a k", "b");
    maker_add(&graph, "Odd", "b", "c");
    maker_add(&graph, "Wild", "c k", "d");
    maker_add(&graph, "Abs", "d", "unread");
    maker_add(&graph, "Wild", "d k", "e");
    maker_add(&graph, "Relu", "e", "f");
    maker_value(&graph, MAKER_OUTPUT, "f", NULL, 0);
    maker_model(&graph, 13, &model);
    maker_save(&model, MODEL_PATH);
}

static void counts_operators(void **state) {
    static const struct {
        const char *name;
        size_t nodes;
        bool supported;
    } want[] = {{"Odd", 1, false}, {"Wild", 3, false}, {"Relu", 2, true}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_onnx_survey *survey = NULL;
    struct rfx_error err = {""};
    (void)state;
    make_model();
    assert_int_equal(rfx_onnx_survey_create(mem, MODEL_PATH, &survey, &err), RFX_OK);
    assert_int_equal(survey->n_ops, 3);
    assert_int_equal(survey->n_refused, 2);
    assert_int_equal(survey->other_nodes, 0);
    for (size_t i = 0; i < 3; ++i) {
        assert_string_equal(survey->ops[i].name, want[i].name);
        assert_int_equal(survey->ops[i].nodes, want[i].nodes);
        assert_int_equal(survey->ops[i].why == NULL, want[i].supported);
    }
    assert_string_equal(survey->image->name, "image");
    assert_int_equal(survey->weight_elems, 6);
    assert_int_equal(survey->model.opset, 13);
    rfx_onnx_survey_free(survey);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* 600 operators of names of their own: 512 are told apart, 88 nodes are others. */
static void many_names_are_bounded(void **state) {
    static const int64_t image[] = {1, 3, 0, 0};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_onnx_survey *survey = NULL;
    struct rfx_error err = {""};
    char in[16] = "image", out[16], op[16];
    (void)state;
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    for (int i = 0; i < 600; ++i) {
        (void)snprintf(out, sizeof out, "t%d", i);
        (void)snprintf(op, sizeof op, "Op%d", i);
        maker_add(&graph, op, in, out);
        memcpy(in, out, sizeof in);
    }
    maker_value(&graph, MAKER_OUTPUT, in, NULL, 0);
    maker_model(&graph, 13, &model);
    maker_save(&model, MODEL_PATH);
    assert_int_equal(rfx_onnx_survey_create(mem, MODEL_PATH, &survey, &err), RFX_OK);
    assert_int_equal(survey->n_ops, 512);
    assert_int_equal(survey->other_nodes, 88);
    rfx_onnx_survey_free(survey);
    rfx_memory_free(mem);
}

static void refuses_what_is_no_model(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_onnx_survey *survey = NULL;
    struct rfx_error err = {""};
    (void)state;
    assert_int_equal(rfx_onnx_survey_create(mem, "no/such.onnx", &survey, &err), RFX_STATUS_IO);
    FILE *file = fopen(MODEL_PATH, "wb");
    assert_non_null(file);
    (void)fputs("no model at all", file);
    (void)fclose(file);
    assert_int_equal(rfx_onnx_survey_create(mem, MODEL_PATH, &survey, &err), RFX_STATUS_MALFORMED);
    assert_null(survey);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    make_model();
    for (int64_t k = 0;; ++k) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_onnx_survey *survey = NULL;
        struct rfx_error err = {""};
        rfx_memory_fail_after(mem, k);
        enum rfx_status status = rfx_onnx_survey_create(mem, MODEL_PATH, &survey, &err);
        rfx_onnx_survey_free(survey);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
        if (status == RFX_OK) {
            assert_true(k > 3);
            return;
        }
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_operators),
        cmocka_unit_test(many_names_are_bounded),
        cmocka_unit_test(refuses_what_is_no_model),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
