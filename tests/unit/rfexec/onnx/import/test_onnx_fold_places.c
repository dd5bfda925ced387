/* Trilu, CumSum, NonZero and ScatterND of constants: values against their definitions, floats and
 * integers alike, that nothing of them is left to a run, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/makers/onnx_net.h"
#include "tests/support/run/run_whole.h"

enum { A = 2, B = 3, C = 4, ELEMS = A * B * C };

static const int64_t dims[3] = {A, B, C};
static struct maker graph, node;

/* k: the numbers 3, 4, ... as A x B x C, of either type. */
static void begin(bool integers) {
    static const int64_t image[] = {1, A, B, C};
    float reals[ELEMS];
    int64_t ints[ELEMS];
    for (int i = 0; i < ELEMS; i++) reals[i] = (float)(ints[i] = i + 3);
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    if (integers)
        maker_int_tensor(&graph, "k", dims, 3, ints);
    else
        maker_floats(&graph, "k", dims, 3, reals);
}

/* y: the image and, as floats, what the node makes. */
static void finish(void) {
    maker_message(&graph, MAKER_NODE, &node);
    maker_node(&node, "Cast", "made", "real");
    maker_attr_int(&node, "to", 1);
    maker_message(&graph, MAKER_NODE, &node);
    maker_node(&node, "Add", "x real", "y");
    maker_message(&graph, MAKER_NODE, &node);
}

/* Of an image of zeros; `folded`: the network is an image, a constant and their sum. */
static void expect(const float *wanted, bool folded, const char *what) {
    static const float zeros[ELEMS] = {0};
    finish();
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    if ((net->n_nodes == 3) != folded) fail_msg("%s: %d nodes", what, net->n_nodes);
    float *got = test_run_output(net, zeros, 0);
    for (int i = 0; i < ELEMS; i++)
        if (got[i] != wanted[i])
            fail_msg("%s: [%d] is %g, not %g", what, i, (double)got[i], (double)wanted[i]);
    free(got);
    onnx_net_discard(net);
}

/* Where the odd ones of 3, 4, ... are: rows of their places, 12 columns each. */
static void places_of_what_is_not_0(void **state) {
    (void)state;
    static const int64_t two = 2, shape[] = {1, 3, 4};
    for (int64_t axis = 0; axis < 3; axis++) {
        float wanted[ELEMS];
        for (int i = 0; i < ELEMS; i++) {
            int place = i % 12 * 2;
            wanted[i] = (float)(axis == 0 ? place / 12 : axis == 1 ? place / 4 % 3 : place % 4);
        }
        begin(true);
        maker_ints(&graph, "two", &two, 1);
        maker_ints(&graph, "axis", &axis, 1);
        maker_ints(&graph, "shape", shape, 3);
        static const char *const nodes[][3] = {{"Mod", "k two", "odd"},
                                               {"NonZero", "odd", "places"},
                                               {"Gather", "places axis", "row"}};
        for (int i = 0; i < 3; i++) {
            maker_node(&node, nodes[i][0], nodes[i][1], nodes[i][2]);
            maker_message(&graph, MAKER_NODE, &node);
        }
        maker_node(&node, "Reshape", "row shape", "made");
        expect(wanted, true, "places");
    }
}

static void triangles(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) /* bits: upper, integers */
        for (int64_t k = -3; k <= 4; k++) {
            float wanted[ELEMS];
            char what[48];
            bool upper = (kind & 1) != 0;
            for (int i = 0; i < ELEMS; i++) {
                int64_t right = i % C - i / C % B;
                wanted[i] = (upper ? right < k : right > k) ? 0.0f : (float)(i + 3);
            }
            begin((kind & 2) != 0);
            maker_ints(&graph, "diagonal", &k, 1);
            maker_node(&node, "Trilu", "k diagonal", "made");
            maker_attr_int(&node, "upper", upper);
            (void)snprintf(what, sizeof what, "kind %d, diagonal %d", kind, (int)k);
            expect(wanted, true, what);
        }
}

/* The sum over the elements of the same line that come before (`after`: behind) element `at`. */
static float sum_beside(int at, int n, int step, bool after, bool exclusive) {
    int place = at / step % n, first = at - place * step;
    float sum = 0.0f;
    for (int i = 0; i < n; i++)
        if ((after ? i > place : i < place) || (i == place && !exclusive))
            sum += (float)(first + i * step + 3);
    return sum;
}

