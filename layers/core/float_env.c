/* Implemented with the C library's fenv. FE_DFL_ENV also turns flush-to-zero and denormals-are-zero
 * off on x86-64 (MXCSR 0x1f80) and sets FPCR to 0 on AArch64. */
#include "layers/core/float_env.h"

struct rfx_float_env rfx_float_env_enter(void) {
    struct rfx_float_env env;
    (void)fegetenv(&env.before);
    (void)fesetenv(FE_DFL_ENV);
    return env;
}

void rfx_float_env_leave(const struct rfx_float_env *env) {
    (void)fesetenv(&env->before);
}
