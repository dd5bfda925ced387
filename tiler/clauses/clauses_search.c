/* Conflict-driven search: propagation, going back, restarts; see clauses.h. */
#include <string.h>

#include "tiler/clauses/clauses_state.h"
#include "tiler/packer/packer_hash.h"

/* Restarts come when the mean number of levels of the last RECENT learnt clauses, times less than
 * one, is above the mean of all. Clauses are forgotten first after FIRST_FORGET conflicts, then
 * after FORGET_MORE more each time. */
enum { RECENT = CLAUSES_RECENT, FIRST_FORGET = 2000, FORGET_MORE = 300, STOP_EVERY = 16 };

static const double recent_share = 0.8;

/* A search that assigns clearly more variables than usual may be about to succeed: it is not
 * restarted, once there were so many conflicts. */
enum { SETTLED = 10000 };
static const double unusual = 1.4, trail_memory = 5000;

/* How fast what mattered is forgotten: by `decay` per conflict, which grows to the last from the
 * first. */
static const double first_decay = 0.8, last_decay = 0.95, decay_growth = 0.01;
enum { DECAY_EVERY = 5000 };

/* Nearly all time goes into waiting for memory: what is looked at when a literal is gone is asked
 * for when that becomes known, and the rest of it one literal ahead. */
static void foresee(const struct rfx_clauses *c, int gone) {
    __builtin_prefetch(&c->fixed.first[gone]);
    __builtin_prefetch(&c->lists[gone]);
}

static void foresee_all(const struct rfx_clauses *c, int gone) {
    __builtin_prefetch(&c->fixed.pairs[c->fixed.first[gone].pair]);
    __builtin_prefetch(&c->fixed.triples[c->fixed.first[gone].triple]);
    __builtin_prefetch(c->lists[gone].watches);
}

void rfx_clauses_assign(struct rfx_clauses *c, int literal, uint32_t reason) {
    c->value[literal] = 1;
    c->value[literal ^ 1] = -1;
    c->of[literal / 2].level = c->n_levels;
    c->of[literal / 2].reason = reason;
    c->trail[c->n_trail++] = literal;
    foresee(c, literal ^ 1);
    if (c->orders.n > 0) rfx_clauses_note_order(c, literal, true);
    if (c->n_levels == 0)
        c->origins[literal / 2] =
            reason == CLAUSES_NONE ? c->origin : rfx_clauses_gather_origins(c, reason, literal / 2);
}

static void go_back(struct rfx_clauses *c, int level) {
    if (c->n_levels <= level) return;
    int start = c->starts[level];
    for (int k = c->n_trail - 1; k >= start; k--) {
        int literal = c->trail[k];
        c->of[literal / 2].phase = (literal & 1) == 0;
        c->value[literal] = c->value[literal ^ 1] = 0;
        if (c->orders.n > 0) rfx_clauses_note_order(c, literal, false);
        if (!c->of[literal / 2].follows) rfx_clauses_push(c, literal / 2);
    }
    c->n_trail = c->next = start;
    c->n_levels = level;
    rfx_clauses_drop_heights(c, level);
}

/* Looks for another literal to watch instead of the false literals[1]. */
static int find_watch(const struct rfx_clauses *c, const int *literals, int n) {
    for (int k = 2; k < n; k++)
        if (c->value[literals[k]] >= 0) return k;
    return -1;
}

/* A clause of three and more whose watched literal `gone` has become false. Returns whether it is
 * watched by another literal now; *open: the literal that has to be true if it is not. */
static bool move_watch(struct rfx_clauses *c, struct rfx_clauses_watch *watch, int gone,
                       int *open) {
    int *literals = rfx_clauses_literals(c, watch->clause);
    if (literals[0] == gone) {
        literals[0] = literals[1];
        literals[1] = gone;
    }
    *open = watch->blocker = literals[0];
    if (c->value[literals[0]] > 0) return false;
    int k = find_watch(c, literals, (int)c->store[watch->clause]);
    if (k < 0) return false;
    if (!rfx_clauses_watch(c, literals[k], *watch)) {
        c->has_no_memory = true;
        return false;
    }
    literals[1] = literals[k];
    literals[k] = gone;
    return true;
}

/* Draws the conclusions from given clauses of two and three literals; the clause that is false, or
 * CLAUSES_NONE. */
