/* Writing HTML; see html.h. */
#include "tools/report/html.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(struct rfx_html *html, const void *data, size_t bytes) {
    if (html->status == RFX_OK)
        html->status = rfx_output_file_append(html->file, data, bytes, &html->err);
}

void rfx_html_raw(struct rfx_html *html, const char *markup) {
    put(html, markup, strlen(markup));
}

void rfx_html_format(struct rfx_html *html, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (html->status == RFX_OK && (n < 0 || (size_t)n >= sizeof text))
        html->status = rfx_fail(&html->err, RFX_STATUS_INVALID_ARGUMENT,
                                "a line of %d characters in a page, %zu at most", n, sizeof text);
    if (html->status == RFX_OK) put(html, text, (size_t)n);
}

/* Returns the HTML entity of a character that is markup, or NULL when the character needs none. */
static const char *entity_of(char c) {
    switch (c) {
        case '&':
            return "&amp;";
        case '<':
            return "&lt;";
        case '>':
            return "&gt;";
        case '"':
            return "&quot;";
        case '\'':
            return "&#39;";
        default:
            return NULL;
    }
}

/* Returns whether the character at p is U+FFFE or U+FFFF. These are the only printable characters
 * that XML does not allow. */
static bool is_no_character(const char *p) {
    return memcmp(p, "\xef\xbf", 2) == 0 && ((unsigned char)p[2] | 1) == 0xbf;
}

void rfx_html_text(struct rfx_html *html, const char *text) {
    const char *from = text;
    const char *p = text;
    for (; *p != '\0'; ++p) {
        bool none = strnlen(p, 3) == 3 && is_no_character(p);
        const char *entity = none ? "?" : entity_of(*p);
        if (entity == NULL) continue;
        put(html, from, (size_t)(p - from));
        rfx_html_raw(html, entity);
        if (none) p += 2;
        from = p + 1;
    }
    put(html, from, (size_t)(p - from));
}

/* Writes the one to three bytes in html->rest as four characters of base64. */
static void put_group(struct rfx_html *html) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0;
    char four[4];
    for (int i = 0; i < 3; ++i) bits = bits << 8 | (i < html->n_rest ? html->rest[i] : 0U);
    for (int i = 0; i < 4; ++i)
        four[i] = i <= html->n_rest ? digits[bits >> (18 - 6 * i) & 63] : '=';
    put(html, four, 4);
    html->n_rest = 0;
}

enum rfx_status rfx_html_base64(void *user, const void *data, size_t bytes, struct rfx_error *err) {
    struct rfx_html *html = user;
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; ++i) {
        html->rest[html->n_rest++] = p[i];
        if (html->n_rest == 3) put_group(html);
    }
    return html->status == RFX_OK ? RFX_OK : rfx_fail(err, html->status, "%s", html->err.text);
}

void rfx_html_fail(struct rfx_html *html, enum rfx_status status, const struct rfx_error *err) {
    if (status == RFX_OK || html->status != RFX_OK) return;
    html->status = status;
    html->err = *err;
}

void rfx_html_base64_end(struct rfx_html *html) {
    if (html->n_rest > 0) put_group(html);
}
