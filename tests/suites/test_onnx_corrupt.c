/* Real models, truncated and with changed bytes: an error in words or a model, never a crash, a
 * hang or a leak. RFX_CASES changes per model (default 300), at bytes of the structure: everything
 * but the payload of weights. What loads all the same is planned and packed too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/run/model.h"
#include "rfexec/run/session.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"

#define PATH "test_onnx_corrupt.onnx"
#define MEMORY_LIMIT ((size_t)256 << 20)
#define MOST_SECONDS 20.0 /* of one load; a sound one takes milliseconds */

struct model {
    unsigned char *bytes;
    size_t size;
    size_t *structure; /* places of all bytes that are not payload */
    size_t n_structure;
};

static uint64_t varint(const struct model *m, size_t *at) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        assert_true(*at < m->size);
        unsigned char byte = m->bytes[(*at)++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) break;
    }
    return value;
}

static void keep(struct model *m, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) m->structure[m->n_structure++] = i;
}

/* Walks a message of onnx.proto: the graph (7) of the model (depth 0), its initialisers (5), and
 * of those all but raw_data (9). */
static void walk(struct model *m, size_t at, size_t end, int depth) {
    static const uint64_t inner[3] = {7, 5, 9};
    while (at < end) {
        size_t start = at;
        uint64_t tag = varint(m, &at);
        if ((tag & 7) == 0) {
            (void)varint(m, &at);
        } else if ((tag & 7) == 2) {
            size_t length = (size_t)varint(m, &at);
            assert_true(length <= end - at);
            if (tag >> 3 == inner[depth]) {
                keep(m, start, at);
                if (depth < 2) walk(m, at, at + length, depth + 1);
                at += length;
                continue;
            }
            at += length;
        } else {
            assert_int_equal(tag & 7, 5);
            at += 4;
        }
        keep(m, start, at);
    }
}

