/* Repeat: lines of rows and of columns in every mixture, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/run/op_cases.h"

enum { MOST_CHANNELS = 7 };

static struct rfx_node form(struct op_case *c, int64_t across, int64_t down, int64_t h, int64_t w,
                            int64_t count, int64_t *map) {
    const int64_t columns[2] = {across, w}, rows[2] = {down, h};
    struct rfx_node node = {.op = RFX_OP_REPEAT};
    node.attr.repeat.across = across == 0 ? -1 : op_case_weight(c, 2, columns, -1.0f, 1.0f);
    node.attr.repeat.down = down == 0 ? -1 : op_case_weight(c, 2, rows, -1.0f, 1.0f);
    node.attr.repeat.h = h;
    node.attr.repeat.w = w;
    node.attr.repeat.count = count;
    node.attr.repeat.map = map;
    return node;
}

static void mixtures(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {1, 9}, {8, 1}, {5, 7}, {33, 21}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int64_t lines = 1; lines < 16; lines++) { /* across: bits 0, 1; down: bits 2, 3 */
            struct op_case c;
            char what[64];
            int64_t map[MOST_CHANNELS];
            op_case_begin(&c, 0, NULL, (uint64_t)lines);
            int64_t across = lines & 3, down = lines >> 2, n = 1 + lines % MOST_CHANNELS;
            for (int64_t i = 0; i < n; i++)
                map[i] = i < across + down ? i : test_rng_int(&c.rng, 0, across + down - 1);
            struct rfx_node node = form(&c, across, down, sizes[s][0], sizes[s][1], n, map);
            (void)snprintf(what, sizeof what, "%dx%d, lines %d", (int)sizes[s][0], (int)sizes[s][1],
                           (int)lines);
            if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
            op_case_check(&c, 0.0, 6, what);
            op_case_end(&c);
        }
}

/* A map of constants holds its lines alone. */
static void bytes(void **state) {
    (void)state;
    int64_t map[3] = {1, 0, 1};
    struct op_case c;
    op_case_begin(&c, 0, NULL, 1);
    struct rfx_node node = form(&c, 1, 1, 50, 70, 3, map);
    assert_int_equal(op_case_add(&c, &node), RFX_OK);
    const struct rfx_node *added = &c.graph->nodes[c.index];
    assert_int_equal(rfx_op_packed_bytes(c.graph, added), (50 + 70) * sizeof(float));
    assert_true(rfx_node_is_local(added));
    op_case_end(&c);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        int64_t w, last;
        const char *why;
    } cases[] = {
        {7, 2, "channel 2 of 2"}, {7, -1, "channel -1 of 2"}, {6, 1, "7 values for 6 positions"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t map[2] = {0, cases[i].last};
        struct op_case c;
        op_case_begin(&c, 0, NULL, 1);
        struct rfx_node node = form(&c, 1, 1, 5, 7, 2, map);
        node.attr.repeat.w = cases[i].w;
        assert_int_equal(op_case_add(&c, &node), RFX_STATUS_MALFORMED);
        assert_non_null(strstr(c.err.text, cases[i].why));
        op_case_end(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(mixtures), cmocka_unit_test(bytes),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
