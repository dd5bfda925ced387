/* The checker finds plans that were spoilt by hand: it must not trust what it is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tests/support/run/plan_spoil.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_check.h"

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
        .mode = mode, .tiles_y = 1, .tiles_x = 1, .band_rows = band_rows, .n_targets = 1};
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

/* sum goes through a file, in strips: what is read of it must have been written. */
static void files(void **state) {
    static const bool yes[] = {true};
    struct rfx_stage_spec specs[2] = {stage(&rfx_mode_streamed, 2, sum_node),
                                      stage(&rfx_mode_streamed, 4, pool_node)};
    specs[0].tiles_x = 3;
    specs[0].spilled = yes;
    struct fixture f = begin(specs, 2);
    (void)state;
    enum rfx_node_place *made = &f.plan->stages[0].places[sum_node[0]];
    enum rfx_node_place *read = &f.plan->stages[1].places[sum_node[0]];
    size_t bytes = rfx_tensor_bytes(&f.graph->nodes[sum_node[0]].out);
    assert_int_equal(*made, RFX_PLACE_SPILLED);
    assert_int_equal(*read, RFX_PLACE_FETCHED);
    assert_int_equal(f.plan->spill.written, bytes);
    assert_int_equal(f.plan->spill.read, bytes);
    assert_int_equal(f.plan->spill.most, bytes);
    assert_int_equal(f.plan->stored[sum_node[0]].bytes, 0);
    *made = RFX_PLACE_EMITTED;
    assert_found(&f, "'sum': reads of its file what was not written");
    *made = RFX_PLACE_SPILLED;
    f.plan->stages[0].spec.tiles_x = 2; /* other columns than the rings were made for */
    char why[200];
    assert_false(rfx_plan_check(f.plan, why, sizeof why));
    f.plan->stages[0].spec.tiles_x = 3;
    f.plan->spill.written--;
    assert_found(&f, "bytes in files");
    f.plan->spill.written++;
    f.plan->spill.read++;
    assert_found(&f, "bytes in files");
    f.plan->spill.read--;
    struct rfx_stage_node *ring = &f.plan->stages[1].nodes[sum_node[0]];
    ring->ring_rows--;
    assert_found(&f, "reads outside a view");
    ring->ring_rows++;
    ring->buffer.bytes -= 64;
    assert_found(&f, "more bytes than its buffer");
    ring->buffer.bytes += 64;
    assert_true(rfx_plan_check(f.plan, why, sizeof why));
    end(&f);
}

/* Plans of every kind, each spoilt at one place at a time. */

enum { INPUT, A, B, SUM, C, POOL, NODES };

static struct fixture begin_with(struct rfx_graph *(*make)(struct rfx_memory *, int64_t, int64_t),
                                 struct rfx_plan_request request) {
    struct fixture f = {.mem = rfx_memory_create(0)};
    struct rfx_error err = {{0}};
    f.graph = make(f.mem, 24, 24);
    request.threads = 1;
    request.source = (struct rfx_source_traits){.h = 24, .w = 24, .c = 2, .random_access = true};
    if (rfx_plan_create(f.graph, &request, &f.plan, &err) != RFX_OK) fail_msg("%s", err.text);
    return f;
}

static void tiles(void **state) {
    (void)state;
    struct rfx_stage_spec specs[2] = {stage(&rfx_mode_tiled, 0, sum_node),
                                      stage(&rfx_mode_whole, 0, pool_node)};
    specs[0].tiles_y = specs[0].tiles_x = 2;
    struct fixture f = begin(specs, 2);
    static const struct spoiling table[] = {
        {INPUT, OFFSET, A, OFFSET, 0, "'a': reads a row that is not there"},
        {B, OFFSET, A, OFFSET, 0, "'b': reads a row that is not there"},
        {B, OFFSET, SUM, STORED_OFFSET, 0, "'sum': reads a row that is not there"},
        {B, OFFSET, ITSELF, OFFSET, 32, "'b': outside the arena"},
        {A, BYTES, ITSELF, BYTES, -64, "'a': more bytes than its buffer"},
        {INPUT, BYTES, ITSELF, BYTES, -64, "'input': more bytes than its buffer"},
        {SUM, STORED_BYTES, ITSELF, BYTES, -64, "'sum': more bytes than its buffer"},
        {SUM, STORED_OFFSET, ITSELF, BYTES, 256, "': reads "},
        {A, PLACE, ZERO, PLACE, RFX_PLACE_NONE, "'b': an input is neither made nor kept"},
        {A, PLACE, ZERO, PLACE, RFX_PLACE_READ, "'b': an input is neither made nor kept"},
        {SUM, PLACE, ZERO, PLACE, RFX_PLACE_LOCAL, "'c': reads a row that is not there"},
        {B, PLACE, ZERO, PLACE, RFX_PLACE_STORED, "'b': more bytes than its buffer"},
        {A, MACS, ITSELF, MACS, -1, "MACs"},
    };
    SPOIL_EACH(f.plan, "tiles", table);
    end(&f);
}

