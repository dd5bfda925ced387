/* Descriptions of tensors that are maps in another order: of random chains of reshapes, transposes,
 * rolls and cuts of channels, element by element against what the chain makes of a map of numbered
 * elements. */
#include "rfexec/onnx/import/onnx_pixels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/run/run_whole.h"
#include "tests/support/test_net.h"
#include "tests/support/test_util.h"

struct chain {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct test_rng rng;
    int last;
};

static void then(struct chain *c, struct rfx_node node) {
    int in = c->last;
    c->last = test_net_add(c->graph, node, &in, 1);
}

static const struct rfx_shape *shape_of(const struct chain *c) {
    return &c->graph->nodes[c->last].out.shape;
}

static struct chain begin(uint64_t seed, int64_t c, int64_t h, int64_t w, bool channels_last) {
    struct chain chain = {.mem = rfx_memory_create(0), .rng = test_rng_make(seed)};
    struct rfx_node image = {.op = RFX_OP_INPUT, .attr.input = {c, h, w}};
    assert_int_equal(rfx_graph_create(chain.mem, "chain", &chain.graph, NULL), RFX_OK);
    chain.last = test_net_add(chain.graph, image, NULL, 0);
    then(&chain, (struct rfx_node){.op = channels_last ? RFX_OP_NHWC_AS_PLAIN : RFX_OP_TO_PLAIN});
    return chain;
}

static void end(struct chain *c) {
    rfx_graph_free(c->graph);
    assert_int_equal(rfx_memory_current_bytes(c->mem), 0);
    rfx_memory_free(c->mem);
}

/* One axis cut in two, or two that follow each other joined. */
static void reshape(struct chain *c) {
    struct rfx_node node = {.op = RFX_OP_RESHAPE};
    struct rfx_shape *s = &node.attr.reshape.shape;
    *s = *shape_of(c);
    int at = (int)test_rng_int(&c->rng, 0, s->rank - 1);
    if (test_rng_chance(&c->rng, 60) && s->rank < RFX_MAX_RANK) {
        int64_t by = test_rng_int(&c->rng, 1, 4);
        while (s->dims[at] % by != 0) by--;
        memmove(&s->dims[at + 1], &s->dims[at], (size_t)(s->rank - at) * sizeof s->dims[0]);
        s->rank++;
        s->dims[at] = by;
        s->dims[at + 1] /= by;
    } else if (at + 1 < s->rank) {
        s->dims[at] *= s->dims[at + 1];
        memmove(&s->dims[at + 1], &s->dims[at + 2], (size_t)(s->rank - at - 2) * sizeof s->dims[0]);
        s->rank--;
    }
    then(c, node);
}

static void transpose(struct chain *c) {
    struct rfx_node node = {.op = RFX_OP_TRANSPOSE};
    int rank = shape_of(c)->rank, *perm = node.attr.transpose.perm;
    for (int i = 0; i < rank; i++) perm[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int k = (int)test_rng_int(&c->rng, 0, i), other = perm[i];
        perm[i] = perm[k];
        perm[k] = other;
    }
    then(c, node);
}

static struct rfx_node part(const struct chain *c, int axis, int64_t start, int64_t size) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_SLICE};
    node.attr.slice.shape = *shape_of(c);
    for (int i = 0; i < RFX_MAX_RANK; i++) node.attr.slice.steps[i] = 1;
    node.attr.slice.starts[axis] = start;
    node.attr.slice.shape.dims[axis] = size;
    return node;
}

static void roll(struct chain *c) {
    struct rfx_node join = {.op = RFX_OP_PLAIN_CONCAT};
    int axis = (int)test_rng_int(&c->rng, 0, shape_of(c)->rank - 1), whole = c->last;
    int64_t extent = shape_of(c)->dims[axis];
    if (extent < 2) return;
    int64_t shift = test_rng_int(&c->rng, 1, extent - 1);
    int halves[2] = {test_net_add(c->graph, part(c, axis, shift, extent - shift), &whole, 1),
                     test_net_add(c->graph, part(c, axis, 0, shift), &whole, 1)};
    join.attr.concat.axis = axis;
    c->last = test_net_add(c->graph, join, halves, 2);
}

