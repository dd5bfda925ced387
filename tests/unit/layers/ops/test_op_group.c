/* A group gives the bits that its nodes give one by one: random graphs, random legal runs of nodes,
 * random strips and steps, rectangles of any size, inputs in rings with rows of their own for what
 * is new. RFX_CASES (300) and RFX_SEED (1) set what is run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/checked.h"
#include "layers/graph/group.h"
#include "layers/graph/op.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/random/random_groups.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"

enum { MAX_GROUPS = 16 };

struct group_case {
    uint64_t seed;
    struct rfx_graph *base, *grouped;
    float **whole; /* per node of the base */
    struct rfx_group_attr groups[MAX_GROUPS];
    int n_groups;
};

static void *exact_block(size_t bytes) {
    void *block = aligned_alloc(RFX_ALIGNMENT_BYTES, rfx_align_up(bytes > 0 ? bytes : 1));
    if (block == NULL) abort();
    memset(block, 0xff, rfx_align_up(bytes > 0 ? bytes : 1));
    return block;
}

struct cut_input {
    struct rfx_view view;
    float *data, *staging;
};

/* Returns a view of exactly the part of a map that an operator needs, often in a ring buffer, and
 * sometimes with staging rows. */
static struct cut_input cut_out(const struct group_case *c, int in, struct rfx_rect need,
                                struct test_rng *rng) {
    const struct rfx_tensor *t = &c->base->nodes[in].out;
    struct rfx_rect full = rfx_node_full_rect(&c->base->nodes[in]);
    struct rfx_view from = rfx_view_of(t, c->whole[in], full);
    struct cut_input cut = {.view = from};
    if (rfx_node_is_constant(&c->base->nodes[in])) return cut;
    need = rfx_rect_intersect(need, full);
    if (rfx_rect_is_empty(need)) need = rfx_rect_make(0, 0, 0, 0);
    int64_t rows = need.y1 - need.y0, slots = rows + test_rng_int(rng, 0, 3);
    bool staged = rows > 0 && test_rng_chance(rng, 40), ring = staged || test_rng_chance(rng, 60);
    int64_t row_floats = rfx_rect_cols(need) * t->c;
    cut.data = test_floats(slots * row_floats);
    cut.view = rfx_view_of(t, cut.data, need);
    cut.view.ring_rows = ring ? rfx_max_i64(slots, 1) : 0;
    if (staged) {
        cut.staging = test_floats(rows * row_floats);
        cut.view.staging_y0 = need.y0 + test_rng_int(rng, 0, rows - 1);
        cut.view.staging = cut.staging;
    }
    if (rows > 0) test_copy_rect(&from, &cut.view, need);
    return cut;
}

static bool fail_at(const struct group_case *c, int g, struct rfx_rect r, int threads,
                    const char *why) {
    const struct rfx_group_attr *a = &c->groups[g];
    fprintf(stderr,
            "seed %llu: group %d..%d, strip_cols %lld, strips %lld, step_rows %lld, rectangle "
            "%lld..%lld x %lld..%lld, %d threads: %s\n",
            (unsigned long long)c->seed, a->first, a->last, (long long)a->strip_cols,
            (long long)a->strips, (long long)a->step_rows, (long long)r.y0, (long long)r.y1,
            (long long)r.x0, (long long)r.x1, threads, why);
    random_graph_print(c->base, stderr);
    return false;
}

/* Runs a rectangle of a group; its surroundings must stay as they are. */
static bool check_rect(const struct group_case *c, int g, const void *packed, struct rfx_rect rect,
                       int threads, struct test_rng *rng) {
    const struct rfx_node *node = &c->grouped->nodes[c->groups[g].last];
    const struct rfx_tensor *t = &node->out;
    struct cut_input cut[RFX_GROUP_MAX_INPUTS];
    struct rfx_view in[RFX_GROUP_MAX_INPUTS];
    for (int k = 0; k < node->n_in; k++) {
        cut[k] = cut_out(c, node->in[k], rfx_op_in_rect(c->grouped, node, k, rect), rng);
        in[k] = cut[k].view;
    }
    /* Of the map's type, which is no larger. What is around the rectangle stays NaN, or 77. */
    float *out = test_floats(t->elems), *wanted = test_floats(t->elems);
    struct rfx_rect full = rfx_node_full_rect(node);
    void *scratch = exact_block(rfx_op_scratch_bytes(c->grouped, node, threads));
    struct rfx_run_args args = {.graph = c->grouped,
                                .node = node,
                                .in = in,
                                .out = rfx_view_of(t, out, full),
                                .rect = rect,
                                .packed = packed,
                                .scratch = scratch,
                                .threads = threads};
    struct rfx_view from = rfx_view_of(t, c->whole[c->groups[g].last], full);
    struct rfx_view to = rfx_view_of(t, wanted, full);
    if (t->type != RFX_TYPE_FLOAT32) {
        memset(out, 77, rfx_tensor_bytes(t));
        memset(wanted, 77, rfx_tensor_bytes(t));
    }
    rfx_op_run(&args);
    test_copy_rect(&from, &to, rect);
    bool same = test_same_tensors("a group against its nodes", t, out, wanted);
    if (!same) (void)fail_at(c, g, rect, threads, "bits differ");
    for (int k = 0; k < node->n_in; k++) {
        free(cut[k].data);
        free(cut[k].staging);
    }
    free(out);
    free(wanted);
    free(scratch);
    return same;
}