static struct model read_model(const char *path) {
    struct model m = {NULL, 0, NULL, 0};
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("cannot open %s", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    m.size = (size_t)ftell(file);
    rewind(file);
    m.bytes = malloc(m.size);
    m.structure = malloc(m.size * sizeof *m.structure);
    assert_true(m.bytes != NULL && m.structure != NULL);
    assert_int_equal(fread(m.bytes, 1, m.size, file), m.size);
    (void)fclose(file);
    walk(&m, 0, m.size, 0);
    assert_true(m.n_structure > 1000 && m.n_structure < m.size);
    return m;
}

static void release(struct model *m) {
    free(m->bytes);
    free(m->structure);
    assert_int_equal(unlink(PATH), 0);
}

static void save(const struct model *m) {
    FILE *file = fopen(PATH, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(m->bytes, 1, m->size, file), m->size);
    assert_int_equal(fclose(file), 0);
}

static void put_byte(size_t at, unsigned char byte) {
    FILE *file = fopen(PATH, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fputc(byte, file), byte);
    assert_int_equal(fclose(file), 0);
}

static double seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Plans and packs what loaded; any failure must say why. */
static void pack(const struct rfx_graph *graph, const char *what) {
    struct rfx_error err = {""};
    struct rfx_plan *plan = NULL;
    struct rfx_session *session = NULL;
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    struct rfx_plan_request request = {.threads = 1, .asked = rfx_ask_whole()};
    request.source = (struct rfx_source_traits){
        .h = image->h, .w = image->w, .c = image->c, .random_access = true};
    enum rfx_status status = rfx_plan_create(graph, &request, &plan, &err);
    if (status == RFX_OK) status = rfx_session_create(plan, NULL, graph->mem, &session, &err);
    if (status != RFX_OK && err.text[0] == '\0')
        fail_msg("%s: %s without a word", what, rfx_status_name(status));
    rfx_session_free(session);
    rfx_plan_free(plan);
}

/* Loads the file at PATH; whether it loaded. */
static bool load(const char *what) {
    struct rfx_memory *mem = rfx_memory_create(MEMORY_LIMIT);
    struct rfx_load_options options = {.h = 64, .w = 64};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    double start = seconds();
    enum rfx_status status = rfx_onnx_load(mem, PATH, &options, &graph, &err);
    if (seconds() - start > MOST_SECONDS) fail_msg("%s: took too long", what);
    if (status != RFX_OK && status != RFX_STATUS_MALFORMED && status != RFX_STATUS_UNSUPPORTED)
        fail_msg("%s: %s, '%s'", what, rfx_status_name(status), err.text);
    if (status != RFX_OK && err.text[0] == '\0') fail_msg("%s: no reason given", what);
    if (status == RFX_OK) pack(graph, what);
    rfx_graph_free(graph);
    if (rfx_memory_current_bytes(mem) != 0) fail_msg("%s: memory is left", what);
    rfx_memory_free(mem);
    return status == RFX_OK;
}

static int case_count(void) {
    const char *text = getenv("RFX_CASES");
    return text != NULL ? atoi(text) : 300;
}

/* 1 to 4 bytes of structure get other values: any, a flipped bit, or the end of a varint's range.
 */
static void change_bytes(const struct model *m) {
    struct test_rng rng = test_rng_make(77);
    int loaded = 0, cases = case_count();
    char what[80];
    for (int i = 0; i < cases; i++) {
        size_t at[4] = {0};
        int n = (int)test_rng_int(&rng, 1, 4);
        for (int k = 0; k < n; k++) {
            at[k] = m->structure[test_rng_int(&rng, 0, (int64_t)m->n_structure - 1)];
            unsigned char byte = (unsigned char)test_rng_int(&rng, 0, 255);
            if (test_rng_chance(&rng, 40))
                byte = (unsigned char)(m->bytes[at[k]] ^ 1 << test_rng_int(&rng, 0, 7));
            if (test_rng_chance(&rng, 20)) byte = test_rng_chance(&rng, 50) ? 0xff : 0x00;
            put_byte(at[k], byte);
        }
        (void)snprintf(what, sizeof what, "change %d, first at byte %zu", i, at[0]);
        loaded += load(what);
        for (int k = 0; k < n; k++) put_byte(at[k], m->bytes[at[k]]);
    }
    assert_true(loaded < cases);
    assert_true(load("restored"));
}

/* Cut at structure bytes, from the end to the front, the first bytes one by one. */
static void truncate_file(const struct model *m) {
    struct test_rng rng = test_rng_make(78);
    char what[80];
    size_t last = m->size;
    for (size_t i = m->n_structure - 1; i > 0;) {
        last = m->structure[i];
        assert_int_equal(truncate(PATH, (off_t)last), 0);
        (void)snprintf(what, sizeof what, "cut at byte %zu", last);
        if (load(what)) fail_msg("%s: loaded", what);
        size_t step = i > 64 ? (size_t)test_rng_int(&rng, 1, (int64_t)(m->n_structure / 75)) : 1;
        if (i > 64 && step > i - 64) step = i - 64;
        i -= step;
    }
    assert_true(last < 8);
}

static void corrupt(const char *path) {
    struct model m = read_model(path);
    save(&m);
    assert_true(load("as it is"));
    change_bytes(&m);
    truncate_file(&m);
    release(&m);
}

static void defect_net(void **state) {
    (void)state;
    corrupt(RFX_SOURCE_DIR "/data/defect_net.onnx");
}

static void quantised_nets(void **state) {
    (void)state;
    corrupt(RFX_SOURCE_DIR "/data/quantised_u8.onnx");
    corrupt(RFX_SOURCE_DIR "/data/quantised_s8.onnx");
}

static void exported_mobilenet(void **state) {
    (void)state;
    const char *path = "test_onnx_corrupt_source.onnx";
    struct rfx_memory *mem = rfx_memory_create(0);
    static const struct rfx_fuse_options no_fusing = {0};
    struct rfx_load_options options = {.h = 64, .w = 64, .seed = 1, .fuse = &no_fusing};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    if (rfx_builtin_build(mem, "mobilenet_v2:0.5", &options, &graph, &err) != RFX_OK ||
        rfx_onnx_export(graph, path, &err) != RFX_OK)
        fail_msg("%s", err.text);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    corrupt(path);
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(defect_net),
                                       cmocka_unit_test(quantised_nets),
                                       cmocka_unit_test(exported_mobilenet)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
