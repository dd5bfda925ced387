/* Chunks, names and metadata of Zarr arrays against what the specifications ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "rfexec/output/zarr/zarr_array.h"
#include "tests/support/test_util.h"

static void chunks_follow_the_map(void **state) {
    (void)state;
    static const struct {
        int64_t h, w, channels, side;
        int bits;
        int64_t rows, cols;
    } cases[] = {
        {1000, 1000, 1, 0, 32, 256, 256},
        {100, 1000, 1, 0, 32, 100, 256},
        {1000, 3, 2, 0, 8, 256, 3},
        {1000, 1000, 1, 50, 32, 50, 50},
        {40000, 50000, 1, 0, 32, 128, 512}, /* 256 rows would be 48.8 MiB, 128 are 24.4 */
        {40000, 50000, 1, 0, 8, 256, 256},
        {40000, 50000, 64, 0, 32, 16, 4096},
        {40000, 32768, 1, 0, 32, 256, 256}, /* 32 MiB to the byte */
        {40000, 50000, 64, 512, 32, 512, 512},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_zarr_array a = {
            .h = cases[i].h, .w = cases[i].w, .channels = cases[i].channels, .bits = cases[i].bits};
        rfx_zarr_choose_chunks(&a, cases[i].side);
        if (a.chunk_rows != cases[i].rows || a.chunk_cols != cases[i].cols)
            fail_msg("case %zu: %lld x %lld", i, (long long)a.chunk_rows, (long long)a.chunk_cols);
    }
}