static void sums(void **state) {
    (void)state;
    static const int steps[3] = {B * C, C, 1};
    for (int kind = 0; kind < 8; kind++) /* bits: exclusive, reverse, integers */
        for (int64_t axis = -3; axis < 3; axis++) {
            int n = (int)dims[(axis + 3) % 3], step = steps[(axis + 3) % 3];
            float wanted[ELEMS];
            char what[48];
            for (int i = 0; i < ELEMS; i++)
                wanted[i] = sum_beside(i, n, step, (kind & 2) != 0, (kind & 1) != 0);
            begin((kind & 4) != 0);
            maker_ints(&graph, "axis", &axis, 1);
            maker_node(&node, "CumSum", "k axis", "made");
            maker_attr_int(&node, "exclusive", kind & 1);
            maker_attr_int(&node, "reverse", kind >> 1 & 1);
            (void)snprintf(what, sizeof what, "kind %d, axis %d", kind, (int)axis);
            expect(wanted, true, what);
        }
}

/* Two updates of whole rows, of single elements and of all; the last one to a place stays. Sums are
 * left to a run, which has no integers. */
static void updates(void **state) {
    (void)state;
    static const struct {
        int64_t width, indices[6];
        bool adds;
        int64_t first[2], run;
    } cases[] = {
        {1, {1, -2}, false, {B * C, 0}, B * C},
        {2, {0, 1, -1, -3}, false, {C, B * C}, C},
        {2, {1, 2, -1, -1}, false, {B * C + 2 * C, B * C + 2 * C}, C},
        {3, {1, -1, 0, 0, 0, -4}, false, {B * C + 2 * C, 0}, 1},
        {2, {1, 2, -1, -1}, true, {B * C + 2 * C, B * C + 2 * C}, C},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        for (int integers = 0; integers < (cases[n].adds ? 1 : 2); integers++) {
            const int64_t width = cases[n].width, where[2] = {2, width};
            int64_t shape[3] = {2, width < 2 ? B : C, C}, ints[2 * B * C];
            float wanted[ELEMS], reals[2 * B * C];
            char what[48];
            for (int i = 0; i < ELEMS; i++) wanted[i] = (float)(i + 3);
            for (int64_t i = 0; i < 2 * cases[n].run; i++) {
                float *to = &wanted[cases[n].first[i / cases[n].run] + i % cases[n].run];
                reals[i] = (float)(ints[i] = 100 + i);
                *to = reals[i] + (cases[n].adds ? *to : 0.0f);
            }
            begin(integers != 0);
            maker_int_tensor(&graph, "where", where, 2, cases[n].indices);
            if (integers)
                maker_int_tensor(&graph, "new", shape, 4 - (int)width, ints);
            else
                maker_floats(&graph, "new", shape, 4 - (int)width, reals);
            maker_node(&node, "ScatterND", "k where new", "made");
            if (cases[n].adds) maker_attr_text(&node, "reduction", "add");
            (void)snprintf(what, sizeof what, "case %zu, integers %d", n, integers);
            expect(wanted, !cases[n].adds, what);
        }
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *op, *in, *words;
        int64_t number;
    } cases[] = {
        {"Trilu", "line", "rank 1: at least 2 is needed", 0},
        {"Trilu", "k line", "input 1 has 4 elements, not 1", 0},
        {"CumSum", "k one", "axis 3 of a tensor of rank 3", 3},
        {"CumSum", "k one", "axis -4 of a tensor of rank 3", -4},
        {"ScatterND", "k one square", "update 0 lies outside", 2},
        {"ScatterND", "k one square", "update 0 lies outside", -3},
        {"ScatterND", "k before row", "update 0 lies outside", 0},
        {"ScatterND", "k one integers", "operands that do not fit", 0},
        {"ScatterND", "k scalar square", "operands that do not fit", 0},
        {"ScatterND", "k deep number", "operands that do not fit", 0},
        {"ScatterND", "k one line", "operands that do not fit", 0},
        {"ScatterND", "k one k", "operands that do not fit", 0},
        {"ScatterND", "k line one", "operands that do not fit", 0},
    };
    static const int64_t four[4] = {0}, zeros[B * C] = {0}, square[2] = {B, C}, row[2] = {1, C};
    static const int64_t deep[2] = {1, 4}, before[2] = {1, 2}, far[2] = {1, -B - 1};
    static const float reals[B * C] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(false);
        maker_ints(&graph, "one", &cases[i].number, 1);
        maker_ints(&graph, "line", four, 4);
        maker_int_tensor(&graph, "scalar", NULL, 0, four);
        maker_floats(&graph, "square", square, 2, reals);
        maker_floats(&graph, "number", NULL, 0, reals);
        maker_floats(&graph, "row", row, 2, reals);
        maker_int_tensor(&graph, "integers", square, 2, zeros);
        maker_int_tensor(&graph, "deep", deep, 2, zeros);
        maker_int_tensor(&graph, "before", before, 2, far);
        maker_node(&node, cases[i].op, cases[i].in, "made");
        finish();
        onnx_net_refused(&graph, 17, RFX_STATUS_MALFORMED, cases[i].words);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_what_is_not_0),
        cmocka_unit_test(triangles),
        cmocka_unit_test(sums),
        cmocka_unit_test(updates),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
