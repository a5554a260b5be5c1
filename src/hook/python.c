#include "hook/python.h"

#include "core/codes.h"
#include "core/maps.h"
#include "core/memory.h"
#include "core/names.h"
#include "core/unnoticed.h"
#include "hook/python_find.h"
#include "hook/python_layout.h"
#include "hook/python_lines.h"
#include "hook/python_objects.h"
#include "hook/state.h"
#include "unwind/output.h"
#include "unwind/unwind.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

python_walk *_Atomic hook_python_walk;
uint32_t (*hook_python_merge)(
    const struct python_stack *python, const struct native_stack *native, struct native_stack *merged);

#define FRAMES_WALKED 100000 /* deeper recursion than any interpreter allows */
#define TEXT_MOST     600

enum owner { OWNED_BY_GENERATOR = 1, OWNED_BY_C_STACK = 3 };

static struct {
    struct layout layout;
    struct interpreter interpreter;
    uint64_t evaluate; /* the word of a frame at the beginning of the C function that interprets */
} python;

static const void *pointer_at(const void *base, uint16_t offset) {
    return *(const void *const *)((const char *)base + offset);
}
/* From 3.14 on the lowest bits of a reference in a frame tell how it is counted. */
static const void *object_at(const void *base, uint16_t offset) {
    return (const void *)((uintptr_t)pointer_at(base, offset) & ~(uintptr_t)3);
}
static int32_t number_at(const void *base, uint16_t offset) {
    return *(const int32_t *)((const char *)base + offset);
}

/* ---- objects ---- */

#define OBJECT_TYPE 8  /* of every object */
#define TEXT_LENGTH 16 /* of text and bytes */
#define TEXT_HASH   24
#define TEXT_STATE  32
#define BYTES_START 32

static const void *name_of(const void *code) {
    return pointer_at(code, python.layout.code.name);
}

/* Of bytes: their number, the first and the last of them. */
static uint64_t sketch_of(const void *bytes) {
    uint64_t first = 0, last = 0, size = (uintptr_t)pointer_at(bytes, TEXT_LENGTH),
             some = size < 8 ? size : 8;
    const char *start = (const char *)bytes + BYTES_START;
    memcpy(&first, start, some);
    memcpy(&last, start + size - some, some);
    return (first * UINT64_C(0x632be59bd9b4e019) ^ last) * UINT64_C(0x9e3779b97f4a7c15) + size;
}

/* Differs for different code at the same address: an object that has died leaves its place to others, often
 * to one of the same name. */
static uint64_t key_of(const void *code) {
    const void *name = name_of(code), *lines = pointer_at(code, python.layout.code.lines);
    uint64_t a = (uintptr_t)code * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t b = (uintptr_t)name * UINT64_C(0xc2b2ae3d27d4eb4f);
    uint64_t c = (uintptr_t)lines * UINT64_C(0x165667b19e3779f9) ^ sketch_of(lines);
    uint64_t d = (uintptr_t)pointer_at(name, TEXT_HASH) +
                 (uint64_t)number_at(code, python.layout.code.first_line) * UINT64_C(0x27d4eb2f165667c5);
    uint64_t key = a ^ (b << 21 | b >> 43) ^ (c << 42 | c >> 22) ^ d;
    return (key ^ key >> 32) | 1;
}

static uint32_t character_at(const void *letters, unsigned width, size_t index) {
    switch (width) {
    case 1:
        return ((const uint8_t *)letters)[index];
    case 2:
        return ((const uint16_t *)letters)[index];
    default:
        return ((const uint32_t *)letters)[index];
    }
}

/* Text as UTF-8, cut to fit. */
static void copy_text(const void *object, char *text, size_t size) {
    uint32_t state = (uint32_t)number_at(object, TEXT_STATE);
    unsigned width = state >> 2 & 7;
    bool is_ascii = state >> 6 & 1, is_compact = state >> 5 & 1;
    size_t length = (size_t)pointer_at(object, TEXT_LENGTH), at = 0;
    const char *letters = (const char *)object + (is_ascii ? python.layout.text : python.layout.wide_text);
    if (!is_compact) letters = "?", length = width = 1;
    for (size_t i = 0; i < length && at + 5 < size; i++) {
        uint32_t c = character_at(letters, width, i);
        if (c < 0x80) {
            text[at++] = (char)(c ? c : '?');
        } else if (c < 0x800) {
            text[at++] = (char)(0xc0 | c >> 6);
            text[at++] = (char)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            text[at++] = (char)(0xe0 | c >> 12);
            text[at++] = (char)(0x80 | (c >> 6 & 0x3f));
            text[at++] = (char)(0x80 | (c & 0x3f));
        } else {
            text[at++] = (char)(0xf0 | c >> 18);
            text[at++] = (char)(0x80 | (c >> 12 & 0x3f));
            text[at++] = (char)(0x80 | (c >> 6 & 0x3f));
            text[at++] = (char)(0x80 | (c & 0x3f));
        }
    }
    text[at] = '\0';
}

