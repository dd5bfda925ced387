/* Packing in parts and with teams: the layouts that convolutions and fully connected layers state,
 * element by element; the same bytes however the work is cut; errors, the first of several. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/conv/conv_backend.h"
#include "layers/graph/pack.h"
#include "tests/support/run/op_cases.h"

enum { FILL = 0xa5 };

/* A layer: a convolution, transposed or not, or with groups == 0 a fully connected one (ic to oc),
 * whose weight lies as [m][k] if kh == 1. */
struct layer {
    int64_t ic, oc, groups, kh, kw;
    bool transposed, bias, scale, slopes;
};

static const struct layer layers[] = {
    {64, 64, 1, 1, 1, false, true, true, false},
    {64, 256, 1, 1, 1, false, true, true, true},
    {70, 75, 1, 3, 3, false, true, true, true},
    {700, 20, 1, 3, 3, false, false, true, false},
    {130, 300, 1, 3, 3, false, true, false, false},
    {2100, 33, 1, 1, 1, false, true, true, false},
    {48, 96, 3, 3, 2, false, true, true, false},
    {8, 8, 4, 3, 3, false, false, false, true},
    {96, 96, 96, 3, 3, false, true, true, false},
    {1000, 1000, 1000, 5, 5, false, true, true, true},
    {3, 40, 1, 7, 7, false, true, true, false},
    {1, 5, 1, 2, 3, false, true, true, true},
    {40, 24, 1, 3, 3, true, true, true, true},
    {24, 40, 4, 2, 2, true, false, false, false},
    {1280, 1000, 0, 1, 0, false, true, false, true},
    {6000, 71, 0, 1, 0, false, false, false, false},
    {17, 3, 0, 1, 0, false, true, false, false},
    {1280, 1000, 0, 0, 0, false, true, false, true},
    {40000, 7, 0, 0, 0, false, false, false, false},
    {3, 131, 0, 0, 0, false, true, false, false},
};
enum { N_LAYERS = sizeof layers / sizeof layers[0] };

static struct rfx_node node_of(struct op_case *c, const struct layer *l) {
    struct rfx_node node = {.op = RFX_OP_GEMM, .act = {.kind = RFX_ACT_NONE, .slope = -1}};
    int bias = l->bias ? op_case_weight(c, 1, &l->oc, -1.0f, 1.0f) : -1;
    if (l->slopes) {
        node.act.kind = RFX_ACT_PRELU;
        node.act.slope = op_case_weight(c, 1, &l->oc, -1.0f, 1.0f);
    }
    if (l->groups == 0) {
        bool mk = l->kh == 1;
        const int64_t dims[2] = {mk ? l->oc : l->ic, mk ? l->ic : l->oc};
        node.attr.gemm.k = l->ic;
        node.attr.gemm.m = l->oc;
        node.attr.gemm.weight_is_mk = mk;
        node.attr.gemm.alpha = 0.75f;
        node.attr.gemm.beta = -3.0f;
        node.attr.gemm.weight = op_case_weight(c, 2, dims, -0.5f, 0.5f);
        node.attr.gemm.bias = bias;
        return node;
    }
    const int64_t dims[4] = {l->transposed ? l->ic : l->oc,
                             (l->transposed ? l->oc : l->ic) / l->groups, l->kh, l->kw};
    node.op = l->transposed ? RFX_OP_CONV_TRANSPOSE : RFX_OP_CONV;
    node.attr.conv =
        (struct rfx_conv_attr){.kh = l->kh, .kw = l->kw, .sh = 1, .sw = 1, .dh = 1, .dw = 1};
    node.attr.conv.groups = l->groups;
    node.attr.conv.oc = l->oc;
    node.attr.conv.weight = op_case_weight(c, 4, dims, -0.5f, 0.5f);
    node.attr.conv.bias = bias;
    node.attr.conv.scale = l->scale ? op_case_weight(c, 1, &l->oc, 0.5f, 2.0f) : -1;
    return node;
}

static const struct rfx_node *begin(struct op_case *c, const struct layer *l, uint64_t seed,
                                    enum rfx_conv_choice conv) {
    const struct rfx_shape row = {2, {1, l->ic}};
    struct rfx_tensor plain = rfx_tensor_plain(&row, l->ic);
    struct rfx_tensor map = rfx_tensor_nhwc(l->ic, 9, 8);
    op_case_begin(c, 1, l->groups == 0 ? &plain : &map, seed);
    c->graph->conv = conv;
    struct rfx_node node = node_of(c, l);
    if (op_case_add(c, &node) != RFX_OK) fail_msg("layer %d: %s", (int)seed, c->err.text);
    return &c->graph->nodes[c->index];
}

