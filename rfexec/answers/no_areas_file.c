/* Replaces areas_file.c in builds without JSON: refuses to read areas. */
#include "rfexec/answers/areas_file.h"

size_t rfx_area_list_bytes(const char *path, size_t *areas) {
    (void)path;
    *areas = 0;
    return 0;
}

enum rfx_status rfx_area_list_read(struct rfx_area_list *list, struct rfx_memory *mem,
                                   const struct rfx_answer_options *options,
                                   const struct rfx_answer_text *text, const struct rfx_tensor *map,
                                   struct rfx_error *err) {
    (void)list, (void)mem, (void)text, (void)map;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "areas '%.200s': this build reads no GeoJSON (RFX_WITH_JSON=OFF)",
                    options->within);
}

const char *rfx_area_name(const struct rfx_area_list *list, int64_t k) {
    (void)list, (void)k;
    return NULL;
}

void rfx_area_list_release(struct rfx_area_list *list) {
    (void)list;
}
