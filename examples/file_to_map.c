/* A picture file through a network into a .npy file, inside a budget.
 *     file_to_map NET.onnx PICTURE OUT.npy BYTES
 *     cc file_to_map.c $(pkg-config --cflags --libs rfexec) -o file_to_map */
#include <rfexec/rfexec.h>
#include <stdio.h>
#include <stdlib.h>

static int write_npy(const char *path, struct rfx_network *net, const float *values) {
    int64_t dims[RFX_MAX_DIMS];
    char shape[256] = "", header[400];
    int n = rfx_network_output_shape(net, 0, dims), used = 0;
    for (int i = 0; i < n; i++)
        used += snprintf(shape + used, sizeof shape - used, "%lld,", (long long)dims[i]);
    snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }",
             shape);
    size_t elements = (size_t)rfx_network_output_elements(net, 0);
    FILE *file = fopen(path, "wb");
    if (file == NULL) return 1;
    fprintf(file, "\x93NUMPY%c%c%c%c%-309s\n", 1, 0, 310 & 255, 310 >> 8, header);
    int bad = fwrite(values, sizeof *values, elements, file) != elements;
    return fclose(file) != 0 || bad;
}

int main(int argc, char **argv) {
    struct rfx_why why = {""};
    struct rfx_network *net = NULL;
    struct rfx_open_options open;
    struct rfx_run_options run;
    if (argc != 5) return 2;
    rfx_open_options_init(&open, sizeof open);
    rfx_run_options_init(&run, sizeof run);
    run.memory_bytes = strtoull(argv[4], NULL, 10);
    enum rfx_code code = rfx_picture_size(argv[2], &open.rows, &open.columns, NULL, &why);
    if (code == RFX_CODE_OK) code = rfx_network_open(argv[1], &open, &net, &why);
    float *map = net != NULL ? malloc(rfx_network_output_elements(net, 0) * sizeof *map) : NULL;
    if (map != NULL) code = rfx_network_run_file(net, argv[2], &map, 1, &run, &why);
    if (code != RFX_CODE_OK) fprintf(stderr, "%s\n", why.text);
    if (code == RFX_CODE_OK)
        code = map == NULL || write_npy(argv[3], net, map) ? RFX_CODE_SYSTEM : code;
    free(map);
    rfx_network_free(net);
    return (int)code;
}
