/* Conflict-driven search: propagation, learning, restarts; see clauses.h. */
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

/* The origins of a clause and of those of its literals that are false at level 0. */
static uint64_t gather_origins(const struct rfx_clauses *c, uint32_t clause) {
    const int *literals = rfx_clauses_literals(c, clause);
    uint64_t origins = rfx_clauses_origins_of(c, clause);
    for (uint32_t k = 0; k < c->store[clause]; k++)
        if (c->value[literals[k]] < 0 && c->of[literals[k] / 2].level == 0)
            origins |= c->origins[literals[k] / 2];
    return origins;
}

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

static void assign(struct rfx_clauses *c, int literal, uint32_t reason) {
    c->value[literal] = 1;
    c->value[literal ^ 1] = -1;
    c->of[literal / 2].level = c->n_levels;
    c->of[literal / 2].reason = reason;
    c->trail[c->n_trail++] = literal;
    foresee(c, literal ^ 1);
    if (c->n_levels == 0)
        c->origins[literal / 2] = reason == CLAUSES_NONE ? c->origin : gather_origins(c, reason);
}

static void go_back(struct rfx_clauses *c, int level) {
    if (c->n_levels <= level) return;
    int start = c->starts[level];
    for (int k = c->n_trail - 1; k >= start; k--) {
        int literal = c->trail[k];
        c->of[literal / 2].phase = (literal & 1) == 0;
        c->value[literal] = c->value[literal ^ 1] = 0;
        if (!c->of[literal / 2].follows) rfx_clauses_push(c, literal / 2);
    }
    c->n_trail = c->next = start;
    c->n_levels = level;
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
        assign(c, pair->other, pair->clause);
    }
    for (; triple < last; triple++) {
        int first = value[triple->others[0]];
        if (first > 0) continue;
        int second = value[triple->others[1]];
        if (second > 0 || (first == 0 && second == 0)) continue;
        if (first < 0 && second < 0) return triple->clause;
        assign(c, triple->others[first < 0 ? 1 : 0], triple->clause);
    }
    return CLAUSES_NONE;
}

/* Draws all conclusions; the clause that is false, or CLAUSES_NONE. */
static uint32_t propagate(struct rfx_clauses *c) {
    while (c->next < c->n_trail) {
        int gone = c->trail[c->next++] ^ 1;
        if (c->next < c->n_trail) foresee_all(c, c->trail[c->next] ^ 1);
        uint32_t conflict = propagate_fixed(c, gone);
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
            assign(c, open, watch.clause);
        }
        while (from < end) *to++ = *from++;
        list->n = (int)(to - list->watches);
        if (conflict != CLAUSES_NONE) return conflict;
    }
    return CLAUSES_NONE;
}

/* Marks the levels of literals, for is_level_marked; returns how many there are. */
static int mark_levels(struct rfx_clauses *c, const int *literals, int n) {
    int levels = 0;
    c->now++;
    for (int k = 0; k < n; k++) {
        int level = c->of[literals[k] / 2].level;
        if (c->stamp[level] != c->now) levels++;
        c->stamp[level] = c->now;
    }
    return levels;
}

static void touch(struct rfx_clauses *c, int variable) {
    c->seen[variable] = true;
    c->touched[c->n_touched++] = variable;
}

/* Whether a literal of the learnt clause is false because others of it are: then it is not needed.
 */
static bool is_implied(struct rfx_clauses *c, int literal) {
    int n = 0;
    int before = c->n_touched;
    c->stack[n++] = literal / 2;
    while (n > 0) {
        int variable = c->stack[--n];
        uint32_t reason = c->of[variable].reason;
        const int *literals = rfx_clauses_literals(c, reason);
        c->origin |= gather_origins(c, reason);
        for (uint32_t k = 0; k < c->store[reason]; k++) {
            int v = literals[k] / 2;
            if (v == variable || c->seen[v] || c->of[v].level == 0) continue;
            if (c->of[v].reason == CLAUSES_NONE || c->stamp[c->of[v].level] != c->now) {
                while (c->n_touched > before) c->seen[c->touched[--c->n_touched]] = false;
                return false;
            }
            touch(c, v);
            c->stack[n++] = v;
        }
    }
    return true;
}