static __attribute__((noinline)) uint32_t note_code(const void *object, uint64_t key) {
    UNNOTICED;
    char name[TEXT_MOST], file[NAME_LENGTH];
    copy_text(name_of(object), name, sizeof name);
    copy_text(pointer_at(object, python.layout.code.file), file, sizeof file);
    struct code code = {.name = name,
        .file = name_note(&recorder.recording, file),
        .first_line = (uint32_t)number_at(object, python.layout.code.first_line)};
    return code_note(&recorder.recording, key, &code);
}

/* ---- lines ---- */

/* What was looked up lately: the upper bits of a hash of code and instruction, whose lower ones are the
 * place, and the line. */
#define LINES_KNOWN   4096u
#define LINE_BITS     24
#define LINE_CHECK(h) ((h) >> LINE_BITS << LINE_BITS)

static _Atomic uint64_t lines_known[LINES_KNOWN];

static uint32_t find_line(const void *code, uint32_t offset) {
    const void *bytes = pointer_at(code, python.layout.code.lines);
    struct line_table table = {.bytes = (const uint8_t *)bytes + BYTES_START,
        .size = (size_t)pointer_at(bytes, TEXT_LENGTH),
        .minor = python.layout.minor,
        .first_line = (uint32_t)number_at(code, python.layout.code.first_line)};
    return python_line(&table, offset);
}

static uint32_t line_of(const void *code, uint64_t key, uint32_t offset) {
    uint64_t hash = (key ^ offset) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    _Atomic uint64_t *known = &lines_known[hash % LINES_KNOWN];
    /* Relaxed: a word that says all of itself, its own check included. */
    uint64_t word = atomic_load_explicit(known, memory_order_relaxed);
    if (LINE_CHECK(word) == LINE_CHECK(hash)) return (uint32_t)(word & ((1u << LINE_BITS) - 1));
    uint32_t line = find_line(code, offset);
    if (line >> LINE_BITS == 0) atomic_store_explicit(known, LINE_CHECK(hash) | line, memory_order_relaxed);
    return line;
}

/* ---- the walk ---- */

struct walk {
    struct output output;
};

static void add_frame(struct walk *walk, const void *code, uint64_t instruction, uint64_t place) {
    if (pointer_at(code, OBJECT_TYPE) != python.interpreter.code_type) return;
    uint64_t key = key_of(code);
    uint32_t number = code_find(key);
    if (number == CODE_NONE) number = note_code(code, key);
    output_store(&walk->output,
        (uint64_t)FRAME_PYTHON << FRAME_KIND_SHIFT | (uint64_t)number << FRAME_CODE_SHIFT |
            line_of(code, key, (uint32_t)instruction),
        place);
}

/* Up to 3.10. */
static void walk_objects(struct walk *walk, const void *thread) {
    const struct layout *layout = &python.layout;
    const void *cframe = layout->thread.cframe ? pointer_at(thread, layout->thread.cframe) : NULL;
    const void *frame = pointer_at(thread, layout->thread.top);
    for (int i = 0; frame && i < FRAMES_WALKED; i++) {
        int64_t instruction = number_at(frame, layout->frame.instruction);
        if (instruction < 0) instruction = 0;
        if (layout->minor == 10) instruction *= 2; /* it counts instructions, not bytes */
        add_frame(walk, pointer_at(frame, layout->frame.code), (uint64_t)instruction, (uintptr_t)cframe);
        frame = pointer_at(frame, layout->frame.previous);
        if (cframe) cframe = pointer_at(cframe, layout->cframe.previous);
    }
}

/* A frame whose function has not begun yet tells nothing: its caller does. */
static bool has_begun(const void *frame, const void *code, uint64_t instruction) {
    const struct layout *layout = &python.layout;
    return *((const uint8_t *)frame + layout->frame.owner) == OWNED_BY_GENERATOR ||
           (int64_t)instruction >= 2 * (int64_t)number_at(code, layout->code.first_traceable);
}

