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
#include "tests/support/test_util.h"

static enum rfx_int8_choice int8_choice;
static bool dequantizes;

void onnx_net_int8(enum rfx_int8_choice choice, bool dequantize) {
    int8_choice = choice;
    dequantizes = dequantize;
}

enum { NAME = 64 };

/* Writes a graph with the output "y" to a file of this test program. */
static void save(const struct maker *graph, int64_t opset, char path[NAME]) {
    static struct maker whole, model;
    (void)snprintf(path, NAME, "onnx_net_%ld.onnx", (long)getpid());
    whole = *graph;
    maker_value(&whole, MAKER_OUTPUT, "y", NULL, 0);
    maker_model(&whole, opset, &model);
    maker_save(&model, path);
}

static struct rfx_load_options options_with(const struct rfx_fuse_options *fuse) {
    return (struct rfx_load_options){.fuse = fuse, .int8 = int8_choice, .dequantize = dequantizes};
}

static void expect_nothing_left(struct rfx_memory *mem) {
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

struct rfx_graph *onnx_net_of_file(const char *path, const struct rfx_load_options *options) {
    struct rfx_graph *out = NULL;
    struct rfx_error err = {""};
    if (rfx_onnx_load(rfx_memory_create(0), path, options, &out, &err) != RFX_OK)
        fail_msg("%s", err.text);
    return out;
}

void onnx_net_file_refused(const char *path, const struct rfx_load_options *options,
                           enum rfx_status status, const char *words) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *out = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_onnx_load(mem, path, options, &out, &err), status);
    if (strstr(err.text, words) == NULL) fail_msg("'%s' is not in: %s", words, err.text);
    assert_null(out);
    expect_nothing_left(mem);
}

struct file {
    const char *path;
    const struct rfx_load_options *options;
};

static enum rfx_status load(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct file *file = context;
    struct rfx_graph *out = NULL;
    enum rfx_status status = rfx_onnx_load(mem, file->path, file->options, &out, err);
    rfx_graph_free(out);
    return status;
}

void onnx_net_file_runs_out(const char *path, const struct rfx_load_options *options) {
    struct file file = {path, options};
    assert_true(test_fail_each_allocation(load, &file) > 10);
}

static struct rfx_graph *loaded(const struct maker *graph, int64_t opset,
                                const struct rfx_fuse_options *fuse) {
    const struct rfx_load_options options = options_with(fuse);
    char path[NAME];
    save(graph, opset, path);
    struct rfx_graph *out = onnx_net_of_file(path, &options);
    (void)unlink(path);
    return out;
}

struct rfx_graph *onnx_net_loaded(const struct maker *graph, int64_t opset) {
    return loaded(graph, opset, NULL);
}

struct rfx_graph *onnx_net_unfused(const struct maker *graph, int64_t opset) {
    static const struct rfx_fuse_options nothing = {0};
    return loaded(graph, opset, &nothing);
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
    const struct rfx_load_options options = options_with(NULL);
    char path[NAME];
    save(graph, opset, path);
    onnx_net_file_refused(path, &options, status, words);
    (void)unlink(path);
}

void onnx_net_runs_out(const struct maker *graph, int64_t opset) {
    const struct rfx_load_options options = options_with(NULL);
    char path[NAME];
    save(graph, opset, path);
    onnx_net_file_runs_out(path, &options);
    (void)unlink(path);
}
