/* A .npy file of many images: every output has the bits of as many runs, one behind the other, with
 * every plan, in the memory of one image; and what a batch cannot be given to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli_program.h"
#include "rfexec/output/fingerprint.h"
#include "tests/support/makers/onnx_maker.h"
#include "tests/support/test_util.h"

enum { H = 64, W = 96, PLANE = 3 * H * W, HEADER = 128 };

/* (n, 3, H, W), its header of HEADER bytes. */
static void write_images(const char *path, int n, const float *values) {
    char header[HEADER] = "\x93NUMPY\1";
    header[8] = HEADER - 10; /* bytes that follow, in 16 bits */
    int n_written =
        snprintf(header + 10, HEADER - 10,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 3, %d, %d), }", n, H, W);
    memset(header + 10 + n_written, ' ', (size_t)(HEADER - 11 - n_written));
    header[HEADER - 1] = '\n';
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(header, 1, HEADER, file), HEADER);
    assert_int_equal(fwrite(values, sizeof *values, (size_t)n * PLANE, file), (size_t)n * PLANE);
    assert_int_equal(fclose(file), 0);
}

static void write_batch(int n) {
    float *values = malloc((size_t)n * PLANE * sizeof *values);
    struct test_rng rng = test_rng_make(7);
    test_rng_fill(&rng, values, (int64_t)n * PLANE, -1.0f, 1.0f);
    write_images("batch.npy", n, values);
    for (int i = 0; i < n; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "image%d.npy", i);
        write_images(name, 1, values + (ptrdiff_t)i * PLANE);
    }
    free(values);
}

/* The elements of a .npy file, and its header's words. */
static float *elements(const char *path, size_t *count, char header[512]) {
    unsigned char start[10];
    struct stat info;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(fread(start, 1, sizeof start, file), sizeof start);
    size_t length = start[8] + 256u * start[9];
    assert_true(length < 512);
    assert_int_equal(fread(header, 1, length, file), length);
    header[length] = '\0';
    *count = ((size_t)info.st_size - sizeof start - length) / sizeof(float);
    float *values = malloc(*count * sizeof *values);
    assert_int_equal(fread(values, sizeof *values, *count, file), *count);
    (void)fclose(file);
    return values;
}

/* `batch` holds what image<i>.npy are made of net into, one behind the other, and has that shape
 * and that hash. */
static void is_all_of(const char *net, int n, const char *batch, const char *single,
                      const char *shape, const char *hash) {
    char header[512], words[64], hex[RFX_FINGERPRINT_CHARS];
    struct rfx_fingerprint print = {0};
    size_t count, each;
    float *all = elements(batch, &count, header);
    (void)snprintf(words, sizeof words, "'shape': (%s)", shape);
    if (strstr(header, words) == NULL) fail_msg("%s: no %s in %s", batch, words, header);
    rfx_fingerprint_add(&print, RFX_TYPE_FLOAT32, 0, all, (int64_t)count);
    rfx_fingerprint_hex(&print, hex);
    assert_string_equal(hex, hash);
    for (int i = 0; i < n; i++) {
        char args[200];
        (void)snprintf(args, sizeof args, "run %s image%d.npy -o single.npy --untiled", net, i);
        expect(0, args);
        float *one = elements(single, &each, header);
        assert_int_equal(each * (size_t)n, count);
        assert_memory_equal(one, all + (size_t)i * each, each * sizeof *one);
        free(one);
    }
    free(all);
}

static void hash_at(json_t *doc, int k, char hash[40]) {
    json_t *output = json_array_get(json_object_get(doc, "outputs"), (size_t)k);
    (void)snprintf(hash, 40, "%s", json_string_value(json_object_get(output, "hash")));
}

static void check_plans(const char *net, const char *shape) {
    static const char *const plans[] = {"--untiled", "--bands 8", "--bands 4 --strips 2",
                                        "--tiles 2x2", "--memory 48MiB --threads 1"};
    enum { N = 3 };
    write_batch(N);
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char args[200], hash[40];
        (void)snprintf(args, sizeof args, "run %s batch.npy -o all.npy --json %s", net, plans[i]);
        expect(0, args);
        json_t *doc = document("run");
        assert_int_equal(integer_at(doc, "images"), N);
        hash_at(doc, 0, hash);
        if (i == 4) assert_true(integer_at(doc, "measured.peak_rss_bytes") <= 48 << 20);
        json_decref(doc);
        is_all_of(net, N, "all.npy", "single.npy", shape, hash);
    }
}

static void test_maps(void **state) {
    (void)state;
    check_plans("real_esrgan_compact", "3, 3, 256, 384");
}

