#include "tests/support/makers/onnx_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rfexec/run/model.h"

static enum rfx_int8_choice int8_choice;
static bool dequantizes;

void onnx_net_int8(enum rfx_int8_choice choice, bool dequantize) {
    int8_choice = choice;
    dequantizes = dequantize;
}

static enum rfx_status load(const struct maker *graph, int64_t opset,
                            const struct rfx_fuse_options *fuse, struct rfx_memory *mem,
                            struct rfx_graph **out, struct rfx_error *err) {
    static struct maker whole, model;
    struct rfx_load_options options = {
        .fuse = fuse, .int8 = int8_choice, .dequantize = dequantizes};
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

static struct rfx_graph *loaded(const struct maker *graph, int64_t opset,
                                const struct rfx_fuse_options *fuse) {
    struct rfx_graph *out = NULL;
    struct rfx_error err = {""};
    if (load(graph, opset, fuse, rfx_memory_create(0), &out, &err) != RFX_OK)
        fail_msg("%s", err.text);
    return out;
}

struct rfx_graph *onnx_net_loaded(const struct maker *graph, int64_t opset) {
    return loaded(graph, opset, NULL);
}

struct rfx_graph *onnx_net_unfused(const struct maker *graph, int64_t opset) {
    static const struct rfx_fuse_options nothing = {0};
    return loaded(graph, opset, &nothing);
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

void onnx_net_has(struct rfx_graph *net, int n, const enum rfx_op *ops) {
    for (int i = 1; i < net->n_nodes; i++)
        if (i > n || net->nodes[i].op != ops[i - 1])
            fail_msg("node %d is a %s", i, rfx_op_def(net->nodes[i].op)->name);
    assert_int_equal(net->n_nodes, n + 1);
    onnx_net_discard(net);
}

void onnx_net_refused(const struct maker *graph, int64_t opset, enum rfx_status status,
                      const char *words) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *out = NULL;
    struct rfx_error err = {""};
    assert_int_equal(load(graph, opset, NULL, mem, &out, &err), status);
    if (strstr(err.text, words) == NULL) fail_msg("'%s' is not in: %s", words, err.text);
    assert_null(out);
    expect_nothing_left(mem);
}

void onnx_net_runs_out(const struct maker *graph, int64_t opset) {
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    int k = 0;
    for (; status != RFX_OK && k < 5000; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *out = NULL;
        rfx_memory_fail_after(mem, k);
        status = load(graph, opset, NULL, mem, &out, NULL);
        if (status != RFX_OK) assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        rfx_graph_free(out);
        expect_nothing_left(mem);
    }
    assert_true(k > 5 && k < 5000);
}
