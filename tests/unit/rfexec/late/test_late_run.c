/* Programs of several late nodes: branches, memory and its limit, lack of memory, boxes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/late/late_boxes.h"
#include "rfexec/late/late_ops.h"
#include "rfexec/late/late_run.h"

static struct rfx_memory *mem;
static struct rfx_late *late;

static int set_up(void **state) {
    (void)state;
    mem = rfx_memory_create(0);
    late = rfx_late_create(mem);
    return late != NULL ? 0 : 1;
}

static int tear_down(void **state) {
    (void)state;
    rfx_late_free(late);
    late = NULL;
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return 0;
}

static int constant(enum rfx_type type, int64_t n, const void *values) {
    const struct rfx_shape shape = {1, {n}};
    void *data;
    int value = rfx_late_add_constant(late, type, &shape, &data);
    assert_true(value >= 0);
    memcpy(data, values, (size_t)n * rfx_type_bytes(type));
    return value;
}

/* Adds a node of two operands (b -1: of one) to a block and returns its result. */
static int add(struct rfx_late_block *block, const char *op, int a, int b) {
    struct rfx_late_node *node =
        rfx_late_add_node(late, block, rfx_late_op_find(op), op, b < 0 ? 1 : 2, 1);
    assert_non_null(node);
    node->in[0] = a;
    if (b >= 0) node->in[1] = b;
    node->out[0] = rfx_late_add_value(late, -1);
    return node->out[0];
}

static void output(const char *name, int value) {
    assert_non_null(rfx_late_add_output(late, name, value));
}

static enum rfx_status run_with(size_t most, struct rfx_late_run **run, struct rfx_error *err) {
    static struct rfx_graph graph;
    graph.late = late;
    enum rfx_status status = rfx_late_run_create(&graph, mem, most, run, err);
    return status == RFX_OK ? rfx_late_run_nodes(*run, err) : status;
}

static const int64_t three[3] = {1, 2, 3}, ten = 10, two = 2;
static const unsigned char yes = 1, no = 0;

/* An If: three + 10 or three * 10. A value from outside is read in both branches. */
static void add_branches(int condition, int x) {
    int number = constant(RFX_TYPE_INT64, 1, &ten);
    int sum = add(&late->block, "Add", x, number); /* read in one branch only */
    struct rfx_late_block *branches[2];
    for (int b = 0; b < 2; b++) {
        branches[b] = rfx_late_add_branch(late, 1);
        assert_non_null(branches[b]);
        branches[b]->out[0] =
            b == 0 ? add(branches[b], "Identity", sum, -1) : add(branches[b], "Mul", x, number);
    }
    int result = add(&late->block, "If", condition, -1);
    for (int b = 0; b < 2; b++) late->block.nodes[late->block.n - 1].branches[b] = branches[b];
    output("y", result);
}

static void a_condition_chooses(void **state) {
    (void)state;
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    static const int64_t sums[] = {11, 12, 13}, products[] = {10, 20, 30};
    int x = add(&late->block, "Identity", constant(RFX_TYPE_INT64, 3, three), -1);
    int yes_value = add(&late->block, "Identity", constant(RFX_TYPE_BOOL, 1, &yes), -1);
    add_branches(yes_value, x);
    add_branches(constant(RFX_TYPE_BOOL, 1, &no), x);
    assert_int_equal(run_with(0, &run, &err), RFX_OK);
    assert_memory_equal(rfx_late_run_output(run, 0)->data, sums, sizeof sums);
    assert_memory_equal(rfx_late_run_output(run, 1)->data, products, sizeof products);
    rfx_late_run_free(run);
}

static void a_condition_is_one_boolean(void **state) {
    (void)state;
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    int x = constant(RFX_TYPE_INT64, 3, three);
    add_branches(x, x);
    assert_int_equal(run_with(0, &run, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "late node 'If' (If): the condition has 3 elements of int64"));
    rfx_late_run_free(run);
}

enum { MANY = 1000, CHAIN = 50 };

/* A chain of sums of MANY numbers. */
static void add_chain(void) {
    static int64_t values[MANY];
    int x = constant(RFX_TYPE_INT64, MANY, values), one = constant(RFX_TYPE_INT64, 1, &two);
    for (int i = 0; i < CHAIN; i++) x = add(&late->block, "Add", x, one);
    output("y", x);
}

