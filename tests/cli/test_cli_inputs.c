/* Pictures as users have them, given to the program: bands and pages that are
 * chosen, photographs that are turned, pipes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tiff.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli_program.h"
#include "tests/support/makers/jpeg_maker.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/makers/tiff_maker.h"

#define NET "real_esrgan_compact" /* few layers, and all of the picture tells */

static struct tiff_maker four_bands(void) {
    struct tiff_maker m = tiff_maker_of(3, COMPRESSION_ADOBE_DEFLATE); /* RGBA */
    m.h = 40;
    m.w = 52;
    m.rows = 16;
    return m;
}

static void has(const char *text, const char *words) {
    if (strstr(text, words) == NULL) fail_msg("no \"%s\" in\n%s", words, text);
}

/* The hash of the output, which follows from the input's values. */
static char *hash_of(const char *input, char *hash) {
    char args[300];
    (void)snprintf(args, sizeof args, "run " NET " %s --json", input);
    expect(0, args);
    json_t *doc = document("run");
    (void)strcpy(hash, json_string_value(at(doc, "output.hash")));
    json_decref(doc);
    return hash;
}

static void test_bands(void **state) {
    char all[40], chosen[40], other[40];
    (void)state;
    struct tiff_maker m = four_bands();
    assert_true(tiff_maker_write(&m, "alpha.tif"));
    hash_of("alpha.tif", all);
    has(err_text, "'alpha.tif': 1 of 4 bands is alpha and dropped");
    hash_of("alpha.tif --channels 1,2,3", chosen);
    assert_string_equal(err_text, "");
    assert_string_equal(all, chosen);
    hash_of("alpha.tif --channels 4,3,2", other);
    assert_string_not_equal(all, other);
    m.no_alpha = true; /* of which the file says nothing */
    assert_true(tiff_maker_write(&m, "bands.tif"));
    expect_says(3, "run " NET " bands.tif",
                "4 of 4 bands are read, the network takes 3: --channels says which");
    hash_of("bands.tif --channels=4,3,2", chosen);
    assert_string_equal(other, chosen);
}

static void test_refused_bands(void **state) {
    (void)state;
    struct tiff_maker m = four_bands();
    m.no_alpha = true;
    m.bits = 32; /* taken as they are */
    assert_true(tiff_maker_write(&m, "floats.tif"));
    expect_says(3, "run " NET " floats.tif", "--channels takes bands of a TIFF or .npy");
    expect(0, "run " NET " floats.tif --channels 1,1,1");
    expect_says(3, "run " NET " floats.tif --channels 1,2,5", "band 5 of 4");
    expect_says(2, "run " NET " floats.tif --channels 1,0", "bands from 1 on");
    expect_says(2, "run " NET " floats.tif --channels 1,", "bands from 1 on");
    expect_says(2, "run " NET " floats.tif --channels 1,2,3 --bgr", "excludes --bgr");
    expect_says(3, "run " NET " synthetic:40x52 --channels 1,2,3", "chooses bands of files");
}

static void test_pages(void **state) {
    char page[40], alone[40];
    (void)state;
    struct tiff_maker pages[3] = {four_bands(), four_bands(), four_bands()};
    pages[0].subs = 1;
    for (int i = 0; i < 3; ++i) {
        pages[i].samples = 3;
        pages[i].seed = (uint32_t)i;
        pages[i].h = 40 - 8 * i;
    }
    pages[1].reduced = true;
    assert_true(tiff_maker_write_pages(pages, 3, "pages.tif"));
    assert_true(tiff_maker_write(&pages[1], "page.tif"));
    hash_of("page.tif", alone);
    assert_string_equal(hash_of("pages.tif --page 2", page), alone);
    assert_string_not_equal(hash_of("pages.tif", page), alone);
    expect_says(3, "run " NET " pages.tif --page 3",
                "--page 3 of 3 ('rfexec info' lists them): 0: 40x52; 1: 24x52; 2: 32x52, reduced, "
                "SubIFD of 0");
    assert_string_equal(hash_of("pages.tif --page 2 --region 0,0,32,52", page), alone);
    assert_string_not_equal(hash_of("pages.tif --page 2 --region 1,0,32,52", page), alone);
    expect_says(3, "run " NET " pages.tif --page 2 --region 0,0,33,52",
                "--region 0,0,33,52 is no rectangle of 32 x 52 pixels");
    expect_says(2, "run " NET " pages.tif --region 0,0,0,52", "a rectangle Y0,X0,Y1,X1 such as");
    expect_says(2, "run " NET " pages.tif --page -1", "a whole number from 0 to");
    expect_says(3, "run " NET " synthetic:40x52 --page 1", "only TIFF files");
    expect(0, "info pages.tif");
    has(out_text,
        "   2           32x52  3      8-bit unsigned  reduced, SubIFD of 0, strips of 16");
    expect(0, "info pages.tif --json");
    json_t *doc = document("info");
    assert_int_equal(json_array_size(at(doc, "pages")), 3);
    json_t *last = json_array_get(at(doc, "pages"), 2);
    assert_int_equal(integer_at(last, "rows"), 32);
    assert_int_equal(integer_at(last, "parent"), 0);
    assert_true(json_is_true(at(last, "reduced")));
    json_decref(doc);
    expect_says(3, "info nowhere.tif", "nowhere.tif: cannot open");
    write_file("words.txt", "no picture");
    expect_says(3, "info words.txt", "not a picture that rfexec reads");
}

