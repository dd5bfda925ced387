/* Keys of placements, and a table that is looked at in one place; see placement_memo.h. */
#include "tiler/placement/placement_memo.h"

/* Two lanes of multiply and rotate, with odd constants from the fractions of square roots. */
static void mix(struct rfx_place_key *key, uint64_t value) {
    uint64_t low = (key->low ^ value) * 0x6a09e667f3bcc909U;
    uint64_t high = (key->high + value) * 0xbb67ae8584caa73bU;
    key->low = low ^ (low >> 29);
    key->high = (high << 31 | high >> 33) ^ low;
}

static uint64_t pair(int a, int b) {
    return (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
}

struct rfx_place_key rfx_place_key_of(const struct rfx_place_job *job, bool quick) {
    struct rfx_place_key key = {pair(job->n, job->n_slides), quick};
    for (int i = 0; i < job->n; i++) {
        const struct rfx_record *r = &job->records[i];
        mix(&key, pair(r->first, r->last));
        mix(&key, r->bytes);
    }
    for (int k = 0; k < job->n_slides; k++) {
        const struct rfx_slide *s = &job->slides[k];
        mix(&key, pair(s->before, s->after));
        mix(&key, pair(s->stage, s->node));
        mix(&key, s->down);
        mix(&key, s->up);
    }
    return key;
}

size_t rfx_place_recall(const struct rfx_place_memo *memo, struct rfx_place_key key) {
    const struct rfx_place_memo *entry = &memo[key.low % RFX_PLACE_MEMO_ENTRIES];
    bool same = entry->key.low == key.low && entry->key.high == key.high;
    return same ? entry->arena : 0;
}

void rfx_place_remember(struct rfx_place_memo *memo, struct rfx_place_key key, size_t arena) {
    memo[key.low % RFX_PLACE_MEMO_ENTRIES] = (struct rfx_place_memo){key, arena};
}
