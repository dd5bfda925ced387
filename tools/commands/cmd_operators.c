/* rfexec operators: prints the table of ONNX operators that model files may contain. */
#include <stdio.h>

#include "rfexec/onnx/import/onnx_ops.h"
#include "tools/cli/command.h"

static int run(void *given) {
    (void)given;
    rfx_onnx_write_operators(stdout);
    return RFX_EXIT_DONE;
}

static struct rfx_cli_words values;

const struct rfx_cli_command rfx_cmd_operators = {
    .name = "operators",
    .args = "",
    .summary = "list the ONNX operators that can be run, and which of them stream rows",
    .details = "Prints a table in Markdown, that of docs/operators.md.\n",
    .examples = "rfexec operators\n",
    .min_args = 0,
    .max_args = 0,
    .values = &values,
    .run = run,
};
