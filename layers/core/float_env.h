/* The floating-point environment in which all values are computed. It is the default one (round to
 * nearest, subnormal numbers kept, no traps), whatever the host program has set for its threads.
 *
 * A value depends on the environment of the thread that computes it, and the threads of one run may
 * have different environments. So every thread enters the default environment before it computes
 * and restores its own environment afterwards. */
#ifndef RFX_LAYERS_CORE_FLOAT_ENV_H
#define RFX_LAYERS_CORE_FLOAT_ENV_H

#include <fenv.h>

struct rfx_float_env {
    fenv_t before;
};

/* Saves the calling thread's environment and sets the default one. */
struct rfx_float_env rfx_float_env_enter(void);

/* Restores the saved environment. Exception flags raised since rfx_float_env_enter are dropped. */
void rfx_float_env_leave(const struct rfx_float_env *env);

/* Declares a variable that holds the default environment until its block ends. */
#define RFX_DEFAULT_FLOAT_ENV                             \
    __attribute__((cleanup(rfx_float_env_leave), unused)) \
    const struct rfx_float_env rfx_host_env = rfx_float_env_enter()
#endif
