/* Every call that can fail, failing: the n-th allocation, read, write, mapping or sync of a run
 * (fault_shim.c) ends in exit code 5 with a reason and no file under the final name, or in the same
 * bits as ever (or, where only the report of a run has failed, in both: the file is there, whole).
 * Never in a signal, never in the code that says that a difference was found, and
 * nothing else is left in the folder.
 *
 * For each kind of run and of call, RFX_CASES (default 12) values of n are tried, spread over all
 * that there are, up to 2,000; RFX_SEED shifts them.
 *
 * What libraries do not survive is listed in `known`: they use an allocation without looking at it,
 * or end the process themselves. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <tiffio.h>

#include "tests/cli/measured_run.h"
#include "tests/support/makers/detector_maker.h"
#include "tests/support/makers/onnx_maker.h"

enum { MAX_CALLS = 2000, INPUT_H = 40, INPUT_W = 48 };

/* Everything happens in a folder of the test's own: whatever is left in it is removed. */
static const char folder[] = "faults_work", log_path[] = "fault.log";
static const char *const kinds[] = {"malloc", "read", "write", "mmap", "fsync"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char page_path[] = "page.html", overlay_path[] = "overlay.png";
static const char viewer_path[] = "viewer", viewer_page[] = "viewer/index.html";
static const char boxes_path[] = "boxes.json", regions_path[] = "regions.geojson";
static const char points_path[] = "points.csv", text_path[] = "text.csv";

#define DEFECTS RFX_SOURCE_DIR "/data/defect_net.onnx"
#define NET_OF_BYTES RFX_SOURCE_DIR "/data/quantised_u8.onnx"

/* The kinds of runs; output: the file of -o, NULL: none. */
static const struct way {
    const char *name, *output, *args[12];
} ways[] = {
    {"whole", "out.npy", {"run", "squeezenet1_1", "synthetic:64x64", "--untiled"}},
    {"streamed", "out.npy", {"run", "fsrcnn", "synthetic:40x48", "--bands", "8"}},
    {"tiled", "out.npy", {"run", "fsrcnn", "synthetic:40x48", "--tiles", "2x2"}},
    {"by stage", "out.npy", {"run", "in.onnx", "synthetic:64x64", "--weights-by-stage"}},
    {"in a budget", "out.npy", {"run", "fsrcnn", "synthetic:40x48", "--memory", "14MiB"}},
    {"TIFF in", "out.npy", {"run", "toy", "in.tif", "--untiled"}},
    {"TIFF out", "out.tif", {"run", "fsrcnn", "synthetic:40x48", "--bands", "8"}},
    {"PNG in and out", "out.png", {"run", "fsrcnn", "in.png", "--bands", "8"}},
    {"regions", "out.geojson", {"run", "fsrcnn", "synthetic:40x48", "--threshold", "0"}},
    {"boxes", "out.json", {"run", "yolov8n", "synthetic:96x96", "--bands", "32"}},
    {"Zarr in", "out.npy", {"run", "toy", "in.zarr", "--untiled"}},
    {"OpenBLAS", "out.npy", {"run", "squeezenet1_1", "synthetic:64x64", "--conv", "openblas"}},
    {"8 bits", "out.npy", {"run", NET_OF_BYTES, "synthetic:40x48", "--bands", "8"}},
    {"8 bits in a budget", "out.npy", {"run", NET_OF_BYTES, "synthetic:40x48", "--memory", "9MiB"}},
    {"verify", NULL, {"verify", "fsrcnn", "synthetic:40x48", "--tiles", "2x2"}},
    {"page",
     "out.npy",
     {"run", "fsrcnn", "synthetic:40x48", "--bands", "8", "--report", page_path}},
    {"overlay", "out.npy", {"run", "fsrcnn", "in.png", "--bands", "8", "--overlay", overlay_path}},
    {"viewer",
     "out.npy",
     {"run", DEFECTS, "in.png", "--threshold", "0.01", "--regions", regions_path, "--viewer",
      viewer_path}},
    {"boxes",
     "out.npy",
     {"run", "boxes.onnx", "in.png", "--head", "yolov8", "--boxes", boxes_path, "--overlay",
      overlay_path}},
    {"boxes of a head file",
     "out.json",
     {"run", "yolov8n", "synthetic:96x96", "--bands", "32", "--head", "head.json"}},
    {"masks",
     "out.json",
     {"run", "masks.onnx", "in.png", "--head", "yolov8-seg", "--class-count", "3"}},
    {"regions",
     "out.npy",
     {"run", DEFECTS, "in.png", "--threshold", "0.01", "--regions", regions_path, "--overlay",
      overlay_path}},
    {"points and text", /* of a network of one channel */
     "out.npy",
     {"run", "marks.onnx", "in.png", "--threshold", "0.1", "--points", points_path, "--text",
      text_path, "--overlay", overlay_path}},
    {"spilled",
     "out.npy",
     {"run", "fsrcnn", "synthetic:40x48", "--plan", "in.json", "--spill", "."}},
    {"plan", "out.json", {"plan", "fsrcnn", "--size", "40x48", "--memory", "14MiB"}},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* How libraries end when one of their own allocations fails; code 128 + s: by signal s. */
static const struct known {
    const char *library, *function; /* of the call that failed, "" for any */
    int code;
} known[] = {
    {"libtiff.so", "_TIFFCheckRealloc", 128 + 11},      /* a codec's tags, when it opens a file */
    {"libopenblas.so", "sgemm_small_kernel", 128 + 11}, /* packing of small products */
    {"ld-linux", "", 127},                              /* a table of C++ names, with libtiff */
};

static int64_t env_int(const char *name, int64_t missing) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoll(text, NULL, 10) : missing;
}

/* A picture in compressed strips: libtiff decodes it, and opens a codec for that. */
static void make_tiff(const char *path) {
    unsigned char row[INPUT_W * 3];
    TIFF *tif = TIFFOpen(path, "w");
    assert_non_null(tif);
    assert_true(TIFFSetField(tif, TIFFTAG_IMAGEWIDTH, INPUT_W) != 0 &&
                TIFFSetField(tif, TIFFTAG_IMAGELENGTH, INPUT_H) != 0 &&
                TIFFSetField(tif, TIFFTAG_BITSPERSAMPLE, 8) != 0 &&
                TIFFSetField(tif, TIFFTAG_SAMPLESPERPIXEL, 3) != 0 &&
                TIFFSetField(tif, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB) != 0 &&
                TIFFSetField(tif, TIFFTAG_ROWSPERSTRIP, 8) != 0 &&
                TIFFSetField(tif, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE) != 0);
    for (int y = 0; y < INPUT_H; y++) {
        for (int i = 0; i < INPUT_W * 3; i++) row[i] = (unsigned char)(7 * y + 5 * i);
        assert_int_equal(TIFFWriteScanline(tif, row, (uint32_t)y, 0), 1);
    }
    TIFFClose(tif);
}

/* The run of a way with a fault, "malloc:17", or none. */
static struct measured_end run(const struct way *way, const char *fault) {
    static const struct measured_limits limits = {INT64_C(1) << 40, 20};
    const char *args[MAX_ARGS] = {NULL};
    int n = 0;
    for (int i = 0; way->args[i] != NULL; i++) args[n++] = way->args[i];
    args[n++] = "--threads";
    args[n++] = "2";
    args[n++] = "--json";
    if (way->output != NULL) {
        args[n++] = "-o";
        args[n++] = way->output;
        (void)unlink(way->output);
    }
    (void)unlink(log_path);
    (void)unlink(page_path);
    (void)unlink(overlay_path);
    (void)unlink(boxes_path);
    (void)unlink(regions_path);
    (void)unlink(points_path);
    (void)unlink(text_path);
    assert_int_equal(system("rm -rf viewer"), 0);
    assert_int_equal(setenv("RFX_FAULT", fault, 1), 0);
    assert_int_equal(setenv("LD_PRELOAD", RFX_FAULT_SHIM, 1), 0);
    struct measured_end ended = measured_run(args, NULL, limits);
    assert_int_equal(unsetenv("LD_PRELOAD"), 0);
    return ended;
}

/* The first line of the log, without its end; empty: nothing failed. */
static void read_log(char line[300]) {
    FILE *file = fopen(log_path, "rb");
    line[0] = '\0';
    if (file == NULL) return;
    if (fgets(line, 300, file) == NULL) line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    (void)fclose(file);
}

static bool is_ours(const char *name, const struct way *way) {
    static const char *const others[] = {".",
                                         "..",
                                         "head.json",
                                         "masks.onnx",
                                         "in.onnx",
                                         "in.tif",
                                         "in.png",
                                         "in.json",
                                         "in.zarr",
                                         "boxes.onnx",
                                         "fault.log",
                                         "measured_out.txt",
                                         "measured_err.txt",
                                         page_path,
                                         overlay_path,
                                         boxes_path,
                                         regions_path,
                                         points_path,
                                         text_path,
                                         "marks.onnx",
                                         viewer_path};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i]) == 0) return true;
    return way != NULL && way->output != NULL && strcmp(name, way->output) == 0;
}