/* Adds the literals of a clause to what is being learnt, those of the last level to *open. */
static void take_clause(struct rfx_clauses *c, uint32_t clause, int *open) {
    const int *literals = rfx_clauses_literals(c, clause);
    int n = (int)c->store[clause];
    c->origin |= rfx_clauses_origins_of(c, clause);
    if (clause >= c->learnt && c->store[clause + 1] > 2) {
        uint32_t levels = (uint32_t)mark_levels(c, literals, n);
        if (levels < c->store[clause + 1]) c->store[clause + 1] = levels;
    }
    for (int k = 0; k < n; k++) {
        int v = literals[k] / 2;
        if (c->of[v].level == 0) c->origin |= c->origins[v];
        if (c->seen[v] || c->of[v].level == 0) continue;
        touch(c, v);
        rfx_clauses_bump(c, v);
        if (c->of[v].level == c->n_levels)
            ++*open;
        else
            c->learn[c->n_learn++] = literals[k];
    }
}

/* Learns from a false clause: c->learn, whose first literal becomes true after going back to the
 * level that is returned, that of its second literal. */
static int learn(struct rfx_clauses *c, uint32_t conflict, int *levels) {
    int open = 0;
    int at = c->n_trail;
    uint32_t clause = conflict;
    c->n_learn = 1;
    c->n_touched = 0;
    c->origin = 0;
    for (;;) {
        take_clause(c, clause, &open);
        do at--;
        while (!c->seen[c->trail[at] / 2]);
        if (--open == 0) break;
        clause = c->of[c->trail[at] / 2].reason;
    }
    c->learn[0] = c->trail[at] ^ 1;
    (void)mark_levels(c, c->learn, c->n_learn);
    int n = 1;
    for (int k = 1; k < c->n_learn; k++) {
        int literal = c->learn[k];
        if (c->of[literal / 2].reason == CLAUSES_NONE || !is_implied(c, literal))
            c->learn[n++] = literal;
    }
    c->n_learn = n;
    while (c->n_touched > 0) c->seen[c->touched[--c->n_touched]] = false;
    *levels = mark_levels(c, c->learn, n);
    if (n == 1) return 0;
    int last = 1;
    for (int k = 2; k < n; k++)
        if (c->of[c->learn[k] / 2].level > c->of[c->learn[last] / 2].level) last = k;
    int swap = c->learn[1];
    c->learn[1] = c->learn[last];
    c->learn[last] = swap;
    return c->of[c->learn[1] / 2].level;
}

/* Goes back from a false clause and draws the conclusion that was learnt. false: no memory. */
static bool turn_back(struct rfx_clauses *c, uint32_t conflict, int *levels) {
    int level = learn(c, conflict, levels);
    uint32_t reason = CLAUSES_NONE;
    go_back(c, level);
    if (c->n_learn > 1) {
        reason = rfx_clauses_append(c, c->learn, c->n_learn, *levels);
        if (reason == CLAUSES_NONE) return false;
    }
    assign(c, c->learn[0], reason);
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
        c->starts[c->n_levels++] = c->n_trail;
        assign(c, literal, CLAUSES_NONE);
        return true;
    }
    return false;
}

/* false: no memory. */
static bool begin(struct rfx_clauses *c, uint64_t seed) {
    if (!c->has_searched) {
        if (!rfx_clauses_fix(c)) return false;
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
    uint64_t first = pace->conflicts;
    while (!c->is_impossible && pace->conflicts - first < request->conflicts) {
        uint32_t conflict = propagate(c);
        if (c->has_no_memory) break;
        if (conflict != CLAUSES_NONE) {
            int levels = 0;
            int n_trail = c->n_trail;
            if (c->n_levels == 0) {
                c->is_impossible = true;
                c->proof = gather_origins(c, conflict);
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
