/* The rfexec-mpi program: one command, which mpirun starts once for each rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/command.h"
#include "tools/cli/option_checks.h"
#include "tools/cli/progress.h"
#include "tools/mpi/mpi_run.h"
#include "tools/program/program.h"
#include "tools/words/help.h"
#include "tools/words/reference.h"

static const struct rfx_cli_command command = {
    "rfexec-mpi",
    "MODEL INPUT [PLAN OPTIONS] [-o FILE] [--top K --labels FILE] [--json]",
    "run a network on an image with several processes, by MPI: mpirun -n 4 rfexec-mpi ...",
    "Does what 'rfexec run' does, and gives the same bits and hash for any number of ranks. Every\n"
    "rank makes some rows of each output and what these need of the image: halos are made again "
    "by\n"
    "both neighbours or, of maps that all goes through, exchanged, whichever is predicted to be\n"
    "faster. States of global pools and norms are added up exactly between rounds, each of which\n"
    "begins at the last map that was exchanged, or at the image. --memory and --threads are of\n"
    "each rank. A .npy is written by all ranks, whose folder they must share; other files and\n"
    "'-o -' by rank 0, to which the others send their rows. When a rank fails or is killed the "
    "job\n"
    "ends and nothing is there under the file's name. A network in which an operation without "
    "such\n"
    "a state sees all of a map is refused (exit code 3).\n",
    "mpirun -n 4 rfexec-mpi fsrcnn huge.png --memory 256MiB -o large.npy\n"
    "mpirun -n 16 rfexec-mpi net.onnx scene.tif --memory 1GiB --threads 2 -o map.tif\n"
    "mpirun --oversubscribe -n 3 rfexec-mpi resnet50 photo.jpg --threads 1 --json\n",
    RFX_CLI_FUSE | RFX_CLI_PLAN | RFX_CLI_IMAGE | RFX_CLI_SEED | RFX_CLI_OUTPUT | RFX_CLI_SAMPLES |
        RFX_CLI_CLASSES | RFX_CLI_DUMP | RFX_CLI_RANKS | RFX_CLI_JSON,
    2,
    2,
    NULL};

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

/* Parses the words, which are the same on all ranks; rank 0 prints what is wrong with them. */
static int take_words(const struct rfx_ranks *ranks, int argc, char **argv,
                      struct rfx_cli_options *options, bool *run) {
    char why[256];
    int code = RFX_EXIT_DONE;
    if (ranks->rank == 0) {
        *run = rfx_cli_take_words(&command, argc, argv, options, &code);
        return code;
    }
    bool parsed = rfx_cli_parse_words(&command, argc, argv, options, why, sizeof why);
    *run = parsed && !options->help;
    if (parsed) return RFX_EXIT_DONE;
    rfx_cli_message("%s", why);
    return RFX_EXIT_USAGE;
}

static int run_ranks(int argc, char **argv) {
    static struct rfx_ranks ranks;         /* messages use it until the process ends */
    static struct rfx_cli_options options; /* large for a stack */
    bool run = false;
    rfx_cli_progress_catch_signals(); /* a file size limit must not end the start of MPI */
    int code = rfx_ranks_start(&ranks, &argc, &argv);
    if (code != RFX_EXIT_DONE) return code;
    if (ranks.rank > 0) rfx_cli_progress_silence();
    code = compare_words(&ranks, argc - 1, argv + 1);
    if (code == RFX_EXIT_DONE)
        code = rfx_ranks_agree(&ranks, take_words(&ranks, argc - 1, argv + 1, &options, &run));
    if (code == RFX_EXIT_DONE && run) {
        if (rfx_cli_options_use_stdout(&options))
            stdout = stderr; /* messages about the run, not the output */
        code = rfx_mpi_run(&ranks, &options);
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
