/* A font of 5 x 7 pixels for text in images: printable ASCII. */
#ifndef RFX_TOOLS_REPORT_BITMAP_FONT_H
#define RFX_TOOLS_REPORT_BITMAP_FONT_H

#include <stdbool.h>

enum {
    RFX_FONT_WIDTH = 5,
    RFX_FONT_HEIGHT = 7,
    RFX_FONT_ADVANCE = RFX_FONT_WIDTH + 1 /* from one letter to the next */
};

/* Returns whether a letter has ink at (x, y), counted from its upper left pixel. Any other byte
 * than printable ASCII is drawn as a question mark. */
bool rfx_font_has_ink(char letter, int x, int y);
#endif
