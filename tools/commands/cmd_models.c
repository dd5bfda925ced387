/* rfexec models: lists the built-in networks with figures computed from their graphs. */
#include <stdio.h>

#include "rf_analysis/analysis.h"
#include "rfexec/run/model.h"
#include "tools/cli/command.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"

enum { REFERENCE_PX = 224 }; /* usual image size for ImageNet; published MACs are for this size */

static int print_model(struct rfx_memory *mem, const struct rfx_builtin *builtin, json_t *list) {
    struct rfx_load_options load = {.h = REFERENCE_PX, .w = REFERENCE_PX};
    struct rfx_graph *graph = NULL;
    struct rfx_analysis *analysis = NULL;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_builtin_build(mem, builtin->name, &load, &graph, &err);
    if (status == RFX_OK) status = rfx_analysis_create(graph, &analysis, &err);
    if (status == RFX_OK && list != NULL) {
        (void)json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:s}", "name", builtin->name, "params",
                            (json_int_t)analysis->params, "macs_224", (json_int_t)analysis->macs,
                            "summary", builtin->summary));
    } else if (status == RFX_OK) {
        printf("%-20s %12llu %15llu  %s\n", builtin->name, (unsigned long long)analysis->params,
               (unsigned long long)analysis->macs, builtin->summary);
    }
    rfx_analysis_free(analysis);
    rfx_graph_free(graph);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

struct models_options {
    struct rfx_cli_words words;
    bool json;
};

static int run(void *given) {
    const struct models_options *options = given;
    struct rfx_memory *mem = rfx_cli_memory_create();
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    json_t *list = options->json ? json_array() : NULL;
    int count = 0, code = RFX_EXIT_DONE;
    const struct rfx_builtin *builtins = rfx_builtin_list(&count);
    if (list == NULL) printf("%-20s %12s %15s\n", "name", "parameters", "MACs at 224x224");
    for (int i = 0; i < count && code == RFX_EXIT_DONE; ++i)
        code = print_model(mem, &builtins[i], list);
    if (list == NULL)
        puts(
            "\nTheir weights are seeded (--seed), not trained: what they take and how fast they "
            "are is "
            "real,\nwhat they answer is not. Networks of your own are .onnx files.");
    if (list != NULL && code == RFX_EXIT_DONE) {
        json_t *document = rfx_report_document("models", NULL);
        (void)json_object_set(document, "models", list);
        code = rfx_report_print(document);
    }
    json_decref(list);
    rfx_memory_free(mem);
    return code;
}

static struct models_options values;

static const struct rfx_cli_use uses[] = {RFX_CLI_USE(json, models_options, json)};

const struct rfx_cli_command rfx_cmd_models = {
    .name = "models",
    .args = "[--json]",
    .summary = "list the built-in networks",
    .details = "",
    .examples = "rfexec models\n",
    RFX_CLI_TABLE(uses),
    .min_args = 0,
    .max_args = 0,
    .values = &values,
    .run = run,
};
