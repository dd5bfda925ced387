/* Rounds of states behind the public header: whatever the number of shards and the order of
 * merging, the output has the bits of one run; nothing is read but what rounds and parts say;
 * states that do not fit are refused; every allocation may fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/api/network.h"
#include "tests/support/run/network_run.h"
#include "tests/support/run/watched_image.h"
#include "tests/support/test_util.h"

enum { H = 37, W = 29, MOST_SHARDS = 5 };

/* States in blocks of their very size, so that a sanitizer sees a read behind them. */
struct states {
    void *data;
    size_t size;
};

static struct states own(struct rfx_bytes *bytes) {
    struct states s = {malloc(rfx_bytes_size(bytes)), rfx_bytes_size(bytes)};
    assert_non_null(s.data);
    memcpy(s.data, rfx_bytes_data(bytes), s.size);
    rfx_bytes_free(bytes);
    return s;
}

static struct states run_shard(struct rfx_network *net, const float *image, int number, int shard,
                               int count, struct states before,
                               const struct rfx_run_options *options) {
    struct rfx_round *round = NULL;
    struct rfx_bytes *bytes = NULL;
    struct rfx_area needed;
    struct rfx_why why;
    struct watched_image watched = watched_image_of(image, H, W);
    const struct rfx_source source = watched_image_source(&watched);
    network_check(rfx_round_open(net, 0, number, shard, count, &round, &why), &why);
    rfx_round_input_area(round, &needed);
    network_check(
        rfx_round_run_source(round, before.data, before.size, &source, options, &bytes, &why),
        &why);
    watched_image_check(&watched, &needed);
    rfx_round_free(round);
    return own(bytes);
}

static enum rfx_code try_merge(struct rfx_network *net, const struct states *list, int n,
                               struct states *out, struct rfx_why *why) {
    const void *data[MOST_SHARDS];
    size_t sizes[MOST_SHARDS];
    struct rfx_bytes *bytes = NULL;
    for (int i = 0; i < n; i++) {
        data[i] = list[i].data;
        sizes[i] = list[i].size;
    }
    enum rfx_code code = rfx_network_merge_states(net, data, sizes, n, &bytes, why);
    if (code == RFX_CODE_OK) *out = own(bytes);
    return code;
}

static struct states merge(struct rfx_network *net, const struct states *list, int n) {
    struct states all = {0};
    struct rfx_why why;
    network_check(try_merge(net, list, n, &all, &why), &why);
    return all;
}

/* Merges in one go, from the last to the first, or in two groups of every other shard. */
static struct states merge_by(struct rfx_network *net, const struct states *list, int n, int way) {
    struct states order[MOST_SHARDS], groups[2], all;
    if (way == 2 && n > 1) {
        for (int g = 0; g < 2; g++) {
            int m = 0;
            for (int i = g; i < n; i += 2) order[m++] = list[i];
            groups[1 - g] = merge(net, order, m);
        }
        all = merge(net, groups, 2);
        free(groups[0].data);
        free(groups[1].data);
        return all;
    }
    for (int i = 0; i < n; i++) order[i] = list[way == 0 ? i : n - 1 - i];
    return merge(net, order, n);
}

/* All rounds of output 0. */
static struct states run_rounds(struct rfx_network *net, const float *image, int rounds, int count,
                                int way, const struct rfx_run_options *options) {
    struct states merged = {0}, shards[MOST_SHARDS];
    for (int r = 1; r <= rounds; r++) {
        for (int i = 0; i < count; i++)
            shards[i] = run_shard(net, image, r, i + 1, count, merged, options);
        free(merged.data);
        merged = merge_by(net, shards, count, way);
        for (int i = 0; i < count; i++) free(shards[i].data);
    }
    return merged;
}

static int rounds_of(struct rfx_network *net) {
    int rounds = -1;
    struct rfx_why why;
    network_check(rfx_network_rounds(net, 0, &rounds, &why), &why);
    return rounds;
}

