/* Calls of the public header in any order, with arguments in and out of their range: each byte of
 * the input chooses something. What a network gives for a picture never changes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rfexec/rfexec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_models.h"

enum {
    NETWORKS = 3, /* open at a time */
    MOST_CALLS = 12,
    MOST_VALUES = 4096, /* of an input or an output */
    MOST_OUTPUTS = 4
};

struct input {
    const uint8_t *at, *end;
};

static uint8_t next(struct input *in) {
    return in->at < in->end ? *in->at++ : 0;
}

static int64_t pick(struct input *in, const int64_t *table, size_t n) {
    return table[next(in) % n];
}
#define PICK(in, table) pick(in, table, sizeof(table) / sizeof *(table))

struct slot {
    struct rfx_network *net;
    uint64_t sums[2]; /* of the outputs on values and on a picture; 0: not known yet */
};

struct state {
    struct input in;
    struct slot slots[NETWORKS];
    struct rfx_why why;
    int polls; /* of progress until it cancels; negative: never */
};

static void check(const struct state *s, enum rfx_code code) {
    bool known = code == RFX_CODE_OK || (code >= RFX_CODE_USAGE && code <= RFX_CODE_CANCELLED);
    size_t length = strnlen(s->why.text, sizeof s->why.text);
    if (!known || length == sizeof s->why.text || (code == RFX_CODE_OK) != (length == 0))
        fuzz_fail("code %d: '%.511s'", (int)code, s->why.text);
}

static int progress(void *user, int64_t done, int64_t total) {
    struct state *s = user;
    if (done < 0 || done > total) fuzz_fail("%lld done", (long long)done);
    return s->polls >= 0 && s->polls-- == 0;
}

enum { MODELS = 10 };

/* The bytes of a model, which stay for networks that are open. */
static const struct maker *model_bytes(size_t k) {
    static struct maker kept[MODELS];
    if (kept[k].size == 0) kept[k] = *fuzz_model(fuzz_model_names[k]);
    return &kept[k];
}

/* A model by name, as a file, or none; *bytes: the same in memory instead. */
static const char *model_name(struct input *in, const struct maker **bytes) {
    static const char *const names[] = {"toy:m=1,b=2,n=1,cst=3",
                                        "toy:m=1,b=1,n=1,cst=2",
                                        "toy:m=",
                                        "no_such_network",
                                        "",
                                        "/",
                                        NULL};
    enum { NAMES = sizeof names / sizeof names[0] };
    size_t choice = next(in) % (2 * MODELS + NAMES);
    *bytes = NULL;
    if (choice >= 2 * MODELS) return names[choice - 2 * MODELS];
    if (choice >= MODELS) *bytes = model_bytes(choice % MODELS);
    return fuzz_model_path(fuzz_model_names[choice % MODELS]);
}

static void call_open(struct state *s, struct slot *slot) {
    static const int64_t sides[] = {0, 0, 0, 8, 14, 11, 1, -1, INT64_MAX};
    static const int64_t sizes[] = {sizeof(struct rfx_open_options), 0, 8, 24, 4096};
    /* As large as the largest size that is said. */
    _Alignas(struct rfx_open_options) char room[4096] = {0};
    struct rfx_open_options *options = (void *)room;
    rfx_open_options_init(options, sizeof *options);
    if (next(&s->in) % 8 == 0) options->size = (size_t)PICK(&s->in, sizes);
    options->rows = PICK(&s->in, sides);
    options->columns = options->rows == 0 ? 0 : PICK(&s->in, sides);
    options->seed = next(&s->in);
    options->convolution = next(&s->in) % 4 == 3 ? next(&s->in) % 4 : RFX_CONVOLUTION_DIRECT;
    if (options->convolution == RFX_CONVOLUTION_OPENBLAS)
        options->convolution = RFX_CONVOLUTION_WINOGRAD; /* 128 MiB a thread */
    struct rfx_network *net = NULL;
    bool no_options = next(&s->in) % 8 == 7;
    if (no_options) options = NULL;
    const struct maker *bytes;
    const char *name = model_name(&s->in, &bytes);
    enum rfx_code code =
        bytes != NULL ? rfx_network_open_memory(bytes->bytes, bytes->size, options, &net, &s->why)
                      : rfx_network_open(name, options, &net, &s->why);
    check(s, code);
    if ((code == RFX_CODE_OK) != (net != NULL)) fuzz_fail("code %d and a network", (int)code);
    if (net == NULL) return;
    rfx_network_free(slot->net);
    *slot = (struct slot){.net = net};
}

