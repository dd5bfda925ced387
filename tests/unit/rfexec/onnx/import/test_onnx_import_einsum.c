/* Conversion of Einsum: values against loops over all labels, what stays by rows, and refusals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/makers/onnx_net.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"

enum { C = 3, H = 4, W = 5, ELEMS = C * H * W };

static struct maker graph, node;
static float image[ELEMS], values[2 * ELEMS]; /* of x, and of a constant */

/* An equation of x (1, 3, 4, 5) and of a second operand: the image again (rank 0), a constant, or
 * none (rank -1). */
struct example {
    const char *equation, *letters; /* the second: with letters in the place of dots and blanks */
    int rank;
    int64_t dims[4];
    bool constant_first, by_rows;
};

static const struct example examples[] = {
    {"bchw->bhwc", "bchw->bhwc", -1, {0}, false, false},
    {"bchw->bc", "bchw->bc", -1, {0}, false, false},
    {"bchw", "bchw->bchw", -1, {0}, false, true},
    {"wchb", "wchb->bchw", -1, {0}, false, false},
    {"bchw->", "bchw->", -1, {0}, false, false},
    {"bchw,oc->bohw", "bchw,oc->bohw", 2, {6, 3}, false, true},
    {"bchw,co->bohw", "bchw,co->bohw", 2, {3, 6}, false, true},
    {"oc,bchw->bohw", "oc,bchw->bohw", 2, {6, 3}, true, true},
    {"bchw,bchw->bchw", "bchw,bchw->bchw", 0, {0}, false, true},
    {"bchw,bchw->bhw", "bchw,bchw->bhw", 0, {0}, false, false},
    {"bchw,bc->bchw", "bchw,bc->bchw", 2, {1, 3}, false, true},
    {"bchw,bcxw->bhx", "bchw,bcxw->bhx", 0, {0}, false, false},
    {"bchw,bcHW->bhwHW", "bchw,bcHW->bhwHW", 0, {0}, false, false},
    {"bchw,bchx->bhxw", "bchw,bchx->bhxw", 0, {0}, false, false},
    {"bchw,bchx->bhwx", "bchw,bchx->bhwx", 0, {0}, false, false},
    {"...hw,wk->...hk", "abhw,wk->abhk", 2, {5, 2}, false, false},
    {"bchw,w", "bchw,w->bch", 1, {5}, false, false},
    {"bchw,k->bchwk", "bchw,k->bchwk", 1, {2}, false, false},
    {"bchw,kw->bch", "bchw,kw->bch", 2, {2, 5}, false, false},
    {" b c h w , b c h w -> b ", "bchw,bchw->b", 0, {0}, false, false},
    {"...,...", "abcd,bcd->abcd", 3, {3, 4, 5}, false, true},
    {"...,...", "abcd,xcy->abcd", 3, {1, 4, 1}, false, true},
    {"...,...", "xcy,abcd->abcd", 3, {1, 4, 1}, true, true},
    {"...hw,...wk->...hk", "abhw,xwk->abhk", 3, {1, 5, 2}, false, false},
    {"bcHw", "bcHw->Hbcw", -1, {0}, false, false},
    {"bchw,bhcw->wb", "bchw,bhcw->wb", 4, {1, 4, 3, 5}, false, false},
    {"bchw,chkw->bkch", "bchw,chkw->bkch", 4, {3, 4, 2, 5}, false, false},
};

static void make(const char *equation, int rank, const int64_t *dims, bool constant_first) {
    static const int64_t four[] = {1, C, H, W};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", four, 4);
    if (rank > 0) maker_floats(&graph, "k", dims, rank, values);
    maker_node(&node, "Einsum",
               rank < 0         ? "x"
               : rank == 0      ? "x x"
               : constant_first ? "k x"
                                : "x k",
               "y");
    maker_attr_text(&node, "equation", equation);
    maker_message(&graph, MAKER_NODE, &node);
}

/* Extents of letters, and which each term has, of an equation without dots. */
struct labels {
    char all[16], terms[3][8];
    int64_t extent[128];
    int n;
};

static struct labels labels_of(const struct example *e) {
    static const int64_t four[] = {1, C, H, W};
    struct labels l = {.n = 0};
    int term = 0, at = 0;
    for (const char *p = e->letters; *p != '\0'; p++) {
        if (*p == ',' || *p == '-') {
            term = *p == ',' ? 1 : 2;
            at = 0;
            p += *p == '-';
            continue;
        }
        bool image_is = e->rank <= 0 || (term == 1) == e->constant_first;
        if (strchr(l.all, *p) == NULL) l.all[l.n++] = *p;
        if (term < 2) l.extent[(int)*p] = image_is ? four[at] : e->dims[at];
        l.terms[term][at++] = *p;
    }
    return l;
}

static int64_t index_of(const struct labels *l, const char *term, const int64_t *place) {
    int64_t index = 0;
    for (; *term != '\0'; term++) index = index * l->extent[(int)*term] + place[(int)*term];
    return index;
}

