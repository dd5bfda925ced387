/* Masks and regions that a file fills box by box, reshapes, turns, cuts and compares: their values
 * beside those of whole arrays, and that no element of them is stored for each of theirs. Attention
 * in shifted windows whose two axes are one, of any number of windows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/makers/onnx_net.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"

enum { MOST_RANK = 8 };

static struct maker graph;
static int made;         /* names */
static bool values_kept; /* false: of arrays that are too large for this, only their sizes */

/* --- arrays, and the same in a file --- */

struct array {
    char name[16];
    int rank;
    int64_t dims[MOST_RANK], elems;
    int64_t *values;
};

static void name_it(struct array *a) {
    (void)snprintf(a->name, sizeof a->name, "t%d", made++);
}

static struct array array_of(int rank, const int64_t *dims) {
    struct array a = {.rank = rank, .elems = 1};
    for (int i = 0; i < rank; i++) {
        a.dims[i] = dims[i];
        a.elems *= dims[i];
    }
    if (values_kept) {
        a.values = calloc((size_t)a.elems, sizeof *a.values);
        assert_non_null(a.values);
    }
    name_it(&a);
    return a;
}

/* The index of element e along each axis. */
static void index_of(const struct array *a, int64_t e, int64_t *index) {
    for (int i = a->rank - 1; i >= 0; i--) {
        index[i] = e % a->dims[i];
        e /= a->dims[i];
    }
}

/* The element at an index; where the array has 1 position, that one. */
static int64_t value_at(const struct array *a, const int64_t *index) {
    int64_t e = 0;
    for (int i = 0; i < a->rank; i++) e = e * a->dims[i] + (a->dims[i] == 1 ? 0 : index[i]);
    return a->values[e];
}

RFX_PRINTF(1, 2)
static const char *words(const char *format, ...) {
    static char text[128];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return text;
}

static void replace(struct array *a, struct array b) {
    free(a->values);
    *a = b;
}

/* Zeros, floats as all that follows. */
static struct array zeros(int rank, const int64_t *dims) {
    struct array a = array_of(rank, dims);
    char shape[48];
    (void)snprintf(shape, sizeof shape, "%s_s", a.name);
    maker_ints(&graph, shape, dims, rank);
    maker_add(&graph, "ConstantOfShape", shape, a.name);
    return a;
}

/* lo, lo + 1, ... along axis `axis` of (n[0], n[1], ... 1), of `width` axes and that one. */
static void counted(const char *name, int axis, int64_t lo, const int64_t *n, int width) {
    const int64_t end = lo + n[axis], one = 1;
    int64_t dims[MOST_RANK], column[MOST_RANK];
    char in[256];
    for (int i = 0; i <= width; i++) {
        dims[i] = i < width ? n[i] : 1;
        column[i] = i == axis ? -1 : 1;
    }
    maker_ints(&graph, words("%s_lo", name), &lo, 1);
    maker_ints(&graph, words("%s_hi", name), &end, 1);
    maker_ints(&graph, words("%s_by", name), &one, 1);
    maker_ints(&graph, words("%s_c", name), column, width + 1);
    maker_ints(&graph, words("%s_d", name), dims, width + 1);
    (void)snprintf(in, sizeof in, "%s_lo %s_hi %s_by", name, name, name);
    maker_add(&graph, "Range", in, words("%s_r", name));
    (void)snprintf(in, sizeof in, "%s_r %s_c", name, name);
    maker_add(&graph, "Reshape", in, words("%s_l", name));
    (void)snprintf(in, sizeof in, "%s_l %s_d", name, name);
    maker_add(&graph, "Expand", in, name);
}

