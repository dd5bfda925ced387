/* Runs networks of the public header and sessions of the same graph, to compare their outputs. A
 * failure fails the test. */
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

/* Fails unless the code is success and the text is empty. */
void network_check(enum rfx_code code, const struct rfx_why *why);

struct rfx_run_options network_run_options(size_t memory_bytes, int threads);

/* Opens a model for images of this size; 0 x 0: the model's own size. */
struct rfx_network *network_open_sized(const char *model, int64_t rows, int64_t columns);

/* Returns uninitialised arrays for the outputs of a network. */
struct network_outputs network_outputs_for(const struct rfx_network *net);

/* Compares bit by bit. */
void network_assert_same(const struct network_outputs *got, const struct network_outputs *want);

/* Runs a session without tiles on c x h x w values. Every other run must give the same outputs. */
struct network_outputs network_session_outputs(const char *model, const float *values, int64_t c,
                                               int64_t h, int64_t w);

/* As network_session_outputs, with another choice of convolutions. */
struct network_outputs network_session_outputs_by(const char *model, enum rfx_conv_choice conv,
                                                  const float *values, int64_t c, int64_t h,
                                                  int64_t w);

/* Returns c x h x w random values, the same in each call; to be freed. */
float *network_random_image(int64_t c, int64_t h, int64_t w);

/* Writes c x h x w values as a .npy file. */
void network_write_npy(const char *path, float *values, int64_t c, int64_t h, int64_t w);

/* Returns the smallest budget in which the network can be run. */
size_t network_least_bytes(struct rfx_network *net, const char *image, int threads);
#endif
