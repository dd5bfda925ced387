/* Files that all ranks write, shares that wait for rank 0, and sums of fingerprints; see
 * rank_outputs.h. */
#include "tools/mpi/rank_outputs.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/temp_file.h"
#include "rf_analysis/part_ends.h"
#include "rfexec/output/output_file.h"
#include "rfexec/output/output_folder.h"
#include "rfexec/shards/shard_place.h"
#include "tools/cli/command.h"

/* A temporary file that all ranks write. Rank 0 creates it and sends its path to the others. Where
 * all ranks are on one machine the file has no name and is opened by its path below /proc, so that
 * nothing of it is left however the job ends. Otherwise it has a name in the folder. */

struct rfx_shared_file {
    struct rfx_memory *mem;
    struct rfx_output_file *file; /* rank 0 only */
    MPI_File shared;
    bool open;
    int slot; /* in the list of named temporaries; -1: not listed */
    char *path;
};

/* Named temporaries that must be removed when the job ends early: one per output. */
enum { MOST_FILES = 64, MOST_TEMPORARY = 4096 };
static char temporaries[MOST_FILES][MOST_TEMPORARY];
static volatile sig_atomic_t listed[MOST_FILES];

static void remove_all(void) {
    for (int i = 0; i < MOST_FILES; i++)
        if (listed[i]) (void)unlink(temporaries[i]);
}

/* The signal handlers before ours; they note that the job is to stop. */
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

/* The temporary file, as rank 0 describes it to the others. */
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

/* Whether this process finds the same file at a path below /proc. On another machine or in another
 * container the number of a process means another one. */
static bool is_here(const struct place *place) {
    char machine[MPI_MAX_PROCESSOR_NAME + 1];
    struct stat at;
    tell_machine(machine);
    return strcmp(machine, place->machine) == 0 && stat(place->name, &at) == 0 &&
           (uint64_t)at.st_dev == place->device && (uint64_t)at.st_ino == place->inode &&
           access(place->name, W_OK) == 0;
}

/* Creates the temporary with its room on the disk (rank 0). */
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
    /* the length is set now: rank 0 may not see at once how far others have written */
    if (status == RFX_OK && ftruncate(rfx_output_file_descriptor(file->file), (off_t)bytes) != 0)
        status = rfx_fail(err, RFX_STATUS_IO, "%s: setting the size failed: %s", file->path,
                          strerror(errno));
    return status;
}

/* Opens the temporary in each rank by itself, so that no rank waits inside MPI for one that failed.
 */
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

/* Rank 0 creates the temporary, all ranks learn its place. *seen: all ranks can open it. */
static int make_together(struct rfx_ranks *ranks, struct rfx_shared_file *file, uint64_t bytes,
                         bool named, struct place *place, bool *seen) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    *place = (struct place){.nameless = false};
    if (ranks->rank == 0) status = make(file, bytes, named, place, &err);
    int code = rfx_ranks_agree_on(ranks, status, &err);
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
    return rfx_ranks_agree_on(ranks, status, &err);
}

/* Frees; a temporary that has not got its final name is removed. NULL is fine. */
static void shared_file_free(struct rfx_shared_file *file) {
    if (file == NULL) return;
    if (file->open) (void)MPI_File_close(&file->shared);
    rfx_output_file_free(file->file);
    if (file->slot >= 0) listed[file->slot] = 0;
    rfx_memory_release(file->mem, file->path);
    rfx_memory_release(file->mem, file);
}

/* All ranks together; `bytes`: of the whole file. Returns the same exit code on all ranks. After
 * another code than RFX_EXIT_DONE a message has been printed and there is no file. */
static int shared_file_open(struct rfx_ranks *ranks, struct rfx_memory *mem, const char *path,
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
    int code = rfx_ranks_agree_on(ranks, status, &err);
    if (code == RFX_EXIT_DONE) code = open_together(ranks, file, bytes);
    if (code == RFX_EXIT_DONE)
        *out = file;
    else
        shared_file_free(file);
    return code;
}

/* Writes bytes at an offset, by one rank alone. The put of a struct rfx_npy_target; user: the file.
 */
