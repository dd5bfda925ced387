/* Files without names, written and read in pieces by several threads; see spill_files.h. */
#include "rfexec/run/spill_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "layers/core/byte_text.h"
#include "layers/core/checked.h"
#include "layers/core/descriptor.h"
#include "layers/core/printable.h"
#include "layers/core/temp_file.h"
#include "rf_analysis/regions.h"

#define PIECE_BYTES ((size_t)1 << 20) /* bytes that a thread moves at a time */
#define MIB 1048576.0

struct file {
    int fd;   /* -1: closed */
    int last; /* the last stage that reads the file */
};

struct rfx_spill_files {
    const struct rfx_plan *plan;
    const char *folder;
    int n_open;
    struct file files[]; /* per node */
};

enum rfx_status rfx_spill_create(const struct rfx_plan *plan, struct rfx_spill_files **out,
                                 struct rfx_error *err) {
    size_t n = (size_t)plan->graph->n_nodes;
    struct rfx_spill_files *files =
        rfx_memory_calloc(plan->mem, 1, sizeof *files + n * sizeof *files->files);
    if (files == NULL) return rfx_memory_fail(plan->mem, "spilled maps", n, err);
    files->plan = plan;
    for (int i = 0; i < plan->graph->n_nodes; i++)
        files->files[i] = (struct file){-1, rfx_plan_spill_last(plan, i)};
    *out = files;
    return RFX_OK;
}

void rfx_spill_enter_stage(struct rfx_spill_files *files, int stage) {
    for (int i = 0; files->n_open > 0 && i < files->plan->graph->n_nodes; i++) {
        struct file *file = &files->files[i];
        if (file->fd < 0 || file->last >= stage) continue;
        (void)close(file->fd);
        file->fd = -1;
        files->n_open--;
    }
}

void rfx_spill_free(struct rfx_spill_files *files) {
    if (files == NULL) return;
    rfx_spill_enter_stage(files, files->plan->n_stages);
    rfx_memory_release(files->plan->mem, files);
}

void rfx_spill_set_folder(struct rfx_spill_files *files, const char *folder) {
    files->folder = folder;
}

enum rfx_status rfx_spill_begin(struct rfx_spill_files *files, struct rfx_error *err) {
    const struct rfx_plan_spill *spill = &files->plan->spill;
    struct statvfs disk;
    rfx_spill_enter_stage(files, files->plan->n_stages); /* closes the files of a run that failed */
    if (spill->written == 0) return RFX_OK;
    if (files->folder == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the plan spills maps to files, %.1f MiB at a time, but no folder is given "
                        "for them (--spill DIR)",
                        (double)spill->most / MIB);
    if (statvfs(files->folder, &disk) != 0)
        return rfx_fail(err, RFX_STATUS_IO, "folder '%.200s' for spilled maps: %s", files->folder,
                        strerror(errno));
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    char has[RFX_BYTE_TEXT], needs[RFX_BYTE_TEXT];
    if (room >= spill->most) return RFX_OK;
    rfx_byte_texts((size_t)room, (size_t)spill->most, has, needs);
    return rfx_fail(err, RFX_STATUS_IO,
                    "folder '%.200s' has %s free, spilled maps need %s at a time", files->folder,
                    has, needs);
}

static enum rfx_status fail_io(const struct rfx_spill_files *files, int node, const char *doing,
                               int number, struct rfx_error *err) {
    const struct rfx_node *n = &files->plan->graph->nodes[node];
    return rfx_fail(err, RFX_STATUS_IO, "folder '%.200s': %s the %.1f MiB of '%.60s': %s",
                    files->folder, doing, (double)rfx_node_roi_bytes(n) / MIB, n->name,
                    strerror(number));
}

/* Makes the file of a node, if there is none, and reserves the disk space of its map. */
static enum rfx_status open_file(struct rfx_spill_files *files, int node, struct rfx_error *err) {
    struct file *file = &files->files[node];
    size_t bytes = rfx_node_roi_bytes(&files->plan->graph->nodes[node]);
    if (file->fd >= 0) return RFX_OK;
    file->fd = rfx_temp_file_open(files->folder);
    if (file->fd < 0) return fail_io(files, node, "cannot make a file for", errno, err);
    files->n_open++;
    int number = rfx_descriptor_reserve(file->fd, 0, (int64_t)bytes);
    if (number != ENOSPC && number != EDQUOT && number != EFBIG)
        return RFX_OK; /* the file system cannot reserve */
    return fail_io(files, node, "no room for", number, err);
}

