/* The budget is the process: the rfexec program's peak resident memory, by the kernel, never passes
 * --memory.
 *
 * RFX_CASES (default 24) runs of the built-in networks in turn, from RFX_SEED (1): random sizes,
 * 1 or 2 threads, with own kernels and with OpenBLAS under one of its core types, with and without
 * an output file, and budgets between the smallest possible one, which exit code 4 names, and what
 * the untiled run takes. The peak is read
 * twice: the program's own figure (VmHWM) and the kernel's account of the ended process
 * (ru_maxrss). The latter begins with the memory of the process that forked, so this test links no
 * library of rfexec and checks that it is itself smaller than every budget.
 *
 * Then: model files, and images of growing height. */
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "tests/cli/measured_run.h"
#include "tests/support/makers/onnx_maker.h"

enum { MAX_MODELS = 64 };

static const char *const cores[] = {"Haswell", "Zen", "SkylakeX", "Prescott"};

/* OpenBLAS as SkylakeX ends by an illegal instruction elsewhere. */
static bool has_avx512(void) {
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f") != 0;
#else
    return true; /* core types of other processors mean nothing there */
#endif
}

struct run_case {
    uint64_t seed;
    const char *model, *core; /* core NULL: with own kernels, else with OpenBLAS */
    char size[40], input[60], output[40], threads[4];
};

static uint64_t random_state;

static int64_t draw(int64_t lo, int64_t hi) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return lo + (int64_t)((z ^ (z >> 31)) % (uint64_t)(hi - lo + 1));
}

static int64_t env_int(const char *name, int64_t missing) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoll(text, NULL, 10) : missing;
}

/* The names of the built-in networks; the document owns them. */
static int list_models(json_t **document, const char *names[MAX_MODELS]) {
    const char *args[] = {"models", "--json", NULL};
    struct measured_end ended = measured_run(args, NULL, measured_no_limits);
    json_t *models = json_object_get(ended.document, "models");
    int n = 0;
    assert_int_equal(ended.code, 0);
    for (size_t i = 0; i < json_array_size(models) && n < MAX_MODELS; i++)
        names[n++] = json_string_value(json_object_get(json_array_get(models, i), "name"));
    *document = ended.document;
    return n;
}

static bool is_heavy(const char *model) {
    static const char *const heavy[] = {"vgg16", "yolov1"};
    for (size_t i = 0; i < sizeof heavy / sizeof *heavy; i++)
        if (strcmp(model, heavy[i]) == 0) return true;
    return false;
}

/* Its first output has rows and columns, so that it can be a TIFF. */
static bool makes_maps(const char *model) {
    static const char *const maps[] = {"unet", "fsrcnn", "srgan", "deeplab_v3", "posenet"};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        if (strcmp(model, maps[i]) == 0) return true;
    return false;
}

/* A size, threads, a core type and an output file at random. */
static struct run_case draw_case(uint64_t seed, const char *model) {
    struct run_case c = {.seed = seed, .model = model};
    bool enlarges = strcmp(model, "srgan") == 0 || strcmp(model, "toy") == 0;
    int64_t largest = draw(0, 3) == 0 && !is_heavy(model) ? 400 : 200;
    if (enlarges) largest = 120;
    (void)snprintf(c.size, sizeof c.size, "%lldx%lld", (long long)draw(80, largest),
                   (long long)draw(80, largest));
    (void)snprintf(c.input, sizeof c.input, "synthetic:%s:%llu", c.size, (unsigned long long)seed);
    (void)snprintf(c.threads, sizeof c.threads, "%lld", (long long)draw(1, 2));
    c.core = cores[draw(0, 3)];
    if (strcmp(c.core, "SkylakeX") == 0 && !has_avx512()) c.core = "Haswell";
    int64_t kind = draw(0, 3);
    if (kind == 0 || (kind == 1 && makes_maps(model)))
        (void)snprintf(c.output, sizeof c.output, "budget_map.%s", kind == 0 ? "npy" : "tif");
    return c;
}