static void cut(struct chain *c) {
    int axis = (int)test_rng_int(&c->rng, 0, shape_of(c)->rank - 1);
    int64_t extent = shape_of(c)->dims[axis];
    int64_t start = test_rng_int(&c->rng, 0, extent - 1);
    if (test_rng_chance(&c->rng, 50)) {
        then(c, part(c, axis, start, test_rng_int(&c->rng, 1, extent - start)));
        return;
    }
    struct rfx_node gather = {.op = RFX_OP_PLAIN_GATHER};
    gather.attr.gather.axis = axis;
    gather.attr.gather.count = 1;
    gather.attr.gather.map = &start;
    then(c, gather);
}

/* The number of the map's element (h, w, c) that element e is said to be. */
static int64_t said(const struct rfx_pixels *p, int64_t e) {
    int64_t at[3] = {p->roll[0], p->roll[1], p->first};
    for (int f = p->count - 1; f >= 0; f--) {
        at[p->factors[f].axis] += e % p->factors[f].size * p->factors[f].stride;
        e /= p->factors[f].size;
    }
    for (int axis = 0; axis < 2; axis++) at[axis] %= p->extent[axis];
    return (at[0] * p->extent[1] + at[1]) * p->extent[2] + at[2];
}

/* Fails unless a description is right; returns whether there is one. */
static bool check(struct chain *c, uint64_t seed) {
    struct rfx_pixels p;
    struct test_prepared prepared;
    bool is = rfx_pixels_of(c->graph, c->last, &p);
    const struct rfx_tensor *t = &c->graph->nodes[c->last].out;
    const struct rfx_tensor *image = &c->graph->nodes[0].out;
    if (!is) return false;
    float **outs = calloc((size_t)c->graph->n_nodes + 1, sizeof *outs);
    float *numbers = test_floats(image->elems);
    for (int64_t i = 0; i < image->elems; i++) numbers[i] = (float)i;
    assert_int_equal(rfx_graph_add_output(c->graph, c->last, "y", NULL), RFX_OK);
    assert_true(test_prepare(c->graph, 1, &prepared));
    test_run_whole(&prepared, numbers, outs);
    struct rfx_shape shape = rfx_pixels_shape(&p);
    assert_int_equal(shape.rank, t->shape.rank);
    for (int i = 0; i < shape.rank; i++) assert_int_equal(shape.dims[i], t->shape.dims[i]);
    for (int64_t e = 0; e < t->elems; e++)
        if (said(&p, e) != (int64_t)outs[c->last][e])
            fail_msg("seed %llu: element %lld is %.0f, said to be %lld", (unsigned long long)seed,
                     (long long)e, (double)outs[c->last][e], (long long)said(&p, e));
    int64_t channels = rfx_pixels_channels(&p), plane = image->h * image->w;
    if (channels != 0) assert_int_equal(channels * plane, t->elems);
    for (int64_t i = 0; i < channels; i++) /* of the first pixel */
        assert_int_equal(rfx_pixels_channel(&p, i), (int64_t)outs[c->last][i * plane]);
    test_run_whole_free(c->graph, outs);
    test_prepared_free(&prepared);
    free(numbers);
    free(outs);
    return true;
}

static void random_chains(void **state) {
    (void)state;
    int64_t n = test_env_int("RFX_CASES", 3000), described = 0, rolled = 0, cuts = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t seed = (uint64_t)(test_env_int("RFX_SEED", 1) + i);
        struct test_rng sizes = test_rng_make(~seed);
        struct chain c = begin(seed, test_rng_int(&sizes, 1, 6), test_rng_int(&sizes, 1, 8),
                               test_rng_int(&sizes, 1, 8), i % 2 == 0);
        int64_t steps = test_rng_int(&c.rng, 1, 6);
        for (int64_t k = 0; k < steps; k++) {
            int64_t pick = test_rng_int(&c.rng, 0, 9);
            if (pick < 4)
                reshape(&c);
            else if (pick < 7)
                transpose(&c);
            else if (pick < 9)
                roll(&c);
            else
                cut(&c);
        }
        struct rfx_pixels p;
        if (check(&c, seed)) {
            described++;
            (void)rfx_pixels_of(c.graph, c.last, &p);
            rolled += p.roll[0] != 0 || p.roll[1] != 0;
            cuts += p.first != 0;
        }
        end(&c);
    }
    fprintf(stderr, "%lld of %lld described, %lld rolled, %lld without the first channel\n",
            (long long)described, (long long)n, (long long)rolled, (long long)cuts);
    if (n >= 1000) assert_true(described > n / 3 && rolled > n / 50 && cuts > n / 200);
}

