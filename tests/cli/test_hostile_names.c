/* Names that a model's author chose, in everything that the program prints: escape sequences, line
 * ends, quotes, turned text and bytes that are no UTF-8 reach neither the terminal nor JSON, and a
 * row of CSV stays a row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli_program.h"
#include "tests/support/makers/onnx_maker.h"

/* A window title, a cleared screen, a line end, a quote, an overlong and a broken sequence, U+202E,
 * U+009B; and what must stay as it is. */
#define EVIL                                                           \
    "\033]0;x\007\033[2J\"\nforged\r\xc0\xaf\xc3(\xe2\x80\xae\xc2\x9b" \
    "31m,\xe5\x8d\xb7"
#define SHOWN                                                                               \
    "\\x1b]0;x\\x07\\x1b[2J\"\\x0aforged\\x0d\\xc0\\xaf\\xc3(\\xe2\\x80\\xae\\xc2\\x9b31m," \
    "\xe5\x8d\xb7"

static void add_conv(struct maker *graph, const char *name, const char *in, const char *out) {
    static struct maker node;
    char inputs[256];
    (void)snprintf(inputs, sizeof inputs, "%s w", in);
    maker_node(&node, "Conv", inputs, out);
    maker_text(&node, 3, name);
    maker_attr_ints(&node, "pads", (const int64_t[]){1, 1, 1, 1}, 4);
    maker_message(graph, MAKER_NODE, &node);
}

static void save(const char *path, const char *last_op) {
    static struct maker graph, model, node;
    static float weights[3 * 3 * 9];
    graph.size = model.size = 0;
    for (int i = 0; i < 81; i++) weights[i] = 0.01f * (float)(i % 7);
    maker_value(&graph, MAKER_INPUT, "in" EVIL, (const int64_t[]){1, 3, 64, 64}, 4);
    maker_floats(&graph, "w", (const int64_t[]){3, 3, 3, 3}, 4, weights);
    add_conv(&graph, "n1" EVIL, "in" EVIL, "t1" EVIL);
    add_conv(&graph, "n2" EVIL, "t1" EVIL, "t2" EVIL);
    add_conv(&graph, "n3" EVIL, "t2" EVIL, "t3" EVIL);
    maker_node(&node, last_op, "t3" EVIL, "out" EVIL);
    maker_text(&node, 3, "n4" EVIL);
    maker_message(&graph, MAKER_NODE, &node);
    maker_value(&graph, MAKER_OUTPUT, "out" EVIL, (const int64_t[]){1, 3, 64, 64}, 4);
    maker_model(&graph, 13, &model);
    maker_save(&model, path);
}

static bool is_continuation(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Line ends, printable ASCII, and the one character of the names that may be shown, of which tables
 * may cut a piece off. */
static void expect_printable(const char *args, const char *text) {
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\n' || (*p >= 0x20 && *p < 0x7f)) continue;
        bool cut = *p == '\xe5' && (!is_continuation(p[1]) || !is_continuation(p[2]));
        if (strncmp(p, "\xe5\x8d\xb7", 3) != 0 && !cut)
            fail_msg("rfexec %s: byte %#x at \"%.40s\"", args, (unsigned)(unsigned char)*p, p);
        while (is_continuation(p[1])) p++;
    }
    if (strncmp(text, "forged", 6) == 0 || strstr(text, "\nforged") != NULL)
        fail_msg("rfexec %s: a line of its own:\n%s", args, text);
}

static void expect_clean(int code, const char *args) {
    expect(code, args);
    expect_printable(args, out_text);
    expect_printable(args, err_text);
}

