/* The least that a program in a device needs of librfexec: a model in memory, an image whose rows
 * come from a callback, and an output whose rows go to one. Prints a checksum of each output, the
 * same on every processor and in every budget. embedded NET.onnx ROWS COLUMNS BYTES THREADS cc
 * embedded.c $(pkg-config --cflags --libs rfexec) -o embedded */
#include <rfexec/rfexec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OUTPUTS 8

static uint64_t mix(uint64_t z) { /* the output function of splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The camera: any rectangle of the image, whenever the run asks for it. */
static int read_image(void *user, const struct rfx_area *area, float *values) {
    (void)user;
    for (int64_t r = 0; r < area->rows; r++)
        for (int64_t c = 0; c < area->columns; c++)
            for (int64_t k = 0; k < area->channels; k++) {
                uint64_t y = (uint64_t)(area->row + r), x = (uint64_t)(area->column + c);
                uint64_t noise = mix(y << 32 | x << 4 | (uint64_t)k) & 63;
                values[r * area->row_step + c * area->column_step + k * area->channel_step] =
                    (float)((x + y) % 192 + noise) / 64.0f - 2.0f;
            }
    return 0;
}

struct output {
    int64_t columns, elements; /* of the map */
    uint64_t checksum;         /* a sum over elements, so that their order does not count */
};

/* The consumer: each element comes once. Its number in the map and its bits are added. */
static int take_rows(void *user, int k, const struct rfx_area *area, const float *values) {
    struct output *output = (struct output *)user + k;
    for (int64_t r = 0; r < area->rows; r++)
        for (int64_t c = 0; c < area->columns; c++)
            for (int64_t ch = 0; ch < area->channels; ch++) {
                int64_t pixel = (area->row + r) * output->columns + area->column + c;
                uint32_t bits;
                memcpy(
                    &bits,
                    values + r * area->row_step + c * area->column_step + ch * area->channel_step,
                    sizeof bits);
                output->checksum += mix(mix((uint64_t)(pixel * area->channels + ch) + 1) + bits);
                output->elements++;
            }
    return 0;
}

/* In a device the model is a part of the program, or of its flash memory. */
static void *read_model(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    char *model = NULL;
    if (file == NULL) return NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        rewind(file);
        model = size > 0 ? malloc((size_t)size) : NULL;
        *bytes = model != NULL ? fread(model, 1, (size_t)size, file) : 0;
    }
    (void)fclose(file);
    return model;
}

int main(int argc, char **argv) {
    struct rfx_why why = {""};
    struct rfx_network *net = NULL;
    struct rfx_open_options open;
    struct rfx_run_options run;
    struct rfx_source source = {.size = sizeof source, .read = read_image};
    struct output outputs[MOST_OUTPUTS] = {{0}};
    size_t bytes = 0;
    if (argc != 6) return RFX_CODE_USAGE;
    rfx_open_options_init(&open, sizeof open);
    rfx_run_options_init(&run, sizeof run);
    open.rows = atoll(argv[2]);
    open.columns = atoll(argv[3]);
    run.memory_bytes = strtoull(argv[4], NULL, 10);
    run.threads = atoi(argv[5]);
    run.write = take_rows;
    run.user = outputs;
    void *model = read_model(argv[1], &bytes);
    enum rfx_code code = rfx_network_open_memory(model, bytes, &open, &net, &why);
    if (code == RFX_CODE_OK && rfx_network_output_count(net) > MOST_OUTPUTS) code = RFX_CODE_USAGE;
    for (int k = 0; code == RFX_CODE_OK && k < rfx_network_output_count(net); k++) {
        struct rfx_area map;
        if (rfx_network_output_map(net, k, &map)) outputs[k].columns = map.columns;
    }
    if (code == RFX_CODE_OK) code = rfx_network_run_source(net, &source, NULL, 0, &run, &why);
    for (int k = 0; code == RFX_CODE_OK && k < rfx_network_output_count(net); k++)
        printf("%s: %lld values, checksum %016llx\n", rfx_network_output_name(net, k),
               (long long)outputs[k].elements, (unsigned long long)outputs[k].checksum);
    if (code != RFX_CODE_OK) fprintf(stderr, "%s\n", why.text);
    rfx_network_free(net);
    free(model);
    return (int)code;
}