/* By its definition; returns how many elements there are. */
static int64_t naive(const struct example *e, double *out) {
    struct labels l = labels_of(e);
    int64_t place[128] = {0}, elems = 1;
    for (const char *p = l.terms[2]; *p != '\0'; p++) elems *= l.extent[(int)*p];
    for (int64_t i = 0; i < elems; i++) out[i] = 0.0;
    const float *first = e->constant_first ? values : image;
    const float *second = e->constant_first || e->rank == 0 ? image : values;
    for (;;) {
        double product = (double)first[index_of(&l, l.terms[0], place)];
        if (e->rank >= 0) product *= (double)second[index_of(&l, l.terms[1], place)];
        out[index_of(&l, l.terms[2], place)] += product;
        int k = 0;
        while (k < l.n && ++place[(int)l.all[k]] == l.extent[(int)l.all[k]])
            place[(int)l.all[k++]] = 0;
        if (k == l.n) return elems;
    }
}

static bool is_by_rows(const struct rfx_graph *net) {
    for (int i = 0; i < net->n_nodes; i++)
        if (!rfx_node_is_local(&net->nodes[i]) && !rfx_node_is_constant(&net->nodes[i]))
            return false;
    return true;
}

static void sums_of_products(void **state) {
    (void)state;
    static double wanted[ELEMS * ELEMS];
    struct test_rng rng = test_rng_make(7);
    test_rng_fill(&rng, image, ELEMS, -2.0f, 2.0f);
    test_rng_fill(&rng, values, 2 * ELEMS, -2.0f, 2.0f);
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *e = &examples[i];
        make(e->equation, e->rank, e->dims, e->constant_first);
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        int64_t elems = naive(e, wanted);
        if (elems != net->nodes[net->outputs[0].node].out.elems)
            fail_msg("%s: %lld elements", e->equation, (long long)elems);
        if (e->by_rows && !is_by_rows(net)) fail_msg("%s is not by rows", e->equation);
        float *made = test_run_output(net, image, 0);
        for (int64_t k = 0; k < elems; k++)
            if (!(fabs((double)made[k] - wanted[k]) < 2e-5 * fmax(1.0, fabs(wanted[k]))))
                fail_msg("%s [%lld]: %g, should be %g", e->equation, (long long)k, (double)made[k],
                         wanted[k]);
        free(made);
        onnx_net_discard(net);
    }
}

/* Of two constants, which nothing of the image is asked for. */
static void of_constants(void **state) {
    (void)state;
    static const int64_t four[] = {1, C, H, W}, h = H, w = W;
    static const float rows[H] = {1, -2, 3, 0.5f}, columns[W] = {2, 4, -1, 0, 8};
    static const float zeros[ELEMS] = {0};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", four, 4);
    maker_floats(&graph, "rows", &h, 1, rows);
    maker_floats(&graph, "columns", &w, 1, columns);
    maker_node(&node, "Einsum", "rows columns", "k");
    maker_attr_text(&node, "equation", "h,w->hw");
    maker_message(&graph, MAKER_NODE, &node);
    maker_node(&node, "Add", "x k", "y");
    maker_message(&graph, MAKER_NODE, &node);
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    float *made = test_run_output(net, zeros, 0);
    for (int i = 0; i < ELEMS; i++) assert_true(made[i] == rows[i / W % H] * columns[i % W]);
    free(made);
    onnx_net_discard(net);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *equation;
        int rank;
        enum rfx_status status;
        const char *words;
    } cases[] = {
        {"iijk->jk", -1, RFX_STATUS_UNSUPPORTED,
         "equation 'iijk->jk': a label twice in one term, a diagonal"},
        {"bchw->k", -1, RFX_STATUS_MALFORMED, "a label of the output in no operand"},
        {"bchw,bw", -1, RFX_STATUS_MALFORMED, "another number of terms than operands"},
        {"bchw", 0, RFX_STATUS_MALFORMED, "another number of terms than operands"},
        {"bchw,bchw,w", 0, RFX_STATUS_MALFORMED, "another number of terms than operands"},
        {"bch", -1, RFX_STATUS_MALFORMED, "equation 'bch': 3 axes of rank 4"},
        {"bch1", -1, RFX_STATUS_MALFORMED, "a character that is no label"},
        {"bchw,bcwh->bc", 0, RFX_STATUS_MALFORMED, "an axis of 5 and of 4"},
        {"b......w", -1, RFX_STATUS_MALFORMED, "a character that is no label"},
        {"...w->w", -1, RFX_STATUS_UNSUPPORTED, "a sum over the axes of '...'"},
        {"abcd,efgh->abcdefghi", 0, RFX_STATUS_UNSUPPORTED, "more than 8 axes"},
        {"", -1, RFX_STATUS_MALFORMED, "0 axes of rank 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make(cases[i].equation, cases[i].rank, NULL, false);
        onnx_net_refused(&graph, 17, cases[i].status, cases[i].words);
    }
    static const int64_t four[] = {1, C, H, W};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", four, 4);
    maker_node(&node, "Einsum", "x x x", "y");
    maker_attr_text(&node, "equation", "a,a,a->a");
    maker_message(&graph, MAKER_NODE, &node);
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "3 operands, only one and two");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_products),
        cmocka_unit_test(of_constants),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
