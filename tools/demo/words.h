/* The words that the demos' programs are called with. Functions return 0, or -1 where words are
 * wrong. */
#ifndef RFX_TOOLS_DEMO_WORDS_H
#define RFX_TOOLS_DEMO_WORDS_H

#include <stdint.h>

/* What an option's value is, and what `at` points to. */
enum demo_kind {
    DEMO_TEXT,  /* const char *, borrowed from argv */
    DEMO_WHOLE, /* int64_t */
    DEMO_SEED,  /* uint64_t */
    DEMO_REAL,  /* double */
};

struct demo_option {
    const char *name; /* "--seed" */
    enum demo_kind kind;
    void *at;
};

/* Reads argv[0 .. argc): names of the options, each followed by its value. */
int demo_read_options(int argc, char **argv, const struct demo_option *options, int n);

/* "HxW": a picture's rows and columns, up to 1,000,000 each. */
int demo_read_size(const char *text, int64_t *h, int64_t *w);
#endif
