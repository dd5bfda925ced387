/* The temporary's path goes from rank 0 to the others, who open it by that name. Where all are on
 * one machine it is that of a nameless file below /proc, of which nothing is left however the job
 * ends; else it has a name in the folder. */
#include "tools/mpi/shared_file.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rfexec/output/output_file.h"
#include "tools/cli/command.h"

struct rfx_shared_file {
    struct rfx_memory *mem;
    struct rfx_output_file *file; /* of rank 0 */
    MPI_File shared;
    bool open;
    int slot; /* in the list of temporaries; -1: not there */
    char *path;
};

/* What a job that ends early leaves behind otherwise: few, as networks have few outputs. */
enum { MOST_FILES = 64, MOST_TEMPORARY = 4096 };
static char temporaries[MOST_FILES][MOST_TEMPORARY];
static volatile sig_atomic_t listed[MOST_FILES];

static void remove_all(void) {
    for (int i = 0; i < MOST_FILES; i++)
        if (listed[i]) (void)unlink(temporaries[i]);
}

/* The handlers that were there, which remember that the job is to stop. */
static struct sigaction before[NSIG];

static void remove_and_stop(int number) {
    remove_all();
    if (before[number].sa_handler != SIG_DFL && before[number].sa_handler != SIG_IGN)
        before[number].sa_handler(number);
}

static void watch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    static bool watched;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && !watched; i++) {
        struct sigaction action = {.sa_handler = remove_and_stop};
        (void)sigemptyset(&action.sa_mask);
        if (sigaction(numbers[i], NULL, &before[numbers[i]]) == 0 &&
            before[numbers[i]].sa_handler != SIG_IGN)
            (void)sigaction(numbers[i], &action, NULL);
    }
    watched = true;
    rfx_ranks_before_end(remove_all);
}

static enum rfx_status list_temporary(struct rfx_shared_file *file, const char *name,
                                      struct rfx_error *err) {
    int slot = 0;
    while (slot < MOST_FILES && listed[slot]) slot++;
    if (slot == MOST_FILES)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: more than %d outputs at a time",
                        file->path, MOST_FILES);
    memcpy(temporaries[slot], name, strlen(name) + 1);
    listed[slot] = 1;
    file->slot = slot;
    watch_signals();
    return RFX_OK;
}

/* The temporary, as rank 0 tells the others. */
struct place {
    char name[MOST_TEMPORARY], machine[MPI_MAX_PROCESSOR_NAME + 1];
    uint64_t device, inode;
    bool nameless;
};

static void tell_machine(char name[MPI_MAX_PROCESSOR_NAME + 1]) {
    int length = 0;
    memset(name, 0, MPI_MAX_PROCESSOR_NAME + 1);
    (void)MPI_Get_processor_name(name, &length);
}

/* Whether this process means the same file by a path below /proc: processes have other numbers on
 * other machines, and in other containers. */
static bool is_here(const struct place *place) {
    char machine[MPI_MAX_PROCESSOR_NAME + 1];
    struct stat at;
    tell_machine(machine);
    return strcmp(machine, place->machine) == 0 && stat(place->name, &at) == 0 &&
           (uint64_t)at.st_dev == place->device && (uint64_t)at.st_ino == place->inode &&
           access(place->name, W_OK) == 0;
}

/* Rank 0's part: the file is there and has its room on the disk. */
static enum rfx_status make(struct rfx_shared_file *file, uint64_t bytes, bool named,
                            struct place *place, struct rfx_error *err) {
    const char *temporary = NULL;
    struct stat at;
    enum rfx_status status =
        rfx_output_file_open_shared(file->mem, file->path, named, &file->file, &temporary, err);
    if (status != RFX_OK) return status;
    if (strlen(temporary) >= MOST_TEMPORARY ||
        fstat(rfx_output_file_descriptor(file->file), &at) != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: its temporary has no use: %s", file->path,
                        strerror(errno));
    (void)snprintf(place->name, MOST_TEMPORARY, "%s", temporary);
    tell_machine(place->machine);
    place->device = (uint64_t)at.st_dev;
    place->inode = (uint64_t)at.st_ino;
    place->nameless = rfx_output_file_is_nameless(file->file);
    if (!place->nameless) status = list_temporary(file, place->name, err);
    if (status == RFX_OK) status = rfx_output_file_reserve(file->file, bytes, err);
    /* its length now, as rank 0 may not see at once how far others have written */
    if (status == RFX_OK && ftruncate(rfx_output_file_descriptor(file->file), (off_t)bytes) != 0)
        status = rfx_fail(err, RFX_STATUS_IO, "%s: setting the size failed: %s", file->path,
                          strerror(errno));
    return status;
}

