/* Orders of items as sets of bits; see clauses_state.h. */
#include <string.h>

#include "tiler/clauses/clauses_state.h"

enum { BITS = 64, SHIFT = 16 };
#define NO_PAIR UINT32_MAX

static uint64_t bit_of(int item) {
    return (uint64_t)1 << (item % BITS);
}

static uint64_t *word_of(const struct rfx_clauses_orders *o, uint64_t *sets, int of, int item) {
    return &sets[(size_t)of * (size_t)o->words + (size_t)(item / BITS)];
}

bool rfx_clauses_set_order(struct rfx_clauses *c, const int *pair, int n) {
    struct rfx_clauses_orders *o = &c->orders;
    size_t words = (size_t)(n + BITS - 1) / BITS, count = (size_t)n * words;
    *o = (struct rfx_clauses_orders){.mem = c->mem, .n = n, .words = (int)words, .pair = pair};
    o->items = rfx_memory_alloc(c->mem, (size_t)c->n * sizeof *o->items);
    o->pairs = rfx_memory_calloc(c->mem, count, sizeof *o->pairs);
    o->after = rfx_memory_calloc(c->mem, count, sizeof *o->after);
    o->before = rfx_memory_calloc(c->mem, count, sizeof *o->before);
    if (o->items == NULL || o->pairs == NULL || o->after == NULL || o->before == NULL) return false;
    for (int v = 0; v < c->n; v++) o->items[v] = NO_PAIR;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            int variable = pair[(size_t)i * (size_t)n + (size_t)j];
            if (variable < 0) continue;
            o->items[variable] = (uint32_t)i << SHIFT | (uint32_t)j;
            *word_of(o, o->pairs, i, j) |= bit_of(j);
            *word_of(o, o->pairs, j, i) |= bit_of(i);
        }
    return true;
}

void rfx_clauses_release_orders(struct rfx_clauses_orders *o) {
    if (o->mem == NULL) return; /* none were set */
    void *const blocks[] = {o->items, o->pairs, o->after, o->before};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(o->mem, blocks[i]);
}

bool rfx_clauses_items_of(const struct rfx_clauses_orders *o, int literal, int *low, int *high) {
    uint32_t items = o->items[literal / 2];
    if (items == NO_PAIR) return false;
    int i = (int)(items >> SHIFT), j = (int)(items & (((uint32_t)1 << SHIFT) - 1));
    *low = (literal & 1) == 0 ? i : j;
    *high = (literal & 1) == 0 ? j : i;
    return true;
}

static int below(const struct rfx_clauses_orders *o, int i, int j) {
    return rfx_clauses_below(o->pair, o->n, i, j);
}

void rfx_clauses_note_order(struct rfx_clauses *c, int literal, bool is_true) {
    const struct rfx_clauses_orders *o = &c->orders;
    int low, high;
    if (!rfx_clauses_items_of(o, literal, &low, &high)) return;
    uint64_t *after = word_of(o, o->after, low, high);
    uint64_t *before = word_of(o, o->before, high, low);
    *after = is_true ? *after | bit_of(high) : *after & ~bit_of(high);
    *before = is_true ? *before | bit_of(low) : *before & ~bit_of(low);
    if (c->heights.n_sections > 0) rfx_clauses_note_heights(&c->heights, low, high, is_true);
}

/* Of a cycle of three: all three literals are false. */
static uint32_t fail(struct rfx_clauses *c, int i, int j, int k) {
    const struct rfx_clauses_orders *o = &c->orders;
    c->orders.cycle[0] = below(o, i, j) ^ 1;
    c->orders.cycle[1] = below(o, j, k) ^ 1;
    c->orders.cycle[2] = below(o, k, i) ^ 1;
    return CLAUSES_CYCLE;
}

uint32_t rfx_clauses_propagate_order(struct rfx_clauses *c, int literal) {
    const struct rfx_clauses_orders *o = &c->orders;
    int low, high;
    if (o->n == 0 || !rfx_clauses_items_of(o, literal, &low, &high)) return CLAUSES_NONE;
    const uint64_t *pairs[] = {word_of(o, o->pairs, low, 0), word_of(o, o->pairs, high, 0)};
    const uint64_t *after[] = {word_of(o, o->after, low, 0), word_of(o, o->after, high, 0)};
    const uint64_t *before[] = {word_of(o, o->before, low, 0), word_of(o, o->before, high, 0)};
    for (int w = 0; w < o->words; w++) {
        uint64_t above = after[1][w] & pairs[0][w] & ~after[0][w]; /* of high, so of low */
        uint64_t under = before[0][w] & pairs[1][w] & ~before[1][w];
        for (; above != 0; above &= above - 1) {
            int item = w * BITS + __builtin_ctzll(above);
            if ((before[0][w] & bit_of(item)) != 0) return fail(c, low, high, item);
            rfx_clauses_assign(c, below(o, low, item), CLAUSES_ORDER + (uint32_t)high);
        }
        for (; under != 0; under &= under - 1) {
            int item = w * BITS + __builtin_ctzll(under);
            rfx_clauses_assign(c, below(o, item, high), CLAUSES_ORDER + (uint32_t)low);
        }
    }
    return CLAUSES_NONE;
}

struct rfx_clauses_view rfx_clauses_view(const struct rfx_clauses *c, uint32_t clause, int variable,
                                         int own[CLAUSES_ORDER_LITERALS]) {
    const struct rfx_clauses_orders *o = &c->orders;
    if (clause != CLAUSES_CYCLE && clause >= CLAUSES_HEIGHT)
        return rfx_clauses_view_height(c, clause);
    if (rfx_clauses_is_written(clause))
        return (struct rfx_clauses_view){rfx_clauses_literals(c, clause), (int)c->store[clause],
                                         rfx_clauses_origins_of(c, clause)};
    if (clause == CLAUSES_CYCLE)
        return (struct rfx_clauses_view){o->cycle, CLAUSES_ORDER_LITERALS, 0};
    int low = 0, high = 0, middle = (int)(clause - CLAUSES_ORDER);
    own[0] = 2 * variable + (c->value[2 * variable] > 0 ? 0 : 1);
    (void)rfx_clauses_items_of(o, own[0], &low, &high);
    own[1] = below(o, low, middle) ^ 1;
    own[2] = below(o, middle, high) ^ 1;
    return (struct rfx_clauses_view){own, CLAUSES_ORDER_LITERALS, 0};
}
