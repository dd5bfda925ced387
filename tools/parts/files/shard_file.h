/* The file of a part: an .npy of the rectangle's values, and beside it a small JSON that says what
 * run it is a part of.
 *
 * PART.npy: 1 x channels x rows x columns of the rectangle, or some cells of an output that is
 * joined of several maps (part_cells.h).
 *
 * PART.npy.json: {"format", "version", "run": {...}, "output", "shape", "rows", "columns",
 * "fingerprint", "about": {...}, "georeference": {...}, "picture": {...}, "sum"}; of cells "cells":
 * {...} instead of "rows" and "columns", and version 4.
 *
 * "stored", where it is there: {"shape", "channels_last", "type", "most"}, how the whole output is
 * declared where that is no float32 map or tensor as it is. Parts hold float32 maps all the same.
 *
 * "run" holds everything that the bits of an output depend on; parts of one run have the same.
 * "picture" (part_picture.h) says which rows of the image the part has read. "sum" is a checksum of
 * all other members: a JSON that was changed is refused.
 * "about" is for people and --status: "words" of the command but those of this part, "part"
 * [I, N] of --part, the file of "states", "image_geo" where the image lies (part_geo.h). The JSON
 * gets its name before the .npy, so that a part whose .npy is there is complete. */
/* Whether rectangles make up a map, or cells an output, without gap and overlap. */
#ifndef RFX_TOOLS_PARTS_FILES_SHARD_FILE_H
#define RFX_TOOLS_PARTS_FILES_SHARD_FILE_H

#include <jansson.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"
#include "layers/graph/graph.h"
#include "tools/parts/files/shard_place.h"

#define RFX_PART_FORMAT "rfexec part"

enum { RFX_PART_PATH_CHARS = 4096, RFX_PART_NAME_CHARS = 200 };

struct rfx_part_file {
    char output[RFX_PART_NAME_CHARS]; /* its name, cut where it is very long */
    struct rfx_shape shape;           /* of the whole output; of a map 1, channels, rows, columns */
    struct rfx_rect rect;             /* of a map */
    struct rfx_stored stored;         /* how the whole output is declared */
    struct rfx_part_cells cells;      /* of what is joined of maps; cells.of 0: a map */
    char fingerprint[33];             /* of these elements of the output */
    json_t *run;                      /* owned */
    json_t *about;                    /* owned; may be NULL */
    json_t *geo;                      /* of the output, as part_geo.h has it; owned; may be NULL */
    json_t *picture;                  /* as part_picture.h has it; owned; may be NULL */
};

/* Drops what it owns. */
void rfx_part_file_release(struct rfx_part_file *part);

/* The map of the whole output, where it is one, and the array of the part alone. */
struct rfx_tensor rfx_part_file_map(const struct rfx_part_file *part);
struct rfx_tensor rfx_part_file_tensor(const struct rfx_part_file *part);

/* The whole map where it belongs in the output: for fingerprints of its parts. */
struct rfx_end rfx_part_file_end(const struct rfx_part_file *part);

/* Writes the JSON of `path`. */
RFX_NODISCARD enum rfx_status rfx_part_file_write(struct rfx_memory *mem, const char *path,
                                                  const struct rfx_part_file *part,
                                                  struct rfx_error *err);

/* Reads the JSON of `path`, to be released. MALFORMED, in words: it is none of a part, or there is
 * none. */
RFX_NODISCARD enum rfx_status rfx_part_file_read(const char *path, struct rfx_part_file *part,
                                                 struct rfx_error *err);

/* Opens the .npy for reading: *fd, and where its values begin. MALFORMED: it has not the shape and
 * length that the JSON says. */
RFX_NODISCARD enum rfx_status rfx_part_file_open(const char *path, const struct rfx_part_file *part,
                                                 int *fd, int64_t *data_offset,
                                                 struct rfx_error *err);

/* Reads `count` values that lie `offset` bytes into the open file of `path`. IO; MALFORMED: it ends
 * before them. */
RFX_NODISCARD enum rfx_status rfx_part_file_values(const char *path, int fd, int64_t offset,
                                                   int64_t count, float *values,
                                                   struct rfx_error *err);

/* Reads the whole array and compares its hash with the JSON's. MALFORMED: it is cut off, or has
 * other values; IO; OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_part_file_check(struct rfx_memory *mem, const char *path,
                                                  const struct rfx_part_file *part,
                                                  struct rfx_error *err);

/* Whether both are parts of one output of one run; else why not, in words. */
bool rfx_part_file_same_run(const struct rfx_part_file *a, const struct rfx_part_file *b, char *why,
                            size_t size);

/* MALFORMED, with the files and the numbers: two parts have an element in common, or some belong to
 * none. paths[n]; all are of one run. O(n^2), and for a gap at most O(n^3). */
RFX_NODISCARD enum rfx_status rfx_part_check_cover(const struct rfx_part_file *parts,
                                                   const char *const *paths, int n,
                                                   struct rfx_error *err);
#endif
