/* Shards through the library alone: outputs put together from shards have the bits of one run,
 * whatever the output is made of (a map, cells of several maps, a map behind rounds of states, a
 * vector behind them); the identity of a run tells what changes bits; and what cannot be merged is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/image/decode/npy_format.h"
#include "rfexec/run/session.h"
#include "rfexec/shards/shard_identity.h"
#include "rfexec/shards/shard_merge.h"
#include "rfexec/shards/shard_rounds.h"
#include "tests/support/run/catch_outputs.h"
#include "tests/support/test_util.h"

enum { SHARDS = 3, CHARS = 64 };

static const struct rfx_output_format npy = {.kind = &rfx_output_npy};

/* A network and its image. */
struct net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_image *image;
    struct rfx_image_options read;
    struct rfx_shard_run run;
    char input[CHARS], hash[RFX_FINGERPRINT_CHARS];
    struct caught_outputs whole; /* of a run of the whole network */
};

static void succeed(enum rfx_status status, const struct rfx_error *err) {
    if (status != RFX_OK) fail_msg("%s", err->text);
}

static void run_plan(const struct rfx_graph *graph, struct rfx_image *image,
                     const struct rfx_plan *plan, const struct rfx_output_sink *sink,
                     const struct rfx_state_sink *states) {
    struct rfx_error err = {{0}};
    struct rfx_session *session = NULL;
    struct rfx_run_report report;
    succeed(rfx_session_create(plan, NULL, graph->mem, &session, &err), &err);
    rfx_session_set_sink(session, sink);
    rfx_session_set_state_sink(session, states);
    succeed(rfx_session_run(session, image, NULL, NULL, &report, &err), &err);
    rfx_session_free(session);
}

static struct rfx_plan_request request_of(struct rfx_image *image) {
    return (struct rfx_plan_request){
        .source = rfx_image_traits(image), .threads = 1, .emit_outputs = true};
}

static void run_graph(const struct rfx_graph *graph, struct rfx_image *image,
                      const struct rfx_output_sink *sink) {
    struct rfx_error err = {{0}};
    struct rfx_plan *plan = NULL;
    const struct rfx_plan_request request = request_of(image);
    succeed(rfx_plan_create(graph, &request, &plan, &err), &err);
    run_plan(graph, image, plan, sink, NULL);
    rfx_plan_free(plan);
}

static void open_net(struct net *net, const char *model, int64_t h, int64_t w, uint64_t seed) {
    struct rfx_error err = {{0}};
    const struct rfx_load_options load = {.h = h, .w = w, .seed = seed, .conv = test_conv_choice()};
    *net = (struct net){.mem = rfx_memory_create(0), .read = rfx_image_default_options()};
    (void)snprintf(net->input, CHARS, "synthetic:%dx%d", (int)h, (int)w);
    succeed(rfx_model_load(net->mem, model, &load, &net->graph, &err), &err);
    succeed(rfx_image_open(net->mem, net->input, &net->read, &net->image, &err), &err);
    net->run = (struct rfx_shard_run){.graph = net->graph,
                                      .model = model,
                                      .input = net->input,
                                      .image = net->image,
                                      .read = &net->read,
                                      .seed = seed};
}

static void close_net(struct net *net) {
    if (net->whole.n > 0) caught_outputs_free(&net->whole);
    rfx_image_free(net->image);
    rfx_graph_free(net->graph);
    assert_int_equal(rfx_memory_current_bytes(net->mem), 0);
    rfx_memory_free(net->mem);
}

/* The fingerprint of output 0, from a run of the whole network. */
static void run_whole(struct net *net) {
    struct rfx_fingerprint all = {0};
    catch_outputs(&net->whole, net->graph);
    run_graph(net->graph, net->image, &net->whole.sink);
    rfx_fingerprint_add(&all, RFX_TYPE_FLOAT32, 0, net->whole.values[0], net->whole.elems[0]);
    rfx_fingerprint_hex(&all, net->hash);
}

static json_t *identity_of(const struct net *net) {
    struct rfx_error err = {{0}};
    json_t *run = NULL;
    succeed(rfx_shard_identity(&net->run, &run, &err), &err);
    return run;
}