/* Removes a file or a folder of files; how many. */
static int remove_whole(const char *name) {
    char command[300];
    if (unlink(name) == 0) return 1;
    (void)snprintf(command, sizeof command, "rm -r '%s'", name);
    return system(command) == 0;
}

/* Removes what nobody should have left; how many files. */
static int remove_left(const struct way *way) {
    DIR *directory = opendir(".");
    int n = 0;
    assert_non_null(directory);
    for (struct dirent *e = readdir(directory); e != NULL; e = readdir(directory))
        if (!is_ours(e->d_name, way)) n += remove_whole(e->d_name);
    (void)closedir(directory);
    return n;
}

/* What was measured is another figure each time. */
static void forget_measures(json_t *value) {
    const char *key;
    json_t *member;
    void *next;
    size_t i;
    json_array_foreach(value, i, member) forget_measures(member);
    json_object_foreach_safe(value, next, key, member) {
        bool measured = strstr(key, "seconds") != NULL || strstr(key, "peak_rss") != NULL;
        if (measured)
            assert_int_equal(json_object_set_new(value, key, json_true()), 0);
        else
            forget_measures(member);
    }
}

/* Two processes of the same command differ in the reserve of their plan by at most this, because
 * the reserve has a measured part (PROCESS_UNIT_BYTES of tools/cli/job.c). */
