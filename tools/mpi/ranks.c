/* MPI calls that return statuses; see ranks.h. */
#include "tools/mpi/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "layers/core/clock.h"
#include "tools/cli/command.h"
#include "tools/cli/program.h"
#include "tools/cli/progress.h"

enum { TAG = 1, KEPT_BYTES = 8192, LONGEST_NAP_NS = 1000000, FIRST_NAP_NS = 20000 };

static struct rfx_ranks *job; /* the job of this process, for its messages */
static char kept[KEPT_BYTES]; /* kept messages, each with a newline */
static void (*volatile clean_up)(void);

/* Prints lines with `mark` before each. Each line is one write, so that ranks do not mix theirs. */
static void print_lines(const char *lines, const char *mark) {
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        char line[KEPT_BYTES + 64];
        int n = snprintf(line, sizeof line, "rfexec-mpi: %s%.*s\n", mark, (int)length, lines);
        if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0) return;
        lines += length + (lines[length] == '\n');
    }
}

static const char *mark_of(int rank, int size, char mark[32]) {
    mark[0] = '\0';
    if (size > 1) (void)snprintf(mark, 32, "rank %d: ", rank);
    return mark;
}

static void print_kept(const struct rfx_ranks *ranks) {
    char mark[32];
    print_lines(kept, mark_of(ranks->rank, ranks->size, mark));
    kept[0] = '\0';
}

static void hear(const char *text) {
    size_t used = strlen(kept);
    (void)snprintf(kept + used, sizeof kept - used, "%s\n", text);
    if (!job->together) print_kept(job);
}

const char *rfx_ranks_words(int mpi_error, char words[RFX_RANKS_WORDS]) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)MPI_Error_string(mpi_error, text, &length);
    for (char *p = text; *p != '\0'; p++)
        if (*p == '\n') *p = ' ';
    (void)snprintf(words, RFX_RANKS_WORDS, "%.*s", RFX_RANKS_WORDS - 1, text);
    return words;
}

enum rfx_status rfx_ranks_fail(const char *what, int mpi_error, struct rfx_error *err) {
    char words[RFX_RANKS_WORDS];
    return rfx_fail(err, RFX_STATUS_IO, "MPI, %s: %s", what, rfx_ranks_words(mpi_error, words));
}

/* Tells that the job is alive while rank 0 waits. */
static void tell_waiting(const struct rfx_ranks *ranks, double seconds, double *told) {
    char line[80], mark[32];
    if (ranks->rank > 0 || !rfx_cli_progress_is_due(seconds, told)) return;
    (void)snprintf(line, sizeof line, "has waited %.0f s for the other ranks", seconds);
    print_lines(line, mark_of(0, ranks->size, mark));
}

/* Waits for an operation that MPI has begun with the result `begun`. */
static enum rfx_status wait_for(struct rfx_ranks *ranks, const char *what, int begun,
                                MPI_Request *request, struct rfx_error *err) {
    struct timespec nap = {0, FIRST_NAP_NS};
    int done = 0, result = begun;
    double since = rfx_clock_seconds(CLOCK_MONOTONIC), told = 0.0;
    while (result == MPI_SUCCESS) {
        result = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done) break;
        if (rfx_cli_progress_cancelled()) {
            ranks->broken = true;
            return rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
        }
        (void)nanosleep(&nap, NULL);
        tell_waiting(ranks, rfx_clock_seconds(CLOCK_MONOTONIC) - since, &told);
        if (nap.tv_nsec < LONGEST_NAP_NS) nap.tv_nsec *= 2;
    }
    if (result == MPI_SUCCESS) return RFX_OK;
    ranks->broken = true;
    return rfx_ranks_fail(what, result, err);
}

/* Begins moving one piece between this rank and `peer`; returns MPI's result. */
typedef int begin_piece(char *data, int bytes, int peer, MPI_Request *request);

static int begin_spread(char *data, int bytes, int peer, MPI_Request *request) {
    return MPI_Ibcast(data, bytes, MPI_BYTE, peer, MPI_COMM_WORLD, request);
}

