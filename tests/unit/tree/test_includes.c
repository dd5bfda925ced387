/* Holds the tree to its rules, by the #include lines of every source and header:
 * 1. tools -> rfexec -> tiler -> rf_analysis -> layers: a folder includes its own headers and those
 *    of folders to its right; tests and data are included by none; sub-folders of a folder have an
 *    order too (sub_folders);
 * 2. no file includes itself through others.
 * Folders of any depth are read. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const folders[] = {"tools", "rfexec", "tiler", "rf_analysis", "layers"};
static const char *const forbidden[] = {"tests", "data", "docs"};
enum { N_FOLDERS = 5, N_FORBIDDEN = 3, MAX_FILES = 2000, MAX_LINKS = 40000 };

/* Sub-folders of one folder, from those that include to those that are included, such as
 * {"layers/ops", "layers/conv", "layers/graph", "layers/core"}: a file of one may include its own
 * and those to its right. Sub-folders in no row are free. NULL ends a row. */
static const char *const sub_folders[][14] = {
    {"layers/tensor_ops", "layers/ops", "layers/conv", "layers/kernels", "layers/fuse",
     "layers/graph", "layers/core"},
    {"tiler/search", "tiler/cost", "tiler/modes", "tiler/plan", "tiler/arena"},
    {"rfexec/api", "rfexec/shards", "rfexec/builtin", "rfexec/quantise", "rfexec/onnx/export",
     "rfexec/onnx/import", "rfexec/onnx/file", "rfexec/run", "rfexec/late", "rfexec/answers",
     "rfexec/output", "rfexec/image"},
    {"tools/mpi", "tools/commands", "tools/report", "tools/cli", "tools/study"},
};

/* The files of a tree, and which includes which. */
struct tree {
    char *paths[MAX_FILES]; /* from the top of the tree */
    bool seen[MAX_FILES], open[MAX_FILES];
    int n_files, n_links;
    struct {
        int from, to;
    } links[MAX_LINKS];
    int stack[MAX_FILES], depth; /* of the walk; a circle when it is left above 0 */
};

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

/* Whether `path` lies below `folder`. */
static bool is_below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Whether a file may include another, by one row of sub-folders. */
static bool sub_folder_allows(const char *const *row, const char *from, const char *to) {
    int own = -1, other = -1;
    for (int i = 0; row[i] != NULL; i++) {
        if (is_below(from, row[i])) own = i;
        if (is_below(to, row[i])) other = i;
    }
    return own < 0 || other < 0 || other >= own;
}

static int find_file(const struct tree *tree, const char *path) {
    for (int i = 0; i < tree->n_files; i++)
        if (strcmp(tree->paths[i], path) == 0) return i;
    return -1;
}

static int add_file(struct tree *tree, const char *path) {
    assert_true(tree->n_files < MAX_FILES);
    tree->paths[tree->n_files] = strdup(path);
    return tree->n_files++;
}

static void add_link(struct tree *tree, int from, int to) {
    assert_true(tree->n_links < MAX_LINKS);
    tree->links[tree->n_links].from = from;
    tree->links[tree->n_links++].to = to;
}

static void free_tree(struct tree *tree) {
    for (int i = 0; i < tree->n_files; i++) free(tree->paths[i]);
    free(tree);
}

/* Walks from one file; true when it meets a file that is still open. The stack then ends with the
 * circle. No recursion: each round goes on from the last file of the stack. */
static bool walk_into_circle(struct tree *tree, int start, int *next) {
    tree->depth = 0;
    tree->stack[tree->depth++] = start;
    tree->seen[start] = tree->open[start] = true;
    next[start] = 0;
    while (tree->depth > 0) {
        int at = tree->stack[tree->depth - 1];
        while (next[at] < tree->n_links && tree->links[next[at]].from != at) next[at]++;
        if (next[at] == tree->n_links) {
            tree->open[at] = false;
            tree->depth--;
            continue;
        }
        int to = tree->links[next[at]++].to;
        if (!tree->seen[to]) next[to] = 0;
        bool was_open = tree->open[to], was_seen = tree->seen[to];
        if (was_seen && !was_open) continue;
        tree->stack[tree->depth++] = to;
        tree->seen[to] = tree->open[to] = true;
        if (was_open) return true;
    }
    return false;
}

/* "a.h -> b.h -> a.h" of the first circle; false when there is none. */
static bool find_circle(struct tree *tree, char *text, size_t size) {
    static int next[MAX_FILES];
    for (int i = 0; i < tree->n_files; i++) tree->seen[i] = tree->open[i] = false;
    for (int i = 0; i < tree->n_files; i++) {
        if (tree->seen[i] || !walk_into_circle(tree, i, next)) continue;
        int first = 0, last = tree->stack[tree->depth - 1];
        while (tree->stack[first] != last) first++;
        text[0] = '\0';
        for (int k = first; k < tree->depth; k++) {
            size_t used = strlen(text);
            (void)snprintf(text + used, size - used, "%s%s", k == first ? "" : " -> ",
                           tree->paths[tree->stack[k]]);
        }
        return true;
    }
    return false;
}

static int is_source(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot != NULL && (strcmp(dot, ".c") == 0 || strcmp(dot, ".h") == 0);
}

static int own_folder; /* nftw has no user pointer */
static struct tree *real;

static const char *below_top(const char *path) {
    return path + strlen(RFX_SOURCE_DIR) + 1;
}

