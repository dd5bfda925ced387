/* Makes texts from outside (names in models, paths, labels) safe to show.
 *
 * Printable text is valid UTF-8 without control characters (C0, DEL, C1) and without characters
 * that change the direction of text, break lines or are invisible. Every other byte is written as
 * \xNN, so that no name can control a terminal, forge a line of output or break JSON. Printable
 * text is not changed. */
#ifndef RFX_LAYERS_CORE_PRINTABLE_H
#define RFX_LAYERS_CORE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

struct rfx_memory;

bool rfx_is_printable(const char *text);

/* Writes the printable form of `text` into `out`, which has `size` > 0 bytes. If the form is too
 * long, it is cut after a whole character; the terminating zero is always written. `text` and `out`
 * must not overlap. */
void rfx_printable(const char *text, char *out, size_t size);

/* Returns the printable form in a new block; NULL when the allocation fails. */
char *rfx_printable_copy(struct rfx_memory *mem, const char *text);

/* Returns the bytes (1 to 4) of the UTF-8 character at p, or 0 if the bytes there are not UTF-8. */
int rfx_utf8_bytes(const char *p);

/* Removes the last character of `text` if its UTF-8 bytes are incomplete because the text was cut.
 */
void rfx_trim_cut_character(char *text);
#endif