static int begin_send(char *data, int bytes, int peer, MPI_Request *request) {
    return MPI_Isend(data, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, request);
}

static int begin_receive(char *data, int bytes, int peer, MPI_Request *request) {
    return MPI_Irecv(data, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, request);
}

static enum rfx_status in_pieces(struct rfx_ranks *ranks, const char *what, begin_piece *begin,
                                 char *data, size_t bytes, int peer, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (size_t at = 0; at < bytes && status == RFX_OK; at += RFX_RANKS_PIECE_BYTES) {
        size_t left = bytes - at, n = left < RFX_RANKS_PIECE_BYTES ? left : RFX_RANKS_PIECE_BYTES;
        MPI_Request request = MPI_REQUEST_NULL;
        int begun = begin(data + at, (int)n, peer, &request);
        status = wait_for(ranks, what, begun, &request, err);
    }
    return status;
}

enum rfx_status rfx_ranks_spread(struct rfx_ranks *ranks, void *data, size_t bytes,
                                 struct rfx_error *err) {
    return rfx_ranks_spread_from(ranks, 0, data, bytes, err);
}

enum rfx_status rfx_ranks_spread_from(struct rfx_ranks *ranks, int root, void *data, size_t bytes,
                                      struct rfx_error *err) {
    return in_pieces(ranks, "spreading", begin_spread, data, bytes, root, err);
}

enum rfx_status rfx_ranks_send(struct rfx_ranks *ranks, int to, void *data, size_t bytes,
                               struct rfx_error *err) {
    return in_pieces(ranks, "sending", begin_send, data, bytes, to, err);
}

enum rfx_status rfx_ranks_receive(struct rfx_ranks *ranks, int from, void *data, size_t bytes,
                                  struct rfx_error *err) {
    return in_pieces(ranks, "receiving", begin_receive, data, bytes, from, err);
}

static enum rfx_status reduce(struct rfx_ranks *ranks, uint64_t *values, int n, MPI_Op op,
                              struct rfx_error *err) {
    uint64_t results[8];
    enum rfx_status status = RFX_OK;
    for (int at = 0; at < n && status == RFX_OK; at += 8) {
        int some = n - at < 8 ? n - at : 8;
        MPI_Request request = MPI_REQUEST_NULL;
        int begun =
            MPI_Ireduce(values + at, results, some, MPI_UINT64_T, op, 0, MPI_COMM_WORLD, &request);
        status = wait_for(ranks, "adding up", begun, &request, err);
        if (status == RFX_OK && ranks->rank == 0)
            memcpy(values + at, results, (size_t)some * sizeof *values);
    }
    return status;
}

enum rfx_status rfx_ranks_sum(struct rfx_ranks *ranks, uint64_t *values, int n,
                              struct rfx_error *err) {
    return reduce(ranks, values, n, MPI_SUM, err);
}

enum rfx_status rfx_ranks_most(struct rfx_ranks *ranks, uint64_t *values, int n,
                               struct rfx_error *err) {
    return reduce(ranks, values, n, MPI_MAX, err);
}

/* Rank 0 prints what all ranks say once, and what differs on other ranks. */
static enum rfx_status share_messages(struct rfx_ranks *ranks, struct rfx_error *err) {
    static char theirs[KEPT_BYTES], mine[KEPT_BYTES];
    bool alike = true;
    char mark[32];
    enum rfx_status status = RFX_OK;
    memcpy(mine, kept, sizeof mine);
    if (ranks->rank != 0) {
        status = rfx_ranks_send(ranks, 0, kept, sizeof kept, err);
        if (status == RFX_OK) kept[0] = '\0';
        return status;
    }
    for (int r = 1; r < ranks->size && status == RFX_OK; r++) {
        status = rfx_ranks_receive(ranks, r, theirs, sizeof theirs, err);
        bool same = status != RFX_OK || strcmp(theirs, mine) == 0;
        alike = alike && same;
        if (!same) print_lines(theirs, mark_of(r, ranks->size, mark));
    }
    print_lines(mine, alike ? "" : mark_of(0, ranks->size, mark));
    kept[0] = '\0';
    return status;
}

