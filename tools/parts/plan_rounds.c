/* The plans of rounds of states: those that 'run --part' makes of the same options. */
#include <stdio.h>

#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/parts/part_plans.h"

/* What the parts of a round take together. */
struct round_sum {
    struct rfx_part_plans *p;
    json_t *list; /* with --json */
    uint64_t macs, most_macs;
    size_t arena_bytes, peak_bytes; /* the most of a part */
    size_t states_bytes;
    int states;
};

static void add_part(struct round_sum *sum, const struct rfx_plan *plan) {
    sum->macs += plan->macs;
    if (plan->macs > sum->most_macs) sum->most_macs = plan->macs;
    if (plan->bytes.arena > sum->arena_bytes) sum->arena_bytes = plan->bytes.arena;
    if (plan->peak_bytes > sum->peak_bytes) sum->peak_bytes = plan->peak_bytes;
    sum->p->macs_untiled = plan->macs_untiled;
    if (sum->list != NULL) (void)json_array_append_new(sum->list, rfx_part_plans_json(plan));
}

/* Plans part `index`, from 1; `states` gets room for what it knows and makes. */
static enum rfx_status plan_share(struct round_sum *sum, int64_t index,
                                  struct rfx_part_states *states, struct rfx_error *err) {
    struct rfx_part_plans *p = sum->p;
    struct rfx_part_round round;
    *states = (struct rfx_part_states){.mem = p->job.mem,
                                       .round = p->before.states.round + 1,
                                       .index = index,
                                       .count = p->options->part.parts};
    enum rfx_status status =
        rfx_part_round_plan(&p->job, p->output, &p->before, NULL, states, &round, err);
    if (status == RFX_OK) add_part(sum, round.plan);
    rfx_part_round_release(&round);
    return status;
}

static enum rfx_status plan_round(struct round_sum *sum, struct rfx_error *err) {
    struct rfx_part_plans *p = sum->p;
    struct rfx_part_states states = {.mem = p->job.mem};
    enum rfx_status status = RFX_OK;
    for (int64_t i = 1; i <= p->options->part.parts && status == RFX_OK; i++) {
        rfx_part_states_release(&states);
        status = plan_share(sum, i, &states, err);
    }
    for (int i = 0; i < states.n && status == RFX_OK; i++) {
        if (states.items[i].round != states.round) continue;
        sum->states++;
        sum->states_bytes += states.items[i].bytes;
    }
    rfx_part_before_release(&p->before);
    p->before.states = states;
    return status == RFX_OK ? rfx_part_before_settle(&p->before, p->job.graph, p->output, err)
                            : status;
}

static void tell_round(const struct round_sum *sum, struct rfx_table *table) {
    struct rfx_part_plans *p = sum->p;
    char macs[RFX_HUMAN_CHARS], most[RFX_HUMAN_CHARS], states[RFX_HUMAN_CHARS];
    char arena[RFX_HUMAN_CHARS], peak[RFX_HUMAN_CHARS];
    double ratio = rfx_report_ratio(sum->macs, p->macs_untiled);
    int round = p->before.states.round;
    p->macs += sum->macs;
    if (sum->list != NULL) {
        (void)json_array_append_new(
            p->rounds, json_pack("{s:i, s:i, s:I, s:I, s:f, s:o}", "round", round, "count",
                                 sum->states, "bytes", (json_int_t)sum->states_bytes, "macs",
                                 (json_int_t)sum->macs, "macs_ratio", ratio, "parts", sum->list));
        return;
    }
    rfx_table_cell(table, "%d", round);
    rfx_table_cell(table, "%d", sum->states);
    rfx_table_cell(table, "%s", rfx_human_bytes(sum->states_bytes, states));
    rfx_table_cell(table, "%s", rfx_human_count(sum->macs, macs));
    rfx_table_cell(table, "%.3f", ratio);
    rfx_table_cell(table, "%s", rfx_human_count(sum->most_macs, most));
    rfx_table_cell(table, "%s", rfx_human_bytes(sum->arena_bytes, arena));
    rfx_table_cell(table, "%s", rfx_human_bytes(sum->peak_bytes, peak));
}

int rfx_part_plans_rounds(struct rfx_part_plans *p) {
    static const struct rfx_table_column columns[] = {
        {"round", RFX_TABLE_NUMBER},     {"states", RFX_TABLE_NUMBER},
        {"bytes", RFX_TABLE_NUMBER},     {"MACs", RFX_TABLE_NUMBER},
        {"x untiled", RFX_TABLE_NUMBER}, {"most of a part", RFX_TABLE_NUMBER},
        {"arena", RFX_TABLE_NUMBER},     {"peak", RFX_TABLE_NUMBER}};
    struct rfx_table *table = rfx_table_create(p->job.mem, columns, 8);
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    while (p->before.rounds.rounds > 0 && status == RFX_OK) {
        struct round_sum sum = {.p = p, .list = p->options->json ? json_array() : NULL};
        status = plan_round(&sum, &err);
        if (status == RFX_OK)
            tell_round(&sum, table);
        else
            json_decref(sum.list);
    }
    if (status == RFX_OK && !p->options->json) {
        rfx_table_print(table, stdout, rfx_table_terminal_width());
        putchar('\n');
    }
    rfx_table_free(table);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}
