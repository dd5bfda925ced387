/* How planning grows with the graph: candidates that are looked at, memory, and how soon it stops
 * when it is asked to; what a larger process adds. Time is bounded generously: before there was a
 * limit it took hours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/support/test_util.h"
#include "tiler/search/candidates.h"

enum { SIDE = 64 };
#ifdef RFX_SANITIZE
#define MOST_SECONDS 300.0
#else
#define MOST_SECONDS 30.0
#endif

struct net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    int last;
};

static int add(struct net *net, struct rfx_node node, int number) {
    struct rfx_error err = {{0}};
    char name[32];
    int index = -1;
    (void)snprintf(name, sizeof name, "n%d", number);
    node.name = name;
    if (rfx_graph_add(net->graph, &node, &index, &err) != RFX_OK) fail_msg("%s", err.text);
    return index;
}

static struct net begin(void) {
    struct rfx_error err = {{0}};
    struct net net = {.mem = rfx_memory_create(0)};
    struct rfx_node input = {.op = RFX_OP_INPUT};
    assert_non_null(net.mem);
    if (rfx_graph_create(net.mem, "large", &net.graph, &err) != RFX_OK) fail_msg("%s", err.text);
    input.attr.input.c = 3;
    input.attr.input.h = input.attr.input.w = SIDE;
    net.last = add(&net, input, 0);
    return net;
}

static int add_sigmoid(struct net *net, int in, int number) {
    struct rfx_node node = {.op = RFX_OP_ACTIVATION, .n_in = 1, .in = &in};
    node.act = (struct rfx_act){.kind = RFX_ACT_SIGMOID, .slope = -1};
    return add(net, node, number);
}

static void add_output(struct net *net, int node) {
    struct rfx_error err = {{0}};
    char name[32];
    (void)snprintf(name, sizeof name, "out%d", node);
    if (rfx_graph_add_output(net->graph, node, name, &err) != RFX_OK) fail_msg("%s", err.text);
}

static struct net finish(struct net net) {
    static const struct rfx_fuse_options nothing = {0};
    struct rfx_error err = {{0}};
    if (rfx_graph_finish(net.graph, &nothing, &err) != RFX_OK) fail_msg("%s", err.text);
    return net;
}

static void end(struct net *net) {
    rfx_graph_free(net->graph);
    rfx_memory_free(net->mem);
}

static struct net make_chain(int n) {
    struct net net = begin();
    for (int i = 1; i <= n; i++) net.last = add_sigmoid(&net, net.last, i);
    add_output(&net, net.last);
    return finish(net);
}

static struct net make_wide(int n) {
    struct net net = begin();
    int *parts = test_calloc((size_t)n, sizeof *parts);
    for (int i = 0; i < n; i++) parts[i] = add_sigmoid(&net, 0, i + 1);
    struct rfx_node concat = {.op = RFX_OP_CONCAT, .n_in = n, .in = parts};
    add_output(&net, add(&net, concat, n + 1));
    test_free(parts);
    return finish(net);
}

static struct net make_outputs(int n) {
    struct net net = begin();
    for (int i = 0; i < n; i++) add_output(&net, add_sigmoid(&net, 0, i + 1));
    return finish(net);
}

/* Each layer reads all before it. */
static struct net make_dense(int n) {
    struct net net = begin();
    int *parts = test_calloc((size_t)n + 1, sizeof *parts);
    for (int i = 0; i < n; i++) {
        struct rfx_node concat = {.op = RFX_OP_CONCAT, .n_in = i + 1, .in = parts};
        int64_t first = 0;
        int joined = i == 0 ? parts[0] : add(&net, concat, 2 * i + 1);
        struct rfx_node select = {.op = RFX_OP_CHANNEL_SELECT, .n_in = 1, .in = &joined};
        select.attr.select.count = 1;
        select.attr.select.map = &first;
        parts[i + 1] = add(&net, select, 2 * i + 2);
    }
    add_output(&net, parts[n]);
    test_free(parts);
    return finish(net);
}

static struct rfx_plan_request request_for(const struct net *net, size_t memory_bytes) {
    const struct rfx_tensor *input = &net->graph->nodes[net->graph->input].out;
    return (struct rfx_plan_request){
        .source = {.h = input->h, .w = input->w, .c = input->c, .random_access = true},
        .threads = 2,
        .memory_bytes = memory_bytes,
        .emit_outputs = true,
        .caches = {.second_bytes = (size_t)1 << 20, .shared_bytes = (size_t)16 << 20}};
}

