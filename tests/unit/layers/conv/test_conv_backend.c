/* The table of convolution backends: which one computes a layer, and why the others do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "rfexec/run/model.h"
#include "tests/support/test_util.h"

enum { DEPTHWISE, FEW_OUTPUTS, GROUPED, WINOGRAD, DIRECT, FEW_CHANNELS, OPENBLAS, N_BACKENDS };

static void test_names(void **state) {
    (void)state;
    static const char *const names[N_BACKENDS] = {
        "depthwise", "few-outputs", "grouped", "winograd", "direct", "few-channels", "openblas"};
    int count;
    const struct rfx_conv_backend *const *backends = rfx_conv_backends(&count);
    assert_int_equal(count, N_BACKENDS);
    for (int i = 0; i < count; i++) {
        assert_string_equal(backends[i]->name, names[i]);
        assert_int_equal(backends[i]->calls_blas, i == OPENBLAS);
    }
}

/* Choices by name, and what they come to: kernels of our own need a fused multiply-add. */
static void test_choices_by_name(void **state) {
    static const char *const names[RFX_CONV_COUNT] = {"direct", "openblas", "winograd"};
    (void)state;
    for (int c = 0; c < RFX_CONV_COUNT; c++) {
        enum rfx_conv_choice found = RFX_CONV_COUNT;
        const struct rfx_graph graph = {.conv = (enum rfx_conv_choice)c};
        assert_string_equal(rfx_conv_choice_name((enum rfx_conv_choice)c), names[c]);
        assert_true(rfx_conv_choice_find(names[c], &found));
        assert_int_equal(found, c);
        assert_int_equal(rfx_conv_choice_of(&graph),
                         rfx_kernels()->conv == NULL ? RFX_CONV_OPENBLAS : c);
    }
    enum rfx_conv_choice kept = RFX_CONV_OPENBLAS;
    assert_false(rfx_conv_choice_find("Direct", &kept));
    assert_false(rfx_conv_choice_find("", &kept));
    assert_int_equal(kept, RFX_CONV_OPENBLAS);
}

/* A layer, what computes it where OpenBLAS is chosen, and what the two others answer; what computes
 * it with own kernels. */
struct choice {
    int64_t ic, oc, groups, kw, dw;
    int backend, own;
    const char *depthwise, *few_channels; /* their reasons; NULL: they accept */
};

static const struct choice choices[] = {
    {8, 8, 8, 3, 1, DEPTHWISE, DEPTHWISE, NULL, "8 groups, not 1"},
    {8, 8, 8, 3, 2, DEPTHWISE, DEPTHWISE, NULL, "8 groups, not 1"},
    {2, 2, 2, 40, 1, DEPTHWISE, DEPTHWISE, NULL, "2 groups, not 1"},
    {8, 16, 8, 3, 1, OPENBLAS, GROUPED,
     "8 groups of 8 input and 16 output channels are not one filter per channel",
     "8 groups, not 1"},
    {8, 8, 2, 3, 1, OPENBLAS, GROUPED,
     "2 groups of 8 input and 8 output channels are not one filter per channel", "2 groups, not 1"},
    {3, 32, 1, 3, 1, FEW_CHANNELS, DIRECT,
     "1 groups of 3 input and 32 output channels are not one filter per channel", NULL},
    {1, 1, 1, 5, 1, FEW_CHANNELS, FEW_OUTPUTS,
     "1 groups of 1 input and 1 output channels are not one filter per channel", NULL},
    {4, 8, 1, 32, 1, FEW_CHANNELS, FEW_OUTPUTS,
     "1 groups of 4 input and 8 output channels are not one filter per channel", NULL},
    {5, 8, 1, 3, 1, OPENBLAS, FEW_OUTPUTS,
     "1 groups of 5 input and 8 output channels are not one filter per channel",
     "5 input channels, more than 4"},
    {4, 8, 1, 33, 1, OPENBLAS, FEW_OUTPUTS,
     "1 groups of 4 input and 8 output channels are not one filter per channel",
     "33 taps in a kernel row, more than 32"},
    {3, 8, 1, 3, 2, OPENBLAS, FEW_OUTPUTS,
     "1 groups of 3 input and 8 output channels are not one filter per channel",
     "dilation 2 between columns, not 1"},
};