/* Makes a part of output 0 and compares it with that of the whole. */
static void check_part(struct rfx_network *net, const float *image, const float *whole,
                       const struct rfx_area *area, struct states states) {
    struct rfx_network *part = NULL;
    struct rfx_area needed, told, map = {0};
    struct rfx_why why;
    struct watched_image watched = watched_image_of(image, H, W);
    const struct rfx_source source = watched_image_source(&watched);
    network_check(rfx_network_part_area_after(net, 0, area, &told, &why), &why);
    network_check(rfx_network_open_part_after(net, 0, area, states.data, states.size, &part, &why),
                  &why);
    rfx_network_input_area(part, &needed);
    assert_memory_equal(&told, &needed, sizeof told);
    int64_t n = rfx_network_output_elements(part, 0);
    float *got = test_floats(n);
    if (needed.rows == 0)
        network_check(rfx_network_run_values(part, NULL, &got, 1, NULL, &why), &why);
    else
        network_check(rfx_network_run_source(part, &source, &got, 1, NULL, &why), &why);
    watched_image_check(&watched, &needed);
    if (area == NULL) {
        assert_int_equal(n, rfx_network_output_elements(net, 0));
        assert_memory_equal(got, whole, (size_t)n * sizeof *got);
    } else {
        assert_int_equal(rfx_network_output_map(net, 0, &map), 1);
        assert_int_equal(n, map.channels * area->rows * area->columns);
        for (int64_t c = 0; c < map.channels; c++)
            for (int64_t y = 0; y < area->rows; y++)
                assert_memory_equal(
                    got + (c * area->rows + y) * area->columns,
                    whole + (c * map.rows + area->row + y) * map.columns + area->column,
                    (size_t)area->columns * sizeof *got);
    }
    free(got);
    rfx_network_free(part);
}

static void check_model(const char *model, int rounds, bool map) {
    static const int counts[] = {1, 2, 3, 5};
    struct rfx_network *net = network_open_sized(model, H, W);
    float *image = network_random_image(3, H, W);
    struct network_outputs whole = network_outputs_for(net);
    struct rfx_why why;
    network_check(rfx_network_run_values(net, image, whole.values, whole.n, NULL, &why), &why);
    assert_int_equal(rounds_of(net), rounds);
    for (int i = 0; i < 4; i++) {
        const struct rfx_run_options options = network_run_options(0, 1 + i % 2);
        struct states merged = run_rounds(net, image, rounds, counts[i], i % 3, &options);
        check_part(net, image, whole.values[0], NULL, merged);
        for (int64_t y = 0; map && y < H; y += 20) {
            const struct rfx_area area = {
                .row = y, .rows = H - y < 20 ? H - y : 20, .column = 3 * i, .columns = W - 3 * i};
            check_part(net, image, whole.values[0], &area, merged);
        }
        free(merged.data);
    }
    network_outputs_free(&whole);
    free(image);
    rfx_network_free(net);
}

static void a_map_behind_norms(void **state) {
    (void)state;
    check_model("unet_instance", 18, true);
}

static void classes_behind_a_pool(void **state) {
    (void)state;
    check_model("mobilenet_v2:0.25", 1, false);
}

static void pools_that_layers_multiply_by(void **state) {
    (void)state;
    check_model("mobilenet_v3_small", 10, false);
}

static void outputs_without_rounds(void **state) {
    (void)state;
    const struct rfx_area part = {.row = 3, .rows = 20, .columns = 50};
    struct rfx_network *net = network_open_sized("fsrcnn:2", H, W);
    float *image = network_random_image(3, H, W);
    struct network_outputs whole = network_outputs_for(net);
    struct rfx_round *round = NULL;
    struct rfx_why why;
    network_check(rfx_network_run_values(net, image, whole.values, whole.n, NULL, &why), &why);
    assert_int_equal(rounds_of(net), 0);
    check_part(net, image, whole.values[0], &part, (struct states){0});
    assert_int_equal(rfx_round_open(net, 0, 1, 1, 1, &round, &why), RFX_CODE_USAGE);
    assert_non_null(strstr(why.text, "0 rounds"));
    network_outputs_free(&whole);
    free(image);
    rfx_network_free(net);
}