static const struct shape {
    const char *name;
    struct net (*make)(int n);
    int n;
} shapes[] = {
    {"chain", make_chain, 10000},
    {"concat", make_wide, 10000},
    {"outputs", make_outputs, 2000},
    {"dense block", make_dense, 1000},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Six candidate templates of the streamed mode, one each of the others. */
enum { TEMPLATES = 8 };

static void candidates_are_limited(void **state) {
    (void)state;
    for (int k = 0; k < SHAPES; k++) {
        struct net net = shapes[k].make(shapes[k].n);
        struct rfx_plan_request request = request_for(&net, SIZE_MAX);
        struct rfx_search search;
        struct rfx_error err = {{0}};
        if (rfx_search_init(&search, net.graph, &request, &err) != RFX_OK) fail_msg("%s", err.text);
        for (int phase = 0; phase < RFX_PHASES; phase++)
            assert_int_equal(rfx_search_list(&search, phase, &err), RFX_OK);
        print_message("%s of %d: %d laid out, %d in all their ways\n", shapes[k].name, shapes[k].n,
                      (int)search.tried, (int)search.n_candidates);
        assert_true(search.tried > 0);
        assert_true((int64_t)search.tried <= TEMPLATES * search.most);
        rfx_search_release(&search);
        end(&net);
    }
}

static double used_seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

static void planning_is_short_and_small(void **state) {
    (void)state;
    static const size_t budgets[] = {0, (size_t)1 << 20, (size_t)48 << 20};
    for (int k = 0; k < SHAPES; k++)
        for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++) {
            struct net net = shapes[k].make(shapes[k].n);
            struct rfx_plan_request request = request_for(&net, budgets[b]);
            struct rfx_plan *plan = NULL;
            struct rfx_error err = {{0}};
            size_t before = rfx_memory_mark(net.mem);
            double begun = used_seconds();
            enum rfx_status status = rfx_plan_create(net.graph, &request, &plan, &err);
            double seconds = used_seconds() - begun;
            size_t bytes = rfx_memory_taken_high_water_bytes(net.mem) - before;
            print_message("%s of %d, budget %zu MiB: status %d, %.2f s, %.1f MiB\n", shapes[k].name,
                          shapes[k].n, budgets[b] >> 20, (int)status, seconds,
                          (double)bytes / 1048576.0);
            if (status != RFX_OK && (budgets[b] == 0 || status != RFX_STATUS_BUDGET_IMPOSSIBLE))
                fail_msg("%s", err.text);
            assert_true(seconds < MOST_SECONDS);
            assert_true(bytes <= (size_t)32 << 20);
            rfx_plan_free(plan);
            end(&net);
        }
}

/* Answers false so many times. */
struct asker {
    int64_t left, asked_after;
};

static bool is_wanted(void *user) {
    struct asker *asker = user;
    if (asker->left > 0) {
        asker->left--;
        return false;
    }
    asker->asked_after++;
    return true;
}

/* Plans, answering "stop" after k questions; false: it ended before. What ends the work asks only a
 * few more times, and leaves nothing. */
static bool stop_after(const struct net *net, size_t budget, int64_t k) {
    struct rfx_plan_request request = request_for(net, budget);
    size_t before = rfx_memory_current_bytes(net->mem);
    struct asker asker = {.left = k};
    struct rfx_plan *plan = NULL, *smallest = NULL;
    struct rfx_error err = {{0}};
    rfx_memory_set_stop(net->mem, is_wanted, &asker);
    enum rfx_status status =
        rfx_plan_create_or_smallest(net->graph, &request, &plan, &smallest, &err);
    rfx_memory_set_stop(net->mem, NULL, NULL);
    if (asker.asked_after == 0) {
        assert_int_not_equal(status, RFX_STATUS_CANCELLED);
        rfx_plan_free(plan);
        rfx_plan_free(smallest);
        return false;
    }
    if (status != RFX_STATUS_CANCELLED)
        fail_msg("stopped after %lld questions: status %d, %s", (long long)k, (int)status,
                 err.text);
    assert_null(plan);
    assert_null(smallest);
    assert_non_null(strstr(err.text, "stopped"));
    assert_true(asker.asked_after < 200);
    if (rfx_memory_current_bytes(net->mem) != before)
        fail_msg("stopped after %lld questions of a budget of %zu bytes: %zu bytes are left",
                 (long long)k, budget, rfx_memory_current_bytes(net->mem) - before);
    return true;
}

/* At any moment planning stops: where nothing fits, and where a plan fits and a better one is
 * looked for. */
static void planning_stops_at_any_moment(void **state) {
    (void)state;
    static const size_t budgets[] = {(size_t)9 << 20, (size_t)12 << 20, (size_t)64 << 20};
    struct net nets[] = {make_chain(60), make_dense(24)};
    for (size_t m = 0; m < sizeof nets / sizeof nets[0]; m++) {
        int stopped = 0;
        for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++)
            for (int64_t k = 0; stop_after(&nets[m], budgets[b], k); k = k * 9 / 8 + 1) stopped++;
        print_message("stopped at %d moments\n", stopped);
        assert_true(stopped > 60);
        end(&nets[m]);
    }
}

static size_t peak_of(const struct net *net, size_t process_bytes, bool *planning) {
    struct rfx_plan_request request = request_for(net, 0);
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    request.process_bytes = process_bytes;
    if (rfx_plan_create(net->graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    size_t peak = plan->peak_bytes;
    *planning = plan->bytes.reserve > rfx_plan_process_bytes(net->graph, &request);
    rfx_plan_free(plan);
    return peak;
}

/* What a process holds above a usual one counts while the network runs, and while it is planned,
 * which takes more memory where layers are many. */
static void a_larger_process_takes_more(void **state) {
    static const int layers[2] = {10, 1500};
    const size_t usual = rfx_plan_reserve_bytes(1), more = (size_t)3 << 20;
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct net net = make_chain(layers[k]);
        bool planning;
        size_t peak = peak_of(&net, 0, &planning);
        assert_int_equal(planning, k == 1);
        assert_int_equal(peak_of(&net, usual, &planning), peak);
        assert_int_equal(peak_of(&net, usual + more, &planning), peak + more);
        assert_int_equal(planning, k == 1);
        end(&net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_larger_process_takes_more),
        cmocka_unit_test(candidates_are_limited),
        cmocka_unit_test(planning_is_short_and_small),
        cmocka_unit_test(planning_stops_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