static struct rfx_rect draw_rect(struct rfx_rect full, struct test_rng *rng) {
    if (test_rng_chance(rng, 20)) return full;
    int64_t y0 = test_rng_int(rng, 0, full.y1 - 1), x0 = test_rng_int(rng, 0, full.x1 - 1);
    return rfx_rect_make(y0, test_rng_int(rng, y0 + 1, full.y1), x0,
                         test_rng_int(rng, x0 + 1, full.x1));
}

/* MACs of a rectangle, and those of integer convolutions: of what each node makes for it in every
 * piece, no strip wider than it may be. */
static bool check_macs(const struct group_case *c, int g, struct rfx_rect rect) {
    const struct rfx_group_attr *a = &c->grouped->nodes[c->groups[g].last].attr.group;
    const struct rfx_node *node = &c->grouped->nodes[a->last];
    int64_t cols = rfx_rect_cols(rect), strips = rfx_group_strips(a, cols);
    if (strips < 1 || rfx_ceil_div(cols, strips) > a->strip_cols)
        return fail_at(c, g, rect, 1, "strips are too wide");
    uint64_t macs = 0, int_macs = 0;
    int64_t h = rfx_rect_rows(rect), parts = rfx_group_row_parts(a, h, strips);
    if (parts < 1 || (parts > 1 && h / parts < 32))
        return fail_at(c, g, rect, 1, "pieces of few rows");
    for (int64_t p = 0; p < strips * parts; p++) {
        struct rfx_range rows[RFX_GROUP_MAX_NODES], strip[RFX_GROUP_MAX_NODES];
        int64_t s = p % strips, t = p / strips;
        struct rfx_range wide = {rect.x0 + cols * s / strips, rect.x0 + cols * (s + 1) / strips};
        struct rfx_range tall = {rect.y0 + h * t / parts, rect.y0 + h * (t + 1) / parts};
        rfx_group_needs(a, 0, tall, rows);
        rfx_group_needs(a, 1, wide, strip);
        for (int i = a->first; i <= a->last; i++) {
            const struct rfx_node *inner = &c->base->nodes[i];
            uint64_t made = rfx_op_macs(
                c->base, inner, rfx_rect_from_ranges(rows[i - a->first], strip[i - a->first]));
            macs += made;
            if (inner->op == RFX_OP_INT_CONV) int_macs += made;
        }
    }
    if (rfx_op_int_macs(c->grouped, node, rect) != int_macs)
        return fail_at(c, g, rect, 1, "MACs of integers");
    return rfx_op_macs(c->grouped, node, rect) == macs || fail_at(c, g, rect, 1, "MACs");
}

static int check_group(const struct group_case *c, int g, struct test_rng *rng) {
    const struct rfx_node *node = &c->grouped->nodes[c->groups[g].last];
    struct rfx_error err = {{0}};
    void *packed = exact_block(rfx_op_packed_bytes(c->grouped, node));
    int done = 0;
    assert_int_equal(rfx_op_pack(c->grouped, node, packed, &err), RFX_OK);
    bool good = true;
    for (int i = 0; good && i < 6; i++, done++) {
        struct rfx_rect rect = draw_rect(rfx_node_full_rect(node), rng);
        good = check_macs(c, g, rect) && check_rect(c, g, packed, rect, 1 + i % 3, rng);
    }
    free(packed);
    return good ? done : -1;
}

/* Rectangles compared for one random graph, -1 after a difference. */
static int run_seed(uint64_t seed) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct random_graph_options options = random_graph_defaults();
    struct test_rng rng = test_rng_make(seed ^ 0x9709);
    struct group_case c = {.seed = seed};
    struct test_prepared prepared;
    struct rfx_error err = {{0}};
    int compared = 0;
    options.spatial_only = true;
    options.rough = true;
    options.max_size = seed % 4 == 0 ? 7 : 50; /* on tiny maps borders are everywhere */
    options.max_nodes = 16;
    options.quantised = 25;
    c.base = random_graph_make(mem, seed, &options);
    c.n_groups = random_groups_draw(c.base, &rng, c.groups, MAX_GROUPS);
    c.whole = calloc((size_t)c.base->n_nodes, sizeof *c.whole);
    assert_non_null(c.whole);
    if (c.n_groups > 0 && c.base->input >= 0 && test_prepare(c.base, 1, &prepared)) {
        int64_t n = c.base->nodes[c.base->input].out.elems;
        float *input = test_floats(n);
        test_rng_fill(&rng, input, n, -1.0f, 1.0f);
        if (seed % 5 == 0) test_rng_specials(&rng, input, n);
        test_run_whole(&prepared, input, c.whole);
        free(input);
        test_prepared_free(&prepared);
        assert_int_equal(rfx_graph_group(c.base, c.groups, c.n_groups, &c.grouped, &err), RFX_OK);
        for (int g = 0; g < c.n_groups && compared >= 0; g++) {
            int done = check_group(&c, g, &rng);
            compared = done < 0 ? -1 : compared + done;
        }
        rfx_graph_free(c.grouped);
        test_run_whole_free(c.base, c.whole);
    }
    free(c.whole);
    rfx_graph_free(c.base);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return compared;
}

static void groups_are_their_nodes(void **state) {
    int64_t cases = test_env_int("RFX_CASES", 300), first = test_env_int("RFX_SEED", 1);
    int64_t compared = 0, failed = 0;
    (void)state;
    for (int64_t i = 0; i < cases && failed < 3; i++) {
        int done = run_seed((uint64_t)(first + i));
        if (done < 0) failed++;
        if (done > 0) compared += done;
    }
    fprintf(stderr, "test_op_group: %lld rectangles of groups from seed %lld, %lld graphs differ\n",
            (long long)compared, (long long)first, (long long)failed);
    assert_int_equal(failed, 0);
    assert_true(compared > 3 * cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups_are_their_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
