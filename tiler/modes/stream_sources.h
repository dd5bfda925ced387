/* When rows of maps that are all there from a stream's start come into it: a source's rows wait for
 * what comes from the image, and the sooner they are made the more of them wait.
 *
 * Invariants: 1. a source makes so much of its map in a step as of the image; 2. what is made of
 * sources alone and joins the stream's flow, read by one node each, is made when the flow has the
 * rows that it is joined with; 3. a node waits for nodes before it only, so that no two wait for
 * each other. */
#ifndef RFX_TILER_MODES_STREAM_SOURCES_H
#define RFX_TILER_MODES_STREAM_SOURCES_H

#include "tiler/modes/streaming.h"

/* Fills stream->beside. O(edges). */
void rfx_stream_find_beside(const struct rfx_stream *stream);

/* Whether rows of a map come into the stream here that are all there from its start. */
bool rfx_stream_is_source(const struct rfx_stream *stream, int node);

/* Row up to which a node may be made by the end of a step, as for sources; INT64_MAX: any. */
int64_t rfx_stream_source_end(const struct rfx_stream *stream, int node, int64_t step);

/* The first step from one on in which another source may go on; INT64_MAX: there is none. */
int64_t rfx_stream_next_source_step(const struct rfx_stream *stream, int64_t from);
#endif