static enum rfx_status shared_file_put(void *user, const void *data, size_t bytes, uint64_t offset,
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

/* Brings what this rank wrote to the disk and closes the file. All ranks together, whatever
 * happened before. */
static enum rfx_status shared_file_close(struct rfx_shared_file *file, struct rfx_error *err) {
    int result = MPI_File_sync(file->shared);
    if (result == MPI_SUCCESS) result = MPI_File_close(&file->shared);
    file->open = false;
    if (result == MPI_SUCCESS) return RFX_OK;
    (void)rfx_ranks_fail("closing", result, err);
    return rfx_fail_within(err, RFX_STATUS_IO, "%s", file->path);
}

/* Gives the file its name: rank 0, after all ranks have closed it. */
static enum rfx_status shared_file_commit(struct rfx_shared_file *file, struct rfx_error *err) {
    return rfx_output_file_commit(file->file, err);
}

#define BAND_BYTES ((size_t)1 << 20)

/* Where an output goes; rank 0 decides. */
enum where { GOES_NOWHERE, GOES_SHARED, GOES_TO_RANK_0 };

/* Ends are the maps that outputs are made of (rf_analysis/part_ends.h). */
static int count_ends(const struct rfx_graph *whole) {
    return rfx_part_ends(whole, RFX_PART_ALL);
}

static struct rfx_end end_of(const struct rfx_graph *whole, int e) {
    return rfx_part_end(whole, RFX_PART_ALL, e);
}

static const struct rfx_tensor *map_of(const struct rfx_graph *whole, int e) {
    return &whole->nodes[end_of(whole, e).node].out;
}

static bool is_map(const struct rfx_graph *whole, int e) {
    return map_of(whole, e)->layout == RFX_LAYOUT_NHWC;
}

/* At least one row of every map. */
static size_t band_bytes(const struct rfx_graph *whole) {
    size_t most = BAND_BYTES;
    for (int e = 0; e < count_ends(whole); e++) {
        size_t row =
            is_map(whole, e) ? rfx_tensor_pixel_bytes(map_of(whole, e), map_of(whole, e)->w) : 0;
        if (row > most) most = row;
    }
    return most;
}

size_t rfx_rank_outputs_bytes(const struct rfx_ranks *ranks, const struct rfx_graph *whole,
                              const struct rfx_cli_run_options *options,
                              const struct rfx_geo_source *source) {
    size_t bytes = rfx_cli_outputs_bytes(whole, options, source);
    if (ranks->size == 1 || bytes == 0) return bytes;
    return bytes + band_bytes(whole) + (size_t)count_ends(whole) * RFX_OUTPUT_SPOOL_BYTES;
}

/* Whether all ranks can write the file. */
static bool is_shared(const struct rfx_graph *whole, int k, const char *name,
                      const struct rfx_output_format *format) {
    bool maps = true;
    for (int e = 0; e < count_ends(whole); e++)
        if (end_of(whole, e).output == k) maps &= is_map(whole, e);
    return maps && format->kind == &rfx_output_npy && rfx_output_file_is_regular(name);
}

static enum rfx_status open_waiting(struct rfx_rank_outputs *o, int k, struct rfx_error *err) {
    char path[RFX_CLI_FILE_NAME];
    enum rfx_status status = RFX_OK;
    (void)snprintf(path, sizeof path, "%s/share", o->folder);
    for (int e = 0; e < count_ends(o->whole) && status == RFX_OK; e++) {
        struct rfx_rect part = rfx_part_end_share(o->whole, e, o->ranks->rank, o->ranks->size);
        if (end_of(o->whole, e).output != k || rfx_rect_is_empty(part)) continue;
        struct rfx_tensor share =
            rfx_tensor_nhwc(map_of(o->whole, e)->c, rfx_rect_rows(part), rfx_rect_cols(part));
        status = rfx_output_spool_open(o->mem, path, &share, &o->waiting[e], err);
    }
    return status;
}

/* Opens where this rank's share of output k goes; a file that all write is open already. */
static enum rfx_status open_stream(struct rfx_rank_outputs *o, int k, enum where where,
                                   const char *name, const struct rfx_output_format *format,
                                   struct rfx_error *err) {
    struct rfx_output_format onto = *format;
    struct rfx_cli_output *item = &o->outputs.items[k];
    if (where == GOES_TO_RANK_0 && o->ranks->rank > 0) return open_waiting(o, k, err);
    o->targets[k] = (struct rfx_npy_target){shared_file_put, o->shared[k], o->ranks->rank == 0};
    if (where == GOES_SHARED) onto.onto = &o->targets[k];
    return rfx_cli_outputs_open_file(o->whole, o->options, o->source, k, name, &onto, &item->stream,
                                     err);
}

static int open_output(struct rfx_rank_outputs *o, int k) {
    char name[RFX_CLI_FILE_NAME];
    struct rfx_error err = {{0}};
    struct rfx_output_format format = {.kind = &rfx_output_npy};
    enum rfx_status status = rfx_cli_outputs_file(o->whole, o->options, k, name, &format, &err);
    int where = name[0] == '\0'                         ? GOES_NOWHERE
                : is_shared(o->whole, k, name, &format) ? GOES_SHARED
                                                        : GOES_TO_RANK_0;
    if (status == RFX_OK) status = rfx_ranks_spread(o->ranks, &where, sizeof where, &err);
    int code = rfx_ranks_agree_on(o->ranks, status, &err);
    if (code != RFX_EXIT_DONE || where == GOES_NOWHERE) return code;
    const struct rfx_npy_array array = rfx_output_array(&format, o->outputs.items[k].tensor);
    if (where == GOES_SHARED)
        code = shared_file_open(o->ranks, o->mem, name, rfx_npy_write_bytes(&array), &o->shared[k]);
    if (code != RFX_EXIT_DONE) return code;
    status = open_stream(o, k, (enum where)where, name, &format, &err);
    return rfx_ranks_agree_on(o->ranks, status, &err);
}

/* Creates the file without a name and drops it. Pipes and terminals are left alone. */
static enum rfx_status try_output(struct rfx_memory *mem, const char *name,
                                  const struct rfx_output_format *format, struct rfx_error *err) {
    struct rfx_output_file *file = NULL;
    struct rfx_output_folder *folder = NULL;
    enum rfx_status status = RFX_OK;
    if (format->kind->folder)
        status = rfx_output_folder_open(mem, name, &folder, err);
    else if (rfx_output_file_is_regular(name))
        status = rfx_output_file_open(mem, name, &file, err);
    rfx_output_folder_free(folder);
    rfx_output_file_free(file);
    return status;
}

int rfx_rank_outputs_check(struct rfx_ranks *ranks, struct rfx_memory *mem,
                           const struct rfx_graph *whole,
                           const struct rfx_cli_run_options *options) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    for (int k = 0; ranks->rank == 0 && k < whole->n_outputs && status == RFX_OK; k++) {
        char name[RFX_CLI_FILE_NAME];
        struct rfx_output_format format = {.kind = &rfx_output_npy};
        status = rfx_cli_outputs_file(whole, options, k, name, &format, &err);
        if (status == RFX_OK && name[0] != '\0') status = try_output(mem, name, &format, &err);
    }
    return rfx_ranks_agree_on(ranks, status, &err);
}