/* Each rank by itself: none waits inside of MPI for one that has failed. */
static enum rfx_status open_shared(struct rfx_shared_file *file, const char *name,
                                   struct rfx_error *err) {
    char words[RFX_RANKS_WORDS];
    int result = MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_WRONLY, MPI_INFO_NULL, &file->shared);
    if (result == MPI_SUCCESS) {
        file->open = true;
        return RFX_OK;
    }
    return rfx_fail(err, RFX_STATUS_IO,
                    "%s: its temporary '%.300s' cannot be opened; do all ranks have the folder? %s",
                    file->path, name, rfx_ranks_words(result, words));
}

/* Rank 0 makes the temporary and all know it. *seen: by all, where it is nameless. */
static int make_together(struct rfx_ranks *ranks, struct rfx_shared_file *file, uint64_t bytes,
                         bool named, struct place *place, bool *seen) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    *place = (struct place){.nameless = false};
    if (ranks->rank == 0) status = make(file, bytes, named, place, &err);
    int code =
        rfx_ranks_agree(ranks, status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
    if (code != RFX_EXIT_DONE) return code;
    status = rfx_ranks_spread(ranks, place, sizeof *place, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    bool here = ranks->rank == 0 || !place->nameless || is_here(place);
    *seen = rfx_ranks_agree(ranks, here ? 0 : 1) == 0;
    if (!*seen && ranks->rank == 0) {
        rfx_output_file_free(file->file);
        file->file = NULL;
    }
    return RFX_EXIT_DONE;
}

static int open_together(struct rfx_ranks *ranks, struct rfx_shared_file *file, uint64_t bytes) {
    static struct place place;
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    bool seen = false;
    int code = make_together(ranks, file, bytes, false, &place, &seen);
    if (code == RFX_EXIT_DONE && !seen)
        code = make_together(ranks, file, bytes, true, &place, &seen);
    if (code != RFX_EXIT_DONE) return code;
    if (ranks->rank > 0 && !place.nameless) status = list_temporary(file, place.name, &err);
    if (status == RFX_OK) status = open_shared(file, place.name, &err);
    return rfx_ranks_agree(ranks, status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
}

int rfx_shared_file_open(struct rfx_ranks *ranks, struct rfx_memory *mem, const char *path,
                         uint64_t bytes, struct rfx_shared_file **out) {
    struct rfx_error err = {{0}};
    struct rfx_shared_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    enum rfx_status status = RFX_OK;
    if (file != NULL) {
        file->mem = mem;
        file->slot = -1;
        file->path = rfx_memory_strdup(mem, path);
    }
    if (file == NULL || file->path == NULL) status = rfx_memory_fail(mem, path, sizeof *file, &err);
    int code =
        rfx_ranks_agree(ranks, status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err));
    if (code == RFX_EXIT_DONE) code = open_together(ranks, file, bytes);
    if (code == RFX_EXIT_DONE)
        *out = file;
    else
        rfx_shared_file_free(file);
    return code;
}

/* MPI may write less and call that a success. */
enum rfx_status rfx_shared_file_put(void *user, const void *data, size_t bytes, uint64_t offset,
                                    struct rfx_error *err) {
    struct rfx_shared_file *file = user;
    const char *from = data;
    char words[RFX_RANKS_WORDS];
    while (bytes > 0) {
        MPI_Status done;
        int some = bytes > INT_MAX ? INT_MAX : (int)bytes, written = 0;
        errno = 0;
        int result =
            MPI_File_write_at(file->shared, (MPI_Offset)offset, from, some, MPI_BYTE, &done);
        int number = errno;
        if (result == MPI_SUCCESS) result = MPI_Get_count(&done, MPI_BYTE, &written);
        if (result != MPI_SUCCESS || written <= 0)
            return rfx_fail(err, RFX_STATUS_IO, "%s: writing failed at byte %llu: %s", file->path,
                            (unsigned long long)offset,
                            result != MPI_SUCCESS ? rfx_ranks_words(result, words)
                            : number != 0         ? strerror(number)
                                                  : "nothing more is written");
        from += written;
        offset += (uint64_t)written;
        bytes -= (size_t)written;
    }
    return RFX_OK;
}

enum rfx_status rfx_shared_file_close(struct rfx_shared_file *file, struct rfx_error *err) {
    int result = MPI_File_sync(file->shared);
    if (result == MPI_SUCCESS) result = MPI_File_close(&file->shared);
    file->open = false;
    if (result == MPI_SUCCESS) return RFX_OK;
    (void)rfx_ranks_fail("closing", result, err);
    return rfx_fail_within(err, RFX_STATUS_IO, "%s", file->path);
}

enum rfx_status rfx_shared_file_commit(struct rfx_shared_file *file, struct rfx_error *err) {
    return rfx_output_file_commit(file->file, err);
}

void rfx_shared_file_free(struct rfx_shared_file *file) {
    if (file == NULL) return;
    if (file->open) (void)MPI_File_close(&file->shared);
    rfx_output_file_free(file->file);
    if (file->slot >= 0) listed[file->slot] = 0;
    rfx_memory_release(file->mem, file->path);
    rfx_memory_release(file->mem, file);
}
