/* Tests one node with computed or constant inputs: the whole run against the naive reference, and
 * random rectangles against the whole run, bit by bit.
 *
 * The views of a rectangle have random margins. They are linear or ring buffers of a random number
 * of rows, and contain NaN (types other than float32: noise) outside the input range that the op
 * states. The output view has margins that must not be written. */
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
    float
        *values[OP_CASE_MOST_INPUTS]; /* stored order: NHWC or PLAIN; numbers of the input's type */
    float *onnx_order[OP_CASE_MOST_INPUTS];
    struct rfx_error err;
};

/* Returns a PLAIN tensor of this shape. */
struct rfx_tensor op_case_plain(struct rfx_shape shape);

/* Creates the graph and its inputs. Values are random in [-1, 1), or integers from the whole range
 * of an input's type. */
void op_case_begin(struct op_case *c, int n_in, const struct rfx_tensor *inputs, uint64_t seed);

/* Sets the values of input k, which is PLAIN. */
void op_case_set(struct op_case *c, int k, const float *values);

/* Adds a weight of random values in [lo, hi); returns its index. */
int op_case_weight(struct op_case *c, int rank, const int64_t *dims, float lo, float hi);

/* Adds the node under test on the inputs; n_in, in and name are set here. */
enum rfx_status op_case_add(struct op_case *c, const struct rfx_node *node);

/* Fails unless the node on these inputs is refused with `words` in the text. */
void op_case_refused(const struct rfx_node *node, int n_in, const struct rfx_tensor *inputs,
                     const char *words);

/* Returns the output of the whole run with one thread, as float32; the caller frees it. */
float *op_case_whole(struct op_case *c);

/* Checks the whole run against the reference (|error| <= tolerance * max(|value|, 1)), `rects`
 * random rectangles with 1 to 3 threads, and the whole run in place over each input that the op may
 * overwrite. Fails the test with `what` in the message. */
void op_case_check(struct op_case *c, double tolerance, int rects, const char *what);

void op_case_end(struct op_case *c);
#endif
