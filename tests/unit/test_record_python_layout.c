/* Which layouts of CPython are known, and how its own table is read. */
#include "check.h"
#include "record/python/python_layout.h"

#include <stdint.h>
#include <string.h>

/* The first words of _PyRuntime in CPython 3.13.0. */
static const uint64_t table_of_3_13[] = {0 /* the cookie */, 0x30d00f0, 0, 283320, 608, 632, 194968, 7272,
    7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0, 7768, 7760, 304, 0, 8, 16, 72, 152, 160, 232, 32, 80, 8,
    0, 56, 72, 70, 208, 112, 120, 128, 136, 68, 52, 96, 104, 200, 16, 8, 416, 24, 88, 168, 32, 24, 16, 40, 24,
    16, 48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40};

static uint64_t table[sizeof table_of_3_13 / sizeof *table_of_3_13];
static struct layout layout;

static bool reads(int minor, const char *cookie) {
    memcpy(table, cookie, 8);
    return python_layout(minor, table, &layout);
}

static void check_offsets(void) {
    CHECK(reads(13, "xdebugpy"));
    CHECK_EQUAL(layout.minor, 13);
    CHECK_EQUAL(layout.shape, SHAPE_SHIMS);
    CHECK_EQUAL(layout.thread.top, 72);
    CHECK_EQUAL(layout.frame.previous, 8);
    CHECK_EQUAL(layout.frame.code, 0);
    CHECK_EQUAL(layout.frame.instruction, 56);
    CHECK_EQUAL(layout.frame.owner, 70);
    CHECK_EQUAL(layout.code.name, 128);
    CHECK_EQUAL(layout.code.file, 112);
    CHECK_EQUAL(layout.code.first_line, 68);
    CHECK_EQUAL(layout.code.lines, 136);
    CHECK_EQUAL(layout.code.instructions, 200);
    CHECK_EQUAL(layout.code.first_traceable, 184);
    CHECK_EQUAL(layout.text, 40);
    CHECK_EQUAL(layout.wide_text, 56);
}

static void check_what_is_refused(void) {
    CHECK(!reads(13, "ydebugpy"));
    CHECK(!reads(14, "xdebugpy")); /* of another version than it says */
    CHECK(!python_layout(13, NULL, &layout));
    table[2] = 1; /* without the interpreter's lock */
    CHECK(!reads(13, "xdebugpy"));
    table[2] = 0;
    table[1] = 0x31000f0; /* 3.16 */
    CHECK(!reads(16, "xdebugpy"));
    CHECK(!python_layout(7, NULL, &layout) && !python_layout(-1, NULL, &layout));
    for (int minor = 8; minor <= 12; minor++)
        CHECK(python_layout(minor, NULL, &layout) && layout.minor == minor);
}

int main(void) {
    memcpy(table, table_of_3_13, sizeof table);
    check_offsets();
    check_what_is_refused();
    return check_result();
}
