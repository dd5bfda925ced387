/* Loads a shared library while the program runs and stores its functions in a table of pointers.
 * This is for libraries that only few runs need. A loaded library stays until the process ends, so
 * loading it again costs nothing. */
#ifndef RFX_LAYERS_CORE_LIBRARY_H
#define RFX_LAYERS_CORE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "layers/core/status.h"

/* A function of the library and the offset of its pointer in the table. */
struct rfx_library_function {
    const char *name;
    size_t offset;
    bool optional; /* if the library lacks it, the pointer is NULL; else loading fails */
};

/* Fills the table at `to` from the library `name`. The loader takes a library of this name that the
 * process has already loaded; otherwise it searches the program's run path, then the system's.
 * Returns IO, with the loader's text, when no library is found, it cannot be loaded or it lacks a
 * function that is not optional. */
RFX_NODISCARD enum rfx_status rfx_library_load(const char *name,
                                               const struct rfx_library_function *functions,
                                               size_t count, void *to, struct rfx_error *err);
#endif