/* Positions [lo, lo + n) of the first `width` axes become a number, by the index of each. */
static void put(struct array *a, int width, const int64_t *lo, const int64_t *n, int64_t value) {
    int64_t dims[MOST_RANK];
    const float number = (float)value;
    struct array b = array_of(a->rank, a->dims);
    char in[256] = "", name[48];
    for (int64_t e = 0; e < a->elems && values_kept; e++) {
        int64_t at[MOST_RANK];
        bool inside = true;
        index_of(a, e, at);
        for (int i = 0; i < width; i++) inside = inside && at[i] >= lo[i] && at[i] < lo[i] + n[i];
        b.values[e] = inside ? value : a->values[e];
    }
    memcpy(dims, a->dims, sizeof dims);
    for (int i = 0; i < width; i++) {
        dims[i] = n[i];
        (void)snprintf(name, sizeof name, "%s_%d", b.name, i);
        counted(name, i, lo[i], n, width);
        (void)strcat(strcat(in, i == 0 ? "" : " "), name);
    }
    maker_add_int(&graph, "Concat", in, words("%s_i", b.name), "axis", -1);
    maker_ints(&graph, words("%s_s", b.name), dims, a->rank);
    maker_floats(&graph, words("%s_n", b.name), NULL, 0, &number);
    (void)snprintf(in, sizeof in, "%s_n %s_s", b.name, b.name);
    maker_add(&graph, "Expand", in, words("%s_u", b.name));
    (void)snprintf(in, sizeof in, "%s %s_i %s_u", a->name, b.name, b.name);
    maker_add(&graph, "ScatterND", in, b.name);
    replace(a, b);
}

static void reshape(struct array *a, int rank, const int64_t *dims) {
    struct array b = array_of(rank, dims);
    assert_int_equal(a->elems, b.elems);
    memcpy(b.values, a->values, (size_t)a->elems * sizeof *a->values);
    maker_ints(&graph, words("%s_s", b.name), dims, rank);
    char in[256];
    (void)snprintf(in, sizeof in, "%s %s_s", a->name, b.name);
    maker_add(&graph, "Reshape", in, b.name);
    replace(a, b);
}

static void transpose(struct array *a, const int64_t *perm) {
    int64_t dims[MOST_RANK];
    for (int i = 0; i < a->rank; i++) dims[i] = a->dims[perm[i]];
    struct array b = array_of(a->rank, dims);
    for (int64_t e = 0; e < b.elems; e++) {
        int64_t at[MOST_RANK], from[MOST_RANK];
        index_of(&b, e, at);
        for (int i = 0; i < a->rank; i++) from[perm[i]] = at[i];
        b.values[e] = value_at(a, from);
    }
    maker_add_ints(&graph, "Transpose", a->name, b.name, "perm", perm, a->rank);
    replace(a, b);
}

static void slice(struct array *a, int64_t axis, int64_t start, int64_t step, int64_t n) {
    int64_t dims[MOST_RANK], end = start + n * step;
    memcpy(dims, a->dims, sizeof dims);
    dims[axis] = n;
    struct array b = array_of(a->rank, dims);
    for (int64_t e = 0; e < b.elems; e++) {
        int64_t at[MOST_RANK];
        index_of(&b, e, at);
        at[axis] = start + at[axis] * step;
        b.values[e] = value_at(a, at);
    }
    if (end < 0) end = INT64_MIN + 1;
    char in[256];
    (void)snprintf(in, sizeof in, "%s %s_a %s_e %s_x %s_p", a->name, b.name, b.name, b.name,
                   b.name);
    maker_ints(&graph, words("%s_a", b.name), &start, 1);
    maker_ints(&graph, words("%s_e", b.name), &end, 1);
    maker_ints(&graph, words("%s_x", b.name), &axis, 1);
    maker_ints(&graph, words("%s_p", b.name), &step, 1);
    maker_add(&graph, "Slice", in, b.name);
    replace(a, b);
}