static void tables_and_messages(void **state) {
    (void)state;
    static const char *const good[] = {
        "analyze evil.onnx",
        "plan evil.onnx --size 64x64",
        "plan evil.onnx --size 64x64 --tiles 2x2 -o evil.json",
        "run evil.onnx synthetic:64x64",
        "run evil.onnx synthetic:64x64 --bands 8",
        "verify evil.onnx synthetic:64x64 --naive",
        "curve evil.onnx",
        "curve evil.onnx --pareto",
        "advise evil.onnx",
        "memory evil.onnx",
        "check evil.onnx",
        "explain evil.onnx --size 64x64 --tiles 2x2",
        "bench evil.onnx --runs 1 --layers",
        "plan evil.onnx --size 64x64 --plan evil.json",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) expect_clean(0, good[i]);
    expect_clean(0, "analyze evil.onnx");
    assert_non_null(strstr(out_text, "n1\\x1b]0;x\\x07"));
    expect_clean(2, "plan evil.onnx --split t9");
    expect_clean(2, "run evil.onnx synthetic:64x64 --keep t9");
    expect_clean(4, "run evil.onnx synthetic:64x64 --memory 1MiB");
    expect_clean(3, "analyze strange.onnx");
    assert_non_null(strstr(err_text, "Strange\\x1b]0;x"));
    expect_clean(3, "check strange.onnx");
    assert_non_null(strstr(out_text, "Strange\\x1b]0;x"));
    expect_clean(3, "check strange.onnx --json");
    json_decref(document("check"));
}

static void json_is_valid(void **state) {
    (void)state;
    static const char *const commands[] = {"analyze", "plan",   "run",   "verify", "curve",
                                           "advise",  "memory", "bench", "check"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char args[128];
        bool image = strcmp(commands[i], "run") == 0 || strcmp(commands[i], "verify") == 0;
        (void)snprintf(args, sizeof args, "%s evil.onnx %s --json", commands[i],
                       image ? "synthetic:64x64" : "--size 64x64");
        expect_clean(0, args);
        json_t *doc = document(commands[i]);
        if (strcmp(commands[i], "run") == 0)
            assert_string_equal(json_string_value(at(doc, "output.name")), "out" SHOWN);
        json_decref(doc);
    }
}

/* As many fields in every row as in the first, quotes doubled. */
static void csv_keeps_its_rows(void **state) {
    (void)state;
    static const char *const commands[] = {"analyze evil.onnx --csv", "curve evil.onnx --csv",
                                           "curve evil.onnx --pareto --csv"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        expect_clean(0, commands[i]);
        int fields = 1, first = 0;
        bool quoted = false;
        for (const char *p = out_text; *p != '\0'; p++) {
            if (*p == '"') quoted = !quoted;
            fields += *p == ',' && !quoted;
            if (*p != '\n') continue;
            if (first == 0) first = fields;
            if (quoted || fields != first)
                fail_msg("rfexec %s: %d fields, not %d\n%s", commands[i], fields, first, out_text);
            fields = 1;
        }
        assert_true(first > 5);
    }
}

/* Files whose own names are like that, labels, and ids of buffers. */
static void so_do_paths_labels_and_ids(void **state) {
    (void)state;
    static const char link[] = "ln -sf evil.onnx \"$(printf '\\033[31m\\377.onnx')\"";
    expect(0, "version");
    assert_int_equal(system(link), 0);
    expect_clean(0, "analyze \"$(printf '\\033[31m\\377.onnx')\" --json");
    json_decref(document("analyze"));
    expect_clean(0, "curve \"$(printf '\\033[31m\\377.onnx')\"");
    expect_clean(0, "memory \"$(printf '\\033[31m\\377.onnx')\"");
    expect_clean(3, "run \"$(printf 'none\\033[31m\\377')\" synthetic:64x64");
    expect_clean(2, "run \"$(printf '\\033[31m\\377.onnx')\" \"$(printf -- '--\\033[31m\\377')\"");
    write_file("labels.txt", "zero\033[31m\none\xff\033[32m\ntwo\n");
    expect_clean(0, "run squeezenet1_1 synthetic:64x64 --labels labels.txt --top 1000");
    expect_clean(0, "run squeezenet1_1 synthetic:64x64 --labels labels.txt --top 1000 --json");
    json_decref(document("run"));
    write_file("ids.csv", "id,lower,upper,size\na\xff,0,3,4\n");
    expect_clean(3, "alloc ids.csv");
    write_file("ids.csv", "id,lower,upper,size\n\xe5\x8d\xb7,0,3,4\n");
    expect_clean(0, "alloc ids.csv --json");
    json_decref(document("alloc"));
}

int main(void) {
    save("evil.onnx", "Relu");
    save("strange.onnx", "Strange" EVIL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_and_messages),
        cmocka_unit_test(json_is_valid),
        cmocka_unit_test(csv_keeps_its_rows),
        cmocka_unit_test(so_do_paths_labels_and_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
