#include "tests/support/makers/onnx_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/session/model.h"

static enum rfx_status load(const struct maker *graph, int64_t opset, struct rfx_memory *mem,
                            struct rfx_graph **out, struct rfx_error *err) {
    static struct maker whole, model;
    struct rfx_load_options options = {0};
    char path[64];
    (void)snprintf(path, sizeof path, "onnx_net_%ld.onnx", (long)getpid());
    whole = *graph;
    maker_value(&whole, MAKER_OUTPUT, "y", NULL, 0);
    maker_model(&whole, opset, &model);
    maker_save(&model, path);
    enum rfx_status status = rfx_onnx_load(mem, path, &options, out, err);
    (void)unlink(path);
    return status;
}

struct rfx_graph *onnx_net_loaded(const struct maker *graph, int64_t opset) {
    struct rfx_graph *out = NULL;
    struct rfx_error err = {""};
    if (load(graph, opset, rfx_memory_create(0), &out, &err) != RFX_OK) fail_msg("%s", err.text);
    return out;
}

static void expect_nothing_left(struct rfx_memory *mem) {
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

void onnx_net_discard(struct rfx_graph *net) {
    struct rfx_memory *mem = net->mem;
    rfx_graph_free(net);
    expect_nothing_left(mem);
}

void onnx_net_refused(const struct maker *graph, int64_t opset, const char *words) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *out = NULL;
    struct rfx_error err = {""};
    enum rfx_status status = load(graph, opset, mem, &out, &err);
    if (status != RFX_STATUS_UNSUPPORTED && status != RFX_STATUS_MALFORMED)
        fail_msg("status %d: %s", (int)status, err.text);
    if (strstr(err.text, words) == NULL) fail_msg("'%s' is not in: %s", words, err.text);
    assert_null(out);
    expect_nothing_left(mem);
}
