/* Sums of what is known to lie below and above; see clauses_state.h. */
#include <string.h>

#include "tiler/clauses/clauses_state.h"

enum { BITS = 64, HEADER = 3 };

bool rfx_clauses_set_heights(struct rfx_clauses *c, const struct rfx_clauses_item *items,
                             int n_sections, int height) {
    struct rfx_clauses_heights *h = &c->heights;
    size_t n = (size_t)c->orders.n, all = n * (size_t)n_sections;
    *h = (struct rfx_clauses_heights){.mem = c->mem, .n_sections = n_sections, .height = height};
    h->items = rfx_memory_alloc(c->mem, n * sizeof *h->items);
    h->under = rfx_memory_calloc(c->mem, all, sizeof *h->under);
    h->over = rfx_memory_calloc(c->mem, all, sizeof *h->over);
    h->starts = rfx_memory_calloc(c->mem, (size_t)c->n + 1, sizeof *h->starts);
    if (h->items == NULL || h->under == NULL || h->over == NULL || h->starts == NULL) return false;
    memcpy(h->items, items, n * sizeof *items);
    return true;
}

void rfx_clauses_release_heights(struct rfx_clauses_heights *h) {
    if (h->mem == NULL) return; /* none were set */
    void *const blocks[] = {h->items, h->under, h->over, h->starts, h->reasons};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(h->mem, blocks[i]);
}

void rfx_clauses_begin_heights(struct rfx_clauses *c) {
    if (c->heights.n_sections > 0) c->heights.starts[c->n_levels] = c->heights.n_reasons;
}

void rfx_clauses_drop_heights(struct rfx_clauses *c, int level) {
    if (c->heights.n_sections > 0) c->heights.n_reasons = c->heights.starts[level];
}

/* Sections in which two items live, or one. */
struct span {
    int begin, end;
};

static struct span span_of(const struct rfx_clauses_heights *h, int i, int j) {
    const struct rfx_clauses_item *a = &h->items[i];
    const struct rfx_clauses_item *b = &h->items[j];
    return (struct span){a->begin > b->begin ? a->begin : b->begin,
                         a->end < b->end ? a->end : b->end};
}

static int *sums_of(const struct rfx_clauses_heights *h, int *sums, int item) {
    return &sums[(size_t)item * (size_t)h->n_sections];
}

static void add(int *sums, struct span span, int size) {
    for (int s = span.begin; s < span.end; s++) sums[s] += size;
}

void rfx_clauses_note_heights(struct rfx_clauses_heights *h, int low, int high, bool is_true) {
    struct span span = span_of(h, low, high);
    int sign = is_true ? 1 : -1;
    add(sums_of(h, h->under, high), span, sign * h->items[low].size);
    add(sums_of(h, h->over, low), span, sign * h->items[high].size);
}

static int most_of(const int *sums, struct span span) {
    int most = 0;
    for (int s = span.begin; s < span.end; s++) most = sums[s] > most ? sums[s] : most;
    return most;
}

static int section_of(const int *sums, struct span span, int sum) {
    int s = span.begin;
    while (sums[s] != sum) s++;
    return s;
}

/* A clause that is being written: what lies under an item in a section, and over it in another,
 * is by `spare` higher than it would have to be. */
struct reason {
    int item, spare;
    int *literals, n;
    uint64_t origins;
};

/* The literals that say what of a set lives in a section, without those that are not needed. */
static void say_why(const struct rfx_clauses *c, struct reason *r, const uint64_t *set, int section,
                    bool is_under) {
    const struct rfx_clauses_heights *h = &c->heights;
    const struct rfx_clauses_orders *o = &c->orders;
    for (int w = 0; w < o->words; w++)
        for (uint64_t left = set[w]; left != 0; left &= left - 1) {
            int other = w * BITS + __builtin_ctzll(left);
            const struct rfx_clauses_item *item = &h->items[other];
            if (section < item->begin || section >= item->end) continue;
            if (item->size <= r->spare) {
                r->spare -= item->size;
                continue;
            }
            int low = is_under ? other : r->item;
            int high = is_under ? r->item : other;
            r->literals[r->n++] = rfx_clauses_below(o->pair, o->n, low, high) ^ 1;
            r->origins |= item->origin;
        }
}

static const uint64_t *set_of(const struct rfx_clauses_orders *o, const uint64_t *sets, int item) {
    return &sets[(size_t)item * (size_t)o->words];
}

/* Writes why an item cannot lie over what does in one section and under what does in another, or
 * why a literal of it is true then (-1: none). CLAUSES_NONE: no memory. */
