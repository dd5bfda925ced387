/* A random network whose analysis is held against brute force; see test_influence.c. */
#ifndef RFX_TESTS_SUPPORT_ORACLE_INFLUENCE_CASE_H
#define RFX_TESTS_SUPPORT_ORACLE_INFLUENCE_CASE_H

#include "tests/support/oracle/poison.h"
#include "tests/support/test_util.h"

struct influence_case {
    uint64_t seed;
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct test_rng rng;
    bool *exact; /* per node: influence_is_exact */
};

/* A network of up to max_nodes nodes on an image of up to max_size (from 100 on: at least 200, and
 * never reduced for size). */
struct influence_case influence_case_begin(uint64_t seed, int64_t max_size, int max_nodes);

/* Frees it; asserts that no byte is left. */
void influence_case_end(struct influence_case *c);

/* Prints seed and network, and fails the test. */
void influence_case_fail(const struct influence_case *c, const char *what, int node);

/* How many cases to run: RFX_CASES, or `of`; says so on stderr. */
int64_t influence_case_count(const char *name, int64_t of);

/* The network ready to be poisoned: tame weights, a random image. */
struct influence_poking {
    struct test_prepared prepared;
    struct poison poison;
    float *input;
    bool clean; /* all values are finite without poison */
};
void influence_poking_begin(struct influence_case *c, struct influence_poking *p);
void influence_poking_end(struct influence_poking *p);
#endif