static void chunks_have_names(void **state) {
    (void)state;
    static const struct {
        struct rfx_zarr_array array;
        const char *name;
    } cases[] = {
        {{.format = 3, .batch = true}, "c/0/5/12/7"}, {{.format = 3}, "c/5/12/7"},
        {{.format = 2, .batch = true}, "0/5/12/7"},   {{.format = 2}, "5/12/7"},
        {{.format = 3, .ome = true}, "0/c/5/12/7"},   {{.format = 2, .ome = true}, "0/5/12/7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[RFX_ZARR_NAME];
        rfx_zarr_chunk_name(&cases[i].array, 5, 12, 7, name);
        assert_string_equal(name, cases[i].name);
    }
}

/* File k of the metadata without blanks; NULL: there is none. */
static json_t *metadata(const struct rfx_zarr_array *array, int k, const char *wanted_name) {
    struct rfx_memory *mem = rfx_memory_create(0);
    char name[RFX_ZARR_NAME], *text;
    assert_int_equal(rfx_zarr_metadata(mem, array, "map", k, name, &text, NULL), RFX_OK);
    json_t *made = NULL;
    if (wanted_name == NULL) {
        assert_null(text);
    } else {
        assert_string_equal(name, wanted_name);
        made = json_loads(text, 0, NULL);
        assert_non_null(made);
    }
    rfx_memory_release(mem, text);
    rfx_memory_free(mem);
    return made;
}

static void check_json(const struct rfx_zarr_array *array, int k, const char *name,
                       const char *wanted) {
    json_t *made = metadata(array, k, name), *asked = json_loads(wanted, 0, NULL);
    assert_non_null(asked);
    if (json_equal(made, asked) == 0) {
        char *text = json_dumps(made, JSON_COMPACT);
        fail_msg("%s: %s", name, text);
    }
    json_decref(made);
    json_decref(asked);
}

#define AXES                                                                      \
    "[{\"name\":\"c\",\"type\":\"channel\"},{\"name\":\"y\",\"type\":\"space\"}," \
    "{\"name\":\"x\",\"type\":\"space\"}]"
#define LEVELS                                                                                     \
    "[{\"path\":\"0\",\"coordinateTransformations\":[{\"type\":\"scale\",\"scale\":[1.0,1.0,1.0]}" \
    "]}]"

static const struct rfx_zarr_array usual = {.h = 100,
                                            .w = 70,
                                            .channels = 3,
                                            .batch = true,
                                            .bits = 32,
                                            .chunk_rows = 64,
                                            .chunk_cols = 32,
                                            .zstd = true};

static void types_have_names(void **state) {
    (void)state;
    static const struct {
        int bits;
        const char *of_2, *of_3;
    } types[] = {{8, "|u1", "uint8"}, {16, "<u2", "uint16"}, {32, "<f4", "float32"}};
    for (int i = 0; i < 3; i++) {
        struct rfx_zarr_array a = usual;
        a.bits = types[i].bits;
        a.format = 2;
        json_t *of_2 = metadata(&a, 0, ".zarray");
        a.format = 3;
        json_t *of_3 = metadata(&a, 0, "zarr.json");
        assert_string_equal(json_string_value(json_object_get(of_2, "dtype")), types[i].of_2);
        assert_string_equal(json_string_value(json_object_get(of_3, "data_type")), types[i].of_3);
        json_decref(of_2);
        json_decref(of_3);
    }
}

/* Smaller copies end where one fits the larger side of a chunk; an array that is no group's has
 * none. */
static void copies_are_counted(void **state) {
    (void)state;
    static const int64_t chunks[][3] = {{64, 32, 1}, {32, 64, 1}, {32, 32, 2}, {100, 1, 0}};
    for (int i = 0; i < 4; i++) {
        struct rfx_zarr_array a = usual;
        a.batch = false;
        a.format = 3;
        a.overviews = RFX_OVERVIEW_MEAN;
        a.chunk_rows = chunks[i][0];
        a.chunk_cols = chunks[i][1];
        struct rfx_overview_map map = rfx_zarr_overviews(&a);
        assert_int_equal(rfx_overviews_count(&map), 0);
        a.ome = true;
        map = rfx_zarr_overviews(&a);
        assert_int_equal(rfx_overviews_count(&map), chunks[i][2]);
    }
}

static void metadata_of_format_3(void **state) {
    (void)state;
    struct rfx_zarr_array a = usual;
    a.format = 3;
    check_json(&a, 0, "zarr.json",
               "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[1,3,100,70],\"data_type\":"
               "\"float32\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\""
               ":[1,1,64,32]}},\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{"
               "\"separator\":\"/\"}},\"fill_value\":0.0,\"codecs\":[{\"name\":\"bytes\","
               "\"configuration\":{\"endian\":\"little\"}},{\"name\":\"zstd\",\"configuration\":{"
               "\"level\":3,\"checksum\":false}}],\"dimension_names\":[\"n\",\"c\",\"y\",\"x\"]}");
    (void)metadata(&a, 1, NULL);
    a.batch = a.zstd = false;
    a.ome = true;
    a.bits = 16;
    check_json(&a, 0, "zarr.json",
               "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"ome\":{\"version\":"
               "\"0.5\",\"multiscales\":[{\"name\":\"map\",\"axes\":" AXES ",\"datasets\":" LEVELS
               "}]}}}");
    check_json(&a, 1, "0/zarr.json",
               "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[3,100,70],\"data_type\":"
               "\"uint16\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\""
               ":[1,64,32]}},\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{"
               "\"separator\":\"/\"}},\"fill_value\":0,\"codecs\":[{\"name\":\"bytes\","
               "\"configuration\":{\"endian\":\"little\"}}],\"dimension_names\":[\"c\",\"y\","
               "\"x\"]}");
    (void)metadata(&a, 2, NULL);
}

static void metadata_of_format_2(void **state) {
    (void)state;
    struct rfx_zarr_array a = usual;
    a.format = 2;
    check_json(&a, 0, ".zarray",
               "{\"zarr_format\":2,\"shape\":[1,3,100,70],\"chunks\":[1,1,64,32],\"dtype\":\"<f4\","
               "\"compressor\":{\"id\":\"zstd\",\"level\":3},\"fill_value\":0.0,\"order\":\"C\","
               "\"filters\":null,\"dimension_separator\":\"/\"}");
    check_json(&a, 1, ".zattrs", "{\"_ARRAY_DIMENSIONS\":[\"n\",\"c\",\"y\",\"x\"]}");
    (void)metadata(&a, 2, NULL);
    a.batch = a.zstd = false;
    a.ome = true;
    a.bits = 8;
    check_json(&a, 0, ".zgroup", "{\"zarr_format\":2}");
    check_json(&a, 1, ".zattrs",
               "{\"multiscales\":[{\"version\":\"0.4\",\"name\":\"map\",\"axes\":" AXES
               ",\"datasets\":" LEVELS "}]}");
    check_json(&a, 2, "0/.zarray",
               "{\"zarr_format\":2,\"shape\":[3,100,70],\"chunks\":[1,64,32],\"dtype\":\"|u1\","
               "\"compressor\":null,\"fill_value\":0,\"order\":\"C\",\"filters\":null,"
               "\"dimension_separator\":\"/\"}");
    check_json(&a, 3, "0/.zattrs", "{\"_ARRAY_DIMENSIONS\":[\"c\",\"y\",\"x\"]}");
    (void)metadata(&a, 4, NULL);
    /* arrays of smaller copies; nearest ones lie where they were, means between */
    a.chunk_rows = 32;
    a.overviews = RFX_OVERVIEW_NEAREST;
    check_json(&a, 4, "1/.zarray",
               "{\"zarr_format\":2,\"shape\":[3,50,35],\"chunks\":[1,32,32],\"dtype\":\"|u1\","
               "\"compressor\":null,\"fill_value\":0,\"order\":\"C\",\"filters\":null,"
               "\"dimension_separator\":\"/\"}");
    check_json(&a, 6, "2/.zarray",
               "{\"zarr_format\":2,\"shape\":[3,25,18],\"chunks\":[1,25,18],\"dtype\":\"|u1\","
               "\"compressor\":null,\"fill_value\":0,\"order\":\"C\",\"filters\":null,"
               "\"dimension_separator\":\"/\"}");
    (void)metadata(&a, 8, NULL);
    for (int kind = 0; kind < 2; kind++) {
        a.overviews = kind == 0 ? RFX_OVERVIEW_NEAREST : RFX_OVERVIEW_MEAN;
        json_t *group = metadata(&a, 1, ".zattrs");
        json_t *words = json_array_get(json_object_get(group, "multiscales"), 0);
        json_t *last = json_array_get(json_object_get(words, "datasets"), 2);
        json_t *asked =
            json_loads(kind == 0 ? "[{\"type\":\"scale\",\"scale\":[1.0,4.0,4.0]}]"
                                 : "[{\"type\":\"scale\",\"scale\":[1.0,4.0,4.0]},"
                                   "{\"type\":\"translation\",\"translation\":[0.0,1.5,1.5]}]",
                       0, NULL);
        json_t *first = json_array_get(json_object_get(words, "datasets"), 0);
        assert_int_equal(json_array_size(json_object_get(first, "coordinateTransformations")), 1);
        assert_string_equal(json_string_value(json_object_get(last, "path")), "2");
        assert_true(json_equal(json_object_get(last, "coordinateTransformations"), asked));
        json_decref(asked);
        json_decref(group);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_follow_the_map), cmocka_unit_test(chunks_have_names),
        cmocka_unit_test(types_have_names),      cmocka_unit_test(copies_are_counted),
        cmocka_unit_test(metadata_of_format_3),  cmocka_unit_test(metadata_of_format_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
