/* Rows of a map that a rank has computed or received, in a file without a name, and their exchange
 * between ranks. Values keep their bits. The rows serve as the image of the network behind the map.
 */
#ifndef RFX_TOOLS_MPI_RANK_ROWS_H
#define RFX_TOOLS_MPI_RANK_ROWS_H

#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"
#include "tools/mpi/ranks.h"

struct rfx_row_store;

/* Bytes of memory that a store of such a map and its image take. */
size_t rfx_row_store_bytes(const struct rfx_tensor *map);

/* Opens a store for these rows of the map in a folder. IO: no file can be made, or the disk is
 * full. */
RFX_NODISCARD enum rfx_status rfx_row_store_open(struct rfx_memory *mem, const char *folder,
                                                 const struct rfx_tensor *map,
                                                 struct rfx_range rows, struct rfx_row_store **out,
                                                 struct rfx_error *err);

/* Stores `rect`, which lies in the store's rows and in the view. */
RFX_NODISCARD enum rfx_status rfx_row_store_put(struct rfx_row_store *store, struct rfx_rect rect,
                                                const struct rfx_view *view, struct rfx_error *err);

/* Copies rows, which both stores have, from another store of the map. */
RFX_NODISCARD enum rfx_status rfx_row_store_copy(struct rfx_row_store *store,
                                                 struct rfx_row_store *from, struct rfx_range rows,
                                                 struct rfx_error *err);

/* The map as an image; only the store's rows can be read. To be freed before the store. */
RFX_NODISCARD enum rfx_status rfx_row_store_image(struct rfx_row_store *store,
                                                  struct rfx_image **out, struct rfx_error *err);

/* Copies the reason into err where reading the image has failed. */
void rfx_row_store_explain(const struct rfx_row_store *store, struct rfx_error *err);

/* Closes and frees; NULL is fine. */
void rfx_row_store_free(struct rfx_row_store *store);

/* Bytes that exchanging rows of such a map takes. */
size_t rfx_row_exchange_bytes(const struct rfx_ranks *ranks, const struct rfx_tensor *map);

/* All ranks together, each with its share of the rows (rfx_part_map_rows) in its store. Receives
 * the rows of `need`, which may be empty, that other ranks have; the store has room for them. The
 * store may be NULL where the rank has no rows and needs none. *received: bytes that came from
 * other ranks. */
RFX_NODISCARD enum rfx_status rfx_row_exchange(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                               const struct rfx_graph *whole, int map,
                                               struct rfx_range need, struct rfx_row_store *store,
                                               uint64_t *received, struct rfx_error *err);
#endif