/* A rectangle that is written to or read from a file. */
struct transfer {
    const struct rfx_tensor *map;
    struct rfx_rect held; /* rectangle of the map that the file holds */
    const struct rfx_view *view;
    struct rfx_rect rect;
    int64_t piece_rows;
    int fd;
    bool write;
    atomic_int number; /* errno of the first failure; 0: none */
};

static int move(const struct transfer *t, unsigned char *at, size_t bytes, int64_t offset) {
    return t->write ? rfx_descriptor_write_at(t->fd, at, bytes, offset)
                    : rfx_descriptor_read_at(t->fd, at, bytes, offset);
}

/* Moves the rows of one piece. Rows that are contiguous both in memory and in the file are moved at
 * once. */
static void move_piece(void *user, int64_t index, int thread) {
    struct transfer *t = user;
    const struct rfx_rect *rect = &t->rect;
    int64_t y = rect->y0 + index * t->piece_rows;
    int64_t end = rfx_min_i64(y + t->piece_rows, rect->y1);
    size_t row = rfx_tensor_pixel_bytes(t->map, rfx_rect_cols(*rect));
    int64_t width = rfx_rect_cols(t->held);
    bool whole = rfx_rect_cols(*rect) == width;
    (void)thread;
    while (y < end && atomic_load(&t->number) == 0) {
        unsigned char *at = rfx_view_at(t->view, y, rect->x0);
        int64_t next = y + 1;
        while (whole && next < end &&
               (unsigned char *)rfx_view_at(t->view, next, rect->x0) ==
                   at + (size_t)(next - y) * row)
            next++;
        int64_t offset = (int64_t)rfx_tensor_pixel_bytes(
            t->map, (y - t->held.y0) * width + rect->x0 - t->held.x0);
        int number = move(t, at, (size_t)(next - y) * row, offset);
        int none = 0;
        if (number != 0) (void)atomic_compare_exchange_strong(&t->number, &none, number);
        y = next;
    }
}

/* Moves a rectangle with all threads. Returns an errno, or 0. */
static int share(const struct rfx_spill_files *files, struct rfx_team *team, int node,
                 struct rfx_rect rect, const struct rfx_view *view, bool write) {
    const struct rfx_node *of = &files->plan->graph->nodes[node];
    struct transfer t = {.map = &of->out,
                         .held = of->wanted,
                         .view = view,
                         .rect = rect,
                         .fd = files->files[node].fd,
                         .write = write};
    size_t row = rfx_tensor_pixel_bytes(t.map, rfx_rect_cols(rect));
    t.piece_rows = rfx_max_i64(1, (int64_t)(PIECE_BYTES / row));
    rfx_team_for(team, rfx_ceil_div(rfx_rect_rows(rect), t.piece_rows), move_piece, &t);
    return atomic_load(&t.number);
}

enum rfx_status rfx_spill_write(struct rfx_spill_files *files, struct rfx_team *team, int node,
                                struct rfx_rect rect, const struct rfx_view *view,
                                struct rfx_error *err) {
    enum rfx_status status = open_file(files, node, err);
    if (status != RFX_OK) return status;
    int number = share(files, team, node, rect, view, true);
    return number == 0 ? RFX_OK : fail_io(files, node, "cannot write", number, err);
}

enum rfx_status rfx_spill_fetch(struct rfx_spill_files *files, struct rfx_team *team, int node,
                                struct rfx_rect rect, const struct rfx_view *view,
                                struct rfx_error *err) {
    const struct rfx_node *of = &files->plan->graph->nodes[node];
    int64_t width = rfx_rect_cols(of->wanted);
    int number = share(files, team, node, rect, view, false);
    if (number != 0) return fail_io(files, node, "cannot read", number, err);
    /* the next rows will be read soon; this is only a hint to the system */
    (void)posix_fadvise(files->files[node].fd,
                        (off_t)rfx_tensor_pixel_bytes(&of->out, (rect.y1 - of->wanted.y0) * width),
                        (off_t)rfx_tensor_pixel_bytes(&of->out, rfx_rect_rows(rect) * width),
                        POSIX_FADV_WILLNEED);
    return RFX_OK;
}
