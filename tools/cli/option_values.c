/* See option_values.h. Integer values are parsed with integer arithmetic only: no size is converted
 * through a float. */
#include "tools/cli/option_values.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A fraction is read in millionths of a unit; further digits are read and dropped. The limit
 * ensures that the fraction times the largest unit (2^40 bytes) fits into 64 bits. */
static const uint64_t finest_scale = 1000000;

/* Returns the number of bytes of a unit, or 0 when the unit is unknown. "M" and "MiB" are binary,
 * "MB" is decimal. */
static uint64_t unit_bytes(const char *unit) {
    static const char prefixes[] = "KMGT";
    if (*unit == '\0' || strcasecmp(unit, "B") == 0) return 1;
    const char *prefix = strchr(prefixes, toupper((unsigned char)unit[0]));
    if (prefix == NULL) return 0;
    bool decimal = strcasecmp(unit + 1, "B") == 0;
    if (!decimal && unit[1] != '\0' && strcasecmp(unit + 1, "iB") != 0) return 0;
    uint64_t factor = 1;
    for (const char *p = prefixes; p <= prefix; ++p) factor *= decimal ? 1000 : 1024;
    return factor;
}

bool rfx_cli_parse_bytes(const char *text, size_t *out) {
    /* whole and fraction in integers: value = (whole + fraction / scale) * unit, rounded down */
    uint64_t whole = 0, fraction = 0, scale = 1;
    const char *p = text;
    if (!isdigit((unsigned char)p[*p == '.'])) return false;
    for (; isdigit((unsigned char)*p); ++p) {
        if (__builtin_mul_overflow(whole, 10U, &whole)) return false;
        if (__builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole)) return false;
    }
    if (*p == '.') {
        for (++p; isdigit((unsigned char)*p); ++p) {
            if (scale >= finest_scale) continue;
            fraction = fraction * 10 + (uint64_t)(*p - '0');
            scale *= 10;
        }
    }
    while (*p == ' ') ++p;
    uint64_t unit = unit_bytes(p), bytes;
    if (unit == 0 || __builtin_mul_overflow(whole, unit, &bytes)) return false;
    if (__builtin_add_overflow(bytes, fraction * unit / scale, &bytes)) return false;
    if (bytes == 0 || bytes > SIZE_MAX / 2) return false;
    *out = (size_t)bytes;
    return true;
}

/* Parses a positive integer that ends exactly at `end` and is at most `limit`. */
static bool parse_count(const char *text, const char *end, int64_t limit, int64_t *out) {
    if (!isdigit((unsigned char)*text)) return false;
    errno = 0;
    char *stop;
    long long value = strtoll(text, &stop, 10);
    if (errno != 0 || stop != end || value < 1 || value > limit) return false;
    *out = value;
    return true;
}

bool rfx_cli_parse_count(const char *text, int64_t limit, int64_t *out) {
    return parse_count(text, text + strlen(text), limit, out);
}

bool rfx_cli_parse_index(const char *text, int64_t limit, int64_t *out) {
    if (strcmp(text, "0") != 0) return rfx_cli_parse_count(text, limit, out);
    *out = 0;
    return true;
}

bool rfx_cli_parse_pair(const char *text, struct rfx_cli_pair *out) {
    const char *x = strpbrk(text, "xX");
    struct rfx_cli_pair pair;
    if (x == NULL || !parse_count(text, x, INT32_MAX, &pair.y)) return false;
    if (!parse_count(x + 1, x + 1 + strlen(x + 1), INT32_MAX, &pair.x)) return false;
    *out = pair;
    return true;
}

bool rfx_cli_parse_grid(const char *text, struct rfx_cli_pair *out) {
    struct rfx_cli_pair grid = {0, 0};
    if (strpbrk(text, "xX") != NULL) return rfx_cli_parse_pair(text, out);
    if (!rfx_cli_parse_count(text, INT32_MAX, &grid.y)) return false;
    *out = grid;
    return true;
}

bool rfx_cli_parse_share(const char *text, int64_t *index, int64_t *count) {
    long long i, n;
    int used = 0;
    if (sscanf(text, "%9lld/%9lld%n", &i, &n, &used) != 2 || text[used] != '\0') return false;
    if (strspn(text, "0123456789/") != strlen(text) || i < 1 || i > n) return false;
    *index = i;
    *count = n;
    return true;
}

bool rfx_cli_parse_seed(const char *text, uint64_t *out) {
    if (!isdigit((unsigned char)*text)) return false;
    errno = 0;
    char *end;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno != 0 || *end != '\0') return false;
    *out = value;
    return true;
}

/* Parses a finite number that is followed by the character `end_mark`. *next: the text after the
 * mark. */
