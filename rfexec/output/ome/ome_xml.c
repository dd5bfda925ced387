/* Writes the text twice: the first pass only counts its length; see ome_xml.h. */
#include "rfexec/output/ome/ome_xml.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "rfexec/include/rfexec/rfexec.h"

struct text {
    char *to; /* NULL: the text is only counted */
    size_t size, length;
};

static void put(struct text *text, const char *format, ...) RFX_PRINTF(2, 3);

static void put(struct text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = text->to == NULL
                ? vsnprintf(NULL, 0, format, args)
                : vsnprintf(text->to + text->length, text->size - text->length, format, args);
    va_end(args);
    if (n > 0) text->length += (size_t)n;
}

/* Writes the value of an attribute. Control characters, which XML does not allow, become blanks.
 * Special characters become named entities, because Bio-Formats rejects numeric ones. */
static void put_value(struct text *text, const char *value, size_t length) {
    static const char special[] = "&<>\"";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)value[i];
        const char *at = c < ' ' ? NULL : strchr(special, c);
        if (at != NULL)
            put(text, "%s", names[at - special]);
        else
            put(text, "%c", c < ' ' || c == 127 ? ' ' : c);
    }
}

/* Writes the file's name without its folder and its ending. */
static void put_title(struct text *text, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    const char *end = strrchr(name, '.');
    size_t length = end == NULL ? strlen(name) : (size_t)(end - name);
    if (length > 4 && strncasecmp(name + length - 4, ".ome", 4) == 0) length -= 4;
    put_value(text, name, length);
}

static void put_size(struct text *text, char axis, double um) {
    if (um > 0.0 && isfinite(um))
        put(text, " PhysicalSize%c=\"%.17g\"", axis, um); /* the unit is micrometres by default */
}

bool rfx_ome_is_colour(const struct rfx_ome_image *image) {
    return image->channels == 3 && image->bits == 8 && !image->is_signed && image->names == NULL;
}

static void put_channels(struct text *text, const struct rfx_ome_image *image) {
    bool colour = rfx_ome_is_colour(image);
    const char *name = image->names;
    for (int64_t c = 0; c < (colour ? 1 : image->channels); c++) {
        put(text, "<Channel ID=\"Channel:0:%" PRId64 "\"", c);
        if (name != NULL) {
            put(text, " Name=\"");
            put_value(text, name, strlen(name));
            put(text, "\"");
            name += strlen(name) + 1;
        }
        put(text, " SamplesPerPixel=\"%d\"/>", colour ? 3 : 1);
    }
    put(text, "<TiffData IFD=\"0\" PlaneCount=\"%" PRId64 "\"/>", colour ? 1 : image->channels);
}

static void put_all(struct text *text, const struct rfx_ome_image *image) {
    const char *const types[2][3] = {{"uint8", "uint16", "float"}, {"int8", "int16", "int32"}};
    const char *type = types[image->is_signed][image->bits == 32 ? 2 : image->bits / 8 - 1];
    put(text,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
        "<!-- The OME-XML of this file: readers need it to know its channels. -->"
        "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" "
        "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
        "xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06 "
        "http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\" "
        "Creator=\"rfexec " RFX_VERSION "\"><Image ID=\"Image:0\" Name=\"");
    put_title(text, image->path);
    put(text,
        "\"><Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" Type=\"%s\" SizeX=\"%" PRId64
        "\" SizeY=\"%" PRId64 "\" SizeZ=\"1\" SizeC=\"%" PRId64 "\" SizeT=\"1\"",
        type, image->w, image->h, image->channels);
    put_size(text, 'X', image->pixel_um[0]);
    put_size(text, 'Y', image->pixel_um[1]);
    put(text, ">");
    put_channels(text, image);
    put(text, "</Pixels></Image></OME>");
}

size_t rfx_ome_xml_bytes(const struct rfx_ome_image *image) {
    struct text counted = {NULL, 0, 0};
    put_all(&counted, image);
    return counted.length + 1;
}

enum rfx_status rfx_ome_xml(struct rfx_memory *mem, const struct rfx_ome_image *image, char **text,
                            struct rfx_error *err) {
    struct text written = {NULL, rfx_ome_xml_bytes(image), 0};
    written.to = rfx_memory_alloc(mem, written.size);
    if (written.to == NULL) return rfx_memory_fail(mem, image->path, written.size, err);
    put_all(&written, image);
    *text = written.to;
    return RFX_OK;
}