#define PROCESS_UNIT ((json_int_t)1 << 19)

/* What a run gives: the report with the outputs' fingerprints, and the file. */
struct answer {
    char *report;       /* without the reserve of the plan */
    json_int_t reserve; /* 0: the report has none */
    unsigned char *bytes;
    size_t n;
};

/* Takes the reserve out of the report, and out of the peak that has it. */
static json_int_t take_reserve(json_t *document) {
    json_t *plan = json_object_get(document, "plan");
    json_t *parts = json_object_get(plan, "breakdown"), *peak = json_object_get(plan, "peak_bytes");
    json_int_t reserve = json_integer_value(json_object_get(parts, "reserve"));
    if (reserve == 0 || peak == NULL) return 0;
    assert_int_equal(json_object_del(parts, "reserve"), 0);
    assert_int_equal(json_integer_set(peak, json_integer_value(peak) - reserve), 0);
    return reserve;
}

static struct answer read_answer(const struct way *way, json_t *document) {
    struct answer a = {0};
    forget_measures(document);
    a.reserve = take_reserve(document);
    a.report = document == NULL ? NULL : json_dumps(document, JSON_SORT_KEYS);
    FILE *file = way->output == NULL ? NULL : fopen(way->output, "rb");
    if (file == NULL) return a;
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    a.n = (size_t)ftell(file);
    rewind(file);
    a.bytes = malloc(a.n + 1);
    assert_non_null(a.bytes);
    assert_int_equal(fread(a.bytes, 1, a.n, file), a.n);
    (void)fclose(file);
    return a;
}

static void free_answer(struct answer *a) {
    free(a->report);
    free(a->bytes);
}

static bool is_same_file(const struct answer *a, const struct answer *b) {
    if (a->bytes == NULL || b->bytes == NULL) return a->bytes == b->bytes;
    return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

static bool is_same_report(const struct answer *a, const struct answer *b) {
    return a->report != NULL && b->report != NULL && strcmp(a->report, b->report) == 0 &&
           llabs(a->reserve - b->reserve) <= PROCESS_UNIT;
}

static bool is_known(const char *caller, int code) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (code == known[i].code &&
            strncmp(caller, known[i].library, strlen(known[i].library)) == 0 &&
            strstr(caller, known[i].function) != NULL)
            return true;
    return false;
}

