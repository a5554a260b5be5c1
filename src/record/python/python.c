#include "core/module_table.h"
#include "core/recording.h"
#include "platform/maps.h"
#include "record/python/python_internals.h"
#include "record/python/python_objects.h"
#include "unwind/unwind.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

struct python python;

python_walk *_Atomic hook_python_walk;
python_sign *hook_python_sign;
python_merge *hook_python_merge;

static void begin(const struct interpreter *found) {
    python.interpreter = *found;
    python.evaluate = unwind_frame_word(found->evaluate);
    python_code_deaths_watch();
    hook_python_sign = python_sign_frames;
    hook_python_merge = python_merge_frames;
    hook_python_walk = python_walk_frames; /* last: it tells that the others are there */
}

/* ---- libraries that are opened later ---- */

/* One that may be an interpreter, by its name; others are not looked into. */
static struct {
    _Atomic uint32_t stage, number;
    _Atomic uint64_t base;
} library;

enum { NONE, NOTED, SEEN };

void python_note_module(const struct mapped_code *code, uint32_t number) {
    const char *name = strrchr(code->line->path, '/');
    /* libpython3.so is empty */
    bool may_be = name && strncmp(name, "/libpython3.", 12) == 0 && name[12] != 's';
    if (!may_be || !code->base || number >= MODULE_BY_ADDRESS) return;
    if (hook_python_walk || library.stage == SEEN) return;
    library.number = number;
    library.base = code->base;
    library.stage = NOTED;
}

/* Libraries that are being closed may run Python code once more, and be gone a moment later. */
static _Atomic uint32_t closings;

void python_look_at_stack(const struct native_stack *native) {
    if (closings) return;
    uint64_t kind = FRAME_MODULE, number = library.number;
    uint64_t module = kind << FRAME_KIND_SHIFT | number << FRAME_MODULE_SHIFT;
    for (uint32_t i = 0; library.stage == NOTED && i < native->count; i++) {
        uint32_t noted = NOTED;
        struct interpreter found;
        if ((native->frames[i] & ~FRAME_OFFSET_MASK) != module) continue;
        /* One thread is to look; the strongest order costs nothing here. */
        if (!atomic_compare_exchange_strong(&library.stage, &noted, SEEN)) return;
        if (python_find_in(library.base, &found) && python_layout(found.minor, found.runtime, &python.layout))
            begin(&found);
    }
}

void python_before_closing(void) {
    closings++;
    if (library.stage == NONE) return;
    hook_python_walk = NULL;
    python_code_deaths_unwatch();
    library.stage = NOTED;
}

void python_after_closing(void) {
    closings--;
}

/* ---- what was there from the start ---- */

/* From 3.12 on, who begins the interpreter a second time gets back its own allocators, which do not know our
 * marks on the objects that have survived. An interpreter that is a program begins once. */
static bool begins_once(int minor) {
    char path[PATH_MAX];
    ssize_t length = minor < 12 ? 0 : readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return minor < 12;
    path[length] = '\0';
    const char *name = strrchr(path, '/');
    return name && strncmp(name, "/python", 7) == 0;
}

void python_start(bool objects) {
    struct interpreter found;
    if (!python_find(&found) || !python_layout(found.minor, found.runtime, &python.layout)) return;
    library.stage = NONE; /* if it is a library, it stays */
    begin(&found);
    if (objects && begins_once(found.minor)) python_objects_start();
}

void python_end(void) {
    python_code_deaths_unwatch();
}