/* The step's new rows lie apart from the rings that keep the old ones. */
static void tight_streams(void **state) {
    (void)state;
    struct rfx_stage_spec specs[2] = {stage(&rfx_mode_streamed, 4, sum_node),
                                      stage(&rfx_mode_whole, 0, pool_node)};
    specs[0].staging = true;
    struct fixture f = begin(specs, 2);
    static const struct spoiling table[] = {
        {A, STAGING_OFFSET, A, OFFSET, 0, "'b': reads a row that is not there"},
        {A, STAGING_OFFSET, B, OFFSET, 0, "'a': reads a row that is not there"},
        {INPUT, STAGING_OFFSET, A, STAGING_OFFSET, 0, "'a': reads a row that is not there"},
        {A, OFFSET, INPUT, OFFSET, 0, "'a': outside the arena"},
        {INPUT, OFFSET, INPUT, STAGING_OFFSET, 0, "'a': reads a row that is not there"},
        {A, STAGING_BYTES, ITSELF, BYTES, -384, "'a': more bytes than its buffer"},
        {A, STAGING_BYTES, ZERO, BYTES, 0, "'a': writes outside its view"},
        {A, RING_ROWS, ITSELF, BYTES, -1, "'b': reads outside a view"},
        {A, RING_ROWS, ITSELF, BYTES, 1, "'a': more bytes than its buffer"},
        {INPUT, RING_ROWS, ITSELF, BYTES, -1, "'a': reads outside a view"},
        {B, RING_ROWS, ITSELF, BYTES, -1, "'b': writes outside its view"},
        {A, BYTES, ITSELF, BYTES, -64, "'a': more bytes than its buffer"},
        {A, LAST_READER, ZERO, BYTES, B, "'sum': reads outside a view"},
        {A, LAST_READER, ZERO, BYTES, INPUT, "'b': reads outside a view"},
        {INPUT, LAST_READER, ZERO, BYTES, SUM, "'input': reads a row that is not there"},
        {INPUT, LAST_READER, ZERO, BYTES, B, "'input': reads a row that is not there"},
        {B, PLACE, ZERO, PLACE, RFX_PLACE_NONE, "'sum': an input is neither made nor kept"},
        {SUM, STORED_OFFSET, B, STAGING_OFFSET, 0, "'sum': reads a row that is not there"},
        {A, MACS, ITSELF, MACS, 1, "MACs"},
    };
    SPOIL_EACH(f.plan, "tight", table);
    end(&f);
}

/* sum is written over b, which has the same rows in each step and is read by nobody else. */
static void tight_in_place(void **state) {
    (void)state;
    struct rfx_stage_spec spec = stage(&rfx_mode_streamed, 4, pool_node);
    spec.staging = true;
    struct fixture f = begin(&spec, 1);
    const struct rfx_stage_node *nodes = f.plan->stages[0].nodes;
    assert_int_equal(nodes[SUM].over, B);
    assert_int_equal(nodes[B].lead, 0);
    assert_int_equal(nodes[SUM].staging.offset, nodes[B].staging.offset);
    assert_int_equal(nodes[B].ring_rows, 0);
    static const struct spoiling table[] = {
        {B, OVER, ZERO, BYTES, A, "'b': writes before its buffer"},
        {B, LEAD, ZERO, BYTES, 1, "'b': more bytes than its buffer"},
        {SUM, STAGING_OFFSET, A, STAGING_OFFSET, 0, "reads a row that is not there"},
        {SUM, STAGING_BYTES, ITSELF, BYTES, -64, "'sum': more bytes than its buffer"},
        {SUM, RING_ROWS, ZERO, BYTES, 0, "'c': reads outside a view"},
    };
    SPOIL_EACH(f.plan, "in place", table);
    end(&f);
}

