/* The checker finds plans that were spoilt by hand: it must not trust what it is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/small_nets.h"
#include "tiler/modes/modes.h"
#include "tiler/plan_check.h"

struct fixture {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_plan *plan;
};

static struct fixture begin(const struct rfx_stage_spec *stages, int n) {
    struct fixture f = {.mem = rfx_memory_create(0)};
    struct rfx_error err = {{0}};
    char why[200];
    f.graph = small_net_residual(f.mem, 24, 24);
    struct rfx_plan_request request = {.threads = 1, .stages = stages, .n_stages = n};
    request.source = (struct rfx_source_traits){.h = 24, .w = 24, .c = 2, .random_access = true};
    if (rfx_plan_create(f.graph, &request, &f.plan, &err) != RFX_OK) fail_msg("%s", err.text);
    if (!rfx_plan_check(f.plan, why, sizeof why)) fail_msg("%s", why);
    return f;
}

static void end(struct fixture *f) {
    rfx_plan_free(f->plan);
    rfx_graph_free(f->graph);
    assert_int_equal(rfx_memory_current_bytes(f->mem), 0);
    rfx_memory_free(f->mem);
}

static void assert_found(const struct fixture *f, const char *words) {
    char why[200] = "";
    if (rfx_plan_check(f->plan, why, sizeof why)) fail_msg("not found: %s", words);
    if (strstr(why, words) == NULL) fail_msg("no \"%s\" in: %s", words, why);
}

static struct rfx_stage_spec stage(const struct rfx_mode *mode, int64_t band_rows,
                                   const int *target) {
    struct rfx_stage_spec spec = {
        .mode = mode, .parts_y = 1, .parts_x = 1, .band_rows = band_rows, .n_targets = 1};
    spec.targets = target;
    return spec;
}

static int find(const struct fixture *f, const char *name) {
    return rfx_graph_find(f->graph, name);
}

/* The nodes are in the order of small_nets.h: input, a, b, sum, c, pool. */
static const int sum_node[] = {3};
static const int pool_node[] = {5};

static void whole_plans(void **state) {
    struct rfx_stage_spec whole = stage(&rfx_mode_whole, 0, pool_node);
    struct fixture f = begin(&whole, 1);
    (void)state;
    struct rfx_stage_node *nodes = f.plan->stages[0].nodes;
    assert_int_equal(find(&f, "sum"), sum_node[0]);
    assert_int_equal(find(&f, "pool"), pool_node[0]);
    struct rfx_buffer b = nodes[find(&f, "b")].buffer;
    nodes[find(&f, "b")].buffer.offset = nodes[find(&f, "a")].buffer.offset; /* a is still read */
    assert_found(&f, "reads a row that is not there");
    nodes[find(&f, "b")].buffer.offset = b.offset - 32;
    assert_found(&f, "not aligned");
    nodes[find(&f, "b")].buffer.offset = f.plan->bytes.arena;
    assert_found(&f, "outside the arena");
    nodes[find(&f, "b")].buffer = b;
    nodes[find(&f, "b")].buffer.bytes -= 64;
    assert_found(&f, "more bytes than its buffer");
    nodes[find(&f, "b")].buffer = b;
    f.plan->macs++;
    assert_found(&f, "MACs");
    f.plan->macs--;
    f.plan->bytes.weights++;
    assert_found(&f, "does not add up");
    f.plan->bytes.weights--;
    f.plan->bytes.arena += 64;
    f.plan->peak_bytes += 64;
    assert_found(&f, "highest byte");
    end(&f);
}

/* A ring one row shorter than the 3x3 window of b, a needs: its window does not fit any more. */
static void streams(void **state) {
    struct rfx_stage_spec specs[2] = {stage(&rfx_mode_streamed, 2, sum_node),
                                      stage(&rfx_mode_whole, 0, pool_node)};
    struct fixture f = begin(specs, 2);
    (void)state;
    struct rfx_stage_node *a = &f.plan->stages[0].nodes[find(&f, "a")];
    int64_t rows = a->ring_rows;
    a->ring_rows = rows - 1;
    assert_found(&f, "reads outside a view");
    a->ring_rows = rows;
    struct rfx_buffer *b = &f.plan->stages[0].nodes[find(&f, "b")].buffer;
    size_t offset = b->offset;
    b->offset = a->buffer.offset;
    assert_found(&f, "reads a row that is not there");
    b->offset = offset;
    f.plan->stages[0].places[find(&f, "sum")] = RFX_PLACE_LOCAL;
    char why[200];
    assert_false(rfx_plan_check(f.plan, why, sizeof why));
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_plans), cmocka_unit_test(streams)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
