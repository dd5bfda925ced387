/* rfexec operators: what model files may have in them. */
#include <stdio.h>

#include "rfexec/onnx/import/onnx_ops.h"
#include "tools/cli/command.h"

int rfx_cmd_operators(const struct rfx_cli_options *options) {
    (void)options;
    rfx_onnx_write_operators(stdout);
    return RFX_EXIT_DONE;
}