static enum rfx_status allocate(struct rfx_rank_outputs *o, struct rfx_error *err) {
    const struct rfx_graph *whole = o->whole;
    size_t n = (size_t)whole->n_outputs, e = (size_t)count_ends(whole);
    enum rfx_status status = rfx_cli_outputs_list(o->mem, whole, 1, &o->outputs, err);
    if (status != RFX_OK) return status;
    o->shared = rfx_memory_calloc(o->mem, n, sizeof(struct rfx_shared_file *));
    o->targets = rfx_memory_calloc(o->mem, n, sizeof *o->targets);
    o->waiting = rfx_memory_calloc(o->mem, e, sizeof(struct rfx_output_spool *));
    o->ends = rfx_memory_calloc(o->mem, e, sizeof *o->ends);
    if (o->ranks->size > 1) o->band = rfx_memory_alloc(o->mem, band_bytes(whole));
    if (o->shared == NULL || o->targets == NULL || o->waiting == NULL || o->ends == NULL ||
        (o->band == NULL && o->ranks->size > 1))
        return rfx_memory_fail(o->mem, "outputs", band_bytes(whole), err);
    for (int i = 0, k = 0; i < count_ends(whole); i++)
        if (!rfx_rect_is_empty(rfx_part_end_share(whole, i, o->ranks->rank, o->ranks->size)))
            o->ends[k++] = i;
    return RFX_OK;
}

