/* Cutting rectangles; see packing_cases.h. */
#include "tests/support/random/packing_cases.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test_util.h"

enum { MIB = 1 << 20, BLOCK = 1024, UNIT = 8 * BLOCK };

const struct packing_family packing_families[] = {
    {"cuts", PACKING_CUTS, MIB, 0, 0, false},
    {"spirals", PACKING_SPIRALS, MIB, 0, 0, false},
    {"cuts-few-sizes", PACKING_CUTS, 256, 0, 0, false},
    {"spirals-few-sizes", PACKING_SPIRALS, 256, 0, 0, false},
    {"windows", PACKING_WINDOWS, MIB, 0, 0, false},
    {"windows-gone", PACKING_WINDOWS, MIB, 5, 0, false},
    {"chains", PACKING_CHAINS, MIB, 0, 0, false},
    {"chains-gone", PACKING_CHAINS, MIB, 10, 0, false},
    {"chains-gone-30", PACKING_CHAINS, MIB, 30, 0, false},
    {"chains-slack-1", PACKING_CHAINS, MIB, 0, 1, false},
    {"chains-slack-10", PACKING_CHAINS, MIB, 0, 10, false},
    {"cuts-slack-5", PACKING_CUTS, MIB, 0, 5, false},
    {"spirals-gone", PACKING_SPIRALS, MIB, 5, 0, false},
    {"spirals-slack-1", PACKING_SPIRALS, MIB, 0, 1, false},
    {"spirals-slack-5", PACKING_SPIRALS, MIB, 0, 5, false},
    {"spirals-slack-10", PACKING_SPIRALS, MIB, 0, 10, false},
    {"cuts-smaller-5", PACKING_CUTS, MIB, 0, 5, true},
    {"spirals-smaller-5", PACKING_SPIRALS, MIB, 0, 5, true},
    {"random", PACKING_RANDOM, 0, 0, 0, true},
    {"random-long", PACKING_RANDOM_LONG, 0, 0, 0, true},
};
const int packing_n_families = sizeof packing_families / sizeof *packing_families;

const struct packing_family *packing_find(const char *name) {
    for (int k = 0; k < packing_n_families; k++)
        if (strcmp(packing_families[k].name, name) == 0) return &packing_families[k];
    return NULL;
}

struct piece {
    int64_t lo, hi, bottom, top;
};

/* Pieces of a rectangle; room for `max` of them and one more cut. */
struct cutting {
    struct piece *pieces;
    int n, max;
    struct test_rng rng;
};

static int64_t draw(struct cutting *c, int64_t lo, int64_t hi) {
    return test_rng_int(&c->rng, lo, hi);
}

/* Cuts piece i into five round a spiral; false: it is too small. */
static bool cut_spiral(struct cutting *c, int i) {
    struct piece p = c->pieces[i];
    if (p.hi - p.lo < 3 || p.top - p.bottom < 3) return false;
    int64_t t1 = draw(c, p.lo + 1, p.hi - 2);
    int64_t t2 = draw(c, t1 + 1, p.hi - 1);
    int64_t b1 = draw(c, p.bottom + 1, p.top - 2);
    int64_t b2 = draw(c, b1 + 1, p.top - 1);
    const struct piece five[] = {{p.lo, t1, p.bottom, b2},
                                 {t1, p.hi, p.bottom, b1},
                                 {t2, p.hi, b1, p.top},
                                 {p.lo, t2, b2, p.top},
                                 {t1, t2, b1, b2}};
    c->pieces[i] = five[0];
    for (int k = 1; k < 5; k++) c->pieces[c->n++] = five[k];
    return true;
}