/* Appends what all runs of a case share. */
static void complete(const struct run_case *c, const char **args, int n, bool output) {
    args[n++] = "--threads";
    args[n++] = c->threads;
    args[n++] = "--json";
    if (c->core != NULL) {
        args[n++] = "--conv";
        args[n++] = "openblas";
    }
    if (output && c->output[0] != '\0') {
        args[n++] = "-o";
        args[n++] = c->output;
    }
    if (output && c->seed % 3 == 0) {
        args[n++] = "--report";
        args[n++] = "budget_page.html";
    }
    if (output && c->seed % 3 != 0 && makes_maps(c->model)) {
        args[n++] = "--overlay";
        args[n++] = "budget_overlay.png";
        args[n++] = "--overlay-of";
        args[n++] = "labels";
    }
    if (output && c->seed % 4 == 2 && makes_maps(c->model)) {
        args[n++] = "--viewer";
        args[n++] = "budget_viewer";
    }
    if (output && c->seed % 4 == 1 && makes_maps(c->model)) {
        args[n++] = "--regions";
        args[n++] = "budget_regions.csv";
        args[n++] = "--threshold";
        args[n++] = "0.5";
    }
    if (output && strcmp(c->model, "yolov8n") == 0) {
        args[n++] = "--boxes";
        args[n++] = "budget_boxes.json";
    }
    args[n] = NULL;
}

/* A budget of the case: the smallest, or at random up to the untiled run's. */
static int64_t draw_budget(const struct run_case *c) {
    const char *smallest_args[MAX_ARGS] = {"run", c->model, c->input, "--memory", "1MiB"};
    const char *untiled_args[MAX_ARGS] = {"plan", c->model, c->input, "--untiled"};
    complete(c, smallest_args, 5, true);
    complete(c, untiled_args, 4, false);
    int64_t smallest = measured_ask(smallest_args, c->core, EXIT_BUDGET, NULL, "smallest_bytes");
    if (draw(0, 3) == 0) return smallest;
    int64_t untiled = measured_ask(untiled_args, c->core, 0, "plan", "peak_bytes");
    int64_t share = draw(0, 1000);
    int64_t more = untiled > smallest ? untiled - smallest : MIB;
    /* half of them near the smallest, where plans are the most different */
    return smallest + (draw(0, 1) == 0 ? more / 1000 * share / 1000 * share : more / 1000 * share);
}

/* A budget of the case, and the share of it that a run takes. */
static double run_case(const struct run_case *c) {
    const char *args[MAX_ARGS] = {"run", c->model, c->input, "--memory"};
    char budget_text[24];
    int64_t budget = draw_budget(c);
    (void)snprintf(budget_text, sizeof budget_text, "%lld", (long long)budget);
    args[4] = budget_text;
    complete(c, args, 5, true);
    assert_int_equal(system("rm -rf budget_viewer"), 0);
    assert_true(measured_own_peak() < budget);
    int64_t peak = measured_within(args, c->core, budget);
    if (env_int("RFX_VERBOSE", 0) != 0)
        fprintf(stderr, "%llu %s %s %s threads %s: %.2f of %.2f MiB\n", (unsigned long long)c->seed,
                c->model, c->size, c->threads, c->core != NULL ? c->core : "own kernels",
                (double)peak / (double)MIB, (double)budget / (double)MIB);
    return (double)peak / (double)budget;
}

static void budgets_hold(void **state) {
    const char *names[MAX_MODELS];
    json_t *document = NULL;
    int n = list_models(&document, names);
    int64_t cases = env_int("RFX_CASES", 24), first = env_int("RFX_SEED", 1);
    double closest[2] = {0, 0};
    (void)state;
    assert_true(n >= 20);
    for (int64_t i = 0; i < cases; i++) {
        random_state = (uint64_t)(first + i) * 7919;
        struct run_case c = draw_case((uint64_t)(first + i), names[(first - 1 + i) % n]);
        for (int own = 0; own < 2; own++) {
            if (own) c.core = NULL;
            double share = run_case(&c);
            if (share > closest[own]) closest[own] = share;
        }
    }
    fprintf(stderr,
            "test_budget: %lld cases from seed %lld, closest %.1f %% of the budget with OpenBLAS, "
            "%.1f %% with own kernels\n",
            (long long)cases, (long long)first, 100 * closest[0], 100 * closest[1]);
    json_decref(document);
}

