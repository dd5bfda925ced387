#include "words.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SIDE 1000000

static int read_value(const struct demo_option *option, const char *text) {
    char *end = NULL;
    switch (option->kind) {
        case DEMO_TEXT:
            *(const char **)option->at = text;
            return 0;
        case DEMO_WHOLE:
            *(int64_t *)option->at = strtoll(text, &end, 10);
            break;
        case DEMO_SEED:
            *(uint64_t *)option->at = strtoull(text, &end, 10);
            break;
        case DEMO_REAL:
            *(double *)option->at = strtod(text, &end);
            break;
    }
    return end == text || *end ? -1 : 0;
}

int demo_read_options(int argc, char **argv, const struct demo_option *options, int n) {
    for (int i = 0; i < argc; i += 2) {
        int k = 0;
        while (k < n && strcmp(argv[i], options[k].name) != 0) k++;
        if (k == n || i + 1 == argc || read_value(&options[k], argv[i + 1]) != 0) return -1;
    }
    return 0;
}

int demo_read_size(const char *text, int64_t *h, int64_t *w) {
    char *end;
    *h = strtoll(text, &end, 10);
    if (*end != 'x') return -1;
    *w = strtoll(end + 1, &end, 10);
    return *end || *h < 1 || *w < 1 || *h > MAX_SIDE || *w > MAX_SIDE ? -1 : 0;
}