int rfx_rank_outputs_open(struct rfx_ranks *ranks, struct rfx_memory *mem,
                          const struct rfx_graph *whole, const struct rfx_cli_run_options *options,
                          const struct rfx_geo_source *source, struct rfx_rank_outputs *outputs) {
    struct rfx_error err = {{0}};
    *outputs = (struct rfx_rank_outputs){.ranks = ranks,
                                         .mem = mem,
                                         .whole = whole,
                                         .options = options,
                                         .source = source,
                                         .folder = rfx_temp_folder(options->plan.spill)};
    enum rfx_status status = allocate(outputs, &err);
    int code = rfx_ranks_agree_on(ranks, status, &err);
    for (int k = 0; k < whole->n_outputs && code == RFX_EXIT_DONE; k++)
        code = open_output(outputs, k);
    return code;
}

static enum rfx_status put_waiting(void *user, struct rfx_rect rect, const struct rfx_view *view,
                                   struct rfx_error *err) {
    return rfx_output_spool_write(user, rect, view, err);
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_rank_outputs *o = user;
    int e = o->ends[end->output];
    const struct rfx_end whole = end_of(o->whole, e);
    struct rfx_output_sink sink = rfx_cli_outputs_sink(&o->outputs);
    enum rfx_status status = sink.write(sink.user, &whole, rect, view, err);
    if (status != RFX_OK || o->waiting[e] == NULL) return status;
    struct rfx_rect part = rfx_part_end_share(o->whole, e, o->ranks->rank, o->ranks->size);
    return rfx_shard_put_rows(part, rect, view, put_waiting, o->waiting[e], err);
}

struct rfx_output_sink rfx_rank_outputs_sink(struct rfx_rank_outputs *outputs) {
    struct rfx_output_sink sink = {.write = receive, .user = outputs};
    return sink;
}

/* Moves rank r's share of end e, band by band, into rank 0's stream. */
static enum rfx_status move_share(struct rfx_rank_outputs *o, int e, int r, struct rfx_error *err) {
    const struct rfx_end end = end_of(o->whole, e);
    const struct rfx_tensor *map = map_of(o->whole, e);
    struct rfx_rect part = rfx_part_end_share(o->whole, e, r, o->ranks->size);
    size_t row = rfx_tensor_pixel_bytes(map, map->w);
    int64_t rows = rfx_max_i64(1, (int64_t)(band_bytes(o->whole) / row));
    enum rfx_status status = RFX_OK;
    for (int64_t y = part.y0; y < part.y1 && status == RFX_OK; y += rows) {
        struct rfx_rect rect = rfx_rect_make(y, rfx_min_i64(y + rows, part.y1), part.x0, part.x1);
        struct rfx_view view = rfx_view_of(map, o->band, rect);
        size_t bytes = row * (size_t)rfx_rect_rows(rect);
        if (o->ranks->rank == r) {
            for (int64_t i = rect.y0; i < rect.y1 && status == RFX_OK; i++)
                status = rfx_output_spool_read(o->waiting[e], i - part.y0,
                                               rfx_view_f32_at(&view, i, 0), err);
            if (status == RFX_OK) status = rfx_ranks_send(o->ranks, 0, o->band, bytes, err);
        } else {
            status = rfx_ranks_receive(o->ranks, r, o->band, bytes, err);
            if (status == RFX_OK)
                status = rfx_output_stream_write_end(o->outputs.items[end.output].stream, &end,
                                                     rect, &view, err);
        }
    }
    return status;
}

