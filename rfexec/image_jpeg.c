/* The marker structure of JPEG (ITU T.81 annex B) as far as tables and frames go. */
#include "rfexec/image_jpeg.h"

enum { END = -1, MARKER_RST0 = 0xd0, MARKER_RST7 = 0xd7 };
enum { MARKER_SOF0 = 0xc0, MARKER_SOF2 = 0xc2, MARKER_DHT = 0xc4, MARKER_EOI = 0xd9 };
enum { MARKER_SOS = 0xda };

static int next_byte(struct rfx_image_file *file) {
    if (file->at < file->filled) return file->buffer[file->at++];
    unsigned char byte;
    return rfx_image_file_read(file, &byte, 1) == 1 ? byte : END;
}

static int next_length(struct rfx_image_file *file) {
    int high = next_byte(file), low = next_byte(file);
    return high == END || low == END ? END : high << 8 | low;
}

/* The code after one or more 0xff. With `scan`, passes over coded data, stuffed zeros and restart
 * markers first; without, bytes before 0xff are padding. */
static int next_marker(struct rfx_image_file *file, bool scan) {
    for (;;) {
        int byte = next_byte(file);
        while (byte != 0xff && byte != END) byte = next_byte(file);
        while (byte == 0xff) byte = next_byte(file);
        bool data = byte == 0 || (byte >= MARKER_RST0 && byte <= MARKER_RST7);
        if (!scan || !data) return byte;
    }
}

/* Tables of one DHT segment whose length is read; false when one has more than 256 codes. */
static bool huffman_tables_ok(struct rfx_image_file *file, int left) {
    while (left > 0) {
        int codes = 0;
        if (next_byte(file) == END) return true;
        for (int i = 0; i < 16; i++) {
            int count = next_byte(file);
            codes += count == END ? 0 : count; /* stb_image reads zeros past the end */
        }
        if (codes > 256) return false;
        rfx_image_file_skip(file, codes);
        left -= 17 + codes;
    }
    return true;
}

/* Reads the frame header after its length. */
static void read_frame(struct rfx_image_file *file, bool progressive, struct rfx_jpeg_walk *out) {
    unsigned char header[6]; /* precision, height, width, components */
    if (rfx_image_file_read(file, header, sizeof header) != sizeof header) return;
    out->components = header[5] < 1 || header[5] > 4 ? 4 : header[5];
    out->progressive = progressive;
    rfx_image_file_skip(file, 3 * (int64_t)header[5]);
}

bool rfx_jpeg_walk(struct rfx_image_file *file, bool to_end, struct rfx_jpeg_walk *out) {
    out->components = 4;
    out->progressive = true;
    rfx_image_file_rewind(file);
    rfx_image_file_skip(file, 2); /* start of image */
    bool scan = false;
    for (;;) {
        int marker = next_marker(file, scan);
        if (marker == END || marker == MARKER_EOI || marker == 0) return true;
        int length = next_length(file);
        if (length < 2) return true;
        if (marker == MARKER_DHT) {
            if (!huffman_tables_ok(file, length - 2)) return false;
        } else if (marker >= MARKER_SOF0 && marker <= MARKER_SOF2) {
            read_frame(file, marker == MARKER_SOF2, out);
            if (!to_end) return true;
        } else {
            rfx_image_file_skip(file, length - 2);
        }
        scan = marker == MARKER_SOS;
    }
}
