/* Rows of a map that a rank has, made or sent, in a file without a name; and the picture that the
 * network behind the map reads. Floats stay as they are, to the bit. */
/* Rows of a map move from the ranks that have made them to those that read them. */
#ifndef RFX_TOOLS_MPI_RANK_ROWS_H
#define RFX_TOOLS_MPI_RANK_ROWS_H

#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"
#include "tools/mpi/ranks.h"

struct rfx_row_store;

/* Bytes of memory that a store of such a map and its picture take. */
size_t rfx_row_store_bytes(const struct rfx_tensor *map);

/* A store for these rows of the map, in this folder. IO: no file can be made, or the disk is full.
 */
RFX_NODISCARD enum rfx_status rfx_row_store_open(struct rfx_memory *mem, const char *folder,
                                                 const struct rfx_tensor *map,
                                                 struct rfx_range rows, struct rfx_row_store **out,
                                                 struct rfx_error *err);

/* Takes `rect`, which lies in the store's rows and in the view. */
RFX_NODISCARD enum rfx_status rfx_row_store_put(struct rfx_row_store *store, struct rfx_rect rect,
                                                const struct rfx_view *view, struct rfx_error *err);

/* Takes these rows, which both have, of another store of the map. */
RFX_NODISCARD enum rfx_status rfx_row_store_copy(struct rfx_row_store *store,
                                                 struct rfx_row_store *from, struct rfx_range rows,
                                                 struct rfx_error *err);

/* The map as a picture, of which only the store's rows can be read; to be freed before it. */
RFX_NODISCARD enum rfx_status rfx_row_store_image(struct rfx_row_store *store,
                                                  struct rfx_image **out, struct rfx_error *err);

/* Puts the reason into err where reading the picture has failed. */
void rfx_row_store_explain(const struct rfx_row_store *store, struct rfx_error *err);

/* Closes and frees; NULL is fine. */
void rfx_row_store_free(struct rfx_row_store *store);

/* Bytes that moving rows of such a map takes while it goes on. */
size_t rfx_row_exchange_bytes(const struct rfx_ranks *ranks, const struct rfx_tensor *map);

/* All ranks together, each with the rows of its share (rfx_part_map_rows) in its store, whose rows
 * include those that it needs: `need`, which may be empty. Then they are there. The store may be
 * NULL where the rank has no rows and needs none. *received: bytes that came from other ranks. */
RFX_NODISCARD enum rfx_status rfx_row_exchange(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                               const struct rfx_graph *whole, int map,
                                               struct rfx_range need, struct rfx_row_store *store,
                                               uint64_t *received, struct rfx_error *err);
#endif