/* (1, h, w, c) as (1, h w, c): tokens; turned, they are none, nor is a part of their channels. */
static void tokens(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct chain c = begin(1, 6, 4, 8, kind != 3);
        struct rfx_node flat = {.op = RFX_OP_RESHAPE}, turn = {.op = RFX_OP_TRANSPOSE};
        struct rfx_pixels p;
        flat.attr.reshape.shape =
            kind == 3 ? (struct rfx_shape){3, {1, 6, 32}} : (struct rfx_shape){3, {1, 32, 6}};
        then(&c, flat);
        memcpy(turn.attr.transpose.perm, (const int[]){0, 2, 1}, 3 * sizeof(int));
        if (kind == 1 || kind == 3) then(&c, turn);
        if (kind == 2) then(&c, part(&c, 2, 0, 3));
        assert_true(rfx_pixels_of(c.graph, c.last, &p));
        assert_true(rfx_pixels_are_tokens(&p) == (kind == 0 || kind == 3));
        assert_false(rfx_pixels_is_nhwc(&p) || rfx_pixels_is_nchw(&p));
        if (kind == 0) {
            struct rfx_pixels other = rfx_pixels_of_map(&p, 0, 9), whole = p;
            assert_int_equal(rfx_pixels_shape(&other).dims[2], 9);
            assert_true(rfx_pixels_same_order(&p, &other));
            whole.roll[1] = 3;
            assert_false(rfx_pixels_same_order(&p, &whole));
            assert_true(rfx_pixels_reshape(&other, &(struct rfx_shape){4, {1, 4, 8, 9}}));
            assert_true(rfx_pixels_is_nhwc(&other));
            assert_false(rfx_pixels_reshape(&p, &(struct rfx_shape){2, {64, 3}}) &&
                         rfx_pixels_are_tokens(&p));
        }
        end(&c);
    }
}

/* Channels of a map that are a map: all, some, or in another order; not those of moved pixels. */
static void channels(void **state) {
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        struct chain c = begin(1, 6, 4, 8, false);
        struct rfx_node by_three = {.op = RFX_OP_RESHAPE}, map = {.op = RFX_OP_RESHAPE};
        struct rfx_node turn = {.op = RFX_OP_TRANSPOSE};
        struct rfx_pixels p;
        by_three.attr.reshape.shape = (struct rfx_shape){5, {1, 2, 3, 4, 8}};
        map.attr.reshape.shape = (struct rfx_shape){4, {1, kind == 1 ? 4 : 6, 4, 8}};
        memcpy(turn.attr.transpose.perm, (const int[]){0, 2, 1, 3, 4}, 5 * sizeof(int));
        if (kind == 4)
            memcpy(turn.attr.transpose.perm, (const int[]){0, 1, 2, 4, 3}, 5 * sizeof(int));
        then(&c, by_three);
        if (kind == 1) then(&c, part(&c, 2, 1, 2)); /* channels 1, 2, 4, 5 */
        if (kind == 2 || kind == 4) then(&c, turn); /* 0, 3, 1, 4, 2, 5; rows and columns */
        if (kind == 4) map.attr.reshape.shape = (struct rfx_shape){4, {1, 6, 8, 4}};
        if (kind != 3) then(&c, map);
        assert_true(rfx_pixels_of(c.graph, c.last, &p));
        const int64_t count[] = {6, 4, 6, 0, 0}, third[] = {2, 4, 1};
        assert_int_equal(rfx_pixels_channels(&p), count[kind]);
        if (kind < 3) assert_int_equal(rfx_pixels_channel(&p, 2), third[kind]);
        end(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_chains), cmocka_unit_test(tokens),
                                       cmocka_unit_test(channels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