/* The page or the picture with the overlay that a way writes after its outputs, or NULL. */
static const char *wanted_page(const struct way *way) {
    for (int i = 0; way->args[i] != NULL; i++)
        if (way->args[i] == viewer_path) return viewer_page;
    for (int i = 0; way->args[i] != NULL; i++)
        if (way->args[i] == page_path || way->args[i] == overlay_path) return way->args[i];
    return NULL;
}

/* Whether it is there, complete. */
static bool is_page_there(const char *path) {
    const char *end = path != overlay_path ? "</html>\n" : "IEND\xae\x42\x60\x82";
    char tail[16] = {0};
    FILE *file = path != NULL ? fopen(path, "rb") : NULL;
    if (file == NULL) return false;
    assert_int_equal(fseek(file, -(long)strlen(end), SEEK_END), 0);
    assert_int_equal(fread(tail, 1, strlen(end), file), strlen(end));
    (void)fclose(file);
    assert_string_equal(tail, end);
    return true;
}

/* What is wrong with how a run ended, NULL: nothing. */
static const char *wrong(const struct way *way, const struct answer *wanted,
                         const struct measured_end *ended, const char *caller) {
    struct answer a = read_answer(way, ended->document);
    bool there = a.bytes != NULL, same_file = is_same_file(&a, wanted);
    bool same = same_file && is_same_report(&a, wanted);
    /* the report comes after the files, and may fail by itself */
    bool only_report = same_file && measured_said("JSON document");
    const char *wanted_path = wanted_page(way);
    bool page = is_page_there(wanted_path);
    int left = remove_left(way);
    if (ended->code == 0 && !same)
        fprintf(stderr, "file %s, report %s\nnot %s\n", same_file ? "as wanted" : "another",
                a.report == NULL ? "none" : a.report, wanted->report);
    free_answer(&a);
    if (ended->code == 0) {
        if (!same) return "done, with another result";
        if (page != (wanted_path != NULL)) return "done, without its page";
    } else {
        /* it comes after the outputs, which are whole when it fails */
        bool only_page = wanted_path != NULL && same_file;
        if (page && !only_report) return "an error, with a page under the final name";
        if (there && !only_report && !only_page)
            return "an error, with a file under the final name";
        /* files of answers get their names after the output */
        if (!there && (access(boxes_path, F_OK) == 0 || access(regions_path, F_OK) == 0 ||
                       access(points_path, F_OK) == 0 || access(text_path, F_OK) == 0))
            return "an error, with a file of answers under the final name";
        if (is_known(caller, ended->code)) return NULL;
        if (ended->code != EXIT_SYSTEM) return "neither done nor a system failure";
        if (!measured_said("rfexec: ")) return "an error without a reason";
    }
    return left > 0 ? "temporary files are left" : NULL;
}

/* The faults of one kind of call in one kind of run; returns how many were tried. */
static int try_faults(const struct way *way, const char *kind, const struct answer *wanted) {
    char fault[40], caller[300];
    int64_t cases = env_int("RFX_CASES", 12), seed = env_int("RFX_SEED", 1), tried = 0;
    (void)snprintf(fault, sizeof fault, "%s:0", kind);
    json_decref(run(way, fault).document);
    read_log(caller);
    int64_t calls = strtoll(caller, NULL, 10), most = calls < MAX_CALLS ? calls : MAX_CALLS;
    if (cases > most) cases = most;
    for (int64_t i = 0; i < cases; i++) {
        (void)snprintf(fault, sizeof fault, "%s:%lld", kind,
                       (long long)((i * most / cases + seed - 1) % most + 1));
        struct measured_end ended = run(way, fault);
        read_log(caller);
        const char *why = wrong(way, wanted, &ended, caller);
        json_decref(ended.document);
        tried += caller[0] != '\0';
        if (why == NULL) continue;
        measured_print((const char *const[]){way->name, fault, NULL}, NULL);
        fail_msg("%s, %s fails in %s: exit code %d: %s", way->name, fault, caller, ended.code, why);
    }
    return (int)tried;
}