/* Shard `index` of output 0, from 0, without its values. */
static struct rfx_shard_file describe(const struct net *net, int index) {
    const struct rfx_output *output = &net->graph->outputs[0];
    struct rfx_shard_file shard = {.shape = net->graph->nodes[output->node].out.shape,
                                   .stored = output->stored,
                                   .run = identity_of(net)};
    (void)snprintf(shard.output, sizeof shard.output, "%s", output->name);
    if (!rfx_shard_cells_share(net->graph, 0, index, SHARDS, &shard.cells))
        shard.rect = rfx_part_map_rows(net->graph, output->node, index, SHARDS);
    return shard;
}

static void make_shard(const struct net *net, const struct rfx_shard_before *before, int index,
                       const char *path) {
    struct rfx_error err = {{0}};
    struct rfx_shard_file shard = describe(net, index);
    struct rfx_graph *graph = NULL;
    struct rfx_shard_writer writer = {
        .shard = &shard, .base = net->graph, .index = index, .count = SHARDS};
    succeed(rfx_shard_file_graph(&shard, net->graph, 0, before->known, before->states.n, index,
                                 SHARDS, &graph, &err),
            &err);
    succeed(rfx_shard_writer_open(&writer, path, &err), &err);
    const struct rfx_output_sink sink = rfx_shard_writer_sink(&writer);
    run_graph(graph, net->image, &sink);
    succeed(rfx_shard_writer_commit(&writer, path, &err), &err);
    rfx_shard_writer_free(&writer);
    rfx_shard_file_release(&shard);
    rfx_graph_free(graph);
}

static void remove_with_json(const char *path) {
    char name[CHARS];
    (void)snprintf(name, sizeof name, "%s.json", path);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(name), 0);
}

/* Whether the file has the values of the whole run, to the bit. */
static void compare_file(const struct net *net, const char *path) {
    unsigned char head[RFX_NPY_MAX_HEADER_BYTES];
    struct rfx_npy_header header;
    struct rfx_error err = {{0}};
    int64_t n = net->whole.elems[0];
    float *values = test_floats(n);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    succeed(rfx_npy_parse(head, fread(head, 1, sizeof head, file), &header, &err), &err);
    assert_int_equal(fseek(file, (long)header.data_offset, SEEK_SET), 0);
    assert_int_equal(fread(values, sizeof *values, (size_t)n, file), n);
    assert_int_equal(fgetc(file), EOF);
    assert_int_equal(fclose(file), 0);
    assert_memory_equal(values, net->whole.values[0], (size_t)n * sizeof *values);
    free(values);
}

static const char *const shard_names[SHARDS] = {"shards_p1.npy", "shards_p2.npy", "shards_p3.npy"};

static int stop(void *user, int64_t done, int64_t total) {
    (void)user;
    return done <= total;
}

static enum rfx_status read_and_merge(struct rfx_memory *mem, void *context,
                                      struct rfx_error *err) {
    struct rfx_shards shards;
    (void)context;
    enum rfx_status status = rfx_shards_read(mem, shard_names, SHARDS, &shards, err);
    if (status == RFX_OK)
        status = rfx_shards_merge(&shards, "shards_all.npy", &npy, 0, NULL, NULL, err);
    rfx_shards_release(&shards);
    return status;
}

