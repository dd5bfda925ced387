/* Loading a shared library: see library.h. */
#include "layers/core/library.h"

#include <dlfcn.h>
#include <string.h>

enum rfx_status rfx_library_load(const char *name, const struct rfx_library_function *functions,
                                 size_t count, void *to, struct rfx_error *err) {
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) return rfx_fail(err, RFX_STATUS_IO, "%s", dlerror());
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; i < count && status == RFX_OK; i++) {
        void *symbol = dlsym(handle, functions[i].name);
        if (symbol == NULL && !functions[i].optional)
            status = rfx_fail(err, RFX_STATUS_IO, "%s has no %s", name, functions[i].name);
        /* ISO C cannot cast an object pointer to a function pointer; under POSIX both have the same
         * bits */
        memcpy((char *)to + functions[i].offset, &symbol, sizeof symbol);
    }
    (void)dlclose(handle); /* RTLD_NODELETE: the library stays loaded */
    return status;
}
