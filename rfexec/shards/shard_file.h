/* The files of a shard: an .npy file with the values of a part of an output, and a small JSON file
 * that describes the run and the part.
 *
 * SHARD.npy holds 1 x channels x rows x columns of a rectangle, or some cells of an output that is
 * joined of several maps (shard_place.h); always float32.
 *
 * SHARD.npy.json has version 3 and "rows" and "columns" for a rectangle, version 4 and "cells" for
 * cells. Its other members are:
 *
 *     "run"           what the bits of the output depend on (shard_identity.h); equal in all shards
 *     "output"        name of the output
 *     "shape"         shape of the whole output
 *     "stored"        {"shape", "channels_last", "type", "most"}: how the network declares the
 *                     output, where that is not a float32 map or tensor as it is computed
 *     "fingerprint"   of the shard's elements at their places in the whole output
 *     "picture"       which rows of the image were read, and their sums (shard_json.h)
 *     "georeference"  of the whole output; of the picture if the output is joined of maps
 *     "image"         rows and columns of the image, its padding included; [0, 0]: not known
 *     "grid"          where the pixels of the georeference lie in the picture: step and corner of
 *                     the first pixel, along columns, then along rows
 *     "about"         for people and for merge --status: "words" of the command, "part" [I, N], the
 *                     file of "states", "image_geo" (georeference of the image); for merge, where
 *                     late nodes run: "model" and "image_place" (where the image lies in its file)
 *     "sum"           a checksum of all other members: a JSON file that was changed is refused
 *
 * The JSON file is completed before the .npy file. So a shard whose .npy file exists is complete.
 */
#ifndef RFX_RFEXEC_SHARDS_SHARD_FILE_H
#define RFX_RFEXEC_SHARDS_SHARD_FILE_H

#include <jansson.h>

#include "rf_analysis/part_graph.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_sink.h"
#include "rfexec/output/output_stream.h"
#include "rfexec/shards/shard_place.h"

#define RFX_SHARD_FORMAT "rfexec part"

enum { RFX_SHARD_PATH_CHARS = 4096, RFX_SHARD_NAME_CHARS = 200 };

struct rfx_shard_file {
    char output[RFX_SHARD_NAME_CHARS]; /* name of the output; a very long name is cut */
    struct rfx_shape shape;       /* of the whole output; of a map 1, channels, rows, columns */
    struct rfx_rect rect;         /* of a map */
    struct rfx_stored stored;     /* how the network declares the whole output */
    struct rfx_shard_cells cells; /* of an output joined of maps; cells.of 0: a map */
    char fingerprint[RFX_FINGERPRINT_CHARS];
    int64_t image[2]; /* rows and columns of the image, its padding included; 0: not known */
    json_t *run, *about, *geo, *grid, *picture; /* owned; each may be NULL */
};

/* Releases the JSON members. */
void rfx_shard_file_release(struct rfx_shard_file *shard);

/* Returns the map of the whole output. Not for outputs of cells. */
struct rfx_tensor rfx_shard_file_map(const struct rfx_shard_file *shard);

/* Returns the tensor of the shard's own array. */
struct rfx_tensor rfx_shard_file_tensor(const struct rfx_shard_file *shard);

/* Returns the position of the whole map in the output, which fingerprints of shards need. */
struct rfx_end rfx_shard_file_end(const struct rfx_shard_file *shard);

/* Returns a new JSON object with the place of the shard in the output: {"cells": [[first, end],
 * ...]} or {"rows": [y0, y1], "columns": [x0, x1]}. */
json_t *rfx_shard_file_place_json(const struct rfx_shard_file *shard);

/* Sets *out to the graph that computes the shard of output k of `base`, given the results of global
 * operations known[n_known]. index (from 0) and count: number of the shard, used only for cells.
 * The caller frees *out with rfx_graph_free before `base` is freed. */
RFX_NODISCARD enum rfx_status rfx_shard_file_graph(const struct rfx_shard_file *shard,
                                                   const struct rfx_graph *base, int k,
                                                   const struct rfx_part_known *known, int n_known,
                                                   int64_t index, int64_t count,
                                                   struct rfx_graph **out, struct rfx_error *err);

