/* Loading a shared library while the program runs, for what few runs need: its functions into a
 * table of pointers. A loaded library stays for the life of the process, so loading it again costs
 * nothing. */
#ifndef RFX_LAYERS_CORE_LIBRARY_H
#define RFX_LAYERS_CORE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "layers/core/status.h"

/* A function, and where in the table its pointer goes. */
struct rfx_library_function {
    const char *name;
    size_t offset;
    bool optional; /* NULL in the table where the library has none */
};

/* Fills the table at `to` from the library `name`, as the loader finds it: one of that name that
 * the process has already, then the run path of the program, then the system's. IO, with the
 * loader's own words, when there is none, it does not load or lacks a function. */
RFX_NODISCARD enum rfx_status rfx_library_load(const char *name,
                                               const struct rfx_library_function *functions,
                                               size_t count, void *to, struct rfx_error *err);
#endif