/* Cuts piece i in two, across time or across bytes at a multiple of `unit`. */
static void cut_straight(struct cutting *c, int i, int64_t unit) {
    struct piece *a = &c->pieces[i];
    struct piece b = *a;
    if (test_rng_chance(&c->rng, 50)) {
        if (a->hi - a->lo < 2) return;
        a->hi = b.lo = draw(c, a->lo + 1, a->hi - 1);
    } else {
        if (a->top - a->bottom < 2 * unit) return;
        a->top = b.bottom = a->bottom + unit * draw(c, 1, (a->top - a->bottom) / unit - 1);
    }
    c->pieces[c->n++] = b;
}

static int64_t area(const struct piece *p) {
    return (p->hi - p->lo) * (p->top - p->bottom);
}

/* Cuts a rectangle, larger pieces more often, until there are n. */
static void cut(struct cutting *c, struct piece whole, int n, int64_t unit, bool spirals) {
    c->pieces[0] = whole;
    c->n = 1;
    while (c->n < n) {
        int i = (int)draw(c, 0, c->n - 1);
        int other = (int)draw(c, 0, c->n - 1);
        if (area(&c->pieces[other]) > area(&c->pieces[i])) i = other;
        if (spirals && test_rng_chance(&c->rng, 50) && cut_spiral(c, i)) continue;
        cut_straight(c, i, unit);
    }
}

/* A rectangle between few times, cut into windows, each of them filled with few sizes. */
static void stack_windows(struct cutting *c, int n, int64_t bytes) {
    static const int64_t units[] = {1, 2, 3, 4, 6, 8, 12};
    struct piece whole = {0, n / 12, 0, bytes};
    cut(c, whole, n / 4, UNIT, false);
    for (int i = 0; i < c->n && c->n < n; i++) {
        int64_t size = UNIT * units[draw(c, 0, sizeof units / sizeof *units - 1)];
        struct piece rest = c->pieces[i];
        if (rest.top - rest.bottom <= size) continue;
        c->pieces[i].top = rest.bottom = rest.bottom + size;
        c->pieces[c->n++] = rest; /* is looked at later */
    }
}

/* Sizes of a record of a chain: 32 to 108 KiB of 1 MiB, as accelerators' compilers meet them. */
static const int64_t smallest_link = 32 * BLOCK, largest_link = 108 * BLOCK;

/* Fills the bytes [bottom, top) from time t on with pieces on top of each other; their number, 0:
 * they do not come out. */
static int stack_links(struct cutting *c, int64_t t, int64_t bottom, int64_t top,
                       struct piece *out) {
    int n = 0;
    while (bottom < top) {
        int64_t left = top - bottom;
        int64_t size = BLOCK * draw(c, smallest_link / BLOCK, largest_link / BLOCK);
        if (left <= largest_link && (n > 0 || test_rng_chance(&c->rng, 30))) size = left;
        if (size > left || (size < left && left - size < smallest_link)) return 0;
        struct piece link = {t, -1, bottom, bottom + size};
        out[n++] = link;
        bottom += size;
    }
    return n;
}

/* Ends some of the n live pieces, which lie one above the other, at time t and begins others in
 * their place; returns the number that live. */
static int end_group(struct cutting *c, int64_t t, struct piece *live, int n) {
    struct piece with[64];
    int first = (int)draw(c, 0, n - 1);
    int count = (int)draw(c, 1, 4);
    if (first + count > n) return n;
    for (int i = first; i < first + count; i++)
        if (live[i].lo == t) return n;
    int n_with = stack_links(c, t, live[first].bottom, live[first + count - 1].top, with);
    if (n_with == 0) return n;
    for (int i = first; i < first + count; i++) {
        live[i].hi = t;
        c->pieces[c->n++] = live[i];
    }
    memmove(&live[first + n_with], &live[first + count],
            (size_t)(n - first - count) * sizeof *live);
    memcpy(&live[first], with, (size_t)n_with * sizeof *live);
    return n - count + n_with;
}