/* Every layer has a name and a shape, and the last ones are as large as the outputs. */
static void call_layers(struct state *s, const struct slot *slot) {
    int n = rfx_network_layer_count(slot->net);
    struct rfx_layer_report *layers = calloc((size_t)n, sizeof *layers);
    if (layers == NULL) return;
    enum rfx_code code = rfx_network_layers(slot->net, layers, sizeof *layers, &s->why);
    check(s, code);
    for (int i = 0; code == RFX_CODE_OK && i < n; i++) {
        int64_t elems = 1;
        for (int k = 0; k < layers[i].n_dims; k++) elems *= layers[i].dims[k];
        if (layers[i].name == NULL || layers[i].op == NULL || elems < 1 ||
            layers[i].output_bytes > layers[i].live_bytes)
            fuzz_fail("layer %d of %d", i, n);
    }
    free(layers);
}

static void call_shapes(struct state *s, const struct slot *slot) {
    int64_t in[4], dims[RFX_MAX_DIMS], elems = 1;
    int n = rfx_network_output_count(slot->net), k = next(&s->in) % 8 - 1;
    rfx_network_input_shape(slot->net, in);
    int rank = rfx_network_output_shape(slot->net, k, dims);
    for (int i = 0; i < rank; i++) elems *= dims[i];
    bool there = k >= 0 && k < n;
    if (n < 1 || in[0] != 1 || rfx_network_input_name(slot->net) == NULL || there != (rank >= 0) ||
        there != (rfx_network_output_name(slot->net, k) != NULL) ||
        rfx_network_output_elements(slot->net, k) != (there ? elems : -1))
        fuzz_fail("output %d of %d", k, n);
    call_layers(s, slot);
}

/* A picture by name; often one of the network's size. */
static const char *picture_name(struct input *in, const struct slot *slot, char text[64]) {
    static const char *const names[] = {
        "synthetic:9x9:3",        "synthetic:", "synthetic:0x1", "/", "no_such_picture",
        "synthetic:999999x999999"};
    enum { NAMES = sizeof names / sizeof names[0] };
    int64_t dims[4] = {1, 3, 14, 11};
    size_t choice = next(in) % (2 * NAMES);
    if (choice < NAMES) return names[choice];
    if (slot->net != NULL) rfx_network_input_shape(slot->net, dims);
    (void)snprintf(text, 64, "synthetic:%lldx%lld", (long long)dims[2], (long long)dims[3]);
    return text;
}

static void call_size(struct state *s, const struct slot *slot) {
    char text[64];
    int64_t rows = -1, columns = -1, channels = -1;
    enum rfx_code code = rfx_picture_size(picture_name(&s->in, slot, text), &rows, &columns,
                                          next(&s->in) % 2 == 0 ? &channels : NULL, &s->why);
    check(s, code);
    if ((code == RFX_CODE_OK) != (rows > 0 && columns > 0)) fuzz_fail("%lld rows", (long long)rows);
}

static struct rfx_run_options run_options(struct state *s) {
    static const int64_t budgets[] = {0, 0, 1, 1 << 20, 8 << 20, 16 << 20, 20 << 20, 64 << 20};
    static const int64_t threads[] = {1, 1, 1, 1, 2, 3, -1, 1025};
    struct rfx_run_options options;
    rfx_run_options_init(&options, sizeof options);
    options.memory_bytes = (size_t)PICK(&s->in, budgets) + 4096u * next(&s->in);
    if (options.memory_bytes < 1 << 20) options.memory_bytes &= 1;
    options.threads = (int)PICK(&s->in, threads);
    options.progress = progress;
    options.user = s;
    s->polls = next(&s->in) % 4 == 3 ? next(&s->in) : -1;
    uint8_t odd = next(&s->in);
    if (odd == 1) options.size = 0;
    if (odd == 2) options.scale = NAN; /* refused: another scale gives other bits */
    static const float stds[3] = {1.0f, 0.0f, 1.0f};
    if (odd == 3) options.std = stds;
    if (odd == 3) options.n_std = 3;
    if (odd == 4) options.max_pixels = -1;
    if (odd == 5) options.max_pixels = 1;
    return options;
}