/* A layer with a square kernel of k, stride s and dilation d, by its attributes alone. */
static struct rfx_node layer_of(int64_t ic, int64_t oc, int64_t groups, int64_t k, int64_t s,
                                int64_t d) {
    struct rfx_node node = {.op = RFX_OP_CONV, .name = "layer"};
    node.attr.conv = (struct rfx_conv_attr){.kh = k,
                                            .kw = k,
                                            .sh = s,
                                            .sw = s,
                                            .dh = d,
                                            .dw = d,
                                            .groups = groups,
                                            .ic = ic,
                                            .oc = oc,
                                            .weight = 0,
                                            .bias = -1,
                                            .scale = -1};
    node.out = rfx_tensor_nhwc(oc, 20, 300);
    return node;
}

static void check_reason(const struct rfx_graph *graph, const struct rfx_conv_backend *backend,
                         const struct rfx_node *node, const char *expected) {
    char why[200] = "untouched";
    bool accepted = backend->accepts(graph, node, why, sizeof why);
    assert_int_equal(accepted, expected == NULL);
    assert_int_equal(backend->accepts(graph, node, NULL, 0), accepted);
    assert_string_equal(why, expected == NULL ? "untouched" : expected);
    if (accepted) return;
    char little[12]; /* cut off, and nothing written behind it */
    memset(little, '#', sizeof little);
    assert_false(backend->accepts(graph, node, little, 6));
    assert_memory_equal(little, expected, 5);
    assert_int_equal(little[5], '\0');
    assert_memory_equal(little + 6, "######", 6);
}

/* The reason of backends with own kernels where OpenBLAS is chosen, or no others can be had. */
static void say_why_not_own(char *why, size_t size) {
    if (rfx_kernels()->conv == NULL)
        (void)snprintf(why, size, "the %s kernels have no fused multiply-add", rfx_kernels()->name);
    else
        (void)snprintf(why, size, "openblas is asked for");
}

static void test_choices_and_reasons(void **state) {
    (void)state;
    const struct rfx_graph openblas = {.conv = RFX_CONV_OPENBLAS}, direct = {0};
    bool own = rfx_kernels()->conv != NULL;
    char why[120];
    int count;
    const struct rfx_conv_backend *const *backends = rfx_conv_backends(&count);
    say_why_not_own(why, sizeof why);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        const struct choice *c = &choices[i];
        struct rfx_node node = layer_of(c->ic, c->oc, c->groups, 3, 1, 1);
        node.attr.conv.kw = c->kw;
        node.attr.conv.dw = c->dw;
        int by_own = own ? c->own : c->backend;
        assert_ptr_equal(rfx_conv_backend_of(&openblas, &node), backends[c->backend]);
        assert_ptr_equal(rfx_conv_backend_of(&direct, &node), backends[by_own]);
        assert_int_equal(rfx_op_calls_blas(&openblas, &node), c->backend == OPENBLAS);
        assert_int_equal(rfx_op_calls_blas(&direct, &node), by_own == OPENBLAS);
        check_reason(&openblas, backends[DEPTHWISE], &node, c->depthwise);
        check_reason(&openblas, backends[DIRECT], &node, why);
        check_reason(&openblas, backends[FEW_CHANNELS], &node, c->few_channels);
        check_reason(&openblas, backends[OPENBLAS], &node, NULL);
        check_reason(&direct, backends[DEPTHWISE], &node, c->depthwise);
        check_reason(&direct, backends[DIRECT], &node, own ? NULL : why);
    }
}

/* What few outputs and grouped answer. */
struct own_choice {
    int64_t ic, oc, groups, k, s, d;
    const char *few, *grouped; /* their reasons; NULL: they accept */
};

