/* Label files: each class of a vector has the line with its number. */
#include <string.h>

#include "layers/core/printable.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_models.h"
#include "tools/cli/classes.h"

#define MEMORY_BYTES ((size_t)4 << 20)
enum { MOST_BYTES = 4096, CLASSES = 8 };

/* Line `index` of a text that ends at its first NUL, as it is shown; false: there is none. */
static bool line_of(const char *text, int64_t index, char *shown, size_t size) {
    char line[MOST_BYTES + 1];
    for (int64_t i = 0; *text != '\0'; i++) {
        size_t length = strcspn(text, "\n");
        if (i == index) {
            memcpy(line, text, length);
            line[length] = '\0';
            line[strcspn(line, "\r")] = '\0';
            rfx_printable(line, shown, size);
            return true;
        }
        text += length + (text[length] == '\n');
    }
    return false;
}

static void check_class(const struct rfx_cli_class *item, const char *text) {
    static char shown[4 * MOST_BYTES + 1]; /* \xNN for each byte */
    bool there = line_of(text, item->index, shown, sizeof shown);
    if (there != (item->label != NULL) || (there && strcmp(shown, item->label) != 0))
        fuzz_fail("class %lld is '%s', the line '%s'", (long long)item->index,
                  item->label != NULL ? item->label : "(none)", there ? shown : "(none)");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static float values[CLASSES] = {0.5f, 0.25f, 1.0f, -1.0f, 0.0f, 2.0f, 0.5f, 3.0f};
    static const struct rfx_graph *graph;
    const struct rfx_view view = rfx_view_dense(values, rfx_rect_full(1, 1), CLASSES);
    static struct rfx_cli_report_options options;
    struct rfx_cli_classes classes = {0};
    struct rfx_error err = {""};
    char text[MOST_BYTES + 1];
    if (size > MOST_BYTES) size = MOST_BYTES;
    memcpy(text, data, size);
    text[size] = '\0';
    if (graph == NULL) graph = fuzz_model_graph("classes");
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    options.labels = fuzz_file(data, size);
    options.top = CLASSES;
    enum rfx_status status = rfx_cli_classes_begin(mem, graph, &options, &classes, &err);
    if (status == RFX_OK) rfx_cli_classes_take(&classes, &graph->ends[0], view.rect, &view);
    if (status == RFX_OK) status = rfx_cli_classes_finish(&options, &classes, &err);
    fuzz_check_status(status, &err);
    if (status == RFX_OK && classes.count != CLASSES) fuzz_fail("%d classes", classes.count);
    for (int i = 0; status == RFX_OK && i < classes.count; i++)
        check_class(&classes.items[i], text);
    rfx_cli_classes_free(&classes);
    rfx_memory_free(mem);
    return 0;
}
