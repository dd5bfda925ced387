/* Builders of the tiny networks; any failure is a failed assertion. */
#include "tests/support/random/small_nets.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tiler/plan/plan_check.h"
#include "tiler/plan/plan_file.h"

static void must(enum rfx_status status, const struct rfx_error *err) {
    if (status == RFX_OK) return;
    fprintf(stderr, "small net: %s\n", err->text);
    abort();
}

static int add(struct rfx_graph *graph, struct rfx_node node) {
    struct rfx_error err = {{0}};
    int index = -1;
    must(rfx_graph_add(graph, &node, &index, &err), &err);
    return index;
}

static int add_input(struct rfx_graph *graph, int64_t c, int64_t h, int64_t w) {
    struct rfx_node node = {.op = RFX_OP_INPUT, .name = "input"};
    node.attr.input.c = c;
    node.attr.input.h = h;
    node.attr.input.w = w;
    return add(graph, node);
}

/* Positive values. */
static int add_weight(struct rfx_graph *graph, struct rfx_shape shape) {
    struct rfx_error err = {{0}};
    struct rfx_weight weight = {.source = RFX_WEIGHT_GENERATED,
                                .seed = (uint64_t)graph->n_nodes,
                                .lo = 0.1f,
                                .hi = 1.0f,
                                .shape = shape,
                                .elems = 1};
    int index = -1;
    for (int i = 0; i < shape.rank; i++) weight.elems *= shape.dims[i];
    must(rfx_graph_add_weight(graph, &weight, &index, &err), &err);
    return index;
}

/* A 3x3 convolution with positive weights, which is not added yet; the dilation is the padding too.
 */
static struct rfx_node make_dilated(struct rfx_graph *graph, const char *name, const int *in,
                                    int64_t oc, int64_t stride, int64_t dilation) {
    int64_t ic = graph->nodes[in[0]].out.c;
    int index = add_weight(graph, (struct rfx_shape){4, {oc, ic, 3, 3}});
    struct rfx_node node = {.op = RFX_OP_CONV, .name = name, .n_in = 1, .in = in};
    node.attr.conv = (struct rfx_conv_attr){.kh = 3,
                                            .kw = 3,
                                            .sh = stride,
                                            .sw = stride,
                                            .dh = dilation,
                                            .dw = dilation,
                                            .pads = {dilation, dilation, dilation, dilation},
                                            .groups = 1,
                                            .oc = oc,
                                            .weight = index,
                                            .bias = -1,
                                            .scale = -1};
    return node;
}

static int add_dilated(struct rfx_graph *graph, const char *name, int in, int64_t oc,
                       int64_t stride, int64_t dilation) {
    return add(graph, make_dilated(graph, name, &in, oc, stride, dilation));
}

static int add_conv(struct rfx_graph *graph, const char *name, int in, int64_t oc, int64_t stride) {
    return add_dilated(graph, name, in, oc, stride, 1);
}

static struct rfx_graph *begin(struct rfx_memory *mem) {
    struct rfx_error err = {{0}};
    struct rfx_graph *graph = NULL;
    must(rfx_graph_create(mem, "small", &graph, &err), &err);
    return graph;
}

static struct rfx_graph *finish(struct rfx_graph *graph, int out) {
    struct rfx_error err = {{0}};
    static const struct rfx_fuse_options nothing = {0};
    must(rfx_graph_add_output(graph, out, graph->nodes[out].name, &err), &err);
    must(rfx_graph_finish(graph, &nothing, &err), &err);
    return graph;
}

struct rfx_graph *small_net_two_convs(struct rfx_memory *mem, int64_t h, int64_t w) {
    struct rfx_graph *graph = begin(mem);
    int a = add_conv(graph, "a", add_input(graph, 2, h, w), 4, 2);
    return finish(graph, add_conv(graph, "b", a, 3, 1));
}

struct rfx_graph *small_net_dilated(struct rfx_memory *mem, int64_t h, int64_t w,
                                    int64_t dilation) {
    struct rfx_graph *graph = begin(mem);
    int a = add_conv(graph, "a", add_input(graph, 2, h, w), 4, 1);
    return finish(graph, add_dilated(graph, "b", a, 3, 1, dilation));
}

static struct rfx_graph *finish_mean(struct rfx_graph *graph, const char *name, int in) {
    struct rfx_node mean = {.op = RFX_OP_GLOBAL_POOL, .name = name, .n_in = 1, .in = &in};
    mean.attr.global_pool.kind = RFX_REDUCE_MEAN;
    return finish(graph, add(graph, mean));
}

/* "c" of a sum and its mean. */
static struct rfx_graph *finish_pooled(struct rfx_graph *graph, int sum) {
    return finish_mean(graph, "pool", add_conv(graph, "c", sum, 3, 2));
}

struct rfx_graph *small_net_residual(struct rfx_memory *mem, int64_t h, int64_t w) {
    struct rfx_graph *graph = begin(mem);
    int a = add_conv(graph, "a", add_input(graph, 2, h, w), 4, 1);
    int operands[2] = {a, add_conv(graph, "b", a, 4, 1)};
    struct rfx_node sum = {.op = RFX_OP_BINARY, .name = "sum", .n_in = 2, .in = operands};
    sum.attr.binary.kind = RFX_BINARY_ADD;
    return finish_pooled(graph, add(graph, sum));
}