static const void *add_interpreter_frame(struct walk *walk, const void *frame, uint64_t place) {
    const struct layout *layout = &python.layout;
    const void *code = object_at(frame, layout->frame.code);
    uint64_t instruction =
        (uintptr_t)pointer_at(frame, layout->frame.instruction) - (uintptr_t)code - layout->code.instructions;
    if (has_begun(frame, code, instruction)) add_frame(walk, code, instruction, place);
    return pointer_at(frame, layout->frame.previous);
}

/* 3.11. */
static void walk_entries(struct walk *walk, const void *thread) {
    const struct layout *layout = &python.layout;
    const void *cframe = pointer_at(thread, layout->thread.top);
    const void *frame = cframe ? pointer_at(cframe, layout->cframe.frame) : NULL;
    for (int i = 0; frame && cframe && i < FRAMES_WALKED; i++) {
        bool is_entry = *((const uint8_t *)frame + layout->frame.is_entry);
        frame = add_interpreter_frame(walk, frame, (uintptr_t)cframe);
        if (is_entry) cframe = pointer_at(cframe, layout->cframe.previous);
    }
}

static bool is_shim(const void *frame) {
    return *((const uint8_t *)frame + python.layout.frame.owner) >= OWNED_BY_C_STACK;
}

/* From 3.12 on. The shim behind a run tells where the run belongs. */
static const void *shim_of(const void *frame) {
    for (int i = 0; frame && !is_shim(frame) && i < FRAMES_WALKED; i++)
        frame = pointer_at(frame, python.layout.frame.previous);
    return frame;
}

static void walk_shims(struct walk *walk, const void *thread) {
    const struct layout *layout = &python.layout;
    const void *frame = pointer_at(thread, layout->thread.top), *shim = NULL;
    if (layout->minor == 12) frame = frame ? pointer_at(frame, layout->cframe.frame) : NULL;
    for (int i = 0; frame && i < FRAMES_WALKED; i++) {
        if (is_shim(frame)) {
            frame = pointer_at(frame, layout->frame.previous);
            shim = NULL;
            continue;
        }
        if (!shim) shim = shim_of(frame);
        frame = add_interpreter_frame(walk, frame, (uintptr_t)shim);
    }
}

/* ---- the signature ---- */

/* How many code objects have died. While none does, code is known by its address. */
static _Atomic uint64_t code_deaths;
static void (*_Atomic free_code)(void *code);

#define TYPE_FREE 48 /* in every type: the function that ends its objects */

/* Relaxed: code is freed by a thread that holds the interpreter's lock, and its memory used again by one that
 * held it later; with the lock comes the count. */
static void note_death(void *code) {
    atomic_fetch_add_explicit(&code_deaths, 1, memory_order_relaxed);
    free_code(code);
}

static void (**code_free_slot(void))(void *) {
    return (void (**)(void *))(uintptr_t)((const char *)python.interpreter.code_type + TYPE_FREE);
}

/* Only one interpreter at a time is watched. */
static void watch_deaths(void) {
    if (*code_free_slot() == note_death) return;
    free_code = *code_free_slot();
    __atomic_store_n(code_free_slot(), note_death, __ATOMIC_RELEASE); /* who finds it finds free_code */
}

static void watch_no_deaths(void) {
    if (python.interpreter.code_type && *code_free_slot() == note_death) *code_free_slot() = free_code;
}