static void test_vectors(void **state) {
    (void)state;
    check_plans("squeezenet1_1", "3, 1000");
}

static void test_joined_outputs(void **state) {
    (void)state;
    check_plans("yolov8n", "3, 84, 126");
}

/* Of one whose images are cut, and one of several outputs, of which one is no map. */
static void test_regions_and_several_outputs(void **state) {
    char hash[40], header[512];
    size_t count;
    (void)state;
    write_batch(2);
    expect(0, "run mobilenet_v2 batch.npy -o all.npy --json --keep features.3");
    json_t *doc = document("run");
    hash_at(doc, 1, hash);
    json_decref(doc);
    free(elements("all.features.3.npy", &count, header));
    assert_non_null(strstr(header, "'shape': (2, "));
    float *two = elements("all.features.3.npy", &count, header);
    struct rfx_fingerprint print = {0};
    char hex[RFX_FINGERPRINT_CHARS];
    rfx_fingerprint_add(&print, RFX_TYPE_FLOAT32, 0, two, (int64_t)count);
    rfx_fingerprint_hex(&print, hex);
    assert_string_equal(hex, hash);
    free(two);
    expect(0, "run squeezenet1_1 batch.npy --region 0,0,64,64 -o all.npy");
    expect(0, "run squeezenet1_1 image1.npy --region 0,0,64,64 -o single.npy");
    float *all = elements("all.npy", &count, header);
    size_t each;
    float *one = elements("single.npy", &each, header);
    assert_memory_equal(all + each, one, each * sizeof *one);
    free(all);
    free(one);
}

/* A model that is fixed to a batch: `nodes` of a convolution's result "c" make "y". */
static void save_fixed(const char *path, int64_t n, const int64_t *target, const char *op) {
    static struct maker graph, node, model;
    const int64_t image[] = {n, 3, H, W}, weights[] = {2, 3, 1, 1};
    const float w[] = {0.5f, -1.0f, 0.25f, 1.0f, 2.0f, -0.5f};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_floats(&graph, "w", weights, 4, w);
    maker_ints(&graph, "to", target, 2);
    maker_node(&node, "Conv", "x w", "c");
    maker_message(&graph, MAKER_NODE, &node);
    maker_node(&node, op, strcmp(op, "Reshape") == 0 ? "c to" : "c", "y");
    maker_message(&graph, MAKER_NODE, &node);
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    maker_model(&graph, 17, &model);
    maker_save(&model, path);
}

static void test_fixed_batches(void **state) {
    static const int64_t keeps[] = {3, -1}, mixes[] = {1, -1};
    (void)state;
    save_fixed("fixed.onnx", 3, keeps, "Reshape");
    check_plans("fixed.onnx", "3, 12288");
    expect_says(0, "run fixed.onnx batch.npy -o all.npy",
                "'fixed.onnx' was made for batches of 3 images; it is run on one image at a time");
    save_fixed("mixes.onnx", 3, mixes, "Reshape");
    expect_says(
        3, "run mixes.onnx batch.npy",
        "Reshape 'y' (opset 17): the model is fixed to a batch of 3, and this node does not "
        "work image by image (its shape mixes the batch with other axes): export the model "
        "with a batch of 1 or of any size");
}

static void test_refusals(void **state) {
    static const struct {
        int code;
        const char *args, *words;
    } rows[] = {
        {2, "run squeezenet1_1 batch.npy --report page.html", "batch of 2 images: --report"},
        {2, "run squeezenet1_1 batch.npy --top 3", "batch of 2 images: --top and --labels"},
        {2, "run real_esrgan_compact batch.npy --overlay o.png", "batch of 2 images: --overlay"},
        {2, "run real_esrgan_compact batch.npy -o all.png",
         "a batch of 2 images are one .npy file, not a PNG; run --list"},
        {2, "run real_esrgan_compact batch.npy -o all.zarr", "not a Zarr array"},
        {3, "run real_esrgan_compact batch.npy --part 1/2 -o all.npy", "a batch of 2 images, of"},
        {3, "verify squeezenet1_1 batch.npy", "a batch of 2 images, of which one is taken here"},
    };
    (void)state;
    write_batch(2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_says(rows[i].code, rows[i].args, rows[i].words);
    assert_int_equal(access("all.png", F_OK), -1);
    assert_int_equal(truncate("batch.npy", HEADER + 4 * (2 * PLANE - 1)), 0);
    expect_says(3, "run squeezenet1_1 batch.npy", "needs a file of");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),           cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_joined_outputs), cmocka_unit_test(test_regions_and_several_outputs),
        cmocka_unit_test(test_fixed_batches),  cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
