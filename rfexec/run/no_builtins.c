/* Replaces rfexec/builtin in builds without built-in networks: an empty table. */
#include <stddef.h>

#include "rfexec/run/model.h"

const struct rfx_builtin *rfx_builtin_list(int *count) {
    *count = 0;
    return NULL;
}

bool rfx_builtin_exists(const char *name) {
    (void)name;
    return false;
}

enum rfx_status rfx_builtin_build(struct rfx_memory *mem, const char *name,
                                  const struct rfx_load_options *options, struct rfx_graph **out,
                                  struct rfx_error *err) {
    (void)mem, (void)options, (void)out;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "'%s' is not a built-in network", name);
}