static int list_file(const char *path, const struct stat *info, int kind, struct FTW *ftw) {
    (void)info;
    (void)ftw;
    if (kind == FTW_F && is_source(path)) (void)add_file(real, below_top(path));
    return 0;
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
    (void)fclose(file);
    return text;
}

/* Holds one #include line to rule 1 and the order of sub-folders, and adds its link. */
static void check_line(int file, int number, const char *line) {
    char target[512];
    const char *path = real->paths[file];
    bool allowed = line_is_allowed(own_folder, line);
    if (include_path(line, target, sizeof target)) {
        lines_checked++;
        int to = find_file(real, target);
        if (to >= 0) add_link(real, file, to);
        for (size_t i = 0; i < sizeof sub_folders / sizeof sub_folders[0]; i++)
            allowed = allowed && sub_folder_allows(sub_folders[i], path, target);
    }
    if (allowed) return;
    violations++;
    print_error("%s:%d: %.*s\n", path, number, (int)strcspn(line, "\n"), line);
}

static void check_file(int file) {
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", RFX_SOURCE_DIR, real->paths[file]);
    char *text = read_text(path);
    files_read++;
    int number = 1;
    for (const char *line = text; *line != '\0'; number++) {
        check_line(file, number, line);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    free(text);
}

static void test_tree(void **state) {
    (void)state;
    char circle[4096];
    real = calloc(1, sizeof *real);
    assert_non_null(real);
    for (int i = 0; i < N_FOLDERS; ++i) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", RFX_SOURCE_DIR, folders[i]);
        int before = real->n_files;
        assert_int_equal(nftw(path, list_file, 16, FTW_PHYS), 0);
        assert_true(real->n_files > before); /* a folder that is not found checks nothing */
    }
    for (int i = 0; i < real->n_files; i++) {
        own_folder = component_index(real->paths[i], folders, N_FOLDERS);
        check_file(i);
    }
    assert_true(lines_checked > 100);
    assert_true(real->n_links > 100);
    if (find_circle(real, circle, sizeof circle)) fail_msg("include circle: %s", circle);
    free_tree(real);
    assert_int_equal(violations, 0);
}

static void test_circles(void **state) {
    (void)state;
    char text[200];
    struct tree *tree = calloc(1, sizeof *tree);
    int a = add_file(tree, "layers/a.h"), b = add_file(tree, "layers/ops/b.h");
    int c = add_file(tree, "c.h"), d = add_file(tree, "d.c");
    add_link(tree, d, a);
    add_link(tree, d, c);
    add_link(tree, a, b);
    add_link(tree, a, c);
    add_link(tree, b, c);
    assert_false(find_circle(tree, text, sizeof text)); /* c twice is none */
    add_link(tree, c, a);
    assert_true(find_circle(tree, text, sizeof text));
    assert_string_equal(text, "layers/a.h -> layers/ops/b.h -> c.h -> layers/a.h");
    tree->n_links = 0;
    add_link(tree, d, d);
    assert_true(find_circle(tree, text, sizeof text));
    assert_string_equal(text, "d.c -> d.c");
    free_tree(tree);
}

static void test_sub_folder_order(void **state) {
    (void)state;
    static const char *const row[] = {"layers/ops", "layers/graph", "layers/core", NULL};
    assert_true(sub_folder_allows(row, "layers/ops/a.c", "layers/core/b.h"));
    assert_true(sub_folder_allows(row, "layers/ops/a.c", "layers/ops/b.h"));
    assert_false(sub_folder_allows(row, "layers/core/deep/a.c", "layers/graph/b.h"));
    assert_false(sub_folder_allows(row, "layers/graph/a.c", "layers/ops/b.h"));
    assert_true(sub_folder_allows(row, "layers/corex/a.c", "layers/ops/b.h"));
    assert_true(sub_folder_allows(row, "tiler/a.c", "layers/ops/b.h"));
}

static void test_rule(void **state) {
    static const struct {
        int own;
        const char *line;
        int allowed;
    } cases[] = {
        {4, "#include \"layers/graph/op.h\"\n", 1},
        {4, "#include \"rf_analysis/analysis.h\"\n", 0},
        {4, "#include <tiler/plan/plan.h>\n", 0},
        {4, "  #  include \"rfexec/run/model.h\"\n", 0},
        {3, "#include \"layers/graph/op.h\"\n", 1},
        {3, "#include \"tiler/plan/plan.h\"\n", 0},
        {2, "#include \"rf_analysis/analysis.h\"\n", 1},
        {2, "#include \"rfexec/rfexec.h\"\n", 0},
        {1, "#include \"tiler/plan/plan.h\"\n", 1},
        {1, "#include \"tools/cli/report.h\"\n", 0},
        {1, "#include \"../tools/report.h\"\n", 0},
        {1, "#include \"tests/support/naive.h\"\n", 0},
        {0, "#include \"layers/graph/op.h\"\n", 1},
        {0, "#include \"rfexec/rfexec.h\"\n", 1},
        {4, "#include <sys/mman.h>\n", 1},
        {4, "/* see \"tools/cli/report.h\" */\n", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        if (line_is_allowed(cases[i].own, cases[i].line) != cases[i].allowed)
            fail_msg("%s: %s", folders[cases[i].own], cases[i].line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_circles),
        cmocka_unit_test(test_sub_folder_order),
        cmocka_unit_test(test_tree),
    };
    return cmocka_run_group_tests_name("includes", tests, NULL, NULL);
}
