/* Zarr folders that are broken, wild or of kinds that are not read: refused in words, never a
 * crash, a file outside the folder or memory that metadata alone ask for. */
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

#include "tests/support/makers/zarr_maker.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define NAME "test_zarr_damage.tmp.zarr"
#define LIMIT ((size_t)64 << 20)

/* A valid array of each format, of which one member is another. */
static const char v3_head[] =
    "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [3, 40, 52], \"data_type\": "
    "\"uint16\", \"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": [1, "
    "16, 20]}}, \"chunk_key_encoding\": {\"name\": \"default\"}, \"fill_value\": 0, \"codecs\": "
    "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}]";
static const char v2_head[] =
    "{\"zarr_format\": 2, \"shape\": [3, 40, 52], \"chunks\": [1, 16, 20], \"dtype\": \"<u2\", "
    "\"compressor\": null, \"fill_value\": 0, \"order\": \"C\", \"filters\": null";

static void put(const char *file, const char *text) {
    assert_true(zarr_maker_put(NAME, file, text, strlen(text)));
}

/* `text` with the member's value replaced, or the member added. */
static void change(const char *text, const char *member, const char *value, char to[1000]) {
    char key[64];
    (void)snprintf(key, sizeof key, "\"%s\": ", member);
    const char *at = strstr(text, key);
    if (at == NULL) {
        (void)snprintf(to, 1000, "%s, %s%s}", text, key, value);
        return;
    }
    at += strlen(key);
    const char *end = at;
    for (int depth = 0; *end != '\0' && (depth > 0 || (*end != ',' && *end != '}')); end++)
        depth += (*end == '[' || *end == '{') - (*end == ']' || *end == '}');
    (void)snprintf(to, 1000, "%.*s%s%s}", (int)(at - text), text, value, end);
}

static void expect(enum rfx_status status, const char *words) {
    struct rfx_error err = {""};
    enum rfx_status got = image_reads_all(NAME, 64, -1, LIMIT, &err);
    if (got != status || strstr(err.text, words) == NULL ||
        (got != RFX_OK && strncmp(err.text, NAME ":", sizeof NAME) != 0))
        fail_msg("status %d '%s', not %d '%s'", (int)got, err.text, (int)status, words);
}

struct change {
    const char *member, *value;
    enum rfx_status status;
    const char *words;
};

static void check_changes(const char *file, const char *text, const struct change *changes,
                          size_t n) {
    char changed[1000];
    (void)snprintf(changed, sizeof changed, "%s}", text);
    put(file, changed);
    expect(RFX_OK, "");
    for (size_t i = 0; i < n; i++) {
        change(text, changes[i].member, changes[i].value, changed);
        put(file, changed);
        expect(changes[i].status, changes[i].words);
    }
    zarr_maker_remove(NAME);
}

#define BAD RFX_STATUS_MALFORMED
#define NOT RFX_STATUS_UNSUPPORTED
#define MEMORY RFX_STATUS_OUT_OF_MEMORY

static void format_3(void **state) {
    static const struct change changes[] = {
        {"zarr_format", "4", BAD, "'zarr_format' is not 3"},
        {"shape", "[3, 40]", BAD, "'chunk_shape' is no list of as many numbers"},
        {"shape", "[3, -40, 52]", BAD, "'shape' 1 is -40, no number of 1 or more"},
        {"shape", "[3, 0, 52]", BAD, "'shape' 1 is 0"},
        {"shape", "[3, 40.0, 52]", BAD, "'shape' 1 is 0, no number"},
        {"shape", "[3, 9223372036854775807, 52]", NOT, "x 52 pixels of 3 bands; up to 1000000"},
        {"shape", "[9223372036854775807, 40, 52]", NOT,
         "up to 1000000 of each side and 65535 bands"},
        {"shape", "[3, 99999999999999999999, 52]", BAD, "too big integer"},
        {"shape", "[1, 1, 1, 1, 1, 1, 1, 1, 1]", NOT, "9 axes; at most 8"},
        {"shape", "[]", BAD, "'shape' is no list"},
        {"shape", "7", BAD, "'shape' is no list"},
        {"shape", "[65535, 1000000, 1000000]", MEMORY, "cannot allocate"},
        {"shape", "[4, 3, 2]", NOT, "axes (4, 3, 2): c, y, x or y, x, c"},
        {"data_type", "\"complex64\"", NOT, "samples of type 'complex64'; integers of"},
        {"data_type", "\"bool\"", NOT, "samples of type 'bool'"},
        {"data_type", "{\"name\": \"string\"}", NOT, "samples of type ''"},
        {"chunk_shape", "[1, 2147483647, 2147483647]", NOT, "chunks of more than 2147483647"},
        {"chunk_shape", "[9223372036854775807, 9223372036854775807, 2]", NOT, "chunks of more"},
        {"chunk_shape", "[1, 0, 20]", BAD, "'chunk_shape' 1 is 0"},
        {"chunk_shape", "[1, -16, 20]", BAD, "'chunk_shape' 1 is -16"},
        {"chunk_shape", "[1, 16384, 50000]", MEMORY, "cannot allocate"},
        {"chunk_grid", "{\"name\": \"rectangular\"}", NOT, "chunk grid 'rectangular'"},
        {"chunk_key_encoding", "{\"name\": \"new\"}", NOT, "keys of the kind 'new'"},
        {"chunk_key_encoding", "{\"name\": \"v2\", \"configuration\": {\"separator\": \"..\"}}",
         BAD, "neither '/' nor '.'"},
        {"fill_value", "65536", BAD, "'fill_value' 65536 is no value of uint16"},
        {"fill_value", "-1", BAD, "'fill_value' -1 is no value"},
        {"fill_value", "0.5", BAD, "'fill_value' 0.5 is no value"},
        {"fill_value", "\"NaN\"", BAD, "'fill_value' is no value of uint16"},
        {"fill_value", "{}", BAD, "'fill_value' is no value of uint16"},
        {"codecs", "[]", BAD, "'codecs' is no list"},
        {"codecs", "[{\"name\": \"bytes\"}]", BAD, "'bytes' without an order"},
        {"codecs", "[{\"name\": \"sharding_indexed\"}]", NOT, "packed by 'sharding_indexed'"},
        {"codecs", "[{\"name\": \"transpose\"}]", NOT, "packed by 'transpose'"},
        {"codecs",
         "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}, {\"name\": "
         "\"crc32c\"}]",
         NOT, "packed by 'crc32c'; zstd, gzip, zlib and blosc are read"},
        {"codecs",
         "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}, {\"name\": \"gzip\"}, "
         "{\"name\": \"zstd\"}]",
         NOT, "packed by 'zstd'"},
        {"storage_transformers", "[{\"name\": \"x\"}]", NOT, "storage transformers"},
        {"dimension_names", "[\"c\", \"y\", \"y\"]", NOT,
         "(c 3, y 40, y 52): one must be called y"},
        {"dimension_names", "[\"t\", \"y\", \"x\"]", NOT, "(t 3, y 40, x 52): but for c, y and x"},
        {"dimension_names", "[null, \"y\", \"x\"]", RFX_OK, ""},
        {"node_type", "\"group\"", NOT, "a Zarr group without OME-Zarr's multiscales"},
    };
    (void)state;
    check_changes("zarr.json", v3_head, changes, sizeof changes / sizeof changes[0]);
}

static void format_2(void **state) {
    static const struct change changes[] = {
        {"zarr_format", "3", BAD, "'zarr_format' is not 2"},
        {"dtype", "\"<c8\"", NOT, "samples of type '<c8'"},
        {"dtype", "\"|u2\"", NOT, "samples of type '|u2'"},
        {"dtype", "[[\"a\", \"<u2\"]]", NOT, "samples of type ''"},
        {"order", "\"A\"", BAD, "'order' is 'A'"},
        {"filters", "[{\"id\": \"delta\"}]", NOT, "filter 'delta'"},
        {"filters", "[]", RFX_OK, ""},
        {"compressor", "{\"id\": \"lz4\"}", NOT, "packed by 'lz4'"},
        {"chunks", "[1, 16]", BAD, "'chunks' is no list"},
        {"chunks", "[-1, 16, 20]", BAD, "'chunks' 0 is -1"},
        {"dimension_separator", "\"-\"", BAD, "neither"},
        {"shape", "[2, 3, 40, 52]", BAD, "'chunks' is no list of as many"},
    };
    (void)state;
    check_changes(".zarray", v2_head, changes, sizeof changes / sizeof changes[0]);
}

/* Any beginning of metadata, and files that are no JSON. */
static void metadata_that_break_off(void **state) {
    static const char *const files[] = {"zarr.json", ".zarray"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[1000];
        int n = snprintf(text, sizeof text, "%s}", i == 0 ? v3_head : v2_head);
        for (int cut = 0; cut < n; cut++) {
            assert_true(zarr_maker_put(NAME, files[i], text, (size_t)cut));
            expect(BAD, "line ");
        }
        put(files[i], "[1, 2]");
        expect(BAD, "no JSON object");
        zarr_maker_remove(NAME);
    }
    char *large = malloc(2 << 20);
    memset(large, ' ', 2 << 20);
    assert_true(zarr_maker_put(NAME, "zarr.json", large, 2 << 20));
    expect(NOT, "'zarr.json' has 2097152 bytes of metadata, at most 1048576");
    free(large);
    zarr_maker_remove(NAME);
}

/* Every kind of chunk shortened, made longer and with other bytes. */
static void chunks_that_are_broken(void **state) {
    static const char *const codecs[] = {NULL, "zstd", "gzip", "zlib", "blosc"};
    static struct test_bytes b;
    (void)state;
    for (size_t k = 0; k < sizeof codecs / sizeof codecs[0]; k++) {
        struct zarr_maker m = zarr_maker_usual();
        struct rfx_error err;
        m.codec = codecs[k];
        if (!zarr_maker_can(m.codec)) continue;
        assert_true(zarr_maker_write(&m, NAME));
        test_bytes_load(&b, NAME "/c/1/1/1");
        for (size_t cut = 0; cut < b.count; cut += cut < 40 || cut + 40 > b.count ? 1 : 7) {
            test_bytes_store(NAME "/c/1/1/1", b.data, cut);
            expect(BAD, "row 16 of 40: 'c/1/1/1'");
        }
        memset(b.data + b.count, 0, 8000);
        test_bytes_store(NAME "/c/1/1/1", b.data, b.count + 1);
        expect(BAD, "row 16 of 40: 'c/1/1/1'");
        test_bytes_store(NAME "/c/1/1/1", b.data, b.count + 8000);
        expect(BAD, m.codec == NULL ? "bytes instead of 320" : "bytes instead of at most 4421");
        for (size_t at = 0; at < b.count; at++) {
            b.data[at] ^= 0x55;
            test_bytes_store(NAME "/c/1/1/1", b.data, b.count);
            enum rfx_status status = image_reads_all(NAME, 64, -1, LIMIT, &err);
            if (status != RFX_OK) expect(BAD, "row 16 of 40: 'c/1/1/1'");
            b.data[at] ^= 0x55;
        }
        /* a chunk of another size */
        struct zarr_maker other = m;
        other.chunk[1] = 17;
        assert_true(zarr_maker_write(&other, NAME "/other"));
        test_bytes_load(&b, NAME "/other/c/1/1/1");
        test_bytes_store(NAME "/c/1/1/1", b.data, b.count);
        expect(BAD, "row 16 of 40: 'c/1/1/1'");
        zarr_maker_remove(NAME);
    }
}

/* What is no file, lies elsewhere or is a link. */
static void nothing_outside_the_folder(void **state) {
    static const struct {
        const char *path, *words;
        enum rfx_status status;
    } paths[] = {
        {"..", "'..' is no path inside", BAD},
        {"../test_zarr_damage.tmp.zarr/a", "'../test_zarr_damage.tmp.zarr/a' is no path", BAD},
        {"a/../a", "is no path inside", BAD},
        {"/tmp", "is no path inside", BAD},
        {"", "is no path inside", BAD},
        {"a//b", "is no path inside", BAD},
        {"link", "has a symbolic link", BAD},
        {"link/inner", "has a symbolic link", BAD},
        {"nowhere", "'nowhere' is not there", BAD},
        {"empty", "no array is there", BAD},
        {"zarr.json", "a file where a folder should be", BAD},
        {"a", "", RFX_OK},
    };
    struct zarr_maker m = zarr_maker_usual();
    (void)state;
    assert_true(zarr_maker_write(&m, NAME "/a"));
    assert_int_equal(symlink("a", NAME "/link"), 0);
    assert_int_equal(mkdir(NAME "/empty", 0777), 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char text[300];
        (void)snprintf(text, sizeof text,
                       "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {\"ome\": "
                       "{\"multiscales\": [{\"axes\": [{\"name\": \"c\"}, {\"name\": \"y\"}, "
                       "{\"name\": \"x\"}], \"datasets\": [{\"path\": \"%s\"}]}]}}}",
                       paths[i].path);
        put("zarr.json", text);
        expect(paths[i].status, paths[i].words);
    }
    assert_int_equal(rename(NAME "/a/c/1/1/1", NAME "/a/c/1/1/7"), 0);
    assert_int_equal(symlink("7", NAME "/a/c/1/1/1"), 0);
    expect(BAD, "'c/1/1/1' has a symbolic link");
    assert_int_equal(unlink(NAME "/a/c/1/1/1"), 0);
    assert_int_equal(mkfifo(NAME "/a/c/1/1/1", 0666), 0);
    expect(BAD, "'c/1/1/1' is not a regular file");
    assert_int_equal(unlink(NAME "/a/c/1/1/1"), 0);
    assert_int_equal(mkdir(NAME "/a/c/1/1/1", 0777), 0);
    expect(BAD, "'c/1/1/1' is not a regular file");
    assert_int_equal(rmdir(NAME "/a/c/1/1/1"), 0);
    assert_int_equal(rename(NAME "/a/c/2", NAME "/a/c/9"), 0);
    put("a/c/2", "");
    expect(BAD, "'c/2/0/0' has a symbolic link, which are not followed, or a file where a folder");
    zarr_maker_remove(NAME);
}

static void groups_that_are_broken(void **state) {
    static const struct change changes[] = {
        {"multiscales", "[]", NOT, "without OME-Zarr's multiscales"},
        {"multiscales", "{}", NOT, "without OME-Zarr's multiscales"},
        {"multiscales", "[{}]", NOT, "level 0 of 0"},
        {"multiscales", "[{\"datasets\": [7]}]", BAD, "level 0 has no path"},
        {"multiscales", "[{\"datasets\": [{\"path\": \"a\"}]}]", BAD, "0 axes of OME-Zarr, and 3"},
        {"multiscales", "[{\"axes\": [\"y\", \"x\"], \"datasets\": [{\"path\": \"a\"}]}]", BAD,
         "level 0 in 'a': 2 axes of OME-Zarr, and 3 of the array"},
        {"multiscales", "[{\"axes\": [1, 2, 3], \"datasets\": [{\"path\": \"a\"}]}]", BAD,
         "axis 0 of OME-Zarr has no name"},
        {"multiscales", "[{\"axes\": [\"z\", \"y\", \"x\"], \"datasets\": [{\"path\": \"a\"}]}]",
         NOT, "axes (z 3, y 40, x 52): but for c, y and x each must have length 1"},
    };
    struct zarr_maker m = zarr_maker_usual();
    (void)state;
    m.format = 2;
    assert_true(zarr_maker_write(&m, NAME "/a"));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char text[1000];
        (void)snprintf(text, sizeof text, "{\"multiscales\": %s}", changes[i].value);
        put(".zattrs", text);
        expect(changes[i].status, changes[i].words);
    }
    put(".zattrs", "{");
    expect(BAD, "'.zattrs': line 1");
    zarr_maker_remove(NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_3),
        cmocka_unit_test(format_2),
        cmocka_unit_test(metadata_that_break_off),
        cmocka_unit_test(chunks_that_are_broken),
        cmocka_unit_test(nothing_outside_the_folder),
        cmocka_unit_test(groups_that_are_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