/* A shard that its budget is too small for says one that will do, and keeps to it. */
static void check_budget(const char *model, int number) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_network *net = NULL, *other = network_open_sized(model, H, W);
    struct rfx_open_options open;
    struct rfx_run_options options = network_run_options(1 << 20, 1);
    struct rfx_round *round = NULL;
    struct rfx_bytes *bytes = NULL;
    struct rfx_why why;
    float *image = network_random_image(3, H, W);
    struct watched_image watched = watched_image_of(image, H, W);
    const struct rfx_source source = watched_image_source(&watched);
    rfx_open_options_init(&open, sizeof open);
    open.rows = H;
    open.columns = W;
    network_check(rfx_network_open_in(mem, model, &open, &net, &why), &why);
    struct states before = run_rounds(other, image, number - 1, 2, 0, NULL);
    struct states want = run_shard(other, image, number, 2, 3, before, NULL);
    network_check(rfx_round_open(net, 0, number, 2, 3, &round, &why), &why);
    enum rfx_code code =
        rfx_round_run_source(round, before.data, before.size, &source, &options, &bytes, &why);
    assert_int_equal(code, RFX_CODE_BUDGET);
    const char *least = strstr(why.text, "needs at least ");
    assert_non_null(least);
    options.memory_bytes = (size_t)strtoull(least + 15, NULL, 10);
    code = rfx_round_run_source(round, before.data, before.size, &source, &options, &bytes, &why);
    network_check(code, &why);
    assert_true(rfx_memory_taken_high_water_bytes(mem) < options.memory_bytes);
    struct states got = own(bytes);
    assert_int_equal(got.size, want.size);
    assert_memory_equal(got.data, want.data, got.size);
    rfx_round_free(round);
    rfx_network_free(net);
    rfx_network_free(other);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    free(before.data);
    free(got.data);
    free(want.data);
    free(image);
}

static void budgets(void **state) {
    (void)state;
    check_budget("mobilenet_v2:0.25", 1);
    check_budget("unet_instance", 3);
}

/* A picture file gives the states of the same values. */
static void pictures(void **state) {
    (void)state;
    static const char path[] = "rounds_image.npy";
    struct rfx_network *net = network_open_sized("mobilenet_v2:0.25", H, W);
    float *image = network_random_image(3, H, W);
    network_write_npy(path, image, 3, H, W);
    struct states want = run_shard(net, image, 1, 1, 2, (struct states){0}, NULL);
    struct rfx_round *round = NULL;
    struct rfx_bytes *bytes = NULL;
    struct rfx_why why;
    network_check(rfx_round_open(net, 0, 1, 1, 2, &round, &why), &why);
    network_check(rfx_round_run_file(round, NULL, 0, path, NULL, &bytes, &why), &why);
    assert_int_equal(rfx_bytes_size(bytes), want.size);
    assert_memory_equal(rfx_bytes_data(bytes), want.data, want.size);
    rfx_network_free(net); /* both keep it */
    rfx_round_free(round);
    rfx_bytes_free(bytes);
    assert_int_equal(remove(path), 0);
    free(want.data);
    free(image);
}

static void expect(enum rfx_code code, enum rfx_code wanted, const struct rfx_why *why,
                   const char *words) {
    if (code != wanted || strstr(why->text, words) == NULL)
        fail_msg("code %d, text '%s'; wanted %d, '%s'", (int)code, why->text, (int)wanted, words);
}

static void merges_refused(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("unet_instance", H, W);
    struct rfx_network *seeded = NULL, *pooled = network_open_sized("mobilenet_v2:0.25", H, W);
    struct rfx_open_options open;
    struct rfx_why why;
    float *image = network_random_image(3, H, W);
    const struct states none = {0};
    struct states shards[3], out, all, next, pair[2];
    rfx_open_options_init(&open, sizeof open);
    open.rows = H;
    open.columns = W;
    open.seed = 7;
    network_check(rfx_network_open("unet_instance", &open, &seeded, &why), &why);
    for (int i = 0; i < 3; i++) shards[i] = run_shard(net, image, 1, i + 1, 3, none, NULL);
    all = merge(net, shards, 3);
    next = run_shard(net, image, 2, 1, 3, all, NULL);
    expect(try_merge(net, shards, 0, &out, &why), RFX_CODE_USAGE, &why, "0 states");
    expect(try_merge(seeded, shards, 3, &out, &why), RFX_CODE_REFUSED, &why, "another network");
    expect(try_merge(pooled, shards, 3, &out, &why), RFX_CODE_REFUSED, &why, "another network");
    pair[0] = shards[0];
    pair[1] = shards[0];
    expect(try_merge(net, pair, 2, &out, &why), RFX_CODE_REFUSED, &why, "shard 1 of 3 are there");
    pair[1] = all;
    expect(try_merge(net, pair, 2, &out, &why), RFX_CODE_REFUSED, &why, "0 shards");
    pair[0] = all;
    expect(try_merge(net, pair, 2, &out, &why), RFX_CODE_REFUSED, &why, "merged already");
    pair[0] = shards[0];
    pair[1] = next;
    expect(try_merge(net, pair, 2, &out, &why), RFX_CODE_REFUSED, &why, "round 2");
    struct states of_two = run_shard(net, image, 1, 2, 2, none, NULL);
    pair[1] = of_two;
    expect(try_merge(net, pair, 2, &out, &why), RFX_CODE_REFUSED, &why, "of 2 shards");
    for (int64_t i = 0; i < 3 * H * W; i++) image[i] += 1;
    struct states other = run_shard(net, image, 1, 2, 3, none, NULL);
    pair[1] = other;
    expect(try_merge(net, pair, 2, &out, &why), RFX_CODE_REFUSED, &why, "row ");
    pair[1] = (struct states){NULL, 0};
    expect(try_merge(net, pair, 2, &out, &why), RFX_CODE_USAGE, &why, "no states");
    free(other.data);
    free(of_two.data);
    free(next.data);
    free(all.data);
    for (int i = 0; i < 3; i++) free(shards[i].data);
    free(image);
    rfx_network_free(net);
    rfx_network_free(seeded);
    rfx_network_free(pooled);
}

