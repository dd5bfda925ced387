/* Replaces rounds.c in builds without JSON: every function fails, because rounds of states need
 * JSON. */
#include "rfexec/api/api_support.h"

static enum rfx_code refuse(struct rfx_why *why) {
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_fail(&err, RFX_STATUS_UNSUPPORTED,
                                      "this build has no rounds of states (RFX_WITH_JSON=OFF)");
    return rfx_api_result(status, &err, why);
}

const void *rfx_bytes_data(const struct rfx_bytes *bytes) {
    (void)bytes;
    return NULL;
}

size_t rfx_bytes_size(const struct rfx_bytes *bytes) {
    (void)bytes;
    return 0;
}

void rfx_bytes_free(struct rfx_bytes *bytes) {
    (void)bytes;
}

enum rfx_code rfx_network_rounds(struct rfx_network *network, int k, int *rounds,
                                 struct rfx_why *why) {
    (void)network, (void)k, (void)rounds;
    return refuse(why);
}

enum rfx_code rfx_round_open(struct rfx_network *network, int k, int number, int64_t shard,
                             int64_t count, struct rfx_round **out, struct rfx_why *why) {
    (void)network, (void)k, (void)number, (void)shard, (void)count, (void)out;
    return refuse(why);
}

void rfx_round_free(struct rfx_round *round) {
    (void)round;
}

void rfx_round_input_area(const struct rfx_round *round, struct rfx_area *area) {
    (void)round;
    if (area != NULL) *area = (struct rfx_area){0};
}

enum rfx_code rfx_round_run_file(struct rfx_round *round, const void *states, size_t n_bytes,
                                 const char *picture, const struct rfx_run_options *options,
                                 struct rfx_bytes **out, struct rfx_why *why) {
    (void)round, (void)states, (void)n_bytes, (void)picture, (void)options, (void)out;
    return refuse(why);
}

enum rfx_code rfx_round_run_source(struct rfx_round *round, const void *states, size_t n_bytes,
                                   const struct rfx_source *source,
                                   const struct rfx_run_options *options, struct rfx_bytes **out,
                                   struct rfx_why *why) {
    (void)round, (void)states, (void)n_bytes, (void)source, (void)options, (void)out;
    return refuse(why);
}

enum rfx_code rfx_network_merge_states(struct rfx_network *network, const void *const *states,
                                       const size_t *n_bytes, int n, struct rfx_bytes **out,
                                       struct rfx_why *why) {
    (void)network, (void)states, (void)n_bytes, (void)n, (void)out;
    return refuse(why);
}

enum rfx_code rfx_network_open_part_after(struct rfx_network *network, int k,
                                          const struct rfx_area *part, const void *states,
                                          size_t n_bytes, struct rfx_network **out,
                                          struct rfx_why *why) {
    (void)network, (void)k, (void)part, (void)states, (void)n_bytes, (void)out;
    return refuse(why);
}

enum rfx_code rfx_network_part_area_after(struct rfx_network *network, int k,
                                          const struct rfx_area *part, struct rfx_area *area,
                                          struct rfx_why *why) {
    (void)network, (void)k, (void)part, (void)area;
    return refuse(why);
}