/* sum is two rows behind a, over which it is written: the two lie in front of a's rows. */
static void tight_over_a_residual(void **state) {
    (void)state;
    struct rfx_stage_spec spec = stage(&rfx_mode_streamed, 4, pool_node);
    spec.staging = true;
    struct rfx_plan_request request = {.stages = &spec, .n_stages = 1};
    struct fixture f = begin_with(small_net_bottleneck, request);
    const struct rfx_stage_node *nodes = f.plan->stages[0].nodes;
    assert_int_equal(nodes[SUM].over, A);
    assert_int_equal(nodes[A].lead, 2);
    assert_int_equal(nodes[A].ring_rows, 2);
    assert_int_equal(nodes[C].over, -1);
    static const struct spoiling table[] = {
        {A, LEAD, ITSELF, BYTES, 1, "'a': more bytes than its buffer"},
        {A, LEAD, ITSELF, BYTES, -1, "'sum': writes before its buffer"},
        {SUM, OVER, ZERO, BYTES, B, "'sum': writes before its buffer"},
        {A, LAST_READER, ZERO, BYTES, B, "'sum': reads outside a view"},
        {A, STAGING_BYTES, ITSELF, BYTES, -384, "'a': more bytes than its buffer"},
        {SUM, STAGING_OFFSET, ITSELF, BYTES, 64, "'sum': reads a row that is not there"},
    };
    SPOIL_EACH(f.plan, "over a residual", table);
    end(&f);
    request.no_inplace = true;
    f = begin_with(small_net_bottleneck, request);
    assert_int_equal(f.plan->stages[0].nodes[SUM].over, -1);
    assert_true(f.plan->stages[0].nodes[SUM].staging.offset !=
                f.plan->stages[0].nodes[A].staging.offset);
    end(&f);
}

static void streams_into_a_reduction(void **state) {
    (void)state;
    struct rfx_stage_spec spec = stage(&rfx_mode_streamed, 4, pool_node);
    struct fixture f = begin(&spec, 1);
    static const struct spoiling table[] = {
        {POOL, OFFSET, A, OFFSET, 0, "'a': lies over the state or constants of"},
        {POOL, OFFSET, C, OFFSET, 0, "'b': lies over the state or constants of"},
        {POOL, BYTES, ITSELF, BYTES, -64, "'pool': more bytes than its buffer"},
        {POOL, OFFSET, ITSELF, BYTES, 4096, "'pool': outside the arena"},
        {POOL, PLACE, ZERO, PLACE, RFX_PLACE_LOCAL, "'pool': reads outside a view"},
        {POOL, PLACE, ZERO, PLACE, RFX_PLACE_NONE, "'pool': reads a row that is not there"},
        {POOL, STORED_BYTES, ZERO, BYTES, 0, "'pool': more bytes than its buffer"},
        {POOL, STORED_OFFSET, ITSELF, BYTES, 64, "'pool': outside the arena"},
        {C, PLACE, ZERO, PLACE, RFX_PLACE_REDUCED, "'c': is no reduction"},
        {SUM, RING_ROWS, ITSELF, BYTES, -1, "'c': reads outside a view"},
        {C, RING_ROWS, ITSELF, BYTES, -1, "'c': writes outside its view"},
        {C, OFFSET, SUM, OFFSET, 0, "'c': reads a row that is not there"},
    };
    SPOIL_EACH(f.plan, "reduced", table);
    end(&f);
}