/* Moves all shares that wait. All ranks agree on which do: outputs that rank 0 writes alone. */
static enum rfx_status move_shares(struct rfx_rank_outputs *o, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int e = 0; e < count_ends(o->whole) && status == RFX_OK; e++) {
        int k = end_of(o->whole, e).output;
        bool mine = o->ranks->rank == 0 && o->outputs.items[k].stream != NULL &&
                    o->shared[k] == NULL && is_map(o->whole, e);
        if (o->waiting[e] != NULL) status = move_share(o, e, o->ranks->rank, err);
        for (int r = 1; mine && r < o->ranks->size && status == RFX_OK; r++)
            status = move_share(o, e, r, err);
    }
    return status;
}

/* Ends this rank's writing. */
static enum rfx_status close_shared(struct rfx_rank_outputs *o, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < o->outputs.count && status == RFX_OK; k++) {
        if (o->shared[k] == NULL) continue;
        status = rfx_output_stream_commit(o->outputs.items[k].stream, NULL, NULL, err);
        if (status == RFX_OK) status = shared_file_close(o->shared[k], err);
    }
    return status;
}

/* Adds up fingerprints and numbers of elements at rank 0. All ranks take part for every output,
 * whatever they find. */
static enum rfx_status add_up(struct rfx_rank_outputs *o, struct rfx_error *err) {
    enum rfx_status found = RFX_OK;
    for (int k = 0; k < o->outputs.count; k++) {
        struct rfx_cli_output *item = &o->outputs.items[k];
        uint64_t sums[3] = {item->fingerprint.high, item->fingerprint.low,
                            (uint64_t)item->received};
        enum rfx_status status = rfx_ranks_sum(o->ranks, sums, 3, err);
        if (status != RFX_OK) return status;
        if (o->ranks->rank > 0) continue;
        item->fingerprint = (struct rfx_fingerprint){.high = sums[0], .low = sums[1]};
        rfx_fingerprint_hex(&item->fingerprint, item->hash);
        if (sums[2] != (uint64_t)item->tensor->elems)
            found = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                             "output '%s': %llu of %lld elements came", item->name,
                             (unsigned long long)sums[2], (long long)item->tensor->elems);
    }
    return found;
}

static enum rfx_status commit(struct rfx_rank_outputs *o, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < o->outputs.count && o->ranks->rank == 0 && status == RFX_OK; k++) {
        if (o->outputs.items[k].stream == NULL) continue;
        status = o->shared[k] != NULL
                     ? shared_file_commit(o->shared[k], err)
                     : rfx_output_stream_commit(o->outputs.items[k].stream, NULL, NULL, err);
    }
    return status;
}

int rfx_rank_outputs_finish(struct rfx_rank_outputs *outputs) {
    struct rfx_error err = {{0}};
    enum rfx_status status = move_shares(outputs, &err);
    if (status != RFX_OK) /* other ranks wait for rows */
        rfx_ranks_end_job(outputs->ranks, rfx_cli_fail(status, &err));
    status = close_shared(outputs, &err);
    int code = rfx_ranks_agree_on(outputs->ranks, status, &err);
    if (code != RFX_EXIT_DONE) return code;
    status = add_up(outputs, &err);
    if (status == RFX_OK) status = commit(outputs, &err);
    return rfx_ranks_agree_on(outputs->ranks, status, &err);
}

void rfx_rank_outputs_free(struct rfx_rank_outputs *o) {
    if (o->mem == NULL) return;
    for (int e = 0; o->waiting != NULL && e < count_ends(o->whole); e++)
        rfx_output_spool_free(o->waiting[e]);
    for (int k = 0; o->shared != NULL && k < o->whole->n_outputs; k++)
        shared_file_free(o->shared[k]);
    rfx_cli_outputs_free(&o->outputs);
    rfx_memory_release(o->mem, o->band);
    rfx_memory_release(o->mem, o->ends);
    rfx_memory_release(o->mem, o->waiting);
    rfx_memory_release(o->mem, o->targets);
    rfx_memory_release(o->mem, o->shared);
    *o = (struct rfx_rank_outputs){0};
}
