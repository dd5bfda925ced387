/* Images that are filled up behind the public header against such as were so by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/api/network.h"
#include "tests/support/run/network_run.h"

enum { H = 19, W = 21, TO = 24, C = 3 };

static struct rfx_open_options options_of(enum rfx_padding padding, int64_t multiple) {
    struct rfx_open_options open;
    rfx_open_options_init(&open, sizeof open);
    open.rows = H;
    open.columns = W;
    open.pad_to = multiple;
    open.padding = padding;
    return open;
}

/* Where the value of row or column i of n comes from; -1: zero. */
static int origin(enum rfx_padding padding, int i, int n) {
    if (i < n) return i;
    if (padding == RFX_PADDING_ZERO) return -1;
    return padding == RFX_PADDING_EDGE ? n - 1 : 2 * (n - 1) - i;
}

static float *fill_up(const float *values, enum rfx_padding padding) {
    float *filled = calloc((size_t)C * TO * TO, sizeof *filled);
    assert_non_null(filled);
    for (int i = 0; i < C * TO * TO; i++) {
        int y = origin(padding, i / TO % TO, H), x = origin(padding, i % TO, W);
        if (y >= 0 && x >= 0) filled[i] = values[(i / (TO * TO) * H + y) * W + x];
    }
    return filled;
}

static struct network_outputs run(struct rfx_network *net, const float *values) {
    struct rfx_run_options options = network_run_options(0, 2);
    struct network_outputs outputs = network_outputs_for(net);
    struct rfx_why why;
    network_check(rfx_network_run_values(net, values, outputs.values, outputs.n, &options, &why),
                  &why);
    return outputs;
}

static void as_by_hand(void **state) {
    float *values = network_random_image(C, H, W);
    struct rfx_network *whole = network_open_sized("fsrcnn:2", TO, TO);
    (void)state;
    for (int p = RFX_PADDING_REFLECT; p <= RFX_PADDING_ZERO; p++) {
        struct rfx_open_options open = options_of((enum rfx_padding)p, 8);
        float *filled = fill_up(values, (enum rfx_padding)p);
        struct rfx_network *net = NULL;
        struct rfx_why why;
        network_check(rfx_network_open("fsrcnn:2", &open, &net, &why), &why);
        struct network_outputs got = run(net, values), want = run(whole, filled);
        assert_int_equal(got.elems[0], C * 2 * H * 2 * W);
        for (int i = 0; i < C * 2 * H; i++) {
            int c = i / (2 * H), y = i % (2 * H);
            assert_memory_equal(got.values[0] + (ptrdiff_t)i * 2 * W,
                                want.values[0] + ((ptrdiff_t)c * 2 * TO + y) * 2 * TO,
                                sizeof(float) * 2 * W);
        }
        network_outputs_free(&got);
        network_outputs_free(&want);
        rfx_network_free(net);
        free(filled);
    }
    rfx_network_free(whole);
    free(values);
}

static void refused(enum rfx_padding padding, int64_t multiple, const char *words) {
    struct rfx_open_options open = options_of(padding, multiple);
    struct rfx_network *net = NULL;
    struct rfx_why why;
    assert_int_equal(rfx_network_open("fsrcnn:2", &open, &net, &why), RFX_CODE_USAGE);
    if (strstr(why.text, words) == NULL) fail_msg("%s", why.text);
}

static void refusals(void **state) {
    (void)state;
    refused((enum rfx_padding)3, 8, "padding is 3");
    refused(RFX_PADDING_EDGE, 65537, "0 to 65536");
    refused(RFX_PADDING_EDGE, -1, "pad_to is -1");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_by_hand), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
