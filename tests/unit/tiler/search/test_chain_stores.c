/* What a choice of stored maps comes to, against the stages that are made of it; and how far from
 * the best choice the one that is made is, all choices of small networks tried. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rf_analysis/regions.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/stage.h"
#include "tiler/search/chain_stores.h"

enum { MOST = 1 << 14, MOST_NODES = 512, MOST_CHOICES = 20000 };

/* A network, its levels, and a time for each of its nodes. */
struct net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_levels levels;
    double *times;
    int *until;
    int offers[MOST];
    int n_offers;
    size_t beside[MOST]; /* per level */
};

/* Whether it is stored in any case: for what is not local, or as an output that others read. */
static bool is_kept(const struct rfx_levels *levels, int i) {
    unsigned uses = levels->uses[i];
    bool output = (uses & RFX_USE_OUTPUT) != 0 && (uses & RFX_USE_LOCAL) != 0;
    return rfx_node_is_local(&levels->graph->nodes[i]) && (output || (uses & RFX_USE_REST) != 0);
}

static bool is_offer(const struct rfx_levels *levels, int i) {
    const struct rfx_node *node = &levels->graph->nodes[i];
    return rfx_node_is_local(node) && !rfx_node_is_constant(node) && !rfx_node_is_input(node) &&
           (levels->uses[i] & RFX_USE_ONWARD) != 0 && !is_kept(levels, i);
}

static struct net make_net(uint64_t seed) {
    struct random_graph_options options = random_graph_defaults();
    struct net net = {.mem = rfx_memory_create(0)};
    struct rfx_error err;
    options.modern = 100; /* with norms or attention */
    options.min_nodes = 10;
    options.max_nodes = 40;
    options.max_size = 24;
    net.graph = random_graph_make(net.mem, seed, &options);
    size_t n = (size_t)net.graph->n_nodes;
    assert_int_equal(rfx_levels_init(&net.levels, net.graph, NULL, 0, &err), RFX_OK);
    net.times = calloc(n, sizeof *net.times);
    net.until = calloc(n, sizeof *net.until);
    assert_true(net.times != NULL && net.until != NULL);
    for (size_t i = 0; i < n; i++) net.until[i] = -1;
    for (int i = 0; i < net.graph->n_nodes; i++) {
        net.times[i] = 1.0 + (double)rfx_node_roi_bytes(&net.graph->nodes[i]);
        if (is_offer(&net.levels, i)) net.offers[net.n_offers++] = i;
    }
    return net;
}

static void free_net(struct net *net) {
    rfx_levels_release(&net->levels);
    free(net->times);
    free(net->until);
    rfx_graph_free(net->graph);
    rfx_memory_free(net->mem);
}

static int compare_sizes(const void *pa, const void *pb) {
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    return (a < b) - (a > b);
}

/* Bytes of two lists of maps that are not counted twice: the largest of the one take the places of
 * the largest of the other, one by one, up to four. */
static size_t shared_by(size_t *made, size_t n_made, size_t *dying, size_t n_dying) {
    size_t shared = 0;
    qsort(made, n_made, sizeof *made, compare_sizes);
    qsort(dying, n_dying, sizeof *dying, compare_sizes);
    for (size_t k = 0; k < 4 && k < n_made && k < n_dying; k++)
        shared += made[k] < dying[k] ? made[k] : dying[k];
    return shared;
}

/* By the places of all stages: the time of what those that are local compute, and the bytes of the
 * maps that later ones read, less what is made in the place of what dies, with what is beside. */