static void link_chains(struct cutting *c, int n, int64_t bytes) {
    struct piece live[64];
    int n_live = 0;
    int64_t t = 0;
    while (n_live == 0) n_live = stack_links(c, t, 0, bytes, live);
    for (c->n = 0; c->n + n_live < n;) {
        t++;
        for (int64_t groups = draw(c, 1, 3); groups > 0 && c->n + n_live < n; groups--)
            n_live = end_group(c, t, live, n_live);
    }
    for (int i = 0; i < n_live; i++) {
        live[i].hi = t + 1;
        c->pieces[c->n++] = live[i];
    }
}

/* Up to `most`, of all magnitudes down to its 2^halves-th part. Two statements: operands are
 * evaluated in any order. */
static int64_t draw_small(struct cutting *c, int64_t most, int64_t halves) {
    int64_t whole = draw(c, 0, most);
    return whole >> draw(c, 0, halves);
}

/* Items of 16 to 65,536 bytes; four times per item, so that most sections have one event. */
static void draw_items(struct cutting *c, int n, bool are_long) {
    int64_t end = 4 * (int64_t)n;
    for (c->n = 0; c->n < n; c->n++) {
        int64_t length = draw_small(c, end / 10, 20) + 1;
        if (are_long) length = 1 + draw(c, 0, end / 20);
        int64_t lo = draw(c, 0, end - length);
        int64_t size = 16 * (draw_small(c, 4095, 11) + 1);
        c->pieces[c->n] = (struct piece){lo, lo + length, 0, size};
    }
}

static void shuffle(struct cutting *c) {
    for (int i = c->n - 1; i > 0; i--) { /* no hint in the order */
        int j = (int)draw(c, 0, i);
        struct piece swap = c->pieces[i];
        c->pieces[i] = c->pieces[j];
        c->pieces[j] = swap;
    }
}

/* Takes away and makes smaller what does not live at the time `keep` (negative: anything). Returns
 * the number of records. */
static int loosen(struct cutting *c, const struct packing_family *family, int64_t keep,
                  struct rfx_place_item *items) {
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        const struct piece *p = &c->pieces[i];
        struct rfx_place_item item = {p->lo, p->hi, (size_t)(p->top - p->bottom), 1};
        bool kept = keep >= p->lo && keep < p->hi;
        if (!kept && test_rng_chance(&c->rng, family->gone_in_hundred)) continue;
        if (!kept && family->percent > 0)
            item.size -= item.size * (size_t)draw(c, 0, 100 * family->percent) / 10000;
        items[n++] = item;
    }
    return n;
}

struct packing_case packing_make(const struct packing_family *family, uint64_t seed, int min,
                                 int max) {
    struct cutting c = {.max = max, .rng = test_rng_make(seed)};
    size_t room = (size_t)max + 128; /* a spiral's pieces, links that live at the end */
    struct packing_case made = {.capacity = family->bytes};
    int n = (int)draw(&c, min, max);
    struct piece whole = {0, n / 2 > 200 ? n / 2 : 200, 0, (int64_t)family->bytes};
    c.pieces = malloc(room * sizeof *c.pieces);
    made.items = malloc(room * sizeof *made.items);
    if (c.pieces == NULL || made.items == NULL) abort();
    if (family->shape == PACKING_WINDOWS)
        stack_windows(&c, n, whole.top);
    else if (family->shape == PACKING_CHAINS)
        link_chains(&c, n, whole.top);
    else if (family->shape == PACKING_RANDOM || family->shape == PACKING_RANDOM_LONG)
        draw_items(&c, n, family->shape == PACKING_RANDOM_LONG);
    else
        cut(&c, whole, n, 1, family->shape == PACKING_SPIRALS);
    shuffle(&c);
    int64_t end = 0;
    for (int i = 0; i < c.n; i++)
        if (c.pieces[i].hi > end) end = c.pieces[i].hi;
    int64_t keep = draw(&c, 0, end - 1);
    made.n = loosen(&c, family, family->nowhere_full ? -1 : keep, made.items);
    free(c.pieces);
    return made;
}
