/* Networks of the public header, run beside a session of the same graph. Failures fail the test. */
#ifndef RFX_TESTS_SUPPORT_RUN_NETWORK_RUN_H
#define RFX_TESTS_SUPPORT_RUN_NETWORK_RUN_H

#include "layers/graph/graph.h"
#include "rfexec/api/network.h"

enum { MOST_OUTPUTS = 8 };

struct network_outputs {
    int n;
    int64_t elems[MOST_OUTPUTS];
    float *values[MOST_OUTPUTS];
};

void network_outputs_free(struct network_outputs *o);

/* Fails unless the call went well and left no text. */
void network_check(enum rfx_code code, const struct rfx_why *why);

struct rfx_run_options network_run_options(size_t memory_bytes, int threads);

/* 0 x 0: the model's own size. */
struct rfx_network *network_open_sized(const char *model, int64_t rows, int64_t columns);

/* Arrays that nothing was written to yet. */
struct network_outputs network_outputs_for(const struct rfx_network *net);

/* Bit by bit. */
void network_assert_same(const struct network_outputs *got, const struct network_outputs *want);

/* An untiled session on c x h x w values: what every run must give. */
struct network_outputs network_session_outputs(const char *model, const float *values, int64_t c,
                                               int64_t h, int64_t w);

/* The same with convolutions by another choice. */
struct network_outputs network_session_outputs_by(const char *model, enum rfx_conv_choice conv,
                                                  const float *values, int64_t c, int64_t h,
                                                  int64_t w);

/* c x h x w values, the same in each call; to be freed. */
float *network_random_image(int64_t c, int64_t h, int64_t w);

/* A file of them. */
void network_write_npy(const char *path, float *values, int64_t c, int64_t h, int64_t w);

/* The smallest budget that the network can be run in. */
size_t network_least_bytes(struct rfx_network *net, const char *picture, int threads);
#endif