/* The peak of a run in its smallest budget, which *least receives. */
static int64_t run_in_least(const struct run_case *c, int64_t *least) {
    char budget_text[24];
    const char *smallest_args[MAX_ARGS] = {"run", c->model, c->input, "--memory", "1MiB"};
    complete(c, smallest_args, 5, true);
    *least = measured_ask(smallest_args, c->core, EXIT_BUDGET, NULL, "smallest_bytes");
    (void)snprintf(budget_text, sizeof budget_text, "%lld", (long long)*least);
    const char *args[MAX_ARGS] = {"run", c->model, c->input, "--memory", budget_text};
    complete(c, args, 5, true);
    return measured_within(args, c->core, *least);
}

/* OpenBLAS, libtiff and the tables of 676 layers at once; and a TIFF counts for what it adds. */
static void budgets_beside_libraries_hold(void **state) {
    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        for (int k = 0; k < 2; k++) {
            struct run_case c = {.seed = 1, .model = "real_esrgan", .input = "synthetic:24x24"};
            int64_t least, least_npy;
            c.core = k == 1 && has_avx512() ? "SkylakeX" : "Haswell";
            (void)snprintf(c.threads, sizeof c.threads, "%d", threads);
            (void)snprintf(c.output, sizeof c.output, "budget_map.npy");
            int64_t peak_npy = run_in_least(&c, &least_npy);
            (void)snprintf(c.output, sizeof c.output, "budget_map.tif");
            int64_t peak = run_in_least(&c, &least);
            fprintf(stderr,
                    "test_budget: beside libraries, %d threads: %.2f of %.2f MiB, a TIFF adds %.2f "
                    "and counts %.2f\n",
                    threads, (double)peak / (double)MIB, (double)least / (double)MIB,
                    (double)(peak - peak_npy) / (double)MIB,
                    (double)(least - least_npy) / (double)MIB);
            assert_true(peak - peak_npy <= least - least_npy);
        }
}

/* In a process of its own, which needs as much memory as the file is long: writes the file anew
 * with one call of the system, as Python does. The page cache then holds it in large pieces, and
 * what maps a page of it maps megabytes; what is written in small pieces, or copied, hides that. */
