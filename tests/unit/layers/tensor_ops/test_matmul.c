/* Products of two computed tensors: with own kernels chains of fused multiply-adds, RFX_CONV_PART
 * at a time, bit by bit, for any number of threads; with OpenBLAS's close to the reference. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/kernels/kernels.h"
#include "tests/support/run/op_cases.h"

static struct rfx_tensor plain(int64_t b, int64_t rows, int64_t cols) {
    const struct rfx_shape shape = {3, {b, rows, cols}};
    return rfx_tensor_plain(&shape, b * rows * cols);
}

static const int64_t sizes[][5] = {/* matrices left and right, n, k, m */
                                   {1, 1, 1, 1, 1},     {1, 1, 49, 32, 49},  {3, 3, 7, 65, 16},
                                   {2, 1, 100, 9, 130}, {1, 4, 13, 200, 33}, {1, 1, 2, 3000, 5}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static void begin(struct op_case *c, size_t i, enum rfx_conv_choice choice) {
    const int64_t *s = sizes[i];
    const struct rfx_tensor inputs[2] = {plain(s[0], s[2], s[3]), plain(s[1], s[3], s[4])};
    op_case_begin(c, 2, inputs, i);
    c->graph->conv = choice;
    struct rfx_node node = {.op = RFX_OP_MATMUL, .act = {.slope = -1}};
    if (op_case_add(c, &node) != RFX_OK) fail_msg("%s", c->err.text);
}

static void check(struct op_case *c, size_t i) {
    char what[64];
    (void)snprintf(what, sizeof what, "product %zu", i);
    op_case_check(c, 1e-4, 6, what);
    op_case_end(c);
}

static void test_chains(void **state) {
    (void)state;
    if (rfx_kernels()->conv == NULL) skip(); /* no fused multiply-add: no promise */
    for (size_t i = 0; i < N_SIZES; i++) {
        struct op_case c;
        begin(&c, i, RFX_CONV_DIRECT);
        const int64_t *s = sizes[i], n = s[2], k = s[3], m = s[4];
        float *got = op_case_whole(&c);
        for (int64_t e = 0; e < c.graph->nodes[c.index].out.elems; e++) {
            int64_t b = e / (n * m), row = e / m % n, column = e % m;
            const float *x = c.values[0] + ((s[0] == 1 ? 0 : b) * n + row) * k;
            const float *w = c.values[1] + (s[1] == 1 ? 0 : b) * k * m + column;
            float acc = 0.0f;
            for (int64_t part = 0; part < k; part += RFX_CONV_PART) {
                float chain = 0.0f;
                for (int64_t j = part; j < k && j < part + RFX_CONV_PART; j++)
                    chain = fmaf(x[j], w[j * m], chain);
                acc = acc + chain;
            }
            if (memcmp(&acc, &got[e], sizeof acc) != 0)
                fail_msg("product %zu: element %lld is %.9g, the chains %.9g", i, (long long)e,
                         (double)got[e], (double)acc);
        }
        free(got);
        check(&c, i);
    }
}

static void test_openblas(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SIZES; i++) {
        struct op_case c;
        begin(&c, i, RFX_CONV_OPENBLAS);
        check(&c, i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_openblas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
