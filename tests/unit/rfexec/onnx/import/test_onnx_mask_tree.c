/* Masks as parts of one value, side by side: which of the masks they are. */
#include "rfexec/onnx/import/onnx_mask_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/test_net.h"

#define AXES 6

/* Windows of 2 x 2 pixels, 2 x 3 of them, on a map that was rolled by one row and one column. */
static const struct rfx_mask_windows windows = {2, 3, 2, 2, 1, 1};
static const int64_t sizes[AXES] = {2, 3, 2, 2, 2, 2};

enum form { ROWS, COLS, BOTH, NEITHER };

struct maker {
    struct rfx_graph *graph;
    enum form form;
    int constants[2]; /* false, true: of one element */
    int wrong;        /* which element is not what the form says; -1: none */
    int made;
};

static int constant(struct rfx_graph *graph, float value) {
    struct rfx_weight weight = {
        .source = RFX_WEIGHT_OWNED, .shape = {AXES, {1, 1, 1, 1, 1, 1}}, .elems = 1};
    struct rfx_node node = {.op = RFX_OP_CONST_PLAIN};
    assert_int_equal(rfx_graph_add_weight(graph, &weight, &node.attr.constant.weight, NULL),
                     RFX_OK);
    rfx_graph_owned_weight(graph, node.attr.constant.weight)[0] = value;
    node.attr.constant.shape = weight.shape;
    return test_net_add(graph, node, NULL, 0);
}

/* Whether a query does not see a key. */
static bool hides(enum form form, const int64_t *at) {
    bool rows = at[0] == 1 && at[2] != at[4], cols = at[1] == 2 && at[3] != at[5];
    return form == ROWS ? rows : form == COLS ? cols : form == BOTH && (rows || cols);
}

/* All elements at places that begin so, from `axis` on: as deep as there are axes. */
static int part(struct maker *m, int64_t *at, int axis) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_CONCAT, .attr.concat.axis = axis};
    int in[3];
    if (axis == AXES) {
        bool value = hides(m->form, at) != (m->made++ == m->wrong);
        return m->constants[value];
    }
    for (at[axis] = 0; at[axis] < sizes[axis]; at[axis]++) in[at[axis]] = part(m, at, axis + 1);
    return test_net_add(m->graph, node, in, (int)sizes[axis]);
}

static void check(enum form form, int wrong, bool rows, bool cols, bool both) {
    struct rfx_node image = {.op = RFX_OP_INPUT, .attr.input = {1, 2, 2}};
    struct rfx_node reshape = {.op = RFX_OP_RESHAPE, .attr.reshape.shape = {5, {1, 1, 6, 4, 4}}};
    struct maker m = {.form = form, .wrong = wrong};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_masks masks;
    int64_t at[AXES];
    bool known;
    assert_int_equal(rfx_graph_create(mem, "g", &m.graph, NULL), RFX_OK);
    (void)test_net_add(m.graph, image, NULL, 0);
    for (int i = 0; i < 2; i++) m.constants[i] = constant(m.graph, (float)i);
    int tree = part(&m, at, 0), last = test_net_add(m.graph, reshape, &tree, 1);
    assert_int_equal(rfx_mask_tree_check(m.graph, last, &windows, &masks, &known, NULL), RFX_OK);
    assert_true(known);
    if (masks.rows != rows || masks.cols != cols || masks.both != both)
        fail_msg("form %d, element %d: %d %d %d", (int)form, wrong, masks.rows, masks.cols,
                 masks.both);
    rfx_graph_free(m.graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void each_form(void **state) {
    (void)state;
    check(ROWS, -1, true, false, false);
    check(COLS, -1, false, true, false);
    check(BOTH, -1, false, false, true);
    check(NEITHER, -1, false, false, false);
}

/* One element that is not as it should be, wherever it lies, and it is no such mask. */
static void one_wrong_element(void **state) {
    (void)state;
    for (int wrong = 0; wrong < 96; wrong++) check(BOTH, wrong, false, false, false);
}

/* A tensor of other axes, and one whose elements are not alike, are not known. */
static void other_tensors(void **state) {
    (void)state;
    struct rfx_node image = {.op = RFX_OP_INPUT, .attr.input = {1, 2, 2}};
    struct rfx_node plain = {.op = RFX_OP_TO_PLAIN};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_masks masks;
    bool known = true;
    assert_int_equal(rfx_graph_create(mem, "g", &graph, NULL), RFX_OK);
    int in = test_net_add(graph, image, NULL, 0), last = test_net_add(graph, plain, &in, 1);
    assert_int_equal(rfx_mask_tree_check(graph, last, &windows, &masks, &known, NULL), RFX_OK);
    assert_false(known);
    const struct rfx_mask_windows one = {1, 1, 2, 2, 1, 1}; /* (1, 1, 2, 2), and no keys */
    assert_int_equal(rfx_mask_tree_check(graph, last, &one, &masks, &known, NULL), RFX_OK);
    assert_false(known);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_form),
                                       cmocka_unit_test(one_wrong_element),
                                       cmocka_unit_test(other_tensors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
