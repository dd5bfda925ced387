/* The kernel that measures the peak does the multiply-adds that it is paid for. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "layers/kernels/kernels.h"

static const char *const variants[] = {"base", "avx2", "avx512"};

/* Every sum, and nothing behind them: values that floats hold exactly. */
static void every_sum_takes_every_round(void **state) {
    static const struct {
        float factor, term, start;
        int64_t rounds;
        float want; /* and the sum's number times factor^rounds */
        float per_number;
    } cases[] = {
        {1.0f, 1.0f, 0.0f, 1000, 1000.0f, 1.0f},
        {0.5f, 1.0f, 0.0f, 3, 1.75f, 0.125f}, /* 1 + (1 + 1/2) / 2 */
        {2.0f, -3.0f, 5.0f, 4, 35.0f, 16.0f}, /* 16 * 5 - 3 * 15 */
        {2.0f, 1.0f, 7.0f, 0, 7.0f, 1.0f},
    };
    (void)state;
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        const struct rfx_kernels *kernels = rfx_kernels_find(variants[v]);
        if (kernels == NULL) continue;
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            float sums[RFX_PEAK_SUMS + 1];
            for (int i = 0; i <= RFX_PEAK_SUMS; i++) sums[i] = cases[c].start + (float)i;
            int n = kernels->peak(cases[c].factor, cases[c].term, cases[c].rounds, sums);
            assert_in_range(n, 32, RFX_PEAK_SUMS); /* 8 chains of 4 floats at the least */
            for (int i = 0; i <= RFX_PEAK_SUMS; i++) {
                float want = i < n ? cases[c].want + cases[c].per_number * (float)i
                                   : cases[c].start + (float)i;
                if (sums[i] != want)
                    fail_msg("%s, case %zu: sum %d is %.9g, not %.9g", kernels->name, c, i,
                             (double)sums[i], (double)want);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_sum_takes_every_round)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