/* a OP b, broadcast: "Sub" or "Equal" or "Add". */
static struct array combine(const char *op, const struct array *a, const struct array *b) {
    int64_t dims[MOST_RANK];
    for (int i = 0; i < a->rank; i++) dims[i] = a->dims[i] > b->dims[i] ? a->dims[i] : b->dims[i];
    struct array out = array_of(a->rank, dims);
    for (int64_t e = 0; e < out.elems; e++) {
        int64_t at[MOST_RANK];
        index_of(&out, e, at);
        int64_t x = value_at(a, at), y = value_at(b, at);
        out.values[e] = op[0] == 'S' ? x - y : op[0] == 'A' ? x + y : x == y;
    }
    char in[256];
    (void)snprintf(in, sizeof in, "%s %s", a->name, b->name);
    maker_add(&graph, op, in, op[0] == 'E' ? words("%s_b", out.name) : out.name);
    if (op[0] == 'E') maker_add_int(&graph, "Cast", words("%s_b", out.name), out.name, "to", 1);
    return out;
}

/* --- the network: an image in the array's shape, plus the array --- */

static void begin(void) {
    graph.size = 0;
    made = 0;
    values_kept = true;
}

/* Whether as many elements as that are stored anywhere. */
static bool stores(const struct rfx_graph *net, int64_t elems) {
    bool any = false;
    for (int i = 0; i < net->n_weights; i++) {
        const struct rfx_weight *w = &net->weights[i];
        int64_t n = w->source == RFX_WEIGHT_OWNED      ? w->elems
                    : w->source == RFX_WEIGHT_REPEATED ? w->stored
                                                       : 0;
        any = any || n >= elems;
    }
    return any;
}

/* The output: an image in the array's shape, plus the array. */
static void add_image(const struct array *a) {
    const int64_t dims[4] = {1, 1, 1, a->elems};
    maker_value(&graph, MAKER_INPUT, "x", dims, 4);
    maker_ints(&graph, "shape_of_x", a->dims, a->rank);
    maker_add(&graph, "Reshape", "x shape_of_x", "xr");
    maker_add(&graph, "Add", words("xr %s", a->name), "y");
}

/* `described`: it has to be, where it has many elements. */
static void expect(struct array *a, bool described, const char *what, int seed) {
    add_image(a);
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    if (described && a->elems > 4096 && stores(net, a->elems / 4))
        fail_msg("%s, seed %d: elements are stored", what, seed);
    float *image = test_floats(a->elems);
    for (int64_t e = 0; e < a->elems; e++) image[e] = 0.0f;
    float *got = test_run_output(net, image, 0);
    for (int64_t e = 0; e < a->elems; e++)
        if (got[e] != (float)a->values[e])
            fail_msg("%s, seed %d: element %d of %d is %g, not %d", what, seed, (int)e,
                     (int)a->elems, (double)got[e], (int)a->values[e]);
    free(got);
    free(image);
    free(a->values);
    onnx_net_discard(net);
}

static void put_box(struct array *a, int64_t y, int64_t x, int64_t h, int64_t w, int64_t value) {
    put(a, 2, (const int64_t[]){y, x}, (const int64_t[]){h, w}, value);
}

/* Windows of s x s on a map of `down` x `across` of them, in whose last windows regions meet: what
 * Swin's own code writes, a number for each region, windows as rows of pixels, and where these
 * differ. */
static struct array differences(int64_t down, int64_t across, int64_t s, int64_t shift) {
    const int64_t h = down * s, w = across * s, n = s * s;
    const int64_t rows[4] = {0, h - s, h - shift, h}, cols[4] = {0, w - s, w - shift, w};
    struct array a = zeros(2, (const int64_t[]){h, w}), b, out;
    for (int i = 0; i < 9; i++)
        put_box(&a, rows[i / 3], cols[i % 3], rows[i / 3 + 1] - rows[i / 3],
                cols[i % 3 + 1] - cols[i % 3], i);
    reshape(&a, 4, (const int64_t[]){down, s, across, s});
    transpose(&a, (const int64_t[]){0, 2, 1, 3});
    reshape(&a, 3, (const int64_t[]){down * across, 1, n});
    b = array_of(3, a.dims);
    memcpy(b.values, a.values, (size_t)a.elems * sizeof *a.values);
    maker_add(&graph, "Identity", a.name, b.name);
    reshape(&b, 3, (const int64_t[]){down * across, n, 1});
    out = combine("Sub", &a, &b);
    free(a.values);
    free(b.values);
    return out;
}

