/* Packing problems whose answer is known: they are cut out of a rectangle of time x bytes, so that
 * its height is a capacity that is enough.
 *
 * But for two families of random items and the families that say otherwise the rectangle is full at
 * some time at least: capacity, bound and optimum are the same. A problem is a function of family,
 * seed and numbers of records, on every machine. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_PACKING_CASES_H
#define RFX_TESTS_SUPPORT_RANDOM_PACKING_CASES_H

#include "tiler/arena/arena_problem.h"

enum packing_shape {
    PACKING_CUTS,    /* straight cuts, again and again */
    PACKING_SPIRALS, /* every other cut is a spiral of five pieces, which no straight cuts can do */
    PACKING_WINDOWS, /* stacks of few sizes over the same windows, between few times */
    PACKING_CHAINS,  /* some 15 live at a time; groups that end make room for the next at once */
    PACKING_RANDOM,  /* lifetimes and sizes of all magnitudes at random: no capacity is known */
    PACKING_RANDOM_LONG, /* the same, with lifetimes of up to a 20th of the time, evenly */
};

struct packing_family {
    const char *name;
    enum packing_shape shape;
    size_t bytes;        /* the rectangle's height */
    int gone_in_hundred; /* records taken away again */
    int percent;         /* each record is made smaller by up to so many percent */
    bool nowhere_full;   /* this at all times; else not at one time, the fullest */
};

extern const struct packing_family packing_families[];
extern const int packing_n_families;

/* The family of a name; NULL: none. */
const struct packing_family *packing_find(const char *name);

struct packing_case {
    struct rfx_place_item *items; /* malloc'ed; in random order */
    int n;
    size_t capacity; /* is enough; 0: none is known */
};

/* Makes a problem of min .. max records before some are taken away (spirals: up to four more). */
struct packing_case packing_make(const struct packing_family *family, uint64_t seed, int min,
                                 int max);
#endif