static void merge_shards(const struct net *net) {
    struct rfx_shards shards;
    struct rfx_error err = {{0}};
    char hash[RFX_FINGERPRINT_CHARS];
    succeed(rfx_shards_read(net->mem, shard_names, SHARDS, &shards, &err), &err);
    assert_int_equal(rfx_shards_merge(&shards, "shards_all.npy", &npy, 4096, NULL, NULL, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_int_equal(rfx_shards_merge(&shards, "shards_all.npy", &npy, 0, stop, NULL, &err),
                     RFX_STATUS_CANCELLED);
    rfx_shards_release(&shards);
    assert_null(fopen("shards_all.npy", "rb"));
    succeed(rfx_shards_read(net->mem, shard_names, SHARDS, &shards, &err), &err);
    succeed(rfx_shards_merge(&shards, "shards_all.npy", &npy, 0, NULL, NULL, &err), &err);
    rfx_shards_hash(&shards, hash);
    assert_string_equal(hash, net->hash);
    rfx_shards_release(&shards);
    compare_file(net, "shards_all.npy");
    assert_in_range(test_fail_each_allocation(read_and_merge, NULL), 4, 1000);
    assert_int_equal(remove("shards_all.npy"), 0);
    assert_int_equal(rfx_shards_read(net->mem, shard_names, SHARDS - 1, &shards, &err),
                     RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "belong to no part"));
    rfx_shards_release(&shards);
}

static const char *const state_names[SHARDS] = {"shards_s1", "shards_s2", "shards_s3"};

static enum rfx_status add_up(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_shard_sum sum;
    (void)context;
    enum rfx_status status = rfx_shard_sum_read(mem, state_names, SHARDS, 0, &sum, err);
    rfx_shard_sum_release(&sum);
    return status;
}

/* A round: every shard's states in a file, and their sum, which goes on. false: the sum makes the
 * output. */
static bool make_round(const struct net *net, struct rfx_shard_before *before) {
    static const char *const twice[SHARDS] = {"shards_s1", "shards_s2", "shards_s2"};
    const struct rfx_plan_request request = request_of(net->image);
    struct rfx_shard_sum sum;
    struct rfx_error err = {{0}};
    for (int i = 0; i < SHARDS; i++) {
        struct rfx_shard_states states = {.mem = net->mem,
                                          .round = before->states.round + 1,
                                          .index = i + 1,
                                          .count = SHARDS,
                                          .run = identity_of(net),
                                          .about = json_pack("{s:s}", "model", net->run.model)};
        struct rfx_shard_round round;
        (void)snprintf(states.output, sizeof states.output, "%s", net->graph->outputs[0].name);
        succeed(rfx_shard_round_plan(net->graph, &request, 0, before, NULL, &states, &round, &err),
                &err);
        const struct rfx_state_sink sink = rfx_shard_round_sink(&states);
        run_plan(round.graph, net->image, round.plan, NULL, &sink);
        succeed(rfx_shard_states_write(state_names[i], net->graph, &states, &err), &err);
        rfx_shard_round_release(&round);
        rfx_shard_states_release(&states);
    }
    assert_int_equal(rfx_shard_sum_read(net->mem, twice, SHARDS, 0, &sum, &err),
                     RFX_STATUS_MALFORMED);
    rfx_shard_sum_release(&sum);
    assert_int_equal(rfx_shard_sum_read(net->mem, state_names, SHARDS - 1, 0, &sum, &err),
                     RFX_STATUS_MALFORMED);
    rfx_shard_sum_release(&sum);
    succeed(rfx_shard_sum_read(net->mem, state_names, SHARDS, 0, &sum, &err), &err);
    bool last = rfx_shard_sum_is_last(&sum);
    if (last) assert_in_range(test_fail_each_allocation(add_up, NULL), 4, 100000);
    if (last) {
        struct rfx_shard_rest rest;
        struct caught_outputs made;
        succeed(rfx_shard_rest_plan(&sum, 0, 0, &rest, &err), &err);
        catch_outputs(&made, rest.graph);
        run_plan(rest.graph, rest.image, rest.plan, &made.sink, NULL);
        assert_int_equal(made.elems[0], net->whole.elems[0]);
        assert_memory_equal(made.values[0], net->whole.values[0],
                            (size_t)made.elems[0] * sizeof(float));
        caught_outputs_free(&made);
        rfx_shard_rest_release(&rest);
    }
    succeed(rfx_shard_states_write("shards_sum", sum.graph, &sum.made.states, &err), &err);
    rfx_shard_sum_release(&sum);
    rfx_shard_before_release(before);
    succeed(rfx_shard_states_read("shards_sum", net->graph, &before->states, &err), &err);
    succeed(rfx_shard_before_settle(before, net->graph, 0, &err), &err);
    for (int i = 0; i < SHARDS; i++) remove_with_json(state_names[i]);
    remove_with_json("shards_sum");
    return !last;
}

/* Makes output 0 from shards; *rounds: of states that were needed. */
static void check_output(const char *model, int64_t h, int64_t w, int *rounds) {
    struct net net;
    struct rfx_error err = {{0}};
    open_net(&net, model, h, w, 1);
    run_whole(&net);
    struct rfx_shard_before before = {.states.mem = net.mem};
    bool shards = true;
    succeed(rfx_shard_before_settle(&before, net.graph, 0, &err), &err);
    succeed(rfx_shard_rounds_check(net.graph, 0, &before.rounds, &err), &err);
    for (*rounds = 0; before.rounds.rounds > 0; ++*rounds) shards = make_round(&net, &before);
    for (int i = 0; shards && i < SHARDS; i++) make_shard(&net, &before, i, shard_names[i]);
    if (shards) merge_shards(&net);
    for (int i = 0; shards && i < SHARDS; i++) remove_with_json(shard_names[i]);
    rfx_shard_before_release(&before);
    close_net(&net);
}

static void a_map_is_made_of_rectangles(void **state) {
    (void)state;
    int rounds;
    check_output("fsrcnn", 40, 33, &rounds);
    assert_int_equal(rounds, 0);
}

static void joined_maps_are_made_of_cells(void **state) {
    (void)state;
    int rounds;
    check_output("yolov8n", 96, 64, &rounds);
    assert_int_equal(rounds, 0);
}

static void rounds_come_before_a_map(void **state) {
    (void)state;
    int rounds;
    check_output("unet_instance", 32, 48, &rounds);
    assert_true(rounds > 1);
}

static void the_last_sum_makes_a_vector(void **state) {
    (void)state;
    int rounds;
    check_output("mobilenet_v2:0.5", 64, 49, &rounds);
    assert_int_equal(rounds, 1);
}

/* Every member that changes bits changes the identity, and loading can be repeated from it. */
static void identities_tell_runs_apart(void **state) {
    (void)state;
    static const struct rfx_fuse_options nothing = {0}, other = {.activation = true};
    struct net net;
    struct rfx_error err = {{0}};
    struct rfx_load_options load = {0};
    open_net(&net, "fsrcnn", 24, 20, 7);
    json_t *first = identity_of(&net), *again = identity_of(&net), *changed, *none = NULL;
    assert_true(json_equal(first, again));
    json_decref(again);
    assert_true(rfx_shard_identity_load_options(first, &load));
    assert_true(load.h == 24 && load.w == 20 && load.seed == 7 && load.fuse == NULL);
    assert_int_equal(load.fit.multiple, 1);
    net.run.fit = (struct rfx_fit_size){.multiple = 32, .mode = RFX_PAD_EDGE};
    net.run.fuse = &nothing;
    changed = identity_of(&net);
    assert_false(json_equal(first, changed));
    assert_true(rfx_shard_identity_load_options(changed, &load));
    assert_true(load.fit.multiple == 32 && load.fit.mode == RFX_PAD_EDGE);
    assert_memory_equal(load.fuse, &nothing, sizeof nothing);
    json_decref(changed);
    net.run.fit = (struct rfx_fit_size){0};
    net.run.fuse = NULL;
    net.read.bgr = true;
    changed = identity_of(&net);
    assert_false(json_equal(first, changed));
    json_decref(changed);
    net.read.bgr = false;
    for (int i = 0; i < 4; i++) {
        net.graph->int8 = (enum rfx_int8_choice)(i % 2);
        net.graph->dequantized = i >= 2;
        changed = identity_of(&net);
        assert_true(json_equal(first, changed) == (i == 0));
        assert_true(rfx_shard_identity_load_options(changed, &load));
        assert_true(load.int8 == net.graph->int8 && load.dequantize == net.graph->dequantized);
        (void)json_object_set_new(changed, "int8", json_string("spec to"));
        assert_false(rfx_shard_identity_load_options(changed, &load));
        json_decref(changed);
    }
    net.run.fuse = &other;
    assert_int_equal(rfx_shard_identity(&net.run, &none, &err), RFX_STATUS_INVALID_ARGUMENT);
    (void)json_object_set_new(json_object_get(first, "options"), "pad to", json_string("32,none"));
    assert_false(rfx_shard_identity_load_options(first, &load));
    json_decref(first);
    close_net(&net);
}

int main(void) {
    if (test_skip()) return TEST_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_is_made_of_rectangles),
        cmocka_unit_test(joined_maps_are_made_of_cells),
        cmocka_unit_test(rounds_come_before_a_map),
        cmocka_unit_test(the_last_sum_makes_a_vector),
        cmocka_unit_test(identities_tell_runs_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
