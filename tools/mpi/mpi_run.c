/* What a rank does: it opens everything as 'rfexec run' does, makes its share of the states of
 * global operations round after round, then its rows of the maps that ranks exchange and its share
 * of the outputs. Its plans are its own, inside its own budget. */
#include "tools/mpi/mpi_run.h"

#include <stdlib.h>
#include <string.h>

#include "rf_analysis/part_graph.h"
#include "tools/cli/classes.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/mpi/rank_outputs.h"
#include "tools/mpi/rank_sections.h"
#include "tools/mpi/rank_states.h"
#include "tools/parts/files/part_identity.h"
#include "tools/parts/part_round.h"
#include "tools/commands/run_result.h"

struct mpi_run {
    struct rfx_ranks *ranks;
    const struct rfx_cli_run_options *options;
    struct rfx_cli_job job; /* its graph: the whole one */
    struct rfx_part_before before;
    struct rfx_rank_sections sections;
    struct rfx_session *session; /* of the last section; NULL: nothing is left for this rank */
    struct rfx_rank_outputs outputs;
    struct rfx_cli_classes classes;
    struct rfx_run_report report; /* of the share */
    uint64_t macs;                /* of all rounds */
    double seconds;
    int rounds;
};

/* All must be of one run: the files that they read may be other ones. */
static int compare_identities(struct mpi_run *run) {
    enum { ROOM = 16384 };
    static char text[ROOM];
    char why[400];
    struct rfx_part_file mine = {.run = NULL}, theirs = {.run = NULL};
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_part_identity(&run->job, run->options, &mine.run, &err);
    char *dump = status == RFX_OK ? json_dumps(mine.run, JSON_COMPACT) : NULL;
    if (status == RFX_OK && (dump == NULL || strlen(dump) >= ROOM))
        status = rfx_fail(&err, RFX_STATUS_OUT_OF_MEMORY, "out of memory");
    if (status == RFX_OK) memcpy(text, dump, strlen(dump) + 1);
    free(dump);
    int code =
        rfx_ranks_agree(run->ranks, status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
    if (code == RFX_EXIT_DONE) {
        status = rfx_ranks_spread(run->ranks, text, sizeof text, &err);
        theirs.run = status == RFX_OK ? json_loads(text, 0, NULL) : NULL;
        if (status == RFX_OK &&
            (theirs.run == NULL || !rfx_part_file_same_run(&mine, &theirs, why, sizeof why)))
            status = rfx_fail(&err, RFX_STATUS_MALFORMED, "not of one run with rank 0: %s",
                              theirs.run == NULL ? "out of memory" : why);
        code = rfx_ranks_agree(run->ranks,
                               status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
    }
    json_decref(mine.run);
    json_decref(theirs.run);
    return code;
}

static int open_job(struct mpi_run *run) {
    const struct rfx_cli_run_options *o = run->options;
    if (strcmp(o->words.args[1], "-") == 0) {
        rfx_cli_message("every rank reads the picture: it cannot come from standard input");
        return RFX_EXIT_USAGE;
    }
    if (o->plan.plan_file != NULL) {
        rfx_cli_message("--plan is of a whole network, ranks have shares: leave it out");
        return RFX_EXIT_USAGE;
    }
    if (rfx_cli_options_mark(&o->input)) {
        rfx_cli_message(
            "--nodata marks outputs of one process: --nodata-mark none fills the "
            "picture alone");
        return RFX_EXIT_USAGE;
    }
    int code = rfx_cli_job_open(&run->job, o, o->words.args[1]);
    if (code != RFX_EXIT_DONE) return code;
    run->job.process_varies = true;
    run->job.request.source.fixed_bytes += RFX_RANKS_LATER_BYTES;
    return rfx_cli_outputs_check(run->job.graph, o);
}

/* The rounds that are left. */
static int look(struct mpi_run *run) {
    struct rfx_error err = {{0}};
    enum rfx_status status =
        rfx_part_before_settle(&run->before, run->job.graph, RFX_PART_ALL, &err);
    return status == RFX_OK
               ? rfx_part_round_check(run->job.graph, RFX_PART_ALL, &run->before.rounds)
               : rfx_cli_fail(status, &err);
}

/* A round of states, from where the sections have come: this rank's share, then the sum of all. */
static enum rfx_status make_round(struct mpi_run *run, struct rfx_error *err) {
    struct rfx_part_states *states = &run->sections.states;
    enum rfx_status status = rfx_rank_sections_round(&run->sections, err);
    if (status == RFX_OK) status = rfx_rank_states_merge(run->ranks, run->job.graph, states, err);
    run->rounds++;
    rfx_part_before_release(&run->before);
    run->before.states = *states;
    *states = (struct rfx_part_states){.mem = states->mem};
    return status;
}

/* The sections up to the next round, and that; what one rank cannot do ends the job. */
static int make_next(struct mpi_run *run) {
    struct rfx_error err = {{0}};
    int code = rfx_rank_sections_plan(&run->sections, &run->before, RFX_PART_STATES);
    if (code != RFX_EXIT_DONE) return code;
    run->ranks->together = false;
    enum rfx_status status = rfx_rank_sections_run(&run->sections, &err);
    if (status == RFX_OK) status = make_round(run, &err);
    code = status == RFX_OK ? look(run) : rfx_cli_fail(status, &err);
    if (code != RFX_EXIT_DONE) rfx_ranks_end_job(run->ranks, code);
    run->ranks->together = true;
    return code;
}

/* All rounds. A rank alone has all of every map. */
static int make_states(struct mpi_run *run) {
    run->before.states.mem = run->job.mem;
    if (run->ranks->size == 1) return RFX_EXIT_DONE;
    int code = rfx_ranks_agree(run->ranks, look(run));
    while (code == RFX_EXIT_DONE && run->before.rounds.rounds > 0) code = make_next(run);
    return code;
}

/* Plans all that this rank makes from here on. */
static int plan_outputs(struct mpi_run *run) {
    run->sections.outputs_bytes =
        rfx_rank_outputs_bytes(run->ranks, run->job.graph, run->options, &run->job.geo);
    return rfx_rank_sections_plan(&run->sections, &run->before, RFX_PART_OUTER);
}

static const struct rfx_graph *share_of(const struct mpi_run *run) {
    return run->sections.graphs[run->sections.exchange.n];
}

static const struct rfx_plan *plan_of(const struct mpi_run *run) {
    return run->sections.plans[run->sections.exchange.n];
}

/* The rows that ranks exchange, which one rank's failing ends for all. */
static void make_rows(struct mpi_run *run) {
    struct rfx_error err = {{0}};
    run->ranks->together = false;
    enum rfx_status status = rfx_rank_sections_run(&run->sections, &err);
    if (status != RFX_OK) rfx_ranks_end_job(run->ranks, rfx_cli_fail(status, &err));
    run->macs += run->sections.macs; /* and of the rounds */
    run->seconds += run->sections.seconds;
    run->ranks->together = true;
}

static int begin_share(struct mpi_run *run) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    if (share_of(run) != NULL)
        status = rfx_session_create(share_of(run), plan_of(run), &run->session, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static enum rfx_status execute(struct mpi_run *run, struct rfx_error *err) {
    struct rfx_cli_progress progress;
    struct rfx_output_sink sink = rfx_rank_outputs_sink(&run->outputs);
    enum rfx_status status =
        rfx_rank_sections_begin_sums(&run->sections, run->sections.exchange.n, err);
    if (status != RFX_OK || run->session == NULL) return status;
    if (run->ranks->rank == 0)
        status = rfx_cli_classes_begin(run->job.mem, run->job.graph, &run->options->report,
                                       &run->classes, err);
    if (status != RFX_OK) return status;
    run->outputs.outputs.classes = &run->classes;
    rfx_session_set_sink(run->session, &sink);
    rfx_session_set_spill_folder(run->session, run->options->plan.spill);
    rfx_cli_progress_start(&progress, run->ranks->size > 1 ? "its share of the outputs" : "run");
    status = rfx_session_run(run->session, rfx_rank_sections_image(&run->sections),
                             rfx_cli_progress_step, &progress, &run->report, err);
    rfx_cli_progress_end(&progress);
    if (status != RFX_OK && run->sections.store != NULL)
        rfx_row_store_explain(run->sections.store, err);
    run->macs += run->report.macs;
    run->seconds += run->report.seconds;
    if (status == RFX_OK)
        status = rfx_cli_classes_finish(&run->options->report, &run->classes, err);
    if (status == RFX_OK && rfx_cli_progress_cancelled())
        status = rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
    rfx_memory_set_stop(run->job.mem, NULL, NULL); /* from here on files become complete */
    return status;
}

static int print_result(struct mpi_run *run) {
    struct rfx_error err = {{0}};
    uint64_t most[2] = {rfx_peak_rss_bytes(), (uint64_t)(run->seconds * 1e9)};
    uint64_t sums[3] = {run->macs, run->sections.received, (uint64_t)run->sections.macs_saved};
    enum rfx_status status = rfx_ranks_sum(run->ranks, sums, 3, &err);
    if (status == RFX_OK) status = rfx_ranks_most(run->ranks, most, 2, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    if (run->ranks->rank > 0) return RFX_EXIT_DONE;
    struct rfx_run_ranks ranks = {.count = run->ranks->size,
                                  .rounds = run->rounds,
                                  .macs = sums[0],
                                  .cuts = run->sections.cuts,
                                  .n_cuts = run->sections.n_cuts,
                                  .moved_bytes = sums[1],
                                  .macs_saved = (int64_t)sums[2],
                                  .peak_rss_bytes = (size_t)most[0],
                                  .seconds = (double)most[1] * 1e-9};
    struct rfx_run_result result = {.options = run->options,
                                    .graph = run->job.graph,
                                    .plan = plan_of(run),
                                    .report = &run->report,
                                    .outputs = &run->outputs.outputs,
                                    .classes = &run->classes,
                                    .ranks = &ranks};
    return rfx_run_result_print(&result);
}

/* From the network to its outputs; every step is agreed on. */
static int run_all(struct mpi_run *run) {
    struct rfx_error err = {{0}};
    int code = rfx_ranks_agree(run->ranks, open_job(run));
    if (code == RFX_EXIT_DONE) code = compare_identities(run);
    if (code == RFX_EXIT_DONE)
        code = rfx_rank_outputs_check(run->ranks, run->job.mem, run->job.graph, run->options);
    if (code == RFX_EXIT_DONE) code = make_states(run);
    if (code == RFX_EXIT_DONE) code = plan_outputs(run);
    if (code == RFX_EXIT_DONE) make_rows(run);
    if (code == RFX_EXIT_DONE) code = rfx_ranks_agree(run->ranks, begin_share(run));
    if (code == RFX_EXIT_DONE)
        code = rfx_rank_outputs_open(run->ranks, run->job.mem, run->job.graph, run->options,
                                     &run->job.geo, &run->outputs);
    if (code != RFX_EXIT_DONE) return code;
    run->ranks->together = false;
    enum rfx_status status = execute(run, &err);
    if (status != RFX_OK) rfx_ranks_end_job(run->ranks, rfx_cli_fail(status, &err));
    if (run->sections.from == RFX_PART_OUTER) rfx_rank_sections_compare_sums(&run->sections);
    code = rfx_rank_outputs_finish(&run->outputs);
    return code == RFX_EXIT_DONE ? print_result(run) : code;
}

int rfx_mpi_run(struct rfx_ranks *ranks, const struct rfx_mpi_options *options) {
    struct mpi_run run = {.ranks = ranks, .options = &options->run};
    run.sections = (struct rfx_rank_sections){
        .ranks = ranks, .options = options, .job = &run.job, .from = RFX_PART_OUTER};
    int code = run_all(&run);
    rfx_cli_classes_free(&run.classes);
    rfx_rank_outputs_free(&run.outputs);
    rfx_session_free(run.session);
    rfx_rank_sections_release(&run.sections);
    if (run.sections.states.mem != NULL) rfx_part_states_release(&run.sections.states);
    rfx_part_before_release(&run.before);
    rfx_cli_job_free(&run.job);
    return code;
}
