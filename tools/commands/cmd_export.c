/* rfexec export: a built-in network as an ONNX file. */
#include <stdio.h>

#include "layers/core/memory.h"
#include "rfexec/run/model.h"
#include "tools/cli/command.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"

struct export_options {
    struct rfx_cli_words words;
    struct rfx_cli_model_options model;
    struct rfx_cli_output_options output;
};

static int run(void *given) {
    const struct export_options *options = given;
    const struct rfx_load_options load = {
        .h = options->model.size.y, .w = options->model.size.x, .seed = options->model.seed};
    const char *name = options->words.args[0];
    if (!rfx_builtin_exists(name)) return rfx_cli_refuse_model(name, "not a built-in network");
    struct rfx_memory *mem = rfx_cli_memory_create();
    struct rfx_error err = {{0}};
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    enum rfx_status status = rfx_builtin_export(mem, name, &load, options->output.file, &err);
    rfx_memory_free(mem);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static struct export_options values;

static const struct rfx_cli_use uses[] = {
    RFX_CLI_USE(file, export_options, output),
    RFX_CLI_USE(size, export_options, model),
    RFX_CLI_USE(seed, export_options, model),
};

const struct rfx_cli_command rfx_cmd_export = {
    .name = "export",
    .args = "BUILTIN -o FILE.onnx [--seed N] [--size HxW]",
    .summary = "write a built-in network as an ONNX file",
    .details =
        "A name that ends with :int8 is a network of 8 bits (QDQ). 'rfexec models' lists them.\n",
    .examples =
        "rfexec export mobilenet_v2 -o mobilenet_v2.onnx\n"
        "rfexec export mobilenet_v2:int8 -o mobilenet_v2.int8.onnx\n",
    RFX_CLI_TABLE(uses),
    .needs = "output",
    .min_args = 1,
    .max_args = 1,
    .values = &values,
    .run = run,
};