static struct rfx_chain_count count_by_stages(const struct net *net) {
    const struct rfx_graph *graph = net->graph;
    struct rfx_partition chain = {.kind = RFX_PARTITION_CHAIN, .until = net->until};
    struct rfx_chain_count count = {0};
    struct rfx_stage_spec *specs = calloc(MOST, sizeof *specs);
    int *targets = calloc(MOST, sizeof *targets);
    bool *spilled = calloc(MOST, sizeof *spilled), *stored = calloc(MOST, sizeof *stored);
    enum rfx_node_place *places = calloc(MOST, sizeof *places);
    int *last = calloc(MOST, sizeof *last);
    assert_true(specs && targets && spilled && stored && places && last);
    assert_true(rfx_partition_max_stages(&net->levels) * graph->n_nodes <= MOST);
    assert_true(graph->n_nodes <= MOST_NODES);
    for (int i = 0; i < graph->n_nodes; i++) last[i] = net->levels.level[i];
    int n = rfx_partition_stages(&net->levels, &chain, &rfx_mode_whole, specs, targets, spilled);
    for (int s = 0; s < n; s++) {
        struct rfx_error err;
        bool local = specs[s].mode == NULL;
        int level = net->levels.level[specs[s].targets[0]];
        if (local) specs[s].mode = &rfx_mode_streamed, specs[s].band_rows = 4;
        assert_int_equal(rfx_stage_places(graph, &specs[s], false, stored, NULL, places, &err),
                         RFX_OK);
        for (int i = 0; local && i < graph->n_nodes; i++) {
            if (places[i] >= RFX_PLACE_LOCAL && places[i] != RFX_PLACE_REDUCED &&
                rfx_node_is_local(&graph->nodes[i]))
                count.time += net->times[i];
            if (places[i] == RFX_PLACE_READ && level > last[i]) last[i] = level;
        }
    }
    for (int level = 0; level < net->levels.n; level++) {
        size_t alive = 0, made[MOST_NODES], dying[MOST_NODES], n_made = 0, n_dying = 0;
        for (int i = 0; i < graph->n_nodes; i++) {
            bool kept = is_kept(&net->levels, i);
            size_t bytes = rfx_node_roi_bytes(&graph->nodes[i]);
            int first = net->levels.level[i];
            if ((net->until[i] < 0 && !kept) || level < first || level > last[i]) continue;
            alive += bytes;
            if (level == first) made[n_made++] = bytes;
            if (level == last[i] && level > first) dying[n_dying++] = bytes;
        }
        alive -= shared_by(made, n_made, dying, n_dying);
        alive += net->beside[level];
        if (alive > count.bytes) count.bytes = alive;
    }
    free(specs);
    free(targets);
    free(spilled);
    free(stored);
    free(places);
    free(last);
    return count;
}

/* With nothing beside the maps, or with as much as a map at each level, or less. */
static struct rfx_chain_stores *begin(struct net *net, struct test_rng *rng, bool beside) {
    struct rfx_chain_stores *stores = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_chain_stores_create(&net->levels, net->times, &stores, &err), RFX_OK);
    for (int level = 0; level < net->levels.n; level++) {
        size_t most = rfx_node_roi_bytes(&net->graph->nodes[net->graph->n_nodes / 2]);
        net->beside[level] = beside ? (size_t)test_rng_int(rng, 0, (int64_t)most) : 0;
        rfx_chain_stores_beside(stores)[level] = net->beside[level];
    }
    return stores;
}

static void counts_are_those_of_the_stages(void **state) {
    (void)state;
    int64_t cases = test_env_int("RFX_CASES", 300), seed = test_env_int("RFX_SEED", 1), some = 0;
    for (int64_t c = 0; c < cases; c++) {
        struct net net = make_net((uint64_t)(seed + c));
        struct test_rng rng = test_rng_make((uint64_t)(seed + c));
        struct rfx_chain_stores *stores = net.levels.n > 1 ? begin(&net, &rng, c % 2 == 1) : NULL;
        for (int t = 0; t < 4 && stores != NULL; t++) {
            struct rfx_chain_count count;
            for (int k = 0; k < net.n_offers; k++) {
                int i = net.offers[k], level = net.levels.level[i];
                int some_level = (int)test_rng_int(&rng, level + 1, net.levels.n);
                bool whole = test_rng_chance(&rng, 50);
                net.until[i] = test_rng_chance(&rng, 50) ? -1 : whole ? INT_MAX : some_level;
            }
            rfx_chain_stores_count(stores, net.until, &count);
            struct rfx_chain_count found = count_by_stages(&net);
            assert_true(count.time == found.time);
            assert_int_equal(count.bytes, found.bytes);
            some += found.bytes > 0;
        }
        rfx_chain_stores_free(stores);
        free_net(&net);
    }
    print_message("%d choices in %d networks\n", (int)some, (int)cases);
    assert_true(some > cases / 2);
}

