/* Elements and slices read and written where computed indices say, against the naive reference;
 * what indices that lie outside make of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/run/op_cases.h"
#include "tests/support/test_net.h"

static struct rfx_node index_node(enum rfx_op op, enum rfx_index_kind kind, int axis) {
    struct rfx_node node = {.op = op, .act = {.slope = -1}};
    node.attr.index.kind = kind;
    node.attr.index.axis = axis;
    return node;
}

/* What a case is about: `picked` is what the indices speak of. */
struct form {
    enum rfx_index_kind kind;
    int axis;
    struct rfx_shape data, indices, picked;
};

static const struct form forms[] = {
    {RFX_INDEX_ELEMENTS, 0, {1, {5}}, {1, {3}}, {1, {3}}},
    {RFX_INDEX_ELEMENTS, 1, {3, {3, 4, 5}}, {3, {3, 9, 5}}, {3, {3, 9, 5}}},
    {RFX_INDEX_ELEMENTS, 1, {3, {3, 4, 5}}, {3, {2, 6, 3}}, {3, {2, 6, 3}}},
    {RFX_INDEX_ELEMENTS, 2, {3, {3, 4, 5}}, {3, {1, 4, 2}}, {3, {1, 4, 2}}},
    {RFX_INDEX_TUPLES, 0, {1, {7}}, {2, {4, 1}}, {1, {4}}},
    {RFX_INDEX_TUPLES, 0, {3, {3, 4, 5}}, {2, {6, 2}}, {2, {6, 5}}},
    {RFX_INDEX_TUPLES, 0, {3, {3, 4, 5}}, {1, {3}}, {0, {0}}},
    {RFX_INDEX_TUPLES, 0, {3, {3, 4, 5}}, {3, {2, 4, 1}}, {4, {2, 4, 4, 5}}},
    {RFX_INDEX_TUPLES, 1, {3, {3, 4, 5}}, {3, {3, 7, 1}}, {3, {3, 7, 5}}},
    {RFX_INDEX_TUPLES, 2, {4, {2, 3, 4, 5}}, {4, {2, 3, 6, 2}}, {3, {2, 3, 6}}},
    {RFX_INDEX_TUPLES, 1, {2, {3, 4}}, {2, {3, 1}}, {1, {3}}},
    {RFX_INDEX_SLICES, 0, {2, {5, 3}}, {1, {8}}, {2, {8, 3}}},
    {RFX_INDEX_SLICES, 1, {3, {2, 5, 3}}, {2, {2, 4}}, {4, {2, 2, 4, 3}}},
    {RFX_INDEX_SLICES, 2, {3, {2, 5, 3}}, {0, {0}}, {2, {2, 5}}},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

/* The axis that index number i is one of. */
static int64_t extent_of(const struct form *f, int64_t i) {
    bool tuples = f->kind == RFX_INDEX_TUPLES;
    return f->data.dims[f->axis + (tuples ? i % f->indices.dims[f->indices.rank - 1] : 0)];
}

static void set_indices(struct op_case *c, const struct form *f) {
    struct rfx_tensor t = op_case_plain(f->indices);
    float *values = test_floats(t.elems);
    for (int64_t i = 0; i < t.elems; i++) {
        int64_t n = extent_of(f, i);
        values[i] = (float)test_rng_int(&c->rng, -n, n - 1);
    }
    op_case_set(c, 1, values);
    free(values);
}

static void test_picks(void **state) {
    (void)state;
    for (int i = 0; i < N_FORMS * 3; i++) {
        const struct form *f = &forms[i % N_FORMS];
        const struct rfx_tensor inputs[2] = {op_case_plain(f->data), op_case_plain(f->indices)};
        struct rfx_node node = index_node(RFX_OP_PICK, f->kind, f->axis);
        struct op_case c;
        char what[32];
        op_case_begin(&c, 2, inputs, (uint64_t)i);
        set_indices(&c, f);
        if (op_case_add(&c, &node) != RFX_OK) fail_msg("form %d: %s", i % N_FORMS, c.err.text);
        (void)snprintf(what, sizeof what, "pick, form %d", i % N_FORMS);
        op_case_check(&c, 0.0, 2, what);
        op_case_end(&c);
    }
}

static void begin_scatter(struct op_case *c, const struct form *f, enum rfx_scatter_kind kind,
                          uint64_t seed) {
    const struct rfx_tensor inputs[3] = {op_case_plain(f->data), op_case_plain(f->indices),
                                         op_case_plain(f->picked)};
    struct rfx_node node = index_node(RFX_OP_SCATTER, f->kind, f->axis);
    node.attr.index.scatter = kind;
    op_case_begin(c, 3, inputs, seed);
    set_indices(c, f);
    if (op_case_add(c, &node) != RFX_OK) fail_msg("%s", c->err.text);
}

/* More updates than places: several go to one, in their order. */
static void test_scatters(void **state) {
    (void)state;
    for (int i = 0; i < N_FORMS * 5; i++) {
        const struct form *f = &forms[i % N_FORMS];
        struct op_case c;
        char what[48];
        if (f->kind == RFX_INDEX_SLICES) continue;
        begin_scatter(&c, f, (enum rfx_scatter_kind)(i / N_FORMS), (uint64_t)i);
        (void)snprintf(what, sizeof what, "scatter %d, form %d", i / N_FORMS, i % N_FORMS);
        op_case_check(&c, 0.0, 2, what);
        op_case_end(&c);
    }
}

/* NaN as ONNX Runtime has it: what is not larger gives way. */
static void test_nan_updates(void **state) {
    (void)state;
    static const struct form f = {RFX_INDEX_ELEMENTS, 0, {1, {4}}, {1, {4}}, {1, {4}}};
    static const float data[4] = {1, NAN, 3, 4}, where[4] = {0, 1, 2, 3};
    static const float updates[4] = {NAN, 2, NAN, 7};
    static const float want[2][4] = {{NAN, 2, NAN, 7}, {NAN, 2, NAN, 4}};
    for (int i = 0; i < 2; i++) {
        struct op_case c;
        begin_scatter(&c, &f, i == 0 ? RFX_SCATTER_MAX : RFX_SCATTER_MIN, 1);
        op_case_set(&c, 0, data);
        op_case_set(&c, 1, where);
        op_case_set(&c, 2, updates);
        float *got = op_case_whole(&c);
        for (int k = 0; k < 4; k++)
            if (!(got[k] == want[i][k] || (isnan(got[k]) && isnan(want[i][k]))))
                fail_msg("%s: element %d is %g", i == 0 ? "max" : "min", k, (double)got[k]);
        free(got);
        op_case_end(&c);
    }
}

/* One bad index among good ones: it picks NaN, and spoils all that is scattered into. */
static void test_outside(void **state) {
    (void)state;
    static const float bad[] = {5, -6, NAN, 0.5f, INFINITY, 1e30f, -1e30f};
    static const struct form f = {RFX_INDEX_ELEMENTS, 0, {1, {5}}, {1, {3}}, {1, {3}}};
    static const struct rfx_shape five = {1, {5}}, three = {1, {3}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const float where[3] = {1, bad[i], -5};
        const struct rfx_tensor inputs[2] = {op_case_plain(five), op_case_plain(three)};
        struct rfx_node node = index_node(RFX_OP_PICK, RFX_INDEX_ELEMENTS, 0);
        struct op_case c;
        op_case_begin(&c, 2, inputs, 1);
        op_case_set(&c, 1, where);
        assert_int_equal(op_case_add(&c, &node), RFX_OK);
        float *got = op_case_whole(&c);
        assert_true(got[0] == c.values[0][1] && isnan(got[1]) && got[2] == c.values[0][0]);
        free(got);
        op_case_end(&c);
        begin_scatter(&c, &f, RFX_SCATTER_ADD, 1);
        op_case_set(&c, 1, where);
        got = op_case_whole(&c);
        for (int k = 0; k < 5; k++) assert_true(isnan(got[k]));
        free(got);
        op_case_end(&c);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        struct form form;
        const char *why; /* NULL: only the updates are wrong */
    } cases[] = {
        {{RFX_INDEX_ELEMENTS, 1, {1, {5}}, {1, {3}}, {1, {3}}}, "no such axis"},
        {{RFX_INDEX_ELEMENTS, 0, {2, {5, 2}}, {1, {3}}, {1, {3}}}, "reach beyond the data"},
        {{RFX_INDEX_ELEMENTS, 0, {2, {5, 2}}, {2, {3, 3}}, {2, {3, 3}}}, "reach beyond the data"},
        {{RFX_INDEX_TUPLES, 0, {2, {5, 2}}, {2, {4, 3}}, {1, {4}}}, "more axes than there are"},
        {{RFX_INDEX_TUPLES, 1, {2, {5, 2}}, {2, {4, 1}}, {1, {4}}}, "other sizes before the axis"},
        {{RFX_INDEX_TUPLES, 0, {2, {5, 2}}, {0, {0}}, {1, {4}}}, "no such axis"},
        {{RFX_INDEX_TUPLES, 0, {8, {1, 1, 1, 1, 1, 1, 1, 1}}, {3, {1, 1, 1}}, {1, {1}}},
         "a result of too many axes"},
        {{RFX_INDEX_TUPLES, 0, {2, {5, 2}}, {2, {4, 1}}, {2, {4, 1}}}, NULL},
        {{RFX_INDEX_TUPLES, 0, {2, {5, 2}}, {2, {4, 1}}, {3, {4, 2, 1}}}, NULL},
        {{RFX_INDEX_SLICES, 0, {1, {5}}, {1, {4}}, {1, {4}}}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct form *f = &cases[i].form;
        for (int scatter = cases[i].why == NULL ? 1 : 0; scatter < 2; scatter++) {
            const struct rfx_tensor inputs[3] = {op_case_plain(f->data), op_case_plain(f->indices),
                                                 op_case_plain(f->picked)};
            struct rfx_node node =
                index_node(scatter ? RFX_OP_SCATTER : RFX_OP_PICK, f->kind, f->axis);
            const char *why = cases[i].why != NULL          ? cases[i].why
                              : f->kind == RFX_INDEX_SLICES ? "slices are not scattered"
                                                            : "updates of another shape";
            op_case_refused(&node, 2 + scatter, inputs, why);
        }
    }
}

/* An axis with more elements than float32 can number is refused. */
static void test_too_long(void **state) {
    (void)state;
    for (int64_t more = 0; more < 2; more++) {
        struct test_net net = test_net_begin(1, 1, 1);
        int line = test_net_line(&net, ((int64_t)1 << 24) + more), index;
        struct rfx_error err = {{0}};
        enum rfx_status status = test_net_try(&net, index_node(RFX_OP_PICK, RFX_INDEX_SLICES, 0),
                                              line, test_net_line(&net, 1), &index, &err);
        assert_int_equal(status, more == 0 ? RFX_OK : RFX_STATUS_UNSUPPORTED);
        if (more == 1) assert_non_null(strstr(err.text, "16777217 elements, more than float32"));
        test_net_end(&net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_picks),       cmocka_unit_test(test_scatters),
        cmocka_unit_test(test_nan_updates), cmocka_unit_test(test_outside),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