/* Two links are in memory at a time, however long the chain is. */
static void memory_is_freed_behind_the_last_reader(void **state) {
    (void)state;
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    add_chain();
    assert_int_equal(run_with(0, &run, &err), RFX_OK);
    assert_int_equal(rfx_late_run_high_water_bytes(run), 2 * MANY * sizeof(int64_t));
    assert_int_equal(((const int64_t *)rfx_late_run_output(run, 0)->data)[MANY - 1], 2 * CHAIN);
    rfx_late_run_free(run);
}

static void a_limit_is_kept(void **state) {
    (void)state;
    const size_t enough = 2 * MANY * sizeof(int64_t);
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    add_chain();
    assert_int_equal(run_with(enough, &run, &err), RFX_OK);
    rfx_late_run_free(run);
    run = NULL;
    assert_int_equal(run_with(enough - 1, &run, &err), RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "16000 bytes are needed beside the cut tensors, 15999 are"));
    rfx_late_run_free(run);
}

/* What only the branch that is not taken reads is freed with the If. */
static void memory_of_the_other_branch_is_freed(void **state) {
    (void)state;
    static int64_t values[MANY];
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    struct rfx_late_block *branches[2];
    int many = constant(RFX_TYPE_INT64, MANY, values), one = constant(RFX_TYPE_INT64, 1, &two);
    int read_there = add(&late->block, "Identity", many, -1);
    for (int b = 0; b < 2; b++) {
        branches[b] = rfx_late_add_branch(late, 1);
        assert_non_null(branches[b]);
        branches[b]->out[0] = add(branches[b], "Identity", b == 0 ? read_there : one, -1);
    }
    int y = add(&late->block, "If", constant(RFX_TYPE_BOOL, 1, &no), -1);
    for (int b = 0; b < 2; b++) late->block.nodes[late->block.n - 1].branches[b] = branches[b];
    output("y", y);
    output("z", add(&late->block, "Add", many, one));
    assert_int_equal(run_with(0, &run, &err), RFX_OK);
    assert_int_equal(rfx_late_run_high_water_bytes(run), (MANY + 2) * sizeof(int64_t));
    rfx_late_run_free(run);
}

/* Memory is taken over from an operand only if nobody reads it later. */
static void a_value_stays_for_later_readers(void **state) {
    (void)state;
    static const int64_t sums[] = {3, 4, 5};
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    int number = constant(RFX_TYPE_INT64, 1, &two);
    int x = add(&late->block, "Identity", constant(RFX_TYPE_INT64, 3, three), -1);
    output("a", add(&late->block, "Identity", x, -1));
    output("b", add(&late->block, "Add", x, number));
    assert_int_equal(run_with(0, &run, &err), RFX_OK);
    assert_memory_equal(rfx_late_run_output(run, 0)->data, three, sizeof three);
    assert_memory_equal(rfx_late_run_output(run, 1)->data, sums, sizeof sums);
    rfx_late_run_free(run);
}

/* Working memory of NonMaxSuppression counts too. */
static void suppression_is_limited(void **state) {
    (void)state;
    const struct rfx_shape boxes = {3, {1, 100, 4}}, scores = {3, {1, 1, 100}};
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    void *data;
    int a = rfx_late_add_constant(late, RFX_TYPE_FLOAT32, &boxes, &data);
    int b = rfx_late_add_constant(late, RFX_TYPE_FLOAT32, &scores, &data);
    output("y", add(&late->block, "NonMaxSuppression", a, b));
    assert_int_equal(run_with(1000, &run, &err), RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "(NonMaxSuppression): 1600 bytes are needed"));
    rfx_late_run_free(run);
}

/* More selected boxes than NonMaxSuppression has room for at first. */
static void many_boxes_are_selected(void **state) {
    (void)state;
    enum { BOXES = 200 };
    const struct rfx_shape boxes = {3, {1, BOXES, 4}}, scores = {3, {1, 1, BOXES}};
    const int64_t most = BOXES;
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    void *corners, *data;
    int in[3] = {rfx_late_add_constant(late, RFX_TYPE_FLOAT32, &boxes, &corners),
                 rfx_late_add_constant(late, RFX_TYPE_FLOAT32, &scores, &data),
                 constant(RFX_TYPE_INT64, 1, &most)};
    for (int i = 0; i < 4 * BOXES; i++) /* squares on a diagonal that do not touch */
        ((float *)corners)[i] = (float)(2 * (i / 4) + (i % 4 < 2 ? 0 : 1));
    struct rfx_late_node *node = rfx_late_add_node(
        late, &late->block, rfx_late_op_find("NonMaxSuppression"), "suppress", 3, 1);
    assert_non_null(node);
    memcpy(node->in, in, sizeof in);
    node->out[0] = rfx_late_add_value(late, -1);
    output("y", node->out[0]);
    assert_int_equal(run_with(0, &run, &err), RFX_OK);
    const struct rfx_late_tensor *y = rfx_late_run_output(run, 0);
    assert_int_equal(y->elems, 3 * BOXES);
    for (int i = 0; i < BOXES; i++) assert_int_equal(((const int64_t *)y->data)[3 * i + 2], i);
    rfx_late_run_free(run);
}