static uint32_t write_reason(struct rfx_clauses *c, int item, const int sections[2], int spare,
                             int literal, int other) {
    struct rfx_clauses_heights *h = &c->heights;
    const struct rfx_clauses_orders *o = &c->orders;
    size_t wanted = h->n_reasons + HEADER + 1 + 2 * (size_t)o->n; /* more than can live */
    int *reasons =
        rfx_memory_reserve(c->mem, h->reasons, &h->reasons_capacity, wanted, sizeof *h->reasons);
    if (reasons != NULL) h->reasons = reasons;
    if (reasons == NULL || wanted >= CLAUSES_CYCLE - CLAUSES_HEIGHT) {
        c->has_no_memory = true;
        return CLAUSES_NONE;
    }
    size_t at = h->n_reasons;
    struct reason r = {.item = item,
                       .spare = spare,
                       .literals = &reasons[at + HEADER],
                       .origins = h->items[item].origin};
    if (literal >= 0) {
        r.literals[r.n++] = literal;
        r.origins |= h->items[other].origin;
    }
    say_why(c, &r, set_of(o, o->before, item), sections[0], true);
    say_why(c, &r, set_of(o, o->after, item), sections[1], false);
    memcpy(&reasons[at], &r.origins, sizeof r.origins);
    reasons[at + HEADER - 1] = r.n;
    h->n_reasons = at + HEADER + (size_t)r.n;
    return CLAUSES_HEIGHT + (uint32_t)at;
}

struct rfx_clauses_view rfx_clauses_view_height(const struct rfx_clauses *c, uint32_t clause) {
    const int *at = &c->heights.reasons[clause - CLAUSES_HEIGHT];
    struct rfx_clauses_view view = {&at[HEADER], at[HEADER - 1], 0};
    memcpy(&view.origins, at, sizeof view.origins);
    return view;
}

/* An item with the most that lies under and over it in any section. */
struct place {
    int item;
    struct span span;
    const int *under, *over;
    int most_under, most_over;
};

static void look(struct place *p) {
    p->most_under = most_of(p->under, p->span);
    p->most_over = most_of(p->over, p->span);
}

/* What is missing for an item to lie there with so much under and over it; <= 0: nothing. */
static int excess_of(const struct rfx_clauses_heights *h, const struct place *p, int under,
                     int over) {
    return under + h->items[p->item].size + over - h->height;
}

/* Draws the conclusion where another item, so far open, cannot lie under (or over) this one; false:
 * it can, or there is no memory. */
static bool conclude(struct rfx_clauses *c, const struct place *p, int other, bool is_under) {
    const struct rfx_clauses_heights *h = &c->heights;
    const struct rfx_clauses_orders *o = &c->orders;
    struct span common = span_of(h, p->item, other);
    const int *sums = is_under ? p->under : p->over;
    int size = h->items[other].size, most = most_of(sums, common);
    int excess = is_under ? excess_of(h, p, most + size, p->most_over)
                          : excess_of(h, p, p->most_under, most + size);
    if (excess <= 0) return false;
    int here = section_of(sums, common, most);
    int sections[] = {is_under ? here : section_of(p->under, p->span, p->most_under),
                      is_under ? section_of(p->over, p->span, p->most_over) : here};
    int literal =
        rfx_clauses_below(o->pair, o->n, is_under ? p->item : other, is_under ? other : p->item);
    uint32_t reason = write_reason(c, p->item, sections, excess - 1, literal, other);
    if (reason == CLAUSES_NONE) return false;
    rfx_clauses_assign(c, literal, reason);
    return true;
}

static uint32_t propagate_item(struct rfx_clauses *c, int item) {
    const struct rfx_clauses_heights *h = &c->heights;
    const struct rfx_clauses_orders *o = &c->orders;
    struct place p = {.item = item,
                      .span = span_of(h, item, item),
                      .under = sums_of(h, h->under, item),
                      .over = sums_of(h, h->over, item)};
    look(&p);
    int excess = excess_of(h, &p, p.most_under, p.most_over);
    if (excess > 0) {
        int sections[] = {section_of(p.under, p.span, p.most_under),
                          section_of(p.over, p.span, p.most_over)};
        return write_reason(c, item, sections, excess - 1, -1, -1);
    }
    const uint64_t *pairs = set_of(o, o->pairs, item);
    const uint64_t *after = set_of(o, o->after, item);
    const uint64_t *before = set_of(o, o->before, item);
    for (int w = 0; w < o->words; w++)
        for (uint64_t left = pairs[w] & ~after[w] & ~before[w]; left != 0; left &= left - 1) {
            int other = w * BITS + __builtin_ctzll(left);
            if (h->items[other].size <= -excess) continue; /* fits wherever it lies */
            if (conclude(c, &p, other, true) || conclude(c, &p, other, false)) look(&p);
        }
    return CLAUSES_NONE;
}

uint32_t rfx_clauses_propagate_heights(struct rfx_clauses *c, int literal) {
    int low, high;
    if (c->heights.n_sections == 0 || !rfx_clauses_items_of(&c->orders, literal, &low, &high))
        return CLAUSES_NONE;
    uint32_t conflict = propagate_item(c, low);
    return conflict == CLAUSES_NONE ? propagate_item(c, high) : conflict;
}
