/* The program in a shell; see cli_program.h. Files of the working directory: cli_out.<process>.txt
 * and cli_err.<process>.txt, so that test programs can run side by side. */
#include "cli_program.h"

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

char out_text[TEXT_BYTES], err_text[TEXT_BYTES];

void read_text(const char *path, char *text) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t n = fread(text, 1, TEXT_BYTES - 1, file);
    text[n] = '\0';
    (void)fclose(file);
}

int rfexec(const char *args) {
    char command[2048], out[64], err[64];
    if (getenv("XDG_CACHE_HOME") == NULL) /* seconds as in the table; nothing is kept at home */
        (void)setenv("RFX_MACHINE_SPEED", "1", 0);
    (void)snprintf(out, sizeof out, "cli_out.%d.txt", (int)getpid());
    (void)snprintf(err, sizeof err, "cli_err.%d.txt", (int)getpid());
    (void)snprintf(command, sizeof command, "'%s' >%s 2>%s %s", RFX_PROGRAM, out, err, args);
    int status = system(command);
    read_text(out, out_text);
    read_text(err, err_text);
    (void)unlink(out);
    (void)unlink(err);
    if (!WIFEXITED(status)) fail_msg("rfexec %s: ended by a signal\n%s", args, err_text);
    return WEXITSTATUS(status);
}

void expect(int code, const char *args) {
    int got = rfexec(args);
    if (got != code)
        fail_msg("rfexec %s: exit code %d, expected %d\n%s", args, got, code, err_text);
    if (code != 0 && code != 1) assert_non_null(strstr(err_text, "rfexec: "));
}

void expect_says(int code, const char *args, const char *words) {
    expect(code, args);
    if (strstr(err_text, words) == NULL)
        fail_msg("rfexec %s: no \"%s\" in\n%s", args, words, err_text);
}

/* The JSON document on stdout; a new reference. */
json_t *document(const char *command) {
    json_error_t error;
    json_t *doc = json_loads(out_text, JSON_REJECT_DUPLICATES, &error);
    if (doc == NULL) fail_msg("%s: line %d: %s", command, error.line, error.text);
    assert_int_equal(json_integer_value(json_object_get(doc, "schema")), 1);
    assert_string_equal(json_string_value(json_object_get(doc, "command")), command);
    return doc;
}

/* The value at "a.b.c"; fails when a key is missing. */
json_t *at(json_t *doc, const char *path) {
    char copy[128];
    char *save = NULL;
    (void)snprintf(copy, sizeof copy, "%s", path);
    for (char *key = strtok_r(copy, ".", &save); key != NULL; key = strtok_r(NULL, ".", &save)) {
        doc = json_object_get(doc, key);
        if (doc == NULL) fail_msg("no key %s of %s", key, path);
    }
    return doc;
}

long long integer_at(json_t *doc, const char *path) {
    json_t *value = at(doc, path);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void read_floats(const char *path, float *values, size_t n) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, -(long)(n * sizeof *values), SEEK_END), 0);
    assert_int_equal(fread(values, sizeof *values, n, file), n);
    (void)fclose(file);
}

void write_floats(const char *path, const char *shape, const float *values, size_t n) {
    enum { HEADER = 118 };
    char words[HEADER], header[HEADER + 1];
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    (void)snprintf(words, sizeof words, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }",
                   shape);
    (void)snprintf(header, sizeof header, "%-*s\n", HEADER - 1, words);
    assert_int_equal(fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file), 10); /* 0x76: HEADER */
    assert_int_equal(fwrite(header, 1, HEADER, file), HEADER);
    assert_int_equal(fwrite(values, sizeof *values, n, file), n);
    assert_int_equal(fclose(file), 0);
}

void assert_same_files(const char *a, const char *b) {
    char command[512];
    (void)snprintf(command, sizeof command, "cmp '%s' '%s'", a, b);
    if (system(command) != 0) fail_msg("%s and %s differ", a, b);
}

/* The class of an area with this label. */
static json_t *class_of(json_t *area, long long label) {
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(area, "classes"), i, one) {
        if (integer_at(one, "label") == label) return one;
    }
    fail_msg("no class %lld", label);
    return NULL;
}

long long assert_areas_are_regions(const char *summary, const char *regions) {
    json_t *counted = json_load_file(summary, 0, NULL), *found = json_load_file(regions, 0, NULL);
    json_t *areas = json_object_get(counted, "within"),
           *features = json_object_get(found, "features");
    size_t i;
    json_t *area;
    assert_int_equal(json_array_size(areas), json_array_size(features));
    json_array_foreach(areas, i, area) {
        json_t *region = json_object_get(json_array_get(features, i), "properties");
        json_t *one = class_of(area, integer_at(region, "label"));
        json_t *mean = json_object_get(region, "mean_score");
        assert_int_equal(integer_at(area, "number"), i + 1);
        assert_int_equal(integer_at(area, "pixels"), integer_at(region, "pixels"));
        assert_int_equal(integer_at(one, "pixels"), integer_at(region, "pixels"));
        if (mean != NULL) assert_true(json_equal(mean, json_object_get(one, "mean")));
    }
    long long n = (long long)json_array_size(areas);
    json_decref(counted);
    json_decref(found);
    return n;
}
