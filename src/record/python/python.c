#include "core/module_table.h"
#include "core/recording.h"
#include "platform/calls.h"
#include "platform/maps.h"
#include "record/python/python_internals.h"
#include "record/python/python_objects.h"
#include "unwind/unwind.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

struct python python;

_Atomic bool python_is_present;

static void begin(const struct interpreter *found) {
    python.interpreter = *found;
    python.evaluate = unwind_frame_word(found->evaluate);
    python_code_deaths_watch();
    python_is_present = true; /* last: a thread that sees it uses all of the above */
}

/* ---- an interpreter in a library that is opened later ---- */

/* A library that may be an interpreter, going by its name.
 *
 *     NONE ──► NOTED ──► SEEN     python_note_module, then a stack with code of the library
 *                ▲─────────┘      a library is being closed */
static struct {
    _Atomic uint32_t stage;
    _Atomic uint32_t number; /* of the module */
    _Atomic uint64_t base;   /* its address */
} library;

enum { NONE, NOTED, SEEN };

void python_note_module(const struct mapped_code *code, uint32_t number) {
    const char *name = strrchr(code->line->path, '/');
    /* libpython3.so has no code: it only names the library that has. */
    bool may_be = name && strncmp(name, "/libpython3.", 12) == 0 && name[12] != 's';
    if (!may_be || !code->base || number >= MODULE_BY_ADDRESS) return;
    if (python_is_present || library.stage == SEEN) return;
    library.number = number;
    library.base = code->base;
    library.stage = NOTED;
}

/* Calls of dlclose that are under way. A library that is being closed may run Python code once more, and be unmapped
 * a moment later. */
static _Atomic uint32_t closings;

void python_look_at_stack(const struct native_stack *native) {
    if (closings) return;
    uint64_t kind = FRAME_MODULE, number = library.number;
    uint64_t module = kind << FRAME_KIND_SHIFT | number << FRAME_MODULE_SHIFT;
    for (uint32_t i = 0; library.stage == NOTED && i < native->count; i++) {
        uint32_t noted = NOTED;
        struct interpreter found;
        if ((native->frames[i] & ~FRAME_OFFSET_MASK) != module) continue;
        /* The exchange decides which thread looks into the library. It happens so rarely that the strongest order
         * costs nothing. */
        if (!atomic_compare_exchange_strong(&library.stage, &noted, SEEN)) return;
        if (python_find_in(library.base, &found) && python_layout(found.minor, found.runtime, &python.layout))
            begin(&found);
    }
}

void python_before_closing(void) {
    closings++;
    if (library.stage == NONE) return;
    python_is_present = false;
    python_code_deaths_unwatch();
    library.stage = NOTED;
}

void python_after_closing(void) {
    closings--;
}

/* ---- an interpreter that is there from the start ---- */

/* Whether the interpreter is initialized only once in this process. From 3.12 on, Py_Initialize after Py_Finalize
 * puts back the interpreter's own allocators. Those do not know the marks in front of objects that have survived. An
 * executable that is called python… initializes the interpreter once; of other programs nothing is known. */
static bool begins_once(int minor) {
    char path[PATH_MAX];
    long length = minor < 12 ? 0 : call_readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return minor < 12;
    path[length] = '\0';
    const char *name = strrchr(path, '/');
    return name && strncmp(name, "/python", 7) == 0;
}

void python_start(bool objects) {
    struct interpreter found;
    if (!python_find(&found) || !python_layout(found.minor, found.runtime, &python.layout)) return;
    library.stage = NONE; /* the program was linked with it: it is never closed */
    begin(&found);
    if (objects && begins_once(found.minor)) python_objects_start();
}

void python_end(void) {
    python_code_deaths_unwatch();
}
