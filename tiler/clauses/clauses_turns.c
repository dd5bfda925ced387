/* Quick and steady search in turns; see clauses_state.h. */
#include "tiler/clauses/clauses_state.h"

/* The k-th turn of either kind takes TURN * k * k conflicts; the values of the best assignment are
 * taken up after BACK conflicts, after as many, then after BACK more each time; steady search
 * restarts after RARE times 1, 1, 2, 1, 1, 2, 4, 1, ... (Luby et al. 1993, as Knuth reckons it). */
enum { TURN = 1000, BACK = 1000, RARE = 128 };

static void plan_restart(struct rfx_clauses_turns *t, uint64_t now) {
    t->restart_at = now + t->factor * RARE;
    if ((t->restart & -t->restart) == t->factor) {
        t->restart++;
        t->factor = 1;
    } else {
        t->factor *= 2;
    }
}

static void drop_targets(struct rfx_clauses *c) {
    for (int v = 0; v < c->n; v++) c->of[v].target = 0;
    c->turns.target_trail = 0;
}

void rfx_clauses_begin_turns(struct rfx_clauses *c) {
    c->turns = (struct rfx_clauses_turns){.back_at = BACK};
}

void rfx_clauses_keep_targets(struct rfx_clauses *c) {
    struct rfx_clauses_turns *t = &c->turns;
    int n = c->starts[c->n_levels - 1];
    bool is_target = t->is_steady && n > t->target_trail;
    bool is_best = t->is_steady && n > t->best_trail;
    for (int k = 0; k < n && (is_target || is_best); k++) {
        struct rfx_clauses_variable *variable = &c->of[c->trail[k] / 2];
        signed char value = (c->trail[k] & 1) == 0 ? 1 : -1;
        if (is_target) variable->target = value;
        if (is_best) variable->best = value;
    }
    if (is_target) t->target_trail = n;
    if (is_best) t->best_trail = n;
}

bool rfx_clauses_turn_ends(const struct rfx_clauses *c) {
    return c->pace.conflicts >= c->turns.turn_at || c->pace.conflicts >= c->turns.back_at;
}

bool rfx_clauses_restarts_steadily(struct rfx_clauses *c) {
    if (c->pace.conflicts < c->turns.restart_at) return false;
    plan_restart(&c->turns, c->pace.conflicts);
    return true;
}

static void go_back_to_best(struct rfx_clauses *c) {
    for (int v = 0; v < c->n; v++) {
        if (c->of[v].best != 0) c->of[v].phase = c->of[v].best > 0;
    }
    c->turns.best_trail = 0;
    drop_targets(c);
}

void rfx_clauses_take_turn(struct rfx_clauses *c) {
    struct rfx_clauses_turns *t = &c->turns;
    uint64_t now = c->pace.conflicts;
    if (now >= t->turn_at) {
        uint64_t k = t->turn / 2 + 1;
        t->is_steady = t->stays_steady || t->turn % 2 == 0;
        t->turn++;
        t->turn_at = now + TURN * k * k;
        t->restart = t->factor = 1;
        if (t->is_steady) plan_restart(t, now);
        drop_targets(c);
    }
    if (now < t->back_at) return;
    t->backs++;
    t->back_at = now + BACK * t->backs;
    go_back_to_best(c);
}