/* Runs shard 1 of 2 of round 2, after these states. */
static enum rfx_code run_second(struct rfx_network *net, const float *image, struct states before,
                                struct rfx_why *why) {
    struct rfx_round *round = NULL;
    struct rfx_bytes *bytes = NULL;
    struct watched_image watched = watched_image_of(image, H, W);
    const struct rfx_source source = watched_image_source(&watched);
    network_check(rfx_round_open(net, 0, 2, 1, 2, &round, why), why);
    enum rfx_code code =
        rfx_round_run_source(round, before.data, before.size, &source, NULL, &bytes, why);
    rfx_bytes_free(bytes);
    rfx_round_free(round);
    return code;
}

static void runs_refused(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("unet_instance", H, W), *part = NULL;
    struct rfx_round *round = NULL;
    struct rfx_why why;
    struct rfx_area area = {.rows = 5, .columns = 5};
    float *image = network_random_image(3, H, W);
    const struct states none = {0};
    int rounds;
    struct states one = run_shard(net, image, 1, 1, 2, none, NULL), all;
    struct states shards[2] = {one, run_shard(net, image, 1, 2, 2, none, NULL)};
    all = merge(net, shards, 2);
    expect(run_second(net, image, none, &why), RFX_CODE_USAGE, &why, "states of round 1");
    expect(run_second(net, image, one, &why), RFX_CODE_REFUSED, &why, "some of 2 shards");
    network_check(run_second(net, image, all, &why), &why);
    expect(rfx_network_open_part_after(net, 0, &area, all.data, all.size, &part, &why),
           RFX_CODE_REFUSED, &why, "of round 18 are needed");
    expect(rfx_network_open_part_after(net, 0, &area, NULL, 0, &part, &why), RFX_CODE_USAGE, &why,
           "round 18");
    area.rows = H + 1;
    expect(rfx_network_open_part_after(net, 0, &area, all.data, all.size, &part, &why),
           RFX_CODE_USAGE, &why, "no part");
    image[5 * W] += 1;
    expect(run_second(net, image, all, &why), RFX_CODE_REFUSED, &why, "row 5 of the image");
    image[5 * W] -= 1;
    expect(rfx_network_rounds(net, 1, &rounds, &why), RFX_CODE_USAGE, &why, "output 1 of 1");
    expect(rfx_round_open(net, 0, 19, 1, 1, &round, &why), RFX_CODE_USAGE, &why, "18 rounds");
    expect(rfx_round_open(net, 0, 0, 1, 1, &round, &why), RFX_CODE_USAGE, &why, "18 rounds");
    expect(rfx_round_open(net, 0, 1, 0, 1, &round, &why), RFX_CODE_USAGE, &why, "shard 0 of 1");
    expect(rfx_round_open(net, 0, 1, 3, 2, &round, &why), RFX_CODE_USAGE, &why, "shard 3 of 2");
    area.rows = 5;
    network_check(rfx_network_open_part(net, 0, &area, &part, &why), &why);
    expect(rfx_network_rounds(part, 0, &rounds, &why), RFX_CODE_USAGE, &why, "a part");
    rfx_network_free(part);
    free(all.data);
    free(shards[0].data);
    free(shards[1].data);
    free(image);
    rfx_network_free(net);
}

static void no_state_of_attention(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("vae_decoder", 8, 8);
    struct rfx_why why;
    int rounds = -1;
    expect(rfx_network_rounds(net, 0, &rounds, &why), RFX_CODE_REFUSED, &why, "has no parts");
    assert_int_equal(rounds, -1);
    rfx_network_free(net);
}

