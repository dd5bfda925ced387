/* The rfexec-mpi program: one command, which mpirun starts once for each rank.
 *
 * A rank opens model and image as 'rfexec run' does. Round after round it makes its share of the
 * states of global operations. Then it makes its rows of the maps that ranks exchange and its share
 * of the outputs. Every rank has plans of its own, inside its own budget. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/graph/op.h"
#include "layers/graph/reduction.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/run/run.h"
#include "rfexec/shards/shard_identity.h"
#include "rfexec/shards/shard_rounds.h"
#include "rfexec/shards/shard_states.h"
#include "tools/cli/classes.h"
#include "tools/cli/command.h"
#include "tools/cli/help.h"
#include "tools/cli/job.h"
#include "tools/cli/options.h"
#include "tools/cli/outputs.h"
#include "tools/cli/program.h"
#include "tools/cli/progress.h"
#include "tools/cli/reference.h"
#include "tools/cli/report.h"
#include "tools/commands/run_result.h"
#include "tools/commands/run_shard.h"
#include "tools/mpi/rank_outputs.h"
#include "tools/mpi/rank_sections.h"
#include "tools/mpi/ranks.h"

/* Adds up along a tree: in step s, ranks that are odd multiples of s send their sum to rank - s. */
static enum rfx_status add_up(struct rfx_ranks *ranks, const struct rfx_node *node,
                              struct rfx_shard_state *item, void *theirs, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int step = 1; step < ranks->size && status == RFX_OK; step *= 2) {
        if ((ranks->rank & step) != 0)
            return rfx_ranks_send(ranks, ranks->rank - step, item->state, item->bytes, err);
        if (ranks->rank + step >= ranks->size) continue;
        status = rfx_ranks_receive(ranks, ranks->rank + step, theirs, item->bytes, err);
        if (status == RFX_OK) rfx_node_reduction(node)->merge(node, item->state, theirs);
    }
    return status;
}

/* Adds up this round's states over all ranks, then gives all ranks the sum. States are exact, so
 * the order does not matter. Holds the largest state once more while it works. */
static enum rfx_status rank_states_merge(struct rfx_ranks *ranks, const struct rfx_graph *graph,
                                         struct rfx_shard_states *states, struct rfx_error *err) {
    size_t most = 1;
    for (int i = 0; i < states->n; i++)
        if (states->items[i].bytes > most) most = states->items[i].bytes;
    void *theirs = rfx_memory_alloc(states->mem, most);
    if (theirs == NULL) return rfx_memory_fail(states->mem, "states", most, err);
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < states->n && status == RFX_OK; i++) {
        struct rfx_shard_state *item = &states->items[i];
        if (item->round != states->round) continue;
        status = add_up(ranks, &graph->nodes[item->node], item, theirs, err);
        if (status == RFX_OK) status = rfx_ranks_spread(ranks, item->state, item->bytes, err);
    }
    rfx_memory_release(states->mem, theirs);
    states->index = states->count = 0; /* the states are merged now */
    return status;
}

struct mpi_run {
    struct rfx_ranks *ranks;
    const struct rfx_cli_run_options *options;
    struct rfx_cli_job job; /* its graph: the whole network's */
    struct rfx_shard_before before;
    struct rfx_rank_sections sections;
    struct rfx_run
        last; /* of the last section; not prepared: this rank has no share of the outputs */
    struct rfx_rank_outputs outputs;
    struct rfx_cli_classes classes;
    struct rfx_run_report report; /* of this rank's share of the outputs */
    uint64_t macs;                /* of all rounds */
    double seconds;
    int rounds;
};

