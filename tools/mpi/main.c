/* The rfexec-mpi program: one command, started by mpirun as many times as there are to be ranks.
 * What it shares with the rfexec program is all but what is in this folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/command.h"
#include "tools/cli/help.h"
#include "tools/cli/program.h"
#include "tools/cli/progress.h"
#include "tools/cli/reference.h"
#include "tools/mpi/mpi_run.h"

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(rfx_mpi_options, "exchange", TEXT, exchange, "auto|never|TENSOR,...",
                   "maps of which ranks exchange rows instead of computing halos twice: those that "
                   "are predicted to save time (auto, the default), none, or these"),
    RFX_CLI_OPTION(rfx_mpi_options, "link-bandwidth", BYTES, link_bytes, "BYTES",
                   "bytes a second between ranks, for --exchange auto (default 1GB); a message is "
                   "assumed to take 50 us"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("ranks options", rows);

static struct rfx_mpi_options values;

static const struct rfx_cli_use uses[] = {
    {&group, 0},
    RFX_CLI_USE(hash, rfx_mpi_options, run.part),
    RFX_CLI_USE(plan, rfx_mpi_options, run.plan),
    RFX_CLI_USE(network, rfx_mpi_options, run.model),
    RFX_CLI_USE(fuse, rfx_mpi_options, run.model),
    RFX_CLI_USE(seed, rfx_mpi_options, run.model),
    RFX_CLI_USE(input, rfx_mpi_options, run.input),
    RFX_CLI_USE(file, rfx_mpi_options, run.output),
    RFX_CLI_USE(dump, rfx_mpi_options, run.model),
    RFX_CLI_USE(samples, rfx_mpi_options, run.output),
    RFX_CLI_USE(format, rfx_mpi_options, run.output),
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

/* Whether a word is an option that each rank may have its own value of; *value: the next word is
 * that value. */
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

/* The words that shape work and files, one a line. false: they are too long. */
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

/* Ranks with other words than rank 0's would make other work, and wait for each other for ever. */
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
    return rfx_ranks_agree(ranks, status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
}

/* Whether mpirun has started more than this process: then even help is a word to compare. */
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
    static struct rfx_ranks ranks; /* messages need it to the end */
    bool run = false;
    rfx_cli_progress_catch_signals(); /* what limits files must not end the start of MPI */
    int code = rfx_ranks_start(&ranks, &argc, &argv);
    if (code != RFX_EXIT_DONE) return code;
    if (ranks.rank > 0) rfx_cli_progress_silence();
    code = compare_words(&ranks, argc - 1, argv + 1);
    if (code == RFX_EXIT_DONE)
        code = rfx_ranks_agree(&ranks, take_words(&ranks, argc - 1, argv + 1, &run));
    if (code == RFX_EXIT_DONE && run) {
        if (rfx_cli_use_stdout(&values.run.words)) stdout = stderr; /* what it tells beside */
        code = rfx_mpi_run(&ranks, &values);
    }
    if (fflush(stdout) != 0 && code == RFX_EXIT_DONE) code = RFX_EXIT_SYSTEM;
    return rfx_ranks_finish(&ranks, code);
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "help";
    rfx_program_begin(argv);
    if (rfx_cli_is_help(word) && !has_other_ranks()) { /* also where there is no mpirun */
        rfx_cli_print_help(&command);
        return rfx_program_end(argc > 1 ? RFX_EXIT_DONE : RFX_EXIT_USAGE);
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("rfexec-mpi %s\n", rfx_version());
        return rfx_program_end(RFX_EXIT_DONE);
    }
    if (strcmp(word, "reference") == 0 && argc == 3 && strcmp(argv[2], "man") == 0) {
        rfx_cli_man_page_of(stdout, &command,
                            "\\fBmpirun\\fR \\-n \\fIRANKS\\fR"); /* for the build */
        return rfx_program_end(RFX_EXIT_DONE);
    }
    return rfx_program_end(run_ranks(argc, argv));
}
