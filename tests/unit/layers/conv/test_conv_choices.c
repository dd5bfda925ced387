/* Which layers the backends for few outputs and for groups of few channels take, and why not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "layers/conv/conv_backend.h"
#include "layers/graph/op.h"

struct choice {
    int64_t ic, oc, groups, k, s, d;
    const char *few, *grouped; /* their reasons; NULL: they accept */
};

static const struct choice choices[] = {
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

static struct rfx_node layer_of(const struct choice *c) {
    struct rfx_node node = {.op = RFX_OP_CONV, .name = "layer"};
    node.attr.conv = (struct rfx_conv_attr){.kh = c->k,
                                            .kw = c->k,
                                            .sh = c->s,
                                            .sw = c->s,
                                            .dh = c->d,
                                            .dw = c->d,
                                            .groups = c->groups,
                                            .ic = c->ic,
                                            .oc = c->oc,
                                            .weight = 0,
                                            .bias = -1,
                                            .scale = -1};
    node.out = rfx_tensor_nhwc(c->oc, 20, 300);
    return node;
}

static void check(const struct rfx_conv_backend *backend, const struct rfx_graph *graph,
                  const struct rfx_node *node, const char *expected) {
    char why[200] = "untouched";
    bool accepted = backend->accepts(graph, node, why, sizeof why);
    assert_string_equal(why, expected == NULL ? "untouched" : expected);
    assert_int_equal(accepted, expected == NULL);
    assert_int_equal(backend->accepts(graph, node, NULL, 0), accepted);
}

static void test_choices_and_reasons(void **state) {
    (void)state;
    if (rfx_kernels()->conv == NULL) skip(); /* without fused multiply-add neither takes a layer */
    const struct rfx_graph graph = {.conv = RFX_CONV_DIRECT};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const struct choice *c = &choices[i];
        struct rfx_node node = layer_of(c);
        check(&rfx_conv_few_outputs, &graph, &node, c->few);
        check(&rfx_conv_grouped, &graph, &node, c->grouped);
        const struct rfx_conv_backend *taken = c->few == NULL       ? &rfx_conv_few_outputs
                                               : c->grouped == NULL ? &rfx_conv_grouped
                                                                    : &rfx_conv_direct;
        assert_ptr_equal(rfx_conv_backend_of(&graph, &node), taken);
    }
}

/* With OpenBLAS asked for, or no kernels for the processor, neither takes any layer. */
static void test_openblas_takes_all(void **state) {
    (void)state;
    char no_fma[120];
    (void)snprintf(no_fma, sizeof no_fma, "the %s kernels have no fused multiply-add",
                   rfx_kernels()->name);
    const char *why = rfx_kernels()->conv == NULL ? no_fma : "openblas is asked for";
    const struct rfx_graph graph = {.conv = RFX_CONV_OPENBLAS};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct rfx_node node = layer_of(&choices[i]);
        check(&rfx_conv_few_outputs, &graph, &node, why);
        check(&rfx_conv_grouped, &graph, &node, why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices_and_reasons),
        cmocka_unit_test(test_openblas_takes_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