static const struct own_choice own_choices[] = {
    {64, 1, 1, 3, 1, 1, NULL, "1 group"},
    {64, 8, 1, 9, 1, 1, NULL, "1 group"},
    {64, 9, 1, 3, 1, 1, "9 output channels, more than 8", "1 group"},
    {3, 2, 1, 3, 1, 18, NULL, "1 group"},
    {2048, 4, 1, 3, 1, 18, "37 rows of 2048 channels at a time, more than 1048576 bytes",
     "1 group"},
    {128, 128, 32, 3, 1, 1, "32 groups, not 1", NULL},
    {256, 256, 32, 3, 1, 1, "32 groups, not 1", NULL},
    {128, 128, 32, 3, 2, 1, "32 groups, not 1", NULL},
    {256, 256, 32, 3, 2, 1, "32 groups, not 1",
     "an expanded input of 8 channels has too few uses: a kernel of 3x3, strides 2 and 2"},
    {288, 288, 32, 3, 1, 1, "32 groups, not 1",
     "groups of 9 input and 9 output channels, more than 8"},
    {18, 2, 2, 3, 1, 1, "2 groups, not 1", "groups of 9 input and 1 output channels, more than 8"},
    {16, 64, 16, 3, 1, 1, "16 groups, not 1", NULL},
    {6, 6, 3, 7, 1, 100, "3 groups, not 1", "601 rows at a time take more than 1048576 bytes"},
};

static void test_few_outputs_and_groups(void **state) {
    (void)state;
    const struct rfx_graph direct = {0}, openblas = {.conv = RFX_CONV_OPENBLAS};
    bool own = rfx_kernels()->conv != NULL;
    char why[120];
    say_why_not_own(why, sizeof why);
    for (size_t i = 0; i < sizeof own_choices / sizeof *own_choices; i++) {
        const struct own_choice *c = &own_choices[i];
        struct rfx_node node = layer_of(c->ic, c->oc, c->groups, c->k, c->s, c->d);
        check_reason(&openblas, &rfx_conv_few_outputs, &node, why);
        check_reason(&openblas, &rfx_conv_grouped, &node, why);
        check_reason(&direct, &rfx_conv_few_outputs, &node, own ? c->few : why);
        check_reason(&direct, &rfx_conv_grouped, &node, own ? c->grouped : why);
        if (!own) continue;
        const struct rfx_conv_backend *taken = c->few == NULL       ? &rfx_conv_few_outputs
                                               : c->grouped == NULL ? &rfx_conv_grouped
                                                                    : &rfx_conv_direct;
        assert_ptr_equal(rfx_conv_backend_of(&direct, &node), taken);
    }
}

/* What the built-ins have where OpenBLAS is chosen, and with own kernels: layers per backend, bytes
 * of packed weights (bias and slopes included), scratch of one thread, sums of block heights and
 * widths, layers that may lie over their residual. */
struct census {
    const char *model;
    int layers[N_BACKENDS];
    size_t packed_bytes, scratch_bytes;
    int64_t block_rows, block_cols;
    int in_place;
};

static const struct census openblas_census[] = {
    {"mobilenet_v2",
     {[DEPTHWISE] = 17, [DIRECT] = 0, [FEW_CHANNELS] = 1, [OPENBLAS] = 34},
     8827328,
     3280448,
     126,
     606,
     10},
    {"resnet18",
     {[DEPTHWISE] = 0, [DIRECT] = 0, [FEW_CHANNELS] = 1, [OPENBLAS] = 19},
     44686848,
     8974336,
     81,
     470,
     8},
    {"squeezenet1_1",
     {[DEPTHWISE] = 0, [DIRECT] = 0, [FEW_CHANNELS] = 1, [OPENBLAS] = 25},
     4942016,
     2049152,
     61,
     500,
     0},
    {"fsrcnn",
     {[DEPTHWISE] = 0, [DIRECT] = 0, [FEW_CHANNELS] = 1, [OPENBLAS] = 6},
     44608,
     78848,
     7,
     193,
     0},
    {"efficientnet_b0",
     {[DEPTHWISE] = 16, [DIRECT] = 0, [FEW_CHANNELS] = 2, [OPENBLAS] = 63},
     15946688,
     4567744,
     175,
     567,
     9},
    {"deeplab_v3",
     {[DEPTHWISE] = 17, [DIRECT] = 0, [FEW_CHANNELS] = 1, [OPENBLAS] = 37},
     2753728,
     1313152,
     55,
     1207,
     10},
};

/* By hand from the layers' shapes: per layer 4 bytes per bias (and slope) and per filter value,
 * with output channels rounded up to 16 for dense layers, each part rounded up to 64 bytes; of
 * scratch a pointer per kernel row, 64 bytes. Layers of few outputs keep every weight once, and
 * planes of their input rows. */
