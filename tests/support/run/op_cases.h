/* One node with computed or constant inputs, run whole against the naive reference and in random
 * rectangles against the whole run, bit by bit.
 *
 * The rectangles get views with random margins, linear or rings of a random number of rows, filled
 * with NaN outside what the op asked for; the output view has margins that must not be touched. */
#ifndef RFX_TESTS_SUPPORT_RUN_OP_CASES_H
#define RFX_TESTS_SUPPORT_RUN_OP_CASES_H

#include "layers/graph/op.h"
#include "tests/support/test_util.h"

enum { OP_CASE_MOST_INPUTS = 3 };

struct op_case {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct test_rng rng;
    int n_in, index; /* index: of the node under test */
    int in[OP_CASE_MOST_INPUTS];
    float *values[OP_CASE_MOST_INPUTS]; /* stored order: NHWC or plain */
    float *onnx_order[OP_CASE_MOST_INPUTS];
    struct rfx_error err;
};

/* A tensor of that shape that is no map. */
struct rfx_tensor op_case_plain(struct rfx_shape shape);

/* Creates the graph and its inputs, with random values in [-1, 1). */
void op_case_begin(struct op_case *c, int n_in, const struct rfx_tensor *inputs, uint64_t seed);

/* Gives an input that is no map other values, those of a test. */
void op_case_set(struct op_case *c, int k, const float *values);

/* Adds a weight of random values in [lo, hi); returns its index. */
int op_case_weight(struct op_case *c, int rank, const int64_t *dims, float lo, float hi);

/* Adds the node under test on the inputs; n_in, in and name are set here. */
enum rfx_status op_case_add(struct op_case *c, const struct rfx_node *node);

/* The node on such inputs must be refused with `words` in the text. */
void op_case_refused(const struct rfx_node *node, int n_in, const struct rfx_tensor *inputs,
                     const char *words);

/* Whole run with 1 thread, to be freed by the caller. */
float *op_case_whole(struct op_case *c);

/* Whole run against the reference (|error| <= tolerance * max(|value|, 1)) and `rects` random
 * rectangles with 1 to 3 threads, and whole over each input that it may be written over; fails the
 * test with `what` in the message. */
void op_case_check(struct op_case *c, double tolerance, int rects, const char *what);

void op_case_end(struct op_case *c);
#endif
