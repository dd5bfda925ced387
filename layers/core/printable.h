/* Texts that others wrote (names in models, paths, labels), made fit to be shown.
 *
 * Printable is valid UTF-8 without control characters (C0, DEL, C1) and without the characters that
 * turn the direction of text, break lines or cannot be seen. Bytes of anything else are written as
 * \xNN, so that no name can drive a terminal, forge a line or break JSON. Printable text stays as
 * it is. */
#ifndef RFX_LAYERS_CORE_PRINTABLE_H
#define RFX_LAYERS_CORE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

struct rfx_memory;

bool rfx_is_printable(const char *text);

/* Writes the printable form of `text` into `out`, as many whole characters as fit `size` bytes with
 * the end (size > 0). `text` and `out` do not overlap. */
void rfx_printable(const char *text, char *out, size_t size);

/* The printable form in a block of its own; NULL when it does not fit. */
char *rfx_printable_copy(struct rfx_memory *mem, const char *text);

/* Takes away a character at the end that is cut off in the middle. */
void rfx_trim_cut_character(char *text);
#endif