static uint32_t propagate_fixed(struct rfx_clauses *c, int gone) {
    const struct rfx_clauses_fixed *fixed = &c->fixed;
    const signed char *value = c->value;
    const struct rfx_clauses_pair *pair = &fixed->pairs[fixed->first[gone].pair];
    const struct rfx_clauses_pair *last_pair = &fixed->pairs[fixed->first[gone + 1].pair];
    const struct rfx_clauses_triple *triple = &fixed->triples[fixed->first[gone].triple];
    const struct rfx_clauses_triple *last = &fixed->triples[fixed->first[gone + 1].triple];
    for (; pair < last_pair; pair++) {
        if (value[pair->other] > 0) continue;
        if (value[pair->other] < 0) return pair->clause;
        rfx_clauses_assign(c, pair->other, pair->clause);
    }
    for (; triple < last; triple++) {
        int first = value[triple->others[0]];
        if (first > 0) continue;
        int second = value[triple->others[1]];
        if (second > 0 || (first == 0 && second == 0)) continue;
        if (first < 0 && second < 0) return triple->clause;
        rfx_clauses_assign(c, triple->others[first < 0 ? 1 : 0], triple->clause);
    }
    return CLAUSES_NONE;
}

/* Draws all conclusions; the clause that is false, or CLAUSES_NONE. */
static uint32_t propagate(struct rfx_clauses *c) {
    while (c->next < c->n_trail) {
        int gone = c->trail[c->next++] ^ 1;
        if (c->next < c->n_trail) foresee_all(c, c->trail[c->next] ^ 1);
        uint32_t conflict = rfx_clauses_propagate_order(c, gone ^ 1);
        if (conflict == CLAUSES_NONE) conflict = propagate_fixed(c, gone);
        if (conflict == CLAUSES_NONE) conflict = rfx_clauses_propagate_heights(c, gone ^ 1);
        if (conflict != CLAUSES_NONE) return conflict;
        struct rfx_clauses_list *list = &c->lists[gone];
        struct rfx_clauses_watch *from = list->watches;
        struct rfx_clauses_watch *to = list->watches;
        struct rfx_clauses_watch *end = list->watches + list->n;
        while (from < end) {
            struct rfx_clauses_watch watch = *from++;
            int open = watch.blocker;
            if (c->value[open] <= 0 && !watch.is_pair && move_watch(c, &watch, gone, &open))
                continue;
            *to++ = watch;
            if (c->value[open] > 0) continue;
            if (c->value[open] < 0) {
                conflict = watch.clause;
                break;
            }
            rfx_clauses_assign(c, open, watch.clause);
        }
        while (from < end) *to++ = *from++;
        list->n = (int)(to - list->watches);
        if (conflict != CLAUSES_NONE) return conflict;
    }
    return CLAUSES_NONE;
}

/* Goes back from a false clause and draws the conclusion that was learnt. false: no memory. */
static bool turn_back(struct rfx_clauses *c, uint32_t conflict, int *levels) {
    int level = rfx_clauses_learn(c, conflict, levels);
    uint32_t reason = CLAUSES_NONE;
    go_back(c, level);
    if (c->n_learn > 1) {
        reason = rfx_clauses_append(c, c->learn, c->n_learn, *levels);
        if (reason == CLAUSES_NONE) return false;
    }
    rfx_clauses_assign(c, c->learn[0], reason);
    return true;
}

static void count_conflict(struct rfx_clauses_pace *pace, int n_trail, int levels) {
    pace->conflicts++;
    pace->sum += (uint64_t)levels;
    double conflicts = (double)pace->conflicts;
    pace->mean_trail +=
        (n_trail - pace->mean_trail) / (conflicts < trail_memory ? conflicts : trail_memory);
    if (pace->conflicts > SETTLED && pace->n_recent == RECENT &&
        n_trail > unusual * pace->mean_trail)
        pace->n_recent = 0;
    if (pace->n_recent == 0) pace->sum_recent = 0;
    if (pace->n_recent == RECENT) pace->sum_recent -= (uint64_t)pace->recent[pace->at];
    if (pace->n_recent < RECENT) pace->n_recent++;
    pace->recent[pace->at] = levels;
    pace->sum_recent += (uint64_t)levels;
    pace->at = (pace->at + 1) % RECENT;
    if (pace->conflicts % DECAY_EVERY == 0 && pace->decay < last_decay) pace->decay += decay_growth;
}

static bool must_restart(const struct rfx_clauses_pace *pace) {
    double recent = (double)pace->sum_recent / RECENT;
    return pace->n_recent == RECENT &&
           recent * recent_share > (double)pace->sum / (double)pace->conflicts;
}

