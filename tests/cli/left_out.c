/* Runs with and without a mask, mask.npy, and what a build without codecs, OpenBLAS and built-in
 * networks says: the code and text of each refusal, one line each. left_out NET.onnx PICTURE... */
#include <rfexec/rfexec.h>
#include <stdio.h>

static void say(const char *what, enum rfx_code code, const struct rfx_why *why) {
    printf("%s %d %s\n", what, (int)code, why->text);
}

static void open_and_run(const char *model, const char *what, enum rfx_convolution convolution,
                         const char *mask, const char *output) {
    struct rfx_why why = {""};
    struct rfx_network *net = NULL;
    struct rfx_open_options open;
    struct rfx_run_options run;
    struct rfx_result_file file;
    rfx_open_options_init(&open, sizeof open);
    rfx_run_options_init(&run, sizeof run);
    rfx_result_file_init(&file, sizeof file);
    open.rows = open.columns = 64;
    open.convolution = convolution;
    file.path = output;
    run.files = &file;
    run.n_files = 1;
    run.mask = mask;
    enum rfx_code code = rfx_network_open(model, &open, &net, &why);
    if (code == RFX_CODE_OK)
        code = rfx_network_run_file(net, "synthetic:64x64", NULL, 0, &run, &why);
    say(what, code, &why);
    rfx_network_free(net);
}

int main(int argc, char **argv) {
    struct rfx_why why = {""};
    int64_t rows, columns;
    if (argc < 2) return RFX_CODE_USAGE;
    for (int i = 2; i < argc; i++) {
        enum rfx_code code = rfx_picture_size(argv[i], &rows, &columns, NULL, &why);
        say(argv[i], code, &why);
    }
    open_and_run(argv[1], "npy", RFX_CONVOLUTION_DIRECT, NULL, "left_out.npy");
    open_and_run(argv[1], "masked", RFX_CONVOLUTION_DIRECT, "mask.npy", "left_out.npy");
    open_and_run(argv[1], "mask", RFX_CONVOLUTION_DIRECT, "a.png", "left_out.npy");
    open_and_run(argv[1], "tif", RFX_CONVOLUTION_DIRECT, NULL, "left_out.tif");
    open_and_run(argv[1], "png", RFX_CONVOLUTION_DIRECT, NULL, "left_out.png");
    open_and_run(argv[1], "zarr", RFX_CONVOLUTION_DIRECT, NULL, "left_out.zarr");
    open_and_run(argv[1], "openblas", RFX_CONVOLUTION_OPENBLAS, NULL, "left_out.npy");
    open_and_run("toy", "builtin", RFX_CONVOLUTION_DIRECT, NULL, "left_out.npy");
    return 0;
}
