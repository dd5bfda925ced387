/* The default floating-point environment in the caller's thread and in those of a team, and the
 * caller's own one afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fenv.h>
#include <stdatomic.h>

#include "layers/core/float_env.h"
#include "layers/core/team.h"

static atomic_int others; /* iterations that ran in another mode than to nearest */

static void look(void *user, int64_t index, int thread) {
    (void)user;
    (void)index;
    (void)thread;
    if (fegetround() != FE_TONEAREST) (void)atomic_fetch_add(&others, 1);
}

static void share_looks(struct rfx_team *team, void *user) {
    rfx_team_for(team, 1000, look, user);
}

static void enter_and_share(int threads) {
    RFX_DEFAULT_FLOAT_ENV;
    rfx_team_run(threads, share_looks, NULL);
}

static void test_threads(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        assert_int_equal(fesetround(FE_UPWARD), 0); /* threads that start now would have it too */
        enter_and_share(threads);
        rfx_team_run(threads + 1, share_looks, NULL); /* the team enters by itself */
        assert_int_equal(fegetround(), FE_UPWARD);
        assert_int_equal(fesetround(FE_TONEAREST), 0);
        assert_int_equal(atomic_load(&others), 0);
    }
}

/* Division by zero neither traps where the caller wants traps, nor shows in his flags. */
static void test_flags(void **state) {
    (void)state;
    volatile double zero = 0.0;
    assert_int_equal(feclearexcept(FE_ALL_EXCEPT), 0);
    int traps = feenableexcept(FE_DIVBYZERO);
    {
        RFX_DEFAULT_FLOAT_ENV;
        volatile double infinite = 1.0 / zero;
        assert_true(infinite > 1.0);
    }
    assert_int_equal(fetestexcept(FE_DIVBYZERO), 0);
    if (traps != -1) assert_int_equal(fegetexcept(), FE_DIVBYZERO);
    (void)fedisableexcept(FE_ALL_EXCEPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_flags),
    };
    return cmocka_run_group_tests_name("float_env", tests, NULL, NULL);
}
