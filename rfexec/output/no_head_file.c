/* Replaces head_file.c in builds without JSON: refuses to read heads. */
#include "rfexec/output/head_file.h"

bool rfx_head_is_file(const char *head) {
    (void)head;
    return false;
}

enum rfx_status rfx_head_file_read(struct rfx_memory *mem, const char *path,
                                   struct rfx_detector *out, struct rfx_error *err) {
    (void)mem, (void)out;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "head '%.200s': this build reads no JSON (RFX_WITH_JSON=OFF)", path);
}