static unsigned char *buffer(size_t bytes) {
    unsigned char *b =
        aligned_alloc(RFX_ALIGNMENT_BYTES, (bytes / RFX_ALIGNMENT_BYTES + 1) * RFX_ALIGNMENT_BYTES);
    assert_non_null(b);
    memset(b, FILL, bytes);
    return b;
}

/* Where the layouts that conv_backend.h states keep the weight of filter o (of all), input channel
 * i (of the group) and tap; -1: the backend has another one. */
static int64_t place_of(const struct rfx_graph *graph, const struct rfx_node *node, int64_t o,
                        int64_t i, int64_t tap) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    const struct rfx_conv_backend *backend = rfx_conv_backend_of(graph, node);
    int64_t icg = a->ic / a->groups, taps = a->kh * a->kw;
    if (backend == &rfx_conv_direct) {
        int64_t ocg = a->oc / a->groups, g = o / ocg, at = o % ocg / 32 * 32;
        int64_t left = (ocg - at + 15) / 16 * 16, width = left < 32 ? left : 32;
        int64_t filled = (ocg + 15) / 16 * 16;
        return (g * filled + at) * icg * taps + (tap * icg + i) * width + o % ocg - at;
    }
    if (backend == &rfx_conv_few_outputs) {
        int64_t at = o / 4 * 4, width = a->oc - at < 4 ? a->oc - at : 4;
        return at * icg * taps + (tap * icg + i) * width + o - at;
    }
    if (backend->packed_bytes != rfx_conv_taps_packed_bytes) return -1;
    int64_t m = backend == &rfx_conv_openblas ? a->oc / a->groups : a->oc;
    return o / m * m * icg * taps + (tap * icg + i) * m + o % m;
}

/* Returns how many weights it has compared. */
static int64_t compare_conv(const struct rfx_graph *graph, const struct rfx_node *node,
                            const float *packed) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    int64_t icg = a->ic / a->groups, taps = a->kh * a->kw, n = 0;
    const float *scale = a->scale < 0 ? NULL : graph->weights[a->scale].data;
    for (int64_t e = 0; e < a->oc * icg * taps; e++) {
        int64_t o = e / taps / icg, at = place_of(graph, node, o, e / taps % icg, e % taps);
        if (at < 0) return 0;
        float want = graph->weights[a->weight].data[e];
        if (scale != NULL) want *= scale[o];
        if (memcmp(&want, &packed[at], sizeof want) != 0)
            fail_msg("weight %lld is %g, not %g", (long long)e, (double)packed[at], (double)want);
        n++;
    }
    return n;
}

static int64_t compare_gemm(const struct rfx_graph *graph, const struct rfx_node *node,
                            const float *packed) {
    int64_t k = node->attr.gemm.k, m = node->attr.gemm.m;
    const float *data = graph->weights[node->attr.gemm.weight].data;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < m; j++) {
            int64_t b = j / 64 * 64, width = m - b < 64 ? m - b : 64;
            float want = 0.75f * data[node->attr.gemm.weight_is_mk ? j * k + i : i * m + j];
            if (memcmp(&want, &packed[b * k + i * width + j - b], sizeof want) != 0)
                fail_msg("weight %lld of output %lld", (long long)i, (long long)j);
        }
    return k * m;
}

static void check_values(const struct rfx_graph *graph, const struct rfx_node *node,
                         const struct layer *l, const void *packed, int64_t *compared) {
    const float *bias = packed, *slope = rfx_packed_slope(&node->act, l->oc, packed);
    int b = l->groups == 0 ? node->attr.gemm.bias : node->attr.conv.bias;
    for (int64_t o = 0; o < l->oc; o++) {
        float want = b < 0 ? 0.0f : graph->weights[b].data[o];
        if (l->groups == 0) want *= -3.0f;
        assert_true(bias[o] == want);
        if (slope != NULL) assert_true(slope[o] == graph->weights[node->act.slope].data[o]);
    }
    const float *weights = rfx_packed_weights(&node->act, l->oc, packed);
    if (l->groups == 0) *compared += compare_gemm(graph, node, weights);
    if (node->op == RFX_OP_CONV) *compared += compare_conv(graph, node, weights);
}

