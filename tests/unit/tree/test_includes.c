/* Holds the direction of includes: tools -> rfexec -> tiler -> rf_analysis -> layers. A folder
 * includes its own headers and those of folders to its right; tests and data are included by none.
 * Reads the #include lines of every source and header below the five folders. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const folders[] = {"tools", "rfexec", "tiler", "rf_analysis", "layers"};
static const char *const forbidden[] = {"tests", "data", "docs"};
enum { N_FOLDERS = 5, N_FORBIDDEN = 3 };

static int files_read, lines_checked, violations;

/* Index of the first path component among names, or -1. */
static int component_index(const char *path, const char *const *names, int n) {
    size_t length = strcspn(path, "/");
    if (path[length] != '/') return -1;
    for (int i = 0; i < n; ++i)
        if (strlen(names[i]) == length && strncmp(names[i], path, length) == 0) return i;
    return -1;
}

/* The path of an #include line in `target`; 0 when the line is none. */
static int include_path(const char *line, char *target, size_t size) {
    while (*line == ' ' || *line == '\t') ++line;
    if (*line++ != '#') return 0;
    while (*line == ' ' || *line == '\t') ++line;
    if (strncmp(line, "include", 7) != 0) return 0;
    line += 7;
    while (*line == ' ' || *line == '\t') ++line;
    if (*line != '"' && *line != '<') return 0;
    size_t length = strcspn(line + 1, "\">\n");
    if (length >= size) return 0;
    memcpy(target, line + 1, length);
    target[length] = '\0';
    return 1;
}

/* Whether a file in folders[own] may hold this line. */
static int line_is_allowed(int own, const char *line) {
    char target[512];
    if (!include_path(line, target, sizeof target)) return 1;
    if (strstr(target, "..") != NULL) return 0;
    if (component_index(target, forbidden, N_FORBIDDEN) >= 0) return 0;
    int other = component_index(target, folders, N_FOLDERS);
    return other < 0 || other >= own;
}

static int is_source(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot != NULL && (strcmp(dot, ".c") == 0 || strcmp(dot, ".h") == 0);
}

static int own_folder; /* nftw has no user pointer */

static int visit(const char *path, const struct stat *info, int kind, struct FTW *ftw) {
    (void)info;
    (void)ftw;
    char line[1024];
    if (kind != FTW_F || !is_source(path)) return 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    files_read++;
    for (int number = 1; fgets(line, sizeof line, file) != NULL; ++number) {
        lines_checked += strstr(line, "#include") != NULL;
        if (line_is_allowed(own_folder, line)) continue;
        violations++;
        print_error("%s:%d: %s", path, number, line);
    }
    (void)fclose(file);
    return 0;
}

static void test_tree(void **state) {
    (void)state;
    for (own_folder = 0; own_folder < N_FOLDERS; ++own_folder) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", RFX_SOURCE_DIR, folders[own_folder]);
        int before = files_read;
        assert_int_equal(nftw(path, visit, 16, FTW_PHYS), 0);
        assert_true(files_read > before); /* a folder that is not found checks nothing */
    }
    assert_true(lines_checked > 100);
    assert_int_equal(violations, 0);
}

static void test_rule(void **state) {
    static const struct {
        int own;
        const char *line;
        int allowed;
    } cases[] = {
        {4, "#include \"layers/op.h\"\n", 1},
        {4, "#include \"rf_analysis/analysis.h\"\n", 0},
        {4, "#include <tiler/plan.h>\n", 0},
        {4, "  #  include \"rfexec/model.h\"\n", 0},
        {3, "#include \"layers/op.h\"\n", 1},
        {3, "#include \"tiler/plan.h\"\n", 0},
        {2, "#include \"rf_analysis/analysis.h\"\n", 1},
        {2, "#include \"rfexec/rfexec.h\"\n", 0},
        {1, "#include \"tiler/plan.h\"\n", 1},
        {1, "#include \"tools/report.h\"\n", 0},
        {1, "#include \"../tools/report.h\"\n", 0},
        {1, "#include \"tests/support/naive.h\"\n", 0},
        {0, "#include \"layers/op.h\"\n", 1},
        {0, "#include \"rfexec/rfexec.h\"\n", 1},
        {4, "#include <sys/mman.h>\n", 1},
        {4, "/* see \"tools/report.h\" */\n", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        if (line_is_allowed(cases[i].own, cases[i].line) != cases[i].allowed)
            fail_msg("%s: %s", folders[cases[i].own], cases[i].line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_tree),
    };
    return cmocka_run_group_tests_name("includes", tests, NULL, NULL);
}