static const struct census direct_census[] = {
    {"mobilenet_v2",
     {[DEPTHWISE] = 17, [DIRECT] = 35, [FEW_CHANNELS] = 0, [OPENBLAS] = 0},
     8835008,
     3328,
     52,
     52,
     10},
    {"resnet18",
     {[DEPTHWISE] = 0, [DIRECT] = 20, [FEW_CHANNELS] = 0, [OPENBLAS] = 0},
     44686848,
     1280,
     20,
     20,
     8},
    {"squeezenet1_1",
     {[DEPTHWISE] = 0, [DIRECT] = 26, [FEW_CHANNELS] = 0, [OPENBLAS] = 0},
     4958400,
     1664,
     26,
     26,
     0},
    {"fsrcnn",
     {[DEPTHWISE] = 0, [DIRECT] = 7, [FEW_CHANNELS] = 0, [OPENBLAS] = 0},
     55168,
     448,
     7,
     7,
     0},
    {"efficientnet_b0",
     {[DEPTHWISE] = 16, [FEW_OUTPUTS] = 4, [DIRECT] = 61},
     16079552,
     32576,
     81,
     81,
     9},
    {"deeplab_v3",
     {[DEPTHWISE] = 17, [FEW_OUTPUTS] = 1, [DIRECT] = 37},
     2767680,
     12928,
     55,
     55,
     10},
};

static void count_layer(const struct rfx_graph *graph, const struct rfx_node *node,
                        struct census *c) {
    int count;
    const struct rfx_conv_backend *const *backends = rfx_conv_backends(&count);
    const struct rfx_conv_backend *backend = rfx_conv_backend_of(graph, node);
    struct rfx_conv_block block = rfx_conv_block_of(graph, node);
    for (int i = 0; i < count; i++)
        if (backends[i] == backend) c->layers[i]++;
    size_t scratch = rfx_op_scratch_bytes(graph, node, 1);
    assert_int_equal(rfx_op_scratch_bytes(graph, node, 3), 3 * scratch);
    assert_int_equal(scratch % RFX_ALIGNMENT_BYTES, 0);
    struct rfx_conv_block own = {1, 1, 0};
    if (backend->block != NULL) own = backend->block(graph, node);
    assert_int_equal(block.h, own.h);
    assert_int_equal(block.w, own.w);
    c->packed_bytes += rfx_op_packed_bytes(graph, node);
    c->scratch_bytes += scratch;
    c->block_rows += block.h;
    c->block_cols += block.w;
    if (node->residual && rfx_op_def(node->op)->in_place(graph, node, 1)) c->in_place++;
}

static void take_census(const struct census *want, enum rfx_conv_choice conv) {
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_load_options options = {.conv = conv};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    if (rfx_builtin_build(mem, want->model, &options, &graph, &err) != RFX_OK)
        fail_msg("%s", err.text);
    struct census got = {.model = want->model};
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].op == RFX_OP_CONV) count_layer(graph, &graph->nodes[n], &got);
    print_message("%s: %d, %d, %d layers, %zu and %zu bytes\n", want->model, got.layers[DEPTHWISE],
                  got.layers[FEW_OUTPUTS], got.layers[DIRECT], got.packed_bytes, got.scratch_bytes);
    for (int b = 0; b < N_BACKENDS; b++) assert_int_equal(got.layers[b], want->layers[b]);
    assert_int_equal(got.packed_bytes, want->packed_bytes);
    assert_int_equal(got.scratch_bytes, want->scratch_bytes);
    assert_int_equal(got.block_rows, want->block_rows);
    assert_int_equal(got.block_cols, want->block_cols);
    assert_int_equal(got.in_place, want->in_place);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void test_builtins_with_openblas(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof openblas_census / sizeof openblas_census[0]; i++)
        take_census(&openblas_census[i], RFX_CONV_OPENBLAS);
}

static void test_builtins_with_own_kernels(void **state) {
    (void)state;
    if (rfx_kernels()->conv == NULL) skip();
    for (size_t i = 0; i < sizeof direct_census / sizeof direct_census[0]; i++)
        take_census(&direct_census[i], RFX_CONV_DIRECT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_choices_by_name),
        cmocka_unit_test(test_choices_and_reasons),
        cmocka_unit_test(test_few_outputs_and_groups),
        cmocka_unit_test(test_builtins_with_openblas),
        cmocka_unit_test(test_builtins_with_own_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