static void regions(void **state) {
    (void)state;
    static const int64_t forms[][4] = {{3, 4, 4, 2},  {40, 3, 4, 1}, {2, 150, 4, 3}, {90, 2, 3, 1},
                                       {1, 70, 4, 2}, {70, 1, 5, 2}, {12, 14, 6, 3}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        begin();
        struct array a = differences(forms[i][0], forms[i][1], forms[i][2], forms[i][3]);
        expect(&a, true, "regions", (int)i);
    }
}

/* A mask of windows of s x s: true where those of the last row or column are cut. Axes are rows and
 * columns of windows, of queries, of keys. */
static struct array mask_of(int64_t down, int64_t across, int64_t s, int64_t shift) {
    const int64_t dims[6] = {down, across, s, s, s, s},
                  sides[2][2] = {{0, s - shift}, {s - shift, shift}};
    struct array a = zeros(6, dims);
    for (int axis = 0; axis < 2; axis++)
        for (int side = 0; side < 2; side++) {
            int64_t lo[6] = {0}, n[6];
            memcpy(n, dims, sizeof n);
            lo[axis] = dims[axis] - 1;
            n[axis] = 1;
            for (int k = 0; k < 2; k++) {
                lo[2 + 2 * k + axis] = sides[k == side][0];
                n[2 + 2 * k + axis] = sides[k == side][1];
            }
            put(&a, 6, lo, n, 1);
        }
    return a;
}

/* The two axes of windows become one: of more than can be taken one by one, too. */
static void boxes(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{2, 3}, {65, 3}, {3, 129}, {130, 2}, {1, 80}, {80, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        begin();
        struct array a = mask_of(sizes[i][0], sizes[i][1], 3, 1);
        reshape(&a, 3, (const int64_t[]){sizes[i][0] * sizes[i][1], 9, 9});
        expect(&a, true, "boxes", (int)i);
    }
}

/* --- at random --- */

/* Another shape of as many elements. */
static void random_reshape(struct test_rng *rng, struct array *a) {
    int64_t dims[MOST_RANK], left = a->elems;
    int rank = 0;
    for (; rank < 5 && left > 1; rank++) {
        int64_t size = 1;
        for (int tries = 0; tries < 6; tries++) {
            int64_t divisor = test_rng_int(rng, 2, 12);
            if (left % (size * divisor) == 0) size *= divisor;
        }
        dims[rank] = size;
        left /= size;
    }
    dims[rank++] = left;
    reshape(a, rank, dims);
}

static void random_transpose(struct test_rng *rng, struct array *a) {
    int64_t perm[MOST_RANK];
    for (int i = 0; i < a->rank; i++) {
        int64_t at = test_rng_int(rng, 0, i);
        perm[i] = perm[at];
        perm[at] = i;
    }
    transpose(a, perm);
}

static void random_slice(struct test_rng *rng, struct array *a) {
    int64_t axis = test_rng_int(rng, 0, a->rank - 1), extent = a->dims[axis];
    int64_t step = test_rng_int(rng, -2, 2), start = test_rng_int(rng, 0, extent - 1);
    if (step == 0) step = 1;
    if (step == 1) start /= 4;
    if (step == -1) start = extent - 1;
    int64_t most = (step > 0 ? extent - 1 - start : start) / (step > 0 ? step : -step) + 1;
    slice(a, axis, start, step, test_rng_int(rng, most - most / 3, most));
}