static bool is_asked_to_stop(void *user) {
    return *(bool *)user;
}

static void a_stop_is_obeyed(void **state) {
    (void)state;
    bool stop = false;
    struct rfx_late_run *run = NULL;
    struct rfx_graph graph = {.late = late};
    struct rfx_error err = {""};
    add_chain();
    assert_int_equal(rfx_late_run_create(&graph, mem, 0, &run, &err), RFX_OK);
    rfx_memory_set_stop(mem, is_asked_to_stop, &stop);
    stop = true;
    assert_int_equal(rfx_late_run_nodes(run, &err), RFX_STATUS_CANCELLED);
    rfx_late_run_free(run);
    rfx_memory_set_stop(mem, NULL, NULL);
}

/* Each allocation of a run may fail. */
static void memory_may_run_out(void **state) {
    (void)state;
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    int k = 0;
    int x = constant(RFX_TYPE_INT64, 3, three);
    add_branches(constant(RFX_TYPE_BOOL, 1, &no), x);
    output("places", add(&late->block, "NonZero", x, -1));
    for (; status != RFX_OK && k < 100; k++) {
        struct rfx_late_run *run = NULL;
        size_t before = rfx_memory_current_bytes(mem);
        rfx_memory_fail_after(mem, k);
        status = run_with(0, &run, NULL);
        if (status != RFX_OK) assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        rfx_late_run_free(run);
        rfx_memory_fail_after(mem, -1);
        assert_int_equal(rfx_memory_current_bytes(mem), before);
    }
    assert_true(k > 5 && k < 100);
}

/* --- boxes --- */

static void declare(const char *name, int value, enum rfx_type type, int rank, int64_t last) {
    struct rfx_late_output *made = rfx_late_add_output(late, name, value);
    assert_non_null(made);
    made->type = type;
    made->rank = rank;
    for (int i = 0; i < rank; i++) made->dims[i] = i == rank - 1 ? last : -1;
}

/* Two boxes, whatever the outputs' names and their order. */
static void three_outputs_become_boxes(void **state) {
    (void)state;
    static const float corners[8] = {1, 2, 3, 4, 5, 6, 7, 8}, scores[2] = {0.5F, 0.25F};
    static const int64_t labels[2] = {7, 16777217}, dims[2] = {2, 4};
    static const float wanted[12] = {1, 2, 3, 4, 0.5F, 7, 5, 6, 7, 8, 0.25F, 16777216};
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    int boxes = add(&late->block, "Reshape", constant(RFX_TYPE_FLOAT32, 8, corners),
                    constant(RFX_TYPE_INT64, 2, dims));
    declare("c", constant(RFX_TYPE_INT64, 2, labels), RFX_TYPE_INT64, 1, -1);
    declare("b", constant(RFX_TYPE_FLOAT32, 2, scores), RFX_TYPE_FLOAT32, 1, -1);
    declare("a", boxes, RFX_TYPE_FLOAT32, 2, 4);
    assert_false(rfx_late_has_boxes(late));
    assert_int_equal(rfx_late_join_boxes(late, &err), RFX_OK);
    assert_true(rfx_late_has_boxes(late));
    assert_int_equal(late->n_outputs, 4);
    assert_int_equal(run_with(0, &run, &err), RFX_OK);
    const struct rfx_late_tensor *found = rfx_late_run_output(run, 3);
    const struct rfx_shape shape = {3, {1, 2, 6}};
    assert_true(rfx_shape_equal(&found->shape, &shape));
    assert_memory_equal(found->data, wanted, sizeof wanted);
    rfx_late_run_free(run);
}