struct rfx_graph *small_net_bottleneck(struct rfx_memory *mem, int64_t h, int64_t w) {
    struct rfx_graph *graph = begin(mem);
    int a = add_conv(graph, "a", add_input(graph, 2, h, w), 4, 1);
    int operands[2] = {add_conv(graph, "b", a, 4, 1), a};
    struct rfx_node sum = make_dilated(graph, "sum", operands, 4, 1, 1);
    sum.n_in = 2;
    sum.residual = true;
    return finish_pooled(graph, add(graph, sum));
}

struct rfx_graph *small_net_two_scales(struct rfx_memory *mem, int64_t h, int64_t w) {
    struct rfx_graph *graph = begin(mem);
    int a = add_conv(graph, "a", add_input(graph, 8, h, w), 16, 1);
    int b = add_conv(graph, "b", a, 16, 1);
    struct rfx_node less = {.op = RFX_OP_POOL_MAX, .name = "less", .n_in = 1, .in = &b};
    less.attr.pool = (struct rfx_pool_attr){.kh = 8, .kw = 8, .sh = 8, .sw = 8, .dh = 1, .dw = 1};
    int c = add_conv(graph, "c", add(graph, less), 64, 1);
    return finish_mean(graph, "mean", add_conv(graph, "d", c, 64, 1));
}

struct rfx_graph *small_net_constant_mean(struct rfx_memory *mem, int64_t h, int64_t w) {
    struct rfx_graph *graph = begin(mem);
    struct rfx_node constant = {.op = RFX_OP_CONST_MAP, .name = "k"};
    constant.attr.constant.shape = rfx_tensor_nhwc(2, 4, 4).shape;
    constant.attr.constant.weight = add_weight(graph, constant.attr.constant.shape);
    int k = add(graph, constant);
    struct rfx_node pool = {.op = RFX_OP_GLOBAL_POOL, .name = "mean", .n_in = 1, .in = &k};
    pool.attr.global_pool.kind = RFX_REDUCE_MEAN;
    int mean = add(graph, pool);
    int operands[2] = {add_input(graph, 2, h, w), mean};
    struct rfx_node sum = {.op = RFX_OP_BINARY, .name = "sum", .n_in = 2, .in = operands};
    sum.attr.binary.kind = RFX_BINARY_ADD;
    return finish(graph, add(graph, sum));
}

struct small_plan_case small_plan_case_begin(int64_t h, int64_t w) {
    struct small_plan_case c = {.mem = rfx_memory_create(0)};
    c.graph = small_net_residual(c.mem, h, w);
    c.request.source = (struct rfx_source_traits){.h = h, .w = w, .c = 2, .random_access = true};
    c.request.threads = 1;
    return c;
}

struct small_plan_case small_plan_case_load(const char *model,
                                            const struct rfx_load_options *load) {
    struct small_plan_case c = {.mem = rfx_memory_create(0)};
    struct rfx_error err = {{0}};
    if (rfx_model_load(c.mem, model, load, &c.graph, &err) != RFX_OK) fail_msg("%s", err.text);
    c.request.source = (struct rfx_source_traits){.h = load->h,
                                                  .w = load->w,
                                                  .c = c.graph->nodes[c.graph->input].out.c,
                                                  .random_access = true};
    c.request.threads = 1;
    return c;
}

struct rfx_plan *small_plan_case_make(const struct small_plan_case *c) {
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    char why[300];
    if (rfx_plan_create(c->graph, &c->request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    if (!rfx_plan_check(plan, why, sizeof why)) fail_msg("%s", why);
    return plan;
}

bool small_plan_has_chosen_rows(const struct rfx_plan *plan) {
    int64_t rows = 0;
    for (int s = 0; s < plan->n_stages; s++) {
        int64_t here = plan->stages[s].spec.band_rows;
        if (here == 0) continue;
        if (rows != 0 && here != rows) return true;
        rows = here;
    }
    return false;
}

enum rfx_status small_plan_case_plan(const struct small_plan_case *c, const char *text,
                                     size_t length, struct rfx_plan **plan, struct rfx_error *err) {
    struct rfx_plan_file *file = NULL;
    struct rfx_plan_request request = c->request;
    struct rfx_error unsound;
    char why[200];
    enum rfx_status status = rfx_plan_file_parse(c->graph, text, length, "plan.json", &file, err);
    if (status != RFX_OK) return status;
    rfx_plan_file_apply(file, &request);
    status = rfx_plan_create(c->graph, &request, plan, err);
    rfx_plan_file_free(file);
    if (status == RFX_OK && !rfx_plan_check(*plan, why, sizeof why))
        must(rfx_fail(&unsound, RFX_STATUS_MALFORMED, "%s", why), &unsound);
    return status;
}

void small_plan_case_end(struct small_plan_case *c) {
    rfx_graph_free(c->graph);
    if (rfx_memory_current_bytes(c->mem) != 0) {
        fprintf(stderr, "small plan case: %zu bytes are left\n", rfx_memory_current_bytes(c->mem));
        abort();
    }
    rfx_memory_free(c->mem);
}
