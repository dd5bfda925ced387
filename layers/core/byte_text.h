/* Texts of byte counts, for messages that compare two of them. */
#ifndef RFX_LAYERS_CORE_BYTE_TEXT_H
#define RFX_LAYERS_CORE_BYTE_TEXT_H

#include <stddef.h>

enum { RFX_BYTE_TEXT = 32 };

/* Writes the texts of two byte counts, such as "14.0 MiB" and "12.6 MiB". Counts below 1 MiB are
 * written in bytes. If two different counts would round to the same text, both are written in
 * bytes. */
void rfx_byte_texts(size_t a, size_t b, char a_text[RFX_BYTE_TEXT], char b_text[RFX_BYTE_TEXT]);
#endif