/* Choices of one map: none, and up to each level at which something may read it. */
static int64_t choices_of(const struct net *net, int offer) {
    return net->levels.n - net->levels.level[net->offers[offer]];
}

static int64_t count_choices(const struct net *net) {
    int64_t n = 1;
    for (int k = 0; k < net->n_offers && n <= MOST_CHOICES; k++) n *= choices_of(net, k);
    return n;
}

/* The least time of all choices that fit. */
static double best_of_all(const struct net *net, struct rfx_chain_stores *stores, size_t room) {
    struct rfx_chain_count count;
    double best = -1.0;
    for (int64_t set = 0; set < count_choices(net); set++) {
        int64_t rest = set;
        for (int k = 0; k < net->n_offers; k++) {
            int i = net->offers[k], choice = (int)(rest % choices_of(net, k));
            net->until[i] = choice == 0 ? -1 : net->levels.level[i] + choice;
            rest /= choices_of(net, k);
        }
        rfx_chain_stores_count(stores, net->until, &count);
        if (count.bytes <= room && (best < 0.0 || count.time < best)) best = count.time;
    }
    return best;
}

/* A choice fits, counts as it says, and is the best one most of the time. */
static void look_at_choices(int64_t cases, bool beside) {
    int64_t seed = test_env_int("RFX_SEED", 1);
    const struct rfx_chain_preference ways[] = {
        {true, true}, {false, true}, {true, false}, {false, false}};
    int tried = 0, best_ones = 0;
    for (int64_t c = 0; c < 10 * cases && tried < cases / 3; c++) { /* few are that small */
        struct net net = make_net((uint64_t)(seed + c));
        struct test_rng rng = test_rng_make((uint64_t)(seed + c));
        bool small = net.levels.n > 1 && net.n_offers > 1 && count_choices(&net) <= MOST_CHOICES;
        struct rfx_chain_stores *stores = small ? begin(&net, &rng, beside) : NULL;
        struct rfx_chain_count all, none, got, again;
        if (small) {
            rfx_chain_stores_choose(stores, 0, ways[0], net.until, &none);
            rfx_chain_stores_choose(stores, SIZE_MAX, ways[0], net.until, &all);
            assert_true(all.time <= none.time);
        }
        for (int t = 0; small && t < 2; t++) {
            size_t room = none.bytes + (size_t)test_rng_int(&rng, 0, (int64_t)all.bytes);
            double least = 0.0;
            for (int way = 0; way < 4; way++) {
                rfx_chain_stores_choose(stores, room, ways[way], net.until, &got);
                rfx_chain_stores_count(stores, net.until, &again);
                assert_true(got.time == again.time && got.bytes == again.bytes);
                assert_true(got.bytes <= room && got.time <= none.time);
                if (way == 0 || got.time < least) least = got.time;
            }
            double best = best_of_all(&net, stores, room);
            assert_true(least >= best);
            tried++;
            best_ones += least == best;
        }
        rfx_chain_stores_free(stores);
        free_net(&net);
    }
    print_message("%d of %d choices are the best\n", best_ones, tried);
    assert_true(tried > cases / 6 && best_ones * 100 >= tried * 94);
}

static void most_choices_are_the_best(void **state) {
    (void)state;
    look_at_choices(test_env_int("RFX_CASES", 300), false);
}

/* Where more is beside the maps in some stages than in others; a share of fewer would be chance. */
static void so_are_most_by_level(void **state) {
    (void)state;
    look_at_choices(3 * rfx_max_i64(300, test_env_int("RFX_CASES", 300)), true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_the_stages),
        cmocka_unit_test(most_choices_are_the_best),
        cmocka_unit_test(so_are_most_by_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
