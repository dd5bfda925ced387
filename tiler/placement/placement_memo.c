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

bool rfx_place_kept_init(struct rfx_place_kept *kept, struct rfx_memory *mem, int capacity) {
    *kept = (struct rfx_place_kept){.capacity = capacity};
    kept->offsets = rfx_memory_calloc(mem, (size_t)capacity, sizeof *kept->offsets);
    kept->upwards = rfx_memory_calloc(mem, (size_t)capacity, sizeof *kept->upwards);
    return kept->offsets != NULL && kept->upwards != NULL;
}

void rfx_place_kept_release(struct rfx_place_kept *kept, struct rfx_memory *mem) {
    rfx_memory_release(mem, kept->offsets);
    rfx_memory_release(mem, kept->upwards);
}

void rfx_place_keep(struct rfx_place_kept *kept, struct rfx_place_key key,
                    const struct rfx_place_job *job, const bool *upwards, size_t arena,
                    const char *strategy, size_t peak) {
    if (kept->arena != 0 && kept->peak <= peak) return;
    if (job->n > kept->capacity || job->n_slides > kept->capacity) return;
    for (int i = 0; i < job->n; i++) kept->offsets[i] = job->records[i].offset;
    for (int k = 0; k < job->n_slides; k++) kept->upwards[k] = upwards[k];
    kept->key = key;
    kept->arena = arena;
    kept->peak = peak;
    kept->strategy = strategy;
}

bool rfx_place_lay_kept(const struct rfx_place_kept *kept, struct rfx_place_key key,
                        const struct rfx_place_job *job, struct rfx_record *records,
                        bool *upwards) {
    if (kept->arena == 0 || kept->key.low != key.low || kept->key.high != key.high) return false;
    for (int i = 0; i < job->n; i++) records[i].offset = kept->offsets[i];
    for (int k = 0; k < job->n_slides; k++) upwards[k] = kept->upwards[k];
    return true;
}