static void failing_calls(void **state) {
    int tried[KINDS] = {0};
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        struct measured_end ended = run(&ways[w], "none");
        struct answer wanted = read_answer(&ways[w], ended.document);
        if (ended.code != 0) measured_print(ways[w].args, NULL);
        assert_int_equal(ended.code, 0);
        assert_true(wanted.report != NULL && (wanted.n > 0 || ways[w].output == NULL));
        json_decref(ended.document);
        for (int k = 0; k < KINDS; k++) tried[k] += try_faults(&ways[w], kinds[k], &wanted);
        free_answer(&wanted);
        if (ways[w].output != NULL) (void)unlink(ways[w].output);
    }
    for (int k = 0; k < KINDS; k++) {
        fprintf(stderr, "test_faults: %d failing calls of %s\n", tried[k], kinds[k]);
        assert_true(tried[k] > 0); /* the shim was there, and something came by */
    }
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* A plan that puts a map into a file. */
static void make_plan(const char *path) {
    write_text(path,
               "{\"schema\": 1, \"kind\": \"rfexec plan\", \"stages\": [{\"mode\": \"streamed\", "
               "\"targets\": [\"map.2\"], \"band_rows\": 8, \"spilled\": [\"map.2\"]}, {\"mode\": "
               "\"streamed\", \"targets\": [\"deconv\"], \"band_rows\": 8}]}");
}

/* YOLOv8's head, told by a file. */
static void make_head(const char *path) {
    write_text(path,
               "{\"outputs\": [{\"names\": [\"output0\"], \"axes\": \"v n\", \"values\": [\"box\", "
               "\"scores\"]}], \"decode\": \"centre\"}");
}

/* A network with one channel, the sum of a picture's channels. */
static void make_marks(const char *path) {
    static const float kernel[3] = {1, 1, 1};
    static const int64_t image[4] = {1, 3, 0, 0}, shape[4] = {1, 3, 1, 1};
    static struct maker graph, model;
    graph.size = model.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_floats(&graph, "k", shape, 4, kernel);
    maker_add(&graph, "Conv", "image k", "sum");
    maker_value(&graph, MAKER_OUTPUT, "sum", NULL, 0);
    maker_model(&graph, 13, &model);
    maker_save(&model, path);
}

/* The model, the plan and the pictures that runs read. */
static int make_inputs(void **state) {
    static const char *const model[] = {"export", "squeezenet1_1", "-o", "in.onnx", NULL};
    static const char *const folder_in[] = {"run",  "fsrcnn",  "synthetic:24x20",
                                            "-o",   "in.zarr", "--zarr-compress",
                                            "zstd", "--json",  NULL};
    static const char *const picture[] = {"run",    "fsrcnn", "synthetic:24x20", "-o", "in.png",
                                          "--json", NULL};
    (void)state;
    (void)mkdir(folder, 0777);
    assert_int_equal(chdir(folder), 0);
    (void)remove_left(NULL); /* of a test that was stopped */
    assert_int_equal(setenv("RFX_FAULT_LOG", log_path, 1), 0);
    assert_int_equal(setenv("GOMP_SPINCOUNT", "2000", 1), 0); /* the program starts itself once */
    json_decref(measured_run(model, NULL, measured_no_limits).document);
    json_decref(measured_run(picture, NULL, measured_no_limits).document);
    if (access("in.zarr", F_OK) != 0)
        json_decref(measured_run(folder_in, NULL, measured_no_limits).document);
    make_tiff("in.tif");
    make_plan("in.json");
    make_head("head.json");
    detector_maker_save("boxes.onnx", 2 * INPUT_H, 2 * INPUT_W, 10.0f, 3);
    detector_maker_save_more("masks.onnx", 2 * INPUT_H, 2 * INPUT_W, 10.0f, 3, 2, true);
    make_marks("marks.onnx");
    return access("in.onnx", R_OK) == 0 && access("in.png", R_OK) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
    static const char *const inputs[] = {"in.onnx",          "in.tif",     "in.png",
                                         "in.json",          "fault.log",  "measured_out.txt",
                                         "measured_err.txt", "boxes.onnx", "head.json",
                                         "masks.onnx",       "marks.onnx"};
    (void)state;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) (void)unlink(inputs[i]);
    if (system("rm -rf in.zarr") != 0) return -1;
    return chdir("..") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(failing_calls)};
    return cmocka_run_group_tests(tests, make_inputs, remove_folder);
}