/* Writes the JSON of `path`. */
RFX_NODISCARD enum rfx_status rfx_shard_file_write(struct rfx_memory *mem, const char *path,
                                                   const struct rfx_shard_file *shard,
                                                   struct rfx_error *err);

/* Reads the JSON file of the shard `path`. The caller frees it with rfx_shard_file_release.
 * MALFORMED: there is no such file, or it is not that of a shard. */
RFX_NODISCARD enum rfx_status rfx_shard_file_read(const char *path, struct rfx_shard_file *shard,
                                                  struct rfx_error *err);

/* Opens the .npy file for reading. Sets *fd to the file descriptor and *data_offset to the offset
 * of the first value. MALFORMED: shape or length differ from those in the JSON file. */
RFX_NODISCARD enum rfx_status rfx_shard_file_open(const char *path,
                                                  const struct rfx_shard_file *shard, int *fd,
                                                  int64_t *data_offset, struct rfx_error *err);

/* Reads `count` values at byte `offset` of the open file fd. path: its name for messages. Statuses:
 * IO; MALFORMED when the file ends too early. */
RFX_NODISCARD enum rfx_status rfx_shard_file_values(const char *path, int fd, int64_t offset,
                                                    int64_t count, float *values,
                                                    struct rfx_error *err);

/* Returns MALFORMED when the fingerprint `found` of the values in `path` differs from the
 * fingerprint in the JSON file. */
RFX_NODISCARD enum rfx_status rfx_shard_file_check_hash(const char *path,
                                                        const struct rfx_shard_file *shard,
                                                        const char *found, struct rfx_error *err);

/* Reads the whole array and compares its fingerprint with the one in the JSON file. Statuses:
 * MALFORMED when the file is truncated or has other values; IO; OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_shard_file_check(struct rfx_memory *mem, const char *path,
                                                   const struct rfx_shard_file *shard,
                                                   struct rfx_error *err);

/* Returns whether both shards are of the same output of the same run. If not, writes the reason to
 * why[size]. */
bool rfx_shard_file_same_run(const struct rfx_shard_file *a, const struct rfx_shard_file *b,
                             char *why, size_t size);

/* Checks that the shards cover the output without gaps and overlaps. All n shards are of one run;
 * paths[n] are their names for messages. MALFORMED, with the files and the numbers in the error:
 * two shards overlap, or some elements are in no shard. Cost: O(n^2); for a gap at most O(n^3). */
RFX_NODISCARD enum rfx_status rfx_shards_check_cover(const struct rfx_shard_file *shards,
                                                     const char *const *paths, int n,
                                                     struct rfx_error *err);

/* Writes a shard's files while the shard's graph runs. */
struct rfx_shard_writer {
    struct rfx_shard_file *shard; /* borrowed */
    const struct rfx_graph *base; /* graph of the whole network; borrowed */
    int k;                        /* number of the output in `base` */
    int64_t index, count;         /* for cells: shard `index` (from 0) of `count` */
    struct rfx_output_stream *stream;
    struct rfx_fingerprint fingerprint;
};

/* Returns the bytes of memory that writing the shard takes. */
size_t rfx_shard_writer_bytes(const struct rfx_shard_file *shard);

/* Opens the .npy file. The caller has set the members before `stream`. */
RFX_NODISCARD enum rfx_status rfx_shard_writer_open(struct rfx_shard_writer *writer,
                                                    const char *path, struct rfx_error *err);

/* Returns a sink that writes the outputs of the shard's graph. Valid as long as the writer. */
struct rfx_output_sink rfx_shard_writer_sink(struct rfx_shard_writer *writer);

/* Sets the shard's fingerprint and completes both files, the JSON first. */
RFX_NODISCARD enum rfx_status rfx_shard_writer_commit(struct rfx_shard_writer *writer,
                                                      const char *path, struct rfx_error *err);

/* Frees the writer. Without a commit before, no file remains. A writer of zeros is allowed. */
void rfx_shard_writer_free(struct rfx_shard_writer *writer);
#endif