static void rewrite_at_once(const char *path) {
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct stat info;
        int fd = open(path, O_RDONLY);
        if (fd < 0 || fstat(fd, &info) != 0) _exit(1);
        size_t bytes = (size_t)info.st_size;
        char *data = malloc(bytes);
        if (data == NULL || read(fd, data, bytes) != (ssize_t)bytes || unlink(path) != 0) _exit(2);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
        _exit(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes ? 0 : 3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Model files: nothing of them may stay beside the arena, weights by stage or not, however the file
 * was written. */
static void budgets_of_files_hold(void **state) {
    static const char *const models[] = {"mobilenet_v2", "resnet18", "resnet50"};
    struct statfs where;
    (void)state;
    assert_int_equal(statfs(".", &where), 0);
    if (where.f_type == TMPFS_MAGIC)
        fprintf(stderr, "test_budget: on tmpfs, where no file lies in large pieces\n");
    for (int i = 0; i < 12; i++) {
        char budget_text[24];
        struct run_case c = {.model = "budget_net.onnx", .size = "161x227"};
        (void)snprintf(c.input, sizeof c.input, "synthetic:%s", c.size);
        (void)snprintf(c.threads, sizeof c.threads, "%d", 1 + i % 2);
        const char *export_args[] = {"export", models[i / 4], "-o", c.model, NULL};
        if (i % 4 == 0) json_decref(measured_run(export_args, NULL, measured_no_limits).document);
        if (i % 4 == 2) rewrite_at_once(c.model);
        const char *smallest_args[MAX_ARGS] = {"run", c.model, c.input, "--memory", "1MiB"};
        complete(&c, smallest_args, 5, false);
        int64_t smallest = measured_ask(smallest_args, NULL, EXIT_BUDGET, NULL, "smallest_bytes");
        (void)snprintf(budget_text, sizeof budget_text, "%lld", (long long)smallest);
        const char *args[MAX_ARGS] = {"run", c.model, c.input, "--memory", budget_text};
        complete(&c, args, 5, false);
        (void)measured_within(args, NULL, smallest);
        const char *untiled_args[MAX_ARGS] = {"plan", c.model, c.input, "--untiled"};
        complete(&c, untiled_args, 4, false);
        int64_t untiled = measured_ask(untiled_args, NULL, 0, "plan", "peak_bytes");
        const char *whole_args[MAX_ARGS] = {"run", c.model, c.input, "--untiled"};
        complete(&c, whole_args, 4, false);
        (void)measured_within(whole_args, NULL, untiled);
    }
    (void)remove("budget_net.onnx");
}

/* A graph of one small convolution: the part of a wild model that is worth computing. */
static void small_graph(struct maker *graph) {
    static const int64_t image[] = {1, 3, 0, 0}, kernel[] = {8, 3, 3, 3};
    static const float values[8 * 3 * 3 * 3] = {1.0f};
    static struct maker node;
    graph->size = node.size = 0;
    maker_value(graph, MAKER_INPUT, "x", image, 4);
    maker_floats(graph, "w", kernel, 4, values);
    maker_node(&node, "Conv", "x w", "y");
    maker_message(graph, MAKER_NODE, &node);
    maker_value(graph, MAKER_OUTPUT, "y", NULL, 0);
}

/* Either the run stays within the budget, or it is refused, and then the program did not take more
 * than what it may always take to find out. */
static void expect_kept_or_refused(const char *model, int64_t budget, const int *codes) {
    char text[24];
    const char *args[] = {"run",       model, "synthetic:64x64", "--memory", text,
                          "--threads", "1",   "--json",          NULL};
    (void)snprintf(text, sizeof text, "%lld", (long long)budget);
    struct measured_end ended = measured_run(args, NULL, measured_no_limits);
    int64_t bound = budget < 24 * MIB ? 24 * MIB : budget;
    bool known = false;
    for (const int *code = codes; *code >= 0; code++) known = known || *code == ended.code;
    if (ended.code == 0) bound = budget;
    json_decref(ended.document);
    if (known && ended.peak_bytes <= bound) return;
    measured_print(args, NULL);
    fail_msg("exit code %d; peak %.2f MiB, budget %.2f", ended.code,
             (double)ended.peak_bytes / (double)MIB, (double)budget / (double)MIB);
}

/* Structure counts: nodes and tensors that nothing needs, and nodes that are all needed. */
static void budgets_of_structure_hold(void **state) {
    enum { INITIALISER = 5 };
    static const char model[] = "budget_wild.onnx";
    static const int64_t one = 1, budgets[] = {10 * MIB, 16 * MIB, 24 * MIB, 64 * MIB};
    static const float value = 1.0f;
    static const int done_or_budget[] = {0, EXIT_BUDGET, -1}, refused[] = {3, EXIT_BUDGET, -1};
    static struct maker graph, node, piece, inner;
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        small_graph(&graph);
        piece.size = inner.size = 0;
        if (kind == 0) {
            maker_node(&node, "Shape", "w", "u00000000");
            maker_message(&piece, MAKER_NODE, &node);
        } else if (kind == 1) {
            maker_floats(&piece, "u00000000", &one, 1, &value);
        } else {
            maker_message(&piece, MAKER_NODE, &inner);
        }
        maker_save_repeated(&graph, 13, &piece,
                            kind == 0   ? 50000
                            : kind == 1 ? 200000
                                        : 2000000,
                            model);
        for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++)
            expect_kept_or_refused(model, budgets[i], kind == 2 ? refused : done_or_budget);
    }
    (void)remove(model);
}