/* A pyramid of tiles, which is a slide under that name, within a budget and with the bits of the
 * TIFF reader. */
static void test_slides(void **state) {
    char hash[40], args[200];
    (void)state;
    struct tiff_maker levels[2] = {four_bands(), four_bands()};
    for (int i = 0; i < 2; i++) {
        levels[i].samples = 3;
        levels[i].h = 640 >> i;
        levels[i].w = 960 >> i;
        levels[i].cols = levels[i].rows = 128;
        levels[i].reduced = i > 0;
    }
    assert_true(tiff_maker_write_pages(levels, 2, "levels.tif"));
    (void)unlink("levels.SVS");
    assert_int_equal(link("levels.tif", "levels.SVS"), 0);
    expect_says(2, "run " NET " levels.tif --level 1 --page 1", "--level excludes --page");
    expect_says(3, "run " NET " synthetic:40x52 --level 0",
                "only slides and Zarr folders have levels");
    if (rfexec("info levels.SVS") == 5) {
        has(err_text, "levels.SVS: slides are read by OpenSlide (Debian's package libopenslide0)");
        skip();
    }
    has(out_text, "   1         320x480  3      8-bit unsigned  reduced, tiles of 128x128, slide");
    static const char *const ways[] = {"levels.tif --page", "levels.SVS --page",
                                       "levels.SVS --level", "levels.tif --level"};
    for (int level = 0; level < 2; level++)
        for (int i = 0; i < 4; i += level == 0 ? 3 : 1) {
            long long least = 0; /* the budget that is just enough */
            (void)snprintf(args, sizeof args, "run mobilenet_v2:0.1 %s %d --memory 8MiB", ways[i],
                           level);
            expect_says(4, args, "rfexec: needs at least ");
            assert_int_equal(sscanf(err_text, "rfexec: needs at least %lld", &least), 1);
            assert_in_range(least, 1, INT64_C(128) << 20);
            (void)snprintf(args, sizeof args, "run mobilenet_v2:0.1 %s %d --memory %lld --json",
                           ways[i], level, least);
            expect(0, args);
            json_t *doc = document("run");
            assert_in_range(integer_at(doc, "measured.peak_rss_bytes"), 1, least);
            const char *got = json_string_value(at(doc, "output.hash"));
            if (i == 0) (void)strcpy(hash, got);
            assert_string_equal(hash, got);
            json_decref(doc);
        }
    hash_of("levels.tif --region 100,130,120,150", hash);
    assert_string_equal(hash_of("levels.SVS --region 100,130,120,150", args), hash);
    expect_says(3, "run " NET " levels.SVS --level 2",
                "level 2 of 2 ('rfexec info' lists them): 0: 640x960; 1: 320x480");
    expect_says(3, "run " NET " page.tif --level 0", "page.tif: not a slide that OpenSlide reads");
}

/* What is not stored from top to bottom has the hash of what is, in a budget that does not hold it
 * (4.3 MiB of coefficients or samples). */