/* Restarts when it is time, and forgets then when that is due. false: no memory. */
static bool keep_pace(struct rfx_clauses *c, struct rfx_clauses_pace *pace) {
    bool forgets = pace->conflicts >= pace->forget_at;
    bool turns = rfx_clauses_turn_ends(c);
    bool restarts = c->turns.is_steady ? rfx_clauses_restarts_steadily(c) : must_restart(pace);
    if (!forgets && !turns && !restarts) return true;
    go_back(c, 0);
    if (turns) rfx_clauses_take_turn(c);
    pace->n_recent = 0;
    if (!forgets || c->next < c->n_trail) return true; /* conclusions of level 0 come first */
    pace->forget_every += FORGET_MORE;
    pace->forget_at = pace->conflicts + pace->forget_every;
    return rfx_clauses_forget(c);
}

/* Assigns the most active open variable as it was in the target or last; false: all are assigned.
 */
static bool decide(struct rfx_clauses *c) {
    while (c->n_heap > 0) {
        int variable = rfx_clauses_pop(c);
        bool value = c->of[variable].phase;
        if (c->turns.is_steady && c->of[variable].target != 0) value = c->of[variable].target > 0;
        int literal = 2 * variable + (value ? 0 : 1);
        if (c->value[literal] != 0) continue;
        rfx_clauses_begin_heights(c);
        c->starts[c->n_levels++] = c->n_trail;
        rfx_clauses_assign(c, literal, CLAUSES_NONE);
        return true;
    }
    return false;
}

/* false: no memory. */
static bool begin(struct rfx_clauses *c, uint64_t seed) {
    if (!c->has_searched) {
        if (!rfx_clauses_fix(c)) return false;
        for (int k = 0; k < c->n_trail && c->orders.n > 0; k++)
            rfx_clauses_note_order(c, c->trail[k], true);
        c->pace = (struct rfx_clauses_pace){
            .forget_at = FIRST_FORGET, .forget_every = FIRST_FORGET, .decay = first_decay};
        rfx_clauses_begin_turns(c);
    }
    c->has_searched = true;
    go_back(c, 0);
    for (int v = 0; v < c->n; v++) {
        uint64_t chance = rfx_packer_mix(seed ^ (uint64_t)v) >> 40;
        if (seed != 0) c->activity[v] += c->step * (double)chance * 0x1p-24;
    }
    c->n_heap = 0;
    for (int v = 0; v < c->n; v++) c->of[v].place = -1;
    for (int v = 0; v < c->n; v++)
        if (!c->of[v].follows) rfx_clauses_push(c, v);
    return true;
}

enum rfx_clauses_outcome rfx_clauses_solve(struct rfx_clauses *c,
                                           const struct rfx_clauses_request *request,
                                           uint64_t *conflicts) {
    struct rfx_clauses_pace *pace = &c->pace;
    enum rfx_clauses_outcome outcome = RFX_CLAUSES_LIMIT;
    if (!begin(c, request->seed)) return RFX_CLAUSES_NO_MEMORY;
    c->turns.stays_steady = request->steady;
    uint64_t first = pace->conflicts;
    while (!c->is_impossible && pace->conflicts - first < request->conflicts) {
        uint32_t conflict = propagate(c);
        if (c->has_no_memory) break;
        if (conflict != CLAUSES_NONE) {
            int levels = 0;
            int n_trail = c->n_trail;
            if (c->n_levels == 0) {
                c->is_impossible = true;
                c->proof = rfx_clauses_gather_origins(c, conflict, -1);
                break;
            }
            rfx_clauses_keep_targets(c);
            if (!turn_back(c, conflict, &levels)) c->has_no_memory = true;
            count_conflict(pace, n_trail, levels);
            c->step /= pace->decay;
            if (pace->conflicts % STOP_EVERY == 0 && rfx_place_must_stop(c->mem, request->stop))
                break;
        } else if (!keep_pace(c, pace)) {
            c->has_no_memory = true;
        } else if (!decide(c)) {
            outcome = RFX_CLAUSES_FOUND;
            break;
        }
        if (c->has_no_memory) break;
    }
    *conflicts += pace->conflicts - first;
    if (c->has_no_memory) return RFX_CLAUSES_NO_MEMORY;
    return c->is_impossible ? RFX_CLAUSES_IMPOSSIBLE : outcome;
}