static void random_put(struct test_rng *rng, struct array *a) {
    int64_t lo[2], n[2];
    for (int i = 0; i < 2; i++) {
        lo[i] = test_rng_int(rng, 0, a->dims[i] - 1);
        if (test_rng_chance(rng, 30)) lo[i] = 0;
        n[i] = test_rng_int(rng, 1, a->dims[i] - lo[i]);
        if (test_rng_chance(rng, 30)) n[i] = a->dims[i] - lo[i];
    }
    put(a, 2, lo, n, test_rng_int(rng, 0, 3));
}

/* The array beside itself, of which another axis is 1 long. */
static void random_pair(struct test_rng *rng, struct array *a) {
    static const char *const ops[] = {"Sub", "Add", "Equal"};
    struct array b = array_of(a->rank, a->dims), out;
    memcpy(b.values, a->values, (size_t)a->elems * sizeof *a->values);
    maker_add(&graph, "Identity", a->name, b.name);
    int64_t axis = test_rng_int(rng, 0, a->rank - 1);
    slice(&b, axis, test_rng_int(rng, 0, b.dims[axis] - 1), 1, 1);
    out = combine(ops[test_rng_int(rng, 0, 2)], a, &b);
    free(b.values);
    replace(a, out);
}

static void at_random(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 4, 6, 8, 12};
    const int cases = (int)test_env_int("RFX_CASES", 150);
    for (int seed = 0; seed < cases; seed++) {
        struct test_rng rng = test_rng_make((uint64_t)seed);
        int64_t dims[4];
        for (int i = 0; i < 4; i++) dims[i] = sizes[test_rng_int(&rng, i < 2 ? 3 : 0, 6)];
        begin();
        struct array a = zeros(4, dims);
        for (int64_t steps = test_rng_int(&rng, 2, 7); steps > 0; steps--) {
            int64_t kind = test_rng_int(&rng, 0, 6);
            if (kind < 2 && a.rank >= 2) random_put(&rng, &a);
            if (kind == 2 || kind == 3) random_reshape(&rng, &a);
            if (kind == 4) random_transpose(&rng, &a);
            if (kind == 5) random_slice(&rng, &a);
            if (kind == 6 && a.rank < MOST_RANK) random_pair(&rng, &a);
        }
        expect(&a, false, "at random", seed);
    }
}

/* --- attention in shifted windows, of which the file makes one axis --- */

enum { SIDE = 2, SHIFT = 1, HEADS = 2, SIZE = 3, WIDTH = HEADS * SIZE, PIXELS = SIDE * SIDE };

/* torch.roll of (1, h, w, c) by -shift rows and columns. */
static void rolled(const char *in, const char *out, int64_t rows, int64_t cols) {
    const int64_t shifts[2] = {rows, cols}, far = INT64_MAX, zero = 0;
    char from[32], to[32], text[256];
    (void)snprintf(from, sizeof from, "%s", in);
    for (int64_t axis = 1; axis < 3; axis++) {
        (void)snprintf(to, sizeof to, axis == 1 ? "%s_half" : "%s", out);
        maker_ints(&graph, words("%s_at", to), &shifts[axis - 1], 1);
        maker_ints(&graph, words("%s_far", to), &far, 1);
        maker_ints(&graph, words("%s_zero", to), &zero, 1);
        maker_ints(&graph, words("%s_axis", to), &axis, 1);
        (void)snprintf(text, sizeof text, "%s %s_at %s_far %s_axis", from, to, to, to);
        maker_add(&graph, "Slice", text, words("%s_1", to));
        (void)snprintf(text, sizeof text, "%s %s_zero %s_at %s_axis", from, to, to, to);
        maker_add(&graph, "Slice", text, words("%s_2", to));
        (void)snprintf(text, sizeof text, "%s_1 %s_2", to, to);
        maker_add_int(&graph, "Concat", text, to, "axis", axis);
        (void)snprintf(from, sizeof from, "%s", to);
    }
}