static void constants_by_stage(void **state) {
    (void)state;
    struct rfx_stage_spec spec = stage(&rfx_mode_streamed, 4, pool_node);
    struct rfx_plan_request request = {
        .stages = &spec, .n_stages = 1, .asked.weights_by_stage = true};
    struct fixture f = begin_with(small_net_residual, request);
    static const struct spoiling table[] = {
        {B, PACKED_OFFSET, A, OFFSET, 0, "'a': lies over the state or constants of"},
        {A, PACKED_OFFSET, B, PACKED_OFFSET, 0, "'a': lies over the state or constants of"},
        {C, PACKED_OFFSET, POOL, OFFSET, 0, "'c': lies over the state or constants of"},
        {B, PACKED_BYTES, ITSELF, BYTES, -64, "'b': more bytes than its buffer"},
        {A, PACKED_BYTES, ZERO, BYTES, 0, "'a': its constants have no buffer"},
        {A, PACKED_OFFSET, ITSELF, BYTES, 4096, "'a': outside the arena"},
    };
    SPOIL_EACH(f.plan, "constants", table);
    end(&f);
}

static void emitted_streams(void **state) {
    (void)state;
    static const int output[] = {B};
    struct rfx_stage_spec spec = stage(&rfx_mode_streamed, 4, output);
    for (int strips = 1; strips <= 2; strips++) {
        spec.tiles_x = strips;
        struct rfx_plan_request request = {.stages = &spec, .n_stages = 1, .emit_outputs = true};
        struct fixture f = begin_with(small_net_two_convs, request);
        assert_int_equal(f.plan->stages[0].places[B], RFX_PLACE_EMITTED);
        static const struct spoiling table[] = {
            {B, PLACE, ZERO, PLACE, RFX_PLACE_LOCAL, "'b': not stored, handed out"},
            {B, PLACE, ZERO, PLACE, RFX_PLACE_STORED, "'b': more bytes than its buffer"},
            {B, OFFSET, A, OFFSET, 0, "'b': reads a row that is not there"},
            {A, OFFSET, INPUT, OFFSET, 0, "'a': reads a row that is not there"},
            {B, RING_ROWS, ITSELF, BYTES, -1, "'b': writes outside its view"},
            {A, RING_ROWS, ITSELF, BYTES, -1, "'b': reads outside a view"},
            {B, BYTES, ITSELF, BYTES, -64, "'b': more bytes than its buffer"},
            {B, MACS, ITSELF, BYTES, 1, "MACs"},
        };
        SPOIL_EACH(f.plan, strips == 1 ? "emitted" : "emitted in strips", table);
        end(&f);
    }
}

/* a is written over the dead rows of the input from above, c over those of sum from below. */
static void row_by_row(void **state) {
    (void)state;
    struct rfx_stage_spec spec = stage(&rfx_mode_whole, 0, pool_node);
    spec.row_by_row = true;
    struct fixture f = begin(&spec, 1);
    assert_true(f.plan->stages[0].nodes[C].upwards);
    static const struct spoiling table[] = {
        {A, STEP_ROWS, ZERO, BYTES, 0, "'a': reads a row that is not there"},
        {A, STEP_ROWS, ZERO, BYTES, 12, "'a': reads a row that is not there"},
        {C, STEP_ROWS, ZERO, BYTES, 0, "'c': reads a row that is not there"},
        {A, UPWARDS, ZERO, BYTES, 1, "'a': reads a row that is not there"},
        {C, UPWARDS, ZERO, BYTES, 0, "'c': reads a row that is not there"},
        {INPUT, OFFSET, ITSELF, BYTES, -192, "'a': reads a row that is not there"},
        {C, OFFSET, ITSELF, BYTES, -192, "'c': reads a row that is not there"},
        {B, OFFSET, A, OFFSET, 0, "'b': reads a row that is not there"},
        {C, BYTES, ITSELF, BYTES, -64, "'c': more bytes than its buffer"},
        {POOL, STORED_OFFSET, C, OFFSET, 0, "'pool': reads a row that is not there"},
        {A, MACS, ITSELF, BYTES, 1, "MACs"},
    };
    SPOIL_EACH(f.plan, "row by row", table);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_plans),
        cmocka_unit_test(streams),
        cmocka_unit_test(files),
        cmocka_unit_test(tiles),
        cmocka_unit_test(tight_streams),
        cmocka_unit_test(tight_in_place),
        cmocka_unit_test(tight_over_a_residual),
        cmocka_unit_test(streams_into_a_reduction),
        cmocka_unit_test(constants_by_stage),
        cmocka_unit_test(emitted_streams),
        cmocka_unit_test(row_by_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
