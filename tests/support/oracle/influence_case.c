/* See influence_case.h. */
#include "tests/support/oracle/influence_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/oracle/influence.h"
#include "tests/support/random/random_graph.h"

struct influence_case influence_case_begin(uint64_t seed, int64_t max_size, int max_nodes) {
    struct random_graph_options options = random_graph_defaults();
    struct influence_case c = {
        .seed = seed, .mem = rfx_memory_create(0), .rng = test_rng_make(~seed)};
    options.spatial_only = seed % 3 == 0;
    options.min_size = max_size < 100 ? 2 : 200;
    options.max_elems = max_size < 100 ? 0 : 10000000;
    options.max_size = max_size;
    options.max_nodes = max_nodes;
    options.max_c = 4;
    options.wide = false;
    options.rough = true;
    /* whose output jumps, or stays, when a pixel moves */
    options.ops = ~(UINT64_C(1) << RFX_OP_POOL_PLACE);
    c.graph = random_graph_make(c.mem, seed, &options);
    c.exact = calloc((size_t)c.graph->n_nodes, sizeof *c.exact);
    assert_non_null(c.exact);
    influence_is_exact(c.graph, c.exact);
    return c;
}

void influence_case_end(struct influence_case *c) {
    free(c->exact);
    rfx_graph_free(c->graph);
    assert_int_equal(rfx_memory_current_bytes(c->mem), 0);
    rfx_memory_free(c->mem);
}

void influence_case_fail(const struct influence_case *c, const char *what, int node) {
    fprintf(stderr, "seed %llu: node %d: %s\n", (unsigned long long)c->seed, node, what);
    random_graph_print(c->graph, stderr);
    fail();
}

int64_t influence_case_count(const char *name, int64_t of) {
    int64_t n = test_env_int("RFX_CASES", of);
    fprintf(stderr, "%s: %lld cases from seed %lld (RFX_CASES, RFX_SEED)\n", name, (long long)n,
            (long long)test_env_int("RFX_SEED", 1));
    return n;
}

void influence_poking_begin(struct influence_case *c, struct influence_poking *p) {
    poison_tame(c->graph);
    assert_true(test_prepare(c->graph, 1, &p->prepared));
    const struct rfx_tensor *image = &c->graph->nodes[c->graph->input].out;
    p->input = test_floats(image->elems);
    test_rng_fill(&c->rng, p->input, image->elems, -1.0f, 1.0f);
    p->clean = poison_begin(&p->prepared, p->input, &p->poison);
}

void influence_poking_end(struct influence_poking *p) {
    free(p->input);
    poison_end(&p->poison);
    test_prepared_free(&p->prepared);
}