static void give(const char *in, const char *out, const int64_t *dims, int rank) {
    char text[128];
    maker_ints(&graph, words("%s_dims", out), dims, rank);
    (void)snprintf(text, sizeof text, "%s %s_dims", in, out);
    maker_add(&graph, "Reshape", text, out);
}

/* As SCUNet writes it: heads before windows, the mask by Where; queries, keys and values are the
 * image's channels. */
static struct rfx_graph *attention(int64_t down, int64_t across) {
    const int64_t h = down * SIDE, w = across * SIDE, n = down * across;
    const int64_t image[4] = {1, 3 * WIDTH, h, w}, parts[3] = {HEADS, HEADS, HEADS};
    const float scale = 0.5f, never = -INFINITY;
    begin();
    values_kept = false;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_ints(&graph, "parts", parts, 3);
    maker_floats(&graph, "scale", NULL, 0, &scale);
    maker_floats(&graph, "never", NULL, 0, &never);
    maker_add_ints(&graph, "Transpose", "x", "last", "perm", (const int64_t[]){0, 2, 3, 1}, 4);
    rolled("last", "moved", SHIFT, SHIFT);
    give("moved", "grid", (const int64_t[]){1, down, SIDE, across, SIDE, 3 * WIDTH}, 6);
    maker_add_ints(&graph, "Transpose", "grid", "windows", "perm",
                   (const int64_t[]){0, 1, 3, 2, 4, 5}, 6);
    give("windows", "tokens", (const int64_t[]){1, n, PIXELS, 3 * HEADS, SIZE}, 5);
    maker_add_ints(&graph, "Transpose", "tokens", "all", "perm", (const int64_t[]){3, 0, 1, 2, 4},
                   5);
    maker_add_int(&graph, "Split", "all parts", "q k v", "axis", 0);
    maker_add_ints(&graph, "Transpose", "k", "kt", "perm", (const int64_t[]){0, 1, 2, 4, 3}, 5);
    maker_add(&graph, "MatMul", "q kt", "product");
    maker_add(&graph, "Mul", "product scale", "scores");
    struct array a = mask_of(down, across, SIDE, SHIFT);
    give(a.name, "joined", (const int64_t[]){1, 1, n, PIXELS, PIXELS}, 5);
    maker_add_int(&graph, "Cast", "joined", "hidden", "to", 9);
    maker_add(&graph, "Where", "hidden never scores", "masked");
    maker_add_int(&graph, "Softmax", "masked", "weights", "axis", -1);
    maker_add(&graph, "MatMul", "weights v", "mixed");
    maker_add_ints(&graph, "Transpose", "mixed", "by_pixel", "perm",
                   (const int64_t[]){1, 2, 3, 0, 4}, 5);
    give("by_pixel", "apart", (const int64_t[]){1, down, across, SIDE, SIDE, WIDTH}, 6);
    maker_add_ints(&graph, "Transpose", "apart", "rows", "perm",
                   (const int64_t[]){0, 1, 3, 2, 4, 5}, 6);
    give("rows", "map", (const int64_t[]){1, h, w, WIDTH}, 4);
    rolled("map", "back", h - SHIFT, w - SHIFT);
    maker_add_ints(&graph, "Transpose", "back", "y", "perm", (const int64_t[]){0, 3, 1, 2}, 4);
    return onnx_net_loaded(&graph, 17);
}

static void expect_streams(const struct rfx_graph *net) {
    int found = 0;
    for (int i = 0; i < net->n_nodes; i++) found += net->nodes[i].op == RFX_OP_WINDOW_ATTENTION;
    assert_int_equal(found, 1);
    assert_int_equal(net->n_nodes, 2);
    assert_false(stores(net, 4097)); /* what is smaller may be */
}