/* Whether all ranks have the same model, image and options: their files may differ. */
static int compare_identities(struct mpi_run *run) {
    enum { ROOM = 16384 };
    static char text[ROOM];
    char why[400];
    struct rfx_shard_file mine = {.run = NULL}, theirs = {.run = NULL};
    struct rfx_error err = {{0}};
    struct rfx_image_options read;
    const struct rfx_shard_run all = rfx_cli_shard_run(&run->job, run->options, &read);
    enum rfx_status status = rfx_shard_identity(&all, &mine.run, &err);
    char *dump = status == RFX_OK ? json_dumps(mine.run, JSON_COMPACT) : NULL;
    if (status == RFX_OK && (dump == NULL || strlen(dump) >= ROOM))
        status = rfx_fail(&err, RFX_STATUS_OUT_OF_MEMORY, "out of memory");
    if (status == RFX_OK) memcpy(text, dump, strlen(dump) + 1);
    free(dump);
    int code = rfx_ranks_agree_on(run->ranks, status, &err);
    if (code == RFX_EXIT_DONE) {
        status = rfx_ranks_spread(run->ranks, text, sizeof text, &err);
        theirs.run = status == RFX_OK ? json_loads(text, 0, NULL) : NULL;
        if (status == RFX_OK &&
            (theirs.run == NULL || !rfx_shard_file_same_run(&mine, &theirs, why, sizeof why)))
            status = rfx_fail(&err, RFX_STATUS_MALFORMED, "not of one run with rank 0: %s",
                              theirs.run == NULL ? "out of memory" : why);
        code = rfx_ranks_agree_on(run->ranks, status, &err);
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

/* Finds the rounds that are left. */
static int look(struct mpi_run *run) {
    struct rfx_error err = {{0}};
    enum rfx_status status =
        rfx_shard_before_settle(&run->before, run->job.graph, RFX_PART_ALL, &err);
    if (status == RFX_OK)
        status = rfx_shard_rounds_check(run->job.graph, RFX_PART_ALL, &run->before.rounds, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

/* Makes this rank's share of the next round's states, and adds the shares of all ranks up. */
static enum rfx_status make_round(struct mpi_run *run, struct rfx_error *err) {
    struct rfx_shard_states *states = &run->sections.states;
    enum rfx_status status = rfx_rank_sections_round(&run->sections, err);
    if (status == RFX_OK) status = rank_states_merge(run->ranks, run->job.graph, states, err);
    run->rounds++;
    rfx_shard_before_release(&run->before);
    run->before.states = *states;
    *states = (struct rfx_shard_states){.mem = states->mem};
    return status;
}

/* Runs the sections up to the next round, and that round. A failure of one rank ends the job. */
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

/* Runs all rounds. A single rank needs none, as it has every map whole. */
static int make_states(struct mpi_run *run) {
    run->before.states.mem = run->job.mem;
    if (run->ranks->size == 1) return RFX_EXIT_DONE;
    int code = rfx_ranks_agree(run->ranks, look(run));
    while (code == RFX_EXIT_DONE && run->before.rounds.rounds > 0) code = make_next(run);
    return code;
}

/* Plans the sections up to the outputs. */
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

/* Makes and exchanges rows up to the last cut. A failure of one rank ends the job. */
static void make_rows(struct mpi_run *run) {
    struct rfx_error err = {{0}};
    run->ranks->together = false;
    enum rfx_status status = rfx_rank_sections_run(&run->sections, &err);
    if (status != RFX_OK) rfx_ranks_end_job(run->ranks, rfx_cli_fail(status, &err));
    run->macs += run->sections.macs; /* includes the rounds */
    run->seconds += run->sections.seconds;
    run->ranks->together = true;
}

static int begin_share(struct mpi_run *run) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    run->last = (struct rfx_run){.plan = plan_of(run),
                                 .spill_folder = run->options->plan.spill,
                                 .progress = rfx_cli_progress_step};
    if (share_of(run) != NULL) status = rfx_run_prepare(&run->last, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static enum rfx_status execute(struct mpi_run *run, struct rfx_error *err) {
    struct rfx_cli_progress progress;
    struct rfx_output_sink sink = rfx_rank_outputs_sink(&run->outputs);
    enum rfx_status status =
        rfx_rank_sections_begin_sums(&run->sections, run->sections.exchange.n, err);
    if (status != RFX_OK || run->last.session == NULL) return status;
    if (run->ranks->rank == 0)
        status = rfx_cli_classes_begin(run->job.mem, run->job.graph, &run->options->report,
                                       &run->classes, err);
    if (status != RFX_OK) return status;
    run->outputs.outputs.classes = &run->classes;
    run->last.sink = &sink;
    run->last.user = &progress;
    rfx_cli_progress_start(&progress, run->ranks->size > 1 ? "its share of the outputs" : "run");
    status = rfx_run_image(&run->last, rfx_rank_sections_image(&run->sections), &run->report, err);
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

/* From opening the network to printing the result; the ranks agree after every step. */
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

/* All ranks together, with the same options. Rank 0 prints the result. Returns the same exit code
 * on all ranks. */
static int run_rank(struct rfx_ranks *ranks, const struct rfx_mpi_options *options) {
    struct mpi_run run = {.ranks = ranks, .options = &options->run};
    run.sections = (struct rfx_rank_sections){
        .ranks = ranks, .options = options, .job = &run.job, .from = RFX_PART_OUTER};
    int code = run_all(&run);
    rfx_cli_classes_free(&run.classes);
    rfx_rank_outputs_free(&run.outputs);
    rfx_run_release(&run.last);
    rfx_rank_sections_release(&run.sections);
    if (run.sections.states.mem != NULL) rfx_shard_states_release(&run.sections.states);
    rfx_shard_before_release(&run.before);
    rfx_cli_job_free(&run.job);
    return code;
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(rfx_mpi_options, "exchange", TEXT, exchange, "auto|never|TENSOR,...",
                   "maps of which ranks exchange rows instead of computing halos twice: those that "
                   "are predicted to save time (auto, the default), none, or these"),
    RFX_CLI_OPTION(rfx_mpi_options, "link-bandwidth", BYTES, link_bytes, "BYTES",
                   "bytes a second between ranks, for --exchange auto (default 1GB); a message is "
                   "assumed to take 50 us"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("ranks options", rows);

static const struct rfx_cli_option parts_rows[] = {
    RFX_CLI_OPTION(
        rfx_mpi_options, "whole-input-hash", FLAG, run.part.whole_input_hash, NULL,
        "let processes compare all bytes of the image file, not only up to 256 MiB of it"),
};
static const struct rfx_cli_group parts_group = RFX_CLI_GROUP(rfx_cli_heading_parts, parts_rows);

static struct rfx_mpi_options values;

static const struct rfx_cli_use uses[] = {
    {&group, 0},
    {&parts_group, 0},
    RFX_CLI_USES_OF_JOB,
    RFX_CLI_USE(file, rfx_mpi_options, run.output),
    RFX_CLI_USE(dump, rfx_mpi_options, run.model),
    RFX_CLI_USE(samples, rfx_mpi_options, run.output),
    RFX_CLI_USE(format, rfx_mpi_options, run.output),
    RFX_CLI_USE(answers, rfx_mpi_options, run.output.answer),
    RFX_CLI_USE(detector, rfx_mpi_options, run.output.answer),
    RFX_CLI_USE(classes, rfx_mpi_options, run.report),
    RFX_CLI_USE(json, rfx_mpi_options, run.json),
};

static const struct rfx_cli_command command = {
    .name = "rfexec-mpi",
    .args = "MODEL INPUT [PLAN OPTIONS] [-o FILE] [--top K --labels FILE] [--json]",
    .summary =
        "run a network on an image with several processes, by MPI: mpirun -n 4 rfexec-mpi ...",
    .details =
        "Does what 'rfexec run' does, and gives the same bits and hash for any number of ranks.\n"
        "Every rank computes some rows of each output and what these need of the image. Halos are\n"
        "computed by both neighbours or exchanged, whichever is predicted to be faster; only maps\n"
        "that all rows go through can be exchanged. States of global pools and norms are added up\n"
        "exactly between rounds; each round begins at the last map that was exchanged, or at the\n"
        "image. --memory and --threads are those of each rank. All ranks write a .npy file, whose\n"
        "folder they must share; rank 0 writes other files and '-o -', and the others send it\n"
        "their rows. When a rank fails or is killed the job ends and there is no file under the\n"
        "name of -o. A network with an operation that needs a whole map and has no such state is\n"
        "refused (exit code 3).\n",
    .examples =
        "mpirun -n 4 rfexec-mpi fsrcnn huge.png --memory 256MiB -o large.npy\n"
        "mpirun -n 16 rfexec-mpi net.onnx scene.tif --memory 1GiB --threads 2 -o map.tif\n"
        "mpirun --oversubscribe -n 3 rfexec-mpi resnet50 photo.jpg --threads 1 --json\n",
    RFX_CLI_TABLE(uses),
    .min_args = 2,
    .max_args = 2,
    .values = &values,
};

/* Whether a word of the command line is an option that may differ between ranks; *value: the next
 * word is its value. */
static bool is_of_rank(const char *word, bool *value) {
    static const char *const own[] = {"--memory", "--threads", "--spill", "-m", "-j"};
    *value = false;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        size_t n = strlen(own[i]);
        bool is_long = own[i][1] == '-';
        if (strncmp(word, own[i], n) != 0) continue;
        *value = word[n] == '\0';
        if (*value || !is_long || word[n] == '=') return true;
    }
    return false;
}

enum { WORDS_ROOM = 32768 };

/* Joins the words that must be the same on all ranks, one per line. false: they are too long. */
static bool join_words(int argc, char **argv, char text[WORDS_ROOM]) {
    size_t used = 0;
    bool skip = false;
    memset(text, 0, WORDS_ROOM);
    for (int i = 0; i < argc; i++) {
        bool drop = skip;
        skip = false;
        if (drop || is_of_rank(argv[i], &skip)) continue;
        size_t n = strlen(argv[i]);
        if (n + 2 > WORDS_ROOM - used) return false;
        memcpy(text + used, argv[i], n);
        text[used + n] = '\n';
        used += n + 1;
    }
    return true;
}

/* Ranks with different words would do different work and wait for each other for ever. */
static int compare_words(struct rfx_ranks *ranks, int argc, char **argv) {
    static char mine[WORDS_ROOM], first[WORDS_ROOM];
    struct rfx_error err = {{0}};
    bool fits = join_words(argc, argv, mine);
    memcpy(first, mine, WORDS_ROOM);
    enum rfx_status status = rfx_ranks_spread(ranks, first, WORDS_ROOM, &err);
    if (status == RFX_OK && !fits)
        status = rfx_fail(&err, RFX_STATUS_INVALID_ARGUMENT,
                          "the words of the command are longer than %d bytes", WORDS_ROOM);
    if (status == RFX_OK && memcmp(first, mine, WORDS_ROOM) != 0)
        status = rfx_fail(&err, RFX_STATUS_INVALID_ARGUMENT,
                          "was started with other words than rank 0: only --memory, --threads and "
                          "--spill may differ between ranks");
    return rfx_ranks_agree_on(ranks, status, &err);
}

/* Whether mpirun has started other processes too: then even "help" has to be compared. */
static bool has_other_ranks(void) {
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *size = getenv(sizes[i]);
        if (size != NULL && strcmp(size, "1") != 0) return true;
    }
    return false;
}

/* All ranks have the same words; rank 0 prints how they should be. */
static int take_words(const struct rfx_ranks *ranks, int argc, char **argv, bool *run) {
    char why[512];
    int code = RFX_EXIT_DONE;
    if (ranks->rank == 0) {
        *run = rfx_cli_take_words(&command, argc, argv, &code);
        return code;
    }
    bool parsed = rfx_cli_options_parse(&command, &values, argc, argv, why, sizeof why);
    *run = parsed && !values.run.words.help;
    if (parsed) return RFX_EXIT_DONE;
    rfx_cli_message("%s", why);
    return RFX_EXIT_USAGE;
}

static int run_ranks(int argc, char **argv) {
    static struct rfx_ranks ranks; /* messages use it until the process ends */
    bool run = false;
    rfx_cli_progress_catch_signals(); /* a file size limit must not end the start of MPI */
    int code = rfx_ranks_start(&ranks, &argc, &argv);
    if (code != RFX_EXIT_DONE) return code;
    if (ranks.rank > 0) rfx_cli_progress_silence();
    code = compare_words(&ranks, argc - 1, argv + 1);
    if (code == RFX_EXIT_DONE)
        code = rfx_ranks_agree(&ranks, take_words(&ranks, argc - 1, argv + 1, &run));
    if (code == RFX_EXIT_DONE && run) {
        if (rfx_cli_use_stdout(&values.run.words))
            stdout = stderr; /* messages about the run, not the output */
        code = run_rank(&ranks, &values);
    }
    if (fflush(stdout) != 0 && code == RFX_EXIT_DONE) code = RFX_EXIT_SYSTEM;
    return rfx_ranks_finish(&ranks, code);
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "help";
    rfx_program_begin(argv);
    if (rfx_cli_is_help(word) && !has_other_ranks()) { /* this works without mpirun too */
        rfx_cli_print_help(&command);
        return rfx_program_end(argc > 1 ? RFX_EXIT_DONE : RFX_EXIT_USAGE);
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("rfexec-mpi %s\n", rfx_version());
        return rfx_program_end(RFX_EXIT_DONE);
    }
    if (strcmp(word, "reference") == 0 && argc == 3 && strcmp(argv[2], "man") == 0) {
        rfx_cli_man_page_of(stdout, &command,
                            "\\fBmpirun\\fR \\-n \\fIRANKS\\fR"); /* called by the build */
        return rfx_program_end(RFX_EXIT_DONE);
    }
    return rfx_program_end(run_ranks(argc, argv));
}