static void test_scans_and_passes(void **state) {
    (void)state;
    static const char *const names[] = {"rows.jpg", "scans.jpg", "rows.png", "passes.png"};
    char hash[4][40], args[200];
    for (int i = 0; i < 4; i++) {
        struct jpeg_maker jpeg = {.h = 1240,
                                  .w = 1210,
                                  .components = 3,
                                  .h_sampling = 2,
                                  .v_sampling = 2,
                                  .progressive = i == 1,
                                  .quality = 80};
        struct png_maker png = {
            .h = 1240, .w = 1210, .bit_depth = 8, .color_type = 2, .interlaced = i == 3};
        assert_true(i < 2 ? jpeg_maker_write(&jpeg, names[i]) : png_maker_write(&png, names[i]));
        (void)snprintf(args, sizeof args, "run mobilenet_v2:0.1 %s --memory 20MiB --json",
                       names[i]);
        expect(0, args);
        json_t *doc = document("run");
        (void)strcpy(hash[i], json_string_value(at(doc, "output.hash")));
        json_decref(doc);
    }
    assert_string_equal(hash[0], hash[1]);
    assert_string_equal(hash[2], hash[3]);
    assert_int_equal(setenv("TMPDIR", "nowhere", 1), 0);
    for (int i = 1; i < 4; i += 2) {
        (void)snprintf(args, sizeof args, "run mobilenet_v2:0.1 %s --memory 20MiB", names[i]);
        expect_says(5, args, "in 'nowhere': No such file or directory (--spill or TMPDIR is");
    }
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

/* The picture as it is seen, and then stored so. */
static void save_upright(const struct tiff_maker *m, const char *path) {
    FILE *file = fopen(path, "wb");
    char head[129];
    (void)snprintf(head, sizeof head,
                   "\x93NUMPY\x01%c\x76%c{'descr': '<f4', 'fortran_order': False, 'shape': (3, %d, "
                   "%d), }",
                   0, 0, m->w, m->h);
    memset(head + 10 + strlen(head + 10), ' ', sizeof head - 10 - strlen(head + 10));
    head[127] = '\n';
    assert_int_equal(fwrite(head, 1, 128, file), 128);
    for (int k = 0; k < 3; ++k)
        for (int y = 0; y < m->w; ++y) /* orientation 6: rows are columns, from the right */
            for (int x = 0; x < m->h; ++x) {
                float v = tiff_maker_sample(m, m->h - 1 - x, y, k);
                assert_int_equal(fwrite(&v, sizeof v, 1, file), 1);
            }
    assert_int_equal(fclose(file), 0);
}

static void test_orientation(void **state) {
    char seen[40], upright[40], stored[40], alone[40];
    (void)state;
    struct tiff_maker m = four_bands();
    m.samples = 3;
    m.bits = 32;
    m.orientation = 6;
    assert_true(tiff_maker_write(&m, "turned.tif"));
    save_upright(&m, "upright.npy");
    assert_string_equal(hash_of("turned.tif", seen), hash_of("upright.npy", upright));
    hash_of("turned.tif --no-orient", stored);
    m.orientation = 0;
    assert_true(tiff_maker_write(&m, "stored.tif"));
    assert_string_equal(stored, hash_of("stored.tif", alone));
    assert_string_not_equal(stored, seen);
}

/* Of a network that takes multiples: the refusal names them, and filling up does. */
static void test_sizes(void **state) {
    (void)state;
    expect(3, "run swinir_light synthetic:19x45");
    has(err_text, "multiples of 8: --pad-to 8 fills 19 x 45 up");
    expect(0, "verify swinir_light synthetic:19x45 --pad-to 8,edge --tiles 2x2 -j 1");
    has(out_text, "IDENTICAL");
    has(out_text, "1x3x38x90");
    expect(2, "run fsrcnn synthetic:19x45 --pad-to 8,mirror");
    has(err_text, "a multiple such as 32");
    expect(0, "plan yolov8n --size 600x800");
    has(err_text, "fills images of 600x800 up to 608x800 with zeros");
    expect(0, "plan yolov8n --size 608x800");
    assert_string_equal(err_text, "");
    expect(0, "plan nafnet --size 41x64"); /* its output is cut back */
    assert_string_equal(err_text, "");
    expect(2, "plan fsrcnn --size 1000001x5");
    has(err_text, "--size 1000001x5: at most 1000000 rows and columns");
    expect(0, "plan fsrcnn --size 100001x5");
    expect(2, "plan fsrcnn --size 64x64 --for-output npy");
    has(err_text, "--for-output 'npy'");
}

/* A photograph of 3000 x 2000 pixels, 17 MiB decoded, that is held on its side. */
static void test_turned_photograph(void **state) {
    char hash[40];
    (void)state;
    struct jpeg_maker m = {.h = 2000, .w = 3000, .components = 3, .quality = 80};
    m.h_sampling = m.v_sampling = 2;
    m.orientation = 6;
    assert_true(jpeg_maker_write(&m, "side.jpg"));
    expect(0, "info side.jpg");
    has(out_text, "2000x3000");
    has(out_text, "orientation 6");
    expect(0, "run mobilenet_v2 side.jpg --json");
    json_t *doc = document("run");
    (void)strcpy(hash, json_string_value(at(doc, "output.hash")));
    json_decref(doc);
    expect(0, "run mobilenet_v2 side.jpg --memory 44MiB --json");
    doc = document("run");
    assert_string_equal(json_string_value(at(doc, "output.hash")), hash);
    assert_true(integer_at(doc, "measured.peak_rss_bytes") <= 44 << 20);
    json_decref(doc);
    expect_says(5, "run mobilenet_v2 side.jpg --memory 44MiB --spill no/folder", "no/folder");
}

/* Feeds a file to a run through a pipe. */
static void feed(const char *file) {
    char command[200];
    (void)unlink("feed.fifo");
    assert_int_equal(mkfifo("feed.fifo", 0600), 0);
    (void)snprintf(command, sizeof command, "cat '%s' >feed.fifo &", file);
    assert_int_equal(system(command), 0);
}

static void test_standard_input(void **state) {
    char hash[40], piped[40];
    static const char *const files[] = {"alpha.tif", "upright.npy", "small.jpg", "small.ppm"};
    (void)state;
    struct jpeg_maker m = {.h = 30, .w = 20, .components = 3, .quality = 80, .orientation = 8};
    m.h_sampling = m.v_sampling = 2;
    assert_true(jpeg_maker_write(&m, "small.jpg"));
    write_file("small.ppm", "P6 2 1 255\nabcdef");
    for (int i = 0; i < 4; ++i) {
        char words[80];
        struct stat info;
        assert_int_equal(stat(files[i], &info), 0);
        hash_of(files[i], hash);
        feed(files[i]);
        assert_string_equal(hash_of("- <feed.fifo", piped), hash);
        (void)snprintf(words, sizeof words, "standard input: %d bytes, kept in a nameless file in",
                       (int)info.st_size);
        has(err_text, words);
        (void)snprintf(words, sizeof words, "- <%s", files[i]); /* a file needs no copy */
        assert_string_equal(hash_of(words, piped), hash);
        if (strstr(err_text, "nameless") != NULL) fail_msg("%s", err_text);
    }
    feed("alpha.tif");
    expect(0, "info - <feed.fifo");
    has(out_text, "40x52  4 (1 alpha)");
    feed("small.jpg");
    expect(0, "run " NET " - -o - <feed.fifo"); /* and a result to standard output */
    assert_memory_equal(out_text, "\x93NUMPY", 6);
}

static void test_no_standard_input(void **state) {
    (void)state;
    expect_says(3, "run " NET " - </dev/null", "/dev/stdin: the file is empty");
    feed("alpha.tif");
    expect_says(5, "run " NET " - --memory 64MiB --spill no/folder <feed.fifo", "'no/folder'");
    feed("/dev/null");
    expect_says(3, "run " NET " - <feed.fifo", "/dev/stdin: the file is empty");
    write_file("words.txt", "no picture");
    feed("words.txt");
    expect_says(3, "run " NET " - <feed.fifo", "/dev/stdin: not a picture");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bands),          cmocka_unit_test(test_refused_bands),
        cmocka_unit_test(test_pages),          cmocka_unit_test(test_scans_and_passes),
        cmocka_unit_test(test_slides),         cmocka_unit_test(test_orientation),
        cmocka_unit_test(test_sizes),          cmocka_unit_test(test_turned_photograph),
        cmocka_unit_test(test_standard_input), cmocka_unit_test(test_no_standard_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