/* A channel of a pixel of the result, from the whole image (h, w, c). */
static double attended(const float *image, int64_t h, int64_t w, int64_t y, int64_t x, int64_t c) {
    const int64_t all = 3 * WIDTH, head = c / SIZE * SIZE, i = (y - SHIFT + h) % h,
                  j = (x - SHIFT + w) % w;
    const float *query = image + (y * w + x) * all + head;
    double sum = 0.0, result = 0.0;
    for (int64_t p = 0; p < PIXELS; p++) {
        int64_t ki = i / SIDE * SIDE + p / SIDE, kj = j / SIDE * SIDE + p % SIDE;
        bool rows =
            i / SIDE == h / SIDE - 1 && (i % SIDE < SIDE - SHIFT) != (ki % SIDE < SIDE - SHIFT);
        bool cols =
            j / SIDE == w / SIDE - 1 && (j % SIDE < SIDE - SHIFT) != (kj % SIDE < SIDE - SHIFT);
        if (rows || cols) continue;
        const float *key = image + ((ki + SHIFT) % h * w + (kj + SHIFT) % w) * all;
        double score = 0.0;
        for (int k = 0; k < SIZE; k++) score += (double)query[k] * (double)key[WIDTH + head + k];
        sum += exp(0.5 * score);
        result += exp(0.5 * score) * (double)key[2 * WIDTH + c];
    }
    return result / sum;
}

static void shifted_windows(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{3, 4}, {70, 3}, {3, 130}, {65, 65}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct rfx_graph *net = attention(sizes[k][0], sizes[k][1]);
        int64_t h = sizes[k][0] * SIDE, w = sizes[k][1] * SIDE, area = h * w;
        struct test_rng rng = test_rng_make(k);
        float *image = test_floats(area * 3 * WIDTH), *last = test_floats(area * 3 * WIDTH);
        expect_streams(net);
        test_rng_fill(&rng, image, area * 3 * WIDTH, -1.0f, 1.0f);
        for (int64_t e = 0; e < area * 3 * WIDTH; e++)
            last[e % area * 3 * WIDTH + e / area] = image[e];
        float *got = test_run_output(net, image, 0);
        for (int64_t e = 0; e < area * WIDTH; e++) {
            int64_t y = e % area / w, x = e % w;
            double want = attended(last, h, w, y, x, e / area);
            if (fabs((double)got[e] - want) > 1e-5)
                fail_msg("%d x %d, [%d, %d, %d]: %g, not %g", (int)h, (int)w, (int)(e / area),
                         (int)y, (int)x, (double)got[e], want);
        }
        free(got);
        free(image);
        free(last);
        onnx_net_discard(net);
    }
}

/* What loading takes does not grow with the number of windows, but for a few numbers for each row
 * and column of them. */
static void many_windows(void **state) {
    (void)state;
    size_t bytes[2];
    for (int k = 0; k < 2; k++) {
        int64_t down = k == 0 ? 100 : 3000, across = k == 0 ? 100 : 2000;
        struct rfx_graph *net = attention(down, across);
        expect_streams(net);
        bytes[k] = net->load_bytes;
        onnx_net_discard(net);
    }
    if (bytes[1] > bytes[0] + (size_t)(3000 + 2000) * 400)
        fail_msg("%zu bytes for 100 x 100 windows, %zu for 3000 x 2000", bytes[0], bytes[1]);
}

static void memory_runs_out(void **state) {
    (void)state;
    onnx_net_discard(attention(40, 5));
    onnx_net_runs_out(&graph, 17);
    begin();
    struct array a = differences(30, 4, 4, 1);
    add_image(&a);
    onnx_net_runs_out(&graph, 17);
    free(a.values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions),      cmocka_unit_test(boxes),
        cmocka_unit_test(at_random),    cmocka_unit_test(shifted_windows),
        cmocka_unit_test(many_windows), cmocka_unit_test(memory_runs_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
