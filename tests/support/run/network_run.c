#include "tests/support/run/network_run.h"
#include "tests/support/run/catch_outputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"
#include "rfexec/run/model.h"
#include "rfexec/run/session.h"
#include "tests/support/run/output_maps.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"

void network_outputs_free(struct network_outputs *o) {
    for (int k = 0; k < o->n; k++) free(o->values[k]);
    *o = (struct network_outputs){0};
}

void network_check(enum rfx_code code, const struct rfx_why *why) {
    if (code != RFX_CODE_OK) fail_msg("code %d: %s", (int)code, why->text);
    assert_string_equal(why->text, "");
}

struct rfx_run_options network_run_options(size_t memory_bytes, int threads) {
    struct rfx_run_options options;
    rfx_run_options_init(&options, sizeof options);
    options.memory_bytes = memory_bytes;
    options.threads = threads;
    return options;
}

struct rfx_network *network_open_sized(const char *model, int64_t rows, int64_t columns) {
    struct rfx_open_options options;
    struct rfx_network *net = NULL;
    struct rfx_why why;
    rfx_open_options_init(&options, sizeof options);
    options.rows = rows;
    options.columns = columns;
    network_check(rfx_network_open(model, &options, &net, &why), &why);
    return net;
}

struct network_outputs network_outputs_for(const struct rfx_network *net) {
    struct network_outputs o = {.n = rfx_network_output_count(net)};
    assert_in_range(o.n, 1, MOST_OUTPUTS);
    for (int k = 0; k < o.n; k++) {
        o.elems[k] = rfx_network_output_elements(net, k);
        o.values[k] = test_floats(o.elems[k]);
    }
    return o;
}

void network_assert_same(const struct network_outputs *got, const struct network_outputs *want) {
    assert_int_equal(got->n, want->n);
    for (int k = 0; k < want->n; k++) {
        struct test_diff diff;
        assert_int_equal(got->elems[k], want->elems[k]);
        if (test_same_bits(got->values[k], want->values[k], want->elems[k], &diff)) continue;
        test_print_diff("output", got->values[k], want->values[k], want->elems[k], &diff);
        fail();
    }
}

struct network_outputs network_session_outputs(const char *model, const float *values, int64_t c,
                                               int64_t h, int64_t w) {
    return network_session_outputs_by(model, RFX_CONV_DIRECT, values, c, h, w);
}

struct network_outputs network_session_outputs_by(const char *model, enum rfx_conv_choice conv,
                                                  const float *values, int64_t c, int64_t h,
                                                  int64_t w) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options load = {.h = h, .w = w, .conv = conv};
    struct rfx_graph *graph = NULL;
    struct rfx_image *image = NULL;
    struct rfx_plan *plan = NULL;
    struct rfx_session *session = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_model_load(mem, model, &load, &graph, &err), RFX_OK);
    assert_int_equal(rfx_image_from_array(mem, values, c, h, w, &image, &err), RFX_OK);
    struct rfx_plan_request request = {
        .source = rfx_image_traits(image), .threads = 1, .asked = rfx_ask_whole()};
    assert_int_equal(rfx_plan_create(graph, &request, &plan, &err), RFX_OK);
    assert_int_equal(rfx_session_create(plan, NULL, graph->mem, &session, &err), RFX_OK);
    struct caught_outputs caught;
    catch_outputs(&caught, graph);
    rfx_session_set_sink(session, &caught.sink);
    assert_int_equal(rfx_session_run(session, image, NULL, NULL, NULL, &err), RFX_OK);
    struct network_outputs o = {.n = caught.n};
    for (int k = 0; k < o.n; k++) {
        assert_int_equal(caught.received[k], caught.elems[k]);
        o.elems[k] = caught.elems[k];
        o.values[k] = caught.values[k];
        caught.values[k] = NULL;
    }
    caught_outputs_free(&caught);
    rfx_session_free(session);
    rfx_plan_free(plan);
    rfx_image_free(image);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return o;
}

float *network_random_image(int64_t c, int64_t h, int64_t w) {
    struct test_rng rng = test_rng_make(7);
    float *values = test_floats(c * h * w);
    test_rng_fill(&rng, values, c * h * w, -1.0f, 1.0f);
    return values;
}

void network_write_npy(const char *path, float *values, int64_t c, int64_t h, int64_t w) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_format format = {.kind = &rfx_output_npy};
    const int64_t n = c * h * w;
    const struct rfx_tensor tensor = {
        .layout = RFX_LAYOUT_PLAIN, .shape = {4, {1, c, h, w}}, .c = n, .h = 1, .w = 1, .elems = n};
    const struct output_run all = output_run_make(values, 0, n);
    struct rfx_output_stream *stream = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_output_stream_open(mem, path, &format, &tensor, &stream, &err), RFX_OK);
    assert_int_equal(rfx_output_stream_write_end(stream, &all.end, all.rect, &all.view, &err),
                     RFX_OK);
    assert_int_equal(rfx_output_stream_commit(stream, NULL, NULL, &err), RFX_OK);
    rfx_output_stream_free(stream);
    rfx_memory_free(mem);
}

size_t network_least_bytes(struct rfx_network *net, const char *image, int threads) {
    struct rfx_run_options options = network_run_options(1, threads);
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_why why;
    assert_int_equal(rfx_network_predict(net, image, &options, &forecast, &why), RFX_CODE_BUDGET);
    assert_non_null(strstr(why.text, "at least"));
    assert_int_equal(forecast.peak_bytes, forecast.activation_bytes + forecast.weight_bytes +
                                              forecast.scratch_bytes + forecast.picture_bytes +
                                              forecast.reserve_bytes);
    return forecast.peak_bytes;
}
