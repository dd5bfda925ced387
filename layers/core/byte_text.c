/* See byte_text.h. */
#include "layers/core/byte_text.h"

#include <stdio.h>
#include <string.h>

static void in_bytes(size_t bytes, char text[RFX_BYTE_TEXT]) {
    (void)snprintf(text, RFX_BYTE_TEXT, "%zu bytes", bytes);
}

static void rounded(size_t bytes, char text[RFX_BYTE_TEXT]) {
    const size_t mib = (size_t)1 << 20, gib = (size_t)1 << 30;
    if (bytes < mib)
        in_bytes(bytes, text);
    else if (bytes < gib)
        (void)snprintf(text, RFX_BYTE_TEXT, "%.1f MiB", (double)bytes / (double)mib);
    else
        (void)snprintf(text, RFX_BYTE_TEXT, "%.2f GiB", (double)bytes / (double)gib);
}

void rfx_byte_texts(size_t a, size_t b, char a_text[RFX_BYTE_TEXT], char b_text[RFX_BYTE_TEXT]) {
    rounded(a, a_text);
    rounded(b, b_text);
    if (a == b || strcmp(a_text, b_text) != 0) return;
    in_bytes(a, a_text);
    in_bytes(b, b_text);
}
