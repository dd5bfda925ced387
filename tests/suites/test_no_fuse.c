/* Fusion changes nothing but rounding: a network loaded without it, or with the additions of its
 * residual connections left alone, gives the same numbers within 1e-5 of the largest, and its own
 * bits whatever the plan.
 *
 * Both graphs go node by node through the untiled oracle; the unfused one has more nodes. The bits
 * of plans are in test_cli (verify --no-fuse) and, for random graphs, in test_session. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"

enum { H = 75, W = 97 };

static struct rfx_graph *build(struct rfx_memory *mem, const char *name,
                               const struct rfx_fuse_options *fuse) {
    struct rfx_load_options options = {
        .h = H, .w = W, .seed = 3, .fuse = fuse, .conv = test_conv_choice()};
    struct rfx_error err = {{0}};
    struct rfx_graph *graph = NULL;
    if (rfx_builtin_build(mem, name, &options, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    return graph;
}

/* A copy of the network's first output. */
static float *run(const struct rfx_graph *graph, int64_t *n) {
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    struct test_prepared prepared;
    struct test_rng rng = test_rng_make(11);
    float **outs = calloc((size_t)graph->n_nodes, sizeof *outs);
    float *image = test_floats(input->elems);
    test_rng_fill(&rng, image, input->elems, -1.5f, 1.5f);
    assert_non_null(outs);
    assert_true(test_prepare(graph, 2, &prepared));
    test_run_whole(&prepared, image, outs);
    *n = graph->nodes[graph->outputs[0].node].out.elems;
    float *copy = test_floats(*n);
    memcpy(copy, outs[graph->outputs[0].node], (size_t)*n * sizeof *copy);
    test_run_whole_free(graph, outs);
    test_prepared_free(&prepared);
    free(image);
    free(outs);
    return copy;
}

static void check_close(const char *name, const float *got, const float *want, int64_t n) {
    double worst = 0.0, largest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
        largest = fmax(largest, fabs((double)want[i]));
    }
    assert_true(largest > 0.0);
    if (!(worst <= 1e-5 * largest))
        fail_msg("%s: off by %g, the largest value is %g", name, worst, largest);
}

/* Residual connections, squeeze and excite, concatenation, gates, upsampling. */
static void test_unfused_is_close(void **state) {
    (void)state;
    static const struct rfx_fuse_options ways[] = {{0}, {true, true, false, true, true}};
    static const char *const names[] = {"mobilenet_v2",    "mobilenet_v1", "resnet18",
                                        "efficientnet_b0", "densenet121",  "squeezenet1_1",
                                        "mnasnet1_3",      "deeplab_v3",   "posenet",
                                        "blazeface",       "fsrcnn"};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct rfx_graph *fused = build(mem, names[i], NULL);
        int64_t n, m;
        float *want = run(fused, &n);
        for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++) {
            struct rfx_graph *graph = build(mem, names[i], &ways[k]);
            assert_true(graph->n_nodes > fused->n_nodes || k == 1);
            float *got = run(graph, &m);
            assert_int_equal(n, m);
            check_close(names[i], got, want, n);
            free(got);
            rfx_graph_free(graph);
        }
        free(want);
        rfx_graph_free(fused);
    }
    rfx_memory_free(mem);
}

/* Nodes by hand: resnet18 has 20 convolutions with a batch norm each, 17 rectifiers, 8 additions;
 * --no-fuse-add leaves the 8 additions (with the rectifier behind each inside), --no-fuse all. */
static void test_node_counts(void **state) {
    (void)state;
    static const struct rfx_fuse_options nothing = {0}, no_add = {true, true, false, true, true};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *fused = build(mem, "resnet18", NULL);
    struct rfx_graph *kept = build(mem, "resnet18", &no_add);
    struct rfx_graph *plain = build(mem, "resnet18", &nothing);
    assert_int_equal(kept->n_nodes - fused->n_nodes, 8);
    assert_int_equal(plain->n_nodes - fused->n_nodes, 20 + 17 + 8);
    rfx_graph_free(plain);
    rfx_graph_free(kept);
    rfx_graph_free(fused);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unfused_is_close),
                                       cmocka_unit_test(test_node_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
