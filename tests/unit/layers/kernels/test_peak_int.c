/* The kernel that measures the peak of integer convolutions does the multiply-adds that it is paid
 * for. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "layers/kernels/kernels.h"

static const char *const variants[] = {"base", "avx2", "avxvnni", "avx512", "avx512vnni", "neon"};

/* Products that are added to a sum together: those of four bytes or of a pair of int16. */
static int64_t products_of(const struct rfx_kernels *kernels) {
    if (kernels->int_bytes) return 4;
#if defined(__SSE2__) || defined(__aarch64__)
    return 2;
#else
    return 1;
#endif
}

/* Every sum, and nothing behind them. */
static void every_sum_takes_every_product(void **state) {
    static const struct {
        uint8_t x;
        int8_t w;
        int64_t rounds, start;
    } cases[] = {
        {1, 1, 1000, 0},
        {255, -128, 3, 5},
        {200, 127, 77, -1000000},
        {7, -1, 1, 0},
        {255, 127, 50000, 0}, /* wraps around */
        {3, 5, 0, INT32_MIN} /* stays */,
    };
    int sets = 0;
    (void)state;
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        const struct rfx_kernels *kernels = rfx_kernels_find(variants[v]);
        if (kernels == NULL) continue;
        const int64_t products = products_of(kernels);
        sets++;
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            int32_t sums[RFX_PEAK_SUMS + 1];
            for (int i = 0; i <= RFX_PEAK_SUMS; i++) sums[i] = (int32_t)(cases[c].start + i);
            int done = kernels->peak_int(cases[c].x, cases[c].w, cases[c].rounds, sums);
            assert_int_equal(done % products, 0);
            const int64_t n = done / products, each = products * cases[c].x * cases[c].w;
            assert_in_range(n, 16, RFX_PEAK_SUMS);
            for (int i = 0; i <= RFX_PEAK_SUMS; i++) {
                int64_t want = cases[c].start + i + (i < n ? each * cases[c].rounds : 0);
                if ((uint32_t)sums[i] != (uint32_t)want)
                    fail_msg("%s, case %zu: sum %d is %d, not %d", kernels->name, c, i,
                             (int)sums[i], (int)(int32_t)(uint32_t)want);
            }
        }
    }
    assert_true(sets > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_sum_takes_every_product)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