/* Adds an EfficientNMS_TRT of three boxes, of which one overlaps another, for at most `most`. */
static const struct rfx_late_node *add_plugin(int64_t most) {
    static const float corners[12] = {0, 0, 2, 2, 0, 0, 2, 1.5F, 4, 4, 6, 6};
    static const float scores[6] = {0.1F, 0.75F, 0.1F, 0.5F, 0.25F, 0.1F};
    const struct rfx_shape boxes = {3, {1, 3, 4}}, classes = {3, {1, 3, 2}};
    void *data;
    struct rfx_late_node *node =
        rfx_late_add_node(late, &late->block, rfx_late_op_find("EfficientNMS_TRT"), "plugin", 2, 4);
    assert_non_null(node);
    node->in[0] = rfx_late_add_constant(late, RFX_TYPE_FLOAT32, &boxes, &data);
    memcpy(data, corners, sizeof corners);
    node->in[1] = rfx_late_add_constant(late, RFX_TYPE_FLOAT32, &classes, &data);
    memcpy(data, scores, sizeof scores);
    for (int k = 0; k < 4; k++) node->out[k] = rfx_late_add_value(late, -1);
    node->ints[0] = most;
    node->ints[1] = -1;
    node->reals[0] = 0.2F;
    node->reals[1] = 0.5F;
    return node;
}

/* The results without the zeros behind them, whatever the outputs' names and their order. */
static void results_of_a_plugin_become_boxes(void **state) {
    (void)state;
    static const float wanted[12] = {0, 0, 2, 2, 0.75F, 1, 4, 4, 6, 6, 0.25F, 0};
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    const struct rfx_late_node *node = add_plugin(5);
    declare("c", node->out[3], RFX_TYPE_INT32, 2, 5);
    declare("s", node->out[2], RFX_TYPE_FLOAT32, 2, 5);
    declare("b", node->out[1], RFX_TYPE_FLOAT32, 3, 4);
    declare("n", node->out[0], RFX_TYPE_INT32, 2, 1);
    assert_int_equal(rfx_late_join_boxes(late, &err), RFX_OK);
    assert_true(rfx_late_has_boxes(late));
    assert_int_equal(run_with(0, &run, &err), RFX_OK);
    const struct rfx_late_tensor *found = rfx_late_run_output(run, 4);
    const struct rfx_shape shape = {3, {1, 2, 6}};
    assert_true(rfx_shape_equal(&found->shape, &shape));
    assert_memory_equal(found->data, wanted, sizeof wanted);
    rfx_late_run_free(run);
}

/* A result that the model changes before it gives it out. */
static void other_results_of_a_plugin_are_no_boxes(void **state) {
    (void)state;
    static const float twice = 2;
    struct rfx_error err = {""};
    const struct rfx_late_node *node = add_plugin(5);
    const int boxes = node->out[1];
    declare("c", node->out[3], RFX_TYPE_INT32, 2, 5);
    declare("s", node->out[2], RFX_TYPE_FLOAT32, 2, 5);
    declare("n", node->out[0], RFX_TYPE_INT32, 2, 1);
    declare("n2", node->out[0], RFX_TYPE_INT32, 2, 1);
    declare("b", add(&late->block, "Mul", boxes, constant(RFX_TYPE_FLOAT32, 1, &twice)),
            RFX_TYPE_FLOAT32, 3, 4);
    assert_int_equal(rfx_late_join_boxes(late, &err), RFX_OK);
    assert_false(rfx_late_has_boxes(late));
}

/* Each allocation may fail, and working memory counts: 3 candidates of 16 bytes and 3 boxes of
 * 24; then 3 boxes and results of 24 bytes for each of 4 boxes and 4 for their number. */
static void memory_of_a_plugin_is_counted(void **state) {
    (void)state;
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    const struct rfx_late_node *node = add_plugin(4);
    const int results[4] = {node->out[0], node->out[1], node->out[2], node->out[3]};
    for (int k = 0; k < 4; k++) output("y", results[k]);
    int k = 0;
    for (; status != RFX_OK && k < 100; k++) {
        const size_t before = rfx_memory_current_bytes(mem);
        rfx_memory_fail_after(mem, k);
        status = run_with(0, &run, NULL);
        if (status != RFX_OK) assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        if (status == RFX_OK) assert_int_equal(rfx_late_run_high_water_bytes(run), 3 * 24 + 100);
        rfx_late_run_free(run);
        run = NULL;
        rfx_memory_fail_after(mem, -1);
        assert_int_equal(rfx_memory_current_bytes(mem), before);
    }
    assert_int_equal(k, 10); /* three of the run, two lists, four results; then all work */
    assert_int_equal(run_with(3 * 24 + 99, &run, &err), RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "(EfficientNMS_TRT): 172 bytes are needed"));
    rfx_late_run_free(run);
}

