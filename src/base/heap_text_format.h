/* pprof's text format for heaps, as the program's own dumps (record/dump/dump_heap.c) and the tool's exports
 * (format/heap_text.c) write it:
 *
 *     heap profile: LIVE OBJECTS: LIVE BYTES [OBJECTS: BYTES] @ heapprofile
 *     1: 2 [3: 4] @ 0xleaf 0xcaller …
 *
 *     MAPPED_LIBRARIES:
 *     start-end r-xp offset device inode path
 *
 * Readers look a caller up one byte before its address, and the leaf either at its address or one byte before
 * it. So callers are written as they are (return addresses), and the leaf one less.
 *
 * pprof refuses a line that has bytes but no objects: such a line gets one object. */
#ifndef MALLOSCOPE_BASE_HEAP_TEXT_FORMAT_H
#define MALLOSCOPE_BASE_HEAP_TEXT_FORMAT_H

#include <stdint.h>

#define HEAP_TEXT_START "heap profile: "
#define HEAP_TEXT_KIND  " heapprofile\n" /* of values that readers take as they are */
/* A line of its own, which readers skip; the number follows. */
#define HEAP_TEXT_RECORDER "# bytes that the recorder takes itself: "
#define HEAP_TEXT_MODULES  "\nMAPPED_LIBRARIES:\n"

/* A stack must have an address, and a name comes from the mapping that an address lies in. So what has no
 * address of its own gets one in the middle of a page that is listed under its name. No program has anything
 * at these addresses, neither in memory nor in its file as it was linked (google-pprof looks unknown addresses
 * up in the program's file). */
#define HEAP_TEXT_PAGE         UINT64_C(0x1000)
#define HEAP_TEXT_CUT          UINT64_C(0x800000001000) /* frames are missing here */
#define HEAP_TEXT_DROPPED      UINT64_C(0x800000002000) /* nothing is known of the stack */
#define HEAP_TEXT_SCOPES       UINT64_C(0x800000003000) /* the stack has scopes and threads alone */
#define HEAP_TEXT_CUT_NAME     "[cut]"
#define HEAP_TEXT_DROPPED_NAME "[dropped]"
#define HEAP_TEXT_SCOPES_NAME  "[scopes]"

static inline uint64_t heap_text_format_address(uint64_t page) {
    return page + HEAP_TEXT_PAGE / 2;
}

/* From here on no program has anything either: modules whose addresses may have been given to others since are
 * moved here. */
#define HEAP_TEXT_MOVED UINT64_C(0x810000000000)

#endif
