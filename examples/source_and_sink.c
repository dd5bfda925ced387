/* An image that is in no file and no array, and a map that is never whole in memory: rows are
 * computed when the run asks for them, and the map goes to a picture (PGM) part by part.
 *     source_and_sink NET.onnx ROWS COLUMNS OUT.pgm BYTES
 *     cc source_and_sink.c $(pkg-config --cflags --libs rfexec) -o source_and_sink */
#include <rfexec/rfexec.h>
#include <stdio.h>
#include <stdlib.h>

/* The source: any rectangle, when it is asked for. Rings around many centres. */
static int read_image(void *user, const struct rfx_area *area, float *values) {
    (void)user;
    for (int64_t r = 0; r < area->rows; r++)
        for (int64_t c = 0; c < area->columns; c++) {
            int64_t y = (area->row + r) % 512 - 256, x = (area->column + c) % 512 - 256;
            float *pixel = values + r * area->row_step + c * area->column_step;
            for (int64_t k = 0; k < area->channels; k++)
                pixel[k * area->channel_step] =
                    (float)((x * x + y * y) / 64 % (50 + k)) / 25.0f - 1;
        }
    return 0;
}

struct picture {
    FILE *file;
    long header;
    int64_t columns;
};

/* The sink: of each pixel the strongest channel, as grey, at its place in the file. */
static int write_map(void *user, int output, const struct rfx_area *area, const float *values) {
    struct picture *picture = user;
    if (output != 0) return 0;
    for (int64_t r = 0; r < area->rows; r++) {
        int64_t at = (area->row + r) * picture->columns + area->column;
        if (fseek(picture->file, picture->header + (long)at, SEEK_SET) != 0) return 1;
        for (int64_t c = 0; c < area->columns; c++) {
            const float *pixel = values + r * area->row_step + c * area->column_step;
            int64_t best = 0;
            for (int64_t k = 1; k < area->channels; k++)
                if (pixel[k * area->channel_step] > pixel[best * area->channel_step]) best = k;
            if (putc((int)(best * 255 / (area->channels > 1 ? area->channels - 1 : 1)),
                     picture->file) == EOF)
                return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    struct rfx_why why = {""};
    struct rfx_network *net = NULL;
    struct rfx_open_options open;
    struct rfx_run_options run;
    struct rfx_source source = {.size = sizeof source, .read = read_image};
    struct picture picture = {0};
    int64_t dims[RFX_MAX_DIMS];
    if (argc != 6) return RFX_CODE_USAGE;
    rfx_open_options_init(&open, sizeof open);
    rfx_run_options_init(&run, sizeof run);
    open.rows = atoll(argv[2]);
    open.columns = atoll(argv[3]);
    run.memory_bytes = strtoull(argv[5], NULL, 10);
    run.write = write_map;
    run.user = &picture;
    enum rfx_code code = rfx_network_open(argv[1], &open, &net, &why);
    if (code == RFX_CODE_OK && rfx_network_output_shape(net, 0, dims) == 4) {
        picture.file = fopen(argv[4], "wb");
        picture.columns = dims[3];
        if (picture.file == NULL) code = RFX_CODE_SYSTEM;
    }
    if (picture.file != NULL) {
        picture.header =
            fprintf(picture.file, "P5\n%lld %lld\n255\n", (long long)dims[3], (long long)dims[2]);
        code = rfx_network_run_source(net, &source, NULL, 0, &run, &why);
        if (fclose(picture.file) != 0) code = RFX_CODE_SYSTEM;
    }
    if (code != RFX_CODE_OK) fprintf(stderr, "%s\n", why.text);
    rfx_network_free(net);
    return (int)code;
}
