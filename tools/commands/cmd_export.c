/* rfexec export: a built-in network as an ONNX file. */
#include <stdio.h>

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/session/model.h"
#include "tools/cli/command.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"

int rfx_cmd_export(const struct rfx_cli_options *options) {
    /* Unfused: batch norm and activations appear as the nodes that other readers expect. */
    static const struct rfx_fuse_options no_fusing = {0};
    struct rfx_load_options load = {
        .h = options->size.y, .w = options->size.x, .seed = options->seed, .fuse = &no_fusing};
    const char *name = options->args[0];
    if (options->output == NULL) {
        rfx_cli_message("export needs -o FILE.onnx");
        return RFX_EXIT_USAGE;
    }
    if (!rfx_builtin_exists(name)) return rfx_cli_refuse_model(name, "not a built-in network");
    struct rfx_memory *mem = rfx_cli_memory_create();
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    enum rfx_status status = rfx_builtin_build(mem, name, &load, &graph, &err);
    if (status == RFX_OK) status = rfx_onnx_export(graph, options->output, &err);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}
