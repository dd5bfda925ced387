/* Replaces plan_file.c in builds without plan files: refuses to read and write them. */
#include "tiler/plan/plan_file.h"

#define REFUSAL "this build has no plan files (RFX_WITH_JSON=OFF)"

enum rfx_status rfx_plan_file_read(const struct rfx_graph *graph, const char *path,
                                   struct rfx_plan_file **out, struct rfx_error *err) {
    (void)graph, (void)out;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "plan file '%.200s': " REFUSAL, path);
}

void rfx_plan_file_free(struct rfx_plan_file *file) {
    (void)file;
}

void rfx_plan_file_apply(const struct rfx_plan_file *file, struct rfx_plan_request *request) {
    (void)file, (void)request;
}

enum rfx_status rfx_plan_file_text(const struct rfx_plan *plan, const char *model, char **text,
                                   struct rfx_error *err) {
    (void)plan, (void)model, (void)text;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED, REFUSAL);
}