/* Weights of 9 MiB that folding makes: of one value everywhere, and of one value per filter. */
static void budgets_of_computed_constants_hold(void **state) {
    static const char model[] = "budget_folded.onnx", input[] = "synthetic:64x64";
    static const int64_t image[] = {1, 3, 0, 0}, first[] = {512, 3, 1, 1},
                         per_filter[] = {512, 1, 1, 1}, one = 1, shape[] = {512, 512, 3, 3};
    static const float half = 0.5f;
    static float values[512 * 3];
    static struct maker graph, node, whole;
    (void)state;
    for (int i = 0; i < 512 * 3; i++) values[i] = (float)i / 512.0f;
    for (int kind = 0; kind < 2; kind++) {
        graph.size = 0;
        maker_value(&graph, MAKER_INPUT, "x", image, 4);
        maker_ints(&graph, "s", shape, 4);
        maker_floats(&graph, "half", &one, 1, &half);
        maker_floats(&graph, "w", first, 4, values);
        maker_node(&node, "Conv", "x w", "m");
        maker_message(&graph, MAKER_NODE, &node);
        maker_floats(&graph, "f", per_filter, 4, values);
        maker_node(&node, kind == 0 ? "ConstantOfShape" : "Expand", kind == 0 ? "s" : "f s", "a");
        maker_message(&graph, MAKER_NODE, &node);
        maker_node(&node, "Add", "a half", "b");
        maker_message(&graph, MAKER_NODE, &node);
        maker_node(&node, "Mul", "b half", "c");
        maker_message(&graph, MAKER_NODE, &node);
        maker_node(&node, "Conv", "m c", "y");
        maker_message(&graph, MAKER_NODE, &node);
        maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
        maker_model(&graph, 13, &whole);
        maker_save(&whole, model);
        char budget[24];
        const char *least[] = {"run", model,     input, "--memory", "96MiB", "--threads",
                               "1",   "--bands", "4",   "--json",   NULL};
        int64_t planned = measured_ask(least, NULL, 0, "plan", "peak_bytes");
        (void)snprintf(budget, sizeof budget, "%lld", (long long)planned);
        const char *args[] = {"run", model,     input, "--memory", budget, "--threads",
                              "1",   "--bands", "4",   "--json",   NULL};
        (void)measured_within(args, NULL, planned);
    }
    (void)remove(model);
}

/* Groups of layers: rings of every thread, and a second graph beside the network's. */
static void budgets_with_groups_hold(void **state) {
    static const char *const ways[] = {"--untiled", "--no-inplace"};
    int64_t groups = 0;
    (void)state;
    for (int i = 0; i < 4; i++) {
        char budget[24];
        struct run_case c = {.model = i % 2 == 0 ? "mobilenet_v2" : "efficientnet_b0"};
        (void)snprintf(c.input, sizeof c.input, "synthetic:640x%d", 600 + 8 * i);
        (void)snprintf(c.threads, sizeof c.threads, "%d", i + 1);
        const char *args[MAX_ARGS] = {"run", c.model, c.input, ways[i / 2]};
        complete(&c, args, 4, false);
        struct measured_end ended = measured_run(args, NULL, measured_no_limits);
        json_t *plan = json_object_get(ended.document, "plan");
        int64_t planned = json_integer_value(json_object_get(plan, "peak_bytes"));
        groups += (int64_t)json_array_size(json_object_get(plan, "groups"));
        json_decref(ended.document);
        (void)measured_within(args, NULL, planned);
        (void)snprintf(budget, sizeof budget, "%lld", (long long)(planned - planned / 8));
        const char *less[MAX_ARGS] = {"run", c.model, c.input, "--memory", budget};
        complete(&c, less, 5, false);
        (void)measured_within(less, NULL, planned - planned / 8);
    }
    assert_true(groups > 4);
}

/* Streamed rows: the peak of one plan is the same for any height. Groups are chosen by how often
 * they are used and by the machine's caches: with them it would not be one plan. */
static void height_costs_nothing(void **state) {
    static const char *const inputs[] = {"synthetic:2048x512", "synthetic:8192x512",
                                         "synthetic:16384x512"};
    int64_t least = INT64_MAX, most = 0;
    (void)state;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const char *args[] = {"run",     "mobilenet_v2", inputs[i], "--memory",    "34MiB",
                              "--bands", "32",           "--split", "features.18", "--threads",
                              "2",       "--no-groups",  "--json",  NULL};
        int64_t peak = measured_within(args, NULL, 34 * MIB);
        if (peak < least) least = peak;
        if (peak > most) most = peak;
    }
    fprintf(stderr, "test_budget: 2048 to 16384 rows: %.2f to %.2f MiB\n",
            (double)least / (double)MIB, (double)most / (double)MIB);
    /* The scratch of a convolution depends a little on its map's size: a share of so small a run.
     */
    assert_true(most - least <= least / 25);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budgets_hold),
        cmocka_unit_test(budgets_beside_libraries_hold),
        cmocka_unit_test(budgets_of_files_hold),
        cmocka_unit_test(budgets_of_structure_hold),
        cmocka_unit_test(budgets_of_computed_constants_hold),
        cmocka_unit_test(budgets_with_groups_hold),
        cmocka_unit_test(height_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