static void boxes_of_other_numbers_are_refused(void **state) {
    (void)state;
    static const float corners[4] = {1, 2, 3, 4}, scores[2] = {0.5F, 0.25F};
    static const int64_t labels[2] = {7, 8}, dims[2] = {1, 4};
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    int boxes = add(&late->block, "Reshape", constant(RFX_TYPE_FLOAT32, 4, corners),
                    constant(RFX_TYPE_INT64, 2, dims));
    declare("boxes", boxes, RFX_TYPE_FLOAT32, -1, 0);
    declare("scores", constant(RFX_TYPE_FLOAT32, 2, scores), RFX_TYPE_FLOAT32, -1, 0);
    declare("labels", constant(RFX_TYPE_INT64, 2, labels), RFX_TYPE_INT64, -1, 0);
    assert_int_equal(rfx_late_join_boxes(late, &err), RFX_OK);
    assert_int_equal(run_with(0, &run, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "'detections' (Concat): 1x4 float32 and 2x1 float32"));
    rfx_late_run_free(run);
}

static void only_known_outputs_are_boxes(void **state) {
    (void)state;
    static const struct {
        enum rfx_type type;
        int rank;
        int64_t last;
        bool boxes;
    } cases[] = {{RFX_TYPE_FLOAT32, 3, 6, true},
                 {RFX_TYPE_FLOAT32, 3, 7, false},
                 {RFX_TYPE_INT64, 3, 6, false},
                 {RFX_TYPE_FLOAT32, 2, 6, false}};
    struct rfx_error err = {""};
    int x = constant(RFX_TYPE_INT64, 3, three);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        late->n_outputs = 0;
        declare("y", x, cases[i].type, cases[i].rank, cases[i].last);
        late->outputs[0].dims[0] = 1;
        assert_int_equal(rfx_late_join_boxes(late, &err), RFX_OK);
        assert_int_equal(rfx_late_has_boxes(late), cases[i].boxes);
        rfx_memory_release(mem, late->outputs[0].name);
    }
    late->n_outputs = 0;
    declare("a", x, RFX_TYPE_FLOAT32, 1, -1); /* two that could be scores */
    declare("b", x, RFX_TYPE_FLOAT32, 1, -1);
    declare("c", x, RFX_TYPE_FLOAT32, 2, 4);
    declare("d", x, RFX_TYPE_INT64, 1, -1);
    assert_int_equal(rfx_late_join_boxes(late, &err), RFX_OK);
    assert_false(rfx_late_has_boxes(late));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Two outputs of 3 x 8 and 3 bytes; the floats of one of them are 12 bytes more. */
static void outputs_become_floats(void **state) {
    static const int64_t ones[] = {1, -1, 1}, twos[] = {2, 3, INT64_C(1) << 40};
    static const float sums[] = {3, 2, 0x1p40F}, truths[] = {1, 0, 1};
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {{0}};
    float *floats = NULL;
    (void)state;
    int a = constant(RFX_TYPE_INT64, 3, ones), b = constant(RFX_TYPE_INT64, 3, twos);
    output("sum", add(&late->block, "Add", a, b));
    output("equal",
           add(&late->block, "Equal", a, constant(RFX_TYPE_INT64, 3, (int64_t[]){1, 1, 1})));
    assert_int_equal(run_with(39, &run, &err), RFX_OK);
    assert_int_equal(rfx_late_run_floats(run, 0, &floats, &err), RFX_OK);
    assert_memory_equal(floats, sums, sizeof sums);
    rfx_memory_release(mem, floats);
    assert_int_equal(rfx_late_run_floats(run, 1, &floats, &err), RFX_OK);
    assert_memory_equal(floats, truths, sizeof truths);
    rfx_memory_release(mem, floats);
    rfx_late_run_free(run);
    assert_int_equal(run_with(38, &run, &err), RFX_OK);
    assert_int_equal(rfx_late_run_floats(run, 1, &floats, &err), RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "output 'equal': 39 bytes are needed"));
    assert_non_null(strstr(err.text, "38 are allowed"));
    rfx_late_run_free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_condition_chooses),
        TEST(a_condition_is_one_boolean),
        TEST(memory_is_freed_behind_the_last_reader),
        TEST(a_limit_is_kept),
        TEST(memory_of_the_other_branch_is_freed),
        TEST(a_value_stays_for_later_readers),
        TEST(suppression_is_limited),
        TEST(many_boxes_are_selected),
        TEST(a_stop_is_obeyed),
        TEST(memory_may_run_out),
        TEST(three_outputs_become_boxes),
        TEST(results_of_a_plugin_become_boxes),
        TEST(other_results_of_a_plugin_are_no_boxes),
        TEST(memory_of_a_plugin_is_counted),
        TEST(boxes_of_other_numbers_are_refused),
        TEST(only_known_outputs_are_boxes),
        TEST(outputs_become_floats),
    };
    return cmocka_run_group_tests_name("late_run", tests, NULL, NULL);
}