static bool parse_float(const char *text, char end_mark, const char **next, float *out) {
    char *end;
    float value = strtof(text, &end);
    if (end == text || *end != end_mark || !isfinite(value)) return false;
    *out = value;
    *next = end + (end_mark != '\0');
    return true;
}

bool rfx_cli_parse_float(const char *text, float *out) {
    const char *next;
    return parse_float(text, '\0', &next, out);
}

bool rfx_cli_parse_floats(const char *text, struct rfx_cli_numbers *out) {
    out->n = 0;
    for (bool last = false; !last;) {
        last = strchr(text, ',') == NULL;
        if (out->n == RFX_IMAGE_MAX_BANDS) return false;
        if (!parse_float(text, last ? '\0' : ',', &text, &out->values[out->n])) return false;
        out->n++;
    }
    return true;
}

bool rfx_cli_parse_nodata(const char *text, struct rfx_cli_nodata *out) {
    const char *mark = strchr(text, '=');
    char *end = NULL;
    if (mark == NULL || mark == text) return false;
    out->of_file = strncmp(text, "file=", 5) == 0;
    out->value = out->of_file ? 0.0 : strtod(text, &end);
    out->given = true;
    return (out->of_file || end == mark) && rfx_cli_parse_float(mark + 1, &out->fill);
}

bool rfx_cli_parse_scale(const char *text, struct rfx_cli_scale *out) {
    static const char word[] = "raw";
    out->raw = strncmp(text, word, strlen(word)) == 0;
    out->given = true;
    out->factor = 1.0f;
    if (!out->raw) return rfx_cli_parse_float(text, &out->factor);
    text += strlen(word);
    return *text == '\0' || (*text == ',' && rfx_cli_parse_float(text + 1, &out->factor));
}

bool rfx_cli_parse_bands(const char *text, struct rfx_image_bands *out) {
    out->n = 0;
    for (const char *at = text;; ++at) {
        const char *end = at + strcspn(at, ",");
        int64_t number;
        if (out->n == RFX_IMAGE_MAX_BANDS || !parse_count(at, end, UINT16_MAX, &number))
            return false;
        out->numbers[out->n++] = (uint16_t)number;
        if (*end == '\0') return true;
        at = end;
    }
}

bool rfx_cli_parse_fit(const char *text, struct rfx_fit_size *out) {
    static const struct {
        const char *name;
        enum rfx_pad_mode mode;
    } modes[] = {{"", RFX_PAD_REFLECT},
                 {",reflect", RFX_PAD_REFLECT},
                 {",edge", RFX_PAD_EDGE},
                 {",zero", RFX_PAD_CONSTANT}};
    const char *end = text + strcspn(text, ",");
    if (!parse_count(text, end, RFX_FIT_MOST, &out->multiple)) return false;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
        if (strcmp(end, modes[i].name) != 0) continue;
        out->mode = modes[i].mode;
        return true;
    }
    return false;
}

bool rfx_cli_parse_range(const char *text, float *out) {
    const char *next = text;
    float lo, hi;
    if (!parse_float(next, ',', &next, &lo) || !parse_float(next, '\0', &next, &hi)) return false;
    if (!(lo < hi)) return false;
    out[0] = lo;
    out[1] = hi;
    return true;
}

bool rfx_cli_parse_bins(const char *text, struct rfx_answer_bins *out) {
    const char *comma = strchr(text, ',');
    char *middle, *end;
    if (comma == NULL || !parse_count(text, comma, RFX_ANSWER_MOST_BINS, &out->n)) return false;
    out->low = strtod(comma + 1, &middle);
    if (middle == comma + 1 || *middle != ',') return false;
    out->high = strtod(middle + 1, &end);
    if (end == middle + 1 || *end != '\0') return false;
    return isfinite(out->high - out->low) && out->low < out->high;
}

bool rfx_cli_parse_quantiles(const char *text, struct rfx_answer_quantiles *out) {
    out->n = 0;
    for (char *end = NULL;; text = end + 1) {
        if (out->n == RFX_ANSWER_MOST_QUANTILES) return false;
        double value = strtod(text, &end), *last = &out->at[out->n++];
        if (end == text || !(value >= 0 && value <= 1)) return false;
        if (out->n > 1 && !(value > last[-1])) return false;
        *last = value;
        if (*end == '\0') return true;
        if (*end != ',') return false;
    }
}

bool rfx_cli_parse_rect(const char *text, struct rfx_rect *out) {
    long long y0, x0, y1, x1;
    int used = 0;
    if (sscanf(text, "%10lld,%10lld,%10lld,%10lld%n", &y0, &x0, &y1, &x1, &used) != 4) return false;
    if (text[used] != '\0' || strspn(text, "0123456789,") != strlen(text)) return false;
    *out = rfx_rect_make(y0, y1, x0, x1);
    return !rfx_rect_is_empty(*out);
}
