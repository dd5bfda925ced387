/* The files of a shard: an .npy with the values of a part of an output, and beside it a small JSON
 * that says which run it is of and which part.
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
 *     "georeference"  of the whole output
 *     "about"         for people and for merge --status: "words" of the command, "part" [I, N], the
 *                     file of "states", "image_geo" where the image lies
 *     "sum"           a checksum of all other members: a JSON that was changed is refused
 *
 * The JSON gets its name before the .npy: a shard whose .npy is there is complete. */
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
    char output[RFX_SHARD_NAME_CHARS]; /* name of the output, cut off where it is very long */
    struct rfx_shape shape;       /* of the whole output; of a map 1, channels, rows, columns */
    struct rfx_rect rect;         /* of a map */
    struct rfx_stored stored;     /* how the network declares the whole output */
    struct rfx_shard_cells cells; /* of an output joined of maps; cells.of 0: a map */
    char fingerprint[RFX_FINGERPRINT_CHARS];
    json_t *run, *about, *geo, *picture; /* owned; each may be NULL */
};

/* Drops the JSON members. */
void rfx_shard_file_release(struct rfx_shard_file *shard);

/* The map of the whole output (not of cells). */
struct rfx_tensor rfx_shard_file_map(const struct rfx_shard_file *shard);

/* The array of the shard alone. */
struct rfx_tensor rfx_shard_file_tensor(const struct rfx_shard_file *shard);

/* Where the whole map lies in the output: what fingerprints of shards are made with. */
struct rfx_end rfx_shard_file_end(const struct rfx_shard_file *shard);

/* {"cells": [[first, end], ...]} or {"rows": [y0, y1], "columns": [x0, x1]}; a new reference. */
json_t *rfx_shard_file_place_json(const struct rfx_shard_file *shard);

/* The graph that computes the shard, from the results of global operations known[n_known]. index
 * (from 0) and count are looked at for cells only. Free with rfx_graph_free before the base. */
RFX_NODISCARD enum rfx_status rfx_shard_file_graph(const struct rfx_shard_file *shard,
                                                   const struct rfx_graph *base, int k,
                                                   const struct rfx_part_known *known, int n_known,
                                                   int64_t index, int64_t count,
                                                   struct rfx_graph **out, struct rfx_error *err);

/* Writes the JSON of `path`. */
RFX_NODISCARD enum rfx_status rfx_shard_file_write(struct rfx_memory *mem, const char *path,
                                                   const struct rfx_shard_file *shard,
                                                   struct rfx_error *err);

/* Reads the JSON of `path`. To be released. MALFORMED: there is none, or it is not a shard's. */
RFX_NODISCARD enum rfx_status rfx_shard_file_read(const char *path, struct rfx_shard_file *shard,
                                                  struct rfx_error *err);

/* Opens the .npy for reading: *fd, and where its values begin. MALFORMED: its shape or length is
 * not the one that the JSON says. */
RFX_NODISCARD enum rfx_status rfx_shard_file_open(const char *path,
                                                  const struct rfx_shard_file *shard, int *fd,
                                                  int64_t *data_offset, struct rfx_error *err);

/* Reads `count` values that lie `offset` bytes into the open file of `path`. IO; MALFORMED: the
 * file ends before them. */
RFX_NODISCARD enum rfx_status rfx_shard_file_values(const char *path, int fd, int64_t offset,
                                                    int64_t count, float *values,
                                                    struct rfx_error *err);

/* MALFORMED: the fingerprint `found` of the values in `path` is not the one that the JSON says. */
RFX_NODISCARD enum rfx_status rfx_shard_file_check_hash(const char *path,
                                                        const struct rfx_shard_file *shard,
                                                        const char *found, struct rfx_error *err);

/* Reads the whole array and compares its fingerprint with the JSON's. MALFORMED: the file is cut
 * off or has other values; IO; OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_shard_file_check(struct rfx_memory *mem, const char *path,
                                                   const struct rfx_shard_file *shard,
                                                   struct rfx_error *err);

/* Whether both are of one output of one run; otherwise writes the reason into why[size]. */
bool rfx_shard_file_same_run(const struct rfx_shard_file *a, const struct rfx_shard_file *b,
                             char *why, size_t size);

/* Whether the shards make up the output without gap and overlap. MALFORMED, with the files and the
 * numbers: two shards have an element in common, or some elements are in none. paths[n]; all are of
 * one run. O(n^2), and for a gap at most O(n^3). */
RFX_NODISCARD enum rfx_status rfx_shards_check_cover(const struct rfx_shard_file *shards,
                                                     const char *const *paths, int n,
                                                     struct rfx_error *err);

/* Writes a shard's files while the shard's graph runs. */
struct rfx_shard_writer {
    struct rfx_shard_file *shard; /* borrowed */
    const struct rfx_graph *base; /* of the whole network; borrowed */
    int k;                        /* the output of base */
    int64_t index, count;         /* of cells: shard `index` (from 0) of `count` */
    struct rfx_output_stream *stream;
    struct rfx_fingerprint fingerprint;
};

/* Bytes that writing the shard holds. */
size_t rfx_shard_writer_bytes(const struct rfx_shard_file *shard);

/* Opens the .npy; the members before `stream` are set. */
RFX_NODISCARD enum rfx_status rfx_shard_writer_open(struct rfx_shard_writer *writer,
                                                    const char *path, struct rfx_error *err);

/* Takes the outputs of the shard's graph. Valid as long as the writer. */
struct rfx_output_sink rfx_shard_writer_sink(struct rfx_shard_writer *writer);

/* Sets the shard's fingerprint and completes both files, the JSON first. */
RFX_NODISCARD enum rfx_status rfx_shard_writer_commit(struct rfx_shard_writer *writer,
                                                      const char *path, struct rfx_error *err);

/* Frees; without a commit nothing is left under the name. Zeros are fine. */
void rfx_shard_writer_free(struct rfx_shard_writer *writer);
#endif
