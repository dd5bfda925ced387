/* Printable forms of texts; see printable.h. */
#include "layers/core/printable.h"

#include <stdint.h>
#include <string.h>

#include "layers/core/memory.h"

enum { ESCAPE_BYTES = 4 }; /* \xNN */

/* Valid UTF-8 characters that must not be shown, as ranges that include both ends. */
static const uint32_t hidden[][2] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x200b, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
};

/* Returns the number of bytes (1 to 4) of the UTF-8 character at p and sets *code, or returns 0 if
 * the bytes are not UTF-8. Overlong forms and surrogates are rejected. The zero at the end of a
 * text is no continuation byte, so decoding never reads beyond it. */
static int decode(const unsigned char *p, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n == 0 || p[0] > 0xf4) return 0;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fU >> n);
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return 0;
    *code = c;
    return n;
}

int rfx_utf8_bytes(const char *p) {
    uint32_t code;
    return decode((const unsigned char *)p, &code);
}

/* Returns the bytes of the printable character at p; 0: the byte at p has to be escaped. */
static int printable_bytes(const unsigned char *p) {
    uint32_t code = 0;
    int n = decode(p, &code);
    for (size_t i = 0; n > 0 && i < sizeof hidden / sizeof hidden[0]; i++)
        if (code >= hidden[i][0] && code <= hidden[i][1]) return 0;
    return n;
}

bool rfx_is_printable(const char *text) {
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        int n = printable_bytes(p);
        if (n == 0) return false;
        p += n;
    }
    return true;
}

void rfx_printable(const char *text, char *out, size_t size) {
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        int n = printable_bytes(p);
        if (at + (size_t)(n > 0 ? n : ESCAPE_BYTES) >= size) break;
        if (n == 0) {
            const char escape[ESCAPE_BYTES] = {'\\', 'x', digits[*p >> 4], digits[*p & 15]};
            memcpy(out + at, escape, ESCAPE_BYTES);
            at += ESCAPE_BYTES;
            p++;
        }
        for (; n > 0; n--) out[at++] = (char)*p++;
    }
    out[at] = '\0';
}

char *rfx_printable_copy(struct rfx_memory *mem, const char *text) {
    if (rfx_is_printable(text)) return rfx_memory_strdup(mem, text);
    size_t length = strlen(text), size = ESCAPE_BYTES * length + 1;
    char *copy = length < SIZE_MAX / (2 * ESCAPE_BYTES) ? rfx_memory_alloc(mem, size) : NULL;
    if (copy != NULL) rfx_printable(text, copy, size);
    return copy;
}

void rfx_trim_cut_character(char *text) {
    size_t length = strlen(text), start = length;
    for (int back = 0; back < 4 && start > 0; back++) {
        unsigned char byte = (unsigned char)text[--start];
        if ((byte & 0xc0) == 0x80) continue;
        if (byte >= 0x80 && rfx_utf8_bytes(text + start) == 0) text[start] = '\0';
        return;
    }
}