static uint64_t mix(uint64_t signature, uint64_t at) {
    return (signature ^ at) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

/* In exact mode every allocation asks for it. */
static uint64_t sign_frames(const void *thread) {
    const struct layout *layout = &python.layout;
    uint16_t previous = layout->frame.previous, instruction = layout->frame.instruction;
    const void *frame = pointer_at(thread, layout->thread.top);
    uint64_t deaths = atomic_load_explicit(&code_deaths, memory_order_relaxed);
    /* Multiplied, so as not to be mistaken for a difference of addresses. */
    uint64_t signature = deaths * UINT64_C(0xc2b2ae3d27d4eb4f);
    if (layout->shape <= SHAPE_OBJECTS_CFRAME) {
        uint16_t code = layout->frame.code;
        for (int i = 0; frame && i < FRAMES_WALKED; i++, frame = pointer_at(frame, previous))
            signature = mix(signature, (uintptr_t)pointer_at(frame, code) +
                                           ((uint64_t)(uint32_t)number_at(frame, instruction) << 40));
        return signature | 1;
    }
    uint16_t owner = layout->frame.owner;
    if (frame && (layout->shape == SHAPE_ENTRIES || layout->minor == 12))
        frame = pointer_at(frame, layout->cframe.frame);
    /* An instruction's address tells the code too. */
    for (int i = 0; frame && i < FRAMES_WALKED; i++, frame = pointer_at(frame, previous))
        signature = mix(signature, (uintptr_t)pointer_at(frame, instruction) +
                                       ((uint64_t) * ((const uint8_t *)frame + owner) << 56));
    return signature | 1;
}

/* Up to 3.11. The state of another thread may be freed while it is looked at. A thread has several states if
 * it works for several interpreters; the id tells whether one is its own. */
static const void *own_state_among_all(void) {
    const void *holder = python.interpreter.thread_state(), *own = python.interpreter.own_thread_state(), *id;
    if (!holder || !own || holder == own) return holder ? own : NULL;
    bool is_there = memory_copy(&id, (uintptr_t)holder + python.layout.thread.id, sizeof id);
    return is_there && id == (const void *)pthread_self() ? holder : NULL;
}

static uint64_t walk_python(struct python_stack *stack) {
    const void *thread =
        python.interpreter.own_thread_state ? own_state_among_all() : python.interpreter.thread_state();
    if (!thread) return 0;
    if (!stack) return sign_frames(thread);
    struct walk walk = {{.frames = stack->frames, .places = stack->places, .max = stack->max}};
    switch (python.layout.shape) {
    case SHAPE_OBJECTS:
    case SHAPE_OBJECTS_CFRAME:
        walk_objects(&walk, thread);
        break;
    case SHAPE_ENTRIES:
        walk_entries(&walk, thread);
        break;
    case SHAPE_SHIMS:
        walk_shims(&walk, thread);
        break;
    }
    stack->count = output_finish(&walk.output, true);
    return sign_frames(thread);
}

/* ---- merging ---- */

static void emit(struct native_stack *merged, uint64_t frame, uint64_t place) {
    merged->frames[merged->count] = frame;
    merged->places[merged->count++] = place;
}

/* Whether a native frame is that of the C function in which something at `place` lies. */
static bool interprets(const struct native_stack *native, uint32_t i, uint64_t place) {
    if (!place) return native->frames[i] - python.evaluate < python.interpreter.evaluate_size;
    if (i + 1 == native->count) return native->places[i] <= place;
    return native->places[i] <= place && place < native->places[i + 1] && native->places[i + 1] != UINT64_MAX;
}

/* Its part of the C stack is not among the native frames: it was cut out. */
static bool is_passed(const struct native_stack *native, uint32_t i, uint64_t place) {
    return place && place < native->places[i] && native->places[i] != UINT64_MAX;
}

static uint32_t merge(
    const struct python_stack *stack, const struct native_stack *native, struct native_stack *merged) {
    uint32_t next = 0;
    merged->count = 0;
    for (uint32_t i = 0; i < native->count; i++) {
        while (next < stack->count && is_passed(native, i, stack->places[next]))
            emit(merged, stack->frames[next++], native->places[i]);
        bool here = next < stack->count && interprets(native, i, stack->places[next]);
        if (!here) {
            emit(merged, native->frames[i], native->places[i]);
            continue;
        }
        uint64_t run = stack->places[next];
        do emit(merged, stack->frames[next++], native->places[i]);
        while (run && next < stack->count && stack->places[next] == run);
    }
    uint64_t outermost = native->count ? native->places[native->count - 1] : 0;
    while (next < stack->count) emit(merged, stack->frames[next++], outermost);
    return merged->count;
}

/* ---- finding it ---- */

static void begin(const struct interpreter *found) {
    atomic_fetch_add_explicit(&code_deaths, 1, memory_order_relaxed); /* some may have died unseen */
    python.interpreter = *found;
    python.evaluate = unwind_frame_word(found->evaluate);
    watch_deaths();
    hook_python_merge = merge;
    hook_python_walk = walk_python;
}

/* ---- libraries that are opened later ---- */

/* One that may be an interpreter, by its name; others are not looked into. */
static struct {
    _Atomic uint32_t stage, number;
    _Atomic uint64_t base;
} library;

enum { NONE, NOTED, SEEN };

void python_note(const struct mapped_code *code, uint32_t number) {
    const char *name = strrchr(code->line->path, '/');
    /* libpython3.so is empty */
    bool may_be = name && strncmp(name, "/libpython3.", 12) == 0 && name[12] != 's';
    if (!may_be || !code->base || number >= UNWIND_BY_ADDRESS) return;
    if (hook_python_walk || library.stage == SEEN) return;
    library.number = number;
    library.base = code->base;
    library.stage = NOTED;
}

/* Libraries that are being closed may run Python code once more, and be gone a moment later. */
static _Atomic uint32_t closings;

void python_look_at(const struct native_stack *native) {
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
    watch_no_deaths();
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
    watch_no_deaths();
}