/* The last part first, with the least temp that there may be. */
static void pack_parts(const struct rfx_graph *graph, const struct rfx_node *node, int64_t count,
                       void *packed) {
    struct rfx_error err = {""};
    unsigned char *temp = buffer(RFX_PACK_MIN_TEMP_ELEMS * sizeof(float));
    for (int64_t p = count - 1; p >= 0; p--) {
        const struct rfx_pack_part part = {p, count, (float *)(void *)temp,
                                           RFX_PACK_MIN_TEMP_ELEMS};
        memset(temp, 0xff, RFX_PACK_MIN_TEMP_ELEMS * sizeof(float));
        if (rfx_op_pack_part(graph, node, packed, &part, &err) != RFX_OK) fail_msg("%s", err.text);
    }
    free(temp);
}

static void parts_make_the_layout(void **state) {
    static const int64_t counts[] = {1, 2, 3, 7, 100};
    (void)state;
    for (int conv = RFX_CONV_DIRECT; conv <= RFX_CONV_OPENBLAS; conv++) {
        int64_t compared = 0;
        for (int i = 0; i < N_LAYERS; i++) {
            struct op_case c;
            const struct rfx_node *node =
                begin(&c, &layers[i], (uint64_t)i, (enum rfx_conv_choice)conv);
            size_t bytes = rfx_op_packed_bytes(c.graph, node);
            unsigned char *whole = buffer(bytes);
            size_t before = rfx_memory_mark(c.graph->mem);
            if (rfx_op_pack(c.graph, node, whole, &c.err) != RFX_OK) fail_msg("%s", c.err.text);
            /* small weights do not take the whole temporary buffer */
            size_t taken = rfx_memory_taken_high_water_bytes(c.graph->mem) - before;
            if (bytes < 32768 && taken > RFX_PACK_TEMP_BYTES / 2)
                fail_msg("layer %d: %zu bytes for %zu", i, taken, bytes);
            check_values(c.graph, node, &layers[i], whole, &compared);
            for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
                unsigned char *parts = buffer(bytes);
                pack_parts(c.graph, node, counts[k], parts);
                if (memcmp(parts, whole, bytes) != 0)
                    fail_msg("layer %d in %lld parts", i, (long long)counts[k]);
                free(parts);
            }
            free(whole);
            op_case_end(&c);
        }
        assert_true(compared > 3500000); /* nearly all weights */
    }
}

struct shared {
    struct rfx_pack_nodes nodes;
    unsigned char **packed; /* per node */
    enum rfx_status status;
    struct rfx_error err;
};

static void *at(void *user, int node) {
    return ((struct shared *)user)->packed[node];
}

static void share(struct rfx_team *team, void *user) {
    struct shared *s = user;
    s->status = rfx_pack_share(team, &s->nodes, &s->err);
}

/* Packs all nodes but the even ones, if only_odd. */
static struct shared share_all(const struct rfx_graph *graph, int threads, bool only_odd) {
    struct shared s = {.nodes = {.graph = graph, .last = graph->n_nodes, .at = at}};
    s.packed = calloc((size_t)graph->n_nodes, sizeof *s.packed);
    assert_non_null(s.packed);
    for (int i = 0; i < graph->n_nodes; i++)
        if (!only_odd || i % 2 != 0)
            s.packed[i] = buffer(rfx_op_packed_bytes(graph, &graph->nodes[i]));
    s.nodes.user = &s;
    s.nodes.temp = buffer(RFX_PACK_TEMP_BYTES);
    rfx_team_run(threads, share, &s);
    free(s.nodes.temp);
    return s;
}

static void free_shared(struct shared *s, const struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++) free(s->packed[i]);
    free(s->packed);
}

static void teams_pack_the_same_bytes(void **state) {
    static const int teams[] = {1, 2, 3, 8, 11};
    (void)state;
    for (int i = 0; i < N_LAYERS; i++) {
        struct op_case c;
        const struct rfx_node *node = begin(&c, &layers[i], (uint64_t)i, test_conv_choice());
        size_t bytes = rfx_op_packed_bytes(c.graph, node);
        unsigned char *want = buffer(bytes);
        if (rfx_op_pack(c.graph, node, want, &c.err) != RFX_OK) fail_msg("%s", c.err.text);
        for (size_t t = 0; t < sizeof teams / sizeof teams[0]; t++) {
            struct shared s = share_all(c.graph, teams[t], t % 2 == 1);
            assert_int_equal(c.index % 2, 1); /* behind its input */
            if (s.status != RFX_OK) fail_msg("%s", s.err.text);
            if (memcmp(s.packed[c.index], want, bytes) != 0)
                fail_msg("layer %d, %d threads", i, teams[t]);
            free_shared(&s, c.graph);
        }
        free(want);
        op_case_end(&c);
    }
}

