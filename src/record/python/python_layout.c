#include "record/python/python_layout.h"

#include <string.h>

/* clang-format off */
/*   3.x shape                 thread         cframe     frame                 code                          text,
 *                             id, top,       frame,     previous, code,       name, file, first_line,       wide_text
 *                             cframe         previous   instruction,          lines, instructions,
 *                                                       owner, is_entry       first_traceable                     */
static const struct layout layouts[] = {
    {8,  SHAPE_OBJECTS,        {176, 24, 0},  {0, 0},    {24, 32, 104, 0, 0},  {112, 104, 40, 120, 0, 0},     48, 72},
    {9,  SHAPE_OBJECTS,        {176, 24, 0},  {0, 0},    {24, 32, 104, 0, 0},  {112, 104, 40, 120, 0, 0},     48, 72},
    {10, SHAPE_OBJECTS_CFRAME, {176, 24, 48}, {0, 8},    {24, 32, 96, 0, 0},   {112, 104, 40, 120, 0, 0},     48, 72},
    {11, SHAPE_ENTRIES,        {152, 56, 0},  {8, 16},   {48, 32, 56, 69, 68}, {128, 112, 72, 136, 184, 168}, 48, 72},
    {12, SHAPE_SHIMS,          {0, 56, 0},    {0, 8},    {8, 0, 56, 70, 0},    {128, 112, 68, 136, 192, 176}, 40, 56},
};
/* clang-format on */

/* ---- from 3.13 on: _Py_DebugOffsets ---- */

#define COOKIE "xdebugpy"

/* The table consists of 64-bit words, in groups. At which word a group begins depends on the version. */
struct description {
    uint8_t minor, thread, frame, code, text;
};

static const struct description descriptions[] = {
    /* 3.x, thread, frame, code, text */
    {13, 19, 28, 34, 67},
    {14, 22, 31, 39, 77},
    {15, 22, 39, 47, 89},
};

/* Words at the beginning, and words of each group, by their numbers in it. */
enum { WORD_COOKIE, WORD_VERSION, WORD_FREE_THREADED };
enum { THREAD_CURRENT_FRAME = 4 };
enum { FRAME_PREVIOUS = 1, FRAME_EXECUTABLE, FRAME_INSTRUCTION, FRAME_OWNER = 5 };
enum { CODE_FILE = 1, CODE_QUALIFIED_NAME = 3, CODE_LINES, CODE_FIRST_LINE, CODE_INSTRUCTIONS = 9 };
enum { TEXT_ASCII_SIZE = 3 };

/* Two offsets that the table leaves out, as distances from others, in bytes. */
#define FIRST_TRACEABLE_BEFORE_INSTRUCTIONS 16
#define WIDE_TEXT_BEHIND_ASCII              16

static void read_description(const struct description *at, const uint64_t *words, struct layout *ret_layout) {
    const uint64_t *frame = words + at->frame, *code = words + at->code, *text = words + at->text;
    *ret_layout = (struct layout){
        .minor = at->minor,
        .shape = SHAPE_SHIMS,
        .thread = {.top = (uint16_t)words[at->thread + THREAD_CURRENT_FRAME]},
        .frame = {.previous = (uint16_t)frame[FRAME_PREVIOUS],
            .code = (uint16_t)frame[FRAME_EXECUTABLE],
            .instruction = (uint16_t)frame[FRAME_INSTRUCTION],
            .owner = (uint16_t)frame[FRAME_OWNER]},
        .code = {.name = (uint16_t)code[CODE_QUALIFIED_NAME],
            .file = (uint16_t)code[CODE_FILE],
            .first_line = (uint16_t)code[CODE_FIRST_LINE],
            .lines = (uint16_t)code[CODE_LINES],
            .instructions = (uint16_t)code[CODE_INSTRUCTIONS],
            .first_traceable = (uint16_t)(code[CODE_INSTRUCTIONS] - FIRST_TRACEABLE_BEFORE_INSTRUCTIONS)},
        .text = (uint16_t)text[TEXT_ASCII_SIZE],
        .wide_text = (uint16_t)(text[TEXT_ASCII_SIZE] + WIDE_TEXT_BEHIND_ASCII),
    };
}

bool python_layout(int minor, const void *runtime, struct layout *ret_layout) {
    for (unsigned i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (layouts[i].minor != minor) continue;
        *ret_layout = layouts[i];
        return true;
    }
    const uint64_t *words = runtime;
    if (!runtime || memcmp(&words[WORD_COOKIE], COOKIE, 8) != 0) return false;
    bool is_usual = words[WORD_VERSION] >> 16 == (uint64_t)(3 << 8 | minor) && !words[WORD_FREE_THREADED];
    for (unsigned i = 0; is_usual && i < sizeof descriptions / sizeof *descriptions; i++) {
        if (descriptions[i].minor != minor) continue;
        read_description(&descriptions[i], words, ret_layout);
        return true;
    }
    return false;
}
