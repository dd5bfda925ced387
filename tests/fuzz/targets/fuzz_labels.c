/* Label files: each class of a vector has the line with its number. */
#include <string.h>

#include "layers/core/printable.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_models.h"
#include "tests/fuzz/fuzz_run.h"
#include "tiler/modes/modes.h"
#include "tools/cli/classes.h"

#define MEMORY_BYTES ((size_t)4 << 20)
enum { MOST_BYTES = 4096, CLASSES = 8 };

/* A session of a network that gives CLASSES values; outputs need not be computed to be listed. */
static struct rfx_session *make_session(void) {
    struct rfx_graph *graph = fuzz_model_graph("classes");
    struct rfx_plan_request request = {
        .source = fuzz_traits(graph), .threads = 1, .asked = rfx_ask_whole()};
    struct rfx_plan *plan = NULL;
    struct rfx_session *session = NULL;
    struct rfx_error err = {""};
    fuzz_keep(true);
    if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK ||
        rfx_session_create(graph, plan, &session, &err) != RFX_OK)
        fuzz_fail("%s", err.text);
    fuzz_keep(false);
    return session;
}

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
    static struct rfx_session *session;
    static struct rfx_cli_options options; /* large */
    struct rfx_cli_classes classes = {0};
    struct rfx_error err = {""};
    char text[MOST_BYTES + 1];
    if (session == NULL) session = make_session();
    if (size > MOST_BYTES) size = MOST_BYTES;
    memcpy(text, data, size);
    text[size] = '\0';
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    options.labels = fuzz_file(data, size);
    options.top = CLASSES;
    enum rfx_status status = rfx_cli_classes_find(session, mem, &options, &classes, &err);
    fuzz_check_status(status, &err);
    if (status == RFX_OK && classes.count != CLASSES) fuzz_fail("%d classes", classes.count);
    for (int i = 0; status == RFX_OK && i < classes.count; i++)
        check_class(&classes.items[i], text);
    rfx_cli_classes_free(&classes);
    rfx_memory_free(mem);
    return 0;
}