static struct rfx_weight_file make_file(const char *path, off_t bytes) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    return (struct rfx_weight_file){.fd = fd, .path = path};
}

/* Two layers of 9 parts each whose files end in the fifth part: all teams name the first file, and
 * the same place in it; if the first one is whole, the second one's. */
static void the_first_error_is_told(void **state) {
    static const struct layer l = {64, 1024, 1, 3, 3, false, false, false, false};
    const off_t whole = (off_t)(64 * 9 * 1024 * sizeof(float));
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        struct op_case c;
        (void)begin(&c, &l, 1, test_conv_choice());
        struct rfx_node second = node_of(&c, &l);
        if (op_case_add(&c, &second) != RFX_OK) fail_msg("%s", c.err.text);
        struct rfx_weight_file files[2] = {
            make_file("test_pack_a.bin", bad == 0 ? whole / 2 : whole),
            make_file("test_pack_b.bin", whole / 2)};
        struct rfx_weight kept[2];
        for (int k = 0; k < 2; k++) {
            struct rfx_weight *w =
                &c.graph->weights[c.graph->nodes[c.index - 1 + k].attr.conv.weight];
            kept[k] = *w;
            w->source = RFX_WEIGHT_FILE;
            w->type = RFX_TYPE_FLOAT32;
            w->file = &files[k];
        }
        char told[sizeof c.err.text] = "";
        for (int run = 0; run < 30; run++) {
            struct shared s = share_all(c.graph, 1 + run % 3, false);
            assert_int_equal(s.status, RFX_STATUS_IO);
            if (run == 0) memcpy(told, s.err.text, sizeof told);
            assert_string_equal(s.err.text, told);
            free_shared(&s, c.graph);
        }
        assert_non_null(strstr(told, files[bad].path));
        assert_non_null(strstr(told, "become shorter"));
        for (int k = 0; k < 2; k++) {
            c.graph->weights[c.graph->nodes[c.index - 1 + k].attr.conv.weight] = kept[k];
            assert_int_equal(close(files[k].fd), 0);
            assert_int_equal(unlink(files[k].path), 0);
        }
        op_case_end(&c);
    }
}

/* More scales than go into temp need memory, of one thread alone: its lack is an error. */
static void scales_find_no_memory(void **state) {
    static const struct layer l = {1, 140000, 1, 1, 1, false, true, true, false};
    (void)state;
    for (int fails = 1; fails >= 0; fails--) {
        struct op_case c;
        const struct rfx_node *node = begin(&c, &l, 5, test_conv_choice());
        int64_t compared = 0;
        rfx_memory_fail_after(c.mem, fails ? 0 : -1);
        struct shared s = share_all(c.graph, 3, false);
        rfx_memory_fail_after(c.mem, -1);
        assert_int_equal(s.status, fails ? RFX_STATUS_OUT_OF_MEMORY : RFX_OK);
        if (fails) assert_non_null(strstr(s.err.text, "packing scales"));
        if (!fails) check_values(c.graph, node, &l, s.packed[c.index], &compared);
        free_shared(&s, c.graph);
        op_case_end(&c);
    }
}

/* Says stop from the fifth question on. */
static bool is_fifth(void *user) {
    return atomic_fetch_add((atomic_int *)user, 1) >= 4;
}

/* Each part is asked for: of nine, four at most are packed, and never the last. */
static void packing_can_be_stopped(void **state) {
    static const struct layer l = {64, 1024, 1, 3, 3, false, false, false, false};
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        struct op_case c;
        const struct rfx_node *node = begin(&c, &l, 1, test_conv_choice());
        size_t bytes = rfx_op_packed_bytes(c.graph, node);
        unsigned char untouched[64];
        atomic_int asked = 0;
        memset(untouched, FILL, sizeof untouched);
        rfx_memory_set_stop(c.mem, is_fifth, &asked);
        struct shared s = share_all(c.graph, threads, false);
        rfx_memory_set_stop(c.mem, NULL, NULL);
        assert_int_equal(s.status, RFX_STATUS_CANCELLED);
        assert_non_null(strstr(s.err.text, "stopped"));
        assert_memory_equal(s.packed[c.index] + bytes - sizeof untouched, untouched,
                            sizeof untouched);
        free_shared(&s, c.graph);
        op_case_end(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_make_the_layout),   cmocka_unit_test(teams_pack_the_same_bytes),
        cmocka_unit_test(the_first_error_is_told), cmocka_unit_test(scales_find_no_memory),
        cmocka_unit_test(packing_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
