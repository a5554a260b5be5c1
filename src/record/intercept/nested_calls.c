#include "record/intercept/nested_calls.h"

#include "base/dynamic_section.h"
#include "platform/counter.h"
#include "record/intercept/real_allocator.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"

#include <string.h>

bool nested_calls_are_possible;

static struct code_range allocator, ours;
static struct real_allocator next; /* the allocator's own functions */

/* The frame of the enter_* function by which the thread entered the allocator; 0: the thread is not inside. */
static __thread uint64_t entered_at;

/* ---- the decision ---- */

static bool holds(const struct code_range *range, uint64_t address) {
    return address - range->start < range->end - range->start;
}

/* The caller's frame must be deeper than the one by which the thread entered. The call comes from the allocator's
 * code; or from an enter_* function of ours, if the allocator's function ended in a jump to another one. */
bool nested_calls_is_inside(const struct unwind_registers *caller) {
    if (!entered_at) return false;
    if (caller->sp <= entered_at && (holds(&allocator, caller->pc) || holds(&ours, caller->pc))) return true;
    /* A signal handler has interrupted the allocator and is allocating, or has left the allocator by longjmp. */
    entered_at = 0;
    return false;
}

/* ---- the functions that real_allocator holds in place of the allocator's ----
 *
 * malloc is not replaced. It is the function that the others call, and most of a program's calls go to it. */

/* The state of the thread's sampling when it entered the allocator. */
struct entrance {
    struct thread_record *thread;
    uint64_t countdown, interval;
    bool is_outermost; /* the thread was not inside */
};

static uint64_t interval_of(struct thread_record *thread) {
    return thread ? counter_load(&thread->interval) : 0;
}

static inline __attribute__((always_inline)) struct entrance enter(void) {
    uint64_t here = (uintptr_t)__builtin_frame_address(0);
    struct entrance entrance = {.is_outermost = !entered_at || here > entered_at};
    if (!entrance.is_outermost) return entrance;
    entrance.thread = recorder_thread;
    entrance.interval = interval_of(recorder_thread);
    entrance.countdown = recorder_countdown;
    entered_at = here;
    return entrance;
}

/* Restores the countdown; not if a signal handler has drawn a new interval in between, to which it would not
 * belong. */
static void leave(const struct entrance *entrance) {
    if (!entrance->is_outermost) return;
    entered_at = 0;
    if (entrance->thread == recorder_thread && entrance->interval == interval_of(recorder_thread))
        recorder_countdown = entrance->countdown;
}

#define ENTER(type, name, parameters, arguments)                                                             \
    static type enter_##name parameters {                                                                    \
        struct entrance entrance = enter();                                                                  \
        type result = next.name arguments;                                                                   \
        leave(&entrance);                                                                                    \
        return result;                                                                                       \
    }

ENTER(void *, calloc, (size_t count, size_t size), (count, size))
ENTER(void *, realloc, (void *block, size_t size), (block, size))
ENTER(int, posix_memalign, (void **ret, size_t alignment, size_t size), (ret, alignment, size))
ENTER(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
ENTER(void *, memalign, (size_t alignment, size_t size), (alignment, size))
ENTER(void *, valloc, (size_t size), (size))
ENTER(void *, pvalloc, (size_t size), (size))

/* ---- which allocators ---- */

static const struct link_map *file_of_malloc(void) {
    for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next) {
        const ElfW(Sym) *symbol = dynamic_section_find(object, "malloc");
        if (symbol && object->l_addr + symbol->st_value == (uintptr_t)real_allocator.malloc) return object;
    }
    return NULL;
}

/* Whether a reference to this name may come from the allocator's operator new, as in jemalloc. Such a call has
 * to be recorded: the operator was not. */
static bool is_for_operators(const struct link_map *object, const char *name) {
    return (strcmp(name, "malloc") == 0 || strcmp(name, "aligned_alloc") == 0) &&
           dynamic_section_find(object, "_Znwm");
}

static bool allocates(const char *name) {
    static const char *const names[] = {
        "malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* Whether the allocator calls functions of the malloc family by their public names. A call that was bound when
 * the file was linked has no relocation. */
static bool refers_to_names(const struct link_map *object) {
    struct relocations relocations = dynamic_section_relocations(object);
    if (!relocations.symbols || !relocations.text) return false;
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; relocations.tables[table] && i < relocations.counts[table]; i++) {
            const char *name = dynamic_section_relocation_name(&relocations, &relocations.tables[table][i]);
            if (allocates(name) && !is_for_operators(object, name)) return true;
        }
    return false;
}

void nested_calls_expect(const struct code_range *allocators, const struct code_range *our_own) {
    const struct link_map *object = file_of_malloc();
    if (!object || !refers_to_names(object)) return;
    allocator = *allocators;
    ours = *our_own;
    next = real_allocator;
#define REPLACE(name)                                                                                        \
    if (next.name) real_allocator.name = enter_##name;
    REPLACE(calloc)
    REPLACE(realloc)
    REPLACE(posix_memalign)
    REPLACE(aligned_alloc)
    REPLACE(memalign)
    REPLACE(valloc)
    REPLACE(pvalloc)
#undef REPLACE
    nested_calls_are_possible = true;
}
