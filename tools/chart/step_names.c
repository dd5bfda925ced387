/* See step_names.h. */
#include "tools/chart/step_names.h"

#include <string.h>

enum { MAX_DEPTH = 16 };

int rfx_step_name_length(const char *name, int depth) {
    int n = 0;
    for (; name[n] != '\0'; ++n) {
        /* a separator in front ("/features/0") ends no part */
        if (n > 0 && (name[n] == '.' || name[n] == '/') && --depth == 0) break;
    }
    return n;
}

static int count_runs(const char *const *names, int n, int depth) {
    int runs = 0, before = 0;
    for (int i = 0; i < n; ++i) {
        int length = rfx_step_name_length(names[i], depth);
        runs += i == 0 || length != before || strncmp(names[i], names[i - 1], (size_t)length) != 0;
        before = length;
    }
    return runs;
}

int rfx_step_name_depth(const char *const *names, int n, int most) {
    int depth = 0;
    while (depth < MAX_DEPTH && count_runs(names, n, depth + 1) <= most) ++depth;
    return depth;
}
