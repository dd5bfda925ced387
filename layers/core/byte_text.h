/* Numbers of bytes in messages that compare two of them. */
#ifndef RFX_LAYERS_CORE_BYTE_TEXT_H
#define RFX_LAYERS_CORE_BYTE_TEXT_H

#include <stddef.h>

enum { RFX_BYTE_TEXT = 32 };

/* Writes two different sizes so that their texts differ: "14.0 MiB" and "12.6 MiB", both in bytes
 * where the rounded figures would be the same, below 1 MiB in bytes. */
void rfx_byte_texts(size_t a, size_t b, char a_text[RFX_BYTE_TEXT], char b_text[RFX_BYTE_TEXT]);
#endif
