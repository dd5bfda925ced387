/* Peak RSS of loading: at most the packed weights and 16 MiB, in a process of its own.
 *
 * The test exports a built-in network (resnet50, or RFX_LOAD_MODEL) and starts itself again; the
 * new process loads the file, plans a 224x224 image, packs, and reads its own VmHWM. Activations do
 * not count: nothing of the arena is touched before the first run. Neither does what was freed
 * before, as planning a large network leaves it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/run/model.h"
#include "rfexec/run/session.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"

#define MODEL_PATH "test_load_memory.onnx"
#define ALLOWED_BYTES ((size_t)16 << 20)
#define HOLES_BYTES ((size_t)24 << 20)

#ifdef RFX_SANITIZE
#define SANITISED true
#else
#define SANITISED false
#endif

/* VmHWM of this process in bytes, 0 when it cannot be read. */
static size_t peak_rss(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long kib = 0;
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmHWM: %lu", &kib) == 1) break;
    (void)fclose(file);
    return (size_t)kib * 1024;
}

static int report_error(const struct rfx_error *err) {
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

/* Frees many small blocks below one that stays; returns that. */
static void *leave_holes(struct rfx_memory *mem) {
    enum { BYTES = 4000, N = HOLES_BYTES / BYTES };
    static void *blocks[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = rfx_memory_alloc(mem, BYTES);
        if (blocks[i] != NULL) memset(blocks[i], 1, BYTES);
    }
    for (int i = 0; i + 1 < N; i++) rfx_memory_release(mem, blocks[i]);
    return blocks[N - 1];
}

/* What the new process does. 0: within the bound. */
static int load_and_measure(const char *path) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_plan *plan = NULL;
    struct rfx_session *session = NULL;
    struct rfx_error err = {""};
    struct rfx_load_options options = {.h = 224, .w = 224};
    struct rfx_plan_request request = {.threads = 1, .asked = rfx_ask_whole()};
    request.source = (struct rfx_source_traits){.h = 224, .w = 224, .c = 3, .random_access = true};
    if (rfx_onnx_load(mem, path, &options, &graph, &err) != RFX_OK) return report_error(&err);
    size_t loaded = peak_rss();
    if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK) return report_error(&err);
    void *last = leave_holes(mem);
    if (rfx_session_create(plan, NULL, graph->mem, &session, &err) != RFX_OK)
        return report_error(&err);
    size_t weights = plan->bytes.weights, peak = peak_rss();
    printf("peak RSS %.2f MiB loaded, %.2f MiB packed; packed weights %.2f MiB, over by %.2f MiB\n",
           (double)loaded / 0x1p20, (double)peak / 0x1p20, (double)weights / 0x1p20,
           ((double)peak - (double)weights) / 0x1p20);
    rfx_session_free(session);
    rfx_memory_release(mem, last);
    rfx_plan_free(plan);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return peak == 0 || peak > weights + ALLOWED_BYTES;
}

static void export_model(const char *name) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    static const struct rfx_fuse_options no_fusing = {0};
    struct rfx_load_options options = {.h = 224, .w = 224, .seed = 1, .fuse = &no_fusing};
    if (rfx_builtin_build(mem, name, &options, &graph, &err) != RFX_OK ||
        rfx_onnx_export(graph, MODEL_PATH, &err) != RFX_OK)
        fail_msg("%s", err.text);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void loading_keeps_one_copy_of_the_weights(void **state) {
    (void)state;
    if (SANITISED) skip(); /* shadow memory and quarantine count as RSS */
    const char *name = getenv("RFX_LOAD_MODEL");
    export_model(name != NULL ? name : "resnet50");
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)execl("/proc/self/exe", "test_load_memory", "--load", MODEL_PATH, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    pid_t ended = waitpid(child, &status, 0);
    assert_int_equal(unlink(MODEL_PATH), 0);
    assert_int_equal(ended, child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--load") == 0) return load_and_measure(argv[2]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(loading_keeps_one_copy_of_the_weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
