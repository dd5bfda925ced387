/* A program of someone else, built against the installed package: asks what a network takes, runs
 * it without a limit and in the fewest possible bytes, and compares the bits. */
#include <rfexec/rfexec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 97, COLUMNS = 64, CHANNELS = 3 };

static int fail(const char *what, enum rfx_code code, const struct rfx_why *why) {
    fprintf(stderr, "%s: code %d: %s\n", what, (int)code, why->text);
    return 1;
}

/* Runs within `memory_bytes`; the values are to be freed, NULL after a failure. */
static float *run(struct rfx_network *net, const float *image, size_t memory_bytes) {
    struct rfx_run_options options;
    struct rfx_why why;
    float *out = malloc((size_t)rfx_network_output_elements(net, 0) * sizeof *out);
    rfx_run_options_init(&options, sizeof options);
    options.memory_bytes = memory_bytes;
    options.threads = 1;
    enum rfx_code code = rfx_network_run_values(net, image, &out, 1, &options, &why);
    if (code == RFX_CODE_OK) return out;
    (void)fail("run", code, &why);
    free(out);
    return NULL;
}

static int compare(struct rfx_network *net, const float *image) {
    struct rfx_run_options options;
    struct rfx_forecast whole = {.size = sizeof whole}, least = {.size = sizeof least};
    struct rfx_why why;
    rfx_run_options_init(&options, sizeof options);
    options.threads = 1;
    enum rfx_code code = rfx_network_predict(net, NULL, &options, &whole, &why);
    if (code != RFX_CODE_OK) return fail("predict", code, &why);
    options.memory_bytes = 1; /* nothing fits: the answer is the least */
    code = rfx_network_predict(net, NULL, &options, &least, &why);
    if (code != RFX_CODE_BUDGET || why.text[0] == '\0') return fail("one byte", code, &why);
    float *a = run(net, image, 0);
    float *b = run(net, image, least.peak_bytes);
    size_t bytes = (size_t)rfx_network_output_elements(net, 0) * sizeof *a;
    int same = a != NULL && b != NULL && memcmp(a, b, bytes) == 0;
    printf("%s: %zu bytes\n%s: %zu bytes\n%s bits\n", whole.plan, whole.peak_bytes, least.plan,
           least.peak_bytes, same ? "the same" : "OTHER");
    free(a);
    free(b);
    return same && least.peak_bytes < whole.peak_bytes ? 0 : 1;
}

int main(void) {
    static float image[CHANNELS * ROWS * COLUMNS];
    struct rfx_open_options options;
    struct rfx_network *net = NULL;
    struct rfx_why why;
    int64_t dims[4];
    for (int i = 0; i < CHANNELS * ROWS * COLUMNS; i++) image[i] = (float)(i * 37 % 256) / 255.0f;
    printf("rfexec %s, header %d.%d.%d\n", rfx_version(), RFX_VERSION_MAJOR, RFX_VERSION_MINOR,
           RFX_VERSION_PATCH);
    if (strcmp(rfx_version(), RFX_VERSION) != 0) return 1;
    rfx_open_options_init(&options, sizeof options);
    options.rows = ROWS;
    options.columns = COLUMNS;
    enum rfx_code code = rfx_network_open("fsrcnn", &options, &net, &why);
    if (code != RFX_CODE_OK) return fail("open", code, &why);
    rfx_network_input_shape(net, dims);
    int wrong = dims[1] != CHANNELS || dims[2] != ROWS || dims[3] != COLUMNS || compare(net, image);
    rfx_network_free(net);
    return wrong;
}