int rfx_ranks_agree(struct rfx_ranks *ranks, int code) {
    struct rfx_error err = {{0}};
    int local[2] = {code, kept[0] != '\0'}, all[2] = {code, local[1]};
    MPI_Request request = MPI_REQUEST_NULL;
    if (ranks->broken) return code != RFX_EXIT_DONE ? code : RFX_EXIT_SYSTEM;
    int begun = MPI_Iallreduce(local, all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    enum rfx_status status = wait_for(ranks, "agreeing", begun, &request, &err);
    if (status == RFX_OK && all[1] != 0) status = share_messages(ranks, &err);
    return status == RFX_OK ? all[0] : rfx_cli_fail(status, &err);
}

int rfx_ranks_agree_on(struct rfx_ranks *ranks, enum rfx_status status,
                       const struct rfx_error *err) {
    return rfx_ranks_agree(ranks, status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, err));
}

/* Does everything once that a run does, so that MPI has its memory before anything is planned. */
static enum rfx_status warm_up(struct rfx_ranks *ranks, struct rfx_error *err) {
    static char piece[RFX_RANKS_PIECE_BYTES];
    uint64_t value = 0;
    MPI_File file;
    MPI_Status done;
    enum rfx_status status = rfx_ranks_spread(ranks, piece, sizeof piece, err);
    if (status == RFX_OK)
        status = rfx_ranks_spread_from(ranks, ranks->size - 1, piece, sizeof piece, err);
    if (status == RFX_OK && ranks->rank > 0)
        status = rfx_ranks_send(ranks, 0, piece, sizeof piece, err);
    for (int r = 1; r < ranks->size && ranks->rank == 0 && status == RFX_OK; r++)
        status = rfx_ranks_receive(ranks, r, piece, sizeof piece, err);
    if (status == RFX_OK) status = rfx_ranks_sum(ranks, &value, 1, err);
    if (status != RFX_OK) return status;
    /* a failure does not matter here: no file has been asked for yet */
    if (MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &file) ==
        MPI_SUCCESS) {
        (void)MPI_File_write_at(file, 0, piece, sizeof piece, MPI_BYTE, &done);
        (void)MPI_File_close(&file);
    }
    return RFX_OK;
}

int rfx_ranks_start(struct rfx_ranks *ranks, int *argc, char ***argv) {
    struct rfx_error err = {{0}};
    int provided, result;
    *ranks = (struct rfx_ranks){.size = 1, .together = true};
    result = MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    if (result != MPI_SUCCESS) return rfx_cli_fail(rfx_ranks_fail("start", result, &err), &err);
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &ranks->size);
    job = ranks;
    rfx_program_hear(hear);
    if (ranks->rank > 0 && freopen("/dev/null", "w", stdout) == NULL)
        return rfx_cli_fail(rfx_fail(&err, RFX_STATUS_IO, "/dev/null cannot be written"), &err);
    enum rfx_status status = warm_up(ranks, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    return RFX_EXIT_DONE;
}

void rfx_ranks_before_end(void (*clean)(void)) {
    clean_up = clean;
}

_Noreturn void rfx_ranks_end_job(struct rfx_ranks *ranks, int code) {
    if (clean_up != NULL) clean_up();
    print_kept(ranks);
    (void)fflush(stdout);
    rfx_program_ends_by_itself();
    (void)MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

int rfx_ranks_finish(struct rfx_ranks *ranks, int code) {
    if (ranks->broken) rfx_ranks_end_job(ranks, code == RFX_EXIT_DONE ? RFX_EXIT_SYSTEM : code);
    print_kept(ranks);
    ranks->together = false;
    rfx_program_ends_by_itself();
    (void)MPI_Finalize();
    return code;
}