/* No change of a byte, and no end before the last one, goes unnoticed. */
static void broken_bytes(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("mobilenet_v2:0.25", H, W);
    struct rfx_why why;
    float *image = network_random_image(3, H, W);
    struct states states = run_shard(net, image, 1, 1, 1, (struct states){0}, NULL), out;
    unsigned char *bytes = states.data;
    size_t size = states.size, step = size / 500 + 1;
    for (size_t i = 0; i < size; i += i < 600 ? 1 : step) {
        bytes[i] ^= 0x11;
        expect(try_merge(net, &states, 1, &out, &why), RFX_CODE_REFUSED, &why, "states");
        bytes[i] ^= 0x11;
        struct states cut = {malloc(i + 1), i};
        assert_non_null(cut.data);
        memcpy(cut.data, bytes, i);
        expect(try_merge(net, &cut, 1, &out, &why), RFX_CODE_REFUSED, &why, "states");
        free(cut.data);
    }
    out = merge(net, &states, 1);
    free(out.data);
    free(states.data);
    free(image);
    rfx_network_free(net);
}

/* Both shards of the only round, their sum, and the classes. */
static enum rfx_code make_classes(struct rfx_network *net, const float *image, float *classes,
                                  struct rfx_why *why) {
    struct rfx_network *part = NULL;
    struct rfx_bytes *shards[2] = {NULL, NULL}, *all = NULL;
    struct rfx_round *round = NULL;
    const struct rfx_run_options options = network_run_options(0, 1);
    enum rfx_code code = RFX_CODE_OK;
    for (int i = 0; i < 2 && code == RFX_CODE_OK; i++) {
        const struct rfx_source source = {.size = sizeof source, .values = image};
        code = rfx_round_open(net, 0, 1, i + 1, 2, &round, why);
        if (code == RFX_CODE_OK)
            code = rfx_round_run_source(round, NULL, 0, &source, &options, &shards[i], why);
        rfx_round_free(round);
        round = NULL;
    }
    if (code == RFX_CODE_OK) {
        const void *data[2] = {rfx_bytes_data(shards[0]), rfx_bytes_data(shards[1])};
        const size_t sizes[2] = {rfx_bytes_size(shards[0]), rfx_bytes_size(shards[1])};
        code = rfx_network_merge_states(net, data, sizes, 2, &all, why);
    }
    if (code == RFX_CODE_OK)
        code = rfx_network_open_part_after(net, 0, NULL, rfx_bytes_data(all), rfx_bytes_size(all),
                                           &part, why);
    if (code == RFX_CODE_OK) code = rfx_network_run_values(part, NULL, &classes, 1, &options, why);
    rfx_bytes_free(all);
    rfx_bytes_free(shards[0]);
    rfx_bytes_free(shards[1]);
    rfx_network_free(part);
    return code;
}

static void every_allocation_fails_once(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_network *net = NULL;
    struct rfx_why why;
    struct rfx_open_options open;
    float *image = network_random_image(3, H, W), want[1000], got[1000];
    float *to = want;
    rfx_open_options_init(&open, sizeof open);
    open.rows = H;
    open.columns = W;
    network_check(rfx_network_open_in(mem, "mobilenet_v2:0.25", &open, &net, &why), &why);
    assert_int_equal(rfx_network_output_elements(net, 0), 1000);
    network_check(rfx_network_run_values(net, image, &to, 1, NULL, &why), &why);
    size_t held = rfx_memory_current_bytes(mem);
    int64_t k = 0;
    for (;; k++) {
        rfx_memory_fail_after(mem, k);
        enum rfx_code code = make_classes(net, image, got, &why);
        rfx_memory_fail_after(mem, -1);
        assert_int_equal(rfx_memory_current_bytes(mem), held);
        if (code == RFX_CODE_OK) break;
        assert_int_equal(code, RFX_CODE_SYSTEM);
        assert_true(why.text[0] != '\0');
    }
    assert_true(k > 100);
    assert_memory_equal(got, want, sizeof got);
    rfx_network_free(net);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    free(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_map_behind_norms),
                                       cmocka_unit_test(classes_behind_a_pool),
                                       cmocka_unit_test(pools_that_layers_multiply_by),
                                       cmocka_unit_test(outputs_without_rounds),
                                       cmocka_unit_test(budgets),
                                       cmocka_unit_test(pictures),
                                       cmocka_unit_test(merges_refused),
                                       cmocka_unit_test(runs_refused),
                                       cmocka_unit_test(no_state_of_attention),
                                       cmocka_unit_test(broken_bytes),
                                       cmocka_unit_test(every_allocation_fails_once)};
    return cmocka_run_group_tests_name("rounds", tests, NULL, NULL);
}