static void call_predict(struct state *s, struct slot *slot) {
    char text[64];
    struct rfx_run_options options = run_options(s);
    struct rfx_forecast f = {.size = next(&s->in) % 16 == 1 ? next(&s->in) % sizeof f : sizeof f};
    size_t said = f.size;
    const char *picture = next(&s->in) % 2 == 0 ? NULL : picture_name(&s->in, slot, text);
    enum rfx_code code = rfx_network_predict(slot->net, picture, &options, &f, &s->why);
    check(s, code);
    if (code != RFX_CODE_OK || said != sizeof f) return;
    if (f.peak_bytes != f.activation_bytes + f.weight_bytes + f.scratch_bytes + f.picture_bytes +
                            f.reserve_bytes ||
        (options.memory_bytes != 0 && f.peak_bytes > options.memory_bytes) || f.macs < f.macs_whole)
        fuzz_fail("forecast of %zu bytes: %s", f.peak_bytes, f.plan);
}

static bool fits(const struct rfx_network *net) {
    int64_t in[4];
    rfx_network_input_shape(net, in);
    bool small = in[1] * in[2] * in[3] <= MOST_VALUES;
    for (int k = 0; k < rfx_network_output_count(net); k++)
        small = small && k < MOST_OUTPUTS && rfx_network_output_elements(net, k) <= MOST_VALUES;
    return small;
}

/* A run on values (of == 0) or a picture; a run that ends well has the bits of the one before. */
static void call_run(struct state *s, struct slot *slot, int of) {
    static float values[MOST_VALUES], outputs[MOST_OUTPUTS][MOST_VALUES];
    float *pointers[MOST_OUTPUTS];
    char text[64];
    if (!fits(slot->net)) return;
    int n = rfx_network_output_count(slot->net), skipped = next(&s->in);
    for (int k = 0; k < MOST_OUTPUTS; k++) pointers[k] = k + 1 == skipped ? NULL : outputs[k];
    fuzz_values(values, MOST_VALUES);
    struct rfx_run_options options = run_options(s);
    int said = next(&s->in) % 16 == 1 ? n + 1 : n;
    int64_t dims[4];
    rfx_network_input_shape(slot->net, dims);
    (void)snprintf(text, sizeof text, "synthetic:%lldx%lld", (long long)dims[2],
                   (long long)dims[3]);
    enum rfx_code code =
        of == 0 ? rfx_network_run_values(slot->net, values, pointers, said, &options, &s->why)
                : rfx_network_run_file(slot->net, text, pointers, said, &options, &s->why);
    check(s, code);
    if (code == RFX_CODE_OK && said != n) fuzz_fail("room for %d outputs of %d", said, n);
    if (code != RFX_CODE_OK || (skipped > 0 && skipped <= n)) return;
    uint64_t sum = 1;
    for (int k = 0; k < n; k++)
        sum = fuzz_sum(sum, outputs[k],
                       (size_t)rfx_network_output_elements(slot->net, k) * sizeof(float));
    if (slot->sums[of] != 0 && slot->sums[of] != sum) fuzz_fail("other bits than the run before");
    slot->sums[of] = sum;
}

static void call(struct state *s) {
    uint8_t what = next(&s->in);
    struct slot *slot = &s->slots[next(&s->in) % NETWORKS];
    bool open = slot->net != NULL;
    switch (what % 8) {
        case 0:
            rfx_network_free(slot->net);
            *slot = (struct slot){0};
            break;
        case 1:
            call_size(s, slot);
            break;
        case 2:
            if (open) call_shapes(s, slot);
            break;
        case 3:
            if (open) call_predict(s, slot);
            break;
        case 4:
        case 5:
            if (open) call_run(s, slot, what % 8 - 4);
            break;
        default:
            call_open(s, slot);
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct state s = {.in = {data, data + size}};
    for (int i = 0; i < MOST_CALLS && s.in.at < s.in.end; i++) call(&s);
    for (int i = 0; i < NETWORKS; i++) rfx_network_free(s.slots[i].net);
    return 0;
}
